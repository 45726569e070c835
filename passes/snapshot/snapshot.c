#include <psplit/snapshot.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counting.h"
#include "kind.h"
#include "module_scope.h"
#include "planner.h"
#include "repeat.h"

/* The snapshot and the memory of its arrays. */
typedef struct holder {
  psplit_snapshot snapshot; /* first: what the caller holds points here */
  psplit_i_arena arena;
} holder;

/* One under construction; the arrays are the snapshot's own, still to be filled. */
typedef struct maker {
  psplit_planner *planner;
  const psplit_i_graph *graph;
  psplit_i_arena *arena;
  psplit_i_arena *scratch;
  psplit_diag *diag;
  psplit_snapshot *snapshot;
  psplit_snapshot_node *nodes;
  psplit_snapshot_value *values;
  psplit_snapshot_group *groups;
  uint32_t *group_off, *members; /* members of group g: members[group_off[g] ..] */
  const char **scopes;           /* [n_groups] */
} maker;

static unsigned facts_of(const psplit_planner *planner) {
  unsigned facts = 0;
  if (planner->facts & PSPLIT_I_FACT_SHAPES) facts |= PSPLIT_SNAPSHOT_SHAPES;
  if (planner->facts & PSPLIT_I_FACT_COSTS) facts |= PSPLIT_SNAPSHOT_COSTS;
  if (planner->facts & PSPLIT_I_FACT_LIVE) facts |= PSPLIT_SNAPSHOT_LIVE;
  if ((planner->facts & PSPLIT_I_FACT_STAGES) && planner->plan) facts |= PSPLIT_SNAPSHOT_STAGES;
  return facts;
}

static psplit_code make_nodes(maker *m) {
  const psplit_planner *planner = m->planner;
  const psplit_i_graph *graph = m->graph;
  const unsigned facts = m->snapshot->facts;
  uint32_t *group = psplit_i_arena_array(m->scratch, graph->n_nodes, sizeof *group);
  m->nodes = PSPLIT_NEW(m->arena, psplit_snapshot_node, graph->n_nodes);
  if (!group || !m->nodes) return psplit_i_nomem(m->diag);
  if (planner->facts & PSPLIT_I_FACT_GROUPS) {
    psplit_i_grouping_number(&planner->grouping, group);
    m->snapshot->n_groups = planner->grouping.n_groups;
  } else {
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
      const uint32_t n = graph->topo[i];
      const bool is_free =
        (facts & PSPLIT_SNAPSHOT_LIVE) && (planner->node_flags[n] & PSPLIT_I_NODE_FREE);
      group[n] = is_free ? PSPLIT_NONE : m->snapshot->n_groups++;
    }
  }
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *from = &graph->nodes[n];
    psplit_snapshot_node *to = &m->nodes[n];
    *to = (psplit_snapshot_node){.name = from->name,
                                 .op_type = from->op_type,
                                 .domain = from->domain,
                                 .inputs = from->inputs,
                                 .captures = from->captures,
                                 .outputs = from->outputs,
                                 .n_inputs = from->n_inputs,
                                 .n_captures = from->n_captures,
                                 .n_outputs = from->n_outputs,
                                 .group = group[n],
                                 .stage = PSPLIT_NONE};
    if (facts & PSPLIT_SNAPSHOT_STAGES) to->stage = planner->plan->node_stage[n];
    if (facts & PSPLIT_SNAPSHOT_LIVE) {
      if (planner->node_flags[n] & PSPLIT_I_NODE_DEAD) to->flags |= PSPLIT_SNAPSHOT_NODE_DEAD;
      if (planner->node_flags[n] & PSPLIT_I_NODE_FREE) to->flags |= PSPLIT_SNAPSHOT_NODE_FREE;
      if (planner->node_flags[n] & PSPLIT_I_NODE_REPEATABLE)
        to->flags |= PSPLIT_SNAPSHOT_NODE_REPEATABLE;
    }
    if (!(facts & PSPLIT_SNAPSHOT_COSTS)) continue;
    if (planner->node_data[n] != PSPLIT_I_DATA_NONE) to->flags |= PSPLIT_SNAPSHOT_NODE_DATA;
    const uint32_t class_id = planner->device_class[to->stage == PSPLIT_NONE ? 0 : to->stage];
    to->work = psplit_i_costs_node(planner->costs, n);
    to->class_name = psplit_op_class_name(to->work.op_class);
    to->cost_ns = planner->node_ns[(size_t)class_id * graph->n_nodes + n];
  }
  return PSPLIT_OK;
}

static psplit_code make_values(maker *m) {
  const psplit_i_graph *graph = m->graph;
  const unsigned facts = m->snapshot->facts;
  m->values = PSPLIT_NEW(m->arena, psplit_snapshot_value, graph->n_values);
  if (!m->values) return psplit_i_nomem(m->diag);
  psplit_i_text type = {0};
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const psplit_i_value *from = &graph->values[v];
    psplit_snapshot_value *to = &m->values[v];
    *to = (psplit_snapshot_value){.name = from->name,
                                  .producer = from->producer,
                                  .is_input = from->input != PSPLIT_NONE,
                                  .is_output = from->is_output};
    to->is_constant =
      from->producer == PSPLIT_NONE
        ? from->initializer != PSPLIT_NONE || from->sparse_initializer != PSPLIT_NONE
        : (m->nodes[from->producer].flags & PSPLIT_SNAPSHOT_NODE_FREE) != 0;
    if (facts & PSPLIT_SNAPSHOT_COSTS)
      to->bytes = psplit_i_planner_value_bytes(m->planner, v, &to->bytes_known);
    if (from->producer == PSPLIT_NONE && from->initializer != PSPLIT_NONE) {
      to->bytes = psplit_i_graph_initializer(graph, from->initializer).data_bytes;
      to->bytes_known = true;
    }
    if (!(facts & PSPLIT_SNAPSHOT_SHAPES)) continue;
    type.n = 0;
    psplit_i_shapes_print(m->planner->shapes, psplit_i_shapes_type(m->planner->shapes, v), &type);
    to->type = psplit_i_arena_strndup(m->arena, type.bytes ? type.bytes : "", type.n);
    if (type.failed || !to->type) break;
  }
  const bool done = !type.failed && (!(facts & PSPLIT_SNAPSHOT_SHAPES) || graph->n_values == 0 ||
                                     m->values[graph->n_values - 1].type);
  psplit_i_text_fini(&type);
  return done ? PSPLIT_OK : psplit_i_nomem(m->diag);
}

/* Members by group, in topological order: a counting sort. */
static psplit_code make_members(maker *m) {
  const uint32_t n_groups = m->snapshot->n_groups;
  m->groups = PSPLIT_NEW(m->arena, psplit_snapshot_group, n_groups);
  m->group_off = PSPLIT_NEW(m->scratch, uint32_t, (size_t)n_groups + 2);
  m->members = PSPLIT_NEW(m->arena, uint32_t, m->graph->n_nodes);
  if (!m->groups || !m->group_off || !m->members) return psplit_i_nomem(m->diag);
  for (uint32_t n = 0; n < m->graph->n_nodes; n++)
    if (m->nodes[n].group != PSPLIT_NONE) m->group_off[m->nodes[n].group + 2]++;
  for (uint32_t g = 0; g < n_groups; g++) m->group_off[g + 2] += m->group_off[g + 1];
  for (uint32_t i = 0; i < m->graph->n_nodes; i++) {
    const uint32_t n = m->graph->topo[i];
    if (m->nodes[n].group != PSPLIT_NONE) m->members[m->group_off[m->nodes[n].group + 1]++] = n;
  }
  for (uint32_t g = 0; g < n_groups; g++) {
    psplit_snapshot_group *group = &m->groups[g];
    group->nodes = m->members + m->group_off[g];
    group->n_nodes = m->group_off[g + 1] - m->group_off[g];
    group->stage = m->nodes[group->nodes[0]].stage;
    group->bytes_known = (m->snapshot->facts & PSPLIT_SNAPSHOT_COSTS) != 0;
    for (uint32_t i = 0; i < group->n_nodes; i++)
      group->cost_ns = psplit_i_sat_add_i64(group->cost_ns, m->nodes[group->nodes[i]].cost_ns);
  }
  return PSPLIT_OK;
}

static void count_bytes(psplit_snapshot_group *group, const psplit_snapshot_value *value,
                        uint64_t *sum) {
  *sum = psplit_i_sat_add_u64(*sum, value->bytes);
  if (!value->bytes_known) group->bytes_known = false;
}

/* Bytes of constants that are read or carried, and of what comes from outside; `met`[value] is 1 +
 * the last group that met it. */
static void count_reads(maker *m, uint32_t g, uint32_t *met) {
  psplit_snapshot_group *group = &m->groups[g];
  for (uint32_t i = 0; i < group->n_nodes; i++) {
    const psplit_snapshot_node *node = &m->nodes[group->nodes[i]];
    group->weight_bytes = psplit_i_sat_add_u64(
      group->weight_bytes, psplit_i_node_inner_bytes(m->graph, group->nodes[i]));
    for (uint32_t r = 0; r < node->n_inputs + node->n_captures; r++) {
      const uint32_t v = r < node->n_inputs ? node->inputs[r] : node->captures[r - node->n_inputs];
      if (v == PSPLIT_NONE || met[v] == g + 1) continue;
      met[v] = g + 1;
      const psplit_snapshot_value *value = &m->values[v];
      if (value->is_constant)
        group->weight_bytes = psplit_i_sat_add_u64(group->weight_bytes, value->bytes);
      else if (value->producer == PSPLIT_NONE || m->nodes[value->producer].group != g)
        count_bytes(group, value, &group->bytes_in);
    }
  }
}

static int compare_edges(const void *a, const void *b) {
  const psplit_snapshot_edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return x->value < y->value ? -1 : x->value > y->value;
}

static psplit_code make_edges(maker *m) {
  const psplit_i_graph *graph = m->graph;
  PSPLIT_VEC(psplit_snapshot_edge) edges = {0};
  uint32_t *met = PSPLIT_NEW(m->scratch, uint32_t, (size_t)graph->n_values);
  uint32_t *last = PSPLIT_NEW(m->scratch, uint32_t, m->snapshot->n_groups);
  if (!met || !last) return psplit_i_nomem(m->diag);
  for (uint32_t g = 0; g < m->snapshot->n_groups; g++) count_reads(m, g, met);
  bool good = true;
  for (uint32_t v = 0; v < graph->n_values && good; v++) {
    const psplit_snapshot_value *value = &m->values[v];
    if (value->producer == PSPLIT_NONE || value->is_constant) continue;
    const uint32_t from = m->nodes[value->producer].group;
    bool leaves = value->is_output;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1] && good; c++) {
      const uint32_t to = m->nodes[graph->consumers[c]].group;
      if (to == from || to == PSPLIT_NONE || last[to] == v + 1) continue;
      last[to] = v + 1;
      leaves = true;
      good = psplit_i_vec_push(&edges, ((psplit_snapshot_edge){from, to, v}));
    }
    if (leaves) count_bytes(&m->groups[from], value, &m->groups[from].bytes_out);
  }
  psplit_snapshot_edge *own = psplit_i_arena_array(m->arena, edges.n, sizeof *own);
  good = good && own;
  if (good && edges.n) {
    qsort(edges.items, edges.n, sizeof *edges.items, compare_edges);
    memcpy(own, edges.items, edges.n * sizeof *own);
  }
  m->snapshot->edges = own;
  m->snapshot->n_edges = (uint32_t)edges.n;
  psplit_i_vec_fini(&edges);
  return good ? PSPLIT_OK : psplit_i_nomem(m->diag);
}

/* What any cut takes by itself, where latency is a message's. */
static int64_t message_ns(const maker *m) {
  const bool sends = m->snapshot->n_stages > 1;
  const bool per_pair = m->planner->options.message_latency == PSPLIT_LATENCY_PER_PAIR;
  return sends && per_pair ? psplit_i_planner_transfer_ns(m->planner, 0, 1, 0) : 0;
}

/* The cut at each place of the order: a value counts from its producer to its last reader. */
static psplit_code make_cuts(maker *m) {
  const psplit_i_graph *graph = m->graph;
  const uint32_t n_groups = m->snapshot->n_groups, n_stages = m->snapshot->n_stages;
  const int64_t each_ns = message_ns(m);
  uint32_t *order = PSPLIT_NEW(m->arena, uint32_t, n_groups);
  uint32_t *place = PSPLIT_NEW(m->scratch, uint32_t, n_groups);
  uint32_t *stage_off = PSPLIT_NEW(m->scratch, uint32_t, (size_t)n_stages + 2);
  uint64_t *bytes = PSPLIT_NEW(m->arena, uint64_t, (size_t)n_groups + 1);
  int64_t *ns = PSPLIT_NEW(m->arena, int64_t, (size_t)n_groups + 1);
  uint64_t *ends_bytes = PSPLIT_NEW(m->scratch, uint64_t, (size_t)n_groups + 1);
  int64_t *ends_ns = PSPLIT_NEW(m->scratch, int64_t, (size_t)n_groups + 1);
  int64_t *n_more = PSPLIT_NEW(m->scratch, int64_t, (size_t)n_groups + 1); /* that cross */
  if (m->arena->failed || m->scratch->failed) return psplit_i_nomem(m->diag);
  for (uint32_t g = 0; g < n_groups; g++)
    if (m->groups[g].stage != PSPLIT_NONE) stage_off[m->groups[g].stage + 1]++;
  for (uint32_t s = 0; s < n_stages; s++) stage_off[s + 1] += stage_off[s];
  for (uint32_t g = 0; g < n_groups; g++) {
    const uint32_t stage = m->groups[g].stage;
    place[g] = stage == PSPLIT_NONE ? g : stage_off[stage]++;
    order[place[g]] = g;
  }
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const psplit_snapshot_value *value = &m->values[v];
    if (value->producer == PSPLIT_NONE || value->is_constant) continue;
    const uint32_t first = place[m->nodes[value->producer].group];
    uint32_t end = first;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++) {
      const uint32_t to = m->nodes[graph->consumers[c]].group;
      if (to != PSPLIT_NONE && place[to] > end) end = place[to];
    }
    if (end == first) continue;
    const int64_t time =
      n_stages > 1 ? psplit_i_planner_transfer_ns(m->planner, 0, 1, value->bytes) - each_ns : 0;
    n_more[first]++;
    n_more[end]--;
    bytes[first] = psplit_i_sat_add_u64(bytes[first], value->bytes);
    ns[first] = psplit_i_sat_add_i64(ns[first], time);
    ends_bytes[end] = psplit_i_sat_add_u64(ends_bytes[end], value->bytes);
    ends_ns[end] = psplit_i_sat_add_i64(ends_ns[end], time);
  }
  for (uint32_t p = 1; p < n_groups; p++) {
    bytes[p] = psplit_i_sat_add_u64(bytes[p - 1] - ends_bytes[p], bytes[p]);
    ns[p] = psplit_i_sat_add_i64(ns[p - 1] - ends_ns[p], ns[p]);
  }
  int64_t n_crossing = 0;
  for (uint32_t p = 0; p < n_groups; p++) {
    n_crossing += n_more[p];
    if (n_crossing) ns[p] = psplit_i_sat_add_i64(ns[p], each_ns);
  }
  m->snapshot->order = order;
  m->snapshot->cut_bytes = bytes;
  m->snapshot->cut_ns = ns;
  return PSPLIT_OK;
}

/* The member that stands for a group: the dearest, the first of several. */
static uint32_t main_member(const maker *m, const psplit_snapshot_group *group) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < group->n_nodes; i++)
    if (m->nodes[group->nodes[i]].cost_ns > m->nodes[group->nodes[best]].cost_ns) best = i;
  return best;
}

static psplit_code make_titles(maker *m) {
  psplit_code code;
  const uint32_t n_groups = m->snapshot->n_groups;
  psplit_i_scoped *scoped = PSPLIT_NEW(m->scratch, psplit_i_scoped, n_groups);
  const char **names = PSPLIT_NEW(m->scratch, const char *, m->graph->n_nodes);
  const char **titles = PSPLIT_NEW(m->scratch, const char *, n_groups);
  m->scopes = PSPLIT_NEW(m->scratch, const char *, n_groups);
  if (m->scratch->failed) return psplit_i_nomem(m->diag);
  for (uint32_t g = 0; g < n_groups; g++) {
    const psplit_snapshot_group *group = &m->groups[g];
    const char **own = names + m->group_off[g];
    for (uint32_t i = 0; i < group->n_nodes; i++) own[i] = m->nodes[group->nodes[i]].name;
    scoped[g] = (psplit_i_scoped){.names = own, .n = group->n_nodes, .main = main_member(m, group)};
    if (*own[scoped[g].main]) continue;
    char label[96];
    psplit_i_node_label(m->graph, group->nodes[scoped[g].main], label, sizeof label);
    scoped[g].fallback = psplit_i_arena_strndup(m->scratch, label, strlen(label));
    if (!scoped[g].fallback) return psplit_i_nomem(m->diag);
  }
  PSPLIT_TRY(psplit_i_scope_titles(scoped, n_groups, m->arena, m->diag, titles, m->scopes));
  for (uint32_t g = 0; g < n_groups; g++) {
    m->groups[g].title = psplit_i_arena_strndup(m->arena, titles[g], strlen(titles[g]));
    m->groups[g].kind = psplit_i_kind_of(m->nodes, &m->groups[g], m->arena);
    if (!m->groups[g].kind) return psplit_i_nomem(m->diag);
    m->groups[g].scope = m->scopes[g] ? m->scopes[g] : "";
    if (!m->groups[g].title) return psplit_i_nomem(m->diag);
  }
out:
  return code;
}

/* What a group's operators are and how they feed each other; place[node] is its position among the
 * members met so far. */
static uint64_t shape_of(const maker *m, const psplit_snapshot_group *group, uint32_t *place) {
  uint64_t hash = group->n_nodes;
  for (uint32_t i = 0; i < group->n_nodes; i++) {
    const psplit_snapshot_node *node = &m->nodes[group->nodes[i]];
    place[group->nodes[i]] = i;
    hash = psplit_i_hash_bytes(node->op_type, strlen(node->op_type), hash);
    hash = psplit_i_hash_bytes(node->domain, strlen(node->domain), hash ^ node->n_outputs);
    for (uint32_t r = 0; r < node->n_inputs + node->n_captures; r++) {
      enum { OMITTED, CONSTANT, OUTSIDE, MEMBER };
      const uint32_t v = r < node->n_inputs ? node->inputs[r] : node->captures[r - node->n_inputs];
      const uint32_t producer = v == PSPLIT_NONE ? PSPLIT_NONE : m->values[v].producer;
      uint64_t from = v == PSPLIT_NONE ? OMITTED : m->values[v].is_constant ? CONSTANT : OUTSIDE;
      if (from == OUTSIDE && producer != PSPLIT_NONE && m->nodes[producer].group == node->group)
        from = MEMBER + (uint64_t)place[producer];
      hash = psplit_i_mix64(hash ^ from);
    }
  }
  return hash;
}

static psplit_code make_repeats(maker *m) {
  psplit_snapshot *s = m->snapshot;
  uint64_t *shape = psplit_i_arena_array(m->scratch, s->n_groups, sizeof *shape);
  uint32_t *place = PSPLIT_NEW(m->scratch, uint32_t, m->graph->n_nodes);
  psplit_snapshot_repeat *repeats;
  if (!shape || !place) return psplit_i_nomem(m->diag);
  for (uint32_t g = 0; g < s->n_groups; g++) shape[g] = shape_of(m, &m->groups[g], place);
  const psplit_i_repeat_input input = {s->n_groups, shape, m->scopes, s->n_edges, s->edges};
  const psplit_code code =
    psplit_i_repeats_find(&input, m->arena, m->diag, &repeats, &s->n_repeats);
  if (code == PSPLIT_OK) s->repeats = repeats;
  return code;
}

static psplit_code make_patterns(maker *m) {
  const psplit_planner *planner = m->planner;
  if (!planner->patterns) return PSPLIT_OK;
  psplit_snapshot_pattern *patterns =
    PSPLIT_NEW(m->arena, psplit_snapshot_pattern, planner->n_patterns);
  if (!patterns) return psplit_i_nomem(m->diag);
  for (uint32_t p = 0; p < planner->n_patterns; p++)
    patterns[p] = (psplit_snapshot_pattern){
      planner->patterns[p].name, planner->patterns[p].n_matches, planner->patterns[p].n_nodes};
  m->snapshot->patterns = patterns;
  m->snapshot->n_patterns = planner->n_patterns;
  return PSPLIT_OK;
}

static psplit_code make_states(maker *m) {
  const psplit_i_states *from = &m->planner->states;
  const psplit_plan *plan = m->snapshot->plan;
  psplit_snapshot_state *states = PSPLIT_NEW(m->arena, psplit_snapshot_state, from->n);
  if (!states) return psplit_i_nomem(m->diag);
  for (uint32_t i = 0; i < from->n; i++) {
    states[i] =
      (psplit_snapshot_state){from->items[i].output, from->items[i].input,  PSPLIT_NONE,
                              PSPLIT_NONE,           from->items[i].shared, from->items[i].named};
    if (!plan) continue;
    states[i].writer = plan->states[i].writer;
    states[i].reader = plan->states[i].reader;
  }
  m->snapshot->states = states;
  m->snapshot->n_states = from->n;
  return PSPLIT_OK;
}

static psplit_code make_notes(maker *m) {
  const psplit_planner *planner = m->planner;
  psplit_snapshot_note *notes = PSPLIT_NEW(m->arena, psplit_snapshot_note, planner->notes.n);
  if (!notes) return psplit_i_nomem(m->diag);
  for (size_t i = 0; i < planner->notes.n; i++)
    notes[i] = (psplit_snapshot_note){planner->notes.items[i].node, planner->notes.items[i].pass,
                                      planner->notes.items[i].text};
  m->snapshot->notes = notes;
  m->snapshot->n_notes = (uint32_t)planner->notes.n;
  return PSPLIT_OK;
}

static psplit_code name_devices(maker *m) {
  const uint32_t n = m->snapshot->n_stages;
  const char **names = PSPLIT_NEW(m->arena, const char *, n);
  uint64_t *limits = PSPLIT_NEW(m->arena, uint64_t, n);
  if (!names || !limits) return psplit_i_nomem(m->diag);
  for (uint32_t s = 0; s < n; s++) {
    names[s] = psplit_devices_name(m->planner->devices, s);
    limits[s] = psplit_devices_memory_bytes(m->planner->devices, s);
  }
  m->snapshot->device_name = names;
  m->snapshot->memory_limit_bytes = limits;
  return PSPLIT_OK;
}

psplit_code psplit_snapshot_take(psplit_planner *planner, psplit_diag *diag,
                                 psplit_snapshot **out_snapshot) {
  psplit_code code;
  holder *h = calloc(1, sizeof *h);
  if (!h) return psplit_i_nomem(diag);
  psplit_i_arena_init(&h->arena, 0);
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  maker m = {.planner = planner,
             .graph = planner->graph,
             .arena = &h->arena,
             .scratch = &scratch,
             .diag = diag,
             .snapshot = &h->snapshot};
  h->snapshot = (psplit_snapshot){.facts = facts_of(planner),
                                  .pass = planner->last_pass,
                                  .n_nodes = planner->graph->n_nodes,
                                  .n_values = planner->graph->n_values,
                                  .n_stages = planner->options.n_stages,
                                  .topo = planner->graph->topo};
  if (h->snapshot.facts & PSPLIT_SNAPSHOT_STAGES) h->snapshot.plan = planner->plan;
  PSPLIT_TRY(make_nodes(&m));
  PSPLIT_TRY(make_values(&m));
  PSPLIT_TRY(make_members(&m));
  PSPLIT_TRY(make_edges(&m));
  PSPLIT_TRY(make_cuts(&m));
  PSPLIT_TRY(make_titles(&m));
  PSPLIT_TRY(make_repeats(&m));
  PSPLIT_TRY(make_notes(&m));
  PSPLIT_TRY(make_states(&m));
  PSPLIT_TRY(make_patterns(&m));
  PSPLIT_TRY(name_devices(&m));
  h->snapshot.nodes = m.nodes;
  h->snapshot.values = m.values;
  h->snapshot.groups = m.groups;
  *out_snapshot = &h->snapshot;
out:
  psplit_i_arena_fini(&scratch);
  if (code != PSPLIT_OK) psplit_snapshot_destroy(&h->snapshot);
  return code;
}

psplit_code psplit_snapshot_count(const psplit_planner *planner, psplit_snapshot *snapshot,
                                  psplit_diag *diag) {
  holder *h = (holder *)(void *)snapshot;
  if (!snapshot->plan || snapshot->counting) return PSPLIT_OK;
  return psplit_i_counting_make(planner, snapshot->nodes, snapshot->n_groups, &h->arena, diag,
                                &snapshot->counting);
}

void psplit_snapshot_destroy(psplit_snapshot *snapshot) {
  if (!snapshot) return;
  holder *h = (holder *)(void *)snapshot;
  psplit_i_arena_fini(&h->arena);
  free(h);
}
