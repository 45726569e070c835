/* Times of nodes from tables of costs.
 *
 * A row's time is shared among its nodes in proportion to their roofline on the first device, where
 * the tables are taken to come from. A node without a row takes no time if the table is complete (a
 * profile has a row for every kernel that ran); else it takes its roofline times the one factor
 * that makes the rooflines of the other nodes add up to their measured times. On another kind of
 * device a node takes as much longer as its roofline does. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cost_table.h"
#include "operator.h"
#include "planner.h"

/* Times of the nodes, ns; what a later table says replaces an earlier one's. */
typedef struct times {
  double *ns;       /* [n_nodes] */
  uint8_t *covered; /* [n_nodes] 1 + the table it comes from; 0: none */
  bool complete, measured;
  double move_ns, move_roofline_ns; /* of kernels that mostly move bytes of images */
} times;

static const double MOST_NS = 9e18;

/* Moving bytes over what it would take from memory: tensors of stages lie mostly in caches. */
static const double IN_CACHES = 0.6;
/* What is measured of that counts where it is enough to go by. */
static const double MANY_MOVES_NS = 1e5;

int64_t psplit_i_whole_ns(double ns) {
  return ns >= MOST_NS ? INT64_MAX : ns > 0 ? (int64_t)llround(ns) : 0;
}

static double roofline(const psplit_planner *planner, uint32_t node) {
  return (double)planner->node_ns[node];
}

/* A time for a row that gives work instead of one: its heaviest node says what kind of work. */
static double time_of_work(const psplit_planner *planner, const psplit_i_cost_row *row,
                           const uint32_t *nodes, uint32_t n) {
  uint32_t heaviest = nodes[0];
  for (uint32_t i = 1; i < n; i++)
    if (planner->node_ns[nodes[i]] > planner->node_ns[heaviest]) heaviest = nodes[i];
  psplit_work work = psplit_i_costs_node(planner->costs, heaviest);
  work.flops = row->flops;
  work.bytes_read = row->bytes;
  work.bytes_written = 0;
  return (double)psplit_devices_work_ns(planner->devices, planner->class_device[0], &work);
}

/* In whole ns, so that they add up to the time of the row once more. */
static void share(const psplit_planner *planner, double ns, uint8_t mark, const uint32_t *nodes,
                  uint32_t n, times *t) {
  double sum = 0, before = 0, given = 0;
  for (uint32_t i = 0; i < n; i++) sum += roofline(planner, nodes[i]);
  for (uint32_t i = 0; i < n; i++) {
    if (t->covered[nodes[i]] != mark) t->ns[nodes[i]] = 0;
    t->covered[nodes[i]] = mark;
    before += sum > 0 ? roofline(planner, nodes[i]) / sum : 1.0 / n;
    const double until = i + 1 < n ? floor(ns * before + 0.5) : ns;
    t->ns[nodes[i]] += until - given;
    given = until;
  }
}

/* A kernel's workspace is there while any of its nodes is. */
static void keep_workspace(psplit_planner *planner, uint64_t bytes, const uint32_t *nodes,
                           uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (bytes > planner->node_workspace_bytes[nodes[i]])
      planner->node_workspace_bytes[nodes[i]] = bytes;
}

/* What the row tells of layouts. */
static void note_layout(psplit_planner *planner, const psplit_i_cost_row *row, double ns,
                        const uint32_t *nodes, uint32_t n, times *t) {
  bool moves = n > 0;
  double roofline_ns = 0;
  for (uint32_t i = 0; i < n; i++) {
    const psplit_work work = psplit_i_costs_node(planner->costs, nodes[i]);
    moves &= psplit_i_node_has(&planner->graph->nodes[nodes[i]], PSPLIT_I_OP_KEEPS_BLOCKS) &&
             work.op_class != PSPLIT_CLASS_NORM &&
             work.flops <= (work.bytes_read + work.bytes_written) / sizeof(float);
    roofline_ns += roofline(planner, nodes[i]);
    if (row->tells_layout)
      planner->node_layout[nodes[i]] =
        row->blocked ? PSPLIT_I_LAYOUT_BLOCKED : PSPLIT_I_LAYOUT_PLAIN;
  }
  if (!moves) return;
  t->move_ns += ns;
  t->move_roofline_ns += roofline_ns;
}

static psplit_code nothing_matches(const psplit_cost_table *table, const psplit_i_graph *graph,
                                   psplit_diag *diag) {
  char label[128];
  if (!table->rows.n)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "%s: it has the times of no node; take a costs file of this model",
                         table->name);
  return psplit_i_fail(
    diag, PSPLIT_INVALID,
    "%s: none of its %zu rows is about a node of this model: it has \"%.100s\", the model "
    "\"%.100s\"; take a costs file of the same model",
    table->name, table->rows.n, table->rows.items[0].label,
    graph->n_nodes ? psplit_i_node_label(graph, 0, label, sizeof label) : "no nodes");
}

/* Times of one size beside transfers and memory of another are no plan. */
static void say_other_sizes(const psplit_planner *planner, const psplit_cost_table *table) {
  const psplit_planner_options *options = &planner->options;
  psplit_i_text each[PSPLIT_HINT_ARGUMENTS] = {0};
  psplit_i_advice sizes = {.hint = PSPLIT_HINT_MEASURED_DIMS};
  bool differ = false;
  for (size_t d = 0; d < table->dims.n; d++) {
    const psplit_dim_value *dim = &table->dims.items[d];
    int64_t here = planner->assumed_size;
    for (size_t i = 0; i < options->n_dims; i++)
      if (strcmp(options->dims[i].name, dim->name) == 0) here = options->dims[i].value;
    differ |= here != dim->value;
    if (d >= PSPLIT_HINT_ARGUMENTS) continue;
    psplit_i_text_addf(&each[d], "%s=%" PRId64, dim->name, dim->value);
    sizes.arguments[d] = each[d].failed ? NULL : each[d].bytes;
  }
  if (differ)
    psplit_i_advise(options->logger, PSPLIT_WARNING, sizes,
                    "%s was measured with other sizes than are used here: its times do not apply",
                    table->name);
  for (size_t d = 0; d < PSPLIT_HINT_ARGUMENTS; d++) psplit_i_text_fini(&each[d]);
}

static psplit_code add_rows(psplit_planner *planner, const psplit_cost_table *table, uint8_t mark,
                            times *t, psplit_diag *diag) {
  psplit_code code;
  psplit_i_cost_map map;
  PSPLIT_TRY(psplit_i_cost_match(table, planner->graph, NULL, &planner->scratch, diag, &map));
  if (!map.n_matched) return nothing_matches(table, planner->graph, diag);
  if (map.n_unmatched)
    psplit_i_say(planner->options.logger, PSPLIT_WARNING,
                 "%s: %" PRIu32 " of %zu rows are about no node of this model, such as \"%.100s\"",
                 table->name, map.n_unmatched, table->rows.n, map.unmatched);
  double *ns = PSPLIT_NEW(&planner->scratch, double, table->rows.n); /* of rows that share nodes */
  uint8_t *timed = PSPLIT_NEW(&planner->scratch, uint8_t, table->rows.n);
  uint64_t *workspace = PSPLIT_NEW(&planner->scratch, uint64_t, table->rows.n);
  if (planner->scratch.failed) return psplit_i_nomem(diag);
  for (uint32_t r = 0; r < table->rows.n; r++) {
    const psplit_i_cost_row *row = &table->rows.items[r];
    const uint32_t at = map.same_as[r], n = map.off[at + 1] - map.off[at];
    if (!n) continue;
    if (row->workspace_bytes > workspace[at]) workspace[at] = row->workspace_bytes;
    if (row->ns < 0 && !row->has_work) continue;
    timed[at] = 1;
    ns[at] += row->has_work ? time_of_work(planner, row, map.node + map.off[at], n) : row->ns;
  }
  bool any = false;
  for (uint32_t r = 0; r < table->rows.n; r++) {
    const uint32_t *nodes = map.node + map.off[r], n = map.off[r + 1] - map.off[r];
    if (workspace[r]) keep_workspace(planner, workspace[r], nodes, n);
    if (timed[r]) {
      share(planner, ns[r], mark, nodes, n, t);
      note_layout(planner, &table->rows.items[r], ns[r], nodes, n, t);
    }
    any |= timed[r];
  }
  if (any) {
    say_other_sizes(planner, table);
    if (table->spread_frac > PSPLIT_MOST_SPREAD)
      psplit_i_say(planner->options.logger, PSPLIT_WARNING,
                   "%s: runs took up to %.0f %% longer than the fastest: the machine was too busy "
                   "for these times to be trusted; measure again when it is quiet",
                   table->name, 100 * table->spread_frac);
    t->complete |= table->complete;
    t->measured = table->measured;
  }
out:
  return code;
}

static psplit_code add_nodes(psplit_planner *planner, const psplit_cost_table *table, times *t,
                             psplit_diag *diag) {
  if (table->rows.n != planner->graph->n_nodes)
    return psplit_i_fail(diag, PSPLIT_USAGE, "times of %zu nodes for a model of %" PRIu32,
                         table->rows.n, planner->graph->n_nodes);
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++) {
    t->ns[n] = table->rows.items[n].ns;
    t->covered[n] = 1;
  }
  t->complete = t->measured = true;
  return PSPLIT_OK;
}

/* The factor for what no row speaks of. */
static double missing_factor(const psplit_planner *planner, const times *t) {
  double measured = 0, predicted = 0;
  if (t->complete) return 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (t->covered[n]) {
      measured += t->ns[n];
      predicted += roofline(planner, n);
    }
  return predicted > 0 && measured > 0 ? measured / predicted : 1;
}

/* Of another device or size: as much longer than `ns` as it was than `first_ns`. */
static void scale(int64_t *time, double ns, double first_ns) {
  *time = psplit_i_whole_ns(first_ns > 0 ? ns * ((double)*time / first_ns) : ns);
}

static void replace_times(psplit_planner *planner, const times *t) {
  const size_t n_nodes = planner->graph->n_nodes;
  const double factor = missing_factor(planner, t);
  double covered = 0, total = 0;
  for (size_t n = 0; n < n_nodes; n++) {
    const double first = (double)planner->node_ns[n];
    const double ns = t->covered[n] ? t->ns[n] : factor * first;
    total += ns;
    if (t->covered[n]) covered += ns;
    if (t->covered[n] || t->complete) planner->node_data[n] = PSPLIT_I_DATA_NONE;
    if (planner->node_plenty_ns) scale(&planner->node_plenty_ns[n], ns, first);
    for (size_t c = planner->n_classes; c-- > 0;)
      scale(&planner->node_ns[c * n_nodes + n], ns, first);
  }
  planner->measured_frac = total > 0 ? covered / total : 0;
  planner->cost_source = t->measured ? "measured" : "given";
}

psplit_code psplit_i_cost_apply(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t n_nodes = planner->graph->n_nodes;
  const psplit_planner_options *options = &planner->options;
  planner->measured_frac = 0;
  planner->move_factor = IN_CACHES;
  planner->node_layout = PSPLIT_NEW(&planner->arena, uint8_t, n_nodes);
  if (!planner->node_layout) return psplit_i_nomem(diag);
  planner->cost_source = "analytic";
  if (!options->n_costs) return PSPLIT_OK;
  times t = {.ns = PSPLIT_NEW(&planner->scratch, double, n_nodes),
             .covered = PSPLIT_NEW(&planner->scratch, uint8_t, n_nodes)};
  if (!t.ns || !t.covered) return psplit_i_nomem(diag);
  if (!planner->node_workspace_bytes)
    planner->node_workspace_bytes = PSPLIT_NEW(&planner->arena, uint64_t, n_nodes);
  if (!planner->node_workspace_bytes) return psplit_i_nomem(diag);
  for (size_t i = 0; i < options->n_costs; i++) {
    const psplit_cost_table *table = options->costs[i];
    if (table->format == PSPLIT_I_COSTS_NODES)
      PSPLIT_TRY(add_nodes(planner, table, &t, diag));
    else
      PSPLIT_TRY(add_rows(planner, table, (uint8_t)(i + 1), &t, diag));
  }
  bool any = false;
  for (uint32_t n = 0; n < n_nodes && !any; n++) any = t.covered[n];
  if (t.move_roofline_ns > MANY_MOVES_NS) planner->move_factor = t.move_ns / t.move_roofline_ns;
  if (any) replace_times(planner, &t);
out:
  return code;
}
