/* The search for a proof by cases. A program over cells and used devices (case_program.c) finds the
 * cells that lie on a chain of stages within the limit, from the downset of all clusters to the
 * empty one. These cells are divided, until no chain is left. Other cells are never divided, so
 * proofs stay small.
 *
 * A state says which devices are used. If devices of different types may stand in any order, it is
 * the number used of each type, in mixed radix. Otherwise it is the place in the order, counted
 * from the last device. */
#include "case_proof.h"

#include <stdlib.h>

#include "case_proof_inside.h"

enum {
  MAX_STATES = 1 << 12,
  OPS_PER_PAIR = 8,
  OPS_PER_CELL = 16 /* per cell and cluster or pin */
};

static void rows_fini(psplit_i_case_rows *r) {
  psplit_i_vec_fini(&r->stages);
  psplit_i_vec_fini(&r->off);
}

/* --- devices --- */

static psplit_code make_states(psplit_i_case_search *p, bool *out_fits) {
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

/* --- stages between cells --- */

static void add_stage(psplit_i_case_search *p, psplit_i_case_rows *r, uint32_t from, uint32_t to,
                      uint32_t type) {
  const psplit_i_cell *start = &p->list.items[from], *end = &p->list.items[to];
  int64_t comm;
  if (from == PSPLIT_I_CASE_WHOLE || to == PSPLIT_I_CASE_EMPTY || p->count[type] == 0 ||
      end->low - start->high > p->reach[type] ||
      psplit_i_cells_load(p->cells, start, end, type, 0, &comm) > p->request->limit)
    return;
  r->failed |= !psplit_i_vec_push(&r->stages, ((psplit_i_case_stage){from, comm}));
}

/* Lists the stages that fit, by the cell that they end in. now[n_before] maps the cells before the
 * last division to their number now (NONE: the cell was divided), and part_of[list.n] maps new
 * cells to the cell that they are part of; both are NULL in the first round. A part is examined
 * even if the whole did not fit, since its paths differ. */
static psplit_code find_stages(psplit_i_case_search *p, const uint32_t *part_of, const bool *is_new,
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
    psplit_i_case_rows next = {0}, *before = &p->fits[t];
    for (uint32_t to = 0; to < n && !next.failed; to++) {
      next.failed |= !psplit_i_vec_push(&next.off, next.stages.n);
      if (!is_new || is_new[to]) {
        for (uint32_t from = 0; from < n; from++) add_stage(p, &next, from, to, t);
        n_pairs += n;
        continue;
      }
      const uint32_t row = part_of[to];
      for (size_t k = before->off.items[row]; k < before->off.items[row + 1]; k++) {
        const psplit_i_case_stage old = before->stages.items[k];
        if (now[old.from] != PSPLIT_NONE)
          next.failed |=
            !psplit_i_vec_push(&next.stages, ((psplit_i_case_stage){now[old.from], old.comm}));
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

/* --- cells --- */

/* Divides the cells that lie on chains. *out_any: some cell could be divided. */
static psplit_code divide(psplit_i_case_search *p, bool *out_any) {
  const psplit_i_instance *instance = p->cells->instance;
  const uint32_t n_before = (uint32_t)p->list.n;
  const size_t most = 2 * (size_t)n_before;
  psplit_code code = PSPLIT_NOMEM;
  PSPLIT_VEC(psplit_i_cell) next = {0};
  uint32_t *part_of = malloc((most + n_before) * sizeof *part_of);
  bool *is_new = malloc(most * sizeof *is_new);
  *out_any = false;
  if (!part_of || !is_new || !psplit_i_vec_reserve(&next, most)) goto out;
  uint32_t *now = part_of + most;
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

static psplit_code start(psplit_i_case_search *p, bool *out_fits) {
  psplit_code code = PSPLIT_NOMEM;
  const psplit_i_instance *instance = p->cells->instance;
  *out_fits = false;
  p->fits = PSPLIT_NEW(&p->arena, psplit_i_case_rows, instance->n_types);
  p->tracked = PSPLIT_NEW(&p->arena, bool, instance->n_nets);
  /* Reserved first, so that an empty list of counts has an address, too. */
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

/* Moves the paths of all cells to the tree of questions. */
static void keep_paths(psplit_i_case_search *p) {
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
  psplit_i_case_search p = {.cells = cells, .request = request};
  psplit_code code;
  bool fits, done = true, any = true;
  *out_proved = *out_split = false;
  psplit_i_arena_init(&p.arena, 0);
  PSPLIT_TRY(start(&p, &fits));
  while (fits && p.list.n <= request->most_cells && !psplit_i_expired(request->budget)) {
    PSPLIT_TRY(psplit_i_case_program(&p, &done));
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
