/* The loads and transfers of a plan for each kind of step that it is for. */
#include "working_point.h"

/* `node_ns` and the sizes that `sizes` has are those of the phase. */
static psplit_code fill(psplit_planner *planner, const psplit_plan *plan,
                        const psplit_planner *sizes, const int64_t *node_ns, psplit_plan_phase *out,
                        psplit_diag *diag) {
  const psplit_working_point *point = sizes->options.decode;
  const uint32_t n_nodes = planner->graph->n_nodes;
  int64_t *load_ns = PSPLIT_NEW(&planner->arena, int64_t, plan->n_stages);
  int64_t *recv_ns = PSPLIT_NEW(&planner->scratch, int64_t, plan->n_stages);
  int64_t *send_ns = PSPLIT_NEW(&planner->scratch, int64_t, plan->n_stages);
  if (!load_ns || !recv_ns || !send_ns) return psplit_i_nomem(diag);
  for (uint32_t n = 0; n < n_nodes; n++) {
    const uint32_t s = planner->stage[n];
    psplit_i_add_ns(&load_ns[s], node_ns[(size_t)sizes->device_class[s] * n_nodes + n]);
  }
  for (size_t c = 0; c < planner->copies.n; c++) {
    const psplit_plan_copy *copy = &planner->copies.items[c];
    psplit_i_add_ns(&load_ns[copy->stage],
                    node_ns[(size_t)sizes->device_class[copy->stage] * n_nodes + copy->node]);
  }
  psplit_i_pairs_met met;
  if (!psplit_i_pairs_begin(planner, &met)) return psplit_i_nomem(diag);
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    const psplit_plan_transfer *transfer = &plan->transfers[t];
    const uint64_t bytes = psplit_i_planner_value_bytes(sizes, transfer->value, NULL);
    const int64_t ns = psplit_i_pairs_transfer_ns(&met, transfer, bytes);
    psplit_i_add_ns(&send_ns[transfer->from], ns);
    psplit_i_add_ns(&recv_ns[transfer->to], ns);
  }
  for (uint32_t s = 0; s < plan->n_stages; s++)
    load_ns[s] = psplit_i_planner_load_ns(planner, load_ns[s], recv_ns[s], send_ns[s]);
  *out = (psplit_plan_phase){
    .past = point->past, .tokens = point->tokens, .batch = point->batch, .load_ns = load_ns};
  for (uint32_t s = 0; s < plan->n_stages; s++)
    if (load_ns[s] > out->bottleneck_ns) out->bottleneck_ns = load_ns[s];
  return PSPLIT_OK;
}

psplit_code psplit_i_plan_phases(psplit_planner *planner, psplit_plan *plan, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_planner *other = planner->prefill;
  if (!planner->options.decode) return PSPLIT_OK;
  psplit_plan_phase *phases = PSPLIT_NEW(&planner->arena, psplit_plan_phase, 2);
  if (!phases) return psplit_i_nomem(diag);
  PSPLIT_TRY(
    fill(planner, plan, planner, other ? planner->decode_ns : planner->node_ns, &phases[0], diag));
  phases[0].name = "decode";
  phases[0].step_frac = 1;
  if (other) {
    PSPLIT_TRY(fill(planner, plan, other, other->node_ns, &phases[1], diag));
    phases[1].name = "prefill";
    phases[1].step_frac = planner->options.prefill_frac;
    phases[0].step_frac -= phases[1].step_frac;
  }
  plan->phases = phases;
  plan->n_phases = other ? 2 : 1;
out:
  return code;
}
