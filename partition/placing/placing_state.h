/* A placement that is being improved, with the instance that it is of. */
#ifndef PSPLIT_PARTITION_PLACING_STATE_H
#define PSPLIT_PARTITION_PLACING_STATE_H

#include "automaton.h"
#include "instance.h"
#include "placement.h"
#include "result.h"

typedef struct psplit_i_placing {
  const psplit_i_solver_request *request;
  /* For starts from other problems, without bounds. */
  psplit_code (*place)(const psplit_i_solver_request *request, bool with_bounds,
                       psplit_i_result *out_result);
  psplit_i_result *result;  /* bound, and who found the placement */
  bool none;                /* branch and bound has finished without any */
  int64_t contiguous_bound; /* on the throughput of contiguous stages */
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_partition_options loose; /* the automaton is only asked for measures */
  uint32_t *node_label, *types;   /* the placement */
  uint32_t *parent;
  int64_t value;
} psplit_i_placing;

/* Value of a full placement, INF when it breaks a rule. Leaves the placement empty. */
int64_t psplit_i_placing_judge(psplit_i_placement *placement, const uint32_t *types,
                               const uint32_t *label);
/* What clusters have as labels is the placement now. */
void psplit_i_placing_take(psplit_i_placing *p, const uint32_t *label, int64_t value);

/* placing_start.c. Where all searches start: the best contiguous split; chunks as stages of their
 * own; for free placement what two chunks of a device come to, and what the devices that pay for
 * communication come to alone. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_placing_start(psplit_i_placing *p);

/* branch_start.c. For latency, of graphs with separators: label[clusters] of a placement that has
 * branches between them side by side; *out_found: whether there are any, or time. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_branch_start(const psplit_i_placing *p, uint32_t *label,
                                                  bool *out_found);
/* level_start.c. The same of levels in slices. */
PSPLIT_MUST_USE psplit_code psplit_i_level_start(const psplit_i_placing *p, uint32_t *label,
                                                 bool *out_found);

#endif
