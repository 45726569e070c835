/* What every part of the portfolio does with an attempt. */
#include "solver_state.h"
#include "assignment.h"
#include "automaton.h"
#include "boundary_annealing.h"
#include "branch_and_bound.h"
#include "budget.h"
#include "exact.h"
#include "instance.h"
#include "label_annealing.h"
#include "local_search.h"
#include "problem.h"
#include "reductions.h"
#include "result.h"
#include "weight_axis.h"

enum {
  ANNEAL_STEPS = 500000,
  BRUTE_ITEMS = 40,
  BRUTE_STEPS = 1000000,
  /* Steps of the exact program that take as long as that, or as this many items added to walks. */
  STEPS_PER_ANNEAL = 3750000,
  ADDED_PER_STEP = 32
};

void psplit_i_attempt_raise(psplit_attempt *a, int64_t bound, const char *name) {
  if (bound <= a->bound) return; /* above the value it is a bug; solve.c says so */
  a->bound = bound;
  a->bound_name = name;
}

bool psplit_i_attempt_done(const psplit_attempt *a) {
  if (a->best.value >= PSPLIT_I_INF) return psplit_i_expired(&a->deadline);
  return a->bound >= a->best.value ||
         (double)(a->best.value - a->bound) <= a->job->options->gap_frac * (double)a->best.value ||
         psplit_i_expired(&a->deadline);
}

void psplit_i_attempt_take(psplit_attempt *a, const psplit_cut *cut, const char *solver) {
  if (!psplit_i_cut_better(cut, &a->best, &a->core)) return;
  if (cut->value < a->best.value) a->solver = solver;
  psplit_i_cut_copy(&a->best, cut, &a->core);
  psplit_i_answer_take(a->answer, &a->core, cut);
}

static psplit_code bind_core(psplit_attempt *a) {
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

psplit_code psplit_i_attempt_reduce(psplit_attempt *a, int64_t limit, bool keep_first,
                                    uint32_t *parent) {
  const uint32_t before = a->core.n;
  const bool have = a->best.value < PSPLIT_I_INF;
  psplit_code code = psplit_i_kernel_carrying(&a->core, &a->machine, limit, keep_first, parent,
                                              have ? a->answer->stage : NULL, a->job->diag);
  if (code != PSPLIT_OK || a->core.n == before) return code;
  code = bind_core(a);
  if (code == PSPLIT_OK && have)
    psplit_i_answer_give(a->answer, &a->core, &a->machine, &a->best, a->scratch);
  return code;
}

/* Items added to walks when one order is sliced. */
static uint64_t work_of_slice(const psplit_core *core) {
  const uint64_t pins = core->net_off[core->n_nets] + core->n;
  return pins * (core->n / core->n_stages + 1);
}

uint32_t psplit_i_attempt_affords(const psplit_attempt *a, uint64_t work, uint32_t n_rounds,
                                  uint32_t most) {
  const uint64_t one = work_of_slice(&a->core);
  if (work / ADDED_PER_STEP > a->most) work = a->most * ADDED_PER_STEP;
  const uint64_t steps = work / one / 8 / n_rounds;
  return steps < 1 ? 1 : steps < most ? (uint32_t)steps : most;
}

psplit_code psplit_i_attempt_search(psplit_attempt *a, uint32_t n_rounds, uint32_t n_steps,
                                    uint64_t salt) {
  uint64_t n_slices = 0;
  const psplit_search_options options = {
    .seed = a->job->options->seed + salt * 0x9e37,
    .n_threads = a->job->options->n_threads,
    .n_rounds = n_rounds,
    .n_steps = n_steps,
    .target = a->bound,
    .deadline = a->deadline,
    .out_slices = &n_slices,
  };
  psplit_i_cut_copy(&a->trial, &a->best, &a->core);
  const psplit_code code = psplit_i_search(&a->core, &a->machine, &options, &a->trial);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->job->diag);
  a->spent += n_slices * work_of_slice(&a->core) / ADDED_PER_STEP;
  if (a->trial.value < PSPLIT_I_INF) psplit_i_attempt_take(a, &a->trial, "search");
  return PSPLIT_OK;
}

psplit_code psplit_i_attempt_windows(psplit_attempt *a) {
  psplit_i_wamc_fini(&a->wamc);
  a->wamc_limit = a->best.value;
  const psplit_code code =
    psplit_i_wamc(&a->core, &a->machine, a->best.value, a->job->options->n_threads, &a->wamc);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->job->diag);
  psplit_i_attempt_raise(a, a->wamc.bound, "weight-axis min cut");
  return PSPLIT_OK;
}

/* One run of the exact program, with what is the same for all of them filled in. */
static psplit_code ask(psplit_attempt *a, psplit_exact_options options,
                       psplit_verdict *out_verdict) {
  uint64_t steps = 0;
  const uint64_t cap = a->job->options->memory_cap_bytes;
  options.memory_bytes = cap ? cap : UINT64_C(1) << 30;
  options.n_threads = a->job->options->n_threads;
  options.deadline = a->deadline;
  options.out_steps = &steps;
  const psplit_code code =
    psplit_i_exact(&a->core, &a->machine, &a->wamc, &options, &a->trial, out_verdict);
  a->spent += steps;
  if (code != PSPLIT_OK) return psplit_i_nomem(a->job->diag);
  if (*out_verdict == PSPLIT_I_YES) psplit_i_attempt_take(a, &a->trial, "exact");
  return PSPLIT_OK;
}

psplit_code psplit_i_attempt_exact(psplit_attempt *a, int64_t limit, uint64_t budget,
                                   psplit_verdict *out_verdict) {
  psplit_exact_options options = {.limit = limit, .max_steps = budget, .send_once = a->core.p2p};
  psplit_code code = ask(a, options, out_verdict);
  /* Point to point, counting receivers multiplies the labels. Without it NO is just as good, and a
   * YES often holds as it is. */
  if (code == PSPLIT_OK && options.send_once && *out_verdict == PSPLIT_I_YES &&
      a->trial.value > limit) {
    options.send_once = false;
    code = ask(a, options, out_verdict);
  }
  if (code != PSPLIT_OK) return code;
  if (*out_verdict == PSPLIT_I_NO) psplit_i_attempt_raise(a, limit + 1, "exact");
  /* What stages pass on for others is counted only in a whole split. */
  if (*out_verdict == PSPLIT_I_YES && a->trial.value > limit) {
    *out_verdict = PSPLIT_I_UNKNOWN;
    a->undercounted = true;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_attempt_least_comm(psplit_attempt *a, const psplit_first *first,
                                        uint64_t budget, psplit_verdict *out_verdict) {
  return ask(a,
             (psplit_exact_options){
               .limit = a->best.value, .least_comm = true, .first = first, .max_steps = budget},
             out_verdict);
}

psplit_code psplit_i_attempt_anneal(psplit_attempt *a, uint64_t salt) {
  if (a->machine.replicated || psplit_i_attempt_done(a)) return PSPLIT_OK;
  /* As much as the exact program had. */
  uint64_t share = a->budget > STEPS_PER_ANNEAL ? a->budget : STEPS_PER_ANNEAL;
  if (share > a->most) share = a->most;
  a->spent += share;
  psplit_i_cut_copy(&a->trial, &a->best, &a->core);
  const uint64_t n_steps = share * ANNEAL_STEPS / STEPS_PER_ANNEAL + 1;
  psplit_code code = psplit_i_shift(&a->core, &a->machine, a->job, salt, n_steps, &a->trial);
  if (code == PSPLIT_LIMIT)
    code = psplit_i_anneal(&a->core, 1, a->job, a->trial.device, salt, n_steps, a->trial.stage,
                           &a->trial.value);
  if (code == PSPLIT_LIMIT) return PSPLIT_OK;
  if (code != PSPLIT_OK) return code;
  if (a->trial.value >= a->best.value) return PSPLIT_OK;
  psplit_i_cut_evaluate(&a->trial, &a->core, &a->machine, a->scratch);
  psplit_i_attempt_take(a, &a->trial, "anneal");
  return PSPLIT_OK;
}

psplit_code psplit_i_attempt_brute(psplit_attempt *a) {
  bool finished;
  if (a->bound >= a->best.value || a->machine.replicated || a->core.n > BRUTE_ITEMS ||
      psplit_i_attempt_done(a))
    return PSPLIT_OK;
  psplit_i_cut_copy(&a->trial, &a->best, &a->core);
  const psplit_code code = psplit_i_brute(&a->core, 1, a->job, a->trial.device, BRUTE_STEPS,
                                          a->trial.stage, &a->trial.value, &finished);
  if (code == PSPLIT_LIMIT) return PSPLIT_OK;
  if (code != PSPLIT_OK) return code;
  if (a->trial.value < a->best.value) {
    psplit_i_cut_evaluate(&a->trial, &a->core, &a->machine, a->scratch);
    psplit_i_attempt_take(a, &a->trial, "branch and bound");
  }
  if (finished) psplit_i_attempt_raise(a, a->best.value, "branch and bound");
  return PSPLIT_OK;
}

psplit_code psplit_i_attempt_init(psplit_attempt *a) {
  const double seconds = a->job->options->time_limit_s;
  psplit_i_arena_init(&a->arena, 0);
  a->best.value = PSPLIT_I_INF;
  a->deadline = a->job->deadline;
  a->budget = PSPLIT_I_FIRST_STEPS;
  a->most = seconds < 0 ? UINT64_MAX / 2 : (uint64_t)(seconds * 4e6) + 1;
  const psplit_code code = psplit_i_core_init(&a->core, a->job->problem, NULL, a->job->diag);
  return code == PSPLIT_OK ? bind_core(a) : code;
}

void psplit_i_attempt_fini(psplit_attempt *a) {
  psplit_i_wamc_fini(&a->wamc);
  psplit_i_machine_fini(&a->machine);
  psplit_i_core_fini(&a->core);
  psplit_i_arena_fini(&a->arena);
}
