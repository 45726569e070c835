#include "choose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool choose_parse(const cli *program, const char *text, choose_options *out) {
  char copy[128];
  *out = (choose_options){0};
  if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy) {
    cli_usage(program, "--schedule: an argument of %zu bytes", strlen(text));
    return false;
  }
  char *rest = strchr(copy, ',');
  if (rest) *rest++ = '\0';
  if (!cli_count32(program, "schedule", copy, 1, 65536, &out->n_samples)) return false;
  if (!rest) return true;
  if (strncmp(rest, "fixed=", 6) == 0)
    return cli_real(program, "schedule fixed", rest + 6, 0, 1e15, &out->fixed);
  cli_usage(program, "--schedule takes N or N,fixed=T, not \"%s\"", text);
  return false;
}

static const char *name_of(psplit_schedule_kind kind) {
  return kind == PSPLIT_SCHEDULE_FILL_DRAIN    ? "fill-drain"
         : kind == PSPLIT_SCHEDULE_1F1B        ? "1f1b"
         : kind == PSPLIT_SCHEDULE_ZERO_BUBBLE ? "zb-h1"
                                               : "stream";
}

/* A unit of time: what reports call it (" s"), and how many ticks it has. */
typedef struct choose_unit {
  double ticks;
  const char *name;
} choose_unit;

/* The line, or with `json` an object, for stages whose times are in ticks. The batch's samples and
 * fixed time are those of the options. */
static psplit_code print(const choose_options *options, const psplit_policy *policy,
                         const psplit_policy_batch *given, choose_unit unit, bool json, FILE *out,
                         psplit_diag *diag) {
  psplit_policy_batch batch = *given;
  psplit_policy_choice choice, best;
  const double fixed = options->fixed * unit.ticks;
  if (fixed > 9e18)
    return psplit_diag_fail(diag, PSPLIT_LIMIT, "--schedule: a piece of %g%s is too long",
                            options->fixed, unit.name);
  batch.n_samples = options->n_samples;
  batch.fixed_ns = (int64_t)(fixed + 0.5);
  const psplit_code code = psplit_policy_choose(policy, &batch, diag, &choice, &best);
  if (code != PSPLIT_OK) return code;
  const double step = (double)choice.step_ns / unit.ticks,
               least = (double)best.step_ns / unit.ticks;
  if (json)
    fprintf(out,
            "{\"samples\": %" PRIu32 ", \"kind\": \"%s\", \"micro_batches\": %" PRIu32
            ", \"step\": %.15g, \"fits\": %s, \"best\": {\"kind\": \"%s\", \"micro_batches\": "
            "%" PRIu32 ", \"step\": %.15g}}",
            options->n_samples, name_of(choice.kind), choice.n_micro_batches, step,
            choice.fits ? "true" : "false", name_of(best.kind), best.n_micro_batches, least);
  else
    fprintf(out,
            "policy: %s, %" PRIu32 " micro-batch%s of %" PRIu32 " for %" PRIu32
            " samples: %.6g%s%s; of all that are tried the best is %s with %" PRIu32
            ": %.6g%s (%+.2f %%)\n",
            name_of(choice.kind), choice.n_micro_batches, choice.n_micro_batches == 1 ? "" : "es",
            options->n_samples / choice.n_micro_batches, options->n_samples, step, unit.name,
            choice.fits ? "" : ", more memory than there is", name_of(best.kind),
            best.n_micro_batches, least, unit.name, least > 0 ? 100 * (step / least - 1) : 0);
  return code;
}

/* The arrays of a batch; freed by arrays_fini. */
typedef struct arrays {
  int64_t *forward, *backward, *weights;
  uint64_t *bytes, *room;
} arrays;

static bool arrays_init(arrays *a, size_t n) {
  *a = (arrays){calloc(n + 1, sizeof *a->forward), calloc(n + 1, sizeof *a->backward),
                calloc(n + 1, sizeof *a->weights), calloc(n + 1, sizeof *a->bytes),
                calloc(n + 1, sizeof *a->room)};
  return a->forward && a->backward && a->weights && a->bytes && a->room;
}

static void arrays_fini(arrays *a) {
  free(a->forward);
  free(a->backward);
  free(a->weights);
  free(a->bytes);
  free(a->room);
}

static uint64_t left_of(uint64_t memory, uint64_t used) {
  return memory > used ? memory - used : 0;
}

psplit_code choose_print_problem(const choose_options *options, const psplit_policy *policy,
                                 const psplit_problem *p, const psplit_solution *s, bool json,
                                 FILE *out, psplit_diag *diag) {
  arrays a;
  uint32_t n = 0;
  psplit_code code = arrays_init(&a, s->n_stages) ? PSPLIT_OK : cli_nomem(diag);
  if (code == PSPLIT_OK) {
    const bool trains = psplit_solution_pieces(p, s, 1, a.forward, a.backward, a.bytes);
    for (uint32_t k = 0; k < s->n_stages; k++) {
      const psplit_stage_load *stage = &s->stages[k];
      const uint64_t memory = p->devices[stage->device].memory_bytes;
      const uint64_t held = p->stash_1f1b ? s->n_stages - k : 1;
      if (stage->n_nodes == 0) continue;
      a.forward[n] = a.forward[k];
      a.backward[n] = a.backward[k];
      a.bytes[n] = a.bytes[k];
      a.room[n++] =
        memory ? left_of(memory, left_of(stage->memory_bytes, held * a.bytes[k])) : UINT64_MAX;
    }
    const psplit_policy_batch batch = {.n_stages = n,
                                       .forward_ns = a.forward,
                                       .backward_ns = trains ? a.backward : NULL,
                                       .activation_bytes = a.bytes,
                                       .room_bytes = a.room};
    code = print(options, policy, &batch, (choose_unit){p->ticks_per_unit, ""}, json, out, diag);
  }
  arrays_fini(&a);
  return code;
}

/* Forward and backward pieces, gradients of weights where they are apart, and what is kept. */
static psplit_code training_arrays(const psplit_training *training, const psplit_plan *plan,
                                   arrays *a, bool *out_apart, psplit_diag *diag) {
  psplit_training_stage *stages = calloc(plan->n_stages, sizeof *stages);
  psplit_code code = stages ? PSPLIT_OK : cli_nomem(diag);
  if (code == PSPLIT_OK)
    code = psplit_training_pieces(training, plan, diag, a->forward, a->backward, a->bytes);
  if (code == PSPLIT_OK) code = psplit_training_stages(training, plan, diag, stages);
  *out_apart = false;
  for (uint32_t s = 0; code == PSPLIT_OK && s < plan->n_stages; s++) {
    a->weights[s] = stages[s].weight_gradients_ns;
    a->backward[s] -= a->weights[s];
    *out_apart |= a->weights[s] > 0;
  }
  free(stages);
  return code;
}

psplit_code choose_print_plan(const choose_options *options, const psplit_policy *policy,
                              const psplit_training *training, const psplit_plan *plan,
                              const psplit_devices *devices, FILE *out, psplit_diag *diag) {
  arrays a;
  bool apart = false;
  psplit_devices *preset = NULL;
  psplit_code code = arrays_init(&a, plan->n_stages) ? PSPLIT_OK : cli_nomem(diag);
  if (code == PSPLIT_OK && !devices)
    code = psplit_devices_preset(NULL, plan->n_stages, diag, &preset);
  if (code == PSPLIT_OK && training) code = training_arrays(training, plan, &a, &apart, diag);
  for (uint32_t s = 0; code == PSPLIT_OK && s < plan->n_stages; s++) {
    const psplit_plan_stage *stage = &plan->stages[s];
    const uint64_t memory =
      psplit_devices_memory_bytes(devices ? devices : preset, stage->device_id);
    const uint64_t held =
      training ? stage->stash_bytes : stage->peak_activation_bytes + stage->buffer_bytes;
    if (!training) a.forward[s] = stage->load_ns;
    if (!training) a.bytes[s] = held;
    a.room[s] = memory == UINT64_MAX ? memory : left_of(memory, left_of(stage->memory_bytes, held));
  }
  const psplit_policy_batch batch = {.n_stages = plan->n_stages,
                                     .forward_ns = a.forward,
                                     .backward_ns = training ? a.backward : NULL,
                                     .weights_ns = apart ? a.weights : NULL,
                                     .activation_bytes = a.bytes,
                                     .room_bytes = a.room};
  if (code == PSPLIT_OK) fputs("\n", out);
  if (code == PSPLIT_OK)
    code = print(options, policy, &batch, (choose_unit){1e9, " s"}, false, out, diag);
  psplit_devices_destroy(preset);
  arrays_fini(&a);
  return code;
}
