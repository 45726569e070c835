#include "latency_row.h"

#include "instance.h"

/* A lower bound on the time of a block with n_own stages in addition to those of the clusters
 * around it. */
static int64_t least_time(const psplit_i_row_block *b, uint32_t n_own) {
  const int64_t n = n_own > 1 ? n_own : 1, share = b->work / n + (b->work % n != 0);
  const int64_t least = share > b->path ? share : b->path;
  return b->least && b->least[n_own] > least ? b->least[n_own] : least;
}

uint32_t psplit_i_row_enough(const psplit_i_row_block *b, uint32_t n_devices) {
  uint32_t n = 1;
  while (n < n_devices && b->path * n < b->work) n++;
  return n;
}

bool psplit_i_row_cut(const psplit_i_row_block *b, const int64_t *before, uint32_t n_devices,
                      bool outside, psplit_i_budget *budget, int64_t *after) {
  const uint32_t most = psplit_i_row_enough(b, n_devices), more = outside ? 0 : 1;
  if (!psplit_i_spend(budget, 1 + (uint64_t)n_devices * most / 4)) return false;
  for (uint32_t k = 0; k <= n_devices; k++) after[k] = PSPLIT_I_INF;
  for (uint32_t k = 0; k <= n_devices; k++) {
    if (before[k] >= PSPLIT_I_INF) continue;
    for (uint32_t q = 0; q <= most && k + q + more <= n_devices; q++) {
      const int64_t time = before[k] + least_time(b, q);
      if (time < after[k + q + more]) after[k + q + more] = time;
    }
  }
  return true;
}
