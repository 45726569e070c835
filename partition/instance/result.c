#include "result.h"

#include <assert.h>
#include <string.h>

psplit_code psplit_i_result_init(psplit_i_result *result, const psplit_i_solver_request *request) {
  const uint32_t n = request->problem->n_nodes,
                 n_stages = psplit_problem_n_stages(request->problem);
  memset(result, 0, sizeof *result);
  result->stage = PSPLIT_NEW(request->arena, uint32_t, n);
  result->chunk = PSPLIT_NEW(request->arena, uint32_t, n);
  result->device = PSPLIT_NEW(request->arena, uint32_t, n_stages);
  result->replicas = PSPLIT_NEW(request->arena, uint32_t, n_stages);
  result->value = PSPLIT_I_INF;
  result->solver = result->bound_by = PSPLIT_I_N_METHODS;
  return result->stage && result->chunk && result->device && result->replicas
           ? PSPLIT_OK
           : psplit_i_nomem(request->diag);
}

void psplit_i_result_raise(psplit_i_result *result, int64_t bound, psplit_i_method by) {
  if (bound <= result->bound) return; /* a bound above the value is a bug, which solve.c reports */
  result->bound = bound;
  result->bound_by = by;
}

bool psplit_i_result_improve(psplit_i_result *result, int64_t value, psplit_i_method by) {
  if (value >= result->value) return false;
  result->value = value;
  result->solver = by;
  return true;
}

void psplit_i_result_take(psplit_i_result *result, const psplit_i_instance *instance,
                          const psplit_i_assignment *assignment) {
  for (uint32_t v = 0; v < instance->problem->n_nodes; v++)
    result->stage[v] = assignment->stage[instance->cluster_of_node[v]];
  memcpy(result->device, assignment->device, instance->n_stages * sizeof *assignment->device);
  memcpy(result->replicas, assignment->replicas, instance->n_stages * sizeof *assignment->replicas);
}

void psplit_i_result_give(const psplit_i_result *result, const psplit_i_instance *instance,
                          const psplit_i_automaton *automaton, psplit_i_assignment *assignment,
                          int64_t *scratch) {
  for (uint32_t v = 0; v < instance->problem->n_nodes; v++)
    assignment->stage[instance->cluster_of_node[v]] = result->stage[v];
  for (uint32_t v = 0; v < instance->problem->n_nodes; v++)
    assert(assignment->stage[instance->cluster_of_node[v]] == result->stage[v]);
  memcpy(assignment->device, result->device, instance->n_stages * sizeof *assignment->device);
  memcpy(assignment->replicas, result->replicas, instance->n_stages * sizeof *assignment->replicas);
  psplit_i_assignment_evaluate(assignment, instance, automaton, scratch);
}
