/* Values of symbolic sizes that the planner counts with: those that the caller gave, and those of
 * the runs that were measured. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cost_table.h"
#include "planner.h"

enum { MAX_SHAPE_RANK = 32 };

/* An input and the size that it is to have. */
typedef struct sized_input {
  const psplit_input_size *shape;
  const struct Onnx__TypeProto *type; /* declared */
} sized_input;

static const psplit_dim_value *find(const psplit_dim_value *dims, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(dims[i].name, name) == 0) return &dims[i];
  return NULL;
}

/* Whether a table was measured with other sizes than those that count. */
static bool contradicts(const psplit_cost_table *table, const psplit_dim_value *dims, size_t n) {
  for (size_t i = 0; i < table->dims.n; i++) {
    const psplit_dim_value *own = find(dims, n, table->dims.items[i].name);
    if (own && own->value != table->dims.items[i].value) return true;
  }
  return false;
}

psplit_code psplit_i_planner_take_sizes(psplit_planner *planner, psplit_diag *diag) {
  psplit_planner_options *options = &planner->options;
  size_t n = options->n_dims, n_all = n;
  planner->n_own_dims = n;
  for (size_t c = 0; c < options->n_costs; c++) n_all += options->costs[c]->dims.n;
  if (n_all == n && !options->n_costs) return PSPLIT_OK;
  psplit_dim_value *all = PSPLIT_NEW(&planner->arena, psplit_dim_value, n_all);
  if (!all) return psplit_i_nomem(diag);
  if (n) memcpy(all, options->dims, n * sizeof *all);
  for (size_t c = 0; c < options->n_costs; c++) {
    const psplit_cost_table *table = options->costs[c];
    if (contradicts(table, all, n)) continue;
    if (table->values.n) planner->seen_in = table;
    for (size_t i = 0; i < table->dims.n; i++) {
      const psplit_dim_value *dim = &table->dims.items[i];
      psplit_diag unknown = {0}; /* a table of another model says so by its rows */
      if (find(all, n, dim->name)) continue;
      if (psplit_model_check_dims(planner->model, dim, 1, &unknown) == PSPLIT_OK) all[n++] = *dim;
    }
  }
  options->dims = all;
  options->n_dims = n;
  return PSPLIT_OK;
}

/* "x=1,3,224,224", as users give it. */
static psplit_code wrong_shape(const psplit_input_size *shape, psplit_diag *diag,
                               const char *format, ...) PSPLIT_PRINTF(3, 4);
static psplit_code wrong_shape(const psplit_input_size *shape, psplit_diag *diag,
                               const char *format, ...) {
  psplit_i_text text = {0};
  char why[256];
  va_list args;
  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  psplit_i_text_addf(&text, "%.200s=", shape->input);
  for (uint32_t d = 0; d < shape->n_dims; d++)
    psplit_i_text_addf(&text, "%s%" PRId64, d ? "," : "", shape->dims[d]);
  const psplit_code code =
    text.failed
      ? psplit_i_nomem(diag)
      : psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(SHAPE), "%s: %s", text.bytes, why);
  psplit_i_text_fini(&text);
  return code;
}

/* The sizes of one input: constants have to agree, symbols become dims behind the n of `dims`. */
static psplit_code take_shape(const sized_input *input, psplit_dim_value *dims, size_t *io_n,
                              psplit_diag *diag) {
  const psplit_input_size *shape = input->shape;
  const int64_t rank = psplit_i_type_rank(input->type);
  if (rank >= 0 && rank != shape->n_dims)
    return wrong_shape(shape, diag, "the input has %" PRId64 " dimension%s", rank,
                       rank == 1 ? "" : "s");
  for (uint32_t d = 0; rank >= 0 && d < shape->n_dims; d++) {
    const psplit_i_declared_dim declared = psplit_i_type_dim(input->type, d);
    const char *name = declared.param;
    if (declared.value >= 0 && declared.value != shape->dims[d])
      return wrong_shape(shape, diag, "dimension %" PRIu32 " of the input is %" PRId64, d,
                         declared.value);
    if (!name || !*name) continue;
    const psplit_dim_value *known = find(dims, *io_n, name);
    if (known && known->value != shape->dims[d])
      return wrong_shape(shape, diag, "dimension %.100s is %" PRId64 " elsewhere", name,
                         known->value);
    if (!known) dims[(*io_n)++] = (psplit_dim_value){name, shape->dims[d]};
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_planner_take_shapes(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_planner_options *options = &planner->options;
  const psplit_i_graph *graph = planner->graph;
  size_t n = options->n_dims, n_all = n;
  if (!options->n_shapes) return PSPLIT_OK;
  for (size_t i = 0; i < options->n_shapes; i++) n_all += options->shapes[i].n_dims;
  psplit_dim_value *all = PSPLIT_NEW(&planner->arena, psplit_dim_value, n_all);
  psplit_i_seen *given = PSPLIT_NEW(&planner->arena, psplit_i_seen, options->n_shapes);
  if (!all || !given) return psplit_i_nomem(diag);
  if (n) memcpy(all, options->dims, n * sizeof *all);
  for (size_t i = 0; i < options->n_shapes; i++) {
    const psplit_input_size *shape = &options->shapes[i];
    PSPLIT_TRY(psplit_model_check_inputs(planner->model, &shape->input, 1, diag));
    if (shape->n_dims > MAX_SHAPE_RANK)
      PSPLIT_FAIL(wrong_shape(shape, diag, "an input has at most %d dimensions", MAX_SHAPE_RANK));
    const uint32_t value = psplit_i_graph_find_value(graph, shape->input);
    const sized_input input = {shape, graph->values[value].declared_type};
    PSPLIT_TRY(take_shape(&input, all, &n, diag));
    given[i] = (psplit_i_seen){shape->input, (int32_t)shape->n_dims, shape->dims};
  }
  planner->given = given;
  options->dims = all;
  options->n_dims = n;
out:
  return code;
}

psplit_i_binding *psplit_i_planner_bindings(psplit_planner *planner) {
  const psplit_planner_options *options = &planner->options;
  psplit_i_binding *bindings = PSPLIT_NEW(&planner->scratch, psplit_i_binding, options->n_dims);
  for (size_t i = 0; bindings && i < options->n_dims; i++)
    bindings[i] = (psplit_i_binding){options->dims[i].name, options->dims[i].value};
  return bindings;
}
