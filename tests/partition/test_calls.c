/* Why: the latency of calls has programs of its own for values, placements and bounds, and the
 * checker another one; small problems are held against all placements, valued by the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/partition.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "draws.h"

enum { MOST = 7, MOST_NETS = 16, MOST_DEVICES = 4, ROUNDS = 100, ROWS = 200, CLASSES = 3 };

static struct {
  int64_t time_ns[MOST * CLASSES], send_ns[MOST_NETS * CLASSES], recv_ns[MOST_NETS * CLASSES];
  uint32_t producer[MOST_NETS], off[MOST_NETS + 1], consumer[4 * MOST_NETS], together[MOST];
  uint32_t from[2], to[2];
  uint64_t weight_bytes[MOST];
  psplit_device device[3];
  psplit_problem problem;
} r;

/* Classes 0 and 1 are accelerators, 2 the CPU, which is slower. */
static void make(uint64_t seed) {
  memset(&r, 0, sizeof r);
  draw_state = seed;
  const uint32_t n = 2 + draw(MOST - 1), dear = 1 + draw(30);
  uint32_t n_nets = 0, n_pins = 0;
  for (uint32_t v = 0; v < n; v++) {
    r.time_ns[v * CLASSES] = draw(20);
    r.time_ns[v * CLASSES + 1] = draw(8) ? draw(30) : PSPLIT_TIME_FORBIDDEN;
    r.time_ns[v * CLASSES + 2] = draw(60);
    r.weight_bytes[v] = draw(10);
    r.together[v] = draw(3) ? PSPLIT_NONE : 7 + draw(2);
  }
  for (uint32_t v = 0; v + 1 < n; v++) {
    const uint32_t begin = n_pins;
    for (uint32_t to = v + 1; to < n; to++)
      if (draw(3) == 0) r.consumer[n_pins++] = to;
    if (n_pins == begin) continue;
    r.producer[n_nets] = v;
    for (uint32_t c = 0; c < CLASSES; c++) {
      r.send_ns[n_nets * CLASSES + c] = draw(dear);
      r.recv_ns[n_nets * CLASSES + c] = draw(dear);
    }
    r.off[++n_nets] = n_pins;
  }
  r.to[0] = n - 1;
  r.device[0] = (psplit_device){.count = 1 + draw(2), .class_id = 0};
  r.device[1] = (psplit_device){.count = draw(2), .class_id = 1};
  r.device[2] = (psplit_device){.count = draw(4) > 0, .class_id = 2, .free_comm = true};
  if (draw(2)) r.device[0].memory_bytes = 5 + draw(30);
  r.problem = (psplit_problem){.n_nodes = n,
                               .n_classes = CLASSES,
                               .time_ns = r.time_ns,
                               .weight_bytes = r.weight_bytes,
                               .together = r.together,
                               .n_nets = n_nets,
                               .net_producer = r.producer,
                               .net_off = r.off,
                               .net_consumer = r.consumer,
                               .net_send_ns = r.send_ns,
                               .net_recv_ns = r.recv_ns,
                               .n_order = draw(2),
                               .order_from = r.from,
                               .order_to = r.to,
                               .n_devices = 3,
                               .devices = r.device,
                               .comm = draw(2) ? PSPLIT_COMM_P2P : PSPLIT_COMM_SHARED,
                               .any_device_order = true,
                               .ticks_per_unit = 1};
  if (draw(4) == 0) r.device[2].memory_bytes = 5 + draw(30);
}

static uint32_t n_devices, entry_of[MOST_DEVICES], on[MOST];

static bool is_cpu(uint32_t device) { return entry_of[device] == 2; }

static bool reads(uint32_t e, uint32_t v) {
  for (uint32_t k = r.off[e]; k < r.off[e + 1]; k++)
    if (r.consumer[k] == v) return true;
  return false;
}

/* What an accelerator computes, receives and sends. */
static int64_t load_of(uint32_t device) {
  const uint32_t class_id = r.device[entry_of[device]].class_id;
  int64_t sum = 0;
  for (uint32_t v = 0; v < r.problem.n_nodes; v++)
    if (on[v] == device) sum += r.time_ns[v * CLASSES + class_id];
  for (uint32_t e = 0; e < r.problem.n_nets; e++) {
    bool reader[MOST_DEVICES] = {false};
    int64_t n = 0;
    for (uint32_t v = 0; v < r.problem.n_nodes; v++)
      if (reads(e, v)) reader[on[v]] = true;
    for (uint32_t d = 0; d < n_devices; d++) n += reader[d] && d != on[r.producer[e]];
    if (on[r.producer[e]] == device && n > 0)
      sum += r.send_ns[e * CLASSES + class_id] * (r.problem.comm == PSPLIT_COMM_P2P ? n : 1);
    if (on[r.producer[e]] != device && reader[device]) sum += r.recv_ns[e * CLASSES + class_id];
  }
  return sum;
}

static bool leads(uint32_t u, uint32_t v) {
  for (uint32_t k = 0; k < r.problem.n_order; k++)
    if (r.from[k] == u && r.to[k] == v) return true;
  for (uint32_t e = 0; e < r.problem.n_nets; e++)
    if (r.producer[e] == u && reads(e, v)) return true;
  return false;
}

static bool busy[MOST], failed;

/* When node v has ended, by the definition: an accelerator waits for all that its nodes read. */
static int64_t end_of(uint32_t v) {
  const uint32_t device = on[v];
  int64_t start = 0;
  if (busy[v] || failed) {
    failed = true;
    return 0;
  }
  for (uint32_t w = 0; w < r.problem.n_nodes; w++)
    busy[w] |= w == v || (!is_cpu(device) && on[w] == device);
  for (uint32_t w = 0; w < r.problem.n_nodes; w++) {
    if (w != v && (is_cpu(device) || on[w] != device)) continue;
    for (uint32_t u = 0; u < r.problem.n_nodes; u++) {
      if (!leads(u, w) || (!is_cpu(device) && on[u] == device)) continue;
      const int64_t end = end_of(u);
      if (end > start) start = end;
    }
  }
  for (uint32_t w = 0; w < r.problem.n_nodes; w++)
    if (w == v || (!is_cpu(device) && on[w] == device)) busy[w] = false;
  return start + (is_cpu(device) ? r.time_ns[v * CLASSES + 2] : load_of(device));
}

/* INT64_MAX: not allowed. */
static int64_t latency_of_placement(void) {
  int64_t last = 0;
  uint64_t bytes[MOST_DEVICES] = {0};
  for (uint32_t v = 0; v < r.problem.n_nodes; v++) {
    if (r.time_ns[v * CLASSES + r.device[entry_of[on[v]]].class_id] == PSPLIT_TIME_FORBIDDEN)
      return INT64_MAX;
    bytes[on[v]] += r.weight_bytes[v];
    for (uint32_t u = 0; u < v; u++)
      if (r.together[v] != PSPLIT_NONE && r.together[u] == r.together[v] && on[u] != on[v])
        return INT64_MAX;
  }
  for (uint32_t d = 0; d < n_devices; d++)
    if (r.device[entry_of[d]].memory_bytes && bytes[d] > r.device[entry_of[d]].memory_bytes)
      return INT64_MAX;
  failed = false;
  memset(busy, 0, sizeof busy);
  for (uint32_t v = 0; v < r.problem.n_nodes && !failed; v++) {
    const int64_t end = end_of(v);
    if (end > last) last = end;
  }
  return failed ? INT64_MAX : last;
}

static void list_devices(void) {
  n_devices = 0;
  for (uint32_t d = 0; d < 3; d++)
    for (uint32_t k = 0; k < r.device[d].count; k++) entry_of[n_devices++] = d;
}

/* The checker says the same of this placement. */
static void check_placement(const psplit_partition_options *options, int64_t value) {
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  const psplit_code code =
    psplit_partition_check(&r.problem, options, on, NULL, NULL, NULL, &diag, &s);
  if (value == INT64_MAX) {
    assert_int_equal(code, PSPLIT_MISMATCH);
  } else {
    assert_int_equal(code, PSPLIT_OK);
    assert_int_equal(s->objective_ns, value);
  }
  psplit_solution_destroy(s);
}

static int64_t best_of_all(const psplit_partition_options *options) {
  int64_t best = INT64_MAX;
  uint32_t n_all = 1;
  list_devices();
  for (uint32_t v = 0; v < r.problem.n_nodes; v++) n_all *= n_devices;
  for (uint32_t i = 0; i < n_all; i++) {
    for (uint32_t v = 0, rest = i; v < r.problem.n_nodes; v++, rest /= n_devices)
      on[v] = rest % n_devices;
    const int64_t value = latency_of_placement();
    if (i % 37 == 0) check_placement(options, value);
    if (value < best) best = value;
  }
  return best;
}

static psplit_code solve(const char *solver, psplit_solution **out_s) {
  psplit_partition_options options;
  psplit_diag diag = {0};
  psplit_partition_options_init(&options);
  options.objective = PSPLIT_CALL_LATENCY;
  options.solver = solver;
  options.time_limit_s = 0.1;
  const psplit_code code = psplit_partition_solve(&r.problem, &options, &diag, out_s);
  if (code != PSPLIT_OK && code != PSPLIT_INFEASIBLE) fail_msg("%s", diag.message);
  return code;
}

/* Of the placement that was found, by the definition. */
static int64_t value_of(const psplit_solution *s) {
  memcpy(on, s->stage, r.problem.n_nodes * sizeof *on);
  return latency_of_placement();
}

static void small_problems_are_placed_best(void **unused) {
  (void)unused;
  uint32_t n_feasible = 0, n_found = 0, n_bound = 0;
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  options.objective = PSPLIT_CALL_LATENCY;
  for (uint64_t seed = 0; seed < ROUNDS; seed++) {
    make(seed);
    const int64_t best = best_of_all(&options);
    psplit_solution *s = NULL, *annealed = NULL;
    if (best == INT64_MAX) {
      assert_int_equal(solve("auto", &s), PSPLIT_INFEASIBLE);
      continue;
    }
    n_feasible++;
    assert_int_equal(solve("auto", &s), PSPLIT_OK);
    if (s->objective_ns != best || !s->proved_optimal)
      fail_msg("seed %d: value %d, best %d", (int)seed, (int)s->objective_ns, (int)best);
    assert_int_equal(value_of(s), best);
    if (solve("anneal", &annealed) == PSPLIT_OK) {
      if (annealed->objective_ns < best || annealed->lower_bound_ns > best)
        fail_msg("seed %d: value %d, bound %d, best %d", (int)seed, (int)annealed->objective_ns,
                 (int)annealed->lower_bound_ns, (int)best);
      n_found += annealed->objective_ns == best;
      n_bound += annealed->lower_bound_ns == best;
    }
    psplit_solution_destroy(s);
    psplit_solution_destroy(annealed);
  }
  print_message("# %u problems, %u annealed to the best, %u bounds met\n", n_feasible, n_found,
                n_bound);
  assert_true(n_feasible > ROUNDS * 2 / 3);
  assert_true(n_found > n_feasible * 9 / 10);
  assert_true(n_bound > n_feasible / 10);
}

/* Random blocks in a row of up to 6 nodes: separators read by all of the block behind, which the
 * next one reads; some nets jump, and some nodes take no time on CPUs. */
static void make_rows(uint64_t seed) {
  make(seed);
  const uint32_t n = 4 + draw(3), dear = 1 + draw(30);
  uint32_t n_pins = 0;
  bool separator[MOST + 1] = {false};
  for (uint32_t v = 0; v <= n; v++) separator[v] = v + 1 >= n || draw(3) == 0;
  for (uint32_t v = 0; v < n; v++) {
    uint32_t next = v + 1;
    while (next < n && !separator[next]) next++;
    if (next < n && draw(6) == 0) next += draw(n - next);
    for (uint32_t to = v + 1; to < n && to <= next; to++)
      if (to == next || separator[to] || separator[v] || draw(3) == 0) r.consumer[n_pins++] = to;
    r.producer[v] = v;
    r.off[v + 1] = n_pins;
    for (uint32_t c = 0; c < CLASSES; c++) {
      r.send_ns[v * CLASSES + c] = draw(dear);
      r.recv_ns[v * CLASSES + c] = draw(dear);
    }
    if (draw(3) == 0) r.time_ns[v * CLASSES + 2] = 0;
  }
  r.problem.n_nodes = n;
  r.problem.n_nets = n;
  r.problem.n_order = 0;
}

/* What no placement takes less than; `limit` if none takes less than that. *out_value: of a
 * placement that was found on the way, which takes that; or the limit. */
static int64_t bound_of_rows(int64_t limit, int64_t *out_value) {
  psplit_i_calls calls;
  psplit_i_calls_closure closure;
  psplit_i_calls_scratch scratch;
  psplit_i_arena arena;
  psplit_i_budget budget = psplit_i_budget_unlimited();
  int64_t bound = 0, sum;
  uint32_t device[MOST];
  psplit_i_calls_placed best = {limit, device};
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_calls_init(&calls, &r.problem, true, NULL), PSPLIT_OK);
  assert_int_equal(psplit_i_calls_closure_init(&closure, &calls, &arena), PSPLIT_OK);
  assert_int_equal(psplit_i_calls_scratch_init(&scratch, &calls, &arena), PSPLIT_OK);
  assert_int_equal(psplit_i_calls_blocks(&calls, &closure, NULL, &budget, &bound, &best),
                   PSPLIT_OK);
  if (best.value < limit)
    assert_int_equal(psplit_i_calls_latency(&calls, &scratch, device, &sum), best.value);
  *out_value = best.value;
  psplit_i_calls_fini(&calls);
  psplit_i_arena_fini(&arena);
  return bound;
}

/* Times so large that bounds do not tell all of them apart, and that differ by little. */
static void grow_times(void) {
  for (size_t i = 0; i < sizeof r.time_ns / sizeof *r.time_ns; i++)
    if (r.time_ns[i] != PSPLIT_TIME_FORBIDDEN) r.time_ns[i] = r.time_ns[i] * 1000 + draw(3);
  for (size_t i = 0; i < sizeof r.send_ns / sizeof *r.send_ns; i++) {
    r.send_ns[i] = r.send_ns[i] * 1000 + draw(3);
    r.recv_ns[i] = r.recv_ns[i] * 1000 + draw(3);
  }
}

static void no_placement_is_below_the_bound_of_blocks(void **unused) {
  (void)unused;
  uint32_t n_feasible = 0, n_met = 0, n_found = 0;
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  options.objective = PSPLIT_CALL_LATENCY;
  for (uint64_t seed = 0; seed < 3 * ROWS; seed++) {
    const bool in_rows = seed < 2 * ROWS;
    if (in_rows)
      make_rows(seed);
    else
      make(seed);
    if (seed % 2) grow_times();
    const int64_t best = best_of_all(&options);
    if (best == INT64_MAX) continue;
    const int64_t limits[] = {PSPLIT_I_INF, best + best / 3 + 1, best + 1, best};
    for (uint32_t i = 0; i < 4; i++) {
      int64_t value;
      const int64_t bound = bound_of_rows(limits[i], &value);
      if (bound > best || value < best)
        fail_msg("seed %d, limit %lld: bound %lld, best %lld, found %lld", (int)seed,
                 (long long)limits[i], (long long)bound, (long long)best, (long long)value);
      n_met += in_rows && i == 1 && bound >= best - best / 1000;
      n_found += in_rows && i == 1 && value == best;
    }
    n_feasible += in_rows;
  }
  print_message("# %u problems in rows, %u bounds met, %u of the best found\n", n_feasible, n_met,
                n_found);
  assert_true(n_feasible > ROWS * 4 / 3);
  assert_true(n_met > n_feasible / 2);
  assert_true(n_found > n_feasible / 2);
}

static void the_same_for_any_number_of_threads(void **unused) {
  (void)unused;
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  options.objective = PSPLIT_CALL_LATENCY;
  options.time_limit_s = 0.05;
  make(11);
  psplit_solution *s[2] = {NULL};
  psplit_diag diag = {0};
  for (uint32_t i = 0; i < 2; i++) {
    options.n_threads = 1 + 3 * i;
    assert_int_equal(psplit_partition_solve(&r.problem, &options, &diag, &s[i]), PSPLIT_OK);
  }
  assert_memory_equal(s[0]->stage, s[1]->stage, r.problem.n_nodes * sizeof *s[0]->stage);
  psplit_solution_destroy(s[0]);
  psplit_solution_destroy(s[1]);
}

static void what_has_no_meaning_is_refused(void **unused) {
  (void)unused;
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  options.objective = PSPLIT_CALL_LATENCY;
  make(3);
  psplit_solution *s = NULL;
  psplit_diag diag = {0};
  r.problem.overlap = true;
  assert_int_equal(psplit_partition_solve(&r.problem, &options, &diag, &s), PSPLIT_UNSUPPORTED);
  r.problem.overlap = false;
  options.chunks = 2;
  assert_int_equal(psplit_partition_solve(&r.problem, &options, &diag, &s), PSPLIT_UNSUPPORTED);
  options.chunks = 1;
  diag = (psplit_diag){0};
  r.device[2].count = 1;
  r.device[1] = (psplit_device){.count = 1, .class_id = 1, .free_comm = true};
  assert_int_equal(psplit_partition_solve(&r.problem, &options, &diag, &s), PSPLIT_UNSUPPORTED);
  assert_string_equal(diag.message,
                      "call latency supports one kind of CPU; the problem has several");
  diag = (psplit_diag){0};
  r.device[1].free_comm = false;
  r.device[2] = (psplit_device){.count = 2, .class_id = 2, .free_comm = true, .memory_bytes = 1000};
  assert_int_equal(psplit_partition_solve(&r.problem, &options, &diag, &s), PSPLIT_UNSUPPORTED);
  assert_string_equal(
    diag.message,
    "call latency treats all CPUs as one, so a memory limit requires a single CPU; "
    "the problem has 2");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(small_problems_are_placed_best),
    cmocka_unit_test(no_placement_is_below_the_bound_of_blocks),
    cmocka_unit_test(the_same_for_any_number_of_threads),
    cmocka_unit_test(what_has_no_meaning_is_refused),
  };
  return cmocka_run_group_tests_name("partition-calls", tests, NULL, NULL);
}
