/* Measured or manually given costs: tables of times that replace the roofline model.
 *
 * A table is read from a file: our own JSON (docs/costs.schema.json), a profile of ONNX Runtime,
 * its node memory statistics, or a cost model of Olive. Its rows identify nodes by name; a planner
 * with tables (psplit_planner_options) resolves them, see docs/costs/measured.md. */
#ifndef PSPLIT_COST_TABLE_H
#define PSPLIT_COST_TABLE_H

#include <psplit/base.h>
#include <psplit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable, so planners may share it. */
typedef struct psplit_cost_table psplit_cost_table;

/* Reads a costs file of any of the four kinds, detected by content; `name` is used in messages. The
 * caller owns *out_table, which does not refer to `text`. Errors: MALFORMED (neither JSON nor a
 * known CSV), INVALID (an impossible value, with its place), NOMEM. O(bytes). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_cost_table_parse(const char *name, const char *text,
                                                               size_t n_bytes, psplit_diag *diag,
                                                               psplit_cost_table **out_table);

/* A table of times by position of the node in the file: node_ns[n_nodes], >= 0, copied. Errors:
 * NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_cost_table_of_nodes(const int64_t *node_ns,
                                                                  uint32_t n_nodes,
                                                                  psplit_diag *diag,
                                                                  psplit_cost_table **out_table);

/* Frees; NULL is fine. */
PSPLIT_API void psplit_cost_table_destroy(psplit_cost_table *table);

/* Shape of a tensor in a run. */
typedef struct psplit_run_shape {
  const char *value;
  const int64_t *dims; /* [rank] */
  uint32_t rank;
} psplit_run_shape;

/* A profiled run of a whole model, and its configuration. */
typedef struct psplit_profiled_run {
  const char *profile; /* ONNX Runtime's, JSON */
  size_t n_profile;
  int64_t least_ns, median_ns; /* duration of runs without the profiler; 0: not measured */
  const char *onnxruntime;     /* its version; may be NULL */
  int optimization;            /* level: 0, 1, 2 or 99 */
  uint32_t n_threads, n_runs;
  const psplit_dim_value *dims; /* [n_dims] values of the inputs' symbols, each once */
  size_t n_dims;
  const psplit_run_shape *inputs; /* [n_inputs] shapes of the model's inputs; NULL: unknown */
  size_t n_inputs;
  double spread_frac; /* relative to least_ns, excess of the third quartile of these runs */
} psplit_profiled_run;

/* spread_frac of the runs that the table was measured with; < 0: unknown. Above PSPLIT_MOST_SPREAD,
 * the machine was too busy for reliable times, and planners warn. */
PSPLIT_API double psplit_cost_table_spread_frac(const psplit_cost_table *table);
#define PSPLIT_MOST_SPREAD 0.25

/* Converts a profile into a costs file for `model`, malloc'd JSON. `optimized` is the executed
 * model, as ONNX Runtime saved it: a kernel stands for the nodes of `model` between its inputs and
 * its outputs. Times add up to median_ns. Dynamic sizes are recorded as in the last run. Errors:
 * those of psplit_cost_table_parse; INVALID if no kernel matches the model. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_cost_table_profile(const psplit_model *model,
                                                                 const psplit_model *optimized,
                                                                 const psplit_profiled_run *run,
                                                                 psplit_diag *diag,
                                                                 char **out_text);

/* A profiled stage of a split. */
typedef struct psplit_profiled_stage {
  const psplit_model *model, *optimized; /* the stage, and its optimised form; NULL: unavailable */
  psplit_profiled_run run;
} psplit_profiled_stage;

/* Combines the profiles of all stages of the model `name` into one costs file, each as in
 * psplit_cost_table_profile: it includes effects of the cut on fusion. Nodes are identified by
 * their outputs, as two stages may use the same node name. A node that several stages compute
 * counts in the first one. A stage without kernels (run.n_profile is 0) takes no time. Errors: as
 * above. */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_cost_table_profile_stages(const char *name, const psplit_profiled_stage *stages,
                                 uint32_t n_stages, psplit_diag *diag, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
