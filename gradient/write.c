#include "write.h"
#include "fields.h"

#include <inttypes.h>

/* IR 8 goes with opset 18. */
enum { IR_VERSION = 8, OPSET = 18, OPSET_VERSION = 2 };

static void put_message(psplit_i_text *out, uint32_t field, const psplit_i_text *message) {
  psplit_i_wire_bytes(out, field, message->bytes ? message->bytes : "", message->n);
  if (message->failed) out->failed = true;
}

void psplit_i_put_nodes(const psplit_i_backward *b, psplit_i_text *out) {
  psplit_i_text node = {0};
  char label[64];
  for (size_t i = 0; i < b->nodes.n; i++) {
    const psplit_i_bnode *n = &b->nodes.items[i];
    if (!n->alive) continue;
    node.n = 0;
    for (uint32_t k = 0; k < n->n_inputs; k++) {
      const psplit_i_ref input = b->inputs.items[n->first_input + k];
      psplit_i_put_string(&node, PSPLIT_I_NODE_INPUT,
                          input == PSPLIT_NONE ? "" : b->values.items[input].name);
    }
    for (uint32_t o = 0; o < n->n_outputs; o++) {
      psplit_i_put_string(&node, PSPLIT_I_NODE_OUTPUT, b->values.items[n->output + o].name);
    }
    if (n->twin != PSPLIT_NONE) {
      const char *twin = psplit_i_node_label(b->forward, n->twin, label, sizeof label);
      psplit_i_text name = {0};
      psplit_i_text_addf(&name, "%s/grad.%zu", twin, i);
      put_message(&node, PSPLIT_I_NODE_NAME, &name);
      psplit_i_text_fini(&name);
    }
    psplit_i_put_string(&node, PSPLIT_I_NODE_OP_TYPE, n->op_type);
    if (n->attribute_bytes) psplit_i_text_add(&node, n->attributes, n->attribute_bytes);
    put_message(out, PSPLIT_I_GRAPH_NODE, &node);
  }
  psplit_i_text_fini(&node);
}

void psplit_i_put_constants(const psplit_i_backward *b, psplit_i_text *out) {
  psplit_i_text tensor = {0};
  for (size_t i = 0; i < b->constants.n; i++) {
    const psplit_i_bconstant *c = &b->constants.items[i];
    const psplit_i_bvalue *value = &b->values.items[c->value];
    if (!value->alive) continue;
    tensor.n = 0;
    for (uint32_t d = 0; d < c->n_dims; d++)
      psplit_i_put_int(&tensor, PSPLIT_I_TENSOR_DIMS, c->dims[d]);
    psplit_i_put_int(&tensor, PSPLIT_I_TENSOR_DATA_TYPE, c->elem);
    psplit_i_put_string(&tensor, PSPLIT_I_TENSOR_NAME, value->name);
    psplit_i_put_raw(&tensor, c->elem, c->bytes, c->n_bytes);
    put_message(out, PSPLIT_I_GRAPH_INITIALIZER, &tensor);
  }
  psplit_i_text_fini(&tensor);
}

void psplit_i_put_model_head(psplit_i_text *out) {
  psplit_i_text opset = {0};
  psplit_i_put_int(out, PSPLIT_I_MODEL_IR_VERSION, IR_VERSION);
  psplit_i_put_string(out, PSPLIT_I_MODEL_PRODUCER, "onnx-pipeline-split");
  psplit_i_put_string(out, PSPLIT_I_MODEL_PRODUCER_VERSION, psplit_version());
  psplit_i_put_int(&opset, OPSET_VERSION, OPSET);
  put_message(out, PSPLIT_I_MODEL_OPSETS, &opset);
  psplit_i_text_fini(&opset);
}
