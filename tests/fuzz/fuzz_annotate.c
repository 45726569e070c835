/* Fuzz target: models that are written with their stages in them. Each form of annotation opens
 * again with as many nodes; stages that stand in the fields of ONNX are those that a planner takes
 * from there; supernodes as functions open, too. */
#include <psplit/snapshot.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "splits.h"

/* The stages that the annotated model asks for are the plan's. */
static void check_stages(const psplit_model *model, const psplit_plan *plan) {
  psplit_diag diag = {0};
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  fuzz_planner_options(&options, plan->n_stages);
  options.allow_invalid = true;
  const char *configuration = "pipeline"; /* another one may have stages, too */
  options.configuration = configuration;
  const psplit_code code = psplit_planner_create(model, &options, &diag, &planner);
  fuzz_must(code == PSPLIT_OK, "annotations", &diag);
  if (fuzz_plan(planner)) {
    const psplit_plan *again = psplit_planner_plan(planner);
    if (again->n_nodes != plan->n_nodes) abort();
    for (uint32_t i = 0; i < plan->n_nodes; i++)
      if (again->node_stage[i] != plan->node_stage[i]) {
        diag.code = PSPLIT_MISMATCH;
        fuzz_fail("a node is annotated with another stage", &diag);
      }
  }
  psplit_planner_destroy(planner);
}

static bool annotates(psplit_code code, const psplit_diag *diag) {
  if (code == PSPLIT_OK) return true;
  if (code != PSPLIT_UNSUPPORTED && code != PSPLIT_LIMIT) fuzz_fail("annotate", diag);
  return false;
}

static const psplit_emit_options replacing = {.struct_size = sizeof replacing, .replace = true};

static psplit_model *open_written(const char *path) {
  const psplit_read_options options = {.struct_size = sizeof options, .max_graph_bytes = 64 << 20};
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  if (psplit_model_open(path, &options, &diag, &model) != PSPLIT_OK)
    fuzz_fail("what was written does not open", &diag);
  return model;
}

static void annotate(const psplit_model *model, const psplit_plan *plan, bool was_annotated) {
  char path[FUZZ_PATH_BYTES];
  fuzz_path("annotated.onnx", path);
  for (int form = PSPLIT_ANNOTATION_ONNX; form <= PSPLIT_ANNOTATION_OLIVE; form++) {
    psplit_diag diag = {0};
    if (!annotates(
          psplit_emit_annotated(model, plan, (psplit_annotation)form, path, &replacing, &diag),
          &diag))
      continue;
    psplit_model *back = open_written(path);
    if (form == PSPLIT_ANNOTATION_ONNX && !was_annotated) check_stages(back, plan);
    psplit_model_close(back);
  }
  fuzz_remove(path);
}

static void write_blocks(const psplit_model *model, const psplit_snapshot *s) {
  psplit_diag diag = {0};
  char path[FUZZ_PATH_BYTES];
  uint32_t *node_block = malloc((s->n_nodes + 1) * sizeof *node_block);
  const char **titles = malloc((s->n_groups + 1) * sizeof *titles);
  if (!node_block || !titles) abort();
  for (uint32_t i = 0; i < s->n_nodes; i++) node_block[i] = s->nodes[i].group;
  for (uint32_t g = 0; g < s->n_groups; g++) titles[g] = s->groups[g].title;
  const psplit_blocks blocks = {
    .n_nodes = s->n_nodes, .node_block = node_block, .n_blocks = s->n_groups, .titles = titles};
  fuzz_path("blocks.onnx", path);
  if (annotates(psplit_emit_blocks(model, &blocks, path, &replacing, &diag), &diag))
    psplit_model_close(open_written(path));
  fuzz_remove(path);
  free(titles);
  free(node_block);
}

/* Whether a configuration of devices stands in the bytes; its name would be "pipeline" or so. */
static bool mentions_pipeline(const uint8_t *data, size_t n) {
  return memmem(data, n, "pipeline", strlen("pipeline")) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const int fd = fuzz_file(data, n);
  psplit_diag diag = {0};
  psplit_model *model = fuzz_open(fd, NULL, 0, &diag);
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  psplit_snapshot *snapshot = NULL;
  fuzz_planner_options(&options, 1 + fuzz_hash(data, n) / 8 % 3);
  options.allow_invalid = true;
  options.ignore_annotations = true;
  if (model && psplit_planner_create(model, &options, &diag, &planner) == PSPLIT_OK &&
      fuzz_plan(planner)) {
    annotate(model, psplit_planner_plan(planner), mentions_pipeline(data, n));
    fuzz_must(psplit_snapshot_take(planner, &diag, &snapshot) == PSPLIT_OK, "snapshot", &diag);
    write_blocks(model, snapshot);
  }
  psplit_snapshot_destroy(snapshot);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
  close(fd);
  return 0;
}
