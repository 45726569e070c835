/* Contiguous throughput: search and bounds in turn until they meet.
 *
 * 1. lossless kernel; 2. a first split by local search over orders; 3. the kernel again, with what
 * that split rules out; 4. the weight-axis bound and its windows; 5. the exact program just below
 * the best split: NO proves it, YES improves it; when it runs out of steps, more search, and the
 * exact program in the middle between bound and value. Budgets are counted in steps, so the answer
 * does not depend on the machine unless the time limit strikes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "partition.h"

enum {
  LARGE = 6000,          /* items above which orders are too long to search whole */
  FIRST_STEPS = 1 << 21, /* of the exact program's first run */
  TIE_STEPS = 1 << 20,   /* what breaking ties may cost */
  FIND_STEPS = 1 << 26,  /* to find any split at all */
  BRUTE_ITEMS = 40,
  BRUTE_STEPS = 1000000,
  SEARCH_WORK = 100000000, /* items added to walks by one call of the search */
  ANNEAL_STEPS = 500000
};

/* Everything about one attempt: with or without the demand that all stages hold something. */
typedef struct attempt {
  const psplit_job *job;
  psplit_arena arena;
  psplit_core core;
  psplit_machine machine;
  psplit_wamc wamc;
  psplit_cut best, trial;
  int64_t *scratch;
  int64_t bound;
  int64_t wamc_limit;    /* value for which the windows were made */
  psplit_answer *answer; /* best split by node: survives a new core */
  uint64_t budget, spent, most;
  const char *solver, *bound_name;
  bool must_find;
  bool undercounted; /* the exact program cannot decide near the best value */
} attempt;

static void raise_bound(attempt *a, int64_t bound, const char *name) {
  assert(bound <= a->best.value);
  if (bound <= a->bound) return;
  a->bound = bound;
  a->bound_name = name;
}

static bool done(const attempt *a) {
  if (a->best.value >= PSPLIT_I_INF) return psplit_i_expired(&a->job->deadline);
  return a->bound >= a->best.value ||
         (double)(a->best.value - a->bound) <= a->job->options->gap_frac * (double)a->best.value ||
         psplit_i_expired(&a->job->deadline);
}

/* A larger bottleneck is never taken; of equal ones, the one that sends less. */
static void take_cut(attempt *a, const psplit_cut *cut, const char *solver) {
  if (!psplit_i_cut_better(cut, &a->best, &a->core)) return;
  if (cut->value < a->best.value) a->solver = solver;
  psplit_i_cut_copy(&a->best, cut, &a->core);
  psplit_i_answer_take(a->answer, &a->core, cut);
}

static psplit_code bind_core(attempt *a) {
  const psplit_job *job = a->job;
  psplit_i_machine_fini(&a->machine);
  const psplit_code code = psplit_i_machine_init(&a->machine, &a->core, job->options, job->diag);
  if (code != PSPLIT_OK) return code;
  a->scratch = PSPLIT_NEW(&a->arena, int64_t, (size_t)a->core.n_stages * 5);
  if (!a->scratch || psplit_i_cut_init(&a->best, &a->core, &a->arena) != PSPLIT_OK ||
      psplit_i_cut_init(&a->trial, &a->core, &a->arena) != PSPLIT_OK)
    return psplit_i_nomem(job->diag);
  return PSPLIT_OK;
}

/* Reduces the core for splits up to `limit`; carries the best split over. */
static psplit_code reduce(attempt *a, int64_t limit, uint32_t *parent) {
  const uint32_t before = a->core.n;
  const bool have = a->best.value < PSPLIT_I_INF;
  psplit_code code = psplit_i_kernel(&a->core, &a->machine, limit, parent, a->job->diag);
  if (code != PSPLIT_OK || a->core.n == before) return code;
  code = bind_core(a);
  if (code == PSPLIT_OK && have)
    psplit_i_answer_give(a->answer, &a->core, &a->machine, &a->best, a->scratch);
  return code;
}

/* Until there is some split, only steps count: even a time limit of 0 gives one. */
static psplit_deadline limit_of(const attempt *a) {
  return a->must_find ? (psplit_deadline){-1} : a->job->deadline;
}

/* Steps per chain and round that `work` items added to walks buy. */
static uint32_t affordable(const attempt *a, uint64_t work, uint32_t n_rounds, uint32_t most) {
  const psplit_core *core = &a->core;
  const uint64_t pins = core->net_off[core->n_nets] + core->n;
  const uint64_t one = pins * (core->n / core->n_stages + 1);
  const uint64_t steps = work / one / 8 / n_rounds;
  return steps < 1 ? 1 : steps < most ? (uint32_t)steps : most;
}

static psplit_code search(attempt *a, uint32_t n_rounds, uint32_t n_steps, uint64_t salt) {
  const psplit_search_options options = {
    .seed = a->job->options->seed + salt * 0x9e37,
    .n_threads = a->job->options->n_threads,
    .n_rounds = n_rounds,
    .n_steps = n_steps,
    .target = a->bound,
    .deadline = limit_of(a),
  };
  psplit_i_cut_copy(&a->trial, &a->best, &a->core);
  const psplit_code code = psplit_i_search(&a->core, &a->machine, &options, &a->trial);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->job->diag);
  if (a->trial.value < PSPLIT_I_INF) take_cut(a, &a->trial, "search");
  return PSPLIT_OK;
}

static psplit_code make_windows(attempt *a) {
  psplit_i_wamc_fini(&a->wamc);
  a->wamc_limit = a->best.value;
  const psplit_code code =
    psplit_i_wamc(&a->core, &a->machine, a->best.value, a->job->options->n_threads, &a->wamc);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->job->diag);
  if (a->wamc.n_buckets) raise_bound(a, a->wamc.bound, "weight-axis min cut");
  return PSPLIT_OK;
}

/* One run of the exact program. */
static psplit_code ask(attempt *a, int64_t limit, bool least_comm, bool send_once, uint64_t budget,
                       psplit_verdict *out_verdict) {
  uint64_t steps = 0;
  const uint64_t cap = a->job->options->memory_cap_bytes;
  const psplit_exact_options options = {
    .limit = limit,
    .least_comm = least_comm,
    .send_once = send_once,
    .max_steps = budget,
    .memory_bytes = cap ? cap : UINT64_C(1) << 30,
    .n_threads = a->job->options->n_threads,
    .deadline = limit_of(a),
    .out_steps = &steps,
  };
  const psplit_code code =
    psplit_i_exact(&a->core, &a->machine, &a->wamc, &options, &a->trial, out_verdict);
  a->spent += steps;
  if (code != PSPLIT_OK) return psplit_i_nomem(a->job->diag);
  if (*out_verdict == PSPLIT_I_NO && !least_comm) raise_bound(a, limit + 1, "exact");
  if (*out_verdict == PSPLIT_I_YES) take_cut(a, &a->trial, "exact");
  return PSPLIT_OK;
}

static psplit_code run_exact(attempt *a, int64_t limit, bool least_comm, uint64_t budget,
                             psplit_verdict *out_verdict) {
  psplit_code code = PSPLIT_OK;
  /* Point to point, counting receivers multiplies the labels. Without it NO is just as good, and a
   * YES often holds as it is. */
  if (a->core.p2p && !least_comm) {
    code = ask(a, limit, false, true, budget, out_verdict);
    if (code != PSPLIT_OK || *out_verdict != PSPLIT_I_YES || a->trial.value <= limit) return code;
  }
  code = ask(a, limit, least_comm, false, budget, out_verdict);
  /* With nets that are not forward, receivers may have been undercounted all the same. */
  if (code == PSPLIT_OK && *out_verdict == PSPLIT_I_YES && a->trial.value > limit) {
    *out_verdict = PSPLIT_I_UNKNOWN;
    a->undercounted = true;
  }
  return code;
}

/* Moves of single items over the cuts: better than orders on wide graphs. */
static psplit_code anneal(attempt *a, uint64_t salt) {
  if (a->machine.replicated || done(a)) return PSPLIT_OK;
  psplit_i_cut_copy(&a->trial, &a->best, &a->core);
  const psplit_code code = psplit_i_anneal(&a->core, 1, a->job, a->trial.device, salt, ANNEAL_STEPS,
                                           a->trial.stage, &a->trial.value);
  if (code == PSPLIT_LIMIT) return PSPLIT_OK;
  if (code != PSPLIT_OK) return code;
  if (a->trial.value >= a->best.value) return PSPLIT_OK;
  psplit_i_cut_evaluate(&a->trial, &a->core, &a->machine, a->scratch);
  take_cut(a, &a->trial, "anneal");
  return PSPLIT_OK;
}

/* Narrows the gap from below: the middle first, then closer to the bound, where less is possible
 * and the program is faster. */
static psplit_code bisect(attempt *a) {
  psplit_code code = PSPLIT_OK;
  for (int64_t part = 2; part <= 16 && !done(a); part *= 2) {
    const int64_t limit = a->bound + (a->best.value - a->bound) / part;
    psplit_verdict verdict;
    if (limit >= a->best.value - 1) break;
    PSPLIT_TRY(run_exact(a, limit, false, a->budget, &verdict));
    if (verdict == PSPLIT_I_YES) break; /* just below the new value may be quick now */
    if (verdict == PSPLIT_I_NO) part = 1;
    if (a->spent > a->most) break;
  }
out:
  return code;
}

static psplit_code improve(attempt *a) {
  psplit_code code = PSPLIT_OK;
  for (uint64_t salt = 1; !done(a) && a->spent < a->most; salt++) {
    psplit_verdict verdict;
    const int64_t before = a->best.value;
    if (a->wamc_limit != a->best.value) PSPLIT_TRY(make_windows(a));
    if (done(a)) break;
    PSPLIT_TRY(run_exact(a, a->best.value - 1, false, a->budget, &verdict));
    if (verdict != PSPLIT_I_UNKNOWN) continue;
    PSPLIT_TRY(anneal(a, salt));
    PSPLIT_TRY(search(a, 8, affordable(a, SEARCH_WORK, 8, 40), salt));
    if (a->best.value < before) continue;
    PSPLIT_TRY(bisect(a));
    if (a->best.value < before) continue;
    if (a->undercounted) break; /* more steps would not help */
    a->budget *= 4;
  }
out:
  return code;
}

/* Of all optimal splits, one that sends least - where that costs little. */
static psplit_code break_ties(attempt *a) {
  psplit_verdict verdict;
  if (a->bound < a->best.value || a->best.value == 0 || psplit_i_expired(&a->job->deadline))
    return PSPLIT_OK;
  if (a->wamc_limit != a->best.value) {
    const psplit_code code = make_windows(a);
    if (code != PSPLIT_OK) return code;
  }
  return run_exact(a, a->best.value, true, TIE_STEPS, &verdict);
}

/* What the exact program leaves open (sends of backward nodes, counted from below there) small
 * problems can still have proved. */
static psplit_code try_brute(attempt *a) {
  bool finished;
  if (a->bound >= a->best.value || a->machine.replicated || a->core.n > BRUTE_ITEMS || done(a))
    return PSPLIT_OK;
  psplit_i_cut_copy(&a->trial, &a->best, &a->core);
  const psplit_code code = psplit_i_brute(&a->core, 1, a->job, a->trial.device, BRUTE_STEPS,
                                          a->trial.stage, &a->trial.value, &finished);
  if (code == PSPLIT_LIMIT) return PSPLIT_OK;
  if (code != PSPLIT_OK) return code;
  if (a->trial.value < a->best.value) {
    psplit_i_cut_evaluate(&a->trial, &a->core, &a->machine, a->scratch);
    take_cut(a, &a->trial, "branch and bound");
  }
  if (finished) raise_bound(a, a->best.value, "branch and bound");
  return PSPLIT_OK;
}

static bool any_memory_limit(const attempt *a) { return a->core.has_memory; }

/* More bytes than all devices have together? */
static bool overflows_memory(const attempt *a) {
  const psplit_core *core = &a->core;
  uint64_t need = 0, have = 0;
  for (uint32_t i = 0; i < core->n; i++) need += core->weight_bytes[i] + core->act_bytes[i];
  for (uint32_t g = 0; g < core->n_groups; g++) need += core->group_bytes[g];
  for (uint32_t t = 0; t < core->n_types; t++) {
    const psplit_device *device = &core->problem->devices[t];
    if (device->count > 0 && device->memory_bytes == 0) return false;
    have = psplit_i_sat_add_u64(have, psplit_i_sat_mul_u64(device->count, device->memory_bytes));
  }
  return need > have;
}

/* No split was found: is there one at all? A short run of the exact program often knows; then a
 * long search, then a long run. */
static psplit_code find_any(attempt *a) {
  const int64_t everything = PSPLIT_I_INF / 2;
  if (a->core.has_memory && overflows_memory(a)) return PSPLIT_INFEASIBLE;
  if (a->job->problem->next_hop) { /* the exact program does not know which stages are reached */
    const psplit_code found = try_brute(a);
    if (found != PSPLIT_OK || a->best.value < PSPLIT_I_INF) return found;
  }
  psplit_code code = PSPLIT_OK;
  psplit_verdict verdict = PSPLIT_I_UNKNOWN;
  a->must_find = true;
  PSPLIT_TRY(run_exact(a, everything, false, FIRST_STEPS, &verdict));
  if (verdict == PSPLIT_I_UNKNOWN && a->best.value >= PSPLIT_I_INF)
    PSPLIT_TRY(search(a, 16, 50, 1));
  if (verdict == PSPLIT_I_UNKNOWN && a->best.value >= PSPLIT_I_INF)
    PSPLIT_TRY(
      run_exact(a, everything, false, a->most > FIND_STEPS ? a->most : FIND_STEPS, &verdict));
  if (a->best.value >= PSPLIT_I_INF)
    code = verdict == PSPLIT_I_NO ? PSPLIT_INFEASIBLE : PSPLIT_UNSUPPORTED;
out:
  a->must_find = false;
  return code;
}

static psplit_code attempt_run(attempt *a, bool use_kernel) {
  const psplit_job *job = a->job;
  const psplit_problem *problem = job->problem;
  psplit_code code;
  psplit_i_arena_init(&a->arena, 0);
  uint32_t *parent = psplit_i_arena_array(&a->arena, problem->n_nodes, sizeof *parent);
  if (!parent) return psplit_i_nomem(job->diag);
  for (uint32_t v = 0; v < problem->n_nodes; v++) parent[v] = v;
  a->best.value = PSPLIT_I_INF;
  a->budget = FIRST_STEPS;
  const double seconds = job->options->time_limit_s;
  a->most = seconds < 0 ? UINT64_MAX / 2 : (uint64_t)(seconds * 4e6) + 1;
  PSPLIT_TRY(psplit_i_core_init(&a->core, problem, NULL, job->diag));
  PSPLIT_TRY(bind_core(a));
  const bool only_slice = strcmp(job->options->solver, "slice") == 0;
  if (use_kernel) PSPLIT_TRY(reduce(a, PSPLIT_I_INF, parent));
  raise_bound(a, psplit_i_simple_bound(&a->core, &a->machine), "total over devices, heaviest node");
  if (a->core.n > LARGE || strcmp(job->options->solver, "multilevel") == 0) {
    PSPLIT_TRY(psplit_i_multilevel(&a->core, &a->machine, job, &a->trial));
    if (a->trial.value < PSPLIT_I_INF) take_cut(a, &a->trial, "multilevel");
  }
  if (a->core.n <= LARGE || a->best.value >= PSPLIT_I_INF)
    PSPLIT_TRY(search(a, 1, only_slice ? 0 : a->core.n > 1000 ? 4 : 12, 0));
  if (a->best.value >= PSPLIT_I_INF) PSPLIT_TRY(find_any(a));
  if (use_kernel) PSPLIT_TRY(reduce(a, a->best.value, parent));
  PSPLIT_TRY(make_windows(a));
  if (!done(a)) {
    int64_t bound = a->bound;
    PSPLIT_TRY(psplit_i_node_bound(&a->core, &a->machine, a->best.value,
                                   a->core.n <= LARGE ? 64 : 8, &job->deadline, &bound));
    raise_bound(a, bound, "node min cut");
  }
  if (a->wamc.n_buckets == 0 && a->core.n > LARGE) goto out; /* no windows: no exact program */
  if (only_slice || strcmp(job->options->solver, "multilevel") == 0) goto out;
  if (strcmp(job->options->solver, "search") == 0) {
    for (uint64_t salt = 1; salt <= 8 && !done(a); salt++)
      PSPLIT_TRY(search(a, 8, affordable(a, SEARCH_WORK, 8, 40), salt));
    goto out;
  }
  if (strcmp(job->options->solver, "anneal") == 0) {
    for (uint64_t salt = 1; salt <= 4 && !done(a); salt++) PSPLIT_TRY(anneal(a, salt));
    goto out;
  }
  PSPLIT_TRY(improve(a));
  PSPLIT_TRY(try_brute(a));
  PSPLIT_TRY(break_ties(a));
out:
  return code;
}

static void attempt_fini(attempt *a) {
  psplit_i_wamc_fini(&a->wamc);
  psplit_i_machine_fini(&a->machine);
  psplit_i_core_fini(&a->core);
  psplit_i_arena_fini(&a->arena);
}

static bool all_stages_used(const psplit_problem *problem, const psplit_answer *answer,
                            uint32_t *mark) {
  const uint32_t n_stages = psplit_problem_n_stages(problem);
  memset(mark, 0, n_stages * sizeof *mark);
  for (uint32_t v = 0; v < problem->n_nodes; v++)
    if (!problem->node_flags || !(problem->node_flags[v] & PSPLIT_NODE_AUXILIARY))
      mark[answer->stage[v]] = 1;
  uint32_t n = 0;
  for (uint32_t s = 0; s < n_stages; s++) n += mark[s];
  return n == n_stages;
}

/* Smallest number of devices of the first type for which local search finds a split. */
static uint32_t devices_that_do(const psplit_job *job) {
  psplit_problem problem = *job->problem;
  problem.next_hop = NULL; /* of other numbers of stages */
  psplit_device devices = problem.devices[0];
  psplit_partition_options options = *job->options;
  psplit_diag ignored = {0};
  options.require_nonempty = false;
  options.time_limit_s = 1;
  uint32_t low = psplit_problem_n_stages(&problem), high = 0;
  problem.devices = &devices;
  problem.n_devices = 1;
  problem.pin = NULL;
  psplit_job inner = {&problem, &options, job->deadline, job->arena, &ignored};
  while (low < 65535 && (high == 0 || high - low > 1)) {
    devices.count = high == 0 ? (low * 2 < 65535 ? low * 2 : 65535) : low + (high - low) / 2;
    attempt a = {.job = &inner};
    psplit_answer answer;
    bool found = false;
    ignored = (psplit_diag){0};
    if (psplit_i_answer_init(&answer, &inner) == PSPLIT_OK) {
      a.answer = &answer;
      psplit_i_arena_init(&a.arena, 0);
      a.best.value = PSPLIT_I_INF;
      found = psplit_i_core_init(&a.core, &problem, NULL, &ignored) == PSPLIT_OK &&
              a.core.n <= LARGE && bind_core(&a) == PSPLIT_OK &&
              search(&a, 2, 20, 1) == PSPLIT_OK && a.best.value < PSPLIT_I_INF;
      attempt_fini(&a);
    }
    if (found)
      high = devices.count;
    else if (high == 0 && devices.count >= 4096)
      return 0;
    else
      low = devices.count;
  }
  return high;
}

static psplit_code explain_infeasible(const psplit_job *job, const attempt *a) {
  const psplit_problem *p = job->problem;
  if (!any_memory_limit(a))
    return psplit_i_fail(job->diag, PSPLIT_INFEASIBLE,
                         "no split satisfies the pins and the devices' order");
  uint64_t most = 0;
  for (uint32_t d = 0; d < p->n_devices; d++)
    if (p->devices[d].count && p->devices[d].memory_bytes > most) most = p->devices[d].memory_bytes;
  for (uint32_t i = 0; i < a->core.n; i++)
    if (a->core.weight_bytes[i] + a->core.act_bytes[i] > most) {
      uint32_t v = 0;
      while (a->core.item_of_node[v] != i) v++;
      char name[32];
      return psplit_i_fail(
        job->diag, PSPLIT_INFEASIBLE,
        "memory: node %s and what must stay with it need %llu bytes, the largest "
        "device has %llu; no number of stages helps",
        psplit_i_node_name(p, v, name),
        (unsigned long long)(a->core.weight_bytes[i] + a->core.act_bytes[i]),
        (unsigned long long)most);
    }
  const uint32_t enough = devices_that_do(job);
  if (enough)
    return psplit_i_fail(job->diag, PSPLIT_INFEASIBLE,
                         "memory: no split into %u stages fits the devices; %u stages would do",
                         psplit_problem_n_stages(p), enough);
  return psplit_i_fail(job->diag, PSPLIT_INFEASIBLE,
                       "memory: no split into %u stages fits the devices",
                       psplit_problem_n_stages(p));
}

static psplit_code run(const psplit_job *job, bool use_kernel, psplit_answer *out_answer) {
  attempt a = {.job = job, .answer = out_answer, .solver = "search", .bound_name = "none"};
  psplit_code code = attempt_run(&a, use_kernel);
  if (code == PSPLIT_INFEASIBLE && job->diag->code == PSPLIT_OK)
    code = explain_infeasible(job, &a);
  else if (code == PSPLIT_UNSUPPORTED && job->diag->code == PSPLIT_OK)
    code = psplit_i_fail(job->diag, PSPLIT_INFEASIBLE,
                         "no split was found that satisfies memory limits and pins (that there is "
                         "none was not proved); allow more time or more stages");
  out_answer->bound = a.bound;
  out_answer->solver = a.solver;
  out_answer->bound_name = a.bound_name;
  attempt_fini(&a);
  return code;
}

psplit_code psplit_i_contiguous(const psplit_job *job, psplit_answer *out_answer) {
  /* Moving an item to a neighbour's stage can make other stages pass more on. */
  const bool use_kernel = !job->problem->next_hop;
  if (!job->options->require_nonempty) return run(job, use_kernel, out_answer);
  /* Empty stages rarely help. Solve without the demand first: where the answer meets it anyway, it
   * is proved for both, and the reductions, which may empty a stage, could be used. */
  psplit_partition_options relaxed = *job->options;
  relaxed.require_nonempty = false;
  const psplit_job easier = {job->problem, &relaxed, job->deadline, job->arena, job->diag};
  psplit_code code = run(&easier, use_kernel, out_answer);
  if (code != PSPLIT_OK) return code;
  uint32_t *mark = PSPLIT_NEW(job->arena, uint32_t, psplit_problem_n_stages(job->problem));
  if (!mark) return psplit_i_nomem(job->diag);
  if (all_stages_used(job->problem, out_answer, mark)) return PSPLIT_OK;
  const int64_t bound = out_answer->bound;
  const char *bound_name = out_answer->bound_name;
  code = run(job, false, out_answer);
  if (code == PSPLIT_OK && bound > out_answer->bound) {
    out_answer->bound = bound;
    out_answer->bound_name = bound_name;
  }
  return code;
}
