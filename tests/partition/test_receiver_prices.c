/* What stages are worth at most where receivers have prices, against all stages of small problems
 * and all numbers of receivers; what that adds to prices of clusters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "draws.h"
#include "labelled.h"
#include "prices.h"
#include "sweep.h"

enum { SMALL = 7, NETS = 64, PARTS = 1 << 12 };

/* The most that a stage with these labels is worth where receivers have prices, for any number of
 * receivers up to all that there may be, one in each other stage; INT64_MIN: it does not fit. */
static int64_t value_by_receivers(const psplit_i_instance *in, int64_t limit, const int *label,
                                  const int32_t *price, const int32_t *receiver) {
  const int64_t load = labelled_load(in, label);
  int64_t most[1 << 10], n = 1;
  if (load < 0 || load > limit) return INT64_MIN;
  int64_t value = 0, best = INT64_MIN, loads[1 << 10] = {load};
  for (uint32_t v = 0; v < in->n; v++) value += label[v] == 1 ? price[v] : 0;
  most[0] = 0;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const int from = label[in->net_pin[in->net_off[e]]];
    int n_behind = 0, n_inside = 0;
    for (uint32_t q = in->net_off[e] + 1; q < in->net_off[e + 1]; q++) {
      n_behind += label[in->net_pin[q]] == 2;
      n_inside += label[in->net_pin[q]] == 1;
    }
    if (from == 0 && n_inside > 0) value -= receiver[e];
    if (from != 1 || n_behind == 0) continue;
    value += receiver[e];
    const int64_t before = n;
    for (int m = 1; m < n_behind && m + 1 < (int)in->n_stages && receiver[e] != 0; m++)
      for (int64_t k = 0; k < before && n < 1 << 10; k++) {
        loads[n] = loads[k] + m * in->send[e];
        most[n++] = most[k] + (int64_t)m * receiver[e];
      }
  }
  for (int64_t k = 0; k < n; k++)
    if (loads[k] <= limit && most[k] + value > best) best = most[k] + value;
  return best;
}

/* No stage is worth more than what is found, with receivers of some nets priced. Whether it is
 * exact for all stages together. */
static bool hold_receivers(const bed *b) {
  const psplit_i_instance *in = &b->instance;
  int32_t price[SMALL], most[SMALL], receiver[NETS] = {0};
  int label[SMALL] = {0};
  psplit_i_pricing *pricing;
  int64_t found, best = INT64_MIN;
  bool done;
  const int64_t limit = draw((uint64_t)in->total_w[0] + 1);
  assert_true(in->n_nets <= NETS);
  for (uint32_t v = 0; v < in->n; v++) price[v] = (int32_t)draw(1000) - 200;
  for (uint32_t e = 0; e < in->n_nets; e++) receiver[e] = (int32_t)(draw(2) * draw(400));
  assert_int_equal(psplit_i_pricing_make(in, NULL, &pricing), PSPLIT_OK);
  assert_non_null(pricing);
  assert_int_equal(
    psplit_i_pricing_most(pricing, limit, PARTS, price, receiver, NULL, &found, most, &done),
    PSPLIT_OK);
  assert_true(done);
  for (bool more = true; more;) {
    const int64_t one = value_by_receivers(in, limit, label, price, receiver);
    if (one > best) best = one;
    for (uint32_t v = 0; v < in->n && one > INT64_MIN; v++)
      if (label[v] == 1) assert_true(most[v] >= (one > 0 ? one : 0));
    more = next_labels(in, label);
  }
  assert_true(found >= best);
  psplit_i_pricing_free(pricing);
  return found == best;
}

/* What is traced takes as much as its receivers, and is worth as much. */
static void hold_traced_receivers(const psplit_i_instance *in, int64_t limit, const uint8_t *side,
                                  const int8_t *paid, const int32_t *price, const int32_t *receiver,
                                  int64_t best) {
  int label[SMALL];
  int64_t value = 0, load = 0;
  for (uint32_t v = 0; v < in->n; v++) {
    label[v] = side[v];
    value += side[v] == PSPLIT_I_INSIDE ? price[v] : 0;
  }
  for (uint32_t e = 0; e < in->n_nets; e++) {
    assert_true(paid[e] >= -1 && paid[e] < (int)in->n_stages);
    value += (int64_t)paid[e] * receiver[e];
    if (paid[e] > 1) load += (paid[e] - 1) * in->send[e];
  }
  assert_int_equal(value, best);
  assert_true(labelled_load(in, label) >= 0);
  assert_true(labelled_load(in, label) + load <= limit);
}

/* Tables of what is worth `least` alone, with prices of receivers of either sign: no stage is worth
 * more, and what is traced is worth that. Whether the most of all was found, and traced. */
static bool hold_receivers_above(const bed *b) {
  const psplit_i_instance *in = &b->instance;
  int32_t price[SMALL], receiver[NETS] = {0};
  int label[SMALL] = {0};
  uint8_t side[SMALL];
  int8_t paid[NETS];
  psplit_i_pricing *pricing;
  int64_t found, best = INT64_MIN;
  bool done;
  const int64_t limit = draw((uint64_t)in->total_w[0] + 1);
  assert_true(in->n_nets <= NETS);
  for (uint32_t v = 0; v < in->n; v++) price[v] = (int32_t)draw(1000) - 200;
  for (uint32_t e = 0; e < in->n_nets; e++)
    if (psplit_i_pricing_receivers(in, e) > 1) receiver[e] = (int32_t)draw(500) - 100;
  for (bool more = true; more;) {
    const int64_t one = value_by_receivers(in, limit, label, price, receiver);
    if (one > best) best = one;
    more = next_labels(in, label);
  }
  const int64_t least = best > 0 ? best - draw((uint64_t)best / 8 + 1) : 0;
  assert_int_equal(psplit_i_pricing_make_wide(in, NULL, &pricing), PSPLIT_OK);
  assert_non_null(pricing);
  assert_int_equal(
    psplit_i_pricing_above(pricing, limit, PARTS, price, receiver, least, NULL, &found, &done),
    PSPLIT_OK);
  assert_true(done && found >= best && found >= least);
  const bool traced = psplit_i_pricing_trace(pricing, 0, side, paid);
  if (traced && found > least) hold_traced_receivers(in, limit, side, paid, price, receiver, found);
  psplit_i_pricing_free(pricing);
  return traced && found == best;
}

static void receivers_are_counted(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_exact = 0, n_above = 0;
  sweep s = {.n_seeds = 20, .nodes = {2, 6}, .stages = {2, 1}};
  draw_state = 11;
  while (next_problem(&s, &b)) {
    if (!has_prices(&b)) continue;
    n_asked++;
    n_exact += hold_receivers(&b);
    for (int k = 0; k < 3; k++) n_above += hold_receivers_above(&b);
  }
  assert_true(n_asked > percent(60));
  assert_true(n_exact > n_asked / 2);
  assert_true(n_above > n_asked);
}

/* What clusters are worth at a limit within which there is a split: no more than its stages can be.
 * Prices of receivers say more on some problems. */
static void receivers_say_more(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_more = 0;
  int64_t best;
  sweep s = {.n_seeds = 40, .nodes = {4, 12}, .stages = {2, 3}};
  while (next_problem(&s, &b)) {
    psplit_i_prices prices;
    psplit_i_pricing *pricing;
    int64_t alone;
    if (!has_prices(&b) || !proved_best(&b, &best)) continue;
    assert_int_equal(psplit_i_prices_init(&b.instance, best, &b.arena, &prices), PSPLIT_OK);
    assert_int_equal(psplit_i_pricing_make(&b.instance, NULL, &pricing), PSPLIT_OK);
    if (!pricing) continue;
    assert_int_equal(psplit_i_prices_grow(&prices, pricing, best, 4, true, NULL, &alone),
                     PSPLIT_OK);
    int64_t sum = alone;
    assert_int_equal(
      psplit_i_prices_of_receivers(&prices, pricing, &b.instance, best, 8, NULL, &sum), PSPLIT_OK);
    assert_true(sum >= alone && sum <= prices.needed);
    n_asked++;
    n_more += sum > alone;
    psplit_i_pricing_free(pricing);
  }
  assert_true(n_asked > percent(80));
  assert_true(n_more > n_asked / 50);
}

/* Point to point, receivers that have prices where prices are raised say more. */
static void receivers_say_more_by_planes(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_more = 0;
  int64_t best;
  sweep s = {.n_seeds = 40, .nodes = {6, 12}, .stages = {3, 3}};
  while (next_problem(&s, &b)) {
    int64_t sum[2];
    if (!has_prices(&b) || !b.instance.p2p || !proved_best(&b, &best) || best == 0) continue;
    for (int k = 0; k < 2; k++) {
      psplit_i_prices prices;
      psplit_i_planes *planes;
      psplit_i_pricing *pricing;
      assert_int_equal(psplit_i_prices_init(&b.instance, best, &b.arena, &prices), PSPLIT_OK);
      assert_int_equal(psplit_i_planes_make(&prices, &b.instance, &b.arena, &planes), PSPLIT_OK);
      assert_int_equal(psplit_i_pricing_make_wide(&b.instance, NULL, &pricing), PSPLIT_OK);
      if (!pricing) continue;
      assert_int_equal(psplit_i_prices_raise(planes, pricing, k ? &b.instance : NULL, best, PARTS,
                                             60, true, NULL, &sum[k]),
                       PSPLIT_OK);
      assert_true(sum[k] <= prices.needed);
      psplit_i_pricing_free(pricing);
      n_asked += k > 0;
      n_more += k && sum[1] > sum[0] + sum[0] / 1000;
    }
  }
  assert_true(n_asked > percent(40));
  assert_true(n_more > n_asked / 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(receivers_are_counted),
    cmocka_unit_test(receivers_say_more),
    cmocka_unit_test(receivers_say_more_by_planes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
