/* A request, a reply and an error when memory runs out: whichever allocation fails, the call says
 * NOMEM, leaks nothing and reads nothing that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
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
  assert_string_equal(r->id, "\xc3\xa9");
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
    {"[]", "list of inputs"},
    {"{\"inputs\": [], \"inputs\": []}", "JSON"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"INT8\", \"data\": [128]}]}",
     "out of range"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"UINT8\", \"data\": [true]}]}",
     "another type"},
    {"{\"inputs\": [{\"name\": \"x\", \"shape\": [1.0], \"datatype\": \"INT8\", \"data\": [1]}]}",
     "shape"}};
  (void)state;
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    psplit_diag diag = {0};
    serve_request request = {0};
    const size_t n = strlen(bodies[i][0]);
    assert_int_not_equal(serve_request_parse(bodies[i][0], n, n, &diag, &request), PSPLIT_OK);
    if (!strstr(diag.message, bodies[i][1])) fail_msg("%s: %s", bodies[i][0], diag.message);
  }
}

static void error_texts(void **state) {
  (void)state;
  char *text = serve_error_text("a \"b\"\n\\");
  assert_string_equal(text, "{\"error\":\"a \\\"b\\\"\\u000a\\\\\"}");
  free(text);
  text = serve_error_text("\xff");
  assert_string_equal(text, "{\"error\":\"\"}");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(requests), cmocka_unit_test(wrong_requests),
                                     cmocka_unit_test(error_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
