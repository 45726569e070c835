/* The lossless reductions for callers that want the reduced graph itself.
 *
 * Theorem: the best split of the reduced graph is as good as the best of all. Let L be the
 * bottleneck of some split that meets all demands; a best split costs at most L.
 *   limit rule  (monotonicity) In every split that costs at most L, the clusters that it unites
 *               share a stage: reductions.c counts what a stage with the one and without the other
 *               pays at least, and that is more than L. So no best split is lost.
 *   rule M      (exchange) In any split, moving the cluster to its neighbour's stage raises no
 *               load. So some best split survives. The move may empty a stage, though: where all
 *               stages must be used, the rule is applied only if no split into fewer stages costs
 *               at most L, which holds when the whole work is more than L times one stage less. */
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "budget.h"
#include "device_merge.h"
#include "instance.h"
#include "multilevel.h"
#include "problem.h"
#include "reductions.h"
#include "result.h"
#include "solve.h"

typedef struct reduction {
  psplit_i_solver_request request;
  psplit_i_budget budget;
  psplit_i_arena arena;
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  int64_t limit;
  uint32_t *parent; /* [n_nodes] union-find */
} reduction;

static psplit_code bind_automaton(reduction *r, const psplit_partition_options *options) {
  psplit_i_automaton_fini(&r->automaton);
  return psplit_i_automaton_init(&r->automaton, &r->instance, options, r->request.diag);
}

static psplit_code find_limit(reduction *r) {
  psplit_i_assignment assignment;
  psplit_code code = psplit_i_assignment_init(&assignment, &r->instance, &r->arena);
  if (code == PSPLIT_OK)
    code = psplit_i_multilevel(&r->instance, &r->automaton, &r->request, &assignment);
  if (code != PSPLIT_OK) return psplit_i_nomem(r->request.diag);
  r->limit = assignment.value;
  return PSPLIT_OK;
}

/* Whether every split that costs at most the limit has a counting cluster in each stage. */
static bool uses_all_stages(const reduction *r) {
  int64_t total = 0;
  for (uint32_t i = 0; i < r->instance.n; i++)
    if (r->instance.n_counted[i]) total += r->automaton.min_time[i];
  return r->limit < PSPLIT_I_INF &&
         (r->instance.n_stages == 1 || total / (r->instance.n_stages - 1) > r->limit);
}

static psplit_code reduce(reduction *r) {
  psplit_code code;
  const psplit_problem *problem = r->request.problem;
  psplit_partition_options options = *r->request.options;
  r->parent = psplit_i_arena_array(&r->arena, problem->n_nodes, sizeof *r->parent);
  if (!r->parent) return psplit_i_nomem(r->request.diag);
  for (uint32_t v = 0; v < problem->n_nodes; v++) r->parent[v] = v;
  PSPLIT_TRY(psplit_i_instance_init(&r->instance, problem, NULL, r->request.diag));
  PSPLIT_TRY(bind_automaton(r, &options));
  if (r->limit == INT64_MAX) PSPLIT_TRY(find_limit(r));
  if (options.require_nonempty && uses_all_stages(r)) options.require_nonempty = false;
  /* Each turn makes at least a round, so the budget has to end the turns too. */
  for (uint32_t before = UINT32_MAX;
       r->instance.n < before && !(before < UINT32_MAX && psplit_i_expired(&r->budget));) {
    before = r->instance.n;
    PSPLIT_TRY(bind_automaton(r, &options));
    PSPLIT_TRY(psplit_i_reduce(&r->instance, &r->automaton, r->limit, r->parent, &r->budget,
                               r->request.diag));
  }
out:
  return code;
}

psplit_code psplit_i_partition_reduce(const psplit_problem *problem,
                                      const psplit_partition_options *given, int64_t limit_ns,
                                      psplit_diag *diag, uint64_t *io_n_ops, uint32_t *out_class,
                                      uint32_t *out_n_classes) {
  psplit_diag own = {0};
  if (!diag) diag = &own;
  psplit_partition_options taken;
  const psplit_partition_options *options = &taken;
  psplit_partition_options_init(&taken);
  psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_partition_options, given, &taken, diag);
  if (code != PSPLIT_OK) return code;
  psplit_problem merged;
  reduction r = {.request = {.problem = &merged,
                             .options = options,
                             .budget = &r.budget,
                             .arena = &r.arena,
                             .diag = diag},
                 .budget = psplit_i_budget_of(options),
                 .limit = limit_ns};
  psplit_i_arena_init(&r.arena, 0);
  code = psplit_i_problem_validate(problem, diag);
  if (code == PSPLIT_OK &&
      !psplit_i_takes(PSPLIT_I_RULE_REDUCE, psplit_i_features_of(problem, options)))
    code = psplit_i_fail(
      diag, PSPLIT_UNSUPPORTED,
      "reductions require contiguous throughput, one chunk per device and links between "
      "all stages");
  if (code == PSPLIT_OK) {
    uint32_t *entry = PSPLIT_NEW(&r.arena, uint32_t, problem->n_devices);
    code =
      entry ? psplit_i_devices_merge(problem, options, &r.arena, &merged, entry) : PSPLIT_NOMEM;
    if (code == PSPLIT_NOMEM) code = psplit_i_nomem(diag);
  }
  if (code == PSPLIT_OK) code = reduce(&r);
  if (code == PSPLIT_OK) code = psplit_i_go_on(options->cancel, diag);
  if (code == PSPLIT_OK) {
    memcpy(out_class, r.instance.cluster_of_node, problem->n_nodes * sizeof *out_class);
    *out_n_classes = r.instance.n;
  }
  *io_n_ops = psplit_i_sat_add_u64(*io_n_ops, r.budget.spent);
  psplit_i_automaton_fini(&r.automaton);
  psplit_i_instance_fini(&r.instance);
  psplit_i_arena_fini(&r.arena);
  return code;
}

psplit_code psplit_partition_reduce(const psplit_problem *problem,
                                    const psplit_partition_options *given, int64_t limit_ns,
                                    psplit_diag *diag, uint32_t *out_class,
                                    uint32_t *out_n_classes) {
  uint64_t n_ops = 0;
  return psplit_i_partition_reduce(problem, given, limit_ns, diag, &n_ops, out_class,
                                   out_n_classes);
}
