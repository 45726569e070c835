/* Budgets: everything that takes long charges one, stops when it is spent, and is the same for any
 * number of threads wherever it stops. What a bound loses then it may only lose downwards. */
#include <dirent.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>

#include <cmocka.h>

#include "../support/plain_problem.h"
#include "automaton.h"
#include "budget.h"
#include "communication_share.h"
#include "exact.h"
#include "flow.h"
#include "instance.h"
#include "latency_chain.h"
#include "local_search.h"
#include "node_cut.h"
#include "problem.h"
#include "solve.h"
#include "weight_axis.h"

enum { WIDTH = 60, MOST = 40000 };

/* Layers of WIDTH nodes, each of which reads two of the layer in front. */
typedef struct wide {
  psplit_problem problem;
  psplit_device device;
  int64_t time[MOST], cost[MOST];
  uint32_t producer[MOST], off[MOST + 1], consumer[2 * MOST];
} wide;

static wide *make_wide(uint32_t n, uint32_t n_stages, uint32_t width) {
  wide *w = calloc(1, sizeof *w);
  assert_non_null(w);
  uint32_t n_nets = 0, n_pins = 0;
  for (uint32_t v = 0; v < n; v++) {
    const uint32_t first = (v / width + 1) * width;
    const uint64_t r = psplit_i_splitmix64(5, v);
    w->time[v] = 1000 + (int64_t)(r % 20000);
    if (first + width > n) continue;
    w->producer[n_nets] = v;
    w->cost[n_nets] = 500 + (int64_t)(r >> 20) % 5000;
    w->consumer[n_pins] = first + (uint32_t)(r >> 40) % width;
    w->consumer[n_pins + 1] =
      first + ((uint32_t)(r >> 40) + 1 + (uint32_t)(r >> 52) % (width - 1)) % width;
    n_pins += 2;
    w->off[++n_nets] = n_pins;
  }
  w->device = (psplit_device){.count = n_stages};
  w->problem =
    plain_problem(&w->device, n, w->time, n_nets, w->producer, w->off, w->consumer, w->cost);
  return w;
}

typedef struct bench {
  wide *w;
  psplit_partition_options options;
  psplit_i_instance instance;
  psplit_i_automaton automaton;
} bench;

static void open_bench_on(bench *b, wide *w) {
  psplit_diag diag = {0};
  b->w = w;
  psplit_partition_options_init(&b->options);
  assert_int_equal(psplit_i_instance_init(&b->instance, &b->w->problem, NULL, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_automaton_init(&b->automaton, &b->instance, &b->options, &diag),
                   PSPLIT_OK);
}

static void open_bench(bench *b, uint32_t n, uint32_t n_stages) {
  open_bench_on(b, make_wide(n, n_stages, WIDTH));
}

static void close_bench(bench *b) {
  psplit_i_automaton_fini(&b->automaton);
  psplit_i_instance_fini(&b->instance);
  free(b->w);
}

static int64_t axis_bound(const bench *b, int64_t limit, uint32_t n_threads,
                          psplit_i_budget *budget) {
  psplit_i_weight_axis axis;
  assert_int_equal(
    psplit_i_weight_axis_make(&b->instance, &b->automaton, limit, n_threads, budget, &axis),
    PSPLIT_OK);
  const int64_t bound = axis.bound;
  psplit_i_weight_axis_fini(&axis);
  return bound;
}

static int64_t cut_bound(const bench *b, int64_t limit, uint32_t n_threads,
                         psplit_i_budget *budget) {
  int64_t bound = 0;
  (void)n_threads;
  assert_int_equal(
    psplit_i_node_cut_bound(&b->instance, &b->automaton, limit, 1000, budget, &bound), PSPLIT_OK);
  return bound;
}

static int64_t share_bound(const bench *b, int64_t limit, uint32_t n_threads,
                           psplit_i_budget *budget) {
  int64_t bound = 0;
  psplit_partition_options options = b->options;
  options.n_threads = n_threads;
  assert_int_equal(psplit_i_communication_share_bound(&b->instance, &b->automaton, limit, &options,
                                                      budget, &bound),
                   PSPLIT_OK);
  return bound;
}

static int64_t chain_bound(const bench *b, int64_t limit, uint32_t n_threads,
                           psplit_i_budget *budget) {
  int64_t bound = 0;
  (void)n_threads;
  (void)limit;
  assert_int_equal(
    psplit_i_latency_chain_bound(&b->instance, &b->automaton, PSPLIT_NONE, budget, &bound),
    PSPLIT_OK);
  return bound;
}

static int64_t (*const kBounds[])(const bench *, int64_t, uint32_t, psplit_i_budget *) = {
  axis_bound, cut_bound, share_bound, chain_bound};

/* Cut short anywhere, a bound stays below what it is without a limit, on any number of threads, and
 * what it charges stays near what it was given. */
static void test_bounds_stop(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 400, 6);
  uint32_t n_large = 0;
  const int64_t limit = b.automaton.total_min_time / 5;
  for (size_t k = 0; k < sizeof kBounds / sizeof *kBounds; k++) {
    psplit_i_budget whole = psplit_i_budget_unlimited();
    const int64_t best = kBounds[k](&b, limit, 1, &whole);
    /* Passes over the graph that nothing stops. */
    const uint64_t passes = 50 * ((uint64_t)b.instance.n + b.instance.net_off[b.instance.n_nets]);
    print_message("# bound %zu: %llu operations, %llu of passes\n", k,
                  (unsigned long long)whole.spent, (unsigned long long)passes);
    assert_true(whole.spent > 0);
    n_large += whole.spent > passes;
    for (uint32_t part = 0; part <= 8; part += 4) {
      psplit_i_budget one = {.end = -1, .most = whole.spent / 8 * part}, two = one;
      const int64_t bound = kBounds[k](&b, limit, 1, &one);
      assert_true(bound <= best);
      assert_true(one.spent <= one.most + one.most / 5 + passes);
      assert_true(bound == kBounds[k](&b, limit, 3, &two));
      assert_true(one.spent == two.spent);
    }
  }
  assert_true(n_large > 0);
  close_bench(&b);
}

/* Tensors so dear that no stage is too long to be looked at: dividing one order is cubic then. With
 * no budget at all there is a split all the same, of fewer places to cut at. */
static void test_first_split_stops(void **state) {
  (void)state;
  static const uint32_t n_stages[] = {2, 64, 1024};
  for (size_t k = 0; k < sizeof n_stages / sizeof *n_stages; k++) {
    bench b;
    psplit_i_arena arena;
    psplit_i_assignment assignment;
    psplit_i_budget none = {.end = -1, .most = 0};
    const psplit_i_local_search_options options = {
      .seed = 1, .n_threads = 1, .n_rounds = 1, .n_steps = 4, .budget = &none};
    wide *w = make_wide(5000, n_stages[k], WIDTH);
    for (uint32_t e = 0; e < w->problem.n_nets; e++) w->cost[e] *= 100;
    open_bench_on(&b, w);
    psplit_i_arena_init(&arena, 0);
    assert_int_equal(psplit_i_assignment_init(&assignment, &b.instance, &arena), PSPLIT_OK);
    assignment.value = PSPLIT_I_INF;
    assert_int_equal(psplit_i_local_search(&b.instance, &b.automaton, &options, &assignment),
                     PSPLIT_OK);
    assert_true(assignment.value < PSPLIT_I_INF);
    print_message("# %u stages: %.3f s\n", n_stages[k],
                  (double)none.spent / PSPLIT_I_STEP_OPS / PSPLIT_I_STEPS_PER_SECOND);
    assert_true(none.spent < (uint64_t)PSPLIT_I_STEP_OPS * PSPLIT_I_STEPS_PER_SECOND / 2);
    psplit_i_arena_fini(&arena);
    close_bench(&b);
  }
}

/* A flow that was stopped is no larger than the maximum, and says so. */
static void test_flow_stops(void **state) {
  (void)state;
  int64_t values[2] = {0, 0};
  for (int cut = 0; cut < 2; cut++) {
    psplit_i_flow flow = {0};
    psplit_i_budget budget = {.end = -1, .most = cut ? 1500 : UINT64_MAX};
    for (uint32_t v = 0; v < 402; v++) assert_int_equal(psplit_i_flow_node(&flow), v);
    for (uint32_t v = 0; v < 400; v++)
      for (uint32_t k = 1; k <= 5; k++)
        assert_true(psplit_i_flow_arc_add(&flow, v,
                                          v + k * k % 11 + 1 < 401 ? v + k * k % 11 + 1 : 401,
                                          (int64_t)(psplit_i_splitmix64(v, k) % 50)));
    assert_true(psplit_i_flow_run(&flow, 0, 401, PSPLIT_I_INF, &budget, &values[cut]));
    psplit_i_flow_fini(&flow);
  }
  assert_true(values[0] > 0);
  assert_true(values[1] < values[0]);
}

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds_of(const wide *w, double limit, uint32_t n_threads, bool latency,
                         psplit_solution **out) {
  psplit_partition_options options;
  psplit_diag diag = {0};
  psplit_partition_options_init(&options);
  options.time_limit_s = limit;
  options.n_threads = n_threads;
  if (latency) options.objective = PSPLIT_LATENCY;
  const double start = cpu_seconds();
  assert_int_equal(psplit_partition_solve(&w->problem, &options, &diag, out), PSPLIT_OK);
  return cpu_seconds() - start;
}

/* Threads of this process. */
static uint32_t count_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  uint32_t n = 0;
  for (struct dirent *task; (task = readdir(tasks));) n += task->d_name[0] != '.';
  closedir(tasks);
  return n;
}

/* What is over before others would be awake stays on the caller's thread, unless more were asked
 * for. First of all tests: OpenMP keeps threads once it has made them. */
static void test_small_stays_alone(void **state) {
  (void)state;
  static const struct {
    uint32_t n, n_threads;
    bool alone;
  } cases[] = {{24, 0, true}, {3000, 0, false}};
  const uint32_t before = count_threads();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    wide *w = make_wide(cases[k].n, 2, 3);
    psplit_solution *solution;
    seconds_of(w, 0.2, cases[k].n_threads, false, &solution);
    psplit_solution_destroy(solution);
    free(w);
    assert_int_equal(count_threads() == before, cases[k].alone);
  }
  const psplit_i_budget fresh = psplit_i_budget_unlimited();
  assert_int_equal(psplit_i_budget_team(&fresh, 0, 0), 1);
  assert_int_equal(psplit_i_budget_team(&fresh, UINT64_MAX, 0), 4);
  assert_int_equal(psplit_i_budget_team(&fresh, 0, 3), 3);
}

/* The answer to a limit that strikes does not depend on threads. */
static void test_limit_is_deterministic(void **state) {
  (void)state;
  wide *w = make_wide(3000, 12, WIDTH);
  for (uint32_t k = 0; k < 3; k++) {
    static const double limits[] = {0, 0.02, 0.2};
    psplit_solution *one, *two;
    seconds_of(w, limits[k], 1, false, &one);
    seconds_of(w, limits[k], 3, false, &two);
    assert_true(one->objective_ns == two->objective_ns);
    assert_true(one->lower_bound_ns == two->lower_bound_ns);
    assert_memory_equal(one->stage, two->stage, 3000 * sizeof *one->stage);
    psplit_solution_destroy(one);
    psplit_solution_destroy(two);
  }
  free(w);
}

/* The search for a free placement takes all that it is given: the bound that is dearest, which was
 * asked behind it alone, was not asked at all. */
static void test_search_leaves_a_bound(void **state) {
  (void)state;
  bench b;
  open_bench_on(&b, make_wide(200, 4, 20));
  psplit_diag diag = {0};
  psplit_solution *solution;
  b.options.noncontiguous = b.options.limit_by_work = true;
  b.options.time_limit_s = 0.2;
  assert_int_equal(psplit_partition_solve(&b.w->problem, &b.options, &diag, &solution), PSPLIT_OK);
  psplit_i_budget whole = psplit_i_budget_unlimited();
  const int64_t bound = share_bound(&b, solution->objective_ns, 1, &whole);
  print_message("# value %lld, bound %lld, by shares %lld\n", (long long)solution->objective_ns,
                (long long)solution->lower_bound_ns, (long long)bound);
  assert_string_equal(solution->bound, "shares of communication");
  assert_true(solution->lower_bound_ns >= bound - bound / 200);
  psplit_solution_destroy(solution);
  close_bench(&b);
}

/* A limit by the clock is one of work, too. It was not, and a share of no limit is none: whatever
 * came first took all of the time. On a slow machine no share takes all of it either, but for one
 * of several side by side. */
static void test_clock_is_shared(void **state) {
  (void)state;
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  options.time_limit_s = 1000;
  const psplit_i_budget by_work = psplit_i_budget_of(&options);
  options.limit_by_work = false;
  const psplit_i_budget by_clock = psplit_i_budget_of(&options);
  assert_true(by_work.end < 0);
  assert_true(by_clock.most < by_work.most && by_clock.most > by_work.most / 2);
  const double now = psplit_i_now();
  static const struct {
    uint32_t n, rate;
    double least, most; /* seconds */
  } cases[] = {{1, 1, 950, 1000}, {2, 1, 950, 1000}, {8, 1, 125, 500}, {8, 4, 500, 1000}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const psplit_i_budget part = psplit_i_budget_rated(&by_clock, cases[k].n, cases[k].rate);
    assert_true(part.most == by_clock.most / cases[k].n * cases[k].rate);
    assert_true(part.end >= now + cases[k].least - 1 && part.end <= now + cases[k].most);
  }
  assert_true(psplit_i_budget_share(&by_clock, 8).end < now + 501);
  assert_true(psplit_i_budget_beside(&by_clock, 8).end == by_clock.end);
  assert_true(psplit_i_budget_beside(&by_clock, 8).most == by_clock.most / 8);
  assert_true(psplit_i_budget_share(&by_work, 8).end < 0);
}

/* Annealing of latency has its part of any limit, and cools within it. Starts took all of small
 * limits, and steps were charged ten times what they take: a chain that ends hot found nothing. */
static void test_annealing_cools(void **state) {
  (void)state;
  static const double kLimits[] = {0.25, 0.5, 1};
  wide *w = make_wide(400, 6, 10);
  psplit_solution *start;
  seconds_of(w, 0, 1, true, &start);
  for (size_t k = 0; k < sizeof kLimits / sizeof *kLimits; k++) {
    psplit_solution *solution;
    seconds_of(w, kLimits[k], 0, true, &solution);
    print_message("# limit %.2f: %lld instead of %lld, by %s\n", kLimits[k],
                  (long long)solution->objective_ns, (long long)start->objective_ns,
                  solution->solver);
    assert_string_equal(solution->solver, "anneal");
    psplit_solution_destroy(solution);
  }
  psplit_solution_destroy(start);
  free(w);
}

/* Work that is counted is work that is done: a twentieth of the limit takes a fraction of the
 * time. Sanitizers slow both alike. */
static void test_limit_binds(void **state) {
  (void)state;
  static const struct {
    uint32_t n, n_stages, width;
    bool latency;
  } cases[] = {{3000, 12, 60, false}, {3000, 8, 60, true}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    wide *w = make_wide(cases[k].n, cases[k].n_stages, cases[k].width);
    psplit_solution *none, *some;
    const double first = seconds_of(w, 0, 1, cases[k].latency, &none);
    const double more = seconds_of(w, 0.4, 1, cases[k].latency, &some);
    print_message("# %u nodes, %u stages: limit 0 %.2f s, limit 0.4 %.2f s\n", cases[k].n,
                  cases[k].n_stages, first, more);
    assert_true(some->objective_ns <= none->objective_ns);
    assert_true(more < first + 0.4 * 5);
    psplit_solution_destroy(none);
    psplit_solution_destroy(some);
    free(w);
  }
}

/* A chain without work, where no stage may be empty: all that counts is what is sent. Limits of a
 * division that begin at nothing rise all the same, and as high as messages take. */
static void test_no_work_is_divided(void **state) {
  (void)state;
  enum { NODES = 300, TENSOR = 1000, MESSAGE = 10000, MOST_OPS = 10 << 20 };
  const psplit_device device = {.count = 4};
  static int64_t time_ns[NODES], net_ns[NODES - 1];
  static uint32_t producer[NODES - 1], consumer[NODES - 1], off[NODES];
  for (uint32_t e = 0; e + 1 < NODES; e++) {
    producer[e] = e;
    consumer[e] = off[e + 1] = e + 1;
  }
  psplit_problem p =
    plain_problem(&device, NODES, time_ns, NODES - 1, producer, off, consumer, net_ns);
  p.comm = PSPLIT_COMM_SHARED;
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.solver = "slice";
  o.require_nonempty = true;
  o.n_threads = 1;
  o.limit_by_work = true;
  for (uint32_t k = 0; k < 2; k++) {
    uint64_t n_ops = 0;
    psplit_solution *s;
    for (uint32_t e = 0; e + 1 < NODES; e++) net_ns[e] = k ? 0 : TENSOR;
    p.message_ns = k ? (const int64_t[]){MESSAGE} : NULL;
    assert_int_equal(psplit_i_partition_solve(&p, &o, NULL, &n_ops, &s), PSPLIT_OK);
    print_message("# %s: %llu operations, by %s\n", k ? "messages" : "tensors",
                  (unsigned long long)n_ops, s->solver);
    assert_int_equal(s->objective_ns, 2 * (k ? MESSAGE : TENSOR)); /* in and out */
    assert_string_equal(s->solver, "search");
    assert_true(n_ops < MOST_OPS);
    psplit_solution_destroy(s);
  }
}

/* What an exact program took that ran out of work is the same, wherever its threads were then. */
static void test_stopped_programs_count_alike(void **state) {
  (void)state;
  bench b;
  open_bench_on(&b, make_wide(300, 6, 4));
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_assignment a;
  assert_int_equal(psplit_i_assignment_init(&a, &b.instance, &arena), PSPLIT_OK);
  const int64_t limit = b.automaton.total_min_time / 5;
  for (uint64_t most = 1000; most <= 1000000; most *= 10) {
    uint64_t alike = 0, spent = 0;
    for (uint32_t run = 0; run < 8; run++) {
      uint64_t steps = 0;
      psplit_i_budget budget = psplit_i_budget_unlimited();
      const psplit_i_exact_options options = {.limit = limit,
                                              .max_steps = most,
                                              .memory_bytes = 1 << 28,
                                              .n_threads = 1 + run % 4,
                                              .budget = &budget,
                                              .out_steps = &steps};
      psplit_i_verdict verdict;
      assert_int_equal(psplit_i_exact(&b.instance, &b.automaton, &(psplit_i_weight_axis){0},
                                      &options, &a, &verdict),
                       PSPLIT_OK);
      assert_int_equal(verdict, PSPLIT_I_UNKNOWN);
      if (run > 0 && (steps != alike || budget.spent != spent))
        fail_msg("of %llu steps %llu and %llu", (unsigned long long)most, (unsigned long long)alike,
                 (unsigned long long)steps);
      alike = steps;
      spent = budget.spent;
    }
  }
  psplit_i_arena_fini(&arena);
  close_bench(&b);
}

int main(void) {
  setenv("OMP_NUM_THREADS", "4", 1); /* before OpenMP looks: machines have one processor, too */
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_small_stays_alone),
    cmocka_unit_test(test_bounds_stop),
    cmocka_unit_test(test_first_split_stops),
    cmocka_unit_test(test_flow_stops),
    cmocka_unit_test(test_limit_is_deterministic),
    cmocka_unit_test(test_limit_binds),
    cmocka_unit_test(test_stopped_programs_count_alike),
    cmocka_unit_test(test_search_leaves_a_bound),
    cmocka_unit_test(test_clock_is_shared),
    cmocka_unit_test(test_annealing_cools),
    cmocka_unit_test(test_no_work_is_divided),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
