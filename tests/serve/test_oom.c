/* A request, a reply and an error when memory runs out: whichever allocation fails, the call says
 * NOMEM, leaks nothing and reads nothing that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "protocol.h"

static const char REQUEST[] =
  "{\"id\": \"\\u00e9\", \"inputs\": ["
  "{\"name\": \"x\", \"shape\": [2, 2], \"datatype\": \"FP32\", \"data\": [[1, 2.5], [-3e2, 4]]},"
  "{\"name\": \"t\", \"shape\": [2], \"datatype\": \"BYTES\", \"data\": [\"a\", \"bc\"]},"
  "{\"name\": \"b\", \"shape\": [3], \"datatype\": \"BOOL\", \"data\": [true, 0, 1]},"
  "{\"name\": \"i\", \"shape\": [1], \"datatype\": \"INT64\", \"data\": [-9223372036854775808]},"
  "{\"name\": \"r\", \"shape\": [4], \"datatype\": \"UINT8\", \"parameters\":"
  " {\"binary_data_size\": 4}}], \"outputs\": [{\"name\": \"y\", \"parameters\":"
  " {\"binary_data\": true}}]}";

static void check(const serve_request *r) {
  float floats[4];
  int64_t least;
  assert_int_equal(r->n_inputs, 5);
  memcpy(floats, r->inputs[0].tensor.data, sizeof floats);
  assert_true(floats[0] == 1 && floats[1] == 2.5f && floats[2] == -300 && floats[3] == 4);
  assert_int_equal(r->inputs[1].tensor.n_bytes, 2 * sizeof(uint64_t) + 3);
  assert_memory_equal((const char *)r->inputs[1].tensor.data + 2 * sizeof(uint64_t), "abc", 3);
  assert_memory_equal(r->inputs[2].tensor.data, "\1\0\1", 3);
  memcpy(&least, r->inputs[3].tensor.data, sizeof least);
  assert_true(least == INT64_MIN);
  assert_memory_equal(r->inputs[4].tensor.data, "wxyz", 4);
  assert_int_equal(r->id->kind, PSPLIT_I_JSON_STRING);
  assert_string_equal(r->id->text, "\xc3\xa9");
  assert_true(r->n_wanted == 1 && r->wanted[0].binary);
}

static void requests(void **state) {
  (void)state;
  /* In a block of its own, for sanitizers to see its ends. */
  const size_t n_json = sizeof REQUEST - 1, n = n_json + 4;
  char *body = malloc(n);
  assert_non_null(body);
  memcpy(body, REQUEST, n_json);
  memcpy(body + n_json, "wxyz", 4);
  for (long nth = 0;; nth++) {
    psplit_diag diag = {0};
    serve_request request = {0};
    const long live = live_blocks();
    fail_allocation_after(nth);
    const psplit_code code = serve_request_parse(body, n, n_json, &diag, &request);
    const bool failed = stop_failing();
    assert_int_equal(code, failed ? PSPLIT_NOMEM : PSPLIT_OK);
    if (!failed) check(&request);
    serve_request_fini(&request);
    assert_int_equal(live_blocks(), live);
    if (!failed) break;
  }
  free(body);
}

static void wrong_requests(void **state) {
  static const char *const bodies[][2] = {
    {"{", "JSON"},
    {"{\"id\": 1.5, \"inputs\": []}", "id has to be a string or a whole number"},
    {"{\"id\": [], \"inputs\": []}", "id has to be a string or a whole number"},
    {"{\"inputs\": [], \"parameters\": []}", "parameters has to be an object"},
    {"{\"inputs\": [], \"parameters\": {\"binary_data_output\": 1}}",
     "binary_data_output has to be true or false"},
    {"{\"inputs\": [], \"outputs\": [{\"name\": \"y\", \"parameters\": {\"binary_data\": "
     "\"true\"}}]}",
     "binary_data has to be true or false"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"INT8\", \"data\": [1], "
     "\"parameters\": {\"binary_data_size\": 1}}]}",
     "not both"},
    {"[]", "list of inputs"},
    {"{\"inputs\": [], \"inputs\": []}", "JSON"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"INT8\", \"data\": [128]}]}",
     "out of range"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"UINT8\", \"data\": [true]}]}",
     "another type"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1.0], \"datatype\": \"INT8\", \"data\": [1]}]}",
     "shape"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"UINT8\", \"data\": [-1]}]}",
     "out of range"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"UINT8\", \"data\": [256]}]}",
     "out of range"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"FP32\", \"data\": [-1e39]}]}",
     "out of range"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"FP64\", \"data\": [1e309]}]}",
     "overflow"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"BOOL\", \"data\": [2]}]}",
     "out of range"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"INT8\", \"data\": [-129]}]}",
     "out of range"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"FP16\", \"data\": [1]}]}",
     "numbers of this datatype come as binary data"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"BYTES\", \"data\": [1]}]}",
     "another type"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [2], \"datatype\": \"INT8\", \"data\": [1]}]}",
     "not have as many values as shape"}};
  (void)state;
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    psplit_diag diag = {0};
    serve_request request = {0};
    const size_t n = strlen(bodies[i][0]);
    assert_int_not_equal(serve_request_parse(bodies[i][0], n, n, &diag, &request), PSPLIT_OK);
    if (!strstr(diag.message, bodies[i][1])) fail_msg("%s: %s", bodies[i][0], diag.message);
  }
}

/* Values at the ends of what each datatype holds, and those beyond. */
static void values_of_datatypes(void **state) {
  static const struct {
    const char *datatype, *value;
    unsigned n_bytes; /* 0: it is refused */
    union {
      uint64_t whole;
      double wide;
      float narrow;
    } is;
  } CASES[] = {
    {"UINT64", "9223372036854775807", 8, {INT64_MAX}},
    {"UINT64", "9223372036854775808", 8, {(uint64_t)INT64_MAX + 1}},
    {"UINT64", "18446744073709551615", 8, {UINT64_MAX}},
    {"UINT64", "18446744073709551616", 0, {0}},
    {"UINT64", "-1", 0, {0}},
    {"UINT64", "1.0", 0, {0}},
    {"INT64", "9223372036854775807", 8, {INT64_MAX}},
    {"INT64", "9223372036854775808", 0, {0}},
    {"INT64", "-9223372036854775808", 8, {(uint64_t)INT64_MIN}},
    {"INT64", "-9223372036854775809", 0, {0}},
    {"UINT32", "4294967295", 4, {UINT32_MAX}},
    {"UINT32", "4294967296", 0, {0}},
    {"UINT32", "18446744073709551615", 0, {0}},
    {"INT32", "2147483647", 4, {INT32_MAX}},
    {"INT32", "2147483648", 0, {0}},
    {"INT32", "-2147483648", 4, {(uint32_t)INT32_MIN}},
    {"INT32", "-2147483649", 0, {0}},
    {"UINT16", "65535", 2, {65535}},
    {"UINT16", "65536", 0, {0}},
    {"INT16", "-32768", 2, {32768}},
    {"INT16", "-32769", 0, {0}},
    {"BOOL", "18446744073709551615", 0, {0}},
    {"FP64", "18446744073709551615", 8, {.wide = 0x1p64}},
    {"FP64", "100000000000000000000", 8, {.wide = 1e20}},
    {"FP32", "9223372036854775808", 4, {.narrow = 0x1p63f}},
    {"FP32", "-100000000000000000000", 4, {.narrow = -1e20f}},
    {"FP32", "1000000000000000000000000000000000000000", 0, {0}},
    {"FP32", "true", 0, {0}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    psplit_diag diag = {0};
    serve_request request = {0};
    char body[200];
    const int n = snprintf(
      body, sizeof body,
      "{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"%s\", \"data\": [%s]}]}",
      CASES[i].datatype, CASES[i].value);
    const psplit_code code = serve_request_parse(body, (size_t)n, (size_t)n, &diag, &request);
    if ((code == PSPLIT_OK) != (CASES[i].n_bytes != 0))
      fail_msg("%s %s: %s", CASES[i].datatype, CASES[i].value, diag.message);
    if (code == PSPLIT_OK) {
      assert_int_equal(request.inputs[0].tensor.n_bytes, CASES[i].n_bytes);
      assert_memory_equal(request.inputs[0].tensor.data, &CASES[i].is, CASES[i].n_bytes);
    } else if (!strstr(diag.message, "out of range")) {
      fail_msg("%s %s: %s", CASES[i].datatype, CASES[i].value, diag.message);
    }
    serve_request_fini(&request);
  }
}

/* An integer of 64 bits comes back as it came, and another number is refused. */
static void ids(void **state) {
  static const char *const CASES[] = {"9223372036854775807",
                                      "9223372036854775808",
                                      "18446744073709551615",
                                      "-9223372036854775808",
                                      NULL,
                                      "18446744073709551616",
                                      "-9223372036854775809"};
  (void)state;
  bool good = true;
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    psplit_diag diag = {0};
    serve_request request = {0};
    serve_reply reply = {0};
    const psplit_response response = {.message = ""};
    char body[100], begin[100];
    if (!CASES[i]) good = false;
    if (!CASES[i]) continue;
    const int n = snprintf(body, sizeof body, "{\"id\": %s, \"inputs\": []}", CASES[i]);
    const psplit_code code = serve_request_parse(body, (size_t)n, (size_t)n, &diag, &request);
    assert_int_equal(code == PSPLIT_OK, good);
    if (good) {
      assert_int_equal(serve_reply_make("m", &request, &response, &diag, &reply), PSPLIT_OK);
      const int n_begin =
        snprintf(begin, sizeof begin, "{\"model_name\":\"m\",\"id\":%s,", CASES[i]);
      assert_memory_equal(reply.bytes, begin, (size_t)n_begin);
    }
    free(reply.bytes);
    serve_request_fini(&request);
  }
}

/* Outputs of every datatype, and what is said of them. */
static const int64_t TWO[] = {2}, SQUARE[] = {1, 2};
static const double REALS[] = {0.1, -1e300};
static const float NARROW[] = {0.5f, -__builtin_inff()};
static const uint64_t WIDE[] = {0, UINT64_MAX};
static const int64_t LONG[] = {INT64_MIN, 7};
static const int8_t BYTES[] = {-128, 127};
static const uint16_t HALVES[] = {0x3c00, 0xbc00};
static const struct {
  uint64_t length[2];
  char text[5];
} TEXTS = {{2, 3}, "a\"\x01\xc3\xa9"}, TORN = {{1, 1}, "a\xff"};
static const psplit_named_tensor OUTPUTS[] = {
  {"d", {11, 1, TWO, REALS, sizeof REALS}},   {"f", {1, 2, SQUARE, NARROW, sizeof NARROW}},
  {"u", {13, 1, TWO, WIDE, sizeof WIDE}},     {"i", {7, 1, TWO, LONG, sizeof LONG}},
  {"s", {3, 1, TWO, BYTES, sizeof BYTES}},    {"b", {9, 1, TWO, "\1", 2}},
  {"h", {10, 1, TWO, HALVES, sizeof HALVES}}, {"t", {8, 1, TWO, &TEXTS, sizeof TEXTS}},
};

static void replies(void **state) {
  (void)state;
  static const char all[] =
    "{\"model_name\":\"m\",\"id\":\"7\",\"outputs\":["
    "{\"name\":\"d\",\"datatype\":\"FP64\",\"shape\":[2],"
    "\"data\":[0.10000000000000001,-1.0000000000000001e+300]},"
    "{\"name\":\"f\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[0.5,null]},"
    "{\"name\":\"u\",\"datatype\":\"UINT64\",\"shape\":[2],\"data\":[0,18446744073709551615]},"
    "{\"name\":\"i\",\"datatype\":\"INT64\",\"shape\":[2],\"data\":[-9223372036854775808,7]},"
    "{\"name\":\"s\",\"datatype\":\"INT8\",\"shape\":[2],\"data\":[-128,127]},"
    "{\"name\":\"b\",\"datatype\":\"BOOL\",\"shape\":[2],\"data\":[true,false]},"
    "{\"name\":\"h\",\"datatype\":\"FP16\",\"shape\":[2],"
    "\"parameters\":{\"binary_data_size\":4}},"
    "{\"name\":\"t\",\"datatype\":\"BYTES\",\"shape\":[2],"
    "\"data\":[\"a\\\"\",\"\\u0001\xc3\xa9\"]}]}";
  static const char some[] =
    "{\"model_name\":\"m\",\"outputs\":["
    "{\"name\":\"s\",\"datatype\":\"INT8\",\"shape\":[2],"
    "\"parameters\":{\"binary_data_size\":2}},"
    "{\"name\":\"t\",\"datatype\":\"BYTES\",\"shape\":[2],"
    "\"parameters\":{\"binary_data_size\":13}}]}";
  const psplit_response response = {
    .n_outputs = sizeof OUTPUTS / sizeof *OUTPUTS, .outputs = OUTPUTS, .message = ""};
  const psplit_i_json_value id = {.kind = PSPLIT_I_JSON_STRING, .n = 1, .text = "7"},
                            number = {.kind = PSPLIT_I_JSON_INTEGER, .integer = INT64_MIN};
  serve_request request = {.id = &id};
  serve_reply reply = {0};
  psplit_diag diag = {0};
  assert_int_equal(serve_reply_make("m", &request, &response, &diag, &reply), PSPLIT_OK);
  assert_int_equal(reply.n_json, sizeof all - 1);
  assert_memory_equal(reply.bytes, all, reply.n_json);
  assert_int_equal(reply.n - reply.n_json, sizeof HALVES);
  assert_memory_equal(reply.bytes + reply.n_json, HALVES, sizeof HALVES);
  free(reply.bytes);
  static const char numbered[] = "{\"model_name\":\"m\",\"id\":-9223372036854775808,\"outputs\":[";
  request.id = &number;
  assert_int_equal(serve_reply_make("m", &request, &response, &diag, &reply), PSPLIT_OK);
  assert_memory_equal(reply.bytes, numbered, sizeof numbered - 1);
  free(reply.bytes);
  serve_wanted wanted[] = {{"t", true}, {"s", true}};
  request = (serve_request){.wanted = wanted, .n_wanted = 2};
  assert_int_equal(serve_reply_make("m", &request, &response, &diag, &reply), PSPLIT_OK);
  assert_int_equal(reply.n_json, sizeof some - 1);
  assert_memory_equal(reply.bytes, some, reply.n_json);
  assert_int_equal(reply.n - reply.n_json, 2 + 13);
  assert_memory_equal(reply.bytes + reply.n_json, "\x80\x7f", 2);
  assert_memory_equal(reply.bytes + reply.n_json + 2, "\2\0\0\0a\"\3\0\0\0\1\xc3\xa9", 13);
  free(reply.bytes);
}

static void wrong_replies(void **state) {
  (void)state;
  static const psplit_named_tensor torn = {"t", {8, 1, TWO, &TORN, sizeof TORN}},
                                   complex = {"z", {14, 1, TWO, REALS, sizeof REALS}};
  serve_wanted none[] = {{"nothing", false}};
  const struct {
    const psplit_named_tensor *output;
    serve_request request;
    psplit_code code;
    const char *says;
  } cases[] = {
    {&torn, {0}, PSPLIT_USAGE, "output t is not UTF-8: ask for it as binary data"},
    {&complex,
     {0},
     PSPLIT_UNSUPPORTED,
     "the protocol has no datatype for output z: name others in \"outputs\""},
    {&torn, {.wanted = none, .n_wanted = 1}, PSPLIT_USAGE, "the model has no output nothing"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const psplit_response response = {.n_outputs = 1, .outputs = cases[i].output, .message = ""};
    psplit_diag diag = {0};
    serve_reply reply = {0};
    assert_int_equal(serve_reply_make("m", &cases[i].request, &response, &diag, &reply),
                     cases[i].code);
    assert_string_equal(diag.message, cases[i].says);
    assert_null(reply.bytes);
  }
}

static void error_texts(void **state) {
  (void)state;
  char *text = serve_error_text("a \"b\"\n\\");
  assert_string_equal(text, "{\"error\":\"a \\\"b\\\"\\u000a\\\\\"}");
  free(text);
  /* What turns a line around, or ends it, and what is not UTF-8, stands in a message escaped. */
  text = serve_error_text(
    "a\xff"
    "b\xe2\x80\xae\xe2\x80\xa8\x7f\xc2\x9b\xc3\xa9");
  assert_string_equal(text, "{\"error\":\"a\\ufffdb\\u202e\\u2028\\u007f\\u009b\xc3\xa9\"}");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(requests),
                                     cmocka_unit_test(wrong_requests),
                                     cmocka_unit_test(values_of_datatypes),
                                     cmocka_unit_test(ids),
                                     cmocka_unit_test(replies),
                                     cmocka_unit_test(wrong_replies),
                                     cmocka_unit_test(error_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
