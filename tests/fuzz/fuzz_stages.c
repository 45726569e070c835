/* Fuzz target: directories of stages. The input's first byte says which split and which file of it;
 * what follows are edits of that file, each an offset (16 bits), how many bytes go (8), how many
 * come in their place (8), and these. What onnx-pipeline-verify takes merges to the model that was
 * split; what it refuses, has a reason. */
#include <dirent.h>
#include <psplit/merge.h>
#include <psplit/verify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "splits.h"

static const char MODEL[] =
  "<ir_version: 10, opset_import: [\"\": 18]>"
  "g (float[\"n\", 4] x, bool c) => (float[\"n\", 4] y) <float[4, 4] v = {...}, float[4, 4] w = "
  "{...}> {"
  " k = Constant <value = float[4] {1, 2, 3, 4}> () a = MatMul (x, v) b = Add (a, k)"
  " d = If (c) <then_branch = t () => (float[n, 4] r) { r = Relu (b) },"
  " else_branch = e () => (float[n, 4] r) { r = Mul (b, k) }>"
  " e = MatMul (d, w) y = Add (e, b) }";
static const char TRAINED[] =
  "<ir_version: 10, opset_import: [\"\": 18]>"
  "g (float[\"n\", 4] x, float[\"n\", 4] t) => (float[] loss) <float[4, 4] v = {...}, float[4, 4] "
  "w = {...}> {"
  " a = MatMul (x, v) b = Relu (a) e = MatMul (b, w) d = Sub (e, t) s = Mul (d, d)"
  " loss = ReduceMean <keepdims = 0> (s) }";

enum { N_SPLITS = 3, MOST_FILES = 16, NAME_BYTES = 64 };

typedef struct fixed_split {
  char directory[FUZZ_PATH_BYTES];
  psplit_model *model;
  bool trains;
  size_t n_files;
  char names[MOST_FILES][NAME_BYTES]; /* in order */
  char *text[MOST_FILES];
  size_t n[MOST_FILES];
} fixed_split;

static fixed_split splits[N_SPLITS];

static void put(const fixed_split *split, size_t file, const void *bytes, size_t n) {
  char path[FUZZ_PATH_BYTES + NAME_BYTES];
  snprintf(path, sizeof path, "%s/%s", split->directory, split->names[file]);
  FILE *out = fopen(path, "wb");
  if (!out || fwrite(bytes, 1, n, out) != n || fclose(out) != 0) {
    perror(path);
    abort();
  }
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static void list_files(fixed_split *split) {
  DIR *directory = opendir(split->directory);
  if (!directory) abort();
  for (const struct dirent *entry; (entry = readdir(directory));)
    if (*entry->d_name != '.' && split->n_files < MOST_FILES && strlen(entry->d_name) < NAME_BYTES)
      strcpy(split->names[split->n_files++], entry->d_name);
  closedir(directory);
  qsort(split->names, split->n_files, sizeof *split->names, by_name);
  for (size_t i = 0; i < split->n_files; i++) {
    char path[FUZZ_PATH_BYTES + NAME_BYTES];
    snprintf(path, sizeof path, "%s/%s", split->directory, split->names[i]);
    FILE *in = fopen(path, "rb");
    split->text[i] = malloc(1 << 20);
    if (!in || !split->text[i]) abort();
    split->n[i] = fread(split->text[i], 1, 1 << 20, in);
    fclose(in);
  }
}

static void make(size_t which, fixed_split *split) {
  char name[16];
  snprintf(name, sizeof name, "split%zu", which);
  fuzz_path(name, split->directory);
  split->trains = which == 2;
  split->model = fuzz_model_of(split->trains ? TRAINED : MODEL);
  if (split->trains) {
    psplit_training_form form;
    psplit_training_form_init(&form);
    form.optimizer = "sgd";
    fuzz_must_train(split->model, split->directory, &form);
  } else {
    fuzz_must_split(split->model, split->directory, which ? 5 : 0);
  }
  list_files(split);
}

static bool is_reason(psplit_code code) {
  return code != PSPLIT_INTERNAL && code != PSPLIT_PLUGIN && code != PSPLIT_CANCELLED &&
         code != PSPLIT_NOMEM;
}

static void check(const fixed_split *split) {
  const psplit_verify_options verify = {.struct_size = sizeof verify, .n_threads = 1};
  psplit_diag diag = {0}, merge_diag = {0};
  char path[FUZZ_PATH_BYTES];
  psplit_merge_options options;
  psplit_merge_options_init(&options);
  options.replace = true;
  fuzz_path("merged.onnx", path);
  const psplit_code proved = psplit_verify(split->directory, split->model, &verify, &diag, NULL),
                    merged = psplit_merge(split->directory, path, &options, &merge_diag, NULL);
  fuzz_must(is_reason(proved), "verify", &diag);
  fuzz_must(is_reason(merged), "merge", &merge_diag);
  fuzz_must((proved == PSPLIT_OK) == !*diag.message, "a result without a reason", &diag);
  if (proved == PSPLIT_OK && !split->trains) {
    fuzz_must(merged == PSPLIT_OK, "what is proved does not merge", &merge_diag);
    if (psplit_verify_file(path, split->directory, split->model, &verify, &diag, NULL) != PSPLIT_OK)
      fuzz_fail("what is proved merges to another model", &diag);
  }
  fuzz_remove(path);
}

/* The file with the edits: malloc'd, *out_n bytes. */
static char *edit(const char *text, size_t n_text, const uint8_t *edits, size_t n, size_t *out_n) {
  char *made = malloc(n_text + n + 1);
  if (!made) abort();
  memcpy(made, text, n_text);
  while (n >= 4) {
    const size_t at = (edits[0] | (size_t)edits[1] << 8) % (n_text + 1), left = n_text - at;
    const size_t gone = edits[2] < left ? edits[2] : left;
    const size_t come = edits[3] < n - 4 ? edits[3] : n - 4;
    memmove(made + at + come, made + at + gone, left - gone);
    memcpy(made + at, edits + 4, come);
    n_text = n_text - gone + come;
    edits += 4 + come;
    n -= 4 + come;
  }
  *out_n = n_text;
  return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  if (!splits[0].model)
    for (size_t i = 0; i < N_SPLITS; i++) make(i, &splits[i]);
  if (!n) return 0;
  const fixed_split *split = &splits[data[0] % N_SPLITS];
  const size_t file = data[0] / N_SPLITS % split->n_files;
  size_t n_made;
  char *made = edit(split->text[file], split->n[file], data + 1, n - 1, &n_made);
  put(split, file, made, n_made);
  check(split);
  put(split, file, split->text[file], split->n[file]);
  free(made);
  return 0;
}
