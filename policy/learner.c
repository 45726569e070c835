/* Learning: first to choose as good splits do (imitate.c), then from what choices are worth
 * (reinforce.c), then schedules (scheduling.c). */
#include "learner.h"

#include <stdlib.h>

#include "cancel.h"
#include "diag.h"
#include "lesson.h"
#include "options.h"
#include "scheduling.h"

enum { MOST_GRAPHS = 256, MOST_BATCH = 4096 };

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
  if (code == PSPLIT_OK && (o->graphs == 0 || o->graphs > MOST_GRAPHS || o->rollouts < 2 ||
                            o->rollouts > PSPLIT_I_MOST_ROLLOUTS || o->epochs == 0 ||
                            o->batch == 0 || o->batch > MOST_BATCH))
    code = psplit_i_fail(diag, PSPLIT_USAGE,
                         "a step takes 1 to %d graphs, 2 to %d rollouts of each, at least one "
                         "epoch and 1 to %d samples",
                         (int)MOST_GRAPHS, (int)PSPLIT_I_MOST_ROLLOUTS, (int)MOST_BATCH);
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

static uint32_t pick(const psplit_policy_learner *l, uint32_t what, uint32_t k, uint64_t below) {
  const psplit_i_random_stream stream = {l->options.seed, PSPLIT_I_RANDOM_POLICY, l->step, what};
  return (uint32_t)psplit_i_random_below(&stream, k, below);
}

/* A graph with labels, from a random one on. */
static const psplit_i_case *draw_case(const psplit_policy_learner *l, uint32_t k, bool labelled) {
  const uint32_t n = (uint32_t)l->cases.n, first = pick(l, 1, k, n);
  for (uint32_t i = 0; labelled && i < n; i++)
    if (l->cases.items[(first + i) % n]->label) return l->cases.items[(first + i) % n];
  return l->cases.items[first];
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
    return psplit_i_learner_failed(code, diag);
  }
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_lesson *lessons = PSPLIT_NEW(&arena, psplit_i_lesson, o->graphs);
  const uint32_t n_rollouts = warm ? 1 : o->rollouts;
  uint32_t n_ready = 0;
  PSPLIT_TRY(lessons ? PSPLIT_OK : PSPLIT_NOMEM);
  for (; n_ready < o->graphs; n_ready++) {
    const psplit_i_case *c = draw_case(l, n_ready, warm);
    if (warm && !c->label) continue; /* no graph has one: the step learns nothing */
    PSPLIT_TRY(psplit_i_lesson_init(&lessons[n_ready], c,
                                    pick(l, 2, n_ready, PSPLIT_I_N_FIXED_ORDERS), n_rollouts,
                                    o->reward == PSPLIT_REWARD_SCHEDULE, &arena));
  }
  if (warm)
    code = lessons[0].c ? psplit_i_imitate_labels(l, lessons, out_step) : PSPLIT_OK;
  else
    code =
      psplit_i_reinforce(l, lessons, (double)(l->step - o->warm_steps) / o->steps, diag, out_step);
  if (code == PSPLIT_OK) l->step++;
out:
  for (uint32_t g = 0; lessons && g < n_ready; g++)
    for (uint32_t r = 0; lessons[g].rollout && r < n_rollouts; r++)
      psplit_i_rollout_fini(&lessons[g].rollout[r]);
  psplit_i_arena_fini(&arena);
  return psplit_i_learner_failed(code, diag);
}

psplit_code psplit_policy_learner_evaluate(psplit_policy_learner *l, psplit_diag *diag,
                                           double *out_ratio, double *out_valid) {
  psplit_code code = PSPLIT_OK;
  double sum = 0, valid = 0;
  for (size_t i = 0; i < l->cases.n && code == PSPLIT_OK; i++) {
    psplit_i_arena arena;
    psplit_i_lesson s = {0};
    double ratio = 1;
    psplit_i_arena_init(&arena, 0);
    code = psplit_i_lesson_init(&s, l->cases.items[i], 0, 1, false, &arena);
    if (code == PSPLIT_OK) {
      psplit_i_encode(&l->policy->network, &s.view.graph, &s.decider->encoding);
      code = psplit_i_settle(s.decider, &l->policy->network, PSPLIT_I_TRIES, &s.rollout[0]);
    }
    if (code == PSPLIT_OK) code = psplit_i_lesson_ratio(l, &s, 0, NULL, diag, &ratio);
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
  return psplit_i_learner_failed(code, diag);
}
