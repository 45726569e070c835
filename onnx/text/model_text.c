/* The public functions. */
#include <stdlib.h>

#include "model.h"
#include "text_form.h"

psplit_code psplit_model_parse_text(const char *text, size_t n_text,
                                    const psplit_parse_text_options *options, psplit_diag *diag,
                                    void **out_bytes, size_t *out_n) {
  psplit_code code;
  psplit_i_arena arena;
  Onnx__ModelProto *model;
  psplit_parse_text_options taken;
  psplit_parse_text_options_init(&taken);
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_parse_text_options, options, &taken, diag));
  PSPLIT_TRY(psplit_i_text_parse(text, n_text, &taken, &arena, diag, &model));
  const size_t n = onnx__model_proto__get_packed_size(model);
  uint8_t *bytes = malloc(n ? n : 1);
  if (!bytes) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_n = onnx__model_proto__pack(model, bytes);
  *out_bytes = bytes;
out:
  psplit_i_arena_fini(&arena);
  return code;
}

static psplit_code read_payload(void *user, uint64_t offset, void *out, size_t bytes,
                                psplit_diag *diag) {
  return psplit_i_model_read(user, 0, offset, out, bytes, diag);
}

psplit_code psplit_model_print_text(const psplit_model *model,
                                    const psplit_print_text_options *options, psplit_diag *diag,
                                    char **out_text, size_t *out_n) {
  psplit_i_text text = {0};
  psplit_print_text_options taken;
  psplit_print_text_options_init(&taken);
  psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_print_text_options, options, &taken, diag);
  if (code != PSPLIT_OK) return code;
  psplit_i_arena arena;
  Onnx__ModelProto *proto;
  psplit_i_arena_init(&arena, 0);
  code = psplit_i_model_unpack(model, &arena, diag, &proto);
  if (code == PSPLIT_OK)
    code = psplit_i_text_print(proto, &taken, read_payload, (void *)(uintptr_t)model, diag, &text);
  psplit_i_arena_fini(&arena);
  if (code != PSPLIT_OK) {
    psplit_i_text_fini(&text);
    return code;
  }
  *out_text = text.bytes;
  *out_n = text.n;
  return PSPLIT_OK;
}
