/* From rows to nodes: rows that name nodes, values or modules. Kernels: cost_kernels.c. */
#include "cost_match.h"

#include <string.h>

#include "module_scope.h"

static void find_free(psplit_i_matcher *m) {
  for (uint32_t i = 0; i < m->graph->n_nodes; i++) {
    const uint32_t n = m->graph->topo[i];
    const psplit_i_node *node = &m->graph->nodes[n];
    bool is_free = true;
    PSPLIT_FOR_EACH_READ(node, value) {
      const psplit_i_value *v = &m->graph->values[value];
      is_free &=
        v->producer != PSPLIT_NONE ? m->is_free[v->producer] : v->initializer != PSPLIT_NONE;
    }
    m->is_free[n] = is_free;
  }
}

/* --- the map --- */

static uint32_t final_row(const psplit_i_matcher *m, uint32_t r) {
  for (uint32_t steps = 0; m->same_as[r] != r && steps < m->n_rows; steps++) r = m->same_as[r];
  return r;
}

/* From `owner`: each node in one row. */
static psplit_code write_map(psplit_i_matcher *m, psplit_i_cost_map *out) {
  uint32_t *off = PSPLIT_NEW(m->arena, uint32_t, (size_t)m->n_rows + 2);
  out->node = psplit_i_arena_array(m->arena, m->graph->n_nodes, sizeof *out->node);
  if (!off || !out->node) return psplit_i_nomem(m->diag);
  for (uint32_t n = 0; n < m->graph->n_nodes; n++)
    if (m->owner[n] != PSPLIT_NONE) off[m->owner[n] + 2]++;
  for (uint32_t r = 0; r < m->n_rows; r++) off[r + 2] += off[r + 1];
  for (uint32_t n = 0; n < m->graph->n_nodes; n++)
    if (m->owner[n] != PSPLIT_NONE) out->node[off[m->owner[n] + 1]++] = n;
  for (uint32_t r = 0; r < m->n_rows; r++) m->same_as[r] = final_row(m, r);
  out->off = off;
  out->same_as = m->same_as;
  return PSPLIT_OK;
}

/* Rows with nodes, and those without that are missed: a kernel that takes no workspace is not. */
static void count_rows(const psplit_i_matcher *m, psplit_i_cost_map *out) {
  for (uint32_t r = 0; r < m->n_rows; r++) {
    const psplit_i_cost_row *row = psplit_i_row_of(m, r);
    const uint32_t at = out->same_as[r];
    if (out->off[at] != out->off[at + 1]) {
      out->n_matched++;
    } else if (m->table->format != PSPLIT_I_COSTS_MEMORY || row->workspace_bytes) {
      if (!out->n_unmatched++) out->unmatched = row->label;
    }
  }
}

/* --- rows that name nodes, modules --- */

typedef PSPLIT_VEC(uint32_t) id_list;
enum { MOST_PAIRS = 1 << 26 }; /* rows and their nodes: many rows may name many nodes of one name */

static psplit_code match_names(psplit_i_matcher *m, psplit_i_cost_map *out) {
  psplit_code code = PSPLIT_OK;
  id_list nodes = {0};
  out->off = PSPLIT_NEW(m->arena, uint32_t, (size_t)m->n_rows + 1);
  if (!out->off) return psplit_i_nomem(m->diag);
  for (uint32_t r = 0; r < m->n_rows; r++) {
    const psplit_i_cost_row *row = psplit_i_row_of(m, r);
    for (uint32_t i = 0; i < row->n_nodes; i++)
      for (uint32_t n = psplit_i_cost_names_node(&m->names, row->nodes[i]); n != PSPLIT_NONE;
           n = m->names.next[n])
        if (!psplit_i_vec_push(&nodes, n)) PSPLIT_FAIL(psplit_i_nomem(m->diag));
    for (uint32_t i = 0; i < row->n_values; i++) {
      const uint32_t n = psplit_i_maker_of(m->graph, row->values[i]);
      if (n != PSPLIT_NONE && !psplit_i_vec_push(&nodes, n)) PSPLIT_FAIL(psplit_i_nomem(m->diag));
    }
    if (nodes.n > MOST_PAIRS)
      PSPLIT_FAIL(psplit_i_fail(m->diag, PSPLIT_LIMIT, "the rows name too many nodes"));
    out->off[r + 1] = (uint32_t)nodes.n;
  }
  out->same_as = m->same_as;
  out->node = psplit_i_arena_array(m->arena, nodes.n, sizeof *out->node);
  if (!out->node) PSPLIT_FAIL(psplit_i_nomem(m->diag));
  if (nodes.n) memcpy(out->node, nodes.items, nodes.n * sizeof *out->node);
out:
  psplit_i_vec_fini(&nodes);
  return code;
}

/* Olive's modules are PyTorch's: a node belongs to the module that its name lies in, or the nearest
 * one around it that has a row. */
static psplit_code match_modules(psplit_i_matcher *m, psplit_i_cost_map *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_intern modules;
  psplit_i_intern_init(&modules);
  uint32_t *row_of_module = psplit_i_arena_array(m->arena, m->n_rows, sizeof *row_of_module);
  if (!row_of_module) PSPLIT_FAIL(psplit_i_nomem(m->diag));
  for (uint32_t r = 0; r < m->n_rows; r++) {
    const uint32_t id = psplit_i_intern_add(&modules, psplit_i_row_of(m, r)->label);
    if (id == PSPLIT_NONE) PSPLIT_FAIL(psplit_i_nomem(m->diag));
    row_of_module[id] = r;
  }
  for (uint32_t n = 0; n < m->graph->n_nodes; n++) {
    const char *name = m->graph->nodes[n].name, *slash = strrchr(name, '/');
    char *scope = slash ? psplit_i_scope_dotted(name, (size_t)(slash - name), m->arena) : NULL;
    if (slash && !scope) PSPLIT_FAIL(psplit_i_nomem(m->diag));
    for (char *dot = scope; dot && m->owner[n] == PSPLIT_NONE;) {
      const uint32_t id = psplit_i_intern_find(&modules, scope);
      if (id != PSPLIT_NONE) psplit_i_own(m, n, row_of_module[id]);
      if ((dot = strrchr(scope, '.'))) *dot = '\0';
    }
  }
  code = write_map(m, out);
out:
  psplit_i_intern_fini(&modules);
  return code;
}

psplit_code psplit_i_cost_match(const psplit_cost_table *table, const psplit_i_graph *graph,
                                const psplit_i_graph *optimized, psplit_i_arena *arena,
                                psplit_diag *diag, psplit_i_cost_map *out) {
  psplit_code code;
  const size_t n_rows = table->rows.n, n_nodes = graph->n_nodes;
  psplit_i_matcher m = {
    .table = table, .graph = graph, .optimized = optimized, .arena = arena, .diag = diag};
  *out = (psplit_i_cost_map){0};
  if (n_rows >= PSPLIT_NONE / 2)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "%zu rows are too many", n_rows);
  m.n_rows = (uint32_t)n_rows;
  PSPLIT_TRY(psplit_i_cost_names_init(&m.names, graph, arena, diag));
  m.owner = psplit_i_arena_array(arena, n_nodes, sizeof *m.owner);
  m.stack = psplit_i_arena_array(arena, n_nodes + 1, sizeof *m.stack);
  m.is_free = PSPLIT_NEW(arena, uint8_t, n_nodes);
  m.anchor = psplit_i_arena_array(arena, n_rows, sizeof *m.anchor);
  m.same_as = psplit_i_arena_array(arena, n_rows, sizeof *m.same_as);
  m.is_fused = PSPLIT_NEW(arena, uint8_t, n_rows);
  m.goes_on = PSPLIT_NEW(arena, uint8_t, n_rows);
  if (arena->failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  memset(m.owner, 0xff, n_nodes * sizeof *m.owner);
  memset(m.anchor, 0xff, n_rows * sizeof *m.anchor);
  for (uint32_t r = 0; r < n_rows; r++) m.same_as[r] = r;
  find_free(&m);
  switch (table->format) {
    case PSPLIT_I_COSTS_OWN: code = match_names(&m, out); break;
    case PSPLIT_I_COSTS_OLIVE: code = match_modules(&m, out); break;
    default:
      code = psplit_i_match_kernels(&m);
      if (code == PSPLIT_OK) code = write_map(&m, out);
      break;
  }
  if (code == PSPLIT_OK) count_rows(&m, out);
out:
  psplit_i_cost_names_fini(&m.names);
  return code;
}
