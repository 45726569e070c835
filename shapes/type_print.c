/* Types as text. */
#include "infer.h"

void psplit_i_shapes_print(const psplit_i_shapes *s, const psplit_i_vtype *type,
                           psplit_i_text *out) {
  static const char *const around[] = {"?",   "",          "sparse ", "sequence of ",
                                       "map", "optional ", "opaque"};
  psplit_i_text_puts(out, around[type->kind]);
  if (type->kind == PSPLIT_TYPE_OPTIONAL && type->inner == PSPLIT_TYPE_SEQUENCE)
    psplit_i_text_puts(out, "sequence of ");
  if (type->kind == PSPLIT_TYPE_UNKNOWN || type->kind == PSPLIT_TYPE_MAP ||
      type->kind == PSPLIT_TYPE_OPAQUE)
    return;
  const char *name = psplit_i_dtype_name(type->elem);
  psplit_i_text_puts(out, name ? name : "?");
  psplit_i_text_puts(out, "[");
  if (type->rank < 0) psplit_i_text_puts(out, "...");
  for (int32_t i = 0; i < type->rank; i++) {
    if (i > 0) psplit_i_text_puts(out, ", ");
    psplit_i_dim_print(s->dims, type->dims[i], out);
  }
  psplit_i_text_puts(out, "]");
}
