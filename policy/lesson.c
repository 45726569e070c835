#include "lesson.h"

#include <string.h>

#include "diag.h"

enum { M = PSPLIT_I_MEMORY, S = PSPLIT_I_SCORE };

psplit_code psplit_i_lesson_init(psplit_i_lesson *s, const psplit_i_case *c, uint32_t order,
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

void psplit_i_lesson_aim(const psplit_policy_learner *l, psplit_i_lesson *s, uint32_t which,
                         bool warm) {
  const psplit_i_random_stream stream = {l->options.seed, PSPLIT_I_RANDOM_POLICY, l->step, 3};
  const double value = (double)s->c->value, low = (double)s->c->bound;
  const double high = 1.02 * (s->decider->least > value ? s->decider->least : value);
  const double u = psplit_i_random_uniform(&stream, which);
  psplit_i_outlook_aim(&s->decider->outlook, warm ? value * (1 + u / 50) : low + (high - low) * u);
}

psplit_code psplit_i_lesson_learn(psplit_policy_learner *l, psplit_i_lesson *s, uint32_t n_rollouts,
                                  psplit_i_objective objective, double share,
                                  psplit_i_learned *out) {
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

/* Divides the measured time of the rollout's split by the bound. A split that exceeds the memory
 * cannot be run, and *io_ratio stays as it is. */
static psplit_code measured(const psplit_policy_learner *l, const psplit_i_lesson *s,
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

/* A split that exceeds the memory counts as this many times slower than it is. */
static const double INVALID = 4;

psplit_code psplit_i_lesson_ratio(const psplit_policy_learner *l, const psplit_i_lesson *s,
                                  uint32_t which, const psplit_i_random_stream *stream,
                                  psplit_diag *diag, double *out) {
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

psplit_code psplit_i_learner_failed(psplit_code code, psplit_diag *diag) {
  if (code == PSPLIT_NOMEM) return psplit_i_nomem(diag);
  if (code == PSPLIT_INVALID)
    return psplit_i_fail(diag, code,
                         "the policy cannot be learned on: its weights are so large that a "
                         "gradient is not finite");
  return code;
}
