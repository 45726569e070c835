/* Whole stages in a row of fans: the bound is no more than the optimum, whatever value it is asked
 * from, and sees what cuts inside a layer take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "draws.h"
#include "lattice.h"
#include "made_problem.h"
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

/* One or two layers of branches that read a tensor, most of them, which another separator may lie
 * behind, and which the end of the layer or of all may read as well. */
static void make_layers(random_problem *r) {
  enum { MOST_READERS = 8 };
  static const uint32_t dear[] = {5, 20, 60};
  const uint32_t n_layers = 1 + draw(2), most = dear[draw(3)];
  begin_problem(r, 2 + draw(5));
  if (draw(4) == 0) r->problem.comm = PSPLIT_COMM_SHARED;
  uint32_t source = add_node(r, draw(11)), skips = PSPLIT_NONE;
  for (uint32_t l = 0; l < n_layers; l++) {
    uint32_t to[MOST_READERS], n_to = 0, routed[MOST_READERS], n_routed = 0, out[MOST_READERS];
    const uint32_t router = draw(2) ? add_node(r, draw(11)) : PSPLIT_NONE;
    const uint32_t n_branches = n_layers > 1 ? 2 + draw(2) : 3 + draw(4);
    for (uint32_t b = 0; b < n_branches; b++) {
      const uint32_t up = add_node(r, draw(31));
      uint32_t last = up;
      if (router == PSPLIT_NONE || draw(6) > 0) to[n_to++] = up;
      if (router != PSPLIT_NONE) routed[n_routed++] = up;
      if (draw(3) > 0) {
        last = add_node(r, draw(31));
        add_net(r, up, draw(11), &last, 1);
      }
      out[b] = last;
    }
    const uint32_t end = add_node(r, draw(11));
    for (uint32_t b = 0; b < n_branches; b++) add_net(r, out[b], draw(11), &end, 1);
    if (router != PSPLIT_NONE) {
      add_net(r, source, draw(6), &router, 1);
      add_net(r, router, draw(6), routed, n_routed);
    }
    if (draw(2)) to[n_to++] = end;
    if (l == 0 && n_layers > 1 && draw(3) == 0) skips = source;
    add_net(r, source, draw(most), to, n_to);
    source = end;
  }
  if (skips != PSPLIT_NONE) add_net(r, skips, draw(most), &source, 1);
}

static void dear_tensors_of_layers_count(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_tight = 0;
  for (uint32_t seed = 0; seed < percent(1000); seed++) {
    int64_t best;
    draw_state = seed;
    make_layers(&b.r);
    if (lattice_best(&b.r.problem, false, INT64_MAX / 8, 1 << 11, 1 << 15, &best) != LATTICE_BEST)
      continue;
    if (!bed_take(&b)) continue;
    for (int more = 0; more < 3; more++) {
      const int64_t value = best + 1 + more * (best / 3), bound = ask(&b, value);
      if (bound > best)
        fail_msg("seed %u: %lld of a value of %lld, the optimum is %lld", seed, (long long)bound,
                 (long long)value, (long long)best);
      n_asked++;
      n_tight += bound == best;
    }
    bed_fini(&b);
  }
  assert_true(n_asked > percent(1500) && n_tight > n_asked / 16);
}

/* Branches of two nodes, of which the first receives a tensor from in front of a separator: in two
 * rows, three stages receive it, and eight stages take 194. */
static void fronts_fill_few_stages(void **state) {
  (void)state;
  enum { BRANCHES = 16, SOURCE = 0, ROUTER = 1, END = 2 * BRANCHES + 2 };
  static bed b;
  uint32_t up[BRANCHES + 1] = {ROUTER};
  random_problem *r = &b.r;
  begin_problem(r, 8);
  while (r->problem.n_nodes <= END) add_node(r, 12);
  r->time_ns[SOURCE] = 10;
  r->time_ns[ROUTER] = r->time_ns[END] = 1;
  for (uint32_t k = 0; k < BRANCHES; k++) {
    const uint32_t down = 2 * k + 3, end = END;
    up[k + 1] = 2 * k + 2;
    add_net(r, up[k + 1], 9, &down, 1);
    add_net(r, down, 9, &end, 1);
  }
  add_net(r, SOURCE, 60, up, BRANCHES + 1);
  add_net(r, ROUTER, 1, up + 1, BRANCHES);
  assert_true(bed_take(&b));
  const int64_t bound = ask(&b, 400);
  assert_true(bound > 165 && bound <= 194);
  bed_fini(&b);
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
  begin_problem(r, 3);
  r->problem.n_nodes = N;
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
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_split_is_below), cmocka_unit_test(dear_tensors_of_layers_count),
    cmocka_unit_test(fronts_fill_few_stages), cmocka_unit_test(large_fans_are_free_to_cut),
    cmocka_unit_test(cuts_inside_layers_count)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
