/* Fuzz target: tensors in files, .npy, .npz, .pb and raw. What is read takes no more memory than
 * the file allows, and is the same again once it was written and read. The input's first byte says
 * the kind of file and whether types are widened, the second the type that is wanted. Tensors are
 * held by what stands in for ONNX Runtime here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arrays.h"
#include "fuzz.h"

typedef struct text {
  char *bytes;
  size_t n;
} text;

struct OrtValue {
  size_t n_dims;
  int64_t dims[PSPLIT_I_MAX_RANK];
  int type;
  uint64_t n_elements;
  void *data;    /* of numbers */
  text *strings; /* [n_elements] */
};

static uint64_t most_bytes, most_elements; /* that a tensor of this input may have */

static void must(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  abort();
}

static OrtStatus *create(OrtAllocator *allocator, const int64_t *dims, size_t n_dims, int type,
                         OrtValue **out) {
  (void)allocator;
  OrtValue *value = calloc(1, sizeof *value);
  uint64_t n_bytes;
  must(value && n_dims <= PSPLIT_I_MAX_RANK, "rank");
  if (n_dims) memcpy(value->dims, dims, n_dims * sizeof *dims);
  value->n_dims = n_dims;
  value->type = type;
  must(psplit_i_tensor_size(psplit_i_element_from_ort(type), dims, n_dims, &value->n_elements,
                            &n_bytes),
       "size");
  must(n_bytes <= most_bytes && (n_bytes || value->n_elements <= most_elements),
       "more memory than the file has");
  if (type == ORT_STRING)
    value->strings = calloc((size_t)value->n_elements + 1, sizeof *value->strings);
  else
    value->data = calloc((size_t)n_bytes + 1, 1);
  must(value->strings || value->data, "memory");
  *out = value;
  return NULL;
}

static void release(OrtValue *value) {
  for (uint64_t i = 0; value->strings && i < value->n_elements; i++) free(value->strings[i].bytes);
  free(value->strings);
  free(value->data);
  free(value);
}

static OrtStatus *is_tensor(const OrtValue *value, int *out) {
  (void)value;
  *out = 1;
  return NULL;
}

static OrtStatus *value_type(const OrtValue *value, int *out) {
  (void)value;
  *out = ORT_TYPE_TENSOR;
  return NULL;
}

static OrtStatus *data_of(OrtValue *value, void **out) {
  *out = value->data;
  return NULL;
}

static OrtStatus *text_length(const OrtValue *value, size_t *out) {
  *out = 0;
  for (uint64_t i = 0; i < value->n_elements; i++) *out += value->strings[i].n;
  return NULL;
}

static OrtStatus *text_of(const OrtValue *value, void *bytes, size_t n, size_t *offsets,
                          size_t n_offsets) {
  size_t at = 0;
  must(n_offsets == value->n_elements, "offsets");
  for (size_t i = 0; i < n_offsets; i++) {
    offsets[i] = at;
    must(value->strings[i].n <= n - at, "text");
    if (value->strings[i].n)
      memcpy((char *)bytes + at, value->strings[i].bytes, value->strings[i].n);
    at += value->strings[i].n;
  }
  return NULL;
}

static OrtStatus *string_buffer(OrtValue *value, size_t index, size_t n, char **out) {
  must(index < value->n_elements, "index");
  free(value->strings[index].bytes);
  value->strings[index] = (text){malloc(n + 1), n};
  *out = value->strings[index].bytes;
  return NULL;
}

/* The value stands for what says its type and shape. */
static OrtStatus *shape_of(const OrtValue *value, OrtShapeInfo **out) {
  memcpy(out, &value, sizeof value);
  return NULL;
}

static const OrtValue *shaped(const OrtShapeInfo *info) { return (const void *)info; }

static OrtStatus *element_type(const OrtShapeInfo *info, int *out) {
  *out = shaped(info)->type;
  return NULL;
}

static OrtStatus *rank(const OrtShapeInfo *info, size_t *out) {
  *out = shaped(info)->n_dims;
  return NULL;
}

static OrtStatus *dims_of(const OrtShapeInfo *info, int64_t *out, size_t n) {
  if (n) memcpy(out, shaped(info)->dims, n * sizeof *out);
  return NULL;
}

static void keep_shape(OrtShapeInfo *info) { (void)info; }

static const psplit_i_ort ORT = {.api = {.CreateTensorAsOrtValue = create,
                                         .ReleaseValue = release,
                                         .IsTensor = is_tensor,
                                         .HasValue = is_tensor,
                                         .GetValueType = value_type,
                                         .GetTensorMutableData = data_of,
                                         .GetStringTensorDataLength = text_length,
                                         .GetStringTensorContent = text_of,
                                         .GetResizedStringTensorElementBuffer = string_buffer,
                                         .GetTensorTypeAndShape = shape_of,
                                         .GetTensorElementType = element_type,
                                         .GetDimensionsCount = rank,
                                         .GetDimensions = dims_of,
                                         .ReleaseTensorTypeAndShapeInfo = keep_shape}};

typedef psplit_code read_function(const psplit_i_ort *, const char *, const unsigned char *, size_t,
                                  const psplit_i_array_wanted *, psplit_diag *, psplit_i_tensor **);

static bool same(const psplit_i_tensor *a, const psplit_i_tensor *b) {
  const OrtValue *x = psplit_i_tensor_value(a), *y = psplit_i_tensor_value(b);
  uint64_t n_elements, n_bytes;
  if (x->type != y->type || x->n_dims != y->n_dims ||
      memcmp(x->dims, y->dims, x->n_dims * sizeof *x->dims) != 0)
    return false;
  if (x->data)
    return psplit_i_tensor_size(psplit_i_element_from_ort(x->type), x->dims, x->n_dims, &n_elements,
                                &n_bytes) &&
           memcmp(x->data, y->data, (size_t)n_bytes) == 0;
  for (uint64_t i = 0; i < x->n_elements; i++)
    if (x->strings[i].n != y->strings[i].n ||
        (x->strings[i].n && memcmp(x->strings[i].bytes, y->strings[i].bytes, x->strings[i].n) != 0))
      return false;
  return true;
}

/* Whether no string ends with zeros, which numpy's arrays of one width do not keep, nor are one of
 * UTF-32 that no UTF-8 stands for. */
static bool numpy_keeps(const psplit_i_tensor *tensor) {
  const OrtValue *value = psplit_i_tensor_value(tensor);
  for (uint64_t i = 0; value->strings && i < value->n_elements; i++) {
    const text string = value->strings[i];
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
      &ORT, "f", (const unsigned char *)out.bytes, out.n, wanted, &diag, &again);
    must(back == PSPLIT_OK, diag.message);
    must(same(tensor, again), "another tensor is read back");
  }
  psplit_i_tensor_release(again);
  psplit_i_text_fini(&out);
}

static void check(read_function *read, const uint8_t *data, size_t n,
                  const psplit_i_array_wanted *wanted) {
  psplit_diag diag = {0};
  psplit_i_tensor *tensor = NULL;
  most_bytes = 10 * (uint64_t)n;
  most_elements = most_bytes + (1 << 16); /* empty strings take nothing in a file */
  const psplit_code code = read(&ORT, "f", data, n, wanted, &diag, &tensor);
  must((code == PSPLIT_OK) == (tensor != NULL), "a result and none");
  must((code == PSPLIT_OK) == !*diag.message, "a failure without a reason");
  most_bytes = most_elements = UINT64_MAX;
  if (tensor) {
    check_written(tensor, true, wanted);
    check_written(tensor, false, wanted);
  }
  psplit_i_tensor_release(tensor);
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
    case 2: check(psplit_i_pb_parse, bytes, n - 2, &wanted); break;
    default: check(psplit_i_raw_parse, bytes, n - 2, &wanted); break;
  }
  check_measure(bytes, n - 2);
  free(bytes);
  return 0;
}
