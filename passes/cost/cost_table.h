/* Tables of costs inside: rows that name nodes, and which nodes those are.
 *
 *   cost_table.c    telling formats apart; our own JSON
 *   cost_profile.c  a profile of ONNX Runtime: a row for each kernel
 *   cost_csv.c      ONNX Runtime's memory statistics, Olive's cost model
 *   cost_names.c    which node a kernel's name speaks of
 *   cost_kernels.c  what a kernel does besides the node its name speaks of
 *   cost_match.c    rows to nodes
 *   cost_sizes.c    which sizes a profiled run has seen
 *   cost_write.c    a profiled run as our own JSON
 *
 * Times of nodes from the rows, and of those that no row speaks of: passes/planner/cost_apply.c. */
#ifndef PSPLIT_PASSES_COST_TABLE_H
#define PSPLIT_PASSES_COST_TABLE_H

#include <psplit/cost_table.h>

#include "base.h"
#include "graph.h"
#include "shape.h"

typedef enum psplit_i_cost_format {
  PSPLIT_I_COSTS_OWN,
  PSPLIT_I_COSTS_PROFILE,
  PSPLIT_I_COSTS_MEMORY,
  PSPLIT_I_COSTS_OLIVE,
  PSPLIT_I_COSTS_NODES /* by id: psplit_cost_table_of_nodes */
} psplit_i_cost_format;

/* What some nodes cost together. Strings are the table's. */
typedef struct psplit_i_cost_row {
  const char *label;         /* a kernel, a module, or the row's first name */
  const char *op;            /* kernels: the operator that ran; else NULL */
  const char *const *nodes;  /* [n_nodes] names; NULL where the label is to be read */
  const char *const *values; /* [n_values] outputs of nodes */
  uint32_t n_nodes, n_values;
  double ns;     /* >= 0, finite; < 0: the row gives no time */
  bool has_work; /* a time by the roofline of these */
  uint64_t flops, bytes;
  uint64_t workspace_bytes; /* what the kernel takes while it runs, besides its outputs */
  bool tells_layout;        /* whether the kernel worked on blocks of channels is known: */
  bool blocked;
  /* Kernels: shapes of n_shapes results in the last run, one after the other, each a rank and its
   * dimensions. */
  int64_t *shapes;
  uint32_t n_shapes, shape_words;
} psplit_i_cost_row;

struct psplit_cost_table {
  psplit_i_arena arena;
  const char *name; /* of its file, for messages */
  psplit_i_cost_format format;
  bool complete;      /* what no row speaks of takes no time */
  bool measured;      /* else: given */
  double spread_frac; /* < 0: not said */
  bool unblocked;     /* measured at a level at which ONNX Runtime has no blocked layouts */
  PSPLIT_VEC(psplit_dim_value) dims;  /* sizes that it was measured with; none where not said */
  PSPLIT_VEC(psplit_i_seen) values;   /* shapes that values had in that run */
  PSPLIT_VEC(psplit_i_cost_row) rows; /* kernels: in the order they ran */
};

/* NULL when out of memory. */
psplit_cost_table *psplit_i_cost_table_new(psplit_i_cost_format format);
/* Adds a row with everything unset; NULL when out of memory. Valid until the next. */
psplit_i_cost_row *psplit_i_cost_table_add(psplit_cost_table *table);

/* The array of events of a profile; appends to `table`. Failures: in the reader. */
void psplit_i_cost_profile_read(const psplit_i_json_item *events, psplit_cost_table *table);
/* ONNX Runtime writes names of nodes as they are: one with a quote or a line break in it makes the
 * profile no JSON. *out_text gets it with these names escaped; `failed` when out of memory.
 * O(n). */
void psplit_i_cost_profile_mend(const char *text, size_t n, psplit_i_text *out_text);
/* Whether the first line of `text` is the head of a CSV that is known; which is in *out_format. */
bool psplit_i_cost_csv_known(const char *text, size_t n, psplit_i_cost_format *out_format);
/* The rows of a CSV that is known; appends to `table`. Errors: INVALID (a line), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cost_csv_read(const char *text, size_t n,
                                                   psplit_cost_table *table, psplit_diag *diag);

/* The nodes of each row: those of row same_as[r]. */
typedef struct psplit_i_cost_map {
  uint32_t *same_as;     /* [rows] the row that holds the nodes: mostly itself */
  uint32_t *off;         /* [rows + 1] */
  uint32_t *node;        /* ids; a node may be in several rows */
  uint32_t n_matched;    /* rows that speak of nodes */
  uint32_t n_unmatched;  /* rows that say something, of no node of the model */
  const char *unmatched; /* the label of the first of these, or NULL */
} psplit_i_cost_map;

/* `optimized`: the model that ran, for kernels of a profile, its nodes in the order of the rows;
 * NULL where only names tell. Arrays in `arena`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cost_match(const psplit_cost_table *table,
                                                const psplit_i_graph *graph,
                                                const psplit_i_graph *optimized,
                                                psplit_i_arena *arena, psplit_diag *diag,
                                                psplit_i_cost_map *out);

/* Names of a graph's nodes, for cost_names.c. */
typedef struct psplit_i_cost_names {
  const psplit_i_graph *graph;
  psplit_i_arena *arena;
  psplit_i_intern names;
  uint32_t *first;   /* [names] a node of the name */
  uint32_t *next;    /* [n_nodes] the next of the same name, or PSPLIT_NONE */
  uint32_t *counted; /* [n_counted] nodes but for Constant, as ONNX Runtime numbers them */
  uint32_t n_counted;
} psplit_i_cost_names;
/* Arrays live in `arena`; `graph` outlives *names, which fini frees also where this fails. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cost_names_init(psplit_i_cost_names *names,
                                                     const psplit_i_graph *graph,
                                                     psplit_i_arena *arena, psplit_diag *diag);
void psplit_i_cost_names_fini(psplit_i_cost_names *names);
/* First node of a name, or PSPLIT_NONE. */
uint32_t psplit_i_cost_names_node(const psplit_i_cost_names *names, const char *name);
/* How a kernel's name leads to a node. */
typedef struct psplit_i_kernel_name {
  uint32_t node; /* or PSPLIT_NONE */
  bool goes_on;  /* the kernel may do more behind it: a sum, an activation */
} psplit_i_kernel_name;
/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_kernel_name_read(const psplit_i_cost_names *names,
                                                      const char *label, const char *op,
                                                      psplit_diag *diag, psplit_i_kernel_name *out);

/* Sizes that a profiled run has seen, of those that the model leaves open under run->dims. */
typedef struct psplit_i_run_sizes {
  PSPLIT_VEC(psplit_dim_value) dims; /* run->dims, and the symbols that have one number only */
  PSPLIT_VEC(psplit_i_seen) values;  /* by value */
} psplit_i_run_sizes;
/* `optimized`: as for psplit_i_cost_match. Strings and shapes are the model's, the run's, the
 * table's and the arena's. Errors: NOMEM; *out is to be finished in any case. */
PSPLIT_MUST_USE psplit_code psplit_i_run_sizes_find(const psplit_cost_table *table,
                                                    const psplit_i_cost_names *names,
                                                    const psplit_i_graph *optimized,
                                                    const psplit_profiled_run *run,
                                                    psplit_i_arena *arena, psplit_diag *diag,
                                                    psplit_i_run_sizes *out);
void psplit_i_run_sizes_fini(psplit_i_run_sizes *sizes);

/* Nanoseconds, rounded; 0 for what is not positive, INT64_MAX for what is too large. */
int64_t psplit_i_whole_ns(double ns);

struct psplit_planner;
/* Puts the costs that the caller gave in the place of the roofline's: node_ns [classes x nodes],
 * and what they say of memory. Errors: USAGE (a table of other nodes), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cost_apply(struct psplit_planner *planner, psplit_diag *diag);

#endif
