/* Building the backward graph, and removing unneeded nodes. */
#include "backward.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "fields.h"
#include "wire.h"

bool psplit_i_is_half(int32_t elem) {
  return elem == PSPLIT_ELEM_FLOAT16 || elem == PSPLIT_ELEM_BFLOAT16;
}

bool psplit_i_is_float(int32_t elem) {
  return elem == PSPLIT_ELEM_FLOAT || elem == PSPLIT_ELEM_DOUBLE || psplit_i_is_half(elem);
}

/* Types of AttributeProto. */
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_STRING = 3, TYPE_GRAPH = 5, TYPE_INTS = 7 };

psplit_code psplit_i_backward_init(psplit_i_backward *b, const psplit_i_graph *forward,
                                   psplit_diag *diag) {
  *b = (psplit_i_backward){.forward = forward, .twin = PSPLIT_NONE};
  psplit_i_arena_init(&b->arena, 0);
  psplit_i_intern_init(&b->constant_keys);
  psplit_i_intern_init(&b->names);
  const size_t n = forward->n_values;
  b->of_forward = psplit_i_arena_array(&b->arena, n, sizeof *b->of_forward);
  b->of_shape = psplit_i_arena_array(&b->arena, n, sizeof *b->of_shape);
  if (!b->of_forward || !b->of_shape) return psplit_i_nomem(diag);
  memset(b->of_forward, 0xff, n * sizeof *b->of_forward);
  memset(b->of_shape, 0xff, n * sizeof *b->of_shape);
  return PSPLIT_OK;
}

void psplit_i_backward_fini(psplit_i_backward *b) {
  psplit_i_vec_fini(&b->values);
  psplit_i_vec_fini(&b->nodes);
  psplit_i_vec_fini(&b->inputs);
  psplit_i_vec_fini(&b->constants);
  psplit_i_intern_fini(&b->constant_keys);
  psplit_i_intern_fini(&b->names);
  psplit_i_vec_fini(&b->captures);
  psplit_i_vec_fini(&b->contributions);
  psplit_i_text_fini(&b->attributes);
  psplit_i_arena_fini(&b->arena);
}

static psplit_i_ref push_value(psplit_i_backward *b, psplit_i_bvalue value) {
  if (b->failed || b->values.n >= PSPLIT_NONE - 1 || !psplit_i_vec_push(&b->values, value)) {
    b->failed = true;
    return PSPLIT_NONE;
  }
  return (psplit_i_ref)(b->values.n - 1);
}

const char *psplit_i_backward_text(psplit_i_backward *b, const psplit_i_text *text) {
  if (text->failed) b->failed = true;
  return text->failed ? "" : text->bytes;
}

const char *psplit_i_backward_name(psplit_i_backward *b, const char *stem) {
  psplit_i_text text = {0};
  char *name = NULL;
  for (uint32_t k = 0; !b->failed && !name; k++) {
    text.n = 0;
    psplit_i_text_puts(&text, stem);
    if (k) psplit_i_text_addf(&text, "~%" PRIu32, k);
    if (text.failed) break;
    if (psplit_i_graph_find_value(b->forward, text.bytes) != PSPLIT_NONE ||
        psplit_i_intern_find(&b->names, text.bytes) != PSPLIT_NONE)
      continue;
    name = psplit_i_arena_strndup(&b->arena, text.bytes, text.n);
    if (!name || psplit_i_intern_add(&b->names, name) == PSPLIT_NONE) break;
  }
  psplit_i_text_fini(&text);
  if (!name) b->failed = true;
  return name ? name : "";
}

psplit_i_ref psplit_i_backward_forward(psplit_i_backward *b, uint32_t value) {
  if (b->failed) return PSPLIT_NONE;
  if (b->of_forward[value] == PSPLIT_NONE)
    b->of_forward[value] = push_value(b, (psplit_i_bvalue){.origin = PSPLIT_ORIGIN_FORWARD,
                                                           .index = value,
                                                           .name = b->forward->values[value].name});
  return b->of_forward[value];
}

psplit_i_ref psplit_i_backward_shape(psplit_i_backward *b, uint32_t value) {
  if (b->failed) return PSPLIT_NONE;
  if (b->of_shape[value] != PSPLIT_NONE) return b->of_shape[value];
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, "%s.shape", b->forward->values[value].name);
  const char *name = psplit_i_backward_name(b, psplit_i_backward_text(b, &text));
  psplit_i_text_fini(&text);
  b->of_shape[value] =
    push_value(b, (psplit_i_bvalue){.origin = PSPLIT_ORIGIN_SHAPE, .index = value, .name = name});
  return b->of_shape[value];
}

psplit_i_ref psplit_i_backward_received(psplit_i_backward *b, const char *name, int32_t elem) {
  const char *own = psplit_i_backward_name(b, name);
  return push_value(b,
                    (psplit_i_bvalue){.origin = PSPLIT_ORIGIN_RECEIVED, .elem = elem, .name = own});
}

/* The key of a constant: all of it, in hexadecimal, since interned strings end at a NUL. */
static char *constant_key(psplit_i_backward *b, const psplit_i_bconstant *c) {
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, "%d", c->elem);
  for (uint32_t i = 0; i < c->n_dims; i++) psplit_i_text_addf(&text, ",%" PRId64, c->dims[i]);
  psplit_i_text_puts(&text, ":");
  for (size_t i = 0; i < c->n_bytes; i++)
    psplit_i_text_addf(&text, "%02x", ((const uint8_t *)c->bytes)[i]);
  char *key = text.failed ? NULL : psplit_i_arena_strndup(&b->arena, text.bytes, text.n);
  psplit_i_text_fini(&text);
  return key;
}

psplit_i_ref psplit_i_backward_constant(psplit_i_backward *b, int32_t elem, uint32_t n_dims,
                                        const int64_t *dims, const void *bytes, size_t n_bytes) {
  if (b->failed) return PSPLIT_NONE;
  psplit_i_bconstant c = {elem, n_dims, dims, bytes, n_bytes, PSPLIT_NONE};
  char *key = constant_key(b, &c);
  const uint32_t id = key ? psplit_i_intern_add(&b->constant_keys, key) : PSPLIT_NONE;
  if (id == PSPLIT_NONE) {
    b->failed = true;
    return PSPLIT_NONE;
  }
  if (id < b->constants.n) return b->constants.items[id].value;
  int64_t *own_dims = psplit_i_arena_array(&b->arena, n_dims, sizeof *own_dims);
  void *own = psplit_i_arena_alloc(&b->arena, n_bytes);
  if (!own_dims || !own) {
    b->failed = true;
    return PSPLIT_NONE;
  }
  if (n_dims) memcpy(own_dims, dims, n_dims * sizeof *own_dims);
  if (n_bytes) memcpy(own, bytes, n_bytes);
  c.dims = own_dims;
  c.bytes = own;
  c.value = push_value(
    b,
    (psplit_i_bvalue){.origin = PSPLIT_ORIGIN_CONSTANT, .index = id, .elem = elem, .name = NULL});
  if (!psplit_i_vec_push(&b->constants, c)) b->failed = true;
  return b->failed ? PSPLIT_NONE : c.value;
}

psplit_i_ref psplit_i_backward_ints(psplit_i_backward *b, const int64_t *values, uint32_t n) {
  const int64_t dim = n;
  return psplit_i_backward_constant(b, PSPLIT_ELEM_INT64, 1, &dim, values, n * sizeof *values);
}

psplit_i_ref psplit_i_backward_int(psplit_i_backward *b, int64_t value) {
  return psplit_i_backward_constant(b, PSPLIT_ELEM_INT64, 0, NULL, &value, sizeof value);
}

/* IEEE half precision, rounded to nearest even. */
static uint16_t half_bits(double value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  const double a = fabs(value);
  if (isnan(value)) return 0x7e00;
  if (a >= 65520.0) return (uint16_t)(sign | 0x7c00);
  int exponent;
  (void)frexp(a, &exponent);
  if (a < 6.103515625e-05) return (uint16_t)(sign | (uint16_t)nearbyint(ldexp(a, 24)));
  const uint32_t mantissa = (uint32_t)nearbyint(ldexp(a, 11 - exponent)); /* 1024 .. 2048 */
  return (uint16_t)(sign | ((((uint32_t)exponent + 14) << 10) + (mantissa - 1024)));
}

static uint16_t bfloat16_bits(double value) {
  const float f = (float)value;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

size_t psplit_i_number_bytes(int32_t elem, double value, uint8_t out[8]) {
  const float f = (float)value;
  const uint16_t half = elem == PSPLIT_ELEM_FLOAT16 ? half_bits(value) : bfloat16_bits(value);
  switch (elem) {
    case PSPLIT_ELEM_DOUBLE: memcpy(out, &value, sizeof value); return sizeof value;
    case PSPLIT_ELEM_FLOAT16:
    case PSPLIT_ELEM_BFLOAT16: memcpy(out, &half, sizeof half); return sizeof half;
    default: memcpy(out, &f, sizeof f); return sizeof f;
  }
}

psplit_i_ref psplit_i_backward_number(psplit_i_backward *b, int32_t elem, double value) {
  uint8_t bytes[8];
  const size_t n = psplit_i_number_bytes(elem, value, bytes);
  return psplit_i_backward_constant(b, psplit_i_is_float(elem) ? elem : PSPLIT_ELEM_FLOAT, 0, NULL,
                                    bytes, n);
}

/* A NodeProto's attribute: `payload` holds the fields behind name and type. */
static void add_attribute(psplit_i_backward *b, const char *name, int type,
                          psplit_i_text *payload) {
  psplit_i_text attribute = {0};
  psplit_i_wire_bytes(&attribute, PSPLIT_I_ATTRIBUTE_NAME, name, strlen(name));
  psplit_i_text_add(&attribute, payload->bytes, payload->n);
  psplit_i_wire_tag(&attribute, PSPLIT_I_ATTRIBUTE_TYPE, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(&attribute, (uint64_t)type);
  psplit_i_wire_bytes(&b->attributes, PSPLIT_I_NODE_ATTRIBUTE, attribute.bytes, attribute.n);
  if (payload->failed || attribute.failed || b->attributes.failed) b->failed = true;
  psplit_i_text_fini(&attribute);
  psplit_i_text_fini(payload);
}

void psplit_i_backward_attr_int(psplit_i_backward *b, const char *name, int64_t value) {
  psplit_i_text payload = {0};
  psplit_i_wire_tag(&payload, PSPLIT_I_ATTRIBUTE_I, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(&payload, (uint64_t)value);
  add_attribute(b, name, TYPE_INT, &payload);
}

void psplit_i_backward_attr_float(psplit_i_backward *b, const char *name, float value) {
  psplit_i_text payload = {0};
  psplit_i_wire_tag(&payload, PSPLIT_I_ATTRIBUTE_F, PSPLIT_I_WIRE_FIXED32);
  psplit_i_text_add(&payload, &value, sizeof value);
  add_attribute(b, name, TYPE_FLOAT, &payload);
}

void psplit_i_backward_attr_ints(psplit_i_backward *b, const char *name, const int64_t *values,
                                 size_t n) {
  psplit_i_text payload = {0};
  for (size_t i = 0; i < n; i++) {
    psplit_i_wire_tag(&payload, PSPLIT_I_ATTRIBUTE_INTS, PSPLIT_I_WIRE_VARINT);
    psplit_i_wire_varint(&payload, (uint64_t)values[i]);
  }
  add_attribute(b, name, TYPE_INTS, &payload);
}

void psplit_i_backward_attr_text(psplit_i_backward *b, const char *name, const char *value) {
  psplit_i_text payload = {0};
  psplit_i_wire_bytes(&payload, PSPLIT_I_ATTRIBUTE_S, value, strlen(value));
  add_attribute(b, name, TYPE_STRING, &payload);
}

void psplit_i_backward_attr_fields(psplit_i_backward *b, const void *bytes, size_t n) {
  psplit_i_text_add(&b->attributes, bytes, n);
  if (b->attributes.failed) b->failed = true;
}

const char *psplit_i_backward_capture(psplit_i_backward *b, psplit_i_ref value) {
  if (b->failed || !psplit_i_vec_push(&b->captures, value)) {
    b->failed = true;
    return "";
  }
  psplit_i_text text = {0};
  const char *name = b->values.items[value].name;
  if (!name) {
    psplit_i_text_addf(&text, "g%" PRIu32, value);
    name = psplit_i_backward_name(b, psplit_i_backward_text(b, &text));
    b->values.items[value].name = name;
  }
  psplit_i_text_fini(&text);
  return name;
}

void psplit_i_backward_attr_graph(psplit_i_backward *b, const char *name, const void *bytes,
                                  size_t n) {
  psplit_i_text payload = {0};
  psplit_i_wire_bytes(&payload, PSPLIT_I_ATTRIBUTE_GRAPH, bytes, n);
  add_attribute(b, name, TYPE_GRAPH, &payload);
}

psplit_i_ref psplit_i_backward_node(psplit_i_backward *b, const char *op_type, uint32_t n_inputs,
                                    const psplit_i_ref *inputs, uint32_t n_outputs) {
  while (n_inputs && inputs[n_inputs - 1] == PSPLIT_NONE) n_inputs--;
  psplit_i_bnode node = {.op_type = op_type,
                         .first_input = (uint32_t)b->inputs.n,
                         .n_inputs = n_inputs,
                         .n_outputs = n_outputs,
                         .attribute_bytes = b->attributes.n,
                         .twin = b->twin};
  if (b->attributes.n)
    node.attributes = psplit_i_arena_strndup(&b->arena, b->attributes.bytes, b->attributes.n);
  if (b->failed || (b->attributes.n && !node.attributes) ||
      !psplit_i_vec_reserve(&b->inputs, n_inputs + b->captures.n) ||
      b->nodes.n >= PSPLIT_NONE - 1) {
    b->failed = true;
    return PSPLIT_NONE;
  }
  b->attributes.n = 0;
  for (uint32_t i = 0; i < n_inputs; i++) b->inputs.items[b->inputs.n++] = inputs[i];
  for (size_t i = 0; i < b->captures.n; i++) b->inputs.items[b->inputs.n++] = b->captures.items[i];
  node.n_captures = (uint32_t)b->captures.n;
  b->captures.n = 0;
  for (uint32_t o = 0; o < n_outputs; o++) {
    const psplit_i_ref value =
      push_value(b, (psplit_i_bvalue){.origin = PSPLIT_ORIGIN_NODE, .index = (uint32_t)b->nodes.n});
    if (o == 0) node.output = value;
  }
  if (!psplit_i_vec_push(&b->nodes, node)) b->failed = true;
  return b->failed ? PSPLIT_NONE : node.output;
}

void psplit_i_backward_sweep(psplit_i_backward *b, const psplit_i_ref *outputs, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (outputs[i] != PSPLIT_NONE) b->values.items[outputs[i]].alive = true;
  for (size_t i = b->nodes.n; i-- > 0;) {
    psplit_i_bnode *node = &b->nodes.items[i];
    for (uint32_t o = 0; o < node->n_outputs; o++)
      node->alive |= b->values.items[node->output + o].alive;
    /* Operators want all their outputs named. */
    for (uint32_t o = 0; node->alive && o < node->n_outputs; o++)
      b->values.items[node->output + o].alive = true;
    for (uint32_t k = 0; node->alive && k < node->n_inputs + node->n_captures; k++) {
      const psplit_i_ref input = b->inputs.items[node->first_input + k];
      if (input != PSPLIT_NONE) b->values.items[input].alive = true;
    }
  }
}
