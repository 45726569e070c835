/* An initial placement for latency, for graphs without separators: slices of levels in sequence.
 * The level of a cluster is the number of clusters on the longest path to it. The branches of a
 * slice, which no edge connects within the slice, are assigned to parallel stages
 * (branches_apart.h). Slices are one, two, four ... levels long, and dynamic programming over the
 * levels selects the slices and the number of stages of each.
 *
 * With many devices each has few clusters, and it matters that the stages of a slice do not wait
 * for each other, which cutting an order into stages does not consider. */
#include <string.h>

#include "branches_apart.h"
#include "budget.h"
#include "node_cut.h"
#include "placing_state.h"
#include "union_find.h"

enum { MOST_SLICES = 256, MOST_LENGTHS = 9 }; /* lengths double, up to all slices */
static const uint64_t MOST_CELLS = 1 << 21;   /* slices times stages */

/* Of a slice. */
typedef struct slice {
  int64_t work, longest;
  uint32_t n_branches;
} slice;

typedef struct levels {
  const psplit_i_instance *instance;
  const int64_t *min_time;
  uint32_t n_stages, n_slices, n_lengths; /* slices of the least length; lengths double */
  uint32_t *slice_of;                     /* [n] of the least length */
  uint32_t *by_slice, *off;               /* clusters by slice; [n_slices + 1] */
  uint32_t *root, *stamp;                 /* [n] */
  int64_t *time;                          /* [n] by root */
  int64_t *send, *recv;                   /* [n_nets] */
  slice *slices;                          /* [n_lengths * n_slices] by length, then place */
  psplit_i_branch *branches;              /* [n] */
  uint32_t *length, *n_own; /* [n_slices] of the slice chosen that begins here; 0: none */
} levels;

static bool init(levels *l, psplit_i_arena *a) {
  const size_t n = l->instance->n;
  l->slice_of = PSPLIT_NEW(a, uint32_t, n);
  l->by_slice = PSPLIT_NEW(a, uint32_t, n);
  l->off = PSPLIT_NEW(a, uint32_t, MOST_SLICES + 2);
  l->root = PSPLIT_NEW(a, uint32_t, n);
  l->stamp = PSPLIT_NEW(a, uint32_t, n);
  l->time = PSPLIT_NEW(a, int64_t, n);
  l->send = PSPLIT_NEW(a, int64_t, l->instance->n_nets);
  l->recv = PSPLIT_NEW(a, int64_t, l->instance->n_nets);
  l->slices = PSPLIT_NEW(a, slice, (size_t)MOST_LENGTHS * MOST_SLICES);
  l->branches = PSPLIT_NEW(a, psplit_i_branch, n);
  l->length = PSPLIT_NEW(a, uint32_t, MOST_SLICES);
  l->n_own = PSPLIT_NEW(a, uint32_t, MOST_SLICES);
  return !a->failed;
}

/* Sorts the clusters by slices of the least length. */
static void find_slices(levels *l) {
  const psplit_i_instance *instance = l->instance;
  uint32_t most = 0;
  for (uint32_t v = 0; v < instance->n; v++) {
    l->slice_of[v] = 0;
    for (uint32_t k = instance->pred_off[v]; k < instance->pred_off[v + 1]; k++)
      if (l->slice_of[instance->pred[k]] >= l->slice_of[v])
        l->slice_of[v] = l->slice_of[instance->pred[k]] + 1;
    if (l->slice_of[v] > most) most = l->slice_of[v];
  }
  const uint32_t per_slice = most / MOST_SLICES + 1;
  l->n_slices = most / per_slice + 1;
  for (l->n_lengths = 1; 1u << (l->n_lengths - 1) < l->n_slices;) l->n_lengths++;
  for (uint32_t v = 0; v < instance->n; v++) l->off[(l->slice_of[v] /= per_slice) + 1]++;
  for (uint32_t s = 1; s <= l->n_slices; s++) l->off[s] += l->off[s - 1];
  for (uint32_t v = 0; v < instance->n; v++) l->by_slice[l->off[l->slice_of[v]]++] = v;
  for (uint32_t s = l->n_slices; s > 0; s--) l->off[s] = l->off[s - 1];
  l->off[0] = 0;
}

/* The branches of all slices of a length, with the estimated time of each as a stage of its own. */
static void find_branches(levels *l, uint32_t length) {
  const psplit_i_instance *instance = l->instance;
  for (uint32_t v = 0; v < instance->n; v++) l->root[v] = v;
  for (uint32_t v = 0; v < instance->n; v++)
    for (uint32_t k = instance->succ_off[v]; k < instance->succ_off[v + 1]; k++)
      if (l->slice_of[instance->succ[k]] >> length == l->slice_of[v] >> length)
        psplit_i_unite(l->root, v, instance->succ[k]);
  memset(l->time, 0, instance->n * sizeof *l->time);
  memset(l->stamp, 0, instance->n * sizeof *l->stamp);
  for (uint32_t v = 0; v < instance->n; v++) {
    l->root[v] = psplit_i_find(l->root, v);
    l->time[l->root[v]] += l->min_time[v];
  }
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t from = l->root[instance->net_pin[instance->net_off[e]]];
    uint32_t n_readers = 0;
    for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++) {
      const uint32_t reader = l->root[instance->net_pin[k]];
      if (reader == from || l->stamp[reader] == e + 1) continue;
      l->stamp[reader] = e + 1;
      l->time[reader] += l->recv[e];
      n_readers++;
    }
    const bool once = !instance->p2p && n_readers > 1;
    l->time[from] += l->send[e] * (once ? 1 : n_readers);
  }
}

static void measure(levels *l) {
  for (uint32_t length = 0; length < l->n_lengths; length++) {
    slice *of_length = l->slices + (size_t)length * MOST_SLICES;
    find_branches(l, length);
    for (uint32_t v = 0; v < l->instance->n; v++) {
      if (l->root[v] != v) continue;
      slice *s = &of_length[l->slice_of[v] >> length];
      s->work += l->time[v];
      s->n_branches++;
      if (l->time[v] > s->longest) s->longest = l->time[v];
    }
  }
}

static int64_t time_of(const slice *s, uint32_t n_own) {
  const int64_t share = s->work / n_own;
  return share > s->longest ? share : s->longest;
}

/* The largest useful number of stages of a slice. */
static uint32_t enough(const slice *s, uint32_t n_stages) {
  uint32_t n = s->n_branches < n_stages ? s->n_branches : n_stages;
  if (s->longest > 0 && s->work / s->longest + 1 < n) n = (uint32_t)(s->work / s->longest) + 1;
  return n;
}

/* The slice of this length that begins here, or NULL. */
static const slice *slice_at(const levels *l, uint32_t at, uint32_t length) {
  if (at & ((1u << length) - 1)) return NULL;
  /* a shorter one contains everything */
  if (length && at + (1u << (length - 1)) >= l->n_slices) return NULL;
  return &l->slices[(size_t)length * MOST_SLICES + (at >> length)];
}

static uint32_t end_of(const levels *l, uint32_t at, uint32_t length) {
  return at + (1u << length) < l->n_slices ? at + (1u << length) : l->n_slices;
}

static uint64_t ops_of(const levels *l) {
  uint64_t ops = 0;
  for (uint32_t at = 0; at < l->n_slices; at++)
    for (uint32_t length = 0; length < l->n_lengths; length++) {
      const slice *s = slice_at(l, at, length);
      if (s) ops += (uint64_t)enough(s, l->n_stages) * l->n_stages / 4 + 1;
    }
  return ops;
}

/* Selects the slices and the number of stages of each. row[n_slices + 1][n_stages + 1]: the time of
 * a prefix with k stages. Returns false if there is no selection, since no device runs some
 * cluster. */
static bool choose(levels *l, int64_t *row) {
  const size_t width = (size_t)l->n_stages + 1;
  for (size_t c = 0; c < (l->n_slices + 1) * width; c++) row[c] = PSPLIT_I_INF;
  row[0] = 0;
  for (uint32_t at = 0; at < l->n_slices; at++)
    for (uint32_t length = 0; length < l->n_lengths; length++) {
      const slice *s = slice_at(l, at, length);
      if (!s) continue;
      const int64_t *before = row + at * width;
      int64_t *after = row + end_of(l, at, length) * width;
      const uint32_t most = enough(s, l->n_stages);
      for (uint32_t q = 1; q <= most; q++) {
        const int64_t time = time_of(s, q);
        for (uint32_t k = 0; k + q <= l->n_stages; k++)
          if (before[k] + time < after[k + q]) after[k + q] = before[k] + time;
      }
    }
  uint32_t k = 0;
  for (uint32_t i = 1; i <= l->n_stages; i++)
    if (row[l->n_slices * width + i] < row[l->n_slices * width + k]) k = i;
  if (row[l->n_slices * width + k] >= PSPLIT_I_INF) return false;
  for (uint32_t end = l->n_slices; end > 0;) {
    const int64_t time = row[end * width + k];
    uint32_t from = end;
    for (uint32_t at = 0; at < end && from == end; at++)
      for (uint32_t length = 0; length < l->n_lengths && from == end; length++) {
        const slice *s = slice_at(l, at, length);
        if (!s || end_of(l, at, length) != end) continue;
        const uint32_t most = enough(s, l->n_stages);
        for (uint32_t q = 1; q <= most && q <= k && from == end; q++) {
          if (row[at * width + k - q] + time_of(s, q) != time) continue;
          l->length[at] = length;
          l->n_own[at] = q;
          from = at;
        }
      }
    k -= l->n_own[from];
    end = from;
  }
  return true;
}

/* load[n_stages]: scratch. */
static void write_labels(levels *l, int64_t *load, uint32_t *label) {
  for (uint32_t length = 0; length < l->n_lengths; length++) {
    bool found = false;
    for (uint32_t at = 0, first = 0; at < l->n_slices; first += l->n_own[at++]) {
      if (!l->n_own[at] || l->length[at] != length) continue;
      if (!found) find_branches(l, length);
      found = true;
      const uint32_t end = l->off[end_of(l, at, length)];
      uint32_t n = 0;
      for (uint32_t k = l->off[at]; k < end; k++) {
        const uint32_t v = l->by_slice[k];
        if (l->root[v] == v) l->branches[n++] = (psplit_i_branch){v, l->time[v]};
      }
      psplit_i_branches_divide(l->branches, n, first, l->n_own[at], load, label);
      for (uint32_t k = l->off[at]; k < end; k++)
        label[l->by_slice[k]] = label[l->root[l->by_slice[k]]];
    }
  }
}

psplit_code psplit_i_level_start(const psplit_i_placing *p, uint32_t *label, bool *out_found) {
  const psplit_i_instance *instance = &p->instance;
  const uint64_t size =
    instance->n + instance->succ_off[instance->n] + (uint64_t)instance->net_off[instance->n_nets];
  psplit_i_budget *budget = p->request->budget;
  levels l = {
    .instance = instance, .min_time = p->automaton.min_time, .n_stages = instance->n_stages};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code = PSPLIT_NOMEM;
  *out_found = false;
  if (psplit_i_budget_left(budget) / 8 < size * MOST_LENGTHS) {
    code = PSPLIT_OK;
    goto out;
  }
  if (!init(&l, &arena)) goto out;
  psplit_i_least_costs(instance, &p->automaton, l.send, l.recv, l.time);
  find_slices(&l);
  measure(&l);
  psplit_i_spend(budget, size * l.n_lengths);
  const uint64_t cells = ((uint64_t)l.n_slices + 1) * ((uint64_t)l.n_stages + 1);
  const uint64_t ops = ops_of(&l);
  code = PSPLIT_OK;
  if (cells > MOST_CELLS || psplit_i_budget_left(budget) / 4 < ops) goto out;
  int64_t *row = psplit_i_arena_array(&arena, cells, sizeof *row);
  PSPLIT_TRY(row ? PSPLIT_OK : PSPLIT_NOMEM);
  psplit_i_spend(budget, ops + size);
  *out_found = choose(&l, row);
  if (*out_found) write_labels(&l, row, label);
out:
  psplit_i_arena_fini(&arena);
  return code;
}
