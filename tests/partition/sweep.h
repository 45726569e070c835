/* Random problems one after the other, for tests that hold something for all of them:
 *
 *   static bed b;
 *   sweep s = {.n_seeds = 100, .features = kFeatures, .n_features = N_FEATURES, ...};
 *   while (next_problem(&s, &b)) { ... b and s.what ... }
 */
#ifndef PSPLIT_TESTS_SWEEP_H
#define PSPLIT_TESTS_SWEEP_H

#include "bed.h"
#include "bounds.h"

/* Of each seed: problems of every shape with every set of features; of every shape, with the sets
 * in turn; or one, shapes and sets in turn. */
typedef enum sweep_order { EVERY_SET, EVERY_SHAPE, ONE_EACH } sweep_order;

/* least .. least + n - 1, in turn by seed. */
typedef struct sweep_range {
  uint32_t least, n;
} sweep_range;

typedef struct sweep {
  uint32_t first_seed, n_seeds; /* of n_seeds as many as percent() says */
  sweep_order order;
  const unsigned *features; /* [n_features], each a set; none at all: no features */
  uint32_t n_features;
  sweep_range nodes, stages, twins; /* twins: nodes of problems with them; n = 0: as all others */
  /* Every so many of the seeds send by shared memory and the others point to point, as all do
   * whose links differ; 0: as the problem was drawn. */
  uint32_t shared_every;

  /* The problem that is on the bed. */
  uint32_t seed, n_before; /* problems that were drawn before */
  shape kind;
  unsigned with; /* features */
  char what[96]; /* for messages */
  bool is_open;  /* private */
} sweep;

/* Ends the problem that is on the bed and takes the next one that does not contradict itself.
 * False, with nothing on the bed, when there are no more. */
bool next_problem(sweep *s, bed *b);

/* What the bed's problem takes at best; false where there is no split, or none is proved best. */
bool proved_best(const bed *b, int64_t *out_best);

/* What one of bounds.h says of splits better than `value`, where `bound` is known; all in ns. */
typedef psplit_code (*bound_function)(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                      int64_t *inout_bound);
int64_t bound_by(const bed *b, bound_function asked, int64_t value, int64_t bound);

/* A bound for splits within a limit is no more than the best of them; all in ns. */
void expect_bound_holds(const sweep *s, int64_t limit, int64_t bound, int64_t best);

/* What hold_bound met. */
typedef struct bound_tally {
  uint32_t n_left_out;               /* problems that the method does not take */
  uint32_t n_asked, n_raised, n_met; /* asked from what was known; more than that; the optimum */
} bound_tally;

/* Holds that a method says no more than the optimum of every problem that it takes and whose best
 * split is proved: for n_limits limits from number first_limit on, the optimum (0) and a quarter of
 * it more each time, where the simple bound is known. With `from_average` also where no more than a
 * share of all times is, and that is what is counted then. */
bound_tally hold_bound(sweep *s, psplit_i_method method, bound_function asked, int first_limit,
                       int n_limits, bool from_average);

/* Holds that a method says the optimum itself, in ns, of clusters that each take so much and send
 * 1 ns to each one behind them: a bound that is too high by 1 is above it. */
void expect_tight(bound_function asked, uint32_t n_clusters, uint32_t n_stages, uint32_t time_ns,
                  int64_t best);

/* Any split, on the bed, after so many steps of local search; its value, INF where none is
 * found. */
int64_t some_split(bed *b, uint32_t n_steps);

#endif
