/* Fuzz target: the text form. Bytes that parse as a text, and bytes that are a model, have to be
 * the same model again once they were printed and parsed. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"
#include "same.h"
#include "skeleton.h"

static void check(const Onnx__ModelProto *model) {
  const psplit_print_text_options options = {.struct_size = sizeof options,
                                             .max_data_bytes = UINT64_MAX};
  psplit_diag diag = {0};
  psplit_i_text text = {0};
  psplit_i_arena arena;
  Onnx__ModelProto *back = NULL;
  psplit_i_arena_init(&arena, 0);
  if (psplit_i_text_print(model, &options, NULL, NULL, &diag, &text) != PSPLIT_OK ||
      psplit_i_text_parse(text.bytes, text.n, NULL, &arena, &diag, &back) != PSPLIT_OK ||
      !same_packed(model, back)) {
    fprintf(stderr, "%s\n%s\n", diag.message, text.bytes);
    abort();
  }
  psplit_i_text_fini(&text);
  psplit_i_arena_fini(&arena);
}

static void as_text(const uint8_t *data, size_t n) {
  const psplit_parse_text_options options = {.struct_size = sizeof options, .fill_left_out = true};
  psplit_i_arena arena;
  psplit_diag diag = {0};
  Onnx__ModelProto *model = NULL;
  psplit_i_arena_init(&arena, 64 << 20);
  const psplit_code code =
    psplit_i_text_parse((const char *)data, n, &options, &arena, &diag, &model);
  if ((code == PSPLIT_OK) != (model != NULL) || code != diag.code) abort();
  if (model && onnx__model_proto__get_packed_size(model) < 1 << 20) check(model);
  psplit_i_arena_fini(&arena);
}

static void as_model(const uint8_t *data, size_t n) {
  const int fd = fuzz_file(data, n);
  psplit_i_skeleton skeleton;
  psplit_diag diag = {0};
  const psplit_code code = psplit_i_skeleton_scan(fd, n, 64 << 20, NULL, NULL, &diag, &skeleton);
  psplit_i_skeleton_fini(&skeleton);
  close(fd);
  if (code != PSPLIT_OK) return;
  Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, n, data);
  if (!model) abort();
  shorten_unknown(&model->base);
  check(model);
  onnx__model_proto__free_unpacked(model, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  as_text(data, n);
  as_model(data, n);
  return 0;
}
