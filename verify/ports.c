/* Transfers: a tensor leaves one stage and enters another under its own name (io) or through a Send
 * and a Recv. Rows of the manifest, transfers, ports of the files and boundary nodes must
 * correspond one to one, with one type from end to end. */
#include <inttypes.h>
#include <string.h>

#include "fields.h"
#include "verify.h"

static uint32_t find3(const psplit_i_proof *p, const psplit_i_table *table, const char *name,
                      uint32_t from, uint32_t to) {
  const uint32_t id = psplit_i_intern_find(&p->names, name);
  return id == PSPLIT_NONE ? PSPLIT_NONE : psplit_i_table_find(table, id, from, to);
}

/* --- boundary nodes --- */

static bool is_send(const psplit_i_node *node) { return strcmp(node->op_type, "Send") == 0; }

bool psplit_i_is_boundary_node(const psplit_i_proof *p, const psplit_i_node *node) {
  if (!p->manifest.sendrecv || !psplit_i_node_is_boundary(node)) return false;
  const uint32_t port = is_send(node) ? (node->n_outputs ? node->outputs[0] : PSPLIT_NONE)
                                      : (node->n_inputs ? node->inputs[0] : PSPLIT_NONE);
  return port == PSPLIT_NONE ||
         psplit_i_graph_find_value(p->graph, p->part->values[port].name) == PSPLIT_NONE;
}

psplit_code psplit_i_check_boundary_node(psplit_i_proof *p, uint32_t n) {
  const psplit_i_node *node = &p->part->nodes[n];
  const bool sends = is_send(node);
  int64_t tag = -1, peer = -1;
  const char *tensor = NULL;
  size_t n_tensor = 0;
  if (node->n_inputs != 1 || node->n_outputs != 1 || node->inputs[0] == PSPLIT_NONE ||
      node->outputs[0] == PSPLIT_NONE || !psplit_i_attr_int(node, "tag", &tag) || tag < 0 ||
      !psplit_i_attr_int(node, "peer", &peer) ||
      !psplit_i_attr_string(node, "tensor", &tensor, &n_tensor))
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": a %s node is not of the boundary's form",
                            psplit_i_called(p, p->at), node->op_type);
  const psplit_i_value *inner = &p->part->values[sends ? node->inputs[0] : node->outputs[0]];
  const psplit_i_value *port = &p->part->values[sends ? node->outputs[0] : node->inputs[0]];
  if (node->function == PSPLIT_NONE || !psplit_i_function_is_boundary(p->stage, node->function))
    return PSPLIT_I_DIFFERS(
      p, "stage %" PRIu32 ": %s of \"%s\" calls no function that forwards its input",
      psplit_i_called(p, p->at), node->op_type, inner->name);
  const uint32_t t =
    psplit_i_table_find(&p->tags, (uint32_t)tag, (uint32_t)((uint64_t)tag >> 32), 0);
  const psplit_i_manifest_transfer *transfer = t == PSPLIT_NONE ? NULL : &p->manifest.transfers[t];
  if (!transfer || strcmp(transfer->tensor, inner->name) != 0 || n_tensor != strlen(inner->name) ||
      memcmp(tensor, inner->name, n_tensor) != 0 ||
      (sends ? transfer->from : transfer->to) != p->at ||
      peer != (int64_t)(sends ? transfer->to : transfer->from))
    return PSPLIT_I_DIFFERS(p,
                            "stage %" PRIu32 ": %s of \"%s\" (tag %" PRId64 ", peer %" PRId64
                            ") is not a transfer of the manifest",
                            psplit_i_called(p, p->at), node->op_type, inner->name, tag, peer);
  if (sends ? !port->is_output : port->input == PSPLIT_NONE)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": %s of \"%s\" is not connected to the file's %s",
                            psplit_i_called(p, p->at), node->op_type, inner->name,
                            sends ? "outputs" : "inputs");
  uint32_t *met = &(sends ? p->sent : p->received)[t];
  if (*met)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": two %s nodes for \"%s\" with tag %" PRId64,
                            psplit_i_called(p, p->at), node->op_type, inner->name, tag);
  *met = n + 1;
  return PSPLIT_OK;
}

/* Whether `port` carries the tensor of transfer `t` as the boundary says: under its own name, or
 * through the one node of the stage that belongs to it. */
static bool joined(const psplit_i_proof *p, const char *port, uint32_t t, bool receives) {
  const psplit_i_manifest_transfer *transfer = &p->manifest.transfers[t];
  if (!p->manifest.sendrecv) return strcmp(port, transfer->tensor) == 0;
  const uint32_t met = (receives ? p->received : p->sent)[t];
  if (!met) return false;
  const psplit_i_node *node = &p->part->nodes[met - 1];
  const uint32_t outer = receives ? node->inputs[0] : node->outputs[0];
  int64_t dtype;
  return strcmp(p->part->values[outer].name, port) == 0 &&
         (!psplit_i_attr_int(node, "dtype", &dtype) ||
          (psplit_i_dtype_name((int32_t)dtype) &&
           strcmp(psplit_i_dtype_name((int32_t)dtype), transfer->dtype) == 0));
}

/* --- types of ports --- */

static psplit_code read_type(psplit_i_proof *p, const Onnx__ValueInfoProto *port,
                             psplit_i_port_type *out) {
  *out = (psplit_i_port_type){0};
  if (psplit_i_type_kind(port->type) != PSPLIT_TYPE_TENSOR) return PSPLIT_OK;
  out->elem = psplit_i_type_elem(port->type);
  const size_t n = onnx__type_proto__get_packed_size(port->type);
  uint8_t *bytes = psplit_i_arena_alloc(&p->scratch, n);
  if (!bytes) return psplit_i_nomem(p->diag);
  onnx__type_proto__pack(port->type, bytes);
  psplit_i_hasher hasher;
  psplit_i_hasher_init(&hasher);
  psplit_i_hasher_add(&hasher, bytes, n);
  psplit_i_hasher_done(&hasher, out->hash);
  return PSPLIT_OK;
}

/* The element type of transfer `t` is what the manifest says, and the model where it says one. */
static psplit_code check_elem(psplit_i_proof *p, uint32_t t, const psplit_i_port_type *type) {
  const psplit_i_manifest_transfer *transfer = &p->manifest.transfers[t];
  const char *name = psplit_i_dtype_name(type->elem);
  const uint32_t value = psplit_i_graph_find_value(p->graph, transfer->tensor);
  const psplit_i_value *whole = &p->graph->values[value];
  const int32_t declared = psplit_i_type_kind(whole->declared_type) == PSPLIT_TYPE_TENSOR
                             ? psplit_i_type_elem(whole->declared_type)
                             : 0;
  if (!name || strcmp(name, transfer->dtype) != 0 || (declared && declared != type->elem))
    return PSPLIT_I_DIFFERS(
      p, "stage %" PRIu32 ": \"%s\" crosses as %s, the %s says %s", psplit_i_called(p, p->at),
      transfer->tensor, name ? name : "no known type",
      name && strcmp(name, transfer->dtype) == 0 ? "model" : "manifest",
      name && strcmp(name, transfer->dtype) == 0 ? psplit_i_dtype_name(declared) : transfer->dtype);
  return PSPLIT_OK;
}

/* --- inputs --- */

/* An input that the model gives: declared as in the model, with a default where that has one. */
static psplit_code check_given(psplit_i_proof *p, uint32_t position, const psplit_i_row *row) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_value *input = &p->part->values[p->part->inputs[position]];
  const uint32_t value = psplit_i_graph_find_value(p->graph, input->name);
  const psplit_i_value *whole = value == PSPLIT_NONE ? NULL : &p->graph->values[value];
  bool equal =
    whole && whole->input != PSPLIT_NONE && (!row || strcmp(row->tensor, row->name) == 0);
  if (equal)
    PSPLIT_TRY(
      psplit_i_compare(p, PSPLIT_I_GRAPH_INPUT, whole->input, position, input->name, &equal));
  const bool differs = equal && psplit_i_has_initializer(whole) != psplit_i_has_initializer(input);
  if (!equal || (differs && !psplit_i_is_trained(p, input->name)))
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": input \"%s\" is not the model's",
                            psplit_i_called(p, p->at), input->name);
  if (row && row->optional != psplit_i_has_initializer(whole))
    return PSPLIT_I_DIFFERS(p,
                            "stage %" PRIu32 ": the manifest says that input \"%s\" has %s default",
                            psplit_i_called(p, p->at), input->name, row->optional ? "a" : "no");
out:
  return code;
}

static psplit_code check_received(psplit_i_proof *p, uint32_t position, const psplit_i_row *row) {
  psplit_code code;
  if (psplit_i_has_initializer(&p->part->values[p->part->inputs[position]]))
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": \"%s\" is received and an initializer",
                            psplit_i_called(p, p->at), row->name);
  if (row->from >= p->at)
    return PSPLIT_I_DIFFERS(
      p, "stage %" PRIu32 " receives \"%s\" from stage %" PRIu32 ", which is not before it",
      psplit_i_called(p, p->at), row->tensor, psplit_i_called(p, row->from));
  if (find3(p, &p->offers, row->tensor, row->from, p->at) == PSPLIT_NONE)
    return PSPLIT_I_DIFFERS(
      p, "stage %" PRIu32 " waits for \"%s\", which stage %" PRIu32 " does not send",
      psplit_i_called(p, p->at), row->tensor, psplit_i_called(p, row->from));
  const uint32_t t = find3(p, &p->transfers, row->tensor, row->from, p->at);
  if (t == PSPLIT_NONE)
    return PSPLIT_I_DIFFERS(
      p, "\"%s\" from stage %" PRIu32 " to %" PRIu32 " is missing among the transfers", row->tensor,
      psplit_i_called(p, row->from), psplit_i_called(p, p->at));
  if (!joined(p, row->name, t, true))
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": \"%s\" does not come out of input \"%s\"",
                            psplit_i_called(p, p->at), row->tensor, row->name);
  psplit_i_port_type type;
  PSPLIT_TRY(read_type(p, p->stage->proto->graph->input[position], &type));
  PSPLIT_TRY(check_elem(p, t, &type));
  const Onnx__TypeProto *declared = p->stage->proto->graph->input[position]->type;
  PSPLIT_TRY(psplit_i_check_port_shape(p, t, declared));
  PSPLIT_TRY(psplit_i_check_transfer_shape(p, t, declared));
  if (p->has_changed[row->from]) return PSPLIT_OK; /* its types were not looked at */
  const psplit_i_port_type *sent = &p->types[t];
  const psplit_i_row *sender =
    &p->manifest.stages[row->from].outputs[find3(p, &p->offers, row->tensor, row->from, p->at)];
  /* What is an output of the model as well is declared as the model declares it. Both have the
   * elements that the manifest says. */
  if (!sender->to_model && memcmp(type.hash, sent->hash, sizeof type.hash) != 0)
    return PSPLIT_I_DIFFERS(
      p, "stage %" PRIu32 ": \"%s\" has another type than in stage %" PRIu32 ", which sends it",
      psplit_i_called(p, p->at), row->tensor, psplit_i_called(p, row->from));
out:
  return code;
}

psplit_code psplit_i_check_inputs(psplit_i_proof *p) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest_stage *stage = &p->manifest.stages[p->at];
  uint32_t n_unlisted = 0;
  for (uint32_t i = 0; i < p->part->n_inputs; i++) {
    const psplit_i_value *input = &p->part->values[p->part->inputs[i]];
    const uint32_t r = find3(p, &p->rows, input->name, p->at, 0);
    const psplit_i_row *row = r == PSPLIT_NONE ? NULL : &stage->inputs[r];
    if (!row && psplit_i_is_trained(p, input->name)) {
      PSPLIT_TRY(psplit_i_check_weight_input(p, i));
      n_unlisted++;
      continue;
    }
    /* Before IR version 4 an input with an initializer cannot be overridden and needs no row. */
    if (!row && !(psplit_i_has_initializer(input) && psplit_i_model_ir_version(p->model) < 4))
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": the manifest does not list input \"%s\"",
                              psplit_i_called(p, p->at), input->name);
    n_unlisted += !row;
    PSPLIT_TRY(row && row->from != PSPLIT_I_FROM_MODEL ? check_received(p, i, row)
                                                       : check_given(p, i, row));
  }
  if (stage->n_inputs + n_unlisted != p->part->n_inputs)
    return PSPLIT_I_DIFFERS(
      p, "stage %" PRIu32 ": the manifest lists %" PRIu32 " inputs, the file has %" PRIu32,
      psplit_i_called(p, p->at), stage->n_inputs + n_unlisted, p->part->n_inputs);
out:
  return code;
}

/* --- outputs --- */

/* An output of the model that no other output of a stage was found to be. */
static psplit_code check_model_output(psplit_i_proof *p, uint32_t position,
                                      const psplit_i_row *row) {
  psplit_code code = PSPLIT_OK;
  const uint32_t value = psplit_i_graph_find_value(p->graph, row->name);
  uint32_t o = value == PSPLIT_NONE ? PSPLIT_NONE : p->first_output[value];
  bool equal = false;
  for (; o != PSPLIT_NONE && !equal; o = p->next_output[o]) {
    if (p->output_seen[o]) continue;
    PSPLIT_TRY(psplit_i_compare(p, PSPLIT_I_GRAPH_OUTPUT, o, position, row->name, &equal));
    if (equal) p->output_seen[o] = 1;
  }
  if (!equal || strcmp(row->tensor, row->name) != 0)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": output \"%s\" is not the model's",
                            psplit_i_called(p, p->at), row->name);
out:
  return code;
}

psplit_code psplit_i_check_outputs(psplit_i_proof *p) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest_stage *stage = &p->manifest.stages[p->at];
  if (p->training ? stage->n_outputs > p->part->n_outputs : stage->n_outputs != p->part->n_outputs)
    return PSPLIT_I_DIFFERS(
      p, "stage %" PRIu32 ": the manifest lists %" PRIu32 " outputs, the file has %" PRIu32,
      psplit_i_called(p, p->at), stage->n_outputs, p->part->n_outputs);
  for (uint32_t i = 0; i < p->part->n_outputs; i++) {
    const char *name = p->part->values[p->part->outputs[i]].name;
    if (i >= stage->n_outputs) {
      PSPLIT_TRY(psplit_i_check_stash_output(p, i));
      continue;
    }
    const psplit_i_row *row = &stage->outputs[i];
    if (strcmp(row->name, name) != 0)
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": output %" PRIu32 " is \"%s\", not \"%s\"",
                              psplit_i_called(p, p->at), i, name, row->name);
    if (!row->n_to && !row->to_model)
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": output \"%s\" goes nowhere",
                              psplit_i_called(p, p->at), name);
    if (row->to_model) PSPLIT_TRY(check_model_output(p, i, row));
    psplit_i_port_type type;
    if (row->n_to) PSPLIT_TRY(read_type(p, p->stage->proto->graph->output[i], &type));
    for (uint32_t k = 0; k < row->n_to; k++) {
      const uint32_t t = find3(p, &p->transfers, row->tensor, p->at, row->to[k]);
      if (t == PSPLIT_NONE)
        return PSPLIT_I_DIFFERS(
          p, "\"%s\" from stage %" PRIu32 " to %" PRIu32 " is missing among the transfers",
          row->tensor, psplit_i_called(p, p->at), psplit_i_called(p, row->to[k]));
      if (!joined(p, name, t, false))
        return PSPLIT_I_DIFFERS(
          p, "stage %" PRIu32 ": output \"%s\" does not send \"%s\" to %" PRIu32,
          psplit_i_called(p, p->at), name, row->tensor, psplit_i_called(p, row->to[k]));
      PSPLIT_TRY(check_elem(p, t, &type));
      if (!row->to_model)
        PSPLIT_TRY(psplit_i_check_port_shape(p, t, p->stage->proto->graph->output[i]->type));
      p->types[t] = type;
    }
  }
out:
  return code;
}

/* --- the manifest --- */

static psplit_code check_transfers(psplit_i_proof *p) {
  for (uint32_t t = 0; t < p->manifest.n_transfers; t++) {
    const psplit_i_manifest_transfer *transfer = &p->manifest.transfers[t];
    if (transfer->from >= transfer->to)
      return PSPLIT_I_DIFFERS(
        p, "\"%s\" goes from stage %" PRIu32 " to %" PRIu32 ", which is not a later stage",
        transfer->tensor, psplit_i_called(p, transfer->from), psplit_i_called(p, transfer->to));
    if (psplit_i_graph_find_value(p->graph, transfer->tensor) == PSPLIT_NONE)
      return PSPLIT_I_DIFFERS(p, "transfer %" PRIu64 ": \"%s\" is not a value of the model",
                              transfer->tag, transfer->tensor);
    if (find3(p, &p->offers, transfer->tensor, transfer->from, transfer->to) == PSPLIT_NONE)
      return PSPLIT_I_DIFFERS(
        p, "transfer %" PRIu64 ": stage %" PRIu32 " does not send \"%s\" to %" PRIu32,
        transfer->tag, psplit_i_called(p, transfer->from), transfer->tensor,
        psplit_i_called(p, transfer->to));
    if (find3(p, &p->wants, transfer->tensor, transfer->from, transfer->to) == PSPLIT_NONE)
      return PSPLIT_I_DIFFERS(p, "transfer %" PRIu64 ": stage %" PRIu32 " does not receive \"%s\"",
                              transfer->tag, psplit_i_called(p, transfer->to), transfer->tensor);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_check_manifest(psplit_i_proof *p) {
  psplit_code code;
  const psplit_i_manifest *m = &p->manifest;
  PSPLIT_TRY(check_transfers(p));
  if (m->n_outputs != p->graph->n_outputs)
    return PSPLIT_I_DIFFERS(p, "the manifest lists %" PRIu32 " outputs, the model has %" PRIu32,
                            m->n_outputs, p->graph->n_outputs);
  for (uint32_t o = 0; o < m->n_outputs; o++)
    if (strcmp(m->outputs[o], p->graph->values[p->graph->outputs[o]].name) != 0)
      return PSPLIT_I_DIFFERS(p, "the manifest's output %" PRIu32 " is \"%s\", the model's \"%s\"",
                              o, m->outputs[o], p->graph->values[p->graph->outputs[o]].name);
  for (uint32_t o = 0; o < m->n_outputs; o++)
    PSPLIT_TRY(
      psplit_i_check_declared(p, &m->output_values[o], p->model->proto->graph->output[o]->type));
  uint8_t *listed = PSPLIT_NEW(&p->arena, uint8_t, p->graph->n_inputs);
  if (!listed) return psplit_i_nomem(p->diag);
  for (uint32_t k = 0; k < m->n_inputs; k++) {
    const uint32_t value = psplit_i_graph_find_value(p->graph, m->inputs[k]);
    const uint32_t input = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].input;
    if (input == PSPLIT_NONE || listed[input])
      return PSPLIT_I_DIFFERS(
        p, "the manifest lists input \"%s\", which is %s", m->inputs[k],
        input == PSPLIT_NONE ? "not an input of the model" : "there only once");
    listed[input] = 1;
    if ((k >= m->n_needed) != psplit_i_has_initializer(&p->graph->values[value]))
      return PSPLIT_I_DIFFERS(p, "the manifest says that input \"%s\" has %s default", m->inputs[k],
                              k >= m->n_needed ? "a" : "no");
    PSPLIT_TRY(
      psplit_i_check_declared(p, &m->input_values[k], p->model->proto->graph->input[input]->type));
  }
  for (uint32_t i = 0; i < p->graph->n_inputs; i++) {
    const psplit_i_value *input = &p->graph->values[p->graph->inputs[i]];
    if (!listed[i] && !(psplit_i_has_initializer(input) && psplit_i_model_ir_version(p->model) < 4))
      return PSPLIT_I_DIFFERS(p, "the manifest does not list the model's input \"%s\"",
                              input->name);
  }
out:
  return code;
}
