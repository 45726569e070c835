#include "report.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "json_put.h"
#include "trace_json.h"

static psplit_stage_report stage_means(const psplit_i_sums *sums) {
  const int64_t n = sums->n_micro_batches ? (int64_t)sums->n_micro_batches : 1;
  return (psplit_stage_report){.busy_ns = sums->busy_ns / n,
                               .wait_in_ns = sums->wait_in_ns / n,
                               .wait_out_ns = sums->wait_out_ns / n,
                               .transfer_ns = sums->transfer_ns / n,
                               .bytes = sums->bytes / (uint64_t)n};
}

/* Latencies of the micro-batches whose events are there. */
static psplit_code add_latency(const psplit_i_timeline *timeline, psplit_diag *diag,
                               psplit_run_report *out) {
  const uint32_t n = psplit_i_timeline_n(timeline);
  int64_t *latency = calloc((size_t)n + 1, sizeof *latency);
  if (!latency) return psplit_i_nomem(diag);
  for (uint32_t m = 0; m < n; m++) {
    int64_t begin = INT64_MAX, end = INT64_MIN;
    for (uint32_t s = 0; s < timeline->n_stages; s++) {
      const psplit_i_event *e = psplit_i_timeline_event(timeline, s, m);
      if (e->ready_ns < begin) begin = e->ready_ns;
      if (e->sent_ns > end) end = e->sent_ns;
    }
    latency[m] = end - begin;
  }
  qsort(latency, n, sizeof *latency, psplit_i_compare_ns);
  if (n) {
    out->latency_median_ns = latency[n / 2];
    out->latency_max_ns = latency[n - 1];
  }
  free(latency);
  return PSPLIT_OK;
}

/* The list and its texts in one block. */
static psplit_code add_failures(const psplit_i_failures *failures, psplit_diag *diag,
                                psplit_run_report *out) {
  const uint32_t n = failures->n_kept;
  psplit_run_failure *rows =
    malloc((size_t)n * (sizeof *rows + sizeof failures->kept->message) + 1);
  if (!rows) return psplit_i_nomem(diag);
  char *text = (char *)(rows + n);
  for (uint32_t i = 0; i < n; i++) {
    const psplit_i_failure *from = &failures->kept[i];
    rows[i] = (psplit_run_failure){from->micro_batch, (psplit_code)from->code, text};
    snprintf(text, sizeof from->message, "%s", from->message);
    text += sizeof from->message;
  }
  out->n_failed = failures->n;
  out->n_failures = n;
  out->failures = rows;
  return PSPLIT_OK;
}

static psplit_code add_delivered(psplit_delivered *delivered, psplit_diag *diag,
                                 psplit_run_report *out) {
  psplit_range *ranges = calloc(PSPLIT_MOST_RANGES, sizeof *ranges);
  if (!ranges) return psplit_i_nomem(diag);
  out->n_ranges = psplit_delivered_get(delivered, ranges, PSPLIT_MOST_RANGES, &out->n_delivered);
  out->delivered = ranges;
  return PSPLIT_OK;
}

psplit_code psplit_i_report_make(const psplit_i_timeline *timeline,
                                 const psplit_i_run_options *options, psplit_diag *diag,
                                 psplit_run_report *out) {
  const uint32_t k = timeline->n_stages;
  const double n = (double)timeline->n_micro_batches;
  psplit_run_report report = {.n_stages = k,
                              .n_micro_batches = timeline->n_micro_batches,
                              .first_micro_batch = options->first};
  int64_t first = INT64_MAX, filled = INT64_MIN, last = INT64_MIN;
  double busy = 0, n_threads = 0;
  psplit_stage_report *stages = calloc(k, sizeof *stages);
  if (!stages) return psplit_i_nomem(diag);
  report.stages = stages;
  for (uint32_t s = 0; s < k; s++) {
    const psplit_i_sums *sums = &timeline->sums[s];
    stages[s] = stage_means(sums);
    stages[s].n_replicas = options->n_replicas ? options->n_replicas[s] : 1;
    n_threads += stages[s].n_replicas;
    busy += (double)sums->busy_ns;
    if (sums->first_ready_ns < first) first = sums->first_ready_ns;
    if (sums->first_sent_ns > filled) filled = sums->first_sent_ns;
    if (sums->last_sent_ns > last) last = sums->last_sent_ns;
  }
  psplit_code code = add_latency(timeline, diag, &report);
  if (code == PSPLIT_OK) code = add_failures(options->failures, diag, &report);
  if (code == PSPLIT_OK) code = add_delivered(options->delivered, diag, &report);
  if (code != PSPLIT_OK) {
    psplit_i_report_fini(&report);
    return code;
  }
  report.seconds = 1e-9 * (double)(last - first);
  const double n_good = n - (double)report.n_failed;
  report.throughput = last > first ? n_good / report.seconds : 0;
  if (n_good > 1 && last > filled)
    report.steady_throughput = (n_good - 1) / (1e-9 * (double)(last - filled));
  const double room = (double)(last - first) * n_threads;
  report.bubble_frac = room > 0 ? 1 - busy / room : 0;
  report.bubble_fill_frac = n > 0 ? (k - 1.0) / (n + k - 1.0) : 0;
  *out = report;
  return PSPLIT_OK;
}

void psplit_i_report_add_drift(const psplit_i_pipe *pipe, psplit_run_report *report) {
  double busy = 0, predicted = 0;
  for (uint32_t s = 0; s < report->n_stages; s++) {
    const int64_t ns = pipe->manifest.stages[s].compute_ns;
    if (ns <= 0) return;
    busy += (double)report->stages[s].busy_ns;
    predicted += (double)ns;
  }
  if (!(busy > 0) || !(predicted > 0)) return;
  report->drift_ratio = busy / predicted;
  for (uint32_t s = 0; s < report->n_stages; s++) {
    const double expected = report->drift_ratio * (double)pipe->manifest.stages[s].compute_ns;
    const double ratio = (double)report->stages[s].busy_ns / expected;
    if (ratio <= report->worst_drift_ratio) continue;
    report->worst_drift_ratio = ratio;
    report->worst_drift_stage = s;
  }
}

void psplit_i_report_fini(psplit_run_report *report) {
  free((void *)(uintptr_t)report->stages);
  free((void *)(uintptr_t)report->failures);
  free((void *)(uintptr_t)report->delivered);
  report->delivered = NULL;
  report->stages = NULL;
  report->failures = NULL;
}

static void put_ns(psplit_i_json *json, const char *key, int64_t ns) {
  psplit_i_json_key(json, key);
  if (ns < 0)
    psplit_i_json_null(json);
  else
    psplit_i_json_int(json, ns);
}

static void put_delivered(psplit_i_json *json, const psplit_run_report *report) {
  psplit_i_json_put_open(json, "delivered", '[');
  for (uint32_t i = 0; i < report->n_ranges; i++) {
    psplit_i_json_open(json, '[');
    psplit_i_json_uint(json, report->delivered[i].first);
    psplit_i_json_uint(json, report->delivered[i].last);
    psplit_i_json_close(json, ']');
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_report_json(const psplit_run_report *report, const psplit_i_pipe *pipe,
                          const char *transport, const char *onnxruntime, psplit_i_text *out) {
  psplit_i_json json;
  psplit_i_json_init(&json, out);
  psplit_i_json_open(&json, '{');
  psplit_i_json_put_string(&json, "transport", transport);
  psplit_i_json_put_string(&json, "onnxruntime", onnxruntime);
  put_ns(&json, "micro_batches", (int64_t)report->n_micro_batches);
  put_ns(&json, "first_micro_batch", (int64_t)report->first_micro_batch);
  put_delivered(&json, report);
  put_ns(&json, "failed", (int64_t)report->n_failed);
  psplit_i_json_put_open(&json, "failures", '[');
  for (uint32_t i = 0; i < report->n_failures; i++) {
    psplit_i_json_open(&json, '{');
    put_ns(&json, "micro_batch", (int64_t)report->failures[i].micro_batch);
    psplit_i_json_put_string(&json, "code", psplit_code_name(report->failures[i].code));
    psplit_i_json_put_string(&json, "message", report->failures[i].message);
    psplit_i_json_close(&json, '}');
  }
  psplit_i_json_close(&json, ']');
  psplit_i_json_put_double(&json, "seconds", report->seconds);
  psplit_i_json_put_double(&json, "throughput_per_s", report->throughput);
  psplit_i_json_put_double(&json, "steady_throughput_per_s", report->steady_throughput);
  put_ns(&json, "latency_median_ns", report->latency_median_ns);
  put_ns(&json, "latency_max_ns", report->latency_max_ns);
  psplit_i_json_put_double(&json, "bubble_frac", report->bubble_frac);
  psplit_i_json_put_double(&json, "bubble_fill_frac", report->bubble_fill_frac);
  put_ns(&json, "predicted_bottleneck_ns", pipe->manifest.bottleneck_ns);
  psplit_i_json_put_string(&json, "cost_source", pipe->manifest.cost_source);
  psplit_i_json_key(&json, "drift");
  if (report->drift_ratio > 0) {
    psplit_i_json_open(&json, '{');
    psplit_i_json_put_double(&json, "ratio", report->drift_ratio);
    psplit_i_json_put_double(&json, "worst_ratio", report->worst_drift_ratio);
    put_ns(&json, "worst_stage", report->worst_drift_stage);
    psplit_i_json_close(&json, '}');
  } else {
    psplit_i_json_null(&json);
  }
  psplit_i_json_put_open(&json, "stages", '[');
  for (uint32_t s = 0; s < report->n_stages; s++) {
    const psplit_stage_report *stage = &report->stages[s];
    psplit_i_json_open(&json, '{');
    put_ns(&json, "index", s);
    psplit_i_json_put_string(&json, "device", pipe->manifest.stages[s].device);
    put_ns(&json, "replicas", stage->n_replicas);
    put_ns(&json, "busy_ns", stage->busy_ns);
    put_ns(&json, "wait_in_ns", stage->wait_in_ns);
    put_ns(&json, "wait_out_ns", stage->wait_out_ns);
    put_ns(&json, "transfer_ns", stage->transfer_ns);
    put_ns(&json, "received_bytes", (int64_t)stage->bytes);
    put_ns(&json, "predicted_compute_ns", pipe->manifest.stages[s].compute_ns);
    put_ns(&json, "predicted_recv_ns", pipe->manifest.stages[s].recv_ns);
    put_ns(&json, "predicted_send_ns", pipe->manifest.stages[s].send_ns);
    put_ns(&json, "predicted_load_ns", pipe->manifest.stages[s].load_ns);
    psplit_i_json_close(&json, '}');
  }
  psplit_i_json_close(&json, ']');
  psplit_i_json_close(&json, '}');
  psplit_i_text_puts(out, "\n");
}

void psplit_i_trace_json(const psplit_i_timeline *timeline, const psplit_i_pipe *pipe,
                         uint32_t first_micro_batch, psplit_i_text *out) {
  const uint32_t n = psplit_i_timeline_n(timeline);
  const uint64_t first = first_micro_batch + timeline->n_micro_batches - n;
  psplit_i_json json;
  psplit_i_trace trace = {.json = &json, .counted = "micro_batch", .zero_ns = INT64_MAX};
  psplit_i_json_init(&json, out);
  for (uint32_t s = 0; s < timeline->n_stages && n; s++) {
    const psplit_i_event *e = psplit_i_timeline_event(timeline, s, 0);
    if (e->begin_ns < trace.zero_ns) trace.zero_ns = e->begin_ns;
  }
  psplit_i_trace_begin(&trace);
  for (uint32_t s = 0; s < timeline->n_stages; s++) {
    char name[64];
    snprintf(name, sizeof name, "stage %u on %.40s", s, pipe->manifest.stages[s].device);
    psplit_i_trace_process(&trace, s, name);
    for (uint32_t m = 0; m < n; m++) {
      const psplit_i_event *e = psplit_i_timeline_event(timeline, s, m);
      const uint64_t b = first + m;
      psplit_i_trace_span(&trace, "inputs", s, PSPLIT_I_TRACE_WAIT, b, e->begin_ns, e->ready_ns);
      psplit_i_trace_span(&trace, "compute", s, PSPLIT_I_TRACE_COMPUTE, b, e->ready_ns, e->done_ns);
      psplit_i_trace_span(&trace, "outputs", s, PSPLIT_I_TRACE_WAIT, b, e->done_ns, e->sent_ns);
    }
  }
  psplit_i_trace_end(&trace);
}
