/* Enumerates the ways to cut one block: each cluster, in topological order, is left of the cut,
 * inside, or right of it. The cost of each part is updated as clusters and tensors are added. */
#include "latency_block_lists.h"

enum {
  T = PSPLIT_I_BLOCK_TYPES,
  MOST = PSPLIT_I_BLOCK_CLUSTERS,
  INSIDE = PSPLIT_I_BLOCK_INSIDE,
  STEP_OPS = 8,
  MOST_STEPS = 1 << 18 /* of a pass that only serves splits */
};

/* What the clusters placed so far cost each part, by type. Part 0 is left, 1 .. n_inside are
 * inside, the next is right. */
typedef struct sums {
  int64_t time[INSIDE + 2][T];
  uint64_t bytes[INSIDE + 2];
  uint64_t clusters[INSIDE + 2]; /* as bits */
  uint8_t waits_for[INSIDE + 2]; /* parts inside, as bits */
  int64_t chain; /* with one part inside: a bound on the chain of stages there, however many */
} sums;

typedef struct enumeration {
  const psplit_i_instance *instance;
  psplit_i_block *block;
  psplit_i_block_lists lists; /* the block's */
  psplit_i_budget *budget;
  uint32_t n_types, n_inside;
  bool sends_to_each;
  bool free[T]; /* pays no communication */
  bool there[T];
  int64_t limit;
  uint64_t n_steps, most_steps;
  const psplit_i_block_rest *before, *behind; /* by type; NULL: counts as nothing */
  bool gave_up;
  uint8_t part[MOST];
  int64_t end[MOST][T]; /* of a cluster inside, if it is of the type: a bound on when it ends */
  uint32_t *count; /* [n_nets * (INSIDE + 2)] consumers by part; of part 0: parts that receive */
} enumeration;

static int64_t send_of(const enumeration *x, uint32_t t, uint32_t e) {
  return x->free[t] ? 0 : x->instance->send[(size_t)t * x->instance->n_nets + e];
}

static int64_t recv_of(const enumeration *x, uint32_t t, uint32_t e) {
  return x->free[t] ? 0 : x->instance->recv[(size_t)t * x->instance->n_nets + e];
}

static uint32_t local_of(const enumeration *x, uint32_t cluster) {
  return cluster - (uint32_t)(x->block->first + 1);
}

static uint32_t part_of(const enumeration *x, uint32_t cluster) {
  if (cluster == x->block->first) return 0;
  if (cluster == x->block->last) return x->n_inside + 1;
  return x->part[local_of(x, cluster)];
}

static bool is_inside(const enumeration *x, uint32_t part) {
  return part > 0 && part <= x->n_inside;
}

/* The least over types of when a cluster inside has ended and, unless NONE, sent net e. */
static int64_t least_end(const enumeration *x, uint32_t cluster, uint32_t e) {
  int64_t least = PSPLIT_I_INF;
  for (uint32_t t = 0; t < x->n_types; t++) {
    const int64_t sent = e == PSPLIT_NONE ? 0 : send_of(x, t, e);
    const int64_t end = psplit_i_sum_or_inf(x->end[local_of(x, cluster)][t], sent);
    if (end < least) least = end;
  }
  return least;
}

/* Inside, a stage may be of any type. A chain of clusters pays, stage by stage, to receive where it
 * enters, to compute, and to send where it leaves: all that lies inside takes at least so long. */
static void time_inside(enumeration *x, uint32_t cluster, sums *s) {
  const psplit_i_instance *instance = x->instance;
  int64_t start[T] = {0}, least = PSPLIT_I_INF;
  for (uint32_t l = instance->pred_off[cluster]; l < instance->pred_off[cluster + 1]; l++) {
    const uint32_t p = instance->pred[l];
    if (!is_inside(x, part_of(x, p))) continue;
    const int64_t end = least_end(x, p, PSPLIT_NONE);
    for (uint32_t t = 0; t < x->n_types; t++)
      if (end > start[t]) start[t] = end;
  }
  for (uint32_t l = instance->inc_off[cluster]; l < instance->inc_off[cluster + 1]; l++) {
    if (instance->inc[l] & 1) continue;
    const uint32_t e = instance->inc[l] >> 1, from = instance->net_pin[instance->net_off[e]];
    const bool inside = is_inside(x, part_of(x, from));
    const int64_t sent = inside ? least_end(x, from, e) : 0;
    for (uint32_t t = 0; t < x->n_types; t++) {
      int64_t ready = psplit_i_sum_or_inf(sent, recv_of(x, t, e));
      if (inside && x->end[local_of(x, from)][t] < ready) ready = x->end[local_of(x, from)][t];
      if (ready > start[t]) start[t] = ready;
    }
  }
  for (uint32_t t = 0; t < x->n_types; t++) {
    const int64_t w = x->there[t] ? instance->w[(size_t)t * instance->n + cluster] : PSPLIT_I_INF;
    const int64_t end = psplit_i_sum_or_inf(start[t], w);
    x->end[local_of(x, cluster)][t] = end;
    if (end < least) least = end;
  }
  if (least > s->chain) s->chain = least;
}

/* Net e has one more consumer in a part that its producer is not in. */
static void add_receiver(enumeration *x, uint32_t e, uint32_t from, uint32_t part, sums *s) {
  uint32_t *count = x->count + (size_t)e * (INSIDE + 2);
  const uint32_t home = part_of(x, from);
  if (is_inside(x, home) && is_inside(x, part)) s->waits_for[part] |= (uint8_t)(1u << home);
  if (count[part]++ > 0) return;
  const bool sends = count[0]++ == 0 || x->sends_to_each;
  for (uint32_t t = 0; t < x->n_types; t++) {
    if (sends) s->time[home][t] = psplit_i_sum_or_inf(s->time[home][t], send_of(x, t, e));
    s->time[part][t] = psplit_i_sum_or_inf(s->time[part][t], recv_of(x, t, e));
  }
  if (x->n_inside == 1 && home == 1) {
    const int64_t end = least_end(x, from, e);
    if (end > s->chain) s->chain = end;
  }
}

static void receive(enumeration *x, uint32_t cluster, uint32_t part, sums *s) {
  const psplit_i_instance *instance = x->instance;
  for (uint32_t l = instance->inc_off[cluster]; l < instance->inc_off[cluster + 1]; l++) {
    if (instance->inc[l] & 1) continue;
    const uint32_t e = instance->inc[l] >> 1, from = instance->net_pin[instance->net_off[e]];
    if (part_of(x, from) != part) add_receiver(x, e, from, part, s);
  }
}

static void forget(enumeration *x, uint32_t cluster, uint32_t part) {
  const psplit_i_instance *instance = x->instance;
  for (uint32_t l = instance->inc_off[cluster]; l < instance->inc_off[cluster + 1]; l++) {
    if (instance->inc[l] & 1) continue;
    const uint32_t e = instance->inc[l] >> 1;
    uint32_t *count = x->count + (size_t)e * (INSIDE + 2);
    if (part_of(x, instance->net_pin[instance->net_off[e]]) != part && --count[part] == 0)
      count[0]--;
  }
}

static void place(enumeration *x, uint32_t cluster, uint32_t part, sums *s) {
  const psplit_i_instance *instance = x->instance;
  const uint32_t local = local_of(x, cluster);
  x->part[local] = (uint8_t)part;
  for (uint32_t t = 0; t < x->n_types; t++)
    s->time[part][t] =
      psplit_i_sum_or_inf(s->time[part][t], instance->w[(size_t)t * instance->n + cluster]);
  s->bytes[part] = psplit_i_sat_add_u64(s->bytes[part], psplit_i_cluster_bytes(instance, cluster));
  s->clusters[part] |= UINT64_C(1) << local;
  /* Edges that carry nothing make a stage wait, too. */
  for (uint32_t l = instance->pred_off[cluster]; l < instance->pred_off[cluster + 1]; l++) {
    const uint32_t home = part_of(x, instance->pred[l]);
    if (home != part && is_inside(x, home)) s->waits_for[part] |= (uint8_t)(1u << home);
  }
  receive(x, cluster, part, s);
  if (part == 1 && x->n_inside == 1) time_inside(x, cluster, s);
}

/* What the rest takes besides, where this part holds so much. */
static int64_t rest_of(const enumeration *x, const psplit_i_block_rest *rest, uint32_t t,
                       uint64_t bytes) {
  if (t >= x->n_types || !rest) return 0;
  if (x->lists.memory[t] == UINT64_MAX) bytes = 0;
  if (bytes > x->lists.memory[t]) return PSPLIT_I_INF;
  size_t low = 0, high = rest[t].n;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (rest[t].items[middle].bytes <= x->lists.memory[t] - bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? rest[t].items[low - 1].cost : PSPLIT_I_INF;
}

/* The longest chain of stages inside, of types that are the digits of `code`; INF: one does not
 * fit. */
static int64_t chain_of(const enumeration *x, const sums *s, uint32_t code) {
  int64_t end[INSIDE + 1], most = 0;
  for (uint32_t p = x->n_inside; p > 0; p--, code /= x->n_types) {
    const uint32_t t = code % x->n_types;
    if (!x->there[t] || s->bytes[p] > x->lists.memory[t]) return PSPLIT_I_INF;
    end[p] = s->time[p][t];
  }
  for (uint32_t p = 1; p <= x->n_inside; p++) {
    int64_t ready = 0;
    for (uint32_t q = 1; q < p; q++)
      if ((s->waits_for[p] >> q & 1) && end[q] > ready) ready = end[q];
    end[p] = psplit_i_sum_or_inf(end[p], ready);
    if (end[p] > most) most = end[p];
  }
  return most;
}

/* With these types at the ends: an option for each choice of types inside. */
static void keep_inside(enumeration *x, const sums *s, uint32_t a, uint32_t b, int64_t ends) {
  const uint32_t n = x->n_types, n_inside = s->clusters[1] ? x->n_inside : 0;
  psplit_i_block_option option = {
    .left_bytes = s->bytes[0], .right_bytes = s->bytes[x->n_inside + 1], .left = s->clusters[0]};
  for (uint32_t p = 0; p < n_inside; p++) option.inside[p] = s->clusters[p + 1];
  uint32_t n_codes = 1;
  for (uint32_t p = 0; p < n_inside; p++) n_codes *= n;
  for (uint32_t code = 0; code < n_codes; code++) {
    option.cost = psplit_i_sum_or_inf(ends, n_inside ? chain_of(x, s, code) : 0);
    if (option.cost < x->limit)
      psplit_i_block_lists_add(&x->lists, a, b, psplit_i_block_inside(n, n_inside, code), option);
  }
  const uint64_t inside = s->clusters[1];
  option.cost = psplit_i_sum_or_inf(ends, s->chain);
  if (x->n_inside == 1 && (inside & (inside - 1)) && option.cost < x->limit)
    psplit_i_block_lists_add(&x->lists, a, b, psplit_i_block_several(n), option);
}

/* All parts are known. */
static void keep_all(enumeration *x, const sums *s) {
  const uint32_t n = x->n_types, right = x->n_inside + 1;
  const bool before = x->block->first >= 0, behind = x->block->last < x->instance->n;
  for (uint32_t p = 1; x->n_inside > 1 && p <= x->n_inside; p++)
    if (!s->clusters[p]) return;
  for (uint32_t a = before ? 0 : n; a < (before ? n : n + 1); a++) {
    if (before && (!x->there[a] || s->bytes[0] > x->lists.memory[a])) continue;
    for (uint32_t b = behind ? 0 : n; b < (behind ? n : n + 1); b++) {
      if (behind && (!x->there[b] || s->bytes[right] > x->lists.memory[b])) continue;
      const int64_t ends =
        psplit_i_sum_or_inf(before ? s->time[0][a] : 0, behind ? s->time[right][b] : 0);
      const int64_t rest = psplit_i_sum_or_inf(rest_of(x, x->before, a, s->bytes[0]),
                                               rest_of(x, x->behind, b, s->bytes[right]));
      const int64_t limit = x->limit;
      x->limit -= rest < limit ? rest : limit;
      if (ends < x->limit) keep_inside(x, s, a, b, ends);
      x->limit = limit;
    }
  }
}

static int64_t least_of(const enumeration *x, const int64_t *cost, const psplit_i_block_rest *rest,
                        uint64_t bytes) {
  int64_t least = PSPLIT_I_INF;
  for (uint32_t t = 0; t < x->n_types; t++) {
    const int64_t all =
      x->there[t] ? psplit_i_sum_or_inf(cost[t], rest_of(x, rest, t, bytes)) : PSPLIT_I_INF;
    if (all < least) least = all;
  }
  return least;
}

/* What is placed costs more than is allowed already, whatever the types. */
static bool is_above(const enumeration *x, const sums *s) {
  const uint32_t right = x->n_inside + 1;
  int64_t sum = least_of(x, s->time[1], NULL, 0);
  if (x->n_inside == 1 && s->chain < sum) sum = s->chain;
  if (x->block->first >= 0)
    sum = psplit_i_sum_or_inf(sum, least_of(x, s->time[0], x->before, s->bytes[0]));
  if (x->block->last < x->instance->n)
    sum = psplit_i_sum_or_inf(sum, least_of(x, s->time[right], x->behind, s->bytes[right]));
  return sum >= x->limit;
}

static bool may_go_on(enumeration *x) {
  if (++x->n_steps > x->most_steps) x->gave_up = true;
  x->lists.n_ops += STEP_OPS;
  if (x->lists.n_ops >= 1 << 16) {
    if (!psplit_i_spend(x->budget, x->lists.n_ops)) x->gave_up = true;
    x->lists.n_ops = 0;
  }
  return !x->gave_up && !x->lists.failed;
}

static void visit(enumeration *x, uint32_t cluster, const sums *before) {
  const psplit_i_instance *instance = x->instance;
  if (!may_go_on(x)) return;
  if (cluster == x->block->last) {
    sums s = *before;
    const uint32_t right = x->n_inside + 1;
    if (cluster < instance->n) receive(x, cluster, right, &s);
    keep_all(x, &s);
    if (cluster < instance->n) forget(x, cluster, right);
    return;
  }
  uint32_t low = x->block->first >= 0 ? 0 : 1;
  const uint32_t high = x->block->last < instance->n ? x->n_inside + 1 : x->n_inside;
  for (uint32_t l = instance->pred_off[cluster]; l < instance->pred_off[cluster + 1]; l++) {
    const uint32_t part = part_of(x, instance->pred[l]);
    if (part > low) low = part;
  }
  for (uint32_t part = low; part <= high; part++) {
    sums s = *before;
    place(x, cluster, part, &s);
    if (!is_above(x, &s)) visit(x, cluster + 1, &s);
    forget(x, cluster, part);
  }
}

/* Any cut, at the cost of the longest path alone, with any devices inside. */
static void keep_loosest(enumeration *x) {
  const uint32_t n = x->n_types;
  const bool before = x->block->first >= 0, behind = x->block->last < x->instance->n;
  psplit_i_block_lists_clear(&x->lists);
  x->block->loose = true;
  for (uint32_t a = before ? 0 : n; a < (before ? n : n + 1); a++)
    for (uint32_t b = behind ? 0 : n; b < (behind ? n : n + 1); b++)
      psplit_i_block_lists_add(&x->lists, a, b, 0, (psplit_i_block_option){.cost = x->block->path});
}

static void run(enumeration *x, uint64_t exact_ops, psplit_i_budget *budget) {
  const uint32_t n = (uint32_t)(x->block->last - x->block->first - 1);
  const sums none = {0};
  psplit_i_budget few = psplit_i_budget_share(budget, 1);
  x->n_inside = 1;
  x->most_steps = UINT64_MAX;
  if (few.most > exact_ops) few.most = exact_ops;
  x->budget = &few;
  x->lists.exact = true;
  x->gave_up = n > MOST || exact_ops == 0;
  visit(x, (uint32_t)(x->block->first + 1), &none);
  psplit_i_spend(budget, few.spent);
  x->budget = budget;
  if (x->gave_up && n <= MOST && !x->lists.failed) {
    x->lists.exact = x->gave_up = false;
    psplit_i_block_lists_clear(&x->lists);
    visit(x, (uint32_t)(x->block->first + 1), &none);
  }
  if (x->gave_up && !x->lists.failed) keep_loosest(x);
  /* More stages inside serve splits: the bound counts them as several. */
  for (uint32_t k = 2; k <= psplit_i_block_most_inside(x->n_types) && k <= n && !x->gave_up; k++) {
    x->n_inside = k;
    x->n_steps = 0;
    x->most_steps = MOST_STEPS;
    visit(x, (uint32_t)(x->block->first + 1), &none);
  }
}

psplit_code psplit_i_block_enumerate(const psplit_i_instance *instance,
                                     const psplit_i_automaton *automaton,
                                     const psplit_i_block_tables *tables, uint64_t exact_ops,
                                     psplit_i_budget *budget, int64_t limit,
                                     const psplit_i_block_rest *before,
                                     const psplit_i_block_rest *behind, psplit_i_block *block) {
  const uint32_t n = instance->n_types;
  enumeration x = {.instance = instance,
                   .block = block,
                   .lists = {.block = block, .n_types = n, .cell = tables->cell},
                   .budget = budget,
                   .n_types = n,
                   .limit = limit,
                   .before = before,
                   .behind = behind,
                   .count = tables->count,
                   .sends_to_each = instance->p2p && !instance->problem->next_hop};
  for (uint32_t t = 0; t < n; t++) {
    const psplit_device *device = &instance->problem->devices[t];
    x.free[t] = device->free_comm;
    x.there[t] = automaton->count[t] > 0;
    x.lists.memory[t] = device->memory_bytes ? device->memory_bytes : UINT64_MAX;
  }
  block->loose = false;
  psplit_i_block_lists_clear(&x.lists);
  run(&x, exact_ops, budget);
  psplit_i_block_lists_finish(&x.lists);
  psplit_i_spend(budget, x.lists.n_ops);
  return x.lists.failed ? PSPLIT_NOMEM : PSPLIT_OK;
}
