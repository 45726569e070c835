/* print_text FILE: a model as text, whole, whether or not it is sound. */
#include <stdio.h>
#include <stdlib.h>

#include "onnx.pb-c.h"
#include "text_form.h"

int main(int argc, char **argv) {
  static uint8_t bytes[64 << 20];
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file) {
    fputs("usage: print_text FILE\n", stderr);
    return 2;
  }
  const size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, n, bytes);
  const psplit_print_text_options options = {.struct_size = sizeof options,
                                             .max_data_bytes = UINT64_MAX};
  psplit_i_text text = {0};
  psplit_diag diag = {0};
  if (!model || psplit_i_text_print(model, &options, NULL, NULL, &diag, &text) != PSPLIT_OK) {
    fprintf(stderr, "%s: no model: %s\n", argv[1], diag.message);
    return 4;
  }
  fwrite(text.bytes, 1, text.n, stdout);
  psplit_i_text_fini(&text);
  onnx__model_proto__free_unpacked(model, NULL);
  return 0;
}
