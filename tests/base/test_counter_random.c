/* Numbers by counter: the published vectors, the distributions, and that order does not matter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "counter_random.h"

/* The known answers that come with Random123 for philox4x32-10. */
static void philox_is_philox(void **state) {
  (void)state;
  static const struct {
    uint32_t counter[4], key[2], out[4];
  } known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    uint32_t out[4];
    psplit_i_philox(known[i].counter, known[i].key, out);
    assert_memory_equal(out, known[i].out, sizeof out);
  }
}

static psplit_i_random_stream stream_of(uint64_t seed, uint32_t major, uint32_t minor) {
  return (psplit_i_random_stream){
    .seed = seed, .use = PSPLIT_I_RANDOM_TEST, .major = major, .minor = minor};
}

static void uniform_numbers_are_uniform(void **state) {
  (void)state;
  enum { n_draws = 100000, n_bins = 50 };
  const psplit_i_random_stream stream = stream_of(7, 1, 2);
  int counts[n_bins] = {0};
  for (uint64_t n = 0; n < n_draws; n++) {
    const double x = psplit_i_random_uniform(&stream, n);
    assert_true(x >= 0 && x < 1);
    counts[(int)(x * n_bins)]++;
  }
  double chi2 = 0;
  for (int i = 0; i < n_bins; i++) {
    const double d = counts[i] - n_draws / n_bins;
    chi2 += d * d / (n_draws / n_bins);
  }
  assert_true(chi2 < 94); /* 49 degrees of freedom: exceeded once in 10^4 seeds */
}

static void normal_numbers_invert_the_distribution(void **state) {
  (void)state;
  const psplit_i_random_stream stream = stream_of(3, 0, 0);
  double sum = 0, squares = 0;
  enum { n_draws = 200000 };
  for (uint64_t n = 0; n < n_draws; n++) {
    const double p = ((double)(psplit_i_random_bits(&stream, n) >> 12) + 0.5) * 0x1p-52;
    const double x = psplit_i_random_normal(&stream, n);
    /* The distribution function of the number is the probability that it was made of. */
    const double density = exp(-x * x / 2) / sqrt(2 * acos(-1));
    assert_true(fabs(0.5 * erfc(-x / sqrt(2)) - p) <= 1e-6 * density + 1e-15);
    sum += x;
    squares += x * x;
  }
  assert_true(fabs(sum / n_draws) < 0.01);
  assert_true(fabs(squares / n_draws - 1) < 0.015);
}

static void streams_differ(void **state) {
  (void)state;
  const psplit_i_random_stream a = stream_of(1, 2, 3);
  psplit_i_random_stream others[] = {stream_of(2, 2, 3), stream_of(1, 3, 3), stream_of(1, 2, 4), a};
  others[3].use = PSPLIT_I_RANDOM_MASK;
  for (size_t k = 0; k < 4; k++) {
    for (uint64_t n = 0; n < 64; n++)
      assert_true(psplit_i_random_bits(&a, n) != psplit_i_random_bits(&others[k], n));
  }
}

static void numbers_below_are_below(void **state) {
  (void)state;
  const psplit_i_random_stream stream = stream_of(5, 0, 0);
  int seen[7] = {0};
  for (uint64_t n = 0; n < 7000; n++) {
    const uint64_t x = psplit_i_random_below(&stream, n, 7);
    assert_true(x < 7);
    seen[x]++;
  }
  for (int i = 0; i < 7; i++) assert_in_range(seen[i], 880, 1120);
  assert_true(psplit_i_random_below(&stream, 0, 1) == 0);
  assert_true(psplit_i_random_below(&stream, 0, UINT64_MAX) < UINT64_MAX);
}

static void permutations_are_permutations(void **state) {
  (void)state;
  static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 1000, 65536, 100003};
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    const psplit_i_random_stream stream = stream_of(11, (uint32_t)k, 0);
    unsigned char *seen = calloc(sizes[k], 1);
    assert_non_null(seen);
    uint64_t n_fixed = 0;
    for (uint64_t i = 0; i < sizes[k]; i++) {
      const uint64_t at = psplit_i_random_permuted(&stream, i, sizes[k]);
      assert_true(at < sizes[k]);
      assert_false(seen[at]);
      seen[at] = 1;
      n_fixed += at == i;
    }
    free(seen);
    if (sizes[k] >= 1000) assert_true(n_fixed <= 8); /* one is expected */
  }
  const psplit_i_random_stream stream = stream_of(11, 0, 0);
  assert_true(psplit_i_random_permuted(&stream, 0, UINT64_MAX) < UINT64_MAX);
}

/* All orders of a few rows come out about equally often. */
static void permutations_are_fair(void **state) {
  (void)state;
  int counts[24] = {0};
  enum { n_draws = 24000 };
  for (uint32_t seed = 0; seed < n_draws; seed++) {
    const psplit_i_random_stream stream = stream_of(seed, 0, 0);
    uint64_t at[4];
    for (uint64_t i = 0; i < 4; i++) at[i] = psplit_i_random_permuted(&stream, i, 4);
    int rank = 0;
    for (int i = 0; i < 4; i++) {
      int smaller = 0;
      for (int j = i + 1; j < 4; j++) smaller += at[j] < at[i];
      rank = rank * (4 - i) + smaller;
    }
    counts[rank]++;
  }
  for (int i = 0; i < 24; i++) assert_in_range(counts[i], 850, 1150);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(philox_is_philox),
    cmocka_unit_test(uniform_numbers_are_uniform),
    cmocka_unit_test(normal_numbers_invert_the_distribution),
    cmocka_unit_test(streams_differ),
    cmocka_unit_test(numbers_below_are_below),
    cmocka_unit_test(permutations_are_permutations),
    cmocka_unit_test(permutations_are_fair),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
