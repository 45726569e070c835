#include "moves.h"

#include <string.h>

enum { MOST_ROUNDS = 4 /* of what lies between, with its own groups */ };

/* rows[v]: what v leads to by `to`, once the rows of those are known. */
static void join_rows(const psplit_i_calls_closure *c, uint32_t v, const uint32_t *off,
                      const uint32_t *to, uint64_t *rows) {
  uint64_t *row = rows + (size_t)v * c->words;
  for (uint32_t k = off[v]; k < off[v + 1]; k++) {
    const uint64_t *other = rows + (size_t)to[k] * c->words;
    for (uint32_t w = 0; w < c->words; w++) row[w] |= other[w];
    row[to[k] / 64] |= UINT64_C(1) << to[k] % 64;
  }
}

psplit_code psplit_i_calls_closure_init(psplit_i_calls_closure *c, const psplit_i_calls *calls,
                                        psplit_i_arena *arena) {
  const uint32_t n = calls->n;
  *c = (psplit_i_calls_closure){.words = (n + 63) / 64};
  if (n > PSPLIT_I_CALLS_NODES) return PSPLIT_OK;
  c->behind = PSPLIT_NEW(arena, uint64_t, (size_t)n * c->words);
  c->before = PSPLIT_NEW(arena, uint64_t, (size_t)n * c->words);
  if (!c->behind || !c->before) return PSPLIT_NOMEM;
  c->n = n;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t early = calls->order[i], late = calls->order[n - 1 - i];
    join_rows(c, early, calls->pred_off, calls->pred, c->before);
    join_rows(c, late, calls->succ_off, calls->succ, c->behind);
  }
  return PSPLIT_OK;
}

static void take_group(const psplit_i_calls *c, uint32_t group, uint32_t to, uint32_t *device) {
  for (uint32_t k = c->member_off[group]; k < c->member_off[group + 1]; k++)
    device[c->member[k]] = to;
}

/* Brings to accelerator `to` what lies between its nodes, group by group, so that it is convex. */
static void close_gaps(psplit_i_calls_mover *m, uint32_t to, uint32_t *device) {
  const psplit_i_calls_closure *all = m->closure;
  const psplit_i_calls *c = m->calls;
  bool grows = all->n > 0;
  for (int round = 0; grows && round < MOST_ROUNDS; round++) {
    memset(m->behind, 0, all->words * sizeof *m->behind);
    memset(m->before, 0, all->words * sizeof *m->before);
    for (uint32_t v = 0; v < c->n; v++) {
      if (device[v] != to) continue;
      for (uint32_t w = 0; w < all->words; w++) {
        m->behind[w] |= all->behind[(size_t)v * all->words + w];
        m->before[w] |= all->before[(size_t)v * all->words + w];
      }
    }
    grows = false;
    for (uint32_t v = 0; v < c->n; v++) {
      if (device[v] == to || !(m->behind[v / 64] & m->before[v / 64] & UINT64_C(1) << v % 64))
        continue;
      take_group(c, c->group[v], to, device);
      grows = true;
    }
  }
}

static uint32_t neighbour(const psplit_i_calls *c, psplit_i_annealing *chance, uint32_t v) {
  const uint32_t n_in = c->pred_off[v + 1] - c->pred_off[v];
  const uint32_t n_out = c->succ_off[v + 1] - c->succ_off[v];
  if (n_in + n_out == 0) return v;
  const uint32_t k = psplit_i_anneal_below(chance, n_in + n_out);
  return k < n_in ? c->pred[c->pred_off[v] + k] : c->succ[c->succ_off[v] + k - n_in];
}

/* All of one device to another. */
static bool move_device(const psplit_i_calls *c, uint32_t from, uint32_t to, uint32_t *device) {
  bool any = false;
  for (uint32_t v = 0; v < c->n && from != to; v++) {
    if (device[v] != from) continue;
    device[v] = to;
    any = true;
  }
  return any;
}

bool psplit_i_calls_move(psplit_i_calls_mover *m, psplit_i_annealing *chance, uint32_t *io_device) {
  enum { KINDS = 32, TO_ANY = 3, WITH_GAPS = 14, WHOLE = 1 };
  const psplit_i_calls *c = m->calls;
  const uint32_t n_devices = c->n_accelerators + c->has_cpus;
  const uint32_t kind = psplit_i_anneal_below(chance, KINDS);
  const uint32_t v = psplit_i_anneal_below(chance, c->n);
  uint32_t to = psplit_i_anneal_below(chance, n_devices);
  if (kind < WHOLE) return move_device(c, io_device[v], to, io_device);
  if (kind >= WHOLE + TO_ANY) to = io_device[neighbour(c, chance, v)];
  if (to == io_device[v]) return false;
  take_group(c, c->group[v], to, io_device);
  if (kind < WHOLE + TO_ANY + WITH_GAPS && to < c->n_accelerators) close_gaps(m, to, io_device);
  return true;
}
