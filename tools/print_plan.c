#include "print_plan.h"

#include <inttypes.h>
#include <stdio.h>

static void print_share(const char *label, int64_t ns) {
  char text[CLI_TEXT];
  printf("%s %s", label, cli_time(ns, text));
}

static bool is_latency(const psplit_plan *plan) { return plan->objective[0] == 'l'; }

/* What the objective makes small, and the bound is of. */
static int64_t value_ns(const psplit_plan *plan) {
  return is_latency(plan) ? plan->latency_ns : plan->bottleneck_ns;
}

/* Of a stream of inputs, or of one alone. */
static double speed_up(const psplit_plan *plan) {
  return value_ns(plan) > 0 ? (double)plan->total_compute_ns / (double)value_ns(plan) : 1;
}

static void print_transfers(const psplit_plan *plan) {
  enum { SHOWN = 12 };
  if (!plan->n_transfers) return;
  printf("\ncrossing tensors\n");
  for (uint32_t t = 0; t < plan->n_transfers && t < SHOWN; t++) {
    const psplit_plan_transfer *transfer = &plan->transfers[t];
    char bytes[CLI_TEXT], name[160];
    cli_bytes(transfer->bytes, bytes);
    printf("  %4" PRIu32 " -> %-4" PRIu32 " %s%9s  %s\n", transfer->from, transfer->to,
           transfer->bytes_known ? " " : "~", bytes,
           cli_printable(transfer->tensor, name, sizeof name));
  }
  if (plan->n_transfers > SHOWN) printf("  ... and %" PRIu32 " more\n", plan->n_transfers - SHOWN);
}

void print_plan(const psplit_plan *plan, double seconds) {
  char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT], d[CLI_TEXT], e[CLI_TEXT], f[CLI_TEXT];
  int width = 10;
  for (uint32_t s = 0; s < plan->n_stages; s++) width = cli_width(width, plan->stages[s].device);
  printf(
    "stage  %-*s  nodes  supernodes    weights     memory   receive   compute      send      "
    "load\n",
    width, "device");
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const psplit_plan_stage *stage = &plan->stages[s];
    char device[CLI_NAME];
    printf("%5" PRIu32 "  %-*s %6" PRIu32 " %11" PRIu32 " %10s %10s %9s %9s %9s %9s%s\n", s, width,
           cli_printable(stage->device, device, sizeof device), stage->n_nodes, stage->n_supernodes,
           cli_bytes(stage->weight_bytes, a), cli_bytes(stage->memory_bytes, b),
           cli_time(stage->recv_ns, c), cli_time(stage->compute_ns, d), cli_time(stage->send_ns, e),
           cli_time(stage->load_ns, f), stage->load_ns == plan->bottleneck_ns ? "  <" : "");
  }
  print_transfers(plan);
  printf("\n");
  if (is_latency(plan)) print_share("bottleneck", plan->bottleneck_ns);
  print_share(is_latency(plan) ? "\nlatency" : "bottleneck", value_ns(plan));
  print_share(", lower bound", plan->lower_bound_ns);
  printf(", gap %.2f %%%s (solver %s, bound %s)\n", 100 * plan->gap_frac,
         plan->proved_optimal ? ", proved optimal" : "", plan->solver, plan->bound);
  if (plan->bottleneck_ns > 0)
    printf("expected speed-up over one device %.2fx of %" PRIu32 ", costs %s", speed_up(plan),
           plan->n_stages, plan->cost_source);
  if (plan->measured_frac > 0 && plan->measured_frac < 1)
    printf(" for %.1f %% of the time", 100 * plan->measured_frac);
  if (plan->n_assumed) printf(" with");
  for (uint32_t i = 0; i < plan->n_assumed; i++) {
    char name[80];
    printf(" %s=%" PRId64, cli_printable(plan->assumed_names[i], name, sizeof name),
           plan->assumed_value);
  }
  printf("\ntook %.2f s\n", seconds);
}

void print_comparison_head(psplit_objective objective, uint32_t n_micro_batches) {
  printf("stages  %10s       bound      gap  speed-up      memory     on wire  bubble of %" PRIu32
         "\n",
         objective == PSPLIT_LATENCY ? "latency" : "bottleneck", n_micro_batches);
}

psplit_code print_comparison(const psplit_plan *plan, uint32_t n_micro_batches, psplit_diag *diag) {
  char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT], d[CLI_TEXT];
  psplit_schedule *schedule;
  const psplit_code code = psplit_plan_schedule(plan, n_micro_batches, diag, &schedule);
  if (code != PSPLIT_OK) return code;
  uint64_t memory = 0, wire = 0;
  bool sure = true;
  for (uint32_t s = 0; s < plan->n_stages; s++)
    if (plan->stages[s].memory_bytes > memory) memory = plan->stages[s].memory_bytes;
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    wire += plan->transfers[t].bytes;
    sure = sure && plan->transfers[t].bytes_known;
  }
  printf("%6" PRIu32 " %11s %11s %6.2f %% %8.2fx %11s %s%10s %10.1f %%%s\n", plan->n_stages,
         cli_time(value_ns(plan), a), cli_time(plan->lower_bound_ns, b), 100 * plan->gap_frac,
         speed_up(plan), cli_bytes(memory, c), sure ? " " : "~", cli_bytes(wire, d),
         100 * schedule->bubble_frac, plan->proved_optimal ? "  optimal" : "");
  psplit_schedule_destroy(schedule);
  return PSPLIT_OK;
}
