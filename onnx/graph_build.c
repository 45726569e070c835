/* Building the graph index: the functions of a model, then its main graph. */
#include "graph_order.h"
#include "graph_scope.h"

static psplit_code build_functions(psplit_i_graph_builder *b) {
  psplit_model *model = b->model;
  model->functions = PSPLIT_NEW(&model->arena, psplit_i_graph *, model->proto->n_functions);
  if (!model->functions) return psplit_i_nomem(b->diag);
  for (size_t f = 0; f < model->proto->n_functions; f++) {
    const Onnx__FunctionProto *function = model->proto->functions[f];
    psplit_i_graph *graph = PSPLIT_NEW(&model->arena, psplit_i_graph, 1);
    if (!graph) return psplit_i_nomem(b->diag);
    model->functions[f] = graph;
    graph->model = model;
    graph->name = psplit_i_text_or_empty(function->name);
    graph->function = function;
    psplit_i_opsets imports = {0};
    psplit_i_graph_scope s = {.graph = graph, .opsets = &imports};
    psplit_code code =
      psplit_i_index_opsets(b, function->n_opset_import, function->opset_import, &imports);
    if (code == PSPLIT_OK) code = psplit_i_graph_scope_build(b, &s);
    psplit_i_vec_fini(&s.values);
    psplit_i_opsets_fini(&imports);
    if (code != PSPLIT_OK) {
      psplit_i_diag_context(b->diag, "function \"%s\"", graph->name);
      return code;
    }
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_graph_build(psplit_model *model, psplit_diag *diag) {
  psplit_code code;
  psplit_i_graph_builder b = {.model = model, .diag = diag};
  psplit_i_intern_init(&b.functions);
  psplit_i_opsets imports = {0};
  psplit_i_graph_scope s = {.opsets = &imports};
  PSPLIT_TRY(
    psplit_i_index_opsets(&b, model->proto->n_opset_import, model->proto->opset_import, &imports));
  PSPLIT_TRY(psplit_i_index_functions(&b));
  PSPLIT_TRY(build_functions(&b));
  PSPLIT_TRY(psplit_i_refuse_recursion(model, diag));
  model->graph = PSPLIT_NEW(&model->arena, psplit_i_graph, 1);
  if (!model->graph) PSPLIT_FAIL(psplit_i_nomem(diag));
  s.graph = model->graph;
  s.graph->model = model;
  s.graph->name = psplit_i_text_or_empty(model->proto->graph->name);
  s.graph->proto = model->proto->graph;
  PSPLIT_TRY(psplit_i_graph_scope_build(&b, &s));
out:
  psplit_i_vec_fini(&s.values);
  psplit_i_opsets_fini(&imports);
  psplit_i_intern_fini(&b.functions);
  psplit_i_text_fini(&b.key);
  return code;
}
