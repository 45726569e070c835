/* What a rule of differentiation sees and calls.
 *
 * A rule is asked for one node of the forward graph that has a gradient at an output and an input
 * that needs one. It gives each input that is wanted its part of the gradient: a value of the
 * backward graph with the shape and type of that input. Rules of one family stand in one file;
 * rules.def and rules_contrib.def name them all. A rule that cannot go on says why by
 * psplit_i_refuse; after that, and after a failed allocation, every call is a no-op.
 *
 * Short names at the end of this header make rules read like the formulas they are. */
#ifndef PSPLIT_GRADIENT_RULE_H
#define PSPLIT_GRADIENT_RULE_H

#include "differentiate.h"

/* In rules.def: all inputs or outputs. */
#define PSPLIT_ALL UINT32_MAX

typedef struct psplit_i_at {
  psplit_i_pass *pass;
  psplit_i_backward *b;
  const psplit_i_node *node;
  uint32_t id;
  int32_t elem;                   /* of the gradients at hand, or what they are widened to */
  int32_t narrow;                 /* of the gradients at hand */
  uint64_t given;                 /* bit i: input i got a part, bit 63: one from 63 on */
  psplit_i_ref before_activation; /* of operators fused with one: the gradient there, or NONE */
  /* What is computed of the arguments of calls that are not yet made: `hold`, below. */
  uint32_t n_held;
  psplit_i_ref held[32];
} psplit_i_at;

typedef void (*psplit_i_gradient_fn)(psplit_i_at *at);

/* What is known of initializers that an operator reads: rules.def. Bits below are inputs. */
enum {
  PSPLIT_WEIGHTS_OPERAND = 1 << 28,
  PSPLIT_WEIGHTS_JOINED = 1 << 29,
  PSPLIT_WEIGHTS_HANDED_ON = 1 << 30,
  PSPLIT_WEIGHTS_ALL_HANDED_ON = 1 << 27,
  PSPLIT_WEIGHTS_PARAMETERS = (1 << 27) - 1
};

typedef struct psplit_i_gradient_rule {
  const char *domain, *op_type;
  uint16_t since, until; /* opsets, both inclusive; until 0: still valid */
  psplit_i_gradient_fn
    rule;           /* NULL: no gradient passes, the result is constant almost everywhere */
  uint32_t needs;   /* first inputs that may not be omitted; PSPLIT_ALL: all there are, and one */
  uint32_t inputs;  /* bit i: a gradient goes to input i; bit 31: and to all beyond it */
  uint32_t outputs; /* bit o: the rule takes a gradient at output o */
  uint32_t weights; /* PSPLIT_WEIGHTS_* */
} psplit_i_gradient_rule;

/* Rule of a node, or NULL. */
const psplit_i_gradient_rule *psplit_i_gradient_rule_of(const psplit_i_node *node);
/* All of them, by domains, in the order of their names. */
const psplit_i_gradient_rule *psplit_i_gradient_rules(uint32_t *out_n);

/* Says that the node cannot be differentiated; the message names it, its operator and a weight. */
void psplit_i_refuse(psplit_i_at *at, const char *format, ...) PSPLIT_PRINTF(2, 3);
/* The same of an unknown rank, called `what`; advises to inline the If that leaves it open. */
void psplit_i_refuse_rank(psplit_i_at *at, const char *what);

/* Types of the node's inputs and outputs; an unknown type for one that is omitted. */
const psplit_i_vtype *psplit_i_type_in(const psplit_i_at *at, uint32_t input);
const psplit_i_vtype *psplit_i_type_out(const psplit_i_at *at, uint32_t output);
bool psplit_i_given(const psplit_i_at *at, uint32_t input);

/* Rank of an input; refuses and returns -1 where it is not known. */
int32_t psplit_i_need_rank(psplit_i_at *at, uint32_t input);
/* Dimension as a number. */
bool psplit_i_size(const psplit_i_at *at, const psplit_i_vtype *type, int32_t axis, int64_t *out);
/* All dimensions, and their product where out_count is not NULL. */
bool psplit_i_sizes(const psplit_i_at *at, const psplit_i_vtype *type, int64_t *out,
                    int64_t *out_count);

/* Contents of an integer input where they are known. */
bool psplit_i_known_ints(const psplit_i_at *at, uint32_t input, int64_t *out, uint32_t max,
                         uint32_t *out_n);
/* A floating-point scalar (or single element) that no training changes. */
bool psplit_i_known_number(const psplit_i_at *at, uint32_t input, double *out);
int64_t psplit_i_int_or(const psplit_i_at *at, const char *name, int64_t fallback);
float psplit_i_float_or(const psplit_i_at *at, const char *name, float fallback);
bool psplit_i_text_equals(const psplit_i_at *at, const char *name, const char *text);
/* All attributes of the node, for the next node. */
void psplit_i_copy_attributes(psplit_i_at *at);
/* Whether a list of strings is texts[n] over and over, in any case of letters; true where there is
 * no such attribute. */
bool psplit_i_texts_repeat(const psplit_i_at *at, const char *name, const char *const *texts,
                           size_t n);
/* An axis counted from the front; refuses one that is out of range. */
int32_t psplit_i_axis_of(psplit_i_at *at, int64_t axis, int32_t rank);
/* Axes of a node that takes them as input `input` or, in older opsets, as attribute "axes": sorted.
 * *out_n is 0 where none are given. False, refused, where they are not known. */
bool psplit_i_axes_of(psplit_i_at *at, uint32_t input, int32_t rank, int64_t *out, uint32_t *out_n);

/* The node's inputs and outputs as the forward pass has them. */
psplit_i_ref psplit_i_in_value(psplit_i_at *at, uint32_t input);
psplit_i_ref psplit_i_out_value(psplit_i_at *at, uint32_t output);
/* Gradient at an output, at output 0 before the activation where one has been gone through;
 * PSPLIT_NONE where none arrives. */
psplit_i_ref psplit_i_gradient_at(psplit_i_at *at, uint32_t output);
/* Whether the input's gradient is needed, and giving a part of it. */
bool psplit_i_wanted(const psplit_i_at *at, uint32_t input);
void psplit_i_give(psplit_i_at *at, uint32_t input, psplit_i_ref gradient);
static inline uint64_t psplit_i_given_bit(uint32_t input) {
  return UINT64_C(1) << (input < 63 ? input : 63);
}
/* The result does not depend on the input: said, as a part that a rule leaves out is refused. */
void psplit_i_give_nothing(psplit_i_at *at, uint32_t input);

/* Goes back through the activation that is fused into the node, whose attributes are
 * "activation", and `parameters`, a list, or activation_alpha, _beta and _gamma; false, refused,
 * where it is not known. What it was given is told by what came out. */
bool psplit_i_through_activation(psplit_i_at *at, const char *parameters);

/* Shapes (shapes.c). The int64 shape of an input or output: a constant where all is known; else
 * from the shapes of gradients that are at hand, else stashed. */
psplit_i_ref psplit_i_shape_in(psplit_i_at *at, uint32_t input);
psplit_i_ref psplit_i_shape_out(psplit_i_at *at, uint32_t output);
/* Reshape to the shape of an input. */
psplit_i_ref psplit_i_reshape_like(psplit_i_at *at, psplit_i_ref x, uint32_t input);
/* `x`, of the shape of `from`, summed over the axes along which input `input` was broadcast. */
psplit_i_ref psplit_i_sum_like(psplit_i_at *at, psplit_i_ref x, const psplit_i_vtype *from,
                               uint32_t input);
/* Number of elements of an input, or of these axes of the first, as a scalar of at->elem: for rules
 * that have widened, as half precision ends at 65,504. */
psplit_i_ref psplit_i_count_in(psplit_i_at *at, uint32_t input);
psplit_i_ref psplit_i_count_of_axes(psplit_i_at *at, const int64_t *axes, uint32_t n);
/* Element `axis` of a shape, as int64[1]. */
psplit_i_ref psplit_i_shape_element(psplit_i_at *at, psplit_i_ref shape, int64_t axis);
/* Zeros of the shape of an input or output. */
psplit_i_ref psplit_i_zeros(psplit_i_at *at, psplit_i_ref shape);
/* Zeros of a shape, with `what`, of the gradients' type, added where `indices` say: by
 * ScatterElements along `axis`, or by ScatterND where it is PSPLIT_BY_INDEX. Half precision is
 * summed in float32, as ONNX Runtime's CPU sums no other. */
enum { PSPLIT_BY_INDEX = INT32_MIN };
psplit_i_ref psplit_i_scattered(psplit_i_at *at, psplit_i_ref shape, psplit_i_ref indices,
                                psplit_i_ref what, int64_t axis);

/* ---- short names ---- */

typedef psplit_i_ref ref;

static inline ref op1(psplit_i_at *at, const char *op, ref a) {
  return psplit_i_backward_node(at->b, op, 1, &a, 1);
}
/* C leaves the order of arguments open, and what they make is named in the order in which it is
 * made. So names of several arguments that may make something are macros, which hold one after the
 * other: the same bytes from every compiler (tests/style/argument_order.py). */
static inline void hold(psplit_i_at *at, ref a) { at->held[at->n_held++] = a; }
static inline ref held_node(psplit_i_at *at, const char *op, uint32_t n) {
  at->n_held -= n;
  return psplit_i_backward_node(at->b, op, n, at->held + at->n_held, 1);
}
#define op2(at, op, a, b) (hold(at, a), hold(at, b), held_node(at, op, 2))
#define op3(at, op, a, b, c) (hold(at, a), hold(at, b), hold(at, c), held_node(at, op, 3))
#define add(at, a, b) op2(at, "Add", a, b)
/* a + b, either of which may be PSPLIT_NONE: nothing. */
static inline ref sum_given(psplit_i_at *at, ref a, ref b) {
  if (a == PSPLIT_NONE) return b;
  return b == PSPLIT_NONE ? a : add(at, a, b);
}
static inline ref number(psplit_i_at *at, double value) {
  return psplit_i_backward_number(at->b, at->elem, value);
}
static inline ref ints(psplit_i_at *at, const int64_t *values, uint32_t n) {
  return psplit_i_backward_ints(at->b, values, n);
}
static inline ref int1(psplit_i_at *at, int64_t value) { return ints(at, &value, 1); }
static inline void with_int(psplit_i_at *at, const char *name, int64_t value) {
  psplit_i_backward_attr_int(at->b, name, value);
}
static inline void with_ints(psplit_i_at *at, const char *name, const int64_t *values, size_t n) {
  psplit_i_backward_attr_ints(at->b, name, values, n);
}
static inline void with_float(psplit_i_at *at, const char *name, float value) {
  psplit_i_backward_attr_float(at->b, name, value);
}
static inline void with_text(psplit_i_at *at, const char *name, const char *value) {
  psplit_i_backward_attr_text(at->b, name, value);
}

#define sub(at, a, b) op2(at, "Sub", a, b)
#define mul(at, a, b) op2(at, "Mul", a, b)
static inline ref times(psplit_i_at *at, ref a, double b) { return mul(at, a, number(at, b)); }
#define quotient(at, a, b) op2(at, "Div", a, b)
static inline ref neg(psplit_i_at *at, ref a) { return op1(at, "Neg", a); }
#define product(at, a, b) op2(at, "MatMul", a, b)
#define choose(at, condition, a, b) op3(at, "Where", condition, a, b)
static inline ref cast(psplit_i_at *at, ref a, int32_t elem) {
  with_int(at, "to", elem);
  return op1(at, "Cast", a);
}
/* A condition as 1 and 0. */
static inline ref indicator(psplit_i_at *at, ref condition) {
  return cast(at, condition, at->elem);
}
static inline ref transposed(psplit_i_at *at, ref a, const int64_t *perm, size_t n) {
  with_ints(at, "perm", perm, n);
  return op1(at, "Transpose", a);
}
#define reshaped(at, a, shape) op2(at, "Reshape", a, shape)
#define expanded(at, a, shape) op2(at, "Expand", a, shape)
/* Opset 18: axes as an input; n 0 means all. */
static inline ref reduced(psplit_i_at *at, const char *op, ref a, const int64_t *axes, uint32_t n,
                          bool keep) {
  with_int(at, "keepdims", keep);
  return n ? op2(at, op, a, ints(at, axes, n)) : op1(at, op, a);
}
static inline ref sum_over(psplit_i_at *at, ref a, const int64_t *axes, uint32_t n, bool keep) {
  return reduced(at, "ReduceSum", a, axes, n, keep);
}
static inline ref unsqueezed(psplit_i_at *at, ref a, const int64_t *axes, uint32_t n) {
  return op2(at, "Unsqueeze", a, ints(at, axes, n));
}
static inline ref squeezed(psplit_i_at *at, ref a, const int64_t *axes, uint32_t n) {
  return op2(at, "Squeeze", a, ints(at, axes, n));
}
static inline ref concat(psplit_i_at *at, const ref *parts, uint32_t n, int64_t axis) {
  if (n == 1) return parts[0];
  with_int(at, "axis", axis);
  return psplit_i_backward_node(at->b, "Concat", n, parts, 1);
}
#define gathered(at, a, indices, axis) \
  (hold(at, a), hold(at, indices), with_int(at, "axis", axis), held_node(at, "Gather", 2))
static inline ref in(psplit_i_at *at, uint32_t i) { return psplit_i_in_value(at, i); }
static inline ref out(psplit_i_at *at, uint32_t o) { return psplit_i_out_value(at, o); }
/* Half precision holds neither large counts nor long sums. A rule that has called
 * psplit_i_widen computes in float32 what comes as half precision; wide_in, wide_grad and
 * psplit_i_give_narrowed cast. */
void psplit_i_widen(psplit_i_at *at);
psplit_i_ref psplit_i_wide(psplit_i_at *at, psplit_i_ref a, int32_t elem);
static inline ref wide_in(psplit_i_at *at, uint32_t i) {
  return psplit_i_wide(at, in(at, i), psplit_i_type_in(at, i)->elem);
}
static inline ref wide_grad(psplit_i_at *at) {
  return psplit_i_wide(at, psplit_i_gradient_at(at, 0), at->narrow);
}
void psplit_i_give_narrowed(psplit_i_at *at, uint32_t input, psplit_i_ref gradient);
static inline ref grad(psplit_i_at *at) { return psplit_i_gradient_at(at, 0); }
static inline bool wanted(const psplit_i_at *at, uint32_t i) { return psplit_i_wanted(at, i); }
static inline void give(psplit_i_at *at, uint32_t i, ref g) { psplit_i_give(at, i, g); }

#define PSPLIT_GRADIENT(op, since, until, fn, needs, inputs, outputs, weights) \
  void psplit_i_gradient_##fn(psplit_i_at *at);
#define PSPLIT_NO_GRADIENT(op)
#include "rules.def"
#include "rules_contrib.def"
#undef PSPLIT_GRADIENT
#undef PSPLIT_NO_GRADIENT

#endif
