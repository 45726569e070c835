/* Latency of blocks in sequence: finds the blocks and the ways to cut them, and runs both passes
 * (latency_labels.c). Once a split is known, repeats this with only those ways that may still
 * improve on it. */
#include "latency_blocks.h"

#include "latency_labels.h"
#include "problem.h"

enum { T = PSPLIT_I_BLOCK_TYPES, SHARE_OF_BLOCK = 2 };

/* A separator: every earlier cluster precedes it and every later one follows it, so no edge jumps
 * over it. Clusters are in topological order, so a cluster is a separator if no earlier cluster is
 * a sink, no later one is a source, and no edge of an earlier cluster goes beyond it. */
static bool find_separators(psplit_i_blocks_state *x) {
  const psplit_i_instance *instance = x->instance;
  const uint32_t n = instance->n;
  bool *after = PSPLIT_NEW(&x->arena, bool, (size_t)n + 1); /* a source is at i or later */
  x->separator = PSPLIT_NEW(&x->arena, uint32_t, n);
  if (!after || !x->separator) return false;
  for (uint32_t i = n; i-- > 0;)
    after[i] = after[i + 1] || instance->pred_off[i + 1] == instance->pred_off[i];
  uint32_t furthest = 0;
  bool sink = false;
  for (uint32_t i = 0; i < n && !sink; i++) {
    if (furthest <= i && !after[i + 1]) x->separator[x->n++] = i;
    sink = instance->succ_off[i + 1] == instance->succ_off[i];
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      if (instance->succ[k] > furthest) furthest = instance->succ[k];
  }
  psplit_i_spend(x->budget, n + instance->succ_off[n]);
  return true;
}

static bool measure_blocks(psplit_i_blocks_state *x) {
  const psplit_i_instance *instance = x->instance;
  const size_t n_lists = psplit_i_block_n_lists(x->n_types);
  int64_t *end = PSPLIT_NEW(&x->arena, int64_t, instance->n);
  x->block = PSPLIT_NEW(&x->arena, psplit_i_block, (size_t)x->n + 1);
  if (!end || !x->block) return false;
  for (uint32_t k = 0; k <= x->n; k++) {
    psplit_i_block *b = &x->block[k];
    b->first = k > 0 ? (int64_t)x->separator[k - 1] : -1;
    b->last = k < x->n ? (int64_t)x->separator[k] : (int64_t)instance->n;
    b->list = PSPLIT_NEW(&x->arena, psplit_i_block_options, n_lists);
    if (!b->list) return false;
    for (uint32_t i = (uint32_t)(b->first + 1); i < b->last; i++) {
      for (uint32_t l = instance->pred_off[i]; l < instance->pred_off[i + 1]; l++)
        if (instance->pred[l] > b->first && end[instance->pred[l]] > end[i])
          end[i] = end[instance->pred[l]];
      end[i] += x->automaton->min_time[i];
      if (end[i] > b->path) b->path = end[i];
      for (uint32_t t = 0; t < x->n_types; t++)
        b->whole[t] = psplit_i_sum_or_inf(b->whole[t], instance->w[(size_t)t * instance->n + i]);
      b->bytes = psplit_i_sat_add_u64(b->bytes, psplit_i_cluster_bytes(instance, i));
    }
  }
  psplit_i_spend(x->budget, instance->n * x->n_types + instance->succ_off[instance->n]);
  return true;
}

/* The ways to cut each block that leave the rest enough room below the limit, where the rest is
 * bounded only by paths of least times. */
static psplit_code enumerate(psplit_i_blocks_state *x) {
  int64_t least = 0;
  for (uint32_t k = 0; k <= x->n; k++) least += x->block[k].path;
  for (uint32_t k = 0; k < x->n; k++) least += x->automaton->min_time[x->separator[k]];
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = 0; k <= x->n && code == PSPLIT_OK; k++) {
    psplit_i_budget share = psplit_i_budget_share(x->budget, SHARE_OF_BLOCK);
    const int64_t room =
      x->limit >= PSPLIT_I_INF ? PSPLIT_I_INF : x->limit - (least - x->block[k].path);
    code = psplit_i_block_enumerate(x->instance, x->automaton, &x->tables, x->exact_ops, &share,
                                    room, NULL, NULL, &x->block[k]);
    psplit_i_spend(x->budget, share.spent);
  }
  return code;
}

/* Copies the front into `rest`. Returns false if out of memory. */
static bool take_rest(const psplit_i_block_front *from, psplit_i_block_rest *rest) {
  rest->n = 0;
  for (size_t i = 0; i < from->n; i++) {
    const psplit_i_block_rest_point point = {from->items[i].bytes, from->items[i].cost};
    if (!psplit_i_vec_push(rest, point)) return false;
  }
  return true;
}

/* Enumerates the blocks again, with the bounds that are now known for the rest. Far fewer options
 * remain, and their memory is not rounded. */
static psplit_code enumerate_again(psplit_i_blocks_state *x) {
  psplit_code code = PSPLIT_OK;
  psplit_i_block_rest before[T] = {0}, behind_it[T] = {0};
  for (uint32_t k = 0; k <= x->n && code == PSPLIT_OK; k++) {
    for (uint32_t t = 0; t < x->n_types; t++) {
      psplit_i_block_front all = {0};
      if (k > 0 && !take_rest(&x->ahead[(size_t)(k - 1) * x->n_types + t], &before[t]))
        x->failed = true;
      for (uint32_t state = 0; k < x->n && state < x->automaton->n_states; state++) {
        const psplit_i_block_front *cell =
          &x->cell[((size_t)k * x->automaton->n_states + state) * x->n_types + t];
        for (size_t i = 0; i < cell->n; i++) psplit_i_block_front_insert(x, &all, &cell->items[i]);
      }
      if (!take_rest(&all, &behind_it[t])) x->failed = true;
      psplit_i_vec_fini(&all);
    }
    psplit_i_budget share = psplit_i_budget_share(x->budget, SHARE_OF_BLOCK);
    code = x->failed ? PSPLIT_NOMEM
                     : psplit_i_block_enumerate(x->instance, x->automaton, &x->tables, x->exact_ops,
                                                &share, x->limit, k > 0 ? before : NULL,
                                                k < x->n ? behind_it : NULL, &x->block[k]);
    psplit_i_spend(x->budget, share.spent);
  }
  for (uint32_t t = 0; t < T; t++) {
    psplit_i_vec_fini(&before[t]);
    psplit_i_vec_fini(&behind_it[t]);
  }
  return code;
}

static psplit_code solve(psplit_i_blocks_state *x, psplit_i_assignment *out_split,
                         int64_t *inout_bound) {
  const size_t n_cells = (size_t)x->n * x->automaton->n_states * x->n_types;
  x->cell = PSPLIT_NEW(&x->arena, psplit_i_block_front, n_cells);
  x->ahead = PSPLIT_NEW(&x->arena, psplit_i_block_front, (size_t)x->n * x->n_types);
  psplit_code code = PSPLIT_NOMEM;
  if (!x->cell || !x->ahead || !measure_blocks(x)) return code;
  psplit_i_blocks_charge(x, n_cells);
  PSPLIT_TRY(psplit_i_block_tables_init(&x->tables, x->instance));
  PSPLIT_TRY(enumerate(x));
  PSPLIT_TRY(psplit_i_blocks_look(x, out_split, inout_bound));
  for (uint32_t round = 0; round < 2 && !x->spent && x->best.cost < x->limit; round++) {
    PSPLIT_TRY(enumerate_again(x));
    PSPLIT_TRY(psplit_i_blocks_look(x, out_split, inout_bound));
  }
out:
  return code;
}

psplit_code psplit_i_blocks(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                            psplit_i_budget *budget, uint64_t exact_ops, int64_t limit,
                            psplit_i_assignment *out_split, int64_t *inout_bound) {
  enum { MOST_CELLS = 1 << 24 };
  out_split->value = PSPLIT_I_INF;
  psplit_i_blocks_state x = {.instance = instance,
                             .automaton = automaton,
                             .budget = budget,
                             .exact_ops = exact_ops,
                             .n_types = instance->n_types,
                             .limit = limit};
  if (!psplit_i_takes(PSPLIT_I_SOLVER_BLOCKS, automaton->features) || x.n_types > T)
    return PSPLIT_OK;
  psplit_code code = PSPLIT_NOMEM;
  psplit_i_arena_init(&x.arena, 0);
  for (uint32_t t = 0; t < x.n_types; t++) {
    const uint64_t bytes = instance->problem->devices[t].memory_bytes;
    x.memory[t] = bytes ? bytes : UINT64_MAX;
  }
  if (!find_separators(&x)) goto out;
  code = PSPLIT_OK;
  if (x.n == 0 || (uint64_t)x.n * automaton->n_states * x.n_types > MOST_CELLS ||
      x.n * psplit_i_block_n_lists(x.n_types) > MOST_CELLS)
    goto out;
  code = solve(&x, out_split, inout_bound);
out:
  psplit_i_blocks_clear(&x);
  psplit_i_block_tables_fini(&x.tables);
  for (size_t k = 0; x.ahead && k < (size_t)x.n * x.n_types; k++) psplit_i_vec_fini(&x.ahead[k]);
  const size_t n_lists = psplit_i_block_n_lists(x.n_types);
  for (uint32_t k = 0; x.block && k <= x.n; k++)
    for (size_t l = 0; x.block[k].list && l < n_lists; l++) psplit_i_vec_fini(&x.block[k].list[l]);
  psplit_i_arena_fini(&x.arena);
  return code;
}
