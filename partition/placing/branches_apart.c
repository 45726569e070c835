#include "branches_apart.h"

#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b) {
  const psplit_i_branch *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? 1 : -1;
  return x->root < y->root ? -1 : x->root > y->root;
}

void psplit_i_branches_divide(psplit_i_branch *branches, uint32_t n, uint32_t first,
                              uint32_t n_stages, int64_t *load, uint32_t *label) {
  qsort(branches, n, sizeof *branches, by_time);
  memset(load, 0, n_stages * sizeof *load);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t least = 0;
    for (uint32_t q = 1; q < n_stages; q++)
      if (load[q] < load[least]) least = q;
    load[least] += branches[k].time;
    label[branches[k].root] = first + least;
  }
}
