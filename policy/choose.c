/* The schedule of a batch: what the policy says, and what trying all says. */
#include "choose.h"

#include <psplit/schedule.h>
#include <stdlib.h>

#include "diag.h"
#include "policy.h"

enum { MOST_STAGES = 1024, MOST_SAMPLES = 65536 };

static psplit_code check_batch(const psplit_policy_batch *b, psplit_diag *diag) {
  if (b->n_stages == 0 || b->n_stages > MOST_STAGES || b->n_samples == 0 ||
      b->n_samples > MOST_SAMPLES || b->fixed_ns < 0 || !b->forward_ns ||
      (b->weights_ns && !b->backward_ns))
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a batch has 1 to %d stages, 1 to %d samples and times of at least 0; "
                         "gradients of weights are for training",
                         (int)MOST_STAGES, (int)MOST_SAMPLES);
  for (uint32_t s = 0; s < b->n_stages; s++)
    if (b->forward_ns[s] < 0 || (b->backward_ns && b->backward_ns[s] < 0) ||
        (b->weights_ns && b->weights_ns[s] < 0))
      return psplit_i_fail(diag, PSPLIT_USAGE, "a batch with a negative time");
  return PSPLIT_OK;
}

static int64_t piece(const psplit_policy_batch *b, int64_t ns, uint32_t samples) {
  return psplit_i_sat_add_i64(b->fixed_ns, psplit_i_sat_mul_i64(ns, samples));
}

psplit_code psplit_i_batch_simulate(const psplit_policy_batch *b, psplit_schedule_kind kind,
                                    uint32_t n_micro_batches, psplit_diag *diag,
                                    int64_t *out_step_ns) {
  const uint32_t n = b->n_stages, samples = b->n_samples / n_micro_batches;
  const bool apart = kind == PSPLIT_SCHEDULE_ZERO_BUBBLE;
  int64_t *ns = calloc((size_t)3 * n, sizeof *ns);
  psplit_schedule *schedule = NULL;
  if (!ns) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < n; s++) {
    const int64_t weights = b->weights_ns ? b->weights_ns[s] : 0;
    ns[s] = piece(b, b->forward_ns[s], samples);
    if (!b->backward_ns) continue;
    ns[n + s] = piece(b, psplit_i_sat_add_i64(b->backward_ns[s], apart ? 0 : weights), samples);
    ns[2 * n + s] = piece(b, weights, samples);
  }
  const psplit_schedule_input input = {.kind = kind,
                                       .n_stages = n,
                                       .n_chunks = 1,
                                       .n_micro_batches = n_micro_batches,
                                       .forward_ns = ns,
                                       .backward_ns = b->backward_ns ? ns + n : NULL,
                                       .weights_ns = apart ? ns + 2 * n : NULL};
  const psplit_code code = psplit_schedule_simulate(&input, diag, &schedule);
  if (code == PSPLIT_OK) *out_step_ns = schedule->makespan_ns;
  psplit_schedule_destroy(schedule);
  free(ns);
  return code;
}

psplit_code psplit_i_batch_best(const psplit_policy_batch *batch,
                                const psplit_i_schedules *schedules, psplit_diag *diag,
                                int64_t *out_ns, uint32_t *out_best, int64_t *out_best_ns) {
  for (uint32_t k = 0; k < schedules->n; k++) {
    int64_t ns = 0;
    const psplit_code code =
      psplit_i_batch_simulate(batch, schedules->kind[k], schedules->n_micro_batches[k], diag, &ns);
    if (code != PSPLIT_OK) return code;
    if (out_ns) out_ns[k] = ns;
    if (k > 0 && ns >= *out_best_ns) continue;
    *out_best = k;
    *out_best_ns = ns;
  }
  return PSPLIT_OK;
}

static psplit_policy_choice choice_of(const psplit_i_schedules *s, uint32_t k, int64_t ns) {
  return (psplit_policy_choice){s->kind[k], s->n_micro_batches[k], ns, s->fits};
}

psplit_code psplit_policy_choose(const psplit_policy *policy, const psplit_policy_batch *batch,
                                 psplit_diag *diag, psplit_policy_choice *out_choice,
                                 psplit_policy_choice *out_best) {
  psplit_i_real logit[PSPLIT_I_MOST_SCHEDULES];
  uint32_t chosen = 0, best = 0;
  int64_t ns = 0;
  psplit_code code = check_batch(batch, diag);
  if (code != PSPLIT_OK) return code;
  psplit_i_schedules *s = malloc(sizeof *s);
  if (!s) return psplit_i_nomem(diag);
  psplit_i_schedules_list(batch, s);
  psplit_i_schedules_score(&policy->network, s, logit);
  for (uint32_t k = 1; k < s->n; k++)
    if (logit[k] > logit[chosen]) chosen = k;
  code = psplit_i_batch_simulate(batch, s->kind[chosen], s->n_micro_batches[chosen], diag, &ns);
  if (code == PSPLIT_OK) *out_choice = choice_of(s, chosen, ns);
  if (code == PSPLIT_OK && out_best) {
    code = psplit_i_batch_best(batch, s, diag, NULL, &best, &ns);
    if (code == PSPLIT_OK) *out_best = choice_of(s, best, ns);
  }
  free(s);
  return code;
}
