/* An initial placement for latency, for graphs that are blocks between separators. The branches of
 * a block, which no tensor connects within the block, are assigned to stages, the longest first,
 * each to the least loaded stage (Graham, SIAM J. Appl. Math. 1969). Dynamic programming over the
 * blocks distributes the stages: a block is held by the stage of the separator in front of it, or
 * divided among q stages of its own, and then the next separator begins a new stage.
 *
 * Annealing moves branches from stage to stage, but seldom gives a block one more stage. */
#include <string.h>

#include "branches_apart.h"
#include "budget.h"
#include "node_cut.h"
#include "placing_state.h"
#include "separators.h"
#include "union_find.h"

static const uint64_t MOST_CELLS = 1 << 21; /* blocks times stages */

/* A block of two or more branches. */
typedef struct wide_block {
  uint32_t number, first_branch, n_branches, n_own; /* n_own 0: it is not divided */
  bool outside;                                     /* a side has no separator */
  int64_t work, longest;
  int64_t once, each; /* what is paid besides where it is divided, once and for each stage */
} wide_block;

typedef struct start {
  const psplit_i_instance *instance;
  const int64_t *min_time;
  uint32_t *end, n_blocks; /* [n] where blocks end, with the separator behind */
  bool ends_in_separator;
  uint32_t *root, *block;    /* [n] */
  int64_t *time;             /* [n] by root */
  int64_t *send, *recv;      /* [n_nets] */
  psplit_i_branch *branches; /* [n] by block */
  wide_block *wide;
  uint32_t n_wide;
} start;

static bool init(start *s, psplit_i_arena *a) {
  const size_t n = s->instance->n;
  s->end = PSPLIT_NEW(a, uint32_t, n);
  s->root = PSPLIT_NEW(a, uint32_t, n);
  s->block = PSPLIT_NEW(a, uint32_t, n);
  s->time = PSPLIT_NEW(a, int64_t, n);
  s->send = PSPLIT_NEW(a, int64_t, s->instance->n_nets);
  s->recv = PSPLIT_NEW(a, int64_t, s->instance->n_nets);
  s->branches = PSPLIT_NEW(a, psplit_i_branch, n);
  s->wide = PSPLIT_NEW(a, wide_block, n);
  return !a->failed;
}

static bool is_separator(const start *s, uint32_t v) {
  const uint32_t b = s->block[v];
  return v + 1 == s->end[b] && (b + 1 < s->n_blocks || s->ends_in_separator);
}

/* Unites the clusters that edges connect within a block. */
static void find_branches(start *s) {
  const psplit_i_instance *instance = s->instance;
  for (uint32_t v = 0, b = 0; v < instance->n; v++) {
    if (v == s->end[b]) b++;
    s->block[v] = b;
    s->root[v] = v;
  }
  for (uint32_t v = 0; v < instance->n; v++)
    for (uint32_t k = instance->succ_off[v]; k < instance->succ_off[v + 1] && !is_separator(s, v);
         k++) {
      const uint32_t u = instance->succ[k];
      if (s->block[u] != s->block[v] || is_separator(s, u)) continue;
      psplit_i_unite(s->root, v, u);
    }
  for (uint32_t v = 0; v < instance->n; v++) s->root[v] = psplit_i_find(s->root, v);
}

/* The cost of a net: of the branch that produces it, of the only branch that reads it, or of the
 * block. */
static void add_net(start *s, wide_block *const *wide_of, uint32_t e) {
  const psplit_i_instance *instance = s->instance;
  const uint32_t first = instance->net_off[e], end = instance->net_off[e + 1];
  const uint32_t from = instance->net_pin[first], made_in = s->root[from];
  uint32_t readers = 0, reader = PSPLIT_NONE;
  for (uint32_t k = first + 1; k < end; k++) {
    const uint32_t r = s->root[instance->net_pin[k]];
    if (r == made_in || r == reader) continue;
    readers++;
    reader = r;
  }
  if (readers == 0) return;
  s->time[made_in] += is_separator(s, from) ? 0 : s->send[e];
  if (readers == 1) s->time[reader] += is_separator(s, reader) ? 0 : s->recv[e];
  const uint32_t b = s->block[instance->net_pin[end - 1]];
  if (!wide_of[b]) return;
  if (readers > 1) {
    wide_of[b]->once += s->recv[e];
    *(instance->p2p ? &wide_of[b]->each : &wide_of[b]->once) += s->send[e];
  } else if (is_separator(s, reader)) {
    wide_of[b]->once += s->recv[e];
  }
}

/* The blocks with their branches. `wide_of`: block by number, or NULL. */
static void find_wide(start *s, wide_block **wide_of) {
  const psplit_i_instance *instance = s->instance;
  uint32_t n_branches = 0;
  for (uint32_t v = 0, b = 0; b < s->n_blocks; b++) {
    const uint32_t first = n_branches;
    for (; v < s->end[b]; v++) {
      if (s->root[v] == v && !is_separator(s, v)) s->branches[n_branches++].root = v;
      s->time[s->root[v]] += s->min_time[v];
    }
    wide_of[b] = NULL;
    if (n_branches < first + 2) continue;
    wide_of[b] = &s->wide[s->n_wide++];
    *wide_of[b] =
      (wide_block){.number = b,
                   .first_branch = first,
                   .n_branches = n_branches - first,
                   .outside = b == 0 || (b + 1 == s->n_blocks && !s->ends_in_separator)};
  }
  for (uint32_t e = 0; e < instance->n_nets; e++) add_net(s, wide_of, e);
  for (uint32_t i = 0; i < s->n_wide; i++) {
    wide_block *w = &s->wide[i];
    psplit_i_branch *all = s->branches + w->first_branch;
    for (uint32_t k = 0; k < w->n_branches; k++) {
      all[k].time = s->time[all[k].root];
      w->work += all[k].time;
    }
    for (uint32_t k = 0; k < w->n_branches; k++)
      if (all[k].time > w->longest) w->longest = all[k].time;
  }
}

/* Estimates the time of a block with n_own stages. */
static int64_t time_of(const wide_block *w, uint32_t n_own) {
  const int64_t share = w->work / n_own;
  return (share > w->longest ? share : w->longest) + w->once + w->each * n_own;
}

/* Distributes stages over the blocks, at most so many in total. row[n_wide + 1][n_stages + 1]: the
 * time of a prefix of the blocks with k stages. */
static bool share_out(start *s, uint32_t n_stages, psplit_i_budget *budget, int64_t *row) {
  const size_t width = (size_t)n_stages + 1;
  for (size_t c = 0; c < (s->n_wide + 1) * width; c++) row[c] = PSPLIT_I_INF;
  row[1] = 0;
  for (uint32_t i = 0; i < s->n_wide; i++) {
    const wide_block *w = &s->wide[i];
    const int64_t *before = row + i * width;
    int64_t *after = row + (i + 1) * width;
    const uint32_t more = w->outside ? 0 : 1;
    if (!psplit_i_spend(budget, width * (w->n_branches < n_stages ? w->n_branches : n_stages) / 4))
      return false;
    for (uint32_t k = 1; k <= n_stages; k++) {
      if (before[k] >= PSPLIT_I_INF) continue;
      if (before[k] + w->work < after[k]) after[k] = before[k] + w->work;
      for (uint32_t q = 2; q <= w->n_branches && k + q + more <= n_stages; q++) {
        const int64_t time = before[k] + time_of(w, q);
        if (time < after[k + q + more]) after[k + q + more] = time;
      }
    }
  }
  const int64_t *last = row + s->n_wide * width;
  uint32_t at = 1;
  for (uint32_t k = 1; k <= n_stages; k++)
    if (last[k] < last[at]) at = k;
  for (uint32_t i = s->n_wide; i-- > 0;) {
    wide_block *w = &s->wide[i];
    const int64_t *before = row + i * width, time = row[(i + 1) * width + at];
    const uint32_t more = w->outside ? 0 : 1;
    if (before[at] < PSPLIT_I_INF && before[at] + w->work == time) continue;
    w->n_own = 2;
    while (before[at - w->n_own - more] + time_of(w, w->n_own) != time) w->n_own++;
    at -= w->n_own + more;
  }
  return true;
}

static void write_labels(const start *s, int64_t *load, uint32_t *label) {
  uint32_t at = 0;
  const wide_block *w = s->wide, *const end = s->wide + s->n_wide;
  for (uint32_t b = 0, v = 0; b < s->n_blocks; b++) {
    const bool divided = w < end && w->number == b && w->n_own > 0;
    const uint32_t own = b == 0 ? 0 : at + 1;
    if (divided)
      psplit_i_branches_divide(s->branches + w->first_branch, w->n_branches, own, w->n_own, load,
                               label);
    if (divided) at = own + w->n_own;
    for (; v < s->end[b]; v++) label[v] = divided && !is_separator(s, v) ? label[s->root[v]] : at;
    if (w < end && w->number == b) w++;
  }
}

psplit_code psplit_i_branch_start(const psplit_i_placing *p, uint32_t *label, bool *out_found) {
  const psplit_i_instance *instance = &p->instance;
  const uint32_t n = instance->n, n_stages = instance->n_stages;
  psplit_i_budget *budget = p->request->budget;
  start s = {.instance = instance, .min_time = p->automaton.min_time};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code = PSPLIT_NOMEM;
  *out_found = false;
  if (!init(&s, &arena)) goto out;
  code = PSPLIT_OK;
  if (!psplit_i_spend(
        budget, 4 * ((uint64_t)n + instance->succ_off[n]) + instance->net_off[instance->n_nets]))
    goto out;
  s.n_blocks = psplit_i_separators(instance, s.root, s.end);
  s.ends_in_separator = s.n_blocks && psplit_i_ends_in_separator(instance, s.root);
  if (s.n_blocks + s.ends_in_separator < 2) goto out;
  find_branches(&s);
  psplit_i_least_costs(instance, &p->automaton, s.send, s.recv, s.time);
  memset(s.time, 0, n * sizeof *s.time);
  wide_block **wide_of = PSPLIT_NEW(&arena, wide_block *, s.n_blocks);
  PSPLIT_TRY(wide_of ? PSPLIT_OK : PSPLIT_NOMEM);
  find_wide(&s, wide_of);
  const uint64_t cells = ((uint64_t)s.n_wide + 1) * ((uint64_t)n_stages + 1);
  if (s.n_wide == 0 || cells > MOST_CELLS) goto out;
  int64_t *row = psplit_i_arena_array(&arena, cells, sizeof *row);
  PSPLIT_TRY(row ? PSPLIT_OK : PSPLIT_NOMEM);
  *out_found = share_out(&s, n_stages, budget, row);
  if (*out_found) write_labels(&s, row, label);
out:
  psplit_i_arena_fini(&arena);
  return code;
}
