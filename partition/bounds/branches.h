/* Branch and bound on the sides of a boundary: in a branch some clusters are known to be inside the
 * downset, and some outside. */
#ifndef PSPLIT_PARTITION_BRANCHES_H
#define PSPLIT_PARTITION_BRANCHES_H

#include "budget.h"
#include "closure.h"
#include "open_heap.h"

typedef enum psplit_i_side {
  PSPLIT_I_SIDE_FREE,
  PSPLIT_I_SIDE_INSIDE, /* with all that comes before */
  PSPLIT_I_SIDE_OUTSIDE /* with all that comes behind */
} psplit_i_side;

/* Downsets in which some clusters are on a side. Of two of them, the ends of a hull (which a
 * Lagrange multiplier leads from to what lies between), the bits are LIGHT and HEAVY. */
enum { PSPLIT_I_END_LIGHT = 1, PSPLIT_I_END_HEAVY = 2 };
typedef struct psplit_i_branch {
  int64_t least;            /* none of them is below */
  uint32_t number, cluster; /* by which it is divided; NONE: all are on a side */
  int64_t price;            /* the last multiplier, for who asked */
  uint8_t *where;           /* [n] psplit_i_side */
  uint8_t *ends;            /* [n] whether the end holds the cluster, as bits */
} psplit_i_branch;
PSPLIT_I_IS_OPEN(psplit_i_branch);

/* Those that are open, a heap with the least in front; where[] and ends[] live in the arena. */
typedef struct psplit_i_branches {
  PSPLIT_VEC(psplit_i_branch) open;
  const psplit_i_closure *closure;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  uint32_t n_opened;
} psplit_i_branches;

void psplit_i_branches_init(psplit_i_branches *all, const psplit_i_closure *closure,
                            psplit_i_budget *budget);
void psplit_i_branches_fini(psplit_i_branches *all);
/* How many open branches fit in the memory that they may take. */
uint32_t psplit_i_branches_most(const psplit_i_branches *all);
/* The first branch: no cluster is on a side yet. False: out of memory. */
bool psplit_i_branch_init(psplit_i_branches *all, psplit_i_branch *out);
/* Adds a branch to the open ones, with its cheapest downsets light[n] and heavy[n] at both ends of
 * the hull. It will be divided by the cluster, of those on which the two differ, that forces the
 * most weight to a side by before[n] and behind[n]. False: out of memory. */
bool psplit_i_branch_open(psplit_i_branches *all, psplit_i_branch *branch, const bool *light,
                          const bool *heavy, const int64_t *before, const int64_t *behind);
/* Takes out the branch with the least bound and divides it; out_possible says of each half whether
 * it has downsets. False: out of memory. */
bool psplit_i_branch_divide(psplit_i_branches *all, psplit_i_branch out[2], bool out_possible[2]);

/* in[n]: the end of the branch that this one is a half of, changed to fit this one. */
void psplit_i_branch_recall(const psplit_i_branches *all, const psplit_i_branch *branch,
                            uint8_t which, bool *in);
/* in[n]: the smallest downset of the branch (PSPLIT_I_END_LIGHT), or the largest. */
void psplit_i_branch_extreme(const psplit_i_branches *all, const psplit_i_branch *branch,
                             uint8_t which, bool *in);

/* Puts a cluster on a side, with all clusters that have to be on it then; false if one of them is
 * on the other side. */
bool psplit_i_branch_force(const psplit_i_branches *all, uint8_t *where, uint32_t cluster,
                           psplit_i_side to);
/* Weight of the free clusters among bits[words]. O(words + clusters among them). */
int64_t psplit_i_branch_free_weight(const psplit_i_branches *all, const uint8_t *where,
                                    const uint64_t *bits, const int64_t *weight);

#endif
