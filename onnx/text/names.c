#include "names.h"

#include <string.h>
#include <strings.h>

/* TensorProto's fields for data. */
enum { F32 = 4, I32 = 5, STR = 6, I64 = 7, F64 = 10, U64 = 11 };

static const psplit_i_element ELEMENTS[] = {
  {NULL, 0, 0, 1, PSPLIT_I_NO_NUMBER},
  {"float", F32, 32, 1, PSPLIT_I_REAL},
  {"uint8", I32, 8, 1, PSPLIT_I_UNSIGNED},
  {"int8", I32, 8, 1, PSPLIT_I_SIGNED},
  {"uint16", I32, 16, 1, PSPLIT_I_UNSIGNED},
  {"int16", I32, 16, 1, PSPLIT_I_SIGNED},
  {"int32", I32, 32, 1, PSPLIT_I_SIGNED},
  {"int64", I64, 64, 1, PSPLIT_I_SIGNED},
  {"string", STR, 0, 1, PSPLIT_I_NO_NUMBER},
  {"bool", I32, 8, 1, PSPLIT_I_UNSIGNED},
  {"float16", I32, 16, 1, PSPLIT_I_UNSIGNED},
  {"double", F64, 64, 1, PSPLIT_I_REAL},
  {"uint32", U64, 32, 1, PSPLIT_I_UNSIGNED},
  {"uint64", U64, 64, 1, PSPLIT_I_UNSIGNED},
  {"complex64", F32, 64, 2, PSPLIT_I_REAL},
  {"complex128", F64, 128, 2, PSPLIT_I_REAL},
  {"bfloat16", I32, 16, 1, PSPLIT_I_UNSIGNED},
  {"float8e4m3fn", I32, 8, 1, PSPLIT_I_UNSIGNED},
  {"float8e4m3fnuz", I32, 8, 1, PSPLIT_I_UNSIGNED},
  {"float8e5m2", I32, 8, 1, PSPLIT_I_UNSIGNED},
  {"float8e5m2fnuz", I32, 8, 1, PSPLIT_I_UNSIGNED},
  {"uint4", I32, 4, 1, PSPLIT_I_NO_NUMBER},
  {"int4", I32, 4, 1, PSPLIT_I_NO_NUMBER},
  {"float4e2m1", I32, 4, 1, PSPLIT_I_NO_NUMBER},
  {"float8e8m0", I32, 8, 1, PSPLIT_I_UNSIGNED},
  {"uint2", I32, 2, 1, PSPLIT_I_NO_NUMBER},
  {"int2", I32, 2, 1, PSPLIT_I_NO_NUMBER},
};
static const char *const ATTRIBUTES[] = {
  NULL,         "float",   "int",     "string", "tensor",        "graph",          "floats",
  "ints",       "strings", "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto",
  "type_protos"};
static const char *const TYPES[] = {"seq", "map", "optional", "sparse_tensor", "opaque"};
static const char *const REALS[] = {"inf", "infinity", "nan"};

enum {
  N_ELEMENTS = sizeof ELEMENTS / sizeof *ELEMENTS,
  N_ATTRIBUTES = sizeof ATTRIBUTES / sizeof *ATTRIBUTES,
  N_TYPES = sizeof TYPES / sizeof *TYPES,
  N_REALS = sizeof REALS / sizeof *REALS
};

static bool is(const char *name, const char *text, size_t n) {
  return name && strlen(name) == n && memcmp(name, text, n) == 0;
}

const psplit_i_element *psplit_i_element_of(int32_t data_type) {
  return &ELEMENTS[data_type > 0 && data_type < N_ELEMENTS ? data_type : 0];
}

int32_t psplit_i_element_named(const char *name, size_t n) {
  for (int32_t i = 1; i < N_ELEMENTS; i++)
    if (is(ELEMENTS[i].name, name, n)) return i;
  return 0;
}

const char *psplit_i_attribute_type_name(int32_t type) {
  return type > 0 && type < N_ATTRIBUTES ? ATTRIBUTES[type] : NULL;
}

int32_t psplit_i_attribute_type_named(const char *name, size_t n) {
  for (int32_t i = 1; i < N_ATTRIBUTES; i++)
    if (is(ATTRIBUTES[i], name, n)) return i;
  return 0;
}

bool psplit_i_starts_type(const char *name, size_t n) {
  for (int i = 0; i < N_TYPES; i++)
    if (is(TYPES[i], name, n)) return true;
  return psplit_i_element_named(name, n) != 0;
}

bool psplit_i_is_real_word(const char *name, size_t n) {
  for (int i = 0; i < N_REALS; i++)
    if (strlen(REALS[i]) == n && strncasecmp(REALS[i], name, n) == 0) return true;
  return false;
}
