/* Fuzz target: tensors in files, .npy, .npz, .pb and raw, and sequences of them. What is read takes
 * no more memory than the file allows, and is the same again once it was written and read. The
 * input's first byte says the kind of file and whether types are widened, the second the type that
 * is wanted. Tensors are held by what stands in for ONNX Runtime here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arrays.h"
#include "fuzz.h"
#include "held_values.h"

static void must(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  abort();
}

typedef psplit_code read_function(const psplit_i_ort *, const char *, const unsigned char *, size_t,
                                  const psplit_i_array_wanted *, psplit_diag *, psplit_i_tensor **);

/* Whether no string ends with zeros, which numpy's arrays of one width do not keep, nor are one of
 * UTF-32 that no UTF-8 stands for. */
static bool numpy_keeps(const psplit_i_tensor *tensor) {
  const OrtValue *value = psplit_i_tensor_value(tensor);
  for (uint64_t i = 0; value->strings && i < value->n_elements; i++) {
    const held_text string = value->strings[i];
    if (string.n && !string.bytes[string.n - 1]) return false;
  }
  return true;
}

static void check_written(const psplit_i_tensor *tensor, bool npy,
                          const psplit_i_array_wanted *wanted) {
  psplit_diag diag = {0};
  psplit_i_text out = {0};
  psplit_i_tensor *again = NULL;
  const psplit_code code =
    npy ? psplit_i_npy_format(tensor, &diag, &out) : psplit_i_pb_format(tensor, &diag, &out);
  must(code == PSPLIT_OK || (npy && code == PSPLIT_UNSUPPORTED), "format");
  if (code == PSPLIT_OK && (!npy || numpy_keeps(tensor))) {
    const psplit_code back = (npy ? psplit_i_npy_parse : psplit_i_pb_parse)(
      &HELD_VALUES, "f", (const unsigned char *)out.bytes, out.n, wanted, &diag, &again);
    must(back == PSPLIT_OK, diag.message);
    must(same_values(tensor, again), "another tensor is read back");
  }
  psplit_i_tensor_release(again);
  psplit_i_text_fini(&out);
}

static void check(read_function *read, const uint8_t *data, size_t n,
                  const psplit_i_array_wanted *wanted) {
  psplit_diag diag = {0};
  psplit_i_tensor *tensor = NULL;
  most_held_bytes = 10 * (uint64_t)n;
  most_held_elements = most_held_bytes + (1 << 16); /* empty strings take nothing in a file */
  const psplit_code code = read(&HELD_VALUES, "f", data, n, wanted, &diag, &tensor);
  must((code == PSPLIT_OK) == (tensor != NULL), "a result and none");
  must((code == PSPLIT_OK) == !*diag.message, "a failure without a reason");
  most_held_bytes = most_held_elements = UINT64_MAX;
  if (tensor) {
    check_written(tensor, true, wanted);
    check_written(tensor, false, wanted);
  }
  psplit_i_tensor_release(tensor);
}

static void check_sequence(const uint8_t *data, size_t n) {
  psplit_diag diag = {0};
  psplit_i_text out = {0};
  psplit_i_tensor *values = NULL, *again = NULL;
  most_held_bytes = most_held_elements = 10 * (uint64_t)n;
  const psplit_code code = psplit_i_sequence_parse(&HELD_VALUES, "f", data, n, &diag, &values);
  must((code == PSPLIT_OK) == (values != NULL), "a sequence and none");
  must((code == PSPLIT_OK) == !*diag.message, "a failure without a reason");
  most_held_bytes = most_held_elements = UINT64_MAX;
  if (values) {
    must(psplit_i_pb_format(values, &diag, &out) == PSPLIT_OK, "format a sequence");
    must(psplit_i_sequence_parse(&HELD_VALUES, "f", (const unsigned char *)out.bytes, out.n, &diag,
                                 &again) == PSPLIT_OK,
         diag.message);
    must(same_values(values, again), "another sequence is read back");
  }
  psplit_i_tensor_release(again);
  psplit_i_tensor_release(values);
  psplit_i_text_fini(&out);
}

static void check_measure(const uint8_t *data, size_t n) {
  psplit_diag diag = {0};
  uint64_t needed;
  const psplit_code code = psplit_i_npy_measure("f", data, n, &diag, &needed);
  must((code == PSPLIT_OK) == !*diag.message, "measure");
}

static void check_archive(const uint8_t *data, size_t n, const psplit_i_array_wanted *wanted) {
  psplit_diag diag = {0};
  psplit_i_npz_member member;
  unsigned char *array = NULL;
  const int fd = fuzz_file(data, n);
  if (psplit_i_npz_find("f", fd, n, "x", &diag, &member) == PSPLIT_OK && member.found &&
      psplit_i_npz_unpack("f", fd, &member, UINT64_MAX, &diag, &array) == PSPLIT_OK)
    check(psplit_i_npy_parse, array, (size_t)member.n_bytes, wanted);
  free(array);
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const int64_t dims[] = {2, 3};
  if (n < 2) return 0;
  const psplit_i_array_wanted wanted = {.data_type = 1 + data[1] % 26,
                                        .n_dims = data[0] & 8 ? 2 : PSPLIT_NONE,
                                        .dims = dims,
                                        .safe_casts = data[0] & 4};
  unsigned char *bytes = malloc(n - 2 + 1); /* of its own, for sanitizers to see its ends */
  if (!bytes) abort();
  memcpy(bytes, data + 2, n - 2);
  switch (data[0] % 4) {
    case 0: check(psplit_i_npy_parse, bytes, n - 2, &wanted); break;
    case 1: check_archive(bytes, n - 2, &wanted); break;
    case 2:
      if (data[0] & 16)
        check_sequence(bytes, n - 2);
      else
        check(psplit_i_pb_parse, bytes, n - 2, &wanted);
      break;
    default: check(psplit_i_raw_parse, bytes, n - 2, &wanted); break;
  }
  check_measure(bytes, n - 2);
  free(bytes);
  return 0;
}
