/* The state of a solver for contiguous throughput: the instance, the best split so far, the bound,
 * the budget. */
#ifndef PSPLIT_PARTITION_SOLVER_STATE_H
#define PSPLIT_PARTITION_SOLVER_STATE_H

#include "apart.h"
#include "assignment.h"
#include "automaton.h"
#include "bounds.h"
#include "budget.h"
#include "downsets.h"
#include "equal_branches.h"
#include "exact.h"
#include "instance.h"
#include "prices.h"
#include "result.h"
#include "weight_axis.h"

enum {
  PSPLIT_I_FIRST_STEPS = 1 << 21,   /* of the exact program's first run */
  PSPLIT_I_TIE_NODES = 24000,       /* above that nothing is built anew to break ties */
  PSPLIT_I_SEARCH_WORK = 100000000, /* clusters added to load trackers by one call of the search */
};

typedef struct psplit_i_solver_state {
  const psplit_i_solver_request *request;
  /* Solves a relaxation that a solver asks. Errors: INFEASIBLE, NOMEM. */
  psplit_code (*solve)(const psplit_i_solver_request *request, psplit_i_result *out_result);
  psplit_i_arena arena;
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_weight_axis axis;
  psplit_i_assignment best, trial;
  int64_t *scratch;
  psplit_i_result *result; /* bound, and best split by node: survives a new instance */
  uint64_t budget, spent, most;
  psplit_i_method asked;    /* solver of the options */
  bool late;                /* the bounds for what search does not close have been asked */
  bool by_apart;            /* and receivers that are apart say more than the instance itself */
  psplit_i_closure closure; /* of the instance, once the exact program has receivers apart */
  bool stuck_asked;         /* those for where much is open after all turns, too */
  bool heavy_asked;         /* the heavy clusters alone */
  bool spans_asked;         /* spans between separators, one by one */
  bool recombined;          /* splits have been put together from downsets */
  bool stages_by_price;     /* and from stages of high total price, */
  psplit_i_downsets set;    /* between these downsets */
  bool anneals_start;       /* the first annealing takes what the relaxation came to, too */
  bool anneals_high;        /* annealing looks at the slowest stages alone from now on */
  bool undercounted;        /* the exact program cannot decide near the best value */
  bool full;                /* it has run out of the memory that it may take */
  bool gets_far;            /* it takes many steps, but seems to end */
  bool decides;             /* and has decided a limit */
  psplit_i_prices prices;   /* of the clusters, once they have been asked for, */
  bool by_price;            /* by which the exact program has decided a limit */
  uint64_t last_steps;      /* of its last run, */
  uint32_t last_rounds;     /* and stages, from the last, of which it tried all */
  uint64_t stuck_steps;     /* with so many it tried few stages only; 0: it went on */
  int64_t stuck_gap;        /* when that was so */
  uint32_t n_improved;      /* runs of it in a row that found a better split */
  int64_t leap;             /* the next one asks for one that is better by so much more than that */
  /* Of the instance, once the exact program has been asked about it. */
  psplit_i_equal_branches equal;
  bool melted; /* the best split is of search, or of what melted it, and was not annealed since */
  int64_t gained; /* by the last of them that was dear and found little; 0: none was */
  struct psplit_i_nested_solver *nested; /* what boundaries have open; NULL: were not asked */
  int64_t nested_least;                  /* which no split is below by them */
  bool in_turns; /* they wait for what search finds, and go on behind it; annealing takes, */
  psplit_i_assignment before_nested; /* as another start, the best split before them */
} psplit_i_solver_state;

/* A solver's turn: what it is told, and what it says. */
typedef struct psplit_i_turn {
  uint64_t salt;              /* turns before this one, and one more */
  int64_t before;             /* best value when the solvers' turns began */
  psplit_i_assignment *start; /* annealing takes this, too, and changes it; NULL: the best alone */
  bool again;                 /* so much has changed that they should begin anew */
} psplit_i_turn;

/* The rest is zero; everything is freed by fini. Errors: INFEASIBLE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_state_init(psplit_i_solver_state *a);
void psplit_i_state_fini(psplit_i_solver_state *a);
/* Reduces the instance for splits up to `limit`; carries the best split over. parent[n_nodes]:
 * union-find. `keep_first`: see psplit_i_reduction_request. */
PSPLIT_MUST_USE psplit_code psplit_i_state_reduce(psplit_i_solver_state *a, int64_t limit,
                                                  bool keep_first, uint32_t *parent);

/* Runs a bound on the instance. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_state_run_bound(psplit_i_solver_state *a,
                                                     psplit_i_method bound);
/* Runs all bounds that are due, until one closes the gap. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_state_run_bounds(psplit_i_solver_state *a,
                                                      psplit_i_bound_time when);
/* Runs, once, the bounds that are meant for gaps which search has not closed. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_state_run_late_bounds(psplit_i_solver_state *a);
/* Adopts a split unless its bottleneck is larger than the best known, or equal with no less
 * sent. */
void psplit_i_state_take(psplit_i_solver_state *a, const psplit_i_assignment *assignment,
                         psplit_i_method by);
/* Adds to the count of steps that solvers have taken. */
void psplit_i_state_charge(psplit_i_solver_state *a, uint64_t n_steps);
/* Whether all solvers run, not just one that was asked for. */
bool psplit_i_state_runs_all(const psplit_i_solver_state *a);
/* Whether bound and value are close enough, or time is out. */
bool psplit_i_state_done(const psplit_i_solver_state *a);

/* Steps per chain and round that adding `work` clusters to load trackers pays for, 1 to `most`. */
uint32_t psplit_i_state_affords(const psplit_i_solver_state *a, uint64_t work, uint32_t n_rounds,
                                uint32_t most);
/* Local search over orders, beginning with the best split: n_steps orders for each chain and round.
 * `salt` is mixed into the seed. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_state_search(psplit_i_solver_state *a, uint32_t n_rounds,
                                                  uint32_t n_steps, uint64_t salt);
/* One round of it from scratch, without the best split. */
PSPLIT_MUST_USE psplit_code psplit_i_state_search_anew(psplit_i_solver_state *a, uint32_t n_steps);
/* Annealing of the boundaries between stages: better than orders on wide graphs. */
PSPLIT_MUST_USE psplit_code psplit_i_state_anneal(psplit_i_solver_state *a, psplit_i_turn *turn);
/* The same with few steps, as a start. */
PSPLIT_MUST_USE psplit_code psplit_i_state_anneal_briefly(psplit_i_solver_state *a);
/* One set of annealing chains that begin so hot that they keep nothing of the best split; then
 * another start is annealed as if search had found the split that comes of them. */
PSPLIT_MUST_USE psplit_code psplit_i_state_anneal_melted(psplit_i_solver_state *a);
/* Recombination: splits put together from downsets with little across. Runs once; does not depend
 * on the seed. */
PSPLIT_MUST_USE psplit_code psplit_i_state_recombine(psplit_i_solver_state *a, psplit_i_turn *turn);
/* Splits of stages with high sums of prices. Runs once, where the gap is wide; does not depend on
 * the seed. */
PSPLIT_MUST_USE psplit_code psplit_i_state_by_price(psplit_i_solver_state *a, psplit_i_turn *turn);
/* Branch and bound, for small problems that the exact program leaves open (relays, or no steps
 * left). */
PSPLIT_MUST_USE psplit_code psplit_i_state_brute(psplit_i_solver_state *a, psplit_i_turn *turn);

/* --- the exact program, state_exact.c --- */

/* Whether there is a split of at most `limit`, by up to `budget` steps. YES: it is a->trial, and
 * taken where it is the best; NO raises the bound above the limit; UNKNOWN: the steps, time or
 * memory do not suffice, or the instance has what the program does not count. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_state_exact(psplit_i_solver_state *a, int64_t limit,
                                                 uint64_t budget, psplit_i_verdict *out_verdict);
/* The same by the instance in which receivers are apart, where a->by_apart; its steps are not
 * counted. */
PSPLIT_MUST_USE psplit_code psplit_i_state_exact_apart(psplit_i_solver_state *a, int64_t limit,
                                                       uint64_t budget,
                                                       psplit_i_verdict *out_verdict);
/* The same of the instance itself where prices of clusters apply: a label is dropped where what is
 * left is worth more than all stages that are left. Its steps are not counted, and it has some more
 * than `budget`. a->by_price: it has decided a limit. */
PSPLIT_MUST_USE psplit_code psplit_i_state_exact_priced(psplit_i_solver_state *a, int64_t limit,
                                                        uint64_t budget,
                                                        psplit_i_verdict *out_verdict);
/* Whether the last undecided run of the instance itself had as many steps as one would have now,
 * and tried few stages only. */
bool psplit_i_state_stuck(const psplit_i_solver_state *a);
/* Finds, of the splits with the best value, one that sends least; `lexicographic` says which of
 * these, or is NULL. Verdict and errors as psplit_i_state_exact. */
PSPLIT_MUST_USE psplit_code psplit_i_state_least_comm(psplit_i_solver_state *a,
                                                      const psplit_i_lexicographic *lexicographic,
                                                      uint64_t budget,
                                                      psplit_i_verdict *out_verdict);

#endif
