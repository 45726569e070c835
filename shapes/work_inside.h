/* Inside of psplit_i_costs, shared by work.c (nodes, scopes), work_flops.c (formulas) and
 * work_kernel.c and work_pieces.c (what kernels do besides). */
#ifndef PSPLIT_SHAPES_WORK_INSIDE_H
#define PSPLIT_SHAPES_WORK_INSIDE_H

#include "infer.h"
#include "work.h"

typedef struct psplit_i_node_cost {
  psplit_work work;
  psplit_i_kernel kernel;
  psplit_i_part *parts; /* of control nodes and scopes */
  bool assumed;
  bool data;       /* only a run can tell the work */
  bool heavy;      /* there is heavy work in it */
  bool data_heavy; /* and only a run can tell how much */
} psplit_i_node_cost;

typedef struct psplit_i_input_axis {
  uint32_t value;
  int32_t axis;
} psplit_i_input_axis;

struct psplit_i_costs {
  const psplit_i_shapes *shapes;
  int64_t *value; /* [expressions] */
  bool *known;
  bool *assumed;          /* known, but only by an assumption */
  bool *data;             /* hangs on a symbol that is no size of an input */
  unsigned char *visited; /* expressions whose symbols are marked */
  bool *needed;           /* [symbols] an unknown or assumed number hangs on it */
  uint32_t *node_cost;    /* [graph->n_nodes] index into `distinct` */
  PSPLIT_VEC(psplit_i_node_cost) distinct;
  psplit_i_node_cost *scopes; /* [n_scopes], one run each */
  bool *scope_done;
  const char **missing;
  psplit_i_input_axis *missing_axes;
  uint32_t n_missing, n_missing_axes, n_unknown, n_assumed, n_data;
  bool failed; /* out of memory */
  psplit_i_arena arena;
};

/* What is being counted: flags gather over the numbers asked for. */
typedef struct psplit_i_tally {
  psplit_i_costs *costs;
  bool unknown, assumed;
  bool data;              /* a number hangs on the data */
  bool heavy, data_heavy; /* of what the node runs: see psplit_i_node_cost */
} psplit_i_tally;

/* A dimension; 0 with `unknown` set where it is not known. */
uint64_t psplit_i_tally_dim(psplit_i_tally *tally, psplit_dim dim);
/* Elements and bytes of a type. */
uint64_t psplit_i_tally_elements(psplit_i_tally *tally, const psplit_i_vtype *type);
uint64_t psplit_i_tally_bytes(psplit_i_tally *tally, const psplit_i_vtype *type);

/* Type of an output; an unknown type for an omitted one. */
const psplit_i_vtype *psplit_i_site_output(const psplit_i_site *at, uint32_t output);

/* Arithmetic of one run of a node. */
uint64_t psplit_i_count_flops(psplit_i_tally *tally, const psplit_i_site *at, psplit_i_flops how);

/* How it runs as a kernel, given its work. */
psplit_i_kernel psplit_i_kernel_of(psplit_i_tally *tally, const psplit_i_site *at,
                                   const psplit_i_rule *rule, const psplit_work *work);

/* Steps (psplit_i_kernel) for pieces that are too short for vectors. */
uint64_t psplit_i_count_pieces(psplit_i_costs *costs, const psplit_i_site *at,
                               const psplit_i_rule *rule, const psplit_work *work);

/* Whether runtimes make the node part of the kernel of the convolution in front: normalisation,
 * scale and bias by constants, then one sum, then one activation. */
bool psplit_i_is_inside_kernel(const psplit_i_site *at);

/* Zeroed; NULL when out of memory. */
static inline void *psplit_i_costs_take(psplit_i_costs *costs, size_t n, size_t size) {
  return psplit_i_arena_zeroed(&costs->arena, n, size);
}

/* Costs of all nodes of the graph, by numbers that are evaluated; false when out of memory. */
bool psplit_i_costs_count(psplit_i_costs *costs);

#endif
