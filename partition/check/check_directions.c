#include "check_inside.h"

static int64_t *part(psplit_i_check *c, uint32_t stage, bool back) {
  psplit_stage_load *load = &c->out->stages[stage];
  return back ? &load->backward_ns : &load->forward_ns;
}

static int64_t transfer_ns(const psplit_i_check *c, uint32_t e, uint32_t stage, bool send) {
  const psplit_device *device = &c->p->devices[c->out->stages[stage].device];
  return device->free_comm ? 0 : psplit_i_net_ns(c->p, e, device->class_id, send);
}

int64_t psplit_i_check_directions(psplit_i_check *c) {
  const psplit_problem *p = c->p;
  int64_t forward = 0, back = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const uint32_t s = c->stage[v], class_id = p->devices[c->out->stages[s].device].class_id;
    *part(c, s, psplit_i_check_is_backward(c, v)) +=
      p->time_ns[(size_t)v * p->n_classes + class_id];
  }
  for (uint32_t s = 0; s < c->out->n_stages; s++) c->mark[s] = PSPLIT_NONE;
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t home = c->stage[p->net_producer[e]];
    const bool of = psplit_i_check_is_backward(c, p->net_producer[e]);
    bool sent = false;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t s = c->stage[p->net_consumer[k]];
      if (s == home || c->mark[s] == e) continue;
      c->mark[s] = e;
      *part(c, s, of) += transfer_ns(c, e, s, false);
      if (!sent || p->comm == PSPLIT_COMM_P2P) *part(c, home, of) += transfer_ns(c, e, home, true);
      sent = true;
    }
  }
  for (uint32_t s = 0; s < c->out->n_stages; s++) {
    const psplit_stage_load *load = &c->out->stages[s];
    if (load->forward_ns > forward) forward = load->forward_ns;
    if (load->backward_ns > back) back = load->backward_ns;
  }
  return forward + back;
}
