/* Numbers of every type: which types hold all of another, what is made for an input that nobody
 * gives, and that it stays within what is promised of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "casts.h"
#include "held_values.h"
#include "made_input.h"

enum { F32 = 1, U8, I8, U16, I16, I32, I64, STRING, BOOL, F16, F64, U32, U64, C64, C128, BF16 };
enum { F8 = 17, UINT4 = 21, INT4 = 22, N_TYPES = 26 };

static psplit_i_tensor *make(int32_t type, const int64_t *dims, size_t n_dims,
                             psplit_i_tensor_view *out) {
  psplit_diag diag = {0};
  psplit_i_tensor *tensor = NULL;
  assert_int_equal(psplit_i_tensor_make(&HELD_VALUES, type, dims, n_dims, &diag, &tensor, out),
                   PSPLIT_OK);
  return tensor;
}

/* --- types that hold all of others --- */

static const int32_t NUMBERS[] = {F32, U8, I8, U16, I16, I32, I64, BOOL, F16, F64, U32, U64, BF16};
enum { N_NUMBERS = sizeof NUMBERS / sizeof *NUMBERS };

/* The least and the largest whole number up to which a type holds all. */
static void whole_numbers_of(int32_t type, double *out_least, double *out_most) {
  static const struct {
    int32_t type;
    double least, most;
  } rows[] = {
    {BOOL, 0, 1},           {U8, 0, 255},       {U16, 0, 65535},      {U32, 0, 0x1p32 - 1},
    {U64, 0, 0x1p64},       {I8, -128, 127},    {I16, -32768, 32767}, {I32, -0x1p31, 0x1p31 - 1},
    {I64, -0x1p63, 0x1p63}, {F16, -2048, 2048}, {BF16, -256, 256},    {F32, -0x1p24, 0x1p24},
    {F64, -0x1p53, 0x1p53},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].type == type) *out_least = rows[i].least, *out_most = rows[i].most;
}

static void a_cast_is_safe_where_all_numbers_are_held(void **state) {
  (void)state;
  for (size_t a = 0; a < N_NUMBERS; a++)
    for (size_t b = 0; b < N_NUMBERS; b++) {
      const int32_t from = NUMBERS[a], to = NUMBERS[b];
      double least = 0, most = 0, to_least = 0, to_most = 0;
      whole_numbers_of(from, &least, &most);
      whole_numbers_of(to, &to_least, &to_most);
      bool holds = to_least <= least && most <= to_most && to != BOOL;
      /* Floats have a range besides, and fractions. */
      if (psplit_i_element_is_float(from))
        holds = psplit_i_element_is_float(to) && most < to_most && to != F16;
      if (psplit_i_cast_is_safe(from, to) != (holds || from == to))
        fail_msg("from %d to %d", (int)from, (int)to);
    }
  static const int32_t none[] = {STRING, C64, C128, F8, INT4, 0, 99};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_false(psplit_i_cast_is_safe(none[i], F64));
    assert_false(psplit_i_cast_is_safe(U8, none[i]));
    assert_false(psplit_i_element_holds(none[i], 0));
    assert_false(psplit_i_element_is_float(none[i]));
    assert_true(psplit_i_cast_is_safe(none[i], none[i]));
  }
}

/* What is held is read as it was set. */
static void numbers_at_the_ends_come_back(void **state) {
  (void)state;
  static const int64_t dims[] = {1};
  for (size_t a = 0; a < N_NUMBERS; a++) {
    const int32_t type = NUMBERS[a];
    double least = 0, most = 0;
    psplit_i_tensor_view view;
    psplit_i_tensor *tensor = make(type, dims, 1, &view);
    whole_numbers_of(type, &least, &most);
    if (type == U64 || type == I64) most = nextafter(most, 0); /* the last double below */
    const double ends[] = {0, 1, least, most};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
      assert_true(psplit_i_element_holds(type, ends[i]));
      psplit_i_tensor_set_number(&view, 0, ends[i]);
      if (psplit_i_tensor_number(&view, 0) != ends[i]) fail_msg("type %d: %g", (int)type, ends[i]);
    }
    if (!psplit_i_element_is_float(type)) {
      assert_false(psplit_i_element_holds(type, least - fmax(1, -least)));
      assert_false(psplit_i_element_holds(type, 2 * most + 2));
      assert_false(psplit_i_element_holds(type, 0.5));
      assert_false(psplit_i_element_holds(type, NAN));
    }
    psplit_i_tensor_release(tensor);
  }
  assert_true(psplit_i_element_holds(F16, -65504) && !psplit_i_element_holds(F16, 65505));
  /* Any byte but 0 is true, wherever it comes from. */
  psplit_i_tensor_view view;
  psplit_i_tensor *tensor = make(BOOL, dims, 1, &view);
  *(uint8_t *)view.data = 255;
  assert_true(psplit_i_tensor_number(&view, 0) == 1);
  psplit_i_tensor_release(tensor);
  assert_true(psplit_i_element_holds(F32, FLT_MAX) && !psplit_i_element_holds(F32, 1e39));
  assert_true(psplit_i_element_holds(BF16, -1e38) && !psplit_i_element_holds(BF16, 1e39));
  assert_true(psplit_i_element_holds(F64, DBL_MAX) && !psplit_i_element_holds(F64, INFINITY));
}

/* IEEE 754's binary16, bit by bit. */
static void halves_are_read_and_cut_off(void **state) {
  (void)state;
  static const struct {
    uint16_t bits;
    double value;
  } rows[] = {{0x0000, 0},          {0x0001, 0x1p-24}, {0x83ff, -1023 * 0x1p-24}, {0x0400, 0x1p-14},
              {0x3555, 0x1.554p-2}, {0x7bff, 65504},   {0xfbff, -65504},          {0xc000, -2}};
  static const int64_t dims[] = {1};
  psplit_i_tensor_view view;
  psplit_i_tensor *tensor = make(F16, dims, 1, &view);
  uint16_t *half = view.data;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    *half = rows[i].bits;
    assert_true(psplit_i_tensor_number(&view, 0) == rows[i].value);
    psplit_i_tensor_set_number(&view, 0, rows[i].value);
    /* What is nearly 0 becomes 0. */
    assert_int_equal(*half, fabs(rows[i].value) < 0x1p-14 ? 0 : rows[i].bits);
  }
  *half = 0x7c00;
  assert_true(psplit_i_tensor_number(&view, 0) == INFINITY);
  *half = 0xfc00;
  assert_true(psplit_i_tensor_number(&view, 0) == -INFINITY);
  *half = 0x7c01;
  assert_true(isnan(psplit_i_tensor_number(&view, 0)));
  psplit_i_tensor_set_number(&view, 0, 1e6);
  assert_int_equal(*half, 0x7bff);
  psplit_i_tensor_set_number(&view, 0, 1 + 0x1.ffp-11);
  assert_int_equal(*half, 0x3c00);
  psplit_i_tensor_release(tensor);
  tensor = make(F8, dims, 1, &view);
  assert_true(isnan(psplit_i_tensor_number(&view, 0)));
  psplit_i_tensor_release(tensor);
}

/* --- numbers that are made --- */

static void fill(const psplit_i_made *made, uint32_t micro_batch, psplit_i_tensor *tensor) {
  psplit_diag diag = {0};
  const psplit_code code = made ? psplit_i_made_fill(made, tensor, 7, "x", micro_batch, &diag)
                                : psplit_i_tensor_fill_random(tensor, 7, "x", micro_batch, &diag);
  assert_int_equal(code, PSPLIT_OK);
}

/* What README and docs promise: [-1, 1) for floats, 0..99 for integers, of 8 bits all. */
static void check_random(int32_t type, const psplit_i_tensor_view *view) {
  double least = INFINITY, most = -INFINITY;
  for (uint64_t i = 0; i < view->n_elements; i++) {
    const double value = psplit_i_tensor_number(view, i);
    least = fmin(least, value);
    most = fmax(most, value);
  }
  switch (type) {
    case F32:
    case F64:
    case F16:
    case BF16: assert_true(least >= -1 && least < -0.9 && most < 1 && most > 0.9); break;
    case BOOL: assert_true(least == 0 && most == 1); break;
    case U8: assert_true(least == 0 && most == 255); break;
    case I8: assert_true(least == -128 && most == 127); break;
    default: assert_true(least == 0 && most == 99); break;
  }
}

static void random_numbers_are_those_of_the_seed(void **state) {
  (void)state;
  static const int64_t dims[] = {64, 64};
  for (int32_t type = 1; type <= N_TYPES; type++) {
    psplit_i_tensor_view view, again_view, other_view;
    psplit_i_tensor *tensor = make(type, dims, 2, &view), *again = make(type, dims, 2, &again_view),
                    *other = make(type, dims, 2, &other_view);
    fill(NULL, 0, tensor);
    fill(NULL, 0, again);
    fill(NULL, 1, other);
    assert_true(same_values(tensor, again));
    assert_false(same_values(tensor, other));
    bool number = false;
    for (size_t i = 0; i < N_NUMBERS; i++) number |= NUMBERS[i] == type;
    if (number) check_random(type, &view);
    const unsigned char *bytes = view.data;
    /* Of 8 bits floats stay finite and positive. */
    for (uint64_t i = 0; type >= F8 && type < UINT4 && i < view.n_bytes; i++)
      assert_int_equal(bytes[i] & 0xc0, 0);
    /* Both parts of complex numbers are made, and all bytes of what is smaller. */
    const uint64_t n_last = type == C64 ? 4 : type == C128 ? 8 : 0;
    static const unsigned char zeros[8];
    if (n_last) assert_memory_not_equal(bytes + view.n_bytes - n_last, zeros, (size_t)n_last);
    unsigned any = 0;
    for (uint64_t i = view.n_bytes - 16; (type == UINT4 || type == INT4) && i < view.n_bytes; i++)
      any |= bytes[i];
    if (type == UINT4 || type == INT4) assert_true(any & 0xf0 && any & 0x0f);
    psplit_i_tensor_release(tensor);
    psplit_i_tensor_release(again);
    psplit_i_tensor_release(other);
  }
}

static void ranges_are_kept_to_their_ends(void **state) {
  (void)state;
  static const int64_t dims[] = {1000};
  static const struct {
    int32_t type;
    double low, high;
  } rows[] = {{I32, -3, 4}, {U8, 250, 255},     {BOOL, 0, 1},           {F32, -0.5, 2.5},
              {F16, 1, 1},  {U64, 0, 0x1.8p63}, {I64, -0x1p62, 0x1p62}, {F64, -1e300, 1e300}};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    const psplit_i_made made = {
      .how = PSPLIT_I_MADE_RANGE, .low = rows[r].low, .high = rows[r].high, .asked = true};
    const double width = made.high - made.low;
    double least = INFINITY, most = -INFINITY;
    psplit_i_tensor_view view;
    psplit_i_tensor *tensor = make(rows[r].type, dims, 1, &view);
    fill(&made, 0, tensor);
    for (uint64_t i = 0; i < view.n_elements; i++) {
      const double value = psplit_i_tensor_number(&view, i);
      assert_true(value >= made.low && value <= made.high);
      least = fmin(least, value);
      most = fmax(most, value);
    }
    assert_true(least <= made.low + width / 50 && most >= made.high - width / 50);
    psplit_i_tensor_release(tensor);
  }
}

static void positions_count_along_the_last_axis(void **state) {
  (void)state;
  static const int64_t dims[] = {2, 3};
  static const double counted[] = {5, 6, 7, 5, 6, 7};
  const psplit_i_made made = {.how = PSPLIT_I_MADE_POSITIONS, .low = 5, .high = 5};
  psplit_i_tensor_view view;
  psplit_i_tensor *tensor = make(I64, dims, 2, &view);
  fill(&made, 0, tensor);
  for (uint64_t i = 0; i < 6; i++) assert_true(psplit_i_tensor_number(&view, i) == counted[i]);
  psplit_i_tensor_release(tensor);
  tensor = make(I64, NULL, 0, &view);
  fill(&made, 0, tensor);
  assert_true(psplit_i_tensor_number(&view, 0) == 5);
  psplit_i_tensor_release(tensor);
}

/* What was asked for is an error where the type does not hold it; a name alone asks for nothing. */
static void what_a_type_does_not_hold_is_told(void **state) {
  (void)state;
  static const int64_t dims[] = {4};
  static const struct {
    int32_t type;
    const char *says;
  } rows[] = {{BOOL, "input x is of bool, which does not hold 0..7"},
              {STRING, "input x is of string, which does not hold 0..7"},
              {F8, "input x is of float8e4m3fn, which does not hold 0..7"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    psplit_i_made made = {.how = PSPLIT_I_MADE_RANGE, .high = 7, .asked = true};
    psplit_i_tensor_view view;
    psplit_diag diag = {0};
    psplit_i_tensor *tensor = make(rows[i].type, dims, 1, &view),
                    *any = make(rows[i].type, dims, 1, &view);
    assert_int_equal(psplit_i_made_fill(&made, tensor, 7, "x", 0, &diag), PSPLIT_USAGE);
    assert_string_equal(diag.message, rows[i].says);
    made.asked = false;
    fill(&made, 0, tensor);
    fill(NULL, 0, any);
    assert_true(same_values(tensor, any));
    psplit_i_tensor_release(tensor);
    psplit_i_tensor_release(any);
  }
}

/* --- what inputs of a model say of a sequence --- */

static void names_of_exporters_are_known(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int64_t dims[4];
    size_t n_dims;
  } inputs[] = {
    {"past_encoder.key", {1, 2, 9, 4}, 4}, /* of another sequence */
    {"past.0", {1, 8}, 2},                 /* no cache of a head */
    {"past.1", {1, 2, 0, 4}, 4},
    {"past.2", {1, 2, 6, 4}, 4},
    {"past.3", {1, 2, 7, 4}, 4},
    {"attention_mask", {1, 30}, 2},
    {"lengths", {31, 1}, 2},
    {"scale", {32}, 1},
    {"open", {1, -1}, 2},
    {"first", {1, 3}, 2},
    {"second", {1, 4}, 2},
    {"decoder_input_ids", {1, 5}, 2},
    {"third", {1, 8}, 2},
  };
  psplit_i_sequence_sizes sizes = {0};
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    psplit_i_sequence_sizes_look(&sizes, inputs[i].name, inputs[i].dims, inputs[i].n_dims);
    if (strcmp(inputs[i].name, "second") == 0) assert_int_equal(sizes.tokens, 3);
  }
  assert_int_equal(sizes.past, 6);
  assert_int_equal(sizes.tokens, 5);
  static const struct {
    const char *name;
    psplit_i_made_how how;
    double low, without; /* without tokens: as any other where that is -1 */
  } rows[] = {
    {"attention_MASK", PSPLIT_I_MADE_RANGE, 1, 1},
    {"position_ids", PSPLIT_I_MADE_POSITIONS, 6, 0},
    {"cache_position", PSPLIT_I_MADE_POSITIONS, 6, 0},
    {"seqlens_k", PSPLIT_I_MADE_RANGE, 10, -1},
    {"total_sequence_length", PSPLIT_I_MADE_RANGE, 11, -1},
    {"total_seq_len", PSPLIT_I_MADE_RANGE, 11, -1},
    {"speech_lengths", PSPLIT_I_MADE_RANGE, 5, -1},
    {"x_len", PSPLIT_I_MADE_RANGE, 5, -1},
    {"masked", PSPLIT_I_MADE_RANDOM, 0, -1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const psplit_i_sequence_sizes none = {0};
    const psplit_i_made made = psplit_i_made_by_name(rows[i].name, &sizes),
                        without = psplit_i_made_by_name(rows[i].name, &none);
    assert_int_equal(made.how, rows[i].how);
    assert_true(made.low == rows[i].low && made.high == rows[i].low && !made.asked);
    assert_int_equal(without.how, rows[i].without < 0 ? PSPLIT_I_MADE_RANDOM : rows[i].how);
    if (rows[i].without >= 0) assert_true(without.low == rows[i].without);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_cast_is_safe_where_all_numbers_are_held),
    cmocka_unit_test(numbers_at_the_ends_come_back),
    cmocka_unit_test(halves_are_read_and_cut_off),
    cmocka_unit_test(random_numbers_are_those_of_the_seed),
    cmocka_unit_test(ranges_are_kept_to_their_ends),
    cmocka_unit_test(positions_count_along_the_last_axis),
    cmocka_unit_test(what_a_type_does_not_hold_is_told),
    cmocka_unit_test(names_of_exporters_are_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
