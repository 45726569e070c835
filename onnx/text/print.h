/* The printer of the text form. Each message is printed in ONNX's syntax as far as that has a place
 * for its fields, the others behind it in @{...}; one that does not fit is spelled out, {...}.
 * Failures stick in `code`; what is printed after one is of no use. */
#ifndef PSPLIT_ONNX_TEXT_PRINT_H
#define PSPLIT_ONNX_TEXT_PRINT_H

#include "onnx.pb-c.h"
#include "text_form.h"

typedef struct psplit_i_printer psplit_i_printer;

/* How a kind of message is printed that has a syntax of its own. */
typedef struct psplit_i_message_printer {
  const ProtobufCMessageDescriptor *descriptor;
  void (*print)(psplit_i_printer *printer, const void *message);
} psplit_i_message_printer;

struct psplit_i_printer {
  psplit_i_text *out;
  unsigned indent; /* levels of two spaces */
  uint64_t max_data_bytes;
  psplit_i_payload_reader reader;
  void *user;
  psplit_diag *diag;
  psplit_code code;
  /* The syntax of messages, ended by one without a descriptor. Messages hold messages of any kind,
   * so what prints fields finds here what stands above it. */
  const psplit_i_message_printer *syntax;
};

/* A set of field numbers, all below 64: bit n for field n. */
#define PSPLIT_I_FIELD(number) (UINT64_C(1) << (number))

/* --- values (print_value.c) --- */

/* Text as it is. */
void psplit_i_print(psplit_i_printer *printer, const char *text);
void psplit_i_print_line(psplit_i_printer *printer); /* a new one, indented */
/* The separator between items; none before the first. */
void psplit_i_print_comma(psplit_i_printer *printer, bool first);
void psplit_i_print_string(psplit_i_printer *printer, const void *bytes, size_t n);
/* A word where it can be one, else a string; where a type may stand too, not a type's word. */
void psplit_i_print_word(psplit_i_printer *printer, const char *name);
void psplit_i_print_name(psplit_i_printer *printer, const char *name);
/* `exact` numbers tell from whole ones: 1.0. */
void psplit_i_print_float(psplit_i_printer *printer, float value, bool exact);
void psplit_i_print_double(psplit_i_printer *printer, double value);

/* --- fields by name (print_fields.c) --- */

/* Whether a field that is not in `printed` is set, an unknown one too. */
bool psplit_i_has_more(const ProtobufCMessage *message, uint64_t printed);
/* "field: value" of each of these; `lines`: one a line. */
void psplit_i_print_fields(psplit_i_printer *printer, const ProtobufCMessage *message,
                           uint64_t printed, bool lines);
/* " @{fields}", if there are any. */
void psplit_i_print_more(psplit_i_printer *printer, const ProtobufCMessage *message,
                         uint64_t printed);
/* {fields} */
void psplit_i_print_spelled_out(psplit_i_printer *printer, const ProtobufCMessage *message);
/* ["key": "value", ...] */
void psplit_i_print_pairs(psplit_i_printer *printer, size_t n,
                          Onnx__StringStringEntryProto *const *items);

/* --- types and tensors (print_type.c, print_tensor.c) --- */

/* As the text form has them, docs/text-form.md. */
void psplit_i_print_type(psplit_i_printer *printer, const Onnx__TypeProto *type);
void psplit_i_print_value_info(psplit_i_printer *printer, const Onnx__ValueInfoProto *info);
void psplit_i_print_tensor(psplit_i_printer *printer, const Onnx__TensorProto *tensor,
                           bool assigned); /* always with '=' */

#endif
