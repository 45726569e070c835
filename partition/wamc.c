/* The weight-axis min-cut bound. Cut the weight axis into buckets; a stage is I \ J for downsets J
 * in one bucket and I in a later one, so its load is at least the least weight between the buckets
 * plus the cheapest crossing of each. A min-max program over buckets and devices bounds the split.
 *
 * Which items a downset of weight in [low, high] must or cannot hold follows from the weight of
 * their ancestors and descendants. A net counts on one side only: behind J when all its pins are in
 * every I, before I when all are outside every J; so no net is counted twice in a stage. */
#include <stdlib.h>
#include <string.h>

#include "partition.h"
#include "team.h"

enum {
  MAX_ITEMS = 1 << 14,
  MAX_BUCKETS = 1 << 12,
  MAX_STEPS = 24,
  MAX_CELLS = 1 << 24,
  MAX_FREE = 1 << 21
};

/* The least crossing cost once nets up to a threshold count. */
typedef struct cut_step {
  uint32_t bucket; /* counts for partner buckets >= (in) or <= (out) this one */
  int64_t value;
} cut_step;

typedef struct item_rank {
  int64_t key, sum; /* sum: omega of this and all before (or after) it */
  uint32_t item;
} item_rank;

typedef struct axis {
  const psplit_core *core;
  const psplit_machine *machine;
  psplit_arena arena;
  psplit_wamc *out;
  int64_t limit, reach; /* reach: most omega of one stage */
  item_rank *by_in, *by_out;
  uint32_t *tin, *tout;        /* [n] free in bucket q iff tout < q < tin */
  uint32_t *net_in, *net_out;  /* [n_nets] largest tin, least tout of the pins */
  int64_t *cost_in, *cost_out; /* [n_nets] least recv / send over paying types */
  uint32_t *free_off, *free_item, *near_off, *near_net; /* by bucket */
  cut_step *in, *outgoing;                              /* [n_buckets * MAX_STEPS] */
  uint8_t *n_in, *n_outgoing;
} axis;

static int compare_ranks(const void *a, const void *b) {
  const item_rank *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return x->item < y->item ? -1 : x->item > y->item;
}

/* by_in: items by omega(all) - omega(descendants), the largest weight of a downset without them.
 * by_out: items by omega(ancestors), the least weight of a downset with them. Both count the item
 * itself. */
static psplit_code rank_items(axis *x) {
  const psplit_core *core = x->core;
  const uint32_t n = core->n, words = (n + 63) / 64;
  psplit_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  psplit_code code = PSPLIT_NOMEM;
  uint64_t *bits = psplit_i_arena_array(&scratch, (size_t)n * words, sizeof *bits);
  x->by_in = PSPLIT_NEW(&x->arena, item_rank, n);
  x->by_out = PSPLIT_NEW(&x->arena, item_rank, n);
  if (!bits || !x->by_in || !x->by_out) goto out;
  for (int down = 0; down < 2; down++) {
    const uint32_t *off = down ? core->succ_off : core->pred_off;
    const uint32_t *list = down ? core->succ : core->pred;
    for (uint32_t k = 0; k < n; k++) {
      const uint32_t i = down ? n - 1 - k : k;
      uint64_t *row = bits + (size_t)i * words;
      memset(row, 0, words * sizeof *row);
      row[i / 64] |= UINT64_C(1) << (i % 64);
      for (uint32_t l = off[i]; l < off[i + 1]; l++) {
        const uint64_t *other = bits + (size_t)list[l] * words;
        for (uint32_t j = 0; j < words; j++) row[j] |= other[j];
      }
      int64_t sum = 0;
      for (uint32_t j = 0; j < words; j++)
        for (uint64_t left = row[j]; left; left &= left - 1)
          sum += x->machine->omega[j * 64 + (uint32_t)__builtin_ctzll(left)];
      if (down)
        x->by_in[i] = (item_rank){x->machine->total_omega - sum, 0, i};
      else
        x->by_out[i] = (item_rank){sum, 0, i};
    }
  }
  qsort(x->by_in, n, sizeof *x->by_in, compare_ranks);
  qsort(x->by_out, n, sizeof *x->by_out, compare_ranks);
  int64_t sum = 0;
  for (uint32_t k = 0; k < n; k++) x->by_in[k].sum = sum += x->machine->omega[x->by_in[k].item];
  sum = 0;
  for (uint32_t k = n; k-- > 0;) x->by_out[k].sum = sum += x->machine->omega[x->by_out[k].item];
  code = PSPLIT_OK;
out:
  psplit_i_arena_fini(&scratch);
  return code;
}

/* First rank with key >= value. */
static uint32_t lower_rank(const item_rank *ranks, uint32_t n, int64_t value) {
  uint32_t low = 0, high = n;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (ranks[middle].key < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Shrinks [*low, *high] to weights that downsets can have, as far as forced items tell; false when
 * none is left. */
static bool tighten(const axis *x, int64_t *low, int64_t *high) {
  const uint32_t n = x->core->n;
  for (;;) {
    const uint32_t n_in = lower_rank(x->by_in, n, *low);
    const uint32_t first_out = lower_rank(x->by_out, n, *high + 1);
    const int64_t least = n_in ? x->by_in[n_in - 1].sum : 0;
    const int64_t most = x->machine->total_omega - (first_out < n ? x->by_out[first_out].sum : 0);
    const bool settled = least <= *low && most >= *high;
    if (least > *low) *low = least;
    if (most < *high) *high = most;
    if (*low > *high) return false;
    if (settled) return true;
  }
}

static psplit_code make_buckets(axis *x, uint32_t n_cells) {
  psplit_wamc *out = x->out;
  const int64_t total = x->machine->total_omega;
  out->low = PSPLIT_NEW(&out->arena, int64_t, n_cells + 2);
  out->high = PSPLIT_NEW(&out->arena, int64_t, n_cells + 2);
  if (!out->low || !out->high) return PSPLIT_NOMEM;
  uint32_t n = 1; /* bucket 0: the empty downset */
  int64_t low = 0;
  for (uint32_t k = 0; k < n_cells && low <= total; k++) {
    int64_t high = (int64_t)((double)total * (k + 1) / n_cells);
    if (k + 1 == n_cells || high > total) high = total;
    if (high < low) continue;
    int64_t a = low, b = high;
    if (tighten(x, &a, &b)) {
      out->low[n] = a;
      out->high[n++] = b;
    }
    low = high + 1;
  }
  out->low[n] = out->high[n] = total; /* the last: everything */
  out->n_buckets = n + 1;
  return PSPLIT_OK;
}

static psplit_code find_windows(axis *x) {
  const psplit_core *core = x->core;
  const uint32_t n = core->n, n_buckets = x->out->n_buckets;
  x->tin = PSPLIT_NEW(&x->arena, uint32_t, n);
  x->tout = PSPLIT_NEW(&x->arena, uint32_t, n);
  x->net_in = PSPLIT_NEW(&x->arena, uint32_t, core->n_nets);
  x->net_out = PSPLIT_NEW(&x->arena, uint32_t, core->n_nets);
  x->free_off = PSPLIT_NEW(&x->arena, uint32_t, (size_t)n_buckets + 1);
  x->near_off = PSPLIT_NEW(&x->arena, uint32_t, (size_t)n_buckets + 1);
  if (!x->tin || !x->tout || !x->net_in || !x->net_out || !x->free_off || !x->near_off)
    return PSPLIT_NOMEM;
  uint32_t q = 1;
  for (uint32_t k = 0; k < n; k++) {
    while (q + 1 < n_buckets && x->out->low[q] <= x->by_in[k].key) q++;
    x->tin[x->by_in[k].item] = q;
  }
  q = n_buckets - 2;
  for (uint32_t k = n; k-- > 0;) {
    while (q > 0 && x->out->high[q] >= x->by_out[k].key) q--;
    x->tout[x->by_out[k].item] = q;
  }
  for (uint32_t e = 0; e < core->n_nets; e++) {
    x->net_out[e] = n_buckets;
    for (uint32_t k = core->net_off[e]; k < core->net_off[e + 1]; k++) {
      const uint32_t i = core->net_pin[k];
      if (x->tin[i] > x->net_in[e]) x->net_in[e] = x->tin[i];
      if (x->tout[i] < x->net_out[e]) x->net_out[e] = x->tout[i];
    }
  }
  return PSPLIT_OK;
}

/* Sizes of the networks of all buckets together. */
static uint64_t count_free(const axis *x) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < x->core->n; i++)
    if (x->tin[i] > x->tout[i] + 1) total += x->tin[i] - x->tout[i] - 1;
  for (uint32_t e = 0; e < x->core->n_nets; e++)
    if (x->net_in[e] > x->net_out[e] + 1) total += x->net_in[e] - x->net_out[e] - 1;
  return total;
}

/* Lists the free items and the nets that may be cut, by bucket. */
static psplit_code list_by_bucket(axis *x) {
  const uint32_t n_buckets = x->out->n_buckets;
  const uint32_t *from[] = {x->tout, x->net_out}, *to[] = {x->tin, x->net_in};
  uint32_t *off[] = {x->free_off, x->near_off};
  const uint32_t count[] = {x->core->n, x->core->n_nets};
  for (int which = 0; which < 2; which++) {
    for (uint32_t i = 0; i < count[which]; i++)
      for (uint32_t q = from[which][i] + 1; q < to[which][i]; q++) off[which][q + 1]++;
    for (uint32_t q = 0; q < n_buckets; q++) off[which][q + 1] += off[which][q];
    const uint32_t total = off[which][n_buckets];
    uint32_t *list = psplit_i_arena_array(&x->arena, total, sizeof *list);
    uint32_t *fill = psplit_i_arena_array(&x->arena, n_buckets, sizeof *fill);
    if (!list || !fill) return PSPLIT_NOMEM;
    memcpy(fill, off[which], n_buckets * sizeof *fill);
    for (uint32_t i = 0; i < count[which]; i++)
      for (uint32_t q = from[which][i] + 1; q < to[which][i]; q++) list[fill[q]++] = i;
    *(which ? &x->near_net : &x->free_item) = list;
  }
  return PSPLIT_OK;
}

/* --- one bucket's minimum cuts --- */

typedef struct cutter {
  psplit_flow flow;
  uint32_t *place; /* [n] flow node of a free item */
  uint64_t *nets;  /* threshold << 32 | net, sorted */
  size_t n_capacity;
  bool failed;
} cutter;

enum { SOURCE = 0, SINK = 1 };

static int compare_u64(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static uint32_t place_of(const axis *x, const cutter *c, uint32_t q, uint32_t item) {
  if (q >= x->tin[item]) return SOURCE;
  if (q <= x->tout[item]) return SINK;
  return c->place[item];
}

static void arc(cutter *c, uint32_t from, uint32_t to, int64_t cap) {
  if (to == SOURCE || from == SINK) return;
  if (!psplit_i_flow_arc_add(&c->flow, from, to, cap)) c->failed = true;
}

/* `ahead` is paid when the producer is in the downset and a consumer is not, `behind` when it is
 * the other way round. */
static void add_net(const axis *x, cutter *c, uint32_t q, uint32_t e, int64_t ahead,
                    int64_t behind) {
  const uint32_t *pins = x->core->net_pin + x->core->net_off[e];
  const uint32_t n_pins = x->core->net_off[e + 1] - x->core->net_off[e];
  const uint32_t producer = place_of(x, c, q, pins[0]);
  if (ahead > 0 && producer != SINK) {
    const uint32_t fan = n_pins == 2 ? producer : psplit_i_flow_node(&c->flow);
    if (fan == PSPLIT_NONE) {
      c->failed = true;
      return;
    }
    if (n_pins > 2) arc(c, producer, fan, ahead);
    for (uint32_t k = 1; k < n_pins; k++)
      arc(c, fan, place_of(x, c, q, pins[k]), n_pins == 2 ? ahead : PSPLIT_I_INF);
  }
  if (behind > 0 && !x->core->net_forward[e] && producer != SOURCE) {
    const uint32_t fan = psplit_i_flow_node(&c->flow);
    if (fan == PSPLIT_NONE) {
      c->failed = true;
      return;
    }
    arc(c, fan, producer, behind);
    for (uint32_t k = 1; k < n_pins; k++) arc(c, place_of(x, c, q, pins[k]), fan, PSPLIT_I_INF);
  }
}

static void cut_bucket(const axis *x, cutter *c, uint32_t q, bool incoming) {
  const psplit_core *core = x->core;
  const psplit_wamc *wamc = x->out;
  psplit_i_flow_reset(&c->flow);
  if (psplit_i_flow_node(&c->flow) != SOURCE || psplit_i_flow_node(&c->flow) != SINK)
    c->failed = true;
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++)
    if ((c->place[x->free_item[k]] = psplit_i_flow_node(&c->flow)) == PSPLIT_NONE) c->failed = true;
  if (c->failed) return;
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++) {
    const uint32_t i = x->free_item[k];
    for (uint32_t l = core->pred_off[i]; l < core->pred_off[i + 1]; l++)
      arc(c, c->place[i], place_of(x, c, q, core->pred[l]), PSPLIT_I_INF);
  }
  /* Nets by the partner bucket from which on they count, nearest first. */
  uint32_t n_nets = 0;
  for (uint32_t k = x->near_off[q]; k < x->near_off[q + 1]; k++) {
    const uint32_t e = x->near_net[k];
    const uint32_t partner = incoming ? x->net_in[e] : x->net_out[e];
    const int64_t gap =
      incoming ? wamc->low[partner] - wamc->high[q] : wamc->low[q] - wamc->high[partner];
    if (gap > x->reach) continue;
    c->nets[n_nets++] = (uint64_t)(incoming ? partner : q - partner) << 32 | e;
  }
  qsort(c->nets, n_nets, sizeof *c->nets, compare_u64);
  uint32_t n_groups = 0;
  for (uint32_t k = 0; k < n_nets; k++)
    n_groups += k == 0 || c->nets[k] >> 32 != c->nets[k - 1] >> 32;
  const uint32_t stride = n_groups / MAX_STEPS + 1;
  cut_step *steps = (incoming ? x->in : x->outgoing) + (size_t)q * MAX_STEPS;
  uint8_t n_steps = 0;
  int64_t value = 0;
  for (uint32_t k = 0; k < n_nets;) {
    uint32_t threshold = 0;
    for (uint32_t taken = 0; k < n_nets; k++) {
      const uint32_t here = (uint32_t)(c->nets[k] >> 32);
      if ((taken == 0 || here != threshold) && taken++ == stride) break;
      threshold = here;
      const uint32_t e = (uint32_t)c->nets[k];
      add_net(x, c, q, e, incoming ? x->cost_in[e] : x->cost_out[e],
              incoming ? x->cost_out[e] : x->cost_in[e]);
    }
    const int64_t before = value;
    if (!psplit_i_flow_run(&c->flow, SOURCE, SINK, x->limit + 1, &value)) c->failed = true;
    if (value > before) steps[n_steps++] = (cut_step){incoming ? threshold : q - threshold, value};
  }
  *(incoming ? &x->n_in[q] : &x->n_outgoing[q]) = n_steps;
}

static psplit_code cut_buckets(axis *x, int n_threads) {
  const uint32_t n_buckets = x->out->n_buckets;
  x->in = psplit_i_arena_array(&x->arena, (size_t)n_buckets * MAX_STEPS, sizeof *x->in);
  x->outgoing = psplit_i_arena_array(&x->arena, (size_t)n_buckets * MAX_STEPS, sizeof *x->outgoing);
  x->n_in = PSPLIT_NEW(&x->arena, uint8_t, n_buckets);
  x->n_outgoing = PSPLIT_NEW(&x->arena, uint8_t, n_buckets);
  if (!x->in || !x->outgoing || !x->n_in || !x->n_outgoing) return PSPLIT_NOMEM;
  bool failed = false;
#pragma omp parallel num_threads(n_threads) reduction(|| : failed)
  {
    cutter c = {0};
    c.place = malloc((x->core->n + 1) * sizeof *c.place);
    c.nets = malloc(((size_t)x->core->n_nets + 1) * sizeof *c.nets);
    c.failed = !c.place || !c.nets;
#pragma omp for schedule(dynamic, 16)
    for (uint32_t q = 1; q < n_buckets - 1; q++) {
      if (!c.failed) cut_bucket(x, &c, q, true);
      if (!c.failed) cut_bucket(x, &c, q, false);
    }
    failed = c.failed;
    psplit_i_flow_fini(&c.flow);
    free(c.place);
    free(c.nets);
  }
  return failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

/* --- the program over buckets and states --- */

typedef struct stage_bound {
  int64_t omega, in, out;
} stage_bound;

static int64_t load_bound(const axis *x, const psplit_move *move, stage_bound part) {
  int64_t in = part.in, out = part.out;
  const int64_t omega = part.omega;
  const bool free_comm = x->core->problem->devices[move->type].free_comm;
  int64_t w = omega;
  if (x->machine->ratio[move->type] > 1)
    w = (int64_t)((double)omega * x->machine->ratio[move->type] * (1 - 1e-12));
  if (w < omega) w = omega;
  if (free_comm) in = out = 0;
  int64_t load = w + in + out;
  if (x->core->overlap) {
    load = w > in ? w : in;
    if (out > load) load = out;
  }
  return move->replicas > 1 ? (load + move->replicas - 1) / move->replicas : load;
}

/* Stages from a downset in bucket q1 to one in q2. */
static void relax(const axis *x, uint32_t q1, uint32_t q2, const uint32_t *states,
                  uint32_t n_active, stage_bound part) {
  const psplit_machine *m = x->machine;
  const int64_t *before = x->out->before + (size_t)q1 * m->n_states;
  int64_t *here = x->out->before + (size_t)q2 * m->n_states;
  for (uint32_t i = 0; i < n_active; i++)
    for (uint32_t k = m->move_off[states[i]]; k < m->move_off[states[i] + 1]; k++) {
      const int64_t rest = before[m->moves[k].next];
      if (rest >= here[states[i]]) continue;
      int64_t load = load_bound(x, &m->moves[k], part);
      if (load < rest) load = rest;
      if (load <= x->limit && load < here[states[i]]) here[states[i]] = load;
    }
}

static psplit_code run_program(axis *x) {
  psplit_wamc *wamc = x->out;
  const psplit_machine *m = x->machine;
  const uint32_t n_buckets = wamc->n_buckets, n_states = m->n_states;
  const size_t cells = (size_t)n_buckets * n_states;
  wamc->n_states = n_states;
  wamc->before = psplit_i_arena_array(&wamc->arena, cells, sizeof *wamc->before);
  uint32_t *states = psplit_i_arena_array(&x->arena, n_states, sizeof *states);
  uint8_t *at_in = PSPLIT_NEW(&x->arena, uint8_t, n_buckets);
  if (!wamc->before || !states || !at_in) return PSPLIT_NOMEM;
  for (size_t k = 0; k < cells; k++) wamc->before[k] = PSPLIT_I_INF;
  for (uint32_t c = 0; c < n_states; c++)
    if (psplit_i_machine_final(m, c)) wamc->before[c] = 0;
  const double limit = (double)x->limit * (1 + 1e-9);
  for (uint32_t q2 = 1; q2 < n_buckets; q2++) {
    /* States that leave enough devices for what is before, and used enough for what is behind. */
    uint32_t n_active = 0;
    for (uint32_t c = n_states; c-- > 0;)
      if ((double)wamc->low[q2] <= limit * m->capacity[c] &&
          (double)(m->total_omega - wamc->high[q2]) <= limit * (m->capacity[0] - m->capacity[c]))
        states[n_active++] = c;
    if (n_active == 0) continue;
    const cut_step *steps_out = x->outgoing + (size_t)q2 * MAX_STEPS;
    const uint32_t n_out = q2 + 1 < n_buckets ? x->n_outgoing[q2] : 0;
    uint32_t at_out = 0;
    for (uint32_t q1 = q2; q1-- > 0;) {
      const int64_t omega = wamc->low[q2] - wamc->high[q1];
      if (omega > x->reach) break;
      const uint32_t n_in = q1 > 0 ? x->n_in[q1] : 0;
      const cut_step *steps_in = x->in + (size_t)q1 * MAX_STEPS;
      while (at_in[q1] < n_in && steps_in[at_in[q1]].bucket <= q2) at_in[q1]++;
      while (at_out < n_out && steps_out[at_out].bucket >= q1) at_out++;
      const int64_t in = at_in[q1] ? steps_in[at_in[q1] - 1].value : 0;
      const int64_t out = at_out ? steps_out[at_out - 1].value : 0;
      relax(x, q1, q2, states, n_active, (stage_bound){omega > 0 ? omega : 0, in, out});
    }
    /* Last, and more used up first: stages within one bucket build on each other. */
    if (q2 + 1 < n_buckets) relax(x, q2, q2, states, n_active, (stage_bound){0, 0, 0});
  }
  const int64_t bound = wamc->before[(size_t)(n_buckets - 1) * n_states];
  wamc->bound = bound > x->limit ? x->limit + 1 : bound;
  return PSPLIT_OK;
}

static psplit_code cheapest_costs(axis *x) {
  const psplit_core *core = x->core;
  x->cost_in = PSPLIT_NEW(&x->arena, int64_t, core->n_nets);
  x->cost_out = PSPLIT_NEW(&x->arena, int64_t, core->n_nets);
  if (!x->cost_in || !x->cost_out) return PSPLIT_NOMEM;
  bool any = false;
  for (uint32_t t = 0; t < core->n_types; t++) {
    if (core->problem->devices[t].free_comm || x->machine->count[t] == 0) continue;
    for (uint32_t e = 0; e < core->n_nets; e++) {
      const int64_t recv = core->recv[(size_t)t * core->n_nets + e];
      const int64_t send = core->send[(size_t)t * core->n_nets + e];
      if (!any || recv < x->cost_in[e]) x->cost_in[e] = recv;
      if (!any || send < x->cost_out[e]) x->cost_out[e] = send;
    }
    any = true;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_wamc(const psplit_core *core, const psplit_machine *machine, int64_t limit,
                          uint32_t n_threads, psplit_wamc *out_wamc) {
  memset(out_wamc, 0, sizeof *out_wamc);
  if (core->n > MAX_ITEMS || limit >= PSPLIT_I_INF || machine->total_omega == 0) return PSPLIT_OK;
  psplit_i_arena_init(&out_wamc->arena, 0);
  axis x = {.core = core, .machine = machine, .out = out_wamc, .limit = limit};
  psplit_i_arena_init(&x.arena, 0);
  psplit_code code;
  uint32_t copies = 1;
  for (uint32_t k = 0; k < machine->move_off[machine->n_states]; k++)
    if (machine->moves[k].replicas > copies) copies = machine->moves[k].replicas;
  x.reach = limit > PSPLIT_I_INF / copies ? PSPLIT_I_INF : limit * copies;
  uint32_t n_cells = MAX_BUCKETS;
  while ((uint64_t)n_cells * machine->n_states > MAX_CELLS) n_cells /= 2;
  PSPLIT_TRY(rank_items(&x));
  PSPLIT_TRY(cheapest_costs(&x));
  for (;; n_cells /= 2) { /* wide graphs have too many free items for fine buckets */
    PSPLIT_TRY(make_buckets(&x, n_cells));
    PSPLIT_TRY(find_windows(&x));
    if (n_cells <= 64 || count_free(&x) <= MAX_FREE) break;
  }
  PSPLIT_TRY(list_by_bucket(&x));
  PSPLIT_TRY(cut_buckets(&x, psplit_i_team_size(n_threads)));
  PSPLIT_TRY(run_program(&x));
out:
  psplit_i_arena_fini(&x.arena);
  if (code != PSPLIT_OK) psplit_i_wamc_fini(out_wamc);
  return code;
}

void psplit_i_wamc_fini(psplit_wamc *wamc) {
  psplit_i_arena_fini(&wamc->arena);
  memset(wamc, 0, sizeof *wamc);
}

int64_t psplit_i_wamc_before(const psplit_wamc *wamc, int64_t omega, uint32_t state) {
  uint32_t low = 1, high = wamc->n_buckets - 1;
  if (wamc->n_buckets == 0) return 0;
  while (low < high) { /* the first bucket that ends at or after omega */
    const uint32_t middle = low + (high - low) / 2;
    if (wamc->high[middle] < omega)
      low = middle + 1;
    else
      high = middle;
  }
  if (low >= wamc->n_buckets - 1 || wamc->low[low] > omega) return PSPLIT_I_INF;
  return wamc->before[(size_t)low * wamc->n_states + state];
}
