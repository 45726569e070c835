/* needs: nothing  keeps: everything but costs  breaks: nothing
 *
 * Infers types and shapes of every value, with the caller's symbols fixed. */
#include "pass.h"

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  (void)values;
  const psplit_planner_options *options = &planner->options;
  psplit_i_binding *bindings = PSPLIT_NEW(&planner->scratch, psplit_i_binding, options->n_dims);
  if (!bindings) return psplit_i_nomem(diag);
  for (size_t i = 0; i < options->n_dims; i++)
    bindings[i] = (psplit_i_binding){options->dims[i].name, options->dims[i].value};
  psplit_i_costs_destroy(planner->costs);
  planner->costs = NULL;
  psplit_i_shapes_destroy(planner->shapes);
  planner->shapes = NULL;
  return psplit_i_shapes_create(planner->graph, bindings, options->n_dims, options->logger, diag,
                                &planner->shapes);
}

const psplit_i_pass psplit_i_pass_infer_shapes = {
  .name = "infer-shapes",
  .help = "infer the type and shape of every value",
  .keeps = ~(unsigned)PSPLIT_I_FACT_COSTS,
  .makes = PSPLIT_I_FACT_SHAPES,
  .run = run,
};
