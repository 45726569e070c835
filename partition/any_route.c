/* Runs the exact program, counting what stages pass on, with limits between the bound and the
 * value. */
#include "any_route.h"

#include "device_merge.h"
#include "equal_branches.h"
#include "exact.h"
#include "node_cut.h"
#include "reductions.h"

typedef struct any_route {
  const psplit_problem *problem; /* with devices that are alike as one */
  const psplit_partition_options *options;
  psplit_i_budget budget;
  uint64_t most;     /* operations of all runs together */
  uint32_t n_rounds; /* that the last one got through */
  psplit_i_arena arena;
  psplit_diag *diag;
  uint32_t *stage; /* [n_nodes] of the split within the limit */
} any_route;

enum { MOST_LIMITS = 24, RUNS = 2 /* that the budget does for */ };

/* What is too dear apart within the limit is one cluster, whatever stages pass on besides. */
static psplit_code make_instance(any_route *a, int64_t limit, psplit_i_instance *instance,
                                 psplit_i_automaton *automaton) {
  psplit_code code;
  uint32_t *parent = psplit_i_arena_array(&a->arena, a->problem->n_nodes, sizeof *parent);
  if (!parent) return psplit_i_nomem(a->diag);
  for (uint32_t v = 0; v < a->problem->n_nodes; v++) parent[v] = v;
  PSPLIT_TRY(psplit_i_instance_init(instance, a->problem, NULL, a->diag));
  PSPLIT_TRY(psplit_i_automaton_init(automaton, instance, a->options, a->diag));
  if (!psplit_i_exact_counts_bypasses(instance, automaton)) return PSPLIT_UNSUPPORTED;
  const uint32_t n = instance->n;
  PSPLIT_TRY(psplit_i_reduce(instance, automaton, limit, parent, &a->budget, a->diag));
  if (instance->n == n) return PSPLIT_OK;
  psplit_i_automaton_fini(automaton);
  PSPLIT_TRY(psplit_i_automaton_init(automaton, instance, a->options, a->diag));
out:
  return code;
}

static psplit_code run(any_route *a, int64_t limit, const psplit_i_instance *instance,
                       const psplit_i_automaton *automaton, psplit_i_verdict *out_verdict) {
  psplit_code code;
  psplit_i_weight_axis axis = {0};
  psplit_i_assignment split;
  psplit_i_instance ordered;
  psplit_i_equal_branches equal = {0};
  const uint64_t cap = a->options->memory_cap_bytes;
  PSPLIT_TRY(psplit_i_assignment_init(&split, instance, &a->arena));
  PSPLIT_TRY(psplit_i_weight_axis_make(instance, automaton, limit, a->options->n_threads,
                                       &a->budget, &axis));
  if (axis.bound > limit) {
    *out_verdict = PSPLIT_I_NO;
    goto out;
  }
  const psplit_i_exact_options options = {.limit = limit,
                                          .bypasses = true,
                                          .max_steps = a->most / PSPLIT_I_STEP_OPS / RUNS,
                                          .memory_bytes = cap ? cap : UINT64_C(1) << 30,
                                          .n_threads = a->options->n_threads,
                                          .budget = &a->budget,
                                          .out_rounds = &a->n_rounds};
  PSPLIT_TRY(
    psplit_i_equal_branches_apply(instance, automaton, &a->budget, &a->arena, &equal, &ordered));
  PSPLIT_TRY(psplit_i_exact(&ordered, automaton, &axis, &options, &split, out_verdict));
  if (*out_verdict != PSPLIT_I_YES) goto out;
  for (uint32_t v = 0; v < a->problem->n_nodes; v++)
    a->stage[v] = split.stage[instance->cluster_of_node[v]];
out:
  psplit_i_weight_axis_fini(&axis);
  return code == PSPLIT_NOMEM ? psplit_i_nomem(a->diag) : code;
}

/* UNSUPPORTED: what stages pass on cannot be counted. */
static psplit_code decide(any_route *a, int64_t limit, psplit_i_verdict *out_verdict) {
  psplit_code code;
  psplit_i_instance instance = {0};
  psplit_i_automaton automaton = {0};
  *out_verdict = PSPLIT_I_UNKNOWN;
  PSPLIT_TRY(make_instance(a, limit, &instance, &automaton));
  PSPLIT_TRY(run(a, limit, &instance, &automaton, out_verdict));
out:
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  return code;
}

/* Whether the last run ended far from the first stage: less of a limit would not help. */
static bool is_stuck(const any_route *a) {
  return a->n_rounds < psplit_problem_n_stages(a->problem) / 2;
}

/* With equal devices as one kind, in the arena. */
static psplit_code merge(const psplit_problem *problem, const psplit_partition_options *options,
                         psplit_i_arena *arena, psplit_diag *diag, psplit_problem *out_merged) {
  uint32_t *entry = PSPLIT_NEW(arena, uint32_t, problem->n_devices);
  if (!entry || psplit_i_devices_merge(problem, options, arena, out_merged, entry) != PSPLIT_OK)
    return psplit_i_nomem(diag);
  return PSPLIT_OK;
}

psplit_code psplit_i_bound_any_route_at_once(const psplit_problem *problem,
                                             const psplit_partition_options *options,
                                             int64_t *io_bound_ns, psplit_diag *diag) {
  psplit_code code;
  psplit_problem merged;
  psplit_i_instance instance = {0};
  psplit_i_automaton automaton = {0};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(merge(problem, options, &arena, diag, &merged));
  PSPLIT_TRY(psplit_i_instance_init(&instance, &merged, NULL, diag));
  PSPLIT_TRY(psplit_i_automaton_init(&automaton, &instance, options, diag));
  if (psplit_i_exact_counts_bypasses(&instance, &automaton)) {
    const int64_t bound = psplit_i_total_any_route(&instance, &automaton);
    if (bound > *io_bound_ns) *io_bound_ns = bound;
  }
out:
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_i_bound_any_route(const psplit_problem *problem,
                                     const psplit_partition_options *options,
                                     psplit_i_measure measure, void *with,
                                     psplit_i_optimum_range *io_range, uint64_t *io_n_ops,
                                     psplit_diag *diag) {
  psplit_code code;
  psplit_problem merged;
  any_route a = {
    .problem = &merged, .options = options, .budget = psplit_i_budget_of(options), .diag = diag};
  a.most = psplit_i_budget_left(&a.budget);
  int64_t top = io_range->value_ns; /* some split may be below it, or the program does not know */
  psplit_i_arena_init(&a.arena, 0);
  a.stage = psplit_i_arena_array(&a.arena, problem->n_nodes, sizeof *a.stage);
  if (!a.stage) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(merge(problem, options, &a.arena, diag, &merged));
  for (uint32_t i = 0; i < MOST_LIMITS && io_range->bound_ns < top; i++) {
    /* Just below the value, as long as that goes down; then between. */
    const int64_t below = io_range->bound_ns;
    const int64_t limit = top == io_range->value_ns ? top - 1 : below + (top - 1 - below) / 2;
    psplit_i_verdict verdict;
    if (psplit_i_expired(&a.budget)) break;
    PSPLIT_TRY(decide(&a, limit, &verdict));
    if (verdict == PSPLIT_I_NO) {
      io_range->bound_ns = limit + 1;
      continue;
    }
    top = limit;
    if (verdict == PSPLIT_I_UNKNOWN && is_stuck(&a)) break;
    if (verdict == PSPLIT_I_UNKNOWN) continue;
    int64_t ns;
    PSPLIT_TRY(measure(with, a.stage, diag, &ns));
    if (ns < io_range->value_ns) io_range->value_ns = ns;
    if (io_range->value_ns <= limit) top = io_range->value_ns;
  }
out:
  if (io_n_ops) *io_n_ops = psplit_i_sat_add_u64(*io_n_ops, a.budget.spent);
  psplit_i_arena_fini(&a.arena);
  return code == PSPLIT_UNSUPPORTED ? PSPLIT_OK : code;
}
