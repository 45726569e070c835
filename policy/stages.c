#include "stages.h"

#include <string.h>

enum { C = PSPLIT_I_CANDIDATE_FEATURES };

psplit_code psplit_i_stages_init(psplit_i_stages *s, const psplit_i_outlook *outlook,
                                 psplit_i_arena *arena) {
  const psplit_items *in = outlook->view->items;
  const uint32_t k = in->n_stages, n_words = (k + 63) / 64;
  *s = (psplit_i_stages){.view = outlook->view, .outlook = outlook, .n_words = n_words};
  s->stage = PSPLIT_NEW(arena, uint32_t, in->n_items);
  s->type = PSPLIT_NEW(arena, uint32_t, k);
  s->compute = PSPLIT_NEW(arena, int64_t, k);
  s->recv = PSPLIT_NEW(arena, int64_t, k);
  s->send = PSPLIT_NEW(arena, int64_t, k);
  s->open = PSPLIT_NEW(arena, int64_t, k);
  s->weights = PSPLIT_NEW(arena, uint64_t, k);
  s->activations = PSPLIT_NEW(arena, uint64_t, k);
  s->receives = PSPLIT_NEW(arena, uint64_t, (size_t)in->n_nets * n_words);
  s->n_unplaced = PSPLIT_NEW(arena, uint32_t, in->n_nets);
  s->holds = PSPLIT_NEW(arena, uint64_t, (size_t)in->n_groups * n_words);
  s->n_left = PSPLIT_NEW(arena, uint32_t, in->n_types);
  s->extra = PSPLIT_NEW(arena, int64_t, k);
  s->touched = PSPLIT_NEW(arena, uint32_t, k);
  s->is_pred = PSPLIT_NEW(arena, bool, k);
  if (!s->stage || !s->type || !s->compute || !s->recv || !s->send || !s->open || !s->weights ||
      !s->activations || !s->receives || !s->n_unplaced || !s->holds || !s->n_left || !s->extra ||
      !s->touched || !s->is_pred)
    return PSPLIT_NOMEM;
  psplit_i_stages_clear(s);
  return PSPLIT_OK;
}

void psplit_i_stages_clear(psplit_i_stages *s) {
  const psplit_items *in = s->view->items;
  const uint32_t k = in->n_stages;
  s->last = PSPLIT_NONE;
  s->most = 0;
  s->rest = s->view->total;
  s->bytes_left = s->view->bytes;
  memset(s->stage, 0xff, in->n_items * sizeof *s->stage);
  memset(s->type, 0xff, k * sizeof *s->type);
  memset(s->compute, 0, k * sizeof *s->compute);
  memset(s->recv, 0, k * sizeof *s->recv);
  memset(s->send, 0, k * sizeof *s->send);
  memset(s->open, 0, k * sizeof *s->open);
  memset(s->weights, 0, k * sizeof *s->weights);
  memset(s->activations, 0, k * sizeof *s->activations);
  memset(s->receives, 0, (size_t)in->n_nets * s->n_words * sizeof *s->receives);
  memset(s->holds, 0, (size_t)in->n_groups * s->n_words * sizeof *s->holds);
  memset(s->extra, 0, k * sizeof *s->extra);
  memcpy(s->n_left, in->type_count, in->n_types * sizeof *s->n_left);
  for (uint32_t e = 0; e < in->n_nets; e++)
    s->n_unplaced[e] = in->net_off[e + 1] - in->net_off[e] - 1;
}

static bool has(const psplit_i_stages *s, const uint64_t *bits, uint32_t row, uint32_t stage) {
  return bits[(size_t)row * s->n_words + stage / 64] >> stage % 64 & 1;
}

static void set(const psplit_i_stages *s, uint64_t *bits, uint32_t row, uint32_t stage) {
  bits[(size_t)row * s->n_words + stage / 64] |= UINT64_C(1) << stage % 64;
}

static bool received(const psplit_i_stages *s, uint32_t e) {
  uint64_t any = 0;
  for (uint32_t w = 0; w < s->n_words; w++) any |= s->receives[(size_t)e * s->n_words + w];
  return any != 0;
}

static int64_t load(const psplit_i_stages *s, int64_t compute, int64_t recv, int64_t send) {
  if (!s->view->items->overlap) return compute + recv + send;
  const int64_t comm = recv > send ? recv : send;
  return compute > comm ? compute : comm;
}

/* What placing an item adds to its stage, and to others: extra[] of touched[] stages. */
typedef struct change {
  int64_t recv, send, open, cut; /* cut: what the stage would send if all the rest lay behind */
  int64_t elsewhere;             /* sum of extra[] */
  uint32_t n_touched;
  uint64_t weights, activations;
} change;

static void extra_for(psplit_i_stages *s, change *c, uint32_t stage, int64_t ns) {
  if (ns == 0) return;
  if (s->extra[stage] == 0) s->touched[c->n_touched++] = stage;
  s->extra[stage] += ns;
  c->elsewhere += ns;
}

/* Nets that the item receives. */
static void change_of_input(psplit_i_stages *s, uint32_t e, const psplit_i_candidate *k,
                            change *c) {
  const psplit_items *in = s->view->items;
  const uint32_t from = s->stage[in->net_pin[in->net_off[e]]];
  if (from == PSPLIT_NONE || from == k->stage || has(s, s->receives, e, k->stage)) return;
  c->recv += in->recv_ns[(size_t)k->type * in->n_nets + e];
  bool sent = false; /* to a stage other than its own */
  if (!in->p2p)
    for (uint32_t w = 0; w < s->n_words; w++) {
      uint64_t others = s->receives[(size_t)e * s->n_words + w];
      if (from / 64 == w) others &= ~(UINT64_C(1) << from % 64);
      sent |= others != 0;
    }
  if (!sent) extra_for(s, c, from, in->send_ns[(size_t)s->type[from] * in->n_nets + e]);
}

/* Nets that the item sends: those with consumers already placed run back. */
static void change_of_output(psplit_i_stages *s, uint32_t e, const psplit_i_candidate *k,
                             change *c) {
  const psplit_items *in = s->view->items;
  const int64_t send = in->send_ns[(size_t)k->type * in->n_nets + e];
  if (s->n_unplaced[e] > 0) {
    c->open += send;
    c->cut += send;
  }
  if (!received(s, e)) return;
  uint32_t n_receivers = 0;
  for (uint32_t q = 0; q <= s->last && s->last != PSPLIT_NONE; q++) {
    if (q == k->stage || !has(s, s->receives, e, q)) continue;
    n_receivers++;
    extra_for(s, c, q, in->recv_ns[(size_t)s->type[q] * in->n_nets + e]);
  }
  c->send += in->p2p ? send * n_receivers : n_receivers > 0 ? send : 0;
}

static change change_of(psplit_i_stages *s, uint32_t i, const psplit_i_candidate *k) {
  const psplit_items *in = s->view->items;
  change c = {.weights = in->weight_bytes[i], .activations = in->activation_bytes[i]};
  for (uint32_t at = in->inc_off[i]; at < in->inc_off[i + 1]; at++) {
    if (in->inc[at] % 2)
      change_of_output(s, in->inc[at] / 2, k, &c);
    else
      change_of_input(s, in->inc[at] / 2, k, &c);
  }
  for (uint32_t at = in->own_off[i]; at < in->own_off[i + 1]; at++)
    if (!has(s, s->holds, in->own[at], k->stage)) c.weights += in->group_bytes[in->own[at]];
  return c;
}

static double bytes_of(const psplit_i_stages *s, const psplit_i_candidate *k, const change *c) {
  const psplit_items *in = s->view->items;
  const double held = in->stash ? in->n_stages - k->stage : 1;
  return (double)(s->weights[k->stage] + c->weights) +
         (double)(s->activations[k->stage] + c->activations) * held;
}

static psplit_i_real part(double x, double of) {
  const double r = of > 0 ? x / of : 0;
  return (psplit_i_real)(r < 4 ? r : 4);
}

/* Share of the ideal load that the devices which no stage has can take together. */
static double capacity_left(const psplit_i_stages *s, const psplit_i_candidate *k, bool opens,
                            uint32_t *n_left) {
  const psplit_items *in = s->view->items;
  double sum = 0;
  *n_left = 0;
  if (in->stage_type) { /* devices in front of the last stage that are not used are lost */
    const uint32_t from = opens ? k->stage + 1 : s->last + 1;
    for (uint32_t q = from; q < in->n_stages; q++) sum += s->view->speed[in->stage_type[q]];
    *n_left = in->n_stages - from;
    return sum;
  }
  for (uint32_t t = 0; t < in->n_types; t++) {
    const uint32_t n = s->n_left[t] - (opens && t == k->type);
    sum += s->view->speed[t] * n;
    *n_left += n;
  }
  return sum;
}

/* Whether what is not placed yet would find memory if no more of it went to stages in front of a
 * new one: else the stages that there are should take more. */
static bool rest_fits(const psplit_i_stages *s, const psplit_i_candidate *k) {
  const psplit_items *in = s->view->items;
  double room = 0;
  if (in->stage_type) {
    for (uint32_t q = k->stage; q < in->n_stages; q++) {
      if (in->type_memory[in->stage_type[q]] == 0) return true;
      room += (double)in->type_memory[in->stage_type[q]];
    }
  }
  for (uint32_t t = 0; t < in->n_types && !in->stage_type; t++) {
    if (s->n_left[t] > 0 && in->type_memory[t] == 0) return true;
    room += (double)in->type_memory[t] * s->n_left[t];
  }
  return (double)s->bytes_left <= room;
}

/* Types of the stages from `stage` on, as it would be, and of the devices that are left: a set. */
static uint32_t types_behind(const psplit_i_stages *s, uint32_t stage, uint32_t type) {
  const psplit_items *in = s->view->items;
  uint32_t set = 1u << type;
  for (uint32_t q = stage; s->last != PSPLIT_NONE && q <= s->last; q++)
    if (s->type[q] != PSPLIT_NONE) set |= 1u << s->type[q];
  for (uint32_t t = 0; t < in->n_types && !in->stage_type; t++)
    if (s->n_left[t] > (s->type[stage] == PSPLIT_NONE && t == type)) set |= 1u << t;
  for (uint32_t q = stage + 1; in->stage_type && q < in->n_stages; q++)
    set |= 1u << in->stage_type[q];
  return set;
}

/* What a candidate leads to. */
typedef struct consequence {
  double after, others; /* load of its stage; the largest load of other stages that it changes */
  bool opens;           /* its stage has nothing yet */
  uint32_t n_left;      /* devices without a stage, after it */
} consequence;

/* Features of what would be left to do: the order from the next place on, as a chain. */
static void look_ahead(const psplit_i_stages *s, uint32_t i, const psplit_i_candidate *k,
                       const consequence *then, psplit_i_real *x) {
  const double after = then->after, others = then->others;
  const psplit_i_outlook *o = s->outlook;
  const double ideal = s->view->ideal, target = o->target;
  const bool front = then->opens || k->stage == s->last;
  const uint32_t next = o->place[i] + 1, q = front ? k->stage : s->last;
  const double load_q = front ? after : (double)load(s, s->compute[q], s->recv[q], s->send[q]);
  const double speed = s->view->speed[front ? k->type : s->type[q]];
  const double room = load_q < target ? (target - load_q) * speed / o->mean_speed : 0;
  const psplit_i_prospect to = psplit_i_outlook_from(o, next, room);
  const uint32_t here = then->opens ? next - 1 : next;
  const double slack = (double)then->n_left - (double)to.need;
  x[0] = (psplit_i_real)(slack < -4 ? -1 : slack > 4 ? 1 : slack / 4);
  x[1] = slack >= 0;
  x[2] = part(o->enter[here] + o->leave[here], ideal);
  x[3] = part(to.cut, ideal);
  x[4] = part(to.fill, target);
  x[5] = after > target ? part(4 * (after - target), ideal) : 0;
  x[6] = others > target ? part(4 * (others - target), ideal) : 0;
  x[7] = part(room, target);
}

/* Features of a candidate, and whether it fits. Empties extra[] of what `c` touched. */
static void describe(psplit_i_stages *s, uint32_t i, psplit_i_candidate *k, change *c,
                     psplit_i_real *x) {
  const psplit_i_view *v = s->view;
  const psplit_items *in = v->items;
  const uint32_t q = k->stage;
  const double ideal = v->ideal;
  const bool opens = s->type[q] == PSPLIT_NONE;
  const int64_t time = in->time_ns[(size_t)k->type * in->n_items + i];
  const int64_t after = load(s, s->compute[q] + time, s->recv[q] + c->recv, s->send[q] + c->send);
  int64_t others = 0;
  for (uint32_t t = 0; t < c->n_touched; t++) {
    const uint32_t p = s->touched[t];
    /* Of a net that runs back it is received; for a sum that is the same. */
    const int64_t load_p = load(s, s->compute[p], s->recv[p], s->send[p] + s->extra[p]);
    others = load_p > others ? load_p : others;
    s->extra[p] = 0;
  }
  uint32_t n_left;
  const double most = (double)(s->most > 0 ? s->most : 0), rest = (double)(s->rest - v->least[i]);
  const double level = most > s->outlook->target ? most : s->outlook->target;
  const double left = capacity_left(s, k, opens, &n_left) * level;
  const double slack = (double)after < level ? level - (double)after : 0;
  const uint64_t memory = in->type_memory[k->type];
  const double bytes = bytes_of(s, k, c);
  k->fits = memory == 0 || bytes <= (double)memory;
  k->leaves_room = k->fits && (!opens || rest_fits(s, k));
  x[0] = part((double)after, ideal);
  x[1] = part((double)after, level);
  x[2] = (double)after > most ? part((double)after - most, ideal) : 0;
  x[3] = (double)others > most ? part((double)others - most, ideal) : 0;
  x[4] = part((double)(c->recv + c->send + c->elsewhere), ideal);
  x[5] = part((double)(s->open[q] + c->open), ideal);
  x[6] = opens;
  x[7] = q == s->last;
  x[8] = s->last == PSPLIT_NONE || q > s->last ? 0 : part(s->last - q, in->n_stages);
  x[9] = part(rest, left + slack + ideal / 64);
  x[10] = part(n_left, in->n_stages);
  x[11] = part(bytes, (double)memory);
  x[12] = part((double)time, ideal);
  x[13] = part((double)c->recv, ideal);
  x[14] = part((double)c->cut, ideal);
  x[15] = part(rest, (double)v->total);
  const consequence then = {(double)after, (double)others, opens, n_left};
  look_ahead(s, i, k, &then, x + 16);
}

/* Adds a candidate if order, pin and device allow it. */
static uint32_t consider(psplit_i_stages *s, uint32_t i, uint32_t stage, uint32_t type,
                         psplit_i_candidate *out, psplit_i_real *x, uint32_t n) {
  const psplit_items *in = s->view->items;
  if (n == PSPLIT_I_MOST_CANDIDATES ||
      in->time_ns[(size_t)type * in->n_items + i] >= PSPLIT_ITEM_FORBIDDEN)
    return n;
  const uint64_t stuck = s->view->stuck[i];
  if (stuck && stuck >> types_behind(s, stage, type) & 1) return n;
  out[n] = (psplit_i_candidate){stage, type, true, true};
  change c = change_of(s, i, &out[n]);
  describe(s, i, &out[n], &c, x + (size_t)n * C);
  return n + 1;
}

/* New stages: in a given order of devices the next of each type, else the next on any type. */
static uint32_t consider_new(psplit_i_stages *s, uint32_t i, uint32_t first, uint32_t end,
                             psplit_i_candidate *out, psplit_i_real *x, uint32_t n) {
  const psplit_items *in = s->view->items;
  if (!in->stage_type) {
    for (uint32_t t = 0; t < in->n_types && first < end; t++)
      if (s->n_left[t] > 0) n = consider(s, i, first, t, out, x, n);
    return n;
  }
  const uint32_t before = n;
  for (uint32_t q = first; q < end; q++) {
    bool seen = false;
    for (uint32_t k = before; k < n; k++) seen |= out[k].type == in->stage_type[q];
    if (!seen) n = consider(s, i, q, in->stage_type[q], out, x, n);
    /* Entries come one after the other: the first types tell enough. */
    if (n - before == 4 || n == PSPLIT_I_MOST_CANDIDATES) break;
  }
  return n;
}

/* Those that fit and leave room for the rest; if there are none, those that fit; else all. */
static uint32_t keep_fitting(psplit_i_candidate *out, psplit_i_real *x, uint32_t n) {
  uint32_t kept = 0, n_fit = 0, n_leave_room = 0;
  for (uint32_t k = 0; k < n; k++) {
    n_fit += out[k].fits;
    n_leave_room += out[k].leaves_room;
  }
  for (uint32_t k = 0; k < n && n_fit > 0; k++) {
    if (n_leave_room > 0 ? !out[k].leaves_room : !out[k].fits) continue;
    out[kept] = out[k];
    memmove(x + (size_t)kept * C, x + (size_t)k * C, C * sizeof *x);
    kept++;
  }
  return kept ? kept : n;
}

uint32_t psplit_i_stages_candidates(psplit_i_stages *s, uint32_t i, psplit_i_candidate *out,
                                    psplit_i_real *x) {
  const psplit_items *in = s->view->items;
  const uint32_t pin = in->pin[i], last = s->last;
  uint32_t low = 0, n = 0;
  for (uint32_t k = in->pred_off[i]; k < in->pred_off[i + 1]; k++)
    if (s->stage[in->pred[k]] > low) low = s->stage[in->pred[k]];
  const uint32_t high = s->view->last_stage[i] + 1;
  if (pin != PSPLIT_NONE && pin > low) low = pin;
  const uint32_t next = last == PSPLIT_NONE ? 0 : last + 1;
  /* Of very many stages those near the end. */
  const uint32_t room = PSPLIT_I_MOST_CANDIDATES - 8;
  const uint32_t from = next > low + room ? next - room : low;
  for (uint32_t q = from; q < next && q < high; q++)
    if (s->type[q] != PSPLIT_NONE) {
      n = consider(s, i, q, s->type[q], out, x, n);
    } else if (in->stage_type) {
      n = consider(s, i, q, in->stage_type[q], out, x, n);
    }
  n = consider_new(s, i, next > low ? next : low, high, out, x, n);
  if (n > 0) return keep_fitting(out, x, n);
  /* Nothing is allowed: what comes out will be refused. */
  const uint32_t q = low < in->n_stages ? low : in->n_stages - 1;
  uint32_t t = s->type[q] != PSPLIT_NONE ? s->type[q] : in->stage_type ? in->stage_type[q] : 0;
  out[0] = (psplit_i_candidate){q, t, false, false};
  memset(x, 0, C * sizeof *x);
  return 1;
}

void psplit_i_stages_place(psplit_i_stages *s, uint32_t i, const psplit_i_candidate *k) {
  const psplit_items *in = s->view->items;
  const uint32_t q = k->stage;
  change c = change_of(s, i, k);
  const int64_t time = in->time_ns[(size_t)k->type * in->n_items + i];
  if (s->type[q] == PSPLIT_NONE) {
    s->type[q] = k->type;
    if (s->n_left[k->type] > 0) s->n_left[k->type]--;
  }
  if (s->last == PSPLIT_NONE || q > s->last) s->last = q;
  s->stage[i] = q;
  s->compute[q] += time < PSPLIT_ITEM_FORBIDDEN ? time : 0;
  s->recv[q] += c.recv;
  s->send[q] += c.send;
  s->open[q] += c.open;
  s->weights[q] += c.weights;
  s->activations[q] += c.activations;
  s->rest -= s->view->least[i];
  s->bytes_left -= in->weight_bytes[i] + in->activation_bytes[i];
  for (uint32_t t = 0; t < c.n_touched; t++) s->extra[s->touched[t]] = 0;
  for (uint32_t at = in->own_off[i]; at < in->own_off[i + 1]; at++)
    set(s, s->holds, in->own[at], q);
  /* Again, now for good: which stage sends, and which receives. */
  for (uint32_t at = in->inc_off[i]; at < in->inc_off[i + 1]; at++) {
    const uint32_t e = in->inc[at] / 2;
    if (in->inc[at] % 2) {
      for (uint32_t p = 0; p <= s->last; p++)
        if (p != q && has(s, s->receives, e, p))
          s->recv[p] += in->recv_ns[(size_t)s->type[p] * in->n_nets + e];
      continue;
    }
    const uint32_t from = s->stage[in->net_pin[in->net_off[e]]];
    change one = {0};
    change_of_input(s, e, k, &one);
    for (uint32_t t = 0; t < one.n_touched; t++) {
      const uint32_t p = s->touched[t];
      s->send[p] += s->extra[p];
      s->extra[p] = 0;
    }
    set(s, s->receives, e, q);
    if (--s->n_unplaced[e] == 0 && from != PSPLIT_NONE)
      s->open[from] -= in->send_ns[(size_t)s->type[from] * in->n_nets + e];
  }
  for (uint32_t p = 0; p <= s->last; p++) {
    const int64_t now = load(s, s->compute[p], s->recv[p], s->send[p]);
    if (now > s->most) s->most = now;
  }
}
