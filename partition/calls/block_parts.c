#include "block_parts.h"

typedef struct placer {
  const psplit_i_calls *calls;
  const psplit_i_calls_clusters *x;
  const psplit_i_calls_block *block;
  const psplit_i_calls_choice *choice;
  uint32_t *device;                     /* [x->n] devices of clusters */
  uint32_t *piece;                      /* [x->n] union-find of connected clusters inside a block */
  bool *used;                           /* [accelerators] */
  int64_t *load;                        /* [accelerators] of calls inside the current block */
  uint32_t spare[PSPLIT_I_CALLS_TYPES]; /* accelerators that no block needs */
} placer;

static uint32_t cpus(const placer *p) { return p->calls->n_accelerators; }

static uint32_t find(placer *p, uint32_t v) {
  while (p->piece[v] != v) v = p->piece[v] = p->piece[p->piece[v]];
  return v;
}

static uint32_t part_of(const placer *p, uint32_t k, int64_t v) {
  return psplit_i_calls_part(&p->choice[k].crossing->parts, (uint32_t)(v - p->block[k].first - 1));
}

/* An unused accelerator of a type, or NONE. */
static uint32_t take(placer *p, uint32_t type) {
  for (uint32_t a = 0; a < cpus(p); a++) {
    if (p->used[a] || p->calls->type[a] != type) continue;
    p->used[a] = true;
    return a;
  }
  return PSPLIT_NONE;
}

/* The accelerators that remain when each block has its assigned number of calls. */
static bool count_spare(placer *p) {
  for (uint32_t t = 0; t < p->x->n_types; t++) {
    uint32_t n_taken = 0;
    for (uint32_t k = 0; k <= p->x->n_separators; k++) {
      if (!p->choice[k].crossing) continue;
      n_taken += p->choice[k].crossing->calls[t];
      n_taken += p->choice[k].right == t ? 1U : 0U;
    }
    if (n_taken > p->x->count[t]) return false;
    p->spare[t] = p->x->count[t] - n_taken;
  }
  return true;
}

static void join_pieces(placer *p, uint32_t k) {
  const psplit_i_calls_clusters *x = p->x;
  const psplit_i_calls_block *b = &p->block[k];
  for (int64_t v = b->first + 1; v < b->last; v++) {
    const uint32_t part = part_of(p, k, v);
    for (uint32_t i = x->in_off[v]; part >= PSPLIT_I_CALLS_INSIDE && i < x->in_off[v + 1]; i++) {
      const uint32_t from = x->from[x->in[i]];
      if (from > b->first && part_of(p, k, from) == part)
        p->piece[find(p, (uint32_t)v)] = find(p, from);
    }
  }
}

/* The block's call with the least time so far. */
static uint32_t least_loaded(const placer *p, const uint32_t *mine, uint32_t n_mine) {
  uint32_t best = mine[0];
  for (uint32_t i = 1; i < n_mine; i++)
    if (p->load[mine[i]] < p->load[best]) best = mine[i];
  return best;
}

/* Assigns the connected parts of a type inside block k to devices. `mine`: scratch for those. */
static bool place_inside(placer *p, uint32_t k, uint32_t type, uint32_t *mine) {
  const psplit_i_calls_block *b = &p->block[k];
  const uint32_t told = p->choice[k].crossing->calls[type];
  uint32_t n_mine = 0;
  for (int64_t v = b->first + 1; v < b->last; v++) {
    if (part_of(p, k, v) != PSPLIT_I_CALLS_INSIDE + type) continue;
    const uint32_t root = find(p, (uint32_t)v);
    if (p->device[root] == PSPLIT_NONE) {
      const bool more = n_mine < told || p->spare[type] > 0;
      if (n_mine >= told && more) p->spare[type]--;
      const uint32_t fresh = more ? take(p, type) : PSPLIT_NONE;
      if (fresh == PSPLIT_NONE && n_mine == 0) return false;
      if (fresh != PSPLIT_NONE) p->load[mine[n_mine++] = fresh] = 0;
      p->device[root] = fresh != PSPLIT_NONE ? fresh : least_loaded(p, mine, n_mine);
    }
    const uint32_t a = p->device[v] = p->device[root];
    const int64_t ns = p->x->time[(size_t)type * p->x->n + (size_t)v];
    if (ns < PSPLIT_I_INF) p->load[a] += ns;
  }
  return true;
}

/* Assigns the clusters of block k to devices, between those of its separators. */
static bool place_block(placer *p, uint32_t k, uint32_t left, uint32_t right, uint32_t *mine) {
  const psplit_i_calls_block *b = &p->block[k];
  const bool whole = !p->choice[k].crossing;
  bool placed = true;
  if (!whole) join_pieces(p, k);
  for (uint32_t t = 0; t < p->x->n_types && placed && !whole; t++)
    placed = place_inside(p, k, t, mine);
  for (int64_t v = b->first + 1; v < b->last && placed; v++) {
    const uint32_t part = whole ? PSPLIT_I_CALLS_LEFT : part_of(p, k, v);
    if (part == PSPLIT_I_CALLS_LEFT) p->device[v] = left;
    if (part == PSPLIT_I_CALLS_RIGHT) p->device[v] = right;
    if (part == PSPLIT_I_CALLS_ON_CPU) p->device[v] = cpus(p);
    placed = p->device[v] != PSPLIT_NONE;
  }
  return placed;
}

static bool place_clusters(placer *p, uint32_t *mine) {
  uint32_t left = PSPLIT_NONE, right;
  for (uint32_t k = 0; k <= p->x->n_separators; k++, left = right) {
    const uint32_t kind = p->choice[k].right;
    right = left;
    if (p->choice[k].crossing)
      right = kind < p->x->n_types               ? take(p, kind)
              : kind == psplit_i_calls_cpu(p->x) ? cpus(p)
                                                 : PSPLIT_NONE;
    if (right == PSPLIT_NONE && k < p->x->n_separators) return false;
    if (!place_block(p, k, left, right, mine)) return false;
    if (k < p->x->n_separators) p->device[p->block[k].last] = right;
  }
  return true;
}

/* Devices of nodes from those of clusters. Nodes that are kept together are with the first of their
 * group. */
static void place_nodes(const placer *p, uint32_t *device) {
  const psplit_i_calls *c = p->calls;
  for (uint32_t i = 0; i < c->n; i++) {
    const uint32_t v = c->order[i], cluster = p->x->cluster[v];
    device[v] = c->has_cpus ? cpus(p) : 0;
    if (cluster != PSPLIT_NONE)
      device[v] = p->device[cluster];
    else if (!c->has_cpus && c->pred_off[v] < c->pred_off[v + 1])
      device[v] = device[c->pred[c->pred_off[v]]];
  }
  for (uint32_t g = 0; g < c->n_groups; g++)
    for (uint32_t k = c->member_off[g]; k < c->member_off[g + 1]; k++)
      device[c->member[k]] = device[c->member[c->member_off[g]]];
}

psplit_code psplit_i_calls_place_parts(const psplit_i_calls *calls,
                                       const psplit_i_calls_clusters *clusters,
                                       const psplit_i_calls_block *block,
                                       const psplit_i_calls_choice *choice, psplit_i_arena *arena,
                                       uint32_t *out_device, bool *out_placed) {
  const uint32_t n = clusters->n, n_accelerators = calls->n_accelerators;
  placer p = {.calls = calls,
              .x = clusters,
              .block = block,
              .choice = choice,
              .device = PSPLIT_NEW(arena, uint32_t, n),
              .piece = PSPLIT_NEW(arena, uint32_t, n),
              .used = PSPLIT_NEW(arena, bool, n_accelerators + 1),
              .load = PSPLIT_NEW(arena, int64_t, n_accelerators + 1)};
  uint32_t *mine = PSPLIT_NEW(arena, uint32_t, n_accelerators + 1);
  if (!p.device || !p.piece || !p.used || !p.load || !mine) return PSPLIT_NOMEM;
  for (uint32_t v = 0; v < n; v++) {
    p.device[v] = PSPLIT_NONE;
    p.piece[v] = v;
  }
  *out_placed = count_spare(&p) && place_clusters(&p, mine);
  if (*out_placed) place_nodes(&p, out_device);
  return PSPLIT_OK;
}
