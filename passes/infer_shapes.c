/* needs: nothing  keeps: everything but costs  breaks: nothing
 *
 * Infers types and shapes of every value, with the caller's symbols fixed, and which of them are
 * state. */
#include <string.h>

#include "cost_table.h"
#include "keep_state.h"
#include "pass.h"

/* Sizes that the caller gave may be what does not fit: the model without them is what counts. */
static psplit_code size_fault(psplit_planner *planner, psplit_diag *diag, const char **out_fault) {
  *out_fault = psplit_i_shapes_size_fault(planner->shapes);
  if (!*out_fault || (!planner->options.n_dims && !planner->options.n_shapes && !planner->seen_in))
    return PSPLIT_OK;
  psplit_i_shapes *unbound;
  const psplit_code code = psplit_i_shapes_create(planner->graph, NULL, 0, NULL, diag, &unbound);
  if (code != PSPLIT_OK) return code;
  if (!psplit_i_shapes_size_fault(unbound)) {
    psplit_i_say(planner->options.logger, PSPLIT_WARNING, "of the sizes that were given %s",
                 *out_fault);
    *out_fault = NULL;
  }
  psplit_i_shapes_destroy(unbound);
  return PSPLIT_OK;
}

static psplit_code check(psplit_planner *planner, psplit_diag *diag) {
  const char *fault = psplit_i_shapes_fault(planner->shapes);
  const char *path = psplit_i_model_path(planner->model);
  psplit_code code = PSPLIT_OK;
  if (!fault) code = size_fault(planner, diag, &fault);
  if (code != PSPLIT_OK || !fault) return code;
  if (!planner->options.allow_invalid)
    return psplit_i_fail_about(diag, PSPLIT_INVALID, PSPLIT_I_HELPS(ALLOW_INVALID), "%s: %s", path,
                               fault);
  psplit_i_say(planner->options.logger, PSPLIT_WARNING, "%s: %s", path, fault);
  return PSPLIT_OK;
}

/* The sizes of a run of before, and those of inputs that the caller gave, which go before. */
static bool all_seen(psplit_planner *planner, const psplit_cost_table *run_of,
                     psplit_i_seen **out_seen, size_t *out_n) {
  const size_t n_run = run_of ? run_of->values.n : 0, n_given = planner->options.n_shapes;
  psplit_i_seen *seen = PSPLIT_NEW(&planner->scratch, psplit_i_seen, n_run + n_given);
  if (!seen) return false;
  if (n_run) memcpy(seen, run_of->values.items, n_run * sizeof *seen);
  if (n_given) memcpy(seen + n_run, planner->given, n_given * sizeof *seen);
  *out_seen = seen;
  *out_n = n_run + n_given;
  return true;
}

/* A size of 0 is one that a dimension may have, such as that of an empty cache; but there is
 * nothing to plan where it leaves an output of the model empty. */
static psplit_code check_zeros(psplit_planner *planner, psplit_diag *diag) {
  const psplit_planner_options *options = &planner->options;
  const psplit_i_graph *graph = planner->graph;
  const psplit_dim_value *zero = NULL;
  for (size_t i = 0; i < planner->n_own_dims; i++)
    if (options->dims[i].value == 0) zero = &options->dims[i];
  for (uint32_t o = 0; zero && o < graph->n_outputs; o++) {
    const psplit_i_vtype *type = psplit_i_shapes_type(planner->shapes, graph->outputs[o]);
    for (int32_t axis = 0; axis < type->rank; axis++) {
      int64_t size;
      if (psplit_i_dim_is_const(psplit_i_shapes_dims(planner->shapes), type->dims[axis], &size) &&
          size == 0)
        return psplit_i_fail(diag, PSPLIT_USAGE,
                             "with dimension %s of 0 the output \"%s\" is empty: there is nothing "
                             "to plan; use the sizes of a run",
                             zero->name, graph->values[graph->outputs[o]].name);
    }
  }
  return PSPLIT_OK;
}

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  (void)values;
  const psplit_planner_options *options = &planner->options;
  psplit_i_binding *bindings = psplit_i_planner_bindings(planner);
  if (!bindings) return psplit_i_nomem(diag);
  const psplit_cost_table *run_of = planner->seen_in;
  psplit_i_seen *seen = NULL;
  size_t n_seen = 0;
  if (!all_seen(planner, run_of, &seen, &n_seen)) return psplit_i_nomem(diag);
  const psplit_i_known_sizes sizes = {.bindings = bindings,
                                      .n_bindings = options->n_dims,
                                      .n_told = planner->n_own_dims,
                                      .seen = seen,
                                      .n_seen = n_seen,
                                      .defaults_hold = true,
                                      .cancel = options->cancel};
  psplit_i_costs_destroy(planner->costs);
  planner->costs = NULL;
  psplit_i_shapes_destroy(planner->shapes);
  planner->shapes = NULL;
  const psplit_code code =
    psplit_i_shapes_create_seen(planner->graph, &sizes, options->logger, diag, &planner->shapes);
  if (code != PSPLIT_OK) return code;
  psplit_code checked = check(planner, diag);
  if (checked == PSPLIT_OK) checked = check_zeros(planner, diag);
  if (checked == PSPLIT_OK) checked = psplit_i_say_shared_names(planner, diag);
  return checked == PSPLIT_OK ? psplit_i_planner_find_states(planner, diag) : checked;
}

const psplit_i_pass psplit_i_pass_infer_shapes = {
  .name = "infer-shapes",
  .help = "infer the type and shape of every value",
  .keeps = ~(unsigned)PSPLIT_I_FACT_COSTS,
  .makes = PSPLIT_I_FACT_SHAPES,
  .run = run,
};
