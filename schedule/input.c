#include "input.h"

#include "base.h"

psplit_code psplit_i_schedule_check(const psplit_schedule_input *in, psplit_diag *diag) {
  if (in->n_stages == 0 || in->n_chunks == 0 || in->n_micro_batches == 0 || !in->forward_ns)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a schedule needs stages, chunks, micro-batches and forward times");
  if (in->n_chunks > 1 && in->kind != PSPLIT_SCHEDULE_INTERLEAVED)
    return psplit_i_fail(diag, PSPLIT_USAGE, "only the interleaved schedule has chunks");
  if ((in->kind == PSPLIT_SCHEDULE_STREAM) != (in->backward_ns == NULL))
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "inference streams have no backward times, the others need them");
  if ((in->kind == PSPLIT_SCHEDULE_ZERO_BUBBLE) != (in->weights_ns != NULL))
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "the zero-bubble schedule alone has times of gradients of weights, and "
                         "needs them");
  const uint64_t n_virtual = (uint64_t)in->n_stages * in->n_chunks;
  const uint64_t slots = psplit_i_sat_mul_u64(n_virtual * (in->weights_ns ? 3 : 2),
                                              (uint64_t)in->n_micro_batches + in->n_stages);
  if (n_virtual > PSPLIT_I_MOST_SLOTS || slots > PSPLIT_I_MOST_SLOTS)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "a schedule of more than %d pieces",
                         PSPLIT_I_MOST_SLOTS);
  int64_t total = 0;
  for (uint64_t v = 0; v < n_virtual; v++) {
    const int64_t parts[] = {in->forward_ns[v], in->backward_ns ? in->backward_ns[v] : 0,
                             in->link_ns && v + 1 < n_virtual ? in->link_ns[v] : 0,
                             psplit_i_schedule_weights(in, (uint32_t)v)};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
      if (parts[k] < 0) return psplit_i_fail(diag, PSPLIT_USAGE, "a negative stage or link time");
      total = psplit_i_sat_add_i64(total, parts[k]);
    }
  }
  if (total > INT64_MAX / 4 / in->n_micro_batches)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "the schedule's times overflow");
  return PSPLIT_OK;
}
