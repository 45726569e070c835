/* Finding a pattern around an anchor: depth-first over the steps, with the bindings undone on the
 * way back. A budget of attempts per anchor keeps the whole linear in the number of nodes. */
#include <math.h>
#include <string.h>

#include "node_flags.h"
#include "operator.h"
#include "pattern.h"

enum { MAX_ATTEMPTS = 4000 };

typedef struct matcher {
  const psplit_i_match_input *input;
  const psplit_i_graph *graph;
  const psplit_i_patterns *table;
  const psplit_i_pattern *pattern;
  uint32_t bound[PSPLIT_I_PATTERN_NAMES]; /* value of each name, or PSPLIT_NONE */
  uint32_t nodes[PSPLIT_I_PATTERN_STEPS]; /* those found so far, in the order of the steps */
  uint32_t n_nodes;
  unsigned n_attempts;
  psplit_code code; /* why the search ends early; with it nothing matches any more */
  psplit_diag *diag;
} matcher;

static bool match_from(matcher *m, uint32_t step_index);

static bool op_fits(const psplit_i_patterns *table, const psplit_i_step_pattern *step,
                    const psplit_i_node *node) {
  for (uint32_t i = step->first_op; i < step->first_op + step->n_ops; i++) {
    const psplit_i_pattern_op *op = &table->ops.items[i];
    if (strcmp(op->op_type, "*") != 0 && strcmp(op->op_type, node->op_type) != 0) continue;
    if (op->domain
          ? strcmp(op->domain, node->domain) == 0
          : !*node->domain || strcmp(node->domain, "com.microsoft") == 0 || op->op_type[0] == '*')
      return true;
  }
  return false;
}

bool psplit_i_pattern_names(const psplit_i_patterns *patterns, const psplit_i_pattern *pattern,
                            const char *op_type) {
  const psplit_i_step_pattern *step = &patterns->steps.items[pattern->first_step];
  for (uint32_t i = step->first_op; i < step->first_op + step->n_ops; i++)
    if (strcmp(patterns->ops.items[i].op_type, "*") == 0 ||
        strcmp(patterns->ops.items[i].op_type, op_type) == 0)
      return true;
  return false;
}

static bool is_constant(const matcher *m, uint32_t value) {
  return psplit_i_value_is_constant(m->graph, m->input->node_flags, value);
}

/* A constant whose elements all are `number`, to a thousandth; one that cannot be read (computed,
 * large, of another type) is given the benefit of the doubt. */
static bool is_number(matcher *m, uint32_t value, double number) {
  if (m->code != PSPLIT_OK || !is_constant(m, value)) return false;
  const psplit_i_value *v = &m->graph->values[value];
  psplit_i_tensor tensor = {0};
  if (v->producer == PSPLIT_NONE && v->initializer != PSPLIT_NONE) {
    tensor = psplit_i_graph_initializer(m->graph, v->initializer);
  } else if (v->producer != PSPLIT_NONE &&
             psplit_i_attr_tensor(&m->graph->nodes[v->producer], "value")) {
    tensor = psplit_i_tensor_of(psplit_i_attr_tensor(&m->graph->nodes[v->producer], "value"));
  } else {
    return true;
  }
  enum { MAX_READ = 16 };
  const double *reals;
  const int64_t *integers;
  size_t n;
  psplit_i_arena *scratch = m->input->scratch;
  const psplit_model *model = m->graph->model;
  const double tolerance = 1e-3 * (fabs(number) > 1e-3 ? fabs(number) : 1e-3);
  m->code = psplit_i_tensor_doubles(model, &tensor, MAX_READ, scratch, m->diag, &reals, &n);
  if (m->code != PSPLIT_OK) return false;
  for (size_t i = 0; reals && i < n; i++)
    if (!(fabs(reals[i] - number) <= tolerance)) return false;
  if (reals) return true;
  m->code = psplit_i_tensor_int64s(model, &tensor, MAX_READ, scratch, m->diag, &integers, &n);
  if (m->code != PSPLIT_OK) return false;
  for (size_t i = 0; integers && i < n; i++)
    if (!(fabs((double)integers[i] - number) <= tolerance)) return false;
  return true;
}

static bool is_member(const matcher *m, uint32_t node) {
  for (uint32_t i = 0; i < m->n_nodes; i++)
    if (m->nodes[i] == node) return true;
  return false;
}

static bool stays_inside(const matcher *m, uint32_t value) {
  const psplit_i_graph *graph = m->graph;
  if (graph->values[value].is_output) return false;
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
    if (!is_member(m, graph->consumers[c])) return false;
  return true;
}

/* Whether everything that is made inside is read inside, but for what may leave. */
static bool is_closed(const matcher *m) {
  uint64_t outs = m->pattern->outs;
  for (uint32_t i = 0; i < m->n_nodes; i++) {
    const psplit_i_node *node = &m->graph->nodes[m->nodes[i]];
    for (uint32_t o = 0; o < node->n_outputs; o++) {
      const uint32_t value = node->outputs[o];
      bool may_leave = value == PSPLIT_NONE;
      for (uint32_t name = 0; name < m->pattern->n_names && !may_leave; name++)
        may_leave = outs >> name & 1 && m->bound[name] == value;
      if (!may_leave && !stays_inside(m, value)) return false;
    }
  }
  return true;
}

static bool bind(matcher *m, uint32_t name, uint32_t value) {
  if (value == PSPLIT_NONE) return false;
  if (m->bound[name] == PSPLIT_NONE) m->bound[name] = value;
  return m->bound[name] == value;
}

static bool operand_fits(matcher *m, const psplit_i_operand *operand, const psplit_i_node *node,
                         uint32_t position) {
  if (operand->kind == PSPLIT_I_OPERAND_ANYWHERE) {
    for (uint32_t i = 0; i < node->n_inputs; i++)
      if (node->inputs[i] != PSPLIT_NONE && node->inputs[i] == m->bound[operand->name]) return true;
    return false;
  }
  const uint32_t value = position < node->n_inputs ? node->inputs[position] : PSPLIT_NONE;
  if (operand->kind == PSPLIT_I_OPERAND_ANY) return true;
  if (value == PSPLIT_NONE) return false;
  switch (operand->kind) {
    case PSPLIT_I_OPERAND_CONST: return is_constant(m, value);
    case PSPLIT_I_OPERAND_NUMBER: return is_number(m, value, operand->number);
    default: return bind(m, operand->name, value);
  }
}

/* Binds inputs and outputs of `node` to the step; `swapped` exchanges the first two inputs. */
static bool bind_node(matcher *m, const psplit_i_step_pattern *step, uint32_t id, bool swapped) {
  const psplit_i_node *node = &m->graph->nodes[id];
  bool open_ended = false;
  uint32_t n_positions = 0;
  for (uint32_t o = 0; o < step->n_operands; o++) {
    const psplit_i_operand *operand = &step->operands[o];
    if (operand->kind == PSPLIT_I_OPERAND_REST || operand->kind == PSPLIT_I_OPERAND_ANYWHERE)
      open_ended = true;
    if (operand->kind == PSPLIT_I_OPERAND_REST) continue;
    const uint32_t position = swapped && o < 2 ? 1 - o : o;
    if (!operand_fits(m, operand, node, position)) return false;
    n_positions++;
  }
  if (!open_ended && node->n_inputs > n_positions) return false;
  for (uint32_t r = 0; r < step->n_results; r++) {
    const uint32_t value = r < node->n_outputs ? node->outputs[r] : PSPLIT_NONE;
    if (step->results[r] == PSPLIT_NONE || (value == PSPLIT_NONE && r > 0)) continue;
    if (!bind(m, step->results[r], value)) return false;
  }
  return true;
}

static bool is_commutative(const psplit_i_node *node) {
  return node->n_inputs == 2 && psplit_i_node_has(node, PSPLIT_I_OP_COMMUTATIVE);
}

/* Takes `id` for the step and goes on with the rest. `source` is the value that an optional step
 * carries on from: nothing but the match may read it. PSPLIT_NONE for other steps. */
static bool try_node(matcher *m, uint32_t step_index, uint32_t id, uint32_t source) {
  const psplit_i_step_pattern *step = &m->table->steps.items[m->pattern->first_step + step_index];
  const psplit_i_node *node = &m->graph->nodes[id];
  if (m->code != PSPLIT_OK || ++m->n_attempts > MAX_ATTEMPTS || is_member(m, id) ||
      !op_fits(m->table, step, node) || !psplit_i_node_runs(m->input->node_flags[id]))
    return false;
  uint32_t saved[PSPLIT_I_PATTERN_NAMES];
  memcpy(saved, m->bound, sizeof saved);
  const unsigned n_orders = is_commutative(node) && step->n_operands == 2 ? 2 : 1;
  for (unsigned order = 0; order < n_orders; order++) {
    m->nodes[m->n_nodes++] = id;
    if (bind_node(m, step, id, order == 1) && (source == PSPLIT_NONE || stays_inside(m, source)) &&
        match_from(m, step_index + 1))
      return true;
    m->n_nodes--;
    memcpy(m->bound, saved, sizeof saved);
  }
  return false;
}

/* Of the operands that are known, the one with the fewest readers; PSPLIT_NONE if none is. */
static uint32_t least_read_operand(const matcher *m, const psplit_i_step_pattern *step) {
  const uint32_t *off = m->graph->consumer_off;
  uint32_t best = PSPLIT_NONE;
  for (uint32_t o = 0; o < step->n_operands; o++) {
    const psplit_i_operand *operand = &step->operands[o];
    if (operand->kind != PSPLIT_I_OPERAND_VALUE && operand->kind != PSPLIT_I_OPERAND_ANYWHERE)
      continue;
    const uint32_t value = m->bound[operand->name];
    if (value == PSPLIT_NONE) continue;
    if (best == PSPLIT_NONE || off[value + 1] - off[value] < off[best + 1] - off[best])
      best = value;
  }
  return best;
}

/* Where the step can be: the producer of a result that is known, or the readers of an operand. */
static bool try_candidates(matcher *m, uint32_t step_index) {
  const psplit_i_graph *graph = m->graph;
  const psplit_i_step_pattern *step = &m->table->steps.items[m->pattern->first_step + step_index];
  for (uint32_t r = 0; r < step->n_results; r++) {
    const uint32_t value =
      step->results[r] == PSPLIT_NONE ? PSPLIT_NONE : m->bound[step->results[r]];
    if (value == PSPLIT_NONE) continue;
    const uint32_t producer = graph->values[value].producer;
    const bool may_leave = !step->optional || m->pattern->outs >> step->results[r] & 1;
    return producer != PSPLIT_NONE &&
           try_node(m, step_index, producer, may_leave ? PSPLIT_NONE : value);
  }
  const uint32_t value = least_read_operand(m, step);
  if (value == PSPLIT_NONE) return false;
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
    if (m->n_attempts > MAX_ATTEMPTS) return false;
    if (try_node(m, step_index, graph->consumers[c], step->optional ? value : PSPLIT_NONE))
      return true;
  }
  return false;
}

/* An optional step that is not there: its first result and its first named operand are one value,
 * whichever of the two is known. */
static bool skip_step(matcher *m, uint32_t step_index) {
  const psplit_i_step_pattern *step = &m->table->steps.items[m->pattern->first_step + step_index];
  uint32_t *result = step->results[0] == PSPLIT_NONE ? NULL : &m->bound[step->results[0]];
  uint32_t *operand = NULL;
  for (uint32_t o = 0; o < step->n_operands && !operand; o++)
    if (step->operands[o].kind == PSPLIT_I_OPERAND_VALUE ||
        step->operands[o].kind == PSPLIT_I_OPERAND_ANYWHERE)
      operand = &m->bound[step->operands[o].name];
  const uint32_t old_result = result ? *result : PSPLIT_NONE;
  const uint32_t old_operand = operand ? *operand : PSPLIT_NONE;
  if (result && operand && *result == PSPLIT_NONE)
    *result = *operand;
  else if (result && operand && *operand == PSPLIT_NONE)
    *operand = *result;
  if (match_from(m, step_index + 1)) return true;
  if (result) *result = old_result;
  if (operand) *operand = old_operand;
  return false;
}

static bool match_from(matcher *m, uint32_t step_index) {
  if (m->code != PSPLIT_OK) return false;
  if (step_index == m->pattern->n_steps) return is_closed(m);
  if (m->n_attempts > MAX_ATTEMPTS) return false;
  if (try_candidates(m, step_index)) return true;
  const bool optional = m->table->steps.items[m->pattern->first_step + step_index].optional;
  return optional && skip_step(m, step_index);
}

psplit_code psplit_i_pattern_match(const psplit_i_match_input *input,
                                   const psplit_i_patterns *patterns,
                                   const psplit_i_pattern *pattern, uint32_t anchor,
                                   psplit_diag *diag, uint32_t out_nodes[PSPLIT_I_PATTERN_STEPS],
                                   uint32_t *out_n) {
  matcher m = {
    .input = input, .graph = input->graph, .table = patterns, .pattern = pattern, .diag = diag};
  *out_n = 0;
  for (uint32_t i = 0; i < PSPLIT_I_PATTERN_NAMES; i++) m.bound[i] = PSPLIT_NONE;
  if (!try_node(&m, 0, anchor, PSPLIT_NONE)) return m.code;
  memcpy(out_nodes, m.nodes, m.n_nodes * sizeof *m.nodes);
  *out_n = m.n_nodes;
  return PSPLIT_OK;
}
