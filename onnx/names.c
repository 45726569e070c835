/* Names that users give, held against those that the model has. */
#include <psplit/model.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "model.h"

static bool add_symbols(const Onnx__TypeProto *type, psplit_i_intern *names) {
  for (; type; type = psplit_i_type_inner(type)) {
    const int64_t rank = psplit_i_type_rank(type);
    for (int64_t axis = 0; axis < rank; axis++) {
      const psplit_i_declared_dim dim = psplit_i_type_dim(type, (uint32_t)axis);
      if (dim.param && *dim.param && psplit_i_intern_add(names, dim.param) == PSPLIT_NONE)
        return false;
    }
  }
  return true;
}

/* Symbols of a graph's inputs, of its other values, and of its bodies. False when out of memory.
 * Depth is bounded by what the reader accepts. */
static bool add_graph(const psplit_i_graph *graph, psplit_i_intern *names) {
  bool ok = true;
  for (uint32_t i = 0; ok && i < graph->n_inputs; i++)
    ok = add_symbols(graph->values[graph->inputs[i]].declared_type, names);
  for (uint32_t v = 0; ok && v < graph->n_values; v++)
    ok = add_symbols(graph->values[v].declared_type, names);
  for (uint32_t n = 0; ok && n < graph->n_nodes; n++)
    for (uint32_t b = 0; ok && b < graph->nodes[n].n_bodies; b++)
      ok = add_graph(graph->nodes[n].bodies[b], names);
  return ok;
}

psplit_code psplit_model_check_dims(const psplit_model *model, const psplit_dim_value *dims,
                                    size_t n_dims, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_i_intern names;
  if (!n_dims) return PSPLIT_OK;
  psplit_i_intern_init(&names);
  bool ok = add_graph(model->graph, &names);
  for (uint32_t f = 0; ok && f < psplit_i_model_n_functions(model); f++)
    ok = add_graph(psplit_i_model_function(model, f), &names);
  if (!ok) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (size_t i = 0; i < n_dims; i++)
    if (psplit_i_intern_find(&names, dims[i].name) == PSPLIT_NONE)
      PSPLIT_FAIL(psplit_i_fail_unknown(diag, PSPLIT_SUBJECT_DIMS, "the model has no dimension",
                                        dims[i].name, names.text, names.n));
out:
  psplit_i_intern_fini(&names);
  return code;
}

psplit_code psplit_model_check_inputs(const psplit_model *model, const char *const *inputs,
                                      size_t n_inputs, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = model->graph;
  if (!n_inputs) return PSPLIT_OK;
  const char **names = malloc(((size_t)graph->n_inputs + 1) * sizeof *names);
  if (!names) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < graph->n_inputs; i++) names[i] = graph->values[graph->inputs[i]].name;
  for (size_t i = 0; i < n_inputs; i++) {
    bool found = false;
    for (uint32_t n = 0; n < graph->n_inputs && !found; n++)
      found = strcmp(names[n], inputs[i]) == 0;
    if (!found)
      PSPLIT_FAIL(psplit_i_fail_unknown(diag, PSPLIT_SUBJECT_NONE, "the model has no input",
                                        inputs[i], names, graph->n_inputs));
  }
out:
  free(names);
  return code;
}

psplit_code psplit_i_graph_fail_unknown(const psplit_i_graph *graph, psplit_i_value_filter is,
                                        const char *name, psplit_diag *diag, const char *format,
                                        ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  const char **names = malloc(((size_t)graph->n_values + 1) * sizeof *names);
  if (!names) return psplit_i_nomem(diag);
  uint32_t n = 0;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (*graph->values[v].name && (!is || is(graph, v))) names[n++] = graph->values[v].name;
  psplit_i_text hint = {0};
  psplit_i_add_names(&hint, "it has", name, names, n);
  const psplit_code code =
    psplit_i_fail(diag, PSPLIT_USAGE, "%s%s", line, hint.failed || !hint.bytes ? "" : hint.bytes);
  psplit_i_text_fini(&hint);
  free(names);
  return code;
}
