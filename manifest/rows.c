#include "rows.h"

#include <string.h>

void psplit_i_read_file_name(const item *object, const char **out) {
  const item file = psplit_i_json_need(object, "file");
  psplit_i_json_name(file, out);
  if (*out && (strchr(*out, '/') || **out == '.')) psplit_i_json_must_be(&file, "a plain name");
}

/* A size, a symbol, or null for each dimension; null for an unknown rank. */
void psplit_i_read_shape(item shape, psplit_i_shape *out) {
  enum { MOST_DIMS = 4096 };
  const size_t rank = psplit_i_json_length(&shape, 0, MOST_DIMS);
  *out = (psplit_i_shape){.rank = -1};
  if (!psplit_i_json_given(shape)) return;
  psplit_i_manifest_dim *dims = NEW(&shape, psplit_i_manifest_dim, rank);
  for (size_t a = 0; a < rank && !failed(&shape); a++) {
    const item dim = psplit_i_json_unless_null(psplit_i_json_element(&shape, a));
    dims[a].value = -1;
    if (psplit_i_json_is_string(dim))
      psplit_i_json_text(dim, &dims[a].param);
    else
      psplit_i_json_i64(dim, 0, INT64_MAX, &dims[a].value);
  }
  *out = (psplit_i_shape){(int32_t)rank, dims};
}

void psplit_i_read_transfers(item list, uint32_t n_stages, bool with_bytes,
                             const psplit_i_manifest_transfer **out, uint32_t *out_n) {
  const size_t n = length(&list);
  psplit_i_manifest_transfer *transfers = NEW(&list, psplit_i_manifest_transfer, n);
  for (size_t i = 0; i < n && !failed(&list); i++) {
    psplit_i_manifest_transfer *transfer = &transfers[i];
    const item row = psplit_i_json_element(&list, i);
    const item bytes = psplit_i_json_unless_null(with_bytes ? psplit_i_json_need(&row, "bytes")
                                                            : psplit_i_json_find(&row, "bytes"));
    need_text(&row, "tensor", &transfer->tensor);
    need_text(&row, "dtype", &transfer->dtype);
    psplit_i_json_u64(psplit_i_json_need(&row, "tag"), &transfer->tag);
    need_index(&row, "from", n_stages, &transfer->from);
    need_index(&row, "to", n_stages, &transfer->to);
    psplit_i_read_shape(need_or_null(&row, "shape"), &transfer->shape);
    transfer->bytes_known = psplit_i_json_given(bytes);
    psplit_i_json_u64(bytes, &transfer->bytes);
  }
  *out = transfers;
  *out_n = (uint32_t)n;
}

void psplit_i_read_duplicates(item list, uint32_t n_stages, const psplit_i_duplicate **out,
                              uint32_t *out_n) {
  const size_t n = length(&list);
  psplit_i_duplicate *duplicates = NEW(&list, psplit_i_duplicate, n);
  for (size_t i = 0; i < n && !failed(&list); i++) {
    psplit_i_duplicate *duplicate = &duplicates[i];
    const item row = psplit_i_json_element(&list, i), also = psplit_i_json_need(&row, "also");
    const size_t n_also = length(&also);
    uint32_t *stages = NEW(&list, uint32_t, n_also);
    need_index(&row, "index", UINT32_MAX, &duplicate->node);
    need_index(&row, "stage", n_stages, &duplicate->stage);
    for (size_t k = 0; k < n_also && !failed(&list); k++)
      psplit_i_json_u32(psplit_i_json_element(&also, k), 0, n_stages - 1, &stages[k]);
    duplicate->also = stages;
    duplicate->n_also = (uint32_t)n_also;
  }
  *out = duplicates;
  *out_n = (uint32_t)n;
}
