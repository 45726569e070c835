#include "print_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_share(const char *label, int64_t ns) {
  char text[CLI_TEXT];
  printf("%s %s", label, cli_time(ns, text));
}

/* The bottleneck, and what the bound is of, where that is another. */
static void print_value(const psplit_plan *plan) {
  print_share("bottleneck", plan->bottleneck_ns);
  if (strcmp(plan->objective, "throughput") == 0) return;
  printf("\n");
  print_share(plan->objective, plan->value_ns);
  if (psplit_plan_is_fill_drain(plan)) {
    int64_t backward_ns = 0;
    for (uint32_t s = 0; s < plan->n_stages; s++)
      if (plan->stages[s].backward_load_ns > backward_ns)
        backward_ns = plan->stages[s].backward_load_ns;
    print_share(": slowest forward", plan->value_ns - backward_ns);
    print_share(", slowest backward", backward_ns);
  }
}

/* Whether its sender has the tensor from another stage. Transfers stand by sender. */
static bool is_passed_on(const psplit_plan *plan, uint32_t at) {
  for (uint32_t t = 0; t < at; t++)
    if (plan->transfers[t].value == plan->transfers[at].value &&
        plan->transfers[t].from < plan->transfers[at].from)
      return true;
  return false;
}

static void print_transfers(const psplit_plan *plan, bool all) {
  enum { SHOWN = 12 };
  const uint32_t n = all || plan->n_transfers < SHOWN ? plan->n_transfers : SHOWN;
  if (!plan->n_transfers) return;
  printf("\ncrossing tensors\n");
  for (uint32_t t = 0; t < n; t++) {
    const psplit_plan_transfer *transfer = &plan->transfers[t];
    char bytes[CLI_TEXT], name[160];
    cli_bytes(transfer->bytes, bytes);
    printf("  %4" PRIu32 " -> %-4" PRIu32 " %s%9s  %s%s\n", transfer->from, transfer->to,
           transfer->bytes_known ? " " : "~", bytes,
           cli_printable(transfer->tensor, name, sizeof name),
           is_passed_on(plan, t) ? " (passed on)" : "");
  }
  if (plan->n_transfers > n)
    printf("  ... and %" PRIu32 " more; --all-transfers lists them\n", plan->n_transfers - n);
}

/* What stays in each stage, for one sequence; then what does not stay. */
static void print_states(const psplit_plan *plan) {
  if (!plan->n_states) return;
  printf("\nstate of a sequence\n");
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const psplit_plan_state *first = NULL, *last = NULL;
    uint64_t sum = 0;
    uint32_t n = 0;
    bool known = true;
    char bytes[CLI_TEXT], from[80], to[80];
    for (uint32_t i = 0; i < plan->n_states; i++) {
      const psplit_plan_state *state = &plan->states[i];
      if (state->writer != s || (state->reader != s && state->reader != PSPLIT_NONE)) continue;
      first = n++ ? first : state;
      last = state;
      sum += state->bytes;
      known = known && state->bytes_known;
    }
    if (!n) continue;
    printf("  %4" PRIu32 "         %s%9s  %s", s, known ? " " : "~", cli_bytes(sum, bytes),
           cli_printable(first->input, from, sizeof from));
    if (n > 1) printf(" ... %s (%" PRIu32 ")", cli_printable(last->input, to, sizeof to), n);
    printf("\n");
  }
  for (uint32_t i = 0; i < plan->n_states; i++) {
    const psplit_plan_state *state = &plan->states[i];
    char bytes[CLI_TEXT], input[80];
    if (state->writer == state->reader || state->writer == PSPLIT_NONE ||
        state->reader == PSPLIT_NONE)
      continue;
    printf("  %4" PRIu32 " -> %-4" PRIu32 " %s%9s  %s, from step to step\n", state->writer,
           state->reader, state->bytes_known ? " " : "~", cli_bytes(state->bytes, bytes),
           cli_printable(state->input, input, sizeof input));
  }
}

static void print_phases(const psplit_plan *plan) {
  for (uint32_t i = 0; i < plan->n_phases; i++) {
    const psplit_plan_phase *phase = &plan->phases[i];
    char time[CLI_TEXT];
    printf("%s: %" PRId64 " new token%s after %" PRId64 " in each of %" PRId64
           " sequence%s, "
           "%.3g %% of steps: bottleneck %s, stages",
           phase->name, phase->tokens, phase->tokens == 1 ? "" : "s", phase->past, phase->batch,
           phase->batch == 1 ? "" : "s", 100 * phase->step_frac,
           cli_time(phase->bottleneck_ns, time));
    for (uint32_t s = 0; s < plan->n_stages; s++)
      printf("%s %s", s ? "," : "", cli_time(phase->load_ns[s], time));
    printf("\n");
  }
}

/* What holds of whom; nothing is said where there is no scope. */
static const char *proof(const char *scope, const char *words, char buffer[PRINT_PLAN_LINE]) {
  snprintf(buffer, PRINT_PLAN_LINE, "%s%s", scope ? words : "", scope ? scope : "");
  return buffer;
}

static void print_given_up(const psplit_plan *plan) {
  char best[CLI_TEXT], text[PRINT_PLAN_LINE];
  if (!plan->best_ns) return;
  const double up = (double)(plan->bottleneck_ns - plan->best_ns) / (double)plan->best_ns;
  printf("%.2f %% of the best bottleneck, %s%s, given up: %" PRIu32
         " crossing tensor%s, not %" PRIu32 "\n",
         up > 0 ? 100 * up : 0.0, cli_time(plan->best_ns, best),
         proof(plan->best_proof_scope, ", proved optimal ", text), plan->n_transfers,
         plan->n_transfers == 1 ? "" : "s", plan->best_transfers);
}

/* The headline and what would tell more, for a terminal; NULL where there is none. */
static const char *headline(const psplit_plan *plan, char *buffer) {
  psplit_diag line = {.hint = plan->headline_hint};
  char text[PRINT_PLAN_LINE];
  if (!plan->headline) return NULL;
  snprintf(line.message, sizeof line.message, "%s", plan->headline);
  return cli_printable(cli_advice(&line, text, sizeof text), buffer, PRINT_PLAN_LINE);
}

/* From a tenth of a stage's memory on, and 32 MB: less is not worth a second file. */
static void print_mapped(const psplit_plan *plan) {
  enum { LEAST_BYTES = 32000000 };
  const psplit_plan_stage *most = NULL;
  for (uint32_t s = 0; s < plan->n_stages; s++)
    if (!most || plan->stages[s].mapped_bytes > most->mapped_bytes) most = &plan->stages[s];
  if (!most || most->mapped_bytes < LEAST_BYTES || most->mapped_bytes < most->memory_bytes / 10)
    return;
  char saved[CLI_TEXT];
  printf("--weights external would save about %s of memory in stage %d\n",
         cli_bytes(most->mapped_bytes, saved), (int)(most - plan->stages));
}

/* Of the device that the stage is on: more than the stage's where that has others. */
static int64_t device_load_ns(const psplit_plan *plan, uint32_t stage) {
  int64_t turns = 0, compute = 0, recv = 0, send = 0;
  uint32_t n = 0;
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const psplit_plan_stage *one = &plan->stages[s];
    if (one->device_id != plan->stages[stage].device_id) continue;
    turns += one->turn_ns;
    compute += one->compute_ns;
    recv += one->recv_ns;
    send += one->send_ns;
    n++;
  }
  if (!plan->overlap || n < 2) return turns;
  const int64_t moved = recv > send ? recv : send;
  return compute > moved ? compute : moved;
}

/* "cpu1", or "cpu1..cpu3 x3" of those that compute it in turn. */
static const char *devices_of(const psplit_plan_stage *stage, char buffer[PRINT_PLAN_LINE]) {
  char first[CLI_NAME], last[CLI_NAME];
  cli_printable(stage->device, first, sizeof first);
  if (stage->n_replicas < 2) {
    snprintf(buffer, PRINT_PLAN_LINE, "%s", first);
  } else {
    cli_printable(stage->replica_devices[stage->n_replicas - 1], last, sizeof last);
    snprintf(buffer, PRINT_PLAN_LINE, "%s..%s x%" PRIu32, first, last, stage->n_replicas);
  }
  return buffer;
}

void print_plan(const psplit_plan *plan, const plan_report *report, double seconds) {
  char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT], d[CLI_TEXT], e[CLI_TEXT], f[CLI_TEXT];
  char device[PRINT_PLAN_LINE], line[PRINT_PLAN_LINE];
  int width = 10;
  for (uint32_t s = 0; s < plan->n_stages; s++)
    width = cli_width(width, devices_of(&plan->stages[s], device));
  printf(
    "stage  %-*s  nodes  supernodes    weights     memory   receive   compute      send      "
    "load\n",
    width, "device");
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const psplit_plan_stage *stage = &plan->stages[s];
    printf("%5" PRIu32 "  %-*s %6" PRIu32 " %11" PRIu32 " %10s %10s %9s %9s %9s %9s%s\n", s, width,
           devices_of(stage, device), stage->n_nodes, stage->n_supernodes,
           cli_bytes(stage->weight_bytes, a), cli_bytes(stage->memory_bytes, b),
           cli_time(stage->recv_ns, c), cli_time(stage->compute_ns, d), cli_time(stage->send_ns, e),
           cli_time(stage->load_ns, f),
           device_load_ns(plan, s) >= plan->bottleneck_ns ? "  <" : "");
  }
  print_stage_chart(plan, report->color);
  print_transfers(plan, report->all_transfers);
  print_states(plan);
  printf("\n");
  if (plan->data.matters) printf("as counted: ");
  print_value(plan);
  print_share(", lower bound", plan->lower_bound_ns);
  printf(", gap %.2f %%%s (solver %s, bound %s)\n", 100 * plan->gap_frac,
         proof(plan->bound_scope, plan->proved_optimal ? ", proved optimal " : " ", line),
         plan->solver, plan->bound);
  print_given_up(plan);
  print_phases(plan);
  if (headline(plan, line)) printf("%s\n", line);
  if (report->weights_inside) print_mapped(plan);
  printf("took %.2f s\n", seconds);
}

void print_comparison_head(psplit_objective objective, uint32_t n_micro_batches, bool trains) {
  const bool fills = objective == PSPLIT_FILL_DRAIN;
  printf("stages  %10s       bound      gap  speed-up      memory     on wire  bubble of %" PRIu32
         "%s\n",
         objective == PSPLIT_LATENCY ? "latency"
         : fills                     ? "fill-drain"
                                     : "bottleneck",
         n_micro_batches,
         fills    ? " by fill-drain"
         : trains ? " by 1F1B"
                  : "");
}

static void note(const psplit_plan *plan, comparison_notes *notes) {
  if (plan->value_ns != notes->same_ns) notes->first_same = plan->n_stages;
  notes->same_ns = plan->value_ns;
  notes->last_same = plan->n_stages;
  if (plan->n_stages > 1 && plan->speed_up > notes->most_speed_up)
    notes->most_speed_up = plan->speed_up;
  if (plan->speed_up < 0) (void)headline(plan, notes->none);
  if (plan->speed_up >= 0 && plan->assumed)
    cli_printable(plan->assumed, notes->assumed, sizeof notes->assumed);
}

/* Memory of the stage that needs most, and bytes that cross; false where some are assumed. */
static bool sum_up(const psplit_plan *plan, uint64_t *out_memory, uint64_t *out_wire) {
  bool sure = true;
  *out_memory = *out_wire = 0;
  for (uint32_t s = 0; s < plan->n_stages; s++)
    if (plan->stages[s].memory_bytes > *out_memory) *out_memory = plan->stages[s].memory_bytes;
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    *out_wire += plan->transfers[t].bytes;
    sure = sure && plan->transfers[t].bytes_known;
  }
  return sure;
}

static void print_scope(const char *key, const char *scope) {
  if (!scope) return;
  printf(", \"%s\": ", key);
  psplit_json_print(stdout, scope, strlen(scope));
}

void print_comparison_json(const psplit_plan *plan, const psplit_schedule *schedule, bool first) {
  uint64_t memory, wire;
  const bool sure = sum_up(plan, &memory, &wire);
  printf("%s  {\"n_stages\": %" PRIu32 ", \"value_ns\": %" PRId64 ", \"lower_bound_ns\": %" PRId64
         ", \"gap_frac\": %.9g, \"proved_optimal\": %s, \"speed_up\": ",
         first ? "[\n" : ",\n", plan->n_stages, plan->value_ns, plan->lower_bound_ns,
         plan->gap_frac, plan->proved_optimal ? "true" : "false");
  printf(plan->speed_up >= 0 ? "%.6g" : "null", plan->speed_up);
  print_scope("bound_scope", plan->bound_scope);
  print_scope("proof_scope", plan->proof_scope);
  printf(", \"memory_bytes\": %" PRIu64 ", \"transfer_bytes\": %" PRIu64
         ", \"transfer_bytes_known\": %s, \"bubble_frac\": %.6g}",
         memory, wire, sure ? "true" : "false", schedule->bubble_frac);
}

void print_infeasible_json(uint32_t n_stages, const char *why, bool first) {
  printf("%s  {\"n_stages\": %" PRIu32 ", \"infeasible\": ", first ? "[\n" : ",\n", n_stages);
  psplit_json_print(stdout, why, strlen(why));
  putchar('}');
}

void print_comparison_json_end(void) { printf("\n]\n"); }

void print_comparison(const psplit_plan *plan, const psplit_schedule *schedule,
                      comparison_notes *notes) {
  char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT], d[CLI_TEXT], speed_up[CLI_TEXT] = "-";
  char line[PRINT_PLAN_LINE];
  uint64_t memory, wire;
  const bool sure = sum_up(plan, &memory, &wire);
  if (plan->speed_up >= 0) snprintf(speed_up, sizeof speed_up, "%.2fx", plan->speed_up);
  printf("%6" PRIu32 " %11s %11s %6.2f %% %9s %11s %s%10s %10.1f %%%s\n", plan->n_stages,
         cli_time(plan->value_ns, a), cli_time(plan->lower_bound_ns, b), 100 * plan->gap_frac,
         speed_up, cli_bytes(memory, c), sure ? " " : "~", cli_bytes(wire, d),
         100 * schedule->bubble_frac, proof(plan->proof_scope, "  optimal ", line));
  note(plan, notes);
}

/* The supernode that takes most of a slowest stage; NULL without one. */
static const psplit_snapshot_group *slowest_group(const psplit_snapshot *s) {
  const psplit_snapshot_group *most = NULL;
  for (uint32_t g = 0; s->plan && g < s->n_groups; g++) {
    const psplit_snapshot_group *group = &s->groups[g];
    if (s->plan->stages[group->stage].load_ns == s->plan->bottleneck_ns &&
        (!most || group->cost_ns > most->cost_ns))
      most = group;
  }
  return most;
}

void print_comparison_largest(const psplit_snapshot *s, comparison_notes *notes) {
  const psplit_snapshot_group *most = slowest_group(s);
  notes->largest_ns = most ? most->cost_ns : 0;
  if (most) cli_printable(most->title, notes->largest, sizeof notes->largest);
}

bool print_plan_waits(const psplit_plan *plan) {
  const double most_busy = 0.75;
  double sum_ns = 0;
  for (uint32_t s = 0; s < plan->n_stages; s++) sum_ns += (double)plan->stages[s].load_ns;
  return sum_ns < most_busy * plan->n_stages * (double)plan->bottleneck_ns;
}

void print_plan_undivided(const psplit_snapshot *s, FILE *out) {
  const double least_share = 0.5;
  char name[160], part[CLI_TEXT], all[CLI_TEXT];
  const psplit_snapshot_group *most = slowest_group(s);
  if (!most || (double)most->cost_ns < least_share * (double)s->plan->bottleneck_ns) return;
  fprintf(out,
          "%s takes %s of the bottleneck, %s, and is not divided: fewer devices may do as well (-k "
          "1..%" PRIu32 " --plan-only tells)%s\n",
          cli_printable(most->title, name, sizeof name), cli_time(most->cost_ns, part),
          cli_time(s->plan->bottleneck_ns, all), s->plan->n_stages,
          s->plan->n_states ? "" : ", or several that take turns at it (--replicas auto)");
}

static void print_same(const comparison_notes *notes) {
  char all[CLI_TEXT], part[CLI_TEXT];
  if (notes->first_same == notes->last_same) return;
  printf("%" PRIu32 " to %" PRIu32 " stages have the same bottleneck, %s", notes->first_same,
         notes->last_same, cli_time(notes->same_ns, all));
  if (notes->largest_ns)
    printf(", of which %s takes %s: devices beyond %" PRIu32 " do not help", notes->largest,
           cli_time(notes->largest_ns, part), notes->first_same);
  printf("\n");
}

void print_comparison_notes(const comparison_notes *notes) {
  print_same(notes);
  if (notes->most_speed_up > 0 && notes->most_speed_up <= 1)
    puts("no number of stages here is faster than one device alone");
  if (*notes->assumed) printf("speed-ups are for %s (assumed)\n", notes->assumed);
  if (*notes->none) puts(notes->none);
}
