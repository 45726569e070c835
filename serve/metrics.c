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
  atomic_fetch_add(&m->n_answers, 1);
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

static void put_stages(FILE *out, psplit_service *service, const psplit_pipeline_info *info) {
  uint64_t n;
  int64_t busy_ns;
  head(out, "stage_micro_batches_total", "counter", "Micro-batches that a stage has computed.");
  for (uint32_t s = 0; s < info->n_stages; s++) {
    psplit_service_get_stage(service, s, &n, &busy_ns);
    fprintf(out, "psplit_stage_micro_batches_total{stage=\"%u\"} %" PRIu64 "\n", s, n);
  }
  head(out, "stage_busy_seconds_total", "counter", "Time that ONNX Runtime had a stage.");
  for (uint32_t s = 0; s < info->n_stages; s++) {
    psplit_service_get_stage(service, s, &n, &busy_ns);
    fprintf(out, "psplit_stage_busy_seconds_total{stage=\"%u\"} %.9f\n", s, 1e-9 * (double)busy_ns);
  }
  head(out, "stage_predicted_seconds", "gauge", "What the plan says of a micro-batch.");
  for (uint32_t s = 0; s < info->n_stages; s++)
    if (info->stages[s].compute_ns >= 0)
      fprintf(out, "psplit_stage_predicted_seconds{stage=\"%u\"} %.9f\n", s,
              1e-9 * (double)info->stages[s].compute_ns);
  head(out, "stage_drift_ratio", "gauge", "Measured over predicted time, since the start.");
  for (uint32_t s = 0; s < info->n_stages; s++) {
    psplit_service_get_stage(service, s, &n, &busy_ns);
    if (n && info->stages[s].compute_ns > 0)
      fprintf(out, "psplit_stage_drift_ratio{stage=\"%u\"} %.4g\n", s,
              (double)busy_ns / (double)n / (double)info->stages[s].compute_ns);
  }
}

static void put_memory(FILE *out) {
  FILE *statm = fopen("/proc/self/statm", "re");
  unsigned long all, resident = 0;
  if (statm && fscanf(statm, "%lu %lu", &all, &resident) == 2) {
    head(out, "resident_memory_bytes", "gauge", "Of this process.");
    fprintf(out, "psplit_resident_memory_bytes %lu\n",
            resident * (unsigned long)sysconf(_SC_PAGESIZE));
  }
  if (statm) fclose(statm);
}

char *serve_metrics_text(const serve_metrics *m, psplit_service *service,
                         const psplit_pipeline_info *info) {
  psplit_service_stats stats = {.struct_size = sizeof stats};
  char *text = NULL;
  size_t n_text = 0;
  FILE *out = open_memstream(&text, &n_text);
  if (!out) return NULL;
  psplit_service_get_stats(service, &stats);
  head(out, "requests_total", "counter", "Requests by what became of them.");
  fprintf(out,
          "psplit_requests_total{outcome=\"ok\"} %" PRIu64
          "\npsplit_requests_total{outcome=\"failed\"} %" PRIu64
          "\npsplit_requests_total{outcome=\"no_room\"} %" PRIu64
          "\npsplit_requests_total{outcome=\"bad\"} %" PRIu64 "\n",
          stats.n_good, stats.n_failed, stats.n_refused, atomic_load(&m->n_bad));
  head(out, "requests_waiting", "gauge", "Accepted requests before the first stage.");
  fprintf(out, "psplit_requests_waiting %u\n", stats.n_waiting);
  head(out, "requests_under_way", "gauge", "Requests in the stages.");
  fprintf(out, "psplit_requests_under_way %u\n", stats.n_under_way);
  put_latency(out, m);
  put_stages(out, service, info);
  put_memory(out);
  const bool bad = ferror(out);
  if (fclose(out) == 0 && !bad) return text;
  free(text);
  return NULL;
}
