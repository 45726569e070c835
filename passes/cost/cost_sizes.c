/* Which sizes a profiled run has seen: those of inputs, and of kernels' results that are values of
 * the model under their own names. */
#include <string.h>

#include "cost_table.h"
#include "work.h"

typedef struct finder {
  const psplit_i_graph *graph;
  psplit_i_seen *seen; /* [n_values] rank -1: not seen */
  psplit_i_run_sizes *out;
} finder;

static void keep(finder *f, uint32_t value, int64_t rank, const int64_t *dims) {
  if (value == PSPLIT_NONE || rank > PSPLIT_MAX_RANK) return;
  for (int64_t axis = 0; axis < rank; axis++)
    if (dims[axis] < 0) return;
  f->seen[value] = (psplit_i_seen){f->graph->values[value].name, (int32_t)rank, dims};
}

/* A kernel's results, where the profile has a shape for each. `node` is of graph `of`. */
static void keep_results(finder *f, const psplit_i_cost_row *row, const psplit_i_graph *of,
                         const psplit_i_node *node) {
  uint32_t n_outputs = 0;
  for (uint32_t o = 0; o < node->n_outputs; o++) n_outputs += node->outputs[o] != PSPLIT_NONE;
  if (n_outputs != row->n_shapes) return;
  const int64_t *at = row->shapes;
  for (uint32_t o = 0; o < node->n_outputs; o++) {
    if (node->outputs[o] == PSPLIT_NONE) continue;
    const char *name = of->values[node->outputs[o]].name;
    keep(f, psplit_i_graph_find_value(f->graph, name), at[0], at + 1);
    at += 1 + at[0];
  }
}

static void keep_rows(finder *f, const psplit_cost_table *table, const psplit_i_cost_names *names,
                      const psplit_i_graph *optimized) {
  for (uint32_t r = 0; r < table->rows.n; r++) {
    const psplit_i_cost_row *row = &table->rows.items[r];
    if (optimized) {
      keep_results(f, row, optimized, &optimized->nodes[r]);
      continue;
    }
    const uint32_t node = psplit_i_cost_names_node(names, row->label);
    if (node != PSPLIT_NONE && names->next[node] == PSPLIT_NONE &&
        strcmp(f->graph->nodes[node].op_type, row->op) == 0)
      keep_results(f, row, f->graph, &f->graph->nodes[node]);
  }
}

/* A symbol that stood for one number wherever it is declared. One of several is a model's mistake,
 * and says nothing. */
static bool name_symbols(finder *f) {
  const size_t n_given = f->out->dims.n;
  PSPLIT_VEC(psplit_dim_value) found = {0};
  bool ok = true;
  for (uint32_t v = 0; ok && v < f->graph->n_values; v++) {
    const psplit_i_seen *seen = &f->seen[v];
    const struct Onnx__TypeProto *declared = f->graph->values[v].declared_type;
    if (seen->rank < 0 || !declared || psplit_i_type_rank(declared) != seen->rank) continue;
    for (int32_t axis = 0; ok && axis < seen->rank; axis++) {
      const char *name = psplit_i_type_dim(declared, (uint32_t)axis).param;
      if (!name || !*name) continue;
      size_t i = 0;
      while (i < found.n && strcmp(found.items[i].name, name) != 0) i++;
      if (i == found.n)
        ok = psplit_i_vec_push(&found, ((psplit_dim_value){name, seen->dims[axis]}));
      else if (found.items[i].value != seen->dims[axis])
        found.items[i].value = -1;
    }
  }
  for (size_t i = 0; ok && i < found.n; i++) {
    size_t given = 0;
    while (given < n_given && strcmp(f->out->dims.items[given].name, found.items[i].name) != 0)
      given++;
    if (given == n_given && found.items[i].value >= 0)
      ok = psplit_i_vec_push(&f->out->dims, found.items[i]);
  }
  psplit_i_vec_fini(&found);
  return ok;
}

/* Values whose sizes the symbols do not tell. */
static psplit_code list_open(finder *f, psplit_i_arena *arena, psplit_diag *diag) {
  const size_t n_dims = f->out->dims.n;
  psplit_i_shapes *shapes = NULL;
  psplit_i_binding *bindings = PSPLIT_NEW(arena, psplit_i_binding, n_dims);
  if (!bindings) return psplit_i_nomem(diag);
  for (size_t i = 0; i < n_dims; i++)
    bindings[i] = (psplit_i_binding){f->out->dims.items[i].name, f->out->dims.items[i].value};
  psplit_code code = psplit_i_shapes_create(f->graph, bindings, n_dims, NULL, diag, &shapes);
  if (code != PSPLIT_OK) return code;
  for (uint32_t v = 0; v < f->graph->n_values; v++) {
    const psplit_i_vtype *type = psplit_i_shapes_type(shapes, v);
    bool open = type->rank != f->seen[v].rank;
    int64_t number;
    for (int32_t axis = 0; !open && axis < type->rank; axis++)
      open = !psplit_i_dim_is_const(psplit_i_shapes_dims(shapes), type->dims[axis], &number);
    if (f->seen[v].rank < 0 || !open) continue;
    if (!psplit_i_vec_push(&f->out->values, f->seen[v])) {
      code = psplit_i_nomem(diag);
      break;
    }
  }
  psplit_i_shapes_destroy(shapes);
  return code;
}

psplit_code psplit_i_run_sizes_find(const psplit_cost_table *table,
                                    const psplit_i_cost_names *names,
                                    const psplit_i_graph *optimized, const psplit_profiled_run *run,
                                    psplit_i_arena *arena, psplit_diag *diag,
                                    psplit_i_run_sizes *out) {
  finder f = {.graph = names->graph, .out = out};
  f.seen = psplit_i_arena_array(arena, f.graph->n_values, sizeof *f.seen);
  if (!f.seen) return psplit_i_nomem(diag);
  for (uint32_t v = 0; v < f.graph->n_values; v++) f.seen[v] = (psplit_i_seen){.rank = -1};
  for (size_t i = 0; i < run->n_inputs; i++)
    keep(&f, psplit_i_graph_find_value(f.graph, run->inputs[i].value), run->inputs[i].rank,
         run->inputs[i].dims);
  keep_rows(&f, table, names, optimized);
  bool ok = true;
  for (size_t i = 0; ok && i < run->n_dims; i++) ok = psplit_i_vec_push(&out->dims, run->dims[i]);
  if (!ok || !name_symbols(&f)) return psplit_i_nomem(diag);
  return list_open(&f, arena, diag);
}

void psplit_i_run_sizes_fini(psplit_i_run_sizes *sizes) {
  psplit_i_vec_fini(&sizes->dims);
  psplit_i_vec_fini(&sizes->values);
}
