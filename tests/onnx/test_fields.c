/* Why: field numbers stand in onnx/fields.def once more than in onnx.proto, and a wrong one writes
 * models that say something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "fields.h"
#include "onnx.pb-c.h"

static void numbers_are_those_of_the_schema(void **state) {
  (void)state;
#define PSPLIT_I_ONNX_FIELD(message, name, number, field)                                        \
  {                                                                                              \
    const ProtobufCFieldDescriptor *known =                                                      \
      protobuf_c_message_descriptor_get_field_by_name(&onnx__##message##__descriptor, #field);   \
    if (!known || known->id != PSPLIT_I_##name) fail_msg("%s: %d", #name, (int)PSPLIT_I_##name); \
  }
#include "fields.def"
#undef PSPLIT_I_ONNX_FIELD
}

/* Of a TensorProto all fields but what describes it are its data. */
static void data_is_what_does_not_describe_a_tensor(void **state) {
  (void)state;
  enum { SEGMENT = 3, DOC_STRING = 12, METADATA = 16 };
  const ProtobufCMessageDescriptor *tensor = &onnx__tensor_proto__descriptor;
  for (unsigned i = 0; i < tensor->n_fields; i++) {
    const uint32_t field = tensor->fields[i].id;
    const bool describes = field == PSPLIT_I_TENSOR_DIMS || field == PSPLIT_I_TENSOR_DATA_TYPE ||
                           field == PSPLIT_I_TENSOR_NAME || field == SEGMENT ||
                           field == DOC_STRING || field == METADATA;
    if (psplit_i_is_tensor_data(field) == describes) fail_msg("%s", tensor->fields[i].name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_are_those_of_the_schema),
    cmocka_unit_test(data_is_what_does_not_describe_a_tensor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
