#include "segments.h"

void psplit_i_topological_order(const psplit_i_instance *instance, uint32_t kind, uint32_t *left,
                                uint32_t *stack, uint32_t *out_order) {
  const uint32_t n = instance->n;
  if (kind == PSPLIT_I_BY_ID) {
    for (uint32_t i = 0; i < n; i++) out_order[i] = i;
    return;
  }
  const bool reversed = kind == PSPLIT_I_FROM_SINKS;
  const uint32_t *in = reversed ? instance->succ_off : instance->pred_off;
  const uint32_t *out_off = reversed ? instance->pred_off : instance->succ_off;
  const uint32_t *out = reversed ? instance->pred : instance->succ;
  uint32_t size = 0, at = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t cluster = reversed ? i : n - 1 - i;
    left[cluster] = in[cluster + 1] - in[cluster];
    if (left[cluster] == 0) stack[size++] = cluster;
  }
  while (size) {
    const uint32_t cluster = stack[--size];
    out_order[reversed ? n - 1 - at : at] = cluster;
    at++;
    for (uint32_t k = out_off[cluster]; k < out_off[cluster + 1]; k++)
      if (--left[out[k]] == 0) stack[size++] = out[k];
  }
}

uint32_t psplit_i_even_segments(const psplit_i_instance *instance, const uint32_t *order,
                                const int64_t *weight, int64_t total, uint32_t n_segments,
                                uint32_t *out_segment) {
  const int64_t share = total / n_segments + 1;
  uint32_t segment = 0;
  int64_t inside = 0;
  for (uint32_t k = 0; k < instance->n; k++) {
    const uint32_t i = order[k];
    /* Clusters that are pinned to different stages must not share a segment. */
    const bool full = inside + weight[i] / 2 >= share;
    if (k > 0 &&
        (full || instance->pin[i] != PSPLIT_NONE || instance->pin[order[k - 1]] != PSPLIT_NONE)) {
      segment++;
      inside = 0;
    }
    inside += weight[i];
    out_segment[i] = segment;
  }
  return segment + 1;
}
