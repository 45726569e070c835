/* Bounds that hold for any placement, contiguous or not. */
#include <stdlib.h>

#include "automaton.h"
#include "budget.h"
#include "flow.h"
#include "instance.h"
#include "node_cut.h"
#include "problem.h"

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

/* A net among the items with a number in local[]; its producer has one. */
static bool add_net(psplit_flow *flow, const psplit_core *core, uint32_t e, const uint32_t *local,
                    int64_t send, int64_t recv) {
  const uint32_t *pin = core->net_pin + core->net_off[e];
  const uint32_t n_pins = core->net_off[e + 1] - core->net_off[e];
  const uint32_t out = send > 0 ? psplit_i_flow_node(flow) : PSPLIT_NONE;
  const uint32_t in = recv > 0 ? psplit_i_flow_node(flow) : PSPLIT_NONE;
  if ((send > 0 && out == PSPLIT_NONE) || (recv > 0 && in == PSPLIT_NONE)) return false;
  bool ok = true;
  if (send > 0) ok &= psplit_i_flow_arc_add(flow, local[pin[0]], out, send);
  if (recv > 0) ok &= psplit_i_flow_arc_add(flow, in, local[pin[0]], recv);
  for (uint32_t k = 1; k < n_pins; k++) {
    if (local[pin[k]] == PSPLIT_NONE) continue;
    if (send > 0) ok &= psplit_i_flow_arc_add(flow, out, local[pin[k]], PSPLIT_I_INF);
    if (recv > 0) ok &= psplit_i_flow_arc_add(flow, local[pin[k]], in, PSPLIT_I_INF);
  }
  return ok;
}

bool psplit_i_set_network(psplit_flow *flow, const psplit_core *core, const uint32_t *item,
                          uint32_t n, const uint32_t *local, const int64_t *w, const int64_t *send,
                          const int64_t *recv) {
  psplit_i_flow_reset(flow);
  bool ok = true;
  for (uint32_t k = 0; k <= n; k++) ok &= psplit_i_flow_node(flow) != PSPLIT_NONE;
  for (uint32_t k = 0; k < n && ok; k++) ok = psplit_i_flow_arc_add(flow, k, n, w[item[k]]);
  for (uint32_t k = 0; k < n && ok; k++) {
    const uint32_t i = item[k];
    for (uint32_t l = core->inc_off[i]; l < core->inc_off[i + 1] && ok; l++) {
      const uint32_t e = core->inc[l] >> 1;
      if (core->inc[l] & 1) ok = add_net(flow, core, e, local, send[e], recv[e]);
    }
  }
  return ok;
}

typedef struct candidate {
  int64_t most; /* load of the item alone: its bound cannot be above */
  uint32_t item;
} candidate;

static int compare_candidates(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->most != y->most) return x->most > y->most ? -1 : 1;
  return x->item < y->item ? -1 : x->item > y->item;
}

bool psplit_i_least_costs(const psplit_core *core, const psplit_machine *m, int64_t *send,
                          int64_t *recv, int64_t *least) {
  bool any = false;
  for (uint32_t i = 0; i < core->n; i++) least[i] = PSPLIT_I_INF;
  for (uint32_t t = 0; t < core->n_types; t++) {
    if (m->count[t] == 0) continue;
    if (core->problem->devices[t].free_comm) { /* there an item costs no more than itself */
      for (uint32_t i = 0; i < core->n; i++) {
        const int64_t w = core->w[(size_t)t * core->n + i];
        if (w < least[i]) least[i] = w;
      }
      continue;
    }
    for (uint32_t e = 0; e < core->n_nets; e++) {
      const size_t cell = (size_t)t * core->n_nets + e;
      if (!any || core->send[cell] < send[e]) send[e] = core->send[cell];
      if (!any || core->recv[cell] < recv[e]) recv[e] = core->recv[cell];
    }
    any = true;
  }
  return any;
}

psplit_code psplit_i_node_bound(const psplit_core *core, const psplit_machine *machine,
                                int64_t limit, uint32_t most_items, const psplit_deadline *deadline,
                                int64_t *inout_bound) {
  if (core->overlap || machine->replicated) return PSPLIT_OK;
  psplit_flow flow = {0}, whole = {0};
  psplit_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code = PSPLIT_NOMEM;
  int64_t *send = PSPLIT_NEW(&arena, int64_t, core->n_nets);
  int64_t *recv = PSPLIT_NEW(&arena, int64_t, core->n_nets);
  int64_t *least = PSPLIT_NEW(&arena, int64_t, core->n);
  candidate *list = PSPLIT_NEW(&arena, candidate, core->n);
  uint32_t *all = PSPLIT_NEW(&arena, uint32_t, core->n);
  if (!send || !recv || !least || !list || !all) goto out;
  for (uint32_t i = 0; i < core->n; i++) all[i] = i;
  code = PSPLIT_OK;
  if (!psplit_i_least_costs(core, machine, send, recv, least)) goto out;
  for (uint32_t i = 0; i < core->n; i++) {
    int64_t alone = machine->omega[i];
    for (uint32_t l = core->inc_off[i]; l < core->inc_off[i + 1]; l++)
      alone += (core->inc[l] & 1 ? send : recv)[core->inc[l] >> 1];
    list[i] = (candidate){alone < least[i] ? alone : least[i], i};
  }
  qsort(list, core->n, sizeof *list, compare_candidates);
  code = PSPLIT_NOMEM;
  bool built = false;
  for (uint32_t k = 0; k < core->n && k < most_items; k++) {
    const uint32_t i = list[k].item;
    if (list[k].most <= *inout_bound || *inout_bound >= limit || psplit_i_expired(deadline)) break;
    if (!built &&
        !psplit_i_set_network(&whole, core, all, core->n, all, machine->omega, send, recv))
      goto out;
    built = true;
    if (!psplit_i_flow_copy(&flow, &whole)) goto out;
    const int64_t enough = least[i] < limit ? least[i] : limit;
    int64_t value = 0;
    if (!psplit_i_flow_run(&flow, i, core->n, enough, &value)) goto out;
    if (value > *inout_bound) *inout_bound = value;
  }
  code = PSPLIT_OK;
out:
  psplit_i_flow_fini(&flow);
  psplit_i_flow_fini(&whole);
  psplit_i_arena_fini(&arena);
  return code;
}
