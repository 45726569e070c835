/* Labels of separators. From the first block on, the least cost by the bytes of the open stage,
 * whatever devices were used; then from the last block on with devices, where a label that cannot
 * end below the limit, given the former, is dropped. First with what is exact alone, which gives a
 * split; then with several stages inside a block at the least they take, which gives the bound. */
#include "latency_labels.h"

#include <string.h>

#include "problem.h"

/* The first label of the front with more bytes than these. */
static size_t behind(const psplit_i_block_front *f, uint64_t bytes) {
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

void psplit_i_block_front_insert(psplit_i_blocks_state *x, psplit_i_block_front *f,
                                 const psplit_i_block_label *l) {
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
static int64_t time_of(const psplit_i_blocks_state *x, uint32_t k, uint32_t t) {
  return x->instance->w[(size_t)t * x->instance->n + x->separator[k]];
}

static uint64_t bytes_of(const psplit_i_blocks_state *x, uint32_t k, uint32_t t) {
  return x->memory[t] == UINT64_MAX ? 0 : psplit_i_cluster_bytes(x->instance, x->separator[k]);
}

bool psplit_i_blocks_charge(psplit_i_blocks_state *x, uint64_t n_ops) {
  if (!psplit_i_spend(x->budget, n_ops)) x->spent = true;
  return !x->spent && !x->failed;
}

/* The label with separator k and more besides, on a device of the type; false: it does not fit. */
static bool with_separator(const psplit_i_blocks_state *x, uint32_t k, uint32_t t,
                           psplit_i_block_label *l) {
  l->cost = psplit_i_sum_or_inf(l->cost, time_of(x, k, t));
  l->bytes = psplit_i_sat_add_u64(l->bytes, bytes_of(x, k, t));
  return l->cost < x->limit && l->bytes <= x->memory[t];
}

/* Labels of separator k on type t, from those of the one before on type s (n_types: there is none
 * before) by the options of the block between them. */
static void look_through(psplit_i_blocks_state *x, uint32_t k, uint32_t s, uint32_t t,
                         const psplit_i_block_options *options) {
  const psplit_i_block_front *from = k == 0 ? NULL : &x->ahead[(size_t)(k - 1) * x->n_types + s];
  for (size_t o = 0; o < options->n; o++) {
    psplit_i_block_label l = {.cost = options->items[o].cost,
                              .bytes = options->items[o].least_right};
    if (k > 0) {
      const uint64_t left = options->items[o].least_left;
      const size_t at = left > x->memory[s] ? 0 : behind(from, x->memory[s] - left);
      if (at == 0) continue;
      l.cost = psplit_i_sum_or_inf(l.cost, from->items[at - 1].cost);
    }
    if (with_separator(x, k, t, &l))
      psplit_i_block_front_insert(x, &x->ahead[(size_t)k * x->n_types + t], &l);
  }
}

/* The same where the whole block is of the stage that holds both separators. */
static void look_over(psplit_i_blocks_state *x, uint32_t k, uint32_t t) {
  const psplit_i_block *b = &x->block[k];
  const psplit_i_block_front *from = &x->ahead[(size_t)(k - 1) * x->n_types + t];
  for (size_t i = 0; i < from->n; i++) {
    psplit_i_block_label l = from->items[i];
    l.cost = psplit_i_sum_or_inf(l.cost, b->whole[t]);
    if (x->memory[t] < UINT64_MAX) l.bytes = psplit_i_sat_add_u64(l.bytes, b->bytes);
    if (with_separator(x, k, t, &l))
      psplit_i_block_front_insert(x, &x->ahead[(size_t)k * x->n_types + t], &l);
  }
}

/* From the first block on: what is the least that all up to separator k takes, by the bytes that
 * its stage holds, with as many devices as are wanted. */
static bool look_ahead(psplit_i_blocks_state *x) {
  const uint32_t n_types = x->n_types;
  for (uint32_t k = 0; k < x->n; k++)
    for (uint32_t t = 0; t < n_types; t++) {
      for (uint32_t in = 0; in <= psplit_i_block_several(n_types); in++)
        for (uint32_t s = k == 0 ? n_types : 0; s < (k == 0 ? n_types + 1 : n_types); s++) {
          const psplit_i_block_options *options =
            &x->block[k].list[psplit_i_block_list(n_types, s, t, in)];
          look_through(x, k, s, t, options);
          if (!psplit_i_blocks_charge(x, 4 * options->n + 1)) return !x->failed;
        }
      if (k > 0) look_over(x, k, t);
      if (!psplit_i_blocks_charge(x, 4 * x->ahead[(size_t)k * n_types + t].n)) return !x->failed;
    }
  return true;
}

/* Keeps a label of separator k on, if it may end below the limit. */
static void keep(psplit_i_blocks_state *x, uint32_t k, uint32_t state, uint32_t t,
                 psplit_i_block_label l) {
  if (!with_separator(x, k, t, &l)) return;
  const psplit_i_block_front *ahead = &x->ahead[(size_t)k * x->n_types + t];
  const uint64_t room =
    x->memory[t] == UINT64_MAX ? 0 : x->memory[t] - (l.bytes - bytes_of(x, k, t));
  const size_t at = behind(ahead, room);
  if (at == 0 ||
      psplit_i_sum_or_inf(ahead->items[at - 1].cost, l.cost - time_of(x, k, t)) >= x->limit)
    return;
  psplit_i_block_front_insert(
    x, &x->cell[((size_t)k * x->automaton->n_states + state) * x->n_types + t], &l);
}

/* A way to cut block k, with devices taken for what is inside it. */
typedef struct crossing {
  uint32_t k, right;                /* type */
  const psplit_i_block_label *from; /* NULL: outside */
  uint32_t from_at, from_cell;
  uint32_t state, list; /* what is inside, as lists are numbered */
  psplit_i_inside_stages inside;
} crossing;

static uint64_t right_of(const psplit_i_blocks_state *x, const psplit_i_block_option *option) {
  return x->exact ? option->right_bytes : option->least_right;
}

/* Cuts the block at every option that begins a stage of the move's type before it. */
static void cut_before(psplit_i_blocks_state *x, const crossing *c,
                       const psplit_i_transition *move) {
  const psplit_i_block_options *list =
    &x->block[c->k].list[psplit_i_block_list(x->n_types, move->type, c->right, c->list)];
  const psplit_i_block_front *ahead = &x->ahead[(size_t)(c->k - 1) * x->n_types + move->type];
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
         (psplit_i_block_label){.cost = sofar + option->cost,
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
static void choose_inside(psplit_i_blocks_state *x, crossing c,
                          void (*end)(psplit_i_blocks_state *, const crossing *)) {
  const psplit_i_automaton *m = x->automaton;
  const uint32_t most = psplit_i_block_most_inside(x->n_types), state = c.state;
  uint32_t power = 1;
  if (c.inside.n == 2 && !x->exact) c.list = psplit_i_block_several(x->n_types);
  end(x, &c);
  if (c.inside.n == (x->exact ? most : 2)) return;
  for (uint32_t k = 0; k < c.inside.n; k++) power *= x->n_types;
  const psplit_i_inside_stages before = c.inside;
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

static void begin_stage(psplit_i_blocks_state *x, const crossing *c) {
  const psplit_i_automaton *m = x->automaton;
  for (uint32_t k = m->move_off[c->state]; k < m->move_off[c->state + 1]; k++)
    cut_before(x, c, &m->moves[k]);
}

void psplit_i_blocks_clear(psplit_i_blocks_state *x) {
  const size_t n = (size_t)x->n * x->automaton->n_states * x->n_types;
  for (size_t k = 0; x->cell && k < n; k++) psplit_i_vec_fini(&x->cell[k]);
}

/* Ends in front of the first separator. */
static void end_here(psplit_i_blocks_state *x, const crossing *c) {
  const psplit_i_block_options *list =
    &x->block[0].list[psplit_i_block_list(x->n_types, x->n_types, c->right, c->list)];
  for (size_t o = 0; o < list->n; o++) {
    const psplit_i_block_option *option = &list->items[o];
    const int64_t cost = c->from->cost + option->cost;
    if (cost >= x->best.cost) return;
    if (psplit_i_sat_add_u64(c->from->bytes, right_of(x, option)) > x->memory[c->right]) continue;
    x->best = (psplit_i_block_ending){cost, c->from_cell, c->from_at, c->inside, option};
  }
}

static void find_best_ending(psplit_i_blocks_state *x) {
  x->best = (psplit_i_block_ending){.cost = x->limit, .at = PSPLIT_NONE};
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

/* From label i of a cell of separator k to the separators in front of it: through the whole block,
 * or by a way to cut it. */
static void look_back_from(psplit_i_blocks_state *x, uint32_t k, uint32_t state, uint32_t t,
                           uint32_t i) {
  const psplit_i_block *b = &x->block[k];
  const uint32_t cell = (uint32_t)(((size_t)k * x->automaton->n_states + state) * x->n_types + t);
  const psplit_i_block_label *l = &x->cell[cell].items[i];
  psplit_i_block_label more = *l;
  more.cost = psplit_i_sum_or_inf(l->cost, b->whole[t]);
  if (x->memory[t] < UINT64_MAX) more.bytes = psplit_i_sat_add_u64(l->bytes, b->bytes);
  more.option = NULL;
  more.parent = i;
  more.parent_cell = cell;
  keep(x, k - 1, state, t, more);
  choose_inside(
    x, (crossing){.k = k, .right = t, .from = l, .from_at = i, .from_cell = cell, .state = state},
    begin_stage);
}

/* From the last block on, with the devices that are used. */
static void look_back(psplit_i_blocks_state *x, bool exact) {
  const psplit_i_automaton *m = x->automaton;
  psplit_i_blocks_clear(x);
  x->exact = exact;
  choose_inside(x, (crossing){.k = x->n, .right = x->n_types, .from_at = PSPLIT_NONE}, begin_stage);
  for (uint32_t k = x->n - 1; k > 0; k--) {
    for (uint32_t state = 0; state < m->n_states; state++)
      for (uint32_t t = 0; t < x->n_types; t++) {
        const size_t cell = ((size_t)k * m->n_states + state) * x->n_types + t;
        for (uint32_t i = 0; i < x->cell[cell].n && !x->failed && !x->spent; i++)
          look_back_from(x, k, state, t, i);
      }
    psplit_i_blocks_charge(x, m->n_states);
  }
  find_best_ending(x);
}

/* Gives the clusters of block k their stages: `before` and `behind_it` those of its separators. */
static void assign_block(const psplit_i_blocks_state *x, uint32_t k,
                         const psplit_i_block_option *option, uint32_t before,
                         const psplit_i_inside_stages *inside, uint32_t behind_it,
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

static void trace(const psplit_i_blocks_state *x, psplit_i_assignment *split) {
  const psplit_i_automaton *m = x->automaton;
  const psplit_i_block_ending *best = &x->best;
  const psplit_i_block_label *l = &x->cell[best->cell].items[best->at];
  for (uint32_t s = 0; s < m->n_stages; s++) split->device[s] = PSPLIT_NONE;
  for (uint32_t s = 0; s < m->n_stages; s++) split->replicas[s] = 1;
  assign_block(x, 0, best->option, PSPLIT_NONE, &best->inside, l->stage, split);
  uint32_t type = best->cell % x->n_types;
  for (uint32_t k = 0; l; k++) {
    const psplit_i_block_label *parent =
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

psplit_code psplit_i_blocks_look(psplit_i_blocks_state *x, psplit_i_assignment *out_split,
                                 int64_t *inout_bound) {
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
