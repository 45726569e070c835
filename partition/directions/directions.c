#include "directions.h"

#include <string.h>

#include "classes.h"
#include "few_splits.h"
#include "reductions.h"
#include "two_limits.h"
#include "weigh.h"

enum {
  SPLIT_SHARE = 12,   /* of the budget: a split for throughput */
  ORDER_SHARE = 16,   /* of what is left: an order */
  AXIS_SHARE = 12,    /* of what is left: a weight axis */
  ORDER_STEPS = 1024, /* of an order, where stages may begin */
  MOST_BYTES = 1 << 30
};

/* Splits for throughput with these weights: f and b are never below what they say together. The
 * first is 1F1B's objective. */
enum { BOTH, FORWARD, BACKWARD, MORE_FORWARD, MORE_BACKWARD, N_WEIGHTS };
static const int64_t WEIGHTS[N_WEIGHTS][PSPLIT_I_N_DIRECTIONS] = {
  {1, 1}, {1, 0}, {0, 1}, {2, 1}, {1, 2}};

/* Where f and b times the weights add up to no less than these bounds: so many times the sum of
 * both is no less than the sum of the two bounds. */
static const struct {
  int one, other;
  int64_t times;
} TOGETHER[] = {{FORWARD, BACKWARD, 1},
                {MORE_FORWARD, BACKWARD, 2},
                {FORWARD, MORE_BACKWARD, 2},
                {MORE_FORWARD, MORE_BACKWARD, 3}};

typedef struct search {
  const psplit_i_solver_request *request;
  psplit_i_directions_split split;
  psplit_i_result *result;
  psplit_problem of[PSPLIT_I_N_PARTS];
  psplit_i_directions whole; /* with no clusters united */
  psplit_i_assignment trial; /* of `whole` */
  int64_t bound[N_WEIGHTS];
  uint32_t *stage, *entry, *order, *n_before; /* scratch */
  int64_t *scratch;
} search;

static psplit_code init(search *s) {
  const psplit_i_solver_request *request = s->request;
  const psplit_problem *p = request->problem;
  const uint32_t n_stages = psplit_problem_n_stages(p);
  psplit_code code;
  for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++)
    PSPLIT_TRY(
      psplit_i_weigh(p, k == PSPLIT_I_FORWARD, k == PSPLIT_I_BACKWARD, request->arena, &s->of[k]));
  s->of[PSPLIT_I_BOTH] = *p;
  PSPLIT_TRY(psplit_i_directions_init(&s->whole, s->of, request->options, NULL, request->diag));
  PSPLIT_TRY(psplit_i_assignment_init(&s->trial, &s->whole.instance[0], request->arena));
  s->stage = PSPLIT_NEW(request->arena, uint32_t, p->n_nodes);
  s->entry = PSPLIT_NEW(request->arena, uint32_t, n_stages);
  s->order = PSPLIT_NEW(request->arena, uint32_t, s->whole.instance[0].n);
  s->n_before = PSPLIT_NEW(request->arena, uint32_t, (size_t)n_stages + 1);
  s->scratch = PSPLIT_NEW(request->arena, int64_t, (size_t)n_stages * 5);
  PSPLIT_TRY(s->stage && s->entry && s->order && s->n_before && s->scratch ? PSPLIT_OK
                                                                           : PSPLIT_NOMEM);
out:
  return code;
}

static bool is_done(const search *s) {
  const int64_t value = s->result->value;
  if (value >= PSPLIT_I_INF) return false;
  const double open = (double)(value - s->result->bound);
  return value <= s->result->bound || open <= s->request->options->gap_frac * (double)value ||
         !psplit_i_budget_left(s->request->budget) || psplit_i_expired(s->request->budget);
}

/* Values an assignment by what it is, and keeps it if it is the best; whether it is. */
static bool take_trial(search *s, const psplit_i_directions *d, psplit_i_assignment *trial,
                       psplit_i_method by) {
  int64_t value = 0;
  for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++) {
    psplit_i_assignment_evaluate(trial, &d->instance[k], &d->automaton[k], s->scratch);
    value += trial->value;
  }
  if (!psplit_i_result_improve(s->result, value, by)) return false;
  psplit_i_result_take(s->result, &d->instance[0], trial);
  return true;
}

static void raise_bound(search *s) {
  psplit_i_result_raise(s->result, s->bound[BOTH], PSPLIT_I_BOUND_DIRECTIONS);
  for (size_t i = 0; i < sizeof TOGETHER / sizeof *TOGETHER; i++) {
    const int64_t sum = s->bound[TOGETHER[i].one] + s->bound[TOGETHER[i].other];
    psplit_i_result_raise(s->result, (sum + TOGETHER[i].times - 1) / TOGETHER[i].times,
                          PSPLIT_I_BOUND_DIRECTIONS);
  }
}

/* A split for throughput with weights, and what it says of f and b. Errors: of the first all, else
 * NOMEM and CANCELLED. */
static psplit_code try_weights(search *s, int which) {
  const psplit_i_solver_request *request = s->request;
  psplit_partition_options options = *request->options;
  psplit_i_budget *budget = request->budget;
  psplit_diag ignored = {0};
  psplit_problem weighed;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  options.objective = PSPLIT_THROUGHPUT;
  options.time_limit_s /= SPLIT_SHARE;
  options.logger = NULL;
  options.activity = NULL;
  psplit_code code =
    psplit_i_weigh(request->problem, WEIGHTS[which][0], WEIGHTS[which][1], &arena, &weighed);
  if (code == PSPLIT_OK)
    code = s->split(&weighed, &options, which == BOTH ? request->diag : &ignored, s->stage,
                    s->entry, &s->bound[which]);
  psplit_i_spend(budget, psplit_i_budget_left(budget) / (2 * SPLIT_SHARE));
  psplit_i_arena_fini(&arena);
  if (code != PSPLIT_OK)
    return which == BOTH || code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED ? code : PSPLIT_OK;
  const psplit_i_instance *instance = &s->whole.instance[0];
  for (uint32_t v = 0; v < request->problem->n_nodes; v++)
    s->trial.stage[instance->cluster_of_node[v]] = s->stage[v];
  for (uint32_t t = 0; t < instance->n_stages; t++) {
    s->trial.device[t] = s->entry[t];
    s->trial.replicas[t] = 1;
  }
  take_trial(s, &s->whole, &s->trial, PSPLIT_I_SOLVER_DIRECTIONS);
  raise_bound(s);
  return PSPLIT_OK;
}

/* Clusters by the stages of the trial, and in these as they stand. */
static void list_order(search *s) {
  const psplit_i_instance *instance = &s->whole.instance[0];
  memset(s->n_before, 0, ((size_t)instance->n_stages + 1) * sizeof *s->n_before);
  for (uint32_t i = 0; i < instance->n; i++) s->n_before[s->trial.stage[i] + 1]++;
  for (uint32_t t = 0; t < instance->n_stages; t++) s->n_before[t + 1] += s->n_before[t];
  for (uint32_t i = 0; i < instance->n; i++) s->order[s->n_before[s->trial.stage[i]]++] = i;
}

static uint64_t memory_cap(const search *s) {
  const uint64_t cap = s->request->options->memory_cap_bytes;
  return cap ? cap : MOST_BYTES;
}

/* The order of the trial's stages, divided anew by two limits. */
static psplit_code divide_order(search *s) {
  psplit_i_budget *budget = s->request->budget;
  psplit_i_budget share = psplit_i_budget_share(budget, ORDER_SHARE);
  psplit_i_two_limits_result found;
  list_order(s);
  const psplit_i_two_limits_options options = {.order = s->order,
                                               .grain = 1 + s->whole.instance[0].n / ORDER_STEPS,
                                               .limit = s->result->value,
                                               .memory_cap_bytes = memory_cap(s),
                                               .budget = &share};
  const psplit_code code = psplit_i_two_limits(&s->whole, &options, &s->trial, &found);
  psplit_i_spend(budget, share.spent);
  if (code == PSPLIT_OK && found.found)
    take_trial(s, &s->whole, &s->trial, PSPLIT_I_SOLVER_DIRECTIONS);
  return code;
}

/* Clusters that no split up to the value has apart become one. Monotonicity: no load of such a
 * split, both directions together, is above the value; so the rule of throughput holds. */
static psplit_code unite(search *s, psplit_i_directions *out) {
  const psplit_i_solver_request *request = s->request;
  psplit_i_instance both = {0};
  psplit_i_automaton automaton = {0};
  psplit_code code;
  uint32_t *parent =
    psplit_i_arena_array(request->arena, request->problem->n_nodes, sizeof *parent);
  PSPLIT_TRY(parent ? PSPLIT_OK : PSPLIT_NOMEM);
  for (uint32_t v = 0; v < request->problem->n_nodes; v++) parent[v] = v;
  PSPLIT_TRY(psplit_i_instance_init(&both, request->problem, NULL, request->diag));
  PSPLIT_TRY(psplit_i_automaton_init(&automaton, &both, request->options, request->diag));
  PSPLIT_TRY(
    psplit_i_reduce(&both, &automaton, s->result->value, parent, request->budget, request->diag));
  PSPLIT_TRY(psplit_i_directions_init(out, s->of, request->options, parent, request->diag));
out:
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&both);
  return code;
}

/* What stages take where so much work is in front of them, for splits below the value: of both
 * directions together up to it, of each alone less what the other takes at least. */
static psplit_code make_axes(search *s, const psplit_i_directions *d, psplit_i_weight_axis *axes) {
  psplit_i_budget *budget = s->request->budget;
  psplit_i_result *result = s->result;
  const int64_t most = result->value - 1;
  const int64_t rest[] = {s->bound[BACKWARD], s->bound[FORWARD], 0};
  psplit_code code;
  for (int k = 0; k < PSPLIT_I_N_PARTS; k++) {
    psplit_i_budget share = psplit_i_budget_share(budget, AXIS_SHARE);
    PSPLIT_TRY(psplit_i_weight_axis_make(&d->instance[k], &d->automaton[k], most - rest[k],
                                         s->request->options->n_threads, &share, &axes[k]));
    psplit_i_spend(budget, share.spent);
    psplit_i_result_raise(result, axes[k].bound + rest[k], PSPLIT_I_BOUND_DIRECTIONS);
  }
out:
  return code;
}

/* All downsets, in half of what is left; then, of few clusters, all splits. */
static psplit_code decide(search *s) {
  psplit_i_budget *budget = s->request->budget;
  psplit_i_result *result = s->result;
  psplit_i_directions d = {0};
  psplit_i_assignment split;
  psplit_i_two_limits_result found;
  psplit_i_weight_axis axes[PSPLIT_I_N_PARTS] = {{0}};
  psplit_code code;
  PSPLIT_TRY(unite(s, &d));
  PSPLIT_TRY(psplit_i_assignment_init(&split, &d.instance[0], s->request->arena));
  PSPLIT_TRY(make_axes(s, &d, axes));
  if (is_done(s)) goto out;
  psplit_i_budget share = psplit_i_budget_share(budget, 2);
  const psplit_i_two_limits_options options = {
    .limit = result->value, .axes = axes, .memory_cap_bytes = memory_cap(s), .budget = &share};
  PSPLIT_TRY(psplit_i_two_limits(&d, &options, &split, &found));
  psplit_i_spend(budget, share.spent);
  if (found.found) take_trial(s, &d, &split, PSPLIT_I_SOLVER_TWO_LIMITS);
  if (found.complete) psplit_i_result_raise(result, found.least, PSPLIT_I_SOLVER_TWO_LIMITS);
  result->unproved = found.complete
                       ? "the program of two limits counts one receiver of each tensor"
                       : "the time is spent, or the program of two limits has no memory left";
  if (is_done(s) || !psplit_i_splits_are_few(&d)) goto out;
  int64_t value = result->value;
  bool complete;
  PSPLIT_TRY(psplit_i_few_splits(&d, budget, &value, &split, &complete));
  if (value < result->value) take_trial(s, &d, &split, PSPLIT_I_SOLVER_BRANCH_AND_BOUND);
  if (complete) psplit_i_result_raise(result, value, PSPLIT_I_SOLVER_BRANCH_AND_BOUND);
out:
  for (int k = 0; k < PSPLIT_I_N_PARTS; k++) psplit_i_weight_axis_fini(&axes[k]);
  psplit_i_directions_fini(&d);
  return code;
}

static psplit_code place(search *s) {
  const psplit_i_method asked = psplit_i_solver_asked(s->request->options->solver);
  const bool proves = asked == PSPLIT_I_SOLVER_AUTO || asked == PSPLIT_I_SOLVER_EXACT;
  psplit_code code = PSPLIT_OK;
  for (int i = 0; i < N_WEIGHTS && !is_done(s); i++) {
    PSPLIT_TRY(try_weights(s, i));
    if (!is_done(s)) PSPLIT_TRY(divide_order(s));
    const bool turn = i == BACKWARD || i + 1 == N_WEIGHTS;
    if (proves && turn && !is_done(s)) PSPLIT_TRY(decide(s));
  }
out:
  return code;
}

psplit_code psplit_i_directions_place(const psplit_i_solver_request *request,
                                      psplit_i_directions_split split,
                                      psplit_i_result *out_result) {
  const psplit_problem *p = request->problem;
  search s = {.request = request, .split = split, .result = out_result};
  psplit_code code;
  uint32_t v = 0;
  while (v < p->n_nodes && !psplit_i_is_backward(p, v)) v++;
  if (v == p->n_nodes)
    return psplit_i_fail(
      request->diag, PSPLIT_UNSUPPORTED,
      "fill-drain needs backward nodes, and the problem has none; use throughput "
      "for a forward pass");
  out_result->bound_by = PSPLIT_I_BOUND_DIRECTIONS;
  out_result->unproved = "the selected solver proves nothing";
  PSPLIT_TRY(init(&s));
  PSPLIT_TRY(place(&s));
out:
  psplit_i_directions_fini(&s.whole);
  return code == PSPLIT_NOMEM ? psplit_i_nomem(request->diag) : code;
}
