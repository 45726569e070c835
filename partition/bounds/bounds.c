/* Runs rows of the table of bounds. */
#include "bounds.h"

typedef struct row {
  psplit_code (*run)(const psplit_i_bound_query *, psplit_i_budget *, int64_t *);
  unsigned of; /* psplit_i_variant */
  psplit_i_bound_time when;
  uint32_t share, rate;
} row;

enum { STAGES = PSPLIT_I_STAGES, PLACEMENT = PSPLIT_I_PLACEMENT, LATENCY = PSPLIT_I_LATENCY };

static const row ROWS[PSPLIT_I_N_METHODS] = {
#define PSPLIT_I_BOUND(id, name, does, of, when, share, rate, run) \
  [PSPLIT_I_BOUND_##id] = {psplit_i_bound_##run, of, PSPLIT_I_##when, share, rate},
#include "methods.def"
};

psplit_i_variant psplit_i_variant_of(const psplit_partition_options *options) {
  if (options->objective == PSPLIT_LATENCY) return PSPLIT_I_LATENCY;
  return options->chunks > 1 || options->noncontiguous ? PSPLIT_I_PLACEMENT : PSPLIT_I_STAGES;
}

bool psplit_i_bound_is_due(psplit_i_method method, const psplit_i_bound_query *query,
                           psplit_i_bound_time when) {
  const row *bound = &ROWS[method];
  return bound->run && bound->when == when && (bound->of & query->variant) &&
         psplit_i_takes(method, query->automaton->features);
}

psplit_code psplit_i_bound_run(psplit_i_method method, const psplit_i_bound_query *query,
                               psplit_i_result *result) {
  const row *bound = &ROWS[method];
  int64_t value = result->bound;
  const uint32_t rate = query->instance->n <= PSPLIT_I_LARGE ? bound->rate : 1;
  psplit_i_budget budget = psplit_i_budget_rated(query->request->budget, bound->share, rate);
  const psplit_code code = bound->run(query, &budget, &value);
  psplit_i_spend_rated(query->request->budget, &budget, rate);
  if (code == PSPLIT_OK) psplit_i_result_raise(result, value, method);
  return code;
}
