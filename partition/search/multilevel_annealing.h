/* Simulated annealing on contracted graphs, from coarse to fine. */
#ifndef PSPLIT_PARTITION_MULTILEVEL_ANNEALING_H
#define PSPLIT_PARTITION_MULTILEVEL_ANNEALING_H

#include "placement_task.h"

/* Annealing on aggregates of clusters with one label, on aggregates of aggregates, and so on, from
 * the coarsest down to clusters, several times over; the idea of Walshaw, "Multilevel refinement
 * for combinatorial optimisation problems", Annals of Operations Research 2004. parent[n_nodes]
 * says which nodes the instance unites; `n_steps` are those of one descent over all levels.
 * Improves node_label[n_nodes] and its value. Four chains, the same for any number of threads.
 * Errors: NOMEM, LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_anneal_multilevel(const psplit_i_placement_task *task,
                                                       const uint32_t *parent, uint64_t salt,
                                                       uint64_t n_steps, uint32_t *node_label,
                                                       int64_t *inout_value);

#endif
