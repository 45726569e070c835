/* Two stages, by branch and bound on the downset that the first one holds. */
#ifndef PSPLIT_PARTITION_TWO_STAGES_H
#define PSPLIT_PARTITION_TWO_STAGES_H

#include "solver_state.h"

/* *out_least: no split into two stages is below; where it is what *io_best takes, that is the best.
 * *io_best, whose value may be INF, becomes a better split if there is one. It ends when no more
 * than gap_frac of the value is open, or the budget or the memory for branches is spent: then, and
 * where times are too large, *out_least is less, in the end 0. For what has the features of its row
 * in capabilities.def, of up to 4,096 clusters or so: the closure is made. scratch[10] is for the
 * evaluation. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_two_stages(const psplit_i_instance *instance,
                                                const psplit_i_automaton *automaton,
                                                double gap_frac, psplit_i_budget *budget,
                                                int64_t *scratch, psplit_i_assignment *io_best,
                                                int64_t *out_least);

/* The solver's turns: soon with a small share of the budget, which decides up to 200 nodes or so;
 * late with more of it. Where pairs of stages count and there are more than 128 clusters, which
 * annealing takes long for, the first is before any search. Nothing happens with other numbers of
 * stages. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_two_stages_first(psplit_i_solver_state *a);
PSPLIT_MUST_USE psplit_code psplit_i_two_stages_turn(psplit_i_solver_state *a, psplit_i_turn *turn);
PSPLIT_MUST_USE psplit_code psplit_i_two_stages_late(psplit_i_solver_state *a, psplit_i_turn *turn);

#endif
