/* Budgets: how much a solver may do. All of its loops charge one budget, and stop when it is spent.
 *
 * Work is counted in operations of about 8 ns, so the result does not depend on the machine. If the
 * caller sets a limit in seconds of the clock, work is limited as well, so that each method gets
 * the part that is meant for it. The clock is read in addition, since machines may be slower. Only
 * one thread may charge a budget at a time. Parallel tasks get a share each, whose size does not
 * depend on the number of threads, and all shares are charged after the last task. */
#ifndef PSPLIT_PARTITION_BUDGET_H
#define PSPLIT_PARTITION_BUDGET_H

#include <psplit/partition.h>

typedef struct psplit_i_budget {
  double end;           /* on the wall clock, in seconds; < 0: none */
  uint64_t most, spent; /* operations */
  uint64_t look;        /* value of `spent` from which on the clock and `cancel` are read again */
  const volatile int *cancel; /* the caller's flag: once it is set, no time is left; or NULL */
  psplit_activity *activity;  /* receives the work done, in steps of LOOK_OPS; or NULL */
} psplit_i_budget;

enum {
  PSPLIT_I_STEP_OPS = 32,             /* operations of a step of the exact program */
  PSPLIT_I_STEPS_PER_SECOND = 4000000 /* of a time limit that counts work */
};

/* The current time on the clock of psplit_i_budget.end. */
double psplit_i_now(void);

/* A budget of what the options allow, from now on. */
psplit_i_budget psplit_i_budget_of(const psplit_partition_options *options);
psplit_i_budget psplit_i_budget_unlimited(void);
/* One n-th of the work that is left, with at most a multiple of its part of the time on the
 * clock. */
psplit_i_budget psplit_i_budget_share(const psplit_i_budget *budget, uint32_t n);
/* One n-th of the work that is left, for one of n parallel tasks, which have the same end on the
 * clock. */
psplit_i_budget psplit_i_budget_beside(const psplit_i_budget *budget, uint32_t n);
/* Likewise, for work of which `rate` operations take the time of one since a cache holds its
 * tables; and what to charge for it afterwards. */
psplit_i_budget psplit_i_budget_rated(const psplit_i_budget *budget, uint32_t n, uint32_t rate);
void psplit_i_spend_rated(psplit_i_budget *budget, const psplit_i_budget *rated, uint32_t rate);
/* A share with options of its own: at most what they allow, and at most what is left. */
psplit_i_budget psplit_i_budget_inner(const psplit_i_budget *budget,
                                      const psplit_partition_options *options);

/* Reserves one n-th of what is left. */
void psplit_i_budget_hold_back(psplit_i_budget *budget, uint32_t n);
/* Extends the budget to at least so many seconds from now. */
void psplit_i_budget_extend(psplit_i_budget *budget, double seconds);

/* Number of operations that a random access to tables of that many bytes stands for: 1 if a cache
 * near the processor holds them, more if it has to wait for the next cache. */
static inline uint64_t psplit_i_look_ops(uint64_t bytes) {
  return bytes < UINT64_C(1) << 21 ? 1 : 3;
}

/* Charges passes over a problem that are never interrupted: its validation and the check of a
 * result, or building an instance. */
void psplit_i_spend_pass(psplit_i_budget *budget, const psplit_problem *problem);

/* Charges work. Returns false if no work or time is left. NULL: no limit. */
bool psplit_i_spend(psplit_i_budget *budget, uint64_t n_ops);
/* Whether no work or time is left, or `cancel` is set. */
bool psplit_i_expired(const psplit_i_budget *budget);
/* Only reads the clock and `cancel`. Any number of threads may call it while none charges. */
bool psplit_i_late(const psplit_i_budget *budget);
/* The time limit that corresponds to what is left of work and time. */
double psplit_i_budget_seconds(const psplit_i_budget *budget);
/* Number of operations left. */
uint64_t psplit_i_budget_left(const psplit_i_budget *budget);

/* Number of threads for a parallel region that will be charged about `work`. This is `asked`; if
 * that is 0, it is 1 if the region and all work before it take less than ten milliseconds, and
 * otherwise what OpenMP would use. Waking threads costs more than a small problem, and they spin
 * between regions. Results never depend on it. */
int psplit_i_budget_team(const psplit_i_budget *budget, uint64_t work, uint32_t asked);
/* A parallel region of fewer operations takes longer to start and end than to execute, so one
 * thread executes it. Consecutive regions are alike, so the previous one is the estimate. */
enum { PSPLIT_I_REGION_OPS = 1 << 15 };

#endif
