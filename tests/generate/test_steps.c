/* What a step of a decoder is given, and the token that is drawn from what it gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "casts.h"
#include "failing.h"
#include "made_tensors.h"
#include "sampler.h"
#include "step_input.h"

enum { FLOAT = 1, INT8 = 3, INT32 = 6, INT64 = 7, BOOL = 9, MOST = 24 };

/* --- tokens --- */

static const struct {
  const char *title;
  int32_t data_type;
  size_t n_dims;
  int64_t dims[3];
  double logits[8];
  psplit_code code;
  const char *message;
  int64_t token;
} greedy[] = {
  {"the most likely", FLOAT, 1, {4}, {1, 3, 2, 0}, PSPLIT_OK, NULL, 1},
  {"the first of two", FLOAT, 2, {1, 4}, {1, 3, 3, 0}, PSPLIT_OK, NULL, 1},
  {"of the last row", FLOAT, 3, {1, 2, 4}, {9, 0, 0, 0, 0, 0, 1, 0}, PSPLIT_OK, NULL, 2},
  {"what is not masked", FLOAT, 1, {3}, {-INFINITY, -5, -INFINITY}, PSPLIT_OK, NULL, 1},
  {"not a number", FLOAT, 1, {2}, {NAN, 1}, PSPLIT_INVALID, "NaN", 0},
  {"nothing left", FLOAT, 1, {2}, {-INFINITY, -INFINITY}, PSPLIT_INVALID, "allow no token", 0},
  {"whole numbers", INT64, 1, {2}, {1, 2}, PSPLIT_UNSUPPORTED, "no floats", 0},
  {"no row", FLOAT, 0, {0}, {1}, PSPLIT_UNSUPPORTED, "no floats", 0},
  {"no token", FLOAT, 2, {1, 0}, {0}, PSPLIT_UNSUPPORTED, "no floats", 0},
  {"no position", FLOAT, 2, {0, 4}, {0}, PSPLIT_UNSUPPORTED, "no floats", 0},
};

static void likeliest(void **state) {
  (void)state;
  const psplit_i_sampling how = {.top_p = 1};
  for (size_t i = 0; i < sizeof greedy / sizeof *greedy; i++) {
    psplit_diag diag = {0};
    int64_t token = -1;
    psplit_i_tensor *logits =
      made_tensor(greedy[i].data_type, greedy[i].dims, greedy[i].n_dims, greedy[i].logits);
    const psplit_code code = psplit_i_sample(logits, &how, 0, 0, &diag, &token);
    if (code != greedy[i].code || (code == PSPLIT_OK && token != greedy[i].token) ||
        (greedy[i].message && !strstr(diag.message, greedy[i].message)))
      fail_msg("%s: %s, token %lld, %s", greedy[i].title, psplit_code_name(code), (long long)token,
               diag.message);
    psplit_i_tensor_release(logits);
  }
  assert_int_equal(made.n_live, 0);
}

/* Draws at 1,200 positions; logits are natural logarithms of the weights. */
static const struct {
  const char *title;
  double temperature, top_p;
  uint32_t top_k;
  double weights[5];
  int least[5], most[5];
} drawn[] = {
  {"by weight", 1, 1, 0, {3, 1, 0, 4, 4}, {240, 60, 0, 340, 340}, {360, 140, 0, 460, 460}},
  {"only one", 1, 1, 1, {3, 1, 0, 4, 2}, {0, 0, 0, 1200, 0}, {0, 0, 0, 1200, 0}},
  {"of equals the first", 1, 1, 2, {1, 1, 1, 1, 1}, {520, 520, 0, 0, 0}, {680, 680, 0, 0, 0}},
  {"of the likeliest three, which come last",
   1,
   1,
   3,
   {1, 2, 3, 4, 5},
   {0, 0, 230, 330, 430},
   {0, 0, 370, 470, 570}},
  {"of four that make way for the last",
   1,
   1,
   4,
   {2, 3, 4, 1, 5},
   {110, 190, 280, 0, 360},
   {235, 325, 405, 0, 500}},
  {"the likeliest half", 1, 0.5, 0, {1, 1, 6, 1, 1}, {0, 0, 1200, 0, 0}, {0, 0, 1200, 0, 0}},
  {"a little more than the half",
   1,
   0.65,
   0,
   {1, 3, 6, 0, 0},
   {0, 330, 730, 0, 0},
   {0, 470, 870, 0, 0}},
  {"hot", 1e9, 1, 0, {1, 8, 0, 0, 0}, {520, 520, 0, 0, 0}, {680, 680, 0, 0, 0}},
  {"cold", 1e-3, 1, 9, {1, 2, 3, 5, 4}, {0, 0, 0, 1200, 0}, {0, 0, 0, 1200, 0}},
};

static void draws(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
    const psplit_i_sampling how = {drawn[i].temperature, drawn[i].top_k, drawn[i].top_p, 7};
    double logits[5];
    int n[5] = {0};
    for (int t = 0; t < 5; t++) logits[t] = log(drawn[i].weights[t]);
    psplit_i_tensor *tensor = made_tensor(FLOAT, (const int64_t[]){5}, 1, logits);
    for (uint64_t position = 0; position < 1200; position++) {
      psplit_diag diag = {0};
      int64_t token = -1, again = -1;
      assert_int_equal(psplit_i_sample(tensor, &how, 3, position, &diag, &token), PSPLIT_OK);
      assert_int_equal(psplit_i_sample(tensor, &how, 3, position, &diag, &again), PSPLIT_OK);
      assert_true(token >= 0 && token < 5 && token == again);
      n[token]++;
    }
    for (int t = 0; t < 5; t++)
      if (n[t] < drawn[i].least[t] || n[t] > drawn[i].most[t])
        fail_msg("%s: token %d, %d times", drawn[i].title, t, n[t]);
    psplit_i_tensor_release(tensor);
  }
}

/* One whose chance is all there is; one that cannot be looked at; no memory. */
static void odd_draws(void **state) {
  (void)state;
  psplit_diag diag = {0};
  const psplit_i_sampling how = {1, 0, 1, 1};
  int64_t token = -1;
  psplit_i_tensor *certain =
    made_tensor(FLOAT, (const int64_t[]){3}, 1, (const double[]){1, INFINITY, 2});
  assert_int_equal(psplit_i_sample(certain, &how, 0, 0, &diag, &token), PSPLIT_OK);
  assert_int_equal(token, 1);
  fail_allocation_after(0);
  assert_int_equal(psplit_i_sample(certain, &how, 0, 0, &diag, &token), PSPLIT_NOMEM);
  assert_true(stop_failing());
  made.look_fails = true;
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_sample(certain, &how, 0, 0, &diag, &token), PSPLIT_PLUGIN);
  made.look_fails = false;
  psplit_i_tensor_release(certain);
}

/* --- inputs --- */

#define F (-65504.0)
static const struct step {
  const char *title;
  psplit_i_role role;
  const char *dtype;
  int32_t rank;
  int64_t sizes[4]; /* -1: open */
  uint64_t n_past;  /* of four tokens: 5, 6, 7, 300 */
  int32_t given_rank;
  int64_t given[4]; /* sizes of what a file gives: 10, 11, ...; none where the rank is 0 */
  psplit_code code;
  const char *message;
  uint64_t n;
  double numbers[MOST];
} steps[] = {
  {"a prompt",
   PSPLIT_I_ROLE_IDS,
   "int64",
   2,
   {1, -1},
   0,
   0,
   {0},
   PSPLIT_OK,
   NULL,
   4,
   {5, 6, 7, 300}},
  {"a step", PSPLIT_I_ROLE_IDS, "int32", 2, {1, -1}, 3, 0, {0}, PSPLIT_OK, NULL, 1, {300}},
  {"one number", PSPLIT_I_ROLE_IDS, "int64", 0, {0}, 3, 0, {0}, PSPLIT_OK, NULL, 1, {300}},
  {"one for two",
   PSPLIT_I_ROLE_IDS,
   "int64",
   0,
   {0},
   2,
   0,
   {0},
   PSPLIT_UNSUPPORTED,
   "input in takes 1 tokens a step, not 2",
   0,
   {0}},
  {"a small type",
   PSPLIT_I_ROLE_IDS,
   "int8",
   2,
   {1, -1},
   2,
   0,
   {0},
   PSPLIT_UNSUPPORTED,
   "input in does not hold 300",
   0,
   {0}},
  {"no type",
   PSPLIT_I_ROLE_IDS,
   NULL,
   2,
   {1, -1},
   2,
   0,
   {0},
   PSPLIT_PLUGIN,
   "no such tensor",
   0,
   {0}},
  {"types", PSPLIT_I_ROLE_TYPES, "int64", 2, {1, -1}, 1, 0, {0}, PSPLIT_OK, NULL, 3, {0, 0, 0}},
  {"a mask", PSPLIT_I_ROLE_MASK, "int64", 2, {1, -1}, 2, 0, {0}, PSPLIT_OK, NULL, 4, {1, 1, 1, 1}},
  {"of a fixed size",
   PSPLIT_I_ROLE_MASK,
   "bool",
   2,
   {1, 6},
   2,
   0,
   {0},
   PSPLIT_OK,
   NULL,
   6,
   {1, 1, 1, 1, 0, 0}},
  {"too small",
   PSPLIT_I_ROLE_MASK,
   "int64",
   2,
   {1, 3},
   2,
   0,
   {0},
   PSPLIT_UNSUPPORTED,
   "input in has room for 3 tokens, not 4",
   0,
   {0}},
  {"a number",
   PSPLIT_I_ROLE_MASK,
   "int64",
   0,
   {0},
   2,
   0,
   {0},
   PSPLIT_UNSUPPORTED,
   "input in has room for 1 tokens, not 4",
   0,
   {0}},
  {"with rows",
   PSPLIT_I_ROLE_MASK,
   "float32",
   4,
   {1, 1, -1, -1},
   2,
   0,
   {0},
   PSPLIT_OK,
   NULL,
   8,
   {0, 0, 0, F, 0, 0, 0, 0}},
  {"with rows of bool",
   PSPLIT_I_ROLE_MASK,
   "bool",
   3,
   {1, -1, -1},
   2,
   0,
   {0},
   PSPLIT_OK,
   NULL,
   8,
   {1, 1, 1, 0, 1, 1, 1, 1}},
  {"with too many rows",
   PSPLIT_I_ROLE_MASK,
   "bool",
   3,
   {1, 3, -1},
   2,
   0,
   {0},
   PSPLIT_UNSUPPORTED,
   "input in takes 3 tokens a step, not 2",
   0,
   {0}},
  {"positions", PSPLIT_I_ROLE_POSITIONS, "int64", 1, {-1}, 2, 0, {0}, PSPLIT_OK, NULL, 2, {2, 3}},
  {"thrice",
   PSPLIT_I_ROLE_POSITIONS,
   "int64",
   3,
   {3, 1, -1},
   2,
   0,
   {0},
   PSPLIT_OK,
   NULL,
   6,
   {2, 3, 2, 3, 2, 3}},
  {"too few",
   PSPLIT_I_ROLE_POSITIONS,
   "int64",
   2,
   {1, 1},
   2,
   0,
   {0},
   PSPLIT_UNSUPPORTED,
   "input in takes 1 tokens a step, not 2",
   0,
   {0}},
  {"the last", PSPLIT_I_ROLE_LAST, "int64", 1, {1}, 2, 0, {0}, PSPLIT_OK, NULL, 1, {3}},
  {"all", PSPLIT_I_ROLE_TOTAL, "int32", 0, {0}, 2, 0, {0}, PSPLIT_OK, NULL, 1, {4}},
  {"a past", PSPLIT_I_ROLE_HAS_PAST, "bool", 1, {-1}, 2, 0, {0}, PSPLIT_OK, NULL, 1, {1}},
  {"none", PSPLIT_I_ROLE_HAS_PAST, "bool", 1, {-1}, 0, 0, {0}, PSPLIT_OK, NULL, 1, {0}},
  {"given positions",
   PSPLIT_I_ROLE_POSITIONS,
   "int64",
   2,
   {1, -1},
   2,
   1,
   {8},
   PSPLIT_OK,
   NULL,
   2,
   {12, 13}},
  {"by rows",
   PSPLIT_I_ROLE_POSITIONS,
   "int64",
   3,
   {2, 1, -1},
   2,
   3,
   {2, 1, 5},
   PSPLIT_OK,
   NULL,
   4,
   {12, 13, 17, 18}},
  {"one row for two",
   PSPLIT_I_ROLE_POSITIONS,
   "int64",
   3,
   {2, 1, -1},
   2,
   2,
   {1, 5},
   PSPLIT_OK,
   NULL,
   4,
   {12, 13, 12, 13}},
  {"a given mask of a fixed size",
   PSPLIT_I_ROLE_MASK,
   "int64",
   2,
   {1, 6},
   2,
   2,
   {1, 5},
   PSPLIT_OK,
   NULL,
   6,
   {10, 11, 12, 13, 0, 0}},
  {"a given mask with rows",
   PSPLIT_I_ROLE_MASK,
   "int64",
   3,
   {1, -1, -1},
   2,
   3,
   {1, 4, 5},
   PSPLIT_OK,
   NULL,
   8,
   {20, 21, 22, 23, 25, 26, 27, 28}},
  {"too little is given",
   PSPLIT_I_ROLE_MASK,
   "int64",
   2,
   {1, -1},
   2,
   2,
   {1, 3},
   PSPLIT_USAGE,
   "input in is given for 3 tokens, and there are 4",
   0,
   {0}},
  {"too few rows",
   PSPLIT_I_ROLE_MASK,
   "int64",
   3,
   {1, -1, -1},
   2,
   3,
   {1, 3, 5},
   PSPLIT_USAGE,
   "input in is given for 3 tokens, and there are 4",
   0,
   {0}},
  {"more rows than columns",
   PSPLIT_I_ROLE_MASK,
   "int64",
   3,
   {1, -1, -1},
   2,
   3,
   {1, 9, 2},
   PSPLIT_USAGE,
   "input in is given for 2 tokens, and there are 4",
   0,
   {0}},
  {"nothing in it",
   PSPLIT_I_ROLE_MASK,
   "int64",
   2,
   {1, -1},
   2,
   2,
   {0, 8},
   PSPLIT_USAGE,
   "input in is given for 8 tokens, and there are 4",
   0,
   {0}},
};

static psplit_code make(const struct step *s, psplit_diag *diag, psplit_i_tensor **out) {
  static const int64_t tokens[] = {5, 6, 7, 300};
  static double counted[64];
  const psplit_i_step_tokens step = {tokens, 4, s->n_past};
  psplit_i_manifest_dim dims[4] = {{0}};
  const psplit_i_manifest_value value = {"in", s->dtype, {s->rank, dims}};
  const psplit_i_step_input input = {"in", s->role, &value};
  psplit_i_tensor *given = NULL;
  for (int32_t d = 0; d < s->rank; d++) dims[d].value = s->sizes[d];
  for (int i = 0; i < 64; i++) counted[i] = 10 + i;
  if (s->given_rank) given = made_tensor(INT64, s->given, (size_t)s->given_rank, counted);
  const psplit_code code = psplit_i_step_input_make(NULL, &input, given, &step, diag, out);
  psplit_i_tensor_release(given);
  return code;
}

static void step_inputs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    const struct step *s = &steps[i];
    psplit_diag diag = {0};
    psplit_i_tensor_view view;
    psplit_i_tensor *found = NULL;
    const psplit_code code = make(s, &diag, &found);
    if (code != s->code || (s->message && !strstr(diag.message, s->message)))
      fail_msg("%s: %s, %s", s->title, psplit_code_name(code), diag.message);
    if (code == PSPLIT_OK) {
      assert_int_equal(psplit_i_tensor_look(found, &diag, &view), PSPLIT_OK);
      if (view.n_elements != s->n) fail_msg("%s: %d numbers", s->title, (int)view.n_elements);
      for (uint64_t n = 0; n < s->n; n++) {
        const double off = psplit_i_tensor_number(&view, n) - s->numbers[n];
        if (off < 0 || off > 0) fail_msg("%s: number %d is off by %g", s->title, (int)n, off);
      }
    }
    psplit_i_tensor_release(found);
  }
  psplit_diag diag = {0};
  psplit_i_tensor *found = NULL;
  made.look_fails = true;
  assert_int_equal(make(&steps[0], &diag, &found), PSPLIT_PLUGIN);
  made.look_fails = false;
  psplit_i_tensor_release(found);
  assert_int_equal(made.n_live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(likeliest),
    cmocka_unit_test(draws),
    cmocka_unit_test(odd_draws),
    cmocka_unit_test(step_inputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
