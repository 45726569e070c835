/* The heavy clusters alone: no split takes longer there, so what their best one takes bounds the
 * others; and what it bounds is seen where work comes in large pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/plain_problem.h"
#include "contiguous.h"
#include "heavy.h"
#include "sweep.h"

static const unsigned kFeatures[] = {
  0, WITH_CLASSES, WITH_FREE_COMM, WITH_PINS | WITH_TOGETHER, WITH_MEMORY, WITH_OVERLAP, WITH_STASH,
};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures };

static const double kLight[] = {0, 0.05, 0.2, 0.4, 0.7};
enum { N_LIGHT = sizeof kLight / sizeof *kLight };

static psplit_i_heavy make_heavy(bed *b, double light, bool take_over) {
  psplit_i_heavy heavy;
  assert_int_equal(
    psplit_i_heavy_make(&b->instance, &b->closure, light, take_over, &b->arena, NULL, &heavy),
    PSPLIT_OK);
  assert_true(heavy.n_kept <= heavy.problem.n_nodes);
  return heavy;
}

/* Each device's load in a split as it is read for the heavy clusters, against that in the split. */
static void hold_loads(const bed *b, const psplit_i_heavy *heavy, const psplit_solution *whole,
                       const char *what) {
  uint32_t stage[MAX_NODES];
  psplit_solution *read;
  psplit_diag diag = {0};
  for (uint32_t k = 0; k < heavy->n_kept; k++) stage[k] = b->assignment.stage[heavy->cluster[k]];
  assert_int_equal(
    psplit_partition_check(&heavy->problem, &b->options, stage, NULL, b->assignment.device,
                           b->assignment.replicas, &diag, &read),
    PSPLIT_OK);
  for (uint32_t s = 0; s < read->n_stages; s++)
    if (read->stages[s].load_ns > whole->stages[s].load_ns)
      fail_msg("%s: stage %u takes %lld, and %lld", what, s, (long long)whole->stages[s].load_ns,
               (long long)read->stages[s].load_ns);
  psplit_solution_destroy(read);
}

/* What the problem's clusters compute, on devices of the first type. */
static int64_t computes(const psplit_i_heavy *heavy) {
  int64_t sum = 0;
  for (uint32_t k = 0; k < heavy->n_kept; k++) {
    const int64_t time = heavy->problem.time_ns[(size_t)k * heavy->problem.n_classes];
    sum += time == PSPLIT_TIME_FORBIDDEN ? 0 : time;
  }
  return sum;
}

/* The same before others left them work. */
static int64_t computes_alone(const bed *b, const psplit_i_heavy *heavy) {
  int64_t sum = 0;
  for (uint32_t k = 0; k < heavy->n_kept; k++) {
    const int64_t w = b->instance.w[heavy->cluster[k]];
    sum += w >= PSPLIT_I_INF ? 0 : w;
  }
  return sum;
}

/* The split of the bed as one of the problem's nodes. */
static psplit_solution *whole_split(const bed *b) {
  uint32_t stage[MAX_NODES];
  psplit_solution *whole;
  psplit_diag diag = {0};
  for (uint32_t v = 0; v < b->r.problem.n_nodes; v++)
    stage[v] = b->assignment.stage[b->instance.cluster_of_node[v]];
  assert_int_equal(
    psplit_partition_check(&b->r.problem, &b->options, stage, NULL, b->assignment.device,
                           b->assignment.replicas, &diag, &whole),
    PSPLIT_OK);
  return whole;
}

/* In any split, not only the best, no stage takes longer when it is read for the heavy clusters. */
static void no_load_grows(void **state) {
  (void)state;
  static bed b;
  uint32_t n_seen[2] = {0}, n_taken = 0;
  sweep s = {.n_seeds = 120,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {4, 40},
             .stages = {2, 3},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    psplit_solution *whole = some_split(&b, 1) < PSPLIT_I_INF ? whole_split(&b) : NULL;
    for (uint32_t l = 0; l < 2 * N_LIGHT && whole; l++) {
      const bool take_over = l % 2;
      const psplit_i_heavy heavy = make_heavy(&b, kLight[l / 2], take_over);
      char what[sizeof s.what + 32];
      snprintf(what, sizeof what, "%s, light %g%s", s.what, kLight[l / 2],
               take_over ? ", taken over" : "");
      /* Where pieces go is not told; of no work at all nothing is heavy. */
      if (heavy.problem.n_nodes > heavy.n_kept || heavy.n_kept == 0) continue;
      hold_loads(&b, &heavy, whole, what);
      n_seen[take_over]++;
      n_taken += take_over && computes(&heavy) > computes_alone(&b, &heavy);
    }
    psplit_solution_destroy(whole);
  }
  assert_true(n_seen[false] > percent(2000) && n_seen[true] > percent(2000));
  assert_true(n_taken > percent(1000));
}

/* The bound of a problem's best split; false where there is none. */
static bool solve(const psplit_problem *problem, const psplit_partition_options *options,
                  int64_t *out_bound) {
  psplit_diag diag = {0};
  psplit_solution *best;
  if (psplit_partition_solve(problem, options, &diag, &best) != PSPLIT_OK) return false;
  *out_bound = best->lower_bound_ns;
  psplit_solution_destroy(best);
  return true;
}

/* The bed's problem as a relaxation of which a split of `enough` is enough; *out_ops: the work. */
static bool solve_for(const bed *b, int64_t enough, psplit_i_result *out, uint64_t *out_ops) {
  psplit_i_arena arena;
  psplit_diag diag = {0};
  psplit_i_budget budget = psplit_i_budget_of(&b->options);
  const psplit_i_solver_request request = {.problem = &b->r.problem,
                                           .options = &b->options,
                                           .budget = &budget,
                                           .arena = &arena,
                                           .diag = &diag,
                                           .relaxed = true,
                                           .enough = enough};
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_result_init(out, &request), PSPLIT_OK);
  const psplit_code code = psplit_i_contiguous(&request, out);
  *out_ops = budget.spent;
  psplit_i_arena_fini(&arena);
  assert_true(code == PSPLIT_OK || code == PSPLIT_INFEASIBLE);
  return code == PSPLIT_OK;
}

/* A relaxation whose best split is seen to be no more than a bound that is known says nothing new,
 * and is left; one with more than that is solved as ever. */
static void what_says_nothing_new_is_left(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_less = 0;
  sweep s = {.first_seed = 2000,
             .n_seeds = 100,
             .order = ONE_EACH,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {20, 40},
             .stages = {3, 3},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    psplit_i_result whole, less, same;
    uint64_t n_ops, n_less_ops, n_same_ops;
    b.options.time_limit_s = 0.05;
    if (!solve_for(&b, 0, &whole, &n_ops) || whole.bound < whole.value) continue;
    assert_true(solve_for(&b, whole.value - 1, &same, &n_same_ops));
    if (same.value != whole.value || same.bound != whole.bound || n_same_ops != n_ops)
      fail_msg("%s: another answer where nothing is enough", s.what);
    const int64_t enough = whole.value + whole.value / 10;
    assert_true(solve_for(&b, enough, &less, &n_less_ops));
    if (less.value > enough || less.bound > whole.value || n_less_ops > n_ops)
      fail_msg("%s: %lld of %lld, bound %lld", s.what, (long long)less.value,
               (long long)whole.value, (long long)less.bound);
    n_asked++;
    n_less += n_less_ops < n_ops;
  }
  assert_true(n_asked > percent(60));
  assert_true(n_less > percent(30));
}

/* With fluids: the best split of the relaxation, and what the pieces may add. */
static void the_optimum_is_no_less(void **state) {
  (void)state;
  static bed b;
  uint32_t n_fluids = 0, n_sharp = 0;
  int64_t best, relaxed = 0;
  sweep s = {.first_seed = 1000,
             .n_seeds = 16 * N_FEATURES * N_SHAPES, /* sizes in turn in small samples, too */
             .order = ONE_EACH,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {4, 20},
             .stages = {2, 3},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    b.options.time_limit_s = 0.2;
    const psplit_i_heavy heavy = make_heavy(&b, kLight[s.seed % N_LIGHT], s.seed % 2 == 0);
    if (heavy.n_kept == 0 || !proved_best(&b, &best)) continue;
    assert_true(solve(&heavy.problem, &b.options, &relaxed));
    expect_bound_holds(&s, best, relaxed - heavy.slack, best);
    n_fluids += heavy.problem.n_nodes > heavy.n_kept;
    n_sharp += relaxed == best;
  }
  assert_true(n_fluids > percent(80) && n_sharp > percent(16));
}

static void make_bed(bed *b, const psplit_problem *problem) {
  psplit_partition_options_init(&b->options);
  psplit_i_arena_init(&b->arena, 0);
  assert_int_equal(psplit_i_instance_init(&b->instance, problem, NULL, NULL), PSPLIT_OK);
  assert_int_equal(psplit_i_closure_make(&b->instance, NULL, &b->closure), PSPLIT_OK);
}

static void unmake_bed(bed *b) {
  psplit_i_closure_fini(&b->closure);
  psplit_i_instance_fini(&b->instance);
  psplit_i_arena_fini(&b->arena);
}

enum { MOST_CHAINED = 64 };

/* A chain for three devices that are alike. */
typedef struct chain {
  int64_t time[MOST_CHAINED], net[MOST_CHAINED];
  uint32_t producer[MOST_CHAINED], off[MOST_CHAINED + 1], consumer[MOST_CHAINED];
  psplit_device device;
  psplit_problem problem;
} chain;

/* Every `period`-th cluster takes 100, the others `light`; to send or receive takes `net`. */
static void make_chain(chain *c, uint32_t n, uint32_t period, int64_t light, int64_t net) {
  assert_true(n <= MOST_CHAINED);
  *c = (chain){.device = {.name = "d", .count = 3}};
  for (uint32_t v = 0; v < n; v++) {
    c->time[v] = v % period ? light : 100;
    c->producer[v] = v;
    c->consumer[v] = v + 1;
    c->off[v + 1] = v + 1;
    c->net[v] = net;
  }
  c->problem =
    plain_problem(&c->device, n, c->time, n - 1, c->producer, c->off, c->consumer, c->net);
}

/* A chain of clusters of 100 with light ones between, for three devices: seven cannot be cut into
 * thirds, whatever the light ones do. */
static void large_pieces_count(void **state) {
  (void)state;
  enum { N_HEAVY = 7, LIGHT = 5, N = N_HEAVY * (LIGHT + 1) };
  static bed b;
  static chain c;
  int64_t bound;
  make_chain(&c, N, LIGHT + 1, 1, 3);
  make_bed(&b, &c.problem);
  const psplit_i_heavy heavy = make_heavy(&b, 0.06, false);
  assert_int_equal(heavy.n_kept, N_HEAVY);
  assert_int_equal(heavy.problem.n_nets, N_HEAVY - 1);
  assert_true(solve(&heavy.problem, &b.options, &bound));
  assert_int_equal(bound, 300 + 3); /* the first stage, or the last: it has one neighbour */
  unmake_bed(&b);
}

/* Of light clusters between those of 100 no work is lost where tensors pay for it. */
static void work_stays(void **state) {
  (void)state;
  enum { N_HEAVY = 7, N = 3 * N_HEAVY };
  static bed b;
  static chain c;
  make_chain(&c, N, 3, 4, 40);
  make_bed(&b, &c.problem);
  const psplit_i_heavy heavy = make_heavy(&b, 0, true);
  assert_int_equal(heavy.n_kept, N_HEAVY);
  assert_int_equal(heavy.problem.n_nodes, N_HEAVY);
  assert_true(computes(&heavy) == N_HEAVY * 100 + (N - N_HEAVY) * 4);
  unmake_bed(&b);
}

/* What takes next to nothing on one device, and ages on another, is left to a cluster that is the
 * other way round: fluids are not cut finer for that. */
static void pieces_stay_few(void **state) {
  (void)state;
  const int64_t ages = INT64_C(1000000000000);
  const int64_t time[] = {1, ages, ages, 1, 100, 100}, net[] = {ages, 1, 1, 1};
  const uint32_t producer[] = {0, 1}, off[] = {0, 1, 2}, consumer[] = {1, 2};
  const psplit_device devices[] = {{.name = "a", .count = 1},
                                   {.name = "b", .class_id = 1, .count = 1}};
  psplit_problem problem = plain_problem(devices, 3, time, 2, producer, off, consumer, net);
  problem.n_classes = problem.n_devices = 2;
  static bed b;
  make_bed(&b, &problem);
  const psplit_i_heavy heavy = make_heavy(&b, 0.05, true);
  assert_int_equal(heavy.n_kept, 1);
  assert_true(heavy.problem.n_nodes < 2000);
  unmake_bed(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_load_grows),      cmocka_unit_test(the_optimum_is_no_less),
    cmocka_unit_test(large_pieces_count), cmocka_unit_test(work_stays),
    cmocka_unit_test(pieces_stay_few),    cmocka_unit_test(what_says_nothing_new_is_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
