/* The words of the text form: ONNX's own names of element types and of attribute types. */
#ifndef PSPLIT_ONNX_TEXT_NAMES_H
#define PSPLIT_ONNX_TEXT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number format of the elements of a type. */
typedef enum psplit_i_number_kind {
  PSPLIT_I_NO_NUMBER, /* strings, several to the byte, unknown types */
  PSPLIT_I_REAL,      /* of 4 or 8 bytes */
  PSPLIT_I_SIGNED,
  PSPLIT_I_UNSIGNED /* bits of small floating-point types as well */
} psplit_i_number_kind;

typedef struct psplit_i_element {
  const char *name;          /* in ONNX's syntax */
  uint32_t field;            /* of TensorProto, for typed data; 0: the number says no type */
  uint32_t bits;             /* of an element in raw_data; 0: it cannot be raw */
  uint32_t parts;            /* numbers an element is made of: 2 for complex ones */
  psplit_i_number_kind kind; /* of a number in raw_data */
} psplit_i_element;

/* Properties of TensorProto.DataType `data_type`; never NULL. */
const psplit_i_element *psplit_i_element_of(int32_t data_type);
/* Element type by name, 0 if unknown. */
int32_t psplit_i_element_named(const char *name, size_t n);

/* "ints" for AttributeProto.AttributeType 7; NULL for a number without a name. */
const char *psplit_i_attribute_type_name(int32_t type);
/* Attribute type by name, 0 if unknown. */
int32_t psplit_i_attribute_type_named(const char *name, size_t n);

/* Whether a type can start with this word. */
bool psplit_i_starts_type(const char *name, size_t n);
/* inf, infinity or nan, in any case. */
bool psplit_i_is_real_word(const char *name, size_t n);

#endif
