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

/* What is printed of two stages, of which 12 and 6 ms are predicted. */
static char *table_of(uint32_t first_replicas, uint32_t last_replicas) {
  const psplit_pipeline_stage stages[] = {
    {.device = "gpu", .compute_ns = 11000000, .load_ns = 12000000},
    {.device = "cpu", .compute_ns = -1, .load_ns = 6000000}};
  const psplit_pipeline_info pipeline = {
    .n_stages = 2, .stages = stages, .bottleneck_ns = 10000000, .cost_source = "measured"};
  const psplit_stage_report rows[] = {{.busy_ns = 1000000, .n_replicas = first_replicas},
                                      {.busy_ns = 2000000, .n_replicas = last_replicas}};
  const psplit_run_report report = {.n_stages = 2,
                                    .n_micro_batches = 10,
                                    .seconds = 1,
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

static void has(uint32_t first_replicas, uint32_t last_replicas, const char *part) {
  char *text = table_of(first_replicas, last_replicas);
  if (!strstr(text, part)) fail_msg("no \"%s\" in:\n%s", part, text);
  free(text);
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(replicas_stand_behind_their_device),
                                     cmocka_unit_test(replicas_share_what_is_predicted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
