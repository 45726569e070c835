#include "datatypes.h"

#include <stddef.h>
#include <string.h>

static const serve_datatype TYPES[] = {
  {"BOOL", "bool", SERVE_BOOL, 1, SERVE_UNSIGNED}, {"UINT8", "uint8", 2, 1, SERVE_UNSIGNED},
  {"UINT16", "uint16", 4, 2, SERVE_UNSIGNED},      {"UINT32", "uint32", 12, 4, SERVE_UNSIGNED},
  {"UINT64", "uint64", 13, 8, SERVE_UNSIGNED},     {"INT8", "int8", 3, 1, SERVE_SIGNED},
  {"INT16", "int16", 5, 2, SERVE_SIGNED},          {"INT32", "int32", 6, 4, SERVE_SIGNED},
  {"INT64", "int64", 7, 8, SERVE_SIGNED},          {"FP16", "float16", 10, 2, SERVE_NO_JSON},
  {"BF16", "bfloat16", 16, 2, SERVE_NO_JSON},      {"FP32", "float32", 1, 4, SERVE_FLOAT},
  {"FP64", "float64", 11, 8, SERVE_FLOAT},         {"BYTES", "string", 8, 0, SERVE_TEXT},
};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES };

const serve_datatype *serve_datatype_called(const char *name) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (strcmp(TYPES[i].name, name) == 0) return &TYPES[i];
  return NULL;
}

const serve_datatype *serve_datatype_of_numpy(const char *name) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (strcmp(TYPES[i].numpy, name) == 0) return &TYPES[i];
  return NULL;
}

const serve_datatype *serve_datatype_of(int32_t data_type) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (TYPES[i].data_type == data_type) return &TYPES[i];
  return NULL;
}
