#include "two_limits.h"

#include <string.h>

#include "bits.h"
#include "downsets.h"
#include "load_tracker.h"

/* What is reached: the downset that is left, and the largest loads of the stages behind it. */
typedef struct label {
  int64_t load[PSPLIT_I_N_DIRECTIONS];
  uint32_t left, state, behind; /* downset; of the automaton; the label behind the stage, or NONE */
  uint32_t stage, type;         /* of that stage */
  uint32_t next;                /* of the same downset, or NONE */
} label;

/* Labels of a downset, and the next downset of as many clusters. */
typedef struct place {
  uint32_t first, next;
} place;

typedef struct run {
  const psplit_i_directions *d;
  const psplit_i_two_limits_options *options;
  psplit_i_load_tracker tracker[PSPLIT_I_N_DIRECTIONS];
  psplit_i_arena arena;
  psplit_i_downsets downsets;
  PSPLIT_VEC(label) labels;
  PSPLIT_VEC(place) places;
  PSPLIT_VEC(uint32_t) from; /* labels of the downset at hand, by state */
  uint32_t *bucket;          /* [n + 1] by clusters, a downset or NONE */
  uint64_t *left, *tops;     /* of what the stage at hand leaves: all, and its maximal clusters */
  uint32_t *n_succ;          /* [n] successors that are left */
  uint32_t *taken;
  uint32_t n_taken, n_left;
  uint32_t place_of_left;               /* once looked up: the downset that is left; else NONE */
  int64_t min_time[PSPLIT_I_N_PARTS];   /* of what is left, the least on any device */
  int64_t floor[PSPLIT_I_N_DIRECTIONS]; /* the least loads of labels at hand */
  int64_t limit;
  uint32_t best; /* label with nothing left, or NONE */
  bool failed;   /* out of memory */
  bool spent;    /* out of time, or of tables */
} run;

psplit_code psplit_i_directions_init(psplit_i_directions *d,
                                     const psplit_problem of[PSPLIT_I_N_PARTS],
                                     const psplit_partition_options *options, const uint32_t *merge,
                                     psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_partition_options throughput = *options;
  throughput.objective = PSPLIT_THROUGHPUT;
  memset(d, 0, sizeof *d);
  for (int k = 0; k < PSPLIT_I_N_PARTS && code == PSPLIT_OK; k++) {
    code = psplit_i_instance_init(&d->instance[k], &of[k], merge, diag);
    if (code != PSPLIT_OK) break;
    code = psplit_i_automaton_init(&d->automaton[k], &d->instance[k], &throughput, diag);
  }
  if (code != PSPLIT_OK) psplit_i_directions_fini(d);
  return code;
}

void psplit_i_directions_fini(psplit_i_directions *d) {
  for (int k = 0; k < PSPLIT_I_N_PARTS; k++) {
    psplit_i_automaton_fini(&d->automaton[k]);
    psplit_i_instance_fini(&d->instance[k]);
  }
}

static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }

static psplit_code init(run *r, const psplit_i_directions *d,
                        const psplit_i_two_limits_options *options) {
  const psplit_i_instance *instance = &d->instance[0];
  const uint32_t n = instance->n, words = (n + 63) / 64;
  *r = (run){.d = d, .options = options, .limit = options->limit, .best = PSPLIT_NONE};
  psplit_i_arena_init(&r->arena, 0);
  psplit_i_downsets_init(&r->downsets, instance);
  r->bucket = PSPLIT_NEW(&r->arena, uint32_t, (size_t)n + 1);
  r->left = PSPLIT_NEW(&r->arena, uint64_t, words);
  r->tops = PSPLIT_NEW(&r->arena, uint64_t, words);
  r->n_succ = PSPLIT_NEW(&r->arena, uint32_t, n);
  r->taken = PSPLIT_NEW(&r->arena, uint32_t, n);
  if (!r->bucket || !r->left || !r->tops || !r->n_succ || !r->taken) return PSPLIT_NOMEM;
  memset(r->bucket, 0xff, ((size_t)n + 1) * sizeof *r->bucket);
  for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++)
    if (psplit_i_load_tracker_init(&r->tracker[k], &d->instance[k], &r->arena) != PSPLIT_OK)
      return PSPLIT_NOMEM;
  return PSPLIT_OK;
}

static void fini(run *r) {
  psplit_i_downsets_fini(&r->downsets);
  psplit_i_vec_fini(&r->labels);
  psplit_i_vec_fini(&r->places);
  psplit_i_vec_fini(&r->from);
  psplit_i_arena_fini(&r->arena);
}

/* The number of the downset that is left, new or not; NONE: out of memory. */
static uint32_t number_of_left(run *r) {
  const uint32_t n_before = r->downsets.n;
  if (!psplit_i_downsets_add(&r->downsets, r->left)) return PSPLIT_NONE;
  if (r->downsets.n == n_before) return psplit_i_downsets_number(&r->downsets, r->left);
  const place made = {PSPLIT_NONE, r->bucket[r->n_left]};
  if (!psplit_i_vec_push(&r->places, made)) return PSPLIT_NONE;
  return r->bucket[r->n_left] = n_before;
}

/* Whether whatever completes b completes a, with no load larger. */
static bool dominates(const run *r, const label *a, const label *b) {
  const psplit_i_automaton *m = &r->d->automaton[0];
  if (a->load[0] > b->load[0] || a->load[1] > b->load[1]) return false;
  return m->all_used ? a->state == b->state : psplit_i_automaton_leq(m, a->state, b->state);
}

/* Adds a label of what is left, unless another of the same downset dominates it. */
static void add_label(run *r, const label *made) {
  if (r->place_of_left == PSPLIT_NONE) r->place_of_left = number_of_left(r);
  const uint32_t left = r->place_of_left;
  uint64_t n_seen = 0;
  if (left == PSPLIT_NONE) {
    r->failed = true;
    return;
  }
  label *labels = r->labels.items;
  uint32_t *link = &r->places.items[left].first;
  for (uint32_t i = *link; i != PSPLIT_NONE; i = labels[i].next, n_seen++)
    if (dominates(r, &labels[i], made)) return;
  while (*link != PSPLIT_NONE) {
    if (dominates(r, made, &labels[*link]))
      *link = labels[*link].next;
    else
      link = &labels[*link].next;
  }
  r->spent |= !psplit_i_spend(r->options->budget, n_seen);
  label kept = *made;
  kept.left = left;
  kept.next = r->places.items[left].first;
  r->places.items[left].first = (uint32_t)r->labels.n;
  if (r->n_left == 0) {
    r->limit = kept.load[0] + kept.load[1];
    r->best = (uint32_t)r->labels.n;
  }
  if (!psplit_i_vec_push(&r->labels, kept)) r->failed = true;
  const uint64_t bytes = r->labels.capacity * sizeof(label) +
                         r->downsets.bits.capacity * sizeof(uint64_t) +
                         (r->downsets.table.capacity + 2 * r->places.capacity) * sizeof(uint32_t);
  r->spent |= bytes > r->options->memory_cap_bytes || r->labels.n >= UINT32_MAX - 1;
}

/* What the slowest of the stages in front takes at least, of one part: no less than if they shared
 * the work, and than what the weight axis says. */
static int64_t least_in_front(const run *r, int k, uint32_t state) {
  const double capacity = r->d->automaton[k].capacity[state];
  const int64_t shared =
    capacity > 0 ? (int64_t)((double)r->min_time[k] / capacity * (1 - 1e-9)) : 0;
  const psplit_i_weight_axis *axes = r->options->axes;
  return axes ? most_of(shared, psplit_i_weight_axis_before(&axes[k], r->min_time[k], state))
              : shared;
}

/* The stage that is taken, by one move from a state: labels from[begin .. end) are in it. */
static void push_move(run *r, const psplit_i_transition *move, uint32_t begin, uint32_t end) {
  const psplit_i_automaton *m = &r->d->automaton[0];
  int64_t load[PSPLIT_I_N_DIRECTIONS], front[PSPLIT_I_N_PARTS] = {0};
  for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++)
    load[k] = psplit_i_load_tracker_load(&r->tracker[k], &r->d->automaton[k], move);
  if (load[0] >= PSPLIT_I_INF || load[1] >= PSPLIT_I_INF) return;
  if (m->all_used && r->tracker[0].n_counted == 0) return;
  if (r->n_left == 0 && !psplit_i_automaton_final(m, move->next)) return;
  if (r->n_left > 0 && m->used[move->next] == m->n_stages) return;
  for (int k = 0; k < PSPLIT_I_N_PARTS && r->n_left > 0; k++)
    front[k] = least_in_front(r, k, move->next);
  for (uint32_t i = begin; i < end && !r->failed && !r->spent; i++) {
    const label *from = &r->labels.items[r->from.items[i]];
    label made = {.state = move->next, .behind = r->from.items[i], .stage = move->stage};
    int64_t sum = 0;
    made.type = move->type;
    for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++) {
      made.load[k] = most_of(from->load[k], load[k]);
      sum += most_of(made.load[k], front[k]);
    }
    if (most_of(sum, front[PSPLIT_I_BOTH]) < r->limit) add_label(r, &made);
  }
}

/* The stage that is taken, behind every label at hand. */
static void push_stage(run *r) {
  const psplit_i_automaton *m = &r->d->automaton[0];
  const uint32_t n = (uint32_t)r->from.n, pin = r->tracker[0].pin;
  r->place_of_left = PSPLIT_NONE;
  for (uint32_t begin = 0, end; begin < n; begin = end) {
    const uint32_t state = r->labels.items[r->from.items[begin]].state;
    for (end = begin; end < n && r->labels.items[r->from.items[end]].state == state;) end++;
    for (uint32_t k = m->move_off[state]; pin == PSPLIT_NONE && k < m->move_off[state + 1]; k++)
      push_move(r, &m->moves[k], begin, end);
    psplit_i_transition move;
    for (uint32_t t = 0; pin != PSPLIT_NONE && t < m->n_types; t++)
      if (psplit_i_automaton_pinned(m, state, pin, t, 1, &move)) push_move(r, &move, begin, end);
  }
}

/* Whether the stage, or a larger one, may be part of a split below the limit. Monotonicity: what it
 * computes and holds only grows. */
static bool fits(const run *r) {
  const psplit_i_instance *instance = &r->d->instance[0];
  const psplit_i_load_tracker *tracker = r->tracker;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const psplit_device *device = &instance->problem->devices[t];
    int64_t sum = 0;
    if (!device->count || tracker[0].n_forbidden[t]) continue;
    for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++) sum += most_of(r->floor[k], tracker[k].w[t]);
    const uint64_t bytes = psplit_i_sat_add_u64(tracker[0].weight_bytes, tracker[0].act_bytes);
    if (sum < r->limit && (!device->memory_bytes || bytes <= device->memory_bytes)) return true;
  }
  return false;
}

static void turn(uint64_t *bits, uint32_t i) { bits[i / 64] ^= UINT64_C(1) << (i % 64); }

static void take(run *r, uint32_t u) {
  const psplit_i_instance *instance = &r->d->instance[0];
  for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++) psplit_i_load_tracker_add(&r->tracker[k], u);
  for (int k = 0; k < PSPLIT_I_N_PARTS; k++) r->min_time[k] -= r->d->automaton[k].min_time[u];
  turn(r->left, u);
  turn(r->tops, u);
  for (uint32_t k = instance->pred_off[u]; k < instance->pred_off[u + 1]; k++)
    if (--r->n_succ[instance->pred[k]] == 0) turn(r->tops, instance->pred[k]);
  r->taken[r->n_taken++] = u;
  r->n_left--;
}

static uint32_t give_back(run *r) {
  const psplit_i_instance *instance = &r->d->instance[0];
  const uint32_t u = r->taken[--r->n_taken];
  for (uint32_t k = instance->pred_off[u]; k < instance->pred_off[u + 1]; k++)
    if (r->n_succ[instance->pred[k]]++ == 0) turn(r->tops, instance->pred[k]);
  turn(r->left, u);
  turn(r->tops, u);
  for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++) psplit_i_load_tracker_remove(&r->tracker[k], u);
  for (int k = 0; k < PSPLIT_I_N_PARTS; k++) r->min_time[k] += r->d->automaton[k].min_time[u];
  r->n_left++;
  return u;
}

/* The stage grows by a cluster; false: it must not, or time is spent. */
static bool grow(run *r, uint32_t u) {
  const psplit_i_instance *instance = &r->d->instance[0];
  const uint32_t pin = instance->pin[u];
  if (pin != PSPLIT_NONE && r->tracker[0].pin != PSPLIT_NONE && r->tracker[0].pin != pin)
    return false;
  r->spent |= !psplit_i_spend(
    r->options->budget,
    8 + 2 * r->from.n + 4 * (uint64_t)(instance->inc_off[u + 1] - instance->inc_off[u]));
  if (r->spent) return false;
  take(r, u);
  if (fits(r)) return true;
  give_back(r);
  return false;
}

/* Every set of clusters that can be the stage in front: in decreasing order each comes once. */
static void try_all(run *r) {
  for (uint32_t below = r->d->instance[0].n; !r->failed && !r->spent;) {
    const uint32_t u = psplit_i_last_below(r->tops, below);
    if (u == PSPLIT_NONE) {
      if (r->n_taken == 0) break;
      below = give_back(r);
      continue;
    }
    below = u;
    if (grow(r, u)) push_stage(r);
  }
}

/* Those between two prefixes of the order. */
static void try_order(run *r) {
  const uint32_t *order = r->options->order;
  while (r->n_left > 0 && !r->failed && !r->spent && grow(r, order[r->n_left - 1]))
    if (r->n_left % r->options->grain == 0) push_stage(r);
}

/* Labels of a downset that may still lead below the limit, by state. */
static void list_labels(run *r, uint32_t downset) {
  r->from.n = 0;
  r->floor[0] = r->floor[1] = PSPLIT_I_INF;
  for (uint32_t i = r->places.items[downset].first; i != PSPLIT_NONE; i = r->labels.items[i].next) {
    const label *l = &r->labels.items[i];
    if (l->load[0] + l->load[1] >= r->limit) continue;
    for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++)
      if (l->load[k] < r->floor[k]) r->floor[k] = l->load[k];
    if (!psplit_i_vec_push(&r->from, i)) {
      r->failed = true;
      return;
    }
    uint32_t at = (uint32_t)r->from.n - 1;
    for (; at > 0 && r->labels.items[r->from.items[at - 1]].state > l->state; at--)
      r->from.items[at] = r->from.items[at - 1];
    r->from.items[at] = i;
  }
}

/* The downset as what is left, with nothing taken. */
static void load_downset(run *r, uint32_t downset) {
  const psplit_i_instance *instance = &r->d->instance[0];
  memcpy(r->left, psplit_i_downset(&r->downsets, downset), r->downsets.words * sizeof *r->left);
  memset(r->tops, 0, r->downsets.words * sizeof *r->tops);
  memset(r->min_time, 0, sizeof r->min_time);
  r->n_left = 0;
  for (uint32_t i = 0; i < instance->n; i++) {
    if (!psplit_i_holds(r->left, i)) continue;
    r->n_succ[i] = 0;
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      r->n_succ[i] += psplit_i_holds(r->left, instance->succ[k]);
    if (r->n_succ[i] == 0) turn(r->tops, i);
    for (int k = 0; k < PSPLIT_I_N_PARTS; k++) r->min_time[k] += r->d->automaton[k].min_time[i];
    r->n_left++;
  }
}

static void expand(run *r, uint32_t downset) {
  const psplit_i_instance *instance = &r->d->instance[0];
  list_labels(r, downset);
  if (r->failed || r->from.n == 0) return;
  r->spent |= !psplit_i_spend(r->options->budget, instance->n);
  load_downset(r, downset);
  if (r->options->order)
    try_order(r);
  else
    try_all(r);
  while (r->n_taken) give_back(r);
}

static void start(run *r) {
  const uint32_t n = r->d->instance[0].n;
  for (uint32_t i = 0; i < n; i++) turn(r->left, i);
  r->n_left = n;
  r->place_of_left = PSPLIT_NONE;
  label whole = {.behind = PSPLIT_NONE};
  if (n > 0 && r->limit > 0) add_label(r, &whole);
}

/* The stages of the best label, whose devices in front of it hold nothing. */
static void take_split(const run *r, psplit_i_assignment *out) {
  const psplit_i_instance *instance = &r->d->instance[0];
  for (uint32_t s = 0; s < instance->n_stages; s++) {
    out->device[s] = PSPLIT_NONE;
    out->replicas[s] = 1;
  }
  for (const label *l = &r->labels.items[r->best]; l->behind != PSPLIT_NONE;
       l = &r->labels.items[l->behind]) {
    const uint64_t *left = psplit_i_downset(&r->downsets, l->left);
    const uint64_t *whole = psplit_i_downset(&r->downsets, r->labels.items[l->behind].left);
    out->device[l->stage] = l->type;
    for (uint32_t i = 0; i < instance->n; i++)
      if (psplit_i_holds(whole, i) && !psplit_i_holds(left, i)) out->stage[i] = l->stage;
  }
  psplit_i_automaton_name_devices(&r->d->automaton[0], out->replicas, out->device);
}

psplit_code psplit_i_two_limits(const psplit_i_directions *d,
                                const psplit_i_two_limits_options *options,
                                psplit_i_assignment *out_split, psplit_i_two_limits_result *out) {
  run r;
  psplit_code code = init(&r, d, options);
  if (code == PSPLIT_OK) start(&r);
  /* From the largest downset on: a stage leaves fewer clusters, so that all labels are there. */
  for (uint32_t n = d->instance[0].n; code == PSPLIT_OK && n > 0; n--)
    for (uint32_t i = r.bucket[n]; i != PSPLIT_NONE && !r.failed && !r.spent;
         i = r.places.items[i].next)
      expand(&r, i);
  if (r.failed) code = PSPLIT_NOMEM;
  if (code == PSPLIT_OK) {
    *out = (psplit_i_two_limits_result){!r.spent, r.limit, r.best != PSPLIT_NONE};
    if (out->found) take_split(&r, out_split);
  }
  fini(&r);
  return code;
}
