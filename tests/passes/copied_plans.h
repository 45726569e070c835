/* Random small models with nodes that are cheap beside their results, and the best of all their
 * splits with copies as `replicate` makes them, by enumeration. What fails ends the test. */
#ifndef PSPLIT_TESTS_COPIED_PLANS_H
#define PSPLIT_TESTS_COPIED_PLANS_H

#include "small_plans.h"

enum { MOST_NODES = 7 };

/* Products, which nobody computes again, and what is cheap beside its result: casts, sums, means
 * and numbers of several results. The last results are outputs; so are some others. n is at most
 * MOST_NODES; one of them may be two nodes. */
psplit_model *draw_model(dice *d, uint32_t n);

typedef struct copied_search {
  psplit_planner *planner;
  uint32_t stage[2 * MOST_NODES];
  int64_t best_ns, plain_ns; /* of all splits, with copies and without; INT64_MAX: none */
} copied_search;

/* The planner has a plan by cutting between nodes, and loses it. */
void find_best_copied(copied_search *s);

#endif
