/* Who is kept together shares a call, where all of it adds up, or else is on CPUs, where each node
 * has a core. There a cluster ends with its root, and three kinds of nodes are one with it:
 * - before it: those that take no time there and that only the cluster reads;
 * - behind it: those that take no time there and read only what ends when the cluster does;
 * - beside it: those that read at most sources that take no time there, and whose readers are all
 *   behind the root anyhow; that they wait for these nodes, too, is left out. */
#include "contract.h"
#include "bits.h"

enum { MOST_ROUNDS = 8 };

typedef struct contraction {
  const psplit_i_calls *c;
  const psplit_i_calls_closure *closure;
  const int64_t *alone; /* [n] on CPUs; NULL: there are none, and nodes take no time there */
  uint32_t *root;       /* [n] parents */
  uint32_t *n_members;  /* [n] of roots */
  uint32_t *reader;     /* [n] of roots: the only cluster that reads it; NONE: several, or none */
  bool *ends;           /* [n] on CPUs a node ends when its cluster does */
  uint32_t *next_end;   /* [n] from a root: the next that ends when it does; NONE */
} contraction;

static uint32_t find(contraction *x, uint32_t v) {
  while (x->root[v] != v) v = x->root[v] = x->root[x->root[v]];
  return v;
}

static bool no_time(const contraction *x, uint32_t v) { return !x->alone || x->alone[v] == 0; }

static bool is_source(const contraction *x, uint32_t v) {
  return x->c->pred_off[v] == x->c->pred_off[v + 1];
}

static bool kept_together(const contraction *x, uint32_t u, uint32_t v) {
  return x->c->group[u] == x->c->group[v];
}

static void unite(contraction *x, uint32_t v, uint32_t root) {
  x->root[v] = root;
  x->n_members[root] += x->n_members[v];
}

/* Sets `reader` of all clusters. */
static void find_readers(contraction *x) {
  const psplit_i_calls *c = x->c;
  bool *several = x->ends + c->n; /* scratch */
  for (uint32_t v = 0; v < c->n; v++) {
    x->reader[v] = PSPLIT_NONE;
    several[v] = false;
  }
  for (uint32_t v = 0; v < c->n; v++) {
    const uint32_t from = find(x, v);
    for (uint32_t k = c->succ_off[v]; k < c->succ_off[v + 1]; k++) {
      const uint32_t to = find(x, c->succ[k]);
      if (to == from) continue;
      several[from] |= x->reader[from] != PSPLIT_NONE && x->reader[from] != to;
      x->reader[from] = to;
    }
  }
  for (uint32_t v = 0; v < c->n; v++)
    if (several[v]) x->reader[v] = PSPLIT_NONE;
}

static bool unite_before(contraction *x) {
  bool any = false;
  find_readers(x);
  for (uint32_t i = x->c->n; i-- > 0;) {
    const uint32_t v = x->c->order[i];
    if (x->root[v] != v || x->reader[v] == PSPLIT_NONE || !no_time(x, v)) continue;
    const uint32_t to = find(x, x->reader[v]);
    if (!kept_together(x, v, to)) continue;
    for (uint32_t u = v; u != PSPLIT_NONE; u = x->next_end[u]) x->ends[u] = false;
    unite(x, v, to);
    any = true;
  }
  return any;
}

static bool unite_behind(contraction *x) {
  const psplit_i_calls *c = x->c;
  bool any = false;
  for (uint32_t i = 0; i < c->n; i++) {
    const uint32_t v = c->order[i];
    if (is_source(x, v) || x->root[v] != v || x->n_members[v] > 1 || !no_time(x, v)) continue;
    const uint32_t to = find(x, c->pred[c->pred_off[v]]);
    bool all = kept_together(x, v, to);
    for (uint32_t k = c->pred_off[v]; k < c->pred_off[v + 1]; k++)
      all &= find(x, c->pred[k]) == to && x->ends[c->pred[k]];
    if (!all) continue;
    unite(x, v, to);
    x->next_end[v] = x->next_end[to];
    x->next_end[to] = v;
    any = true;
  }
  return any;
}

/* All that v reads are sources of its group that take no time; and none of them is `other`. */
static bool reads_sources(const contraction *x, uint32_t v, uint32_t other) {
  const psplit_i_calls *c = x->c;
  bool all = true;
  for (uint32_t k = c->pred_off[v]; k < c->pred_off[v + 1]; k++) {
    const uint32_t u = c->pred[k];
    all &= is_source(x, u) && no_time(x, u) && kept_together(x, u, v) && u != other;
  }
  return all;
}

static bool leads_to_readers(const contraction *x, uint32_t root, uint32_t v) {
  const psplit_i_calls *c = x->c;
  const uint64_t *behind = x->closure->behind + (size_t)root * x->closure->words;
  bool all = c->succ_off[v] < c->succ_off[v + 1];
  for (uint32_t k = c->succ_off[v]; k < c->succ_off[v + 1]; k++)
    all &= psplit_i_holds(behind, c->succ[k]);
  return all;
}

static bool unite_beside(contraction *x) {
  const psplit_i_calls *c = x->c;
  bool any = false;
  for (uint32_t v = 0; v < c->n && x->closure->n > 0; v++) {
    if (x->root[v] != v || x->n_members[v] > 1) continue;
    const uint32_t g = c->group[v];
    for (uint32_t k = c->member_off[g]; k < c->member_off[g + 1]; k++) {
      const uint32_t root = c->member[k];
      if (root == v || x->root[root] != root || !reads_sources(x, v, root) ||
          !leads_to_readers(x, root, v))
        continue;
      x->ends[v] = false;
      unite(x, v, root);
      any = true;
      break;
    }
  }
  return any;
}

psplit_code psplit_i_calls_contract(const psplit_i_calls *calls,
                                    const psplit_i_calls_closure *closure, psplit_i_arena *arena,
                                    uint32_t *out_root) {
  const uint32_t n = calls->n;
  contraction x = {
    .c = calls,
    .closure = closure,
    .alone = calls->has_cpus ? calls->time + (size_t)calls->type[calls->n_accelerators] * n : NULL,
    .root = out_root,
    .n_members = PSPLIT_NEW(arena, uint32_t, n),
    .reader = PSPLIT_NEW(arena, uint32_t, n),
    .next_end = PSPLIT_NEW(arena, uint32_t, n),
    .ends = PSPLIT_NEW(arena, bool, 2 * (size_t)n)};
  if (!x.n_members || !x.reader || !x.next_end || !x.ends) return PSPLIT_NOMEM;
  for (uint32_t v = 0; v < n; v++) {
    x.root[v] = v;
    x.n_members[v] = 1;
    x.next_end[v] = PSPLIT_NONE;
    x.ends[v] = true;
  }
  bool any = true;
  for (uint32_t round = 0; any && round < MOST_ROUNDS; round++) {
    any = unite_before(&x);
    any |= unite_behind(&x);
    if (!any) any = unite_beside(&x);
  }
  for (uint32_t v = 0; v < n; v++) out_root[v] = find(&x, v);
  return PSPLIT_OK;
}
