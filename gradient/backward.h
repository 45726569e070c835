/* The backward graph under construction: values, nodes, constants. It knows nothing of rules.
 *
 * A value is the gradient loss.grad, a value of the forward graph (stashed, a weight, or a constant
 * carried over), the shape of one, a new constant, or what a node makes. Nodes stand in the order
 * in which they were made, which is topological. Every node has a twin, the node of the forward
 * graph that it was made for. After a failed allocation every call is a no-op and `failed` stays
 * true: check it once at the end. */
#ifndef PSPLIT_GRADIENT_BACKWARD_H
#define PSPLIT_GRADIENT_BACKWARD_H

#include "graph.h"

/* A value of the backward graph, or PSPLIT_NONE. */
typedef uint32_t psplit_i_ref;

/* TensorProto.DataType of what rules make. */
enum {
  PSPLIT_ELEM_FLOAT = 1,
  PSPLIT_ELEM_INT32 = 6,
  PSPLIT_ELEM_INT64 = 7,
  PSPLIT_ELEM_STRING = 8,
  PSPLIT_ELEM_BOOL = 9,
  PSPLIT_ELEM_FLOAT16 = 10,
  PSPLIT_ELEM_DOUBLE = 11,
  PSPLIT_ELEM_BFLOAT16 = 16
};
/* Whether an element type holds reals; whether it has 16 bits for one. */
bool psplit_i_is_float(int32_t elem);
bool psplit_i_is_half(int32_t elem);

typedef enum psplit_i_origin {
  PSPLIT_ORIGIN_NODE,
  PSPLIT_ORIGIN_CONSTANT,
  PSPLIT_ORIGIN_FORWARD, /* a value of the forward graph */
  PSPLIT_ORIGIN_SHAPE,   /* the int64 shape of a value of the forward graph */
  PSPLIT_ORIGIN_RECEIVED /* a gradient that comes from outside: loss.grad, W.grad.before */
} psplit_i_origin;

typedef struct psplit_i_bvalue {
  psplit_i_origin origin;
  uint32_t index; /* node, constant, or value of the forward graph (RECEIVED: one of its type) */
  int32_t elem;   /* of constants and received gradients; 0 elsewhere */
  bool alive;     /* some output needs it; set by psplit_i_backward_sweep */
  const char *name;
} psplit_i_bvalue;

typedef struct psplit_i_bnode {
  const char *op_type;            /* of the standard domain; lives as long as the program */
  uint32_t first_input, n_inputs; /* into `inputs`, PSPLIT_NONE for an omitted one */
  uint32_t n_captures;            /* values that its body reads by name, behind the inputs */
  psplit_i_ref output;            /* its outputs are output .. output + n_outputs - 1 */
  uint32_t n_outputs;
  const char *attributes; /* NodeProto fields, ready to be written */
  size_t attribute_bytes;
  uint32_t twin; /* node of the forward graph */
  bool alive;
} psplit_i_bnode;

typedef struct psplit_i_bconstant {
  int32_t elem;
  uint32_t n_dims;
  const int64_t *dims;
  const void *bytes; /* raw_data */
  size_t n_bytes;
  psplit_i_ref value;
} psplit_i_bconstant;

/* What a node of the forward graph gives to the gradient of a value. */
typedef struct psplit_i_contribution {
  uint32_t value, node;
  psplit_i_ref gradient;
} psplit_i_contribution;

typedef struct psplit_i_backward {
  psplit_i_arena arena;
  const psplit_i_graph *forward;
  PSPLIT_VEC(psplit_i_bvalue) values;
  PSPLIT_VEC(psplit_i_bnode) nodes;
  PSPLIT_VEC(psplit_i_ref) inputs;
  PSPLIT_VEC(psplit_i_bconstant) constants;
  psplit_i_intern constant_keys;     /* id -> constant */
  psplit_i_intern names;             /* of values that are not the forward graph's */
  psplit_i_ref *of_forward;          /* [forward->n_values] or PSPLIT_NONE */
  psplit_i_ref *of_shape;            /* likewise */
  psplit_i_text attributes;          /* of the node to come */
  PSPLIT_VEC(psplit_i_ref) captures; /* likewise */
  const bool *apart; /* [forward->n_values] what is given to these is not summed; NULL: to none */
  PSPLIT_VEC(psplit_i_contribution) contributions; /* to them, in their order */
  uint32_t twin;                                   /* of the nodes to come */
  uint32_t n_named;
  bool failed;
} psplit_i_backward;

PSPLIT_MUST_USE psplit_code psplit_i_backward_init(psplit_i_backward *b,
                                                   const psplit_i_graph *forward,
                                                   psplit_diag *diag);
void psplit_i_backward_fini(psplit_i_backward *b);

/* Values. */
psplit_i_ref psplit_i_backward_forward(psplit_i_backward *b, uint32_t value);
psplit_i_ref psplit_i_backward_shape(psplit_i_backward *b, uint32_t value);
psplit_i_ref psplit_i_backward_received(psplit_i_backward *b, const char *name, int32_t elem);
/* `n_bytes` raw bytes, copied; equal constants are one value. */
psplit_i_ref psplit_i_backward_constant(psplit_i_backward *b, int32_t elem, uint32_t n_dims,
                                        const int64_t *dims, const void *bytes, size_t n_bytes);
psplit_i_ref psplit_i_backward_ints(psplit_i_backward *b, const int64_t *values, uint32_t n);
psplit_i_ref psplit_i_backward_int(psplit_i_backward *b, int64_t value); /* a scalar */
/* A number as raw bytes of a floating-point type, rounded to nearest even; how many they are. */
size_t psplit_i_number_bytes(int32_t elem, double value, uint8_t out[8]);
/* A scalar of a floating-point type. */
psplit_i_ref psplit_i_backward_number(psplit_i_backward *b, int32_t elem, double value);

/* Attributes of the next node. */
void psplit_i_backward_attr_int(psplit_i_backward *b, const char *name, int64_t value);
void psplit_i_backward_attr_float(psplit_i_backward *b, const char *name, float value);
void psplit_i_backward_attr_ints(psplit_i_backward *b, const char *name, const int64_t *values,
                                 size_t n);
void psplit_i_backward_attr_text(psplit_i_backward *b, const char *name, const char *value);
/* Fields of a NodeProto that are attributes already. */
void psplit_i_backward_attr_fields(psplit_i_backward *b, const void *bytes, size_t n);
/* The name of a value, for the next node's body to read it by. */
const char *psplit_i_backward_capture(psplit_i_backward *b, psplit_i_ref value);
/* A graph, as the bytes of a GraphProto. */
void psplit_i_backward_attr_graph(psplit_i_backward *b, const char *name, const void *bytes,
                                  size_t n);

/* Appends a node; its first output is returned, the others follow. Trailing inputs that are
 * PSPLIT_NONE are left out. O(1) amortised. */
psplit_i_ref psplit_i_backward_node(psplit_i_backward *b, const char *op_type, uint32_t n_inputs,
                                    const psplit_i_ref *inputs, uint32_t n_outputs);

/* What a text says; "" where memory ran out for it, which is a failure of the pass then. */
const char *psplit_i_backward_text(psplit_i_backward *b, const psplit_i_text *text);

/* A name that no value of either graph has: `stem`, or that with a number behind it. */
const char *psplit_i_backward_name(psplit_i_backward *b, const char *stem);

/* Marks what the values of outputs[n] are made of as alive. O(nodes). */
void psplit_i_backward_sweep(psplit_i_backward *b, const psplit_i_ref *outputs, size_t n);

#endif
