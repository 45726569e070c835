/* Inside of shape inference: the table of rules, and what a rule may call.
 *
 * A rule looks at one node through a psplit_i_site and states the types of its outputs. It never
 * fails: what it cannot tell it leaves out, and an allocation that fails is noted in the
 * psplit_i_shapes. Rules of one family stand in one infer_<family>.c; rules.def names them all. */
#ifndef PSPLIT_SHAPES_INFER_H
#define PSPLIT_SHAPES_INFER_H

#include <psplit/work.h>

#include "onnx.pb-c.h"
#include "shape.h"

/* How floating-point operations are counted; docs/costs/shapes.md has the formulas. */
typedef enum psplit_i_flops {
  PSPLIT_FLOPS_NONE,
  /* None, but what is moved goes in pieces of what lies together: */
  PSPLIT_FLOPS_PART,     /* of the larger side, a part: Slice */
  PSPLIT_FLOPS_JOIN,     /* all of it, from or to several tensors */
  PSPLIT_FLOPS_PICK,     /* as indices along `axis` say */
  PSPLIT_FLOPS_SPREAD,   /* with others between them, or several times */
  PSPLIT_FLOPS_OUT,      /* 1 per output element */
  PSPLIT_FLOPS_OUT_FEW,  /* 4 per output element: clip-like and simple compositions */
  PSPLIT_FLOPS_OUT_MANY, /* 10 per output element: exp, tanh, erf and what is made of them */
  PSPLIT_FLOPS_INPUTS,   /* 1 per output element and input beyond the first */
  PSPLIT_FLOPS_IN,       /* 1 per element of input 0 */
  PSPLIT_FLOPS_IN_FEW,
  PSPLIT_FLOPS_NORM, /* 8 per element of input 0 */
  PSPLIT_FLOPS_SORT, /* n log2 n on the axis */
  PSPLIT_FLOPS_CONV,
  PSPLIT_FLOPS_CONV_TRANSPOSE,
  PSPLIT_FLOPS_DEFORM_CONV,
  PSPLIT_FLOPS_POOL,
  PSPLIT_FLOPS_MATMUL, /* the last two dims of inputs 0 and 1 */
  PSPLIT_FLOPS_GEMM,
  PSPLIT_FLOPS_QMATMUL, /* MatMul with operands at inputs 0 and 3 */
  PSPLIT_FLOPS_QGEMM,
  PSPLIT_FLOPS_QCONV, /* Conv with operands at inputs 0 and 3 */
  PSPLIT_FLOPS_NBITS, /* MatMulNBits: attributes K and N */
  PSPLIT_FLOPS_EINSUM,
  PSPLIT_FLOPS_RNN,
  PSPLIT_FLOPS_ATTENTION,        /* ai.onnx Attention, MultiHeadAttention, GroupQueryAttention */
  PSPLIT_FLOPS_ATTENTION_QKV,    /* com.microsoft Attention: with the input projection */
  PSPLIT_FLOPS_ATTENTION_PACKED, /* tokens of several sequences behind each other */
  PSPLIT_FLOPS_ATTENTION_LINEAR, /* a state that each token changes */
  PSPLIT_FLOPS_CAUSAL_CONV,
  PSPLIT_FLOPS_MOE,
  PSPLIT_FLOPS_NBITS_FUSED, /* several MatMulNBits of one input */
  PSPLIT_FLOPS_RESIZE,
  PSPLIT_FLOPS_DFT,
  PSPLIT_FLOPS_ROI,
  PSPLIT_FLOPS_TREES,  /* ai.onnx.ml: 2 for each node on the way from the roots to a leaf, */
  PSPLIT_FLOPS_SVM,    /* distances to all vectors, */
  PSPLIT_FLOPS_LINEAR, /* products by all coefficients */
  PSPLIT_FLOPS_CONTROL
} psplit_i_flops;

typedef struct psplit_i_site psplit_i_site;
typedef void (*psplit_rule_fn)(psplit_i_site *at);

typedef struct psplit_i_rule {
  const char *domain;
  const char *op_type;
  uint16_t since, until; /* opsets, both inclusive; until 0: still valid */
  psplit_rule_fn infer;  /* NULL: only flags are known */
  psplit_op_class op_class;
  psplit_i_flops flops;
} psplit_i_rule;

/* One inferred name scope: the main graph, a body, or a function as called once. */
typedef struct psplit_i_scope psplit_i_scope;

/* Scope hanging off a node. */
typedef struct psplit_i_child {
  uint32_t node;
  psplit_dim trips; /* times it runs */
  bool alternative; /* one of several branches, of which one runs */
  bool again;       /* another run of a body: its weights were counted with the first */
  psplit_i_scope *scope;
} psplit_i_child;

struct psplit_i_scope {
  const psplit_i_graph *graph;
  psplit_i_scope *parent;    /* bodies: the scope of the node that carries it */
  const psplit_i_node *call; /* functions: the node that calls ... */
  psplit_i_scope *caller;    /* ... and its scope */
  psplit_i_vtype *types;     /* [graph->n_values] */
  psplit_i_child *children;  /* in ascending node order once the scope is done */
  uint32_t n_children, capacity;
  uint32_t depth;
  uint32_t index; /* number among all scopes */
};

typedef struct psplit_i_memo psplit_i_memo;

/* The number that a symbol stood for in a run; or, `implied`, the only one that a node takes. */
typedef struct psplit_i_learned {
  uint32_t symbol;
  bool implied;
  int64_t value;
} psplit_i_learned;

/* A size of an input that has no name, and what it is in terms of sizes that have one. */
typedef struct psplit_i_equal {
  uint32_t symbol;
  psplit_dim size;
} psplit_i_equal;

struct psplit_i_shapes {
  const psplit_i_rule *rules; /* [n_rules] */
  uint32_t n_rules;
  const psplit_i_graph *graph;
  psplit_i_dims *dims;
  psplit_i_arena arena;
  psplit_i_scope *root;
  uint32_t n_scopes;
  const psplit_i_binding *bindings;
  size_t n_bindings;
  size_t n_told;
  bool *met;                  /* [n_bindings] a dimension has that name */
  const psplit_i_seen **seen; /* [graph->n_values] NULL: none; NULL where there are none */
  PSPLIT_VEC(psplit_i_learned) learned;
  PSPLIT_VEC(psplit_i_equal) equal;
  const psplit_logger *logger;
  const volatile int *cancel;
  bool defaults_hold;      /* psplit_i_known_sizes */
  const char *default_of;  /* such an initializer whose contents were looked at; or NULL */
  psplit_i_intern missing; /* "domain:op" of operators without a rule that were reported */
  psplit_i_memo **memo;    /* function calls seen, hashed */
  uint64_t budget_nodes;   /* nodes and values that may still be visited */
  uint64_t budget_elements;
  uint32_t n_uncovered;
  const char *fault, *size_fault; /* what no runtime takes; NULL: nothing was found */
  bool told_budget;
  bool failed;       /* out of memory, or what `code` says */
  psplit_code code;  /* OK; or why a constant cannot be read; or CANCELLED */
  psplit_diag *diag; /* while they are made */
};

struct psplit_i_site {
  psplit_i_shapes *s;
  psplit_i_dims *dims;
  psplit_i_scope *scope;
  const psplit_i_node *node;
  uint32_t id;
};

/* Infers a graph by a table that has the rows of rules.def; otherwise psplit_i_shapes_create. */
PSPLIT_MUST_USE psplit_code psplit_i_infer_by(const psplit_i_rule *rules, uint32_t n_rules,
                                              const psplit_i_graph *graph,
                                              const psplit_i_known_sizes *sizes,
                                              const psplit_logger *logger, psplit_diag *diag,
                                              psplit_i_shapes **out_shapes);

/* Puts what a run has seen in the place of the sizes that are open in a value's type. */
void psplit_i_type_see(psplit_i_shapes *s, psplit_i_vtype *type, uint32_t value);
/* Finds the values that `sizes` speaks of. */
void psplit_i_take_seen(psplit_i_shapes *s, const psplit_i_known_sizes *sizes);

/* n * size bytes, zeroed, with the lifetime of `s`; NULL, and s->failed, when out of memory. */
static inline void *psplit_i_shapes_alloc(psplit_i_shapes *s, size_t n, size_t size) {
  void *memory = psplit_i_arena_zeroed(&s->arena, n, size);
  if (!memory) s->failed = true;
  return memory;
}
/* Rule of a node at its opset, or NULL. O(1). */
const psplit_i_rule *psplit_i_rule_of(const psplit_i_shapes *s, const psplit_i_node *node);

/* Infers all nodes of a scope whose inputs and captures have their types. */
void psplit_i_scope_run(psplit_i_shapes *s, psplit_i_scope *scope);
/* New scope for a body of the site's node, captures filled in, inputs unknown; NULL at a limit. */
psplit_i_scope *psplit_i_scope_body(psplit_i_site *at, const psplit_i_graph *body);
/* Hangs a finished scope on the site's node, so that its work counts. */
void psplit_i_scope_attach(psplit_i_site *at, psplit_i_scope *scope, psplit_dim trips,
                           bool alternative);
/* The same of one more run of a body that hangs there. */
void psplit_i_scope_attach_again(psplit_i_site *at, psplit_i_scope *scope);
/* Completes `type` by the declared type of a value; marks a contradiction. */
void psplit_i_type_declare(psplit_i_shapes *s, psplit_i_vtype *type,
                           const Onnx__TypeProto *declared);
/* Types of a call of a model-local function. */
void psplit_i_infer_call(psplit_i_site *at);

/* What is known of either: the type of a value that is `a` on one path and `b` on another. */
psplit_i_vtype psplit_i_type_merge(psplit_i_site *at, const psplit_i_vtype *a,
                                   const psplit_i_vtype *b);

/* The type without contents, as no weight: of a value that holds something else each time. */
psplit_i_vtype psplit_i_type_alone(const psplit_i_vtype *type);
/* Element of a sequence or optional type; of another type that one. */
psplit_i_vtype psplit_i_type_inside(const psplit_i_vtype *type);

/* Inputs. */
bool psplit_i_has(const psplit_i_site *at, uint32_t input);
/* Type of an input; an unknown type for a missing one. */
const psplit_i_vtype *psplit_i_in(const psplit_i_site *at, uint32_t input);
/* in(...)->elem and ->rank. */
int32_t psplit_i_elem(const psplit_i_site *at, uint32_t input);
int32_t psplit_i_rank(const psplit_i_site *at, uint32_t input);
/* Dimension of an input counted from the front, or from the back when negative; a fresh size where
 * the input has no such dimension. */
psplit_dim psplit_i_dim_of(psplit_i_site *at, uint32_t input, int32_t axis);
/* A size that an attribute says, if that is above 0; else a fresh one. */
psplit_dim psplit_i_number_or_fresh(psplit_i_site *at, int64_t value);
/* The size that the one element of an input says, or a fresh one. */
psplit_dim psplit_i_element_or_fresh(psplit_i_site *at, uint32_t input);
/* Product of dimensions [from, to) of a type of known rank. */
psplit_dim psplit_i_volume(psplit_i_site *at, const psplit_i_vtype *type, int32_t from, int32_t to);
/* Product of the dimensions where all are numbers. */
bool psplit_i_count(const psplit_i_dims *dims, const psplit_i_vtype *type, int64_t *out);

/* Contents of a small integer (or float, as reals) tensor input; NULL where not known. Tiny integer
 * tensors of unknown contents get symbols. */
const psplit_dim *psplit_i_elements(psplit_i_site *at, uint32_t input, uint32_t *out_n);
/* The same without making symbols up. */
const psplit_dim *psplit_i_known_elements(psplit_i_site *at, uint32_t input, uint32_t *out_n);
/* Contents as numbers, at most `max`; false where one is not a number. */
bool psplit_i_ints(psplit_i_site *at, uint32_t input, int64_t *out, uint32_t max, uint32_t *out_n);
/* A scalar (or one-element) input. */
bool psplit_i_int_input(psplit_i_site *at, uint32_t input, int64_t *out);

/* Attributes, references to a function's attributes resolved. */
const Onnx__AttributeProto *psplit_i_attribute(const psplit_i_site *at, const char *name);
int64_t psplit_i_int(const psplit_i_site *at, const char *name, int64_t fallback);
float psplit_i_float(const psplit_i_site *at, const char *name, float fallback);
/* The element type that an attribute names; `fallback` where it names none. */
int32_t psplit_i_elem_named(const psplit_i_site *at, const char *name, int32_t fallback);
/* Borrowed; NULL and 0 where there is none. */
const int64_t *psplit_i_int_list(const psplit_i_site *at, const char *name, size_t *out_n);
/* Whether a string attribute has this text; `fallback` where there is none. */
bool psplit_i_text_is(const psplit_i_site *at, const char *name, const char *text, bool fallback);

/* Axis counted from the front; false if out of range. */
bool psplit_i_axis(int64_t axis, int32_t rank, int32_t *out);
/* Axes from input `input` (if >= 0 and present) or the attribute: sets in[a] for each named axis.
 * *out_given tells whether any were given. False if they are not known or out of range. */
bool psplit_i_axes(psplit_i_site *at, int input, const char *attribute, int32_t rank, bool *in,
                   bool *out_given);

/* Outputs. Dimensions are copied; a rank of -1 is unknown, and one above PSPLIT_MAX_RANK too. */
bool psplit_i_wants(const psplit_i_site *at, uint32_t output);
void psplit_i_out(psplit_i_site *at, uint32_t output, int32_t elem, int32_t rank,
                  const psplit_dim *dims);
void psplit_i_out_type(psplit_i_site *at, uint32_t output, const psplit_i_vtype *type);
/* Type of input `input` with element type `elem`, contents not kept. */
void psplit_i_out_like(psplit_i_site *at, uint32_t output, uint32_t input, int32_t elem);
/* Contents of an output whose dimensions are set; not copied, from psplit_i_new_elements. */
void psplit_i_out_elements(psplit_i_site *at, uint32_t output, const psplit_dim *elements,
                           uint32_t n);
/* Makes the inference fail as reading a constant did. */
void psplit_i_read_failed(psplit_i_shapes *s, psplit_code code);
/* Room for contents; NULL when there are too many. */
psplit_dim *psplit_i_new_elements(psplit_i_site *at, int64_t n);
/* A sequence of tensors. */
void psplit_i_out_sequence(psplit_i_site *at, uint32_t output, int32_t elem, int32_t rank,
                           const psplit_dim *dims);

/* Broadcast of the first n inputs: dims[PSPLIT_MAX_RANK] and the rank, or -1. */
int32_t psplit_i_broadcast(psplit_i_site *at, uint32_t n, psplit_dim *dims);
/* The same of the inputs that a list of n numbers names. */
int32_t psplit_i_broadcast_of(psplit_i_site *at, const uint32_t *inputs, uint32_t n,
                              psplit_dim *dims);

/* What no runtime takes; the first fault of a graph is kept (psplit_i_shapes_fault). Two sizes
 * that a node needs to be equal and that differ; where they may: */
void psplit_i_sizes_differ(psplit_i_site *at, psplit_dim a, psplit_dim b);
void psplit_i_must_agree(psplit_i_site *at, psplit_dim a, psplit_dim b);
/* Nothing where `dim` is not a symbol. */
void psplit_i_learn_size(psplit_i_shapes *s, psplit_dim dim, int64_t value, bool implied);
/* Nothing where `dim` is not a lone anonymous symbol, or where `size` has one. */
void psplit_i_learn_equal(psplit_i_shapes *s, psplit_dim dim, psplit_dim size);
/* Operator set, inputs and their types by inputs.def. */
void psplit_i_fault_node(psplit_i_site *at);
/* The inferred element type of an output against the declared one, before the latter is taken. */
void psplit_i_fault_declared(psplit_i_site *at, uint32_t output);
/* Outputs of the main graph. */
void psplit_i_fault_outputs(psplit_i_shapes *s);
/* Row of inputs.def; NULL without one. O(log rows), if they are sorted. */
const char *psplit_i_inputs_of(const char *domain, const char *op_type, int64_t opset);
bool psplit_i_inputs_sorted(void);

/* Symbol of a name, or its binding. */
psplit_dim psplit_i_symbol(psplit_i_shapes *s, const char *name);
/* `rank` fresh sizes. */
void psplit_i_fresh_dims(psplit_i_site *at, int32_t rank, psplit_dim *dims);

/* Whether a data type is an integer or bool that contents are kept for; a float that reals are. */
bool psplit_i_is_int_type(int32_t elem);
bool psplit_i_is_real_type(int32_t elem);

#define PSPLIT_RULE(domain, op, since, until, fn, op_class, ...) \
  void psplit_i_infer_##fn(psplit_i_site *at);
#define PSPLIT_NO_RULE(domain, op, flags)
#include "rules.def"
#undef PSPLIT_RULE
#undef PSPLIT_NO_RULE

#endif
