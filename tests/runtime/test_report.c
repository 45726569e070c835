/* The report and the trace of a run that never was: each stage computes for 1 ms, and takes a
 * micro-batch as soon as the stage before has given it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "report.h"

enum { K = 3, M = 8, MS = 1000000 };
static const int64_t BEGIN_NS = 5000 * (int64_t)MS; /* clocks do not begin at 0 */

static psplit_i_timeline perfect_run(uint32_t n_micro_batches) {
  psplit_i_timeline timeline;
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_timeline_init(K, n_micro_batches, &diag, &timeline), PSPLIT_OK);
  timeline.n_micro_batches = n_micro_batches;
  for (uint32_t s = 0; s < K; s++) {
    psplit_i_sums *sums = &timeline.sums[s];
    for (uint32_t m = 0; m < n_micro_batches; m++) {
      const int64_t ready_ns = BEGIN_NS + (int64_t)(s + m) * MS;
      timeline.events[s * timeline.capacity + m % timeline.capacity] =
        (psplit_i_event){.begin_ns = m ? ready_ns : BEGIN_NS,
                         .ready_ns = ready_ns,
                         .done_ns = ready_ns + MS,
                         .sent_ns = ready_ns + MS};
      sums->busy_ns += MS;
    }
    sums->n_micro_batches = n_micro_batches;
    sums->first_ready_ns = BEGIN_NS + (int64_t)s * MS;
    sums->first_sent_ns = sums->first_ready_ns + MS;
    sums->last_sent_ns = BEGIN_NS + (int64_t)(s + n_micro_batches) * MS;
  }
  return timeline;
}

static psplit_run_report report_of(const psplit_i_timeline *timeline) {
  psplit_i_failures failures = {.n = 0};
  psplit_i_run_options options = {.failures = &failures};
  psplit_run_report report;
  psplit_diag diag = {0};
  psplit_delivered *delivered = NULL;
  assert_int_equal(psplit_delivered_create(&diag, &delivered), PSPLIT_OK);
  for (uint64_t m = 0; m < timeline->n_micro_batches; m++)
    if (m != 5) psplit_i_delivered_add(delivered, m);
  options.delivered = delivered;
  assert_int_equal(psplit_i_report_make(timeline, &options, &diag, &report), PSPLIT_OK);
  psplit_delivered_destroy(delivered);
  return report;
}

/* Nothing is lost but what filling and draining cost. */
static void bubble_is_that_of_filling(void **state) {
  (void)state;
  psplit_i_timeline timeline = perfect_run(M);
  psplit_run_report report = report_of(&timeline);
  const double expected = (K - 1.0) / (M + K - 1.0);
  assert_true(fabs(report.bubble_fill_frac - expected) < 1e-12);
  assert_true(fabs(report.bubble_frac - expected) < 1e-12);
  assert_true(fabs(report.seconds - 1e-3 * (M + K - 1)) < 1e-12);
  assert_int_equal(report.latency_median_ns, K * MS);
  psplit_i_report_fini(&report);
  psplit_i_timeline_fini(&timeline);
}

/* A stage that pauses makes idle time that filling does not explain. */
static void pauses_add_to_the_bubble(void **state) {
  (void)state;
  psplit_i_timeline timeline = perfect_run(M);
  timeline.sums[K - 1].last_sent_ns += 5 * MS;
  psplit_run_report report = report_of(&timeline);
  assert_true(fabs(report.bubble_frac - (1 - (double)M / (M + K - 1 + 5))) < 1e-12);
  assert_true(fabs(report.bubble_fill_frac - (K - 1.0) / (M + K - 1.0)) < 1e-12);
  psplit_i_report_fini(&report);
  psplit_i_timeline_fini(&timeline);
}

/* One micro-batch a stage's time, however few there are; none to speak of with one. */
static void steady_throughput_leaves_out_filling(void **state) {
  (void)state;
  static const uint32_t counts[] = {2, M, 1000};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    psplit_i_timeline timeline = perfect_run(counts[i]);
    psplit_run_report report = report_of(&timeline);
    assert_true(fabs(report.steady_throughput - 1000) < 1e-6);
    assert_true(fabs(report.throughput - 1000.0 * counts[i] / (counts[i] + K - 1)) < 1e-6);
    psplit_i_report_fini(&report);
    psplit_i_timeline_fini(&timeline);
  }
  psplit_i_timeline timeline = perfect_run(1);
  psplit_run_report report = report_of(&timeline);
  assert_true(report.steady_throughput == 0);
  psplit_i_report_fini(&report);
  psplit_i_timeline_fini(&timeline);
}

/* Twice as slow as planned, and the last stage twice as slow as that. */
static void drift_tells_the_machine_from_the_plan(void **state) {
  (void)state;
  psplit_i_timeline timeline = perfect_run(M);
  psplit_i_manifest_stage stages[K] = {
    {.compute_ns = MS / 2}, {.compute_ns = MS / 2}, {.compute_ns = MS / 2}};
  psplit_i_pipe pipe = {.manifest = {.n_stages = K, .stages = stages}};
  psplit_run_report report = report_of(&timeline);
  psplit_i_report_add_drift(&pipe, &report);
  assert_true(fabs(report.drift_ratio - 2) < 1e-9 && fabs(report.worst_drift_ratio - 1) < 1e-9);
  psplit_i_report_fini(&report);
  timeline.sums[K - 1].busy_ns *= 2;
  report = report_of(&timeline);
  psplit_i_report_add_drift(&pipe, &report);
  assert_true(fabs(report.drift_ratio - 8.0 / 3) < 1e-9);
  assert_true(fabs(report.worst_drift_ratio - 1.5) < 1e-9);
  assert_int_equal(report.worst_drift_stage, K - 1);
  psplit_i_report_fini(&report);
  stages[1].compute_ns = -1; /* not known */
  report = report_of(&timeline);
  psplit_i_report_add_drift(&pipe, &report);
  assert_true(report.drift_ratio == 0);
  psplit_i_report_fini(&report);
  psplit_i_timeline_fini(&timeline);
}

static const char *text_of(const json_t *event, const char *key) {
  const char *text = json_string_value(json_object_get(event, key));
  assert_non_null(text);
  return text;
}

/* A complete event ("X") as the trace event format has it; adds its duration to `busy_us`. */
static void check_span(const json_t *event, double *busy_us) {
  const double ts = json_number_value(json_object_get(event, "ts")),
               dur = json_number_value(json_object_get(event, "dur"));
  assert_true(json_is_number(json_object_get(event, "ts")) && ts >= 0);
  assert_true(dur > 0 && ts + dur <= 1e3 * (M + K - 1) + 1e-6);
  const json_t *micro_batch = json_object_get(json_object_get(event, "args"), "micro_batch");
  assert_true(json_is_integer(micro_batch) && json_integer_value(micro_batch) < M);
  if (strcmp(text_of(event, "name"), "compute") == 0) *busy_us += dur;
}

/* Metadata ("M"): names of processes and threads. */
static void check_name(const json_t *event) {
  const char *name = text_of(event, "name");
  assert_true(strcmp(name, "process_name") == 0 || strcmp(name, "thread_name") == 0);
  assert_true(strlen(text_of(json_object_get(event, "args"), "name")) > 0);
}

static void trace_has_the_shape_that_viewers_read(void **state) {
  (void)state;
  psplit_i_timeline timeline = perfect_run(M);
  psplit_i_manifest_stage stages[K] = {
    {.device = "cpu0"}, {.device = "a \"b\"\n"}, {.device = "c"}};
  psplit_i_pipe pipe = {.manifest = {.n_stages = K, .stages = stages}};
  psplit_i_text text = {0};
  psplit_i_trace_json(&timeline, &pipe, 0, &text);
  assert_false(text.failed);
  json_t *root = json_loadb(text.bytes, text.n, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(root);
  const char *unit = text_of(root, "displayTimeUnit");
  assert_true(strcmp(unit, "ms") == 0 || strcmp(unit, "ns") == 0);
  const json_t *events = json_object_get(root, "traceEvents");
  assert_true(json_is_array(events));
  size_t n_names = 0;
  double busy_us[K] = {0};
  for (size_t i = 0; i < json_array_size(events); i++) {
    const json_t *event = json_array_get(events, i), *pid = json_object_get(event, "pid");
    assert_true(json_is_integer(pid) && json_is_integer(json_object_get(event, "tid")));
    assert_in_range(json_integer_value(pid), 0, K - 1);
    const char *phase = text_of(event, "ph");
    if (strcmp(phase, "M") == 0) {
      check_name(event);
      n_names++;
    } else {
      assert_string_equal(phase, "X");
      check_span(event, &busy_us[json_integer_value(pid)]);
    }
  }
  assert_int_equal(n_names, 3 * K);
  for (size_t s = 0; s < K; s++) assert_true(fabs(busy_us[s] - 1e3 * M) < 1e-6);
  json_decref(root);
  psplit_i_text_fini(&text);
  psplit_i_timeline_fini(&timeline);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(bubble_is_that_of_filling),
    cmocka_unit_test(pauses_add_to_the_bubble),
    cmocka_unit_test(steady_throughput_leaves_out_filling),
    cmocka_unit_test(drift_tells_the_machine_from_the_plan),
    cmocka_unit_test(trace_has_the_shape_that_viewers_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
