/* Sparse tensors: do the values have places in the dense tensor? Indices are read as a stream, from
 * wherever they are stored. */
#include <inttypes.h>
#include <stdlib.h>

#include "model.h"
#include "wire.h"

enum { INT64_DATA = 7, BUFFER_BYTES = 64 << 10 };

/* What was seen of the indices so far. */
typedef struct places {
  const Onnx__SparseTensorProto *sparse;
  bool linear; /* one number an entry; else one for each dimension */
  int64_t n_elements;
  int64_t last, place; /* linear index of the entry before; of this one, so far */
  size_t axis, entry;
  psplit_diag *diag;
} places;

static psplit_code misplaced(const places *p, bool outside) {
  const char *name = p->sparse->values->name;
  return psplit_i_fail(p->diag, PSPLIT_INVALID,
                       "sparse tensor \"%s\": the index of value %zu is %s", name ? name : "",
                       p->entry, outside ? "outside the tensor" : "not above the one before it");
}

static psplit_code take(places *p, int64_t index) {
  const int64_t size = p->linear ? p->n_elements : p->sparse->dims[p->axis];
  if (index < 0 || index >= size) return misplaced(p, true);
  p->place = p->linear ? index : p->place * size + index; /* below n_elements, which fits */
  if (!p->linear && ++p->axis < p->sparse->n_dims) return PSPLIT_OK;
  if (p->place <= p->last) return misplaced(p, false);
  p->last = p->place;
  p->place = 0;
  p->axis = 0;
  p->entry++;
  return PSPLIT_OK;
}

/* Whole numbers from `bytes`; *out_used of them. `n_left` are still to come. */
static psplit_code take_bytes(places *p, const uint8_t *bytes, size_t n, bool varints,
                              uint64_t *io_left, size_t *out_used) {
  psplit_code code = PSPLIT_OK;
  size_t at = 0;
  while (*io_left) {
    uint64_t word = 0;
    unsigned width = 8;
    if (varints)
      width = psplit_i_varint_read(bytes + at, n - at, &word);
    else if (n - at < 8)
      width = 0;
    else
      for (unsigned b = 0; b < 8; b++) word |= (uint64_t)bytes[at + b] << (8 * b);
    if (!width) break;
    PSPLIT_TRY(take(p, (int64_t)word));
    at += width;
    --*io_left;
  }
  *out_used = at;
out:
  return code;
}

static psplit_code take_file(places *p, const psplit_model *model, uint32_t file, uint64_t offset,
                             uint64_t bytes, bool varints, uint64_t n) {
  psplit_code code = PSPLIT_OK;
  uint8_t *buffer = malloc(BUFFER_BYTES);
  if (!buffer) return psplit_i_nomem(p->diag);
  while (n && bytes) {
    size_t used;
    const size_t step = bytes < BUFFER_BYTES ? (size_t)bytes : BUFFER_BYTES;
    PSPLIT_TRY(psplit_i_model_read(model, file, offset, buffer, step, p->diag));
    PSPLIT_TRY(take_bytes(p, buffer, step, varints, &n, &used));
    if (!used) break;
    offset += used;
    bytes -= used;
  }
out:
  free(buffer);
  return code;
}

psplit_code psplit_i_sparse_check(const psplit_model *model, const Onnx__SparseTensorProto *sparse,
                                  int64_t n_elements, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const Onnx__TensorProto *values = sparse->values, *indices = sparse->indices;
  const int64_t n = values->n_dims == 1 ? values->dims[0] : -1;
  places p = {.sparse = sparse,
              .linear = indices->n_dims == 1,
              .n_elements = n_elements,
              .last = -1,
              .diag = diag};
  if (n < 0 || indices->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ||
      !(p.linear || (indices->n_dims == 2 && (uint64_t)indices->dims[1] == sparse->n_dims)) ||
      indices->dims[0] != n)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "sparse tensor \"%s\": its indices are not one int64, or one for each "
                         "dimension, for each of its values, which are a list",
                         values->name ? values->name : "");
  const uint64_t n_indices = (uint64_t)psplit_i_tensor_of(indices).n_elements;
  psplit_i_payload payload;
  if (psplit_i_tensor_payload(model, indices, &payload)) {
    uint64_t left = n_indices;
    size_t used;
    if (payload.memory)
      return take_bytes(&p, payload.memory, (size_t)payload.bytes, false, &left, &used);
    return take_file(&p, model, payload.file, payload.offset, payload.bytes, false, n_indices);
  }
  /* A field in several pieces, in the file and here, is not put together again. */
  for (size_t i = 0; !indices->n_payload_view && i < indices->n_int64_data; i++)
    PSPLIT_TRY(take(&p, indices->int64_data[i]));
  if (!indices->n_int64_data && indices->n_payload_view == 1 &&
      indices->payload_view[0]->field == INT64_DATA)
    return take_file(&p, model, 0, indices->payload_view[0]->offset,
                     indices->payload_view[0]->bytes, true, n_indices);
out:
  return code;
}
