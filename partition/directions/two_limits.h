/* Dynamic programming over downsets with two limits: a label is what is left, the devices used, and
 * the largest forward and the largest backward load of the stages behind. Of labels that leave the
 * same those stay that no other is below in both. */
#ifndef PSPLIT_PARTITION_DIRECTIONS_TWO_LIMITS_H
#define PSPLIT_PARTITION_DIRECTIONS_TWO_LIMITS_H

#include "assignment.h"
#include "budget.h"
#include "weight_axis.h"

enum {
  PSPLIT_I_FORWARD,
  PSPLIT_I_BACKWARD,
  PSPLIT_I_N_DIRECTIONS,
  PSPLIT_I_BOTH = 2,
  PSPLIT_I_N_PARTS
};

/* One problem in three instances with the same clusters and nets, of which each is a problem of
 * throughput: in the first what is backward takes no time, in the second what is forward, and in
 * the third nothing is left out. */
typedef struct psplit_i_directions {
  psplit_i_instance instance[PSPLIT_I_N_PARTS];
  psplit_i_automaton automaton[PSPLIT_I_N_PARTS];
} psplit_i_directions;

/* merge[nodes] as of psplit_i_instance_init, may be NULL. Errors: INFEASIBLE,
 * UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_directions_init(psplit_i_directions *d,
                                                     const psplit_problem of[PSPLIT_I_N_PARTS],
                                                     const psplit_partition_options *options,
                                                     const uint32_t *merge, psplit_diag *diag);
void psplit_i_directions_fini(psplit_i_directions *d);

typedef struct psplit_i_two_limits_options {
  /* NULL: stages between any downsets. Else between prefixes of this topological order of the
   * clusters, at multiples of `grain`. */
  const uint32_t *order;
  uint32_t grain;
  int64_t limit;                    /* the sum has to be below */
  const psplit_i_weight_axis *axes; /* [PSPLIT_I_N_PARTS] for loads below the limit; or NULL */
  uint64_t memory_cap_bytes;
  psplit_i_budget *budget;
} psplit_i_two_limits_options;

typedef struct psplit_i_two_limits_result {
  /* The whole family was looked at: no split of it is below `least`, which is the limit where none
   * was found. Tensors are sent once there, whoever receives them. */
  bool complete;
  int64_t least;
  bool found; /* stage and device are of a split that takes `least` so */
} psplit_i_two_limits_result;

/* Sets `out` and, where one is found, the stages and devices of `out_split`, whose value is not
 * set. Without overlap, messages, relays, links between pairs and replicas. O(labels * stages
 * between two downsets * (degree + types)), less what limits drop. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_two_limits(const psplit_i_directions *d,
                                                const psplit_i_two_limits_options *options,
                                                psplit_i_assignment *out_split,
                                                psplit_i_two_limits_result *out);

#endif
