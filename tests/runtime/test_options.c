/* Options of programs that were built with another header: what they do not know has its default,
 * and what the library does not know is refused, not overlooked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "ends.h"
#include "failing.h"
#include "failing_chains.h"
#include "options.h"
#include "stage.h"

static psplit_code make(const psplit_run_options *given, psplit_i_run_setup *out) {
  psplit_diag diag = {0};
  *out = (psplit_i_run_setup){0};
  const psplit_code code = psplit_i_run_setup_make(given, 2, true, &diag, out);
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

/* What compares or measures asks for a number, and no input of it ends. */
static void what_counts_its_runs_takes_no_stream(void **state) {
  (void)state;
  psplit_run_options options;
  psplit_i_run_setup setup = {0};
  psplit_diag diag = {0};
  psplit_run_options_init(&options);
  options.stream = true;
  options.n_warmup = 3;
  assert_int_equal(psplit_i_run_setup_make(&options, 2, false, &diag, &setup), PSPLIT_OK);
  assert_int_equal(setup.run.n_warmup, 3);
  psplit_i_run_setup_fini(&setup);
  setup = (psplit_i_run_setup){0};
  options.n_micro_batches = PSPLIT_RUN_ENDLESS;
  assert_int_equal(psplit_i_run_setup_make(&options, 2, false, &diag, &setup), PSPLIT_USAGE);
  psplit_i_run_setup_fini(&setup);
}

#define WITH(code)                                                                       \
  do {                                                                                   \
    psplit_run_options o;                                                                \
    psplit_i_run_setup setup = {0};                                                      \
    psplit_diag diag = {0};                                                              \
    psplit_run_options_init(&o);                                                         \
    code;                                                                                \
    assert_int_equal(psplit_i_run_setup_make(&o, 2, true, &diag, &setup), PSPLIT_USAGE); \
    assert_string_equal(diag.message, says);                                             \
    psplit_i_run_setup_fini(&setup);                                                     \
  } while (0)

static psplit_code take(void *user, uint32_t micro_batch, uint32_t output,
                        const psplit_tensor_view *tensor, psplit_diag *diag) {
  (void)user, (void)micro_batch, (void)output, (void)tensor, (void)diag;
  return PSPLIT_OK;
}

static void options_that_make_no_sense_are_told(void **state) {
  (void)state;
  static const uint32_t none[] = {1, 0}, many[] = {PSPLIT_MOST_REPLICAS + 1, 1};
  static const psplit_session sessions[4];
  const char *says = "a run must have at least one micro-batch";
  WITH(o.n_micro_batches = 0);
  says = "only a stream of micro-batches may be endless";
  WITH(o.n_micro_batches = PSPLIT_RUN_ENDLESS);
  says = "micro-batches are numbered below 4294967295";
  WITH(o.first_micro_batch = PSPLIT_RUN_ENDLESS - 1);
  says = "stage 1 has 0 replicas; from 1 to 64";
  WITH(o.n_replicas = none);
  says = "stage 0 has 65 replicas; from 1 to 64";
  WITH(o.n_replicas = many);
  says = "4 sessions are given for 2 stages";
  WITH((o.sessions = sessions, o.n_sessions = 4));
  says = "a timeout of stages and a deadline are 0 s or more";
  WITH(o.stall_timeout_s = -1);
  WITH(o.deadline_s = NAN);
  says = "a run stops at errors or skips them";
  WITH(o.on_error = PSPLIT_ON_ERROR_SKIP + 1);
  says = "a timeout must be above 0 s, and a message between 1 and 2^30 bytes";
  WITH(o.timeout_s = 0);
  WITH(o.chunk_bytes = 0);
  WITH(o.chunk_bytes = ((uint64_t)1 << 30) + 1);
  says = "outputs go to a path or to a function, not to both";
  WITH((o.output = "d", o.take_output = take));
}

/* A row for each stage, or for each replica of each. */
static void sessions_are_those_of_their_stages(void **state) {
  (void)state;
  static const psplit_session sessions[] = {{.n_threads = 1}, {.n_threads = 2}, {.n_threads = 3}};
  static const uint32_t n_replicas[] = {2, 1};
  psplit_run_options options;
  psplit_run_options_init(&options);
  options.sessions = sessions;
  for (options.n_sessions = 2; options.n_sessions <= 3; options.n_sessions++) {
    psplit_i_run_setup setup = {0};
    psplit_diag diag = {0};
    const bool each = options.n_sessions == 3;
    if (each) options.n_replicas = n_replicas;
    assert_int_equal(psplit_i_run_setup_make(&options, 2, true, &diag, &setup), PSPLIT_OK);
    assert_int_equal(setup.run.stage_sessions[0].n_threads, 1);
    assert_int_equal(setup.run.stage_sessions[1].n_threads, each ? 3 : 2);
    if (each) assert_int_equal(setup.run.replica_sessions[0][1].n_threads, 2);
    psplit_i_run_setup_fini(&setup);
    const long before = live_blocks();
    forget_chains();
    for (bool failed = true; failed;) {
      setup = (psplit_i_run_setup){0};
      fail_new_allocation();
      const psplit_code code = psplit_i_run_setup_make(&options, 2, true, &diag, &setup);
      failed = stop_failing();
      psplit_i_run_setup_fini(&setup);
      assert_int_equal(code, failed ? PSPLIT_NOMEM : PSPLIT_OK);
      assert_int_equal(live_blocks(), before);
    }
  }
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

/* No time that a program can give is one that has passed. */
static void times_beyond_the_clock_are_long(void **state) {
  (void)state;
  static const double seconds[] = {1e9, 1e10, 1e300, INFINITY};
  const int64_t longest = psplit_i_after(0, seconds[0]), now = psplit_i_now_ns();
  for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
    const psplit_i_run_options options = {.deadline_s = seconds[i]};
    assert_int_equal(psplit_i_stage_look_ns(&options), 50000000);
    assert_int_equal(psplit_i_after(now, seconds[i]), now + longest);
    assert_int_equal(psplit_i_after(now, -seconds[i]), now);
  }
  assert_int_equal(psplit_i_after(now, NAN), now);
  assert_int_equal(psplit_i_after(now, 0.25), now + 250000000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_an_older_header_lacks_has_its_default),
    cmocka_unit_test(defaults_stay_within_an_older_struct),
    cmocka_unit_test(sizes_that_cannot_be_are_refused),
    cmocka_unit_test(values_that_cannot_be_are_refused),
    cmocka_unit_test(what_counts_its_runs_takes_no_stream),
    cmocka_unit_test(options_that_make_no_sense_are_told),
    cmocka_unit_test(sessions_are_those_of_their_stages),
    cmocka_unit_test(short_stages_run_ahead_within_a_mebibyte),
    cmocka_unit_test(times_beyond_the_clock_are_long),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
