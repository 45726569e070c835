/* Simulated annealing on labels. The energy is the sum of a power of the loads, which depends on
 * every device and, with higher powers, mostly on the largest load; for latency it is the value
 * itself. A step evaluates only the devices that it touches, in O(nets of the moved clusters). */
#include <stdlib.h>
#include <string.h>

#include "annealing.h"
#include "budget.h"
#include "energy.h"
#include "instance.h"
#include "label_annealing.h"
#include "placement.h"
#include "problem.h"

enum {
  N_CHAINS = PSPLIT_I_ANNEAL_CHAINS,
  MOST_MOVED = 24, /* clusters by one proposal */
  STEPS_PER_SWAP = 64,
  TRIES = 8,    /* to meet a cluster of a device */
  TRY_OPS = 10, /* in a cache: along an order most clusters are between neighbours that bind them */
  /* Of 256 proposals without an order: */
  WITH_NEIGHBOURS = 64,
  AGAINST_ANOTHER = 96,
};
static const double HEAT[N_CHAINS] = {1, 3, 10, 30};
/* For latency, chains that begin hotter only shuffle clusters, unless each cluster has enough steps
 * to cool slowly: then two hot ones find more. Colder ones accept next to nothing. */
static const double LATENCY_HEAT[N_CHAINS] = {2e-3, 3e-3, 4.5e-3, 7e-3},
                    SLOW_LATENCY_HEAT[N_CHAINS] = {2e-3, 3e-3, 1e-2, 3e-2}, LATENCY_COLD = 3e-5;
/* Of what all stages take, against latency: of two placements that end at one time the one that
 * takes less is nearer to a better one. */
static const double BUSY = 1.0 / 64;

typedef struct chain {
  psplit_i_placement placement;
  psplit_i_arena arena;
  psplit_i_annealing run;
  const psplit_i_cooling *cooling;
  psplit_i_budget *budget;
  uint64_t look, tries; /* operations of a look, and of a proposal that comes to nothing; */
  uint64_t each, value; /* of moving a cluster, and of what a proposal looks at besides */
  uint32_t swaps;       /* every so many steps stages change places; 0: never */
  bool in_groups; /* along an order: clusters move with what has to go along, which takes longer */
  bool whole;     /* the energy has no parts */
  psplit_i_energy energy;
  uint32_t *label;                                         /* [n] of energy.best */
  double now;                                              /* energy, where it has no parts */
  uint32_t moved[MOST_MOVED], before[MOST_MOVED], n_moved; /* by the proposal: clusters, labels */
  uint32_t group[MOST_MOVED], *seen, n_seen;               /* of what is to move; [n] */
} chain;

static uint64_t draw(chain *c) { return psplit_i_anneal_draw(&c->run); }
static uint32_t below(chain *c, uint32_t n) { return psplit_i_anneal_below(&c->run, n); }

static bool may_be_on(const psplit_i_placement *b, uint32_t cluster, uint32_t label) {
  const psplit_i_instance *instance = b->instance;
  const uint32_t k = label % b->n_devices;
  if (instance->pin[cluster] != PSPLIT_NONE && instance->pin[cluster] != k) return false;
  return instance->w[(size_t)b->type[k] * instance->n + cluster] < PSPLIT_I_INF;
}

/* A part of a proposal. Returns false if the cluster may not have that label. */
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

/* Along an order, proposes one cluster, with a label near the present one or anywhere between those
 * of its neighbours. For contiguous throughput this solver has only a part of the time, and groups
 * take longer. */
static bool propose_alone(chain *c, uint32_t cluster) {
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

/* Collects everything that must move with a cluster to a later or earlier label, in c->group.
 * Returns 0 if that is too much. Visits are charged to the budget. */
static uint32_t gather(chain *c, uint32_t cluster, uint32_t label) {
  const psplit_i_placement *b = &c->placement;
  const psplit_i_instance *instance = b->instance;
  const bool up = label > b->label[cluster];
  const uint32_t *off = up ? instance->succ_off : instance->pred_off,
                 *list = up ? instance->succ : instance->pred;
  uint32_t n = 1;
  c->n_seen++;
  c->group[0] = cluster;
  c->seen[cluster] = c->n_seen;
  for (uint32_t i = 0; i < n; i++) {
    psplit_i_spend(c->budget, c->look * (1 + off[c->group[i] + 1] - off[c->group[i]]));
    for (uint32_t l = off[c->group[i]]; l < off[c->group[i] + 1]; l++) {
      const uint32_t other = list[l], at = b->label[other];
      if ((up ? at >= label : at <= label) || c->seen[other] == c->n_seen) continue;
      if (n == MOST_MOVED) return 0;
      c->seen[other] = c->n_seen;
      c->group[n++] = other;
    }
  }
  return n;
}

/* Along an order, proposes the label of a neighbour, the next label, or any label, for a cluster
 * with everything that must move along. */
static bool propose_group(chain *c, uint32_t cluster) {
  const psplit_i_placement *b = &c->placement;
  const uint32_t now = b->label[cluster];
  const uint64_t coin = draw(c);
  uint32_t label = now;
  if ((coin & 7) < 4)
    label = b->label[neighbour(c, cluster)];
  else if ((coin & 7) < 7)
    label = coin & 8 ? now + 1 : now - 1;
  else
    label = below(c, b->n_labels);
  if (label == now || label >= b->n_labels) return false;
  const uint32_t n = gather(c, cluster, label);
  for (uint32_t i = 0; i < n; i++)
    if (!shift(c, c->group[i], label)) {
      undo(c);
      return false;
    }
  return n > 0;
}

/* Without an order, proposes the device of a neighbour, or any other: alone, with neighbours on the
 * same device, or in exchange for a cluster there. */
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

/* The energy of the whole placement, for latency and with relays, where it cannot be updated
 * incrementally. */
static double whole_energy(chain *c, int64_t *out_value) {
  psplit_i_placement *b = &c->placement;
  *out_value = psplit_i_placement_settle(b, c->energy.fresh);
  double sum = 0;
  if (*out_value >= PSPLIT_I_INF) return (double)*out_value / c->energy.unit;
  if (b->latency) {
    for (uint32_t k = 0; k < b->n_devices; k++) sum += (double)c->energy.fresh[k];
    return ((double)*out_value + BUSY * sum) / c->energy.unit;
  }
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

/* The size of the tables that moves access: a count for every net and device. */
static uint64_t look_ops(const psplit_i_placement *b) {
  return psplit_i_look_ops((uint64_t)b->instance->n_nets * b->n_devices * sizeof *b->n_on);
}

/* The number of accesses when a cluster is moved: about its number of nets. */
static uint64_t ops_of_cluster(const psplit_i_placement *b) {
  const uint64_t n_pins = b->instance->net_off[b->instance->n_nets];
  return look_ops(b) * (5 * n_pins / ((uint64_t)b->instance->n + 1));
}

/* The number of further accesses per proposal: for latency, all pairs of stages in sequence; with
 * relays, all nets. */
static uint64_t ops_of_value(const psplit_i_placement *b) {
  const psplit_i_instance *instance = b->instance;
  const uint64_t n_pins = instance->net_off[instance->n_nets];
  if (instance->problem->next_hop) return look_ops(b) * ((n_pins + instance->n) / 2);
  return b->latency ? (uint64_t)b->n_devices * b->n_devices / 8 : 0;
}

/* The clusters of stage k and of the next stage. */
static void exchange(psplit_i_placement *b, uint32_t k) {
  for (uint32_t v = 0; v < b->instance->n; v++)
    if (b->label[v] == k || b->label[v] == k + 1)
      psplit_i_placement_move(b, v, 2 * k + 1 - b->label[v]);
}

/* For latency: exchanges two consecutive stages that are independent of each other. Times do not
 * change, but clusters have other moves afterwards. */
static void swap_stages(chain *c) {
  psplit_i_placement *b = &c->placement;
  const uint32_t k = below(c, b->n_devices - 1);
  if (b->type[k] != b->type[k + 1] || b->n_arcs[(size_t)k * b->n_devices + k + 1]) return;
  exchange(b, k);
  psplit_i_spend(c->budget,
                 b->instance->n + c->each * (b->n_clusters[k] + b->n_clusters[k + 1]) / 2);
  if (!psplit_i_placement_fits(b, k) || !psplit_i_placement_fits(b, k + 1)) exchange(b, k);
  psplit_i_placement_forget_touched(b);
}

static bool propose(chain *c, uint32_t cluster) {
  if (!c->placement.ordered) return propose_free(c, cluster);
  return c->in_groups ? propose_group(c, cluster) : propose_alone(c, cluster);
}

static bool step(void *with, uint64_t i) {
  chain *c = with;
  psplit_i_placement *b = &c->placement;
  if (!psplit_i_spend(c->budget, c->tries)) return false;
  if (c->cooling->leave && i == c->cooling->n_steps / 2) {
    psplit_i_energy_set_best(&c->energy, psplit_i_placement_settle(b, c->energy.fresh));
    remember(c);
  }
  if (c->swaps && i % c->swaps == 0) swap_stages(c);
  const uint32_t cluster = below(c, b->instance->n);
  if (propose(c, cluster)) {
    psplit_i_spend(c->budget, c->value + c->each * (b->ordered ? c->n_moved : 1));
    if (!fits(b) || !(c->whole ? step_whole : step_parts)(c)) undo(c);
    c->n_moved = 0;
    psplit_i_placement_forget_touched(b);
  }
  return true;
}

static void run_chain(chain *c) {
  psplit_i_placement *b = &c->placement;
  const psplit_i_instance *instance = b->instance;
  const psplit_i_cooling *cooling = c->cooling;
  int64_t value;
  c->whole = b->latency || instance->problem->next_hop;
  c->look = look_ops(b);
  c->tries = TRY_OPS * c->look;
  c->each = ops_of_cluster(b);
  c->value = ops_of_value(b);
  c->in_groups = b->latency || cooling->in_groups;
  if (b->latency && b->n_devices > 1 && !instance->problem->next_hop && !instance->has_pins)
    c->swaps = STEPS_PER_SWAP + instance->n / b->n_devices;
  if (c->whole) c->now = whole_energy(c, &value);
  psplit_i_placement_forget_touched(b);
  psplit_i_anneal(&c->run, cooling->hot, cooling->cold, cooling->n_steps, c->budget, step, c);
}

psplit_code psplit_i_anneal_labels_once(const psplit_i_placement_task *task,
                                        const psplit_i_cooling *cooling, psplit_i_budget *budget,
                                        uint32_t *label, int64_t *out_value) {
  const psplit_i_instance *instance = task->instance;
  psplit_code code;
  chain c = {.run.seed = cooling->seed,
             .cooling = cooling,
             .budget = budget,
             .energy.n_squares = cooling->n_squares};
  psplit_i_arena_init(&c.arena, 0);
  c.label = PSPLIT_NEW(&c.arena, uint32_t, instance->n);
  c.seen = PSPLIT_NEW(&c.arena, uint32_t, instance->n);
  PSPLIT_TRY(c.label && c.seen ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_placement_init(&c.placement, instance, task->chunks, task->request->options,
                                     &c.arena));
  memcpy(c.placement.type, task->types, instance->n_stages * sizeof *task->types);
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
  const psplit_i_placement_task *task;
  uint64_t salt, n_steps;
  const double *latency_heat; /* [N_CHAINS] */
  const uint32_t *label;      /* where all begin */
  uint32_t *labels;           /* [N_CHAINS][n] */
  psplit_code *codes;
  int64_t *values;
  psplit_i_budget *budgets;
} label_chains;

static void anneal_one(void *with, size_t i, int thread) {
  const label_chains *all = with;
  const size_t n = all->task->instance->n;
  const psplit_partition_options *options = all->task->request->options;
  const bool latency = options->objective == PSPLIT_LATENCY;
  const psplit_i_cooling cooling = {
    .seed = psplit_i_mix64(options->seed * 0x9e3779b1 + all->salt * N_CHAINS + i),
    .n_steps = all->n_steps,
    .hot = latency ? all->latency_heat[i] : HEAT[i] * 0.1,
    .cold = latency ? LATENCY_COLD : 1e-4,
    .n_squares = 4};
  (void)thread;
  memcpy(all->labels + i * n, all->label, n * sizeof *all->label);
  all->codes[i] = psplit_i_anneal_labels_once(all->task, &cooling, &all->budgets[i],
                                              all->labels + i * n, &all->values[i]);
}

psplit_code psplit_i_anneal_labels(const psplit_i_placement_task *task, uint64_t salt,
                                   uint64_t max_steps, uint32_t *label, int64_t *inout_value) {
  const psplit_i_instance *instance = task->instance;
  const uint64_t per_cluster = instance->n > 20000 ? 50 : 8000;
  uint64_t n_steps = per_cluster * instance->n;
  const bool slow = n_steps <= max_steps;
  if (!slow) n_steps = max_steps;
  /* Relays are recounted after every move. */
  if (instance->problem->next_hop) n_steps /= 1 + instance->net_off[instance->n_nets] / 16;
  psplit_code codes[N_CHAINS] = {PSPLIT_OK};
  psplit_i_budget budgets[N_CHAINS];
  int64_t values[N_CHAINS];
  uint32_t *labels = malloc((size_t)N_CHAINS * instance->n * sizeof *labels + 1);
  if (!labels) return PSPLIT_NOMEM;
  label_chains all = {.task = task,
                      .salt = salt,
                      .n_steps = n_steps,
                      .latency_heat = slow ? SLOW_LATENCY_HEAT : LATENCY_HEAT,
                      .label = label,
                      .labels = labels,
                      .codes = codes,
                      .values = values,
                      .budgets = budgets};
  psplit_i_anneal_chains(task->request, budgets, anneal_one, &all);
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
