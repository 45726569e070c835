/* Chains-on-chains partitioning: is a bottleneck T feasible? Let f(b) be the least number of stages
 * in front of a cut before cluster b. Since empty stages are permitted, fewer stages are never
 * worse, so
 *
 *   f(b) = 1 + min f(a)  over a < b with load [a, b) <= T
 *
 * and the load is the sum of a part of each end, P(b) + left(b) and right(a) - P(a). For each
 * number of stages it suffices to know the cut with the largest P(a) - right(a). Cuts whose stages
 * have grown beyond T even without sending are never needed again, so one pass decides.
 *
 * Source: probing, as for chains without communication (Pinar and Aykanat, "Fast optimal load
 * balancing algorithms for 1D partitioning", JPDC 64(8), 2004); the separation by ends is this
 * project's. */
#include "chain.h"

#include "cancel.h"
#include "problem.h"

typedef struct chain {
  uint32_t n, n_stages;
  bool overlap;
  int64_t *before; /* [n + 1] time of the clusters in front of a cut */
  /* [n + 1] cost of a cut for the stage in front of it, and for the one behind */
  int64_t *left, *right;
  uint32_t *fewest; /* [n + 1] least number of stages in front of a cut */
  uint32_t *from;   /* [n + 1] the previous cut */
  int64_t *top; /* [n_stages + 1] the largest key of a cut with this number of stages in front */
  uint32_t *at; /* [n_stages + 1] that cut */
} chain;

/* Whether all nets connect neighbours, and all neighbours are ordered. */
static bool is_chain(const psplit_i_instance *instance) {
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t *pin = instance->net_pin + instance->net_off[e];
    if (instance->net_off[e + 1] - instance->net_off[e] != 2) return false;
    if (pin[0] + 1 != pin[1] && pin[1] + 1 != pin[0]) return false;
  }
  for (uint32_t v = 0; v + 1 < instance->n; v++) {
    bool follows = false;
    for (uint32_t k = instance->succ_off[v]; k < instance->succ_off[v + 1]; k++)
      follows |= instance->succ[k] == v + 1;
    if (!follows) return false;
  }
  return true;
}

static bool applies(const psplit_i_solver_state *a) {
  const psplit_i_instance *instance = &a->instance;
  if (!psplit_i_takes(PSPLIT_I_SOLVER_CHAIN, a->automaton.features)) return false;
  /* Of two times that overlap each would need a part of its own. */
  if (instance->overlap && !instance->all_forward) return false;
  return instance->n_types == 1 && instance->total_w[0] < PSPLIT_I_INF && is_chain(instance);
}

static bool chain_init(chain *c, const psplit_i_instance *instance, psplit_i_arena *arena) {
  const uint32_t n = instance->n;
  *c = (chain){.n = n, .n_stages = instance->n_stages, .overlap = instance->overlap};
  c->before = PSPLIT_NEW(arena, int64_t, (size_t)n + 1);
  c->left = PSPLIT_NEW(arena, int64_t, (size_t)n + 1);
  c->right = PSPLIT_NEW(arena, int64_t, (size_t)n + 1);
  c->fewest = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  c->from = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  c->top = PSPLIT_NEW(arena, int64_t, (size_t)instance->n_stages + 1);
  c->at = PSPLIT_NEW(arena, uint32_t, (size_t)instance->n_stages + 1);
  if (!c->before || !c->left || !c->right || !c->fewest || !c->from || !c->top || !c->at)
    return false;
  for (uint32_t v = 0; v < n; v++) c->before[v + 1] = c->before[v] + instance->w[v];
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t *pin = instance->net_pin + instance->net_off[e];
    const bool ahead = pin[0] < pin[1];
    const uint32_t cut = ahead ? pin[1] : pin[0];
    c->left[cut] += ahead ? instance->send[e] : instance->recv[e];
    c->right[cut] += ahead ? instance->recv[e] : instance->send[e];
  }
  return true;
}

static int64_t load(const chain *c, uint32_t a, uint32_t b) {
  const int64_t w = c->before[b] - c->before[a];
  if (!c->overlap) return w + c->right[a] + c->left[b];
  const int64_t comm = c->right[a] > c->left[b] ? c->right[a] : c->left[b];
  return w > comm ? w : comm;
}

/* A stage from cut a fits T if key(a) >= need of the cut behind. INF: never. */
static int64_t key(const chain *c, uint32_t a, int64_t limit) {
  if (!c->overlap) return c->before[a] - c->right[a];
  return c->right[a] > limit ? -PSPLIT_I_INF : c->before[a];
}

static int64_t need(const chain *c, uint32_t b, int64_t limit) {
  if (!c->overlap) return c->before[b] + c->left[b] - limit;
  return c->left[b] > limit ? PSPLIT_I_INF : c->before[b] - limit;
}

/* Computes fewest and from, and returns whether n_stages suffice. O(n + the differences in stages
 * between the ends of cuts). */
static bool probe(chain *c, int64_t limit) {
  uint32_t low = 0, high = 0; /* range of stage numbers that later cuts may still extend */
  c->top[0] = key(c, 0, limit);
  c->at[0] = 0;
  for (uint32_t b = 1; b <= c->n; b++) {
    const int64_t needed = need(c, b, limit), least = c->before[b] - limit;
    while (low <= high && c->top[low] < least) low++;
    if (low > high) return false;
    uint32_t j = low;
    while (j <= high && c->top[j] < needed) j++;
    if (j > high || j == c->n_stages) { /* no stage can end here */
      c->fewest[b] = c->n_stages + 1;
      continue;
    }
    c->fewest[b] = j + 1;
    c->from[b] = c->at[j];
    const int64_t k = key(c, b, limit);
    if (j + 1 > high) {
      c->top[++high] = k;
      c->at[high] = b;
    } else if (k > c->top[j + 1]) {
      c->top[j + 1] = k;
      c->at[j + 1] = b;
    }
  }
  return c->fewest[c->n] <= c->n_stages;
}

/* The split of the last feasible probe. */
static void trace(const chain *c, psplit_i_solver_state *a) {
  psplit_i_assignment *out = &a->trial;
  for (uint32_t s = 0; s < c->n_stages; s++) {
    out->device[s] = PSPLIT_NONE;
    out->replicas[s] = 1;
  }
  uint32_t stage = c->n_stages;
  for (uint32_t b = c->n; b > 0; b = c->from[b]) {
    out->device[--stage] = 0;
    for (uint32_t v = c->from[b]; v < b; v++) out->stage[v] = stage;
  }
  psplit_i_automaton_name_devices(&a->automaton, out->replicas, out->device);
  psplit_i_assignment_evaluate(out, &a->instance, &a->automaton, a->scratch);
  psplit_i_state_take(a, out, PSPLIT_I_SOLVER_CHAIN);
}

static int64_t slowest(const chain *c) {
  int64_t most = 0;
  for (uint32_t b = c->n; b > 0; b = c->from[b]) {
    const int64_t ns = load(c, c->from[b], b);
    if (ns > most) most = ns;
  }
  return most;
}

/* Stages with an even share of the work, up to one more cluster each, may exceed that. */
static int64_t spread(const chain *c) {
  int64_t w = 0, left = 0, right = 0;
  for (uint32_t v = 0; v < c->n; v++) {
    if (c->before[v + 1] - c->before[v] > w) w = c->before[v + 1] - c->before[v];
    if (c->left[v] > left) left = c->left[v];
    if (c->right[v] > right) right = c->right[v];
  }
  return w + left + right;
}

psplit_code psplit_i_state_cut_chain(psplit_i_solver_state *a) {
  chain c;
  if (!applies(a)) return PSPLIT_OK;
  if (!chain_init(&c, &a->instance, &a->arena)) return psplit_i_nomem(a->request->diag);
  int64_t least = a->result->bound, most = least + spread(&c);
  if (most > c.before[c.n] || !probe(&c, most)) {
    most = c.before[c.n]; /* one stage */
    if (!probe(&c, most)) return PSPLIT_OK;
  }
  trace(&c, a);
  /* The first split is made whatever the limit is, and finding it otherwise takes longer. */
  while (least < most && !psplit_i_cancelled(a->request->budget->cancel)) {
    const int64_t limit = least + (most - least) / 2;
    if (probe(&c, limit)) {
      most = slowest(&c);
      trace(&c, a);
    } else {
      least = limit + 1;
    }
    (void)psplit_i_spend(a->request->budget, c.n);
  }
  psplit_i_result_raise(a->result, least, PSPLIT_I_SOLVER_CHAIN);
  return PSPLIT_OK;
}
