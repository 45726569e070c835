/* Simulated annealing on labels. Energy: the sum of loads to the twelfth power, which sees every
 * device and is ruled by the largest; for latency, the value itself. Source: Kirkpatrick, Gelatt,
 * Vecchi, "Optimization by simulated annealing", Science 1983. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "partition.h"
#include "team.h"

enum { N_CHAINS = 4 };
static const double kHeat[N_CHAINS] = {1, 3, 10, 30};

typedef struct chain {
  psplit_board board;
  psplit_arena arena;
  uint64_t seed, n_drawn;
  int64_t best;
  int64_t *load; /* [n_devices] */
  uint32_t *label;
  psplit_code code;
} chain;

static uint64_t draw(chain *c) { return psplit_i_splitmix64(c->seed, c->n_drawn++); }
static double uniform(chain *c) { return (double)(draw(c) >> 11) * 0x1p-53; }

static double energy(chain *c, double unit, int64_t *out_value) {
  psplit_board *b = &c->board;
  const bool relayed = b->core->problem->next_hop != NULL;
  int64_t most = 0;
  if (b->latency || relayed) most = psplit_i_board_settle(b, c->load);
  *out_value = most;
  if (b->latency || most >= PSPLIT_I_INF) return (double)most / unit;
  double sum = 0;
  for (uint32_t k = 0; k < b->n_devices; k++) {
    const int64_t load = relayed ? c->load[k] : psplit_i_board_load(b, k);
    if (load > most) most = load;
    const double x = (double)load / unit, cube = x * x * x;
    sum += cube * cube * cube * cube;
  }
  *out_value = most;
  return sum;
}

static bool may_move(const psplit_board *b, uint32_t item, uint32_t label) {
  const psplit_core *core = b->core;
  const uint32_t k = label % b->n_devices, from = b->label[item] % b->n_devices;
  if (core->pin[item] != PSPLIT_NONE && core->pin[item] != k) return false;
  if (core->w[(size_t)b->type[k] * core->n + item] >= PSPLIT_I_INF) return false;
  return !(b->nonempty && from != k && core->n_counted[item] > 0 &&
           b->n_counted[from] == core->n_counted[item]);
}

static void move(psplit_board *b, uint32_t item, uint32_t label) {
  psplit_i_board_remove(b, item);
  psplit_i_board_add(b, item, label);
}

/* A label for `item`: near the present one along an order; next to a neighbour or anywhere else. */
static bool propose(chain *c, uint32_t item, uint32_t *out_label) {
  psplit_board *b = &c->board;
  const psplit_core *core = b->core;
  uint32_t low, high;
  const uint32_t now = b->label[item];
  b->label[item] = PSPLIT_NONE; /* its own label does not bind it */
  const bool any = psplit_i_board_range(b, item, &low, &high);
  b->label[item] = now;
  if (!any || low == high) return false;
  const uint64_t coin = draw(c);
  if (b->ordered && coin & 3) {
    if (coin & 4)
      *out_label = now < high ? now + 1 : now;
    else
      *out_label = now > low ? now - 1 : now;
  } else if (!b->ordered && (coin & 3) && core->inc_off[item + 1] > core->inc_off[item]) {
    const uint32_t n_inc = core->inc_off[item + 1] - core->inc_off[item];
    const uint32_t e = core->inc[core->inc_off[item] + (uint32_t)(draw(c) % n_inc)] >> 1;
    const uint32_t n_pins = core->net_off[e + 1] - core->net_off[e];
    *out_label = b->label[core->net_pin[core->net_off[e] + (uint32_t)(draw(c) % n_pins)]];
  } else {
    *out_label = low + (uint32_t)(draw(c) % (high - low + 1));
  }
  return *out_label != now && may_move(b, item, *out_label);
}

/* An item to move the other way at the same time, which keeps both sides' balance; NONE: none. */
static uint32_t counterpart(chain *c, uint32_t item, uint32_t label) {
  const psplit_board *b = &c->board;
  if (b->ordered || b->nonempty || draw(c) & 1) return PSPLIT_NONE;
  for (uint32_t k = 0; k < b->n_devices; k++) {
    const uint32_t other = (uint32_t)(draw(c) % b->core->n);
    if (other != item && b->label[other] == label && may_move(b, other, b->label[item]))
      return other;
  }
  return PSPLIT_NONE;
}

static void run_chain(chain *c, const psplit_job *job, uint64_t n_steps, double heat) {
  psplit_board *b = &c->board;
  const double unit = c->best > 0 ? (double)c->best : 1;
  int64_t value;
  double now = energy(c, unit, &value);
  const double hot = heat * (b->latency ? 0.01 : 0.1), cold = b->latency ? 1e-5 : 1e-4;
  const double cooling = pow(cold / hot, 1.0 / (double)(n_steps + 1));
  double temperature = hot;
  for (uint64_t step = 0; step < n_steps; step++, temperature *= cooling) {
    if ((step & 1023) == 0 && psplit_i_expired(&job->deadline)) return;
    const uint32_t item = (uint32_t)(draw(c) % b->core->n);
    uint32_t label;
    if (!propose(c, item, &label)) continue;
    const uint32_t before = b->label[item], other = counterpart(c, item, label);
    move(b, item, label);
    if (other != PSPLIT_NONE) move(b, other, before);
    const double after = energy(c, unit, &value);
    const bool fits =
      psplit_i_board_fits(b, label % b->n_devices) && psplit_i_board_fits(b, before % b->n_devices);
    if (!fits || (after > now && uniform(c) >= exp((now - after) / temperature))) {
      move(b, item, before);
      if (other != PSPLIT_NONE) move(b, other, label);
      continue;
    }
    now = after;
    if (value < c->best) {
      c->best = value;
      memcpy(c->label, b->label, b->core->n * sizeof *c->label);
    }
  }
}

psplit_code psplit_i_anneal(const psplit_core *core, uint32_t chunks, const psplit_job *job,
                            const uint32_t *types, uint64_t salt, uint64_t max_steps,
                            uint32_t *label, int64_t *inout_value) {
  psplit_code code = PSPLIT_OK;
  const int n_threads = psplit_i_team_size(job->options->n_threads);
  chain *chains = calloc(N_CHAINS, sizeof *chains);
  if (!chains) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < N_CHAINS; i++) {
    chain *c = &chains[i];
    psplit_i_arena_init(&c->arena, 0);
    c->seed = psplit_i_mix64(job->options->seed * 0x9e3779b1 + salt * N_CHAINS + i);
    c->label = PSPLIT_NEW(&c->arena, uint32_t, core->n);
    c->load = PSPLIT_NEW(&c->arena, int64_t, core->n_stages);
    PSPLIT_TRY(c->label && c->load ? PSPLIT_OK : PSPLIT_NOMEM);
    PSPLIT_TRY(psplit_i_board_init(&c->board, core, chunks, job->options, &c->arena));
    memcpy(c->board.type, types, core->n_stages * sizeof *types);
    for (uint32_t v = 0; v < core->n; v++) psplit_i_board_add(&c->board, v, label[v]);
    memcpy(c->label, label, core->n * sizeof *label);
    c->best = psplit_i_board_settle(&c->board, NULL);
  }
  const uint64_t per_item = core->n > 20000 ? 50 : 8000;
  uint64_t n_steps = per_item * core->n;
  if (n_steps > max_steps) n_steps = max_steps;
  /* Relays are counted anew after every move. */
  if (core->problem->next_hop) n_steps /= 1 + core->net_off[core->n_nets] / 16;
#pragma omp parallel for schedule(dynamic, 1) \
  num_threads(n_threads < N_CHAINS ? n_threads : N_CHAINS)
  for (uint32_t i = 0; i < N_CHAINS; i++) run_chain(&chains[i], job, n_steps, kHeat[i]);
  for (uint32_t i = 0; i < N_CHAINS; i++)
    if (chains[i].best < *inout_value) {
      *inout_value = chains[i].best;
      memcpy(label, chains[i].label, core->n * sizeof *label);
    }
out:
  for (uint32_t i = 0; i < N_CHAINS; i++) psplit_i_arena_fini(&chains[i].arena);
  free(chains);
  return code;
}
