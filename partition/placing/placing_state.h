/* The placement under improvement, with its instance. */
#ifndef PSPLIT_PARTITION_PLACING_STATE_H
#define PSPLIT_PARTITION_PLACING_STATE_H

#include "automaton.h"
#include "instance.h"
#include "placement.h"
#include "result.h"

typedef struct psplit_i_placing {
  const psplit_i_solver_request *request;
  /* Solves other problems for starts, without bounds. */
  psplit_code (*place)(const psplit_i_solver_request *request, bool with_bounds,
                       psplit_i_result *out_result);
  psplit_i_result *result;  /* the bound, and the solver that found the placement */
  bool none;                /* branch and bound has finished, and found none */
  int64_t contiguous_bound; /* bound on the throughput of contiguous stages */
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_partition_options loose; /* of the automaton, which only measures */
  uint32_t *node_label, *types;   /* the placement */
  uint32_t *parent;
  int64_t value;
} psplit_i_placing;

/* The value of a full placement, or INF if it breaks a rule. Leaves the placement empty. */
int64_t psplit_i_placing_judge(psplit_i_placement *placement, const uint32_t *types,
                               const uint32_t *label);
/* Makes the labels of the clusters the placement. */
void psplit_i_placing_take(psplit_i_placing *p, const uint32_t *label, int64_t value);

/* placing_start.c. The start of all searches: the best contiguous split; for chunks, a split with
 * the chunks as stages of their own; for free placement, also a split into two chunks per device,
 * and one on only the devices that pay for communication. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_placing_start(psplit_i_placing *p);

/* branch_start.c. For latency, in graphs with separators: label[clusters] of a placement that has
 * the branches between separators in parallel. *out_found: whether there are any, and the budget
 * suffices. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_branch_start(const psplit_i_placing *p, uint32_t *label,
                                                  bool *out_found);
/* level_start.c. The same with slices of levels. */
PSPLIT_MUST_USE psplit_code psplit_i_level_start(const psplit_i_placing *p, uint32_t *label,
                                                 bool *out_found);

#endif
