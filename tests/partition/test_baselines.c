/* Why: what is said to be better than a baseline is only as true as the baseline is what its name
 * says: each is held against its definition, and none may be below what is proved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/partition.h>
#include <stdlib.h>
#include <string.h>

#include "../support/plain_problem.h"
#include "draws.h"

enum { MOST = 64, ROUNDS = 300 };

static int64_t time_ns[MOST], send_ns[MOST], recv_ns[MOST];
static uint32_t producer[MOST], off[MOST + 1], consumer[MOST];
static uint64_t weight_bytes[MOST];
static psplit_device device;
static psplit_problem problem_of(uint32_t n_nodes, uint32_t n_nets, uint32_t n_stages) {
  device = (psplit_device){.count = n_stages};
  psplit_problem p =
    plain_problem(&device, n_nodes, time_ns, n_nets, producer, off, consumer, send_ns);
  p.net_recv_ns = recv_ns;
  p.weight_bytes = weight_bytes;
  return p;
}

/* From each node to the next a tensor. */
static psplit_problem chain(uint32_t n, uint32_t n_stages, uint64_t dear) {
  for (uint32_t v = 0; v < n; v++) time_ns[v] = 1 + draw(20);
  for (uint32_t v = 0; v + 1 < n; v++) {
    producer[v] = v;
    consumer[v] = v + 1;
    send_ns[v] = draw(dear);
    recv_ns[v] = draw(dear);
    off[v + 1] = v + 1;
  }
  return problem_of(n, n - 1, n_stages);
}

static psplit_code ask(const psplit_problem *p, const char *solver, uint32_t max_replicas,
                       psplit_diag *diag, psplit_solution **out_s) {
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  options.solver = solver;
  options.max_replicas = max_replicas;
  options.n_threads = 1;
  return psplit_partition_solve(p, &options, diag, out_s);
}

static psplit_solution *solved(const psplit_problem *p, const char *solver, uint32_t max_replicas) {
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  if (ask(p, solver, max_replicas, &diag, &s) != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_true(s->lower_bound_ns <= s->objective_ns);
  if (strcmp(solver, "auto") != 0) assert_string_equal(s->solver, solver);
  return s;
}

static void none_is_below_the_optimum(void **unused) {
  static const char *const names[] = {"even", "pipedream", "islands"};
  (void)unused;
  uint32_t n_worse = 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    draw_state = round;
    const psplit_problem p = chain(2 + round % 30, 1 + round % 6, 1 + round % 30);
    psplit_solution *best = solved(&p, "auto", 1);
    assert_true(best->proved_optimal);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      psplit_solution *s = solved(&p, names[i], 1);
      assert_true(s->objective_ns >= best->objective_ns);
      n_worse += s->objective_ns > best->objective_ns;
      psplit_solution_destroy(s);
    }
    psplit_solution_destroy(best);
  }
  assert_true(n_worse > ROUNDS / 3); /* nothing improves them */
}

/* What PipeDream's programme counts of a division in three: boundaries at a <= b. */
static int64_t counted(const psplit_problem *p, uint32_t a, uint32_t b) {
  const uint32_t cut[4] = {0, a, b, p->n_nodes};
  int64_t value = 0;
  for (uint32_t j = 0; j < 3; j++) {
    int64_t work = 0;
    for (uint32_t v = cut[j]; v < cut[j + 1]; v++) work += time_ns[v];
    if (work > value) value = work;
    const uint32_t v = cut[j]; /* handed to a stage that holds something */
    if (v > 0 && cut[j + 1] > v && send_ns[v - 1] + recv_ns[v - 1] > value)
      value = send_ns[v - 1] + recv_ns[v - 1];
  }
  return value;
}

static void pipedream_is_best_by_its_own_count(void **unused) {
  (void)unused;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    draw_state = 1000 + round;
    const psplit_problem p = chain(3 + round % 12, 3, 1 + round % 60);
    int64_t best = INT64_MAX;
    for (uint32_t a = 0; a <= p.n_nodes; a++)
      for (uint32_t b = a; b <= p.n_nodes; b++)
        if (counted(&p, a, b) < best) best = counted(&p, a, b);
    psplit_solution *s = solved(&p, "pipedream", 1);
    uint32_t cut[4] = {0, 0, 0, p.n_nodes};
    for (uint32_t v = 0; v < p.n_nodes; v++)
      for (uint32_t j = s->stage[v]; j < 2; j++) cut[j + 1] = v + 1;
    assert_int_equal(counted(&p, cut[1], cut[2]), best);
    psplit_solution_destroy(s);
  }
}

static void shares_are_even_to_half_a_node(void **unused) {
  (void)unused;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    draw_state = 2000 + round;
    const uint32_t k = 2 + round % 5;
    const psplit_problem p = chain(k * 4 + round % 20, k, 1);
    int64_t total = 0, heaviest = 0;
    for (uint32_t v = 0; v < p.n_nodes; v++) {
      total += time_ns[v];
      if (time_ns[v] > heaviest) heaviest = time_ns[v];
    }
    psplit_solution *s = solved(&p, "even", 1);
    for (uint32_t j = 0; j < k; j++) {
      assert_true(s->stages[j].load_ns <= total / k + heaviest + 1);
      assert_true(s->stages[j].load_ns >= total / k - heaviest - k);
    }
    psplit_solution_destroy(s);
  }
}

/* Two chains that have nothing to do with each other, their nodes in turn. */
static void islands_are_not_cut_through(void **unused) {
  (void)unused;
  enum { LONG = 12 };
  uint32_t n_nets = 0;
  for (uint32_t v = 0; v < 2 * LONG; v++) {
    time_ns[v] = 5;
    if (v < 2) continue;
    producer[n_nets] = v - 2;
    consumer[n_nets] = v;
    send_ns[n_nets] = recv_ns[n_nets] = 1000;
    n_nets++;
    off[n_nets] = n_nets;
  }
  const psplit_problem p = problem_of(2 * LONG, n_nets, 2);
  psplit_solution *s = solved(&p, "islands", 1);
  assert_int_equal(s->objective_ns, 5 * LONG);
  psplit_solution_destroy(s);
}

static void copies_share_the_work(void **unused) {
  (void)unused;
  draw_state = 7;
  const psplit_problem p = chain(9, 3, 50);
  int64_t total = 0;
  for (uint32_t v = 0; v < p.n_nodes; v++) total += time_ns[v];
  psplit_solution *s = solved(&p, "copies", 3);
  assert_int_equal(s->stages[0].replicas, 3);
  assert_int_equal(s->objective_ns, (total + 2) / 3);
  psplit_solution_destroy(s);
}

/* Two hosts: what a baseline makes takes what the links between its stages take. */
static void links_between_pairs_count(void **unused) {
  (void)unused;
  static const char *const names[] = {"even", "pipedream", "islands"};
  enum { N = 8, PER_HOST = 2 };
  static const uint32_t link[] = {0, 1, 1, 0};
  int64_t link_ns[2 * N];
  const psplit_device hosts[] = {{.count = PER_HOST}, {.count = PER_HOST}};
  draw_state = 11;
  psplit_problem p = chain(N, 2 * PER_HOST, 1);
  for (uint32_t v = 0; v < N; v++) {
    time_ns[v] = 10;
    link_ns[2 * v] = 1;
    link_ns[2 * v + 1] = 7;
  }
  p.n_devices = 2;
  p.devices = hosts;
  p.n_link_classes = 2;
  p.device_link = link;
  p.net_link_ns = link_ns;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    psplit_solution *s = solved(&p, names[i], 1);
    assert_int_equal(s->objective_ns, 20 + 1 + 7);
    psplit_solution_destroy(s);
  }
}

static void what_they_cannot_do_is_said(void **unused) {
  (void)unused;
  draw_state = 9;
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  psplit_problem p = chain(9, 3, 50);
  assert_int_equal(ask(&p, "copies", 1, &diag, &s), PSPLIT_UNSUPPORTED);
  assert_string_equal(diag.message,
                      "solver copies needs as many replicas of one stage as there are devices, 3; "
                      "1 allowed");
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  options.solver = "islands";
  options.objective = PSPLIT_LATENCY;
  diag = (psplit_diag){0};
  assert_int_equal(psplit_partition_solve(&p, &options, &diag, &s), PSPLIT_UNSUPPORTED);
  assert_string_equal(diag.message,
                      "solver islands only makes contiguous stages for throughput, one per device");
  for (uint32_t v = 0; v < p.n_nodes; v++) weight_bytes[v] = v == 0 ? 100 : 1;
  device.memory_bytes = 103;
  time_ns[0] = 1;
  diag = (psplit_diag){0};
  assert_int_equal(ask(&p, "even", 1, &diag, &s), PSPLIT_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "the result of solver even, which ignores limits: stage 0"));
  memset(weight_bytes, 0, sizeof weight_bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(none_is_below_the_optimum),
    cmocka_unit_test(pipedream_is_best_by_its_own_count),
    cmocka_unit_test(shares_are_even_to_half_a_node),
    cmocka_unit_test(islands_are_not_cut_through),
    cmocka_unit_test(copies_share_the_work),
    cmocka_unit_test(links_between_pairs_count),
    cmocka_unit_test(what_they_cannot_do_is_said),
  };
  return cmocka_run_group_tests_name("partition-baselines", tests, NULL, NULL);
}
