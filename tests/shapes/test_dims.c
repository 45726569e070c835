/* Dimensions: one id for equal expressions, numbers that are right, limits that hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dim.h"

static psplit_i_dims *d;

static int setup(void **state) {
  (void)state;
  d = psplit_i_dims_create();
  return d ? 0 : -1;
}

static int teardown(void **state) {
  (void)state;
  psplit_i_dims_destroy(d);
  return 0;
}

static psplit_dim sym(const char *name) { return psplit_i_dim_symbol(d, name); }
static psplit_dim num(int64_t value) { return psplit_i_dim_const(d, value); }
static psplit_dim add(psplit_dim a, psplit_dim b) { return psplit_i_dim_add(d, a, b); }
static psplit_dim mul(psplit_dim a, psplit_dim b) { return psplit_i_dim_mul(d, a, b); }
static psplit_dim quotient(psplit_dim a, psplit_dim b) { return psplit_i_dim_floor_div(d, a, b); }

static void prints(psplit_dim a, const char *expected) {
  psplit_i_text text = {0};
  psplit_i_dim_print(d, a, &text);
  assert_string_equal(text.bytes, expected);
  psplit_i_text_fini(&text);
}

static void equal_expressions_have_one_id(void **state) {
  (void)state;
  const psplit_dim seq = sym("seq"), past = sym("past"), h = sym("h"), b = sym("b");
  assert_int_equal(add(seq, past), add(past, seq));
  assert_int_equal(sym("seq"), seq);
  /* floor((h-1)/2) + 1 == floor((h+1)/2) */
  assert_int_equal(add(quotient(add(h, num(-1)), num(2)), num(1)),
                   quotient(add(h, num(1)), num(2)));
  /* ceil twice by 2 == ceil once by 4 */
  const psplit_dim once = quotient(add(h, num(3)), num(4));
  const psplit_dim twice = quotient(add(quotient(add(h, num(1)), num(2)), num(1)), num(2));
  assert_int_equal(once, twice);
  assert_int_equal(psplit_i_dim_ceil_div(d, h, num(4)), once);
  assert_int_equal(mul(add(seq, past), b), add(mul(b, past), mul(seq, b)));
  /* (b*seq*12*64) / (b*seq*12) and the same with a sum inside */
  assert_int_equal(quotient(mul(mul(b, seq), num(768)), mul(mul(seq, b), num(12))), num(64));
  const psplit_dim total = add(seq, past);
  assert_int_equal(quotient(mul(mul(b, total), num(768)), mul(total, num(12))), mul(b, num(64)));
  assert_int_equal(add(seq, psplit_i_dim_mul_const(d, seq, -1)), num(0));
  assert_int_equal(psplit_i_dim_max(d, seq, past), psplit_i_dim_max(d, past, seq));
  assert_int_equal(psplit_i_dim_max(d, add(seq, num(1)), seq), add(seq, num(1)));
  assert_int_equal(psplit_i_dim_max(d, seq, num(0)), seq);
  assert_int_equal(psplit_i_dim_min(d, seq, num(INT64_MAX)), seq);
  assert_int_equal(psplit_i_dim_mod(d, mul(seq, num(8)), num(4)), num(0));
  assert_int_not_equal(psplit_i_dim_fresh(d), psplit_i_dim_fresh(d));
}

static void broadcast_follows_what_is_known(void **state) {
  (void)state;
  const psplit_dim a = sym("a"), b = sym("b");
  assert_int_equal(psplit_i_dim_broadcast(d, a, num(1)), a);
  assert_int_equal(psplit_i_dim_broadcast(d, a, num(7)), num(7));
  assert_int_equal(psplit_i_dim_broadcast(d, a, a), a);
  assert_int_equal(psplit_i_dim_broadcast(d, num(3), num(7)), PSPLIT_NONE);
  assert_int_equal(psplit_i_dim_broadcast(d, a, b), psplit_i_dim_broadcast(d, b, a));
  /* a + 2 is more than 1, so a broadcast partner is 1 or the same. */
  assert_int_equal(psplit_i_dim_broadcast(d, add(a, num(2)), b), add(a, num(2)));
}

static void text_reads_as_written_by_hand(void **state) {
  (void)state;
  const psplit_dim h = sym("h"), b = sym("batch");
  prints(num(-3), "-3");
  prints(add(mul(h, num(2)), num(-1)), "2*h-1");
  prints(quotient(add(h, num(1)), num(2)), "floor((h+1)/2)");
  prints(mul(mul(b, h), num(12)), "12*h*batch");
  prints(psplit_i_dim_max(d, add(h, num(-1)), num(0)), "max(0, h-1)");
  prints(psplit_i_dim_broadcast(d, h, b), "broadcast(h, batch)");
}

static void differing_is_only_claimed_when_certain(void **state) {
  (void)state;
  const psplit_dim a = sym("a"), b = sym("b");
  assert_true(psplit_i_dim_differ(d, num(3), num(4)));
  assert_true(psplit_i_dim_differ(d, a, add(a, num(1))));
  assert_true(psplit_i_dim_differ(d, a, num(-1)));
  assert_false(psplit_i_dim_differ(d, a, b));
  assert_false(psplit_i_dim_differ(d, a, num(0)));
  assert_false(psplit_i_dim_differ(d, psplit_i_dim_fresh_value(d), num(-1)));
}

static void overflow_is_unknown_and_not_wrapped(void **state) {
  (void)state;
  assert_true(psplit_i_dim_is_anonymous(d, mul(num(INT64_MAX), num(2))));
  assert_true(psplit_i_dim_is_anonymous(d, add(num(INT64_MAX), num(1))));
  assert_true(psplit_i_dim_is_anonymous(d, psplit_i_dim_sub(d, num(INT64_MIN), num(1))));
  assert_true(psplit_i_dim_is_anonymous(d, quotient(num(5), num(0))));
  assert_true(psplit_i_dim_is_anonymous(d, psplit_i_dim_trunc_div(d, num(INT64_MIN), num(-1))));
  psplit_dim power = sym("n");
  for (int i = 0; i < 200; i++) power = mul(power, add(power, num(3)));
  psplit_dim long_sum = num(0);
  for (int i = 0; i < 500; i++) {
    char name[16];
    snprintf(name, sizeof name, "s%d", i);
    long_sum = add(long_sum, sym(name));
  }
  psplit_i_text text = {0};
  psplit_i_dim_print(d, power, &text);
  psplit_i_dim_print(d, long_sum, &text);
  assert_true(text.n < 2000);
  psplit_i_text_fini(&text);
  assert_true(psplit_i_dims_count(d) < 20000);
}

/* Random expressions against plain arithmetic: canonical forms keep their value. */
enum { N_SYMBOLS = 3, POOL = 40 };

static void values_survive_simplification(void **state) {
  (void)state;
  const char *names[N_SYMBOLS] = {"x", "y", "z"};
  uint64_t draw = 0;
  for (int round = 0; round < 300; round++) {
    int64_t bound[N_SYMBOLS];
    psplit_dim pool[POOL];
    int64_t expected[POOL];
    bool known[POOL];
    uint32_t n = 0;
    for (int s = 0; s < N_SYMBOLS; s++) {
      bound[s] = (int64_t)(psplit_i_splitmix64(9, draw++) % 9);
      pool[n] = sym(names[s]);
      known[n] = true;
      expected[n++] = bound[s];
    }
    while (n < POOL) {
      const uint32_t i = (uint32_t)(psplit_i_splitmix64(9, draw++) % n);
      const uint32_t j = (uint32_t)(psplit_i_splitmix64(9, draw++) % n);
      const int64_t c = (int64_t)(psplit_i_splitmix64(9, draw++) % 7) + 1;
      const int64_t a = expected[i], b = expected[j];
      known[n] = known[i] && known[j];
      switch (psplit_i_splitmix64(9, draw++) % 9) {
        case 0: pool[n] = add(pool[i], pool[j]), expected[n] = a + b; break;
        case 1: pool[n] = psplit_i_dim_sub(d, pool[i], pool[j]), expected[n] = a - b; break;
        case 2:
          pool[n] = mul(pool[i], pool[j]);
          expected[n] = a * b;
          if (llabs(a) > 1000000 || llabs(b) > 1000000) continue;
          break;
        case 3:
          pool[n] = quotient(pool[i], num(c));
          expected[n] = a / c - (a % c < 0);
          known[n] = known[i];
          break;
        case 4:
          pool[n] = psplit_i_dim_ceil_div(d, pool[i], num(c));
          expected[n] = a / c + (a % c > 0);
          known[n] = known[i];
          break;
        case 5:
          pool[n] = psplit_i_dim_trunc_div(d, pool[i], num(c));
          expected[n] = a / c;
          known[n] = known[i];
          break;
        case 6: pool[n] = psplit_i_dim_max(d, pool[i], pool[j]), expected[n] = a > b ? a : b; break;
        case 7: pool[n] = psplit_i_dim_min(d, pool[i], pool[j]), expected[n] = a < b ? a : b; break;
        default:
          pool[n] = psplit_i_dim_add_const(d, pool[i], -c);
          expected[n] = a - c;
          known[n] = known[i];
      }
      if (llabs(expected[n]) > INT64_C(1) << 40) continue;
      n++;
    }
    const uint32_t count = psplit_i_dims_count(d), n_symbols = psplit_i_dims_n_symbols(d);
    int64_t *values = calloc(count, sizeof *values), *symbols = calloc(n_symbols, sizeof *symbols);
    bool *out_known = calloc(count, sizeof *out_known), *bound_known = calloc(n_symbols, 1);
    assert_true(values && symbols && out_known && bound_known);
    for (uint32_t s = 0; s < n_symbols; s++)
      for (int k = 0; k < N_SYMBOLS; k++) {
        const char *name = psplit_i_dims_symbol_name(d, s);
        if (!name || strcmp(name, names[k]) != 0) continue;
        symbols[s] = bound[k];
        bound_known[s] = true;
      }
    psplit_i_dims_eval(d, symbols, bound_known, values, out_known);
    for (uint32_t i = 0; i < n; i++) {
      if (!known[i] || !out_known[pool[i]]) continue;
      if (values[pool[i]] != expected[i]) {
        psplit_i_text text = {0};
        psplit_i_dim_print(d, pool[i], &text);
        fail_msg("%s is %lld, not %lld", text.bytes, (long long)values[pool[i]],
                 (long long)expected[i]);
      }
      assert_true(psplit_i_dim_low(d, pool[i]) <= expected[i]);
      assert_true(psplit_i_dim_high(d, pool[i]) >= expected[i]);
    }
    free(values);
    free(symbols);
    free(out_known);
    free(bound_known);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(equal_expressions_have_one_id, setup, teardown),
    cmocka_unit_test_setup_teardown(broadcast_follows_what_is_known, setup, teardown),
    cmocka_unit_test_setup_teardown(text_reads_as_written_by_hand, setup, teardown),
    cmocka_unit_test_setup_teardown(differing_is_only_claimed_when_certain, setup, teardown),
    cmocka_unit_test_setup_teardown(overflow_is_unknown_and_not_wrapped, setup, teardown),
    cmocka_unit_test_setup_teardown(values_survive_simplification, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
