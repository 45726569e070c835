/* Simulated annealing of ordered stages: a move takes clusters over a boundary between stages. */
#ifndef PSPLIT_PARTITION_BOUNDARY_ANNEALING_H
#define PSPLIT_PARTITION_BOUNDARY_ANNEALING_H

#include "result.h"

/* How long chains anneal, and with which powers. */
typedef struct psplit_i_boundary_run {
  uint64_t salt, n_steps; /* of the random numbers; of each chain */
  /* With high powers of the loads, which see the slowest stages alone, and never cut short while it
   * is hot. */
  bool high;
} psplit_i_boundary_run;

/* Simulated annealing for contiguous throughput without memory limits, replicas and relays, in time
 * that does not depend on the number of stages. Improves *assignment's stages and value.
 * *out_low_won (may be NULL): a chain that sees all stages found the best. Errors: NOMEM, LIMIT
 * (not for this problem). */
PSPLIT_MUST_USE psplit_code psplit_i_anneal_boundaries(const psplit_i_instance *instance,
                                                       const psplit_i_automaton *automaton,
                                                       const psplit_i_solver_request *request,
                                                       psplit_i_boundary_run run, bool *out_low_won,
                                                       psplit_i_assignment *assignment);
/* The same with 4,000 steps for each cluster and chain, begun so hot that the result depends little
 * on the split that it begins with. */
PSPLIT_MUST_USE psplit_code psplit_i_anneal_melted(const psplit_i_instance *instance,
                                                   const psplit_i_automaton *automaton,
                                                   const psplit_i_solver_request *request,
                                                   psplit_i_assignment *assignment);
/* The same as the first, of three stages in a row with the slowest among them, as long as that
 * helps: with as many steps for a few clusters it begins hotter, and what is elsewhere stays.
 * Nothing happens where three stages are more than half of all, or where boundaries cannot be
 * annealed. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_anneal_windows(const psplit_i_instance *instance,
                                                    const psplit_i_automaton *automaton,
                                                    const psplit_i_solver_request *request,
                                                    psplit_i_boundary_run run,
                                                    psplit_i_assignment *assignment);

#endif
