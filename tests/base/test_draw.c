/* What random operators draw: rates and moments within four deviations, no two places alike, and
 * the same wherever one begins. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/random.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 16 };

static uint8_t *kept(psplit_draw draw, double ratio) {
  uint8_t *keep = malloc(N);
  assert_non_null(keep);
  psplit_draw_keep(&draw, ratio, 0, N, keep);
  return keep;
}

static double sum(const uint8_t *keep) {
  double n = 0;
  for (size_t i = 0; i < N; i++) n += keep[i];
  return n;
}

/* Of N trials with probability p, within four deviations. */
static void assert_rate(double successes, double p) {
  assert_true(fabs(successes - N * p) <= 4 * sqrt(N * p * (1 - p)));
}

static void rates_are_what_was_asked(void **state) {
  (void)state;
  static const double ratios[] = {0.001, 0.1, 0.25, 0.5, 0.9, 0.999};
  for (size_t r = 0; r < sizeof ratios / sizeof *ratios; r++)
    for (uint32_t number = 0; number < 4; number++) {
      uint8_t *keep = kept((psplit_draw){.seed = 1, .step = 2, .number = number}, ratios[r]);
      assert_rate(sum(keep), 1 - ratios[r]);
      free(keep);
    }
}

/* Two masks agree as often as two that are independent. */
static void no_two_places_draw_alike(void **state) {
  (void)state;
  static const psplit_draw places[] = {{1, 0, 0, 0}, {2, 0, 0, 0}, {UINT64_C(1) << 32, 0, 0, 0},
                                       {1, 1, 0, 0}, {1, 0, 1, 0}, {1, 0, 0, 1},
                                       {1, 1, 1, 0}, {1, 1, 0, 1}, {1, 0, 1, 1},
                                       {0, 0, 0, 0}};
  enum { N_PLACES = sizeof places / sizeof *places };
  const double p = 0.5;
  uint8_t *masks[N_PLACES];
  for (size_t i = 0; i < N_PLACES; i++) masks[i] = kept(places[i], p);
  for (size_t i = 0; i < N_PLACES; i++)
    for (size_t j = 0; j < i; j++) {
      double agree = 0, shifted = 0;
      for (size_t k = 0; k < N; k++) {
        agree += masks[i][k] == masks[j][k];
        shifted += masks[i][k] == masks[j][(k + 4) % N];
      }
      assert_rate(agree, 0.5);
      assert_rate(shifted, 0.5);
    }
  for (size_t i = 0; i < N_PLACES; i++) free(masks[i]);
}

static void a_part_is_drawn_like_the_whole(void **state) {
  (void)state;
  const psplit_draw draw = {.seed = UINT64_C(0x123456789abcdef0), .step = 7, .micro_batch = 3};
  enum { MOST = 40 };
  uint8_t whole[MOST], part[MOST];
  float numbers[MOST], some[MOST];
  psplit_draw_keep(&draw, 0.3, 0, MOST, whole);
  psplit_draw_uniform(&draw, 0, MOST, numbers);
  for (size_t first = 0; first < MOST; first++)
    for (size_t n = 0; first + n <= MOST; n++) {
      psplit_draw_keep(&draw, 0.3, first, n, part);
      assert_memory_equal(part, whole + first, n);
      psplit_draw_uniform(&draw, first, n, some);
      assert_memory_equal(some, numbers + first, n * sizeof *some);
    }
}

static void assert_moments(const float *x, double mean, double variance, double fourth) {
  double first = 0, second = 0;
  for (size_t i = 0; i < N; i++) first += (double)x[i] / N;
  for (size_t i = 0; i < N; i++) second += ((double)x[i] - mean) * ((double)x[i] - mean) / N;
  assert_true(fabs(first - mean) <= 4 * sqrt(variance / N));
  assert_true(fabs(second - variance) <= 4 * sqrt((fourth - variance * variance) / N));
}

static void numbers_have_their_moments(void **state) {
  (void)state;
  float *x = malloc(N * sizeof *x);
  assert_non_null(x);
  for (uint32_t step = 0; step < 4; step++) {
    const psplit_draw draw = {.seed = 9, .step = step, .micro_batch = 1, .number = 5};
    psplit_draw_uniform(&draw, 0, N, x);
    for (size_t i = 0; i < N; i++) assert_true(x[i] >= 0 && x[i] < 1);
    assert_moments(x, 0.5, 1.0 / 12, 1.0 / 80);
    psplit_draw_normal(&draw, 0, N, x);
    assert_moments(x, 0, 1, 3);
  }
  free(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rates_are_what_was_asked),
    cmocka_unit_test(no_two_places_draw_alike),
    cmocka_unit_test(a_part_is_drawn_like_the_whole),
    cmocka_unit_test(numbers_have_their_moments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
