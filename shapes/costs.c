/* Costs of a graph: assigns values to symbols, sums the work of nodes, and lists assumed
 * symbols. */
#include <stdlib.h>
#include <string.h>

#include "work_inside.h"

static const psplit_i_node_cost *cost_of(const psplit_i_costs *costs, uint32_t node) {
  return &costs->distinct.items[costs->node_cost[node]];
}

/* Weights that a last cache holds from run to run are read like anything else. */
static void keep_small_weights(psplit_i_costs *costs) {
  enum { LAST_CACHE_BYTES = 16000000 };
  const psplit_i_graph *graph = costs->shapes->graph;
  psplit_i_tally tally = {.costs = costs};
  uint64_t bytes = 0;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const psplit_i_vtype *type = psplit_i_shapes_type(costs->shapes, v);
    if (type->is_weight && graph->values[v].producer == PSPLIT_NONE)
      bytes = psplit_i_sat_add_u64(bytes, psplit_i_tally_bytes(&tally, type));
  }
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_work *work = &cost_of(costs, n)->work;
    if (work->op_class == PSPLIT_CLASS_CONSTANT || work->op_class == PSPLIT_CLASS_CONTROL)
      bytes = psplit_i_sat_add_u64(bytes, work->weight_bytes);
  }
  if (bytes > LAST_CACHE_BYTES) return;
  for (size_t i = 0; i < costs->distinct.n; i++) {
    costs->distinct.items[i].kernel.weight_bytes = 0;
    for (psplit_i_part *part = costs->distinct.items[i].parts; part; part = part->next)
      part->kernel.weight_bytes = 0;
  }
}

/* Sets out[s] for each symbol that is a size of an input; false when out of memory. */
static bool mark_input_symbols(psplit_i_costs *costs, bool *out) {
  const psplit_i_graph *graph = costs->shapes->graph;
  bool ok = true;
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const psplit_i_vtype *type = psplit_i_shapes_type(costs->shapes, graph->inputs[i]);
    for (int32_t axis = 0; ok && axis < type->rank; axis++)
      ok = psplit_i_dim_mark_symbols(costs->shapes->dims, type->dims[axis], costs->visited, out);
  }
  memset(costs->visited, 0, psplit_i_dims_count(costs->shapes->dims));
  return ok;
}

/* The first that was seen counts. What nodes take counts for sizes of inputs alone: others are what
 * a rule could tell of them. */
static void take_learned(const psplit_i_costs *costs, bool implied, bool *told, bool *fixed,
                         int64_t *symbol_value) {
  for (size_t i = costs->shapes->learned.n; i-- > 0;) {
    const psplit_i_learned *learned = &costs->shapes->learned.items[i];
    if (learned->implied != implied || (implied && !told[learned->symbol])) continue;
    symbol_value[learned->symbol] = learned->value;
    fixed[learned->symbol] = told[learned->symbol] = true;
  }
}

/* Evaluates with the sizes that are fixed, which then fix those that equal them. */
static void evaluate_fixed(psplit_i_costs *costs, const bool *told, bool *fixed,
                           int64_t *symbol_value) {
  const psplit_i_shapes *shapes = costs->shapes;
  psplit_i_dims_eval(shapes->dims, symbol_value, fixed, costs->value, costs->known);
  if (shapes->equal.n == 0) return;
  for (size_t i = shapes->equal.n; i-- > 0;) {
    const psplit_i_equal equal = shapes->equal.items[i];
    if (!told[equal.symbol] || !costs->known[equal.size]) continue;
    symbol_value[equal.symbol] = costs->value[equal.size];
    fixed[equal.symbol] = true;
  }
  psplit_i_dims_eval(shapes->dims, symbol_value, fixed, costs->value, costs->known);
}

static bool evaluate(psplit_i_costs *costs, const psplit_i_cost_options *options) {
  const psplit_i_dims *dims = costs->shapes->dims;
  const uint32_t n = psplit_i_dims_count(dims), n_symbols = psplit_i_dims_n_symbols(dims);
  costs->value = psplit_i_costs_take(costs, n, sizeof *costs->value);
  costs->known = psplit_i_costs_take(costs, n, sizeof *costs->known);
  costs->assumed = psplit_i_costs_take(costs, n, sizeof *costs->assumed);
  costs->data = psplit_i_costs_take(costs, n, sizeof *costs->data);
  costs->visited = psplit_i_costs_take(costs, n, 1);
  costs->needed = psplit_i_costs_take(costs, n_symbols, sizeof *costs->needed);
  int64_t *symbol_value = psplit_i_costs_take(costs, n_symbols, sizeof *symbol_value);
  bool *fixed = psplit_i_costs_take(costs, n_symbols, sizeof *fixed);
  bool *told =
    psplit_i_costs_take(costs, n_symbols, sizeof *told); /* fixed, or a size of an input */
  bool *follows = psplit_i_costs_take(costs, n_symbols, sizeof *follows); /* from other sizes */
  if (!costs->value || !costs->known || !costs->assumed || !costs->data || !costs->visited ||
      !costs->needed || !symbol_value || !fixed || !told || !follows ||
      !mark_input_symbols(costs, told))
    return false;
  for (size_t i = 0; i < costs->shapes->equal.n; i++)
    follows[costs->shapes->equal.items[i].symbol] = true;
  for (uint32_t s = 0; s < n_symbols; s++) {
    const int64_t assume = told[s] ? options->assume_input : options->assume_data;
    symbol_value[s] = assume < 0 ? 1 : assume;
  }
  take_learned(costs, true, told, fixed, symbol_value);
  for (uint32_t s = 0; s < n_symbols; s++) {
    const char *name = psplit_i_dims_symbol_name(dims, s);
    for (size_t b = 0; name && b < options->n_bindings; b++)
      if (strcmp(options->bindings[b].name, name) == 0) {
        symbol_value[s] = options->bindings[b].value;
        fixed[s] = told[s] = true;
      }
  }
  take_learned(costs, false, told, fixed, symbol_value);
  psplit_i_dims_eval(dims, symbol_value, told, costs->value, costs->known);
  for (uint32_t i = 0; i < n; i++) costs->data[i] = !costs->known[i];
  evaluate_fixed(costs, told, fixed, symbol_value);
  if (options->assume_input < 0 && options->assume_data < 0) return true;
  memcpy(costs->assumed, costs->known, n * sizeof *costs->known);
  for (uint32_t s = 0; s < n_symbols; s++)
    if (!fixed[s] && !follows[s])
      fixed[s] = (told[s] ? options->assume_input : options->assume_data) >= 0;
  evaluate_fixed(costs, told, fixed, symbol_value);
  for (uint32_t i = 0; i < n; i++) costs->assumed[i] = costs->known[i] && !costs->assumed[i];
  return true;
}

/* Sizes of inputs without a name. */
static bool list_missing_axes(psplit_i_costs *costs) {
  const psplit_i_shapes *shapes = costs->shapes;
  const psplit_i_graph *graph = shapes->graph;
  uint32_t n = 0;
  for (int pass = 0; pass < 2; pass++) {
    if (pass && !(costs->missing_axes = psplit_i_costs_take(costs, n, sizeof *costs->missing_axes)))
      return false;
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
      const psplit_i_vtype *type = psplit_i_shapes_type(shapes, graph->inputs[i]);
      for (int32_t axis = 0; axis < type->rank; axis++) {
        const uint32_t symbol = psplit_i_dim_symbol_number(shapes->dims, type->dims[axis]);
        if (symbol == PSPLIT_NONE || !costs->needed[symbol]) continue;
        if (psplit_i_dims_symbol_name(shapes->dims, symbol)) continue;
        if (pass)
          costs->missing_axes[costs->n_missing_axes++] =
            (psplit_i_input_axis){graph->inputs[i], axis};
        else
          n++;
      }
    }
  }
  return true;
}

/* What follows from other sizes needs those. */
static bool need_what_is_equal(psplit_i_costs *costs) {
  const psplit_i_shapes *shapes = costs->shapes;
  for (size_t i = 0; i < shapes->equal.n; i++) {
    const psplit_i_equal equal = shapes->equal.items[i];
    if (!costs->needed[equal.symbol]) continue;
    costs->needed[equal.symbol] = false;
    if (!psplit_i_dim_mark_symbols(shapes->dims, equal.size, costs->visited, costs->needed))
      return false;
  }
  return true;
}

static bool list_missing(psplit_i_costs *costs) {
  const psplit_i_dims *dims = costs->shapes->dims;
  const uint32_t n_symbols = psplit_i_dims_n_symbols(dims);
  costs->missing = psplit_i_costs_take(costs, n_symbols, sizeof *costs->missing);
  if (!costs->missing || !need_what_is_equal(costs)) return false;
  for (uint32_t s = 0; s < n_symbols; s++)
    if (costs->needed[s] && psplit_i_dims_symbol_name(dims, s))
      costs->missing[costs->n_missing++] = psplit_i_dims_symbol_name(dims, s);
  return list_missing_axes(costs);
}

psplit_code psplit_i_costs_create(const psplit_i_shapes *shapes,
                                  const psplit_i_cost_options *options, psplit_diag *diag,
                                  psplit_i_costs **out_costs) {
  static const psplit_i_cost_options nothing = {.assume_input = -1, .assume_data = -1};
  psplit_i_costs *costs = calloc(1, sizeof *costs);
  if (!costs) return psplit_i_nomem(diag);
  psplit_i_arena_init(&costs->arena, 0);
  costs->shapes = shapes;
  costs->node_cost = psplit_i_costs_take(costs, shapes->graph->n_nodes, sizeof *costs->node_cost);
  costs->scopes = psplit_i_costs_take(costs, shapes->n_scopes, sizeof *costs->scopes);
  costs->scope_done = psplit_i_costs_take(costs, shapes->n_scopes, sizeof *costs->scope_done);
  bool fine = costs->node_cost && costs->scopes && costs->scope_done &&
              evaluate(costs, options ? options : &nothing) && psplit_i_costs_count(costs);
  if (fine) keep_small_weights(costs);
  fine = fine && !costs->failed && list_missing(costs);
  if (!fine) {
    psplit_i_costs_destroy(costs);
    return psplit_i_nomem(diag);
  }
  *out_costs = costs;
  return PSPLIT_OK;
}

void psplit_i_costs_destroy(psplit_i_costs *costs) {
  if (!costs) return;
  psplit_i_vec_fini(&costs->distinct);
  psplit_i_arena_fini(&costs->arena);
  free(costs);
}

psplit_work psplit_i_costs_node(const psplit_i_costs *costs, uint32_t node) {
  return cost_of(costs, node)->work;
}
const psplit_i_part *psplit_i_costs_parts(const psplit_i_costs *costs, uint32_t node) {
  return cost_of(costs, node)->parts;
}
psplit_i_kernel psplit_i_costs_kernel(const psplit_i_costs *costs, uint32_t node) {
  return cost_of(costs, node)->kernel;
}
bool psplit_i_costs_node_assumed(const psplit_i_costs *costs, uint32_t node) {
  return cost_of(costs, node)->assumed;
}
psplit_i_data_dependence psplit_i_costs_node_data(const psplit_i_costs *costs, uint32_t node) {
  const psplit_i_node_cost *cost = cost_of(costs, node);
  return cost->data_heavy ? PSPLIT_I_DATA_HEAVY
         : cost->data     ? PSPLIT_I_DATA_LIGHT
                          : PSPLIT_I_DATA_NONE;
}
uint32_t psplit_i_costs_n_unknown(const psplit_i_costs *costs) { return costs->n_unknown; }
uint32_t psplit_i_costs_n_assumed(const psplit_i_costs *costs) { return costs->n_assumed; }
uint32_t psplit_i_costs_n_data(const psplit_i_costs *costs) { return costs->n_data; }

const char *psplit_i_costs_missing(const psplit_i_costs *costs, uint32_t index) {
  return index < costs->n_missing ? costs->missing[index] : NULL;
}

bool psplit_i_costs_missing_axis(const psplit_i_costs *costs, uint32_t index, uint32_t *out_value,
                                 int32_t *out_axis) {
  if (index >= costs->n_missing_axes) return false;
  *out_value = costs->missing_axes[index].value;
  *out_axis = costs->missing_axes[index].axis;
  return true;
}

bool psplit_i_costs_dim(const psplit_i_costs *costs, psplit_dim dim, int64_t *out) {
  if (!costs->known[dim] || costs->assumed[dim]) return false;
  *out = costs->value[dim];
  return true;
}

bool psplit_i_costs_value_bytes(const psplit_i_costs *costs, uint32_t value, uint64_t *out_bytes,
                                bool *out_assumed) {
  const psplit_i_vtype *type = psplit_i_shapes_type(costs->shapes, value);
  const uint32_t bits = psplit_i_dtype_bits(type->elem);
  if (type->kind != PSPLIT_TYPE_TENSOR || type->rank < 0 || bits == 0) return false;
  uint64_t n = 1;
  bool zero = false, assumed = false;
  for (int32_t axis = 0; axis < type->rank; axis++) {
    const psplit_dim dim = type->dims[axis];
    if (!costs->known[dim] || costs->value[dim] < 0) return false;
    zero |= costs->value[dim] == 0;
    assumed |= costs->assumed[dim];
    n = psplit_i_sat_mul_u64(n, (uint64_t)costs->value[dim]);
  }
  if (zero) n = 0;
  *out_bytes =
    bits % 8 == 0 ? psplit_i_sat_mul_u64(n, bits / 8) : n / 8 * bits + (n % 8 * bits + 7) / 8;
  if (out_assumed) *out_assumed = assumed;
  return true;
}

bool psplit_i_costs_value_data(const psplit_i_costs *costs, uint32_t value) {
  const psplit_i_vtype *type = psplit_i_shapes_type(costs->shapes, value);
  uint64_t bytes;
  bool data = !psplit_i_costs_value_bytes(costs, value, &bytes, NULL);
  for (int32_t axis = 0; axis < type->rank; axis++) data |= costs->data[type->dims[axis]];
  return data;
}
