#include "targets.h"

#include <inttypes.h>
#include <psplit/snapshot.h>
#include <psplit/view.h>
#include <stdio.h>
#include <stdlib.h>

bool target_parse(const cli *program, const char *text, target *out) {
  static const char *const names[] = {"genai", "vllm", "llama.cpp", NULL};
  int which;
  if (!cli_choice(program, "target", text, names, &which)) return false;
  *out = (target)(which + 1);
  return true;
}

bool target_prints(target t) { return t == TARGET_VLLM || t == TARGET_LLAMA_CPP; }

psplit_code target_genai(const psplit_model *model, const planned *made,
                         const plan_options *options, const psplit_emit_options *emit,
                         psplit_diag *diag, char **out_text) {
  const psplit_plan *plan = psplit_planner_plan(made->planner);
  psplit_genai_options genai;
  psplit_genai_options_init(&genai);
  genai.context_length = (uint32_t)options->decode.past;
  const psplit_session **sessions = malloc(((size_t)plan->n_stages + 1) * sizeof *sessions);
  if (!sessions) return cli_nomem(diag);
  for (uint32_t s = 0; made->devices && s < plan->n_stages; s++)
    sessions[s] = psplit_devices_session(made->devices, s);
  if (made->devices) genai.sessions = sessions;
  const psplit_code code = psplit_genai_config(model, plan, emit, &genai, diag, out_text);
  free(sessions);
  return code;
}

/* llama.cpp counts what comes behind the layers as one more. */
static void print_layers(target t, const uint32_t *layers, uint32_t n_stages, FILE *out) {
  fprintf(out, "%s", t == TARGET_VLLM ? "VLLM_PP_LAYER_PARTITION=" : "-ts ");
  for (uint32_t s = 0; s < n_stages; s++)
    fprintf(out, "%s%" PRIu32, s ? "," : "",
            layers[s] + (t == TARGET_LLAMA_CPP && s + 1 == n_stages));
  fputs("\n", out);
}

psplit_code target_print(target t, const planned *made, const psplit_logger *logger, FILE *out,
                         psplit_diag *diag) {
  psplit_snapshot *snapshot = NULL;
  uint32_t torn = 0;
  psplit_code code = psplit_snapshot_take(made->planner, diag, &snapshot);
  if (code != PSPLIT_OK) return code;
  uint32_t *layers = malloc(((size_t)snapshot->n_stages + 1) * sizeof *layers);
  code = layers ? psplit_view_layers(snapshot, diag, layers, &torn) : cli_nomem(diag);
  if (code == PSPLIT_OK) print_layers(t, layers, snapshot->n_stages, out);
  if (code == PSPLIT_OK && torn) {
    char line[160];
    snprintf(line, sizeof line,
             "the plan cuts through %" PRIu32
             " of the layers, which is no line for others: --keep-blocks keeps them whole",
             torn);
    logger->emit(logger->user, PSPLIT_WARNING, line);
  }
  free(layers);
  psplit_snapshot_destroy(snapshot);
  return code;
}
