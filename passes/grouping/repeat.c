#include "repeat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

/* A range of the order in which every supernode is like the one `period` positions on. */
typedef struct run {
  uint32_t start, end, period;
} run;

typedef struct finder {
  const psplit_i_repeat_input *in;
  psplit_i_arena *arena; /* of the caller */
  psplit_i_arena scratch;
  uint32_t *edge_off; /* [n + 1] into in->edges, by from */
  bool *taken;        /* [n] in a repeat already */
  bool any_scope;
  PSPLIT_VEC(run) runs;
  PSPLIT_VEC(psplit_snapshot_repeat) found;
} finder;

/* Supernodes that a fold would hide. */
static uint32_t hidden(const run *r) { return ((r->end - r->start) / r->period - 1) * r->period; }

/* Most hidden first; then the shortest period, which tells most. */
static int compare_runs(const void *a, const void *b) {
  const run *x = a, *y = b;
  if (hidden(x) != hidden(y)) return hidden(x) > hidden(y) ? -1 : 1;
  if (x->period != y->period) return x->period < y->period ? -1 : 1;
  return x->start < y->start ? -1 : x->start > y->start;
}

static int compare_found(const void *a, const void *b) {
  const psplit_snapshot_repeat *x = a, *y = b;
  return x->first < y->first ? -1 : x->first > y->first;
}

/* Whether folding the run tells something: at least two blocks, and enough supernodes hidden.
 * Without scopes, which confirm that these are layers, chance repeats are common: then more must
 * be. */
static bool is_worth(const finder *f, const run *r) {
  return r->end - r->start >= 2 * r->period && hidden(r) >= (f->any_scope ? 2 : 4);
}

static bool find_runs(finder *f) {
  const uint64_t *shape = f->in->shape;
  const uint32_t n = f->in->n;
  const uint32_t most = n ? (UINT32_C(1) << 28) / n : 0;
  for (uint32_t period = 1; period <= n / 2 && period <= most; period++) {
    uint32_t start = 0;
    for (uint32_t i = 0; i + period <= n; i++) {
      if (i + period < n && shape[i] == shape[i + period]) continue;
      const run r = {start, i + period, period};
      if (is_worth(f, &r) && !psplit_i_vec_push(&f->runs, r)) return false;
      start = i + 1;
    }
  }
  if (f->runs.n) qsort(f->runs.items, f->runs.n, sizeof *f->runs.items, compare_runs);
  return true;
}

/* The edges within a block, relative to its start. */
static uint64_t wiring(const finder *f, uint32_t first, uint32_t n_groups) {
  uint64_t hash = 0;
  for (uint32_t e = f->edge_off[first]; e < f->edge_off[first + n_groups]; e++) {
    const psplit_snapshot_edge *edge = &f->in->edges[e];
    if (edge->to >= first + n_groups) continue;
    hash = psplit_i_mix64(hash ^ ((uint64_t)(edge->from - first) << 32 | (edge->to - first)));
  }
  return hash;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The number that a scope has behind a prefix, as a whole component or the end of one. */
static bool number_behind(const char *scope, const char *prefix, size_t n_prefix,
                          uint64_t *out_number) {
  if (strncmp(scope, prefix, n_prefix) != 0 || !is_digit(scope[n_prefix])) return false;
  char *end;
  *out_number = strtoull(scope + n_prefix, &end, 10);
  return !*end || *end == '.';
}

/* Length of what two scopes begin with, if different numbers follow in both; 0 otherwise. */
static size_t counting_prefix(const char *a, const char *b) {
  size_t same = 0;
  uint64_t x, y;
  while (a[same] && a[same] == b[same]) same++;
  while (same > 0 && is_digit(a[same - 1])) same--;
  return same && number_behind(a, a, same, &x) && number_behind(b, a, same, &y) && x < y ? same : 0;
}

/* What most supernodes of a run and their likes a block later begin with before the number; NULL
 * where there is no such thing, or no memory. */
static const char *find_prefix(finder *f, const run *r, bool *out_nomem) {
  psplit_i_intern seen;
  psplit_i_intern_init(&seen);
  const char *best = NULL;
  uint32_t most = 0;
  uint32_t *count = PSPLIT_NEW(&f->scratch, uint32_t, r->end - r->start);
  *out_nomem = !count;
  for (uint32_t i = r->start; !*out_nomem && i + r->period < r->end; i++) {
    const char *scope = f->in->scope[i];
    const size_t n = counting_prefix(scope, f->in->scope[i + r->period]);
    if (!n) continue;
    const char *prefix = psplit_i_arena_strndup(&f->scratch, scope, n);
    const uint32_t id = prefix ? psplit_i_intern_add(&seen, prefix) : PSPLIT_NONE;
    *out_nomem = id == PSPLIT_NONE;
    if (*out_nomem || ++count[id] <= most) continue;
    most = count[id];
    best = prefix;
  }
  psplit_i_intern_fini(&seen);
  return *out_nomem ? NULL : best;
}

/* The first places of blocks between which the number stays the same. */
static uint32_t torn_blocks(const finder *f, const run *r, uint32_t first, const char *prefix) {
  const size_t n = strlen(prefix);
  uint32_t n_torn = 0;
  for (uint32_t at = first; at < r->end; at += r->period) {
    uint64_t before, behind;
    n_torn += at > 0 && number_behind(f->in->scope[at - 1], prefix, n, &before) &&
              number_behind(f->in->scope[at], prefix, n, &behind) && before == behind;
  }
  return n_torn;
}

/* Where the blocks of a run begin: where numbers change. */
static uint32_t first_place(const finder *f, const run *r, const char *prefix) {
  const uint32_t spare = (r->end - r->start) % r->period;
  uint32_t best = r->start, least = UINT32_MAX;
  for (uint32_t first = r->start; prefix && first <= r->start + spare; first++) {
    const uint32_t n_torn = torn_blocks(f, r, first, prefix);
    if (n_torn >= least) continue;
    least = n_torn;
    best = first;
  }
  return best;
}

/* The longest series of blocks that are wired alike; shortens the repeat to it. */
static void keep_alike(const finder *f, psplit_snapshot_repeat *repeat) {
  uint32_t first = repeat->first, n = 0, best = first, most = 0;
  uint64_t last = 0;
  for (uint32_t b = 0; b < repeat->n_blocks; b++) {
    const uint32_t at = repeat->first + b * repeat->n_groups;
    const uint64_t own = wiring(f, at, repeat->n_groups);
    if (b == 0 || own != last) {
      first = at;
      n = 0;
    }
    last = own;
    if (++n > most) {
      most = n;
      best = first;
    }
  }
  repeat->first = best;
  repeat->n_blocks = most;
}

/* "0-3,6" for 0, 1, 2, 3, 6, which may come in any order and often. */
static void put_ranges(psplit_i_text *out, uint64_t *numbers, uint32_t n) {
  qsort(numbers, n, sizeof *numbers, psplit_i_compare_u64);
  for (uint32_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && numbers[end] - numbers[end - 1] <= 1; end++) {
    }
    psplit_i_text_addf(out, "%s%" PRIu64, i ? "," : "", numbers[i]);
    if (numbers[end - 1] > numbers[i]) psplit_i_text_addf(out, "-%" PRIu64, numbers[end - 1]);
  }
}

/* The numbers of one block. */
typedef struct span {
  uint64_t least, most;
  uint32_t n; /* supernodes that have one */
} span;

static span span_of(const finder *f, uint32_t first, uint32_t n_groups, const char *prefix) {
  span s = {UINT64_MAX, 0, 0};
  for (uint32_t i = 0; i < n_groups; i++) {
    uint64_t number;
    if (!number_behind(f->in->scope[first + i], prefix, strlen(prefix), &number)) continue;
    if (number < s.least) s.least = number;
    if (number > s.most) s.most = number;
    s.n++;
  }
  return s;
}

/* Whether numbers count the blocks up: half of the supernodes have one, none is in two blocks, nor
 * in a block and beside it. With `one_each`, a block has one number. */
static bool counts_up(const finder *f, const char *prefix, const psplit_snapshot_repeat *repeat,
                      bool one_each) {
  const uint32_t n = repeat->n_groups, end = repeat->first + n * repeat->n_blocks;
  const span before = span_of(f, repeat->first ? repeat->first - 1 : 0, repeat->first > 0, prefix);
  const span behind = span_of(f, end < f->in->n ? end : 0, end < f->in->n, prefix);
  span last = before;
  for (uint32_t b = 0; b < repeat->n_blocks; b++) {
    const span own = span_of(f, repeat->first + b * n, n, prefix);
    if (own.n < (n + 1) / 2 || (last.n && own.least <= last.most) ||
        (one_each && own.least != own.most))
      return false;
    last = own;
  }
  return !behind.n || behind.least > last.most;
}

static const char *title_of(finder *f, const char *prefix, const psplit_snapshot_repeat *repeat) {
  const uint32_t n = repeat->n_blocks * repeat->n_groups;
  uint64_t *numbers = psplit_i_arena_array(&f->scratch, n, sizeof *numbers);
  uint32_t n_numbers = 0;
  if (!numbers) return NULL;
  for (uint32_t i = 0; i < n; i++)
    n_numbers +=
      number_behind(f->in->scope[repeat->first + i], prefix, strlen(prefix), &numbers[n_numbers]);
  psplit_i_text title = {0};
  psplit_i_text_addf(&title, "%s[", prefix);
  put_ranges(&title, numbers, n_numbers);
  psplit_i_text_puts(&title, "]");
  const char *own = title.failed ? NULL : psplit_i_arena_strndup(f->arena, title.bytes, title.n);
  psplit_i_text_fini(&title);
  return own;
}

/* Makes a repeat of a free stretch of a run, if it is one. False when out of memory. */
static bool take(finder *f, const run *r, bool one_each) {
  bool nomem;
  const char *prefix = find_prefix(f, r, &nomem);
  if (nomem) return false;
  if (f->any_scope && !prefix) return true;
  const uint32_t first = first_place(f, r, prefix);
  psplit_snapshot_repeat repeat = {"", first, (r->end - first) / r->period, r->period};
  keep_alike(f, &repeat);
  const uint32_t n = repeat.n_blocks * repeat.n_groups;
  const run kept = {repeat.first, repeat.first + n, repeat.n_groups};
  if (!is_worth(f, &kept) || (prefix && !counts_up(f, prefix, &repeat, one_each))) return true;
  if (prefix && !(repeat.title = title_of(f, prefix, &repeat))) return false;
  memset(f->taken + repeat.first, true, n);
  return psplit_i_vec_push(&f->found, repeat);
}

/* The stretches of a run that no better one took. */
static bool take_free(finder *f, const run *r, bool one_each) {
  for (uint32_t at = r->start; at < r->end;) {
    uint32_t end = at;
    while (end < r->end && !f->taken[end]) end++;
    const run part = {at, end, r->period};
    if (end > at && is_worth(f, &part) && !take(f, &part, one_each)) return false;
    at = end + 1;
  }
  return true;
}

static bool prepare(finder *f) {
  const psplit_i_repeat_input *in = f->in;
  f->edge_off = PSPLIT_NEW(&f->scratch, uint32_t, (size_t)in->n + 1);
  f->taken = PSPLIT_NEW(&f->scratch, bool, in->n);
  if (!f->edge_off || !f->taken) return false;
  for (uint32_t e = 0; e < in->n_edges; e++) f->edge_off[in->edges[e].from + 1]++;
  for (uint32_t g = 0; g < in->n; g++) {
    f->edge_off[g + 1] += f->edge_off[g];
    f->any_scope |= *in->scope[g] != '\0';
  }
  return true;
}

psplit_code psplit_i_repeats_find(const psplit_i_repeat_input *input, psplit_i_arena *arena,
                                  psplit_diag *diag, psplit_snapshot_repeat **out_repeats,
                                  uint32_t *out_n) {
  finder f = {.in = input, .arena = arena};
  psplit_i_arena_init(&f.scratch, 0);
  bool good = prepare(&f) && find_runs(&f);
  /* Blocks that are one scope each say more than larger ones of several. */
  for (unsigned several = 0; several < 2; several++)
    for (size_t i = 0; good && i < f.runs.n; i++) good = take_free(&f, &f.runs.items[i], !several);
  psplit_snapshot_repeat *own = good ? psplit_i_arena_array(arena, f.found.n, sizeof *own) : NULL;
  good = good && own;
  if (good && f.found.n) {
    qsort(f.found.items, f.found.n, sizeof *f.found.items, compare_found);
    memcpy(own, f.found.items, f.found.n * sizeof *own);
  }
  if (good) {
    *out_repeats = own;
    *out_n = (uint32_t)f.found.n;
  }
  psplit_i_vec_fini(&f.found);
  psplit_i_vec_fini(&f.runs);
  psplit_i_arena_fini(&f.scratch);
  return good ? PSPLIT_OK : psplit_i_nomem(diag);
}
