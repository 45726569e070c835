/* needs: costs, live, groups  keeps: everything but stages  breaks: nothing
 *
 * Merges groups until at most max_nodes are left. First those that some best split keeps together
 * (partition/reduce.c, which proves it): this loses nothing. Then, where they are still too many,
 * in linear rounds that cannot make a cycle:
 *   vertical    Levels are taken in bands of two. Within a band, edges go from its lower to its
 *               upper level only. A group of the upper level joins its one predecessor in the band,
 *               or a group of the lower level its one successor: the first kind of cluster is
 *               entered from the band through its root alone, which nothing in the band enters, the
 *               second is left by no edge of the band; so no cycle of clusters exists within a
 *               band, and between bands edges only go up.
 *   horizontal  Groups of one level have no path between them, and a cluster of one level leaves
 *               every edge going up.
 * A cluster stops growing at a small multiple of the average weight it would have in the end, so
 * that the partitioner keeps its choice.
 * Source of the band argument: Herrmann et al., "Multilevel algorithms for acyclic partitioning of
 * directed acyclic graphs", SIAM J. Sci. Comput. 41(4), 2019, section 4.1. */
#include <inttypes.h>
#include <string.h>

#include "builder.h"
#include "pass.h"
#include "plan_budget.h"
#include "quotient.h"

enum { OPTION_MAX_NODES, OPTION_EXACT };

/* What a group has become part of; the two kinds of vertical cluster do not mix. */
enum { SINGLE, ENTERED_AT_ROOT, LEFT_AT_ROOT };

/* Clusters under construction: every group points to its root. */
typedef struct clusters {
  const psplit_i_quotient *q;
  uint32_t *root;  /* [n] */
  int64_t *ns;     /* [n] at the root */
  uint32_t *pin;   /* [n] at the root */
  uint8_t *part;   /* [n] SINGLE, ... */
  uint32_t n_left; /* clusters, singles included */
  uint32_t max_nodes;
  int64_t max_ns;
} clusters;

static bool start(clusters *c, const psplit_i_quotient *q, uint32_t max_nodes, int64_t max_ns,
                  psplit_i_arena *arena) {
  *c = (clusters){.q = q, .n_left = q->n, .max_nodes = max_nodes, .max_ns = max_ns};
  c->root = psplit_i_arena_array(arena, q->n, sizeof *c->root);
  c->ns = psplit_i_arena_array(arena, q->n, sizeof *c->ns);
  c->pin = psplit_i_arena_array(arena, q->n, sizeof *c->pin);
  c->part = PSPLIT_NEW(arena, uint8_t, q->n);
  if (!c->root || !c->ns || !c->pin || !c->part) return false;
  for (uint32_t g = 0; g < q->n; g++) c->root[g] = g;
  memcpy(c->ns, q->ns, q->n * sizeof *c->ns);
  memcpy(c->pin, q->pin, q->n * sizeof *c->pin);
  return true;
}

/* Puts the single `g` into the cluster of `root` if weight and pins allow. */
static bool join(clusters *c, uint32_t g, uint32_t root) {
  const int64_t sum_ns = psplit_i_sat_add_i64(c->ns[root], c->q->ns[g]);
  const uint32_t pin = c->q->pin[g];
  if (c->n_left <= c->max_nodes || sum_ns > c->max_ns ||
      (pin != PSPLIT_NONE && c->pin[root] != PSPLIT_NONE && pin != c->pin[root]))
    return false;
  c->root[g] = root;
  c->ns[root] = sum_ns;
  if (pin != PSPLIT_NONE) c->pin[root] = pin;
  c->n_left--;
  return true;
}

/* The one neighbour at `level`, or PSPLIT_NONE if there are several or none. */
static uint32_t only_at_level(const psplit_i_quotient *q, const uint32_t *list, uint32_t n,
                              uint32_t level) {
  uint32_t found = PSPLIT_NONE;
  for (uint32_t i = 0; i < n; i++) {
    if (q->level[list[i]] != level) continue;
    if (found != PSPLIT_NONE) return PSPLIT_NONE;
    found = list[i];
  }
  return found;
}

/* Bands are levels (2i, 2i + 1) for parity 0, (2i - 1, 2i) for parity 1. */
static void match_vertically(clusters *c, uint32_t parity) {
  const psplit_i_quotient *q = c->q;
  for (uint32_t i = 0; i < q->n; i++) {
    const uint32_t g = q->order[i];
    if (c->part[g] != SINGLE) continue;
    const bool upper = (q->level[g] + parity) % 2 == 1;
    if (upper && q->level[g] > 0) {
      const uint32_t u = only_at_level(q, q->pred + q->pred_off[g],
                                       q->pred_off[g + 1] - q->pred_off[g], q->level[g] - 1);
      if (u != PSPLIT_NONE && c->part[u] != LEFT_AT_ROOT && c->root[u] == u && join(c, g, u))
        c->part[g] = c->part[u] = ENTERED_AT_ROOT;
    } else if (!upper) {
      const uint32_t v = only_at_level(q, q->succ + q->succ_off[g],
                                       q->succ_off[g + 1] - q->succ_off[g], q->level[g] + 1);
      if (v != PSPLIT_NONE && c->part[v] != ENTERED_AT_ROOT && c->root[v] == v && join(c, g, v))
        c->part[g] = c->part[v] = LEFT_AT_ROOT;
    }
  }
}

/* The neighbour it shares most bytes with: a predecessor, or a successor where it has none. */
static uint32_t dearest_neighbour(const psplit_i_quotient *q, uint32_t g) {
  const bool forwards = q->pred_off[g] == q->pred_off[g + 1];
  const uint32_t *off = forwards ? q->succ_off : q->pred_off;
  const uint32_t *list = forwards ? q->succ : q->pred;
  const uint64_t *bytes = forwards ? q->succ_bytes : q->pred_bytes;
  if (off[g] == off[g + 1]) return PSPLIT_NONE;
  uint32_t best = off[g];
  for (uint32_t e = off[g] + 1; e < off[g + 1]; e++)
    if (bytes[e] > bytes[best]) best = e;
  return list[best];
}

/* Pairs groups of a level that share their dearest neighbour; with `any`, whichever come together.
 */
static bool match_horizontally(clusters *c, bool any, psplit_i_arena *arena) {
  const psplit_i_quotient *q = c->q;
  /* [n] the last single that waits for a partner at this neighbour, or at this level */
  uint32_t *waiting = psplit_i_arena_array(arena, q->n, sizeof *waiting);
  if (!waiting) return false;
  for (uint32_t g = 0; g < q->n; g++) waiting[g] = PSPLIT_NONE;
  for (uint32_t i = 0; i < q->n; i++) {
    const uint32_t g = q->order[i];
    const uint32_t key = any ? q->level[g] : dearest_neighbour(q, g);
    if (key == PSPLIT_NONE) continue;
    const uint32_t partner = waiting[key];
    if (partner != PSPLIT_NONE && q->level[partner] == q->level[g] && join(c, g, partner))
      waiting[key] = PSPLIT_NONE;
    else
      waiting[key] = g;
  }
  return true;
}

typedef enum round_kind { EVEN_BANDS, ODD_BANDS, SIBLINGS, ANY_SIBLINGS, N_ROUND_KINDS } round_kind;

/* A series of rounds. */
typedef struct series {
  psplit_i_quotient q;      /* after the last round; lives in arenas[at] */
  psplit_i_arena arenas[2]; /* the quotient at hand, and the next one */
  unsigned at;
  uint32_t n_first;
  uint32_t *label; /* [n_first] group of the first quotient -> group of q */
  uint32_t max_nodes;
  int64_t max_ns;
} series;

/* One round: matches, contracts, renames. Leaves the series as it was where nothing matches. */
static psplit_code run_round(series *s, round_kind kind, psplit_diag *diag) {
  clusters c;
  psplit_i_arena *arena = &s->arenas[1 - s->at];
  psplit_i_arena_reset(arena);
  if (!start(&c, &s->q, s->max_nodes, s->max_ns, arena)) return psplit_i_nomem(diag);
  if (kind == EVEN_BANDS || kind == ODD_BANDS)
    match_vertically(&c, kind == ODD_BANDS);
  else if (!match_horizontally(&c, kind == ANY_SIBLINGS, arena))
    return psplit_i_nomem(diag);
  if (c.n_left == s->q.n) return PSPLIT_OK;
  uint32_t *label = psplit_i_arena_array(arena, s->q.n, sizeof *label);
  if (!label) return psplit_i_nomem(diag);
  uint32_t n_labels = 0;
  for (uint32_t i = 0; i < s->q.n; i++)
    if (c.root[s->q.order[i]] == s->q.order[i]) label[s->q.order[i]] = n_labels++;
  for (uint32_t g = 0; g < s->q.n; g++) label[g] = label[c.root[g]];
  psplit_i_quotient coarse;
  if (!psplit_i_quotient_contract(&s->q, label, n_labels, arena, &coarse))
    return psplit_i_nomem(diag);
  for (uint32_t g = 0; g < s->n_first; g++) s->label[g] = label[s->label[g]];
  s->q = coarse;
  s->at = 1 - s->at;
  return PSPLIT_OK;
}

static psplit_code run_series(series *s, int64_t total_ns, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  s->max_ns = total_ns / s->max_nodes * 2 + 1;
  while (s->q.n > s->max_nodes) {
    const uint32_t before = s->q.n;
    for (round_kind kind = EVEN_BANDS; kind < N_ROUND_KINDS && s->q.n > s->max_nodes; kind++) {
      /* Unrelated siblings are the last resort. */
      if (kind == ANY_SIBLINGS && before - s->q.n > before / 10) break;
      PSPLIT_TRY(run_round(s, kind, diag));
    }
    if (before - s->q.n > before / 20) continue;
    if (s->q.n == before && s->max_ns > total_ns) break;
    s->max_ns = s->max_ns > total_ns / 2 ? total_ns + 1 : s->max_ns * 2;
  }
out:
  return code;
}

/* Whether memory may rule splits out: then what is best without it says little. Half of a device is
 * left for what a plan counts besides the model's own bytes. */
static bool memory_may_bind(const psplit_planner *planner) {
  uint64_t total = 0;
  for (uint32_t v = 0; v < planner->graph->n_values; v++)
    total = psplit_i_sat_add_u64(total, psplit_i_planner_weight_bytes(planner, v));
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    total = psplit_i_sat_add_u64(total, psplit_i_node_inner_bytes(planner->graph, n));
  for (uint32_t s = 0; s < planner->options.n_stages; s++)
    if (total > psplit_devices_memory_bytes(planner->devices, s) / 2) return true;
  return false;
}

/* Merges what some best split keeps together. The bounds on a cut must hold for all the groups that
 * `partition` will see, so this comes before anything that loses. */
static psplit_code reduce_exactly(psplit_planner *planner, psplit_diag *diag) {
  static const double SHARE = 0.1; /* of the limit; `partition` reduces again what is left */
  psplit_code code;
  psplit_problem problem;
  psplit_partition_options options;
  uint32_t *group;
  psplit_i_partition_options(planner, SHARE, &options);
  if (options.objective != PSPLIT_THROUGHPUT || planner->options.n_stages == 1 ||
      planner->grouping.n_groups < planner->options.n_stages || memory_may_bind(planner) ||
      planner->next_hop || planner->options.tied_weights == PSPLIT_TIED_TOGETHER)
    return PSPLIT_OK;
  if (planner->options.max_segments > 1) return PSPLIT_OK;
  if (planner->order_is_free) { /* what holds for all orders: where no link is like no other */
    psplit_i_links links;
    if (planner->n_candidates > planner->options.n_stages) return PSPLIT_OK;
    PSPLIT_TRY(psplit_i_links_find(planner, true, &planner->scratch, diag, &links));
    if (links.n != 1) goto out;
  }
  PSPLIT_TRY(psplit_i_problem_make(planner, diag, &problem, &group));
  uint32_t *label = psplit_i_arena_array(&planner->scratch, problem.n_nodes, sizeof *label),
           n_labels;
  if (!label) PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_diag ignored = {0}; /* where demands contradict each other, `partition` says so */
  code = psplit_i_plan_reduce(planner, &problem, &options, &ignored, label, &n_labels);
  if (code != PSPLIT_OK && code != PSPLIT_INFEASIBLE) code = psplit_i_fail_as(diag, &ignored);
  if (code != PSPLIT_OK) goto out;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (group[n] != PSPLIT_NONE) group[n] = label[group[n]];
  psplit_i_grouping_assign(&planner->grouping, group, n_labels);
out:
  psplit_i_arena_reset(&planner->scratch);
  return code == PSPLIT_INFEASIBLE ? PSPLIT_OK : code;
}

static psplit_code merge_down(psplit_planner *planner, uint32_t max_nodes, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t n_nodes = planner->graph->n_nodes;
  series s = {.n_first = planner->grouping.n_groups, .max_nodes = max_nodes};
  psplit_i_arena_init(&s.arenas[0], 0);
  psplit_i_arena_init(&s.arenas[1], 0);
  uint32_t *group = psplit_i_arena_array(&planner->scratch, n_nodes, sizeof *group);
  uint32_t *rank = psplit_i_arena_array(&planner->scratch, s.n_first, sizeof *rank);
  s.label = psplit_i_arena_array(&planner->scratch, s.n_first, sizeof *s.label);
  if (planner->scratch.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_i_grouping_number(&planner->grouping, group);
  for (uint32_t g = 0; g < s.n_first; g++) s.label[g] = g;
  if (!psplit_i_quotient_make(planner, group, &s.arenas[0], &s.q))
    PSPLIT_FAIL(psplit_i_nomem(diag));
  int64_t total_ns = 0;
  for (uint32_t g = 0; g < s.q.n; g++) total_ns = psplit_i_sat_add_i64(total_ns, s.q.ns[g]);
  PSPLIT_TRY(run_series(&s, total_ns, diag));
  if (s.q.n > s.max_nodes)
    psplit_i_say(planner->options.logger, PSPLIT_NOTE,
                 "coarsening stopped at %" PRIu32 " supernodes: pins keep the others apart", s.q.n);
  for (uint32_t i = 0; i < s.q.n; i++) rank[s.q.order[i]] = i;
  for (uint32_t n = 0; n < n_nodes; n++)
    if (group[n] != PSPLIT_NONE) group[n] = rank[s.label[group[n]]];
  psplit_i_grouping_assign(&planner->grouping, group, s.q.n);
  planner->coarsened = true;
out:
  psplit_i_arena_fini(&s.arenas[0]);
  psplit_i_arena_fini(&s.arenas[1]);
  return code;
}

enum { FEW_TIMES = 20 };

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t max_nodes = (uint32_t)values[OPTION_MAX_NODES].integer;
  /* Where twenty groups and more become one, what merges for nothing makes no difference. */
  const bool worth_it =
    planner->grouping.n_groups > max_nodes && planner->grouping.n_groups / FEW_TIMES <= max_nodes;
  if (values[OPTION_EXACT].boolean || worth_it) PSPLIT_TRY(reduce_exactly(planner, diag));
  if (planner->grouping.n_groups > max_nodes) PSPLIT_TRY(merge_down(planner, max_nodes, diag));
out:
  return code;
}

static const psplit_i_option OPTIONS[] = {
  [OPTION_MAX_NODES] = {"max_nodes", PSPLIT_I_OPTION_INT, "10000", 1, 4e9,
                        "maximum number of supernodes that are left"},
  [OPTION_EXACT] = {"exact", PSPLIT_I_OPTION_BOOL, "false", 0, 0,
                    "apply lossless merges even below max_nodes"},
};

const psplit_i_pass psplit_i_pass_coarsen = {
  .name = "coarsen",
  .help = "merge supernodes until at most max_nodes are left",
  .needs = PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS,
  .keeps = ~(unsigned)PSPLIT_I_FACT_STAGES,
  .options = OPTIONS,
  .n_options = sizeof OPTIONS / sizeof *OPTIONS,
  .run = run,
};
