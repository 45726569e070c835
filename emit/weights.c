/* Where the data of a stage's tensors goes. */
#include <stdlib.h>

#include "emit.h"

enum { DATA_ALIGNMENT = 4096 }; /* of tensors in a data file: pages, so that they can be mapped */

void psplit_i_weights_reset(psplit_i_weights *weights) {
  psplit_i_vec_fini(&weights->ranges);
  free(weights->table);
  weights->table = NULL;
  weights->n_table = 0;
  weights->data_bytes = 0;
}

static uint32_t slot_of(const psplit_i_weights *weights, const psplit_i_data_range *range) {
  const uint32_t mask = weights->n_table - 1;
  const uint64_t hash = psplit_i_mix64(psplit_i_mix64(range->offset + range->file) ^ range->bytes);
  uint32_t slot = (uint32_t)hash & mask;
  for (; weights->table[slot]; slot = (slot + 1) & mask) {
    const psplit_i_data_range *other = &weights->ranges.items[weights->table[slot] - 1];
    if (other->file == range->file && other->offset == range->offset &&
        other->bytes == range->bytes)
      break;
  }
  return slot;
}

static bool grow_table(psplit_i_weights *weights) {
  const uint32_t n = weights->n_table ? weights->n_table * 2 : 64;
  uint32_t *table = n ? calloc(n, sizeof *table) : NULL;
  if (!table) return false;
  free(weights->table);
  weights->table = table;
  weights->n_table = n;
  for (uint32_t r = 0; r < weights->ranges.n; r++)
    table[slot_of(weights, &weights->ranges.items[r])] = r + 1;
  return true;
}

/* Place of the range in the data file, each distinct range once. */
static psplit_code place_in_data(psplit_i_weights *weights, const psplit_i_payload *payload,
                                 psplit_diag *diag, uint64_t *out_offset) {
  if (weights->ranges.n >= weights->n_table / 2 && !grow_table(weights))
    return psplit_i_nomem(diag);
  psplit_i_data_range range = {
    .file = payload->file, .offset = payload->offset, .bytes = payload->bytes};
  const uint32_t slot = slot_of(weights, &range);
  if (weights->table[slot]) {
    *out_offset = weights->ranges.items[weights->table[slot] - 1].out_offset;
    return PSPLIT_OK;
  }
  range.out_offset = (weights->data_bytes + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
  if (!psplit_i_vec_push(&weights->ranges, range)) return psplit_i_nomem(diag);
  weights->table[slot] = (uint32_t)weights->ranges.n;
  weights->data_bytes = range.out_offset + range.bytes;
  *out_offset = range.out_offset;
  return PSPLIT_OK;
}

/* Small inline data stays where it is: it was read into memory with the structure. Nodes stay as
 * they are, byte for byte, as long as that can be. */
static bool goes_external(const psplit_i_weights *weights, const psplit_i_payload *payload,
                          bool was_external) {
  if (!payload->bytes || payload->memory) return false;
  if (!was_external && weights->in_node && !weights->move_attributes) return false;
  switch (weights->mode) {
    case PSPLIT_WEIGHTS_INLINE: return false;
    case PSPLIT_WEIGHTS_AUTO: return was_external || weights->move_inline;
    case PSPLIT_WEIGHTS_EXTERNAL:
    case PSPLIT_WEIGHTS_REFERENCE: return true;
  }
  return false;
}

psplit_code psplit_i_weights_place(psplit_i_weights *weights, const psplit_i_payload *payload,
                                   bool was_external, psplit_diag *diag, psplit_i_place *out) {
  *out = (psplit_i_place){.external = goes_external(weights, payload, was_external)};
  if (!out->external) return PSPLIT_OK;
  if (weights->mode == PSPLIT_WEIGHTS_REFERENCE) {
    out->location = weights->locations[payload->file];
    out->offset = payload->offset;
    return PSPLIT_OK;
  }
  out->location = weights->data_name;
  return place_in_data(weights, payload, diag, &out->offset);
}

bool psplit_i_weights_change_tensor(const psplit_i_weights *weights,
                                    const Onnx__TensorProto *tensor) {
  if (tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) return true;
  psplit_i_payload payload;
  return tensor->n_payload_view && psplit_i_tensor_payload(weights->model, tensor, &payload) &&
         goes_external(weights, &payload, false);
}

bool psplit_i_weights_change_sparse(const psplit_i_weights *weights,
                                    const Onnx__SparseTensorProto *sparse) {
  return (sparse->values && psplit_i_weights_change_tensor(weights, sparse->values)) ||
         (sparse->indices && psplit_i_weights_change_tensor(weights, sparse->indices));
}

static bool changes_graph(const psplit_i_weights *weights, const Onnx__GraphProto *graph) {
  for (size_t i = 0; i < graph->n_initializer; i++)
    if (psplit_i_weights_change_tensor(weights, graph->initializer[i])) return true;
  for (size_t i = 0; i < graph->n_sparse_initializer; i++)
    if (psplit_i_weights_change_sparse(weights, graph->sparse_initializer[i])) return true;
  for (size_t n = 0; n < graph->n_node; n++)
    if (psplit_i_weights_change_attributes(weights, graph->node[n]->attribute,
                                           graph->node[n]->n_attribute))
      return true;
  return false;
}

static bool changes_attribute(const psplit_i_weights *weights,
                              const Onnx__AttributeProto *attribute) {
  if (attribute->t && psplit_i_weights_change_tensor(weights, attribute->t)) return true;
  if (attribute->g && changes_graph(weights, attribute->g)) return true;
  if (attribute->sparse_tensor && psplit_i_weights_change_sparse(weights, attribute->sparse_tensor))
    return true;
  for (size_t i = 0; i < attribute->n_tensors; i++)
    if (psplit_i_weights_change_tensor(weights, attribute->tensors[i])) return true;
  for (size_t i = 0; i < attribute->n_graphs; i++)
    if (changes_graph(weights, attribute->graphs[i])) return true;
  for (size_t i = 0; i < attribute->n_sparse_tensors; i++)
    if (psplit_i_weights_change_sparse(weights, attribute->sparse_tensors[i])) return true;
  return false;
}

bool psplit_i_weights_change_attributes(const psplit_i_weights *weights,
                                        Onnx__AttributeProto *const *attributes, size_t n) {
  for (size_t a = 0; a < n; a++)
    if (changes_attribute(weights, attributes[a])) return true;
  return false;
}
