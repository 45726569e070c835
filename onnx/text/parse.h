/* The parser of the text form: recursive descent from tokens to protobuf-c messages in an arena.
 * It knows the grammar of docs/text-form.md and nothing of what ONNX says about models, so that a
 * text can also say a model that is wrong.
 *
 * Every function reads one thing of the grammar and leaves the token behind it. After an error
 * (lexer.h: it sticks) what they return and fill is of no use, but sound to touch. */
#ifndef PSPLIT_ONNX_TEXT_PARSE_H
#define PSPLIT_ONNX_TEXT_PARSE_H

#include "lexer.h"
#include "onnx.pb-c.h"
#include "text_form.h"

typedef struct psplit_i_parser psplit_i_parser;

/* How a kind of message is read that has a syntax of its own. */
typedef struct psplit_i_message_syntax {
  const ProtobufCMessageDescriptor *descriptor;
  void *(*parse)(psplit_i_parser *parser);
} psplit_i_message_syntax;

struct psplit_i_parser {
  psplit_i_lexer lexer;
  psplit_i_arena *arena;
  unsigned depth;     /* of nested types, graphs and spelled-out messages */
  bool fill_left_out; /* data that a printer left out is made up */
  uint64_t spill[64]; /* where messages go once memory is out, */
  char no_string[1];  /* and what stands for a string after an error */
  /* The syntax of messages, ended by one without a descriptor. Messages hold messages of any kind,
   * so what reads fields and attributes finds here what stands above it. */
  const psplit_i_message_syntax *syntax;
};

/* --- what is built (message.c) --- */

/* A message with nothing set; never NULL. */
void *psplit_i_new_message(psplit_i_parser *parser, const ProtobufCMessageDescriptor *descriptor);
/* Appends an element of `size` bytes to a repeated field. */
void psplit_i_push(psplit_i_parser *parser, size_t *n, void **items, const void *item, size_t size);
#define PSPLIT_I_PUSH(parser, message, field, value)                                   \
  psplit_i_push((parser), &(message)->n_##field, (void **)&(message)->field, &(value), \
                sizeof *(message)->field)

/* --- values (parse_value.c) --- */

/* A whole number from `least` to `most`; 0 after an error. `what` it is, for messages. */
int64_t psplit_i_parse_int(psplit_i_parser *parser, int64_t least, int64_t most, const char *what);
uint64_t psplit_i_parse_uint(psplit_i_parser *parser, uint64_t most, const char *what);
float psplit_i_parse_float(psplit_i_parser *parser);
double psplit_i_parse_double(psplit_i_parser *parser);
/* A string literal as a C string (no NUL inside) and as bytes; "" after an error. */
char *psplit_i_parse_string(psplit_i_parser *parser, const char *what);
ProtobufCBinaryData psplit_i_parse_bytes(psplit_i_parser *parser, const char *what);
/* A word or a string literal. */
char *psplit_i_parse_name(psplit_i_parser *parser, const char *what);
bool psplit_i_at_name(const psplit_i_parser *parser);
/* The same, or "" where there is none. */
char *psplit_i_parse_optional_name(psplit_i_parser *parser);
/* The word in the token, as a string. */
char *psplit_i_token_string(psplit_i_parser *parser);

/* --- fields by name (parse_fields.c) --- */

/* `field: value` separated by commas, up to the mark `close`, into a message. */
void psplit_i_parse_fields(psplit_i_parser *parser, ProtobufCMessage *message, const char *close);
/* "@{fields}" if it stands here: more fields of the message that was just read. */
void psplit_i_parse_more(psplit_i_parser *parser, ProtobufCMessage *message);
/* "{fields}": a message spelled out. */
void *psplit_i_parse_spelled_out(psplit_i_parser *parser,
                                 const ProtobufCMessageDescriptor *descriptor);
/* A message of this kind: {fields}, or its own syntax where it has one. */
void *psplit_i_parse_message(psplit_i_parser *parser, const ProtobufCMessageDescriptor *descriptor);
/* ["key": "value", ...], behind the '['. */
void psplit_i_parse_pairs(psplit_i_parser *parser, size_t *n,
                          Onnx__StringStringEntryProto ***items);

/* Guards against deep nesting: false, with an error, where it is too deep; else leave() follows. */
bool psplit_i_enter(psplit_i_parser *parser);
void psplit_i_leave(psplit_i_parser *parser);

/* --- types and tensors (parse_type.c, parse_tensor.c) --- */

/* Whether a type stands here; reads one; reads `type name`. NULL: an error is noted. */
bool psplit_i_at_type(const psplit_i_parser *parser);
Onnx__TypeProto *psplit_i_parse_type(psplit_i_parser *parser);
Onnx__ValueInfoProto *psplit_i_parse_value_info(psplit_i_parser *parser);

/* A tensor of a type that was read at offset `at`, which has to be one with plain dims. */
Onnx__TensorProto *psplit_i_tensor_of_type(psplit_i_parser *parser, const Onnx__TypeProto *type,
                                           size_t at);
/* type name? =? data */
Onnx__TensorProto *psplit_i_parse_tensor(psplit_i_parser *parser);
/* What stands behind the type of a tensor: name? =? data. */
void psplit_i_parse_tensor_rest(psplit_i_parser *parser, Onnx__TensorProto *tensor);
/* The data alone; what is behind '=' (raw, random) if `assigned`. */
void psplit_i_parse_data(psplit_i_parser *parser, Onnx__TensorProto *tensor, bool assigned);

/* --- attributes (parse_attribute.c) --- */

/* attr, attr ... up to '>'; in a function's list (`names` not NULL) plain names as well. */
void psplit_i_parse_attributes(psplit_i_parser *parser, size_t *n, Onnx__AttributeProto ***items,
                               size_t *n_names, char ***names);

#endif
