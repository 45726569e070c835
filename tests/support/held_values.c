#include "held_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t most_held_bytes = UINT64_MAX, most_held_elements = UINT64_MAX;

static void must(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  abort();
}

/* What the calls return that find no memory. */
static OrtStatus *no_memory(void) {
  static char status;
  return (OrtStatus *)(void *)&status;
}

static const char *message_of(const OrtStatus *status) {
  (void)status;
  return "no memory";
}

static void keep_status(OrtStatus *status) { (void)status; }

static OrtStatus *create(OrtAllocator *allocator, const int64_t *dims, size_t n_dims, int type,
                         OrtValue **out) {
  (void)allocator;
  OrtValue *value = calloc(1, sizeof *value);
  uint64_t n_bytes;
  if (!value) return no_memory();
  must(n_dims <= PSPLIT_I_MAX_RANK, "rank");
  if (n_dims) memcpy(value->dims, dims, n_dims * sizeof *dims);
  value->n_dims = n_dims;
  value->type = type;
  must(psplit_i_tensor_size(psplit_i_element_from_ort(type), dims, n_dims, &value->n_elements,
                            &n_bytes),
       "size");
  must(n_bytes <= most_held_bytes && (n_bytes || value->n_elements <= most_held_elements),
       "more memory than the file has");
  if (type == ORT_STRING)
    value->strings = calloc((size_t)value->n_elements + 1, sizeof *value->strings);
  else
    value->data = calloc((size_t)n_bytes + 1, 1);
  if (!value->strings && !value->data) {
    free(value);
    return no_memory();
  }
  *out = value;
  return NULL;
}

static void release(OrtValue *value) {
  if (value->n_others) {
    value->n_others--;
    return;
  }
  for (uint64_t i = 0; value->parts && i < value->n_elements; i++) release(value->parts[i]);
  free(value->parts);
  for (uint64_t i = 0; value->strings && i < value->n_elements; i++) free(value->strings[i].bytes);
  free(value->strings);
  free(value->data);
  free(value);
}

static OrtStatus *create_sequence(const OrtValue *const *values, size_t n, int type,
                                  OrtValue **out) {
  OrtValue *value = calloc(1, sizeof *value);
  must(n && type == ORT_TYPE_SEQUENCE, "sequence");
  must(n <= most_held_elements, "more values than the file has");
  if (value) value->parts = calloc(n, sizeof *value->parts);
  if (!value || !value->parts) {
    free(value);
    return no_memory();
  }
  value->n_elements = n;
  memcpy(value->parts, values, n * sizeof *value->parts);
  for (size_t i = 0; i < n; i++) value->parts[i]->n_others++;
  *out = value;
  return NULL;
}

static OrtStatus *has_value(const OrtValue *value, int *out) {
  (void)value;
  *out = 1;
  return NULL;
}

static OrtStatus *is_tensor(const OrtValue *value, int *out) {
  *out = !value->parts;
  return NULL;
}

static OrtStatus *value_type(const OrtValue *value, int *out) {
  *out = value->parts ? ORT_TYPE_SEQUENCE : ORT_TYPE_TENSOR;
  return NULL;
}

static OrtStatus *count_of(const OrtValue *value, size_t *out) {
  *out = (size_t)value->n_elements;
  return NULL;
}

static OrtStatus *part_of(const OrtValue *value, int index, OrtAllocator *allocator,
                          OrtValue **out) {
  (void)allocator;
  must(index >= 0 && (uint64_t)index < value->n_elements, "index");
  *out = value->parts[index];
  (*out)->n_others++;
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
  char *bytes = malloc(n + 1);
  if (!bytes) return no_memory();
  free(value->strings[index].bytes);
  value->strings[index] = (held_text){bytes, n};
  *out = bytes;
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

const psplit_i_ort HELD_VALUES = {.api = {.GetErrorMessage = message_of,
                                          .ReleaseStatus = keep_status,
                                          .CreateTensorAsOrtValue = create,
                                          .ReleaseValue = release,
                                          .IsTensor = is_tensor,
                                          .HasValue = has_value,
                                          .CreateValue = create_sequence,
                                          .GetValueCount = count_of,
                                          .GetValue = part_of,
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

static bool same(const OrtValue *x, const OrtValue *y) {
  uint64_t n_elements, n_bytes;
  if (x->parts || y->parts) {
    bool alike = x->parts && y->parts && x->n_elements == y->n_elements;
    for (uint64_t i = 0; alike && i < x->n_elements; i++) alike = same(x->parts[i], y->parts[i]);
    return alike;
  }
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

bool same_values(const psplit_i_tensor *a, const psplit_i_tensor *b) {
  return same(psplit_i_tensor_value(a), psplit_i_tensor_value(b));
}
