/* needs: nothing  keeps: everything but costs  breaks: nothing
 *
 * Infers types and shapes of every value, with the caller's symbols fixed, and which of them are
 * state. */
#include "cost_table.h"
#include "keep_state.h"
#include "pass.h"

/* Sizes that the caller gave may be what does not fit: the model without them is what counts. */
static psplit_code size_fault(psplit_planner *planner, psplit_diag *diag, const char **out_fault) {
  *out_fault = psplit_i_shapes_size_fault(planner->shapes);
  if (!*out_fault || (!planner->options.n_dims && !planner->seen_in)) return PSPLIT_OK;
  psplit_i_shapes *unbound;
  const psplit_code code = psplit_i_shapes_create(planner->graph, NULL, 0, NULL, diag, &unbound);
  if (code != PSPLIT_OK) return code;
  if (!psplit_i_shapes_size_fault(unbound)) *out_fault = NULL;
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

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  (void)values;
  const psplit_planner_options *options = &planner->options;
  psplit_i_binding *bindings = psplit_i_planner_bindings(planner);
  if (!bindings) return psplit_i_nomem(diag);
  const psplit_cost_table *run_of = planner->seen_in;
  const psplit_i_known_sizes sizes = {.bindings = bindings,
                                      .n_bindings = options->n_dims,
                                      .n_told = planner->n_own_dims,
                                      .seen = run_of ? run_of->values.items : NULL,
                                      .n_seen = run_of ? run_of->values.n : 0,
                                      .cancel = options->cancel};
  psplit_i_costs_destroy(planner->costs);
  planner->costs = NULL;
  psplit_i_shapes_destroy(planner->shapes);
  planner->shapes = NULL;
  const psplit_code code =
    psplit_i_shapes_create_seen(planner->graph, &sizes, options->logger, diag, &planner->shapes);
  if (code != PSPLIT_OK) return code;
  const psplit_code checked = check(planner, diag);
  return checked == PSPLIT_OK ? psplit_i_planner_find_states(planner, diag) : checked;
}

const psplit_i_pass psplit_i_pass_infer_shapes = {
  .name = "infer-shapes",
  .help = "infer the type and shape of every value",
  .keeps = ~(unsigned)PSPLIT_I_FACT_COSTS,
  .makes = PSPLIT_I_FACT_SHAPES,
  .run = run,
};
