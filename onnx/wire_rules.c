#include "wire_rules.h"

#include <assert.h>
#include <string.h>

#include "onnx.pb-c.h"

/* Memory the graph index takes, tables while they grow included, for each node and each graph. */
enum { NODE_INDEX_BYTES = 200, GRAPH_INDEX_BYTES = 600 };

/* Field numbers of the messages that the index is made from. */
enum {
  NODE_INPUT = 1,
  NODE_OUTPUT = 2,
  FUNCTION_INPUT = 4,
  GRAPH_INITIALIZER = 5,
  GRAPH_INPUT = 11,
  GRAPH_OUTPUT = 12,
  GRAPH_SPARSE_INITIALIZER = 15
};

static psplit_i_field_kind kind_of(const ProtobufCFieldDescriptor *field) {
  switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: return PSPLIT_I_FIELD_STRING;
    case PROTOBUF_C_TYPE_BYTES: return PSPLIT_I_FIELD_BYTES;
    case PROTOBUF_C_TYPE_MESSAGE: return PSPLIT_I_FIELD_MESSAGE;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32: return PSPLIT_I_FIELD_FIXED32;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64: return PSPLIT_I_FIELD_FIXED64;
    default: return PSPLIT_I_FIELD_VARINT;
  }
}

unsigned psplit_i_wire_rule(psplit_i_wire_rules *rules,
                            const ProtobufCMessageDescriptor *descriptor) {
  for (unsigned i = 0; i < rules->n; i++)
    if (rules->items[i].descriptor == descriptor) return i;
  assert(rules->n < PSPLIT_I_MAX_MESSAGES);
  const unsigned index = rules->n++;
  psplit_i_message_rule *rule = &rules->items[index];
  rule->descriptor = descriptor;
  const bool is_node = descriptor == &onnx__node_proto__descriptor;
  const bool is_graph = descriptor == &onnx__graph_proto__descriptor;
  const bool is_function = descriptor == &onnx__function_proto__descriptor;
  rule->is_scope = is_graph || is_function;
  rule->index_bytes = is_node ? NODE_INDEX_BYTES : rule->is_scope ? GRAPH_INDEX_BYTES : 0;
  for (unsigned i = 0; i < descriptor->n_fields; i++) {
    const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
    if (field->id >= PSPLIT_I_MAX_FIELD) continue; /* payload_view: handled by number */
    const bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    const psplit_i_field_kind kind = kind_of(field);
    const bool numeric = kind != PSPLIT_I_FIELD_STRING && kind != PSPLIT_I_FIELD_BYTES &&
                         kind != PSPLIT_I_FIELD_MESSAGE;
    const bool payload =
      descriptor == &onnx__tensor_proto__descriptor &&
      (strcmp(field->name, "raw_data") == 0 || (repeated && numeric && field->id != 1));
    rule->fields[field->id] = (psplit_i_field_rule){
      .kind = (uint8_t)kind,
      .repeated = repeated,
      .payload = payload,
      .defines = (is_node && field->id == NODE_OUTPUT) ||
                 (is_function && field->id == FUNCTION_INPUT) ||
                 (is_graph && (field->id == GRAPH_INITIALIZER || field->id == GRAPH_INPUT ||
                               field->id == GRAPH_SPARSE_INITIALIZER)),
      .captures = (is_node && field->id == NODE_INPUT) || (is_graph && field->id == GRAPH_OUTPUT),
      .message =
        kind == PSPLIT_I_FIELD_MESSAGE ? (uint8_t)psplit_i_wire_rule(rules, field->descriptor) : 0};
  }
  return index;
}
