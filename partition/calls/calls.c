#include "calls.h"

#include <string.h>

#include "automaton.h"
#include "blocks.h"
#include "latency_chain.h"
#include "moves.h"

enum {
  MOST_IDLE = 4, /* rounds that bring nothing */
  STARTS_SHARE = 4,
  BOUND_SHARE = 2,
  MOST_TRIED = 1 << 17 /* placements of a small problem, before anything else */
};

typedef struct placement {
  const psplit_i_solver_request *request;
  psplit_i_calls_split split;
  psplit_i_arena arena;
  psplit_i_calls calls;
  psplit_i_calls_closure closure;
  psplit_i_calls_scratch scratch;
  uint32_t *trial; /* [n] */
  psplit_i_calls_placed best;
  bool none; /* no placement is allowed */
} placement;

static psplit_code init(placement *p) {
  const uint32_t n = p->request->problem->n_nodes;
  psplit_code code;
  psplit_i_arena_init(&p->arena, 0);
  p->best.value = PSPLIT_I_INF;
  PSPLIT_TRY(psplit_i_calls_init(&p->calls, p->request->problem, true, p->request->diag));
  PSPLIT_TRY(psplit_i_calls_closure_init(&p->closure, &p->calls, &p->arena));
  PSPLIT_TRY(psplit_i_calls_scratch_init(&p->scratch, &p->calls, &p->arena));
  p->best.device = PSPLIT_NEW(&p->arena, uint32_t, n);
  p->trial = PSPLIT_NEW(&p->arena, uint32_t, n);
  PSPLIT_TRY(p->best.device && p->trial ? PSPLIT_OK : PSPLIT_NOMEM);
out:
  return code;
}

static void fini(placement *p) {
  psplit_i_calls_fini(&p->calls);
  psplit_i_arena_fini(&p->arena);
}

/* Takes the trial, if it is better; whether it is. */
static bool take_trial(placement *p) {
  int64_t busy;
  const int64_t value = psplit_i_calls_latency(&p->calls, &p->scratch, p->trial, &busy);
  if (value >= p->best.value) return false;
  p->best.value = value;
  memcpy(p->best.device, p->trial, p->calls.n * sizeof *p->trial);
  return true;
}

static void try_all_on(placement *p, uint32_t device) {
  for (uint32_t v = 0; v < p->calls.n; v++) p->trial[v] = device;
  take_trial(p);
}

/* The number of accelerator k of an entry; behind the accelerators: a CPU. */
static uint32_t device_of(const psplit_i_calls *c, uint32_t entry, uint32_t k) {
  uint32_t a = 0;
  while (a < c->n_accelerators && (c->entry[a] != entry || k-- > 0)) a++;
  return a;
}

/* The contiguous split that another objective likes best, with CPUs or without. */
static psplit_code try_split(placement *p, psplit_objective objective, bool with_cpus) {
  const psplit_i_solver_request *request = p->request;
  psplit_problem problem = *request->problem;
  psplit_partition_options options = *request->options;
  const psplit_i_calls *c = &p->calls;
  const uint32_t n_devices = problem.n_devices;
  psplit_device *devices = PSPLIT_NEW(&p->arena, psplit_device, n_devices);
  uint32_t *used = PSPLIT_NEW(&p->arena, uint32_t, n_devices);
  uint32_t *entry = PSPLIT_NEW(&p->arena, uint32_t, psplit_problem_n_stages(&problem));
  if (!devices || !used || !entry) return PSPLIT_NOMEM;
  memcpy(devices, problem.devices, n_devices * sizeof *devices);
  for (uint32_t d = 0; d < n_devices && !with_cpus; d++)
    if (devices[d].free_comm) devices[d].count = 0;
  problem.devices = devices;
  problem.any_device_order = true;
  options.objective = objective;
  options.time_limit_s /= STARTS_SHARE;
  const uint32_t n_stages = psplit_problem_n_stages(&problem);
  const psplit_code code = p->split(&problem, &options, p->trial, entry);
  psplit_i_spend(request->budget, psplit_i_budget_left(request->budget) / (2 * STARTS_SHARE));
  if (code != PSPLIT_OK) return code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED ? code : PSPLIT_OK;
  for (uint32_t s = 0; s < n_stages; s++) {
    bool holds = false;
    for (uint32_t v = 0; v < c->n && !holds; v++) holds = p->trial[v] == s;
    entry[s] = device_of(c, entry[s], holds ? used[entry[s]]++ : 0);
  }
  for (uint32_t v = 0; v < c->n; v++) p->trial[v] = entry[p->trial[v]];
  take_trial(p);
  return PSPLIT_OK;
}

static psplit_code start(placement *p) {
  const psplit_i_calls *c = &p->calls;
  psplit_code code = PSPLIT_OK;
  for (uint32_t a = 0; a < c->n_accelerators + c->has_cpus; a++)
    if (a == 0 || c->type[a] != c->type[a - 1]) try_all_on(p, a);
  if (c->n_accelerators > 0) {
    PSPLIT_TRY(try_split(p, PSPLIT_LATENCY, true));
    PSPLIT_TRY(try_split(p, PSPLIT_LATENCY, false));
    PSPLIT_TRY(try_split(p, PSPLIT_THROUGHPUT, false));
  }
out:
  return code;
}

/* Groups from `g` on, on each device: of accelerators that are alike the first ones are used, as it
 * is the same which. used[n_devices]: groups on each. False: the budget is spent. */
static bool try_from(placement *p, uint32_t g, uint32_t *used, psplit_i_result *result) {
  const psplit_i_calls *c = &p->calls;
  if (g == c->n_groups) {
    if (!psplit_i_spend(p->request->budget, psplit_i_calls_latency_ops(c))) return false;
    if (take_trial(p)) result->solver = PSPLIT_I_SOLVER_BRANCH_AND_BOUND;
    return true;
  }
  for (uint32_t a = 0; a < c->n_accelerators + c->has_cpus; a++) {
    if (a > 0 && a < c->n_accelerators && c->entry[a] == c->entry[a - 1] && !used[a - 1]) continue;
    for (uint32_t k = c->member_off[g]; k < c->member_off[g + 1]; k++) p->trial[c->member[k]] = a;
    used[a]++;
    const bool more = try_from(p, g + 1, used, result);
    used[a]--;
    if (!more) return false;
  }
  return true;
}

/* About how many placements there are of which none is another one's with accelerators renamed. */
static double n_distinct(const psplit_i_calls *c) {
  double n = 1;
  uint32_t n_alike = 0;
  for (uint32_t g = 0; g < c->n_groups && n < 1e18; g++) n *= c->n_accelerators + c->has_cpus;
  for (uint32_t a = 0; a < c->n_accelerators; a++) {
    n_alike = a > 0 && c->entry[a] == c->entry[a - 1] ? n_alike + 1 : 1;
    n /= n_alike;
  }
  return n;
}

/* All placements, which proves the best, if there are about so many at most. Errors: NOMEM. */
static psplit_code try_all(placement *p, double most, psplit_i_result *result) {
  const psplit_i_calls *c = &p->calls;
  if (n_distinct(c) > most) return PSPLIT_OK;
  uint32_t *used = PSPLIT_NEW(&p->arena, uint32_t, c->n_accelerators + 1);
  if (!used) return PSPLIT_NOMEM;
  if (!try_from(p, 0, used, result)) return PSPLIT_OK;
  if (p->best.value < PSPLIT_I_INF)
    psplit_i_result_raise(result, p->best.value, PSPLIT_I_SOLVER_BRANCH_AND_BOUND);
  else
    p->none = true;
  return PSPLIT_OK;
}

/* Of more groups, where nothing else has proved the best and there is the time. Errors: NOMEM. */
static psplit_code try_at_last(placement *p, psplit_i_result *result) {
  const double left = (double)psplit_i_budget_left(p->request->budget);
  if (p->best.value <= result->bound) return PSPLIT_OK;
  return try_all(p, left / 2 / (double)psplit_i_calls_latency_ops(&p->calls), result);
}

/* Nodes kept together on CPUs need not wait for each other there: the bound is of the problem in
 * which nothing is kept together. Errors: NOMEM. */
static psplit_code raise_bound(const placement *p, psplit_i_result *result) {
  const psplit_i_solver_request *request = p->request;
  psplit_problem apart = *request->problem;
  psplit_partition_options options = *request->options;
  psplit_i_instance instance = {0};
  psplit_i_automaton automaton = {0};
  psplit_diag ignored = {0};
  int64_t bound = 0;
  psplit_device *devices = PSPLIT_NEW(request->arena, psplit_device, apart.n_devices);
  if (!devices) return PSPLIT_NOMEM;
  memcpy(devices, apart.devices, apart.n_devices * sizeof *devices);
  uint32_t pool = PSPLIT_NONE;
  for (uint32_t d = 0; d < apart.n_devices; d++) {
    if (!devices[d].free_comm || devices[d].count == 0) continue;
    devices[d].count = pool == PSPLIT_NONE; /* of CPUs the kind counts, not how many */
    if (pool == PSPLIT_NONE) pool = d;
  }
  apart.devices = devices;
  apart.any_device_order = true;
  apart.together = NULL;
  apart.net_flags = NULL;
  options.objective = PSPLIT_LATENCY;
  psplit_code code = psplit_i_instance_init(&instance, &apart, NULL, &ignored);
  if (code == PSPLIT_OK) code = psplit_i_automaton_init(&automaton, &instance, &options, &ignored);
  if (code == PSPLIT_OK) {
    code = psplit_i_latency_chain_bound(&instance, &automaton, pool, request->budget, &bound);
    psplit_i_result_raise(result, bound, PSPLIT_I_BOUND_LATENCY_CHAIN);
  } else if (code != PSPLIT_NOMEM) {
    code = PSPLIT_OK; /* too many kinds of devices for it */
  }
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  return code;
}

/* The longest path of least times. */
static void raise_by_path(const placement *p, psplit_i_result *result) {
  const psplit_i_calls *c = &p->calls;
  int64_t longest = 0, *ready = p->scratch.ready;
  memset(ready, 0, c->n * sizeof *ready);
  for (uint32_t i = 0; i < c->n; i++) {
    const uint32_t v = c->order[i];
    int64_t least = PSPLIT_I_INF;
    for (uint32_t t = 0; t < c->n_types; t++)
      if (c->time[(size_t)t * c->n + v] < least) least = c->time[(size_t)t * c->n + v];
    const int64_t end = ready[v] + least;
    if (end > longest) longest = end;
    for (uint32_t k = c->succ_off[v]; k < c->succ_off[v + 1]; k++)
      if (end > ready[c->succ[k]]) ready[c->succ[k]] = end;
  }
  if (longest < PSPLIT_I_INF) psplit_i_result_raise(result, longest, PSPLIT_I_BOUND_CRITICAL_PATH);
}

/* Blocks in a row, below the best value, which falls where they show the way. Errors: NOMEM. */
static psplit_code raise_by_blocks(placement *p, psplit_i_result *result) {
  int64_t bound = result->bound;
  if (bound >= p->best.value) return PSPLIT_OK;
  psplit_i_budget share = psplit_i_budget_share(p->request->budget, BOUND_SHARE);
  const int64_t before = p->best.value;
  const psplit_code code =
    psplit_i_calls_blocks(&p->calls, &p->closure, NULL, &share, &bound, &p->best);
  if (p->best.value < before) result->solver = PSPLIT_I_SOLVER_BLOCKS;
  psplit_i_spend(p->request->budget, share.spent);
  psplit_i_result_raise(result, bound, PSPLIT_I_SOLVER_BLOCKS);
  return code;
}

/* Stages by the places of their devices in the list, CPUs all in the first one's. */
static void give(const placement *p, psplit_i_result *result) {
  const psplit_problem *problem = p->request->problem;
  const uint32_t n_accelerators = p->calls.n_accelerators;
  uint32_t s = 0, a = 0;
  bool have_cpus = false;
  for (uint32_t d = 0; d < problem->n_devices; d++)
    for (uint32_t k = 0; k < problem->devices[d].count; k++, s++) {
      const bool cpu = problem->devices[d].free_comm;
      result->device[s] = d;
      result->replicas[s] = 1;
      if (cpu && have_cpus) continue;
      have_cpus |= cpu;
      const uint32_t here = cpu ? n_accelerators : a++;
      for (uint32_t v = 0; v < problem->n_nodes; v++)
        if (p->best.device[v] == here) result->stage[v] = s;
    }
}

psplit_code psplit_i_calls_place(const psplit_i_solver_request *request, psplit_i_calls_split split,
                                 psplit_i_result *out_result) {
  placement p = {.request = request, .split = split};
  psplit_code code;
  out_result->bound = 0;
  out_result->bound_by = PSPLIT_I_BOUND_CRITICAL_PATH;
  out_result->unproved =
    "calls are placed by search, and bounds see chains and blocks in a row alone";
  const bool all = psplit_i_solver_asked(request->options->solver) != PSPLIT_I_SOLVER_ANNEAL;
  PSPLIT_TRY(init(&p));
  PSPLIT_TRY(start(&p));
  raise_by_path(&p, out_result);
  PSPLIT_TRY(raise_bound(&p, out_result));
  out_result->solver = PSPLIT_I_SOLVER_ANNEAL;
  if (all) PSPLIT_TRY(try_all(&p, MOST_TRIED, out_result));
  if (p.best.value < PSPLIT_I_INF) PSPLIT_TRY(raise_by_blocks(&p, out_result));
  if (p.best.value >= PSPLIT_I_INF) {
    code =
      p.none
        ? psplit_i_fail(request->diag, PSPLIT_INFEASIBLE,
                        "no placement satisfies memory limits and devices")
        : psplit_i_fail_about(
            request->diag, PSPLIT_INFEASIBLE, PSPLIT_I_HELPS(TIME_LIMIT),
            "no placement was found that memory and devices allow (infeasibility was not proved)");
    goto out;
  }
  const int64_t before = p.best.value;
  PSPLIT_TRY(psplit_i_calls_anneal(request, &p.calls, &p.closure,
                                   psplit_i_calls_latency_ops(&p.calls), MOST_IDLE,
                                   out_result->bound, &p.best));
  if (p.best.value < before) {
    out_result->solver = PSPLIT_I_SOLVER_ANNEAL;
    PSPLIT_TRY(raise_by_blocks(&p, out_result));
  }
  if (all) PSPLIT_TRY(try_at_last(&p, out_result));
  give(&p, out_result);
  out_result->value = p.best.value;
out:
  fini(&p);
  return code == PSPLIT_NOMEM ? psplit_i_nomem(request->diag) : code;
}
