/* What lies ahead in an order as a chain: exact where the graph is a chain. And settling on a
 * target: never worse than the first, and what is left is what was best. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "counter_random.h"
#include "decisions.h"
#include "make_items.h"

enum { N = 12, K = 4 };

typedef struct chain {
  int64_t time[N], ns[N - 1];
  uint64_t none[N];
  uint32_t pin[N], pred_off[N + 1], pred[N], succ_off[N + 1], succ[N], net_off[N], net_pin[2 * N];
  uint32_t inc_off[N + 1], inc[2 * N], own_off[N + 1], count[1], types[K];
  uint64_t memory[1];
  psplit_items items;
} chain;

/* Nodes in a row; tensors cost up to half of what nodes do. */
static void make_chain(chain *c, uint32_t seed, bool overlap) {
  const psplit_i_random_stream stream = {seed, PSPLIT_I_RANDOM_TEST, 7, 0};
  memset(c, 0, sizeof *c);
  uint32_t n_inc = 0;
  for (uint32_t v = 0; v < N; v++) {
    c->time[v] = 1000 + (int64_t)psplit_i_random_below(&stream, v, 9000);
    c->pin[v] = PSPLIT_NONE;
    c->pred_off[v + 1] = v;
    c->succ_off[v + 1] = v + 1 < N ? v + 1 : v;
    if (v > 0) c->pred[v - 1] = v - 1, c->inc[n_inc++] = 2 * (v - 1);
    if (v + 1 < N) {
      c->ns[v] = (int64_t)psplit_i_random_below(&stream, N + v, 5000);
      c->succ[v] = v + 1;
      c->net_off[v + 1] = 2 * (v + 1);
      c->net_pin[2 * v] = v;
      c->net_pin[2 * v + 1] = v + 1;
      c->inc[n_inc++] = 2 * v + 1;
    }
    c->inc_off[v + 1] = n_inc;
  }
  c->count[0] = K;
  c->items = (psplit_items){.n_items = N,
                            .n_types = 1,
                            .n_nets = N - 1,
                            .n_stages = K,
                            .n_nodes = N,
                            .time_ns = c->time,
                            .weight_bytes = c->none,
                            .activation_bytes = c->none,
                            .pin = c->pin,
                            .pred_off = c->pred_off,
                            .pred = c->pred,
                            .succ_off = c->succ_off,
                            .succ = c->succ,
                            .net_off = c->net_off,
                            .net_pin = c->net_pin,
                            .send_ns = c->ns,
                            .recv_ns = c->ns,
                            .inc_off = c->inc_off,
                            .inc = c->inc,
                            .own_off = c->own_off,
                            .type_count = c->count,
                            .type_memory = c->memory,
                            .stage_type = c->types,
                            .overlap = overlap};
}

/* The best of all splits into at most K stages, by the definition of loads. */
static int64_t optimum(const chain *c) {
  int64_t best = INT64_MAX;
  for (uint32_t a = 0; a <= N; a++)
    for (uint32_t b = a; b <= N; b++)
      for (uint32_t d = b; d <= N; d++) {
        uint32_t stage[N];
        for (uint32_t v = 0; v < N; v++)
          stage[v] = (v >= a ? 1U : 0) + (v >= b ? 1U : 0) + (v >= d ? 1U : 0);
        const int64_t value = bottleneck_of(&c->items, stage, c->types, NULL);
        best = value < best ? value : best;
      }
  return best;
}

static void test_chains(void **state) {
  (void)state;
  static chain c;
  for (uint32_t seed = 0; seed < 40; seed++) {
    psplit_i_arena arena;
    psplit_i_view view;
    psplit_i_outlook o;
    make_chain(&c, seed, seed % 3 == 2);
    psplit_i_arena_init(&arena, 0);
    assert_int_equal(psplit_i_view_init(&view, &c.items, 2, &arena), PSPLIT_OK);
    assert_int_equal(psplit_i_outlook_init(&o, &view, &arena), PSPLIT_OK);
    const double best = (double)optimum(&c), least = psplit_i_outlook_least(&o);
    if (least < best * 0.9999 || least > best * 1.0021)
      fail_msg("seed %u: %g, the optimum is %g", seed, least, best);
    psplit_i_outlook_aim(&o, best);
    assert_true(o.need[0] <= K);
    psplit_i_outlook_aim(&o, best - 1);
    assert_true(o.need[0] > K);
    assert_int_equal(o.need[N], 0);
    psplit_i_arena_fini(&arena);
  }
}

/* From a place on, with room: the farthest cut that helps, and no farther than the room. */
static void test_prospect(void **state) {
  (void)state;
  static chain c;
  psplit_i_arena arena;
  psplit_i_view view;
  psplit_i_outlook o;
  make_chain(&c, 3, false);
  for (uint32_t v = 0; v < N; v++) c.time[v] = 1000;
  memset(c.ns, 0, sizeof c.ns);
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_view_init(&view, &c.items, 2, &arena), PSPLIT_OK);
  assert_int_equal(psplit_i_outlook_init(&o, &view, &arena), PSPLIT_OK);
  psplit_i_outlook_aim(&o, 3000);
  assert_int_equal(o.need[0], 4);
  assert_int_equal(o.need[1], 4);
  assert_int_equal(o.need[3], 3);
  const psplit_i_prospect none = psplit_i_outlook_from(&o, 1, 500);
  assert_int_equal(none.need, 4);
  assert_true(none.fill == 0 && none.cut == 0);
  const psplit_i_prospect some = psplit_i_outlook_from(&o, 1, 2500);
  assert_int_equal(some.need, 3);
  assert_true(some.fill == 2000);
  assert_int_equal(psplit_i_outlook_from(&o, 6, 1e9).need, 0);
  psplit_i_arena_fini(&arena);
}

static void test_settles(void **state) {
  (void)state;
  static psplit_i_policy_network network;
  uint32_t n_better = 0;
  psplit_i_policy_randomize(&network, 11);
  for (uint32_t seed = 0; seed < 2 * ITEMS_FEATURES; seed++) {
    psplit_i_arena arena;
    psplit_i_view view;
    psplit_i_arena_init(&arena, 0);
    psplit_i_decider *d = PSPLIT_NEW(&arena, psplit_i_decider, 1);
    const psplit_items items = make_items(seed, 20, 4, seed % ITEMS_MEMORY, &arena);
    assert_non_null(d);
    assert_int_equal(psplit_i_view_init(&view, &items, seed % 5, &arena), PSPLIT_OK);
    assert_int_equal(psplit_i_decider_init(d, &view, &arena), PSPLIT_OK);
    psplit_i_encode(&network, &view.graph, &d->encoding);
    int64_t value[2];
    for (uint32_t k = 0; k < 2; k++) {
      assert_int_equal(psplit_i_settle(d, &network, k ? PSPLIT_I_TRIES : 1, NULL), PSPLIT_OK);
      value[k] = d->stages.most;
      assert_true(value[k] == bottleneck_of(&items, d->stages.stage, d->stages.type, NULL));
    }
    assert_true(value[1] <= value[0]);
    n_better += value[1] < value[0];
    psplit_i_arena_fini(&arena);
  }
  assert_true(n_better > ITEMS_FEATURES / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_chains),
    cmocka_unit_test(test_prospect),
    cmocka_unit_test(test_settles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
