/* Tables of costs: rows, from any source. */
#include "cost_table.h"

#include <stdlib.h>

psplit_cost_table *psplit_i_cost_table_new(psplit_i_cost_format format) {
  psplit_cost_table *table = calloc(1, sizeof *table);
  if (!table) return NULL;
  psplit_i_arena_init(&table->arena, 0);
  table->format = format;
  table->measured = format == PSPLIT_I_COSTS_PROFILE || format == PSPLIT_I_COSTS_NODES;
  table->complete = table->measured;
  table->spread_frac = -1;
  return table;
}

psplit_i_cost_row *psplit_i_cost_table_add(psplit_cost_table *table) {
  if (!psplit_i_vec_push(&table->rows, ((psplit_i_cost_row){.ns = -1}))) return NULL;
  return &table->rows.items[table->rows.n - 1];
}

double psplit_cost_table_spread_frac(const psplit_cost_table *table) { return table->spread_frac; }

void psplit_cost_table_destroy(psplit_cost_table *table) {
  if (!table) return;
  psplit_i_vec_fini(&table->rows);
  psplit_i_vec_fini(&table->dims);
  psplit_i_vec_fini(&table->values);
  psplit_i_arena_fini(&table->arena);
  free(table);
}

psplit_code psplit_cost_table_of_nodes(const int64_t *node_ns, uint32_t n_nodes, psplit_diag *diag,
                                       psplit_cost_table **out_table) {
  psplit_cost_table *table = psplit_i_cost_table_new(PSPLIT_I_COSTS_NODES);
  if (!table) return psplit_i_nomem(diag);
  for (uint32_t n = 0; n < n_nodes; n++) {
    psplit_i_cost_row *row = psplit_i_cost_table_add(table);
    if (!row) {
      psplit_cost_table_destroy(table);
      return psplit_i_nomem(diag);
    }
    row->label = "";
    row->ns = (double)node_ns[n];
  }
  *out_table = table;
  return PSPLIT_OK;
}
