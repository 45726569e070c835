/* The table of onnx-pipeline-run, where stages have replicas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/print_run.h"

static const char *const ASSUMED[] = {"batch", "x[1]", "c", "d", "e"};
static const int64_t SIZES[] = {1, 2, 3, 4, 5};

/* What is printed of two stages, of which 12 and 6 ms are predicted. */
static char *table_with(uint32_t first_replicas, uint32_t last_replicas, uint32_t n_assumed,
                        double seconds) {
  const psplit_pipeline_stage stages[] = {
    {.device = "gpu", .compute_ns = 11000000, .load_ns = 12000000},
    {.device = "cpu", .compute_ns = -1, .load_ns = 6000000}};
  const psplit_pipeline_info pipeline = {.n_stages = 2,
                                         .stages = stages,
                                         .bottleneck_ns = 10000000,
                                         .cost_source = "measured",
                                         .n_assumed = n_assumed,
                                         .assumed_names = ASSUMED,
                                         .assumed_sizes = SIZES};
  const psplit_stage_report rows[] = {{.busy_ns = 1000000, .n_replicas = first_replicas},
                                      {.busy_ns = 2000000, .n_replicas = last_replicas}};
  const psplit_run_report report = {.n_stages = 2,
                                    .n_micro_batches = 10,
                                    .seconds = seconds,
                                    .throughput = 10,
                                    .stages = rows,
                                    .n_ranges = 1,
                                    .n_delivered = 10};
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  assert_non_null(out);
  print_run_table(&report, &pipeline, out);
  assert_int_equal(fclose(out), 0);
  return text;
}

static void is_in(char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("no \"%s\" in:\n%s", part, text);
  free(text);
}

static void has(uint32_t first_replicas, uint32_t last_replicas, const char *part) {
  is_in(table_with(first_replicas, last_replicas, 0, 1), part);
}

/* One thread is not told; of several the device stands with their number. */
static void replicas_stand_behind_their_device(void **state) {
  (void)state;
  has(1, 1, "\n    0  gpu        ");
  has(2, 1, "\n    0  gpu x2     ");
  has(2, 1, "\n    1  cpu        ");
  has(1, 3, "\n    1  cpu x3     ");
  has(65536, 1, "\n    0  gpu x65536 ");
}

/* Without replicas the plan's own number counts; with them each stage's load, shared. */
static void replicas_share_what_is_predicted(void **state) {
  (void)state;
  has(1, 1, "predicted 100 (costs measured)");
  has(2, 1, "predicted 166.7 (");
  has(4, 1, "predicted 166.7 (");
  has(1, 3, "predicted 83.33 (");
  has(4, 3, "predicted 333.3 (");
}

/* A prediction for sizes that nobody fixed says so: those of the run may be others. */
static void assumed_sizes_stand_behind_the_prediction(void **state) {
  (void)state;
  is_in(table_with(1, 1, 2, 1), "(costs measured, for batch = 1, x[1] = 2 (assumed))\n");
  is_in(table_with(1, 1, 5, 1), ", for batch = 1, x[1] = 2, c = 3, d = 4, ... (assumed))\n");
}

/* All times have units of one kind. */
static void short_runs_are_no_fractions_of_a_second(void **state) {
  (void)state;
  is_in(table_with(1, 1, 0, 0.000574), "10 micro-batches in 574 us: ");
  is_in(table_with(1, 1, 0, 12.5), "10 micro-batches in 12.5 s: ");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(replicas_stand_behind_their_device),
                                     cmocka_unit_test(replicas_share_what_is_predicted),
                                     cmocka_unit_test(assumed_sizes_stand_behind_the_prediction),
                                     cmocka_unit_test(short_runs_are_no_fractions_of_a_second)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
