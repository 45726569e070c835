/* Three or four stages, by branch and bound: the downsets in front of the boundaries are nested. */
#ifndef PSPLIT_PARTITION_NESTED_H
#define PSPLIT_PARTITION_NESTED_H

#include "solver_state.h"

enum { PSPLIT_I_NESTED_STAGES = 4 }; /* at most */

/* What is open, with what is known of it: a run goes on where the last one ended. */
typedef struct psplit_i_nested_solver psplit_i_nested_solver;

/* For up to PSPLIT_I_NESTED_STAGES devices of one type and what has the features of its row in
 * capabilities.def, without links, messages and nets that run backwards; all of which outlives the
 * solver. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_nested_create(const psplit_i_instance *instance,
                                                   const psplit_i_automaton *automaton,
                                                   psplit_i_budget *budget,
                                                   psplit_i_nested_solver **out_solver);
void psplit_i_nested_destroy(psplit_i_nested_solver *solver);
/* *out_least: no split is below; where it is what *io_best takes, that is the best. *io_best, whose
 * value may be INF, becomes a better split if there is one. It ends when no more than gap_frac of
 * the value is open, or the budget or the memory for branches is spent: then, and where times are
 * too large, *out_least is less, in the end 0. scratch[n_stages * 5] is for the evaluation.
 * Errors: NOMEM; then the solver can only be destroyed. */
PSPLIT_MUST_USE psplit_code psplit_i_nested_run(psplit_i_nested_solver *solver,
                                                const psplit_i_automaton *automaton,
                                                double gap_frac, psplit_i_budget *budget,
                                                int64_t *scratch, psplit_i_assignment *io_best,
                                                int64_t *out_least);
/* A part, for tests: with the clusters in stages lo[n] .. hi[n], in which every order edge can be
 * kept, no split is below *out_least by shares of the stages, 2^10 in all. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_nested_cut(const psplit_i_instance *instance,
                                                const psplit_i_automaton *automaton, uint8_t *lo,
                                                uint8_t *hi, const int32_t *share,
                                                int64_t *out_least);
bool psplit_i_nested_takes(const psplit_i_instance *instance, const psplit_i_automaton *automaton);

/* Runs in the portfolio: early with a small share of the budget, late with more of it. Does nothing
 * for problems that it does not take. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_nested_turn(psplit_i_solver_state *a, psplit_i_turn *turn);
PSPLIT_MUST_USE psplit_code psplit_i_nested_late(psplit_i_solver_state *a, psplit_i_turn *turn);

#endif
