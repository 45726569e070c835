/* Fuzz target: files that training reads. Bytes that are taken for a safetensors file, or for the
 * training.json of a checkpoint, are the same again once they were written and read; tensors lie in
 * the file, one behind the other; of an archive of arrays nothing is read that is not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arrays.h"
#include "checkpoint_json.h"
#include "fuzz.h"

static void must(bool holds, const psplit_diag *diag) {
  if (holds) return;
  fprintf(stderr, "%s\n", diag->message);
  abort();
}

static bool same_tensor(const psplit_i_stored *a, const psplit_i_stored *b) {
  return strcmp(a->name, b->name) == 0 && a->data_type == b->data_type && a->n_dims == b->n_dims &&
         memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0 && a->n_bytes == b->n_bytes;
}

static void as_safetensors(const uint8_t *data, size_t n) {
  psplit_i_arena arena;
  psplit_i_safetensors found = {0}, again = {0};
  psplit_i_text text = {0};
  psplit_diag diag = {0};
  uint64_t end = 0;
  psplit_i_arena_init(&arena, 64 << 20);
  const psplit_code code = psplit_i_safetensors_parse("f", data, n, n, &arena, &diag, &found);
  must((code == PSPLIT_OK) == !*diag.message, &diag);
  for (size_t i = 0; i < found.n; i++) {
    const psplit_i_stored *tensor = &found.tensors[i];
    must(i ? tensor->offset == end : tensor->offset <= n, &diag);
    end = tensor->offset + tensor->n_bytes;
    must(end <= n && end >= tensor->offset, &diag);
  }
  if (code == PSPLIT_OK) {
    must(psplit_i_safetensors_format(found.tensors, found.n, &diag, &text) == PSPLIT_OK, &diag);
    const uint64_t n_data = found.n ? end - found.tensors[0].offset : 0;
    must(psplit_i_safetensors_parse("f", (const unsigned char *)text.bytes, text.n, text.n + n_data,
                                    &arena, &diag, &again) == PSPLIT_OK &&
           again.n == found.n,
         &diag);
    for (size_t i = 0; i < found.n; i++)
      must(same_tensor(&found.tensors[i], &again.tensors[i]), &diag);
  }
  psplit_i_text_fini(&text);
  psplit_i_arena_fini(&arena);
}

static void as_json(const uint8_t *data, size_t n) {
  psplit_i_arena arena;
  psplit_i_training_json found, again;
  psplit_i_text text[2] = {{0}};
  psplit_diag diag = {0};
  psplit_i_arena_init(&arena, 64 << 20);
  const psplit_code code =
    psplit_i_training_json_parse("f", (const char *)data, n, &arena, &diag, &found);
  must((code == PSPLIT_OK) == !*diag.message, &diag);
  if (code == PSPLIT_OK) {
    must(psplit_i_training_json_write(&found.state, found.weights, found.n_weights,
                                      found.stage_bytes, &diag, &text[0]) == PSPLIT_OK,
         &diag);
    must(psplit_i_training_json_parse("f", text[0].bytes, text[0].n, &arena, &diag, &again) ==
           PSPLIT_OK,
         &diag);
    must(psplit_i_training_json_write(&again.state, again.weights, again.n_weights,
                                      again.stage_bytes, &diag, &text[1]) == PSPLIT_OK,
         &diag);
    must(text[0].n == text[1].n && memcmp(text[0].bytes, text[1].bytes, text[0].n) == 0, &diag);
  }
  psplit_i_text_fini(&text[0]);
  psplit_i_text_fini(&text[1]);
  psplit_i_arena_fini(&arena);
}

static void as_archive(const uint8_t *data, size_t n) {
  static const psplit_i_array_wanted wanted = {.data_type = 1, .n_dims = PSPLIT_NONE};
  const int fd = fuzz_file(data, n);
  psplit_i_npz_member member;
  psplit_i_npy_layout layout;
  psplit_diag diag = {0};
  unsigned char *array = NULL;
  size_t at;
  psplit_code code = psplit_i_npz_find("f", fd, n, "x", &diag, &member);
  if (code == PSPLIT_OK && member.found) {
    must(member.offset <= n && member.n_packed <= n - member.offset, &diag);
    code = psplit_i_npz_unpack("f", fd, &member, UINT64_MAX, &diag, &array);
    if (code == PSPLIT_OK) code = psplit_i_npy_find("f", array, (size_t)member.n_bytes, &diag, &at);
    if (code == PSPLIT_OK && at <= member.n_bytes)
      code = psplit_i_npy_look("f", array, at, &wanted, &diag, &layout);
  }
  must((code == PSPLIT_OK) == !*diag.message, &diag);
  free(array);
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  as_safetensors(data, n);
  as_json(data, n);
  as_archive(data, n);
  return 0;
}
