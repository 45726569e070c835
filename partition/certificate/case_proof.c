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
  OPS_PER_PAIR = 8,
  OPS_PER_CELL = 16 /* and cluster or pin */
};

/* In a label's counts: `count` stages, two or more, receive net `net` from what is left. */
typedef struct receivers {
  uint32_t net, count;
} receivers;

/* What is known of the next stage in front where tensors go any way (partition/exact/bypasses.c):
 * it is not bypassed; it is, and sends the one behind it something, or nothing; either, beside one
 * that is and receives something, or may not. */
typedef enum beside { NOT_BYPASSED, SENDS, SENDS_NOTHING, BESIDE_READER, BESIDE_ANY } beside;

/* A downset of `cell` that weighs `left` at least may be left in `state`. */
typedef struct label {
  int64_t left;
  uint32_t state, cell, next; /* next: of the same state and cell */
  uint32_t counts, n_counts;
  beside beside;
} label;

/* A stage that begins behind a downset of cell `from`, and pays `comm` at least. */
typedef struct stage {
  uint32_t from;
  int64_t comm;
} stage;

/* Stages by the cell that they end in: off[cells + 1]. */
typedef struct rows {
  PSPLIT_VEC(stage) stages;
  PSPLIT_VEC(size_t) off;
  bool failed;
} rows;

typedef struct proof {
  psplit_i_cells *cells;
  const psplit_i_case_request *request;
  psplit_i_arena arena; /* of the whole search */
  bool by_place;        /* states are places in the order */
  uint32_t n_states, n_types;
  uint32_t *radix, *count; /* [n_types] */
  uint32_t *type_at;       /* [n_stages] by place from the last */
  int64_t *reach;          /* [n_types] most weight of one stage */
  int64_t *room;           /* [n_states] most weight that devices not used can take */
  PSPLIT_VEC(psplit_i_cell) list;
  rows *fits;    /* [n_types] */
  bool *live;    /* [list.n] on a chain */
  bool *tracked; /* [n_nets] receivers are counted */
  PSPLIT_VEC(label) labels;
  PSPLIT_VEC(receivers) counts;
  PSPLIT_VEC(uint64_t) steps; /* label << 32 | label */
  uint32_t *first;            /* [n_states * list.n] labels */
  bool open;                  /* a chain was found */
} proof;

static void rows_fini(rows *r) {
  psplit_i_vec_fini(&r->stages);
  psplit_i_vec_fini(&r->off);
}

/* --- devices --- */

static psplit_code make_states(proof *p, bool *out_fits) {
  const psplit_i_instance *instance = p->cells->instance;
  const psplit_problem *problem = instance->problem;
  p->n_types = instance->n_types;
  p->by_place =
    (p->n_types > 1 && !problem->any_device_order) || (instance->has_pins && p->n_types == 1);
  p->count = p->cells->automaton->count;
  p->radix = PSPLIT_NEW(&p->arena, uint32_t, p->n_types);
  p->reach = PSPLIT_NEW(&p->arena, int64_t, p->n_types);
  p->type_at = PSPLIT_NEW(&p->arena, uint32_t, instance->n_stages);
  if (!p->radix || !p->reach || !p->type_at) return PSPLIT_NOMEM;
  uint64_t n = 1;
  for (uint32_t t = 0, place = instance->n_stages; t < p->n_types; t++) {
    p->radix[t] = (uint32_t)n;
    if (n <= MAX_STATES) n *= (uint64_t)p->count[t] + 1;
    for (uint32_t k = 0; k < p->count[t]; k++) p->type_at[--place] = t;
  }
  if (p->by_place) n = (uint64_t)instance->n_stages + 1;
  *out_fits = n <= MAX_STATES;
  if (!*out_fits) return PSPLIT_OK;
  for (uint32_t t = 0; t < p->n_types; t++) {
    const __int128 most =
      (__int128)p->request->limit * p->cells->scale_down[t] / p->cells->scale_up[t];
    p->reach[t] = most > PSPLIT_I_INF ? PSPLIT_I_INF : (int64_t)most;
  }
  p->n_states = (uint32_t)n;
  p->room = PSPLIT_NEW(&p->arena, int64_t, n);
  if (!p->room) return PSPLIT_NOMEM;
  for (uint32_t s = 0; s < p->n_states; s++)
    for (uint32_t t = 0; t < p->n_types; t++) {
      uint32_t left = 0;
      for (uint32_t k = s; p->by_place && k < instance->n_stages; k++) left += p->type_at[k] == t;
      if (!p->by_place) left = p->count[t] - s / p->radix[t] % (p->count[t] + 1);
      const __int128 all = p->room[s] + (__int128)p->reach[t] * left;
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

/* Whether a downset of the cell that weighs `left` at least may be what is left in the state: by
 * weight, and by pins. */
static bool may_be_left(const proof *p, uint32_t state, const psplit_i_cell *cell, int64_t left) {
  const psplit_i_instance *instance = p->cells->instance;
  if (left > p->room[state]) return false;
  if (!p->by_place || !instance->has_pins) return true;
  for (uint32_t i = 0; i < instance->n; i++) {
    if (instance->pin[i] == PSPLIT_NONE) continue;
    if (instance->pin[i] < instance->n_stages - state ? psplit_i_holds(cell->out, i)
                                                      : psplit_i_holds(cell->in, i))
      return false;
  }
  return true;
}

/* --- stages between cells --- */

static void add_stage(proof *p, rows *r, uint32_t from, uint32_t to, uint32_t type) {
  const psplit_i_cell *start = &p->list.items[from], *end = &p->list.items[to];
  int64_t comm;
  if (from == WHOLE || to == EMPTY || p->count[type] == 0 ||
      end->low - start->high > p->reach[type] ||
      psplit_i_cells_load(p->cells, start, end, type, 0, &comm) > p->request->limit)
    return;
  r->failed |= !psplit_i_vec_push(&r->stages, ((stage){from, comm}));
}

/* The stages that fit, by the cell that they end in. now[n_before]: the cells of before in the list
 * of now, NONE: divided; part_of[list.n]: the other way round, for cells that are not new. NULL:
 * there were none before. A part is looked at even where the whole did not fit: its paths are
 * others. */
static psplit_code find_stages(proof *p, const uint32_t *part_of, const bool *is_new,
                               const uint32_t *now) {
  const uint32_t n = (uint32_t)p->list.n;
  uint32_t *fresh = malloc((n + 1) * sizeof *fresh);
  uint32_t n_fresh = 0;
  uint64_t n_pairs = 0;
  if (!fresh) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < n; i++)
    if (!is_new || is_new[i]) fresh[n_fresh++] = i;
  bool failed = false;
  for (uint32_t t = 0; t < p->n_types && !failed; t++) {
    rows next = {0}, *before = &p->fits[t];
    for (uint32_t to = 0; to < n && !next.failed; to++) {
      next.failed |= !psplit_i_vec_push(&next.off, next.stages.n);
      if (!is_new || is_new[to]) {
        for (uint32_t from = 0; from < n; from++) add_stage(p, &next, from, to, t);
        n_pairs += n;
        continue;
      }
      const uint32_t row = part_of[to];
      for (size_t k = before->off.items[row]; k < before->off.items[row + 1]; k++) {
        const stage old = before->stages.items[k];
        if (now[old.from] != PSPLIT_NONE)
          next.failed |= !psplit_i_vec_push(&next.stages, ((stage){now[old.from], old.comm}));
      }
      for (uint32_t k = 0; k < n_fresh; k++) add_stage(p, &next, fresh[k], to, t);
      n_pairs += n_fresh;
    }
    next.failed |= !psplit_i_vec_push(&next.off, next.stages.n);
    failed = next.failed;
    rows_fini(before);
    *before = next;
  }
  free(fresh);
  psplit_i_spend(p->request->budget, n_pairs * OPS_PER_PAIR);
  return failed ? PSPLIT_NOMEM : PSPLIT_OK;
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

/* Whether what may follow is not less. */
static bool leaves_open(beside a, beside b) {
  return a == b || a == BESIDE_ANY || (a == BESIDE_READER && (b == SENDS || b == SENDS_NOTHING)) ||
         (a == SENDS && b == SENDS_NOTHING);
}

/* The label of the state and cell that has no more left, and no more receivers than the counts from
 * `at` on; NONE if there is none. */
static uint32_t find_label(const proof *p, uint32_t state, uint32_t cell, int64_t left, beside next,
                           uint32_t at) {
  const uint32_t n = (uint32_t)(p->counts.n - at);
  for (uint32_t id = p->first[(size_t)state * p->list.n + cell]; id != PSPLIT_NONE;
       id = p->labels.items[id].next) {
    const label *l = &p->labels.items[id];
    if (l->left <= left && leaves_open(l->beside, next) &&
        no_more(p->counts.items + l->counts, l->n_counts, p->counts.items + at, n))
      return id;
  }
  return PSPLIT_NONE;
}

/* Adds a step to a label with the counts from `at` on, which is made unless one is as good. */
static bool add_step(proof *p, uint32_t from, uint32_t state, uint32_t cell, int64_t left,
                     beside next, uint32_t at) {
  enum { FEW_STATES = 64 };
  uint32_t id = find_label(p, state, cell, left, next, at);
  if (!p->request->no_empty_stages && !p->by_place && p->n_states <= FEW_STATES)
    for (uint32_t s = state; id == PSPLIT_NONE && s-- > 0;)
      if (leq(p, s, state)) id = find_label(p, s, cell, left, next, at);
  if (id == PSPLIT_NONE) {
    uint32_t *first = &p->first[(size_t)state * p->list.n + cell];
    if (*first != PSPLIT_NONE && p->counts.n == at && p->labels.items[*first].n_counts == 0 &&
        p->labels.items[*first].beside == next) {
      id = *first; /* not expanded yet: steps come from smaller states alone */
      p->labels.items[id].left = left;
    } else {
      id = (uint32_t)p->labels.n;
      const label fresh = {left, state, cell, *first, at, (uint32_t)(p->counts.n - at), next};
      if (!psplit_i_vec_push(&p->labels, fresh)) return false;
      *first = id;
    }
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
    if (psplit_i_holds(to->out, producer)) continue;
    if (psplit_i_holds(left->out, producer)) {
      if (psplit_i_holds(to->in, producer))
        *out_more += (int64_t)(n - 1) * instance->send[(size_t)type * instance->n_nets + e];
      continue;
    }
    bool behind = false, here = false;
    for (uint32_t k = first + 1; k < end; k++) {
      const uint32_t i = instance->net_pin[k];
      behind |= psplit_i_holds(to->out, i);
      here |= psplit_i_holds(to->in, i) && psplit_i_holds(left->out, i);
    }
    if (behind && here) n++;
    if (n >= 2 && !psplit_i_vec_push(&p->counts, ((receivers){e, n}))) return false;
  }
  return true;
}

/* One stage behind a label, which pays `more` than is known of it by itself: what it leaves weighs
 * at least what was left, less what the stage can compute besides what it pays. */
static bool leave(proof *p, uint32_t id, const stage *taken, uint32_t type, uint32_t state,
                  int64_t more, beside next) {
  const label l = p->labels.items[id];
  const psplit_i_cell *start = &p->list.items[taken->from], *end = &p->list.items[l.cell];
  const uint32_t at = (uint32_t)p->counts.n;
  int64_t comm = taken->comm;
  if (p->request->count_receivers) {
    int64_t sent;
    if (!count_receivers(p, &l, taken->from, type, &sent)) return false;
    psplit_i_spend(p->request->budget, 64);
    if (!p->cells->instance->problem->devices[type].free_comm) more += sent;
  }
  const bool fits =
    more == 0 || psplit_i_cells_load(p->cells, start, end, type, more, &comm) <= p->request->limit;
  const __int128 most =
    (__int128)(p->request->limit - comm) * p->cells->scale_down[type] / p->cells->scale_up[type];
  int64_t left = most >= l.left ? 0 : l.left - (int64_t)most;
  if (left < start->low) left = start->low;
  if (!fits || left > start->high || !may_be_left(p, state, start, left)) {
    p->counts.n = at;
    return true;
  }
  return add_step(p, id, state, taken->from, left, next, at);
}

/* A stage that is not bypassed sends and receives all that goes past it. */
static bool leave_passing(proof *p, uint32_t id, const stage *taken, uint32_t type, uint32_t state,
                          const psplit_i_cell_messages *m) {
  const psplit_i_instance *instance = p->cells->instance;
  const psplit_i_cell *start = &p->list.items[taken->from];
  const bool reads = p->labels.items[id].beside == BESIDE_READER;
  const int64_t n_sent = reads ? 2 : m->sends || m->passes;
  const int64_t sent = m->send_ns + (n_sent - m->sends) * instance->least_message[type];
  bool leaf = false;
  for (uint32_t k = 0; k < p->cells->words && !leaf; k++)
    leaf = (p->cells->leaves[k] & ~start->out[k]) != 0;
  for (int64_t least = 0; least <= 2; least++) { /* messages received, from in front */
    static const beside NEXT[] = {NOT_BYPASSED, SENDS_NOTHING, SENDS};
    const int64_t any = m->receives || m->passes, n = least > any ? least : any;
    const int64_t received =
      m->recv_ns + (n - m->receives) * instance->least_message[instance->n_types + type];
    if (NEXT[least] != NOT_BYPASSED && taken->from == EMPTY) continue;
    if (NEXT[least] == SENDS_NOTHING && !leaf) continue;
    if (!leave(p, id, taken, type, state, sent + received, NEXT[least])) return false;
  }
  return true;
}

static bool take_stage(proof *p, uint32_t id, const stage *taken, uint32_t type, uint32_t state) {
  const label *l = &p->labels.items[id];
  const beside known = l->beside;
  if (!p->request->any_way) return leave(p, id, taken, type, state, 0, NOT_BYPASSED);
  const psplit_i_cell_messages m =
    psplit_i_cells_messages(p->cells, &p->list.items[taken->from], &p->list.items[l->cell], type);
  psplit_i_spend(p->request->budget, 64);
  if (known != NOT_BYPASSED && taken->from != EMPTY && !(known == SENDS_NOTHING && m.sends) &&
      !leave(p, id, taken, type, state, 0, m.receives ? BESIDE_READER : BESIDE_ANY))
    return false;
  return known == SENDS || known == SENDS_NOTHING || leave_passing(p, id, taken, type, state, &m);
}

static bool expand(proof *p, uint32_t id) {
  const label l = p->labels.items[id];
  if (l.cell == EMPTY) return true;
  if (p->by_place && !p->request->no_empty_stages && l.state + 1 < p->n_states &&
      may_be_left(p, l.state + 1, &p->list.items[l.cell], l.left)) {
    const uint32_t at = (uint32_t)p->counts.n;
    for (uint32_t k = 0; k < l.n_counts; k++)
      if (!psplit_i_vec_push(&p->counts, p->counts.items[l.counts + k])) return false;
    if (!add_step(p, id, l.state + 1, l.cell, l.left, l.beside, at)) return false;
  }
  for (uint32_t t = 0; t < p->n_types; t++) {
    const uint32_t next = next_state(p, l.state, t);
    const rows *r = &p->fits[t];
    if (next == PSPLIT_NONE) continue;
    for (size_t k = r->off.items[l.cell]; k < r->off.items[l.cell + 1]; k++)
      if (!take_stage(p, id, &r->stages.items[k], t, next)) return false;
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
  memset(p->first, 0xff, ((size_t)p->n_states * p->list.n + 1) * sizeof *p->first);
  const psplit_i_cell *whole = &p->list.items[WHOLE];
  return !may_be_left(p, 0, whole, whole->low) ||
         add_step(p, PSPLIT_NONE, 0, WHOLE, whole->low, NOT_BYPASSED, 0);
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
  p->first = malloc(((size_t)p->n_states * n + 1) * sizeof *p->first);
  p->live = malloc(((size_t)n + 1) * sizeof *p->live);
  if (!p->first || !p->live || !begin(p)) goto out;
  for (uint32_t state = 0; state < p->n_states; state++)
    for (uint32_t cell = 0; cell < n; cell++)
      for (uint32_t id = p->first[(size_t)state * n + cell]; id != PSPLIT_NONE;
           id = p->labels.items[id].next) {
        if (!expand(p, id)) goto out;
        if (p->labels.n > MAX_LABELS || p->steps.n > MAX_STEPS || p->counts.n > MAX_STEPS ||
            !psplit_i_spend(p->request->budget, 8)) {
          code = PSPLIT_OK;
          goto out;
        }
      }
  on = malloc((p->labels.n + 1) * sizeof *on);
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
  uint32_t *part_of = malloc((most + n_before) * sizeof *part_of), *now = part_of + most;
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
    now[i] = PSPLIT_NONE;
    for (uint32_t k = 0; k < n_parts; k++) {
      if (!split) now[i] = (uint32_t)next.n;
      if (split)
        PSPLIT_TRY(
          psplit_i_cell_paths_find(p->cells, &parts[k], p->request->limit + 1, p->request->budget));
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
  code = find_stages(p, part_of, is_new, now);
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
  p->fits = PSPLIT_NEW(&p->arena, rows, instance->n_types);
  p->tracked = PSPLIT_NEW(&p->arena, bool, instance->n_nets);
  /* Room from the start: no counts are still somewhere. */
  if (!p->fits || !p->tracked || !psplit_i_vec_reserve(&p->counts, 1)) goto out;
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
  code = find_stages(p, NULL, NULL, NULL);
out:
  return code;
}

/* Hands the paths of all cells over to the tree. */
static void keep_paths(proof *p) {
  for (size_t i = 0; i < p->list.n; i++) {
    const psplit_i_cell *cell = &p->list.items[i];
    if (cell->question == PSPLIT_NONE) continue;
    psplit_i_question *question = &p->cells->tree.items[cell->question];
    for (int k = 0; k < 2; k++) {
      question->paths[k] = cell->paths[k];
      question->n_paths[k] = cell->n_paths[k];
    }
  }
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
    if (*out_proved) keep_paths(&p);
    if (*out_proved) break;
    PSPLIT_TRY(divide(&p, &any));
    *out_split = !any;
    if (!any) break;
  }
out:
  for (uint32_t t = 0; p.fits && t < p.n_types; t++) rows_fini(&p.fits[t]);
  psplit_i_vec_fini(&p.list);
  psplit_i_vec_fini(&p.labels);
  psplit_i_vec_fini(&p.counts);
  psplit_i_vec_fini(&p.steps);
  free(p.first);
  free(p.live);
  psplit_i_arena_fini(&p.arena);
  return code;
}
