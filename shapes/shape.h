/* Shapes and types of every value of a graph, inferred; symbolic where they are symbolic.
 *
 * One psplit_i_shapes holds the main graph, the bodies of If, Loop and Scan, and the model-local
 * functions as they are called. What a rule cannot tell stays unknown: a dimension becomes an
 * anonymous symbol, a rank -1, an element type 0. Declared types (inputs, outputs, value_info)
 * complete what inference leaves open; where a declaration contradicts it, inference wins and the
 * value is marked. Integer tensors of up to PSPLIT_MAX_ELEMENTS elements carry their contents. */
#ifndef PSPLIT_SHAPES_SHAPE_H
#define PSPLIT_SHAPES_SHAPE_H

#include "dim.h"
#include "graph.h"

enum { PSPLIT_MAX_ELEMENTS = 4096, PSPLIT_MAX_RANK = 64 };

typedef struct psplit_i_shapes psplit_i_shapes;

/* A symbol's value, from --dim NAME=VALUE. */
typedef struct psplit_i_binding {
  const char *name;
  int64_t value; /* >= 0 */
} psplit_i_binding;

/* Sizes that a value of the graph had in a run. */
typedef struct psplit_i_seen {
  const char *value;
  int32_t rank;        /* 0..PSPLIT_MAX_RANK */
  const int64_t *dims; /* [rank], each >= 0 */
} psplit_i_seen;

/* What is known besides the model. */
typedef struct psplit_i_known_sizes {
  const psplit_i_binding *bindings;
  size_t n_bindings, n_told; /* the first n_told are the caller's: one that is unmet is warned of */
  const psplit_i_seen
    *seen; /* [n_seen] taken where inference leaves a size open and can be right */
  size_t n_seen;
  /* Contents of initializers that are inputs as well hold: defaults, which a caller may replace.
   * Not for emission. */
  bool defaults_hold;
  const volatile int *cancel; /* ends inference: CANCELLED; psplit/base.h */
} psplit_i_known_sizes;

typedef struct psplit_i_vtype {
  uint8_t kind;           /* psplit_i_value_kind */
  uint8_t inner;          /* kind of the element of a sequence or optional; UNKNOWN otherwise */
  bool declared_wrong;    /* the file declares another kind, rank or dimension */
  bool is_weight;         /* an initializer, or the output of a Constant */
  int32_t elem;           /* TensorProto.DataType of the tensor (or innermost tensor); 0 unknown */
  int32_t rank;           /* of that tensor; -1 unknown */
  uint32_t n_elements;    /* number of `elements` */
  const psplit_dim *dims; /* [rank] */
  const psplit_dim *elements; /* contents of a small integer tensor, row-major; NULL if not known;
                               * of a sequence whose members are known their sizes, each [rank] */
} psplit_i_vtype;

/* Infers over a graph (the main graph of a model, usually). `bindings` replace symbols from the
 * start, which tells more than evaluating afterwards (a branch or a trip count may hang on one);
 * give none where the result is for emission. `logger` hears of each operator without a rule once.
 * Errors: NOMEM; INVALID for a negative binding. Linear in nodes, functions counted by distinct
 * uses, up to a limit past which calls stay unknown (`logger` is told). */
PSPLIT_MUST_USE psplit_code psplit_i_shapes_create(const psplit_i_graph *graph,
                                                   const psplit_i_binding *bindings,
                                                   size_t n_bindings, const psplit_logger *logger,
                                                   psplit_diag *diag, psplit_i_shapes **out_shapes);
/* The same for the sizes of one run. A symbol of a size that was seen has that number in costs too.
 */
PSPLIT_MUST_USE psplit_code psplit_i_shapes_create_seen(const psplit_i_graph *graph,
                                                        const psplit_i_known_sizes *sizes,
                                                        const psplit_logger *logger,
                                                        psplit_diag *diag,
                                                        psplit_i_shapes **out_shapes);
void psplit_i_shapes_destroy(psplit_i_shapes *shapes);

/* The graph that they are of, and the table of their dimensions; both live as long as `shapes`. */
const psplit_i_graph *psplit_i_shapes_graph(const psplit_i_shapes *shapes);
const psplit_i_dims *psplit_i_shapes_dims(const psplit_i_shapes *shapes);

/* Why no runtime takes the graph, as a line without its file: a node that breaks a rule of its
 * operator, or sizes that cannot be, given the bindings. NULL: none was found. Valid as long as
 * `shapes`. */
const char *psplit_i_shapes_fault(const psplit_i_shapes *shapes);
const char *psplit_i_shapes_size_fault(const psplit_i_shapes *shapes);

/* Type of a value of the graph that `shapes` was made for. Valid as long as `shapes`. */
const psplit_i_vtype *psplit_i_shapes_type(const psplit_i_shapes *shapes, uint32_t value);

/* A dimension to write into a file: a number, a symbol, or (value -1, symbol NULL) nothing. */
typedef struct psplit_i_emit_dim {
  int64_t value;
  const char *symbol;
} psplit_i_emit_dim;

/* How a dimension is written into a file. The symbol lives as long as `shapes`. */
psplit_i_emit_dim psplit_i_shapes_emit_dim(const psplit_i_shapes *shapes, psplit_dim dim);

/* "float32[batch, 3, 224, 224]", "int64[...]" for an unknown rank, "?" for an unknown type. */
void psplit_i_shapes_print(const psplit_i_shapes *shapes, const psplit_i_vtype *type,
                           psplit_i_text *out);

/* Number of nodes that no rule covered, bodies and called functions included. */
uint32_t psplit_i_shapes_n_uncovered(const psplit_i_shapes *shapes);

#endif
