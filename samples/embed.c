/* Embeds libpsplit: embed MODEL STAGES DIRECTORY. Splits the model, proves the stages before
 * DIRECTORY appears, and prints a line for each stage. The program reads the file itself, as it
 * would if models came from an archive or over a network. */
#include <inttypes.h>
#include <psplit/psplit.h>
#include <stdio.h>
#include <stdlib.h>

static void *read_all(const char *path, size_t *out_n) {
  FILE *file = fopen(path, "rb");
  const long n = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
  void *bytes = n > 0 ? malloc((size_t)n) : NULL;
  if (bytes) rewind(file);
  *out_n = bytes ? fread(bytes, 1, (size_t)n, file) : 0;
  if (file) fclose(file);
  return bytes;
}

/* Called with the finished files before DIRECTORY appears; a failure removes them. */
static psplit_code prove(void *model, const char *directory, psplit_diag *diag) {
  return psplit_verify(directory, model, NULL, diag, NULL);
}

static void print_plan(const psplit_plan *plan) {
  for (uint32_t s = 0; s < plan->n_stages; s++)
    printf("stage %" PRIu32 ": %" PRIu32 " nodes, %" PRIu64 " bytes of weights, %.3f ms\n", s,
           plan->stages[s].n_nodes, plan->stages[s].weight_bytes,
           1e-6 * (double)plan->stages[s].load_ns);
  if (plan->headline) puts(plan->headline);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_model *model = NULL;
  psplit_planner *planner = NULL;
  size_t n = 0;
  void *bytes = read_all(argv[1], &n);
  psplit_code code = psplit_model_open_memory(bytes, n, argv[1], NULL, &diag, &model);
  free(bytes); /* the model has its own copy */
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = (uint32_t)strtoul(argv[2], NULL, 10);
  if (code == PSPLIT_OK) code = psplit_planner_create(model, &options, &diag, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(planner, NULL, &diag);
  psplit_emit_options emit;
  psplit_emit_options_init(&emit);
  emit.accept = prove;
  emit.accept_user = model;
  if (code == PSPLIT_OK)
    code = psplit_emit(model, psplit_planner_plan(planner), argv[3], &emit, &diag);
  if (code == PSPLIT_OK) print_plan(psplit_planner_plan(planner));
  const char *help = psplit_hint_text(diag.hint);
  if (code != PSPLIT_OK)
    fprintf(stderr, "%s: %s%s%s\n", psplit_code_name(code), diag.message, help ? "; " : "",
            help ? help : "");
  psplit_planner_destroy(planner);
  psplit_model_close(model);
  return code == PSPLIT_OK ? 0 : 1;
}
