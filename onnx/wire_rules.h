/* Rules for the scan, compiled from the schema: wire type of each field, whether it may stay in the
 * file, and its contribution to the graph index. */
#ifndef PSPLIT_ONNX_WIRE_RULES_H
#define PSPLIT_ONNX_WIRE_RULES_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

enum {
  PSPLIT_I_MAX_FIELD = 32, /* field numbers of the schema are below this, but for payload_view */
  PSPLIT_I_MAX_MESSAGES = 40
};

/* Memory of the graph index per value of a graph, including growing tables. */
enum { PSPLIT_I_VALUE_INDEX_BYTES = 120 };

typedef enum psplit_i_field_kind {
  PSPLIT_I_FIELD_UNKNOWN = 0,
  PSPLIT_I_FIELD_VARINT,
  PSPLIT_I_FIELD_FIXED32,
  PSPLIT_I_FIELD_FIXED64,
  PSPLIT_I_FIELD_STRING,
  PSPLIT_I_FIELD_BYTES,
  PSPLIT_I_FIELD_MESSAGE
} psplit_i_field_kind;

typedef struct psplit_i_field_rule {
  uint8_t kind;    /* psplit_i_field_kind */
  uint8_t message; /* PSPLIT_I_FIELD_MESSAGE: index of its rules */
  bool repeated;
  bool payload;  /* may stay in the file */
  bool defines;  /* names a value of its graph */
  bool captures; /* may name an outer value, which all graphs in between then have */
} psplit_i_field_rule;

typedef struct psplit_i_message_rule {
  const ProtobufCMessageDescriptor *descriptor;
  uint32_t index_bytes; /* memory of the graph index per message */
  bool is_scope;        /* a graph, or a function */
  psplit_i_field_rule fields[PSPLIT_I_MAX_FIELD];
} psplit_i_message_rule;

/* Zeroed at first. */
typedef struct psplit_i_wire_rules {
  psplit_i_message_rule items[PSPLIT_I_MAX_MESSAGES];
  unsigned n;
} psplit_i_wire_rules;

/* Index of the rules of `descriptor`, compiled from protobuf-c's tables on first use, with those of
 * the messages in it. */
unsigned psplit_i_wire_rule(psplit_i_wire_rules *rules,
                            const ProtobufCMessageDescriptor *descriptor);

#endif
