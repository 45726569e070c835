/* Checks every constant tensor of a model against its type and shape. */
#include <inttypes.h>

#include "model.h"
#include "proto_text.h"
#include "tensor_inside.h"
#include "wire.h"

/* Elements in the typed fields of a tensor, where each field's element type is the tensor's own. */
typedef struct typed_count {
  uint64_t least, most; /* numbers that stayed in the file as varints are not counted one by one */
} typed_count;

static typed_count count_typed(const Onnx__TensorProto *tensor) {
  typed_count count = {0};
  count.least = tensor->n_float_data + tensor->n_double_data + tensor->n_int32_data +
                tensor->n_int64_data + tensor->n_uint64_data + tensor->n_string_data;
  count.most = count.least;
  for (size_t i = 0; i < tensor->n_payload_view; i++) {
    const Onnx__PayloadView *view = tensor->payload_view[i];
    const bool fixed = view->field == FLOAT_DATA_FIELD || view->field == DOUBLE_DATA_FIELD;
    const uint64_t width = view->field == FLOAT_DATA_FIELD ? 4 : 8;
    if (view->field == RAW_DATA_FIELD) continue;
    count.least += fixed ? view->bytes / width : view->bytes / PSPLIT_I_VARINT_MAX;
    count.most += fixed ? view->bytes / width : view->bytes;
  }
  return count;
}

static bool has_field(const Onnx__TensorProto *tensor, uint32_t field) {
  switch (field) {
    case FLOAT_DATA_FIELD:
      if (tensor->n_float_data) return true;
      break;
    case INT32_DATA_FIELD:
      if (tensor->n_int32_data) return true;
      break;
    case STRING_DATA_FIELD: return tensor->n_string_data > 0;
    case INT64_DATA_FIELD:
      if (tensor->n_int64_data) return true;
      break;
    case DOUBLE_DATA_FIELD:
      if (tensor->n_double_data) return true;
      break;
    case UINT64_DATA_FIELD:
      if (tensor->n_uint64_data) return true;
      break;
    default: break;
  }
  return psplit_i_view_bytes(tensor, field, NULL) > 0;
}

/* Data in typed fields: of the one field that the element type uses, as many as the shape says. */
static psplit_code check_typed(const Onnx__TensorProto *tensor, int64_t n_elements,
                               psplit_diag *diag) {
  static const uint32_t fields[] = {FLOAT_DATA_FIELD, INT32_DATA_FIELD,  STRING_DATA_FIELD,
                                    INT64_DATA_FIELD, DOUBLE_DATA_FIELD, UINT64_DATA_FIELD};
  const uint32_t own = psplit_i_typed_field(tensor->data_type);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (fields[i] != own && has_field(tensor, fields[i]))
      return psplit_i_fail(diag, PSPLIT_INVALID, "it holds data of another type than its own");
  const typed_count count = count_typed(tensor);
  const uint64_t n = (uint64_t)n_elements;
  uint64_t least = n, most = n;
  switch (tensor->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64:
    case ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX128: least = most = 2 * n; break;
    default: /* types below a byte: packed, or by some writers one in each number */
      if (psplit_i_dtype_bits(tensor->data_type) % 8 != 0)
        least = psplit_i_packed_bytes(n_elements, psplit_i_dtype_bits(tensor->data_type));
  }
  if (count.most < least || count.least > most)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "it holds %s%" PRIu64 " numbers or strings, its shape needs %" PRIu64,
                         count.least == count.most ? "" : "about ", count.least, least);
  return PSPLIT_OK;
}

static psplit_code check_external(psplit_model *model, const Onnx__TensorProto *tensor,
                                  uint64_t data_bytes, psplit_diag *diag) {
  psplit_code code;
  psplit_i_external external;
  PSPLIT_TRY(psplit_i_external_parse(tensor, diag, &external));
  if ((tensor->has_raw_data && tensor->raw_data.len) || tensor->n_payload_view ||
      count_typed(tensor).most)
    return psplit_i_fail(diag, PSPLIT_INVALID, "it has both external and inline data");
  if (tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
    return psplit_i_fail(diag, PSPLIT_INVALID, "strings cannot be external data");
  uint32_t file;
  PSPLIT_TRY(psplit_i_data_file_open(model, external.location, diag, &file));
  if (external.bytes != UINT64_MAX && external.bytes != data_bytes)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "its external data is %" PRIu64 " bytes, its shape needs %" PRIu64,
                         external.bytes, data_bytes);
  const uint64_t file_bytes = model->files.items[file].bytes;
  if (external.offset > file_bytes || data_bytes > file_bytes - external.offset)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "its external data, %" PRIu64 " bytes at %" PRIu64
                         ", runs past the end of \"%s\" (%" PRIu64 " bytes)",
                         data_bytes, external.offset, external.location, file_bytes);
  model->has_external_data = true;
out:
  return code;
}

static psplit_code check_tensor(psplit_model *model, const Onnx__TensorProto *tensor,
                                psplit_diag *diag) {
  int64_t n_elements;
  if (!psplit_i_count_elements(tensor->dims, tensor->n_dims, &n_elements))
    return psplit_i_fail(diag, PSPLIT_INVALID, "its dimensions are negative or overflow");
  if (tensor->segment)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "segmented tensors are not supported");
  if (tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__UNDEFINED)
    return psplit_i_fail(diag, PSPLIT_INVALID, "it has no element type");
  if (!psplit_i_dtype_name(tensor->data_type))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "its element type, number %" PRId32 ", is not known to this version",
                         tensor->data_type);
  const uint32_t bits = psplit_i_dtype_bits(tensor->data_type);
  const uint64_t data_bytes = psplit_i_packed_bytes(n_elements, bits);
  if (tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
    return check_external(model, tensor, data_bytes, diag);
  uint64_t raw_views = 0;
  for (size_t i = 0; i < tensor->n_payload_view; i++)
    if (tensor->payload_view[i]->field == RAW_DATA_FIELD) raw_views++;
  if (raw_views > 1 || (raw_views && tensor->has_raw_data))
    return psplit_i_fail(diag, PSPLIT_INVALID, "it has raw_data twice");
  const uint64_t raw =
    tensor->has_raw_data ? tensor->raw_data.len : psplit_i_view_bytes(tensor, RAW_DATA_FIELD, NULL);
  if (raw == 0) return check_typed(tensor, n_elements, diag);
  if (count_typed(tensor).most)
    return psplit_i_fail(diag, PSPLIT_INVALID, "it has both raw_data and typed data");
  if (!bits) return psplit_i_fail(diag, PSPLIT_INVALID, "strings cannot be raw_data");
  if (raw != data_bytes)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "it holds %" PRIu64 " bytes, its shape and type need %" PRIu64, raw,
                         data_bytes);
  return PSPLIT_OK;
}

static psplit_code check_graph(psplit_model *model, const Onnx__GraphProto *graph,
                               psplit_diag *diag);

static psplit_code check_named(psplit_model *model, const Onnx__TensorProto *tensor,
                               const char *owner, psplit_diag *diag) {
  const psplit_code code = check_tensor(model, tensor, diag);
  if (code != PSPLIT_OK)
    psplit_i_diag_context(diag, "tensor \"%s\"%s%s",
                          tensor->name && *tensor->name ? tensor->name : "(unnamed)",
                          owner ? " of node " : "", owner ? owner : "");
  return code;
}

static psplit_code check_sparse(psplit_model *model, const Onnx__SparseTensorProto *sparse,
                                const char *owner, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  int64_t n_elements;
  if (!sparse->values || !sparse->indices ||
      !psplit_i_count_elements(sparse->dims, sparse->n_dims, &n_elements))
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "a sparse tensor lacks values or indices, or its dimensions overflow");
  PSPLIT_TRY(check_named(model, sparse->values, owner, diag));
  PSPLIT_TRY(check_named(model, sparse->indices, owner, diag));
  PSPLIT_TRY(psplit_i_sparse_check(model, sparse, n_elements, diag));
out:
  return code;
}

/* Recursion is bounded by the scan's depth limit. */
static psplit_code check_attributes(psplit_model *model, size_t n_attributes,
                                    Onnx__AttributeProto *const *attributes, const char *owner,
                                    psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t a = 0; a < n_attributes; a++) {
    const Onnx__AttributeProto *attribute = attributes[a];
    if (attribute->t) PSPLIT_TRY(check_named(model, attribute->t, owner, diag));
    for (size_t t = 0; t < attribute->n_tensors; t++)
      PSPLIT_TRY(check_named(model, attribute->tensors[t], owner, diag));
    if (attribute->sparse_tensor)
      PSPLIT_TRY(check_sparse(model, attribute->sparse_tensor, owner, diag));
    for (size_t t = 0; t < attribute->n_sparse_tensors; t++)
      PSPLIT_TRY(check_sparse(model, attribute->sparse_tensors[t], owner, diag));
    if (attribute->g) PSPLIT_TRY(check_graph(model, attribute->g, diag));
    for (size_t g = 0; g < attribute->n_graphs; g++)
      PSPLIT_TRY(check_graph(model, attribute->graphs[g], diag));
  }
out:
  return code;
}

static psplit_code check_nodes(psplit_model *model, size_t n_nodes, Onnx__NodeProto *const *nodes,
                               psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < n_nodes; i++) {
    PSPLIT_TRY(psplit_i_go_on(model->options.cancel, diag));
    PSPLIT_TRY(check_attributes(model, nodes[i]->n_attribute, nodes[i]->attribute,
                                psplit_i_text_or_empty(nodes[i]->name), diag));
  }
out:
  return code;
}

static psplit_code check_graph(psplit_model *model, const Onnx__GraphProto *graph,
                               psplit_diag *diag) {
  psplit_code code;
  for (size_t i = 0; i < graph->n_initializer; i++) {
    PSPLIT_TRY(psplit_i_go_on(model->options.cancel, diag));
    PSPLIT_TRY(check_named(model, graph->initializer[i], NULL, diag));
  }
  for (size_t i = 0; i < graph->n_sparse_initializer; i++)
    PSPLIT_TRY(check_sparse(model, graph->sparse_initializer[i], NULL, diag));
  PSPLIT_TRY(check_nodes(model, graph->n_node, graph->node, diag));
out:
  return code;
}

psplit_code psplit_i_tensors_check(psplit_model *model, psplit_diag *diag) {
  psplit_code code;
  const Onnx__ModelProto *proto = model->proto;
  PSPLIT_TRY(check_graph(model, proto->graph, diag));
  for (uint32_t n = 0; n < model->n_nodes; n++) {
    const psplit_i_node *node = &model->nodes[n];
    PSPLIT_TRY(psplit_i_go_on(model->options.cancel, diag));
    PSPLIT_TRY(check_attributes(model, node->n_attributes, node->attributes, node->name, diag));
  }
  for (size_t f = 0; f < proto->n_functions; f++) {
    const Onnx__FunctionProto *function = proto->functions[f];
    PSPLIT_TRY(check_nodes(model, function->n_node, function->node, diag));
    PSPLIT_TRY(check_attributes(model, function->n_attribute_proto, function->attribute_proto,
                                psplit_i_text_or_empty(function->name), diag));
  }
  for (size_t t = 0; t < proto->n_training_info; t++) {
    const Onnx__TrainingInfoProto *training = proto->training_info[t];
    if (training->initialization) PSPLIT_TRY(check_graph(model, training->initialization, diag));
    if (training->algorithm) PSPLIT_TRY(check_graph(model, training->algorithm, diag));
  }
out:
  return code;
}
