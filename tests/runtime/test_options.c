/* Options of programs that were built with another header: what they do not know has its default,
 * and what the library does not know is refused, not overlooked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

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
  assert_int_equal(options.depth, 2);
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

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_an_older_header_lacks_has_its_default),
    cmocka_unit_test(defaults_stay_within_an_older_struct),
    cmocka_unit_test(sizes_that_cannot_be_are_refused),
    cmocka_unit_test(values_that_cannot_be_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
