/* The set of plans that a bound covers, and a proof by it. Costs are taken as they are, and what
 * options ask for (pins, memory, replicas, segments) is part of the question. Everything else that
 * a bound leaves out has a row here, and is printed wherever bound or proof are. */
#include "proof_scope.h"

#include <string.h>

#include "node_flags.h"

typedef struct question {
  const psplit_planner *planner;
  int64_t bound_ns;
  psplit_i_bound_of of;
} question;

/* Grouped nodes share a stage, though a plan that parts them may be faster. */
static bool of_supernodes(const question *q) {
  const psplit_planner *planner = q->planner;
  uint32_t n_placed = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    n_placed += !(planner->node_flags[n] & PSPLIT_I_NODE_FREE);
  return planner->grouping.n_groups < n_placed;
}

static bool without_copies(const question *q) { return q->of == PSPLIT_I_BOUND_OF_SOLVER; }

/* A chain may pay though some of its nodes would be received for less. */
static bool of_lone_copies(const question *q) { return q->of == PSPLIT_I_BOUND_OF_COPIES; }

/* A third stage may pass on what its maker would send twice. */
static bool knows_all_routes(const question *q) {
  if (q->planner->n_asked < 3) return true;
  return q->of != PSPLIT_I_BOUND_OF_SOLVER ? q->planner->copies_any_route
                                           : q->planner->any_route_bound_ns >= q->bound_ns;
}

static bool by_these_routes(const question *q) {
  return q->planner->next_hop && !q->planner->passes_on && !knows_all_routes(q);
}

static bool directly(const question *q) { return !knows_all_routes(q) && !by_these_routes(q); }

static bool keeping_state(const question *q) { return q->planner->n_state_classes > 0; }

typedef struct restriction {
  bool (*holds)(const question *q);
  const char *words;
} restriction;

static const restriction RESTRICTIONS[] = {
  {of_supernodes, " of these supernodes"},
  {without_copies, " without copies"},
  {of_lone_copies, " whose copies each pay alone"},
  {directly, " that send directly"},
  {by_these_routes, " that relay along these links"},
  {keeping_state, " with each state in one stage"},
};

psplit_code psplit_i_plan_proof_scope(psplit_planner *planner, psplit_plan *plan,
                                      psplit_i_bound_of of, psplit_diag *diag) {
  const int64_t bound_ns = plan->proved_optimal ? plan->value_ns : plan->lower_bound_ns;
  const question q = {planner, bound_ns, of};
  psplit_i_text words = {0}, line = {0};
  plan->bound_scope = plan->proof_scope = NULL;
  if (!plan->proved_optimal && plan->lower_bound_ns <= 0) return PSPLIT_OK;
  /* One device has every node once, in whatever groups. */
  const bool all = planner->n_asked == 1 || of == PSPLIT_I_BOUND_OF_ANY_PLAN;
  for (size_t r = 0; !all && r < sizeof RESTRICTIONS / sizeof *RESTRICTIONS; r++)
    if (RESTRICTIONS[r].holds(&q)) psplit_i_text_puts(&words, RESTRICTIONS[r].words);
  psplit_i_text_addf(&line, "among %splans%s%s", words.n ? "" : "all ", words.n ? words.bytes : "",
                     strcmp(plan->device_order, "given") == 0 ? ", for this order of devices" : "");
  if (!words.failed && !line.failed)
    plan->bound_scope = psplit_i_arena_strndup(&planner->arena, line.bytes, line.n);
  plan->proof_scope = plan->proved_optimal ? plan->bound_scope : NULL;
  psplit_i_text_fini(&words);
  psplit_i_text_fini(&line);
  return plan->bound_scope ? PSPLIT_OK : psplit_i_nomem(diag);
}
