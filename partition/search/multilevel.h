/* The multilevel method: contraction, solution of the coarse graph, refinement. */
#ifndef PSPLIT_PARTITION_MULTILEVEL_H
#define PSPLIT_PARTITION_MULTILEVEL_H

#include "result.h"

/* A split of a graph of any size: orders are cut into segments of equal weight, the segments solved
 * by local search, and the neighbourhood of every cut into finer segments, down to clusters. Linear
 * time and memory a level; the same for any number of threads. out_assignment->value stays INF when
 * no split was found. The idea of coarsening a directed graph without making cycles, and of
 * refining on the way back: Herrmann et al., "Multilevel algorithms for acyclic partitioning of
 * directed acyclic graphs", SIAM J. Sci. Comput. 2019; segments of an order and zooming are this
 * project's. Errors: NOMEM.
 */
PSPLIT_MUST_USE psplit_code psplit_i_multilevel(const psplit_i_instance *instance,
                                                const psplit_i_automaton *automaton,
                                                const psplit_i_solver_request *request,
                                                psplit_i_assignment *out_assignment);

#endif
