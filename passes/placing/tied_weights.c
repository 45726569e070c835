/* Weights with several users. A stage that uses a weight holds it, so the weight is duplicated if
 * its users are in different stages. This file finds the users, and joins them where they must
 * share a stage. */
#include "tied_weights.h"
#include "laid_aside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "union_find.h"

/* Limit on the steps through functions of constants. Weights beyond it count as untied. */
enum { MAX_STEPS = 1 << 26 };

typedef struct finder {
  const psplit_planner *planner;
  psplit_i_tied_weights *ties;
  uint32_t *met_value, *met_node; /* stamps */
  uint32_t stamp;
  PSPLIT_VEC(uint32_t) open; /* stack of values to visit */
  uint64_t n_steps;
} finder;

/* Whether the value is an initializer or the result of a node without inputs. All other constants
 * are computed from those. */
static bool is_source(const psplit_planner *planner, uint32_t value) {
  const uint32_t producer = planner->graph->values[value].producer;
  return psplit_i_planner_is_constant(planner, value) &&
         (producer == PSPLIT_NONE || planner->graph->nodes[producer].n_inputs == 0);
}

static bool reach(finder *f, uint32_t value) {
  if (f->met_value[value] == f->stamp) return true;
  f->met_value[value] = f->stamp;
  return psplit_i_vec_push(&f->open, value);
}

/* Appends the nodes that read the constant, directly or through free nodes, to the users. */
static bool append_users(finder *f, uint32_t value) {
  const psplit_i_graph *graph = f->planner->graph;
  f->stamp++;
  f->open.n = 0;
  bool ok = reach(f, value);
  while (ok && f->open.n && f->n_steps < MAX_STEPS) {
    const uint32_t v = f->open.items[--f->open.n];
    for (uint32_t c = graph->consumer_off[v]; ok && c < graph->consumer_off[v + 1]; c++) {
      const uint32_t n = graph->consumers[c];
      f->n_steps++;
      if (f->met_node[n] == f->stamp || (f->planner->node_flags[n] & PSPLIT_I_NODE_DEAD)) continue;
      f->met_node[n] = f->stamp;
      if (!(f->planner->node_flags[n] & PSPLIT_I_NODE_FREE)) {
        ok = psplit_i_vec_push(&f->ties->users, n);
        continue;
      }
      for (uint32_t o = 0; ok && o < graph->nodes[n].n_outputs; o++)
        if (graph->nodes[n].outputs[o] != PSPLIT_NONE) ok = reach(f, graph->nodes[n].outputs[o]);
    }
  }
  return ok;
}

static int compare_ties(const void *a, const void *b) {
  const psplit_i_tie *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->value < y->value ? -1 : x->value > y->value;
}

psplit_code psplit_i_tied_weights_find(psplit_planner *planner, psplit_diag *diag,
                                       psplit_i_tied_weights *out) {
  const psplit_i_graph *graph = planner->graph;
  finder f = {.planner = planner, .ties = out};
  bool ok = true;
  f.met_value = PSPLIT_NEW(&planner->scratch, uint32_t, graph->n_values);
  f.met_node = PSPLIT_NEW(&planner->scratch, uint32_t, graph->n_nodes);
  if (!f.met_value || !f.met_node) return psplit_i_nomem(diag);
  for (uint32_t v = 0; ok && v < graph->n_values && f.n_steps < MAX_STEPS; v++) {
    if (!is_source(planner, v)) continue;
    psplit_i_tie tie = {v, psplit_i_planner_weight_bytes(planner, v), (uint32_t)out->users.n, 0};
    if (tie.bytes < PSPLIT_I_TIED_BYTES) continue;
    ok = append_users(&f, v);
    tie.n_users = (uint32_t)out->users.n - tie.first_user;
    if (tie.n_users < 2)
      out->users.n = tie.first_user;
    else
      ok = ok && psplit_i_vec_push(&out->weights, tie);
  }
  psplit_i_vec_fini(&f.open);
  if (!ok) return psplit_i_nomem(diag);
  if (out->weights.n)
    qsort(out->weights.items, out->weights.n, sizeof *out->weights.items, compare_ties);
  return PSPLIT_OK;
}

void psplit_i_tied_weights_fini(psplit_i_tied_weights *ties) {
  psplit_i_vec_fini(&ties->weights);
  psplit_i_vec_fini(&ties->users);
}

bool psplit_i_tie_is_cut(const psplit_planner *planner, const psplit_i_tied_weights *ties,
                         uint32_t tie) {
  const psplit_i_tie *weight = &ties->weights.items[tie];
  const uint32_t *users = ties->users.items + weight->first_user;
  for (uint32_t k = 1; k < weight->n_users; k++)
    if (planner->stage[users[k]] != planner->stage[users[0]]) return true;
  return false;
}

psplit_code psplit_i_tied_weights_join(psplit_i_builder *b, const psplit_i_tied_weights *ties,
                                       const uint8_t *joined) {
  const uint32_t n_groups = b->n_groups, n_classes = psplit_i_builder_n_together(b->planner);
  uint32_t *parent = psplit_i_arena_array(b->arena, n_groups, sizeof *parent);
  uint32_t *first = psplit_i_arena_array(b->arena, n_classes, sizeof *first);
  if (!parent || !first) return psplit_i_nomem(b->diag);
  for (uint32_t c = 0; c < n_classes; c++) first[c] = PSPLIT_NONE;
  for (uint32_t g = 0; g < n_groups; g++) parent[g] = g;
  for (uint32_t g = 0; g < n_groups; g++) {
    if (b->together[g] == PSPLIT_NONE) continue;
    uint32_t *known = &first[b->together[g]];
    if (*known == PSPLIT_NONE) *known = g;
    psplit_i_unite(parent, *known, g);
  }
  for (size_t w = 0; w < ties->weights.n; w++) {
    if (!joined[w]) continue;
    const psplit_i_tie *weight = &ties->weights.items[w];
    const uint32_t *users = ties->users.items + weight->first_user;
    for (uint32_t k = 1; k < weight->n_users; k++)
      psplit_i_unite(parent, b->group[users[0]], b->group[users[k]]);
  }
  for (uint32_t g = 0; g < n_groups; g++) b->together[g] = psplit_i_find(parent, g);
  return psplit_i_builder_share(b, n_groups);
}

/* The bound of a split with joined users holds for such splits only, so the bound of the other
 * split is used. */
static psplit_code take_bound(psplit_planner *planner, const psplit_solution *from,
                              psplit_diag *diag) {
  psplit_solution *to = planner->solution;
  to->lower_bound_ns = from->lower_bound_ns;
  to->bound = from->bound;
  to->proved_optimal = to->objective_ns == to->lower_bound_ns;
  to->ties_proved = false;
  return psplit_i_plan_make(planner, diag);
}

/* The value of the split by its plan. */
static psplit_code value_of(psplit_planner *planner, psplit_diag *diag, int64_t *out) {
  const psplit_code code = planner->plan ? PSPLIT_OK : psplit_i_plan_make(planner, diag);
  if (code == PSPLIT_OK) *out = planner->plan->value_ns;
  return code;
}

/* If the split duplicates weights, looks for an equally good one that does not. */
static psplit_code prefer_together(psplit_planner *planner, const psplit_i_tied_weights *ties,
                                   uint8_t *joined, psplit_i_cutter cut, void *user,
                                   psplit_diag *diag) {
  bool any = false;
  for (uint32_t w = 0; w < ties->weights.n; w++)
    any |= joined[w] = psplit_i_tie_is_cut(planner, ties, w);
  if (!any) return PSPLIT_OK;
  psplit_i_laid_aside apart;
  psplit_diag why_not = {0};
  int64_t value, together;
  psplit_code made = value_of(planner, diag, &value);
  if (made != PSPLIT_OK) return made;
  if (!psplit_i_lay_aside(planner, &apart)) return psplit_i_nomem(diag);
  const psplit_code code = cut(user, joined, PSPLIT_I_CUT_SAME, &why_not);
  if (code == PSPLIT_OK) made = value_of(planner, diag, &together);
  if (made != PSPLIT_OK) {
    psplit_solution_destroy(apart.solution);
    return made;
  }
  if (code == PSPLIT_OK && together <= value) {
    const psplit_code bound_code =
      planner->solution && apart.solution ? take_bound(planner, apart.solution, diag) : PSPLIT_OK;
    psplit_solution_destroy(apart.solution);
    return bound_code;
  }
  if (!psplit_i_take_back(planner, &apart)) return psplit_i_nomem(diag);
  return code == PSPLIT_OK || code == PSPLIT_INFEASIBLE ? PSPLIT_OK
                                                        : psplit_i_fail_as(diag, &why_not);
}

/* Finds the weight that makes the problem infeasible: in order of decreasing size, the first that
 * cannot be joined along with those before it. Leaves the error unchanged if there is no split even
 * without joins. */
static psplit_code blame(psplit_planner *planner, const psplit_i_tied_weights *ties,
                         uint8_t *joined, psplit_i_cutter cut, void *user, psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  /* numbers of weights that can be joined, and that cannot */
  size_t good = 0, bad = ties->weights.n;
  memset(joined, 0, ties->weights.n);
  psplit_diag ignored = {0};
  psplit_code code = cut(user, joined, PSPLIT_I_CUT_ANY, &ignored);
  while (code == PSPLIT_OK && bad - good > 1) {
    const size_t middle = good + (bad - good) / 2;
    for (size_t w = 0; w < ties->weights.n; w++) joined[w] = w < middle;
    ignored = (psplit_diag){0};
    code = cut(user, joined, PSPLIT_I_CUT_ANY, &ignored);
    if (code == PSPLIT_OK) good = middle;
    if (code == PSPLIT_INFEASIBLE) {
      bad = middle;
      code = PSPLIT_OK;
    }
  }
  if (code != PSPLIT_OK) return PSPLIT_INFEASIBLE;
  const psplit_i_tie *weight = &ties->weights.items[good];
  const uint32_t *users = ties->users.items + weight->first_user;
  char first[128], last[128];
  *diag = (psplit_diag){0};
  return psplit_i_fail_about(
    diag, PSPLIT_INFEASIBLE, PSPLIT_I_HELPS(TIED_DUPLICATE),
    "weight \"%s\" (%" PRIu64 " bytes) is used by %" PRIu32
    " nodes, %s and %s among them; with "
    "these on one stage there is no split into %" PRIu32,
    graph->values[weight->value].name, weight->bytes, weight->n_users,
    psplit_i_node_label(graph, users[0], first, sizeof first),
    psplit_i_node_label(graph, users[weight->n_users - 1], last, sizeof last),
    planner->options.n_stages);
}

psplit_code psplit_i_tied_weights_settle(psplit_planner *planner, const psplit_i_tied_weights *ties,
                                         psplit_i_cutter cut, void *user, psplit_diag *diag) {
  uint8_t *joined = PSPLIT_NEW(&planner->arena, uint8_t, ties->weights.n);
  if (!joined) return psplit_i_nomem(diag);
  const psplit_tied_weights mode = planner->options.tied_weights;
  if (mode == PSPLIT_TIED_TOGETHER && ties->weights.n) memset(joined, 1, ties->weights.n);
  psplit_code code = cut(user, joined, PSPLIT_I_CUT, diag);
  if (code == PSPLIT_OK && mode == PSPLIT_TIED_AUTO)
    code = prefer_together(planner, ties, joined, cut, user, diag);
  if (code == PSPLIT_INFEASIBLE && mode == PSPLIT_TIED_TOGETHER && ties->weights.n)
    code = blame(planner, ties, joined, cut, user, diag);
  return code;
}
