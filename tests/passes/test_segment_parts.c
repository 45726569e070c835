/* What segments are made with, on small problems, against enumeration: nodes between two devices,
 * devices for segments in a row, and what no placement is below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "cut_devices.h"
#include "segment_bounds.h"
#include "segment_runs.h"
#include "small_plans.h"

enum { MOST_NODES = 6, MOST_DEVICES = 3, MOST_NETS = 8, N_PROBLEMS = 200 };

/* A problem with devices of a class each, and what it points to. */
typedef struct bench {
  psplit_problem p;
  int64_t time_ns[MOST_NODES * MOST_DEVICES];
  uint32_t producer[MOST_NETS], off[MOST_NETS + 1], consumer[MOST_NETS * MOST_NODES];
  int64_t send_ns[MOST_NETS * MOST_DEVICES], recv_ns[MOST_NETS * MOST_DEVICES];
  uint8_t flags[MOST_NETS];
  psplit_device devices[MOST_DEVICES];
} bench;

/* Nets lead from a node to later ones. Some nodes do not run on some devices, some tensors cannot
 * be sent. */
static void draw_problem(dice *d, bench *b) {
  const uint32_t n = 2 + draw(d, MOST_NODES - 1), n_devices = 2 + draw(d, MOST_DEVICES - 1);
  memset(b, 0, sizeof *b);
  for (uint32_t i = 0; i < n * n_devices; i++)
    b->time_ns[i] = draw(d, 7) ? 1 + draw(d, 40) : PSPLIT_TIME_FORBIDDEN;
  for (uint32_t e = 0; e < n; e++) {
    const uint32_t from = draw(d, n - 1);
    b->producer[e] = from;
    b->off[e + 1] = b->off[e];
    for (uint32_t v = from + 1; v < n; v++)
      if (v == from + 1 + e % (n - from - 1) || !draw(d, 3)) b->consumer[b->off[e + 1]++] = v;
    for (uint32_t c = 0; c < n_devices; c++) {
      b->send_ns[e * n_devices + c] = draw(d, 12);
      b->recv_ns[e * n_devices + c] = draw(d, 12);
    }
    b->flags[e] = draw(d, 9) ? 0 : PSPLIT_NET_UNCUTTABLE;
  }
  for (uint32_t c = 0; c < n_devices; c++)
    b->devices[c] = (psplit_device){.class_id = c, .count = 1};
  b->p = (psplit_problem){.n_nodes = n,
                          .n_classes = n_devices,
                          .time_ns = b->time_ns,
                          .n_nets = n,
                          .net_producer = b->producer,
                          .net_off = b->off,
                          .net_consumer = b->consumer,
                          .net_send_ns = b->send_ns,
                          .net_recv_ns = b->recv_ns,
                          .net_flags = b->flags,
                          .n_devices = n_devices,
                          .devices = b->devices};
}

/* The next of base^n rows of digits; false behind the last. */
static bool next_row(uint32_t *digits, uint32_t n, uint32_t base) {
  for (uint32_t i = 0; i < n; i++) {
    if (++digits[i] < base) return true;
    digits[i] = 0;
  }
  return false;
}

/* What each device does where node v is on device on[v]: each tensor goes to a device once. False:
 * the problem does not allow it. */
static bool loads_of(const psplit_problem *p, const uint32_t *on, int64_t *load_ns) {
  memset(load_ns, 0, MOST_DEVICES * sizeof *load_ns);
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const int64_t ns = p->time_ns[v * p->n_classes + on[v]];
    if (ns == PSPLIT_TIME_FORBIDDEN) return false;
    load_ns[on[v]] += ns;
  }
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t from = on[p->net_producer[e]];
    bool has[MOST_DEVICES] = {false};
    has[from] = true;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t to = on[p->net_consumer[k]];
      if (has[to]) continue;
      if (p->net_flags[e] & PSPLIT_NET_UNCUTTABLE) return false;
      has[to] = true;
      load_ns[from] += p->net_send_ns[e * p->n_classes + from];
      load_ns[to] += p->net_recv_ns[e * p->n_classes + to];
    }
  }
  return true;
}

/* When the last node is done if each begins once what it reads is there. */
static int64_t latency_of(const psplit_problem *p, const uint32_t *on) {
  int64_t done_ns[MOST_NODES], last_ns = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    int64_t ready_ns = 0;
    for (uint32_t e = 0; e < p->n_nets; e++)
      for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
        if (p->net_consumer[k] != v) continue;
        const uint32_t from = p->net_producer[e];
        int64_t ns = done_ns[from];
        if (on[from] != on[v])
          ns +=
            p->net_send_ns[e * p->n_classes + on[from]] + p->net_recv_ns[e * p->n_classes + on[v]];
        if (ns > ready_ns) ready_ns = ns;
      }
    done_ns[v] = ready_ns + p->time_ns[v * p->n_classes + on[v]];
    if (done_ns[v] > last_ns) last_ns = done_ns[v];
  }
  return last_ns;
}

/* The least weighted sum of the loads of devices 0 and 1; -1: there is no such cut. */
static int64_t least_cut(const psplit_problem *p, const psplit_i_device_cut *what) {
  uint32_t on[MOST_NODES] = {0};
  int64_t least = -1;
  do {
    int64_t load_ns[MOST_DEVICES];
    if (!loads_of(p, on, load_ns)) continue;
    const int64_t sum = load_ns[0] * what->weight_a + load_ns[1] * what->weight_b;
    if (least < 0 || sum < least) least = sum;
  } while (next_row(on, p->n_nodes, 2));
  return least;
}

static void cuts_are_the_least(void **state) {
  (void)state;
  uint32_t n_cuts = 0, n_none = 0;
  for (uint32_t seed = 0; seed < N_PROBLEMS; seed++) {
    dice d = {.seed = 300 + seed};
    psplit_diag diag = {0};
    bench b;
    draw_problem(&d, &b);
    const psplit_i_device_cut what = {0, 1, 1 + draw(&d, 4), 1 + draw(&d, 4), 1};
    uint8_t on_b[MOST_NODES];
    bool found;
    int64_t value;
    assert_int_equal(psplit_i_cut_devices(&b.p, &what, &diag, on_b, &found, &value), PSPLIT_OK);
    const int64_t least = least_cut(&b.p, &what);
    assert_int_equal(found, least >= 0);
    n_cuts += found;
    n_none += !found;
    if (!found) continue;
    uint32_t on[MOST_NODES];
    int64_t load_ns[MOST_DEVICES];
    for (uint32_t v = 0; v < b.p.n_nodes; v++) on[v] = on_b[v];
    assert_true(loads_of(&b.p, on, load_ns));
    assert_int_equal(value, least);
    assert_int_equal(load_ns[0] * what.weight_a + load_ns[1] * what.weight_b, least);
  }
  assert_true(n_cuts > N_PROBLEMS / 4 && n_none > N_PROBLEMS / 20);
}

static void no_placement_is_below_the_bounds(void **state) {
  (void)state;
  uint32_t n_placed = 0, n_tight[2] = {0, 0};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  for (uint32_t seed = 0; seed < N_PROBLEMS; seed++) {
    dice d = {.seed = 900 + seed};
    psplit_diag diag = {0};
    bench b;
    draw_problem(&d, &b);
    if (draw(&d, 2)) b.p.net_flags = NULL;
    int64_t devices_ns, paths_ns, best_ns = INT64_MAX, soonest_ns = INT64_MAX;
    assert_int_equal(psplit_i_bound_devices(&b.p, &arena, &diag, &devices_ns), PSPLIT_OK);
    assert_int_equal(psplit_i_bound_paths(&b.p, &arena, &diag, &paths_ns), PSPLIT_OK);
    if (!b.p.net_flags) memset(b.flags, 0, sizeof b.flags);
    b.p.net_flags = b.flags;
    uint32_t on[MOST_NODES] = {0};
    do {
      int64_t load_ns[MOST_DEVICES], most_ns = 0;
      if (!loads_of(&b.p, on, load_ns)) continue;
      for (uint32_t c = 0; c < b.p.n_devices; c++)
        if (load_ns[c] > most_ns) most_ns = load_ns[c];
      const int64_t ns = latency_of(&b.p, on);
      if (most_ns < best_ns) best_ns = most_ns;
      if (ns < soonest_ns) soonest_ns = ns;
    } while (next_row(on, b.p.n_nodes, b.p.n_devices));
    if (devices_ns > best_ns || paths_ns > soonest_ns)
      fail_msg("seed %u: %lld of %lld, %lld of %lld", seed, (long long)devices_ns,
               (long long)best_ns, (long long)paths_ns, (long long)soonest_ns);
    if (best_ns == INT64_MAX) continue;
    n_placed++;
    n_tight[0] += devices_ns * 2 > best_ns;
    n_tight[1] += paths_ns == soonest_ns;
  }
  psplit_i_arena_fini(&arena);
  print_message("# of %u, bounds are more than half in %u, the latency in %u\n", n_placed,
                n_tight[0], n_tight[1]);
  assert_true(n_placed > N_PROBLEMS / 2 && n_tight[0] > n_placed / 2 && n_tight[1] > n_placed / 2);
}

/* What the row of segments takes, weighted: times, and what a segment gets from those before it
 * where the device changes. -1: too many runs, or a node that does not run there. */
static int64_t row_of(const psplit_problem *p, const uint32_t *on, const uint32_t *weight,
                      uint32_t most_runs) {
  uint32_t n_runs = 1;
  int64_t sum = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const int64_t ns = p->time_ns[v * p->n_classes + on[v]];
    if (ns == PSPLIT_TIME_FORBIDDEN) return -1;
    sum += ns * weight[on[v]];
    if (v == 0 || on[v] == on[v - 1]) continue;
    n_runs++;
    for (uint32_t e = 0; e < p->n_nets; e++)
      for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
        if (p->net_consumer[k] == v)
          sum += p->net_send_ns[e * p->n_classes + on[v - 1]] * weight[on[v - 1]] +
                 p->net_recv_ns[e * p->n_classes + on[v]] * weight[on[v]];
  }
  return n_runs > most_runs ? -1 : sum;
}

static void rows_are_the_least(void **state) {
  (void)state;
  uint32_t n_found = 0, n_none = 0;
  for (uint32_t seed = 0; seed < N_PROBLEMS; seed++) {
    dice d = {.seed = 1500 + seed};
    psplit_diag diag = {0};
    bench b;
    draw_problem(&d, &b);
    uint32_t segment[MOST_NODES], weight[MOST_DEVICES], device[MOST_NODES], on[MOST_NODES] = {0};
    for (uint32_t v = 0; v < b.p.n_nodes; v++) segment[v] = v;
    for (uint32_t c = 0; c < b.p.n_devices; c++) weight[c] = 1 + draw(&d, 4);
    const uint32_t most_runs = 1 + draw(&d, MOST_NODES + 2);
    int64_t least = -1;
    bool found;
    const psplit_i_segment_row row = {segment, b.p.n_nodes, weight, most_runs};
    assert_int_equal(psplit_i_join_segments(&b.p, &row, &diag, device, &found), PSPLIT_OK);
    do {
      const int64_t sum = row_of(&b.p, on, weight, most_runs);
      if (sum >= 0 && (least < 0 || sum < least)) least = sum;
    } while (next_row(on, b.p.n_nodes, b.p.n_devices));
    assert_int_equal(found, least >= 0);
    n_found += found;
    n_none += !found;
    if (found) assert_int_equal(row_of(&b.p, device, weight, most_runs), least);
  }
  print_message("# %u rows, none in %u\n", n_found, n_none);
  assert_true(n_found > N_PROBLEMS / 4 && n_none > N_PROBLEMS / 50);
}

/* A chain whose nodes run on two devices by turns, with more devices than that. */
static bool has_row(uint32_t n, uint32_t n_devices, uint32_t most_runs) {
  enum { MOST = 200, MOST_IN_ROW = 17 };
  static int64_t time_ns[MOST * 2];
  static uint32_t segment[MOST], device[MOST];
  psplit_device devices[MOST_IN_ROW] = {{.class_id = 1}};
  uint32_t weight[MOST_IN_ROW];
  const uint32_t off[] = {0};
  const psplit_problem p = {.n_nodes = n,
                            .n_classes = 2,
                            .time_ns = time_ns,
                            .net_off = off,
                            .n_devices = n_devices,
                            .devices = devices};
  psplit_diag diag = {0};
  bool found;
  for (uint32_t c = 0; c < n_devices; c++) weight[c] = 1;
  for (uint32_t v = 0; v < n; v++) {
    segment[v] = v;
    time_ns[2 * v + v % 2] = 5;
    time_ns[2 * v + (v + 1) % 2] = PSPLIT_TIME_FORBIDDEN;
  }
  const psplit_i_segment_row row = {segment, n, weight, most_runs};
  assert_int_equal(psplit_i_join_segments(&p, &row, &diag, device, &found), PSPLIT_OK);
  for (uint32_t v = 0; found && v < n; v++) assert_int_equal(device[v] == 0, v % 2 == 1);
  return found;
}

static void rows_have_limits(void **state) {
  (void)state;
  assert_true(has_row(6, 2, 6));
  assert_false(has_row(6, 2, 5));
  assert_true(has_row(128, 2, 200));
  assert_false(has_row(129, 2, 200));
  assert_true(has_row(6, 16, 6) && !has_row(6, 17, 6));
}

/* Times next to which nothing can be added: no sum of them is mistaken for a small one. */
static void times_without_end_are_no_bound(void **state) {
  (void)state;
  static const int64_t end = INT64_MAX / 2;
  const int64_t time_ns[] = {end, end, end, end, end, end};
  const uint32_t producer[] = {0}, off[] = {0, 1}, consumer[] = {1}, segment[] = {0, 1};
  const int64_t none[3] = {0};
  const uint32_t weight[] = {8, 8, 8};
  const psplit_device devices[] = {{.class_id = 0}, {.class_id = 1}, {.class_id = 2}};
  for (uint32_t n_devices = 2; n_devices <= 3; n_devices++) {
    const psplit_problem p = {.n_nodes = 2,
                              .n_classes = n_devices,
                              .time_ns = time_ns,
                              .n_nets = 1,
                              .net_producer = producer,
                              .net_off = off,
                              .net_consumer = consumer,
                              .net_send_ns = none,
                              .net_recv_ns = none,
                              .n_devices = n_devices,
                              .devices = devices};
    const psplit_i_device_cut what = {0, 1, 8, 8, 1};
    psplit_i_arena arena;
    psplit_diag diag = {0};
    uint8_t on_b[2];
    uint32_t device[2];
    int64_t ns;
    bool found;
    psplit_i_arena_init(&arena, 0);
    assert_int_equal(psplit_i_cut_devices(&p, &what, &diag, on_b, &found, NULL), PSPLIT_OK);
    assert_false(found);
    const psplit_i_segment_row row = {segment, 2, weight, 2};
    assert_int_equal(psplit_i_join_segments(&p, &row, &diag, device, &found), PSPLIT_OK);
    assert_false(found);
    assert_int_equal(psplit_i_bound_devices(&p, &arena, &diag, &ns), PSPLIT_OK);
    assert_true(ns <= end);
    assert_int_equal(psplit_i_bound_paths(&p, &arena, &diag, &ns), PSPLIT_OK);
    assert_true(ns <= end);
    psplit_i_arena_fini(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(cuts_are_the_least),
    cmocka_unit_test(no_placement_is_below_the_bounds),
    cmocka_unit_test(rows_are_the_least),
    cmocka_unit_test(rows_have_limits),
    cmocka_unit_test(times_without_end_are_no_bound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
