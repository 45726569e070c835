/* The search for a proof by cases. A program over cells and devices used finds which cells lie on a
 * chain of stages within the limit, from all clusters down to none. Each of them is divided, until
 * there is no such chain. What is not on one is never divided, so proofs stay small.
 *
 * States: where all devices that differ may come in any order, how many of each type are used, as a
 * mixed radix; else the place in the order, from the last device on. */
#include "case_proof.h"

#include <stdlib.h>
#include <string.h>

#include "vec.h"

enum {
  MAX_STATES = 1 << 12,
  MAX_LABELS = 1 << 20,
  MAX_STEPS = 1 << 24,
  EMPTY = 0, /* the cells of the empty downset and of all clusters */
  WHOLE = 1,
  OPS_PER_PAIR = 24,
  OPS_PER_CELL = 64 /* and cluster or pin */
};

/* In a label's counts: `count` stages, two or more, receive net `net` from what is left. */
typedef struct receivers {
  uint32_t net, count;
} receivers;

typedef struct label {
  uint32_t state, cell, next; /* next: of the same state and cell */
  uint32_t counts, n_counts;
} label;

typedef struct proof {
  psplit_i_cells *cells;
  const psplit_i_case_request *request;
  psplit_i_arena arena; /* of the whole search */
  bool by_place;        /* states are places in the order */
  uint32_t n_states, n_types;
  uint32_t *radix, *count; /* [n_types] */
  uint32_t *type_at;       /* [n_stages] by place from the last */
  int64_t *room;           /* [n_states] most weight that devices not used can take */
  PSPLIT_VEC(psplit_i_cell) list;
  uint32_t words;  /* of a bitset of cells */
  uint64_t **fits; /* [n_types] bits [to * words .. ): from which cells a stage fits */
  bool *live;      /* [list.n] on a chain */
  bool *tracked;   /* [n_nets] receivers are counted */
  PSPLIT_VEC(label) labels;
  PSPLIT_VEC(receivers) counts;
  PSPLIT_VEC(uint64_t) steps; /* label << 32 | label */
  uint32_t *first;            /* [n_states * list.n] labels */
  bool open;                  /* a chain was found */
} proof;

/* --- devices --- */

static psplit_code make_states(proof *p, bool *out_fits) {
  const psplit_i_instance *instance = p->cells->instance;
  const psplit_problem *problem = instance->problem;
  p->n_types = instance->n_types;
  p->by_place =
    (p->n_types > 1 && !problem->any_device_order) || (instance->has_pins && p->n_types == 1);
  p->count = p->cells->automaton->count;
  p->radix = PSPLIT_NEW(&p->arena, uint32_t, p->n_types);
  p->type_at = PSPLIT_NEW(&p->arena, uint32_t, instance->n_stages);
  if (!p->radix || !p->type_at) return PSPLIT_NOMEM;
  uint64_t n = 1;
  for (uint32_t t = 0, place = instance->n_stages; t < p->n_types; t++) {
    p->radix[t] = (uint32_t)n;
    if (n <= MAX_STATES) n *= (uint64_t)p->count[t] + 1;
    for (uint32_t k = 0; k < p->count[t]; k++) p->type_at[--place] = t;
  }
  if (p->by_place) n = (uint64_t)instance->n_stages + 1;
  *out_fits = n <= MAX_STATES;
  if (!*out_fits) return PSPLIT_OK;
  p->n_states = (uint32_t)n;
  p->room = PSPLIT_NEW(&p->arena, int64_t, n);
  if (!p->room) return PSPLIT_NOMEM;
  for (uint32_t s = 0; s < p->n_states; s++)
    for (uint32_t t = 0; t < p->n_types; t++) {
      uint32_t left = 0;
      for (uint32_t k = s; p->by_place && k < instance->n_stages; k++) left += p->type_at[k] == t;
      if (!p->by_place) left = p->count[t] - s / p->radix[t] % (p->count[t] + 1);
      const __int128 one =
        (__int128)p->request->limit * p->cells->scale_down[t] / p->cells->scale_up[t];
      const __int128 all = p->room[s] + one * left;
      p->room[s] = all > PSPLIT_I_INF ? PSPLIT_I_INF : (int64_t)all;
    }
  return PSPLIT_OK;
}

/* The state after one more stage on a device of the type; NONE: there is none left. */
static uint32_t next_state(const proof *p, uint32_t state, uint32_t type) {
  if (p->by_place)
    return state + 1 < p->n_states && p->type_at[state] == type ? state + 1 : PSPLIT_NONE;
  return state / p->radix[type] % (p->count[type] + 1) < p->count[type] ? state + p->radix[type]
                                                                        : PSPLIT_NONE;
}

/* Whether a downset of the cell may be what is left in the state: by weight, and by pins. */
static bool may_be_left(const proof *p, uint32_t state, const psplit_i_cell *cell) {
  const psplit_i_instance *instance = p->cells->instance;
  if (cell->low > p->room[state]) return false;
  if (!p->by_place || !instance->has_pins) return true;
  for (uint32_t i = 0; i < instance->n; i++) {
    if (instance->pin[i] == PSPLIT_NONE) continue;
    if (instance->pin[i] < instance->n_stages - state ? psplit_i_bit(cell->out, i)
                                                      : psplit_i_bit(cell->in, i))
      return false;
  }
  return true;
}

/* --- stages between cells --- */

static bool stage_fits(proof *p, uint32_t from, uint32_t to, uint32_t type) {
  return from != WHOLE && to != EMPTY && p->count[type] > 0 &&
         psplit_i_cells_load(p->cells, &p->list.items[from], &p->list.items[to], type) <=
           p->request->limit;
}

/* Which stages fit. part_of[list.n]: the cell that a cell was or was a part of before; only what
 * fitted between those can fit. NULL: there were none before. False: out of memory. */
static bool find_stages(proof *p, const uint32_t *part_of, const bool *is_new, uint32_t n_before) {
  const uint32_t n = (uint32_t)p->list.n, words = (n + 63) / 64,
                 words_before = (n_before + 63) / 64;
  uint64_t n_pairs = 0;
  for (uint32_t t = 0; t < p->n_types; t++) {
    uint64_t *before = p->fits[t], *now = calloc((size_t)n * words, sizeof *now);
    if (!now) return false;
    for (uint32_t to = 0; to < n; to++)
      for (uint32_t from = 0; from < n; from++) {
        if (before && !psplit_i_bit(before + (size_t)part_of[to] * words_before, part_of[from]))
          continue;
        const bool known = before && !is_new[to] && !is_new[from];
        n_pairs += !known;
        if (known || stage_fits(p, from, to, t))
          now[(size_t)to * words + from / 64] |= UINT64_C(1) << (from % 64);
      }
    free(before);
    p->fits[t] = now;
  }
  p->words = words;
  psplit_i_spend(p->request->budget, n_pairs * OPS_PER_PAIR + (uint64_t)n * n / 8);
  return true;
}

/* --- the program --- */

static bool leq(const proof *p, uint32_t a, uint32_t b) {
  if (p->by_place) return a <= b;
  for (uint32_t t = 0; t < p->n_types; t++)
    if (a / p->radix[t] % (p->count[t] + 1) > b / p->radix[t] % (p->count[t] + 1)) return false;
  return true;
}

/* Whether no net has more receivers in a than in b; both are sorted by net. */
static bool no_more(const receivers *a, uint32_t n_a, const receivers *b, uint32_t n_b) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < n_a; i++) {
    while (k < n_b && b[k].net < a[i].net) k++;
    if (k == n_b || b[k].net != a[i].net || b[k].count < a[i].count) return false;
  }
  return true;
}

/* The label of the state and cell that has no more receivers than the counts from `at` on, NONE if
 * there is none. */
static uint32_t find_label(const proof *p, uint32_t state, uint32_t cell, uint32_t at) {
  const uint32_t n = (uint32_t)(p->counts.n - at);
  for (uint32_t id = p->first[(size_t)state * p->list.n + cell]; id != PSPLIT_NONE;
       id = p->labels.items[id].next) {
    const label *l = &p->labels.items[id];
    if (no_more(p->counts.items + l->counts, l->n_counts, p->counts.items + at, n)) return id;
  }
  return PSPLIT_NONE;
}

/* Adds a step to a label with the counts from `at` on, which is made unless one is as good. */
static bool add_step(proof *p, uint32_t from, uint32_t state, uint32_t cell, uint32_t at) {
  enum { FEW_STATES = 64 };
  uint32_t id = find_label(p, state, cell, at);
  if (!p->request->no_empty_stages && !p->by_place && p->n_states <= FEW_STATES)
    for (uint32_t s = state; id == PSPLIT_NONE && s-- > 0;)
      if (leq(p, s, state)) id = find_label(p, s, cell, at);
  if (id == PSPLIT_NONE) {
    uint32_t *first = &p->first[(size_t)state * p->list.n + cell];
    id = (uint32_t)p->labels.n;
    const label fresh = {state, cell, *first, at, (uint32_t)(p->counts.n - at)};
    if (!psplit_i_vec_push(&p->labels, fresh)) return false;
    *first = id;
  } else {
    p->counts.n = at;
  }
  return from == PSPLIT_NONE || psplit_i_vec_push(&p->steps, (uint64_t)from << 32 | id);
}

static uint32_t count_of(const proof *p, const label *l, uint32_t net) {
  for (uint32_t k = l->counts; k < l->counts + l->n_counts; k++)
    if (p->counts.items[k].net == net) return p->counts.items[k].count;
  return 1;
}

/* The receivers behind a stage that takes the label's cell down to `from`, as counts from *out_at
 * on; what the stage sends beyond once each. A consumer that is out is in a stage already, so the
 * nets that matter are those ahead of the label's cell. */
static bool count_receivers(proof *p, const label *l, uint32_t from, uint32_t type,
                            int64_t *out_more) {
  const psplit_i_instance *instance = p->cells->instance;
  const psplit_i_cell *to = &p->list.items[l->cell], *left = &p->list.items[from];
  *out_more = 0;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    if (!p->tracked[e]) continue;
    const uint32_t first = instance->net_off[e], end = instance->net_off[e + 1];
    const uint32_t producer = instance->net_pin[first];
    uint32_t n = count_of(p, l, e);
    if (psplit_i_bit(to->out, producer)) continue;
    if (psplit_i_bit(left->out, producer)) {
      if (psplit_i_bit(to->in, producer))
        *out_more += (int64_t)(n - 1) * instance->send[(size_t)type * instance->n_nets + e];
      continue;
    }
    bool behind = false, here = false;
    for (uint32_t k = first + 1; k < end; k++) {
      const uint32_t i = instance->net_pin[k];
      behind |= psplit_i_bit(to->out, i);
      here |= psplit_i_bit(to->in, i) && psplit_i_bit(left->out, i);
    }
    if (behind && here) n++;
    if (n >= 2 && !psplit_i_vec_push(&p->counts, ((receivers){e, n}))) return false;
  }
  return true;
}

static bool expand(proof *p, uint32_t id) {
  const label l = p->labels.items[id];
  if (l.cell == EMPTY) return true;
  if (p->by_place && !p->request->no_empty_stages && l.state + 1 < p->n_states &&
      may_be_left(p, l.state + 1, &p->list.items[l.cell])) {
    const uint32_t at = (uint32_t)p->counts.n;
    for (uint32_t k = 0; k < l.n_counts; k++)
      if (!psplit_i_vec_push(&p->counts, p->counts.items[l.counts + k])) return false;
    if (!add_step(p, id, l.state + 1, l.cell, at)) return false;
  }
  for (uint32_t t = 0; t < p->n_types; t++) {
    const uint32_t next = next_state(p, l.state, t);
    const uint64_t *row = p->fits[t] + (size_t)l.cell * p->words;
    for (uint32_t word = 0; next != PSPLIT_NONE && word < p->words; word++)
      for (uint64_t bits = row[word]; bits; bits &= bits - 1) {
        const uint32_t from = word * 64 + (uint32_t)__builtin_ctzll(bits);
        const uint32_t at = (uint32_t)p->counts.n;
        if (!may_be_left(p, next, &p->list.items[from])) continue;
        if (p->request->count_receivers) {
          int64_t more;
          if (!count_receivers(p, &l, from, t, &more)) return false;
          psplit_i_spend(p->request->budget, 64);
          if (more > 0 && !p->cells->instance->problem->devices[t].free_comm &&
              psplit_i_cells_load_with(p->cells, &p->list.items[from], &p->list.items[l.cell], t,
                                       more) > p->request->limit) {
            p->counts.n = at;
            continue;
          }
        }
        if (!add_step(p, id, next, from, at)) return false;
      }
  }
  return true;
}

/* Which cells are on a chain from all clusters to none. */
static void find_live(proof *p, bool *on) {
  const uint32_t n = (uint32_t)p->list.n;
  memset(p->live, 0, n * sizeof *p->live);
  p->open = false;
  for (size_t id = 0; id < p->labels.n; id++) {
    const label *l = &p->labels.items[id];
    on[id] = l->cell == EMPTY && (!p->request->no_empty_stages || l->state == p->n_states - 1);
    p->open |= on[id];
  }
  for (bool again = p->open; again;) {
    again = false;
    for (size_t k = p->steps.n; k-- > 0;) {
      const uint32_t from = (uint32_t)(p->steps.items[k] >> 32), to = (uint32_t)p->steps.items[k];
      if (!on[to] || on[from]) continue;
      on[from] = again = true;
    }
  }
  for (size_t id = 0; id < p->labels.n; id++)
    if (on[id]) p->live[p->labels.items[id].cell] = true;
}

/* The first label: all clusters are left, no device is used. */
static bool begin(proof *p) {
  memset(p->first, 0xff, (size_t)p->n_states * p->list.n * sizeof *p->first);
  return !may_be_left(p, 0, &p->list.items[WHOLE]) || add_step(p, PSPLIT_NONE, 0, WHOLE, 0);
}

/* *out_done: it came to an end. */
static psplit_code run_program(proof *p, bool *out_done) {
  const uint32_t n = (uint32_t)p->list.n;
  psplit_code code = PSPLIT_NOMEM;
  bool *on = NULL;
  *out_done = false;
  p->labels.n = p->counts.n = p->steps.n = 0;
  free(p->first);
  free(p->live);
  p->first = malloc((size_t)p->n_states * n * sizeof *p->first);
  p->live = malloc(n * sizeof *p->live);
  if (!p->first || !p->live || !begin(p)) goto out;
  for (uint32_t state = 0; state < p->n_states; state++)
    for (uint32_t cell = 0; cell < n; cell++)
      for (uint32_t id = p->first[(size_t)state * n + cell]; id != PSPLIT_NONE;
           id = p->labels.items[id].next) {
        if (!expand(p, id)) goto out;
        if (p->labels.n > MAX_LABELS || p->steps.n > MAX_STEPS || p->counts.n > MAX_STEPS ||
            !psplit_i_spend(p->request->budget, p->words)) {
          code = PSPLIT_OK;
          goto out;
        }
      }
  on = malloc(p->labels.n * sizeof *on);
  if (!on) goto out;
  find_live(p, on);
  code = PSPLIT_OK;
  *out_done = psplit_i_spend(p->request->budget, p->steps.n * 2);
out:
  free(on);
  return code;
}

/* --- cells --- */

/* Divides the cells that are on chains; *out_any: there were any that can be. */
static psplit_code divide(proof *p, bool *out_any) {
  const psplit_i_instance *instance = p->cells->instance;
  const uint32_t n_before = (uint32_t)p->list.n;
  const size_t most = 2 * (size_t)n_before;
  psplit_code code = PSPLIT_NOMEM;
  PSPLIT_VEC(psplit_i_cell) next = {0};
  uint32_t *part_of = malloc(most * sizeof *part_of);
  bool *is_new = malloc(most * sizeof *is_new);
  *out_any = false;
  if (!part_of || !is_new || !psplit_i_vec_reserve(&next, most)) goto out;
  for (uint32_t i = 0; i < n_before; i++) {
    psplit_i_cell parts[2] = {p->list.items[i]};
    uint32_t n_parts = 1;
    const bool split = p->live[i] && parts[0].n_free > 0;
    if (split) {
      PSPLIT_TRY(psplit_i_cells_divide(p->cells, &p->list.items[i], parts, &n_parts));
      psplit_i_spend(p->request->budget,
                     ((uint64_t)instance->n + instance->net_off[instance->n_nets]) * OPS_PER_CELL);
      *out_any = true;
    }
    for (uint32_t k = 0; k < n_parts; k++) {
      part_of[next.n] = i;
      is_new[next.n] = split;
      next.items[next.n++] = parts[k];
    }
  }
  psplit_i_vec_fini(&p->list);
  p->list.items = next.items;
  p->list.n = next.n;
  p->list.capacity = next.capacity;
  next.items = NULL;
  next.capacity = next.n = 0;
  code = find_stages(p, part_of, is_new, n_before) ? PSPLIT_OK : PSPLIT_NOMEM;
out:
  psplit_i_vec_fini(&next);
  free(part_of);
  free(is_new);
  return code;
}

static psplit_code start(proof *p, bool *out_fits) {
  psplit_code code = PSPLIT_NOMEM;
  const psplit_i_instance *instance = p->cells->instance;
  *out_fits = false;
  p->fits = PSPLIT_NEW(&p->arena, uint64_t *, instance->n_types);
  p->tracked = PSPLIT_NEW(&p->arena, bool, instance->n_nets);
  if (!p->fits || !p->tracked) goto out;
  PSPLIT_TRY(make_states(p, out_fits));
  if (!*out_fits) goto out;
  for (uint32_t e = 0; p->request->count_receivers && e < instance->n_nets; e++)
    p->tracked[e] = instance->net_forward[e] && instance->net_off[e + 1] - instance->net_off[e] > 2;
  static const int which[] = {-1, 1, 0};
  for (size_t k = 0; k < sizeof which / sizeof *which; k++) {
    psplit_i_cell cell;
    PSPLIT_TRY(psplit_i_cells_whole(p->cells, which[k], &cell));
    PSPLIT_TRY(psplit_i_vec_push(&p->list, cell) ? PSPLIT_OK : PSPLIT_NOMEM);
  }
  code = find_stages(p, NULL, NULL, 0) ? PSPLIT_OK : PSPLIT_NOMEM;
out:
  return code;
}

psplit_code psplit_i_case_proof(psplit_i_cells *cells, const psplit_i_case_request *request,
                                bool *out_proved, bool *out_split) {
  proof p = {.cells = cells, .request = request};
  psplit_code code;
  bool fits, done = true, any = true;
  *out_proved = *out_split = false;
  psplit_i_arena_init(&p.arena, 0);
  PSPLIT_TRY(start(&p, &fits));
  while (fits && p.list.n <= request->most_cells && !psplit_i_expired(request->budget)) {
    PSPLIT_TRY(run_program(&p, &done));
    if (!done) break;
    *out_proved = !p.open;
    if (*out_proved) break;
    PSPLIT_TRY(divide(&p, &any));
    *out_split = !any;
    if (!any) break;
  }
out:
  for (uint32_t t = 0; p.fits && t < p.n_types; t++) free(p.fits[t]);
  psplit_i_vec_fini(&p.list);
  psplit_i_vec_fini(&p.labels);
  psplit_i_vec_fini(&p.counts);
  psplit_i_vec_fini(&p.steps);
  free(p.first);
  free(p.live);
  psplit_i_arena_fini(&p.arena);
  return code;
}
