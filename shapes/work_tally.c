/* Arithmetic for work.c and work_flops.c that records unknown and assumed sizes. */
#include "work_inside.h"

uint64_t psplit_i_tally_dim(psplit_i_tally *tally, psplit_dim dim) {
  psplit_i_costs *costs = tally->costs;
  const bool known = costs->known[dim] && costs->value[dim] >= 0;
  if (!known) tally->unknown = true;
  if (costs->assumed[dim]) tally->assumed = true;
  if (costs->data[dim]) tally->data = true;
  if ((!known || costs->assumed[dim]) &&
      !psplit_i_dim_mark_symbols(costs->shapes->dims, dim, costs->visited, costs->needed))
    costs->failed = true;
  return known ? (uint64_t)costs->value[dim] : 0;
}

uint64_t psplit_i_tally_elements(psplit_i_tally *tally, const psplit_i_vtype *type) {
  const bool tensor = type->kind == PSPLIT_TYPE_TENSOR ||
                      (type->kind == PSPLIT_TYPE_OPTIONAL && type->inner == PSPLIT_TYPE_TENSOR);
  if (!tensor || type->rank < 0) {
    tally->unknown = true;
    return 0;
  }
  uint64_t n = 1;
  bool zero = false;
  for (int32_t axis = 0; axis < type->rank; axis++) {
    const uint64_t size = psplit_i_tally_dim(tally, type->dims[axis]);
    zero |= size == 0;
    n = psplit_i_sat_mul_u64(n, size);
  }
  return zero ? 0 : n;
}

uint64_t psplit_i_tally_bytes(psplit_i_tally *tally, const psplit_i_vtype *type) {
  const uint32_t bits = psplit_i_dtype_bits(type->elem);
  const uint64_t n = psplit_i_tally_elements(tally, type);
  if (bits == 0) tally->unknown = true;
  if (bits % 8 == 0) return psplit_i_sat_mul_u64(n, bits / 8);
  return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

const psplit_i_vtype *psplit_i_site_output(const psplit_i_site *at, uint32_t output) {
  static const psplit_i_vtype unknown = {.rank = -1};
  return psplit_i_wants(at, output) ? &at->scope->types[at->node->outputs[output]] : &unknown;
}
