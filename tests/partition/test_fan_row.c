/* Whole stages in a row of fans: the bound is no more than the optimum, whatever value it is asked
 * from, and sees what cuts inside a layer take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "lattice.h"
#include "node_cut.h"
#include "sweep.h"

enum { MOST_DOWNSETS = 1 << 9, MOST_STATES = 1 << 13 };

/* What the bound says of splits better than `value`. */
static int64_t ask(const bed *b, int64_t value) {
  return bound_by(b, psplit_i_bound_fan_row, value, 0);
}

static void no_split_is_below(void **state) {
  (void)state;
  static bed b;
  static const unsigned features[] = {
    0, 0, 0, WITH_CLASSES, WITH_TWINS, WITH_PINS | WITH_TOGETHER, WITH_MEMORY};
  enum { N_FEATURES = sizeof features / sizeof *features };
  uint32_t n_asked = 0, n_tight = 0;
  for (uint32_t seed = 0; seed < percent(100); seed++)
    for (uint32_t f = 0; f < N_FEATURES; f++) {
      const uint32_t n = features[f] & WITH_TWINS ? 4 + seed % 9 : 5 + seed % 20;
      int64_t best;
      make_random_problem(&b.r, seed * N_FEATURES + f, FANS, n, 2 + seed % 3, features[f]);
      if (lattice_best(&b.r.problem, false, INT64_MAX / 8, MOST_DOWNSETS, MOST_STATES, &best) !=
          LATTICE_BEST)
        continue;
      if (!bed_take(&b)) continue;
      for (int more = 0; more < 3; more++) {
        const int64_t value = best + 1 + more * (best / 3), bound = ask(&b, value);
        if (bound > best)
          fail_msg("seed %u, features %#x: %lld of a value of %lld, the optimum is %lld", seed,
                   features[f], (long long)bound, (long long)value, (long long)best);
        n_asked++;
        n_tight += bound == best;
      }
      bed_fini(&b);
    }
  assert_true(n_asked > percent(250) && n_tight > n_asked / 6);
}

/* Three layers of five experts each, in three stages: work alone is 302 a stage, and every cut that
 * does not fall on the end of a layer takes both its ends 25 at least. */
static void cuts_inside_layers_count(void **state) {
  (void)state;
  enum { LAYERS = 3, EXPERTS = 5, N = LAYERS * (EXPERTS + 1) + 1, PINS = 2 * LAYERS * EXPERTS };
  static bed b;
  random_problem *r = &b.r;
  uint32_t n_pins = 0;
  int64_t best;
  *r = (random_problem){0};
  r->devices[0] = (psplit_device){.count = 3};
  r->problem = (psplit_problem){.n_nodes = N,
                                .n_classes = 1,
                                .time_ns = r->time_ns,
                                .net_producer = r->producer,
                                .net_off = r->off,
                                .net_consumer = r->consumer,
                                .net_send_ns = r->send_ns,
                                .net_recv_ns = r->recv_ns,
                                .n_devices = 1,
                                .devices = r->devices,
                                .comm = PSPLIT_COMM_P2P,
                                .ticks_per_unit = 1};
  for (uint32_t l = 0, v = 0; l <= LAYERS; l++, v += EXPERTS + 1) {
    r->time_ns[v] = 1;
    for (uint32_t k = 1; k <= EXPERTS && l < LAYERS; k++) {
      r->time_ns[v + k] = 60;
      r->consumer[n_pins++] = v + k;
    }
    for (uint32_t k = 0; k <= EXPERTS && l < LAYERS; k++) {
      if (k > 0) r->consumer[n_pins++] = v + EXPERTS + 1;
      r->producer[r->problem.n_nets] = v + k;
      r->send_ns[r->problem.n_nets] = r->recv_ns[r->problem.n_nets] = k > 0 ? 5 : 20;
      r->off[++r->problem.n_nets] = n_pins;
    }
  }
  assert_int_equal(n_pins, PINS);
  assert_int_equal(lattice_best(&r->problem, false, INT64_MAX / 8, 1 << 12, 1 << 17, &best),
                   LATTICE_BEST);
  assert_true(bed_take(&b));
  const int64_t bound = ask(&b, 2 * best);
  assert_true(bound <= best);
  const int64_t simple = psplit_i_simple_bound(&b.instance, &b.automaton);
  assert_true(2 * (best - bound) < best - simple);
  bed_fini(&b);
}

/* A fan too large to be cut: two stages share it. */
static void large_fans_are_free_to_cut(void **state) {
  (void)state;
  enum { N = 9000 };
  static bed b;
  static int64_t time[N];
  static uint32_t from[2 * N], to[2 * N];
  const psplit_device device = {.count = 2};
  uint32_t n_order = 0;
  for (uint32_t v = 0; v < N; v++) {
    time[v] = 1;
    if (v == 0 || v + 1 == N) continue;
    from[n_order] = 0, to[n_order++] = v;
    from[n_order] = v, to[n_order++] = N - 1;
  }
  b.r.problem = (psplit_problem){.n_nodes = N,
                                 .n_classes = 1,
                                 .time_ns = time,
                                 .n_order = n_order,
                                 .order_from = from,
                                 .order_to = to,
                                 .n_devices = 1,
                                 .devices = &device,
                                 .ticks_per_unit = 1};
  assert_true(bed_take(&b));
  assert_true(ask(&b, N) <= N / 2);
  bed_fini(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_split_is_below),
                                     cmocka_unit_test(large_fans_are_free_to_cut),
                                     cmocka_unit_test(cuts_inside_layers_count)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
