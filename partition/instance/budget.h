/* How long a solver may take: all of its loops charge one budget, and stop when it is spent.
 *
 * Work is counted in operations of about 8 ns, so the answer does not depend on the machine. Where
 * the caller gave seconds of the clock, work is limited as well, so that each method has the part
 * that is meant for it, and the clock is looked at, too, as machines may be slower. A budget is
 * charged by one thread at a time. What runs side by side gets a share each, of a size that does
 * not depend on the number of threads, and the shares are charged when all have ended. */
#ifndef PSPLIT_PARTITION_BUDGET_H
#define PSPLIT_PARTITION_BUDGET_H

#include <psplit/partition.h>

typedef struct psplit_i_budget {
  double end;                 /* wall clock, seconds; < 0: none */
  uint64_t most, spent;       /* operations */
  uint64_t look;              /* `spent` from which on the clock and `cancel` are looked at again */
  const volatile int *cancel; /* the caller's flag: no time is left once it is set; or NULL */
  psplit_activity *activity;  /* is told of work, a look's worth at a time; or NULL */
} psplit_i_budget;

enum {
  PSPLIT_I_STEP_OPS = 32,             /* operations of a step of the exact program */
  PSPLIT_I_STEPS_PER_SECOND = 4000000 /* of a time limit that counts work */
};

/* Seconds on the clock that psplit_i_budget.end is of. */
double psplit_i_now(void);

/* What the options allow, from now on. */
psplit_i_budget psplit_i_budget_of(const psplit_partition_options *options);
psplit_i_budget psplit_i_budget_unlimited(void);
/* One of n parts of what work is left, which a slow machine does not let take all of the time. */
psplit_i_budget psplit_i_budget_share(const psplit_i_budget *budget, uint32_t n);
/* One of n parts of the work, for one of n tasks side by side, which end by the clock together. */
psplit_i_budget psplit_i_budget_beside(const psplit_i_budget *budget, uint32_t n);
/* The same for work of which `rate` operations take the time of one, as a cache holds its tables;
 * and what that took, charged. */
psplit_i_budget psplit_i_budget_rated(const psplit_i_budget *budget, uint32_t n, uint32_t rate);
void psplit_i_spend_rated(psplit_i_budget *budget, const psplit_i_budget *rated, uint32_t rate);
/* A share for other options: no more than they allow, nor than is left. */
psplit_i_budget psplit_i_budget_inner(const psplit_i_budget *budget,
                                      const psplit_partition_options *options);

/* Takes one of n parts of what is left off the end. */
void psplit_i_budget_hold_back(psplit_i_budget *budget, uint32_t n);
/* Lets the budget last at least so long from now on. */
void psplit_i_budget_extend(psplit_i_budget *budget, double seconds);

/* Operations that a look at tables of so many bytes, at random, stands for. They take a look each
 * where a cache near the processor holds them, and wait for the next one where it does not. */
static inline uint64_t psplit_i_look_ops(uint64_t bytes) {
  return bytes < UINT64_C(1) << 21 ? 1 : 3;
}

/* Charges passes over a problem that nothing stops: its check and that of an answer, or an instance
 * of it. */
void psplit_i_spend_pass(psplit_i_budget *budget, const psplit_problem *problem);

/* Charges work; false when there is none left, or no time. NULL: no limit. */
bool psplit_i_spend(psplit_i_budget *budget, uint64_t n_ops);
/* Looks at the clock and `cancel` as well. */
bool psplit_i_expired(const psplit_i_budget *budget);
/* Only looks at the clock and `cancel`: any number of threads may, while none charges. */
bool psplit_i_late(const psplit_i_budget *budget);
/* The time limit that what is left would make, of work and of the clock. */
double psplit_i_budget_seconds(const psplit_i_budget *budget);
/* Operations that are left. */
uint64_t psplit_i_budget_left(const psplit_i_budget *budget);

/* Threads of a parallel region that will be charged about `work`: `asked`, or for 0 one where that
 * and what was spent before are less than ten milliseconds, else what OpenMP would take. Waking the
 * others costs more than a small problem, and they spin between its regions. Answers never depend
 * on it. */
int psplit_i_budget_team(const psplit_i_budget *budget, uint64_t work, uint32_t asked);
/* Operations of a parallel region below which threads take longer to begin and end it than to do
 * them: one thread does. Regions in a row are alike, so the one before says what to expect. */
enum { PSPLIT_I_REGION_OPS = 1 << 15 };

#endif
