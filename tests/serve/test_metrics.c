/* Durations as Prometheus reads them, and what is told by stage, without a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

/* --- what the server has behind metrics.h, with numbers of our own --- */

static const psplit_pipeline_stage STAGES[] = {
  {.compute_ns = 2000000}, {.compute_ns = -1}, {.compute_ns = 1}};
static const psplit_pipeline_info INFO = {.n_stages = 3, .stages = STAGES};

serve_model *serve_current_hold(serve_current *current) {
  (void)current;
  return NULL;
}
void serve_model_release(serve_model *model) { (void)model; }
psplit_service *serve_model_service(const serve_model *model) {
  (void)model;
  return NULL;
}
const psplit_pipeline_info *serve_model_info(const serve_model *model) {
  (void)model;
  return &INFO;
}
void serve_current_count(serve_current *current, uint64_t *out_n_good, uint64_t *out_n_bad) {
  (void)current;
  *out_n_good = 5;
  *out_n_bad = 6;
}
void psplit_service_get_stats(psplit_service *service, psplit_service_stats *out) {
  (void)service;
  out->n_waiting = 7;
  out->n_under_way = 8;
}
void psplit_service_get_stage(const psplit_service *service, uint32_t stage,
                              psplit_service_stage_stats *out) {
  (void)service;
  if (stage == 0) {
    out->n_micro_batches = 4;
    out->busy_ns = 6000000;
    out->n_restarts = 3;
    out->resident_bytes = 4096;
  } else if (stage == 1) {
    out->n_micro_batches = 2;
  }
}

/* --- tests --- */

static void has(const char *text, const char *line) {
  if (!strstr(text, line)) fail_msg("no %s in:\n%s", line, text);
}

static void has_not(const char *text, const char *part) {
  if (strstr(text, part)) fail_msg("%s in:\n%s", part, text);
}

/* "psplit_NAME" of a sample, without what a histogram puts behind it, at most. */
static void family_of(const char *line, char out[100]) {
  static const char *const ENDS[] = {"_bucket", "_sum", "_count"};
  snprintf(out, 100, "%.*s", (int)strcspn(line, "{ "), line);
  for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
    const size_t n = strlen(out), n_end = strlen(ENDS[i]);
    if (n > n_end && strcmp(out + n - n_end, ENDS[i]) == 0) out[n - n_end] = '\0';
  }
}

/* Prometheus takes a sample without a type for anything. */
static void families_are_told(void **state) {
  serve_metrics metrics = {0};
  (void)state;
  char *text = serve_metrics_text(&metrics, NULL);
  unsigned n = 0;
  assert_non_null(text);
  for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
    char family[100], told[120];
    if (*line == '#') continue;
    n++;
    family_of(line, family);
    snprintf(told, sizeof told, "# TYPE %s ", family);
    has(text, told);
    snprintf(told, sizeof told, "# HELP %s ", family);
    has(text, told);
  }
  assert_true(n > 30);
  free(text);
}

/* A duration on a bound is in its bucket; one beyond the last bound counts, too. */
static void durations(void **state) {
  static const int64_t took_ns[] = {0, 500000, 500001, 10000000000, 10000000001, 600000000000};
  serve_metrics metrics = {0};
  (void)state;
  for (size_t i = 0; i < sizeof took_ns / sizeof *took_ns; i++)
    serve_metrics_add(&metrics, took_ns[i]);
  char *text = serve_metrics_text(&metrics, NULL);
  assert_non_null(text);
  has(text, "\npsplit_request_duration_seconds_bucket{le=\"0.0005\"} 2\n");
  has(text, "\npsplit_request_duration_seconds_bucket{le=\"0.001\"} 3\n");
  has(text, "\npsplit_request_duration_seconds_bucket{le=\"5\"} 3\n");
  has(text, "\npsplit_request_duration_seconds_bucket{le=\"10\"} 4\n");
  has(text, "\npsplit_request_duration_seconds_bucket{le=\"+Inf\"} 6\n");
  has(text, "\npsplit_request_duration_seconds_sum 620.001\n");
  has(text, "\npsplit_request_duration_seconds_count 6\n");
  free(text);
}

/* A stage that nothing is known of is left out, not told as 0. */
static void stages(void **state) {
  serve_metrics metrics = {.n_good = 1, .n_failed = 2, .n_no_room = 3, .n_bad = 4};
  (void)state;
  char *text = serve_metrics_text(&metrics, NULL);
  assert_non_null(text);
  has(text,
      "psplit_requests_total{outcome=\"ok\"} 1\n"
      "psplit_requests_total{outcome=\"failed\"} 2\n"
      "psplit_requests_total{outcome=\"no_room\"} 3\n"
      "psplit_requests_total{outcome=\"bad\"} 4\n");
  has(text, "\npsplit_requests_waiting 7\n");
  has(text, "\npsplit_requests_under_way 8\n");
  has(text, "psplit_reloads_total{outcome=\"ok\"} 5\npsplit_reloads_total{outcome=\"failed\"} 6\n");
  has(text,
      "psplit_stage_micro_batches_total{stage=\"0\"} 4\n"
      "psplit_stage_micro_batches_total{stage=\"1\"} 2\n");
  has(text, "\npsplit_stage_busy_seconds_total{stage=\"0\"} 0.006\n");
  has(text, "\npsplit_stage_restarts_total{stage=\"0\"} 3\n");
  has(text, "\npsplit_stage_resident_memory_bytes{stage=\"0\"} 4096\n");
  has(text, "\npsplit_stage_predicted_seconds{stage=\"0\"} 0.002\n");
  has(text, "\npsplit_stage_drift_ratio{stage=\"0\"} 0.75\n");
  has_not(text, "resident_memory_bytes{stage=\"1\"}");
  has_not(text, "predicted_seconds{stage=\"1\"}");
  has_not(text, "drift_ratio{stage=\"1\"}");
  has_not(text, "drift_ratio{stage=\"2\"}");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(durations),
                                     cmocka_unit_test(families_are_told), cmocka_unit_test(stages)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
