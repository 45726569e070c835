/* One attempt at contiguous throughput: the core, the best split so far, the bound, the budget. */
#ifndef PSPLIT_PARTITION_SOLVER_STATE_H
#define PSPLIT_PARTITION_SOLVER_STATE_H

#include "assignment.h"
#include "automaton.h"
#include "budget.h"
#include "exact.h"
#include "instance.h"
#include "result.h"
#include "weight_axis.h"

enum {
  PSPLIT_I_LARGE = 6000,            /* items above which orders are too long to search whole */
  PSPLIT_I_FIRST_STEPS = 1 << 21,   /* of the exact program's first run */
  PSPLIT_I_TIE_NODES = 24000,       /* above that nothing is built anew to break ties */
  PSPLIT_I_SEARCH_WORK = 100000000, /* items added to walks by one call of the search */
};

typedef struct psplit_attempt {
  const psplit_job *job;
  psplit_arena arena;
  psplit_core core;
  psplit_machine machine;
  psplit_wamc wamc;
  psplit_cut best, trial;
  int64_t *scratch;
  int64_t bound;
  int64_t wamc_limit;    /* value for which the windows were made */
  psplit_answer *answer; /* best split by node: survives a new core */
  uint64_t budget, spent, most;
  const char *solver, *bound_name;
  psplit_deadline deadline; /* the job's, or later while there is no split at all */
  bool undercounted;        /* the exact program cannot decide near the best value */
} psplit_attempt;

/* The rest is zero; everything is freed by fini. Errors: INFEASIBLE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_attempt_init(psplit_attempt *a);
void psplit_i_attempt_fini(psplit_attempt *a);
/* Reduces the core for splits up to `limit`; carries the best split over. parent[n_nodes]:
 * union-find. `keep_first`: see psplit_i_kernel_carrying. */
PSPLIT_MUST_USE psplit_code psplit_i_attempt_reduce(psplit_attempt *a, int64_t limit,
                                                    bool keep_first, uint32_t *parent);

void psplit_i_attempt_raise(psplit_attempt *a, int64_t bound, const char *name);
/* A larger bottleneck is never taken; of equal ones, the one that sends less. */
void psplit_i_attempt_take(psplit_attempt *a, const psplit_cut *cut, const char *solver);
/* Close enough, or out of time. */
bool psplit_i_attempt_done(const psplit_attempt *a);

/* Steps per chain and round that `work` items added to walks buy, 1 to `most`. */
uint32_t psplit_i_attempt_affords(const psplit_attempt *a, uint64_t work, uint32_t n_rounds,
                                  uint32_t most);
PSPLIT_MUST_USE psplit_code psplit_i_attempt_search(psplit_attempt *a, uint32_t n_rounds,
                                                    uint32_t n_steps, uint64_t salt);
/* Moves of single items over the cuts: better than orders on wide graphs. */
PSPLIT_MUST_USE psplit_code psplit_i_attempt_anneal(psplit_attempt *a, uint64_t salt);
/* What the exact program leaves open (relays, or no steps left) small problems can still have
 * proved, by branch and bound. */
PSPLIT_MUST_USE psplit_code psplit_i_attempt_brute(psplit_attempt *a);
PSPLIT_MUST_USE psplit_code psplit_i_attempt_windows(psplit_attempt *a);
PSPLIT_MUST_USE psplit_code psplit_i_attempt_exact(psplit_attempt *a, int64_t limit,
                                                   uint64_t budget, psplit_verdict *out_verdict);
/* Of the splits with the best value one that sends least; `first`: which, or NULL. */
PSPLIT_MUST_USE psplit_code psplit_i_attempt_least_comm(psplit_attempt *a,
                                                        const psplit_first *first, uint64_t budget,
                                                        psplit_verdict *out_verdict);

#endif
