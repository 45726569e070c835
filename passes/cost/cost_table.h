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

/* The cost of some nodes together. The table owns all strings. */
typedef struct psplit_i_cost_row {
  const char *label;         /* a kernel, a module, or the row's first name */
  const char *op;            /* kernels: the operator that ran; else NULL */
  const char *const *nodes;  /* [n_nodes] names; NULL: derived from the label */
  const char *const *values; /* [n_values] outputs of nodes */
  uint32_t n_nodes, n_values;
  double ns;     /* >= 0, finite; < 0: the row gives no time */
  bool has_work; /* its time is the roofline of these */
  uint64_t flops, bytes;
  uint64_t workspace_bytes; /* memory of the kernel while it runs, in addition to its outputs */
  bool tells_layout;        /* the profile shows whether the kernel worked on blocked channels: */
  bool blocked;
  /* Kernels: shapes of n_shapes results in the last run, each a rank followed by its dimensions. */
  int64_t *shapes;
  uint32_t n_shapes, shape_words;
} psplit_i_cost_row;

struct psplit_cost_table {
  psplit_i_arena arena;
  const char *name; /* name of its file, for messages */
  psplit_i_cost_format format;
  bool complete;      /* nodes without a row take no time */
  bool measured;      /* otherwise the costs are given, not measured */
  double spread_frac; /* < 0: unknown */
  bool unblocked;     /* measured at a level at which ONNX Runtime has no blocked layouts */
  PSPLIT_VEC(psplit_dim_value) dims;  /* sizes of the measurement; none if unknown */
  PSPLIT_VEC(psplit_i_seen) values;   /* shapes of values in the measured run */
  PSPLIT_VEC(psplit_i_cost_row) rows; /* kernels: in the order of execution */
};

/* NULL if out of memory. */
psplit_cost_table *psplit_i_cost_table_new(psplit_i_cost_format format);
/* Adds a row with unset fields, which is valid until the next one is added; NULL if out of
 * memory. */
psplit_i_cost_row *psplit_i_cost_table_add(psplit_cost_table *table);

/* Reads the array of events of a profile, and appends rows to `table`. Failures are those of the
 * reader. */
void psplit_i_cost_profile_read(const psplit_i_json_item *events, psplit_cost_table *table);
/* ONNX Runtime writes names of nodes without escaping them, so a name with a quote or a line break
 * makes the profile invalid JSON. *out_text becomes the profile with these names escaped; `failed`
 * if out of memory. O(n). */
void psplit_i_cost_profile_mend(const char *text, size_t n, psplit_i_text *out_text);
/* Whether the first line of `text` is the header of a known CSV format, which is *out_format. */
bool psplit_i_cost_csv_known(const char *text, size_t n, psplit_i_cost_format *out_format);
/* Reads the rows of a known CSV format, and appends them to `table`. Errors: INVALID (a line),
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cost_csv_read(const char *text, size_t n,
                                                   psplit_cost_table *table, psplit_diag *diag);

/* The nodes of each row; row r has those of row same_as[r]. */
typedef struct psplit_i_cost_map {
  uint32_t *same_as;     /* [rows] the row that has the nodes, usually itself */
  uint32_t *off;         /* [rows + 1] */
  uint32_t *node;        /* ids; a node may be in several rows */
  uint32_t n_matched;    /* number of rows that name nodes */
  uint32_t n_unmatched;  /* number of rows that name no node of the model */
  const char *unmatched; /* the label of the first of these, or NULL */
} psplit_i_cost_map;

/* `optimized`: for kernels of a profile, the model that ran, with its nodes in the order of the
 * rows; NULL if only names are available. Arrays live in `arena`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cost_match(const psplit_cost_table *table,
                                                const psplit_i_graph *graph,
                                                const psplit_i_graph *optimized,
                                                psplit_i_arena *arena, psplit_diag *diag,
                                                psplit_i_cost_map *out);

/* The names of a graph's nodes, for cost_names.c. */
typedef struct psplit_i_cost_names {
  const psplit_i_graph *graph;
  psplit_i_arena *arena;
  psplit_i_intern names;
  uint32_t *first;   /* [names] the first node of a name */
  uint32_t *next;    /* [n_nodes] the next node of the same name, or PSPLIT_NONE */
  uint32_t *counted; /* [n_counted] nodes except Constant, as ONNX Runtime numbers them */
  uint32_t n_counted;
} psplit_i_cost_names;
/* Arrays live in `arena`. `graph` must outlive *names, which fini frees, also after a failure.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cost_names_init(psplit_i_cost_names *names,
                                                     const psplit_i_graph *graph,
                                                     psplit_i_arena *arena, psplit_diag *diag);
void psplit_i_cost_names_fini(psplit_i_cost_names *names);
/* The first node of a name, or PSPLIT_NONE. */
uint32_t psplit_i_cost_names_node(const psplit_i_cost_names *names, const char *name);
/* The node that a kernel's name refers to. */
typedef struct psplit_i_kernel_name {
  uint32_t node; /* or PSPLIT_NONE */
  bool goes_on;  /* the kernel may compute more nodes after it: a sum, an activation */
} psplit_i_kernel_name;
/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_kernel_name_read(const psplit_i_cost_names *names,
                                                      const char *label, const char *op,
                                                      psplit_diag *diag, psplit_i_kernel_name *out);

/* Sizes that a profiled run shows, among those that the model leaves open with run->dims. */
typedef struct psplit_i_run_sizes {
  PSPLIT_VEC(psplit_dim_value) dims; /* run->dims, and the symbols that have a single value */
  PSPLIT_VEC(psplit_i_seen) values;  /* by value */
} psplit_i_run_sizes;
/* `optimized`: as in psplit_i_cost_match. Strings and shapes belong to the model, the run, the
 * table or the arena. Errors: NOMEM; call fini on *out in any case. */
PSPLIT_MUST_USE psplit_code psplit_i_run_sizes_find(const psplit_cost_table *table,
                                                    const psplit_i_cost_names *names,
                                                    const psplit_i_graph *optimized,
                                                    const psplit_profiled_run *run,
                                                    psplit_i_arena *arena, psplit_diag *diag,
                                                    psplit_i_run_sizes *out);
void psplit_i_run_sizes_fini(psplit_i_run_sizes *sizes);

/* Rounded nanoseconds; 0 if not positive, INT64_MAX if too large. */
int64_t psplit_i_whole_ns(double ns);

struct psplit_planner;
/* Replaces roofline costs by the costs that the caller gave: node_ns [classes x nodes], and memory.
 * Errors: USAGE (a table of other nodes), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cost_apply(struct psplit_planner *planner, psplit_diag *diag);

#endif
