#include "array_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "casts.h"
#include "held_values.h"

void expect_read(psplit_code code, const psplit_diag *diag, psplit_code wanted, const char *says) {
  if (code != wanted || strcmp(diag->message, says) != 0)
    fail_msg("%s: \"%s\" is not \"%s\"", psplit_code_name(code), diag->message, says);
}

void print_tensor(const psplit_i_tensor *tensor, char *out, size_t size) {
  const OrtValue *value = psplit_i_tensor_value(tensor);
  psplit_diag diag = {0};
  psplit_i_tensor_view view;
  size_t at = 0;
  *out = '\0';
  assert_int_equal(psplit_i_tensor_look(tensor, &diag, &view), PSPLIT_OK);
  for (uint64_t i = 0; i < view.n_elements && at < size; i++)
    if (view.data)
      at += (size_t)snprintf(out + at, size - at, "%s%g", i ? " " : "",
                             psplit_i_tensor_number(&view, i));
    else
      at += (size_t)snprintf(out + at, size - at, "%s%.*s", i ? "|" : "", (int)value->strings[i].n,
                             value->strings[i].n ? value->strings[i].bytes : "");
}

Onnx__TensorProto shaped_proto(int32_t type, int64_t *dims, size_t n_dims) {
  Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
  proto.n_dims = n_dims;
  proto.dims = dims;
  proto.has_data_type = true;
  proto.data_type = type;
  return proto;
}

made_bytes packed_proto(const Onnx__TensorProto *proto) {
  made_bytes out = {malloc(onnx__tensor_proto__get_packed_size(proto) + 1), 0};
  assert_non_null(out.at);
  out.n = onnx__tensor_proto__pack(proto, out.at);
  return out;
}

psplit_code read_proto(const Onnx__TensorProto *proto, int32_t wanted, bool safe_casts,
                       psplit_diag *diag, psplit_i_tensor **out) {
  const made_bytes file = packed_proto(proto);
  const psplit_i_array_wanted wants = {
    .data_type = wanted, .n_dims = PSPLIT_NONE, .safe_casts = safe_casts};
  *out = NULL;
  const psplit_code code = psplit_i_pb_parse(&HELD_VALUES, "f", file.at, file.n, &wants, diag, out);
  free(file.at);
  return code;
}
