/* Types and typed names. */
#include <inttypes.h>
#include <string.h>

#include "lexer.h"
#include "names.h"
#include "print.h"

#define VALUE(name) ONNX__TYPE_PROTO__VALUE_##name

/* float; ?(99) for a number without a name; ? for none. */
static void print_element(psplit_i_printer *printer, bool has, int32_t data_type) {
  const char *name = psplit_i_element_of(data_type)->name;
  if (!has)
    psplit_i_print(printer, "?");
  else if (name)
    psplit_i_print(printer, name);
  else
    psplit_i_text_addf(printer->out, "?(%" PRId32 ")", data_type);
}

static void print_dim(psplit_i_printer *printer, const Onnx__TensorShapeProto__Dimension *dim) {
  uint64_t printed = 0;
  switch (dim->value_case) {
    case ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE:
      psplit_i_text_addf(printer->out, "%" PRId64, dim->dim_value);
      printed = PSPLIT_I_FIELD(1);
      break;
    case ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM:
      psplit_i_print_word(printer, dim->dim_param);
      printed = PSPLIT_I_FIELD(2);
      break;
    default: psplit_i_print(printer, "?");
  }
  psplit_i_print_more(printer, &dim->base, printed);
}

static void print_tensor_type(psplit_i_printer *printer, bool has, int32_t data_type,
                              const Onnx__TensorShapeProto *shape) {
  print_element(printer, has, data_type);
  if (shape && !shape->n_dim) return;
  psplit_i_print(printer, "[");
  for (size_t i = 0; shape && i < shape->n_dim; i++) {
    if (i) psplit_i_print(printer, ",");
    print_dim(printer, shape->dim[i]);
  }
  psplit_i_print(printer, "]");
}

static bool is_dotted(const char *text) {
  for (;;) {
    const size_t n = strcspn(text, ".");
    if (!psplit_i_is_word(text, n)) return false;
    if (!text[n]) return true;
    text += n + 1;
  }
}

static void print_dotted(psplit_i_printer *printer, const char *text) {
  if (is_dotted(text))
    psplit_i_print(printer, text);
  else
    psplit_i_print_string(printer, text, strlen(text));
}

static void print_opaque(psplit_i_printer *printer, const Onnx__TypeProto__Opaque *opaque) {
  psplit_i_print(printer, "opaque(");
  if (opaque->domain) {
    print_dotted(printer, opaque->domain);
    psplit_i_print(printer, ", ");
    psplit_i_print_word(printer, opaque->name);
  } else if (opaque->name) {
    print_dotted(printer, opaque->name);
  }
  psplit_i_print(printer, ")");
}

static bool shape_is_plain(const Onnx__TensorShapeProto *shape) {
  return !shape || !shape->base.n_unknown_fields;
}

/* Whether the syntax of types has a place for all that stands inside. */
static bool has_syntax(const Onnx__TypeProto *type) {
  switch (type->value_case) {
    case VALUE(TENSOR_TYPE):
      return !type->tensor_type->base.n_unknown_fields && shape_is_plain(type->tensor_type->shape);
    case VALUE(SPARSE_TENSOR_TYPE):
      return !type->sparse_tensor_type->base.n_unknown_fields &&
             shape_is_plain(type->sparse_tensor_type->shape);
    case VALUE(SEQUENCE_TYPE): return !type->sequence_type->base.n_unknown_fields;
    case VALUE(OPTIONAL_TYPE): return !type->optional_type->base.n_unknown_fields;
    case VALUE(MAP_TYPE): return !type->map_type->base.n_unknown_fields;
    case VALUE(OPAQUE_TYPE):
      return !type->opaque_type->base.n_unknown_fields &&
             (type->opaque_type->name || !type->opaque_type->domain);
    default: return false;
  }
}

static void print_inner(psplit_i_printer *printer, const char *kind, const Onnx__TypeProto *inner) {
  psplit_i_text_addf(printer->out, "%s(", kind);
  if (inner) psplit_i_print_type(printer, inner);
  psplit_i_print(printer, ")");
}

static void print_map(psplit_i_printer *printer, const Onnx__TypeProto__Map *map) {
  psplit_i_print(printer, "map(");
  print_element(printer, map->has_key_type, map->key_type);
  if (map->value_type) {
    psplit_i_print(printer, ", ");
    psplit_i_print_type(printer, map->value_type);
  }
  psplit_i_print(printer, ")");
}

void psplit_i_print_type(psplit_i_printer *printer, const Onnx__TypeProto *type) {
  if (!has_syntax(type)) {
    psplit_i_print_spelled_out(printer, &type->base);
    return;
  }
  switch (type->value_case) {
    case VALUE(TENSOR_TYPE):
      print_tensor_type(printer, type->tensor_type->has_elem_type, type->tensor_type->elem_type,
                        type->tensor_type->shape);
      break;
    case VALUE(SPARSE_TENSOR_TYPE):
      psplit_i_print(printer, "sparse_tensor(");
      print_tensor_type(printer, type->sparse_tensor_type->has_elem_type,
                        type->sparse_tensor_type->elem_type, type->sparse_tensor_type->shape);
      psplit_i_print(printer, ")");
      break;
    case VALUE(SEQUENCE_TYPE): print_inner(printer, "seq", type->sequence_type->elem_type); break;
    case VALUE(OPTIONAL_TYPE):
      print_inner(printer, "optional", type->optional_type->elem_type);
      break;
    case VALUE(MAP_TYPE): print_map(printer, type->map_type); break;
    default: print_opaque(printer, type->opaque_type);
  }
  psplit_i_print_more(printer, &type->base, PSPLIT_I_FIELD(type->value_case));
}

void psplit_i_print_value_info(psplit_i_printer *printer, const Onnx__ValueInfoProto *info) {
  if (!info->name || (info->type && !has_syntax(info->type))) {
    psplit_i_print_spelled_out(printer, &info->base);
    return;
  }
  if (info->type) {
    psplit_i_print_type(printer, info->type);
    psplit_i_print(printer, " ");
  }
  psplit_i_print_name(printer, info->name);
  psplit_i_print_more(printer, &info->base, PSPLIT_I_FIELD(1) | PSPLIT_I_FIELD(2));
}
