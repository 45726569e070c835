/* Matching rows of costs to nodes: what cost_match.c and cost_kernels.c share. */
#ifndef PSPLIT_PASSES_COST_MATCH_H
#define PSPLIT_PASSES_COST_MATCH_H

#include "cost_table.h"

typedef struct psplit_i_matcher {
  const psplit_cost_table *table;
  const psplit_i_graph *graph, *optimized;
  psplit_i_arena *arena;
  psplit_diag *diag;
  psplit_i_cost_names names;
  uint32_t n_rows;
  uint32_t *owner;   /* [n_nodes] row, or PSPLIT_NONE */
  uint32_t *anchor;  /* [n_rows] the node of its name or outputs, or PSPLIT_NONE */
  uint32_t *same_as; /* [n_rows] the row that it counts as a part of, maybe itself */
  uint8_t *is_fused; /* [n_rows] the kernel computes more than its anchor */
  uint8_t *goes_on;  /* [n_rows] the kernel may compute more nodes after its anchor */
  uint8_t *is_free;  /* [n_nodes] a function of constants, which is in no kernel */
  uint32_t *stack;   /* [n_nodes] */
} psplit_i_matcher;

/* The node that produces the value of this name, or PSPLIT_NONE. */
static inline uint32_t psplit_i_maker_of(const psplit_i_graph *graph, const char *value) {
  const uint32_t v = psplit_i_graph_find_value(graph, value);
  return v == PSPLIT_NONE ? PSPLIT_NONE : graph->values[v].producer;
}

/* Assigns a node to a row unless it has one already. */
static inline bool psplit_i_own(psplit_i_matcher *m, uint32_t node, uint32_t row) {
  if (node == PSPLIT_NONE || row == PSPLIT_NONE || m->owner[node] != PSPLIT_NONE) return false;
  m->owner[node] = row;
  return true;
}

static inline const psplit_i_cost_row *psplit_i_row_of(const psplit_i_matcher *m, uint32_t r) {
  return &m->table->rows.items[r];
}

/* Matches the kernels of a profile or of memory statistics: sets owner and same_as. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_match_kernels(psplit_i_matcher *m);

#endif
