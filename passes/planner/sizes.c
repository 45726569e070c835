/* Sizes that the planner counts with: the caller's, and those of the runs that gave the costs. */
#include <string.h>

#include "cost_table.h"
#include "planner.h"

static const psplit_dim_value *find(const psplit_dim_value *dims, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(dims[i].name, name) == 0) return &dims[i];
  return NULL;
}

/* Whether a table was measured with other sizes than those that count. */
static bool contradicts(const psplit_cost_table *table, const psplit_dim_value *dims, size_t n) {
  for (size_t i = 0; i < table->dims.n; i++) {
    const psplit_dim_value *own = find(dims, n, table->dims.items[i].name);
    if (own && own->value != table->dims.items[i].value) return true;
  }
  return false;
}

psplit_code psplit_i_planner_take_sizes(psplit_planner *planner, psplit_diag *diag) {
  psplit_planner_options *options = &planner->options;
  size_t n = options->n_dims, n_all = n;
  planner->n_own_dims = n;
  for (size_t c = 0; c < options->n_costs; c++) n_all += options->costs[c]->dims.n;
  if (n_all == n && !options->n_costs) return PSPLIT_OK;
  psplit_dim_value *all = PSPLIT_NEW(&planner->arena, psplit_dim_value, n_all);
  if (!all) return psplit_i_nomem(diag);
  if (n) memcpy(all, options->dims, n * sizeof *all);
  for (size_t c = 0; c < options->n_costs; c++) {
    const psplit_cost_table *table = options->costs[c];
    if (contradicts(table, all, n)) continue;
    if (table->values.n) planner->seen_in = table;
    for (size_t i = 0; i < table->dims.n; i++) {
      const psplit_dim_value *dim = &table->dims.items[i];
      psplit_diag unknown = {0}; /* a table of another model says so by its rows */
      if (find(all, n, dim->name)) continue;
      if (psplit_model_check_dims(planner->model, dim, 1, &unknown) == PSPLIT_OK) all[n++] = *dim;
    }
  }
  options->dims = all;
  options->n_dims = n;
  return PSPLIT_OK;
}

psplit_i_binding *psplit_i_planner_bindings(psplit_planner *planner) {
  const psplit_planner_options *options = &planner->options;
  psplit_i_binding *bindings = PSPLIT_NEW(&planner->scratch, psplit_i_binding, options->n_dims);
  for (size_t i = 0; bindings && i < options->n_dims; i++)
    bindings[i] = (psplit_i_binding){options->dims[i].name, options->dims[i].value};
  return bindings;
}
