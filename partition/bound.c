/* Bounds that hold for any placement, contiguous or not. */
#include "partition.h"

int64_t psplit_i_simple_bound(const psplit_core *core, const psplit_machine *machine) {
  uint32_t copies = 1;
  for (uint32_t k = 0; k < machine->move_off[machine->n_states]; k++)
    if (machine->moves[k].replicas > copies) copies = machine->moves[k].replicas;
  int64_t bound = 0;
  for (uint32_t i = 0; i < core->n; i++) {
    const int64_t least = (machine->omega[i] + copies - 1) / copies;
    if (least > bound) bound = least;
  }
  /* Whole devices of one speed divide exactly; otherwise doubles, rounded down. */
  const double devices = machine->capacity[0];
  int64_t share = (int64_t)((double)machine->total_omega / devices * (1 - 1e-12));
  if (devices >= 1 && devices == (double)(int64_t)devices) {
    const int64_t n = (int64_t)devices;
    share = (machine->total_omega + n - 1) / n;
  }
  return share > bound ? share : bound;
}

/* Network whose source sides are the sets S: cutting item -> sink pays omega of a member, cutting a
 * net's arc pays what S sends or receives. */
static bool build(psplit_flow *flow, const psplit_core *core, const psplit_machine *m,
                  const int64_t *send, const int64_t *recv) {
  psplit_i_flow_reset(flow);
  bool ok = true;
  for (uint32_t k = 0; k <= core->n; k++) ok &= psplit_i_flow_node(flow) != PSPLIT_NONE;
  if (!ok) return false;
  for (uint32_t i = 0; i < core->n; i++)
    if (m->omega[i] > 0) ok &= psplit_i_flow_arc_add(flow, i, core->n, m->omega[i]);
  for (uint32_t e = 0; e < core->n_nets && ok; e++) {
    const uint32_t producer = core->net_pin[core->net_off[e]];
    const uint32_t out = send[e] > 0 ? psplit_i_flow_node(flow) : PSPLIT_NONE;
    const uint32_t in = recv[e] > 0 ? psplit_i_flow_node(flow) : PSPLIT_NONE;
    ok = (send[e] == 0 || out != PSPLIT_NONE) && (recv[e] == 0 || in != PSPLIT_NONE);
    if (!ok) break;
    if (send[e] > 0) ok &= psplit_i_flow_arc_add(flow, producer, out, send[e]);
    if (recv[e] > 0) ok &= psplit_i_flow_arc_add(flow, in, producer, recv[e]);
    for (uint32_t k = core->net_off[e] + 1; k < core->net_off[e + 1]; k++) {
      if (send[e] > 0) ok &= psplit_i_flow_arc_add(flow, out, core->net_pin[k], PSPLIT_I_INF);
      if (recv[e] > 0) ok &= psplit_i_flow_arc_add(flow, core->net_pin[k], in, PSPLIT_I_INF);
    }
  }
  return ok;
}

psplit_code psplit_i_node_bound(const psplit_core *core, const psplit_machine *machine,
                                int64_t limit, const psplit_deadline *deadline,
                                int64_t *inout_bound) {
  if (core->overlap || machine->replicated) return PSPLIT_OK;
  psplit_flow flow = {0}, whole = {0};
  psplit_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code = PSPLIT_NOMEM;
  int64_t *send = PSPLIT_NEW(&arena, int64_t, core->n_nets);
  int64_t *recv = PSPLIT_NEW(&arena, int64_t, core->n_nets);
  int64_t *bound = PSPLIT_NEW(&arena, int64_t, core->n);
  if (!send || !recv || !bound) goto out;
  bool any = false;
  for (uint32_t i = 0; i < core->n; i++) bound[i] = PSPLIT_I_INF;
  for (uint32_t t = 0; t < core->n_types; t++) {
    if (machine->count[t] == 0) continue;
    if (core->problem->devices[t].free_comm) { /* there an item costs no more than itself */
      for (uint32_t i = 0; i < core->n; i++)
        if (core->w[(size_t)t * core->n + i] < bound[i])
          bound[i] = core->w[(size_t)t * core->n + i];
      continue;
    }
    for (uint32_t e = 0; e < core->n_nets; e++) {
      const size_t cell = (size_t)t * core->n_nets + e;
      if (!any || core->send[cell] < send[e]) send[e] = core->send[cell];
      if (!any || core->recv[cell] < recv[e]) recv[e] = core->recv[cell];
    }
    any = true;
  }
  if (any && !build(&whole, core, machine, send, recv)) goto out;
  for (uint32_t i = 0; i < core->n && any; i++) {
    if (bound[i] <= *inout_bound) continue;
    if (psplit_i_expired(deadline)) break;
    psplit_i_flow_reset(&flow);
    if (!psplit_i_vec_reserve(&flow.head, whole.head.n) ||
        !psplit_i_vec_reserve(&flow.arcs, whole.arcs.n))
      goto out;
    for (size_t k = 0; k < whole.head.n; k++) flow.head.items[k] = whole.head.items[k];
    for (size_t k = 0; k < whole.arcs.n; k++) flow.arcs.items[k] = whole.arcs.items[k];
    flow.head.n = whole.head.n;
    flow.arcs.n = whole.arcs.n;
    const int64_t enough = bound[i] < limit ? bound[i] : limit;
    int64_t value = 0;
    if (!psplit_i_flow_run(&flow, i, core->n, enough, &value)) goto out;
    if (value > *inout_bound) *inout_bound = value;
    if (*inout_bound >= limit) break;
  }
  code = PSPLIT_OK;
out:
  psplit_i_flow_fini(&flow);
  psplit_i_flow_fini(&whole);
  psplit_i_arena_fini(&arena);
  return code;
}
