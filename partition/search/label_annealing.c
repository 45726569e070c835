/* Simulated annealing on labels. Energy: the sum of a power of the loads, which sees every device
 * and, the higher the power, is ruled by the largest; for latency, the value itself. A step looks
 * at the devices that it touches, O(nets of the clusters moved). */
#include <stdlib.h>
#include <string.h>

#include "annealing.h"
#include "budget.h"
#include "energy.h"
#include "instance.h"
#include "label_annealing.h"
#include "placement.h"
#include "problem.h"
#include "result.h"

enum {
  N_CHAINS = PSPLIT_I_ANNEAL_CHAINS,
  MOST_MOVED = 16, /* clusters by one proposal */
  TRIES = 8,       /* to meet a cluster of a device */
  TRY_OPS = 16, /* in a cache: along an order most clusters are between neighbours that bind them */
  /* Of 256 proposals without an order: */
  WITH_NEIGHBOURS = 64,
  AGAINST_ANOTHER = 96,
};
static const double HEAT[N_CHAINS] = {1, 3, 10, 30};

typedef struct chain {
  psplit_i_placement placement;
  psplit_i_arena arena;
  psplit_i_annealing run;
  const psplit_i_cooling *cooling;
  psplit_i_budget *budget;
  uint64_t tries, work; /* operations of a proposal that comes to nothing, and of a move */
  bool whole;           /* the energy has no parts */
  psplit_i_energy energy;
  uint32_t *label;                                         /* [n] of energy.best */
  double now;                                              /* energy, where it has no parts */
  uint32_t moved[MOST_MOVED], before[MOST_MOVED], n_moved; /* by the proposal: clusters, labels */
} chain;

static uint64_t draw(chain *c) { return psplit_i_anneal_draw(&c->run); }
static uint32_t below(chain *c, uint32_t n) { return psplit_i_anneal_below(&c->run, n); }

static bool may_be_on(const psplit_i_placement *b, uint32_t cluster, uint32_t label) {
  const psplit_i_instance *instance = b->instance;
  const uint32_t k = label % b->n_devices;
  if (instance->pin[cluster] != PSPLIT_NONE && instance->pin[cluster] != k) return false;
  return instance->w[(size_t)b->type[k] * instance->n + cluster] < PSPLIT_I_INF;
}

/* Part of a proposal; false where the cluster may not go there. */
static bool shift(chain *c, uint32_t cluster, uint32_t label) {
  if (c->n_moved == MOST_MOVED || !may_be_on(&c->placement, cluster, label)) return false;
  c->moved[c->n_moved] = cluster;
  c->before[c->n_moved++] = c->placement.label[cluster];
  psplit_i_placement_move(&c->placement, cluster, label);
  return true;
}

static void undo(chain *c) {
  while (c->n_moved > 0) {
    c->n_moved--;
    psplit_i_placement_move(&c->placement, c->moved[c->n_moved], c->before[c->n_moved]);
  }
}

/* Along an order: near the present label, or anywhere between the neighbours'. */
static bool propose_ordered(chain *c, uint32_t cluster) {
  psplit_i_placement *b = &c->placement;
  uint32_t low, high;
  const uint32_t now = b->label[cluster];
  b->label[cluster] = PSPLIT_NONE; /* its own label does not bind it */
  const bool any = psplit_i_placement_range(b, cluster, &low, &high);
  b->label[cluster] = now;
  if (!any || low == high) return false;
  const uint64_t coin = draw(c);
  uint32_t label = low + (uint32_t)((coin >> 3) % (high - low + 1));
  if (coin & 3) label = coin & 4 ? (now < high ? now + 1 : now) : now > low ? now - 1 : now;
  return label != now && shift(c, cluster, label);
}

static uint32_t neighbour(chain *c, uint32_t cluster) {
  const psplit_i_instance *instance = c->placement.instance;
  const uint32_t n_inc = instance->inc_off[cluster + 1] - instance->inc_off[cluster];
  if (n_inc == 0) return cluster;
  const uint32_t e = instance->inc[instance->inc_off[cluster] + below(c, n_inc)] >> 1;
  const uint32_t n_pins = instance->net_off[e + 1] - instance->net_off[e];
  return instance->net_pin[instance->net_off[e] + below(c, n_pins)];
}

/* Without an order: to a neighbour's device or any other; alone, with neighbours from the same
 * device, or against a cluster from there. */
static bool propose_free(chain *c, uint32_t cluster) {
  psplit_i_placement *b = &c->placement;
  const uint32_t now = b->label[cluster];
  const uint64_t coin = draw(c);
  const uint32_t label = coin & 3 ? b->label[neighbour(c, cluster)] : below(c, b->n_labels);
  if (label == now || !shift(c, cluster, label)) return false;
  const uint32_t kind = (coin >> 8) & 255;
  if (kind < WITH_NEIGHBOURS) {
    const uint32_t most = 1 + (uint32_t)((coin >> 16) & 7);
    for (uint32_t i = 0; i < most; i++) {
      const uint32_t next = neighbour(c, c->moved[below(c, c->n_moved)]);
      if (b->label[next] == now) shift(c, next, label);
    }
  } else if (kind < WITH_NEIGHBOURS + AGAINST_ANOTHER) {
    for (uint32_t i = 0; i < TRIES; i++) {
      const uint32_t other = below(c, b->instance->n);
      if (other != cluster && b->label[other] == label) {
        shift(c, other, now);
        break;
      }
    }
  }
  return true;
}

/* The energy of the whole placement, where it has no parts: latency, and tensors that are passed
 * on. */
static double whole_energy(chain *c, int64_t *out_value) {
  psplit_i_placement *b = &c->placement;
  *out_value = psplit_i_placement_settle(b, c->energy.fresh);
  if (b->latency || *out_value >= PSPLIT_I_INF) return (double)*out_value / c->energy.unit;
  double sum = 0;
  for (uint32_t k = 0; k < b->n_devices; k++)
    sum += psplit_i_energy_of(&c->energy, c->energy.fresh[k]);
  return sum;
}

static void remember(chain *c) {
  memcpy(c->label, c->placement.label, c->placement.instance->n * sizeof *c->label);
}

static bool fits(const psplit_i_placement *b) {
  for (uint32_t i = 0; i < b->n_touched; i++) {
    const uint32_t k = b->touched[i];
    if (!psplit_i_placement_fits(b, k) || (b->nonempty && b->n_counted[k] == 0)) return false;
  }
  return true;
}

static bool step_whole(chain *c) {
  int64_t value;
  const double after = whole_energy(c, &value);
  if (!psplit_i_anneal_accepts(&c->run, c->now - after)) return false;
  c->now = after;
  if (value >= c->energy.best) return true;
  c->energy.best = value;
  remember(c);
  return true;
}

static bool step_parts(chain *c) {
  if (!psplit_i_anneal_accepts(&c->run, -psplit_i_energy_rise(&c->energy))) return false;
  if (psplit_i_energy_take(&c->energy)) remember(c);
  return true;
}

/* Of the tables that moves look at: a count for every net and device. */
static uint64_t look_ops(const psplit_i_placement *b) {
  return psplit_i_look_ops((uint64_t)b->instance->n_nets * b->n_devices * sizeof *b->n_on);
}

/* What a move looks at: the nets of a cluster or some more; for latency all pairs of stages, too,
 * and where tensors are passed on all nets. */
static uint64_t ops_of_move(const psplit_i_placement *b) {
  const psplit_i_instance *instance = b->instance;
  const uint64_t n = instance->n, n_pins = instance->net_off[instance->n_nets];
  const uint64_t n_pairs = (uint64_t)b->n_devices * b->n_devices;
  if (instance->problem->next_hop) return look_ops(b) * ((n_pins + n) / 2);
  return look_ops(b) * (8 * n_pins / (n + 1)) + (b->latency ? n_pairs / 2 : 0);
}

static bool step(void *with, uint64_t i) {
  chain *c = with;
  psplit_i_placement *b = &c->placement;
  if (!psplit_i_spend(c->budget, c->tries)) return false;
  if (c->cooling->leave && i == c->cooling->n_steps / 2) {
    psplit_i_energy_set_best(&c->energy, psplit_i_placement_settle(b, c->energy.fresh));
    remember(c);
  }
  const uint32_t cluster = below(c, b->instance->n);
  if (b->ordered ? propose_ordered(c, cluster) : propose_free(c, cluster)) {
    psplit_i_spend(c->budget, c->work);
    if (!fits(b) || !(c->whole ? step_whole : step_parts)(c)) undo(c);
    c->n_moved = 0;
    psplit_i_placement_forget_touched(b);
  }
  return true;
}

static void run_chain(chain *c) {
  psplit_i_placement *b = &c->placement;
  const psplit_i_cooling *cooling = c->cooling;
  int64_t value;
  c->whole = b->latency || b->instance->problem->next_hop;
  c->tries = TRY_OPS * look_ops(b);
  c->work = ops_of_move(b);
  if (c->whole) c->now = whole_energy(c, &value);
  psplit_i_placement_forget_touched(b);
  psplit_i_anneal(&c->run, cooling->hot, cooling->cold, cooling->n_steps, c->budget, step, c);
}

psplit_code psplit_i_anneal_labels_once(const psplit_i_instance *instance, uint32_t chunks,
                                        const psplit_i_solver_request *request,
                                        const uint32_t *types, const psplit_i_cooling *cooling,
                                        psplit_i_budget *budget, uint32_t *label,
                                        int64_t *out_value) {
  psplit_code code;
  chain c = {.run.seed = cooling->seed,
             .cooling = cooling,
             .budget = budget,
             .energy.n_squares = cooling->n_squares};
  psplit_i_arena_init(&c.arena, 0);
  c.label = PSPLIT_NEW(&c.arena, uint32_t, instance->n);
  PSPLIT_TRY(c.label ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_placement_init(&c.placement, instance, chunks, request->options, &c.arena));
  memcpy(c.placement.type, types, instance->n_stages * sizeof *types);
  for (uint32_t v = 0; v < instance->n; v++) psplit_i_placement_add(&c.placement, v, label[v]);
  memcpy(c.label, label, instance->n * sizeof *label);
  PSPLIT_TRY(psplit_i_energy_init(&c.energy, &c.placement, &c.arena));
  psplit_i_energy_begin(&c.energy, psplit_i_placement_settle(&c.placement, NULL));
  psplit_i_spend(budget, 4 * look_ops(&c.placement) *
                           ((uint64_t)instance->n + instance->net_off[instance->n_nets]));
  run_chain(&c);
  memcpy(label, c.label, instance->n * sizeof *label);
  *out_value = c.energy.best;
out:
  psplit_i_arena_fini(&c.arena);
  return code;
}

/* What the chains of psplit_i_anneal_labels share, and what each is for. */
typedef struct label_chains {
  const psplit_i_instance *instance;
  uint32_t chunks;
  const psplit_i_solver_request *request;
  const uint32_t *types;
  uint64_t salt, n_steps;
  const uint32_t *label; /* where all begin */
  uint32_t *labels;      /* [N_CHAINS][n] */
  psplit_code *codes;
  int64_t *values;
  psplit_i_budget *budgets;
} label_chains;

static void anneal_one(void *with, size_t i, int thread) {
  const label_chains *all = with;
  const size_t n = all->instance->n;
  const bool latency = all->request->options->objective == PSPLIT_LATENCY;
  const psplit_i_cooling cooling = {
    .seed = psplit_i_mix64(all->request->options->seed * 0x9e3779b1 + all->salt * N_CHAINS + i),
    .n_steps = all->n_steps,
    .hot = HEAT[i] * (latency ? 0.01 : 0.1),
    .cold = latency ? 1e-5 : 1e-4,
    .n_squares = 4};
  (void)thread;
  memcpy(all->labels + i * n, all->label, n * sizeof *all->label);
  all->codes[i] =
    psplit_i_anneal_labels_once(all->instance, all->chunks, all->request, all->types, &cooling,
                                &all->budgets[i], all->labels + i * n, &all->values[i]);
}

psplit_code psplit_i_anneal_labels(const psplit_i_instance *instance, uint32_t chunks,
                                   const psplit_i_solver_request *request, const uint32_t *types,
                                   uint64_t salt, uint64_t max_steps, uint32_t *label,
                                   int64_t *inout_value) {
  const uint64_t per_cluster = instance->n > 20000 ? 50 : 8000;
  uint64_t n_steps = per_cluster * instance->n;
  if (n_steps > max_steps) n_steps = max_steps;
  /* Relays are counted anew after every move. */
  if (instance->problem->next_hop) n_steps /= 1 + instance->net_off[instance->n_nets] / 16;
  psplit_code codes[N_CHAINS] = {PSPLIT_OK};
  psplit_i_budget budgets[N_CHAINS];
  int64_t values[N_CHAINS];
  uint32_t *labels = malloc((size_t)N_CHAINS * instance->n * sizeof *labels + 1);
  if (!labels) return PSPLIT_NOMEM;
  label_chains all = {instance, chunks, request, types,  salt,   n_steps,
                      label,    labels, codes,   values, budgets};
  psplit_i_anneal_chains(request, budgets, anneal_one, &all);
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < N_CHAINS; i++) {
    if (codes[i] != PSPLIT_OK && code == PSPLIT_OK) code = codes[i];
    if (codes[i] == PSPLIT_OK && values[i] < *inout_value) {
      *inout_value = values[i];
      memcpy(label, labels + (size_t)i * instance->n, instance->n * sizeof *label);
    }
  }
  free(labels);
  return code;
}
