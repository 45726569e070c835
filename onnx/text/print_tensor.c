/* Tensors and their data. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "names.h"
#include "print.h"
#include "wire.h"

/* TensorProto's fields. */
/* Values that stand more often in a row are printed as VALUE * COUNT; lines of values are this
 * wide. */
enum { LONGEST_RUN = 16, LINE_BYTES = 96 };

/* Numbers in memory, little-endian in raw data. */
typedef struct numbers {
  const uint8_t *bytes;
  size_t n;
  unsigned width; /* in bytes */
  psplit_i_number_kind kind;
  bool is_raw;
} numbers;

static uint64_t load(const numbers *from, size_t i) {
  const uint8_t *at = from->bytes + i * from->width;
  uint64_t out = 0;
  if (from->is_raw) {
    for (unsigned b = from->width; b > 0; b--) out = out << 8 | at[b - 1];
  } else if (from->width == 4) {
    uint32_t narrow;
    memcpy(&narrow, at, sizeof narrow);
    out = narrow;
  } else {
    memcpy(&out, at, sizeof out);
  }
  return out;
}

static void print_number(psplit_i_printer *printer, const numbers *from, uint64_t bits) {
  const unsigned unused = 64 - 8 * from->width;
  if (from->kind == PSPLIT_I_UNSIGNED) {
    psplit_i_text_addf(printer->out, "%" PRIu64, bits);
  } else if (from->kind == PSPLIT_I_SIGNED) {
    const uint64_t sign = UINT64_C(1) << (63 - unused);
    psplit_i_text_addf(printer->out, "%" PRId64, (int64_t)((bits ^ sign) - sign));
  } else if (from->width == 4) {
    const uint32_t narrow = (uint32_t)bits;
    float value;
    memcpy(&value, &narrow, sizeof value);
    psplit_i_print_float(printer, value, false);
  } else {
    double value;
    memcpy(&value, &bits, sizeof value);
    psplit_i_print_double(printer, value);
  }
}

/* ", " before all values but the first, with a new line where this one is full. */
static void separate(psplit_i_printer *printer, size_t i, size_t *io_line) {
  if (i == 0) return;
  if (printer->out->n - *io_line < LINE_BYTES) {
    psplit_i_print(printer, ", ");
    return;
  }
  psplit_i_print(printer, ",");
  *io_line = printer->out->n;
  printer->indent++;
  psplit_i_print_line(printer);
  printer->indent--;
}

/* Where the line that values are written to starts; of one that is long already, near its end. */
static size_t line_start(const psplit_i_printer *printer) {
  const size_t n = printer->out->n;
  const char *end = n ? memrchr(printer->out->bytes, '\n', n) : NULL;
  const size_t start = end ? (size_t)(end - printer->out->bytes) + 1 : 0;
  return n - start > LINE_BYTES / 2 ? n - LINE_BYTES / 2 : start;
}

static void print_numbers(psplit_i_printer *printer, const numbers *from) {
  size_t line = line_start(printer);
  psplit_i_print(printer, "{");
  for (size_t i = 0, run; i < from->n; i += run) {
    const uint64_t bits = load(from, i);
    for (run = 1; i + run < from->n && load(from, i + run) == bits;) run++;
    separate(printer, i, &line);
    print_number(printer, from, bits);
    if (run > LONGEST_RUN)
      psplit_i_text_addf(printer->out, " * %zu", run);
    else
      run = 1;
  }
  psplit_i_print(printer, "}");
}

static void print_strings(psplit_i_printer *printer, const Onnx__TensorProto *tensor) {
  size_t line = line_start(printer);
  psplit_i_print(printer, "{");
  for (size_t i = 0; i < tensor->n_string_data; i++) {
    separate(printer, i, &line);
    psplit_i_print_string(printer, tensor->string_data[i].data, tensor->string_data[i].len);
  }
  psplit_i_print(printer, "}");
}

static void print_raw(psplit_i_printer *printer, const Onnx__TensorProto *tensor) {
  const psplit_i_element *element = psplit_i_element_of(tensor->data_type);
  const unsigned width = element->bits / 8 / element->parts;
  psplit_i_print(printer, "raw ");
  if (element->kind == PSPLIT_I_NO_NUMBER || tensor->raw_data.len % width != 0) {
    psplit_i_print_string(printer, tensor->raw_data.data, tensor->raw_data.len);
    return;
  }
  const numbers from = {.bytes = tensor->raw_data.data,
                        .n = tensor->raw_data.len / width,
                        .width = width,
                        .kind = element->kind,
                        .is_raw = true};
  print_numbers(printer, &from);
}

/* The typed field of the tensor's element type; false where it holds nothing. */
static bool typed_numbers(const Onnx__TensorProto *tensor, numbers *out) {
  switch (psplit_i_element_of(tensor->data_type)->field) {
#define CASE(field, member, k)                                 \
  case field:                                                  \
    *out = (numbers){.bytes = (const uint8_t *)tensor->member, \
                     .n = tensor->n_##member,                  \
                     .width = sizeof *tensor->member,          \
                     .kind = (k)};                             \
    return out->n > 0
    CASE(4, float_data, PSPLIT_I_REAL);
    CASE(5, int32_data, PSPLIT_I_SIGNED);
    CASE(7, int64_data, PSPLIT_I_SIGNED);
    CASE(10, double_data, PSPLIT_I_REAL);
    CASE(11, uint64_data, PSPLIT_I_UNSIGNED);
#undef CASE
    default: return false;
  }
}

/* Bytes of all data in the message, views included. */
static uint64_t data_bytes(const Onnx__TensorProto *tensor) {
  uint64_t sum = tensor->raw_data.len + 4 * (tensor->n_float_data + tensor->n_int32_data) +
                 8 * (tensor->n_int64_data + tensor->n_double_data + tensor->n_uint64_data);
  for (size_t i = 0; i < tensor->n_string_data; i++) sum += tensor->string_data[i].len;
  for (size_t i = 0; i < tensor->n_payload_view; i++) sum += tensor->payload_view[i]->bytes;
  return sum;
}

/* What stands for data that is left out; false where it has to be printed, since it is not what a
 * sound tensor of this type holds. */
static bool print_left_out(psplit_i_printer *printer, const Onnx__TensorProto *tensor) {
  const psplit_i_element *element = psplit_i_element_of(tensor->data_type);
  bool raw = tensor->has_raw_data;
  for (size_t i = 0; i < tensor->n_payload_view; i++)
    raw |= tensor->payload_view[i]->field == PSPLIT_I_TENSOR_RAW_DATA;
  if (!element->field || (raw && !element->bits)) return false;
  psplit_i_print(printer, raw ? "raw {...}" : "{...}");
  return true;
}

static void print_data(psplit_i_printer *printer, const Onnx__TensorProto *tensor) {
  const uint32_t field = psplit_i_element_of(tensor->data_type)->field;
  uint64_t printed = PSPLIT_I_FIELD(PSPLIT_I_TENSOR_DIMS) |
                     PSPLIT_I_FIELD(PSPLIT_I_TENSOR_DATA_TYPE) |
                     PSPLIT_I_FIELD(PSPLIT_I_TENSOR_NAME);
  numbers from;
  if (data_bytes(tensor) > printer->max_data_bytes && print_left_out(printer, tensor)) {
    printed |= PSPLIT_I_FIELD(PSPLIT_I_TENSOR_RAW_DATA) | PSPLIT_I_FIELD(field);
  } else if (tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL &&
             tensor->n_external_data) {
    psplit_i_print_pairs(printer, tensor->n_external_data, tensor->external_data);
    printed |=
      PSPLIT_I_FIELD(PSPLIT_I_TENSOR_EXTERNAL_DATA) | PSPLIT_I_FIELD(PSPLIT_I_TENSOR_DATA_LOCATION);
  } else if (tensor->has_raw_data) {
    print_raw(printer, tensor);
    printed |= PSPLIT_I_FIELD(PSPLIT_I_TENSOR_RAW_DATA);
  } else if (field == PSPLIT_I_TENSOR_STRING_DATA && tensor->n_string_data) {
    print_strings(printer, tensor);
    printed |= PSPLIT_I_FIELD(field);
  } else if (typed_numbers(tensor, &from)) {
    print_numbers(printer, &from);
    printed |= PSPLIT_I_FIELD(field);
  } else {
    psplit_i_print(printer, "{}");
  }
  psplit_i_print_more(printer, &tensor->base, printed);
}

/* The views' content as a TensorProto of its own; NULL after a failure. */
static Onnx__TensorProto *read_views(psplit_i_printer *printer, const Onnx__TensorProto *tensor) {
  psplit_i_text wire = {0};
  Onnx__TensorProto *out = NULL;
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < tensor->n_payload_view && code == PSPLIT_OK; i++) {
    const Onnx__PayloadView *view = tensor->payload_view[i];
    uint8_t *bytes = view->bytes < INT32_MAX ? malloc((size_t)view->bytes + 1) : NULL;
    code = bytes ? printer->reader(printer->user, view->offset, bytes, (size_t)view->bytes,
                                   printer->diag)
                 : psplit_i_nomem(printer->diag);
    if (code == PSPLIT_OK) psplit_i_wire_bytes(&wire, view->field, bytes, (size_t)view->bytes);
    free(bytes);
  }
  if (code == PSPLIT_OK && !wire.failed)
    out = onnx__tensor_proto__unpack(NULL, wire.n, (const uint8_t *)wire.bytes);
  if (code == PSPLIT_OK && !out) code = psplit_i_nomem(printer->diag);
  psplit_i_text_fini(&wire);
  if (code != PSPLIT_OK && printer->code == PSPLIT_OK) printer->code = code;
  return out;
}

/* The tensor with its data in memory. Where a field is partly there and partly in the file, nobody
 * knows the order. */
static bool merge_views(Onnx__TensorProto *io_tensor, const Onnx__TensorProto *views) {
#define MERGE(n, member)               \
  if (views->n) {                      \
    if (io_tensor->n) return false;    \
    io_tensor->n = views->n;           \
    io_tensor->member = views->member; \
  }
  MERGE(n_float_data, float_data)
  MERGE(n_int32_data, int32_data)
  MERGE(n_string_data, string_data)
  MERGE(n_int64_data, int64_data)
  MERGE(has_raw_data, raw_data)
  MERGE(n_double_data, double_data)
  MERGE(n_uint64_data, uint64_data)
#undef MERGE
  io_tensor->n_payload_view = 0;
  return true;
}

static void print_viewed(psplit_i_printer *printer, const Onnx__TensorProto *tensor) {
  Onnx__TensorProto *views = read_views(printer, tensor);
  if (!views) return;
  Onnx__TensorProto whole = *tensor;
  if (merge_views(&whole, views))
    print_data(printer, &whole);
  else if (printer->code == PSPLIT_OK)
    printer->code = psplit_i_fail(printer->diag, PSPLIT_UNSUPPORTED,
                                  "tensor \"%s\": its data is in several pieces in the file",
                                  tensor->name ? tensor->name : "");
  onnx__tensor_proto__free_unpacked(views, NULL);
}

void psplit_i_print_tensor(psplit_i_printer *printer, const Onnx__TensorProto *tensor,
                           bool assigned) {
  const char *type = psplit_i_element_of(tensor->data_type)->name;
  if (!tensor->has_data_type)
    psplit_i_print(printer, "?");
  else if (type)
    psplit_i_print(printer, type);
  else
    psplit_i_text_addf(printer->out, "?(%" PRId32 ")", tensor->data_type);
  for (size_t i = 0; i < tensor->n_dims; i++)
    psplit_i_text_addf(printer->out, "%s%" PRId64, i ? "," : "[", tensor->dims[i]);
  psplit_i_print(printer, tensor->n_dims ? "] " : " ");
  if (tensor->name) {
    psplit_i_print_name(printer, tensor->name);
    psplit_i_print(printer, " ");
  }
  if (assigned || tensor->has_raw_data || tensor->n_payload_view || tensor->n_external_data)
    psplit_i_print(printer, "= ");
  if (tensor->n_payload_view && data_bytes(tensor) <= printer->max_data_bytes)
    print_viewed(printer, tensor);
  else
    print_data(printer, tensor);
}
