/* Constant tensors: what is refused, and that small ones read the same from wherever they are kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"
#include "open.h"
#include "wire.h"

/* The places a tensor can stand: each must be checked. */
static const char *const places[] = {
  "() => () <%s> {}",
  "() => () { y = Constant <value = %s> () }",
  "() => () { y = Loop () <body = () => () <%s> {}> }",
  /* a node of a function, and the default of a function's attribute */
  "() => () {} <opset_import: [\"\": 18]> F () => () { y = Constant <value = %s> () }",
  "() => () {} F <value = %s> () => () {}",
  "<ir_version: 10, training_info: [{initialization: () => () <%s> {}}]> () => () {}",
  "<ir_version: 10, training_info: [{algorithm: () => () <%s> {}}]> () => () {}",
  /* an element of a list of sparse tensors */
  "() => () { y = Op <v: sparse_tensors = [{values: %s, indices: int64[1] {0}}]> () }",
};

static void refused_everywhere(const char *tensor, psplit_code code, const char *part) {
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    psplit_i_text text = {0};
    psplit_i_text_addf(&text, places[i], tensor);
    refused_text(text.bytes, code, part);
    psplit_i_text_fini(&text);
  }
}

/* A model whose only initializer is this. */
static psplit_model *opened_with(const char *tensor) {
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, places[0], tensor);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  return model;
}

static void broken_tensors_are_refused_wherever_they_stand(void **state) {
  (void)state;
  static const struct {
    const char *tensor;
    psplit_code code;
    const char *part;
  } cases[] = {
    {"float[-1] t = {}", PSPLIT_INVALID, "negative or overflow"},
    {"float[1073741824,1073741824,1073741824] t = {}", PSPLIT_INVALID, "negative or overflow"},
    {"float[9223372036854775807,9223372036854775807,-5] t = {}", PSPLIT_INVALID,
     "negative or overflow"},
    {"float[2] t = raw \"1234567\"", PSPLIT_INVALID, "7 bytes, its shape and type need 8"},
    {"float[1000,2] t = raw {0 * 1000}", PSPLIT_INVALID,
     "4000 bytes, its shape and type need 8000"},
    {"float[288230376151711743] t = {}", PSPLIT_INVALID, "holds 0 numbers"},
    {"?[0] t = {}", PSPLIT_INVALID, "no element type"},
    {"?(0)[0] t = {}", PSPLIT_INVALID, "no element type"},
    {"?(99)[0] t = {}", PSPLIT_UNSUPPORTED, "number 99"},
    {"?(-5)[0] t = {}", PSPLIT_UNSUPPORTED, "number -5, is not known to this version"},
    {"string[1] t = raw \"a\"", PSPLIT_INVALID, "strings cannot be raw_data"},
    {"int64[1] t = raw {1} @{int64_data: [1]}", PSPLIT_INVALID, "both raw_data and typed"},
    {"int64[1] t = {} @{int32_data: [1]}", PSPLIT_INVALID, "another type"},
    {"float[1] t = raw {0} @{segment: {}}", PSPLIT_UNSUPPORTED, "segment"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    refused_everywhere(cases[i].tensor, cases[i].code, cases[i].part);

  /* As bytes: to protobuf a field given twice is the last one, and so is it in a text. */
  static const char zeros[4000];
  pb tensor = {0}, graph = {0}, model = {0};
  pb_int(&tensor, 1, 1000);
  pb_int(&tensor, 2, 1);
  pb_bytes(&tensor, 9, zeros, sizeof zeros);
  pb_bytes(&tensor, 9, zeros, 4);
  pb_message(&graph, 5, &tensor);
  pb_int(&model, 1, 10);
  pb_message(&model, 7, &graph);
  refused(&model, PSPLIT_INVALID, "raw_data twice");
}

static void counts_must_match_the_shape(void **state) {
  (void)state;
  static const struct {
    const char *tensor;
    bool right;
  } cases[] = {
    {"float[3] t = {0 * 3}", true},
    {"float[4] t = {0 * 3}", false},
    {"float[1000] t = {0 * 1000}", true},
    {"float[999] t = {0 * 1000}", false},
    {"complex64[3] t = {0 * 6}", true},
    {"complex64[3] t = {0 * 3}", false},
    {"double[2] t = {0 * 2}", true},
    {"double[501] t = {0 * 500}", false},
    {"int8[5] t = {0 * 5}", true},
    {"float16[5] t = {0 * 5}", true},
    {"bfloat16[6] t = {0 * 5}", false},
    {"int64[2000] t = {0 * 2000}", true},
    {"int64[2001] t = {0 * 2000}", false},
    {"int64[199] t = {0 * 2000}", false},
    {"uint32[3] t = {0 * 3}", true},
    {"uint64[2] t = {0 * 3}", false},
    {"int4[3] t = {0 * 2}", true},
    {"int4[3] t = {0 * 3}", true},
    {"int4[3] t = {0}", false},
    {"float[0] t = {}", true},
    {"float t = {0}", true},
    {"float[0,1048576,5] t = {}", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_i_text text = {0};
    psplit_i_text_addf(&text, places[0], cases[i].tensor);
    if (cases[i].right)
      psplit_model_close(opened_text(text.bytes));
    else
      refused_text(text.bytes, PSPLIT_INVALID, "its shape needs");
    psplit_i_text_fini(&text);
  }
}

/* `type[n] t = data`, with these two values in turn. */
static psplit_i_text alternating(const char *type, bool raw, size_t n, const char *even,
                                 const char *odd) {
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, "%s[%zu] t = %s{", type, n, raw ? "raw " : "");
  for (size_t i = 0; i < n; i++)
    psplit_i_text_addf(&text, "%s%s", i ? ", " : "", i % 2 ? odd : even);
  psplit_i_text_puts(&text, "}");
  return text;
}

static void integers_read_the_same_from_every_field(void **state) {
  (void)state;
  static const struct {
    const char *type;
    int64_t low, high;
  } types[] = {{"int64", INT64_MIN, INT64_MAX},
               {"int32", INT32_MIN, INT32_MAX},
               {"int8", -128, 127},
               {"uint8", 0, 255},
               {"bool", 0, 1},
               {"uint32", 0, UINT32_MAX}};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int64_t n = 2; n <= 4000; n *= 2000)
      for (unsigned raw = 0; raw < 2; raw++) {
        char low[32], high[32];
        snprintf(low, sizeof low, "%" PRId64, types[t].low);
        snprintf(high, sizeof high, "%" PRId64, types[t].high);
        psplit_i_text text = alternating(types[t].type, raw, (size_t)n, high, low);
        psplit_model *model = opened_with(text.bytes);
        psplit_i_text_fini(&text);
        const psplit_i_tensor read = psplit_i_graph_initializer(psplit_i_model_graph(model), 0);
        psplit_i_arena arena;
        psplit_i_arena_init(&arena, 0);
        const int64_t *out;
        size_t out_n;
        assert_int_equal(psplit_i_tensor_int64s(model, &read, n, &arena, NULL, &out, &out_n),
                         PSPLIT_OK);
        assert_int_equal(out_n, n);
        for (int64_t i = 0; i < n; i++)
          assert_true(out[i] == (i % 2 ? types[t].low : types[t].high));
        assert_int_equal(psplit_i_tensor_int64s(model, &read, n - 1, &arena, NULL, &out, &out_n),
                         PSPLIT_OK);
        assert_null(out);
        const double *doubles;
        assert_int_equal(psplit_i_tensor_doubles(model, &read, n, &arena, NULL, &doubles, &out_n),
                         PSPLIT_OK);
        assert_null(doubles);
        psplit_i_arena_fini(&arena);
        psplit_model_close(model);
      }
}

/* As bytes: writers extend the sign of an int32 to ten bytes, some do not. */
static void negative_int32_of_five_bytes_is_negative(void **state) {
  (void)state;
  pb tensor = {0}, data = {0}, graph = {0}, bytes = {0};
  for (int i = 0; i < 1000; i++) psplit_i_wire_varint(&data, UINT32_MAX);
  pb_int(&tensor, 1, 1000);
  pb_int(&tensor, 2, ONNX__TENSOR_PROTO__DATA_TYPE__INT32);
  pb_string(&tensor, 8, "t");
  pb_message(&tensor, 5, &data);
  pb_message(&graph, 5, &tensor);
  pb_int(&bytes, 1, 10);
  pb_message(&bytes, 7, &graph);
  psplit_model *model = opened(&bytes);
  const psplit_i_tensor read = psplit_i_graph_initializer(psplit_i_model_graph(model), 0);
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  const int64_t *out;
  size_t n;
  assert_int_equal(psplit_i_tensor_int64s(model, &read, 1000, &arena, NULL, &out, &n), PSPLIT_OK);
  assert_int_equal(n, 1000);
  assert_int_equal(out[999], -1);
  psplit_i_arena_fini(&arena);
  psplit_model_close(model);
}

static void floats_read_the_same_from_every_field(void **state) {
  (void)state;
  static const struct {
    const char *type, *even, *odd; /* 0.25 and -1.5 */
  } forms[] = {{"float", "0.25", "-1.5"},
               {"double", "0.25", "-1.5"},
               {"float16", "13312", "48640"},
               {"bfloat16", "16000", "49088"}};
  for (size_t n = 3; n <= 3000; n *= 1000)
    for (size_t f = 0; f < 2 * sizeof forms / sizeof *forms; f++) {
      psplit_i_text text =
        alternating(forms[f / 2].type, f % 2, n, forms[f / 2].even, forms[f / 2].odd);
      psplit_model *model = opened_with(text.bytes);
      psplit_i_text_fini(&text);
      const psplit_i_tensor read = psplit_i_graph_initializer(psplit_i_model_graph(model), 0);
      psplit_i_arena arena;
      psplit_i_arena_init(&arena, 0);
      const double *out;
      size_t out_n;
      if (psplit_i_tensor_doubles(model, &read, 5000, &arena, NULL, &out, &out_n) != PSPLIT_OK ||
          !out)
        fail_msg("form %zu of %zu elements is not read", f, n);
      assert_int_equal(out_n, n);
      for (size_t i = 0; i < n; i++) assert_true(out[i] == (i % 2 ? -1.5 : 0.25));
      psplit_i_arena_fini(&arena);
      psplit_model_close(model);
    }
}

/* A sparse initializer of dims 4 x 5 with three values at these indices. */
static psplit_i_text sparse_model(const char *indices) {
  psplit_i_text text = {0};
  psplit_i_text_addf(&text,
                     "() => (float[4] y) @{sparse_initializer: [{"
                     "  values: float[3] s = raw {1, 2, 3}, indices: %s, dims: [4, 5]}]} {"
                     "  y = Op (s)"
                     "}",
                     indices);
  return text;
}

static void sparse_values_have_places(void **state) {
  (void)state;
  static const struct {
    const char *indices, *part; /* NULL: they are sound */
  } cases[] = {
    {"int64[3] = raw {0, 7, 19}", NULL},
    {"int64[3,2] = raw {0, 4, 1, 0, 3, 4}", NULL},
    {"int64[3] = raw {0, 7, 20}", "value 2 is outside"},
    {"int64[3] = raw {-1, 7, 19}", "value 0 is outside"},
    {"int64[3] = raw {0, 7, 7}", "value 2 is not above"},
    {"int64[3] = raw {0, 7, 6}", "value 2 is not above"},
    {"int64[3,2] = raw {0, 4, 1, 5, 3, 4}", "value 1 is outside"},
    {"int64[3,2] = raw {1, 0, 0, 4, 3, 4}", "value 1 is not above"},
    {"int64[2] = raw {0, 7}", "not one int64"},
    {"int64[3,1] = raw {0, 7, 19}", "not one int64"},
    {"uint64[3] = raw {0, 7, 19}", "not one int64"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_i_text text = sparse_model(cases[i].indices);
    if (cases[i].part)
      refused_text(text.bytes, PSPLIT_INVALID, cases[i].part);
    else
      psplit_model_close(opened_text(text.bytes));
    psplit_i_text_fini(&text);
  }
}

static void training_binds_what_there_is(void **state) {
  (void)state;
  static const struct {
    const char *bindings, *part; /* of a training step whose result is h; w is a weight */
  } cases[] = {{"\"w\": \"h\"", NULL},
               {"\"y\": \"h\"", "\"y\", which is not an initializer"},
               {"\"w\": \"g\"", "\"w\" to \"g\""},
               {"\"w\": \"h\", \"w\": \"h\"", "\"w\" twice"}};
  static const char *const steps[] = {"initialization", "algorithm"};
  static const char *const kinds[] = {"initialization_binding", "update_binding"};
  for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
    psplit_i_text text = {0};
    psplit_i_text_addf(&text,
                       "<ir_version: 10, opset_import: [\"\": 18],"
                       " training_info: [{%s: (g) => (h) { h = Neg (g) }, %s: [%s]}]>"
                       "() => (y) <float[1] w = {1}> { y = Op (w) }",
                       steps[i % 2], kinds[i % 2], cases[i / 2].bindings);
    if (cases[i / 2].part)
      refused_text(text.bytes, PSPLIT_INVALID, cases[i / 2].part);
    else
      psplit_model_close(opened_text(text.bytes));
    psplit_i_text_fini(&text);
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
