/* needs: costs, live, groups  keeps: everything but stages  breaks: nothing
 *
 * Merges groups along their dearest tensors until at most max_nodes are left: heavy-edge matching,
 * level by level, each merge checked for convexity. A group stops growing at twice the average
 * weight it would have in the end, so that the partitioner keeps its choice. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "passes.h"

enum { OPTION_MAX_NODES };

/* An edge between groups, as a value and one of its readers. */
typedef struct edge {
  uint64_t bytes;
  uint32_t from, to; /* nodes */
} edge;

static int dearest_first(const void *a, const void *b) {
  const edge *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

/* Every tensor that joins two groups. */
static size_t collect_edges(psplit_unit *unit, edge *edges) {
  const psplit_graph *graph = unit->graph;
  size_t n = 0;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t from = graph->values[v].producer;
    if (from == PSPLIT_NONE || (unit->node_flags[from] & PSPLIT_I_NODE_FREE)) continue;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++) {
      const uint32_t to = graph->consumers[c];
      if (psplit_i_group_of(&unit->grouping, from) == psplit_i_group_of(&unit->grouping, to))
        continue;
      if (edges)
        edges[n] = (edge){.bytes = psplit_i_unit_value_bytes(unit, v, NULL), .from = from, .to = to};
      n++;
    }
  }
  return n;
}

/* One round: each group takes part in at most one merge. The number of merges. */
static uint32_t match_once(psplit_unit *unit, int64_t *group_ns, int64_t max_ns, uint32_t max_nodes,
                           uint32_t *round_of, uint32_t round, psplit_diag *diag,
                           psplit_code *out_code) {
  const size_t n = collect_edges(unit, NULL);
  edge *edges = malloc((n + 1) * sizeof *edges);
  if (!edges) {
    *out_code = psplit_i_nomem(diag);
    return 0;
  }
  collect_edges(unit, edges);
  qsort(edges, n, sizeof *edges, dearest_first);
  uint32_t n_merges = 0;
  for (size_t e = 0; e < n && unit->grouping.n_groups > max_nodes; e++) {
    const uint32_t a = psplit_i_group_of(&unit->grouping, edges[e].from);
    const uint32_t b = psplit_i_group_of(&unit->grouping, edges[e].to);
    if (a == b || round_of[a] == round || round_of[b] == round) continue;
    const int64_t sum_ns = psplit_i_sat_add_i64(group_ns[a], group_ns[b]);
    if (sum_ns > max_ns) continue;
    if (!psplit_i_group_merge(&unit->grouping, (const uint32_t[]){a, b}, 2)) continue;
    const uint32_t merged = psplit_i_group_of(&unit->grouping, a);
    group_ns[merged] = sum_ns;
    round_of[merged] = round;
    n_merges++;
  }
  free(edges);
  return n_merges;
}

static psplit_code run(psplit_unit *unit, const psplit_i_option_value *values, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t max_nodes = (uint32_t)values[OPTION_MAX_NODES].integer;
  const uint32_t n_nodes = unit->graph->n_nodes;
  if (unit->grouping.n_groups <= max_nodes) return PSPLIT_OK;
  int64_t *group_ns = PSPLIT_NEW(&unit->scratch, int64_t, n_nodes);
  uint32_t *round_of = PSPLIT_NEW(&unit->scratch, uint32_t, n_nodes);
  if (!group_ns || !round_of) return psplit_i_nomem(diag);
  int64_t total_ns = 0;
  for (uint32_t n = 0; n < n_nodes; n++) {
    if (unit->node_flags[n] & PSPLIT_I_NODE_FREE) continue;
    const uint32_t g = psplit_i_group_of(&unit->grouping, n);
    group_ns[g] = psplit_i_sat_add_i64(group_ns[g], unit->node_ns[n]);
    total_ns = psplit_i_sat_add_i64(total_ns, unit->node_ns[n]);
  }
  int64_t max_ns = total_ns / max_nodes * 2 + 1;
  for (uint32_t round = 1; unit->grouping.n_groups > max_nodes; round++) {
    const uint32_t n_merges =
      match_once(unit, group_ns, max_ns, max_nodes, round_of, round, diag, &code);
    if (code != PSPLIT_OK) return code;
    if (n_merges > unit->grouping.n_groups / 20) continue;
    /* Little is left to match under this weight: allow more, until even that gains nothing. */
    if (max_ns > total_ns && n_merges == 0) break;
    max_ns = max_ns > total_ns / 2 ? total_ns + 1 : max_ns * 2;
  }
  if (unit->grouping.n_groups > max_nodes)
    psplit_i_say(unit->options.sink, PSPLIT_NOTE,
                 "coarsening stopped at %" PRIu32 " supernodes: no pair is left to merge",
                 unit->grouping.n_groups);
  return PSPLIT_OK;
}

static const psplit_i_option OPTIONS[] = {
  [OPTION_MAX_NODES] = {"max_nodes", PSPLIT_I_OPTION_INT, "10000", 1, 4e9,
                        "most supernodes that are left"},
};

const psplit_i_pass psplit_i_pass_coarsen = {
  .name = "coarsen",
  .help = "merge supernodes along their dearest tensors",
  .needs = PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS,
  .keeps = ~(unsigned)PSPLIT_I_FACT_STAGES,
  .options = OPTIONS,
  .n_options = sizeof OPTIONS / sizeof *OPTIONS,
  .run = run,
};
