/* Constant tensors: element types, where their bytes are, and reading small ones. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model.h"
#include "tensor_inside.h"
#include "wire.h"

static const struct {
  uint8_t bits;
  const char *name;
} ELEMENTS[] = {
#define PSPLIT_I_ELEMENT(number, ort_number, name, bits) [number] = {bits, name},
#include "elements.def"
};
enum { N_ELEMENTS = sizeof ELEMENTS / sizeof *ELEMENTS };

uint32_t psplit_i_dtype_bits(int32_t data_type) {
  return data_type >= 0 && data_type < N_ELEMENTS ? ELEMENTS[data_type].bits : 0;
}

const char *psplit_i_dtype_name(int32_t data_type) {
  return data_type >= 0 && data_type < N_ELEMENTS ? ELEMENTS[data_type].name : NULL;
}

bool psplit_i_count_elements(const int64_t *dims, size_t n_dims, int64_t *out) {
  uint64_t n = 1;
  bool empty = false;
  for (size_t i = 0; i < n_dims; i++) {
    if (dims[i] < 0) return false;
    if (dims[i] == 0)
      empty = true;
    else if (!psplit_i_mul_u64(n, (uint64_t)dims[i], &n) || n > INT64_MAX / 16)
      return false;
  }
  *out = empty ? 0 : (int64_t)n;
  return true;
}

uint64_t psplit_i_packed_bytes(int64_t n_elements, uint32_t bits) {
  /* n_elements <= INT64_MAX / 16, and bits is at most 128. */
  return ((uint64_t)n_elements * bits + 7) / 8;
}

uint64_t psplit_i_view_bytes(const Onnx__TensorProto *proto, uint32_t field, uint64_t *out_offset) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < proto->n_payload_view; i++)
    if (proto->payload_view[i]->field == field) {
      bytes += proto->payload_view[i]->bytes;
      if (out_offset) *out_offset = proto->payload_view[i]->offset;
    }
  return bytes;
}

uint32_t psplit_i_typed_field(int32_t data_type) {
  switch (data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
    case ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64: return FLOAT_DATA_FIELD;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
    case ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX128: return DOUBLE_DATA_FIELD;
    case ONNX__TENSOR_PROTO__DATA_TYPE__STRING: return STRING_DATA_FIELD;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64: return INT64_DATA_FIELD;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64: return UINT64_DATA_FIELD;
    default: return INT32_DATA_FIELD;
  }
}

psplit_i_tensor psplit_i_tensor_of(const struct Onnx__TensorProto *proto) {
  psplit_i_tensor tensor = {.proto = proto,
                            .data_type = proto->data_type,
                            .n_dims = (uint32_t)proto->n_dims,
                            .dims = proto->dims};
  if (psplit_i_count_elements(proto->dims, proto->n_dims, &tensor.n_elements))
    tensor.data_bytes =
      psplit_i_packed_bytes(tensor.n_elements, psplit_i_dtype_bits(proto->data_type));
  return tensor;
}

psplit_i_tensor psplit_i_graph_initializer(const psplit_i_graph *graph, uint32_t index) {
  return psplit_i_tensor_of(graph->proto->initializer[index]);
}

static uint64_t constant_bytes(const psplit_i_graph *graph) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < graph->n_initializers; i++)
    sum = psplit_i_sat_add_u64(sum, psplit_i_graph_initializer(graph, i).data_bytes);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const Onnx__TensorProto *value = psplit_i_node_is(&graph->nodes[n], "Constant")
                                       ? psplit_i_attr_tensor(&graph->nodes[n], "value")
                                       : NULL;
    if (value) sum = psplit_i_sat_add_u64(sum, psplit_i_tensor_of(value).data_bytes);
    sum = psplit_i_sat_add_u64(sum, graph->nodes[n].n_bodies ? psplit_i_node_inner_bytes(graph, n)
                                                             : graph->nodes[n].table_bytes);
  }
  return sum;
}

uint64_t psplit_i_node_inner_bytes(const psplit_i_graph *graph, uint32_t node) {
  const psplit_i_node *data = &graph->nodes[node];
  uint64_t sum = data->table_bytes;
  for (uint32_t b = 0; b < data->n_bodies; b++)
    sum = psplit_i_sat_add_u64(sum, constant_bytes(data->bodies[b]));
  /* A function's own calls are left out: following them could take exponential time. */
  if (data->function != PSPLIT_NONE)
    sum = psplit_i_sat_add_u64(
      sum, constant_bytes(psplit_i_model_function(graph->model, data->function)));
  return sum;
}

/* Numbers and strings, but for bodies. */
static uint64_t attribute_bytes(const struct Onnx__AttributeProto *attribute) {
  uint64_t sum = psplit_i_sat_add_u64(psplit_i_sat_mul_u64(attribute->n_ints, sizeof(int64_t)),
                                      psplit_i_sat_mul_u64(attribute->n_floats, sizeof(float)));
  sum = psplit_i_sat_add_u64(sum, attribute->s.len);
  for (size_t i = 0; i < attribute->n_strings; i++)
    sum = psplit_i_sat_add_u64(sum, attribute->strings[i].len);
  if (attribute->t) sum = psplit_i_sat_add_u64(sum, psplit_i_tensor_of(attribute->t).data_bytes);
  for (size_t i = 0; i < attribute->n_tensors; i++)
    sum = psplit_i_sat_add_u64(sum, psplit_i_tensor_of(attribute->tensors[i]).data_bytes);
  return sum;
}

uint64_t psplit_i_table_bytes(const psplit_i_node *node) {
  enum { SMALL_BYTES = 1024 }; /* which the structure is counted for */
  uint64_t sum = 0;
  if (psplit_i_node_is(node, "Constant")) return 0;
  for (size_t a = 0; a < node->n_attributes; a++) {
    const uint64_t bytes = attribute_bytes(node->attributes[a]);
    if (bytes > SMALL_BYTES) sum = psplit_i_sat_add_u64(sum, bytes);
  }
  return sum;
}

bool psplit_i_tensor_payload(const psplit_model *model, const Onnx__TensorProto *proto,
                             psplit_i_payload *out) {
  if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
    psplit_i_external external;
    if (psplit_i_external_parse(proto, NULL, &external) != PSPLIT_OK) return false;
    const uint32_t file = psplit_i_intern_find(&model->locations, external.location);
    if (file == PSPLIT_NONE) return false;
    *out = (psplit_i_payload){
      .file = file + 1, .offset = external.offset, .bytes = psplit_i_tensor_of(proto).data_bytes};
    return out->bytes > 0;
  }
  if (proto->has_raw_data) {
    *out = (psplit_i_payload){.memory = proto->raw_data.data, .bytes = proto->raw_data.len};
    return proto->raw_data.len > 0;
  }
  uint64_t offset = 0;
  const uint64_t bytes = psplit_i_view_bytes(proto, RAW_DATA_FIELD, &offset);
  *out = (psplit_i_payload){.file = 0, .offset = offset, .bytes = bytes};
  return bytes > 0;
}

/* Little-endian raw bytes of a small tensor: in memory, or read into `arena`; NULL if there are
 * none or they are not exactly as long as they should be. */
static psplit_code small_raw(const psplit_model *model, const psplit_i_tensor *tensor,
                             psplit_i_arena *arena, psplit_diag *diag, const uint8_t **out) {
  psplit_i_payload payload;
  *out = NULL;
  if (!psplit_i_tensor_payload(model, tensor->proto, &payload) ||
      payload.bytes != tensor->data_bytes)
    return PSPLIT_OK;
  *out = payload.memory;
  if (*out) return PSPLIT_OK;
  uint8_t *copy = psplit_i_arena_alloc(arena, (size_t)payload.bytes);
  if (!copy) return psplit_i_nomem(diag);
  *out = copy;
  return psplit_i_model_read(model, payload.file, payload.offset, copy, (size_t)payload.bytes,
                             diag);
}

static uint64_t load_little_endian(const uint8_t *bytes, unsigned n) {
  uint64_t word = 0;
  for (unsigned i = 0; i < n; i++) word |= (uint64_t)bytes[i] << (8 * i);
  return word;
}

static int64_t integer_of(uint64_t word, int32_t data_type) {
  switch (data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT8: return (int8_t)word;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT16: return (int16_t)word;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32: return (int32_t)word;
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL: return word != 0;
    default: return (int64_t)word;
  }
}

static bool is_integer(int32_t data_type) {
  return (data_type >= ONNX__TENSOR_PROTO__DATA_TYPE__UINT8 &&
          data_type <= ONNX__TENSOR_PROTO__DATA_TYPE__INT64) ||
         data_type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL ||
         data_type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT32;
}

/* Values of a tensor's varint field (int32_data, int64_data, uint64_data) that stayed in the file;
 * *out_good: they are as many as there should be. */
static psplit_code read_packed_varints(const psplit_model *model, const psplit_i_tensor *tensor,
                                       psplit_i_arena *arena, psplit_diag *diag, int64_t *out,
                                       bool *out_good) {
  psplit_code code = PSPLIT_OK;
  *out_good = false;
  const uint32_t field = psplit_i_typed_field(tensor->data_type);
  uint64_t offset = 0;
  const uint64_t bytes = psplit_i_view_bytes(tensor->proto, field, &offset);
  const Onnx__TensorProto *proto = tensor->proto;
  const bool in_pieces = proto->n_payload_view != 1 || proto->n_int32_data || proto->n_int64_data ||
                         proto->n_uint64_data;
  if (bytes > (1u << 20) || in_pieces) return PSPLIT_OK;
  uint8_t *packed = psplit_i_arena_alloc(arena, (size_t)bytes);
  if (!packed) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_model_read(model, 0, offset, packed, (size_t)bytes, diag));
  size_t at = 0;
  for (int64_t i = 0; i < tensor->n_elements; i++) {
    uint64_t value;
    const unsigned width = psplit_i_varint_read(packed + at, (size_t)bytes - at, &value);
    if (!width) return PSPLIT_OK;
    at += width;
    out[i] = field == INT32_DATA_FIELD ? (int32_t)(uint32_t)value : (int64_t)value;
  }
  *out_good = at == bytes;
out:
  return code;
}

/* Elements that the message holds in the field of their type, which has one for each element. */
static bool take_typed(const Onnx__TensorProto *proto, uint32_t field, size_t n, int64_t *out) {
  if (field == INT64_DATA_FIELD && proto->n_int64_data == n) {
    memcpy(out, proto->int64_data, n * sizeof *out);
  } else if (field == INT32_DATA_FIELD && proto->n_int32_data == n) {
    for (size_t i = 0; i < n; i++) out[i] = proto->int32_data[i];
  } else if (field == UINT64_DATA_FIELD && proto->n_uint64_data == n) {
    for (size_t i = 0; i < n; i++) out[i] = (int64_t)proto->uint64_data[i];
  } else if (field == FLOAT_DATA_FIELD && proto->n_float_data == n) {
    for (size_t i = 0; i < n; i++) {
      uint32_t bits;
      memcpy(&bits, &proto->float_data[i], sizeof bits);
      out[i] = bits;
    }
  } else if (field == DOUBLE_DATA_FIELD && proto->n_double_data == n) {
    memcpy(out, proto->double_data, n * sizeof *out);
  } else {
    return false;
  }
  return true;
}

/* Elements of float_data or double_data that stayed in the file, as one packed field. */
static psplit_code read_packed_floats(const psplit_model *model, const psplit_i_tensor *tensor,
                                      unsigned width, psplit_i_arena *arena, psplit_diag *diag,
                                      int64_t *out) {
  psplit_code code;
  const size_t n = (size_t)tensor->n_elements;
  uint64_t offset = 0;
  psplit_i_view_bytes(tensor->proto, psplit_i_typed_field(tensor->data_type), &offset);
  uint8_t *packed = psplit_i_arena_array(arena, n, width);
  if (!packed) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_model_read(model, 0, offset, packed, n * width, diag));
  for (size_t i = 0; i < n; i++) out[i] = (int64_t)load_little_endian(packed + i * width, width);
out:
  return code;
}

/* Elements of raw_data or of an external file; *out_good: they are as many as there should be. */
static psplit_code read_raw(const psplit_model *model, const psplit_i_tensor *tensor,
                            psplit_i_arena *arena, psplit_diag *diag, int64_t *out,
                            bool *out_good) {
  psplit_code code;
  const unsigned width = psplit_i_dtype_bits(tensor->data_type) / 8;
  const uint8_t *raw;
  PSPLIT_TRY(small_raw(model, tensor, arena, diag, &raw));
  *out_good = raw != NULL;
  for (size_t i = 0; raw && i < (size_t)tensor->n_elements; i++)
    out[i] = integer_of(load_little_endian(raw + i * width, width), tensor->data_type);
out:
  return code;
}

/* Elements of a small tensor of integers or floats, wherever they are stored: integers as they are,
 * floats as their bits. *out_words: NULL unless they are as many as there should be. */
static psplit_code read_words(const psplit_model *model, const psplit_i_tensor *tensor,
                              psplit_i_arena *arena, psplit_diag *diag, int64_t **out_words) {
  psplit_code code = PSPLIT_OK;
  const Onnx__TensorProto *proto = tensor->proto;
  const size_t n = (size_t)tensor->n_elements;
  const uint32_t field = psplit_i_typed_field(tensor->data_type);
  const unsigned width = field == FLOAT_DATA_FIELD ? 4 : 8;
  const bool fixed_width = field == FLOAT_DATA_FIELD || field == DOUBLE_DATA_FIELD;
  const uint64_t view_bytes = psplit_i_view_bytes(proto, field, NULL);
  bool good = true;
  *out_words = NULL;
  int64_t *words = psplit_i_arena_array(arena, n ? n : 1, sizeof *words);
  if (!words) return psplit_i_nomem(diag);
  if (n && !take_typed(proto, field, n, words)) {
    if (fixed_width && proto->n_payload_view == 1 && view_bytes == (uint64_t)n * width)
      PSPLIT_TRY(read_packed_floats(model, tensor, width, arena, diag, words));
    else if (!fixed_width && view_bytes)
      PSPLIT_TRY(read_packed_varints(model, tensor, arena, diag, words, &good));
    else
      PSPLIT_TRY(read_raw(model, tensor, arena, diag, words, &good));
  }
  if (good) *out_words = words;
out:
  return code;
}

psplit_code psplit_i_tensor_int64s(const psplit_model *model, const psplit_i_tensor *tensor,
                                   int64_t max_elements, psplit_i_arena *arena, psplit_diag *diag,
                                   const int64_t **out, size_t *out_n) {
  int64_t *words = NULL;
  psplit_code code = PSPLIT_OK;
  *out = NULL;
  *out_n = 0;
  if (!is_integer(tensor->data_type) || tensor->n_elements > max_elements) return PSPLIT_OK;
  PSPLIT_TRY(read_words(model, tensor, arena, diag, &words));
  if (!words) return PSPLIT_OK;
  *out = words;
  *out_n = (size_t)tensor->n_elements;
out:
  return code;
}

static double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa ? (double)NAN : sign * (double)INFINITY;
  if (exponent == 0) return sign * ldexp(mantissa, -24);
  return sign * ldexp(1024 + mantissa, exponent - 25);
}

static double float_value(uint64_t word, int32_t data_type) {
  float single;
  double value;
  uint32_t low = (uint32_t)word;
  switch (data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16: return half_value((uint16_t)word);
    case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16: low = (uint32_t)(word << 16); break;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE: memcpy(&value, &word, sizeof value); return value;
    default: break;
  }
  memcpy(&single, &low, sizeof single);
  return (double)single;
}

psplit_code psplit_i_tensor_doubles(const psplit_model *model, const psplit_i_tensor *tensor,
                                    int64_t max_elements, psplit_i_arena *arena, psplit_diag *diag,
                                    const double **out, size_t *out_n) {
  int64_t *words = NULL;
  psplit_code code = PSPLIT_OK;
  *out = NULL;
  *out_n = 0;
  const bool is_float = tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
                        tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ||
                        tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ||
                        tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
  if (!is_float || tensor->n_elements > max_elements) return PSPLIT_OK;
  const size_t n = (size_t)tensor->n_elements;
  PSPLIT_TRY(read_words(model, tensor, arena, diag, &words));
  if (!words) return PSPLIT_OK;
  double *values = psplit_i_arena_array(arena, n ? n : 1, sizeof *values);
  if (!values) return psplit_i_nomem(diag);
  for (size_t i = 0; i < n; i++) values[i] = float_value((uint64_t)words[i], tensor->data_type);
  *out = values;
  *out_n = n;
out:
  return code;
}
