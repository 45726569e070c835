#include "metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Upper bounds in seconds. */
static const double BOUNDS[SERVE_N_BUCKETS] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                               0.1,    0.25,  0.5,    1,     2.5,  5,     10};

void serve_metrics_add(serve_metrics *m, int64_t total_ns) {
  int bucket = 0;
  while (bucket < SERVE_N_BUCKETS && 1e-9 * (double)total_ns > BOUNDS[bucket]) bucket++;
  atomic_fetch_add(&m->n_by_bucket[bucket], 1);
  atomic_fetch_add(&m->total_ns, total_ns);
}

static void head(FILE *out, const char *name, const char *type, const char *help) {
  fprintf(out, "# HELP psplit_%s %s\n# TYPE psplit_%s %s\n", name, help, name, type);
}

static void put_latency(FILE *out, const serve_metrics *m) {
  uint64_t n = 0;
  head(out, "request_duration_seconds", "histogram", "From the whole request to its answer.");
  for (int b = 0; b < SERVE_N_BUCKETS; b++) {
    n += atomic_load(&m->n_by_bucket[b]);
    fprintf(out, "psplit_request_duration_seconds_bucket{le=\"%g\"} %" PRIu64 "\n", BOUNDS[b], n);
  }
  n += atomic_load(&m->n_by_bucket[SERVE_N_BUCKETS]);
  fprintf(out,
          "psplit_request_duration_seconds_bucket{le=\"+Inf\"} %" PRIu64
          "\npsplit_request_duration_seconds_sum %g\npsplit_request_duration_seconds_count %" PRIu64
          "\n",
          n, 1e-9 * (double)atomic_load(&m->total_ns), n);
}

/* A family of samples: one for each stage that has a value. */
static void put_family(FILE *out, psplit_service *service, const psplit_pipeline_info *info,
                       const char *name, const char *type, const char *help,
                       bool (*value)(const psplit_service_stage_stats *, int64_t, double *)) {
  head(out, name, type, help);
  for (uint32_t s = 0; s < info->n_stages; s++) {
    psplit_service_stage_stats stage = {.struct_size = sizeof stage};
    double number;
    psplit_service_get_stage(service, s, &stage);
    if (value(&stage, info->stages[s].compute_ns, &number))
      fprintf(out, "psplit_%s{stage=\"%u\"} %.15g\n", name, s, number);
  }
}

static bool micro_batches(const psplit_service_stage_stats *s, int64_t planned_ns, double *out) {
  (void)planned_ns;
  *out = (double)s->n_micro_batches;
  return true;
}
static bool busy(const psplit_service_stage_stats *s, int64_t planned_ns, double *out) {
  (void)planned_ns;
  *out = 1e-9 * (double)s->busy_ns;
  return true;
}
static bool restarts(const psplit_service_stage_stats *s, int64_t planned_ns, double *out) {
  (void)planned_ns;
  *out = s->n_restarts;
  return true;
}
static bool resident(const psplit_service_stage_stats *s, int64_t planned_ns, double *out) {
  (void)planned_ns;
  *out = (double)s->resident_bytes;
  return s->resident_bytes;
}
static bool predicted(const psplit_service_stage_stats *s, int64_t planned_ns, double *out) {
  (void)s;
  *out = 1e-9 * (double)planned_ns;
  return planned_ns >= 0;
}
static bool drift(const psplit_service_stage_stats *s, int64_t planned_ns, double *out) {
  if (!s->n_micro_batches || planned_ns <= 0) return false;
  *out = (double)s->busy_ns / (double)s->n_micro_batches / (double)planned_ns;
  return true;
}

static void put_stages(FILE *out, psplit_service *service, const psplit_pipeline_info *info) {
  put_family(out, service, info, "stage_micro_batches_total", "counter",
             "Micro-batches that a stage has computed.", micro_batches);
  put_family(out, service, info, "stage_busy_seconds_total", "counter",
             "Time that ONNX Runtime had a stage.", busy);
  put_family(out, service, info, "stage_restarts_total", "counter",
             "Restarts of a stage's process.", restarts);
  put_family(out, service, info, "stage_resident_memory_bytes", "gauge",
             "Of the process or rank of a stage.", resident);
  put_family(out, service, info, "stage_predicted_seconds", "gauge",
             "Predicted time of a micro-batch.", predicted);
  put_family(out, service, info, "stage_drift_ratio", "gauge",
             "Measured over predicted time, since the start.", drift);
}

uint64_t serve_resident_bytes(void) {
  FILE *statm = fopen("/proc/self/statm", "re");
  char line[128], *behind; /* pages: all, resident, ... */
  uint64_t pages = 0;
  if (statm && fgets(line, sizeof line, statm) && strtoull(line, &behind, 10))
    pages = strtoull(behind, NULL, 10);
  if (statm) fclose(statm);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void put_memory(FILE *out) {
  const uint64_t bytes = serve_resident_bytes();
  if (!bytes) return;
  head(out, "resident_memory_bytes", "gauge", "Of this process.");
  fprintf(out, "psplit_resident_memory_bytes %" PRIu64 "\n", bytes);
}

static void put_requests(FILE *out, const serve_metrics *m, psplit_service *service) {
  psplit_service_stats stats = {.struct_size = sizeof stats};
  psplit_service_get_stats(service, &stats);
  head(out, "requests_total", "counter", "Requests by outcome.");
  fprintf(out,
          "psplit_requests_total{outcome=\"ok\"} %" PRIu64
          "\npsplit_requests_total{outcome=\"failed\"} %" PRIu64
          "\npsplit_requests_total{outcome=\"no_room\"} %" PRIu64
          "\npsplit_requests_total{outcome=\"bad\"} %" PRIu64 "\n",
          atomic_load(&m->n_good), atomic_load(&m->n_failed), atomic_load(&m->n_no_room),
          atomic_load(&m->n_bad));
  head(out, "requests_waiting", "gauge", "Accepted requests before the first stage.");
  fprintf(out, "psplit_requests_waiting %u\n", stats.n_waiting);
  head(out, "requests_under_way", "gauge", "Requests in the stages.");
  fprintf(out, "psplit_requests_under_way %u\n", stats.n_under_way);
}

static void put_reloads(FILE *out, serve_current *current) {
  uint64_t n_good, n_bad;
  serve_current_count(current, &n_good, &n_bad);
  head(out, "reloads_total", "counter", "Reloads of the split by outcome.");
  fprintf(out,
          "psplit_reloads_total{outcome=\"ok\"} %" PRIu64
          "\npsplit_reloads_total{outcome=\"failed\"} %" PRIu64 "\n",
          n_good, n_bad);
}

char *serve_metrics_text(const serve_metrics *m, serve_current *current) {
  char *text = NULL;
  size_t n_text = 0;
  FILE *out = open_memstream(&text, &n_text);
  if (!out) return NULL;
  serve_model *model = serve_current_hold(current);
  put_requests(out, m, serve_model_service(model));
  put_latency(out, m);
  put_stages(out, serve_model_service(model), serve_model_info(model));
  put_reloads(out, current);
  put_memory(out);
  serve_model_release(model);
  const bool bad = ferror(out);
  if (fclose(out) == 0 && !bad) return text;
  free(text);
  return NULL;
}
