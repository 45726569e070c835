#include "print_run.h"

#include <inttypes.h>

#include "cli.h"
#include "resume.h"

/* Four digits that matter, without an exponent. */
static const char *rate(double per_s, char *buffer) {
  snprintf(buffer, CLI_TEXT, per_s < 9999.5 ? "%.4g" : "%.0f", per_s);
  return buffer;
}

/* "cpu1 x3" where three threads compute the stage. */
static const char *place_of(const psplit_run_report *report, const psplit_pipeline_info *pipeline,
                            uint32_t stage, char buffer[CLI_NAME + 16]) {
  char name[CLI_NAME];
  const uint32_t n = report->stages[stage].n_replicas;
  cli_printable(pipeline->stages[stage].device, name, sizeof name);
  snprintf(buffer, CLI_NAME + 16, n > 1 ? "%s x%" PRIu32 : "%s", name, n);
  return buffer;
}

/* Of the slowest stage, for a micro-batch: replicas share its load. */
static double predicted_ns(const psplit_run_report *report, const psplit_pipeline_info *pipeline) {
  double slowest = 0;
  bool replicas = false;
  for (uint32_t s = 0; s < report->n_stages; s++) {
    const uint32_t n = report->stages[s].n_replicas;
    const double share = (double)pipeline->stages[s].load_ns / n;
    if (share > slowest) slowest = share;
    replicas |= n > 1;
  }
  return replicas ? slowest : (double)pipeline->bottleneck_ns;
}

/* What the prediction stands on. Sizes that were assumed for it need not be those of the run. */
static void print_costs(const psplit_pipeline_info *pipeline, FILE *out) {
  enum { MOST = 4 };
  char name[CLI_NAME];
  fprintf(out, " (costs %s", pipeline->cost_source);
  for (uint32_t i = 0; i < pipeline->n_assumed && i < MOST; i++) {
    cli_printable(pipeline->assumed_names[i], name, sizeof name);
    fprintf(out, "%s%s = %" PRId64, i ? ", " : ", for ", name, pipeline->assumed_sizes[i]);
  }
  if (pipeline->n_assumed) fprintf(out, "%s (assumed)", pipeline->n_assumed > MOST ? ", ..." : "");
  fprintf(out, ")\n");
}

void print_run_table(const psplit_run_report *report, const psplit_pipeline_info *pipeline,
                     FILE *out) {
  char text[6][CLI_TEXT], place[CLI_NAME + 16];
  int width = 10;
  for (uint32_t s = 0; s < report->n_stages; s++)
    width = cli_width(width, place_of(report, pipeline, s, place));
  fprintf(out, "%-5s  %-*s %11s %11s %11s %11s %11s %11s\n", "stage", width, "device", "busy",
          "predicted", "wait in", "wait out", "transfer", "received");
  for (uint32_t s = 0; s < report->n_stages; s++) {
    const psplit_stage_report *row = &report->stages[s];
    const int64_t predicted = pipeline->stages[s].compute_ns;
    fprintf(out, "%5" PRIu32 "  %-*s %11s %11s %11s %11s %11s %11s\n", s, width,
            place_of(report, pipeline, s, place), cli_time(row->busy_ns, text[0]),
            predicted < 0 ? "?" : cli_time(predicted, text[1]), cli_time(row->wait_in_ns, text[2]),
            cli_time(row->wait_out_ns, text[3]), cli_time(row->transfer_ns, text[4]),
            cli_bytes(row->bytes, text[5]));
  }
  char batches[CLI_COUNT];
  fprintf(out, "\n%s in %s: %s a second",
          cli_counted(report->n_micro_batches, "micro-batch", batches),
          cli_time((int64_t)(1e9 * report->seconds), text[1]), rate(report->throughput, text[0]));
  if (report->steady_throughput > 0)
    fprintf(out, ", %s once filled", rate(report->steady_throughput, text[0]));
  if (pipeline->bottleneck_ns > 0)
    fprintf(out, ", predicted %s", rate(1e9 / predicted_ns(report, pipeline), text[0]));
  print_costs(pipeline, out);
  fprintf(out,
          "latency %s, at most %s\nidle %.1f %% of the stages' time; filling and "
          "draining alone is %.1f %%\n",
          cli_time(report->latency_median_ns, text[0]), cli_time(report->latency_max_ns, text[1]),
          100 * report->bubble_frac, 100 * report->bubble_fill_frac);
  if (report->n_ranges != 1 || report->first_micro_batch) {
    fprintf(out, "delivered: ");
    resume_print_ranges(report->delivered, report->n_ranges, out);
    fprintf(out, "\n");
  }
  if (report->drift_ratio > 0)
    fprintf(out,
            "stages take %.2f of the times planned; stage %" PRIu32
            " takes %.2f of its share of that\n",
            report->drift_ratio, report->worst_drift_stage, report->worst_drift_ratio);
}

void print_run_failures(const psplit_run_report *report) {
  enum { MOST = 10 };
  for (uint32_t i = 0; i < report->n_failures && i < MOST; i++)
    cli_warn("skipped: %s", report->failures[i].message);
  if (report->n_failed)
    cli_warn("%" PRIu64 " of %" PRIu64 " micro-batch%s skipped", report->n_failed,
             report->n_micro_batches,
             report->n_micro_batches == 1 ? " was"
             : report->n_failed == 1      ? "es was"
                                          : "es were");
}
