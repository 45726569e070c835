/* Latency of blocks in a row. From the first block on, the least cost by the bytes of the open
 * stage, whatever devices were used; then from the last block on with devices, where a label that
 * cannot end below the limit, given the former, is dropped. First with what is exact alone, which
 * gives a split; then with several stages inside a block at the least they take, which gives the
 * bound. */
#include "latency_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "latency_blocks_inside.h"

enum { T = PSPLIT_I_BLOCK_TYPES, SHARE_OF_BLOCK = 2 };

/* Stages inside a block, from the last. */
typedef struct inside_stages {
  uint32_t n, code; /* types as digits */
  uint32_t stage[PSPLIT_I_BLOCK_INSIDE + 1], type[PSPLIT_I_BLOCK_INSIDE + 1];
} inside_stages;

/* A partial split: everything on one side of a separator, and the separator's stage so far. */
typedef struct label {
  int64_t cost;
  uint64_t bytes;                      /* 0 where the type has no limit */
  const psplit_i_block_option *option; /* how the block behind was cut; NULL: it was not */
  uint32_t parent, parent_cell;        /* NONE: none */
  uint32_t stage;
  inside_stages inside; /* that block */
} label;

/* Ascending by bytes, descending by cost. */
typedef PSPLIT_VEC(label) front;

/* The best end of all labels at the first separator. */
typedef struct ending {
  int64_t cost;
  uint32_t cell, at; /* at NONE: there is none below the limit */
  inside_stages inside;
  const psplit_i_block_option *option;
} ending;

typedef struct blocks {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  uint32_t n_types, n; /* separators */
  uint32_t *separator;
  psplit_i_block *block; /* [n + 1] block k is before separator k */
  psplit_i_block_tables tables;
  uint64_t exact_ops;
  front *ahead; /* [n * n_types] of all before, and with, separator k */
  front *cell;  /* [n * n_states * n_types] of all from separator k on */
  uint64_t memory[T];
  int64_t limit;
  bool exact; /* what is no more than a bound is left out */
  ending best;
  bool failed, spent;
} blocks;

static int64_t add(int64_t a, int64_t b) {
  return a >= PSPLIT_I_INF || b >= PSPLIT_I_INF ? PSPLIT_I_INF : a + b;
}

/* A separator: every cluster before leads to it and every one behind follows, over no edge that
 * jumps. Clusters are in topological order: it does where none before is a sink, none behind a
 * source, and no edge from before goes beyond. */
static bool find_separators(blocks *x) {
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

static bool measure_blocks(blocks *x) {
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
      end[i] += x->automaton->omega[i];
      if (end[i] > b->path) b->path = end[i];
      for (uint32_t t = 0; t < x->n_types; t++)
        b->whole[t] = add(b->whole[t], instance->w[(size_t)t * instance->n + i]);
      b->bytes = psplit_i_sat_add_u64(b->bytes, psplit_i_cluster_bytes(instance, i));
    }
  }
  psplit_i_spend(x->budget, instance->n * x->n_types + instance->succ_off[instance->n]);
  return true;
}

/* Ways to cut each block that leave the rest room below the limit: of the rest no more is known
 * than paths of least times. */
static psplit_code enumerate(blocks *x) {
  int64_t least = 0;
  for (uint32_t k = 0; k <= x->n; k++) least += x->block[k].path;
  for (uint32_t k = 0; k < x->n; k++) least += x->automaton->omega[x->separator[k]];
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

/* Copies the front into rest, each cost less by `own`. */
static bool take_rest(const front *from, int64_t own, psplit_i_block_rest *rest) {
  rest->n = 0;
  for (size_t i = 0; i < from->n; i++) {
    const psplit_i_block_rest_point point = {from->items[i].bytes, from->items[i].cost - own};
    if (!psplit_i_vec_push(rest, point)) return false;
  }
  return true;
}

/* The first label of the front with more bytes than these. */
static size_t behind(const front *f, uint64_t bytes) {
  size_t low = 0, high = f->n;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (f->items[middle].bytes <= bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void insert(blocks *x, front *f, const label *l) {
  size_t at = behind(f, l->bytes);
  if (at > 0 && f->items[at - 1].cost <= l->cost) return;
  size_t n_worse = 0; /* from `first` on */
  const size_t first = at > 0 && f->items[at - 1].bytes == l->bytes ? at - 1 : at;
  while (first + n_worse < f->n && f->items[first + n_worse].cost >= l->cost) n_worse++;
  if (n_worse == 0) {
    if (!psplit_i_vec_push(f, *l)) {
      x->failed = true;
      return;
    }
    memmove(f->items + first + 1, f->items + first, (f->n - 1 - first) * sizeof *f->items);
  } else {
    memmove(f->items + first + 1, f->items + first + n_worse,
            (f->n - first - n_worse) * sizeof *f->items);
    f->n -= n_worse - 1;
  }
  f->items[first] = *l;
}

/* Least time and bytes of separator k by itself. */
static int64_t time_of(const blocks *x, uint32_t k, uint32_t t) {
  return x->instance->w[(size_t)t * x->instance->n + x->separator[k]];
}

static uint64_t bytes_of(const blocks *x, uint32_t k, uint32_t t) {
  return x->memory[t] == UINT64_MAX ? 0 : psplit_i_cluster_bytes(x->instance, x->separator[k]);
}

static bool charge(blocks *x, uint64_t n_ops) {
  if (!psplit_i_spend(x->budget, n_ops)) x->spent = true;
  return !x->spent && !x->failed;
}

/* The label with separator k and more besides, on a device of the type; false: it does not fit. */
static bool with_separator(const blocks *x, uint32_t k, uint32_t t, label *l) {
  l->cost = add(l->cost, time_of(x, k, t));
  l->bytes = psplit_i_sat_add_u64(l->bytes, bytes_of(x, k, t));
  return l->cost < x->limit && l->bytes <= x->memory[t];
}

/* Labels of separator k on type t, from those of the one before on type s (n_types: there is none
 * before) by the options of the block between them. */
static void look_through(blocks *x, uint32_t k, uint32_t s, uint32_t t,
                         const psplit_i_block_options *options) {
  const front *from = k == 0 ? NULL : &x->ahead[(size_t)(k - 1) * x->n_types + s];
  for (size_t o = 0; o < options->n; o++) {
    label l = {.cost = options->items[o].cost, .bytes = options->items[o].least_right};
    if (k > 0) {
      const uint64_t left = options->items[o].least_left;
      const size_t at = left > x->memory[s] ? 0 : behind(from, x->memory[s] - left);
      if (at == 0) continue;
      l.cost = add(l.cost, from->items[at - 1].cost);
    }
    if (with_separator(x, k, t, &l)) insert(x, &x->ahead[(size_t)k * x->n_types + t], &l);
  }
}

/* The same where the whole block is of the stage that holds both separators. */
static void look_over(blocks *x, uint32_t k, uint32_t t) {
  const psplit_i_block *b = &x->block[k];
  const front *from = &x->ahead[(size_t)(k - 1) * x->n_types + t];
  for (size_t i = 0; i < from->n; i++) {
    label l = from->items[i];
    l.cost = add(l.cost, b->whole[t]);
    if (x->memory[t] < UINT64_MAX) l.bytes = psplit_i_sat_add_u64(l.bytes, b->bytes);
    if (with_separator(x, k, t, &l)) insert(x, &x->ahead[(size_t)k * x->n_types + t], &l);
  }
}

/* From the first block on: what is the least that all up to separator k takes, by the bytes that
 * its stage holds, with as many devices as are wanted. */
static bool look_ahead(blocks *x) {
  const uint32_t n_types = x->n_types;
  for (uint32_t k = 0; k < x->n; k++)
    for (uint32_t t = 0; t < n_types; t++) {
      for (uint32_t in = 0; in <= psplit_i_block_several(n_types); in++)
        for (uint32_t s = k == 0 ? n_types : 0; s < (k == 0 ? n_types + 1 : n_types); s++) {
          const psplit_i_block_options *options =
            &x->block[k].list[psplit_i_block_list(n_types, s, t, in)];
          look_through(x, k, s, t, options);
          if (!charge(x, 4 * options->n + 1)) return !x->failed;
        }
      if (k > 0) look_over(x, k, t);
      if (!charge(x, 4 * x->ahead[(size_t)k * n_types + t].n)) return !x->failed;
    }
  return true;
}

/* Keeps a label of separator k on, if it may end below the limit. */
static void keep(blocks *x, uint32_t k, uint32_t state, uint32_t t, label l) {
  if (!with_separator(x, k, t, &l)) return;
  const front *ahead = &x->ahead[(size_t)k * x->n_types + t];
  const uint64_t room =
    x->memory[t] == UINT64_MAX ? 0 : x->memory[t] - (l.bytes - bytes_of(x, k, t));
  const size_t at = behind(ahead, room);
  if (at == 0 || add(ahead->items[at - 1].cost, l.cost - time_of(x, k, t)) >= x->limit) return;
  insert(x, &x->cell[((size_t)k * x->automaton->n_states + state) * x->n_types + t], &l);
}

/* A way to cut block k, with devices taken for what is inside it. */
typedef struct crossing {
  uint32_t k, right; /* type */
  const label *from; /* NULL: outside */
  uint32_t from_at, from_cell;
  uint32_t state, list; /* what is inside, as lists are numbered */
  inside_stages inside;
} crossing;

static uint64_t right_of(const blocks *x, const psplit_i_block_option *option) {
  return x->exact ? option->right_bytes : option->least_right;
}

/* Cuts the block at every option that begins a stage of the move's type before it. */
static void cut_before(blocks *x, const crossing *c, const psplit_i_transition *move) {
  const psplit_i_block_options *list =
    &x->block[c->k].list[psplit_i_block_list(x->n_types, move->type, c->right, c->list)];
  const front *ahead = &x->ahead[(size_t)(c->k - 1) * x->n_types + move->type];
  if (ahead->n == 0) return;
  const int64_t sofar = c->from ? c->from->cost : 0, least = ahead->items[ahead->n - 1].cost;
  for (size_t o = 0; o < list->n; o++) {
    const psplit_i_block_option *option = &list->items[o];
    if (sofar + option->cost + least >= x->limit) {
      x->spent |= !psplit_i_spend(x->budget, o + 1);
      return;
    }
    if (c->from && psplit_i_sat_add_u64(c->from->bytes, right_of(x, option)) > x->memory[c->right])
      continue;
    keep(x, c->k - 1, move->next, move->type,
         (label){.cost = sofar + option->cost,
                 .bytes = x->exact ? option->left_bytes : option->least_left,
                 .option = option,
                 .parent = c->from_at,
                 .parent_cell = c->from_cell,
                 .stage = move->stage,
                 .inside = c->inside});
  }
  x->spent |= !psplit_i_spend(x->budget, 4 * list->n + 2);
}

/* Calls `end` for every choice of devices inside the block. */
static void choose_inside(blocks *x, crossing c, void (*end)(blocks *, const crossing *)) {
  const psplit_i_automaton *m = x->automaton;
  const uint32_t most = psplit_i_block_most_inside(x->n_types), state = c.state;
  uint32_t power = 1;
  if (c.inside.n == 2 && !x->exact) c.list = psplit_i_block_several(x->n_types);
  end(x, &c);
  if (c.inside.n == (x->exact ? most : 2)) return;
  for (uint32_t k = 0; k < c.inside.n; k++) power *= x->n_types;
  const inside_stages before = c.inside;
  for (uint32_t k = m->move_off[state]; k < m->move_off[state + 1]; k++) {
    c.inside = before;
    c.inside.stage[before.n] = m->moves[k].stage;
    c.inside.type[before.n] = m->moves[k].type;
    c.inside.code = before.code + power * m->moves[k].type;
    c.inside.n = before.n + 1;
    c.list = psplit_i_block_inside(x->n_types, c.inside.n, c.inside.code);
    c.state = m->moves[k].next;
    choose_inside(x, c, end);
  }
}

static void begin_stage(blocks *x, const crossing *c) {
  const psplit_i_automaton *m = x->automaton;
  for (uint32_t k = m->move_off[c->state]; k < m->move_off[c->state + 1]; k++)
    cut_before(x, c, &m->moves[k]);
}

static void clear_cells(blocks *x) {
  const size_t n = (size_t)x->n * x->automaton->n_states * x->n_types;
  for (size_t k = 0; x->cell && k < n; k++) psplit_i_vec_fini(&x->cell[k]);
}

/* Ends in front of the first separator. */
static void end_here(blocks *x, const crossing *c) {
  const psplit_i_block_options *list =
    &x->block[0].list[psplit_i_block_list(x->n_types, x->n_types, c->right, c->list)];
  for (size_t o = 0; o < list->n; o++) {
    const psplit_i_block_option *option = &list->items[o];
    const int64_t cost = c->from->cost + option->cost;
    if (cost >= x->best.cost) return;
    if (psplit_i_sat_add_u64(c->from->bytes, right_of(x, option)) > x->memory[c->right]) continue;
    x->best = (ending){cost, c->from_cell, c->from_at, c->inside, option};
  }
}

static void find_best_ending(blocks *x) {
  x->best = (ending){.cost = x->limit, .at = PSPLIT_NONE};
  for (uint32_t state = 0; state < x->automaton->n_states; state++)
    for (uint32_t t = 0; t < x->n_types; t++) {
      const uint32_t cell = state * x->n_types + t;
      for (uint32_t i = 0; i < x->cell[cell].n; i++)
        choose_inside(x,
                      (crossing){.right = t,
                                 .from = &x->cell[cell].items[i],
                                 .from_at = i,
                                 .from_cell = cell,
                                 .state = state},
                      end_here);
    }
}

/* From the last block on, with the devices that are used. */
static void look_back(blocks *x, bool exact) {
  const psplit_i_automaton *m = x->automaton;
  clear_cells(x);
  x->exact = exact;
  choose_inside(x, (crossing){.k = x->n, .right = x->n_types, .from_at = PSPLIT_NONE}, begin_stage);
  for (uint32_t k = x->n - 1; k > 0; k--) {
    const psplit_i_block *b = &x->block[k];
    for (uint32_t state = 0; state < m->n_states; state++)
      for (uint32_t t = 0; t < x->n_types; t++) {
        const size_t cell = ((size_t)k * m->n_states + state) * x->n_types + t;
        for (uint32_t i = 0; i < x->cell[cell].n && !x->failed && !x->spent; i++) {
          const label *l = &x->cell[cell].items[i];
          label more = *l;
          more.cost = add(l->cost, b->whole[t]);
          if (x->memory[t] < UINT64_MAX) more.bytes = psplit_i_sat_add_u64(l->bytes, b->bytes);
          more.option = NULL;
          more.parent = i;
          more.parent_cell = (uint32_t)cell;
          keep(x, k - 1, state, t, more);
          choose_inside(x,
                        (crossing){.k = k,
                                   .right = t,
                                   .from = l,
                                   .from_at = i,
                                   .from_cell = (uint32_t)cell,
                                   .state = state},
                        begin_stage);
        }
      }
    charge(x, m->n_states);
  }
  find_best_ending(x);
}

/* Gives the clusters of block k their stages: `before` and `behind_it` those of its separators. */
static void assign_block(const blocks *x, uint32_t k, const psplit_i_block_option *option,
                         uint32_t before, const inside_stages *inside, uint32_t behind_it,
                         psplit_i_assignment *split) {
  const psplit_i_block *b = &x->block[k];
  for (int64_t i = b->first + 1; i < b->last; i++) {
    const uint64_t bit = UINT64_C(1) << ((i - b->first - 1) & 63);
    split->stage[i] = !option || (option->left & bit) ? before : behind_it;
    for (uint32_t p = 0; option && p < inside->n; p++)
      if (option->inside[p] & bit) split->stage[i] = inside->stage[inside->n - 1 - p];
  }
  for (uint32_t p = 0; option && p < inside->n; p++)
    split->device[inside->stage[p]] = inside->type[p];
}

static void trace(const blocks *x, psplit_i_assignment *split) {
  const psplit_i_automaton *m = x->automaton;
  const ending *best = &x->best;
  const label *l = &x->cell[best->cell].items[best->at];
  for (uint32_t s = 0; s < m->n_stages; s++) split->device[s] = PSPLIT_NONE;
  for (uint32_t s = 0; s < m->n_stages; s++) split->replicas[s] = 1;
  assign_block(x, 0, best->option, PSPLIT_NONE, &best->inside, l->stage, split);
  uint32_t type = best->cell % x->n_types;
  for (uint32_t k = 0; l; k++) {
    const label *parent =
      l->parent == PSPLIT_NONE ? NULL : &x->cell[l->parent_cell].items[l->parent];
    split->stage[x->separator[k]] = l->stage;
    split->device[l->stage] = type;
    assign_block(x, k + 1, l->option, l->stage, &l->inside, parent ? parent->stage : 0, split);
    type = l->parent_cell % x->n_types;
    l = parent;
  }
  psplit_i_automaton_name_devices(m, split->replicas, split->device);
  split->value = best->cost;
}

/* Enumerates the blocks again, now that something is known of the rest: much less is left to look
 * at, and that is not rounded. */
static psplit_code enumerate_again(blocks *x) {
  psplit_code code = PSPLIT_OK;
  psplit_i_block_rest before[T] = {0}, behind_it[T] = {0};
  for (uint32_t k = 0; k <= x->n && code == PSPLIT_OK; k++) {
    for (uint32_t t = 0; t < x->n_types; t++) {
      front all = {0};
      if (k > 0 && !take_rest(&x->ahead[(size_t)(k - 1) * x->n_types + t], 0, &before[t]))
        x->failed = true;
      for (uint32_t state = 0; k < x->n && state < x->automaton->n_states; state++) {
        const front *cell = &x->cell[((size_t)k * x->automaton->n_states + state) * x->n_types + t];
        for (size_t i = 0; i < cell->n; i++) insert(x, &all, &cell->items[i]);
      }
      if (!take_rest(&all, 0, &behind_it[t])) x->failed = true;
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

/* Both passes with the options as they are. */
static psplit_code look(blocks *x, psplit_i_assignment *out_split, int64_t *inout_bound) {
  bool loose = false;
  for (uint32_t k = 0; k <= x->n; k++) loose |= x->block[k].loose;
  for (size_t k = 0; k < (size_t)x->n * x->n_types; k++) x->ahead[k].n = 0;
  if (!look_ahead(x)) return PSPLIT_NOMEM;
  x->best.at = PSPLIT_NONE;
  if (!loose && !x->spent) look_back(x, true);
  if (x->best.at != PSPLIT_NONE && !x->failed && !x->spent) {
    trace(x, out_split);
    x->limit = x->best.cost;
  }
  if (!x->spent && !x->failed) look_back(x, false);
  if (!x->spent && !x->failed && x->best.cost > *inout_bound) *inout_bound = x->best.cost;
  return x->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

static psplit_code solve(blocks *x, psplit_i_assignment *out_split, int64_t *inout_bound) {
  const size_t n_cells = (size_t)x->n * x->automaton->n_states * x->n_types;
  x->cell = PSPLIT_NEW(&x->arena, front, n_cells);
  x->ahead = PSPLIT_NEW(&x->arena, front, (size_t)x->n * x->n_types);
  psplit_code code = PSPLIT_NOMEM;
  if (!x->cell || !x->ahead || !measure_blocks(x)) return code;
  charge(x, n_cells);
  PSPLIT_TRY(psplit_i_block_tables_init(&x->tables, x->instance));
  PSPLIT_TRY(enumerate(x));
  PSPLIT_TRY(look(x, out_split, inout_bound));
  for (uint32_t round = 0; round < 2 && !x->spent && x->best.cost < x->limit; round++) {
    PSPLIT_TRY(enumerate_again(x));
    PSPLIT_TRY(look(x, out_split, inout_bound));
  }
out:
  return code;
}

psplit_code psplit_i_blocks(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                            psplit_i_budget *budget, uint64_t exact_ops, int64_t limit,
                            psplit_i_assignment *out_split, int64_t *inout_bound) {
  enum { MOST_CELLS = 1 << 24 };
  out_split->value = PSPLIT_I_INF;
  blocks x = {.instance = instance,
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
  clear_cells(&x);
  psplit_i_block_tables_fini(&x.tables);
  for (size_t k = 0; x.ahead && k < (size_t)x.n * x.n_types; k++) psplit_i_vec_fini(&x.ahead[k]);
  const size_t n_lists = psplit_i_block_n_lists(x.n_types);
  for (uint32_t k = 0; x.block && k <= x.n; k++)
    for (size_t l = 0; x.block[k].list && l < n_lists; l++) psplit_i_vec_fini(&x.block[k].list[l]);
  psplit_i_arena_fini(&x.arena);
  return code;
}
