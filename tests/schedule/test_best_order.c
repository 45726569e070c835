/* The best order of pieces is that of enumeration where there are few, and mostly proved where
 * there are more; no step takes less than its limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include <psplit/limits.h>

#include "pipelines.h"

/* --- the best order --- */

typedef struct orders {
  const psplit_schedule_input *in;
  const uint32_t *max_in_flight;
  bool backward[4][12]; /* of each stage, in its order */
  int64_t best;
} orders;

/* The makespan of the orders, by running what can run until nothing is left; INT64_MAX: stuck. */
static int64_t run_orders(const orders *o) {
  const uint32_t k = o->in->n_stages, m = o->in->n_micro_batches;
  int64_t end[2][4][6], clock[4] = {0}, most = 0;
  uint32_t done[4] = {0}, n[2][4] = {{0}};
  memset(end, 0xff, sizeof end);
  for (uint32_t left = 2 * k * m; left > 0;) {
    const uint32_t before = left;
    for (uint32_t j = 0; j < k; j++)
      while (done[j] < 2 * m) {
        const bool b = o->backward[j][done[j]];
        const uint32_t i = n[b][j];
        int64_t at = 0;
        if (b)
          at = j == k - 1 ? end[0][j][i] : end[1][j + 1][i];
        else if (j > 0)
          at = end[0][j - 1][i];
        if (at < 0) break;
        if (o->in->link_ns && b && j < k - 1) at += o->in->link_ns[j];
        if (o->in->link_ns && !b && j > 0) at += o->in->link_ns[j - 1];
        clock[j] =
          (at > clock[j] ? at : clock[j]) + (b ? o->in->backward_ns : o->in->forward_ns)[j];
        end[b][j][i] = clock[j];
        if (clock[j] > most) most = clock[j];
        n[b][j]++;
        done[j]++;
        left--;
      }
    if (left == before) return INT64_MAX;
  }
  return most;
}

/* Every order of every stage, in which no backward piece comes before its forward piece. */
static void enumerate(orders *o, uint32_t stage, uint32_t n_forward, uint32_t n_backward) {
  const uint32_t k = o->in->n_stages, m = o->in->n_micro_batches;
  if (stage == k) {
    const int64_t ns = run_orders(o);
    if (ns < o->best) o->best = ns;
    return;
  }
  if (n_backward == m) {
    enumerate(o, stage + 1, 0, 0);
    return;
  }
  const uint32_t held = n_forward - n_backward;
  if (n_forward < m && (!o->max_in_flight || held < o->max_in_flight[stage])) {
    o->backward[stage][n_forward + n_backward] = false;
    enumerate(o, stage, n_forward + 1, n_backward);
  }
  if (held > 0) {
    o->backward[stage][n_forward + n_backward] = true;
    enumerate(o, stage, n_forward, n_backward + 1);
  }
}

static void best_order_is_that_of_enumeration(void **state) {
  (void)state;
  uint64_t random = 3;
  for (int i = 0; i < 1000; i++) {
    const uint32_t k = 1 + below(&random, 3), m = 1 + below(&random, k == 3 ? 3 : 4);
    uint32_t held[4];
    pipeline p;
    psplit_diag diag = {0};
    psplit_step_limit limit;
    int64_t best, bound;
    make_pipeline(&p, &random, PSPLIT_SCHEDULE_1F1B, k, 1, m, i % 2);
    for (uint32_t j = 0; j < k; j++) held[j] = 1 + below(&random, m);
    const uint32_t *max_in_flight = i % 3 ? held : NULL;
    orders o = {.in = &p.in, .max_in_flight = max_in_flight, .best = INT64_MAX};
    enumerate(&o, 0, 0, 0);
    assert_int_equal(
      psplit_schedule_optimum(&p.in, max_in_flight, UINT64_MAX, &diag, &best, &bound), PSPLIT_OK);
    if (best != o.best || bound != best)
      fail_msg("pipeline %d: %lld, bound %lld, enumerated %lld", i, (long long)best,
               (long long)bound, (long long)o.best);
    assert_int_equal(psplit_limits_step(&p.in, max_in_flight, &diag, &limit), PSPLIT_OK);
    assert_true(limit.step_ns <= best);
  }
}

static void best_orders_of_four_stages_are_proved(void **state) {
  (void)state;
  uint64_t random = 4;
  uint32_t n_proved = 0, n_tight = 0;
  for (int i = 0; i < 100; i++) {
    uint32_t held[4];
    pipeline p;
    psplit_diag diag = {0};
    psplit_step_limit limit;
    int64_t best, bound;
    make_pipeline(&p, &random, PSPLIT_SCHEDULE_1F1B, 4, 1, 8, i % 2);
    for (uint32_t j = 0; j < 4; j++) held[j] = 4 - j;
    const uint32_t *max_in_flight = i % 4 < 2 ? held : NULL;
    assert_int_equal(psplit_schedule_optimum(&p.in, max_in_flight, 2000000, &diag, &best, &bound),
                     PSPLIT_OK);
    assert_int_equal(psplit_limits_step(&p.in, max_in_flight, &diag, &limit), PSPLIT_OK);
    assert_true(limit.step_ns <= bound && bound <= best);
    assert_true(best <= makespan(&p.in, NULL));
    n_proved += bound == best;
    n_tight += limit.step_ns == best;
  }
  print_message("# %u of 100 proved, %u where no time is below the limit\n", n_proved, n_tight);
  assert_true(n_proved >= 95);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(best_order_is_that_of_enumeration),
    cmocka_unit_test(best_orders_of_four_stages_are_proved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
