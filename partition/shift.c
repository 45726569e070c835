/* Simulated annealing on the stages of items, which never decrease along an edge. A move costs as
 * much as its items have nets, whatever the number of stages: on wide graphs, where few orders have
 * good cuts, that tries many more splits than slicing orders does. Energy: the sum of a power of
 * the loads, which sees every stage and is ruled by the largest. Source: Kirkpatrick, Gelatt,
 * Vecchi, "Optimization by simulated annealing", Science 1983; the moves are this project's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "partition.h"
#include "team.h"

enum { N_CHAINS = 4, MAX_GROUP = 24, MAX_CELLS = 1 << 24, STEPS_PER_ITEM = 4000 };
#define END_TEMPERATURE 1e-4

/* Low powers see all stages, which wide graphs need; high ones the few that are full. */
static const struct {
  uint32_t n_squares; /* the power is 6 times 2 to this */
  double heat;
} kChains[N_CHAINS] = {{1, 0.1}, {1, 0.3}, {2, 0.3}, {3, 0.5}};

typedef struct chain {
  const psplit_core *core;
  const uint32_t *device; /* [n_stages] */
  psplit_arena arena;
  uint64_t seed, n_drawn;
  uint32_t n_squares;
  double unit;                  /* energy is counted in loads of this size */
  int64_t best;                 /* value of best_stage */
  uint32_t *stage, *best_stage; /* [n] */
  int64_t *w, *recv, *send;     /* [n_stages] */
  uint32_t *n_counted;          /* [n_stages] */
  uint32_t *n_on;               /* [n_nets * n_stages] consumers */
  uint32_t *n_receivers;        /* [n_nets] stages but the producer's */
  double *part;                 /* [n_stages] of the energy */
  uint32_t *touched, *stamp;    /* [n_stages] those that the move at hand changes */
  uint32_t n_touched, n_moves;
  uint32_t group[MAX_GROUP]; /* items of the move */
  uint32_t *seen, n_seen;    /* [n] */
} chain;

static uint64_t draw(chain *c) { return psplit_i_splitmix64(c->seed, c->n_drawn++); }
static double uniform(chain *c) { return (double)(draw(c) >> 11) * 0x1p-53; }

static void touch(chain *c, uint32_t k) {
  if (c->stamp[k] == c->n_moves) return;
  c->stamp[k] = c->n_moves;
  c->touched[c->n_touched++] = k;
}

static int64_t cost(const chain *c, const int64_t *costs, uint32_t e, uint32_t k) {
  return costs[(size_t)c->device[k] * c->core->n_nets + e];
}

/* Stage k begins (sign 1) or ceases (-1) to receive net e from stage home. */
static void receive(chain *c, uint32_t e, uint32_t home, uint32_t k, int sign) {
  c->recv[k] += sign * cost(c, c->core->recv, e, k);
  const uint32_t before = c->n_receivers[e];
  c->n_receivers[e] = sign > 0 ? before + 1 : before - 1;
  if (!c->core->p2p && (sign > 0 ? before > 0 : before > 1)) return;
  c->send[home] += sign * cost(c, c->core->send, e, home);
  touch(c, home);
}

static void shift(chain *c, uint32_t item, uint32_t to) {
  const psplit_core *core = c->core;
  const uint32_t from = c->stage[item];
  touch(c, from);
  touch(c, to);
  c->w[from] -= core->w[(size_t)c->device[from] * core->n + item];
  c->w[to] += core->w[(size_t)c->device[to] * core->n + item];
  c->n_counted[from] -= core->n_counted[item];
  c->n_counted[to] += core->n_counted[item];
  for (uint32_t l = core->inc_off[item]; l < core->inc_off[item + 1]; l++) {
    const uint32_t e = core->inc[l] >> 1;
    uint32_t *n_on = c->n_on + (size_t)e * core->n_stages;
    if (core->inc[l] & 1) {
      /* The producer: who receives stays, but for the two stages. */
      if (c->n_receivers[e]) {
        const int64_t n = core->p2p ? c->n_receivers[e] : 1;
        c->send[from] -= n * cost(c, core->send, e, from);
        c->send[to] += n * cost(c, core->send, e, to);
      }
      if (n_on[to]) receive(c, e, to, to, -1);
      if (n_on[from]) receive(c, e, to, from, 1);
      continue;
    }
    const uint32_t home = c->stage[core->net_pin[core->net_off[e]]];
    if (--n_on[from] == 0 && from != home) receive(c, e, home, from, -1);
    if (n_on[to]++ == 0 && to != home) receive(c, e, home, to, 1);
  }
  c->stage[item] = to;
}

static int64_t load_of(const chain *c, uint32_t k) {
  if (!c->core->overlap) return c->w[k] + c->recv[k] + c->send[k];
  const int64_t comm = c->recv[k] > c->send[k] ? c->recv[k] : c->send[k];
  return c->w[k] > comm ? c->w[k] : comm;
}

static double energy_of(const chain *c, uint32_t k) {
  const double x = (double)load_of(c, k) / c->unit, cube = x * x * x;
  double power = cube * cube;
  for (uint32_t i = 0; i < c->n_squares; i++) power *= power;
  return power;
}

/* Collects `item` and what must move with it to the next stage, or the one before; 0: too much. */
static uint32_t gather(chain *c, uint32_t item, bool up) {
  const psplit_core *core = c->core;
  const uint32_t *off = up ? core->succ_off : core->pred_off;
  const uint32_t *list = up ? core->succ : core->pred;
  const uint32_t from = c->stage[item];
  uint32_t n = 1;
  c->n_seen++;
  c->group[0] = item;
  c->seen[item] = c->n_seen;
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t l = off[c->group[k]]; l < off[c->group[k] + 1]; l++) {
      const uint32_t other = list[l];
      if (c->stage[other] != from || c->seen[other] == c->n_seen) continue;
      if (n == MAX_GROUP) return 0;
      c->seen[other] = c->n_seen;
      c->group[n++] = other;
    }
  return n;
}

static bool allowed(const chain *c, uint32_t item, uint32_t to) {
  const psplit_core *core = c->core;
  if (core->pin[item] != PSPLIT_NONE) return false;
  return core->w[(size_t)c->device[to] * core->n + item] < PSPLIT_I_INF;
}

/* Where an item may go next to its neighbours' stages. */
static void range(const chain *c, uint32_t item, uint32_t *low, uint32_t *high) {
  const psplit_core *core = c->core;
  *low = 0;
  *high = core->n_stages - 1;
  for (uint32_t l = core->pred_off[item]; l < core->pred_off[item + 1]; l++)
    if (c->stage[core->pred[l]] > *low) *low = c->stage[core->pred[l]];
  for (uint32_t l = core->succ_off[item]; l < core->succ_off[item + 1]; l++)
    if (c->stage[core->succ[l]] < *high) *high = c->stage[core->succ[l]];
}

/* Items to move, in c->group, and where to; 0: none. */
static uint32_t propose(chain *c, uint32_t *out_to) {
  const uint32_t n_stages = c->core->n_stages;
  const uint64_t coin = draw(c);
  const uint32_t item = (uint32_t)((coin >> 32) * c->core->n >> 32), now = c->stage[item];
  const bool up = coin & 1, anywhere = (coin & 14) == 0;
  uint32_t low, high, n = 1;
  range(c, item, &low, &high);
  c->group[0] = item;
  if (anywhere && low < high) {
    *out_to = low + (uint32_t)((coin >> 4 & 0xfffffff) % (high - low + 1));
    if (*out_to == now) return 0;
  } else {
    if (up ? now + 1 == n_stages : now == 0) return 0;
    *out_to = up ? now + 1 : now - 1;
    if (*out_to < low || *out_to > high) n = gather(c, item, up);
  }
  for (uint32_t i = 0; i < n; i++)
    if (!allowed(c, c->group[i], *out_to)) return 0;
  return n;
}

/* Moves c->group[n] from one stage to another; the change of energy. */
static double shift_group(chain *c, uint32_t n, uint32_t to) {
  double change = 0;
  c->n_moves++;
  c->n_touched = 0;
  for (uint32_t i = 0; i < n; i++) shift(c, c->group[i], to);
  for (uint32_t i = 0; i < c->n_touched; i++)
    change += energy_of(c, c->touched[i]) - c->part[c->touched[i]];
  return change;
}

/* Takes the move over; keeps the best split. */
static void settle(chain *c) {
  int64_t value = 0;
  for (uint32_t i = 0; i < c->n_touched; i++) c->part[c->touched[i]] = energy_of(c, c->touched[i]);
  for (uint32_t k = 0; k < c->core->n_stages; k++)
    if (load_of(c, k) > value) value = load_of(c, k);
  if (value >= c->best) return;
  c->best = value;
  memcpy(c->best_stage, c->stage, c->core->n * sizeof *c->stage);
}

/* Where there are few steps an item, a hot start would only spoil the split it starts from. */
static double first_temperature(const chain *c, uint64_t n_steps, double heat) {
  const double cool = 2 * END_TEMPERATURE;
  const double per_item = (double)n_steps / c->core->n / STEPS_PER_ITEM;
  if (per_item < 1) heat *= per_item;
  return heat > cool ? heat : cool;
}

static void run_chain(chain *c, const psplit_machine *machine, const psplit_deadline *deadline,
                      uint64_t n_steps, double heat) {
  const double hot = first_temperature(c, n_steps, heat);
  const double cooling = pow(END_TEMPERATURE / hot, 1.0 / (double)(n_steps + 1));
  double temperature = hot;
  c->unit = c->best > 0 ? (double)c->best : 1;
  for (uint32_t k = 0; k < c->core->n_stages; k++) c->part[k] = energy_of(c, k);
  for (uint64_t step = 0; step < n_steps; step++, temperature *= cooling) {
    if ((step & 4095) == 0 && psplit_i_expired(deadline)) return;
    uint32_t to;
    const uint32_t n = propose(c, &to);
    if (n == 0) continue;
    const uint32_t from = c->stage[c->group[0]];
    const double change = shift_group(c, n, to);
    if ((machine->all_used && c->n_counted[from] == 0) ||
        (change > 0 && uniform(c) >= exp(-change / temperature)))
      for (uint32_t i = n; i-- > 0;) shift(c, c->group[i], from);
    else
      settle(c);
  }
}

static psplit_code chain_init(chain *c, const psplit_core *core, const psplit_cut *cut,
                              uint64_t seed) {
  psplit_arena *arena = &c->arena;
  const uint32_t n_stages = core->n_stages;
  psplit_i_arena_init(arena, 0);
  c->core = core;
  c->seed = psplit_i_mix64(seed);
  c->device = cut->device;
  c->stage = PSPLIT_NEW(arena, uint32_t, core->n);
  c->best_stage = PSPLIT_NEW(arena, uint32_t, core->n);
  c->seen = PSPLIT_NEW(arena, uint32_t, core->n);
  c->w = PSPLIT_NEW(arena, int64_t, (size_t)n_stages * 3);
  c->n_counted = PSPLIT_NEW(arena, uint32_t, (size_t)n_stages * 3);
  c->part = PSPLIT_NEW(arena, double, n_stages);
  c->n_on = PSPLIT_NEW(arena, uint32_t, (size_t)core->n_nets * n_stages);
  c->n_receivers = PSPLIT_NEW(arena, uint32_t, core->n_nets);
  if (!c->stage || !c->best_stage || !c->seen || !c->w || !c->n_counted || !c->part || !c->n_on ||
      !c->n_receivers)
    return PSPLIT_NOMEM;
  c->recv = c->w + n_stages;
  c->send = c->recv + n_stages;
  c->touched = c->n_counted + n_stages;
  c->stamp = c->touched + n_stages;
  c->best = cut->value;
  memcpy(c->best_stage, cut->stage, core->n * sizeof *c->stage);
  memcpy(c->stage, cut->stage, core->n * sizeof *c->stage);
  for (uint32_t i = 0; i < core->n; i++) {
    const uint32_t k = c->stage[i];
    c->w[k] += core->w[(size_t)c->device[k] * core->n + i];
    c->n_counted[k] += core->n_counted[i];
  }
  c->n_moves = 1; /* from here on costs change, but there is no move yet */
  for (uint32_t e = 0; e < core->n_nets; e++) {
    const uint32_t home = c->stage[core->net_pin[core->net_off[e]]];
    for (uint32_t l = core->net_off[e] + 1; l < core->net_off[e + 1]; l++) {
      const uint32_t k = c->stage[core->net_pin[l]];
      if (c->n_on[(size_t)e * n_stages + k]++ == 0 && k != home) receive(c, e, home, k, 1);
    }
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_shift(const psplit_core *core, const psplit_machine *machine,
                           const psplit_job *job, uint64_t salt, uint64_t n_steps,
                           psplit_cut *cut) {
  if (core->has_memory || machine->replicated || core->problem->next_hop || core->n == 0 ||
      (uint64_t)core->n_nets * core->n_stages > MAX_CELLS)
    return PSPLIT_LIMIT;
  psplit_code code = PSPLIT_OK;
  const int n_threads = psplit_i_team_size(job->options->n_threads);
  chain *chains = calloc(N_CHAINS, sizeof *chains);
  if (!chains) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < N_CHAINS; i++)
    PSPLIT_TRY(chain_init(&chains[i], core, cut, (job->options->seed + salt) * N_CHAINS + i));
  for (uint32_t i = 0; i < N_CHAINS; i++) chains[i].n_squares = kChains[i].n_squares;
#pragma omp parallel for schedule(dynamic, 1) \
  num_threads(n_threads < N_CHAINS ? n_threads : N_CHAINS)
  for (uint32_t i = 0; i < N_CHAINS; i++)
    run_chain(&chains[i], machine, &job->deadline, n_steps, kChains[i].heat);
  for (uint32_t i = 0; i < N_CHAINS; i++) {
    if (chains[i].best < cut->value) {
      cut->value = chains[i].best;
      memcpy(cut->stage, chains[i].best_stage, core->n * sizeof *cut->stage);
    }
  }
out:
  for (uint32_t i = 0; i < N_CHAINS; i++) psplit_i_arena_fini(&chains[i].arena);
  free(chains);
  return code;
}
