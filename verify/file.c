/* Proves that a single file is the whole model, as a split with one stage, whose manifest describes
 * the model. */
#include <string.h>

#include "verify.h"

static psplit_code take_inputs(psplit_i_proof *p, psplit_i_manifest_stage *stage) {
  const psplit_i_graph *graph = p->graph;
  psplit_i_row *rows = PSPLIT_NEW(&p->arena, psplit_i_row, graph->n_inputs);
  if (!rows) return psplit_i_nomem(p->diag);
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const psplit_i_value *value = &graph->values[graph->inputs[i]];
    const bool optional =
      value->initializer != PSPLIT_NONE || value->sparse_initializer != PSPLIT_NONE;
    rows[i] = (psplit_i_row){.name = value->name,
                             .tensor = value->name,
                             .from = PSPLIT_I_FROM_MODEL,
                             .optional = optional};
  }
  stage->inputs = rows;
  stage->n_inputs = graph->n_inputs;
  return PSPLIT_OK;
}

static psplit_code take_outputs(psplit_i_proof *p, psplit_i_manifest_stage *stage) {
  const psplit_i_graph *graph = p->graph;
  psplit_i_row *rows = PSPLIT_NEW(&p->arena, psplit_i_row, graph->n_outputs);
  if (!rows) return psplit_i_nomem(p->diag);
  for (uint32_t o = 0; o < graph->n_outputs; o++) {
    const char *name = graph->values[graph->outputs[o]].name;
    rows[o] = (psplit_i_row){.name = name, .tensor = name, .to_model = true};
  }
  stage->outputs = rows;
  stage->n_outputs = graph->n_outputs;
  return PSPLIT_OK;
}

psplit_code psplit_i_prove_file(psplit_i_proof *p, const char *path,
                                const psplit_verify_options *options) {
  psplit_code code;
  const char *slash = strrchr(path, '/');
  const char *directory =
    slash ? psplit_i_arena_strndup(&p->arena, path, (size_t)(slash - path)) : ".";
  psplit_i_manifest_stage *stage = PSPLIT_NEW(&p->arena, psplit_i_manifest_stage, 1);
  if (!directory || !stage) return psplit_i_nomem(p->diag);
  stage->file = slash ? slash + 1 : path;
  stage->n_nodes = p->graph->n_nodes;
  PSPLIT_TRY(take_inputs(p, stage));
  PSPLIT_TRY(take_outputs(p, stage));
  p->manifest = (psplit_i_manifest){.n_stages = 1, .stages = stage};
  p->no_manifest = true;
  PSPLIT_TRY(psplit_i_prove(p, *directory ? directory : "/", options));
out:
  return code;
}
