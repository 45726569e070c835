/* Contents of each stage. A plan is checked completely here before anything is written. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

/* Arrays over values hold 1 + the stage they were last set for, so that no stage clears them. */
typedef struct scratch {
  uint32_t *made;    /* a node of the stage outputs the value */
  uint32_t *got;     /* the stage receives it */
  uint32_t *used;    /* something in the stage reads it */
  uint32_t *sent;    /* the stage sends it ... */
  uint32_t *sent_at; /* ... first by this transfer */
} scratch;

/* The transfers of a stage. */
typedef struct traffic {
  const uint32_t *received; /* [n_received] ascending */
  uint32_t n_received;
  uint32_t first_sent, end_sent; /* transfers are sorted by sender */
} traffic;

/* A value that is there from the start, in whatever stage wants it. */
static bool is_given(const psplit_i_value *value) {
  return value->input != PSPLIT_NONE || psplit_i_has_initializer(value);
}

static psplit_code check_nodes(const psplit_i_split *split, psplit_diag *diag) {
  const psplit_plan *plan = split->plan;
  if (plan->n_nodes != split->graph->n_nodes)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "the plan is of a model with %" PRIu32 " nodes, this one has %" PRIu32,
                         plan->n_nodes, split->graph->n_nodes);
  if (plan->n_stages == 0) return psplit_i_fail(diag, PSPLIT_INVALID, "the plan has no stages");
  for (uint32_t n = 0; n < plan->n_nodes; n++)
    if (plan->node_stage[n] >= plan->n_stages)
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "the plan puts node %" PRIu32 " in stage %" PRIu32 " of %" PRIu32, n,
                           plan->node_stage[n], plan->n_stages);
  for (uint32_t c = 0; c < plan->n_copies; c++) {
    const psplit_plan_copy *copy = &plan->copies[c], *last = c ? copy - 1 : NULL;
    const bool ascending =
      !last || last->stage < copy->stage || (last->stage == copy->stage && last->node < copy->node);
    if (copy->node >= plan->n_nodes || copy->stage >= plan->n_stages || !ascending ||
        plan->node_stage[copy->node] == copy->stage)
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "copy %" PRIu32 " of the plan (node %" PRIu32 ", stage %" PRIu32
                           ") is out of range, out of order, repeated or its own original",
                           c, copy->node, copy->stage);
  }
  return PSPLIT_OK;
}

static psplit_code check_transfers(const psplit_i_split *split, psplit_diag *diag) {
  const psplit_plan *plan = split->plan;
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    const psplit_plan_transfer *transfer = &plan->transfers[t], *last = t ? transfer - 1 : NULL;
    const bool in_range = transfer->value < split->graph->n_values &&
                          transfer->from < transfer->to && transfer->to < plan->n_stages;
    const bool ascending = !last || last->from < transfer->from ||
                           (last->from == transfer->from &&
                            (last->value < transfer->value ||
                             (last->value == transfer->value && last->to < transfer->to)));
    if (!in_range || !ascending)
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "transfer %" PRIu32 " of the plan (value %" PRIu32 ", stage %" PRIu32
                           " to %" PRIu32 ") is out of range, out of order or repeated",
                           t, transfer->value, transfer->from, transfer->to);
    const psplit_i_value *value = &split->graph->values[transfer->value];
    if (strcmp(value->name, transfer->tensor) != 0)
      return psplit_i_fail(diag, PSPLIT_INVALID,
                           "transfer %" PRIu32 " of the plan calls value \"%s\" \"%s\"", t,
                           value->name, transfer->tensor);
    if (is_given(value))
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "the plan sends \"%s\", which every stage has as an %s", value->name,
                           psplit_i_has_initializer(value) ? "initializer" : "input");
  }
  return PSPLIT_OK;
}

/* Node lists of all stages, each in topological order. */
static psplit_code list_nodes(psplit_i_split *split, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_plan *plan = split->plan;
  const size_t n_nodes = plan->n_nodes;
  uint32_t *lists = psplit_i_arena_array(&split->arena, n_nodes + plan->n_copies, sizeof *lists);
  uint32_t *copy_off = calloc(n_nodes + 1, sizeof *copy_off); /* copies by node */
  uint32_t *copy_stage = calloc((size_t)plan->n_copies + 1, sizeof *copy_stage);
  uint32_t **next = malloc(plan->n_stages * sizeof *next);
  if (!lists || !copy_off || !copy_stage || !next) {
    code = psplit_i_nomem(diag);
    goto out;
  }
  for (uint32_t n = 0; n < n_nodes; n++) split->stages[plan->node_stage[n]].n_nodes++;
  for (uint32_t c = 0; c < plan->n_copies; c++) {
    psplit_i_stage *stage = &split->stages[plan->copies[c].stage];
    stage->n_nodes++;
    stage->n_copies++;
    copy_off[plan->copies[c].node + 1]++;
  }
  for (size_t n = 0; n < n_nodes; n++) copy_off[n + 1] += copy_off[n];
  for (uint32_t c = plan->n_copies; c-- > 0;) /* from the back: copy_off ends as the ends */
    copy_stage[--copy_off[plan->copies[c].node + 1]] = plan->copies[c].stage;
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    split->stages[s].nodes = next[s] = lists;
    lists += split->stages[s].n_nodes;
  }
  for (size_t i = 0; i < n_nodes; i++) {
    const uint32_t n = split->graph->topo[i];
    *next[plan->node_stage[n]]++ = n;
    const uint32_t end = n + 1 < n_nodes ? copy_off[n + 2] : plan->n_copies;
    for (uint32_t c = copy_off[n + 1]; c < end; c++) *next[copy_stage[c]]++ = n;
  }
out:
  free(next);
  free(copy_stage);
  free(copy_off);
  return code;
}

/* Stage that gives the model an output of its own, or holds an input that nothing reads. */
static uint32_t home_of(const psplit_i_split *split, uint32_t v) {
  const psplit_i_graph *graph = split->graph;
  if (graph->values[v].producer != PSPLIT_NONE)
    return split->plan->node_stage[graph->values[v].producer];
  uint32_t home = PSPLIT_NONE;
  for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++)
    if (split->plan->node_stage[graph->consumers[c]] < home)
      home = split->plan->node_stage[graph->consumers[c]];
  return home == PSPLIT_NONE ? 0 : home;
}

static psplit_code missing(const psplit_i_split *split, uint32_t stage, uint32_t node, uint32_t v,
                           psplit_diag *diag) {
  const psplit_i_graph *graph = split->graph;
  const uint32_t producer = graph->values[v].producer;
  char label[128], maker[128];
  return psplit_i_fail(
    diag, PSPLIT_INTERNAL,
    "the plan leaves node %s of stage %" PRIu32 " without \"%s\": node %s of stage %" PRIu32
    " makes it, and nothing sends it",
    psplit_i_node_label(graph, node, label, sizeof label), stage, graph->values[v].name,
    psplit_i_node_label(graph, producer, maker, sizeof maker), split->plan->node_stage[producer]);
}

static psplit_code mark_reads(const psplit_i_split *split, uint32_t s, const scratch *marks,
                              psplit_diag *diag) {
  const psplit_i_graph *graph = split->graph;
  const psplit_i_stage *stage = &split->stages[s];
  for (uint32_t i = 0; i < stage->n_nodes; i++) {
    const psplit_i_node *node = &graph->nodes[stage->nodes[i]];
    for (uint32_t r = 0; r < node->n_inputs + node->n_captures; r++) {
      const uint32_t v = r < node->n_inputs ? node->inputs[r] : node->captures[r - node->n_inputs];
      if (v == PSPLIT_NONE) continue;
      if (marks->made[v] != s + 1 && marks->got[v] != s + 1 && !is_given(&graph->values[v]))
        return missing(split, s, stage->nodes[i], v, diag);
      marks->used[v] = s + 1;
    }
  }
  return PSPLIT_OK;
}

/* Marks what the stage makes, receives, reads and sends, and checks that they fit. */
static psplit_code mark_stage(const psplit_i_split *split, uint32_t s, const traffic *with,
                              const scratch *marks, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = split->graph;
  const psplit_plan *plan = split->plan;
  const psplit_i_stage *stage = &split->stages[s];
  for (uint32_t i = 0; i < stage->n_nodes; i++) {
    const psplit_i_node *node = &graph->nodes[stage->nodes[i]];
    for (uint32_t o = 0; o < node->n_outputs; o++)
      if (node->outputs[o] != PSPLIT_NONE) marks->made[node->outputs[o]] = s + 1;
  }
  for (uint32_t r = 0; r < with->n_received; r++) {
    const psplit_plan_transfer *transfer = &plan->transfers[with->received[r]];
    if (marks->made[transfer->value] == s + 1 || marks->got[transfer->value] == s + 1)
      return psplit_i_fail(
        diag, PSPLIT_INTERNAL, "the plan sends \"%s\" to stage %" PRIu32 ", which %s it",
        transfer->tensor, s, marks->made[transfer->value] == s + 1 ? "makes" : "already receives");
    marks->got[transfer->value] = s + 1;
  }
  PSPLIT_TRY(mark_reads(split, s, marks, diag));
  for (uint32_t t = with->first_sent; t < with->end_sent; t++) {
    const uint32_t v = plan->transfers[t].value;
    if (marks->made[v] != s + 1 && marks->got[v] != s + 1)
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "the plan sends \"%s\" from stage %" PRIu32 ", which does not have it",
                           plan->transfers[t].tensor, s);
    marks->used[v] = s + 1;
    if (marks->sent[v] != s + 1) marks->sent_at[v] = t;
    marks->sent[v] = s + 1;
  }
  for (uint32_t r = 0; r < with->n_received; r++)
    if (marks->used[plan->transfers[with->received[r]].value] != s + 1)
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "the plan sends \"%s\" to stage %" PRIu32 ", where nothing reads it",
                           plan->transfers[with->received[r]].tensor, s);
out:
  return code;
}

static psplit_code list_inputs(psplit_i_split *split, uint32_t s, const traffic *with,
                               const scratch *marks, psplit_diag *diag) {
  const psplit_i_graph *graph = split->graph;
  psplit_i_stage *stage = &split->stages[s];
  uint32_t n = with->n_received;
  for (uint32_t pass = 0; pass < 2; pass++) {
    psplit_i_port *ports = NULL;
    if (pass) {
      stage->inputs = ports = psplit_i_arena_array(&split->arena, n, sizeof *ports);
      if (!ports) return psplit_i_nomem(diag);
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
      const uint32_t v = graph->inputs[i];
      if (marks->used[v] != s + 1 && home_of(split, v) != s) continue;
      if (pass)
        ports[at] =
          (psplit_i_port){.value = v, .name = graph->values[v].name, .model = true, .position = i};
      at++;
    }
    if (!pass) n += at;
    stage->n_inputs = n;
    for (uint32_t r = 0; pass && r < with->n_received; r++) {
      const uint32_t t = with->received[r], v = split->plan->transfers[t].value;
      ports[at++] =
        (psplit_i_port){.value = v,
                        .name = split->recv_names ? split->recv_names[t] : graph->values[v].name,
                        .transfer = t,
                        .n_transfers = 1};
    }
  }
  return PSPLIT_OK;
}

static psplit_code list_outputs(psplit_i_split *split, uint32_t s, const traffic *with,
                                const scratch *marks, psplit_diag *diag) {
  const psplit_i_graph *graph = split->graph;
  const psplit_plan *plan = split->plan;
  psplit_i_stage *stage = &split->stages[s];
  psplit_i_port *ports = psplit_i_arena_array(
    &split->arena, (size_t)graph->n_outputs + (with->end_sent - with->first_sent), sizeof *ports);
  if (!ports) return psplit_i_nomem(diag);
  stage->outputs = ports;
  const bool plain = split->boundary == PSPLIT_BOUNDARY_IO;
  uint32_t at = 0;
  for (uint32_t o = 0; o < graph->n_outputs; o++) {
    const uint32_t v = graph->outputs[o];
    if (home_of(split, v) != s) continue;
    psplit_i_port port = {.value = v, .name = graph->values[v].name, .model = true, .position = o};
    if (plain && marks->sent[v] == s + 1) {
      port.transfer = marks->sent_at[v];
      while (port.transfer + port.n_transfers < with->end_sent &&
             plan->transfers[port.transfer + port.n_transfers].value == v)
        port.n_transfers++;
      marks->sent[v] = 0; /* served */
    }
    ports[at++] = port;
  }
  for (uint32_t t = with->first_sent; t < with->end_sent; t++) {
    const uint32_t v = plan->transfers[t].value;
    if (plain && marks->sent[v] != s + 1) continue;
    if (plain && marks->sent_at[v] != t) {
      ports[at - 1].n_transfers++;
      continue;
    }
    ports[at++] = (psplit_i_port){.value = v,
                                  .name = plain ? graph->values[v].name : split->send_names[t],
                                  .transfer = t,
                                  .n_transfers = 1};
  }
  stage->n_outputs = at;
  return PSPLIT_OK;
}

static psplit_code check_counts(const psplit_i_split *split, psplit_diag *diag) {
  for (uint32_t s = 0; s < split->plan->n_stages; s++) {
    const psplit_plan_stage *said = &split->plan->stages[s];
    const psplit_i_stage *stage = &split->stages[s];
    if (stage->n_nodes == stage->n_copies && split->graph->n_nodes)
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "the plan leaves stage %" PRIu32 " without nodes of its own", s);
    if (said->n_nodes != stage->n_nodes || said->n_duplicated != stage->n_copies)
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "the plan counts %" PRIu32 " nodes, %" PRIu32
                           " of them duplicated, in stage %" PRIu32 "; they are %" PRIu32
                           " and %" PRIu32,
                           said->n_nodes, said->n_duplicated, s, stage->n_nodes, stage->n_copies);
  }
  return PSPLIT_OK;
}

/* Transfers by receiving stage, ascending: a counting sort. */
static void sort_received(const psplit_plan *plan, uint32_t *off, uint32_t *received) {
  for (uint32_t t = 0; t < plan->n_transfers; t++) off[plan->transfers[t].to + 1]++;
  for (uint32_t s = 0; s < plan->n_stages; s++) off[s + 1] += off[s];
  for (uint32_t t = plan->n_transfers; t-- > 0;) received[--off[plan->transfers[t].to + 1]] = t;
  for (uint32_t s = 0; s < plan->n_stages; s++) off[s] = off[s + 1];
  off[plan->n_stages] = plan->n_transfers;
}

static psplit_code fill_stages(psplit_i_split *split, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_plan *plan = split->plan;
  const size_t n_values = split->graph->n_values;
  uint32_t *marks = calloc(5 * n_values + 1, sizeof *marks);
  uint32_t *off = calloc((size_t)plan->n_stages + 2, sizeof *off);
  uint32_t *received = malloc(((size_t)plan->n_transfers + 1) * sizeof *received);
  if (!marks || !off || !received) {
    code = psplit_i_nomem(diag);
    goto out;
  }
  const scratch s = {.made = marks,
                     .got = marks + n_values,
                     .used = marks + 2 * n_values,
                     .sent = marks + 3 * n_values,
                     .sent_at = marks + 4 * n_values};
  sort_received(plan, off, received);
  for (uint32_t stage = 0, first = 0; stage < plan->n_stages; stage++) {
    uint32_t end = first;
    while (end < plan->n_transfers && plan->transfers[end].from == stage) end++;
    const traffic with = {received + off[stage], off[stage + 1] - off[stage], first, end};
    PSPLIT_TRY(mark_stage(split, stage, &with, &s, diag));
    PSPLIT_TRY(list_inputs(split, stage, &with, &s, diag));
    PSPLIT_TRY(list_outputs(split, stage, &with, &s, diag));
    first = end;
  }
out:
  free(received);
  free(off);
  free(marks);
  return code;
}

/* Looked up once, not for each stage. */
static psplit_code find_infos(psplit_i_split *split, psplit_diag *diag) {
  const Onnx__GraphProto *proto = split->graph->proto;
  split->info_values = PSPLIT_NEW(&split->arena, uint32_t, proto->n_value_info);
  if (!split->info_values) return psplit_i_nomem(diag);
  for (size_t i = 0; i < proto->n_value_info; i++) {
    const char *name = proto->value_info[i]->name;
    split->info_values[i] = name ? psplit_i_graph_find_value(split->graph, name) : PSPLIT_NONE;
  }
  return PSPLIT_OK;
}

/* JSON is UTF-8, so another name could not be told from others in pipeline.json. */
static psplit_code check_name(const char *name, const char *what, psplit_diag *diag) {
  if (psplit_i_is_utf8(name)) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "%s \"%s\" is not UTF-8, so pipeline.json cannot name it", what, name);
}

/* Of all that the manifest names. */
static psplit_code check_names(const psplit_i_split *split, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = split->graph;
  for (uint32_t i = 0; i < graph->n_inputs; i++)
    PSPLIT_TRY(check_name(graph->values[graph->inputs[i]].name, "graph input", diag));
  for (uint32_t o = 0; o < graph->n_outputs; o++)
    PSPLIT_TRY(check_name(graph->values[graph->outputs[o]].name, "graph output", diag));
  for (uint32_t t = 0; t < split->plan->n_transfers; t++)
    PSPLIT_TRY(check_name(split->plan->transfers[t].tensor, "tensor between stages", diag));
  for (size_t i = 0; i < split->model->inlined.n; i++) {
    PSPLIT_TRY(check_name(split->model->inlined.items[i].node, "inlined If", diag));
    PSPLIT_TRY(check_name(split->model->inlined.items[i].condition, "condition", diag));
  }
out:
  return code;
}

psplit_code psplit_i_split_init(psplit_i_split *split, const psplit_model *model,
                                const psplit_plan *plan, const psplit_emit_options *options,
                                psplit_diag *diag) {
  psplit_code code;
  *split = (psplit_i_split){.model = model,
                            .graph = psplit_i_model_graph(model),
                            .plan = plan,
                            .boundary = options ? options->boundary : PSPLIT_BOUNDARY_SENDRECV};
  psplit_i_arena_init(&split->arena, 0);
  PSPLIT_TRY(check_nodes(split, diag));
  PSPLIT_TRY(check_transfers(split, diag));
  PSPLIT_TRY(check_names(split, diag));
  split->stages = PSPLIT_NEW(&split->arena, psplit_i_stage, plan->n_stages);
  if (!split->stages) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(find_infos(split, diag));
  PSPLIT_TRY(list_nodes(split, diag));
  PSPLIT_TRY(check_counts(split, diag));
  PSPLIT_TRY(psplit_i_boundary_init(split, diag));
  PSPLIT_TRY(fill_stages(split, diag));
  PSPLIT_TRY(psplit_i_stage_names(split, options ? options->name_template : NULL, diag));
out:
  if (code != PSPLIT_OK) psplit_i_split_fini(split);
  return code;
}

void psplit_i_split_fini(psplit_i_split *split) {
  psplit_i_arena_fini(&split->arena);
  split->stages = NULL;
}
