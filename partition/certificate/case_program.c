/* The dynamic program of a proof by cases. It finds the cells that lie on a chain of stages within
 * the limit, from the downset of all clusters to the empty one. A label of a cell and a state says
 * how much weight may be left there, and which nets have receivers among the stages so far. */
#include <stdlib.h>
#include <string.h>

#include "case_proof_inside.h"

enum { MAX_LABELS = 1 << 20, MAX_STEPS = 1 << 24 };

/* The state after one more stage on a device of the type, or NONE if all of these are used. */
static uint32_t next_state(const psplit_i_case_search *p, uint32_t state, uint32_t type) {
  if (p->by_place)
    return state + 1 < p->n_states && p->type_at[state] == type ? state + 1 : PSPLIT_NONE;
  return state / p->radix[type] % (p->count[type] + 1) < p->count[type] ? state + p->radix[type]
                                                                        : PSPLIT_NONE;
}

/* Whether a downset of the cell that weighs at least `left` can be what remains in the state, by
 * weight and by pins. */
static bool may_be_left(const psplit_i_case_search *p, uint32_t state, const psplit_i_cell *cell,
                        int64_t left) {
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

static bool leq(const psplit_i_case_search *p, uint32_t a, uint32_t b) {
  if (p->by_place) return a <= b;
  for (uint32_t t = 0; t < p->n_types; t++)
    if (a / p->radix[t] % (p->count[t] + 1) > b / p->radix[t] % (p->count[t] + 1)) return false;
  return true;
}

/* Whether no net has more receivers in a than in b. Both are sorted by net. */
static bool no_more(const psplit_i_case_receivers *a, uint32_t n_a,
                    const psplit_i_case_receivers *b, uint32_t n_b) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < n_a; i++) {
    while (k < n_b && b[k].net < a[i].net) k++;
    if (k == n_b || b[k].net != a[i].net || b[k].count < a[i].count) return false;
  }
  return true;
}

/* Whether a permits every continuation that b permits. */
static bool leaves_open(psplit_i_beside a, psplit_i_beside b) {
  return a == b || a == PSPLIT_I_BESIDE_ANY ||
         (a == PSPLIT_I_BESIDE_READER && (b == PSPLIT_I_SENDS || b == PSPLIT_I_SENDS_NOTHING)) ||
         (a == PSPLIT_I_SENDS && b == PSPLIT_I_SENDS_NOTHING);
}

/* A label of the state and cell with at most `left` left and no more receivers than the counts from
 * `at` on, or NONE. */
static uint32_t find_label(const psplit_i_case_search *p, uint32_t state, uint32_t cell,
                           int64_t left, psplit_i_beside next, uint32_t at) {
  const uint32_t n = (uint32_t)(p->counts.n - at);
  for (uint32_t id = p->first[(size_t)state * p->list.n + cell]; id != PSPLIT_NONE;
       id = p->labels.items[id].next) {
    const psplit_i_case_label *l = &p->labels.items[id];
    if (l->left <= left && leaves_open(l->beside, next) &&
        no_more(p->counts.items + l->counts, l->n_counts, p->counts.items + at, n))
      return id;
  }
  return PSPLIT_NONE;
}

/* Adds a step to the label with the counts from `at` on. The label is created unless another one
 * dominates it. */
static bool add_step(psplit_i_case_search *p, uint32_t from, uint32_t state, uint32_t cell,
                     int64_t left, psplit_i_beside next, uint32_t at) {
  enum { FEW_STATES = 64 };
  uint32_t id = find_label(p, state, cell, left, next, at);
  if (!p->request->no_empty_stages && !p->by_place && p->n_states <= FEW_STATES)
    for (uint32_t s = state; id == PSPLIT_NONE && s-- > 0;)
      if (leq(p, s, state)) id = find_label(p, s, cell, left, next, at);
  if (id == PSPLIT_NONE) {
    uint32_t *first = &p->first[(size_t)state * p->list.n + cell];
    if (*first != PSPLIT_NONE && p->counts.n == at && p->labels.items[*first].n_counts == 0 &&
        p->labels.items[*first].beside == next) {
      id = *first; /* not expanded yet, since steps only come from smaller states */
      p->labels.items[id].left = left;
    } else {
      id = (uint32_t)p->labels.n;
      const psplit_i_case_label fresh = {
        left, state, cell, *first, at, (uint32_t)(p->counts.n - at), next};
      if (!psplit_i_vec_push(&p->labels, fresh)) return false;
      *first = id;
    }
  } else {
    p->counts.n = at;
  }
  return from == PSPLIT_NONE || psplit_i_vec_push(&p->steps, (uint64_t)from << 32 | id);
}

static uint32_t count_of(const psplit_i_case_search *p, const psplit_i_case_label *l,
                         uint32_t net) {
  for (uint32_t k = l->counts; k < l->counts + l->n_counts; k++)
    if (p->counts.items[k].net == net) return p->counts.items[k].count;
  return 1;
}

/* Writes the receivers after a stage that takes the label's cell down to `from`, as counts from
 * *out_at on, and adds what the stage sends beyond one copy of each net. A consumer outside the
 * cell already is in a stage of the chain, so only the nets ahead of the label's cell matter. */
static bool count_receivers(psplit_i_case_search *p, const psplit_i_case_label *l, uint32_t from,
                            uint32_t type, int64_t *out_more) {
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
    if (n >= 2 && !psplit_i_vec_push(&p->counts, ((psplit_i_case_receivers){e, n}))) return false;
  }
  return true;
}

/* Adds the next stage of the chain to a label, which pays `more` in addition to its known load.
 * What it leaves weighs at least the weight left before, less what the stage can compute in the
 * remaining time. */
static bool leave(psplit_i_case_search *p, uint32_t id, const psplit_i_case_stage *taken,
                  uint32_t type, uint32_t state, int64_t more, psplit_i_beside next) {
  const psplit_i_case_label l = p->labels.items[id];
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

/* As above, for a stage that is not bypassed: it receives and sends every tensor that passes it. */
static bool leave_passing(psplit_i_case_search *p, uint32_t id, const psplit_i_case_stage *taken,
                          uint32_t type, uint32_t state, const psplit_i_cell_messages *m) {
  const psplit_i_instance *instance = p->cells->instance;
  const psplit_i_cell *start = &p->list.items[taken->from];
  const bool reads = p->labels.items[id].beside == PSPLIT_I_BESIDE_READER;
  const int64_t n_sent = reads ? 2 : m->sends || m->passes;
  const int64_t sent = m->send_ns + (n_sent - m->sends) * instance->least_message[type];
  bool leaf = false;
  for (uint32_t k = 0; k < p->cells->words && !leaf; k++)
    leaf = (p->cells->leaves[k] & ~start->out[k]) != 0;
  /* number of messages received from earlier stages */
  for (int64_t least = 0; least <= 2; least++) {
    static const psplit_i_beside NEXT[] = {PSPLIT_I_NOT_BYPASSED, PSPLIT_I_SENDS_NOTHING,
                                           PSPLIT_I_SENDS};
    const int64_t any = m->receives || m->passes, n = least > any ? least : any;
    const int64_t received =
      m->recv_ns + (n - m->receives) * instance->least_message[instance->n_types + type];
    if (NEXT[least] != PSPLIT_I_NOT_BYPASSED && taken->from == PSPLIT_I_CASE_EMPTY) continue;
    if (NEXT[least] == PSPLIT_I_SENDS_NOTHING && !leaf) continue;
    if (!leave(p, id, taken, type, state, sent + received, NEXT[least])) return false;
  }
  return true;
}

static bool take_stage(psplit_i_case_search *p, uint32_t id, const psplit_i_case_stage *taken,
                       uint32_t type, uint32_t state) {
  const psplit_i_case_label *l = &p->labels.items[id];
  const psplit_i_beside known = l->beside;
  if (!p->request->any_route) return leave(p, id, taken, type, state, 0, PSPLIT_I_NOT_BYPASSED);
  const psplit_i_cell_messages m =
    psplit_i_cells_messages(p->cells, &p->list.items[taken->from], &p->list.items[l->cell], type);
  psplit_i_spend(p->request->budget, 64);
  if (known != PSPLIT_I_NOT_BYPASSED && taken->from != PSPLIT_I_CASE_EMPTY &&
      !(known == PSPLIT_I_SENDS_NOTHING && m.sends) &&
      !leave(p, id, taken, type, state, 0,
             m.receives ? PSPLIT_I_BESIDE_READER : PSPLIT_I_BESIDE_ANY))
    return false;
  return known == PSPLIT_I_SENDS || known == PSPLIT_I_SENDS_NOTHING ||
         leave_passing(p, id, taken, type, state, &m);
}

static bool expand(psplit_i_case_search *p, uint32_t id) {
  const psplit_i_case_label l = p->labels.items[id];
  if (l.cell == PSPLIT_I_CASE_EMPTY) return true;
  if (p->by_place && !p->request->no_empty_stages && l.state + 1 < p->n_states &&
      may_be_left(p, l.state + 1, &p->list.items[l.cell], l.left)) {
    const uint32_t at = (uint32_t)p->counts.n;
    for (uint32_t k = 0; k < l.n_counts; k++)
      if (!psplit_i_vec_push(&p->counts, p->counts.items[l.counts + k])) return false;
    if (!add_step(p, id, l.state + 1, l.cell, l.left, l.beside, at)) return false;
  }
  for (uint32_t t = 0; t < p->n_types; t++) {
    const uint32_t next = next_state(p, l.state, t);
    const psplit_i_case_rows *r = &p->fits[t];
    if (next == PSPLIT_NONE) continue;
    for (size_t k = r->off.items[l.cell]; k < r->off.items[l.cell + 1]; k++)
      if (!take_stage(p, id, &r->stages.items[k], t, next)) return false;
  }
  return true;
}

/* Marks the cells that lie on a chain from all clusters to none. */
static void find_live(psplit_i_case_search *p, bool *on) {
  const uint32_t n = (uint32_t)p->list.n;
  memset(p->live, 0, n * sizeof *p->live);
  p->open = false;
  for (size_t id = 0; id < p->labels.n; id++) {
    const psplit_i_case_label *l = &p->labels.items[id];
    on[id] = l->cell == PSPLIT_I_CASE_EMPTY &&
             (!p->request->no_empty_stages || l->state == p->n_states - 1);
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

/* The first label: all clusters are left, and no device is used. */
static bool begin(psplit_i_case_search *p) {
  memset(p->first, 0xff, ((size_t)p->n_states * p->list.n + 1) * sizeof *p->first);
  const psplit_i_cell *whole = &p->list.items[PSPLIT_I_CASE_WHOLE];
  return !may_be_left(p, 0, whole, whole->low) ||
         add_step(p, PSPLIT_NONE, 0, PSPLIT_I_CASE_WHOLE, whole->low, PSPLIT_I_NOT_BYPASSED, 0);
}

psplit_code psplit_i_case_program(psplit_i_case_search *p, bool *out_done) {
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
