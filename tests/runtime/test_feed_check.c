/* Why: what a run is fed with is held against what the model declares before anything is opened,
 * and what is not there is told by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "failing.h"
#include "feed_check.h"
#include "run.h"

static const psplit_i_manifest_dim X_DIMS[] = {{-1, "n"}, {4, NULL}}, OUT_DIMS[] = {{-1, "n"}},
                                   CACHE[] = {{-1, "past"}, {-1, NULL}};
static const char *const INPUTS[] = {"x", "cache", "any"}, *const OUTPUTS[] = {"y", "flag"};
static const psplit_i_manifest_value IN_VALUES[] = {
  {"x", "float32", {2, X_DIMS}}, {"cache", "float32", {2, CACHE}}, {"any", NULL, {-1, NULL}}};
static const psplit_i_manifest_value OUT_VALUES[] = {{"y", "float32", {1, OUT_DIMS}},
                                                     {"flag", "bool", {-1, NULL}}};
static const psplit_i_manifest_dim BETWEEN[] = {{-1, "m"}};
static const psplit_i_manifest_transfer TRANSFERS[] = {{.tensor = "t", .shape = {1, BETWEEN}}};
static psplit_pipeline pipeline = {.pipe = {.manifest = {.n_inputs = 3,
                                                         .n_needed = 3,
                                                         .inputs = INPUTS,
                                                         .input_values = IN_VALUES,
                                                         .n_outputs = 2,
                                                         .outputs = OUTPUTS,
                                                         .output_values = OUT_VALUES,
                                                         .n_transfers = 1,
                                                         .transfers = TRANSFERS}}};

/* --- what is told --- */

static const int64_t D24[] = {2, 4}, D04[] = {0, 4}, D23[] = {2, 3}, D2[] = {2}, D00[] = {0, 0},
                     MANY[PSPLIT_I_MAX_RANK + 1];

static void what_the_model_has_not_is_told(void **state) {
  (void)state;
  static const struct {
    psplit_feed_file file;
    psplit_dim_value dim;
    psplit_feed_shape shape;
    psplit_feed_range range;
    const char *says;
  } rows[] = {
    {.file = {"x", "x.npy"}, .says = ""},
    {.file = {NULL, "x.npz"}, .says = ""},
    {.file = {"z", "x.npy"}, .says = "the model has no input z"},
    {.shape = {"z", 2, D24}, .says = "the model has no input z"},
    {.range = {"z", 0, 1}, .says = "the model has no input z"},
    {.dim = {"n", 3}, .says = ""},
    {.dim = {"m", 3}, .says = ""}, /* between the stages */
    {.dim = {"k", 3}, .says = "the split has no dimension k"},
    {.dim = {"past", 0}, .says = ""},
    {.dim = {"n", 0}, .says = "with dimension n of 0 the output \"y\" is empty: "},
    {.shape = {"x", 2, D24}, .says = ""},
    {.shape = {"any", 2, D23}, .says = ""},
    {.shape = {"x", 1, D2}, .says = "1 size is given for the input x, which has 2 dimensions"},
    {.shape = {"x", 2, D23}, .says = "size 3 is given for dimension 1 of the input x, which is 4"},
    {.shape = {"x", 2, D04}, .says = "with dimension n of 0 the output \"y\" is empty: "},
    {.shape = {"cache", 2, D00}, .says = ""},
    {.shape = {"any", 2, D00}, .says = ""},
    {.shape = {"any", PSPLIT_I_MAX_RANK + 1, MANY},
     .says = "input any is given more than 32 dimensions"},
    {.range = {"x", -1, 1}, .says = ""},
    {.range = {"x", 1, -1}, .says = "the range of input x is empty or not finite"},
    {.range = {"x", NAN, 1}, .says = "the range of input x is empty or not finite"},
    {.range = {"x", 0, INFINITY}, .says = "the range of input x is empty or not finite"},
    {.range = {"x", -INFINITY, 0}, .says = "the range of input x is empty or not finite"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    psplit_feed_options feed;
    psplit_diag diag = {0};
    psplit_feed_options_init(&feed);
    feed.files = &rows[i].file;
    feed.n_files = rows[i].file.path != NULL;
    feed.dims = &rows[i].dim;
    feed.n_dims = rows[i].dim.name != NULL;
    feed.shapes = &rows[i].shape;
    feed.n_shapes = rows[i].shape.input != NULL;
    feed.ranges = &rows[i].range;
    feed.n_ranges = rows[i].range.input != NULL;
    const psplit_code code = psplit_feed_check(&feed, &pipeline, &diag);
    if (code != (*rows[i].says ? PSPLIT_USAGE : PSPLIT_OK) ||
        strncmp(diag.message, rows[i].says, strlen(rows[i].says)) != 0)
      fail_msg("%zu: %s: %s", i, psplit_code_name(code), diag.message);
  }
}

/* As a session would have it, but for a rank that nobody knows. */
static void declared_inputs_are_ports(void **state) {
  (void)state;
  static const psplit_i_manifest_value sequence = {"s", "sequence(float32)", {0, NULL}};
  psplit_i_session_port port;
  psplit_i_declared_port(&IN_VALUES[0], &port);
  assert_true(port.is_tensor && port.data_type == 1 && port.n_dims == 2);
  assert_true(port.dims[0] == -1 && port.dims[1] == 4);
  assert_string_equal(port.symbols[0], "n");
  assert_string_equal(port.symbols[1], "");
  psplit_i_declared_port(&IN_VALUES[2], &port);
  assert_true(!port.is_tensor && port.n_dims == 1 && port.dims[0] == -1);
  psplit_i_declared_port(&sequence, &port);
  assert_true(!port.is_tensor && port.n_dims == 0);
  const psplit_i_manifest_value wide = {"w", "float32", {PSPLIT_I_MAX_RANK + 1, NULL}};
  psplit_i_declared_port(&wide, &port);
  assert_true(port.is_tensor && port.n_dims == 1 && port.dims[0] == -1);
}

/* --- sizes that nothing gives --- */

static void open_sizes_are_listed_once(void **state) {
  (void)state;
  static const psplit_i_manifest_dim PAST[] = {{-1, "n"}, {-1, "past"}, {-1, NULL}, {-1, NULL}};
  static const psplit_i_manifest_value VALUES[] = {
    {"x", "float32", {2, X_DIMS}}, {"cache", "float32", {4, PAST}}, {"any", NULL, {-1, NULL}}};
  static const struct {
    bool random;
    uint32_t n_needed;
    psplit_feed_file file;
    psplit_dim_value dim;
    psplit_feed_shape shape;
    psplit_feed_range range;
    uint32_t n;
    const char *inputs[3], *symbols[3];
  } rows[] = {
    {.random = false, .n_needed = 2, .n = 0},
    {.random = true,
     .n_needed = 2,
     .n = 3,
     .inputs = {"x", "cache", "cache"},
     .symbols = {"n", "past", ""}},
    {.random = true, .n_needed = 1, .n = 1, .inputs = {"x"}, .symbols = {"n"}},
    {.random = false,
     .n_needed = 1,
     .range = {"cache", 0, 1},
     .n = 3,
     .inputs = {"cache", "cache", "cache"},
     .symbols = {"n", "past", ""}},
    {.random = true,
     .n_needed = 2,
     .dim = {"n", 3},
     .n = 2,
     .inputs = {"cache", "cache"},
     .symbols = {"past", ""}},
    {.random = true,
     .n_needed = 2,
     .shape = {"x", 2, D24},
     .n = 3,
     .inputs = {"cache", "cache", "cache"},
     .symbols = {"n", "past", ""}},
    {.random = true,
     .n_needed = 2,
     .file = {"cache", "c.npy"},
     .n = 1,
     .inputs = {"x"},
     .symbols = {"n"}},
    {.random = true, .n_needed = 2, .file = {NULL, "none.npz"}, .n = 0}, /* fails when it is read */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    psplit_pipeline two = pipeline;
    psplit_i_feed_options feed = {0};
    psplit_diag diag = {0};
    two.pipe.manifest.input_values = VALUES;
    two.pipe.manifest.n_inputs = 2;
    two.pipe.manifest.n_needed = rows[i].n_needed;
    psplit_feed_options_init(&feed.given);
    feed.given.random = rows[i].random;
    feed.given.files = &rows[i].file;
    feed.given.n_files = rows[i].file.path != NULL;
    feed.given.dims = &rows[i].dim;
    feed.given.n_dims = rows[i].dim.name != NULL;
    feed.given.shapes = &rows[i].shape;
    feed.given.n_shapes = rows[i].shape.input != NULL;
    feed.given.ranges = &rows[i].range;
    feed.given.n_ranges = rows[i].range.input != NULL;
    if (psplit_i_feed_meet_inputs(&feed, &two.pipe, &diag) != PSPLIT_OK)
      fail_msg("%zu: %s", i, diag.message);
    if (feed.open.n != rows[i].n) fail_msg("%zu: %u open", i, feed.open.n);
    bool unnamed = false;
    for (uint32_t s = 0; s < rows[i].n; s++) unnamed |= !*rows[i].symbols[s];
    assert_true(feed.open.unnamed == unnamed);
    for (uint32_t s = 0; s < rows[i].n; s++) {
      assert_string_equal(feed.open.inputs[s], rows[i].inputs[s]);
      assert_string_equal(feed.open.symbols[s], rows[i].symbols[s]);
    }
  }
}

static void no_memory_is_told(void **state) {
  (void)state;
  static const psplit_dim_value dims[] = {{"m", 3}};
  const long before = live_blocks();
  long n_told = 0;
  for (bool failed = true; failed; n_told += failed) {
    psplit_feed_options feed;
    psplit_diag diag = {0};
    psplit_feed_options_init(&feed);
    feed.dims = dims;
    feed.n_dims = 1;
    fail_new_allocation();
    const psplit_code code = psplit_feed_check(&feed, &pipeline, &diag);
    failed = stop_failing();
    assert_int_equal(code, failed ? PSPLIT_NOMEM : PSPLIT_OK);
    assert_int_equal(live_blocks(), before);
  }
  assert_true(n_told > 0);
}

/* Files in /dev/shm are files, and so are those that are not there yet. */
static void streams_are_what_passes(void **state) {
  (void)state;
  static const char *const streams[] = {"-",           "/dev/stdin", "/dev/stdout",
                                        "/dev/stderr", "/dev/fd/1",  "/dev/zero"};
  static const char *const files[] = {"/dev/shm", "/dev/shm/psplit-none", "/dev", ".", "none",
                                      "x.npy"};
  for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
    if (!psplit_is_tensor_stream(streams[i])) fail_msg("%s is no stream", streams[i]);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (psplit_is_tensor_stream(files[i])) fail_msg("%s is a stream", files[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(streams_are_what_passes),   cmocka_unit_test(what_the_model_has_not_is_told),
    cmocka_unit_test(declared_inputs_are_ports), cmocka_unit_test(open_sizes_are_listed_once),
    cmocka_unit_test(no_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
