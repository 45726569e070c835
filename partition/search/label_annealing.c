/* Simulated annealing on labels. Energy: the sum of a power of the loads, which sees every device
 * and, the higher the power, is ruled by the largest; for latency, the value itself. A step looks
 * at the devices that it touches, O(nets of the items moved). Source: Kirkpatrick, Gelatt, Vecchi,
 * "Optimization by simulated annealing", Science 1983. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "instance.h"
#include "label_annealing.h"
#include "placement.h"
#include "problem.h"
#include "result.h"
#include "team.h"

enum {
  N_CHAINS = 4,
  MOST_MOVED = 16, /* items by one proposal */
  TRIES = 8,       /* to meet an item of a device */
  /* Of 256 proposals without an order: */
  WITH_NEIGHBOURS = 64,
  AGAINST_ANOTHER = 96,
};
static const double kHeat[N_CHAINS] = {1, 3, 10, 30};

typedef struct chain {
  psplit_board board;
  psplit_arena arena;
  uint64_t seed, n_drawn;
  int64_t best;
  uint32_t *label;                                         /* [n] of the best */
  double unit;                                             /* what loads are measured in */
  uint32_t n_squares;                                      /* the energy's power is 2 to this */
  double now;                                              /* energy, where it has no parts */
  int64_t *load, *fresh;                                   /* [n_devices] before and after a move */
  double *term;                                            /* [n_devices] of the energy */
  uint32_t n_over;                                         /* devices with a load >= best */
  uint32_t moved[MOST_MOVED], before[MOST_MOVED], n_moved; /* by the proposal: items, labels */
} chain;

static uint64_t draw(chain *c) { return psplit_i_splitmix64(c->seed, c->n_drawn++); }
static uint32_t below(chain *c, uint32_t n) { return (uint32_t)(((draw(c) >> 32) * n) >> 32); }
static double uniform(chain *c) { return (double)(draw(c) >> 11) * 0x1p-53; }

static double power(const chain *c, int64_t load) {
  double x = (double)load / c->unit;
  for (uint32_t i = 0; i < c->n_squares; i++) x *= x;
  return x;
}

static bool may_be_on(const psplit_board *b, uint32_t item, uint32_t label) {
  const psplit_core *core = b->core;
  const uint32_t k = label % b->n_devices;
  if (core->pin[item] != PSPLIT_NONE && core->pin[item] != k) return false;
  return core->w[(size_t)b->type[k] * core->n + item] < PSPLIT_I_INF;
}

/* Part of a proposal; false where the item may not go there. */
static bool shift(chain *c, uint32_t item, uint32_t label) {
  if (c->n_moved == MOST_MOVED || !may_be_on(&c->board, item, label)) return false;
  c->moved[c->n_moved] = item;
  c->before[c->n_moved++] = c->board.label[item];
  psplit_i_board_move(&c->board, item, label);
  return true;
}

static void undo(chain *c) {
  while (c->n_moved > 0) {
    c->n_moved--;
    psplit_i_board_move(&c->board, c->moved[c->n_moved], c->before[c->n_moved]);
  }
}

/* Along an order: near the present label, or anywhere between the neighbours'. */
static bool propose_ordered(chain *c, uint32_t item) {
  psplit_board *b = &c->board;
  uint32_t low, high;
  const uint32_t now = b->label[item];
  b->label[item] = PSPLIT_NONE; /* its own label does not bind it */
  const bool any = psplit_i_board_range(b, item, &low, &high);
  b->label[item] = now;
  if (!any || low == high) return false;
  const uint64_t coin = draw(c);
  uint32_t label = low + (uint32_t)((coin >> 3) % (high - low + 1));
  if (coin & 3) label = coin & 4 ? (now < high ? now + 1 : now) : now > low ? now - 1 : now;
  return label != now && shift(c, item, label);
}

static uint32_t neighbour(chain *c, uint32_t item) {
  const psplit_core *core = c->board.core;
  const uint32_t n_inc = core->inc_off[item + 1] - core->inc_off[item];
  if (n_inc == 0) return item;
  const uint32_t e = core->inc[core->inc_off[item] + below(c, n_inc)] >> 1;
  const uint32_t n_pins = core->net_off[e + 1] - core->net_off[e];
  return core->net_pin[core->net_off[e] + below(c, n_pins)];
}

/* Without an order: to a neighbour's device or any other; alone, with neighbours from the same
 * device, or against an item from there. */
static bool propose_free(chain *c, uint32_t item) {
  psplit_board *b = &c->board;
  const uint32_t now = b->label[item];
  const uint64_t coin = draw(c);
  const uint32_t label = coin & 3 ? b->label[neighbour(c, item)] : below(c, b->n_labels);
  if (label == now || !shift(c, item, label)) return false;
  const uint32_t kind = (coin >> 8) & 255;
  if (kind < WITH_NEIGHBOURS) {
    const uint32_t most = 1 + (uint32_t)((coin >> 16) & 7);
    for (uint32_t i = 0; i < most; i++) {
      const uint32_t next = neighbour(c, c->moved[below(c, c->n_moved)]);
      if (b->label[next] == now) shift(c, next, label);
    }
  } else if (kind < WITH_NEIGHBOURS + AGAINST_ANOTHER) {
    for (uint32_t i = 0; i < TRIES; i++) {
      const uint32_t other = below(c, b->core->n);
      if (other != item && b->label[other] == label) {
        shift(c, other, now);
        break;
      }
    }
  }
  return true;
}

/* The energy of the whole board, where it has no parts: latency, and tensors that are passed on. */
static double whole_energy(chain *c, int64_t *out_value) {
  psplit_board *b = &c->board;
  *out_value = psplit_i_board_settle(b, c->fresh);
  if (b->latency || *out_value >= PSPLIT_I_INF) return (double)*out_value / c->unit;
  double sum = 0;
  for (uint32_t k = 0; k < b->n_devices; k++) sum += power(c, c->fresh[k]);
  return sum;
}

static bool accepts(chain *c, double gain, double temperature) {
  return gain >= 0 || uniform(c) < exp(gain / temperature);
}

static void remember(chain *c, int64_t value) {
  c->best = value;
  memcpy(c->label, c->board.label, c->board.core->n * sizeof *c->label);
}

static bool fits(const psplit_board *b) {
  for (uint32_t i = 0; i < b->n_touched; i++) {
    const uint32_t k = b->touched[i];
    if (!psplit_i_board_fits(b, k) || (b->nonempty && b->n_counted[k] == 0)) return false;
  }
  return true;
}

static bool step_whole(chain *c, double temperature) {
  int64_t value;
  const double after = whole_energy(c, &value);
  if (!accepts(c, c->now - after, temperature)) return false;
  c->now = after;
  if (value < c->best) remember(c, value);
  return true;
}

static void count_over(chain *c) {
  c->n_over = 0;
  for (uint32_t k = 0; k < c->board.n_devices; k++) c->n_over += c->load[k] >= c->best;
}

static bool step_parts(chain *c, double temperature) {
  const psplit_board *b = &c->board;
  double gain = 0;
  for (uint32_t i = 0; i < b->n_touched; i++) {
    const uint32_t k = b->touched[i];
    c->fresh[k] = psplit_i_board_load(b, k);
    gain += c->term[k] - power(c, c->fresh[k]);
  }
  if (!accepts(c, gain, temperature)) return false;
  for (uint32_t i = 0; i < b->n_touched; i++) {
    const uint32_t k = b->touched[i];
    if (c->load[k] >= c->best) c->n_over--;
    if (c->fresh[k] >= c->best) c->n_over++;
    c->load[k] = c->fresh[k];
    c->term[k] = power(c, c->load[k]);
  }
  if (c->n_over > 0) return true;
  int64_t most = 0;
  for (uint32_t k = 0; k < b->n_devices; k++)
    if (c->load[k] > most) most = c->load[k];
  remember(c, most);
  count_over(c);
  return true;
}

static void run_chain(chain *c, const psplit_job *job, const psplit_cooling *cooling) {
  psplit_board *b = &c->board;
  int64_t value;
  const uint64_t n_steps = cooling->n_steps;
  c->n_squares = cooling->n_squares;
  c->unit = c->best > 0 ? (double)c->best : 1;
  const bool whole = b->latency || b->core->problem->next_hop;
  if (whole) c->now = whole_energy(c, &value);
  for (uint32_t k = 0; k < b->n_devices; k++) {
    c->load[k] = psplit_i_board_load(b, k);
    c->term[k] = power(c, c->load[k]);
  }
  count_over(c);
  psplit_i_board_forget_touched(b);
  const double factor = pow(cooling->cold / cooling->hot, 1.0 / (double)(n_steps + 1));
  double temperature = cooling->hot;
  for (uint64_t step = 0; step < n_steps; step++, temperature *= factor) {
    if ((step & 1023) == 0 && psplit_i_expired(&job->deadline)) return;
    if (cooling->leave && step == n_steps / 2) {
      remember(c, psplit_i_board_settle(b, c->fresh));
      count_over(c);
    }
    const uint32_t item = below(c, b->core->n);
    if (b->ordered ? propose_ordered(c, item) : propose_free(c, item)) {
      if (!fits(b) || !(whole ? step_whole : step_parts)(c, temperature)) undo(c);
      c->n_moved = 0;
      psplit_i_board_forget_touched(b);
    }
  }
}

psplit_code psplit_i_anneal_chain(const psplit_core *core, uint32_t chunks, const psplit_job *job,
                                  const uint32_t *types, const psplit_cooling *cooling,
                                  uint32_t *label, int64_t *out_value) {
  psplit_code code;
  chain c = {.seed = cooling->seed};
  psplit_i_arena_init(&c.arena, 0);
  c.label = PSPLIT_NEW(&c.arena, uint32_t, core->n);
  c.load = PSPLIT_NEW(&c.arena, int64_t, core->n_stages);
  c.fresh = PSPLIT_NEW(&c.arena, int64_t, core->n_stages);
  c.term = PSPLIT_NEW(&c.arena, double, core->n_stages);
  PSPLIT_TRY(c.label && c.load && c.fresh && c.term ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_board_init(&c.board, core, chunks, job->options, &c.arena));
  memcpy(c.board.type, types, core->n_stages * sizeof *types);
  for (uint32_t v = 0; v < core->n; v++) psplit_i_board_add(&c.board, v, label[v]);
  memcpy(c.label, label, core->n * sizeof *label);
  c.best = psplit_i_board_settle(&c.board, NULL);
  run_chain(&c, job, cooling);
  memcpy(label, c.label, core->n * sizeof *label);
  *out_value = c.best;
out:
  psplit_i_arena_fini(&c.arena);
  return code;
}

psplit_code psplit_i_anneal(const psplit_core *core, uint32_t chunks, const psplit_job *job,
                            const uint32_t *types, uint64_t salt, uint64_t max_steps,
                            uint32_t *label, int64_t *inout_value) {
  const int n_threads = psplit_i_team_size(job->options->n_threads);
  const uint64_t per_item = core->n > 20000 ? 50 : 8000;
  uint64_t n_steps = per_item * core->n;
  if (n_steps > max_steps) n_steps = max_steps;
  /* Relays are counted anew after every move. */
  if (core->problem->next_hop) n_steps /= 1 + core->net_off[core->n_nets] / 16;
  const bool latency = job->options->objective == PSPLIT_LATENCY;
  psplit_code codes[N_CHAINS] = {PSPLIT_OK};
  int64_t values[N_CHAINS];
  uint32_t *labels = malloc((size_t)N_CHAINS * core->n * sizeof *labels + 1);
  if (!labels) return PSPLIT_NOMEM;
#pragma omp parallel for schedule(dynamic, 1) \
  num_threads(n_threads < N_CHAINS ? n_threads : N_CHAINS)
  for (uint32_t i = 0; i < N_CHAINS; i++) {
    const psplit_cooling cooling = {
      .seed = psplit_i_mix64(job->options->seed * 0x9e3779b1 + salt * N_CHAINS + i),
      .n_steps = n_steps,
      .hot = kHeat[i] * (latency ? 0.01 : 0.1),
      .cold = latency ? 1e-5 : 1e-4,
      .n_squares = 4};
    memcpy(labels + (size_t)i * core->n, label, core->n * sizeof *label);
    codes[i] = psplit_i_anneal_chain(core, chunks, job, types, &cooling,
                                     labels + (size_t)i * core->n, &values[i]);
  }
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < N_CHAINS; i++) {
    if (codes[i] != PSPLIT_OK && code == PSPLIT_OK) code = codes[i];
    if (codes[i] == PSPLIT_OK && values[i] < *inout_value) {
      *inout_value = values[i];
      memcpy(label, labels + (size_t)i * core->n, core->n * sizeof *label);
    }
  }
  free(labels);
  return code;
}
