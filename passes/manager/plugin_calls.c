/* The pass manager's side of a plugin's pass: the functions it is handed, and the check behind it.
 * Every id that comes from a plugin is tested here; nothing of a plugin can break the planner but
 * its own code.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"
#include "plugin.h"

struct psplit_plugin_planner {
  psplit_planner *planner;
  const char *pass;            /* the one that runs */
  char why[512];               /* what the pass gave `fail` */
  uint32_t torn_from, torn_to; /* two nodes that must_group could not join, or NONE */
  bool no_memory;
};

static const psplit_i_node *node_at(const psplit_plugin_planner *u, uint32_t node) {
  static const psplit_i_node absent = {.name = "", .op_type = "", .domain = "", .overload = ""};
  return node < u->planner->graph->n_nodes ? &u->planner->graph->nodes[node] : &absent;
}

static bool is_value(const psplit_plugin_planner *u, uint32_t value) {
  return value < u->planner->graph->n_values;
}

static uint32_t n_nodes(const psplit_plugin_planner *u) { return u->planner->graph->n_nodes; }
static uint32_t n_values(const psplit_plugin_planner *u) { return u->planner->graph->n_values; }
static uint32_t n_stages(const psplit_plugin_planner *u) { return u->planner->options.n_stages; }
static const uint32_t *topological_order(const psplit_plugin_planner *u) {
  return u->planner->graph->topo;
}

static const char *node_name(const psplit_plugin_planner *u, uint32_t node) {
  return node_at(u, node)->name;
}

static const char *node_op_type(const psplit_plugin_planner *u, uint32_t node) {
  return node_at(u, node)->op_type;
}

static const char *node_domain(const psplit_plugin_planner *u, uint32_t node) {
  return node_at(u, node)->domain;
}

static uint32_t node_inputs(const psplit_plugin_planner *u, uint32_t node, const uint32_t **out) {
  *out = node_at(u, node)->inputs;
  return node_at(u, node)->n_inputs;
}

static uint32_t node_outputs(const psplit_plugin_planner *u, uint32_t node, const uint32_t **out) {
  *out = node_at(u, node)->outputs;
  return node_at(u, node)->n_outputs;
}

static uint32_t node_captures(const psplit_plugin_planner *u, uint32_t node, const uint32_t **out) {
  *out = node_at(u, node)->captures;
  return node_at(u, node)->n_captures;
}

static bool node_is_constant(const psplit_plugin_planner *u, uint32_t node) {
  return node < n_nodes(u) && (u->planner->node_flags[node] & PSPLIT_I_NODE_FREE);
}

static const char *value_name(const psplit_plugin_planner *u, uint32_t value) {
  return is_value(u, value) ? u->planner->graph->values[value].name : "";
}

static uint32_t value_producer(const psplit_plugin_planner *u, uint32_t value) {
  return is_value(u, value) ? u->planner->graph->values[value].producer : PSPLIT_NONE;
}

static uint32_t value_consumers(const psplit_plugin_planner *u, uint32_t value,
                                const uint32_t **out) {
  const psplit_i_graph *graph = u->planner->graph;
  *out = is_value(u, value) ? graph->consumers + graph->consumer_off[value] : NULL;
  return is_value(u, value) ? graph->consumer_off[value + 1] - graph->consumer_off[value] : 0;
}

static bool value_is_constant(const psplit_plugin_planner *u, uint32_t value) {
  return is_value(u, value) && psplit_i_planner_is_constant(u->planner, value);
}

static bool value_is_input(const psplit_plugin_planner *u, uint32_t value) {
  return is_value(u, value) && u->planner->graph->values[value].input != PSPLIT_NONE &&
         !value_is_constant(u, value);
}

static bool value_is_output(const psplit_plugin_planner *u, uint32_t value) {
  return is_value(u, value) && u->planner->graph->values[value].is_output;
}

static bool attr_int(const psplit_plugin_planner *u, uint32_t node, const char *name,
                     int64_t *out) {
  return node < n_nodes(u) && psplit_i_attr_int(node_at(u, node), name, out);
}

static bool attr_float(const psplit_plugin_planner *u, uint32_t node, const char *name,
                       float *out) {
  return node < n_nodes(u) && psplit_i_attr_float(node_at(u, node), name, out);
}

static bool attr_string(const psplit_plugin_planner *u, uint32_t node, const char *name,
                        const char **out, size_t *out_n) {
  return node < n_nodes(u) && psplit_i_attr_string(node_at(u, node), name, out, out_n);
}

static bool attr_ints(const psplit_plugin_planner *u, uint32_t node, const char *name,
                      const int64_t **out, size_t *out_n) {
  return node < n_nodes(u) && psplit_i_attr_ints(node_at(u, node), name, out, out_n);
}

static int32_t value_dtype(const psplit_plugin_planner *u, uint32_t value) {
  return is_value(u, value) ? psplit_i_shapes_type(u->planner->shapes, value)->elem : 0;
}

static int32_t value_rank(const psplit_plugin_planner *u, uint32_t value) {
  return is_value(u, value) ? psplit_i_shapes_type(u->planner->shapes, value)->rank : -1;
}

static int64_t value_dim(const psplit_plugin_planner *u, uint32_t value, uint32_t axis) {
  int64_t dim = -1;
  if (value_rank(u, value) > 0 && axis < (uint32_t)value_rank(u, value) &&
      !psplit_i_costs_dim(u->planner->costs,
                          psplit_i_shapes_type(u->planner->shapes, value)->dims[axis], &dim))
    return -1;
  return dim;
}

static bool value_bytes(const psplit_plugin_planner *u, uint32_t value, uint64_t *out) {
  uint64_t bytes;
  bool assumed;
  if (!is_value(u, value) ||
      !psplit_i_costs_value_bytes(u->planner->costs, value, &bytes, &assumed) || assumed)
    return false;
  *out = bytes;
  return true;
}

static const char *stage_device(const psplit_plugin_planner *u, uint32_t stage) {
  return stage < n_stages(u) ? psplit_devices_name(u->planner->devices, stage) : "";
}

static int64_t node_ns(const psplit_plugin_planner *u, uint32_t node, uint32_t stage) {
  if (node >= n_nodes(u) || stage >= n_stages(u)) return 0;
  return u->planner->node_ns[(size_t)u->planner->device_class[stage] * n_nodes(u) + node];
}

static uint32_t group_of(const psplit_plugin_planner *u, uint32_t node) {
  return node < n_nodes(u) && !node_is_constant(u, node)
           ? psplit_i_group_of(&u->planner->grouping, node)
           : PSPLIT_NONE;
}

/* Joins what can be grouped of `nodes`; constants go wherever they are read anyway. */
static bool group(psplit_plugin_planner *u, const uint32_t *nodes, size_t n) {
  uint32_t *real = malloc((n + 1) * sizeof *real);
  uint32_t n_real = 0;
  if (!real) {
    u->no_memory = true;
    return false;
  }
  for (size_t i = 0; i < n && i < UINT32_MAX - 1; i++)
    if (group_of(u, nodes[i]) != PSPLIT_NONE) real[n_real++] = nodes[i];
  bool joined = n_real == 0;
  if (n_real &&
      psplit_i_group_merge(&u->planner->grouping, real, n_real, NULL, &joined) != PSPLIT_OK)
    u->no_memory = true;
  free(real);
  return joined;
}

static void must_group(psplit_plugin_planner *u, const uint32_t *nodes, size_t n) {
  if (group(u, nodes, n) || u->torn_from != PSPLIT_NONE) return;
  for (size_t i = 0; i < n && u->torn_to == PSPLIT_NONE; i++) {
    if (group_of(u, nodes[i]) == PSPLIT_NONE) continue;
    if (u->torn_from == PSPLIT_NONE)
      u->torn_from = nodes[i];
    else if (group_of(u, nodes[i]) != group_of(u, u->torn_from))
      u->torn_to = nodes[i];
  }
}

static void keep_together(psplit_plugin_planner *u, const uint32_t *nodes, size_t n) {
  psplit_planner *planner = u->planner;
  const uint32_t class_id = planner->n_together++;
  for (size_t i = 0; i < n; i++) {
    if (nodes[i] >= n_nodes(u) || node_is_constant(u, nodes[i])) continue;
    const uint32_t old = planner->together[nodes[i]];
    planner->together[nodes[i]] = class_id;
    for (uint32_t m = 0; old != PSPLIT_NONE && old != class_id && m < n_nodes(u); m++)
      if (planner->together[m] == old) planner->together[m] = class_id;
  }
}

static void forbid_cut(psplit_plugin_planner *u, uint32_t value) {
  if (is_value(u, value)) u->planner->uncuttable[value] = 1;
}

static void set_cost(psplit_plugin_planner *u, uint32_t node, uint32_t stage, int64_t ns) {
  psplit_planner *planner = u->planner;
  if (node >= n_nodes(u) || ns < 0 || (stage != PSPLIT_NONE && stage >= n_stages(u))) return;
  for (uint32_t c = 0; c < planner->n_classes; c++)
    if (stage == PSPLIT_NONE || planner->device_class[stage] == c)
      planner->node_ns[(size_t)c * n_nodes(u) + node] = ns;
}

static bool pin(psplit_plugin_planner *u, uint32_t node, uint32_t stage) {
  const uint32_t leader = group_of(u, node);
  if (leader == PSPLIT_NONE || stage >= n_stages(u)) return false;
  uint32_t *group_pin = &u->planner->grouping.pin[leader];
  if (*group_pin != PSPLIT_NONE && *group_pin != stage) return false;
  *group_pin = u->planner->pin[node] = stage;
  return true;
}

static bool note(psplit_plugin_planner *u, uint32_t node, const char *text) {
  if ((node >= n_nodes(u) && node != PSPLIT_PLUGIN_NONE) || !text) return false;
  const char *copy = psplit_i_arena_strndup(&u->planner->arena, text, strlen(text));
  return copy && psplit_i_vec_push(&u->planner->notes, ((psplit_i_note){node, u->pass, copy}));
}

static void say(psplit_plugin_planner *u, const char *text) {
  if (text) psplit_i_say(u->planner->options.logger, PSPLIT_NOTE, "%s", text);
}

static void fail(psplit_plugin_planner *u, const char *text) {
  const size_t n = text ? strlen(text) : 0;
  const size_t kept = n < sizeof u->why ? n : sizeof u->why - 1;
  if (kept) memcpy(u->why, text, kept);
  u->why[kept] = '\0';
}

static psplit_code judge(const psplit_plugin_planner *u, const psplit_i_pass *pass, int status,
                         psplit_diag *diag) {
  char a[128], b[128];
  if (u->no_memory) return psplit_i_nomem(diag);
  if (status != 0)
    return psplit_i_fail(diag, PSPLIT_PLUGIN, "pass %s failed with %d%s%s", pass->name, status,
                         *u->why ? ": " : "", u->why);
  if (u->torn_from != PSPLIT_NONE)
    return psplit_i_fail(
      diag, PSPLIT_PLUGIN,
      "pass %s is refused: its group with %s and %s is not convex, or joins two pins", pass->name,
      psplit_i_node_label(u->planner->graph, u->torn_from, a, sizeof a),
      u->torn_to == PSPLIT_NONE ? "another"
                                : psplit_i_node_label(u->planner->graph, u->torn_to, b, sizeof b));
  psplit_diag found = {0};
  if (psplit_i_check_groups(u->planner, &found) != PSPLIT_OK)
    return psplit_i_fail(diag, found.code == PSPLIT_NOMEM ? PSPLIT_NOMEM : PSPLIT_PLUGIN,
                         "pass %s is refused: %s", pass->name, found.message);
  return PSPLIT_OK;
}

psplit_code psplit_i_plugin_run(psplit_planner *planner, const psplit_i_pass *pass,
                                const psplit_i_option_value *values, psplit_diag *diag) {
  const psplit_plugin_host host = {
    .struct_size = sizeof host,
    .abi = PSPLIT_PLUGIN_ABI,
    .version = psplit_version(),
    .n_nodes = n_nodes,
    .n_values = n_values,
    .n_stages = n_stages,
    .topological_order = topological_order,
    .node_name = node_name,
    .node_op_type = node_op_type,
    .node_domain = node_domain,
    .node_inputs = node_inputs,
    .node_outputs = node_outputs,
    .node_captures = node_captures,
    .node_is_constant = node_is_constant,
    .value_name = value_name,
    .value_producer = value_producer,
    .value_consumers = value_consumers,
    .value_is_constant = value_is_constant,
    .value_is_input = value_is_input,
    .value_is_output = value_is_output,
    .attr_int = attr_int,
    .attr_float = attr_float,
    .attr_string = attr_string,
    .attr_ints = attr_ints,
    .value_dtype = value_dtype,
    .value_rank = value_rank,
    .value_dim = value_dim,
    .value_bytes = value_bytes,
    .stage_device = stage_device,
    .node_ns = node_ns,
    .group_of = group_of,
    .group = group,
    .must_group = must_group,
    .keep_together = keep_together,
    .forbid_cut = forbid_cut,
    .set_cost = set_cost,
    .pin = pin,
    .note = note,
    .say = say,
    .fail = fail,
  };
  psplit_plugin_value given[PSPLIT_I_MAX_OPTIONS];
  for (size_t o = 0; o < pass->n_options; o++) {
    switch (pass->options[o].type) {
      case PSPLIT_I_OPTION_INT: given[o].integer = values[o].integer; break;
      case PSPLIT_I_OPTION_REAL: given[o].real = values[o].real; break;
      case PSPLIT_I_OPTION_TEXT: given[o].text = values[o].text; break;
      case PSPLIT_I_OPTION_BOOL: given[o].boolean = values[o].boolean; break;
    }
  }
  psplit_plugin_planner u = {
    .planner = planner, .pass = pass->name, .torn_from = PSPLIT_NONE, .torn_to = PSPLIT_NONE};
  const int status = pass->plugin->run(&host, &u, given);
  return judge(&u, pass, status, diag);
}
