/* Inputs and outputs that a stage's file has for training alone: trained weights, stashed
 * values. */
#include <inttypes.h>
#include <string.h>

#include "declared.h"
#include "verify.h"

/* The value whose shape has this name, or PSPLIT_NONE. */
static uint32_t shape_of(const psplit_i_proof *p, const char *name) {
  return psplit_i_training_ports_find(p->training, PSPLIT_I_SET_SHAPE, name, 0);
}

bool psplit_i_is_training_port_node(const psplit_i_proof *p, const psplit_i_node *node) {
  if (!p->training || !psplit_i_node_is(node, "Shape") || node->function != PSPLIT_NONE ||
      node->n_inputs != 1 || node->n_outputs != 1 || node->inputs[0] == PSPLIT_NONE ||
      node->outputs[0] == PSPLIT_NONE || node->n_attributes)
    return false;
  const uint32_t value = shape_of(p, p->part->values[node->outputs[0]].name);
  return value != PSPLIT_NONE &&
         strcmp(p->graph->values[value].name, p->part->values[node->inputs[0]].name) == 0;
}

psplit_code psplit_i_check_first_value(psplit_i_proof *p, const psplit_i_value *part) {
  if (part->input == PSPLIT_NONE || p->training->table->plain_weights)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": the trained weight \"%s\" is %s", p->at,
                            part->name,
                            part->input == PSPLIT_NONE ? "not an input" : "an initializer as well");
  return PSPLIT_OK;
}

/* The type of a port is that of the tensor that the model holds. */
static bool is_type_of(const psplit_i_tensor *tensor, const Onnx__TypeProto *type) {
  bool good = psplit_i_type_kind(type) == PSPLIT_TYPE_TENSOR &&
              psplit_i_type_elem(type) == tensor->data_type &&
              psplit_i_type_rank(type) == (int64_t)tensor->n_dims;
  for (uint32_t a = 0; good && a < tensor->n_dims; a++)
    good = psplit_i_type_dim(type, a).value == tensor->dims[a];
  return good;
}

psplit_code psplit_i_check_weight_input(psplit_i_proof *p, uint32_t position) {
  const psplit_i_value *input = &p->part->values[p->part->inputs[position]];
  const uint32_t value = psplit_i_graph_find_value(p->graph, input->name);
  const psplit_i_tensor tensor =
    psplit_i_graph_initializer(p->graph, p->graph->values[value].initializer);
  if (psplit_i_training_ports_find(p->training, PSPLIT_I_SET_WEIGHT, input->name, p->at) ==
      PSPLIT_NONE)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": the manifest does not list weight \"%s\"", p->at,
                            input->name);
  if ((input->initializer == PSPLIT_NONE) != p->training->table->plain_weights)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": weight \"%s\" has %s first value there", p->at,
                            input->name, input->initializer == PSPLIT_NONE ? "no" : "a");
  if (!is_type_of(&tensor, p->stage->proto->graph->input[position]->type))
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": weight \"%s\" has another type", p->at,
                            input->name);
  return PSPLIT_OK;
}

/* The next value of a state: the model's own. */
static psplit_code check_state_output(psplit_i_proof *p, uint32_t position, uint32_t state) {
  psplit_code code;
  const char *name = p->part->values[p->part->outputs[position]].name;
  const uint32_t next = p->training->gradient->trainables[state].next;
  bool good = strcmp(p->graph->values[next].name, name) == 0;
  if (good) PSPLIT_TRY(psplit_i_is_declared(p, position, next, &good));
  if (!good)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": output \"%s\" is not the next \"%s\"", p->at,
                            name, psplit_gradient_trainable(p->training->gradient, state).name);
  return PSPLIT_OK;
out:
  return code;
}

psplit_code psplit_i_check_stash_output(psplit_i_proof *p, uint32_t position) {
  const char *name = p->part->values[p->part->outputs[position]].name;
  const uint32_t state = psplit_i_training_ports_find(p->training, PSPLIT_I_SET_STATE, name, p->at);
  if (state != PSPLIT_NONE) return check_state_output(p, position, state);
  const uint32_t row =
    psplit_i_training_ports_find(p->training, PSPLIT_I_SET_STASH_PORT, name, p->at);
  if (row == PSPLIT_NONE || strcmp(p->training->table->stages[p->at].stash[row].tensor, name) != 0)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": output \"%s\" goes nowhere, and is not kept",
                            p->at, name);
  psplit_code code;
  bool good = false;
  const uint32_t shape = shape_of(p, name), value = psplit_i_graph_find_value(p->graph, name);
  if (shape != PSPLIT_NONE) {
    const uint32_t producer = p->part->values[p->part->outputs[position]].producer;
    PSPLIT_TRY(psplit_i_is_declared_shape(p, position, shape, &good));
    if (good && producer != PSPLIT_NONE)
      PSPLIT_TRY(psplit_i_is_shape_of(p, name, producer, shape, &good));
  } else if (value != PSPLIT_NONE) {
    PSPLIT_TRY(psplit_i_is_declared(p, position, value, &good));
  }
  if (!good)
    return PSPLIT_I_DIFFERS(
      p, "stage %" PRIu32 ": output \"%s\", to be kept, is not as in the model", p->at, name);
  return PSPLIT_OK;
out:
  return code;
}

/* Whether a row of the stage's inputs or outputs carries the tensor through the port. */
static bool carries(const psplit_i_proof *p, const psplit_i_stash_row *kept) {
  const psplit_i_manifest_stage *ports = &p->manifest.stages[p->at];
  const uint32_t id = psplit_i_intern_find(&p->names, kept->name);
  const uint32_t in = id == PSPLIT_NONE ? PSPLIT_NONE : psplit_i_table_find(&p->rows, id, p->at, 0);
  const uint32_t out =
    id == PSPLIT_NONE ? PSPLIT_NONE : psplit_i_table_find(&p->rows, id, p->at, 1);
  return (in != PSPLIT_NONE && strcmp(ports->inputs[in].tensor, kept->tensor) == 0) ||
         (out != PSPLIT_NONE && strcmp(ports->outputs[out].tensor, kept->tensor) == 0);
}

static bool is_port(const psplit_i_proof *p, uint32_t value) {
  return value != PSPLIT_NONE &&
         (p->part->values[value].is_output || p->part->values[value].input != PSPLIT_NONE);
}

/* Each state of the stage goes on by an output that is its next value. */
static psplit_code check_states(psplit_i_proof *p) {
  const psplit_i_training_table *table = p->training->table;
  for (uint32_t w = 0; w < table->n_weights; w++) {
    const psplit_i_trained_weight *row = &table->weights[w];
    if (!row->next || row->owner != p->at) continue;
    const uint32_t state =
      psplit_i_training_ports_find(p->training, PSPLIT_I_SET_STATE, row->next, p->at);
    const uint32_t port = psplit_i_graph_find_value(p->part, row->next);
    bool good = state != PSPLIT_NONE && port != PSPLIT_NONE && p->part->values[port].is_output;
    if (good) {
      const char *tensor = psplit_gradient_trainable(p->training->gradient, state).next;
      const psplit_i_stash_row carried = {.name = row->next, .tensor = tensor};
      good = strcmp(psplit_gradient_trainable(p->training->gradient, state).name, row->name) == 0 &&
             (strcmp(tensor, row->next) == 0 || carries(p, &carried));
    }
    if (!good)
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": \"%s\" does not go on as \"%s\"", p->at,
                              row->name, row->next);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_check_stash(psplit_i_proof *p) {
  const psplit_code code = check_states(p);
  if (code != PSPLIT_OK) return code;

  const psplit_i_training_parts *stage = &p->training->table->stages[p->at];
  for (uint32_t w = 0; w < stage->n_weights; w++) {
    const uint32_t value = psplit_i_graph_find_value(p->part, stage->weights[w]);
    if (value == PSPLIT_NONE || p->part->values[value].input == PSPLIT_NONE ||
        !psplit_i_is_trained(p, stage->weights[w]))
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": weight \"%s\" is not an input there", p->at,
                              stage->weights[w]);
  }
  for (uint32_t i = 0; i < stage->n_stash; i++) {
    const psplit_i_stash_row *row = &stage->stash[i];
    const uint32_t port = psplit_i_graph_find_value(p->part, row->name);
    bool good = is_port(p, port);
    if (good && strcmp(row->name, row->tensor) != 0) {
      good = carries(p, row);
    } else if (good && shape_of(p, row->tensor) != PSPLIT_NONE) {
      const uint32_t producer = p->part->values[port].producer;
      good =
        producer != PSPLIT_NONE && psplit_i_is_training_port_node(p, &p->part->nodes[producer]);
    } else if (good) {
      /* A name of the model stands for the model's value in every stage: see proof.c. */
      good = psplit_i_graph_find_value(p->graph, row->tensor) != PSPLIT_NONE;
    }
    if (!good)
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": \"%s\", which is to be kept, is not \"%s\"",
                              p->at, row->tensor, row->name);
  }
  return PSPLIT_OK;
}
