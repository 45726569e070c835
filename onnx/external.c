/* The entries of a tensor's external_data. */
#include <string.h>

#include "model.h"

static psplit_code no_number(const char *key, const char *value, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_INVALID,
                       "external_data %s \"%s\" has to be a number of bytes, in decimal", key,
                       value);
}

psplit_code psplit_i_external_parse(const Onnx__TensorProto *tensor, psplit_diag *diag,
                                    psplit_i_external *out) {
  psplit_i_external external = {.bytes = UINT64_MAX};
  bool has_offset = false;
  for (size_t i = 0; i < tensor->n_external_data; i++) {
    const char *key = tensor->external_data[i]->key;
    const char *value = tensor->external_data[i]->value;
    if (!key || !value) return psplit_i_fail(diag, PSPLIT_INVALID, "an empty external_data entry");
    if (strcmp(key, "location") == 0) {
      if (external.location)
        return psplit_i_fail(diag, PSPLIT_INVALID, "two external_data locations");
      external.location = value;
    } else if (strcmp(key, "offset") == 0) {
      if (has_offset) return psplit_i_fail(diag, PSPLIT_INVALID, "two external_data offsets");
      if (!psplit_i_parse_u64(value, &external.offset)) return no_number("offset", value, diag);
      has_offset = true;
    } else if (strcmp(key, "length") == 0) {
      if (external.bytes != UINT64_MAX)
        return psplit_i_fail(diag, PSPLIT_INVALID, "two external_data lengths");
      if (!psplit_i_parse_u64(value, &external.bytes) || external.bytes == UINT64_MAX)
        return no_number("length", value, diag);
    }
  }
  if (!external.location || !*external.location)
    return psplit_i_fail(diag, PSPLIT_INVALID, "external data without a location");
  *out = external;
  return PSPLIT_OK;
}
