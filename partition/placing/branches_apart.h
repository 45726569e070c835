/* Branches that are not connected to each other, divided among parallel stages. */
#ifndef PSPLIT_PARTITION_BRANCHES_APART_H
#define PSPLIT_PARTITION_BRANCHES_APART_H

#include <stdint.h>

/* Clusters that edges connect in some part of the graph. */
typedef struct psplit_i_branch {
  uint32_t root; /* the first of them */
  int64_t time;  /* estimated time, including what they send and receive */
} psplit_i_branch;

/* Sets label[root] of each branch to one of n_stages stages from `first` on. The longest branches
 * come first, each to the least loaded stage (Graham, SIAM J. Appl. Math. 1969). Sorts the
 * branches. load: scratch of n_stages. O(n (log n + n_stages)). */
void psplit_i_branches_divide(psplit_i_branch *branches, uint32_t n, uint32_t first,
                              uint32_t n_stages, int64_t *load, uint32_t *label);

#endif
