/* Costs that were measured, or given by hand: tables of times that stand in for the roofline.
 *
 * A table comes from a file: our own JSON (docs/costs.schema.json), a profile of ONNX Runtime, its
 * node memory statistics, or a cost model of Olive. Its rows speak of nodes by name; a planner that
 * is given tables (psplit_planner_options) finds the nodes, see docs/costs/measured.md. */
#ifndef PSPLIT_COST_TABLE_H
#define PSPLIT_COST_TABLE_H

#include <psplit/base.h>
#include <psplit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Read-only once made; several units may use one at a time. */
typedef struct psplit_cost_table psplit_cost_table;

/* Reads a costs file of any of the four kinds, told apart by what they contain; `name` is what
 * messages call it. The caller owns *out_table, which borrows nothing. Errors: MALFORMED (neither
 * JSON nor a CSV of a known kind), INVALID (a value that cannot be; the message gives the place),
 * NOMEM. O(bytes). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_cost_table_parse(const char *name, const char *text,
                                                               size_t n_bytes, psplit_diag *diag,
                                                               psplit_cost_table **out_table);

/* Times for the nodes of a model by their position in the file: node_ns[n_nodes], >= 0, copied.
 * Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_cost_table_of_nodes(const int64_t *node_ns,
                                                                  uint32_t n_nodes,
                                                                  psplit_diag *diag,
                                                                  psplit_cost_table **out_table);

/* Frees; NULL is fine. */
PSPLIT_API void psplit_cost_table_destroy(psplit_cost_table *table);

/* The shape of a tensor in a run. */
typedef struct psplit_run_shape {
  const char *value;
  const int64_t *dims; /* [rank] */
  uint32_t rank;
} psplit_run_shape;

/* A profiled run of a whole model, and how it was run. */
typedef struct psplit_profiled_run {
  const char *profile; /* ONNX Runtime's, JSON */
  size_t n_profile;
  int64_t least_ns, median_ns; /* runs without the profiler took so long; 0: not measured */
  const char *onnxruntime;     /* its version; may be NULL */
  int optimization;            /* level: 0, 1, 2 or 99 */
  uint32_t n_threads, n_runs;
  const psplit_dim_value *dims; /* [n_dims] sizes of the inputs, each name once */
  size_t n_dims;
  const psplit_run_shape *inputs; /* [n_inputs] shapes of the model's inputs; NULL: not known */
  size_t n_inputs;
  double spread_frac; /* how much longer than least_ns three quarters of these runs took at most */
} psplit_profiled_run;

/* Of the runs that the table was measured by; < 0: not said. Above PSPLIT_MOST_SPREAD the machine
 * was too busy for its times to be trusted, and planners warn. */
PSPLIT_API double psplit_cost_table_spread_frac(const psplit_cost_table *table);
#define PSPLIT_MOST_SPREAD 0.25

/* Turns a profile into a costs file for `model`, malloc'd JSON. `optimized` is the model that ran,
 * as ONNX Runtime saved it: a kernel stands for the nodes of `model` between its inputs and its
 * outputs. Times add up to median_ns. Sizes that the model leaves open are in it as the last run
 * had them.
 * Errors: those of psplit_cost_table_parse; INVALID where no kernel is one of the model's. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_cost_table_profile(const psplit_model *model,
                                                                 const psplit_model *optimized,
                                                                 const psplit_profiled_run *run,
                                                                 psplit_diag *diag,
                                                                 char **out_text);

/* A stage of a split that was profiled. */
typedef struct psplit_profiled_stage {
  const psplit_model *model, *optimized; /* the stage, and as it ran; NULL: not at hand */
  psplit_profiled_run run;
} psplit_profiled_stage;

/* One costs file, of what is called `name`, from the profiles of all stages that it was split into,
 * each as psplit_cost_table_profile has it: what a cut lets the runtime fuse is in it as it ran.
 * Nodes are named by what they make, as two stages may use a name twice. A node that several stages
 * compute counts in the first of them. A stage without a kernel (run.n_profile is 0) takes no time.
 * Errors: as above. */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_cost_table_profile_stages(const char *name, const psplit_profiled_stage *stages,
                                 uint32_t n_stages, psplit_diag *diag, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
