/* Multilevel annealing: pairs of neighbouring clusters with the same label are contracted
 * repeatedly. The coarsest level is annealed first, where one move affects many clusters, then
 * finer levels at lower temperatures. */
#include <math.h>
#include <string.h>

#include "annealing.h"
#include "budget.h"
#include "instance.h"
#include "label_annealing.h"
#include "multilevel_annealing.h"
#include "problem.h"
#include "result.h"
#include "union_find.h"

enum {
  N_CHAINS = PSPLIT_I_ANNEAL_CHAINS,
  CYCLES = 4, /* of a chain, before chains share their best */
  MOST_LEVELS = 14,
  MOST_PINS = 64,        /* of nets that bring clusters together */
  MOST_CLUSTERS = 20000, /* above: one level */
  WIDE = 2000,           /* clusters from which on cycles are kept out of what is united */
};
/* Hottest temperatures of the chains. */
static const double HEAT[N_CHAINS] = {0.03, 0.1, 0.3, 1};
static const double HOT_LOAD = 3e-3, HOT_LATENCY = 0.1, COLD = 1e-5;
/* Stages in a row that begin as one in a chain. What is parallel needs devices beside those that
 * wait for each other. */
static const uint32_t MERGED[N_CHAINS] = {1, 2, 3, UINT32_MAX};

/* The pairs that may be contracted. If partners are on the same level, or one has no other
 * neighbour on the side of its partner, everything that enters an aggregate precedes everything
 * that leaves it, so no cycle of aggregates arises. On wide graphs, contracting arbitrary pairs
 * would end in a few aggregates of everything. */
typedef enum join { ANY, OF_ONE_DEPTH, NEXT } join;

typedef struct matching {
  uint32_t *first_node, *order; /* [n] */
  double *score;                /* [n] what the cluster shares with each other one */
  uint32_t *near, n_near;       /* [n] those with a score */
  bool *taken;                  /* [n] */
  uint32_t *depth;              /* [n] of the longest path to it */
  join join;
} matching;

static bool only(uint32_t a, uint32_t b, const psplit_i_instance *instance) {
  return (instance->succ_off[a + 1] - instance->succ_off[a] == 1 &&
          instance->succ[instance->succ_off[a]] == b) ||
         (instance->pred_off[b + 1] - instance->pred_off[b] == 1 &&
          instance->pred[instance->pred_off[b]] == a);
}

static bool may_join(const psplit_i_instance *instance, const matching *m, uint32_t a, uint32_t b) {
  if (m->join == ANY) return true;
  if (m->join == OF_ONE_DEPTH) return m->depth[a] == m->depth[b];
  return only(a, b, instance) || only(b, a, instance);
}

static void find_depths(const psplit_i_instance *instance, uint32_t *depth) {
  for (uint32_t v = 0; v < instance->n; v++)
    for (uint32_t l = instance->pred_off[v]; l < instance->pred_off[v + 1]; l++)
      if (depth[instance->pred[l]] >= depth[v]) depth[v] = depth[instance->pred[l]] + 1;
}

/* The free neighbour with v's label that shares most with v in relation to their weight, or
 * NONE. */
static uint32_t partner(const psplit_i_instance *instance, const uint32_t *label, uint32_t type,
                        int64_t most, uint32_t v, matching *m) {
  const int64_t *w = instance->w + (size_t)type * instance->n;
  uint32_t best = PSPLIT_NONE;
  double top = 0;
  for (uint32_t l = instance->inc_off[v]; l < instance->inc_off[v + 1]; l++) {
    const uint32_t e = instance->inc[l] >> 1,
                   n_pins = instance->net_off[e + 1] - instance->net_off[e];
    const size_t cell = (size_t)type * instance->n_nets + e;
    if (n_pins > MOST_PINS) continue;
    /* Nets without cost still indicate which clusters belong together. */
    const double cost = 1e-9 + (double)(instance->send[cell] + instance->recv[cell]);
    for (uint32_t k = instance->net_off[e]; k < instance->net_off[e + 1]; k++) {
      const uint32_t u = instance->net_pin[k];
      if (u == v || m->taken[u] || !may_join(instance, m, u, v) || label[u] != label[v] ||
          w[u] + w[v] > most)
        continue;
      if (m->score[u] == 0) m->near[m->n_near++] = u;
      m->score[u] += cost / (n_pins - 1);
    }
  }
  for (; m->n_near > 0; m->n_near--) {
    const uint32_t u = m->near[m->n_near - 1];
    const double score = m->score[u] / ((double)w[u] + (double)w[v] + 1);
    m->score[u] = 0;
    if (score > top) top = score, best = u;
  }
  return best;
}

/* Contracts pairs in parent[n_nodes], visiting clusters in random order. No aggregate is heavier
 * than `most`. */
static psplit_code match(const psplit_i_instance *instance, const uint32_t *label,
                         const uint32_t *types, int64_t most, uint64_t seed, join how,
                         uint32_t *parent) {
  const uint32_t n = instance->n;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code;
  matching m = {.first_node = PSPLIT_NEW(&arena, uint32_t, n),
                .order = PSPLIT_NEW(&arena, uint32_t, n),
                .score = PSPLIT_NEW(&arena, double, n),
                .near = PSPLIT_NEW(&arena, uint32_t, n),
                .taken = PSPLIT_NEW(&arena, bool, n),
                .depth = PSPLIT_NEW(&arena, uint32_t, n),
                .join = how};
  PSPLIT_TRY(m.first_node && m.order && m.score && m.near && m.taken && m.depth ? PSPLIT_OK
                                                                                : PSPLIT_NOMEM);
  if (how == OF_ONE_DEPTH) find_depths(instance, m.depth);
  for (uint32_t v = instance->problem->n_nodes; v-- > 0;)
    m.first_node[instance->cluster_of_node[v]] = v;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t j = (uint32_t)(psplit_i_splitmix64(seed, i) % (i + 1));
    m.order[i] = m.order[j];
    m.order[j] = i;
  }
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t v = m.order[i];
    if (m.taken[v]) continue;
    const uint32_t u = partner(instance, label, types[label[v] % instance->n_stages], most, v, &m);
    if (u == PSPLIT_NONE) continue;
    m.taken[v] = m.taken[u] = true;
    psplit_i_unite(parent, m.first_node[v], m.first_node[u]);
  }
out:
  psplit_i_arena_fini(&arena);
  return code;
}

/* The state of one chain. */
typedef struct cycler {
  const psplit_i_placement_task *task; /* of the finest level */
  const psplit_i_instance *fine;
  psplit_i_budget *budget;
  uint32_t n_levels;
  uint64_t n_steps;
  double hot;
  bool wide;
  bool in_groups;                        /* of psplit_i_cooling */
  uint32_t merged;                       /* stages in a row that begin as one */
  psplit_i_instance levels[MOST_LEVELS]; /* finest first, without `fine` */
  uint32_t *label;                       /* [fine->n] */
  uint32_t *best, *own, *parent;         /* [n_nodes] labels, and union-find */
  int64_t value;                         /* of best */
  psplit_code code;
} cycler;

static void labels_by_cluster(const cycler *c, const psplit_i_instance *instance) {
  for (uint32_t v = instance->problem->n_nodes; v-- > 0;)
    c->label[instance->cluster_of_node[v]] = c->own[v];
}

/* Builds coarser and coarser levels, with aggregates of at most 1/parts of a device's share
 * each. */
static psplit_code build_levels(cycler *c, uint32_t parts, uint64_t seed) {
  const psplit_i_instance *instance = c->fine;
  psplit_diag ignored = {0};
  if (instance->n > MOST_CLUSTERS) return PSPLIT_OK;
  int64_t total = 0;
  for (uint32_t v = 0; v < instance->n; v++)
    if (instance->w[v] < PSPLIT_I_INF) total += instance->w[v];
  const int64_t most = total / instance->n_stages / parts;
  bool was_few = false;
  while (c->n_levels < MOST_LEVELS) {
    psplit_i_instance *next = &c->levels[c->n_levels];
    labels_by_cluster(c, instance);
    const join how = !c->wide ? ANY : c->n_levels % 2 ? NEXT : OF_ONE_DEPTH;
    psplit_code code =
      match(instance, c->label, c->task->types, most, seed + c->n_levels, how, c->parent);
    if (code == PSPLIT_OK)
      code = instance->unordered
               ? psplit_i_instance_init_unordered(next, instance->problem, c->parent, &ignored)
               : psplit_i_instance_init(next, instance->problem, c->parent, &ignored);
    if (code != PSPLIT_OK) return code;
    psplit_i_spend(
      c->budget, 16 * ((uint64_t)instance->problem->n_nodes + instance->net_off[instance->n_nets]));
    c->n_levels++;
    const bool few = next->n > instance->n - instance->n / 6;
    if (few && (!c->wide || was_few)) break;
    was_few = few;
    instance = next;
  }
  return PSPLIT_OK;
}

/* Anneals all levels from the coarsest to the finest, in place in c->own. */
static psplit_code descend(cycler *c, uint64_t seed, int64_t *out_value) {
  const uint32_t n_nodes = c->fine->problem->n_nodes;
  const double fall = pow(COLD / c->hot, 1.0 / (c->n_levels + 1));
  double hot = c->hot;
  for (uint32_t level = c->n_levels + 1; level-- > 0;) {
    const psplit_i_instance *instance = level == 0 ? c->fine : &c->levels[level - 1];
    /* Finer levels start warmer than coarser ones ended, with a higher power. */
    const psplit_i_cooling cooling = {.seed = seed + level,
                                      .n_steps = c->n_steps / (c->n_levels + 1),
                                      .hot = level == 0 ? 2 * hot : hot,
                                      .cold = level == 0 ? COLD : hot * fall,
                                      .n_squares = level == 0  ? 4
                                                   : level < 3 ? 3
                                                               : 2,
                                      .in_groups = c->in_groups,
                                      .leave = true};
    labels_by_cluster(c, instance);
    psplit_i_budget part = psplit_i_budget_beside(c->budget, level + 1); /* all get colder */
    psplit_i_placement_task task = *c->task;
    task.instance = instance;
    const psplit_code code =
      psplit_i_anneal_labels_once(&task, &cooling, &part, c->label, out_value);
    psplit_i_spend(c->budget, part.spent);
    if (code != PSPLIT_OK) return code;
    for (uint32_t v = 0; v < n_nodes; v++) c->own[v] = c->label[instance->cluster_of_node[v]];
    hot *= fall;
  }
  return PSPLIT_OK;
}

/* One descent over new levels from c->best, which is replaced if the result is better. */
static psplit_code cycle(cycler *c, const uint32_t *parent, uint64_t seed, uint32_t parts) {
  const size_t bytes = c->fine->problem->n_nodes * sizeof *c->own;
  int64_t value = c->value;
  memcpy(c->own, c->best, bytes);
  for (uint32_t v = 0; c->merged > 1 && v < c->fine->problem->n_nodes; v++)
    c->own[v] = c->own[v] / c->merged * c->merged;
  memcpy(c->parent, parent, bytes);
  psplit_code code = build_levels(c, parts, seed);
  if (code == PSPLIT_OK) code = descend(c, psplit_i_mix64(seed), &value);
  if (code == PSPLIT_OK && value < c->value) {
    c->value = value;
    memcpy(c->best, c->own, bytes);
  }
  for (; c->n_levels > 0; c->n_levels--) psplit_i_instance_fini(&c->levels[c->n_levels - 1]);
  return code;
}

static psplit_code run(cycler *c, const uint32_t *parent, uint64_t seed) {
  static const uint32_t parts[] = {2, 4, 16};
  psplit_code code = PSPLIT_OK;
  for (uint32_t r = 0; r < CYCLES && code == PSPLIT_OK; r++) {
    if (psplit_i_expired(c->budget)) break;
    code = cycle(c, parent, psplit_i_splitmix64(seed, r), parts[r % 3]);
    c->merged = 0;
  }
  return code;
}

typedef struct cyclers {
  cycler *chains;
  const uint32_t *parent;
  uint64_t seed;
} cyclers;

static void run_one(void *with, size_t i, int thread) {
  const cyclers *all = with;
  (void)thread;
  all->chains[i].code = run(&all->chains[i], all->parent, psplit_i_splitmix64(all->seed, i));
}

psplit_code psplit_i_anneal_multilevel(const psplit_i_placement_task *task, const uint32_t *parent,
                                       uint64_t salt, uint64_t n_steps, uint32_t *node_label,
                                       int64_t *inout_value) {
  const psplit_i_instance *instance = task->instance;
  const psplit_i_solver_request *request = task->request;
  const uint32_t n = instance->problem->n_nodes;
  const bool latency = request->options->objective == PSPLIT_LATENCY;
  const bool wide = latency && instance->n >= WIDE;
  const bool plain = wide && instance->n_types == 1 && !instance->has_memory &&
                     !instance->has_pins && !request->options->require_nonempty;
  psplit_code code;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_budget budgets[N_CHAINS];
  cycler *chains = PSPLIT_NEW(&arena, cycler, N_CHAINS);
  PSPLIT_TRY(chains ? PSPLIT_OK : PSPLIT_NOMEM);
  for (uint32_t i = 0; i < N_CHAINS; i++) {
    cycler *c = &chains[i];
    *c =
      (cycler){.task = task,
               .fine = instance,
               .budget = &budgets[i],
               .n_steps = n_steps,
               .wide = wide,
               .in_groups = task->chunks > 1 && i % 2 == 0, /* either finds what the other misses */
               .merged = plain && salt == 0 ? MERGED[i] : 0,
               .hot = HEAT[i] * (latency ? HOT_LATENCY : HOT_LOAD),
               .label = PSPLIT_NEW(&arena, uint32_t, instance->n),
               .best = PSPLIT_NEW(&arena, uint32_t, n),
               .own = PSPLIT_NEW(&arena, uint32_t, n),
               .parent = PSPLIT_NEW(&arena, uint32_t, n),
               .value = *inout_value};
    PSPLIT_TRY(c->label && c->best && c->own && c->parent ? PSPLIT_OK : PSPLIT_NOMEM);
    memcpy(c->best, node_label, n * sizeof *node_label);
  }
  const uint64_t seed = psplit_i_mix64(request->options->seed * 0x9e3779b1 + salt);
  cyclers all = {chains, parent, seed};
  psplit_i_anneal_chains(request, budgets, run_one, &all);
  for (uint32_t i = 0; i < N_CHAINS; i++) {
    PSPLIT_TRY(chains[i].code);
    if (chains[i].value >= *inout_value) continue;
    *inout_value = chains[i].value;
    memcpy(node_label, chains[i].best, n * sizeof *node_label);
  }
out:
  psplit_i_arena_fini(&arena);
  return code;
}
