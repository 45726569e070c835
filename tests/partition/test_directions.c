/* Why: fill-drain's objective has a program and bounds of its own, and the checker another account
 * of it; small problems are held against all splits, valued by the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "bed.h"
#include "reductions.h"
#include "two_limits.h"
#include "weigh.h"

enum { ROUNDS = 4800, BARE_ROUNDS = 600 };

static const unsigned kFeatures[] = {
  WITH_TWINS,
  WITH_TWINS | WITH_CLASSES,
  WITH_TWINS | WITH_FREE_COMM,
  WITH_TWINS | WITH_MEMORY | WITH_STASH,
  WITH_TWINS | WITH_PINS | WITH_TOGETHER,
  WITH_TWINS | WITH_CLASSES | WITH_ALIKE | WITH_MEMORY,
  WITH_TWINS | WITH_CLASSES | WITH_PINS | WITH_STASH | WITH_MEMORY,
  WITH_TWINS | WITH_CLASSES | WITH_FREE_COMM | WITH_TOGETHER,
};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures };

static random_problem r;
static psplit_partition_options options;
static uint32_t n_stages, stage[MAX_NODES], entry[MAX_DEVICES];
static int64_t least;

static bool is_backward(uint32_t v) { return r.node_flags[v] & PSPLIT_NODE_BACKWARD; }

static bool has_twin(uint32_t v) {
  for (uint32_t u = 0; u < r.problem.n_nodes; u++)
    if (!is_backward(u) &&
        (u == v || (r.together[u] != PSPLIT_NONE && r.together[u] == r.together[v])))
      return true;
  return false;
}

/* Whether the stages of two nodes obey an edge. */
static bool obeys(uint32_t u, uint32_t v) {
  if (is_backward(u) != is_backward(v)) return true;
  if (!is_backward(u)) return stage[u] <= stage[v];
  return (has_twin(u) && has_twin(v)) || stage[u] >= stage[v];
}

static bool is_allowed(void) {
  const psplit_problem *p = &r.problem;
  bool counts[MAX_DEVICES] = {false};
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    if (p->pin && p->pin[v] != PSPLIT_NONE && p->pin[v] != stage[v]) return false;
    counts[stage[v]] |= !(r.node_flags[v] & PSPLIT_NODE_AUXILIARY);
  }
  for (uint32_t s = 0; options.require_nonempty && s < n_stages; s++)
    if (!counts[s]) return false;
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t k = r.off[e]; k < r.off[e + 1]; k++) {
      if (!obeys(r.producer[e], r.consumer[k])) return false;
      if ((r.net_flags[e] & PSPLIT_NET_UNCUTTABLE) && stage[r.producer[e]] != stage[r.consumer[k]])
        return false;
    }
  for (uint32_t k = 0; k < p->n_order; k++)
    if (!obeys(r.order_from[k], r.order_to[k])) return false;
  return true;
}

static uint64_t bytes_of(uint32_t s) {
  const psplit_problem *p = &r.problem;
  uint64_t bytes = 0;
  for (uint32_t v = 0; p->weight_bytes && v < p->n_nodes; v++)
    if (stage[v] == s)
      bytes += r.weight_bytes[v] + r.activation_bytes[v] * (p->stash_1f1b ? n_stages - s : 1);
  for (uint32_t g = 0; g < p->n_weights; g++) {
    bool used = false;
    for (uint32_t k = r.weight_off[g]; k < r.weight_off[g + 1]; k++)
      used |= stage[r.weight_user[k]] == s;
    bytes += used ? r.group_bytes[g] : 0;
  }
  return bytes;
}

/* The largest forward and the largest backward load of these stages on these devices, added up;
 * INT64_MAX: they do not run there. */
static int64_t value_of(void) {
  const psplit_problem *p = &r.problem;
  int64_t load[2][MAX_DEVICES] = {{0}}, most[2] = {0};
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const uint32_t class_id = r.devices[entry[stage[v]]].class_id;
    const int64_t ns = r.time_ns[v * p->n_classes + class_id];
    if (ns == PSPLIT_TIME_FORBIDDEN) return INT64_MAX;
    load[is_backward(v)][stage[v]] += ns;
  }
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t home = stage[r.producer[e]];
    int64_t n = 0;
    for (uint32_t s = 0; s < n_stages; s++) {
      bool reads = false;
      for (uint32_t k = r.off[e]; k < r.off[e + 1]; k++) reads |= stage[r.consumer[k]] == s;
      if (!reads || s == home) continue;
      n++;
      if (!r.devices[entry[s]].free_comm)
        load[is_backward(r.producer[e])][s] +=
          r.recv_ns[e * p->n_classes + r.devices[entry[s]].class_id];
    }
    if (!r.devices[entry[home]].free_comm && n > 0)
      load[is_backward(r.producer[e])][home] +=
        (p->comm == PSPLIT_COMM_P2P ? n : 1) *
        r.send_ns[e * p->n_classes + r.devices[entry[home]].class_id];
  }
  for (uint32_t s = 0; s < n_stages; s++) {
    const uint64_t memory = r.devices[entry[s]].memory_bytes;
    if (memory && bytes_of(s) > memory) return INT64_MAX;
    for (int back = 0; back < 2; back++)
      if (load[back][s] > most[back]) most[back] = load[back][s];
  }
  return most[0] + most[1];
}

static bool holds_any(uint32_t s) {
  for (uint32_t v = 0; v < r.problem.n_nodes; v++)
    if (stage[v] == s) return true;
  return false;
}

/* Of stage s and those behind it: its own device, or in any order every one that is left. */
static void choose_devices(uint32_t s, uint32_t *used) {
  if (s == n_stages) {
    const int64_t value = value_of();
    if (value < least) least = value;
    return;
  }
  if (!holds_any(s)) {
    entry[s] = 0;
    choose_devices(s + 1, used);
    return;
  }
  for (uint32_t d = 0, end = 0; d < r.problem.n_devices; d++) {
    const uint32_t begin = end;
    end += r.devices[d].count;
    if (!r.problem.any_device_order && (s < begin || s >= end)) continue;
    if (used[d] == r.devices[d].count) continue;
    used[d]++;
    entry[s] = d;
    choose_devices(s + 1, used);
    used[d]--;
  }
}

static void choose_stages(uint32_t v) {
  uint32_t used[MAX_DEVICES] = {0};
  if (v == r.problem.n_nodes) {
    if (is_allowed()) choose_devices(0, used);
    return;
  }
  uint32_t u = 0;
  while (u < v && (r.together[v] == PSPLIT_NONE || r.together[u] != r.together[v])) u++;
  for (uint32_t s = u < v ? stage[u] : 0; s < (u < v ? stage[u] + 1 : n_stages); s++) {
    stage[v] = s;
    choose_stages(v + 1);
  }
}

/* The best of all splits; INT64_MAX: there is none. */
static int64_t best_of_all(void) {
  least = INT64_MAX;
  choose_stages(0);
  return least;
}

static void make(uint32_t seed) {
  const unsigned features = kFeatures[seed % N_FEATURES];
  make_random_problem(&r, seed, (shape)(seed / N_FEATURES % N_SHAPES), 2 + seed % 3,
                      2 + seed / 7 % 2, features);
  n_stages = psplit_problem_n_stages(&r.problem);
  psplit_partition_options_init(&options);
  options.objective = PSPLIT_FILL_DRAIN;
  options.n_threads = 1;
  options.require_nonempty = seed % 5 == 0;
}

/* NULL: there is no split. */
static psplit_solution *solve(const char *solver) {
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  options.solver = solver;
  const psplit_code code = psplit_partition_solve(&r.problem, &options, &diag, &s);
  if (code != PSPLIT_OK && code != PSPLIT_INFEASIBLE) fail_msg("%s", diag.message);
  return s;
}

/* By the definition what was found takes what is said, and its parts are the stages'. */
static void expect_valued(const psplit_solution *s) {
  int64_t most[2] = {0};
  memcpy(stage, s->stage, r.problem.n_nodes * sizeof *stage);
  for (uint32_t k = 0; k < n_stages; k++) {
    const psplit_stage_load *load = &s->stages[k];
    entry[k] = load->device;
    assert_int_equal(load->forward_ns + load->backward_ns, load->load_ns);
    if (load->forward_ns > most[0]) most[0] = load->forward_ns;
    if (load->backward_ns > most[1]) most[1] = load->backward_ns;
  }
  assert_true(is_allowed());
  assert_int_equal(value_of(), s->objective_ns);
  assert_int_equal(most[0] + most[1], s->objective_ns);
}

static void small_problems_are_split_best(void **unused) {
  (void)unused;
  uint32_t n_found = 0, n_none = 0, n_shared = 0, n_proved = 0, n_searched = 0, n_above = 0;
  for (uint32_t seed = 0; seed < percent(ROUNDS); seed++) {
    make(seed);
    const bool shared = r.problem.comm == PSPLIT_COMM_SHARED;
    const int64_t best = best_of_all();
    n_none += best == INT64_MAX;
    if (best == INT64_MAX && n_none % 32) continue; /* how many stages would fit takes long */
    psplit_solution *s = solve("auto");
    if ((best == INT64_MAX) != !s) fail_msg("seed %u: best %lld", seed, (long long)best);
    if (!s) continue;
    if (s->objective_ns < best || s->lower_bound_ns > best)
      fail_msg("seed %u: value %lld, bound %lld, best %lld", seed, (long long)s->objective_ns,
               (long long)s->lower_bound_ns, (long long)best);
    if (shared && !s->proved_optimal) fail_msg("seed %u: not proved: %s", seed, s->unproved);
    expect_valued(s);
    n_found++;
    n_shared += shared;
    n_proved += s->proved_optimal;
    psplit_solution_destroy(s);
    if (seed % 8 || !(s = solve("search"))) continue;
    if (s->objective_ns < best || s->lower_bound_ns > best)
      fail_msg("seed %u: searched %lld, bound %lld, best %lld", seed, (long long)s->objective_ns,
               (long long)s->lower_bound_ns, (long long)best);
    n_searched++;
    n_above += s->lower_bound_ns < best;
    psplit_solution_destroy(s);
  }
  print_message(
    "# %u of %u proved, %u by shared memory; %u have no split; without the program "
    "%u of %u bounds are below\n",
    n_proved, n_found, n_shared, n_none, n_above, n_searched);
  assert_true(n_found > percent(ROUNDS) / 2 && n_shared > n_found / 3 && n_none > 0);
  assert_true(n_proved > n_found * 19 / 20 && n_above > n_searched / 50);
}

/* The program alone: with and without axes it says the same, and no split of an order is better. */
static void the_program_says_the_same_without_axes(void **unused) {
  (void)unused;
  uint32_t n_better = 0, n_compared = 0;
  for (uint32_t seed = 0; seed < percent(BARE_ROUNDS); seed++) {
    psplit_problem of[PSPLIT_I_N_PARTS];
    psplit_i_directions d;
    psplit_i_arena arena;
    psplit_diag diag = {0};
    make(seed);
    psplit_i_arena_init(&arena, 0);
    for (int k = 0; k < PSPLIT_I_N_PARTS; k++)
      assert_int_equal(
        psplit_i_weigh(&r.problem, k != PSPLIT_I_BACKWARD, k != PSPLIT_I_FORWARD, &arena, &of[k]),
        PSPLIT_OK);
    if (psplit_i_directions_init(&d, of, &options, NULL, &diag) == PSPLIT_OK) {
      psplit_i_weight_axis axes[PSPLIT_I_N_PARTS];
      psplit_i_budget budget = psplit_i_budget_unlimited();
      psplit_i_two_limits_options o = {
        .grain = 1, .limit = PSPLIT_I_INF, .memory_cap_bytes = 1 << 28, .budget = &budget};
      psplit_i_two_limits_result plain, with_axes, in_order;
      psplit_i_assignment split;
      uint32_t order[MAX_NODES];
      assert_int_equal(psplit_i_assignment_init(&split, &d.instance[0], &arena), PSPLIT_OK);
      assert_int_equal(psplit_i_two_limits(&d, &o, &split, &plain), PSPLIT_OK);
      assert_true(plain.complete);
      for (uint32_t i = 0; i < d.instance[0].n; i++) order[i] = i;
      o.order = order;
      assert_int_equal(psplit_i_two_limits(&d, &o, &split, &in_order), PSPLIT_OK);
      assert_true(in_order.least >= plain.least);
      n_better += in_order.least > plain.least;
      o.order = NULL;
      o.axes = axes;
      if (plain.found) {
        o.limit = plain.least + 1;
        for (int k = 0; k < PSPLIT_I_N_PARTS; k++)
          assert_int_equal(psplit_i_weight_axis_make(&d.instance[k], &d.automaton[k], plain.least,
                                                     1, &budget, &axes[k]),
                           PSPLIT_OK);
        assert_int_equal(psplit_i_two_limits(&d, &o, &split, &with_axes), PSPLIT_OK);
        assert_true(with_axes.complete && with_axes.found);
        assert_int_equal(with_axes.least, plain.least);
        n_compared++;
        for (int k = 0; k < PSPLIT_I_N_PARTS; k++) psplit_i_weight_axis_fini(&axes[k]);
      }
      psplit_i_directions_fini(&d);
    }
    psplit_i_arena_fini(&arena);
  }
  assert_true(n_compared > percent(BARE_ROUNDS) / 2 && n_better > 0);
}

/* The least that the program says of the problem with what is united for splits up to `limit`;
 * *io_merged grows by the clusters that are gone. */
static int64_t least_united(const psplit_problem *p, int64_t limit, uint32_t *io_merged) {
  psplit_problem of[PSPLIT_I_N_PARTS];
  psplit_i_directions d;
  psplit_i_instance both;
  psplit_i_automaton automaton;
  psplit_i_assignment split;
  psplit_i_two_limits_result found;
  psplit_i_arena arena;
  psplit_diag diag = {0};
  uint32_t parent[MAX_NODES];
  psplit_i_budget budget = psplit_i_budget_unlimited();
  const psplit_i_two_limits_options o = {
    .limit = limit + 1, .memory_cap_bytes = 1 << 28, .budget = &budget};
  psplit_i_arena_init(&arena, 0);
  for (uint32_t v = 0; v < p->n_nodes; v++) parent[v] = v;
  assert_int_equal(psplit_i_instance_init(&both, p, NULL, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_automaton_init(&automaton, &both, &options, &diag), PSPLIT_OK);
  *io_merged += both.n;
  assert_int_equal(psplit_i_reduce(&both, &automaton, limit, parent, &budget, &diag), PSPLIT_OK);
  *io_merged -= both.n;
  for (int k = 0; k < PSPLIT_I_N_PARTS; k++)
    assert_int_equal(
      psplit_i_weigh(p, k != PSPLIT_I_BACKWARD, k != PSPLIT_I_FORWARD, &arena, &of[k]), PSPLIT_OK);
  assert_int_equal(psplit_i_directions_init(&d, of, &options, parent, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_assignment_init(&split, &d.instance[0], &arena), PSPLIT_OK);
  assert_int_equal(psplit_i_two_limits(&d, &o, &split, &found), PSPLIT_OK);
  psplit_i_directions_fini(&d);
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&both);
  psplit_i_arena_fini(&arena);
  return found.least;
}

/* Of what is united before the program runs. The tensor from u to v is as dear as v, so that v
 * moves to u without any load growing; but backward that would be 20, and x is slowest forward. */
static void what_is_united_leaves_a_best_split(void **unused) {
  (void)unused;
  psplit_problem *p = parsed_problem(
    "{\"format\": \"psplit-problem\", \"comm\": \"shared\", \"devices\": [{\"count\": 3}],"
    " \"nodes\": [{\"time_ns\": 30}, {\"time_ns\": 10, \"together\": 1}, {\"time_ns\": 0, "
    "\"together\": 2},"
    " {\"time_ns\": 10, \"together\": 1, \"backward\": true},"
    " {\"time_ns\": 10, \"together\": 2, \"backward\": true}],"
    " \"tensors\": [{\"producer\": 1, \"consumers\": [2], \"send_ns\": 10, \"recv_ns\": 10}]}");
  uint32_t n_merged = 0, n_asked = 0;
  psplit_partition_options_init(&options);
  options.objective = PSPLIT_FILL_DRAIN;
  assert_int_equal(least_united(p, 40, &n_merged), 40);
  psplit_problem_destroy(p);
  for (uint32_t seed = 0; seed < percent(BARE_ROUNDS); seed++) {
    make(seed);
    if (r.problem.comm != PSPLIT_COMM_SHARED) continue;
    const int64_t best = best_of_all();
    if (best == INT64_MAX) continue;
    assert_int_equal(least_united(&r.problem, best, &n_merged), best);
    n_asked++;
  }
  assert_true(n_merged > 0 && n_asked > percent(BARE_ROUNDS) / 4);
}

/* The same for any number of threads. */
static void the_same_for_any_number_of_threads(void **unused) {
  (void)unused;
  make_random_problem(&r, 5, LAYERED, 20, 4, WITH_TWINS);
  n_stages = 4;
  psplit_partition_options_init(&options);
  options.objective = PSPLIT_FILL_DRAIN;
  options.time_limit_s = 0.2;
  psplit_solution *s[2];
  for (uint32_t i = 0; i < 2; i++) {
    options.n_threads = 1 + 2 * i;
    assert_non_null(s[i] = solve("auto"));
  }
  assert_memory_equal(s[0]->stage, s[1]->stage, r.problem.n_nodes * sizeof *s[0]->stage);
  assert_int_equal(s[0]->lower_bound_ns, s[1]->lower_bound_ns);
  expect_valued(s[0]);
  for (uint32_t i = 0; i < 2; i++) psplit_solution_destroy(s[i]);
}

static void expect_refused(const char *says) {
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  assert_int_equal(psplit_partition_solve(&r.problem, &options, &diag, &s), PSPLIT_UNSUPPORTED);
  if (!strstr(diag.message, says)) fail_msg("%s", diag.message);
}

static void what_has_no_meaning_is_refused(void **unused) {
  (void)unused;
  make(0);
  options.require_nonempty = false;
  r.problem.overlap = true;
  expect_refused("fill-drain requires contiguous stages");
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  assert_int_equal(psplit_partition_check(&r.problem, &options, stage, NULL, NULL, NULL, &diag, &s),
                   PSPLIT_UNSUPPORTED);
  r.problem.overlap = false;
  options.chunks = 2;
  expect_refused("fill-drain requires contiguous stages");
  options.chunks = 1;
  options.solver = "pipedream";
  expect_refused("solver pipedream only makes contiguous stages for throughput");
  options.solver = "auto";
  memset(r.node_flags, 0, sizeof r.node_flags);
  expect_refused("use throughput for a forward pass");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(small_problems_are_split_best),
    cmocka_unit_test(the_program_says_the_same_without_axes),
    cmocka_unit_test(what_is_united_leaves_a_best_split),
    cmocka_unit_test(the_same_for_any_number_of_threads),
    cmocka_unit_test(what_has_no_meaning_is_refused),
  };
  return cmocka_run_group_tests_name("directions", tests, NULL, NULL);
}
