/* Where few clusters do most of the work, the load of a stage depends on how many of them it holds.
 * Bounds that treat work as divisible miss that, and so does search by small moves. The problem of
 * those clusters alone (bounds/heavy.h) is often small enough for the exact program. */
#include "heavy_nodes.h"
#include "heavy.h"
#include "order_dp.h"

enum {
  MOST_NODES = 1024,   /* of a relaxation */
  FEWER = 3,           /* it keeps no more than one of so many clusters, or says little new */
  ALIKE = 4,           /* one in which others take over all work leaves out one of so many */
  MOST_PAID = 400,     /* nodes of one in which others take over all work */
  SHARE = 4,           /* a relaxation has one of so many parts of what is left of the budget */
  LAST_SHARE = 2,      /* the same of the last one */
  WITHOUT_LIMIT_S = 30 /* time limit of a relaxation where the problem has none */
};

/* The part of the work that is left out: less and less, so that more clusters
 * are kept. */
static const double LIGHT[] = {0.12, 0.08, 0.05, 0.035, 0.025, 0.0175, 0.012, 0.008, 0.005, 0.0025};

/* *out_found: there is a split of the problem. */
static psplit_code solve(const psplit_i_solver_state *a, const psplit_i_heavy *heavy,
                         uint32_t share, psplit_i_arena *arena, psplit_i_result *out_result,
                         bool *out_found) {
  const psplit_i_solver_request *request = a->request;
  psplit_partition_options options = *request->options;
  psplit_diag ignored = {0}; /* that too little time finds no split says nothing */
  psplit_i_budget budget = psplit_i_budget_share(request->budget, share);
  options.solver = "auto";
  options.proposer = NULL;
  options.require_nonempty = false;
  if (options.time_limit_s < 0) options.time_limit_s = WITHOUT_LIMIT_S;
  options.time_limit_s /= share;
  const psplit_i_solver_request relaxed = {.problem = &heavy->problem,
                                           .options = &options,
                                           .budget = &budget,
                                           .arena = arena,
                                           .diag = &ignored,
                                           .relaxed = true,
                                           .enough = a->result->bound + heavy->slack};
  psplit_code code = psplit_i_result_init(out_result, &relaxed);
  if (code == PSPLIT_OK) code = a->solve(&relaxed, out_result);
  psplit_i_spend(request->budget, budget.spent);
  *out_found = code == PSPLIT_OK;
  return code == PSPLIT_NOMEM ? psplit_i_nomem(request->diag) : PSPLIT_OK;
}

/* The clusters by the stages that a split of the heavy ones gives them; light
 * ones come as early as they can, or as late. */
static psplit_code order_of(const psplit_i_instance *in, const psplit_i_heavy *heavy,
                            const uint32_t *stage, bool late, psplit_i_arena *arena,
                            uint32_t **out_order) {
  const uint32_t n = in->n, n_stages = in->n_stages;
  const uint32_t *off = late ? in->succ_off : in->pred_off, *list = late ? in->succ : in->pred;
  uint32_t *at = PSPLIT_NEW(arena, uint32_t, n), *order = PSPLIT_NEW(arena, uint32_t, n);
  uint32_t *first = PSPLIT_NEW(arena, uint32_t, (size_t)n_stages + 1);
  if (!at || !order || !first) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < n; i++) at[i] = late ? n_stages - 1 : 0;
  for (uint32_t k = 0; k < heavy->n_kept; k++) at[heavy->cluster[k]] = stage[k];
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t i = late ? n - 1 - k : k;
    for (uint32_t l = off[i]; l < off[i + 1]; l++)
      if (late ? at[list[l]] < at[i] : at[list[l]] > at[i]) at[i] = at[list[l]];
  }
  for (uint32_t i = 0; i < n; i++) first[at[i] + 1]++;
  for (uint32_t s = 0; s < n_stages; s++) first[s + 1] += first[s];
  for (uint32_t i = 0; i < n; i++) order[first[at[i]]++] = i;
  *out_order = order;
  return PSPLIT_OK;
}

static psplit_code divide(psplit_i_solver_state *a, const uint32_t *order) {
  psplit_i_order_dp dp = {0};
  psplit_code code;
  PSPLIT_TRY(psplit_i_order_dp_init(&dp, &a->instance, &a->automaton));
  PSPLIT_TRY(psplit_i_order_dp_run(&dp, order, NULL, a->best.value, a->request->budget, &a->trial)
               ? PSPLIT_OK
               : PSPLIT_NOMEM);
  if (a->trial.value < PSPLIT_I_INF) psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_HEAVY);
out:
  psplit_i_order_dp_fini(&dp);
  return code;
}

/* What became of a relaxation. */
typedef struct answer {
  bool proved; /* its own value and bound have met */
  bool less;   /* or its value is no more than the bound that is known: it says nothing new */
} answer;

static psplit_code ask(psplit_i_solver_state *a, const psplit_i_heavy *heavy, uint32_t share,
                       psplit_i_arena *arena, answer *out) {
  const int64_t most = a->best.value; /* the instance may hold only what is better than that */
  psplit_i_result result;
  bool found;
  *out = (answer){0};
  psplit_code code = solve(a, heavy, share, arena, &result, &found);
  if (code != PSPLIT_OK || !found) return code;
  const int64_t bound = result.bound - heavy->slack;
  out->less = result.value - heavy->slack <= a->result->bound;
  psplit_i_result_raise(a->result, bound < most ? bound : most, PSPLIT_I_SOLVER_HEAVY);
  out->proved = result.bound >= result.value;
  for (int late = 0; late < 2 && !psplit_i_state_done(a); late++) {
    uint32_t *order;
    PSPLIT_TRY(order_of(&a->instance, heavy, result.stage, late, arena, &order));
    PSPLIT_TRY(divide(a, order));
  }
out:
  return code == PSPLIT_NOMEM ? psplit_i_nomem(a->request->diag) : code;
}

/* *out_n: nodes of the relaxation, if it was worth solving; else 0. `known`:
 * nodes of the last. */
static psplit_code ask_without(psplit_i_solver_state *a, const psplit_i_closure *closure,
                               double light, bool take_over, uint32_t known, uint32_t *out_n,
                               answer *out_answer) {
  const uint32_t most = light > 0 ? MOST_NODES : MOST_PAID;
  const uint32_t n = a->instance.n, part = light > 0 ? n / FEWER : n - n / ALIKE;
  const uint32_t most_kept = part < most ? part : most;
  psplit_i_heavy heavy;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  *out_n = 0;
  psplit_code code = psplit_i_heavy_make(&a->instance, closure, light, take_over, &arena,
                                         a->request->budget, &heavy);
  if (code != PSPLIT_OK) code = psplit_i_nomem(a->request->diag);
  if (code == PSPLIT_OK && heavy.problem.n_nodes <= most && heavy.n_kept <= most_kept) {
    *out_n = heavy.n_kept;
    if (heavy.n_kept > known)
      code = ask(a, &heavy, take_over ? LAST_SHARE : SHARE, &arena, out_answer);
  }
  psplit_i_arena_fini(&arena);
  return code;
}

/* With less and less left out, until one is not proved that might say more; *out_light: of the last
 * that was. `known`: nodes of one that says more than smaller ones. */
static psplit_code ask_with_more(psplit_i_solver_state *a, const psplit_i_closure *closure,
                                 uint32_t known, double *out_light) {
  const size_t n_parts = sizeof LIGHT / sizeof *LIGHT;
  psplit_code code = PSPLIT_OK;
  answer last = {.proved = true};
  *out_light = 0;
  for (size_t k = 0; k < n_parts && (last.proved || last.less) && !psplit_i_state_done(a); k++) {
    uint32_t n;
    PSPLIT_TRY(ask_without(a, closure, LIGHT[k], false, known, &n, &last));
    if (n == 0) break;
    if (n > known && last.proved) *out_light = LIGHT[k];
    if (n > known) known = n;
  }
out:
  return code;
}

/* Relaxations in which others take over what is left out say more, and are
 * harder to solve: where few clusters are left, the one that leaves out no work
 * is the first, else the last that was proved is asked so once more. */
static psplit_code ask_all(psplit_i_solver_state *a, const psplit_i_closure *closure) {
  psplit_code code;
  uint32_t n, ignored;
  double light;
  answer last = {0};
  PSPLIT_TRY(ask_without(a, closure, 0, true, 0, &n, &last));
  PSPLIT_TRY(ask_with_more(a, closure, last.proved ? n : 0, &light));
  if (n == 0 && light > 0 && !psplit_i_state_done(a))
    PSPLIT_TRY(ask_without(a, closure, light, true, 0, &ignored, &last));
out:
  return code;
}

psplit_code psplit_i_heavy_turn(psplit_i_solver_state *a, psplit_i_turn *turn) {
  const int64_t value = a->best.value;
  psplit_i_closure closure;
  if (a->heavy_asked || a->in_turns || a->request->relaxed || a->instance.n > PSPLIT_I_LARGE ||
      !a->instance.all_forward || psplit_i_state_done(a) ||
      !psplit_i_takes(PSPLIT_I_SOLVER_HEAVY, a->automaton.features))
    return PSPLIT_OK;
  a->heavy_asked = true;
  psplit_code code = psplit_i_closure_make(&a->instance, a->request->budget, &closure);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  PSPLIT_TRY(ask_all(a, &closure));
  if (a->best.value < value && !psplit_i_state_done(a))
    PSPLIT_TRY(psplit_i_state_search(a, 8, psplit_i_state_affords(a, PSPLIT_I_SEARCH_WORK, 8, 40),
                                     turn->salt));
out:
  psplit_i_closure_fini(&closure);
  return code;
}
