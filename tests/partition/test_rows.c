/* Bounds on latency from clusters in a row: no more than the best of all splits, and they see what
 * the tensors between the stages of a row and those beside each other take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "all_splits.h"
#include "sweep.h"

static const bound_function kRows[] = {psplit_i_bound_separator_row, psplit_i_bound_path_row};
enum { N_ROWS = sizeof kRows / sizeof *kRows };

static int64_t latency_of(const psplit_problem *p, const uint32_t *stage, const void *with) {
  psplit_solution *s;
  psplit_diag diag = {0};
  if (psplit_partition_check(p, with, stage, NULL, NULL, NULL, &diag, &s) != PSPLIT_OK)
    return INT64_MAX;
  const int64_t value = s->objective_ns;
  psplit_solution_destroy(s);
  return value;
}

static void no_split_is_below(void **state) {
  (void)state;
  static bed b;
  static const unsigned features[] = {0, WITH_PAIRS, WITH_MESSAGES, WITH_OVERLAP};
  sweep s = {.n_seeds = 400,
             .order = EVERY_SHAPE,
             .features = features,
             .n_features = sizeof features / sizeof *features,
             .nodes = {4, 6},
             .stages = {2, 3},
             .shared_every = 2};
  uint32_t n_asked = 0, n_met = 0;
  while (next_problem(&s, &b)) {
    const uint32_t n_stages = psplit_problem_n_stages(&b.r.problem);
    b.options.objective = PSPLIT_LATENCY;
    const int64_t best = least_of_all_splits(&b.r.problem, n_stages, latency_of, &b.options);
    if (best == INT64_MAX || b.r.problem.any_device_order) continue;
    for (uint32_t i = 0; i < N_ROWS; i++) {
      const int64_t bound = bound_by(&b, kRows[i], PSPLIT_I_INF, 0);
      if (bound > best)
        fail_msg("%s, row %u: bound %lld above the optimum %lld", s.what, i, (long long)bound,
                 (long long)best);
      n_met += bound == best;
    }
    n_asked++;
  }
  assert_true(n_asked > percent(1000) && n_met > n_asked / 8);
}

/* Six branches of 100 that one node feeds, by tensors of 5, and one collects, by tensors of 10, on
 * four devices: where three branches each are in stages of their own, the first node takes 10 and
 * sends for 30, these take 300, 15 and 30, and the last receives for 60 and takes 10. */
static void tensors_of_a_block_count(void **state) {
  (void)state;
  enum { BRANCHES = 6, N = BRANCHES + 2, NETS = 2 * BRANCHES, DEVICES = 4 };
  static bed b;
  random_problem *r = &b.r;
  *r = (random_problem){0};
  r->devices[0] = (psplit_device){.count = DEVICES};
  for (uint32_t v = 0; v < N; v++) r->time_ns[v] = v == 0 || v + 1 == N ? 10 : 100;
  for (uint32_t e = 0; e < NETS; e++) {
    const uint32_t branch = 1 + e / 2;
    r->producer[e] = e % 2 ? branch : 0;
    r->consumer[e] = e % 2 ? N - 1 : branch;
    r->off[e + 1] = e + 1;
    r->send_ns[e] = r->recv_ns[e] = e % 2 ? 10 : 5;
  }
  r->problem = (psplit_problem){.n_nodes = N,
                                .n_classes = 1,
                                .ticks_per_unit = 1,
                                .time_ns = r->time_ns,
                                .n_nets = NETS,
                                .net_producer = r->producer,
                                .net_off = r->off,
                                .net_consumer = r->consumer,
                                .net_send_ns = r->send_ns,
                                .net_recv_ns = r->recv_ns,
                                .devices = r->devices,
                                .n_devices = 1,
                                .comm = PSPLIT_COMM_P2P};
  assert_true(bed_take(&b));
  static const uint32_t apart[N] = {0, 1, 1, 1, 2, 2, 2, 3};
  b.options.objective = PSPLIT_LATENCY;
  assert_int_equal(latency_of(&r->problem, apart, &b.options), 40 + 345 + 70);
  for (uint32_t i = 0; i < N_ROWS; i++)
    assert_int_equal(bound_by(&b, kRows[i], PSPLIT_I_INF, 0), 40 + 345 + 70);
  bed_fini(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_split_is_below),
    cmocka_unit_test(tensors_of_a_block_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
