/* Constant tensors: what is refused, and that small ones read the same from wherever they are kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"
#include "open.h"
#include "wire.h"

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6, INT64 = 7, STRING = 8, BOOL = 9, FLOAT16 = 10 };
enum { DOUBLE = 11, UINT32 = 12, UINT64 = 13, COMPLEX64 = 14, BFLOAT16 = 16, INT4 = 22 };

/* The places a tensor can stand: each must be checked. */
static pb model_with(pb *tensor, unsigned place) {
  pb graph = {0}, attributes = {0}, attribute = {0}, body = {0}, other = {0};
  switch (place) {
    case 0: pb_message(&graph, 5, tensor); return make_model(&graph);
    case 1:
      add_tensor_attribute(&attributes, "value", tensor);
      add_node_with(&graph, "Constant", "", "y", &attributes);
      return make_model(&graph);
    case 2:
      pb_message(&body, 5, tensor);
      add_body(&attributes, "body", &body);
      add_node_with(&graph, "Loop", "", "y", &attributes);
      return make_model(&graph);
    case 3: { /* a node of a function */
      pb function = make_function("F", "", "");
      add_tensor_attribute(&attributes, "value", tensor);
      pb node = make_node("Constant", "", "y", &attributes), model = make_model(&graph);
      pb_message(&function, 7, &node);
      pb_message(&model, 25, &function);
      return model;
    }
    case 4: { /* the default of a function's attribute */
      pb function = make_function("F", "", ""), model = make_model(&graph);
      pb_message(&attribute, 5, tensor);
      pb_message(&function, 11, &attribute);
      pb_message(&model, 25, &function);
      return model;
    }
    case 5: { /* training */
      pb model = make_model(&graph);
      pb_message(&body, 5, tensor);
      pb_message(&other, 1, &body);
      pb_message(&model, 20, &other);
      return model;
    }
    default: { /* an element of a list of sparse tensors */
      pb indices = make_tensor("i", INT64, 1, (int64_t[]){0}), sparse = {0};
      pb_message(&sparse, 1, tensor);
      pb_message(&sparse, 2, &indices);
      pb_message(&attribute, 23, &sparse);
      pb_message(&attributes, 5, &attribute);
      add_node_with(&graph, "Op", "", "y", &attributes);
      return make_model(&graph);
    }
  }
}

static void refused_everywhere(pb *tensor, psplit_code code, const char *part) {
  for (unsigned place = 0; place <= 6; place++) {
    pb copy = {0};
    psplit_i_text_add(&copy, tensor->bytes, tensor->n);
    pb bytes = model_with(&copy, place);
    refused(&bytes, code, part);
  }
  psplit_i_text_fini(tensor);
}

static void accepted(pb *tensor) {
  pb bytes = model_with(tensor, 0);
  psplit_model_close(opened(&bytes));
}

static void broken_tensors_are_refused_wherever_they_stand(void **state) {
  (void)state;
  pb t = make_tensor("t", FLOAT, 1, (int64_t[]){-1});
  refused_everywhere(&t, PSPLIT_INVALID, "negative or overflow");
  t = make_tensor("t", FLOAT, 3, (int64_t[]){1 << 30, 1 << 30, 1 << 30});
  refused_everywhere(&t, PSPLIT_INVALID, "negative or overflow");
  t = make_tensor("t", FLOAT, 4, (int64_t[]){INT64_MAX, INT64_MAX, INT64_MAX, -5});
  refused_everywhere(&t, PSPLIT_INVALID, "negative or overflow");
  t = make_tensor("t", FLOAT, 1, (int64_t[]){2});
  pb_bytes(&t, 9, "1234567", 7);
  refused_everywhere(&t, PSPLIT_INVALID, "7 bytes, its shape and type need 8");
  t = make_raw_tensor("t", 1000, 0);
  pb_int(&t, 1, 2); /* a second dimension: twice the elements */
  refused_everywhere(&t, PSPLIT_INVALID, "4000 bytes, its shape and type need 8000");
  t = make_tensor("t", FLOAT, 1, (int64_t[]){INT64_MAX / 32});
  refused_everywhere(&t, PSPLIT_INVALID, "holds 0 numbers");
  t = make_tensor("t", 0, 1, (int64_t[]){0});
  refused_everywhere(&t, PSPLIT_INVALID, "no element type");
  t = make_tensor("t", 99, 1, (int64_t[]){0});
  refused_everywhere(&t, PSPLIT_UNSUPPORTED, "number 99");
  t = make_tensor("t", STRING, 1, (int64_t[]){1});
  pb_bytes(&t, 9, "a", 1);
  refused_everywhere(&t, PSPLIT_INVALID, "strings cannot be raw_data");
  t = make_tensor("t", INT64, 1, (int64_t[]){1});
  pb_bytes(&t, 9, "12345678", 8);
  pb_bytes(&t, 7, "\x01", 1);
  refused_everywhere(&t, PSPLIT_INVALID, "both raw_data and typed");
  t = make_tensor("t", INT64, 1, (int64_t[]){1});
  pb_bytes(&t, 5, "\x01", 1);
  refused_everywhere(&t, PSPLIT_INVALID, "another type");
  t = make_raw_tensor("t", 1000, 0);
  pb_bytes(&t, 9, "1234", 4);
  refused_everywhere(&t, PSPLIT_INVALID, "raw_data twice");
  pb segment = {0};
  t = make_raw_tensor("t", 1, 0);
  pb_message(&t, 3, &segment);
  refused_everywhere(&t, PSPLIT_UNSUPPORTED, "segment");
}

static void counts_must_match_the_shape(void **state) {
  (void)state;
  static const struct {
    int32_t data_type;
    uint32_t field;
    size_t element_bytes; /* in the packed field; 1: varints */
    size_t n;             /* numbers stored */
    int64_t dim;
    bool right;
  } cases[] = {
    {FLOAT, 4, 4, 3, 3, true},        {FLOAT, 4, 4, 3, 4, false},
    {FLOAT, 4, 4, 1000, 1000, true},  {FLOAT, 4, 4, 1000, 999, false},
    {COMPLEX64, 4, 4, 6, 3, true},    {COMPLEX64, 4, 4, 3, 3, false},
    {DOUBLE, 10, 8, 2, 2, true},      {DOUBLE, 10, 8, 500, 501, false},
    {INT8, 5, 1, 5, 5, true},         {FLOAT16, 5, 1, 5, 5, true},
    {BFLOAT16, 5, 1, 5, 6, false},    {INT64, 7, 1, 2000, 2000, true},
    {INT64, 7, 1, 2000, 2001, false}, {INT64, 7, 1, 2000, 199, false},
    {UINT32, 11, 1, 3, 3, true},      {UINT64, 11, 1, 3, 2, false},
    {INT4, 5, 1, 2, 3, true},         {INT4, 5, 1, 3, 3, true},
    {INT4, 5, 1, 1, 3, false},        {FLOAT, 4, 4, 0, 0, true},
  };
  static const char zeros[8 * 2000];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pb tensor = make_tensor("t", cases[i].data_type, 1, &cases[i].dim);
    pb_bytes(&tensor, cases[i].field, zeros, cases[i].n * cases[i].element_bytes);
    if (cases[i].right) {
      accepted(&tensor);
    } else {
      pb bytes = model_with(&tensor, 0);
      refused(&bytes, PSPLIT_INVALID, "its shape needs");
    }
  }
  pb scalar = make_tensor("t", FLOAT, 0, NULL);
  pb_bytes(&scalar, 4, zeros, 4);
  accepted(&scalar);
  pb overflow_times_zero = make_tensor("t", FLOAT, 3, (int64_t[]){0, 1 << 20, 5});
  accepted(&overflow_times_zero);
}

/* Appends `n` values to a tensor as varints in `field`, as raw little-endian of `width` bytes, or
 * unpacked, one field each. */
static void add_integers(pb *tensor, uint32_t field, unsigned width, const int64_t *values,
                         size_t n) {
  pb data = {0};
  for (size_t i = 0; i < n; i++) {
    if (width)
      for (unsigned b = 0; b < width; b++)
        psplit_i_text_add(&data, &(char){(char)((uint64_t)values[i] >> (8 * b))}, 1);
    else
      psplit_i_wire_varint(&data, (uint64_t)values[i]);
  }
  pb_bytes(tensor, width ? 9 : field, data.bytes ? data.bytes : "", data.n);
  psplit_i_text_fini(&data);
}

static void integers_read_the_same_from_every_field(void **state) {
  (void)state;
  static const struct {
    int32_t data_type;
    uint32_t field;
    unsigned width;
    int64_t low, high;
  } types[] = {{INT64, 7, 8, INT64_MIN, INT64_MAX},
               {INT32, 5, 4, INT32_MIN, INT32_MAX},
               {INT8, 5, 1, -128, 127},
               {UINT8, 5, 1, 0, 255},
               {BOOL, 5, 1, 0, 1},
               {UINT32, 11, 4, 0, UINT32_MAX}};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int64_t n = 2; n <= 4000; n *= 2000)
      for (unsigned raw = 0; raw < 2; raw++) {
        int64_t *values = malloc((size_t)n * sizeof *values);
        for (int64_t i = 0; i < n; i++) values[i] = i % 2 ? types[t].low : types[t].high;
        pb tensor = make_tensor("t", types[t].data_type, 1, &n);
        add_integers(&tensor, types[t].field, raw ? types[t].width : 0, values, (size_t)n);
        pb bytes = model_with(&tensor, 0);
        psplit_model *model = opened(&bytes);
        const psplit_tensor read = psplit_i_graph_initializer(psplit_i_model_graph(model), 0);
        psplit_arena arena;
        psplit_i_arena_init(&arena, 0);
        const int64_t *out;
        size_t out_n;
        assert_true(psplit_i_tensor_int64s(model, &read, n, &arena, &out, &out_n));
        assert_int_equal(out_n, n);
        assert_memory_equal(out, values, (size_t)n * sizeof *values);
        assert_false(psplit_i_tensor_int64s(model, &read, n - 1, &arena, &out, &out_n));
        const double *doubles;
        assert_false(psplit_i_tensor_doubles(model, &read, n, &arena, &doubles, &out_n));
        psplit_i_arena_fini(&arena);
        psplit_model_close(model);
        free(values);
      }
}

static void negative_int32_of_five_bytes_is_negative(void **state) {
  (void)state;
  pb tensor = make_tensor("t", INT32, 1, (int64_t[]){1000}), data = {0};
  for (int i = 0; i < 1000; i++) psplit_i_wire_varint(&data, UINT32_MAX); /* not sign-extended */
  pb_bytes(&tensor, 5, data.bytes, data.n);
  psplit_i_text_fini(&data);
  pb bytes = model_with(&tensor, 0);
  psplit_model *model = opened(&bytes);
  const psplit_tensor read = psplit_i_graph_initializer(psplit_i_model_graph(model), 0);
  psplit_arena arena;
  psplit_i_arena_init(&arena, 0);
  const int64_t *out;
  size_t n;
  assert_true(psplit_i_tensor_int64s(model, &read, 1000, &arena, &out, &n));
  assert_int_equal(out[999], -1);
  psplit_i_arena_fini(&arena);
  psplit_model_close(model);
}

static void floats_read_the_same_from_every_field(void **state) {
  (void)state;
  for (size_t n = 3; n <= 3000; n *= 1000) {
    float *singles = malloc(n * sizeof *singles);
    double *doubles = malloc(n * sizeof *doubles);
    uint16_t *halves = malloc(n * sizeof *halves), *brains = malloc(n * sizeof *brains);
    for (size_t i = 0; i < n; i++) {
      singles[i] = i % 2 ? -1.5f : 0.25f;
      doubles[i] = (double)singles[i];
      halves[i] = i % 2 ? 0xbe00 : 0x3400;
      brains[i] = i % 2 ? 0xbfc0 : 0x3e80;
    }
    int64_t *codes = malloc(n * sizeof *codes);
    const struct {
      int32_t type;
      uint32_t field;
      const void *data;
      size_t bytes;
    } forms[] = {{FLOAT, 4, singles, 4 * n},   {FLOAT, 9, singles, 4 * n},
                 {DOUBLE, 10, doubles, 8 * n}, {DOUBLE, 9, doubles, 8 * n},
                 {FLOAT16, 9, halves, 2 * n},  {BFLOAT16, 9, brains, 2 * n},
                 {FLOAT16, 5, NULL, 0},        {BFLOAT16, 5, NULL, 0}};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
      pb tensor = make_tensor("t", forms[f].type, 1, (int64_t[]){(int64_t)n});
      if (forms[f].data) {
        pb_bytes(&tensor, forms[f].field, forms[f].data, forms[f].bytes);
      } else {
        for (size_t i = 0; i < n; i++) codes[i] = forms[f].type == FLOAT16 ? halves[i] : brains[i];
        add_integers(&tensor, 5, 0, codes, n);
      }
      pb bytes = model_with(&tensor, 0);
      psplit_model *model = opened(&bytes);
      const psplit_tensor read = psplit_i_graph_initializer(psplit_i_model_graph(model), 0);
      psplit_arena arena;
      psplit_i_arena_init(&arena, 0);
      const double *out;
      size_t out_n;
      if (!psplit_i_tensor_doubles(model, &read, 5000, &arena, &out, &out_n))
        fail_msg("form %zu of %zu elements is not read", f, n);
      assert_int_equal(out_n, n);
      assert_memory_equal(out, doubles, n * sizeof *doubles);
      psplit_i_arena_fini(&arena);
      psplit_model_close(model);
    }
    free(codes);
    free(singles);
    free(doubles);
    free(halves);
    free(brains);
  }
}

/* A sparse initializer of dims 4 x 5: three values, and these indices of the given shape. */
static pb sparse_model(const int64_t *index, unsigned n_index_dims, int64_t n_per_value,
                       int32_t index_type, int64_t n_values) {
  const int64_t three = 3, shape[] = {n_values, n_per_value};
  pb graph = {0}, sparse = {0}, values = make_tensor("s", FLOAT, 1, &three);
  pb indices = make_tensor("", index_type, n_index_dims, shape);
  const float some[] = {1, 2, 3};
  pb_bytes(&values, 9, some, sizeof some);
  pb_bytes(&indices, 9, index, (size_t)(n_values * n_per_value) * sizeof *index);
  pb_message(&sparse, 1, &values);
  pb_message(&sparse, 2, &indices);
  pb_int(&sparse, 3, 4);
  pb_int(&sparse, 3, 5);
  pb_message(&graph, 15, &sparse);
  add_node(&graph, "Op", "s", "y");
  add_values(&graph, 12, "y");
  return make_model(&graph);
}

static void sparse_values_have_places(void **state) {
  (void)state;
  const int64_t linear[] = {0, 7, 19}, pairs[] = {0, 4, 1, 0, 3, 4};
  pb good = sparse_model(linear, 1, 1, INT64, 3);
  psplit_model_close(opened(&good));
  good = sparse_model(pairs, 2, 2, INT64, 3);
  psplit_model_close(opened(&good));

  const int64_t past[] = {0, 7, 20}, negative[] = {-1, 7, 19}, twice[] = {0, 7, 7};
  const int64_t back[] = {0, 7, 6}, wide[] = {0, 4, 1, 5, 3, 4}, turned[] = {1, 0, 0, 4, 3, 4};
  const struct {
    const int64_t *index;
    unsigned n_dims;
    int64_t n_per_value, n_values;
    int32_t type;
    const char *part;
  } cases[] = {
    {past, 1, 1, 3, INT64, "value 2 is outside"},
    {negative, 1, 1, 3, INT64, "value 0 is outside"},
    {twice, 1, 1, 3, INT64, "value 2 is not above"},
    {back, 1, 1, 3, INT64, "value 2 is not above"},
    {wide, 2, 2, 3, INT64, "value 1 is outside"},
    {turned, 2, 2, 3, INT64, "value 1 is not above"},
    {linear, 1, 1, 2, INT64, "not one int64"},
    {linear, 2, 1, 3, INT64, "not one int64"},
    {linear, 1, 1, 3, UINT64, "not one int64"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pb bad = sparse_model(cases[i].index, cases[i].n_dims, cases[i].n_per_value, cases[i].type,
                          cases[i].n_values);
    refused(&bad, PSPLIT_INVALID, cases[i].part);
  }
}

/* A model with weight w whose training step gives `h`; `binding` of it is key -> value, `again`
 * twice. */
static pb trained(const char *key, const char *value, bool again, bool initialization) {
  pb graph = {0}, step = {0}, training = {0};
  add_initializers(&graph, "w");
  add_node(&graph, "Op", "w", "y");
  add_values(&graph, 12, "y");
  add_node(&step, "Neg", "g", "h");
  add_values(&step, 11, "g");
  add_values(&step, 12, "h");
  pb_message(&training, initialization ? 1 : 2, &step);
  for (int i = 0; i < (again ? 2 : 1); i++) {
    pb binding = {0};
    pb_string(&binding, 1, key);
    pb_string(&binding, 2, value);
    pb_message(&training, initialization ? 3 : 4, &binding);
  }
  pb model = make_model(&graph);
  pb_message(&model, 20, &training);
  return model;
}

static void training_binds_what_there_is(void **state) {
  (void)state;
  for (int initialization = 0; initialization < 2; initialization++) {
    pb model = trained("w", "h", false, initialization);
    psplit_model_close(opened(&model));
    model = trained("y", "h", false, initialization);
    refused(&model, PSPLIT_INVALID, "\"y\", which is no initializer");
    model = trained("w", "g", false, initialization);
    refused(&model, PSPLIT_INVALID, "\"w\" to \"g\"");
    model = trained("w", "h", true, initialization);
    refused(&model, PSPLIT_INVALID, "\"w\" twice");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(broken_tensors_are_refused_wherever_they_stand),
    cmocka_unit_test(counts_must_match_the_shape),
    cmocka_unit_test(integers_read_the_same_from_every_field),
    cmocka_unit_test(negative_int32_of_five_bytes_is_negative),
    cmocka_unit_test(floats_read_the_same_from_every_field),
    cmocka_unit_test(sparse_values_have_places),
    cmocka_unit_test(training_binds_what_there_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
