/* text_roundtrip FILE...: that each model, printed and parsed again, is the same message to the
 * byte, and prints the same text. A model over 4 MiB is opened as the commands do, which leaves
 * its weights in the file; of every model the text without large weights has to parse and to print
 * the same. A file that ends in .onnxtxt is a text that has to be what parsing and printing it
 * gives. Prints a line for each file that fails, and counts; files that are no models are passed
 * over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "same.h"

enum { WHOLE_BYTES = 4 << 20 };

static psplit_i_text read_file(const char *path) {
  psplit_i_text out = {0};
  static char buffer[65536];
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(3);
  }
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
    psplit_i_text_add(&out, buffer, n);
  if (ferror(file) || out.failed) abort();
  fclose(file);
  return out;
}

static psplit_i_text print(const Onnx__ModelProto *model, uint64_t max_data_bytes) {
  const psplit_print_text_options options = {.struct_size = sizeof options,
                                             .max_data_bytes = max_data_bytes};
  psplit_i_text out = {0};
  psplit_diag diag = {0};
  if (psplit_i_text_print(model, &options, NULL, NULL, &diag, &out) != PSPLIT_OK) {
    fprintf(stderr, "cannot be printed: %s\n", diag.message);
    abort();
  }
  return out;
}

/* What `text` says, which has to print as the same text; NULL, with a line about it, if not. */
static Onnx__ModelProto *parsed(const char *path, const psplit_i_text *text,
                                uint64_t max_data_bytes, psplit_i_arena *arena) {
  const psplit_parse_text_options options = {
    .struct_size = sizeof options, .file_name = path, .fill_left_out = true};
  Onnx__ModelProto *out = NULL;
  psplit_diag diag = {0};
  if (psplit_i_text_parse(text->bytes, text->n, &options, arena, &diag, &out) != PSPLIT_OK) {
    printf("%s\n", diag.message);
    return NULL;
  }
  psplit_i_text again = print(out, max_data_bytes);
  const bool same = again.n == text->n && memcmp(again.bytes, text->bytes, text->n) == 0;
  if (!same) printf("%s: prints differently once it was parsed\n", path);
  psplit_i_text_fini(&again);
  return same ? out : NULL;
}

/* Whether parse(print(model)) prints the same and, unless data is left out, is the model. */
static bool survives(const char *path, const Onnx__ModelProto *model, uint64_t max_data_bytes) {
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_text text = print(model, max_data_bytes);
  const Onnx__ModelProto *back = parsed(path, &text, max_data_bytes, &arena);
  const bool same = back && (max_data_bytes != UINT64_MAX || same_packed(model, back));
  if (back && !same) printf("%s: differs once it was printed and parsed\n", path);
  psplit_i_text_fini(&text);
  psplit_i_arena_fini(&arena);
  return same;
}

static bool check_text(const char *path, const psplit_i_text *text) {
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  const Onnx__ModelProto *model = parsed(path, text, UINT64_MAX, &arena);
  const bool good = model && survives(path, model, UINT64_MAX);
  psplit_i_arena_fini(&arena);
  return good;
}

/* Whether the opened model, whose large weights are in the file, prints as the one in memory. */
static bool prints_alike(const char *path, const psplit_model *opened,
                         const Onnx__ModelProto *model) {
  const psplit_print_text_options options = {.struct_size = sizeof options,
                                             .max_data_bytes = UINT64_MAX};
  psplit_diag diag = {0};
  char *text = NULL;
  size_t n = 0;
  psplit_i_text expected = print(model, UINT64_MAX);
  const psplit_code code = psplit_model_print_text(opened, &options, &diag, &text, &n);
  const bool same = code == PSPLIT_OK && n == expected.n && memcmp(text, expected.bytes, n) == 0;
  if (!same) printf("%s: %s\n", path, code == PSPLIT_OK ? "read differently" : diag.message);
  free(text);
  psplit_i_text_fini(&expected);
  return same;
}

/* 1 as it should be, 0 not, -1 no model. */
static int check(const char *path) {
  psplit_diag diag = {0};
  psplit_model *opened = NULL;
  const char *ending = strrchr(path, '.');
  psplit_i_text file = read_file(path);
  int result = -1;
  if (ending && strcmp(ending, ".onnxtxt") == 0) {
    result = check_text(path, &file);
    psplit_i_text_fini(&file);
    return result;
  }
  if (psplit_model_open(path, NULL, &diag, &opened) == PSPLIT_OK)
    result = survives(path, opened->proto, 1024);
  if (file.n < WHOLE_BYTES) {
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, file.n, (const uint8_t *)file.bytes);
    if (model) {
      shorten_unknown(&model->base);
      result = survives(path, model, UINT64_MAX) && result != 0 &&
               (!opened || prints_alike(path, opened, model));
      onnx__model_proto__free_unpacked(model, NULL);
    }
  }
  psplit_model_close(opened);
  psplit_i_text_fini(&file);
  return result;
}

int main(int argc, char **argv) {
  unsigned n_same = 0, n_different = 0, n_others = 0;
  for (int i = 1; i < argc; i++) {
    const int result = check(argv[i]);
    if (result > 0)
      n_same++;
    else if (result == 0)
      n_different++;
    else
      n_others++;
  }
  printf("%u are what their text says, %u are not, %u are no models\n", n_same, n_different,
         n_others);
  return n_different != 0 || n_same == 0;
}
