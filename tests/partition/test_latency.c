/* Latency: no split that others make in place of solving takes less, nor one device alone, whatever
 * the limit on work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sweep.h"

/* What a split takes by the checker; INT64_MAX: it is not valid. */
static int64_t latency_of(const psplit_problem *p, const psplit_partition_options *options,
                          const uint32_t *stage, const uint32_t *device) {
  psplit_solution *s = NULL;
  psplit_diag diag = {0};
  const psplit_code code = psplit_partition_check(p, options, stage, NULL, device, NULL, &diag, &s);
  const int64_t value = code == PSPLIT_OK ? s->objective_ns : INT64_MAX;
  psplit_solution_destroy(s);
  return value;
}

/* INT64_MAX: it found no split. */
static int64_t solved(const psplit_problem *p, const psplit_partition_options *options) {
  psplit_solution *s = NULL;
  psplit_diag diag = {0};
  const psplit_code code = psplit_partition_solve(p, options, &diag, &s);
  if (code == PSPLIT_INFEASIBLE) return INT64_MAX;
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
  const int64_t value = s->objective_ns;
  psplit_solution_destroy(s);
  return value;
}

/* All on the first, second ... device, in their order. */
static int64_t best_on_one_device(const psplit_problem *p,
                                  const psplit_partition_options *options) {
  uint32_t *stage = calloc(p->n_nodes, sizeof *stage);
  int64_t best = INT64_MAX;
  assert_non_null(stage);
  for (uint32_t k = 0; k < psplit_problem_n_stages(p); k++) {
    for (uint32_t v = 0; v < p->n_nodes; v++) stage[v] = k;
    const int64_t value = latency_of(p, options, stage, NULL);
    if (value < best) best = value;
  }
  free(stage);
  return best;
}

/* The best of what these solvers make for throughput, as latency. */
static int64_t best_of(const char *const *solvers, const psplit_problem *p,
                       const psplit_partition_options *options) {
  int64_t best = INT64_MAX;
  for (; *solvers; solvers++) {
    psplit_partition_options o = *options;
    psplit_solution *s = NULL;
    psplit_diag diag = {0};
    uint32_t device[MAX_DEVICES];
    o.objective = PSPLIT_THROUGHPUT;
    o.solver = *solvers;
    if (psplit_partition_solve(p, &o, &diag, &s) != PSPLIT_OK) continue;
    for (uint32_t k = 0; k < s->n_stages; k++) device[k] = s->stages[k].device;
    const int64_t value = latency_of(p, options, s->stage, device);
    if (value < best) best = value;
    psplit_solution_destroy(s);
  }
  return best;
}

/* What is simple is never better, whatever the limit; what searches for throughput, by as much
 * work, hardly ever. */
static void no_other_split_takes_less(void **state) {
  (void)state;
  static const unsigned features[] = {
    0, WITH_CLASSES, WITH_MEMORY, WITH_FREE_COMM | WITH_CLASSES, WITH_MESSAGES, WITH_OVERLAP};
  static const double limits[] = {0, 0.002, 0.05};
  static const char *const simple[] = {"even", "pipedream", "islands", NULL}, *const searching[] = {
                                                                                "slice", "search",
                                                                                "exact",
                                                                                "multilevel", NULL};
  static bed b;
  uint32_t n_asked = 0, n_lost = 0;
  sweep s = {.n_seeds = 6,
             .features = features,
             .n_features = sizeof features / sizeof *features,
             .nodes = {20, 40},
             .stages = {2, 3},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    const psplit_problem *p = &b.r.problem;
    psplit_partition_options o = b.options;
    o.objective = PSPLIT_LATENCY;
    o.limit_by_work = true;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
      o.time_limit_s = limits[i];
      const int64_t value = solved(p, &o), alone = best_on_one_device(p, &o);
      const int64_t others = best_of(simple, p, &o);
      if (value > alone || value > others)
        fail_msg("%s, limit %g: %lld; on one device %lld, what is simple %lld", s.what, limits[i],
                 (long long)value, (long long)alone, (long long)others);
      n_lost += value > best_of(searching, p, &o);
      n_asked += value < INT64_MAX;
    }
  }
  assert_true(n_asked > percent(6) * 60);
  assert_true(n_lost <= n_asked / 25);
}

/* Random layers, too wide and too many to divide their orders: cut in two they take longer than on
 * one device, unless what is parallel is found. Nor can two stages share the work evenly: what lies
 * between nodes some layers apart waits for the one, and the other for it. */
static void large_graphs(void **state) {
  (void)state;
  enum { N = 10000, WIDTH = 100 };
  static int64_t time_ns[N], send_ns[N];
  static uint32_t producer[N], off[N + 1], consumer[2 * N];
  psplit_device device = {.count = 2};
  uint32_t n_pins = 0, n_nets = 0;
  for (uint32_t v = 0; v < N; v++) {
    time_ns[v] = 1000 + (int64_t)(psplit_i_splitmix64(1, v) % 20000);
    const uint32_t next = (v / WIDTH + 1) * WIDTH;
    if (next >= N) continue;
    const uint32_t a = next + (uint32_t)(psplit_i_splitmix64(2, v) % WIDTH),
                   z = next + (uint32_t)(psplit_i_splitmix64(3, v) % WIDTH);
    consumer[n_pins++] = a < z ? a : z;
    if (a != z) consumer[n_pins++] = a < z ? z : a;
    send_ns[n_nets] = 1000;
    producer[n_nets] = v;
    off[++n_nets] = n_pins;
  }
  psplit_problem p = {.n_nodes = N,
                      .n_classes = 1,
                      .ticks_per_unit = 1,
                      .time_ns = time_ns,
                      .n_nets = n_nets,
                      .net_producer = producer,
                      .net_off = off,
                      .net_consumer = consumer,
                      .net_send_ns = send_ns,
                      .net_recv_ns = send_ns,
                      .devices = &device,
                      .n_devices = 1,
                      .comm = PSPLIT_COMM_P2P};
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.objective = PSPLIT_LATENCY;
  o.limit_by_work = true;
  o.time_limit_s = 0.5;
  o.n_threads = 1;
  psplit_solution *s = NULL;
  psplit_diag diag = {0};
  const int64_t alone = best_on_one_device(&p, &o);
  assert_int_equal(psplit_partition_solve(&p, &o, &diag, &s), PSPLIT_OK);
  assert_true(s->objective_ns <= alone);
  assert_true(s->lower_bound_ns > alone * 7 / 10);
  psplit_solution_destroy(s);
  /* Over many devices the nodes of a layer lie side by side. */
  device.count = 256;
  assert_true(solved(&p, &o) < alone / 2);
}

/* Two mixtures in a row, each of branches of many sizes that one node feeds and one collects: they
 * take as long as the branches of both over the stages that are left, not as one device. */
static void branches_lie_side_by_side(void **state) {
  (void)state;
  enum { BRANCHES = 40, MIXTURES = 2, N = MIXTURES * (BRANCHES + 1) + 1, DEVICES = 9 };
  static int64_t time_ns[N], send_ns[N];
  static uint32_t producer[N], off[N + 1], consumer[2 * N];
  const psplit_device device = {.count = DEVICES};
  uint32_t n_nets = 0, n_pins = 0;
  int64_t work = 0;
  for (uint32_t v = 0; v < N; v++) {
    const uint32_t last = v / (BRANCHES + 1) * (BRANCHES + 1), next = last + BRANCHES + 1;
    work += time_ns[v] = 1000 + (int64_t)(psplit_i_splitmix64(1, v) % 2000);
    if (v + 1 == N) break;
    send_ns[n_nets] = 10;
    producer[n_nets] = v;
    if (v == last)
      for (uint32_t k = 1; k <= BRANCHES; k++) consumer[n_pins++] = v + k;
    else
      consumer[n_pins++] = next;
    off[++n_nets] = n_pins;
  }
  psplit_problem p = {.n_nodes = N,
                      .n_classes = 1,
                      .ticks_per_unit = 1,
                      .time_ns = time_ns,
                      .n_nets = n_nets,
                      .net_producer = producer,
                      .net_off = off,
                      .net_consumer = consumer,
                      .net_send_ns = send_ns,
                      .net_recv_ns = send_ns,
                      .devices = &device,
                      .n_devices = 1,
                      .comm = PSPLIT_COMM_P2P};
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.objective = PSPLIT_LATENCY;
  o.limit_by_work = true;
  o.time_limit_s = 0.01;
  o.n_threads = 1;
  /* Three stages hold the nodes between; three are left for each mixture. */
  assert_true(solved(&p, &o) < work / 3 * 115 / 100);
}

/* Three levels that no slice of two, four ... ends with, and fewer devices than slices. */
static void few_devices_hold_any_number_of_levels(void **state) {
  (void)state;
  const int64_t time_ns[] = {5, 4, 3, 2, 1, 7}, send_ns[] = {1, 1, 1, 1};
  const uint32_t producer[] = {0, 1, 2, 3}, off[] = {0, 1, 2, 3, 4}, consumer[] = {2, 3, 4, 5};
  const psplit_device device = {.count = 1};
  const psplit_problem p = {.n_nodes = 6,
                            .n_classes = 1,
                            .ticks_per_unit = 1,
                            .time_ns = time_ns,
                            .n_nets = 4,
                            .net_producer = producer,
                            .net_off = off,
                            .net_consumer = consumer,
                            .net_send_ns = send_ns,
                            .net_recv_ns = send_ns,
                            .devices = &device,
                            .n_devices = 1};
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.objective = PSPLIT_LATENCY;
  assert_int_equal(solved(&p, &o), 22);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_other_split_takes_less),
    cmocka_unit_test(large_graphs),
    cmocka_unit_test(branches_lie_side_by_side),
    cmocka_unit_test(few_devices_hold_any_number_of_levels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
