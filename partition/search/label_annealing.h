/* Simulated annealing of stage labels, for any objective and any placement. */
#ifndef PSPLIT_PARTITION_LABEL_ANNEALING_H
#define PSPLIT_PARTITION_LABEL_ANNEALING_H

#include "annealing.h"
#include "placement_task.h"

/* Simulated annealing from the full placement label[n]; writes a better one than *inout_value, if
 * it finds any. Chains are independent; the same for any number of threads. Errors: NOMEM,
 * LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_anneal_labels(const psplit_i_placement_task *task,
                                                   uint64_t salt, uint64_t max_steps,
                                                   uint32_t *label, int64_t *inout_value);

typedef struct psplit_i_cooling {
  uint64_t seed, n_steps;
  double hot, cold;   /* temperatures: parts of the bottleneck, or of the latency */
  uint32_t n_squares; /* the energy sums loads to the power of 2 to this */
  bool in_groups;     /* along an order: clusters move with what goes along; for latency always */
  bool leave;         /* the best of the second half, even where the start was better */
} psplit_i_cooling;

/* One chain on one thread from the full placement label[n]; out: the best it saw. Steps of O(nets
 * of a cluster). Errors: NOMEM, LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_anneal_labels_once(const psplit_i_placement_task *task,
                                                        const psplit_i_cooling *cooling,
                                                        psplit_i_budget *budget, uint32_t *label,
                                                        int64_t *out_value);

#endif
