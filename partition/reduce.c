/* The lossless reductions for callers that want the reduced graph itself.
 *
 * Why they lose nothing. Let L be the bottleneck of some split that meets all demands; a best split
 * costs at most L.
 *   limit rule  In every split that costs at most L, items that it unites share a stage (kernel.c
 *               counts what a stage with the one and without the other pays at least). So the best
 *               splits of the reduced graph are the best splits.
 *   rule M      Moving an item to its neighbour's stage makes no stage dearer. So some best split
 *               is left. The move may empty a stage, though: where all stages must be used, the
 *               rule holds back unless no split into fewer stages costs at most L, which is so when
 *               the whole work is more than L times one stage less. */
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

typedef struct reduction {
  psplit_job job;
  psplit_arena arena;
  psplit_core core;
  psplit_machine machine;
  int64_t limit;
  uint32_t *parent; /* [n_nodes] union-find */
} reduction;

static psplit_code bind_machine(reduction *r, const psplit_partition_options *options) {
  psplit_i_machine_fini(&r->machine);
  return psplit_i_machine_init(&r->machine, &r->core, options, r->job.diag);
}

static psplit_code find_limit(reduction *r) {
  psplit_cut cut;
  psplit_code code = psplit_i_cut_init(&cut, &r->core, &r->arena);
  if (code == PSPLIT_OK) code = psplit_i_multilevel(&r->core, &r->machine, &r->job, &cut);
  if (code != PSPLIT_OK) return psplit_i_nomem(r->job.diag);
  r->limit = cut.value;
  return PSPLIT_OK;
}

/* Whether every split that costs at most the limit has a counting item in each stage. */
static bool uses_all_stages(const reduction *r) {
  int64_t total = 0;
  for (uint32_t i = 0; i < r->core.n; i++)
    if (r->core.n_counted[i]) total += r->machine.omega[i];
  return r->limit < PSPLIT_I_INF &&
         (r->core.n_stages == 1 || total / (r->core.n_stages - 1) > r->limit);
}

static psplit_code reduce(reduction *r) {
  psplit_code code;
  const psplit_problem *problem = r->job.problem;
  psplit_partition_options options = *r->job.options;
  r->parent = psplit_i_arena_array(&r->arena, problem->n_nodes, sizeof *r->parent);
  if (!r->parent) return psplit_i_nomem(r->job.diag);
  for (uint32_t v = 0; v < problem->n_nodes; v++) r->parent[v] = v;
  PSPLIT_TRY(psplit_i_core_init(&r->core, problem, NULL, r->job.diag));
  PSPLIT_TRY(bind_machine(r, &options));
  if (r->limit == INT64_MAX) PSPLIT_TRY(find_limit(r));
  if (options.require_nonempty && uses_all_stages(r)) options.require_nonempty = false;
  for (uint32_t before = UINT32_MAX; r->core.n < before;) {
    before = r->core.n;
    PSPLIT_TRY(bind_machine(r, &options));
    PSPLIT_TRY(psplit_i_kernel(&r->core, &r->machine, r->limit, r->parent, r->job.diag));
  }
out:
  return code;
}

psplit_code psplit_partition_reduce(const psplit_problem *problem,
                                    const psplit_partition_options *options, int64_t limit_ns,
                                    psplit_diag *diag, uint32_t *out_class,
                                    uint32_t *out_n_classes) {
  psplit_diag own = {0};
  if (!diag) diag = &own;
  if (options->objective != PSPLIT_THROUGHPUT || options->noncontiguous || options->chunks > 1 ||
      problem->next_hop)
    return psplit_i_fail(
      diag, PSPLIT_UNSUPPORTED,
      "reductions go with contiguous throughput, one chunk per device and links between "
      "all stages");
  psplit_problem merged;
  reduction r = {.job = {&merged, options, psplit_i_deadline_in(options), &r.arena, diag},
                 .limit = limit_ns};
  psplit_i_arena_init(&r.arena, 0);
  psplit_code code = psplit_i_problem_validate(problem, diag);
  if (code == PSPLIT_OK) {
    uint32_t *entry = PSPLIT_NEW(&r.arena, uint32_t, problem->n_devices);
    code =
      entry ? psplit_i_devices_merge(problem, options, &r.arena, &merged, entry) : PSPLIT_NOMEM;
    if (code == PSPLIT_NOMEM) code = psplit_i_nomem(diag);
  }
  if (code == PSPLIT_OK) code = reduce(&r);
  if (code == PSPLIT_OK) {
    memcpy(out_class, r.core.item_of_node, problem->n_nodes * sizeof *out_class);
    *out_n_classes = r.core.n;
  }
  psplit_i_machine_fini(&r.machine);
  psplit_i_core_fini(&r.core);
  psplit_i_arena_fini(&r.arena);
  return code;
}
