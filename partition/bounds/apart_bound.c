/* Bounds of the instance in which receivers are apart (apart.h), for smaller and smaller limits: if
 * no split fits a limit, the limit is a bound. */
#include "apart.h"
#include "bounds.h"
#include "fans.h"
#include "node_cut.h"
#include "weight_axis.h"

enum {
  MOST_CLUSTERS = PSPLIT_I_LARGE,
  MOST_CUTS = 64,
  STEPS = 10,   /* the gap is halved so often, at most */
  CLOSE = 2000, /* a gap of one of so many parts is halved no more */
  TRIES = 3,    /* after which, near the bound, each must close one part of LEAST_GAIN */
  NEAR = 4,
  LEAST_GAIN = 50
};

/* The bounds of an instance that holds for splits with every load <= limit. */
static psplit_code bound_instance(const psplit_i_bound_query *query, const psplit_i_apart *apart,
                                  int64_t limit, psplit_i_budget *budget, int64_t *inout_bound) {
  psplit_i_weight_axis axis = {0};
  const int64_t simple = psplit_i_simple_bound(&apart->instance, &apart->automaton);
  if (simple > *inout_bound) *inout_bound = simple;
  if (*inout_bound > limit) return PSPLIT_OK;
  psplit_code code = psplit_i_node_cut_bound(&apart->instance, &apart->automaton, limit + 1,
                                             MOST_CUTS, budget, inout_bound);
  if (code != PSPLIT_OK || *inout_bound > limit) return code;
  code = psplit_i_weight_axis_make(&apart->instance, &apart->automaton, limit,
                                   query->request->options->n_threads, budget, &axis);
  if (code == PSPLIT_OK && axis.bound > *inout_bound) *inout_bound = axis.bound;
  psplit_i_weight_axis_fini(&axis);
  return code;
}

/* Raises *inout_bound to what splits with every load <= limit have at least: with receivers apart,
 * then with fans counted besides, which takes nets off that other bounds could read. `weighed`: in
 * between by cuts that know what their downsets weigh, which take longest. */
static psplit_code bound_within(const psplit_i_bound_query *query, const psplit_i_closure *closure,
                                int64_t limit, bool weighed, psplit_i_budget *budget,
                                int64_t *inout_bound) {
  psplit_i_apart apart;
  psplit_diag diag = {0};
  bool fans;
  psplit_code code = psplit_i_apart_make(query->instance, query->automaton, closure,
                                         query->request->options, limit, budget, &apart);
  if (code != PSPLIT_OK) return code;
  if (apart.impossible) *inout_bound = limit + 1;
  if (apart.impossible) goto out;
  if (apart.changed) PSPLIT_TRY(bound_instance(query, &apart, limit, budget, inout_bound));
  if (*inout_bound > limit) goto out;
  if (weighed)
    PSPLIT_TRY(psplit_i_weight_axis_weighed(apart.changed ? &apart.instance : query->instance,
                                            apart.changed ? &apart.automaton : query->automaton,
                                            limit, query->request->options->n_threads, budget,
                                            inout_bound));
  if (*inout_bound > limit) goto out;
  PSPLIT_TRY(psplit_i_fans_count(&apart.instance, query->automaton, closure, limit, budget, &fans));
  if (!fans) goto out;
  psplit_i_automaton_fini(&apart.automaton);
  PSPLIT_TRY(
    psplit_i_automaton_init(&apart.automaton, &apart.instance, query->request->options, &diag));
  PSPLIT_TRY(bound_instance(query, &apart, limit, budget, inout_bound));
out:
  psplit_i_apart_fini(&apart);
  return code;
}

psplit_code psplit_i_bound_apart(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                 int64_t *inout_bound) {
  psplit_i_closure closure;
  int64_t high = query->value;
  if (query->instance->n > MOST_CLUSTERS || high >= PSPLIT_I_INF) return PSPLIT_OK;
  psplit_code code = psplit_i_closure_make(query->instance, budget, &closure);
  if (code != PSPLIT_OK) return code;
  for (int64_t limit = high - 1, k = 0; k <= STEPS && limit >= *inout_bound; k++) {
    int64_t bound = *inout_bound;
    if (psplit_i_expired(budget)) break;
    PSPLIT_TRY(bound_within(query, &closure, limit, k == 0, budget, &bound));
    /* No split is within the limit and below this. */
    if (bound > limit) bound = limit + 1;
    const int64_t gain = bound > *inout_bound ? bound - *inout_bound : 0;
    *inout_bound += gain;
    if (bound <= limit) high = limit;
    limit = *inout_bound + (high - *inout_bound) / 2;
    if (limit >= high || high - *inout_bound <= *inout_bound / CLOSE) break;
    if (k + 1 >= TRIES && high - *inout_bound < *inout_bound / NEAR &&
        gain < (query->value - *inout_bound) / LEAST_GAIN)
      break;
  }
out:
  psplit_i_closure_fini(&closure);
  return code;
}
