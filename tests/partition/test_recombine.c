/* Downsets where little is cut, the best split between them, and splits that are put together so,
 * against all downsets and all splits of small problems. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "downset_cuts.h"
#include "downset_dp.h"
#include "local_search.h"
#include "price_beam.h"
#include "recombine.h"
#include "stages_by_price.h"
#include "sweep.h"

static const unsigned kFeatures[] = {
  0, WITH_CLASSES, WITH_FREE_COMM, WITH_OVERLAP, WITH_TOGETHER, WITH_ALIKE | WITH_CLASSES};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures, MOST_CLUSTERS = 10, MOST_STAGES = 16 };

static psplit_i_downsets set; /* of the bed */
static int64_t scratch[MOST_STAGES * 5];

static bool is_downset(const psplit_i_instance *in, const uint64_t *bits) {
  for (uint32_t i = 0; i < in->n; i++)
    for (uint32_t l = in->pred_off[i]; l < in->pred_off[i + 1]; l++)
      if (psplit_i_holds(bits, i) && !psplit_i_holds(bits, in->pred[l])) return false;
  return true;
}

/* Calls one function for problems of all shapes and features, of so many stages or one more. */
static void for_stages(uint32_t n_stages, uint32_t n_seeds, uint32_t least, uint32_t n_nodes,
                       void (*ask)(bed *b, const char *what)) {
  static bed b;
  sweep s = {.n_seeds = n_seeds,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {least, n_nodes},
             .stages = {n_stages, n_stages + 1},
             .shared_every = 2};
  while (next_problem(&s, &b)) {
    assert_true(b.instance.n_stages <= MOST_STAGES);
    psplit_i_downsets_init(&set, &b.instance);
    if (b.instance.all_forward) ask(&b, s.what);
    psplit_i_downsets_fini(&set);
  }
}

static void for_all(uint32_t n_seeds, uint32_t least, uint32_t n_nodes,
                    void (*ask)(bed *b, const char *what)) {
  for_stages(2, n_seeds, least, n_nodes, ask);
}

/* --- the best split between downsets --- */

static uint32_t n_asked, n_best;

static void ask_best(bed *b, const char *what) {
  if (b->instance.n > MOST_CLUSTERS) return;
  for (uint64_t bits = 0; bits < UINT64_C(1) << b->instance.n; bits++)
    if (is_downset(&b->instance, &bits)) assert_true(psplit_i_downsets_add(&set, &bits));
  int64_t comm;
  const int64_t best = best_by_enumeration(&b->r.problem, &b->options, &comm, NULL);
  if (best == INT64_MAX) return;
  /* The optimum as the limit, and one that is far away. */
  for (int64_t limit = best; limit <= 3 * best + 3; limit += 2 * best + 3) {
    assert_int_equal(
      psplit_i_downset_dp(&b->instance, &b->automaton, &set, limit, NULL, scratch, &b->assignment),
      PSPLIT_OK);
    const int64_t value = b->assignment.value;
    if (value < PSPLIT_I_INF && (value > limit || value < best || checked_value(b) != value))
      fail_msg("%s: %lld is not what it takes, best %lld", what, (long long)value, (long long)best);
    if (b->r.problem.comm == PSPLIT_COMM_SHARED && value != best && best > 0)
      fail_msg("%s: %lld, best %lld", what, (long long)value, (long long)best);
    n_asked++;
    n_best += value == best;
  }
}

static void of_all_downsets_the_best_is_found(void **state) {
  (void)state;
  n_asked = n_best = 0;
  for_all(60, 3, 5, ask_best);
  assert_true(n_asked > percent(600));
  assert_true(n_best >= n_asked - n_asked / 50);
}

/* Splits that others found, put together: no worse than any of them. */
static void ask_union(bed *b, const char *what) {
  int64_t least = PSPLIT_I_INF, most = 0;
  for (uint32_t seed = 1; seed <= 3; seed++) {
    const psplit_i_local_search_options once = {
      .seed = seed, .n_threads = 1, .n_rounds = 1, .n_steps = 0};
    b->assignment.value = PSPLIT_I_INF;
    assert_int_equal(psplit_i_local_search(&b->instance, &b->automaton, &once, &b->assignment),
                     PSPLIT_OK);
    if (b->assignment.value >= PSPLIT_I_INF) return;
    if (b->assignment.value < least) least = b->assignment.value;
    if (b->assignment.value > most) most = b->assignment.value;
    assert_true(psplit_i_downsets_add_split(&set, &b->instance, b->assignment.stage));
  }
  if (most == 0) return;
  assert_int_equal(
    psplit_i_downset_dp(&b->instance, &b->automaton, &set, most, NULL, scratch, &b->assignment),
    PSPLIT_OK);
  if (b->r.problem.comm == PSPLIT_COMM_SHARED && b->assignment.value > least)
    fail_msg("%s: %lld, one of them %lld", what, (long long)b->assignment.value, (long long)least);
  n_asked++;
  n_best += b->assignment.value < least;
}

static void splits_are_put_together(void **state) {
  (void)state;
  n_asked = n_best = 0;
  for_all(60, 8, 40, ask_union);
  assert_true(n_asked > percent(1000));
}

/* --- where little is cut --- */

typedef struct point {
  int64_t work, cut;
} point;

static point point_of(const bed *b, const uint64_t *bits) {
  const psplit_i_instance *in = &b->instance;
  point p = {0};
  for (uint32_t i = 0; i < in->n; i++)
    if (psplit_i_holds(bits, i)) p.work += b->automaton.min_time[i];
  for (uint32_t e = 0; e < in->n_nets; e++) {
    int64_t cost = 0;
    bool out = false;
    for (uint32_t t = 0; t < in->n_types; t++) {
      const size_t cell = (size_t)t * in->n_nets + e;
      const int64_t both = in->send[cell] + in->recv[cell];
      if (b->automaton.count[t] > 0 && both > cost) cost = both;
    }
    for (uint32_t k = in->net_off[e] + 1; k < in->net_off[e + 1]; k++)
      out |= !psplit_i_holds(bits, in->net_pin[k]);
    if (out && psplit_i_holds(bits, in->net_pin[in->net_off[e]])) p.cut += cost;
  }
  return p;
}

/* Whether c lies on the line from a to b, or above it. */
static bool above(point a, point b, point c) {
  return (double)(c.cut - a.cut) * (double)(b.work - a.work) >=
         (double)(c.work - a.work) * (double)(b.cut - a.cut);
}

/* Every corner of the hull of downsets that hold the first `low` clusters and none from `high` on,
 * by id, is one that was found. */
static void ask_window(bed *b, const char *what, uint32_t low, uint32_t high) {
  static point all[1 << MOST_CLUSTERS];
  uint32_t n = 0;
  for (uint64_t free = 0; free < UINT64_C(1) << (high - low); free++) {
    const uint64_t bits = free << low | ((UINT64_C(1) << low) - 1);
    if (is_downset(&b->instance, &bits)) all[n++] = point_of(b, &bits);
  }
  for (uint32_t k = 1; k + 1 < n; k++) {
    bool corner = all[k].work > all[0].work && all[k].work < all[n - 1].work, found = false;
    for (uint32_t x = 0; x < n && corner; x++)
      for (uint32_t y = 0; y < n && corner; y++)
        corner =
          x == k || y == k || all[x].work > all[k].work || all[y].work < all[k].work ||
          (all[x].work == all[y].work ? all[x].cut >= all[k].cut : !above(all[x], all[y], all[k]));
    for (uint32_t i = 0; i < set.n && corner; i++) {
      const point p = point_of(b, psplit_i_downset(&set, i));
      found |= p.work == all[k].work && p.cut == all[k].cut;
    }
    if (corner && !found)
      fail_msg("%s: nothing of %lld that cuts %lld", what, (long long)all[k].work,
               (long long)all[k].cut);
    n_best += corner;
  }
}

/* In windows of half of all work, which begin a quarter of it apart. */
static void ask_hull(bed *b, const char *what) {
  const psplit_i_instance *in = &b->instance;
  const int64_t total = b->automaton.total_min_time;
  uint32_t order[MOST_CLUSTERS];
  int64_t before = 0, next = 0;
  /* Of longer times slopes are rounded, and a corner may be missed. */
  int64_t longest = total;
  for (size_t cell = 0; cell < (size_t)in->n_types * in->n_nets; cell++)
    if (in->send[cell] + in->recv[cell] > longest) longest = in->send[cell] + in->recv[cell];
  if (in->n > MOST_CLUSTERS || total == 0 || longest > 10000000) return;
  for (uint32_t i = 0; i < in->n; i++) order[i] = i;
  assert_int_equal(psplit_i_downset_cuts_near(in, &b->automaton, order, total, NULL, &set),
                   PSPLIT_OK);
  for (uint32_t k = 0; k < set.n; k++) assert_true(is_downset(in, psplit_i_downset(&set, k)));
  for (uint32_t low = 0; low < in->n; before += b->automaton.min_time[low++]) {
    uint32_t high = low;
    if (before < next) continue;
    next = before + (total / 2 + 1) / 2 + 1;
    for (int64_t inside = 0; high < in->n && inside < total / 2 + 1;)
      inside += b->automaton.min_time[high++];
    ask_window(b, what, low, high);
  }
  n_asked++;
}

static void least_cuts_are_on_the_hull(void **state) {
  (void)state;
  n_asked = n_best = 0;
  for_all(30, 5, 6, ask_hull);
  assert_true(n_asked > percent(300));
  assert_true(n_best > percent(600));
}

/* --- all of it --- */

/* What small problems end with, against the best of all splits. */
static void count_best(const bed *b) {
  int64_t comm;
  n_asked++;
  if (b->instance.n > 8) return;
  const int64_t best = best_by_enumeration(&b->r.problem, &b->options, &comm, NULL);
  assert_true(best <= b->assignment.value);
  n_best += best == b->assignment.value;
}

static void ask_all(bed *b, const char *what) {
  uint32_t stage[MAX_NODES];
  for (uint32_t again = 0; again < 2; again++) {
    b->assignment.value = b->assignment.comm = PSPLIT_I_INF;
    assert_int_equal(psplit_i_recombine(&b->instance, &b->automaton, &set, PSPLIT_I_INF / 4, NULL,
                                        scratch, &b->assignment),
                     PSPLIT_OK);
    if (b->assignment.value >= PSPLIT_I_INF) return;
    if (checked_value(b) != b->assignment.value)
      fail_msg("%s: %lld is not what it takes, %lld", what, (long long)b->assignment.value,
               (long long)checked_value(b));
    if (again) assert_memory_equal(stage, b->assignment.stage, b->instance.n * sizeof *stage);
    memcpy(stage, b->assignment.stage, b->instance.n * sizeof *stage);
  }
  count_best(b);
}

static void what_is_put_together_is_a_split(void **state) {
  (void)state;
  n_asked = n_best = 0;
  for_all(40, 4, 30, ask_all);
  assert_true(n_asked > percent(700));
  assert_true(n_best > percent(200));
}

/* --- stages that are worth much --- */

static uint32_t n_better;

/* From a split that hardly any search found. */
static void ask_by_price(bed *b, const char *what) {
  uint32_t stage[MAX_NODES];
  if (b->instance.n_types > 1 || b->instance.overlap) return;
  if (b->instance.total_w[0] >= PSPLIT_I_INF) return;
  for (uint32_t again = 0; again < 2; again++) {
    const int64_t before = some_split(b, 0);
    if (before == 0 || before >= PSPLIT_I_INF) return;
    psplit_i_downsets_forget(&set, 0);
    assert_int_equal(
      psplit_i_stages_by_price(&b->instance, &b->automaton, 0, NULL, scratch, &b->assignment, &set),
      PSPLIT_OK);
    if (b->assignment.value > before || checked_value(b) != b->assignment.value)
      fail_msg("%s: %lld from %lld is not what it takes, %lld", what,
               (long long)b->assignment.value, (long long)before, (long long)checked_value(b));
    for (uint32_t k = 0; k < set.n; k++)
      assert_true(is_downset(&b->instance, psplit_i_downset(&set, k)));
    if (again) assert_memory_equal(stage, b->assignment.stage, b->instance.n * sizeof *stage);
    memcpy(stage, b->assignment.stage, b->instance.n * sizeof *stage);
    n_better += !again && b->assignment.value < before;
  }
  count_best(b);
}

static void windows_make_splits(void **state) {
  (void)state;
  n_asked = n_best = n_better = 0;
  for_stages(3, 10, 12, 30, ask_by_price);
  assert_true(n_better > percent(4));
}

/* What is left in front of the last stage of a window as its first one: that is within the limit.
 */
static void check_last_stage(bed *b, const char *what, const psplit_i_beam *beam,
                             const uint64_t *left, uint32_t first) {
  const uint32_t n = b->instance.n_stages, last = first + 1;
  psplit_i_assignment split;
  assert_int_equal(psplit_i_assignment_init(&split, &b->instance, &b->arena), PSPLIT_OK);
  psplit_i_assignment_copy(&split, &b->assignment, &b->instance);
  for (uint32_t v = 0; v < b->instance.n; v++)
    if (split.stage[v] == first || split.stage[v] == last)
      split.stage[v] = psplit_i_holds(left, v) ? first : last;
  psplit_i_assignment_evaluate(&split, &b->instance, &b->automaton, scratch);
  const int64_t load =
    psplit_i_load(&b->instance, scratch[last], scratch[n + last], scratch[2 * n + last]);
  if (load > beam->limit)
    fail_msg("%s: stage %u takes %lld of %lld", what, last, (long long)load,
             (long long)beam->limit);
  n_asked++;
}

/* Stages that are not in a window stay. */
static void ask_beam_window(bed *b, const char *what) {
  const psplit_i_instance *in = &b->instance;
  psplit_i_beam beam = {.instance = in, .set = &set};
  int64_t sum;
  if (in->n_types > 1 || in->overlap || in->total_w[0] >= PSPLIT_I_INF) return;
  const int64_t value = some_split(b, 0);
  if (value == 0 || value >= PSPLIT_I_INF) return;
  assert_int_equal(psplit_i_beam_init(&beam, value), PSPLIT_OK);
  beam.limit = value;
  if (beam.pricing) assert_int_equal(psplit_i_beam_price(&beam, 2, &sum), PSPLIT_OK);
  for (uint32_t first = 0; first + 1 < in->n_stages && beam.pricing; first++) {
    psplit_i_downsets_forget(&set, 0);
    assert_int_equal(psplit_i_beam_window(&beam, b->assignment.stage, first, first + 1), PSPLIT_OK);
    for (uint32_t k = 0; k < set.n; k++) {
      const uint64_t *left = psplit_i_downset(&set, k);
      assert_true(is_downset(in, left));
      for (uint32_t v = 0; v < in->n; v++) {
        if (b->assignment.stage[v] < first) assert_true(psplit_i_holds(left, v));
        if (b->assignment.stage[v] > first + 1) assert_false(psplit_i_holds(left, v));
      }
      check_last_stage(b, what, &beam, left, first);
    }
  }
  psplit_i_beam_fini(&beam);
}

static void windows_leave_other_stages(void **state) {
  (void)state;
  n_asked = 0;
  for_stages(3, 10, 12, 30, ask_beam_window);
  assert_true(n_asked > percent(200));
}

static void stages_by_price_make_splits(void **state) {
  (void)state;
  n_asked = n_best = n_better = 0;
  for_all(20, 4, 30, ask_by_price);
  assert_true(n_asked > percent(150));
  assert_true(n_best > percent(20));
  assert_true(n_better > percent(8));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(of_all_downsets_the_best_is_found),
    cmocka_unit_test(splits_are_put_together),
    cmocka_unit_test(least_cuts_are_on_the_hull),
    cmocka_unit_test(what_is_put_together_is_a_split),
    cmocka_unit_test(stages_by_price_make_splits),
    cmocka_unit_test(windows_leave_other_stages),
    cmocka_unit_test(windows_make_splits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
