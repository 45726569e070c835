#include "order.h"

#include <inttypes.h>

#include "counter_random.h"

psplit_code psplit_i_order_check(const psplit_i_order *order, psplit_diag *diag) {
  const uint64_t rows = order->batch_rows, parts = order->n_micro_batches;
  if (rows == 0 || parts == 0)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a batch of %" PRIu64 " rows in %" PRIu64
                         " micro-batches: both must be at least 1",
                         rows, parts);
  if (rows % parts)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a batch of %" PRIu64 " rows cannot be cut into %" PRIu64
                         " micro-batches of the same size; take a multiple of %" PRIu64,
                         rows, parts, parts);
  if (order->n_rows < rows && !(order->keep_last && order->n_rows))
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "the data has %" PRIu64 " row%s, fewer than a batch of %" PRIu64,
                         order->n_rows, order->n_rows == 1 ? "" : "s", rows);
  return PSPLIT_OK;
}

uint64_t psplit_i_order_n_batches(const psplit_i_order *order) {
  return order->n_rows / order->batch_rows +
         (order->keep_last && order->n_rows % order->batch_rows ? 1 : 0);
}

psplit_i_place psplit_i_order_place(const psplit_i_order *order, uint64_t step) {
  const uint64_t n_batches = psplit_i_order_n_batches(order), epoch = step / n_batches;
  return (psplit_i_place){.epoch = epoch < UINT32_MAX ? (uint32_t)epoch : UINT32_MAX,
                          .batch = step % n_batches};
}

psplit_i_slice psplit_i_order_slice(const psplit_i_order *order, psplit_i_place place, uint32_t m) {
  const uint64_t begin = place.batch * order->batch_rows, left = order->n_rows - begin,
                 rows = left < order->batch_rows ? left : order->batch_rows,
                 each = rows / order->n_micro_batches, more = rows % order->n_micro_batches;
  const uint64_t at = begin + each * m + (m < more ? m : more);
  return (psplit_i_slice){.epoch = place.epoch, .begin = at, .end = at + each + (m < more ? 1 : 0)};
}

uint64_t psplit_i_order_row(const psplit_i_order *order, uint32_t epoch, uint64_t position) {
  if (order->in_order) return position;
  const psplit_i_random_stream stream = {
    .seed = order->seed, .use = PSPLIT_I_RANDOM_SHUFFLE, .major = epoch};
  return psplit_i_random_permuted(&stream, position, order->n_rows);
}
