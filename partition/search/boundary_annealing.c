/* Simulated annealing on the stages of clusters, which never decrease along an edge. The cost of a
 * move depends on the nets of the clusters that it moves, not on the number of stages. On wide
 * graphs, where few topological orders can be divided well, this evaluates many more splits than
 * dividing orders does. The energy is the sum of a power of the loads, which depends on every
 * stage, and most of all on the largest load. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "annealing.h"
#include "assignment.h"
#include "automaton.h"
#include "boundary_annealing.h"
#include "budget.h"
#include "energy.h"
#include "instance.h"
#include "placement.h"
#include "problem.h"
#include "result.h"

enum {
  N_CHAINS = PSPLIT_I_ANNEAL_CHAINS,
  MAX_GROUP = 24,
  MAX_CELLS = 1 << 24,
  STEPS_PER_ITEM = 4000
};
#define END_TEMPERATURE 1e-4

/* The power is 6 times 2 to n_squares. With low powers all stages count, which helps on wide
 * graphs; with high powers only nearly full stages count, and all others may change freely. */
typedef struct power {
  uint32_t n_squares;
  double heat;
} power;
enum { N_LOW = 2 }; /* of the first set */
/* What melts keeps nothing of the split it begins with: branches that its stages have side by side
 * hardly come into stages of their own otherwise. */
typedef enum chain_set { LOW, HIGH, MELTED, N_SETS } chain_set;
static const power POWERS[N_SETS][N_CHAINS] = {[LOW] = {{0, 0.1}, {0, 0.3}, {1, 0.1}, {2, 0.3}},
                                               [HIGH] = {{3, 0.3}, {4, 0.3}, {4, 1}, {5, 3}},
                                               [MELTED] = {{0, 2}, {0, 6}, {1, 2}, {2, 6}}};

typedef struct chain {
  psplit_i_placement placement;
  psplit_i_arena arena;
  psplit_i_annealing run;
  const psplit_i_automaton *automaton;
  psplit_i_energy energy;
  uint32_t *best_stage;      /* [n] of energy.best */
  uint32_t group[MAX_GROUP]; /* clusters of the move */
  uint32_t *seen, n_seen;    /* [n] */
  uint32_t first, last;      /* stages among which clusters move, */
  uint32_t *inside;          /* [n_inside] which are those of these */
  uint32_t n_inside;
  power power;
  bool high;
  psplit_i_budget *budget;
} chain;

/* Collects `cluster` and everything that must move with it to the next stage, or to the previous
 * one. Returns 0 if that is too much for one move, or more than `most` on device type `type`. */
static uint32_t gather(chain *c, uint32_t cluster, bool up, uint32_t type, double most) {
  const psplit_i_instance *instance = c->placement.instance;
  const uint32_t *off = up ? instance->succ_off : instance->pred_off;
  const uint32_t *list = up ? instance->succ : instance->pred;
  const int64_t *w = instance->w + (size_t)type * instance->n;
  const uint32_t from = c->placement.label[cluster];
  double sum = (double)w[cluster];
  uint32_t n = 1;
  c->n_seen++;
  c->group[0] = cluster;
  c->seen[cluster] = c->n_seen;
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t l = off[c->group[k]]; l < off[c->group[k] + 1]; l++) {
      const uint32_t other = list[l];
      if (c->placement.label[other] != from || c->seen[other] == c->n_seen) continue;
      sum += (double)w[other];
      if (n == MAX_GROUP || sum > most) return 0;
      c->seen[other] = c->n_seen;
      c->group[n++] = other;
    }
  return n;
}

/* The largest work that may move between two stages. More would overload the target even if neither
 * stage had communication left, and would be rejected unless a third stage gains as much. In kokoro
 * with K = 16 this rejects a third of the groups (2 % of single clusters) without evaluating
 * them. */
static double most_to_move(const chain *c, uint32_t from, uint32_t to) {
  enum { TEMPERATURES = 40 };
  double root = cbrt(c->energy.part[to] + c->energy.part[from] + TEMPERATURES * c->run.temperature);
  for (uint32_t i = 0; i <= c->energy.n_squares; i++) root = sqrt(root);
  return root * c->energy.unit - (double)c->placement.w[to];
}

static bool allowed(const chain *c, uint32_t cluster, uint32_t to) {
  const psplit_i_instance *instance = c->placement.instance;
  if (instance->pin[cluster] != PSPLIT_NONE) return false;
  return instance->w[(size_t)c->placement.type[to] * instance->n + cluster] < PSPLIT_I_INF;
}

/* The stage of a random cluster that shares a net with this one, or its own stage if there is
 * none. */
static uint32_t stage_of_neighbour(chain *c, uint32_t cluster) {
  const psplit_i_instance *instance = c->placement.instance;
  const uint32_t first = instance->inc_off[cluster], n = instance->inc_off[cluster + 1] - first;
  if (n == 0) return c->placement.label[cluster];
  const uint32_t e = instance->inc[first + psplit_i_anneal_below(&c->run, n)] >> 1;
  const uint32_t pin = instance->net_off[e],
                 n_pins = instance->net_off[e + 1] - instance->net_off[e];
  return c->placement.label[instance->net_pin[pin + psplit_i_anneal_below(&c->run, n_pins)]];
}

/* Proposes a move: clusters in c->group, and their target stage; 0 if there is none. Of eight
 * proposals of single clusters, one goes to any stage and four to the stage of a neighbour, which
 * saves a tensor. */
static uint32_t propose(chain *c, uint32_t *out_to) {
  const uint64_t coin = psplit_i_anneal_draw(&c->run);
  const uint32_t cluster = c->inside[(coin >> 32) * c->n_inside >> 32],
                 now = c->placement.label[cluster];
  const uint32_t kind = coin >> 1 & 7;
  const bool up = coin & 1, anywhere = kind == 0, near = kind >= 1 && kind <= 4;
  uint32_t low, high, n = 1;
  psplit_i_placement_range(&c->placement, cluster, &low, &high);
  if (low < c->first) low = c->first;
  if (high > c->last) high = c->last;
  c->group[0] = cluster;
  if (anywhere && low < high) {
    *out_to = low + (uint32_t)((coin >> 4 & 0xfffffff) % (high - low + 1));
    if (*out_to == now) return 0;
  } else if (near && low < high) {
    *out_to = stage_of_neighbour(c, cluster);
    if (*out_to == now || *out_to < low || *out_to > high) return 0;
  } else {
    if (now == (up ? c->last : c->first)) return 0;
    *out_to = up ? now + 1 : now - 1;
    if (*out_to < low || *out_to > high)
      n = gather(c, cluster, up, c->placement.type[*out_to], most_to_move(c, now, *out_to));
  }
  for (uint32_t i = 0; i < n; i++)
    if (!allowed(c, c->group[i], *out_to)) return 0;
  return n;
}

/* Moves c->group[n] from one stage to another, and returns the change of energy. */
static double shift_group(chain *c, uint32_t n, uint32_t to) {
  psplit_i_placement *b = &c->placement;
  psplit_i_placement_forget_touched(b);
  for (uint32_t i = 0; i < n; i++) psplit_i_placement_move(b, c->group[i], to);
  return psplit_i_energy_rise(&c->energy);
}

/* Accepts the move, and records the split if it is the best so far. */
static void settle(chain *c) {
  const psplit_i_placement *b = &c->placement;
  if (psplit_i_energy_take(&c->energy))
    memcpy(c->best_stage, b->label, b->instance->n * sizeof *b->label);
}

/* With few steps per cluster, a hot start would only spoil the initial split. With high powers no
 * start is hot: the slowest stage may become a percent slower. */
static double first_temperature(const chain *c, uint64_t n_steps) {
  const double cool = 2 * END_TEMPERATURE;
  const double per_cluster = (double)n_steps / c->n_inside / STEPS_PER_ITEM;
  double heat = c->power.heat;
  if (per_cluster < 1 && !c->high) heat *= per_cluster;
  return heat > cool ? heat : cool;
}

/* Energies take two powers for every stage that is touched, and nets are visited twice. */
static uint64_t work_of_move(const chain *c, uint32_t n) {
  const uint32_t *off = c->placement.instance->inc_off;
  uint64_t n_ops = 8;
  for (uint32_t i = 0; i < n; i++)
    n_ops += 8 + 4 * (uint64_t)(off[c->group[i] + 1] - off[c->group[i]]);
  return n_ops;
}

static bool step(void *with, uint64_t i) {
  chain *c = with;
  psplit_i_placement *b = &c->placement;
  uint32_t to;
  const uint32_t n = propose(c, &to);
  (void)i;
  if (!psplit_i_spend(c->budget, work_of_move(c, n))) return false;
  if (n == 0) return true;
  const uint32_t from = b->label[c->group[0]];
  const double change = shift_group(c, n, to);
  const bool empties = c->automaton->all_used && b->n_counted[from] == 0;
  if (!empties && psplit_i_anneal_accepts(&c->run, -change))
    settle(c);
  else
    for (uint32_t k = n; k-- > 0;) psplit_i_placement_move(b, c->group[k], from);
  return true;
}

static void run_chain(chain *c, uint64_t n_steps) {
  psplit_i_anneal(&c->run, first_temperature(c, n_steps), END_TEMPERATURE, n_steps,
                  c->high ? c->budget : NULL, step, c);
}

/* The split with its devices, in the arena. Errors: NOMEM. */
static psplit_code place(const psplit_i_instance *instance, const psplit_i_solver_request *request,
                         const psplit_i_assignment *assignment, psplit_i_arena *arena,
                         psplit_i_placement *out) {
  const psplit_code code = psplit_i_placement_init(out, instance, 1, request->options, arena);
  if (code != PSPLIT_OK) return code;
  memcpy(out->type, assignment->device, instance->n_stages * sizeof *out->type);
  for (uint32_t i = 0; i < instance->n; i++) psplit_i_placement_add(out, i, assignment->stage[i]);
  return PSPLIT_OK;
}

static psplit_code chain_init(chain *c, const psplit_i_instance *instance,
                              const psplit_i_solver_request *request,
                              const psplit_i_assignment *assignment, uint64_t seed) {
  psplit_i_arena *arena = &c->arena;
  psplit_i_arena_init(arena, 0);
  c->run.seed = psplit_i_mix64(seed);
  c->best_stage = PSPLIT_NEW(arena, uint32_t, instance->n);
  c->seen = PSPLIT_NEW(arena, uint32_t, instance->n);
  c->inside = PSPLIT_NEW(arena, uint32_t, instance->n);
  if (!c->best_stage || !c->seen || !c->inside) return PSPLIT_NOMEM;
  psplit_code code = place(instance, request, assignment, arena, &c->placement);
  if (code == PSPLIT_OK) code = psplit_i_energy_init(&c->energy, &c->placement, arena);
  if (code != PSPLIT_OK) return code;
  psplit_i_energy_begin(&c->energy, assignment->value);
  memcpy(c->best_stage, assignment->stage, instance->n * sizeof *assignment->stage);
  for (uint32_t i = 0; i < instance->n; i++)
    if (assignment->stage[i] >= c->first && assignment->stage[i] <= c->last)
      c->inside[c->n_inside++] = i;
  return PSPLIT_OK;
}

typedef struct boundary_chains {
  chain *chains;
  uint64_t n_steps;
} boundary_chains;

static void run_one(void *with, size_t i, int thread) {
  const boundary_chains *all = with;
  (void)thread;
  run_chain(&all->chains[i], all->n_steps);
}

/* What one set of chains is to do: n_steps each, among the clusters of stages first .. last. */
typedef struct chains_order {
  chain_set set;
  uint64_t salt, n_steps;
  uint32_t first, last;
} chains_order;

static psplit_code anneal_among(const psplit_i_instance *instance,
                                const psplit_i_automaton *automaton,
                                const psplit_i_solver_request *request, const chains_order *order,
                                bool *out_low_won, psplit_i_assignment *assignment) {
  psplit_code code = PSPLIT_OK;
  psplit_i_budget budgets[N_CHAINS];
  if (out_low_won) *out_low_won = false;
  chain *chains = calloc(N_CHAINS, sizeof *chains);
  if (!chains) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < N_CHAINS; i++) {
    chains[i].first = order->first;
    chains[i].last = order->last;
    chains[i].automaton = automaton;
    chains[i].budget = &budgets[i];
    chains[i].energy.of_sixths = true;
    chains[i].high = order->set == HIGH;
    chains[i].power = POWERS[order->set][i];
    chains[i].energy.n_squares = chains[i].power.n_squares;
    PSPLIT_TRY(chain_init(&chains[i], instance, request, assignment,
                          (request->options->seed + order->salt) * N_CHAINS + i));
  }
  boundary_chains all = {chains, order->n_steps};
  if (chains[0].n_inside > 0) psplit_i_anneal_chains(request, budgets, run_one, &all);
  for (uint32_t i = 0; i < N_CHAINS; i++) {
    if (chains[i].energy.best < assignment->value) {
      if (out_low_won) *out_low_won = order->set == LOW && i < N_LOW;
      assignment->value = chains[i].energy.best;
      memcpy(assignment->stage, chains[i].best_stage, instance->n * sizeof *assignment->stage);
    }
  }
out:
  for (uint32_t i = 0; i < N_CHAINS; i++) psplit_i_arena_fini(&chains[i].arena);
  free(chains);
  return code;
}

static bool suits(const psplit_i_instance *instance, const psplit_i_automaton *automaton) {
  return psplit_i_takes(PSPLIT_I_RULE_BOUNDARIES, automaton->features) && instance->n > 0 &&
         (uint64_t)instance->n_nets * instance->n_stages <= MAX_CELLS;
}

psplit_code psplit_i_anneal_boundaries(const psplit_i_instance *instance,
                                       const psplit_i_automaton *automaton,
                                       const psplit_i_solver_request *request,
                                       psplit_i_boundary_run run, bool *out_low_won,
                                       psplit_i_assignment *assignment) {
  if (out_low_won) *out_low_won = false;
  if (!suits(instance, automaton)) return PSPLIT_LIMIT;
  const chains_order order = {.set = run.high ? HIGH : LOW,
                              .salt = run.salt,
                              .n_steps = run.n_steps,
                              .last = instance->n_stages - 1};
  return anneal_among(instance, automaton, request, &order, out_low_won, assignment);
}

psplit_code psplit_i_anneal_melted(const psplit_i_instance *instance,
                                   const psplit_i_automaton *automaton,
                                   const psplit_i_solver_request *request,
                                   psplit_i_assignment *assignment) {
  if (!suits(instance, automaton)) return PSPLIT_LIMIT;
  const chains_order order = {.set = MELTED,
                              .n_steps = (uint64_t)STEPS_PER_ITEM * instance->n,
                              .last = instance->n_stages - 1};
  return anneal_among(instance, automaton, request, &order, NULL, assignment);
}

static psplit_code find_slowest(const psplit_i_instance *instance,
                                const psplit_i_solver_request *request,
                                const psplit_i_assignment *assignment, uint32_t *out_stage) {
  psplit_i_placement b;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  const psplit_code code = place(instance, request, assignment, &arena, &b);
  *out_stage = 0;
  for (uint32_t k = 1; k < instance->n_stages && code == PSPLIT_OK; k++)
    if (psplit_i_placement_load(&b, k) > psplit_i_placement_load(&b, *out_stage)) *out_stage = k;
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_i_anneal_windows(const psplit_i_instance *instance,
                                    const psplit_i_automaton *automaton,
                                    const psplit_i_solver_request *request,
                                    psplit_i_boundary_run run, psplit_i_assignment *assignment) {
  enum { WIDTH = 3 };
  const uint32_t n_stages = instance->n_stages;
  psplit_code code = PSPLIT_OK;
  if (!suits(instance, automaton) || n_stages < 2 * WIDTH) return PSPLIT_OK;
  uint32_t last = PSPLIT_NONE; /* the window that brought nothing last */
  for (uint32_t idle = 0, k = 1; idle < WIDTH && !psplit_i_expired(request->budget); k++) {
    const int64_t before = assignment->value;
    uint32_t slowest;
    PSPLIT_TRY(find_slowest(instance, request, assignment, &slowest));
    const uint32_t after = slowest > idle ? slowest - idle : 0;
    const uint32_t first = after < n_stages - WIDTH ? after : n_stages - WIDTH;
    if (first == last) { /* at an end of the row there are fewer windows */
      idle++;
      continue;
    }
    const chains_order order = {.set = run.high ? HIGH : LOW,
                                .salt = psplit_i_splitmix64(run.salt, k),
                                .n_steps = run.n_steps,
                                .first = first,
                                .last = first + WIDTH - 1};
    PSPLIT_TRY(anneal_among(instance, automaton, request, &order, NULL, assignment));
    idle = assignment->value < before ? 0 : idle + 1;
    last = idle ? first : PSPLIT_NONE;
  }
out:
  return code;
}
