/* Learning: first to choose as good splits do (cross-entropy), then from what choices are worth
 * (PPO). The value of a state is not estimated by a network: several rollouts of the same graph are
 * drawn, and each is held against the mean of the others. Source: Schulman et al., "Proximal Policy
 * Optimization Algorithms", arXiv 1707.06347; the mean of the others: Kool, van Hoof, Welling, "Buy
 * 4 REINFORCE samples, get a baseline for free", 2019. */
#include "learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cancel.h"
#include "diag.h"
#include "options.h"
#include "scheduling.h"

enum {
  M = PSPLIT_I_MEMORY,
  S = PSPLIT_I_SCORE,
  MOST_GRAPHS = 256,
  MOST_ROLLOUTS = 256,
  MOST_BATCH = 4096
};

/* What a rollout that breaks memory is worth: as if it were so many times slower than it is. */
static const double INVALID = 4;

void psplit_policy_learn_options_defaults(psplit_policy_learn_options *options,
                                          size_t struct_size) {
  psplit_policy_learn_options defaults = {.seed = 1,
                                          .warm_steps = 600,
                                          .steps = 400,
                                          .graphs = 8,
                                          .rollouts = 12,
                                          .epochs = 3,
                                          .warm_rate = 2e-3,
                                          .rate = 1e-3,
                                          .last_rate = 1e-4,
                                          .entropy = 0.03,
                                          .last_entropy = 0.003,
                                          .clip = 0.2,
                                          .kl_stop = 0.02,
                                          .batch = 64,
                                          .fixed_cost = 0.05,
                                          .schedule_steps = 200,
                                          .solve_seconds = 1};
  psplit_i_options_defaults(options, struct_size, &defaults, sizeof defaults);
}

static bool positive(double x) { return x > 0 && x < 1e6; }

psplit_code psplit_policy_learner_create(psplit_policy *policy,
                                         const psplit_policy_learn_options *given,
                                         psplit_diag *diag, psplit_policy_learner **out_learner) {
  psplit_policy_learner *l = calloc(1, sizeof *l);
  if (!l) return psplit_i_nomem(diag);
  psplit_policy_learn_options_init(&l->options);
  psplit_policy_learn_options *o = &l->options;
  psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_policy_learn_options, given, o, diag);
  if (code == PSPLIT_OK &&
      (o->graphs == 0 || o->graphs > MOST_GRAPHS || o->rollouts < 2 ||
       o->rollouts > MOST_ROLLOUTS || o->epochs == 0 || o->batch == 0 || o->batch > MOST_BATCH))
    code = psplit_i_fail(diag, PSPLIT_USAGE,
                         "a step takes 1 to %d graphs, 2 to %d rollouts of each, at least one "
                         "epoch and 1 to %d samples",
                         (int)MOST_GRAPHS, (int)MOST_ROLLOUTS, (int)MOST_BATCH);
  if (code == PSPLIT_OK &&
      !(positive(o->warm_rate) && positive(o->rate) && positive(o->last_rate) &&
        positive(o->clip) && o->entropy >= 0 && o->last_entropy >= 0 && o->kl_stop >= 0 &&
        o->solve_seconds >= 0 && o->fixed_cost >= 0 && o->fixed_cost < 1e6))
    code = psplit_i_fail(diag, PSPLIT_USAGE,
                         "learning rates and the clip of ratios must be above 0, weights of "
                         "entropy, the limit on KL, seconds and fixed costs at least 0");
  if (code == PSPLIT_OK && o->reward == PSPLIT_REWARD_MEASURED && !o->measure)
    code =
      psplit_i_fail(diag, PSPLIT_USAGE, "for measured rewards a measuring function is required");
  if (code != PSPLIT_OK) {
    free(l);
    return code;
  }
  l->policy = policy;
  *out_learner = l;
  return code;
}

void psplit_policy_learner_destroy(psplit_policy_learner *l) {
  if (!l) return;
  for (size_t i = 0; i < l->cases.n; i++) {
    psplit_i_case_fini(l->cases.items[i]);
    free(l->cases.items[i]);
  }
  psplit_i_vec_fini(&l->cases);
  psplit_i_learner_fini(&l->learner);
  free(l);
}

psplit_code psplit_policy_learner_add(psplit_policy_learner *l, const psplit_problem *problem,
                                      psplit_diag *diag) {
  psplit_i_case *c = malloc(sizeof *c);
  if (!c || !psplit_i_vec_reserve(&l->cases, l->cases.n + 1)) {
    free(c);
    return psplit_i_nomem(diag);
  }
  const psplit_code code =
    psplit_i_case_init(c, problem, l->options.solve_seconds, l->options.cancel, diag);
  c->number = l->n_added++;
  if (code == PSPLIT_OK && c->items.n_items > 0) {
    l->cases.items[l->cases.n++] = c;
  } else {
    psplit_i_case_fini(c);
    free(c);
  }
  return code;
}

/* One graph of a step. */
typedef struct lesson {
  const psplit_i_case *c;
  psplit_i_view view;
  psplit_i_decider *decider;
  psplit_i_rollout *rollout; /* [rollouts] */
  double *advantage;         /* [rollouts] */
  psplit_i_scheduled
    *scheduled; /* [rollouts], for rewards of schedules; else one that is not used */
  psplit_i_encoding_gradient d_encoding;
  psplit_i_real *scratch;
} lesson;

static psplit_code lesson_init(lesson *s, const psplit_i_case *c, uint32_t order,
                               uint32_t n_rollouts, bool schedules, psplit_i_arena *arena) {
  const uint32_t n = c->items.n_items;
  s->c = c;
  const psplit_code code = psplit_i_view_init(&s->view, &c->items, order, arena);
  if (code != PSPLIT_OK) return code;
  s->decider = PSPLIT_NEW(arena, psplit_i_decider, 1);
  s->rollout = PSPLIT_NEW(arena, psplit_i_rollout, n_rollouts);
  s->advantage = PSPLIT_NEW(arena, double, n_rollouts);
  s->scheduled = PSPLIT_NEW(arena, psplit_i_scheduled, schedules ? n_rollouts : 1);
  s->d_encoding.score = PSPLIT_NEW(arena, psplit_i_real, (size_t)n * S);
  s->d_encoding.gru = PSPLIT_NEW(arena, psplit_i_real, (size_t)n * 3 * M);
  s->d_encoding.start = PSPLIT_NEW(arena, psplit_i_real, M);
  s->scratch = PSPLIT_NEW(arena, psplit_i_real, (size_t)n * 2 * PSPLIT_I_WIDTH);
  if (!s->decider || !s->rollout || !s->advantage || !s->scheduled || !s->d_encoding.score ||
      !s->d_encoding.gru || !s->d_encoding.start || !s->scratch)
    return PSPLIT_NOMEM;
  return psplit_i_decider_init(s->decider, &s->view, arena);
}

/* What a lesson aims at: somewhere between what no split is below and what seems easy, so that the
 * policy learns what to do where a target is too low, too. */
static void aim(const psplit_policy_learner *l, lesson *s, uint32_t which, bool warm) {
  const psplit_i_random_stream stream = {l->options.seed, PSPLIT_I_RANDOM_POLICY, l->step, 3};
  const double value = (double)s->c->value, low = (double)s->c->bound;
  const double high = 1.02 * (s->decider->least > value ? s->decider->least : value);
  const double u = psplit_i_random_uniform(&stream, which);
  psplit_i_outlook_aim(&s->decider->outlook, warm ? value * (1 + u / 50) : low + (high - low) * u);
}

/* Adds the gradient of all rollouts of a lesson, each with its weight. */
static psplit_code learn(psplit_policy_learner *l, lesson *s, uint32_t n_rollouts,
                         psplit_i_objective objective, double share, psplit_i_learned *out) {
  const uint32_t n = s->c->items.n_items;
  const psplit_i_policy_network *network = &l->policy->network;
  memset(s->d_encoding.score, 0, (size_t)n * S * sizeof *s->d_encoding.score);
  memset(s->d_encoding.gru, 0, (size_t)n * 3 * M * sizeof *s->d_encoding.gru);
  memset(s->d_encoding.start, 0, M * sizeof *s->d_encoding.start);
  psplit_i_encode(network, &s->view.graph, &s->decider->encoding);
  psplit_i_gradients gradients = {s->d_encoding, &l->gradient};
  objective.entropy_weight *= share;
  for (uint32_t r = 0; r < n_rollouts; r++) {
    psplit_i_learned one = {0};
    psplit_i_objective mine = objective;
    mine.weight = share * (objective.clip > 0 ? s->advantage[r] : 1);
    const psplit_code code =
      psplit_i_learn(network, s->decider, &s->rollout[r], &mine, &l->learner, &gradients, &one);
    if (code != PSPLIT_OK) return code;
    out->loss += one.loss;
    out->entropy += share * one.entropy;
    out->kl += share * one.kl;
    if (objective.clip > 0 && l->options.reward == PSPLIT_REWARD_SCHEDULE) {
      mine.weight = s->advantage[r];
      mine.entropy_weight = objective.entropy_weight / share;
      psplit_i_learned schedule = {0};
      psplit_i_schedule_learn(l, &s->scheduled[r], &mine, share, &schedule);
      out->loss += schedule.loss;
    }
  }
  psplit_i_encode_back(network, &s->view.graph, &s->decider->encoding, &s->d_encoding, s->scratch,
                       &l->gradient);
  return PSPLIT_OK;
}

/* --- what a rollout is worth --- */

/* What it takes when it is run; a split that cannot be is not. */
static psplit_code measured(const psplit_policy_learner *l, const lesson *s,
                            const psplit_i_rollout *r, psplit_diag *diag, double *io_ratio) {
  const psplit_i_stages *stages = &s->decider->stages;
  double ns = 0;
  if (!r->valid || s->c->bound <= 0) return PSPLIT_OK;
  const psplit_code code = l->options.measure(l->options.measure_user, s->c->number, &s->c->items,
                                              stages->stage, stages->type, &ns, diag);
  if (code == PSPLIT_OK && !(ns > 0 && ns < 1e18))
    return psplit_i_fail(diag, PSPLIT_USAGE, "a measured time is not a number of ns above 0");
  *io_ratio = ns / (double)s->c->bound;
  return code;
}

/* `stream` draws the schedule, for rewards that have one; NULL: the likeliest. */
static psplit_code ratio_of(const psplit_policy_learner *l, const lesson *s, uint32_t which,
                            const psplit_i_random_stream *stream, psplit_diag *diag, double *out) {
  const psplit_i_rollout *r = &s->rollout[which];
  psplit_code code = PSPLIT_OK;
  bool fits = true;
  *out = s->c->bound > 0 ? (double)r->value / (double)s->c->bound : 1;
  if (l->options.reward == PSPLIT_REWARD_SCHEDULE) {
    code = psplit_i_schedule_rollout(l, s->c, &s->decider->stages, stream, diag,
                                     &s->scheduled[which], out);
    fits = s->scheduled[which].list.fits;
  }
  if (l->options.reward == PSPLIT_REWARD_MEASURED) code = measured(l, s, r, diag, out);
  if (!(*out > 1e-6)) *out = 1;
  if (!r->valid || !fits) *out *= INVALID;
  return code;
}

/* --- steps --- */

static uint32_t pick(const psplit_policy_learner *l, uint32_t what, uint32_t k, uint64_t below) {
  const psplit_i_random_stream stream = {l->options.seed, PSPLIT_I_RANDOM_POLICY, l->step, what};
  return (uint32_t)psplit_i_random_below(&stream, k, below);
}

/* Draws rollouts of a graph; advantages are not yet divided by their spread. */
static psplit_code roll(psplit_policy_learner *l, lesson *s, uint32_t which, psplit_diag *diag,
                        psplit_policy_step *io_step) {
  const uint32_t n = l->options.rollouts;
  double mean = 0;
  psplit_i_encode(&l->policy->network, &s->view.graph, &s->decider->encoding);
  aim(l, s, which, false);
  for (uint32_t r = 0; r < n; r++) {
    const psplit_i_random_stream stream = {l->options.seed ^ 0x5eed, PSPLIT_I_RANDOM_POLICY,
                                           l->step, which * MOST_ROLLOUTS + r};
    psplit_code code =
      psplit_i_decide(s->decider, &l->policy->network, &stream, NULL, &s->rollout[r]);
    double ratio = 1;
    if (code == PSPLIT_OK) code = ratio_of(l, s, r, &stream, diag, &ratio);
    if (code != PSPLIT_OK) return code;
    if (l->options.reward == PSPLIT_REWARD_SCHEDULE)
      io_step->micro_batches +=
        (double)s->scheduled[r].list.n_micro_batches[s->scheduled[r].chosen] / n /
        l->options.graphs;
    s->advantage[r] = -psplit_i_policy_log(ratio);
    mean += s->advantage[r] / n;
    io_step->ratio -= s->advantage[r] / n / l->options.graphs;
    io_step->valid += (double)s->rollout[r].valid / n / l->options.graphs;
  }
  /* Against the mean of the others. */
  for (uint32_t r = 0; r < n; r++) s->advantage[r] = (s->advantage[r] - mean) * n / (n - 1.0);
  return PSPLIT_OK;
}

static void scale_advantages(lesson *lessons, uint32_t n_lessons, uint32_t n_rollouts) {
  for (uint32_t g = 0; g < n_lessons; g++) {
    double square = 0;
    for (uint32_t r = 0; r < n_rollouts; r++)
      square += lessons[g].advantage[r] * lessons[g].advantage[r];
    /* By graph, as far as there is a spread: a thousandth more or less is worth learning late. */
    const double spread = sqrt(square / n_rollouts) + 0.003;
    for (uint32_t r = 0; r < n_rollouts; r++) lessons[g].advantage[r] /= spread;
  }
}

static psplit_code reinforce(psplit_policy_learner *l, lesson *lessons, double done,
                             psplit_diag *diag, psplit_policy_step *step) {
  const psplit_policy_learn_options *o = &l->options;
  psplit_code code = PSPLIT_OK;
  const psplit_i_objective objective = {
    .entropy_weight = o->entropy + (o->last_entropy - o->entropy) * done, .clip = o->clip};
  for (uint32_t g = 0; g < o->graphs; g++) PSPLIT_TRY(roll(l, &lessons[g], g, diag, step));
  scale_advantages(lessons, o->graphs, o->rollouts);
  for (uint32_t epoch = 0; epoch < o->epochs; epoch++) {
    psplit_i_learned learned = {0};
    memset(&l->gradient, 0, sizeof l->gradient);
    for (uint32_t g = 0; g < o->graphs; g++)
      PSPLIT_TRY(
        learn(l, &lessons[g], o->rollouts, objective, 1.0 / o->graphs / o->rollouts, &learned));
    step->loss = learned.loss;
    step->entropy = learned.entropy;
    step->kl = learned.kl;
    if (learned.kl > o->kl_stop) break;
    step->epochs++;
    PSPLIT_TRY(psplit_i_adam_step(&l->adam, o->rate + (o->last_rate - o->rate) * done, &l->gradient,
                                  &l->policy->network));
  }
  step->ratio = psplit_i_policy_exp(step->ratio);
out:
  return code;
}

/* The decisions of the best split that is known, as far as candidates allow. */
static psplit_code imitate(psplit_policy_learner *l, lesson *lessons, psplit_policy_step *step) {
  const psplit_i_objective objective = {.entropy_weight = 0};
  psplit_i_learned learned = {0};
  psplit_code code = PSPLIT_OK;
  memset(&l->gradient, 0, sizeof l->gradient);
  for (uint32_t g = 0; g < l->options.graphs; g++) {
    lesson *s = &lessons[g];
    psplit_i_encode(&l->policy->network, &s->view.graph, &s->decider->encoding);
    aim(l, s, g, true);
    PSPLIT_TRY(psplit_i_decide(s->decider, &l->policy->network, NULL, s->c->label, &s->rollout[0]));
    PSPLIT_TRY(learn(l, s, 1, objective, 1.0 / l->options.graphs, &learned));
  }
  step->loss = learned.loss;
  step->entropy = learned.entropy;
  step->valid = 1;
  step->epochs = 1;
  /* To a tenth in the end: with one rate the policy keeps wandering. */
  const double done = (double)l->step / l->options.warm_steps;
  code = psplit_i_adam_step(&l->adam, l->options.warm_rate * (1 - 0.9 * done), &l->gradient,
                            &l->policy->network);
out:
  return code;
}

/* A graph with labels, from a random one on. */
static const psplit_i_case *draw_case(const psplit_policy_learner *l, uint32_t k, bool labelled) {
  const uint32_t n = (uint32_t)l->cases.n, first = pick(l, 1, k, n);
  for (uint32_t i = 0; labelled && i < n; i++)
    if (l->cases.items[(first + i) % n]->label) return l->cases.items[(first + i) % n];
  return l->cases.items[first];
}

/* What failed without a message. */
static psplit_code tell(psplit_code code, psplit_diag *diag) {
  if (code == PSPLIT_NOMEM) return psplit_i_nomem(diag);
  if (code == PSPLIT_INVALID)
    return psplit_i_fail(diag, code,
                         "the policy cannot be learned on: its weights are so large that a "
                         "gradient is not finite");
  return code;
}

psplit_code psplit_policy_learner_step(psplit_policy_learner *l, psplit_diag *diag,
                                       psplit_policy_step *out_step, bool *out_done) {
  const psplit_policy_learn_options *o = &l->options;
  psplit_code code = psplit_i_go_on(o->cancel, diag);
  if (code != PSPLIT_OK) return code;
  const uint32_t n_steps = o->warm_steps + o->steps;
  *out_done = l->step >= n_steps + o->schedule_steps;
  if (*out_done) return PSPLIT_OK;
  if (l->cases.n == 0) return psplit_i_fail(diag, PSPLIT_USAGE, "there is no graph to learn from");
  const bool warm = l->step < o->warm_steps;
  /* Gradients of rewards are much smaller than those of labels: old moments would drown them. */
  if (l->step == o->warm_steps || l->step == n_steps) l->adam = (psplit_i_adam){0};
  *out_step = (psplit_policy_step){.step = l->step + 1, .warm = warm};
  if (l->step >= n_steps) {
    code =
      psplit_i_schedule_step(l, (double)(l->step - n_steps) / o->schedule_steps, diag, out_step);
    l->step += code == PSPLIT_OK;
    return tell(code, diag);
  }
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  lesson *lessons = PSPLIT_NEW(&arena, lesson, o->graphs);
  const uint32_t n_rollouts = warm ? 1 : o->rollouts;
  uint32_t n_ready = 0;
  PSPLIT_TRY(lessons ? PSPLIT_OK : PSPLIT_NOMEM);
  for (; n_ready < o->graphs; n_ready++) {
    const psplit_i_case *c = draw_case(l, n_ready, warm);
    if (warm && !c->label) continue; /* no graph has one: the step learns nothing */
    PSPLIT_TRY(lesson_init(&lessons[n_ready], c, pick(l, 2, n_ready, PSPLIT_I_N_FIXED_ORDERS),
                           n_rollouts, o->reward == PSPLIT_REWARD_SCHEDULE, &arena));
  }
  if (warm)
    code = lessons[0].c ? imitate(l, lessons, out_step) : PSPLIT_OK;
  else
    code = reinforce(l, lessons, (double)(l->step - o->warm_steps) / o->steps, diag, out_step);
  if (code == PSPLIT_OK) l->step++;
out:
  for (uint32_t g = 0; lessons && g < n_ready; g++)
    for (uint32_t r = 0; lessons[g].rollout && r < n_rollouts; r++)
      psplit_i_rollout_fini(&lessons[g].rollout[r]);
  psplit_i_arena_fini(&arena);
  return tell(code, diag);
}

/* The stages of items from those of nodes. */
static psplit_code items_of(const psplit_i_case *c, const uint32_t *stage, uint32_t n_nodes,
                            uint32_t *out, psplit_diag *diag) {
  const psplit_items *in = &c->items;
  bool apart = n_nodes != in->n_nodes;
  for (uint32_t v = 0; v < n_nodes && !apart; v++) out[in->item_of_node[v]] = stage[v];
  for (uint32_t v = 0; v < n_nodes && !apart; v++) apart = out[in->item_of_node[v]] != stage[v];
  return apart ? psplit_i_fail(diag, PSPLIT_USAGE,
                               "a split to imitate is one of the problem's %u nodes, and of its "
                               "items",
                               in->n_nodes)
               : PSPLIT_OK;
}

/* A step over one order; *out_same: the likeliest choices were the split already. */
static psplit_code imitate_one(psplit_policy_learner *l, const psplit_i_case *c, uint32_t order,
                               uint32_t at, const uint32_t *label, bool *out_same) {
  const psplit_i_random_stream stream = {l->options.seed, PSPLIT_I_RANDOM_POLICY, at, 4};
  const psplit_i_objective objective = {.weight = 1};
  const uint32_t n = c->items.n_items;
  psplit_i_learned learned = {0};
  psplit_i_arena arena;
  lesson s = {0};
  psplit_code code;
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(lesson_init(&s, c, order, 1, false, &arena));
  psplit_i_encode(&l->policy->network, &s.view.graph, &s.decider->encoding);
  PSPLIT_TRY(psplit_i_settle(s.decider, &l->policy->network, PSPLIT_I_TRIES, NULL));
  *out_same = memcmp(s.decider->stages.stage, label, n * sizeof *label) == 0;
  if (*out_same) goto out;
  /* Targets as settling tries them: from what looks possible up to the split's own and beyond. */
  PSPLIT_TRY(psplit_i_decide(s.decider, &l->policy->network, NULL, label, &s.rollout[0]));
  const double value = (double)s.rollout[0].value, least = s.decider->least;
  const double low = value < least ? value : least, high = 1.02 * (value < least ? least : value);
  psplit_i_outlook_aim(
    &s.decider->outlook,
    at % 4 == 0 ? least : low + (high - low) * psplit_i_random_uniform(&stream, 0));
  PSPLIT_TRY(psplit_i_decide(s.decider, &l->policy->network, NULL, label, &s.rollout[0]));
  memset(&l->gradient, 0, sizeof l->gradient);
  s.advantage[0] = 1;
  PSPLIT_TRY(learn(l, &s, 1, objective, 1, &learned));
  code = psplit_i_adam_step(&l->adam, l->options.warm_rate, &l->gradient, &l->policy->network);
out:
  if (s.rollout) psplit_i_rollout_fini(&s.rollout[0]);
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_policy_learner_imitate(psplit_policy_learner *l, uint32_t problem,
                                          const uint32_t *stage, uint32_t n_nodes,
                                          uint32_t max_steps, psplit_diag *diag,
                                          uint32_t *out_steps) {
  enum { N = PSPLIT_I_N_FIXED_ORDERS };
  const psplit_i_case *c = NULL;
  for (size_t i = 0; i < l->cases.n; i++)
    if (l->cases.items[i]->number == problem) c = l->cases.items[i];
  *out_steps = 0;
  if (!c) return PSPLIT_OK;
  uint32_t *label = calloc((size_t)c->items.n_items + 1, sizeof *label), n_same = 0;
  psplit_code code = label ? items_of(c, stage, n_nodes, label, diag) : PSPLIT_NOMEM;
  l->adam = (psplit_i_adam){0};
  for (uint32_t at = 0; code == PSPLIT_OK && n_same < N && *out_steps < max_steps; at++) {
    bool same = false;
    code = psplit_i_go_on(l->options.cancel, diag);
    if (code == PSPLIT_OK) code = imitate_one(l, c, at % N, at, label, &same);
    n_same = same ? n_same + 1 : 0;
    *out_steps += !same;
  }
  free(label);
  return tell(code, diag);
}

psplit_code psplit_policy_learner_evaluate(psplit_policy_learner *l, psplit_diag *diag,
                                           double *out_ratio, double *out_valid) {
  psplit_code code = PSPLIT_OK;
  double sum = 0, valid = 0;
  for (size_t i = 0; i < l->cases.n && code == PSPLIT_OK; i++) {
    psplit_i_arena arena;
    lesson s = {0};
    double ratio = 1;
    psplit_i_arena_init(&arena, 0);
    code = lesson_init(&s, l->cases.items[i], 0, 1, false, &arena);
    if (code == PSPLIT_OK) {
      psplit_i_encode(&l->policy->network, &s.view.graph, &s.decider->encoding);
      code = psplit_i_settle(s.decider, &l->policy->network, PSPLIT_I_TRIES, &s.rollout[0]);
    }
    if (code == PSPLIT_OK) code = ratio_of(l, &s, 0, NULL, diag, &ratio);
    if (code == PSPLIT_OK) {
      sum += psplit_i_policy_log(ratio);
      valid += s.rollout[0].valid;
    }
    if (s.rollout) psplit_i_rollout_fini(&s.rollout[0]);
    psplit_i_arena_fini(&arena);
  }
  const double n = l->cases.n ? (double)l->cases.n : 1;
  *out_ratio = psplit_i_policy_exp(sum / n);
  *out_valid = valid / n;
  return tell(code, diag);
}
