/* The JSON format: docs/inspect.md names every key. Items stand one a line. */

#include "json_put.h"
#include "promise.h"
#include "view.h"

static void uint_or_null(psplit_i_json *json, const char *key, bool known, uint64_t number) {
  psplit_i_json_key(json, key);
  if (known)
    psplit_i_json_uint(json, number);
  else
    psplit_i_json_null(json);
}

static void key_uint(psplit_i_json *json, const char *key, uint64_t number) {
  uint_or_null(json, key, true, number);
}

static void key_ids(psplit_i_json *json, const char *key, const uint32_t *ids, uint32_t n) {
  psplit_i_json_put_open(json, key, '[');
  for (uint32_t i = 0; i < n; i++) {
    if (ids[i] == PSPLIT_NONE)
      psplit_i_json_null(json);
    else
      psplit_i_json_uint(json, ids[i]);
  }
  psplit_i_json_close(json, ']');
}

/* An object on one line. */
static void open_line(psplit_i_json *json) {
  psplit_i_json_open(json, '{');
  json->compact = true;
}

static void close_line(psplit_i_json *json) {
  psplit_i_json_close(json, '}');
  json->compact = false;
}

void psplit_i_view_json_nodes(psplit_i_json *json, const psplit_snapshot *s) {
  const bool costs = s->facts & PSPLIT_SNAPSHOT_COSTS;
  psplit_i_json_open(json, '[');
  for (uint32_t n = 0; n < s->n_nodes; n++) {
    const psplit_snapshot_node *node = &s->nodes[n];
    open_line(json);
    key_uint(json, "id", n);
    psplit_i_json_put_string(json, "name", node->name);
    psplit_i_json_put_string(json, "op", node->op_type);
    psplit_i_json_put_string(json, "domain", node->domain);
    psplit_i_json_put_id(json, "supernode", node->group);
    psplit_i_json_put_id(json, "stage", node->stage);
    psplit_i_json_put_bool(json, "constant", node->flags & PSPLIT_SNAPSHOT_NODE_FREE);
    psplit_i_json_put_bool(json, "dead", node->flags & PSPLIT_SNAPSHOT_NODE_DEAD);
    if (node->flags & PSPLIT_SNAPSHOT_NODE_DATA)
      psplit_i_json_put_bool(json, "data_dependent", true);
    psplit_i_json_put_string(json, "class", costs ? node->class_name : NULL);
    psplit_i_json_key(json, "cost_ns");
    if (costs)
      psplit_i_json_int(json, node->cost_ns);
    else
      psplit_i_json_null(json);
    uint_or_null(json, "flops", costs && node->work.known, node->work.flops);
    key_ids(json, "inputs", node->inputs, node->n_inputs);
    key_ids(json, "captures", node->captures, node->n_captures);
    key_ids(json, "outputs", node->outputs, node->n_outputs);
    close_line(json);
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_view_json_values(psplit_i_json *json, const psplit_snapshot *s) {
  psplit_i_json_open(json, '[');
  for (uint32_t v = 0; v < s->n_values; v++) {
    const psplit_snapshot_value *value = &s->values[v];
    open_line(json);
    key_uint(json, "id", v);
    psplit_i_json_put_string(json, "name", value->name);
    psplit_i_json_put_string(json, "type", value->type);
    psplit_i_json_put_id(json, "producer", value->producer);
    psplit_i_json_put_bool(json, "constant", value->is_constant);
    psplit_i_json_put_bool(json, "input", value->is_input);
    psplit_i_json_put_bool(json, "output", value->is_output);
    uint_or_null(json, "bytes", s->facts & PSPLIT_SNAPSHOT_COSTS, value->bytes);
    psplit_i_json_put_bool(json, "bytes_known", value->bytes_known);
    close_line(json);
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_view_json_groups(psplit_i_json *json, const psplit_snapshot *s) {
  const bool costs = s->facts & PSPLIT_SNAPSHOT_COSTS;
  psplit_i_json_open(json, '[');
  for (uint32_t g = 0; g < s->n_groups; g++) {
    const psplit_snapshot_group *group = &s->groups[g];
    open_line(json);
    key_uint(json, "id", g);
    psplit_i_json_put_string(json, "title", group->title);
    psplit_i_json_put_string(json, "kind", group->kind);
    psplit_i_json_put_id(json, "stage", group->stage);
    psplit_i_json_key(json, "cost_ns");
    if (costs)
      psplit_i_json_int(json, group->cost_ns);
    else
      psplit_i_json_null(json);
    uint_or_null(json, "weight_bytes", costs, group->weight_bytes);
    uint_or_null(json, "bytes_in", costs, group->bytes_in);
    uint_or_null(json, "bytes_out", costs, group->bytes_out);
    psplit_i_json_put_bool(json, "bytes_known", group->bytes_known);
    key_ids(json, "operators", group->nodes, group->n_nodes);
    close_line(json);
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_view_json_edges(psplit_i_json *json, const psplit_snapshot *s) {
  psplit_i_json_open(json, '[');
  for (uint32_t e = 0; e < s->n_edges; e++) {
    const psplit_snapshot_edge *edge = &s->edges[e];
    const psplit_snapshot_value *value = &s->values[edge->value];
    open_line(json);
    key_uint(json, "from", edge->from);
    key_uint(json, "to", edge->to);
    psplit_i_json_put_string(json, "tensor", value->name);
    psplit_i_json_put_string(json, "type", value->type);
    uint_or_null(json, "bytes", s->facts & PSPLIT_SNAPSHOT_COSTS, value->bytes);
    close_line(json);
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_view_json_repeats(psplit_i_json *json, const psplit_snapshot *s) {
  psplit_i_json_open(json, '[');
  for (uint32_t r = 0; r < s->n_repeats; r++) {
    const psplit_snapshot_repeat *repeat = &s->repeats[r];
    open_line(json);
    psplit_i_json_put_string(json, "title", repeat->title);
    key_uint(json, "first", repeat->first);
    key_uint(json, "blocks", repeat->n_blocks);
    key_uint(json, "supernodes", repeat->n_groups);
    close_line(json);
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_view_json_patterns(psplit_i_json *json, const psplit_snapshot *s) {
  psplit_i_json_open(json, '[');
  for (uint32_t p = 0; p < s->n_patterns; p++) {
    open_line(json);
    psplit_i_json_put_string(json, "name", s->patterns[p].name);
    key_uint(json, "matches", s->patterns[p].n_matches);
    key_uint(json, "operators", s->patterns[p].n_nodes);
    close_line(json);
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_view_json_notes(psplit_i_json *json, const psplit_snapshot *s) {
  psplit_i_json_open(json, '[');
  for (uint32_t n = 0; n < s->n_notes; n++) {
    const psplit_snapshot_note *note = &s->notes[n];
    open_line(json);
    psplit_i_json_put_string(json, "pass", note->pass);
    psplit_i_json_put_id(json, "operator", note->node);
    psplit_i_json_put_id(json, "supernode",
                         note->node == PSPLIT_NONE ? PSPLIT_NONE : s->nodes[note->node].group);
    psplit_i_json_put_string(json, "text", note->text);
    close_line(json);
  }
  psplit_i_json_close(json, ']');
}

static void put_states(psplit_i_json *json, const psplit_snapshot *s) {
  psplit_i_json_open(json, '[');
  for (uint32_t i = 0; i < s->n_states; i++) {
    const psplit_snapshot_state *state = &s->states[i];
    const psplit_snapshot_value *input = &s->values[state->input];
    open_line(json);
    psplit_i_json_put_string(json, "output", s->values[state->output].name);
    psplit_i_json_put_string(json, "input", input->name);
    psplit_i_json_put_id(json, "writer", state->writer);
    psplit_i_json_put_id(json, "reader", state->reader);
    psplit_i_json_put_bool(json, "shared_buffer", state->shared_buffer);
    psplit_i_json_put_bool(json, "named", state->named);
    uint_or_null(json, "bytes", input->bytes_known, input->bytes);
    close_line(json);
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_view_json_stages(psplit_i_json *json, const psplit_snapshot *s) {
  psplit_i_json_open(json, '[');
  for (uint32_t i = 0; i < s->n_stages; i++) {
    const psplit_plan_stage *stage = &s->plan->stages[i];
    const uint64_t limit = s->memory_limit_bytes[i];
    open_line(json);
    key_uint(json, "index", i);
    psplit_i_json_put_string(json, "device", stage->device);
    if (stage->n_replicas > 1) psplit_i_json_put_int(json, "replicas", stage->n_replicas);
    key_uint(json, "operators", stage->n_nodes);
    key_uint(json, "duplicated", stage->n_duplicated);
    key_uint(json, "supernodes", stage->n_supernodes);
    psplit_i_json_put_int(json, "compute_ns", stage->compute_ns);
    psplit_i_json_put_int(json, "recv_ns", stage->recv_ns);
    psplit_i_json_put_int(json, "send_ns", stage->send_ns);
    psplit_i_json_put_int(json, "load_ns", stage->load_ns);
    psplit_i_json_put_int(json, "layout_ns", stage->layout_ns);
    key_uint(json, "weight_bytes", stage->weight_bytes);
    key_uint(json, "activation_bytes", stage->peak_activation_bytes);
    key_uint(json, "buffer_bytes", stage->buffer_bytes);
    key_uint(json, "workspace_bytes", stage->workspace_bytes);
    if (stage->state_bytes) key_uint(json, "state_bytes", stage->state_bytes);
    key_uint(json, "memory_bytes", stage->memory_bytes);
    if (s->plan->trains) {
      psplit_i_json_put_int(json, "forward_ns", stage->compute_ns - stage->backward_ns);
      psplit_i_json_put_int(json, "backward_ns", stage->backward_ns);
      key_uint(json, "stash_bytes", stage->stash_bytes);
    }
    uint_or_null(json, "memory_limit_bytes", limit != UINT64_MAX, limit);
    close_line(json);
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_view_json_transfers(psplit_i_json *json, const psplit_snapshot *s) {
  psplit_i_json_open(json, '[');
  for (uint32_t t = 0; t < s->plan->n_transfers; t++) {
    const psplit_plan_transfer *transfer = &s->plan->transfers[t];
    open_line(json);
    key_uint(json, "tag", t);
    psplit_i_json_put_string(json, "tensor", transfer->tensor);
    key_uint(json, "from", transfer->from);
    key_uint(json, "to", transfer->to);
    key_uint(json, "bytes", transfer->bytes);
    psplit_i_json_put_bool(json, "bytes_known", transfer->bytes_known);
    close_line(json);
  }
  psplit_i_json_close(json, ']');
}

/* As pipeline.json has it, but for the number of the node. */
static void put_headline(psplit_i_json *json, const psplit_plan *plan) {
  const psplit_plan_data *data = &plan->data;
  psplit_i_promise_write(json, plan);
  if (plan->n_assumed) {
    psplit_i_json_put_open(json, "assumed_dims", '{');
    for (uint32_t i = 0; i < plan->n_assumed; i++)
      psplit_i_json_put_int(json, plan->assumed_names[i], plan->assumed_value);
    psplit_i_json_close(json, '}');
  }
  if (!data->matters) return;
  psplit_i_promise_open_data(json, data);
  psplit_i_json_put_id(json, "operator", data->heaviest);
  key_uint(json, "transfers", data->n_transfers);
  psplit_i_json_put_id(json, "transfer", data->largest);
  psplit_i_json_close(json, '}');
}

void psplit_i_view_json_plan(psplit_i_json *json, const psplit_snapshot *s) {
  const psplit_plan *plan = s->plan;
  psplit_i_json_open(json, '{');
  psplit_i_json_put_string(json, "objective", plan->objective);
  if (plan->overlap) psplit_i_json_put_bool(json, "overlap", true);
  psplit_i_json_put_string(json, "solver", plan->solver);
  psplit_i_json_put_string(json, "bound", plan->bound);
  psplit_i_json_put_int(json, "bottleneck_ns", plan->bottleneck_ns);
  psplit_i_json_put_int(json, "latency_ns", plan->latency_ns);
  if (psplit_plan_is_fill_drain(plan))
    psplit_i_json_put_int(json, "fill_drain_ns", plan->fill_drain_ns);
  if (plan->latency_per_pair) psplit_i_json_put_string(json, "message_latency", "per_pair");
  psplit_i_json_put_int(json, "lower_bound_ns", plan->lower_bound_ns);
  psplit_i_json_put_double(json, "gap_frac", plan->gap_frac);
  psplit_i_json_put_bool(json, "proved_optimal", plan->proved_optimal);
  psplit_i_json_put_int(json, "total_compute_ns", plan->total_compute_ns);
  put_headline(json, plan);
  psplit_i_json_close(json, '}');
}

void psplit_i_view_json(const psplit_snapshot *s, psplit_view_level level, psplit_i_text *out) {
  static const char *const levels[] = {"operators", "supernodes", "stages", "patterns"};
  psplit_i_json json;
  psplit_i_json_init(&json, out);
  psplit_i_json_open(&json, '{');
  psplit_i_json_put_string(&json, "format", "onnx-pipeline-inspect");
  psplit_i_json_put_int(&json, "version", 1);
  psplit_i_json_put_string(&json, "level", levels[level]);
  psplit_i_json_put_string(&json, "after", s->pass);
  psplit_i_json_key(&json, "notes");
  psplit_i_view_json_notes(&json, s);
  if (s->n_states) {
    psplit_i_json_key(&json, "state");
    put_states(&json, s);
  }
  switch (level) {
    case PSPLIT_VIEW_OPERATORS:
      psplit_i_json_key(&json, "operators");
      psplit_i_view_json_nodes(&json, s);
      psplit_i_json_key(&json, "tensors");
      psplit_i_view_json_values(&json, s);
      break;
    case PSPLIT_VIEW_SUPERNODES:
      psplit_i_json_key(&json, "supernodes");
      psplit_i_view_json_groups(&json, s);
      psplit_i_json_key(&json, "repeats");
      psplit_i_view_json_repeats(&json, s);
      psplit_i_json_key(&json, "edges");
      psplit_i_view_json_edges(&json, s);
      break;
    case PSPLIT_VIEW_STAGES:
      psplit_i_json_key(&json, "plan");
      psplit_i_view_json_plan(&json, s);
      psplit_i_json_key(&json, "stages");
      psplit_i_view_json_stages(&json, s);
      psplit_i_json_key(&json, "transfers");
      psplit_i_view_json_transfers(&json, s);
      break;
    case PSPLIT_VIEW_PATTERNS:
      psplit_i_json_key(&json, "patterns");
      psplit_i_view_json_patterns(&json, s);
      break;
  }
  psplit_i_json_close(&json, '}');
}
