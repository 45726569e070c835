/* psplit_partition_solve: checks options, picks the solver, checks its result, reports. */
#include <inttypes.h>
#include <string.h>

#include "activity.h"
#include "baselines.h"
#include "budget.h"
#include "calls.h"
#include "contiguous.h"
#include "device_merge.h"
#include "directions.h"
#include "instance.h"
#include "methods.h"
#include "placing.h"
#include "problem.h"
#include "result.h"
#include "solve.h"
#include "unknown.h"

static psplit_code unknown_solver(const char *name, psplit_diag *diag) {
  const char *names[PSPLIT_I_N_METHODS];
  psplit_i_text known = {0};
  size_t n_all;
  uint32_t n = 0;
  const psplit_method *methods = psplit_partition_methods(&n_all);
  for (size_t i = 0; i < n_all; i++)
    if (methods[i].kind & PSPLIT_METHOD_OPTION) names[n++] = methods[i].name;
  psplit_i_add_names(&known, "there are", name, names, n);
  const psplit_code code = known.failed
                             ? psplit_i_nomem(diag)
                             : psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(SOLVER),
                                                   "no solver \"%s\"%s", name, known.bytes);
  psplit_i_text_fini(&known);
  return code;
}

/* Contiguous throughput, one stage a device. */
static bool is_plain(const psplit_partition_options *o) {
  return o->chunks == 1 && !o->noncontiguous && o->objective == PSPLIT_THROUGHPUT;
}

static psplit_code check_options(const psplit_partition_options *o, psplit_diag *diag) {
  if (psplit_i_solver_asked(o->solver) == PSPLIT_I_N_METHODS)
    return unknown_solver(o->solver ? o->solver : "", diag);
  const psplit_i_method asked = psplit_i_solver_asked(o->solver);
  if (!o->proposer && (asked == PSPLIT_I_SOLVER_DRLPP || asked == PSPLIT_I_SOLVER_DRLPP_SLICE))
    return psplit_i_fail(diag, PSPLIT_USAGE, "solver %s needs a proposer of splits", o->solver);
  if (o->proposer && o->proposer->n_attempts == 0)
    return psplit_i_fail(diag, PSPLIT_USAGE, "the number of proposals must be at least 1, not 0");
  if (o->chunks == 0 || o->chunks > 1024 || o->max_replicas == 0 || o->micro_batches == 0 ||
      !(o->gap_frac >= 0) || !(o->sync_bytes_per_s >= 0) || o->time_limit_s != o->time_limit_s)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "chunks, replicas and micro-batches must be at least 1, the gap and "
                         "bandwidths at least 0");
  if (psplit_i_is_baseline(asked) && !is_plain(o))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "solver %s only makes contiguous stages for throughput, one per device",
                         o->solver);
  if (o->n_threads > 1024)
    return psplit_i_fail(diag, PSPLIT_USAGE, "%" PRIu32 " threads; at most 1024", o->n_threads);
  return PSPLIT_OK;
}

/* Each non-empty stage needs a counting node of its own class. */
static psplit_code check_enough_nodes(const psplit_problem *p, bool unordered, psplit_diag *diag) {
  psplit_i_instance instance;
  const psplit_code code = unordered ? psplit_i_instance_init_unordered(&instance, p, NULL, diag)
                                     : psplit_i_instance_init(&instance, p, NULL, diag);
  if (code != PSPLIT_OK) return code;
  const uint32_t n = instance.n_counted_clusters, n_stages = instance.n_stages;
  psplit_i_instance_fini(&instance);
  if (n >= n_stages) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                       "%" PRIu32 " stages, but only %" PRIu32
                       " group%s of nodes can be distinguished; use at most %" PRIu32,
                       n_stages, n, n == 1 ? "" : "s", n ? n : 1);
}

/* Stage numbers without gaps, where nothing depends on them. */
static void close_gaps(const psplit_i_solver_request *request, psplit_i_result *result,
                       uint32_t *number) {
  const psplit_problem *p = request->problem;
  const uint32_t n_stages = psplit_problem_n_stages(p);
  uint32_t n_types_used = 0;
  for (uint32_t d = 0; d < p->n_devices; d++) n_types_used += p->devices[d].count > 0;
  if (!psplit_i_takes(PSPLIT_I_RULE_CLOSE_RANKS, psplit_i_features_of(p, request->options))) return;
  if (n_types_used > 1 && !p->any_device_order) return;
  for (uint32_t s = 0; s < n_stages; s++) number[s] = PSPLIT_NONE;
  for (uint32_t v = 0; v < p->n_nodes; v++) number[result->stage[v]] = 0;
  uint32_t n = 0;
  for (uint32_t s = 0; s < n_stages; s++) {
    if (number[s] == PSPLIT_NONE) continue;
    number[s] = n;
    result->device[n] = result->device[s];
    result->replicas[n++] = result->replicas[s];
  }
  /* Devices that stay empty: whatever entry has some left. */
  for (uint32_t s = n; s < n_stages; s++) result->replicas[s] = 1;
  for (uint32_t v = 0; v < p->n_nodes; v++) result->stage[v] = number[result->stage[v]];
  for (uint32_t d = 0, s = n; d < p->n_devices && s < n_stages; d++) {
    uint32_t used = 0;
    for (uint32_t k = 0; k < n; k++) used += result->device[k] == d ? result->replicas[k] : 0;
    for (; used < p->devices[d].count && s < n_stages; used++) result->device[s++] = d;
  }
}

/* Whether two pairs of devices have different links. */
static bool links_differ(const psplit_problem *p) {
  uint32_t first = PSPLIT_NONE;
  for (uint32_t i = 0; p->n_link_classes && i < p->n_devices; i++)
    for (uint32_t j = 0; j < p->n_devices; j++) {
      if (!p->devices[i].count || !p->devices[j].count || (i == j && p->devices[i].count == 1))
        continue;
      const uint32_t c = p->device_link[(size_t)i * p->n_devices + j];
      if (first == PSPLIT_NONE) first = c;
      if (c != first) return true;
    }
  return false;
}

/* Whether the order of the devices can matter, and whose it is. */
static const char *device_order(const psplit_problem *p, const psplit_partition_options *o) {
  if (p->next_hop || links_differ(p)) return "given";
  bool differ = false;
  uint32_t first = p->n_devices;
  for (uint32_t d = 0; d < p->n_devices; d++) {
    if (!p->devices[d].count) continue;
    if (first == p->n_devices) first = d;
    differ |= !psplit_i_entries_alike(&p->devices[first], &p->devices[d]);
  }
  bool pinned = false;
  for (uint32_t v = 0; p->pin && v < p->n_nodes; v++) pinned |= p->pin[v] != PSPLIT_NONE;
  /* Where any node may stand anywhere, stages have no order but for what they stash. */
  if (!differ || (o->noncontiguous && !p->stash_1f1b && !pinned)) return "alike";
  return p->any_device_order ? "chosen" : "given";
}

psplit_code psplit_i_result_prove(const psplit_i_result *result, psplit_solution *io_solution,
                                  psplit_diag *diag) {
  const int64_t value = io_solution->objective_ns;
  if (result->bound > value)
    return psplit_i_fail(diag, PSPLIT_INTERNAL,
                         "the bound %" PRId64 " (%s) is above the value %" PRId64
                         " of a split (%s); please report the problem and the options",
                         result->bound, psplit_i_method_name(result->bound_by), value,
                         psplit_i_method_name(result->solver));
  io_solution->lower_bound_ns = result->bound;
  io_solution->gap_frac = value > 0 ? ((double)value - (double)result->bound) / (double)value : 0;
  io_solution->proved_optimal = result->bound == value;
  io_solution->solver = psplit_i_method_name(result->solver);
  io_solution->bound = psplit_i_method_name(result->bound_by);
  io_solution->unproved = io_solution->proved_optimal ? NULL : result->unproved;
  return PSPLIT_OK;
}

/* A split of another problem or by another objective. */
static psplit_code split_bounded(const psplit_problem *problem,
                                 const psplit_partition_options *options, psplit_diag *diag,
                                 uint32_t *out_stage, uint32_t *out_entry, int64_t *out_bound) {
  psplit_solution *split = NULL;
  const psplit_code code = psplit_partition_solve(problem, options, diag, &split);
  if (code != PSPLIT_OK) return code;
  memcpy(out_stage, split->stage, problem->n_nodes * sizeof *out_stage);
  for (uint32_t s = 0; s < split->n_stages; s++) out_entry[s] = split->stages[s].device;
  *out_bound = split->lower_bound_ns;
  psplit_solution_destroy(split);
  return PSPLIT_OK;
}

/* Splits from which the placement of calls begins; that there is none says nothing of it. */
static psplit_code split_stages(const psplit_problem *problem,
                                const psplit_partition_options *options, uint32_t *out_stage,
                                uint32_t *out_entry) {
  psplit_diag ignored = {0};
  int64_t bound;
  return split_bounded(problem, options, &ignored, out_stage, out_entry, &bound);
}

/* The result as a solution, by the checker and its own account of the bound. Errors: INTERNAL. */
static psplit_code check_result(const psplit_problem *problem,
                                const psplit_partition_options *options,
                                const psplit_i_result *result, psplit_diag *diag,
                                psplit_solution **out_solution) {
  psplit_solution *solution = NULL;
  psplit_code code = psplit_partition_check(problem, options, result->stage, result->chunk,
                                            result->device, result->replicas, diag, &solution);
  if (code == PSPLIT_MISMATCH) {
    psplit_i_diag_context(diag, "solver %s: its own check fails",
                          psplit_i_method_name(result->solver));
    diag->code = code = PSPLIT_INTERNAL;
  }
  if (code != PSPLIT_OK) return code;
  code = psplit_i_result_prove(result, solution, diag);
  if (code == PSPLIT_OK)
    *out_solution = solution;
  else
    psplit_solution_destroy(solution);
  return code;
}

static psplit_code solve(const psplit_problem *problem, const psplit_partition_options *options,
                         psplit_diag *diag, uint64_t *io_n_ops, psplit_solution **out_solution) {
  psplit_code code;
  const double start = psplit_i_now();
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_problem merged;
  psplit_i_budget budget = psplit_i_budget_of(options);
  const psplit_i_solver_request request = {
    .problem = &merged, .options = options, .budget = &budget, .arena = &arena, .diag = diag};
  psplit_i_result result;
  psplit_solution *solution = NULL;
  PSPLIT_TRY(check_options(options, diag));
  PSPLIT_TRY(psplit_i_problem_validate(problem, diag));
  PSPLIT_TRY(psplit_i_features_check(psplit_i_features_of(problem, options), diag));
  psplit_i_spend_pass(&budget, problem);
  uint32_t *entry = PSPLIT_NEW(&arena, uint32_t, problem->n_devices);
  PSPLIT_TRY(entry ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_devices_merge(problem, options, &arena, &merged, entry));
  if (options->require_nonempty)
    PSPLIT_TRY(check_enough_nodes(problem, options->noncontiguous, diag));
  PSPLIT_TRY(psplit_i_result_init(&result, &request));
  const bool plain = is_plain(options);
  /* Devices of calls stay as they are listed. */
  const bool calls = options->objective == PSPLIT_CALL_LATENCY;
  psplit_i_solver_request listed = request;
  listed.problem = problem;
  PSPLIT_TRY(calls   ? psplit_i_calls_place(&listed, split_stages, &result)
             : plain ? psplit_i_contiguous(&request, &result)
             : options->objective == PSPLIT_FILL_DRAIN
               ? psplit_i_directions_place(&request, split_bounded, &result)
               : psplit_i_place(&request, &result));
  PSPLIT_TRY(psplit_i_go_on(options->cancel, diag));
  uint32_t *number = PSPLIT_NEW(&arena, uint32_t, psplit_problem_n_stages(problem));
  PSPLIT_TRY(number ? PSPLIT_OK : PSPLIT_NOMEM);
  close_gaps(&request, &result, number);
  if (options->max_replicas == 1 && !calls)
    PSPLIT_TRY(psplit_i_devices_tell_apart(problem, entry, result.stage, &arena, result.device));
  if (plain && result.ties_proved && problem->any_device_order)
    PSPLIT_TRY(psplit_i_devices_first(problem, &merged, entry, result.stage, result.bound, &arena,
                                      result.device));
  PSPLIT_TRY(check_result(problem, options, &result, diag, &solution));
  solution->device_order = device_order(problem, options);
  solution->ties_proved = plain && solution->proved_optimal && result.ties_proved;
  solution->seconds = psplit_i_now() - start;
  if (solution->unproved && psplit_i_solver_asked(options->solver) == PSPLIT_I_SOLVER_EXACT)
    psplit_i_say(options->logger, PSPLIT_WARNING, "solver %s did not prove optimality: %s",
                 options->solver, solution->unproved);
  *out_solution = solution;
out:
  if (code == PSPLIT_NOMEM) code = psplit_i_nomem(diag);
  if (io_n_ops) *io_n_ops = psplit_i_sat_add_u64(*io_n_ops, budget.spent);
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_i_partition_solve(const psplit_problem *problem,
                                     const psplit_partition_options *given, psplit_diag *diag,
                                     uint64_t *io_n_ops, psplit_solution **out_solution) {
  psplit_diag own = {0};
  if (!diag) diag = &own;
  psplit_partition_options options;
  psplit_solution *solution = NULL;
  psplit_partition_options_init(&options);
  psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_partition_options, given, &options, diag);
  if (code == PSPLIT_OK) code = psplit_i_go_on(options.cancel, diag);
  if (code != PSPLIT_OK) return code;
  const psplit_i_budget budget = psplit_i_budget_of(&options);
  const bool has_end = budget.end < 0 && options.time_limit_s >= 0;
  psplit_i_activity_begin(options.activity, PSPLIT_ACTIVITY_WORK, has_end ? budget.most : 0);
  code = solve(problem, &options, diag, io_n_ops, &solution);
  psplit_i_activity_begin(options.activity, PSPLIT_ACTIVITY_NONE, 0);
  /* A search that is cut short may have found nothing, or no proof of what there is. */
  if (psplit_i_cancelled(options.cancel)) {
    psplit_solution_destroy(solution);
    *diag = (psplit_diag){0};
    return psplit_i_interrupted(diag);
  }
  if (code == PSPLIT_OK) *out_solution = solution;
  return code;
}

psplit_code psplit_partition_solve(const psplit_problem *problem,
                                   const psplit_partition_options *given, psplit_diag *diag,
                                   psplit_solution **out_solution) {
  return psplit_i_partition_solve(problem, given, diag, NULL, out_solution);
}
