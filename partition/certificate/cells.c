/* Cells of downsets. The checker (tools/psplit-check-certificate.py) derives the properties of
 * cells from the same questions, so this file must not conclude more than the checker does. */
#include "cells.h"

#include "node_cut.h"

#include <string.h>

static void set_bit(uint64_t *bits, uint32_t i) { bits[i / 64] |= UINT64_C(1) << (i % 64); }

static uint32_t count(const uint64_t *a, const uint64_t *b, uint32_t words) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < words; k++) n += (uint32_t)__builtin_popcountll(a[k] & b[k]);
  return n;
}

static int64_t weigh(const psplit_i_cells *c, const uint64_t *a, const uint64_t *b) {
  int64_t sum = 0;
  for (uint32_t k = 0; k < c->words; k++)
    for (uint64_t bits = a[k] & (b ? b[k] : UINT64_MAX); bits; bits &= bits - 1)
      sum += c->automaton->min_time[k * 64 + (uint32_t)__builtin_ctzll(bits)];
  return sum;
}

static void find_scale(psplit_i_cells *c, uint32_t type) {
  const int64_t *w = c->instance->w + (size_t)type * c->n, *min_time = c->automaton->min_time;
  int64_t up = 0, down = 0;
  for (uint32_t i = 0; i < c->n; i++) {
    if (min_time[i] <= 0 || w[i] >= PSPLIT_I_INF) continue;
    if (down == 0 || (__int128)w[i] * down < (__int128)up * min_time[i])
      up = w[i], down = min_time[i];
  }
  c->scale_up[type] = down ? up : 1;
  c->scale_down[type] = down ? down : 1;
}

psplit_code psplit_i_cells_scale(psplit_i_cells *c, const psplit_i_instance *instance,
                                 const psplit_i_automaton *automaton) {
  *c = (psplit_i_cells){.instance = instance, .automaton = automaton, .n = instance->n};
  psplit_i_arena_init(&c->arena, 0);
  c->words = (instance->n + 63) / 64;
  c->scale_up = PSPLIT_NEW(&c->arena, int64_t, instance->n_types);
  c->scale_down = PSPLIT_NEW(&c->arena, int64_t, instance->n_types);
  if (!c->scale_up || !c->scale_down) return PSPLIT_NOMEM;
  for (uint32_t t = 0; t < instance->n_types; t++) find_scale(c, t);
  return PSPLIT_OK;
}

static bool find_roots(psplit_i_cells *c) {
  const psplit_i_instance *instance = c->instance;
  if (!instance->makes_message || instance->n_roots == 0) return true;
  c->roots = PSPLIT_NEW(&c->arena, uint64_t, c->words);
  c->leaves = PSPLIT_NEW(&c->arena, uint64_t, c->words);
  if (!c->roots || !c->leaves) return false;
  for (uint32_t i = 0; i < c->n; i++) {
    if (instance->is_root[i]) set_bit(c->roots, i);
    if (instance->is_leaf[i]) set_bit(c->leaves, i);
  }
  return true;
}

psplit_code psplit_i_cells_init(psplit_i_cells *c, const psplit_i_instance *instance,
                                const psplit_i_automaton *automaton, bool no_empty_stages) {
  const uint32_t n = instance->n, words = (n + 63) / 64;
  if (psplit_i_cells_scale(c, instance, automaton) != PSPLIT_OK) return PSPLIT_NOMEM;
  c->before = PSPLIT_NEW(&c->arena, uint64_t, (size_t)n * words);
  c->behind = PSPLIT_NEW(&c->arena, uint64_t, (size_t)n * words);
  c->forbidden = PSPLIT_NEW(&c->arena, uint64_t, (size_t)instance->n_types * words);
  c->left = PSPLIT_NEW(&c->arena, uint64_t, 5 * (size_t)words);
  if (no_empty_stages) c->counted = PSPLIT_NEW(&c->arena, uint64_t, words);
  if (!c->before || !c->behind || !c->forbidden || !c->left || (no_empty_stages && !c->counted) ||
      !find_roots(c))
    return PSPLIT_NOMEM;
  c->fresh_in = c->left + words;
  c->fresh_out = c->fresh_in + words;
  c->free_bits = c->fresh_out + words;
  c->all = c->free_bits + words;
  for (uint32_t i = 0; i < n; i++) set_bit(c->all, i);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t *row = c->before + (size_t)i * words;
    set_bit(row, i);
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++)
      for (uint32_t j = 0; j < words; j++)
        row[j] |= c->before[(size_t)instance->pred[k] * words + j];
    if (c->counted && instance->n_counted[i]) set_bit(c->counted, i);
    for (uint32_t t = 0; t < instance->n_types; t++)
      if (instance->w[(size_t)t * n + i] >= PSPLIT_I_INF)
        set_bit(c->forbidden + (size_t)t * words, i);
  }
  c->least_send = PSPLIT_NEW(&c->arena, int64_t, instance->n_nets);
  c->least_recv = PSPLIT_NEW(&c->arena, int64_t, instance->n_nets);
  int64_t *unused = psplit_i_arena_array(&c->arena, n, sizeof *unused);
  if (!c->least_send || !c->least_recv || !unused) return PSPLIT_NOMEM;
  psplit_i_least_costs(instance, automaton, c->least_send, c->least_recv, unused);
  for (uint32_t i = n; i-- > 0;) {
    uint64_t *row = c->behind + (size_t)i * words;
    set_bit(row, i);
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      for (uint32_t j = 0; j < words; j++)
        row[j] |= c->behind[(size_t)instance->succ[k] * words + j];
  }
  return PSPLIT_OK;
}

void psplit_i_cells_fini(psplit_i_cells *c) {
  psplit_i_vec_fini(&c->tree);
  psplit_i_arena_fini(&c->arena);
}

/* --- properties of a cell --- */

/* Time of the clusters in a set on a type, and their memory. */
static int64_t time_of(const psplit_i_cells *c, const uint64_t *set, bool inside, uint32_t type) {
  const int64_t *w = c->instance->w + (size_t)type * c->n;
  int64_t sum = 0;
  for (uint32_t i = 0; i < c->n; i++)
    if (psplit_i_holds(set, i) == inside && w[i] < PSPLIT_I_INF) sum += w[i];
  return sum;
}

/* Memory of the clusters that are not in the set. */
static uint64_t bytes_outside(const psplit_i_cells *c, const uint64_t *set) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < c->n; i++)
    if (!psplit_i_holds(set, i)) sum += c->instance->weight_bytes[i] + c->instance->act_bytes[i];
  return sum;
}

/* Lists the nets that certainly cross, or only counts them if `list` is NULL. */
static uint32_t list_crossing(const psplit_i_cells *c, const uint64_t *with_producer,
                              const uint64_t *with_consumer, uint32_t *list) {
  const psplit_i_instance *instance = c->instance;
  uint32_t n = 0;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t first = instance->net_off[e], end = instance->net_off[e + 1];
    if (!psplit_i_holds(with_producer, instance->net_pin[first])) continue;
    uint32_t k = first + 1;
    while (k < end && !psplit_i_holds(with_consumer, instance->net_pin[k])) k++;
    if (k == end) continue;
    if (list) list[n] = e;
    n++;
  }
  return n;
}

static psplit_code describe(psplit_i_cells *c, psplit_i_cell *cell) {
  const uint32_t n_types = c->instance->n_types;
  cell->most = PSPLIT_NEW(&c->arena, int64_t, 2 * (size_t)n_types);
  cell->n_ahead = list_crossing(c, cell->in, cell->out, NULL);
  cell->n_behind = c->instance->all_forward ? 0 : list_crossing(c, cell->out, cell->in, NULL);
  cell->ahead = psplit_i_arena_array(&c->arena, cell->n_ahead, sizeof *cell->ahead);
  cell->behind = psplit_i_arena_array(&c->arena, cell->n_behind, sizeof *cell->behind);
  if (!cell->most || !cell->ahead || !cell->behind) return PSPLIT_NOMEM;
  list_crossing(c, cell->in, cell->out, cell->ahead);
  if (cell->n_behind) list_crossing(c, cell->out, cell->in, cell->behind);
  for (uint32_t t = 0; t < n_types; t++) {
    cell->most[2 * t] = time_of(c, cell->in, true, t);
    cell->most[2 * t + 1] = time_of(c, cell->out, false, t);
  }
  cell->most_bytes = bytes_outside(c, cell->out);
  return PSPLIT_OK;
}

/* Applies all implications between the clusters that are in, those that are out and the weights,
 * until nothing changes. Returns false if the cell is empty. */
static bool close_cell(psplit_i_cells *c, psplit_i_cell *cell) {
  const uint32_t words = c->words;
  const int64_t total = c->automaton->total_min_time;
  for (bool again = true; again;) {
    again = false;
    const int64_t in = weigh(c, cell->in, NULL), out = weigh(c, cell->out, NULL);
    if (in > cell->low) cell->low = in;
    if (total - out < cell->high) cell->high = total - out;
    if (cell->low > cell->high) return false;
    bool clash = false;
    for (uint32_t k = 0; k < words; k++) clash |= (cell->in[k] & cell->out[k]) != 0;
    if (clash) return false;
    for (uint32_t k = 0; k < words; k++) c->left[k] = c->all[k] & ~(cell->in[k] | cell->out[k]);
    if (cell->low == in && cell->high == total - out) break; /* the weights imply nothing new */
    memcpy(c->fresh_in, cell->in, words * sizeof *cell->in);
    memcpy(c->fresh_out, cell->out, words * sizeof *cell->out);
    for (uint32_t i = 0; i < c->n; i++) {
      if (!psplit_i_holds(c->left, i)) continue;
      const uint64_t *before = c->before + (size_t)i * words,
                     *behind = c->behind + (size_t)i * words;
      if (total - out - weigh(c, behind, c->left) < cell->low) {
        for (uint32_t k = 0; k < words; k++) c->fresh_in[k] |= before[k];
      } else if (in + weigh(c, before, c->left) > cell->high) {
        for (uint32_t k = 0; k < words; k++) c->fresh_out[k] |= behind[k];
      }
    }
    for (uint32_t k = 0; k < words; k++) {
      if (c->fresh_in[k] & c->fresh_out[k]) return false;
      again |= c->fresh_in[k] != cell->in[k] || c->fresh_out[k] != cell->out[k];
    }
    memcpy(cell->in, c->fresh_in, words * sizeof *cell->in);
    memcpy(cell->out, c->fresh_out, words * sizeof *cell->out);
  }
  cell->n_free = count(c->left, c->left, words);
  return true;
}

static psplit_code ask(psplit_i_cells *c, uint32_t *out) {
  *out = (uint32_t)c->tree.n;
  return psplit_i_vec_push(&c->tree, ((psplit_i_question){.no = PSPLIT_NONE, .yes = PSPLIT_NONE}))
           ? PSPLIT_OK
           : PSPLIT_NOMEM;
}

static psplit_code copy_cell(psplit_i_cells *c, const psplit_i_cell *from, psplit_i_cell *out) {
  *out = *from;
  out->n_paths[0] = out->n_paths[1] = 0; /* paths of a part differ from those of the whole */
  out->in = psplit_i_arena_array(&c->arena, 2 * (size_t)c->words, sizeof *out->in);
  if (!out->in) return PSPLIT_NOMEM;
  out->out = out->in + c->words;
  memcpy(out->in, from->in, c->words * sizeof *out->in);
  memcpy(out->out, from->out, c->words * sizeof *out->out);
  return PSPLIT_OK;
}

psplit_code psplit_i_cells_whole(psplit_i_cells *c, int which, psplit_i_cell *out) {
  psplit_code code;
  *out = (psplit_i_cell){.high = c->automaton->total_min_time, .question = PSPLIT_NONE};
  out->in = PSPLIT_NEW(&c->arena, uint64_t, 2 * (size_t)c->words);
  if (!out->in) return PSPLIT_NOMEM;
  out->out = out->in + c->words;
  for (uint32_t i = 0; i < c->n && which; i++) set_bit(which > 0 ? out->in : out->out, i);
  if (!close_cell(c, out)) return PSPLIT_INTERNAL;
  PSPLIT_TRY(describe(c, out));
  if (which == 0) PSPLIT_TRY(ask(c, &out->question));
out:
  return code;
}

/* --- questions --- */

/* The free cluster that divides a cell best: the worse of its two answers decides the most
 * clusters. */
static uint32_t middle_cluster(const psplit_i_cells *c, const psplit_i_cell *cell) {
  uint32_t best = PSPLIT_NONE, most = 0;
  for (uint32_t k = 0; k < c->words; k++)
    c->free_bits[k] = c->all[k] & ~(cell->in[k] | cell->out[k]);
  for (uint32_t i = 0; i < c->n; i++) {
    if (!psplit_i_holds(c->free_bits, i)) continue;
    const uint32_t a = count(c->before + (size_t)i * c->words, c->free_bits, c->words);
    const uint32_t b = count(c->behind + (size_t)i * c->words, c->free_bits, c->words);
    const uint32_t least = a < b ? a : b;
    if (least > most) most = least, best = i;
  }
  return best;
}

/* Makes the cells of the two answers, without their description; *out_n of them are not empty. */
static psplit_code answer(psplit_i_cells *c, const psplit_i_cell *cell,
                          const psplit_i_question *question, psplit_i_cell out[2], bool holds[2]) {
  psplit_code code;
  for (int yes = 0; yes < 2; yes++) {
    PSPLIT_TRY(copy_cell(c, cell, &out[yes]));
    if (question->kind == PSPLIT_I_ASK_WEIGHT) {
      if (yes)
        out[yes].low = question->weight + 1;
      else
        out[yes].high = question->weight;
    } else {
      const uint64_t *row = (yes ? c->before : c->behind) + (size_t)question->cluster * c->words;
      for (uint32_t k = 0; k < c->words; k++) (yes ? out[yes].in : out[yes].out)[k] |= row[k];
    }
    holds[yes] = close_cell(c, &out[yes]);
  }
out:
  return code;
}

static uint64_t open_after(const psplit_i_cell out[2], const bool holds[2]) {
  return (holds[0] ? (uint64_t)out[0].n_free : 0) + (holds[1] ? out[1].n_free : 0);
}

psplit_code psplit_i_cells_divide(psplit_i_cells *c, const psplit_i_cell *cell,
                                  psplit_i_cell out[2], uint32_t *out_n) {
  psplit_code code;
  bool holds[2], other_holds[2];
  psplit_i_cell other[2];
  psplit_i_question question = {.kind = PSPLIT_I_ASK_NODE, .cluster = middle_cluster(c, cell)};
  PSPLIT_TRY(answer(c, cell, &question, out, holds));
  if (cell->low < cell->high) {
    const psplit_i_question by_weight = {.kind = PSPLIT_I_ASK_WEIGHT,
                                         .weight = cell->low + (cell->high - cell->low) / 2};
    PSPLIT_TRY(answer(c, cell, &by_weight, other, other_holds));
    if (open_after(other, other_holds) < open_after(out, holds)) {
      question = by_weight;
      memcpy(out, other, sizeof other);
      memcpy(holds, other_holds, sizeof other_holds);
    }
  }
  *out_n = 0;
  for (int yes = 0; yes < 2; yes++) {
    uint32_t id = PSPLIT_NONE;
    if (holds[yes]) {
      PSPLIT_TRY(ask(c, &id));
      out[yes].question = id;
      PSPLIT_TRY(describe(c, &out[yes]));
      out[(*out_n)++] = out[yes];
    }
    *(yes ? &question.yes : &question.no) = id;
  }
  c->tree.items[cell->question] = question;
out:
  return code;
}

/* --- stages between cells --- */

/* Whether a net has a consumer that certainly is in the stage. */
static bool read_in_stage(const psplit_i_cells *c, uint32_t e, const psplit_i_cell *from,
                          const psplit_i_cell *to) {
  const psplit_i_instance *instance = c->instance;
  for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++) {
    const uint32_t i = instance->net_pin[k];
    if (psplit_i_holds(to->in, i) && psplit_i_holds(from->out, i)) return true;
  }
  return false;
}

static bool read_behind(const psplit_i_cells *c, uint32_t e, const psplit_i_cell *to) {
  const psplit_i_instance *instance = c->instance;
  for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
    if (psplit_i_holds(to->out, instance->net_pin[k])) return true;
  return false;
}

static bool within(const uint64_t *a, const uint64_t *b, uint32_t words) {
  for (uint32_t k = 0; k < words; k++)
    if (a[k] & ~b[k]) return false;
  return true;
}

/* Whether the stage may contain a cluster of the set. */
static bool may_hold(const psplit_i_cells *c, const uint64_t *set, const psplit_i_cell *from,
                     const psplit_i_cell *to) {
  for (uint32_t k = 0; k < c->words; k++)
    if (set[k] & ~from->in[k] & ~to->out[k]) return true;
  return false;
}

static bool made_in_stage(const psplit_i_cells *c, uint32_t e, const psplit_i_cell *from) {
  return psplit_i_holds(from->out, c->instance->net_pin[c->instance->net_off[e]]);
}

/* Whether the stage certainly receives a message. If it has no root, its first cluster has a tensor
 * from another stage; and some tensor may cross for certain, for instance one of a path. Likewise
 * for sending, with leaves and the last cluster. */
static bool receives_message(const psplit_i_cells *c, const psplit_i_cell *from,
                             const psplit_i_cell *to) {
  bool receives = !may_hold(c, c->roots, from, to);
  for (uint32_t k = 0; k < from->n_paths[0] && !receives; k++)
    receives = from->paths[0][k].message && within(from->paths[0][k].pins, to->in, c->words);
  for (uint32_t k = 0; k < from->n_ahead && !receives; k++)
    receives =
      c->instance->makes_message[from->ahead[k]] && read_in_stage(c, from->ahead[k], from, to);
  return receives;
}

static bool sends_message(const psplit_i_cells *c, const psplit_i_cell *from,
                          const psplit_i_cell *to) {
  bool sends = !may_hold(c, c->leaves, from, to);
  for (uint32_t k = 0; k < to->n_paths[1] && !sends; k++)
    sends = to->paths[1][k].message && within(to->paths[1][k].pins, from->out, c->words);
  for (uint32_t k = 0; k < to->n_ahead && !sends; k++)
    sends = c->instance->makes_message[to->ahead[k]] && made_in_stage(c, to->ahead[k], from);
  return sends;
}

psplit_i_cell_messages psplit_i_cells_messages(const psplit_i_cells *c, const psplit_i_cell *from,
                                               const psplit_i_cell *to, uint32_t type) {
  const psplit_i_instance *instance = c->instance;
  psplit_i_cell_messages m = {.sends = sends_message(c, from, to),
                              .receives = receives_message(c, from, to)};
  for (uint32_t k = 0; k < to->n_ahead; k++) {
    const uint32_t e = to->ahead[k];
    const size_t at = (size_t)type * instance->n_nets + e;
    if (!instance->makes_message[e] ||
        !psplit_i_holds(from->in, instance->net_pin[instance->net_off[e]]))
      continue;
    m.passes = true;
    m.send_ns += instance->send[at];
    if (!read_in_stage(c, e, from, to)) m.recv_ns += instance->recv[at];
  }
  return m;
}

/* `send`: additional time for sending. */
static int64_t communication(const psplit_i_cells *c, const psplit_i_cell *from,
                             const psplit_i_cell *to, uint32_t type, int64_t w, int64_t send) {
  const psplit_i_instance *instance = c->instance;
  const int64_t *send_ns = instance->send + (size_t)type * instance->n_nets;
  const int64_t *recv_ns = instance->recv + (size_t)type * instance->n_nets;
  int64_t recv = 0;
  if (c->roots && receives_message(c, from, to))
    recv += instance->least_message[instance->n_types + type];
  if (c->roots && sends_message(c, from, to)) send += instance->least_message[type];
  for (uint32_t k = 0; k < from->n_paths[0]; k++)
    if (within(from->paths[0][k].pins, to->in, c->words)) recv += from->paths[0][k].amount;
  for (uint32_t k = 0; k < to->n_paths[1]; k++)
    if (within(to->paths[1][k].pins, from->out, c->words)) send += to->paths[1][k].amount;
  for (uint32_t k = 0; k < from->n_ahead; k++)
    if (read_in_stage(c, from->ahead[k], from, to)) recv += recv_ns[from->ahead[k]];
  for (uint32_t k = 0; k < to->n_behind; k++)
    if (read_in_stage(c, to->behind[k], from, to)) recv += recv_ns[to->behind[k]];
  for (uint32_t k = 0; k < to->n_ahead; k++) {
    const uint32_t e = to->ahead[k];
    if (made_in_stage(c, e, from)) send += send_ns[e];
  }
  for (uint32_t k = 0; k < from->n_behind; k++) {
    const uint32_t e = from->behind[k];
    if (psplit_i_holds(to->in, instance->net_pin[instance->net_off[e]]) && !read_behind(c, e, to))
      send += send_ns[e];
  }
  return psplit_i_load(instance, w, recv, send);
}

/* Time and memory of the clusters that certainly are in the stage. */
static bool certain(const psplit_i_cells *c, const psplit_i_cell *from, const psplit_i_cell *to,
                    uint32_t type, int64_t *inout_w) {
  const int64_t *w = c->instance->w + (size_t)type * c->n;
  const uint64_t limit = c->instance->problem->devices[type].memory_bytes;
  int64_t sum = 0;
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < c->words; k++)
    for (uint64_t bits = to->in[k] & from->out[k]; bits; bits &= bits - 1) {
      const uint32_t i = k * 64 + (uint32_t)__builtin_ctzll(bits);
      if (w[i] >= PSPLIT_I_INF) return false;
      sum += w[i];
      bytes += c->instance->weight_bytes[i] + c->instance->act_bytes[i];
    }
  if (sum > *inout_w) *inout_w = sum;
  return limit == 0 || bytes <= limit;
}

int64_t psplit_i_cells_load(const psplit_i_cells *c, const psplit_i_cell *from,
                            const psplit_i_cell *to, uint32_t type, int64_t more,
                            int64_t *out_comm) {
  const psplit_device *device = &c->instance->problem->devices[type];
  const uint64_t *forbidden = c->forbidden + (size_t)type * c->words;
  bool maybe = false, uneven = false;
  *out_comm = 0;
  for (uint32_t k = 0; k < c->words; k++) {
    if ((from->in[k] & to->out[k]) || (to->in[k] & from->out[k] & forbidden[k]))
      return PSPLIT_I_INF;
    uneven |= (~from->out[k] & ~to->in[k] & c->all[k]) != 0;
    if (c->counted) maybe |= (~to->out[k] & ~from->in[k] & c->counted[k]) != 0;
  }
  if (from->low > to->high || (c->counted && !maybe)) return PSPLIT_I_INF;
  if (from->n_free == 0 && from == to) return PSPLIT_I_INF; /* an empty stage */
  int64_t w = 0;
  const int64_t gap = to->low - from->high;
  if (gap > 0) {
    const __int128 scaled =
      ((__int128)gap * c->scale_up[type] + c->scale_down[type] - 1) / c->scale_down[type];
    w = scaled > PSPLIT_I_INF ? PSPLIT_I_INF : (int64_t)scaled;
  }
  const int64_t between = to->most[2 * type] - from->most[2 * type + 1];
  if (between > w) w = between;
  if (uneven || device->memory_bytes)
    if (!certain(c, from, to, type, &w)) return PSPLIT_I_INF;
  if (device->free_comm) return w;
  const int64_t load = communication(c, from, to, type, w, more);
  if (!c->instance->overlap) *out_comm = load - w;
  return load;
}
