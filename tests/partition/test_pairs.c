/* Links that differ between pairs of devices: every transfer counts over the link between its two
 * stages, in the checker and in all that searches, bounds and proves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "all_splits.h"
#include "bed.h"
#include "device_merge.h"
#include "exact.h"

/* Two hosts of two devices: 10 within a host, 100 from one to the other. The second host pays
 * nothing for the way back. */
static const char kTwoHosts[] =
  "{\"format\": \"psplit-problem\", \"comm\": \"p2p\","
  " \"devices\": [{\"name\": \"a\", \"count\": 2}, {\"name\": \"b\", \"count\": 2}],"
  " \"link_classes\": [{\"latency_ns\": 10}, {\"latency_ns\": 100}, {}],"
  " \"device_links\": [[0, 1], [2, 0]],"
  " \"nodes\": [{\"time_ns\": 1}, {\"time_ns\": 2}, {\"time_ns\": 3}, {\"time_ns\": 4}],"
  " \"tensors\": [{\"producer\": 0, \"consumers\": [1, 2, 3]},"
  "              {\"producer\": 2, \"consumers\": [3], \"link_ns\": [7, 70, 700]}]}";

static void the_checker_counts_the_link_between_two_stages(void **state) {
  (void)state;
  psplit_problem *p = parsed_problem(kTwoHosts);
  static const uint32_t stage[] = {0, 1, 2, 3};
  static const int64_t recv[] = {0, 10, 100, 107}, send[] = {210, 0, 7, 0};
  psplit_solution *s;
  psplit_diag diag = {0};
  assert_int_equal(psplit_partition_check(p, NULL, stage, NULL, NULL, NULL, &diag, &s), PSPLIT_OK);
  for (uint32_t k = 0; k < 4; k++) {
    assert_int_equal(s->stages[k].recv_ns, recv[k]);
    assert_int_equal(s->stages[k].send_ns, send[k]);
  }
  psplit_solution_destroy(s);
  /* Stage 1 has the second device of the first entry: its links are no other's. */
  static const uint32_t swapped[] = {0, 1, 1, 1};
  assert_int_equal(psplit_partition_check(p, NULL, stage, NULL, swapped, NULL, &diag, &s),
                   PSPLIT_MISMATCH);
  psplit_problem_destroy(p);
}

static void refused(psplit_problem *p, psplit_code expected, const char *word) {
  psplit_solution *s;
  psplit_diag diag = {0};
  assert_int_equal(psplit_partition_solve(p, NULL, &diag, &s), expected);
  if (!strstr(diag.message, word)) fail_msg("\"%s\" does not say \"%s\"", diag.message, word);
}

static void what_links_between_pairs_do_not_go_with_is_refused(void **state) {
  (void)state;
  psplit_problem *p = parsed_problem(kTwoHosts);
  psplit_problem q = *p;
  q.any_device_order = true;
  refused(&q, PSPLIT_UNSUPPORTED, "in their order");
  q = *p;
  q.comm = PSPLIT_COMM_SHARED;
  refused(&q, PSPLIT_UNSUPPORTED, "point-to-point");
  static const uint32_t link[] = {0, 1, 3, 0};
  q = *p;
  q.device_link = link;
  refused(&q, PSPLIT_INVALID, "of class 3; there are 3");
  q.device_link = NULL;
  refused(&q, PSPLIT_USAGE, "device_link");
  int64_t times[6] = {0};
  times[5] = -1;
  q = *p;
  q.net_link_ns = times;
  refused(&q, PSPLIT_INVALID, "net 1: negative");
  times[5] = INT64_C(1) << 59;
  refused(&q, PSPLIT_LIMIT, "transfer times");
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.max_replicas = 2;
  psplit_solution *s;
  assert_int_equal(psplit_partition_solve(p, &o, NULL, &s), PSPLIT_UNSUPPORTED);
  psplit_problem_destroy(p);
}

/* One line each, which says where. */
static void bad_links_in_a_file_are_named(void **state) {
  (void)state;
  static const struct {
    const char *text, *word;
  } cases[] = {
    {"\"link_classes\": [{}]", "device_links: is missing"},
    {"\"link_classes\": [], \"device_links\": [[0]]", "link_classes: must not be empty"},
    {"\"device_links\": [[0]]", "link_classes: is missing"},
    {"\"link_classes\": [{}], \"device_links\": [[0, 0]]", "device_links[0]: must be"},
    {"\"link_classes\": [{}], \"device_links\": [[-1]]", "device_links[0][0]: must be"},
    {"\"link_classes\": [{\"latency_ns\": -1}], \"device_links\": [[0]]",
     "link_classes[0].latency_ns: must be"},
    {"\"link_classes\": [{}], \"device_links\": [[0]],"
     " \"tensors\": [{\"producer\": 0, \"consumers\": [0], \"link_ns\": [1, 2]}]",
     "tensors[0].link_ns: must be"},
    {"\"tensors\": [{\"producer\": 0, \"consumers\": [0], \"link_ns\": 1}]",
     "tensors[0].link_ns: is of links"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    psplit_diag diag = {0};
    psplit_problem *p = NULL;
    snprintf(
      text, sizeof text,
      "{\"format\": \"psplit-problem\", \"devices\": [{}], \"nodes\": [{\"time_ns\": 1}], %s}",
      cases[i].text);
    assert_int_equal(psplit_problem_parse_json(text, strlen(text), "test", &diag, &p),
                     PSPLIT_INVALID);
    if (!strstr(diag.message, cases[i].word)) fail_msg("%s: %s", cases[i].text, diag.message);
  }
}

/* --- twelve nodes on four stages, by enumeration that shares nothing with the checker --- */

enum { N_NODES = 12, N_STAGES = 4 };

typedef struct judged_by {
  bool latency, nonempty;
  uint32_t entry[N_STAGES]; /* devices */
} judged_by;

static int64_t judge(const psplit_problem *p, const uint32_t *stage, const void *with) {
  const judged_by *by = with;
  int64_t load[N_STAGES] = {0}, ready[N_STAGES] = {0}, value = 0;
  bool arc[N_STAGES][N_STAGES] = {{false}};
  uint32_t used = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    load[stage[v]] += p->time_ns[v];
    if (!(p->node_flags[v] & PSPLIT_NODE_AUXILIARY)) used |= UINT32_C(1) << stage[v];
  }
  if (by->nonempty && used != (UINT32_C(1) << N_STAGES) - 1) return INT64_MAX;
  for (uint32_t n = 0; n < p->n_nets; n++) {
    const uint32_t from = stage[p->net_producer[n]];
    uint32_t met = UINT32_C(1) << from;
    for (uint32_t k = p->net_off[n]; k < p->net_off[n + 1]; k++) {
      const uint32_t to = stage[p->net_consumer[k]];
      if (met >> to & 1) continue;
      met |= UINT32_C(1) << to;
      arc[from][to] = true;
      const uint32_t link = p->device_link[by->entry[from] * p->n_devices + by->entry[to]];
      load[from] += p->net_link_ns[n * p->n_link_classes + link];
      load[to] += p->net_link_ns[n * p->n_link_classes + link];
    }
  }
  for (uint32_t s = 0; s < N_STAGES; s++) {
    const int64_t end = load[s] + (by->latency ? ready[s] : 0);
    if (end > value) value = end;
    for (uint32_t to = s + 1; to < N_STAGES; to++)
      if (arc[s][to] && end > ready[to]) ready[to] = end;
  }
  return value;
}

static int64_t best_of(const psplit_problem *p, const psplit_partition_options *o) {
  judged_by by = {.latency = o->objective == PSPLIT_LATENCY, .nonempty = o->require_nonempty};
  for (uint32_t d = 0, s = 0; d < p->n_devices; d++)
    for (uint32_t k = 0; k < p->devices[d].count; k++) by.entry[s++] = d;
  return least_of_all_splits(p, N_STAGES, judge, &by);
}

/* Whether the solver finds the best; its bound never is above. */
static bool finds_best(const psplit_problem *p, psplit_partition_options o, const char *solver,
                       int64_t best, const char *what) {
  psplit_diag diag = {0};
  psplit_solution *s;
  o.solver = solver;
  o.n_threads = 1;
  if (psplit_partition_solve(p, &o, &diag, &s) != PSPLIT_OK) fail_msg("%s: %s", what, diag.message);
  if (s->lower_bound_ns > best || s->objective_ns < best)
    fail_msg("%s, %s: bound %lld (%s) <= optimum %lld <= value %lld does not hold", what, solver,
             (long long)s->lower_bound_ns, s->bound, (long long)best, (long long)s->objective_ns);
  const bool found = s->objective_ns == best;
  psplit_solution_destroy(s);
  return found;
}

static void every_solver_values_the_links_it_uses(void **state) {
  (void)state;
  static random_problem r;
  uint32_t n_cases = 0, n_differ = 0, n_found[3] = {0};
  for (uint32_t seed = 0; seed < 8; seed++)
    for (shape kind = CHAIN; kind < LAYERED; kind++) {
      make_random_problem(&r, 7000 + seed, kind, N_NODES, N_STAGES, WITH_PAIRS);
      psplit_partition_options o;
      psplit_partition_options_init(&o);
      o.objective = seed % 4 == 3 ? PSPLIT_LATENCY : PSPLIT_THROUGHPUT;
      o.require_nonempty = seed % 2;
      o.time_limit_s = 0.5;
      char what[64];
      snprintf(what, sizeof what, "seed %u, shape %d", seed, (int)kind);
      const int64_t best = best_of(&r.problem, &o);
      if (best == INT64_MAX) continue;
      n_cases++;
      n_differ += r.problem.n_link_classes > 1;
      if (!finds_best(&r.problem, o, "auto", best, what)) fail_msg("%s: not the best", what);
      n_found[0] += finds_best(&r.problem, o, "search", best, what);
      n_found[1] += finds_best(&r.problem, o, "anneal", best, what);
      n_found[2] += finds_best(&r.problem, o, "slice", best, what);
    }
  print_message(
    "# of %u optima, %u over links that differ, search finds %u, annealing %u, "
    "slicing %u\n",
    n_cases, n_differ, n_found[0], n_found[1], n_found[2]);
  assert_true(n_differ > n_cases / 2 && n_found[0] > n_cases * 3 / 4);
}

/* The exact program alone: never NO at the best value; below it, mostly NO, since it counts the
 * links that tensors take. Sending once for the least, it says NO less often. */
static bool says_no(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                    psplit_i_arena *arena, int64_t limit, bool send_once, const char *what) {
  psplit_i_weight_axis no_windows = {0};
  psplit_i_assignment split;
  psplit_i_verdict verdict;
  const psplit_i_exact_options options = {.limit = limit,
                                          .send_once = send_once,
                                          .max_steps = UINT64_MAX,
                                          .memory_bytes = 1 << 30,
                                          .n_threads = 1};
  assert_int_equal(psplit_i_assignment_init(&split, instance, arena), PSPLIT_OK);
  assert_int_equal(psplit_i_exact(instance, automaton, &no_windows, &options, &split, &verdict),
                   PSPLIT_OK);
  if (verdict == PSPLIT_I_UNKNOWN) fail_msg("%s: the exact program does not decide", what);
  return verdict == PSPLIT_I_NO;
}

static void the_exact_program_counts_the_links_that_are_used(void **state) {
  (void)state;
  static random_problem r;
  uint32_t n_cases = 0, n_no = 0, n_no_once = 0;
  for (uint32_t seed = 0; seed < 60; seed++)
    for (shape kind = CHAIN; kind < LAYERED; kind++) {
      make_random_problem(&r, 9000 + seed, kind, 8, N_STAGES, WITH_PAIRS);
      psplit_partition_options o;
      psplit_partition_options_init(&o);
      o.require_nonempty = true;
      const int64_t best = best_of(&r.problem, &o);
      if (best == INT64_MAX || best == 0) continue;
      char what[64];
      snprintf(what, sizeof what, "seed %u, shape %d", seed, (int)kind);
      psplit_problem merged;
      psplit_i_instance instance;
      psplit_i_automaton automaton;
      psplit_i_arena arena;
      uint32_t entry[MAX_DEVICES];
      psplit_i_arena_init(&arena, 0);
      assert_int_equal(psplit_i_devices_merge(&r.problem, &o, &arena, &merged, entry), PSPLIT_OK);
      assert_int_equal(psplit_i_instance_init(&instance, &merged, NULL, NULL), PSPLIT_OK);
      assert_int_equal(psplit_i_automaton_init(&automaton, &instance, &o, NULL), PSPLIT_OK);
      for (int once = 0; once < 2; once++)
        if (says_no(&instance, &automaton, &arena, best, once, what))
          fail_msg("%s: NO at the optimum %lld, once %d", what, (long long)best, once);
      if (instance.link) {
        n_cases++;
        n_no += says_no(&instance, &automaton, &arena, best - 1, false, what);
        n_no_once += says_no(&instance, &automaton, &arena, best - 1, true, what);
      }
      psplit_i_automaton_fini(&automaton);
      psplit_i_instance_fini(&instance);
      psplit_i_arena_fini(&arena);
    }
  print_message(
    "# of %u optima over links that differ the exact program proves %u, sending once %u\n", n_cases,
    n_no, n_no_once);
  assert_true(n_cases > 50 && n_no > n_cases * 19 / 20 && n_no_once < n_cases * 3 / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_checker_counts_the_link_between_two_stages),
    cmocka_unit_test(what_links_between_pairs_do_not_go_with_is_refused),
    cmocka_unit_test(every_solver_values_the_links_it_uses),
    cmocka_unit_test(the_exact_program_counts_the_links_that_are_used),
    cmocka_unit_test(bad_links_in_a_file_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
