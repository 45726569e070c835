/* Work of nodes and sizes of values, as numbers: shapes evaluated under given symbols.
 *
 * Formulas and their sources: docs/costs/shapes.md. */
#ifndef PSPLIT_SHAPES_WORK_H
#define PSPLIT_SHAPES_WORK_H

#include <psplit/work.h>

#include "shape.h"

typedef struct psplit_i_costs psplit_i_costs;

typedef struct psplit_i_cost_options {
  const psplit_i_binding *bindings; /* symbols to fix; names the model does not use are ignored */
  size_t n_bindings;
  int64_t assume_input; /* value of every other size of an input; -1: leave them unknown */
  int64_t assume_data;  /* value of sizes that only a run can tell; -1: leave them unknown */
} psplit_i_cost_options;

/* How a node runs as a kernel of a CPU, beside what its operator is defined to do. Saturates. */
typedef struct psplit_i_kernel {
  uint64_t issued;       /* arithmetic, with that of lanes whose results nobody wants */
  uint64_t steps;        /* what goes one by one, not by vectors; each takes about a cycle */
  uint64_t weight_bytes; /* of the bytes read, weights, where no cache holds all of the model's */
  bool inside;           /* the kernel of the node in front does it: arithmetic alone */
} psplit_i_kernel;

/* Whether the data decides how much work a node is: a number found (NonZero), a size read from a
 * tensor, a branch taken, or nothing known at all. Sizes of the inputs are the caller's to give. */
typedef enum psplit_i_data_dependence {
  PSPLIT_I_DATA_NONE,
  PSPLIT_I_DATA_LIGHT,
  PSPLIT_I_DATA_HEAVY /* what it decides is a convolution, a product, or an unknown operator */
} psplit_i_data_dependence;

/* Evaluates everything once; `shapes` outlives the result. NULL options: nothing fixed or assumed.
 * Errors: NOMEM. O(nodes + expressions). */
PSPLIT_MUST_USE psplit_code psplit_i_costs_create(const psplit_i_shapes *shapes,
                                                  const psplit_i_cost_options *options,
                                                  psplit_diag *diag, psplit_i_costs **out_costs);
void psplit_i_costs_destroy(psplit_i_costs *costs);

/* Work of a node of the graph. Of a control node: what it runs. `known` is true if nothing was
 * unknown; a number that rests on an assumption counts as known here, see n_assumed below. */
psplit_work psplit_i_costs_node(const psplit_i_costs *costs, uint32_t node);

/* And how it runs; nothing for control nodes. */
psplit_i_kernel psplit_i_costs_kernel(const psplit_i_costs *costs, uint32_t node);

/* What a control node runs, all trips of it: work of one class and data type each. */
typedef struct psplit_i_part {
  psplit_work work;
  psplit_i_kernel kernel;
  struct psplit_i_part *next;
} psplit_i_part;

/* The parts of a control node, in order of first appearance; NULL for other nodes. */
const psplit_i_part *psplit_i_costs_parts(const psplit_i_costs *costs, uint32_t node);

/* Whether the node's work rests on an assumed symbol. */
bool psplit_i_costs_node_assumed(const psplit_i_costs *costs, uint32_t node);

/* What the data decides of a node's work. */
psplit_i_data_dependence psplit_i_costs_node_data(const psplit_i_costs *costs, uint32_t node);

/* Whether only a run can tell the bytes of a value of the graph. */
bool psplit_i_costs_value_data(const psplit_i_costs *costs, uint32_t value);

/* Bytes of a value of the graph; false where a dimension or the element type is unknown, and for
 * values that are not tensors (*out_bytes untouched then). *out_assumed (may be NULL) tells
 * whether an assumption was used. */
bool psplit_i_costs_value_bytes(const psplit_i_costs *costs, uint32_t value, uint64_t *out_bytes,
                                bool *out_assumed);

/* Number of a dimension; false if unknown, or assumed. */
bool psplit_i_costs_dim(const psplit_i_costs *costs, psplit_dim dim, int64_t *out);

/* Nodes whose work is not known, whose work rests on an assumption, and whose work only a run can
 * tell. */
uint32_t psplit_i_costs_n_unknown(const psplit_i_costs *costs);
uint32_t psplit_i_costs_n_assumed(const psplit_i_costs *costs);
uint32_t psplit_i_costs_n_data(const psplit_i_costs *costs);

/* Named symbols that those nodes hang on, in order of first appearance in the model: the
 * names to pass as --dim. NULL past the last. */
const char *psplit_i_costs_missing(const psplit_i_costs *costs, uint32_t index);

/* Dimensions of inputs without a name that those nodes hang on, in order. False past the last. */
bool psplit_i_costs_missing_axis(const psplit_i_costs *costs, uint32_t index, uint32_t *out_value,
                                 int32_t *out_axis);

#endif
