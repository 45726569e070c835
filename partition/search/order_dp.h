/* Dynamic programming over one topological order: the best stages that are ranges of it. */
#ifndef PSPLIT_PARTITION_ORDER_DP_H
#define PSPLIT_PARTITION_ORDER_DP_H

#include "assignment.h"
#include "budget.h"
#include "load_tracker.h"
#include "order_view.h"

/* Best bottleneck behind a position of the order in a state, and the stage in front of it. */
typedef struct psplit_i_order_dp_cell {
  int64_t value;
  uint32_t from, from_state;
} psplit_i_order_dp_cell;

/* Scratch of the program; one per thread. */
typedef struct psplit_i_order_dp {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_load_tracker tracker;
  psplit_i_arena arena;
  psplit_i_order_view view; /* what the tracker reads where links do not differ by pair */
  PSPLIT_VEC(psplit_i_order_dp_cell) cells;
  size_t *row;      /* [n + 2] first cell of a position */
  uint32_t *first;  /* [n + 1] its state */
  uint32_t *active; /* [n_states] those that splits reach behind a range */
  int64_t *behind;  /* [n_states] values of those */
  int64_t *loads;   /* [n_types] of a range */
  int64_t *scratch; /* [n_stages * 5] */
  uint32_t *times_sent, *mark;
  int64_t *prefix;      /* [n + 1] min_time before a position */
  uint32_t *work;       /* [n] operations of adding the cluster at a position, and taking it out */
  uint32_t *least_next; /* [n_states] the first state that a stage leads to; NONE: none */
  uint32_t held_a, held_b; /* the range of the order that the tracker holds */
  uint32_t grain; /* stages begin at multiples of it: 1, or a coarse division in less time */
  psplit_i_link_guess guess; /* where links differ by pair; else empty */
  bool use_guess;            /* else what pairs take at least; times_sent does not count with it */
} psplit_i_order_dp;

/* For any order of the instance, which it borrows, as it does the automaton. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_order_dp_init(psplit_i_order_dp *dp,
                                                   const psplit_i_instance *instance,
                                                   const psplit_i_automaton *automaton);
void psplit_i_order_dp_fini(psplit_i_order_dp *dp);

/* Best division of the topological order `order` into stages with every load <= limit (INF: no
 * limit) and every stage beginning at a multiple of dp->grain, or value INF, also when the budget
 * is spent. Sends are charged times_sent[e] times (NULL: once) during the search; the result is
 * evaluated exactly. False: out of memory. O(n / grain * clusters per stage * (degree + states in
 * the window / grain)). Source: dynamic programming over one linear order, Jensen & Bokhari;
 * windows: this project. */
bool psplit_i_order_dp_run(psplit_i_order_dp *dp, const uint32_t *order, const uint32_t *times_sent,
                           int64_t limit, psplit_i_budget *budget,
                           psplit_i_assignment *out_assignment);

#endif
