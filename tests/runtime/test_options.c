/* Options of programs that were built with another header: what they do not know has its default,
 * and what the library does not know is refused, not overlooked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "ends.h"
#include "options.h"

static psplit_code make(const psplit_run_options *given, psplit_i_run_setup *out) {
  psplit_diag diag = {0};
  *out = (psplit_i_run_setup){0};
  const psplit_code code = psplit_i_run_setup_make(given, 2, &diag, out);
  assert_true((code == PSPLIT_OK) == !*diag.message);
  psplit_i_run_setup_fini(out);
  return code;
}

static void what_an_older_header_lacks_has_its_default(void **state) {
  (void)state;
  psplit_run_options options;
  psplit_i_run_setup setup;
  psplit_run_options_init(&options);
  options.depth = 7;
  options.timeout_s = 1; /* behind what this size tells of */
  options.struct_size = offsetof(psplit_run_options, output);
  assert_int_equal(make(&options, &setup), PSPLIT_OK);
  assert_int_equal(setup.run.depth, 7);
  assert_true(setup.run.timeout_s == 60);
}

/* The functions that set defaults are the library's, the memory is the program's. */
static void defaults_stay_within_an_older_struct(void **state) {
  (void)state;
  psplit_run_options options;
  memset(&options, 0xab, sizeof options);
  const size_t older = offsetof(psplit_run_options, output);
  psplit_run_options_defaults(&options, older);
  assert_int_equal(options.struct_size, older);
  assert_int_equal(options.depth, 0);
  for (size_t i = older; i < sizeof options; i++)
    assert_int_equal(((const unsigned char *)&options)[i], 0xab);
}

static void sizes_that_cannot_be_are_refused(void **state) {
  (void)state;
  psplit_run_options options;
  psplit_i_run_setup setup;
  psplit_run_options_init(&options);
  options.struct_size = 0;
  assert_int_equal(make(&options, &setup), PSPLIT_USAGE);
  struct {
    psplit_run_options known;
    uint64_t newer;
  } later = {.newer = 1};
  psplit_run_options_init(&later.known);
  later.known.struct_size = sizeof later;
  assert_int_equal(make(&later.known, &setup), PSPLIT_UNSUPPORTED);
  later.newer = 0;
  assert_int_equal(make(&later.known, &setup), PSPLIT_OK);
}

static void values_that_cannot_be_are_refused(void **state) {
  (void)state;
  static const int64_t dims[PSPLIT_I_MAX_RANK + 1] = {0};
  const psplit_feed_shape shape = {"x", PSPLIT_I_MAX_RANK + 1, dims};
  const psplit_session sessions[3] = {{.optimization = -1}};
  psplit_feed_options feed;
  psplit_run_options options;
  psplit_i_run_setup setup;
  psplit_feed_options_init(&feed);
  psplit_run_options_init(&options);
  options.feed = &feed;
  assert_int_equal(make(&options, &setup), PSPLIT_OK);
  feed.shapes = &shape;
  feed.n_shapes = 1;
  assert_int_equal(make(&options, &setup), PSPLIT_USAGE);
  feed.n_shapes = 0;
  options.sessions = sessions;
  options.n_sessions = 3; /* of two stages */
  assert_int_equal(make(&options, &setup), PSPLIT_USAGE);
  options.n_sessions = 1;
  assert_int_equal(make(&options, &setup), PSPLIT_OK);
  assert_int_equal(setup.run.session.optimization, 99);
  options.n_micro_batches = PSPLIT_RUN_ENDLESS;
  assert_int_equal(make(&options, &setup), PSPLIT_USAGE);
  options.stream = true;
  assert_int_equal(make(&options, &setup), PSPLIT_OK);
  assert_int_equal(setup.run.n_warmup, 0);
}

/* A pipeline of two stages and a stream's feeder: how deep a link between the stages is. */
static uint32_t depth_of(int64_t load_ns, bool known, uint64_t bytes,
                         const psplit_i_run_options *options, uint32_t link) {
  const psplit_i_manifest_stage stages[] = {{.load_ns = 1000}, {.load_ns = load_ns}};
  const psplit_i_manifest_transfer transfer = {.to = 1, .bytes_known = known, .bytes = bytes};
  psplit_i_pipe_link links[] = {{.to = 1, .n_tensors = 1}, {.from = PSPLIT_I_OUTSIDE}};
  const psplit_i_pipe pipe = {
    .manifest = {.n_stages = 2, .stages = stages, .n_transfers = 1, .transfers = &transfer},
    .n_links = 2,
    .links = links};
  const psplit_i_ends ends = {.pipe = &pipe, .options = options};
  return psplit_i_ends_depth(&ends, link);
}

static void short_stages_run_ahead_within_a_mebibyte(void **state) {
  (void)state;
  const psplit_i_source source = {0};
  const psplit_i_run_options plain = {0}, asked = {.depth = 7}, late = {.deadline_s = 1},
                             served = {.source = &source};
  assert_int_equal(depth_of(199999, true, 128, &plain, 0), 32);
  assert_int_equal(depth_of(200000, true, 128, &plain, 0), 2);
  assert_int_equal(depth_of(-1, true, 128, &plain, 0), 2);
  assert_int_equal(depth_of(1000, false, 0, &plain, 0), 2);
  assert_int_equal(depth_of(1000, true, 32 << 10, &plain, 0), 32);
  assert_int_equal(depth_of(1000, true, (32 << 10) + 1, &plain, 0), 16);
  assert_int_equal(depth_of(1000, true, 200 << 10, &plain, 0), 4);
  assert_int_equal(depth_of(1000, true, UINT64_MAX, &plain, 0), 2);
  assert_int_equal(depth_of(1000, true, 128, &plain, 1), 2); /* from the reader: of any size */
  assert_int_equal(depth_of(1000, true, 128, &asked, 0), 7);
  assert_int_equal(depth_of(300000, true, 128, &asked, 1), 7);
  assert_int_equal(depth_of(1000, true, 128, &late, 0), 2);
  assert_int_equal(depth_of(1000, true, 128, &served, 0), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_an_older_header_lacks_has_its_default),
    cmocka_unit_test(defaults_stay_within_an_older_struct),
    cmocka_unit_test(sizes_that_cannot_be_are_refused),
    cmocka_unit_test(values_that_cannot_be_are_refused),
    cmocka_unit_test(short_stages_run_ahead_within_a_mebibyte),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
