/* pipeline.json: docs/manifest.md says what each key means, docs/manifest.schema.json its form. */
#include <inttypes.h>
#include <stdio.h>

#include "base_name.h"
#include "emit.h"
#include "json_put.h"
#include "promise.h"

static void key_string(psplit_i_json *json, const char *key, const char *value) {
  psplit_i_json_put_string(json, key, value ? value : "");
}

/* --- types --- */

/* "float32", "sequence(map(int64, float32))"; false where it is not known. Depth: the scan's. */
static bool print_type(const Onnx__TypeProto *type, psplit_i_text *out) {
  switch (psplit_i_type_kind(type)) {
    case PSPLIT_TYPE_TENSOR:
    case PSPLIT_TYPE_SPARSE_TENSOR: {
      const char *name = psplit_i_dtype_name(psplit_i_type_elem(type));
      if (!name) return false;
      const bool sparse = psplit_i_type_kind(type) == PSPLIT_TYPE_SPARSE_TENSOR;
      psplit_i_text_addf(out, sparse ? "sparse_tensor(%s)" : "%s", name);
      return true;
    }
    case PSPLIT_TYPE_SEQUENCE:
    case PSPLIT_TYPE_OPTIONAL:
      psplit_i_text_puts(
        out, psplit_i_type_kind(type) == PSPLIT_TYPE_SEQUENCE ? "sequence(" : "optional(");
      if (!print_type(psplit_i_type_inner(type), out)) return false;
      psplit_i_text_puts(out, ")");
      return true;
    case PSPLIT_TYPE_MAP: {
      const char *key = psplit_i_dtype_name(type->map_type->key_type);
      if (!key) return false;
      psplit_i_text_addf(out, "map(%s, ", key);
      if (!print_type(type->map_type->value_type, out)) return false;
      psplit_i_text_puts(out, ")");
      return true;
    }
    case PSPLIT_TYPE_OPAQUE: psplit_i_text_puts(out, "opaque"); return true;
    default: return false;
  }
}

static void write_dim(psplit_i_json *json, psplit_i_declared_dim dim) {
  if (dim.value >= 0)
    psplit_i_json_int(json, dim.value);
  else if (dim.param)
    psplit_i_json_string(json, dim.param);
  else
    psplit_i_json_null(json);
}

/* `dims` in place of those of the type; NULL: these. */
static void write_declared(psplit_i_json *json, const Onnx__TypeProto *type,
                           const psplit_i_declared_dim *dims) {
  psplit_i_text dtype = {0};
  psplit_i_json_key(json, "dtype");
  if (print_type(type, &dtype) && dtype.bytes)
    psplit_i_json_string(json, dtype.bytes);
  else
    psplit_i_json_null(json);
  if (dtype.failed) json->out->failed = true;
  psplit_i_text_fini(&dtype);
  psplit_i_json_key(json, "shape");
  const int64_t rank = psplit_i_type_rank(type);
  if (rank < 0) {
    psplit_i_json_null(json);
    return;
  }
  psplit_i_json_open(json, '[');
  for (uint32_t a = 0; a < rank; a++) write_dim(json, dims ? dims[a] : psplit_i_type_dim(type, a));
  psplit_i_json_close(json, ']');
}

void psplit_i_manifest_type(psplit_i_json *json, const psplit_i_boundary_type *type) {
  key_string(json, "dtype", psplit_i_dtype_name(type->elem));
  psplit_i_json_key(json, "shape");
  if (type->rank < 0) {
    psplit_i_json_null(json);
    return;
  }
  psplit_i_json_open(json, '[');
  for (int32_t a = 0; a < type->rank; a++) write_dim(json, type->dims[a]);
  psplit_i_json_close(json, ']');
}

/* --- the model's own inputs and outputs --- */

/* Before IR 4 every initializer had to be listed as an input, and runtimes take it as constant. */
static bool overridable(const psplit_i_split *split) {
  return psplit_i_model_ir_version(split->model) >= 4;
}

static void write_value(psplit_i_json *json, const psplit_i_value *value,
                        const Onnx__ValueInfoProto *declared, const psplit_i_declared_dim *dims) {
  psplit_i_json_open(json, '{');
  json->compact = true;
  key_string(json, "name", value->name);
  write_declared(json, declared->type, dims);
  psplit_i_json_close(json, '}');
  json->compact = false;
}

/* Inputs that have an initializer as their default, or those that have none. */
static void write_graph_inputs(psplit_i_json *json, const psplit_i_graph *graph, const char *key,
                               bool with_default) {
  psplit_i_json_put_open(json, key, '[');
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const psplit_i_value *value = &graph->values[graph->inputs[i]];
    if (psplit_i_has_initializer(value) == with_default)
      write_value(json, value, graph->proto->input[i], NULL);
  }
  psplit_i_json_close(json, ']');
}

static void write_graph_outputs(const psplit_i_split *split, psplit_i_json *json) {
  const psplit_i_graph *graph = split->graph;
  psplit_i_json_put_open(json, "outputs", '[');
  for (uint32_t o = 0; o < graph->n_outputs; o++)
    write_value(json, &graph->values[graph->outputs[o]], graph->proto->output[o],
                split->output_dims ? split->output_dims[o] : NULL);
  psplit_i_json_close(json, ']');
}

static bool any_optional(const psplit_i_graph *graph) {
  for (uint32_t i = 0; i < graph->n_inputs; i++)
    if (psplit_i_has_initializer(&graph->values[graph->inputs[i]])) return true;
  return false;
}

/* --- stages --- */

static void write_inputs(const psplit_i_split *split, psplit_i_json *json, const char *key,
                         const psplit_i_stage *stage, bool optional) {
  psplit_i_json_put_open(json, key, '[');
  for (uint32_t i = 0; i < stage->n_inputs; i++) {
    const psplit_i_port *port = &stage->inputs[i];
    const psplit_i_value *value = &split->graph->values[port->value];
    if (psplit_i_has_initializer(value) != optional) continue;
    psplit_i_json_open(json, '{');
    json->compact = true;
    key_string(json, "name", port->name);
    key_string(json, "tensor", value->name);
    if (port->model)
      key_string(json, "from", "model");
    else
      psplit_i_json_put_uint(json, "from", split->plan->transfers[port->transfer].from);
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

static void write_outputs(const psplit_i_split *split, psplit_i_json *json,
                          const psplit_i_stage *stage) {
  psplit_i_json_put_open(json, "outputs", '[');
  for (uint32_t o = 0; o < stage->n_outputs; o++) {
    const psplit_i_port *port = &stage->outputs[o];
    psplit_i_json_open(json, '{');
    json->compact = true;
    key_string(json, "name", port->name);
    key_string(json, "tensor", split->graph->values[port->value].name);
    psplit_i_json_put_open(json, "to", '[');
    for (uint32_t t = 0; t < port->n_transfers; t++)
      psplit_i_json_uint(json, split->plan->transfers[port->transfer + t].to);
    if (port->model) psplit_i_json_string(json, "model");
    psplit_i_json_close(json, ']');
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

static void write_replicas(const psplit_plan_stage *plan, psplit_i_json *json) {
  psplit_i_json_put_uint(json, "replicas", plan->n_replicas);
  psplit_i_json_put_open(json, "devices", '[');
  json->compact = true;
  for (uint32_t r = 0; r < plan->n_replicas; r++)
    psplit_i_json_string(json, plan->replica_devices[r]);
  psplit_i_json_close(json, ']');
  json->compact = false;
}

static void write_stage(const psplit_i_split *split, uint32_t s, psplit_i_json *json) {
  const psplit_plan_stage *plan = &split->plan->stages[s];
  psplit_i_json_open(json, '{');
  psplit_i_json_put_uint(json, "index", s);
  key_string(json, "file", split->stage_names[s]);
  key_string(json, "device", plan->device);
  if (plan->n_replicas > 1) write_replicas(plan, json);
  psplit_i_json_put_uint(json, "nodes", plan->n_nodes);
  psplit_i_json_put_uint(json, "duplicated_nodes", plan->n_duplicated);
  psplit_i_json_put_uint(json, "supernodes", plan->n_supernodes);
  psplit_i_json_put_uint(json, "weight_bytes", plan->weight_bytes);
  psplit_i_json_put_uint(json, "peak_activation_bytes", plan->peak_activation_bytes);
  psplit_i_json_put_uint(json, "buffer_bytes", plan->buffer_bytes);
  psplit_i_json_put_uint(json, "workspace_bytes", plan->workspace_bytes);
  if (plan->state_bytes) psplit_i_json_put_uint(json, "state_bytes", plan->state_bytes);
  psplit_i_json_put_uint(json, "memory_bytes", plan->memory_bytes);
  psplit_i_json_put_int(json, "compute_ns", plan->compute_ns);
  psplit_i_json_put_int(json, "recv_ns", plan->recv_ns);
  psplit_i_json_put_int(json, "send_ns", plan->send_ns);
  psplit_i_json_put_int(json, "load_ns", plan->load_ns);
  if (psplit_plan_is_fill_drain(split->plan))
    psplit_i_json_put_int(json, "backward_load_ns", plan->backward_load_ns);
  psplit_i_json_put_int(json, "layout_ns", plan->layout_ns);
  write_inputs(split, json, "inputs", &split->stages[s], false);
  if (overridable(split) && any_optional(split->graph))
    write_inputs(split, json, "optional_inputs", &split->stages[s], true);
  write_outputs(split, json, &split->stages[s]);
  psplit_i_json_close(json, '}');
}

static void write_transfers(const psplit_i_split *split, psplit_i_json *json) {
  psplit_i_json_put_open(json, "transfers", '[');
  for (uint32_t t = 0; t < split->plan->n_transfers; t++) {
    const psplit_plan_transfer *transfer = &split->plan->transfers[t];
    psplit_i_json_open(json, '{');
    json->compact = true;
    psplit_i_json_put_uint(json, "tag", t);
    key_string(json, "tensor", split->graph->values[transfer->value].name);
    psplit_i_json_put_uint(json, "from", transfer->from);
    psplit_i_json_put_uint(json, "to", transfer->to);
    psplit_i_manifest_type(json, &split->types[t]);
    if (transfer->bytes_known) {
      psplit_i_json_put_uint(json, "bytes", transfer->bytes);
    } else {
      psplit_i_json_key(json, "bytes");
      psplit_i_json_null(json);
    }
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

static void write_states(const psplit_plan *plan, psplit_i_json *json) {
  psplit_i_json_put_open(json, "state", '[');
  for (uint32_t i = 0; i < plan->n_states; i++) {
    const psplit_plan_state *state = &plan->states[i];
    psplit_i_json_open(json, '{');
    json->compact = true;
    key_string(json, "output", state->output);
    key_string(json, "input", state->input);
    psplit_i_json_put_id(json, "writer", state->writer);
    psplit_i_json_put_id(json, "reader", state->reader);
    psplit_i_json_put_bool(json, "shared_buffer", state->shared_buffer);
    psplit_i_json_key(json, "bytes");
    if (state->bytes_known)
      psplit_i_json_uint(json, state->bytes);
    else
      psplit_i_json_null(json);
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

/* One entry for a node that stands in several stages, by node. The copies are few beside the nodes,
 * and stages hold them in topological order, so a list by node is made by counting. */
static void write_duplicates(const psplit_i_split *split, psplit_i_json *json) {
  const psplit_plan *plan = split->plan;
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  uint32_t *off = PSPLIT_NEW(&scratch, uint32_t, (size_t)plan->n_nodes + 2);
  uint32_t *stages = PSPLIT_NEW(&scratch, uint32_t, plan->n_copies);
  psplit_i_json_put_open(json, "duplicates", '[');
  if (!off || !stages) {
    json->out->failed = true;
    goto out;
  }
  for (uint32_t c = 0; c < plan->n_copies; c++) off[plan->copies[c].node + 2]++;
  for (uint32_t n = 0; n < plan->n_nodes; n++) off[n + 2] += off[n + 1];
  for (uint32_t c = 0; c < plan->n_copies; c++)
    stages[off[plan->copies[c].node + 1]++] = plan->copies[c].stage;
  for (uint32_t n = 0; n < plan->n_nodes; n++) {
    if (off[n] == off[n + 1]) continue;
    psplit_i_json_open(json, '{');
    json->compact = true;
    psplit_i_json_put_uint(json, "index", n);
    key_string(json, "node", split->graph->nodes[n].name);
    psplit_i_json_put_uint(json, "stage", plan->node_stage[n]);
    psplit_i_json_put_open(json, "also", '[');
    for (uint32_t c = off[n]; c < off[n + 1]; c++) psplit_i_json_uint(json, stages[c]);
    psplit_i_json_close(json, ']');
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
out:
  psplit_i_json_close(json, ']');
  psplit_i_arena_fini(&scratch);
}

/* What the plan may be taken to promise. */
static void write_headline(const psplit_i_split *split, psplit_i_json *json) {
  const psplit_plan *plan = split->plan;
  const psplit_plan_data *data = &plan->data;
  psplit_i_promise_write(json, plan);
  if (!data->matters) return;
  char label[128];
  psplit_i_promise_open_data(json, data);
  psplit_i_json_put_string(
    json, "node",
    data->n_nodes ? psplit_i_node_label(split->graph, data->heaviest, label, sizeof label) : NULL);
  psplit_i_json_put_uint(json, "transfers", data->n_transfers);
  psplit_i_json_put_string(json, "tensor",
                           data->n_transfers ? plan->transfers[data->largest].tensor : NULL);
  psplit_i_json_close(json, '}');
}

static void write_phases(const psplit_plan *plan, psplit_i_json *json) {
  psplit_i_json_put_open(json, "phases", '[');
  for (uint32_t i = 0; i < plan->n_phases; i++) {
    const psplit_plan_phase *phase = &plan->phases[i];
    psplit_i_json_open(json, '{');
    json->compact = true;
    key_string(json, "name", phase->name);
    psplit_i_json_put_int(json, "past", phase->past);
    psplit_i_json_put_int(json, "tokens", phase->tokens);
    psplit_i_json_put_int(json, "batch", phase->batch);
    psplit_i_json_put_double(json, "step_frac", phase->step_frac);
    psplit_i_json_put_int(json, "bottleneck_ns", phase->bottleneck_ns);
    psplit_i_json_put_open(json, "load_ns", '[');
    for (uint32_t s = 0; s < plan->n_stages; s++) psplit_i_json_int(json, phase->load_ns[s]);
    psplit_i_json_close(json, ']');
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

static void write_plan(const psplit_i_split *split, psplit_i_json *json) {
  const psplit_plan *plan = split->plan;
  psplit_i_json_put_open(json, "plan", '{');
  key_string(json, "objective", plan->objective);
  if (plan->overlap) {
    psplit_i_json_put_bool(json, "overlap", true);
  }
  key_string(json, "solver", plan->solver);
  key_string(json, "bound", plan->bound);
  psplit_i_json_put_int(json, "bottleneck_ns", plan->bottleneck_ns);
  psplit_i_json_put_int(json, "latency_ns", plan->latency_ns);
  if (psplit_plan_is_fill_drain(plan))
    psplit_i_json_put_int(json, "fill_drain_ns", plan->fill_drain_ns);
  if (plan->latency_per_pair) key_string(json, "message_latency", "per_pair");
  psplit_i_json_put_int(json, "lower_bound_ns", plan->lower_bound_ns);
  psplit_i_json_put_double(json, "gap_frac", plan->gap_frac);
  psplit_i_json_put_bool(json, "proved_optimal", plan->proved_optimal);
  write_headline(split, json);
  key_string(json, "cost_source", plan->cost_source);
  if (plan->measured_frac > 0) {
    psplit_i_json_put_double(json, "measured_frac", plan->measured_frac);
  }
  psplit_i_json_put_int(json, "total_compute_ns", plan->total_compute_ns);
  psplit_i_json_put_uint(json, "supernodes", plan->n_supernodes);
  psplit_i_json_put_uint(json, "unknown_nodes", plan->n_unknown_nodes);
  psplit_i_json_put_uint(json, "dead_nodes", plan->n_dead_nodes);
  if (plan->best_ns) {
    psplit_i_json_put_open(json, "given_up", '{');
    psplit_i_json_put_int(json, "best_bottleneck_ns", plan->best_ns);
    psplit_i_json_put_uint(json, "best_transfers", plan->best_transfers);
    psplit_i_json_put_bool(json, "best_proved", plan->best_proved);
    if (plan->best_proof_scope) key_string(json, "best_proof_scope", plan->best_proof_scope);
    psplit_i_json_close(json, '}');
  }
  if (plan->n_phases) write_phases(plan, json);
  if (plan->n_assumed) {
    psplit_i_json_put_open(json, "assumed_dims", '{');
    for (uint32_t i = 0; i < plan->n_assumed; i++)
      psplit_i_json_put_int(json, plan->assumed_names[i], plan->assumed_value);
    psplit_i_json_close(json, '}');
  }
  psplit_i_json_close(json, '}');
}

/* Ifs that were taken for one branch, and what has to be true for that. */
static void write_inlined(const psplit_model *model, psplit_i_json *json) {
  psplit_i_json_put_open(json, "inlined", '[');
  for (size_t i = 0; i < model->inlined.n; i++) {
    const psplit_inlined *one = &model->inlined.items[i];
    psplit_i_json_open(json, '{');
    json->compact = true;
    key_string(json, "node", one->node);
    key_string(json, "branch", one->then_branch ? "then" : "else");
    key_string(json, "condition", one->condition);
    psplit_i_json_put_bool(json, "assumed", one->assumed);
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_manifest_write(const psplit_i_split *split, psplit_i_text *out) {
  const psplit_i_graph *graph = split->graph;
  psplit_i_json json;
  psplit_i_json_init(&json, out);
  psplit_i_json_open(&json, '{');
  key_string(&json, "format", "onnx-pipeline-split");
  psplit_i_json_put_uint(&json, "version", 1);
  psplit_i_text producer = {0};
  psplit_i_text_addf(&producer, "onnx-pipeline-split %s", psplit_version());
  if (producer.failed) out->failed = true;
  key_string(&json, "producer", producer.bytes);
  psplit_i_text_fini(&producer);
  key_string(&json, "model", psplit_i_base_name(psplit_i_model_path(split->model)));
  if (split->model->inlined.n) write_inlined(split->model, &json);
  key_string(&json, "boundary", split->boundary == PSPLIT_BOUNDARY_IO ? "io" : "sendrecv");
  write_graph_inputs(&json, graph, "inputs", false);
  if (overridable(split) && any_optional(graph))
    write_graph_inputs(&json, graph, "optional_inputs", true);
  write_graph_outputs(split, &json);
  psplit_i_json_put_open(&json, "stages", '[');
  for (uint32_t s = 0; s < split->plan->n_stages; s++) write_stage(split, s, &json);
  psplit_i_json_close(&json, ']');
  write_transfers(split, &json);
  if (split->plan->n_states) write_states(split->plan, &json);
  if (split->plan->n_copies) write_duplicates(split, &json);
  write_plan(split, &json);
  if (split->n_files) {
    psplit_i_json_put_open(&json, "files", '[');
    for (size_t f = 0; f < split->n_files; f++) psplit_i_json_string(&json, split->files[f].name);
    psplit_i_json_close(&json, ']');
  }
  if (split->extra && split->extra->manifest) split->extra->manifest(split->extra->user, &json);
  psplit_i_json_close(&json, '}');
}
