/* needs: live, groups  keeps: everything but stages  breaks: nothing
 *
 * Groups what runtimes run as one kernel, so that no cut falls inside: a cut there costs speed and,
 * with optimisation on, equality in the last bit. What such a kernel looks like is said by patterns
 * (grouping/patterns.txt, and the caller's own); matches that share a node become one group. Nodes
 * are grouped, never rewritten. How often each pattern matched stays with the planner. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pass.h"
#include "pattern.h"

enum { OPTION_PATTERNS };

/* Patterns by the operator they can start at: one list per operator type of the graph. */
typedef struct anchors {
  psplit_i_intern ops;
  uint32_t *op_of; /* [n_nodes] id in `ops` */
  uint32_t *first; /* [ops + 1] into `patterns` */
  PSPLIT_VEC(uint32_t) patterns;
} anchors;

static void anchors_fini(anchors *a) {
  psplit_i_intern_fini(&a->ops);
  psplit_i_vec_fini(&a->patterns);
}

static psplit_code anchors_init(psplit_planner *planner, const psplit_i_patterns *table, anchors *a,
                                psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  psplit_i_intern_init(&a->ops);
  a->op_of = PSPLIT_NEW(&planner->scratch, uint32_t, graph->n_nodes);
  a->first = PSPLIT_NEW(&planner->scratch, uint32_t, (size_t)graph->n_nodes + 1);
  if (!a->op_of || !a->first) return psplit_i_nomem(diag);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const uint32_t known = a->ops.n;
    /* Domains are told apart when a match is tried: a type that only a custom domain has costs one
     * attempt. */
    a->op_of[n] = psplit_i_intern_add(&a->ops, graph->nodes[n].op_type);
    if (a->op_of[n] == PSPLIT_NONE) return psplit_i_nomem(diag);
    if (a->ops.n == known) continue;
    a->first[known] = (uint32_t)a->patterns.n;
    for (uint32_t p = 0; p < table->patterns.n; p++) {
      const psplit_i_pattern *pattern = &table->patterns.items[p];
      if (psplit_i_pattern_names(table, pattern, graph->nodes[n].op_type) &&
          !psplit_i_vec_push(&a->patterns, p))
        return psplit_i_nomem(diag);
    }
    a->first[a->ops.n] = (uint32_t)a->patterns.n;
  }
  return PSPLIT_OK;
}

/* The longest prefix of the match that stays convex. */
static psplit_code merge_prefix(psplit_planner *planner, const uint32_t *nodes, uint32_t n,
                                psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  bool merged = false;
  for (; n > 1 && !merged && code == PSPLIT_OK; n--)
    code = psplit_i_group_merge(&planner->grouping, nodes, n, diag, &merged);
  return code;
}

/* `counts`: of each pattern of the table. */
static psplit_code fuse_at(psplit_planner *planner, const psplit_i_patterns *table,
                           const anchors *a, uint32_t node, psplit_i_pattern_count *counts,
                           psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_match_input input = {
    .graph = planner->graph, .node_flags = planner->node_flags, .scratch = &planner->scratch};
  const char *matched = ""; /* of several patterns with one name, the first that fits counts */
  for (uint32_t i = a->first[a->op_of[node]]; i < a->first[a->op_of[node] + 1]; i++) {
    const uint32_t p = a->patterns.items[i];
    const psplit_i_pattern *pattern = &table->patterns.items[p];
    if (strcmp(pattern->name, matched) == 0) continue;
    uint32_t members[PSPLIT_I_PATTERN_STEPS], n;
    PSPLIT_TRY(psplit_i_pattern_match(&input, table, pattern, node, diag, members, &n));
    if (!n) continue;
    matched = pattern->name;
    counts[p].n_matches++;
    counts[p].n_nodes += n;
    PSPLIT_TRY(merge_prefix(planner, members, n, diag));
  }
out:
  return code;
}

static psplit_code read_patterns(psplit_planner *planner, const char *file,
                                 psplit_i_patterns *table, uint32_t *out_n_built_in,
                                 psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_patterns_parse(table, "built-in patterns",
                                     (const char *)psplit_i_asset_patterns.bytes,
                                     psplit_i_asset_patterns.n, &planner->scratch, diag));
  *out_n_built_in = (uint32_t)table->patterns.n;
  if (!*file) return PSPLIT_OK;
  if (!planner->options.read_text)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "pass fuse: this program cannot read the patterns file %s", file);
  char *text;
  size_t n;
  PSPLIT_TRY(planner->options.read_text(planner->options.read_text_user, file, diag, &text, &n));
  code = psplit_i_patterns_parse(table, file, text, n, &planner->scratch, diag);
  free(text);
out:
  return code;
}

/* Leaves with the planner how often each name matched, in the order of the text. */
static psplit_code keep_counts(psplit_planner *planner, const psplit_i_patterns *table,
                               const psplit_i_pattern_count *counts, psplit_diag *diag) {
  const uint32_t n = (uint32_t)table->patterns.n;
  psplit_i_pattern_count *kept = psplit_i_arena_array(&planner->arena, n, sizeof *kept);
  psplit_i_intern names;
  psplit_i_intern_init(&names);
  bool fine = kept != NULL;
  for (uint32_t p = 0; fine && p < n; p++) {
    const char *name = table->patterns.items[p].name;
    const uint32_t known = names.n, id = psplit_i_intern_add(&names, name);
    fine = id != PSPLIT_NONE;
    if (!fine) break;
    if (id == known) {
      kept[id] = (psplit_i_pattern_count){
        .name = psplit_i_arena_strndup(&planner->arena, name, strlen(name))};
      fine = kept[id].name != NULL;
    }
    kept[id].n_matches += counts[p].n_matches;
    kept[id].n_nodes += counts[p].n_nodes;
  }
  if (fine) {
    planner->patterns = kept;
    planner->n_patterns = names.n;
  }
  psplit_i_intern_fini(&names);
  return fine ? PSPLIT_OK : psplit_i_nomem(diag);
}

/* The caller's patterns that match nothing, by their names, of which one that matches is enough. */
static void say_unmatched(const psplit_planner *planner, const char *file,
                          const psplit_i_patterns *table, uint32_t n_built_in,
                          const psplit_i_pattern_count *counts) {
  for (uint32_t p = n_built_in; p < table->patterns.n; p++) {
    const char *name = table->patterns.items[p].name;
    bool first = true, any = false;
    for (uint32_t q = n_built_in; q < table->patterns.n; q++) {
      if (strcmp(table->patterns.items[q].name, name) != 0) continue;
      first = first && q >= p;
      any = any || counts[q].n_matches;
    }
    if (first && !any)
      psplit_i_say(planner->options.logger, PSPLIT_WARNING, "%s: pattern \"%s\" matches nothing",
                   file, name);
  }
}

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  psplit_code code;
  psplit_i_patterns table = {0};
  anchors a = {0};
  uint32_t n_built_in = 0;
  PSPLIT_TRY(read_patterns(planner, values[OPTION_PATTERNS].text, &table, &n_built_in, diag));
  PSPLIT_TRY(anchors_init(planner, &table, &a, diag));
  psplit_i_pattern_count *counts =
    psplit_i_arena_zeroed(&planner->scratch, table.patterns.n, sizeof *counts);
  if (!counts) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t i = 0; i < planner->graph->n_nodes; i++) {
    const uint32_t n = planner->graph->topo[i];
    if (psplit_i_node_runs(planner->node_flags[n]))
      PSPLIT_TRY(fuse_at(planner, &table, &a, n, counts, diag));
  }
  PSPLIT_TRY(keep_counts(planner, &table, counts, diag));
  say_unmatched(planner, values[OPTION_PATTERNS].text, &table, n_built_in, counts);
out:
  anchors_fini(&a);
  psplit_i_patterns_fini(&table);
  return code;
}

static const psplit_i_option OPTIONS[] = {
  [OPTION_PATTERNS] = {"patterns", PSPLIT_I_OPTION_TEXT, "", 0, 0,
                       "file with additional patterns; see docs/passes.md"},
};

const psplit_i_pass psplit_i_pass_fuse = {
  .name = "fuse",
  .help = "group operators that runtimes run as one kernel",
  .needs = PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS,
  .keeps = ~(unsigned)PSPLIT_I_FACT_STAGES,
  .options = OPTIONS,
  .n_options = sizeof OPTIONS / sizeof *OPTIONS,
  .run = run,
};
