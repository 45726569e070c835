/* A separator is found where, of the clusters up to it, it alone has no successor and, of those
 * from it on, it alone has no predecessor. */
#include "separators.h"

uint32_t psplit_i_separators(const psplit_i_instance *instance, uint32_t *sinks, uint32_t *ends) {
  const uint32_t n = instance->n;
  uint32_t n_blocks = 0, n_sources = 0;
  /* sinks[i]: clusters that cease to be the last of their kind when i comes. */
  for (uint32_t i = 0; i < n; i++) {
    uint32_t first = PSPLIT_NONE;
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      if (instance->succ[k] < first) first = instance->succ[k];
    if (first != PSPLIT_NONE) sinks[first]++;
  }
  for (uint32_t i = 0, open = 0; i < n; i++) sinks[i] = open = open + 1 - sinks[i];
  for (uint32_t i = n; i-- > 0;) ends[i] = 0;
  for (uint32_t i = 0; i < n; i++) { /* ends: as a difference array of sources */
    uint32_t last = PSPLIT_NONE;
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++)
      if (last == PSPLIT_NONE || instance->pred[k] > last) last = instance->pred[k];
    /* i is a source of [p, n) for p in (last, i] */
    ends[last == PSPLIT_NONE ? 0 : last + 1]++;
    if (i + 1 < n) ends[i + 1]--;
  }
  for (uint32_t i = 0; i < n; i++) {
    n_sources += ends[i];
    if ((sinks[i] == 1 && n_sources == 1) || i + 1 == n) ends[n_blocks++] = i + 1;
  }
  return n_blocks;
}

uint32_t psplit_i_longest_block(const uint32_t *ends, uint32_t n_blocks) {
  uint32_t longest = 0;
  for (uint32_t b = 0, first = 0; b < n_blocks; first = ends[b++])
    if (ends[b] - first > longest) longest = ends[b] - first;
  return longest;
}

bool psplit_i_ends_in_separator(const psplit_i_instance *instance, const uint32_t *sinks) {
  return instance->n > 0 && sinks[instance->n - 1] == 1;
}
