/* The graph index: an ONNX graph as dense arrays.
 *
 * One psplit_i_graph is one name scope: the model's main graph, a body of If/Loop/Scan (a child of
 * the graph whose node carries it), or the body of a model-local function. Ids are local to their
 * graph. A node id is the node's position in the file; a value id numbers the scope's names in
 * order of first appearance. A name that a body uses but does not define becomes a value of the
 * body with `outer` set to the value of the enclosing graph, and a capture of every node on the
 * way: a capture is an input of the node like any other.
 *
 * The index is read-only once built and is safe to share between threads. */
#ifndef PSPLIT_ONNX_GRAPH_H
#define PSPLIT_ONNX_GRAPH_H

#include <psplit/model.h>

#include "base.h"

/* Generated protobuf-c types; complete only inside onnx/ and emit/ (onnx.pb-c.h). */
struct ProtobufCBinaryData;
struct Onnx__GraphProto;
struct Onnx__FunctionProto;
struct Onnx__TensorProto;
struct Onnx__SparseTensorProto;
struct Onnx__TypeProto;
struct Onnx__AttributeProto;

typedef struct psplit_i_graph psplit_i_graph;

typedef struct psplit_i_value {
  const char *name;            /* never empty */
  uint32_t producer;           /* node that outputs it, or PSPLIT_NONE */
  uint32_t input;              /* its position among the graph's inputs, or PSPLIT_NONE */
  uint32_t initializer;        /* index of its dense initializer, or PSPLIT_NONE */
  uint32_t sparse_initializer; /* index of its sparse initializer, or PSPLIT_NONE */
  uint32_t outer;      /* bodies: the enclosing graph's value it stands for, or PSPLIT_NONE */
  uint32_t value_info; /* index of its value_info entry, or PSPLIT_NONE */
  bool is_output;      /* the graph lists it as an output */
  const struct Onnx__TypeProto *declared_type; /* input, output or value_info; NULL if none */
} psplit_i_value;

/* Whether it is a weight, or an input with a default. */
static inline bool psplit_i_has_initializer(const psplit_i_value *value) {
  return value->initializer != PSPLIT_NONE || value->sparse_initializer != PSPLIT_NONE;
}

typedef struct psplit_i_node {
  const char *name; /* "" if the file has none */
  const char *op_type;
  const char *domain;     /* "" for the standard operators ("ai.onnx" is folded into it) */
  const char *overload;   /* "" almost always */
  int64_t opset;          /* imported version of its domain; 0 if it is not imported */
  const uint32_t *inputs; /* value ids; PSPLIT_NONE for an omitted optional input */
  uint32_t n_inputs;
  uint32_t n_outputs;
  const uint32_t *outputs;  /* value ids; PSPLIT_NONE for an omitted optional output */
  const uint32_t *captures; /* values its bodies use, distinct, ascending; not in `inputs` */
  uint32_t n_captures;
  uint32_t n_bodies;
  psplit_i_graph *const *bodies; /* in the order of the attributes that hold them */
  uint32_t function;             /* index of the model-local function it calls, or PSPLIT_NONE */
  uint32_t n_attributes;
  struct Onnx__AttributeProto *const *attributes;
  uint64_t table_bytes; /* of large tables among them; 0 for Constant */
} psplit_i_node;

struct psplit_i_graph {
  const psplit_model *model;
  const psplit_i_graph *parent; /* enclosing graph of a body; NULL otherwise */
  uint32_t parent_node;
  const char *name;
  const struct Onnx__GraphProto *proto;       /* NULL for a function */
  const struct Onnx__FunctionProto *function; /* NULL unless a function */
  uint32_t n_values, n_nodes, n_inputs, n_outputs, n_initializers, n_sparse_initializers;
  psplit_i_value *values;
  psplit_i_node *nodes;
  uint32_t *topo;         /* [n_nodes] node ids; the file's order if that is topological */
  uint32_t *inputs;       /* [n_inputs] value ids in the file's order, some with initializers */
  uint32_t *outputs;      /* [n_outputs] value ids */
  uint32_t *initializers; /* [n_initializers] value ids */
  uint32_t *consumer_off; /* [n_values + 1] */
  uint32_t *consumers;    /* nodes that read the value (captures included), distinct, ascending */
  psplit_i_intern names;  /* name -> value id */
};

/* Runs the following statement for each value id that `node` (a pointer) reads, captures included;
 * repeated inputs are repeated, omitted ones are skipped. */
#define PSPLIT_FOR_EACH_READ(node, value) \
  PSPLIT_EACH_OF_TWO(value, (node)->inputs, (node)->n_inputs, (node)->captures, (node)->n_captures)

/* Main graph of an open model. */
const psplit_i_graph *psplit_i_model_graph(const psplit_model *model);

/* Model-local functions, in file order. */
uint32_t psplit_i_model_n_functions(const psplit_model *model);
const psplit_i_graph *psplit_i_model_function(const psplit_model *model, uint32_t index);
/* The imported version of a domain, "" for ONNX's own; 0: not imported. */
int64_t psplit_i_model_opset(const psplit_model *model, const char *domain);
/* The name of a model-local function that overrides the operator `op` of ONNX's own domain (NULL:
 * any operator): added nodes of that type would call it. NULL: none. */
const char *psplit_i_model_own_operator(const psplit_model *model, const char *op);

/* The key of a function: its names behind their lengths, so that no two functions share one. In
 * `text`, until the next call; NULL when out of memory. */
const char *psplit_i_function_key(psplit_i_text *text, const char *domain, const char *name,
                                  const char *overload);

/* ModelProto.ir_version. */
int64_t psplit_i_model_ir_version(const psplit_model *model);
/* Whether the model has external data. */
bool psplit_i_model_has_external_data(const psplit_model *model);

/* Path of the model file, as opened. */
const char *psplit_i_model_path(const psplit_model *model);

/* Display name of a node: its own, or "#12 (Conv)" for an unnamed one. `buffer` may hold it. */
const char *psplit_i_node_label(const psplit_i_graph *graph, uint32_t node, char *buffer,
                                size_t bytes);

/* Identifying name of a node: its own name, or else that of its first output, or else "". */
const char *psplit_i_node_known_as(const psplit_i_graph *graph, const psplit_i_node *node);

/* Whether a node or one of its outputs has this name. */
bool psplit_i_node_is_called(const psplit_i_graph *graph, const psplit_i_node *node,
                             const char *name);

/* Whether the node is the standard operator `op_type` (domain "" or "ai.onnx"). */
bool psplit_i_node_is(const psplit_i_node *node, const char *op_type);

/* The domain of Send and Recv, the functions of stage boundaries (docs/manifest.md). */
#define PSPLIT_I_BOUNDARY_DOMAIN "psplit"
/* Whether the node is one of them, by operator name. */
bool psplit_i_node_is_boundary(const psplit_i_node *node);

/* Value of a name in this scope (enclosing scopes not searched), or PSPLIT_NONE. */
uint32_t psplit_i_graph_find_value(const psplit_i_graph *graph, const char *name);

/* USAGE: the text, followed by suggestions: the value with the name nearest to `name` among those
 * for which `is` holds (NULL: all), and other such names. */
typedef bool (*psplit_i_value_filter)(const psplit_i_graph *graph, uint32_t value);
PSPLIT_MUST_USE psplit_code psplit_i_graph_fail_unknown(const psplit_i_graph *graph,
                                                        psplit_i_value_filter is, const char *name,
                                                        psplit_diag *diag, const char *format, ...)
  PSPLIT_PRINTF(5, 6);

/* Follows `outer` of a body's value to the graph that defines it; *io_graph becomes that graph. */
uint32_t psplit_i_value_resolve(const psplit_i_graph **io_graph, uint32_t value);

/* Attributes by name and type; false (and *out untouched) if the node has none, or has a reference
 * to a function's attribute. Pointers live as long as the model. */
bool psplit_i_attr_int(const psplit_i_node *node, const char *name, int64_t *out);
bool psplit_i_attr_float(const psplit_i_node *node, const char *name, float *out);
bool psplit_i_attr_string(const psplit_i_node *node, const char *name, const char **out,
                          size_t *out_n);
bool psplit_i_attr_ints(const psplit_i_node *node, const char *name, const int64_t **out,
                        size_t *out_n);
bool psplit_i_attr_floats(const psplit_i_node *node, const char *name, const float **out,
                          size_t *out_n);
bool psplit_i_attr_strings(const psplit_i_node *node, const char *name,
                           const struct ProtobufCBinaryData **out, size_t *out_n);
const struct Onnx__TensorProto *psplit_i_attr_tensor(const psplit_i_node *node, const char *name);
/* The body held by graph attribute `name` ("then_branch", "body"), or NULL. */
const psplit_i_graph *psplit_i_attr_body(const psplit_i_node *node, const char *name);
/* Whether the condition of an If of the main graph is a constant that cannot be overridden;
 * *out_value is its value then. Errors: NOMEM, IO. */
PSPLIT_MUST_USE psplit_code psplit_i_if_condition(const psplit_i_graph *graph, uint32_t node,
                                                  psplit_diag *diag, bool *out_known,
                                                  bool *out_value);
/* True if some attribute refers to an attribute of the enclosing function. */
bool psplit_i_node_has_attr_ref(const psplit_i_node *node);

/* Element types carry the numbers of TensorProto.DataType. Bits of one element; 0 for string,
 * undefined and unknown types. */
uint32_t psplit_i_dtype_bits(int32_t data_type);
/* "float32", "int64", "bfloat16", ... as in numpy; NULL for an unknown number. */
const char *psplit_i_dtype_name(int32_t data_type);

/* A constant tensor: an initializer or an attribute. */
typedef struct psplit_i_tensor {
  const struct Onnx__TensorProto *proto;
  int32_t data_type;
  uint32_t n_dims;
  const int64_t *dims; /* all >= 0; their product fits int64 */
  int64_t n_elements;
  uint64_t data_bytes; /* of the dense tensor: what a runtime holds; 0 for strings */
} psplit_i_tensor;

/* Dense initializer `index` of a graph. */
psplit_i_tensor psplit_i_graph_initializer(const psplit_i_graph *graph, uint32_t index);
psplit_i_tensor psplit_i_tensor_of(const struct Onnx__TensorProto *proto);

/* Bytes of constants inside a node: tables in its attributes (trees, vectors, vocabularies),
 * initializers, Constant nodes and tables of its bodies and of the function it calls (without
 * functions called from there). Saturates. */
uint64_t psplit_i_node_inner_bytes(const psplit_i_graph *graph, uint32_t node);

/* Bytes of tables in attributes, such as those of tree ensembles; small attributes do not count.
 * Saturates. */
uint64_t psplit_i_table_bytes(const psplit_i_node *node);

/* Elements as int64, for integer and bool tensors of at most `max_elements`; *out_n elements in
 * `arena`. *out is NULL for other types, larger tensors, and tensors without valid data. Errors: IO
 * (the data cannot be read), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_int64s(const psplit_model *model,
                                                   const psplit_i_tensor *tensor,
                                                   int64_t max_elements, psplit_i_arena *arena,
                                                   psplit_diag *diag, const int64_t **out,
                                                   size_t *out_n);
/* The same for floating-point tensors (float, double, float16, bfloat16), as double. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_doubles(const psplit_model *model,
                                                    const psplit_i_tensor *tensor,
                                                    int64_t max_elements, psplit_i_arena *arena,
                                                    psplit_diag *diag, const double **out,
                                                    size_t *out_n);

/* The parts of a declared type. */
typedef enum psplit_i_value_kind {
  PSPLIT_TYPE_UNKNOWN = 0,
  PSPLIT_TYPE_TENSOR,
  PSPLIT_TYPE_SPARSE_TENSOR,
  PSPLIT_TYPE_SEQUENCE,
  PSPLIT_TYPE_MAP,
  PSPLIT_TYPE_OPTIONAL,
  PSPLIT_TYPE_OPAQUE
} psplit_i_value_kind;

typedef struct psplit_i_declared_dim {
  int64_t value;          /* >= 0, or -1 where it is not a number */
  const char *param;      /* symbol, or NULL */
  const char *denotation; /* denotation ("DATA_BATCH"), or NULL */
} psplit_i_declared_dim;

/* Kind of value of a type. */
psplit_i_value_kind psplit_i_type_kind(const struct Onnx__TypeProto *type);
/* Element type of a (sparse) tensor type; 0 if none. */
int32_t psplit_i_type_elem(const struct Onnx__TypeProto *type);
/* Element of a sequence or optional type; NULL otherwise. */
const struct Onnx__TypeProto *psplit_i_type_inner(const struct Onnx__TypeProto *type);
/* Rank of a (sparse) tensor type; -1: no declared shape. */
int64_t psplit_i_type_rank(const struct Onnx__TypeProto *type);
/* Dimension `axis`, which is less than the rank. */
psplit_i_declared_dim psplit_i_type_dim(const struct Onnx__TypeProto *type, uint32_t axis);
/* Denotation of a type ("IMAGE"), or NULL. */
const char *psplit_i_type_denotation(const struct Onnx__TypeProto *type);

#endif
