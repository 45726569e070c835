/* Datatypes of the inference protocol. */
#ifndef PSPLIT_SERVE_DATATYPES_H
#define PSPLIT_SERVE_DATATYPES_H

#include <stdint.h>

enum { SERVE_BOOL = 9 };

/* By the protocol, numpy and TensorProto.DataType. */
typedef struct serve_datatype {
  const char *name, *numpy;
  int32_t data_type;
  uint32_t bytes; /* of an element; 0: texts */
  enum { SERVE_NO_JSON, SERVE_SIGNED, SERVE_UNSIGNED, SERVE_FLOAT, SERVE_TEXT } kind;
} serve_datatype;

/* Each NULL where there is none. */
const serve_datatype *serve_datatype_called(const char *name);
const serve_datatype *serve_datatype_of_numpy(const char *name);
const serve_datatype *serve_datatype_of(int32_t data_type);

enum { SERVE_LENGTH_BYTES = 4 }; /* before each text in binary data */

#endif
