/* What a solver is asked for, and what it hands back. */
#ifndef PSPLIT_PARTITION_RESULT_H
#define PSPLIT_PARTITION_RESULT_H

#include "assignment.h"
#include "budget.h"

/* What a solver hands back, by node; checked and reported in solve.c. */
typedef struct psplit_answer {
  uint32_t *stage, *chunk;     /* [n_nodes] */
  uint32_t *device, *replicas; /* [n_stages] */
  int64_t bound;
  const char *solver, *bound_name;
  bool ties_proved; /* if `bound` is reached, the answer is the only one (ties.c) */
} psplit_answer;

typedef struct psplit_job {
  const psplit_problem *problem;
  const psplit_partition_options *options;
  psplit_deadline deadline;
  psplit_arena *arena; /* owns the answer */
  psplit_diag *diag;
} psplit_job;

PSPLIT_MUST_USE psplit_code psplit_i_answer_init(psplit_answer *answer, const psplit_job *job);
/* Copies a cut of a core of the job's problem. */
void psplit_i_answer_take(psplit_answer *answer, const psplit_core *core, const psplit_cut *cut);
/* The other way round; value and comm are evaluated. Items must not straddle stages. */
void psplit_i_answer_give(const psplit_answer *answer, const psplit_core *core,
                          const psplit_machine *machine, psplit_cut *cut, int64_t *scratch);

/* Gives a checked solution the answer's bound, and says whether that proves it. Errors: INTERNAL, a
 * bound above the value, which some split has: in every build, or a bug would look like a proof. */
PSPLIT_MUST_USE psplit_code psplit_i_answer_prove(const psplit_answer *answer,
                                                  psplit_solution *io_solution, psplit_diag *diag);

#endif
