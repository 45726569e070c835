#include "result.h"

#include <assert.h>
#include <string.h>

psplit_code psplit_i_answer_init(psplit_answer *answer, const psplit_job *job) {
  const uint32_t n = job->problem->n_nodes, n_stages = psplit_problem_n_stages(job->problem);
  memset(answer, 0, sizeof *answer);
  answer->stage = PSPLIT_NEW(job->arena, uint32_t, n);
  answer->chunk = PSPLIT_NEW(job->arena, uint32_t, n);
  answer->device = PSPLIT_NEW(job->arena, uint32_t, n_stages);
  answer->replicas = PSPLIT_NEW(job->arena, uint32_t, n_stages);
  answer->solver = answer->bound_name = "none";
  return answer->stage && answer->chunk && answer->device && answer->replicas
           ? PSPLIT_OK
           : psplit_i_nomem(job->diag);
}

void psplit_i_answer_take(psplit_answer *answer, const psplit_core *core, const psplit_cut *cut) {
  for (uint32_t v = 0; v < core->problem->n_nodes; v++)
    answer->stage[v] = cut->stage[core->item_of_node[v]];
  memcpy(answer->device, cut->device, core->n_stages * sizeof *cut->device);
  memcpy(answer->replicas, cut->replicas, core->n_stages * sizeof *cut->replicas);
}

void psplit_i_answer_give(const psplit_answer *answer, const psplit_core *core,
                          const psplit_machine *machine, psplit_cut *cut, int64_t *scratch) {
  for (uint32_t v = 0; v < core->problem->n_nodes; v++)
    cut->stage[core->item_of_node[v]] = answer->stage[v];
  for (uint32_t v = 0; v < core->problem->n_nodes; v++)
    assert(cut->stage[core->item_of_node[v]] == answer->stage[v]);
  memcpy(cut->device, answer->device, core->n_stages * sizeof *cut->device);
  memcpy(cut->replicas, answer->replicas, core->n_stages * sizeof *cut->replicas);
  psplit_i_cut_evaluate(cut, core, machine, scratch);
}
