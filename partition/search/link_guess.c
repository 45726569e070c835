#include "link_guess.h"

#include <string.h>

psplit_code psplit_i_link_guess_init(psplit_i_link_guess *g, const psplit_i_instance *instance,
                                     psplit_i_arena *arena) {
  const uint32_t n_stages = instance->n_stages, n_nets = instance->n_nets;
  *g = (psplit_i_link_guess){.send_class = PSPLIT_NEW(arena, uint32_t, n_stages),
                             .recv_class = PSPLIT_NEW(arena, uint32_t, n_stages),
                             .classes = PSPLIT_NEW(arena, uint32_t, instance->n_link_classes),
                             .far_send = PSPLIT_NEW(arena, int64_t, n_nets),
                             .far_recv = PSPLIT_NEW(arena, int64_t, n_nets),
                             .near_send = PSPLIT_NEW(arena, bool, n_nets),
                             .near_recv = PSPLIT_NEW(arena, bool, n_nets)};
  bool *seen = PSPLIT_NEW(arena, bool, instance->n_link_classes);
  uint32_t *type = PSPLIT_NEW(arena, uint32_t, n_stages);
  if (!g->send_class || !g->recv_class || !g->classes || !g->far_send || !g->far_recv ||
      !g->near_send || !g->near_recv || !seen || !type)
    return PSPLIT_NOMEM;
  for (uint32_t t = 0, s = 0; t < instance->n_types; t++)
    for (uint32_t k = 0; k < instance->problem->devices[t].count; k++) type[s++] = t;
  for (uint32_t s = 0; s + 1 < n_stages; s++) {
    const uint32_t c = instance->device_link[(size_t)type[s] * instance->n_types + type[s + 1]];
    g->send_class[s] = g->recv_class[s + 1] = c;
    if (!seen[c]) g->classes[g->n_classes++] = c;
    seen[c] = true;
  }
  /* Neither happens on the way through a forward graph; any class will do. */
  if (n_stages > 1) {
    g->send_class[n_stages - 1] = g->send_class[n_stages - 2];
    g->recv_class[0] = g->recv_class[1];
  }
  return PSPLIT_OK;
}

/* Finds where net e goes in the split: to the next stage, further, or nowhere. */
static void look_at(psplit_i_link_guess *g, const psplit_i_instance *instance,
                    const psplit_i_assignment *now, uint32_t e, uint32_t *mark) {
  const uint32_t *pins = instance->net_pin + instance->net_off[e];
  const uint32_t n_pins = instance->net_off[e + 1] - instance->net_off[e];
  const uint32_t home = now->stage[pins[0]], from = now->device[home];
  bool any = false;
  g->near_send[e] = g->near_recv[e] = false;
  mark[home] = e;
  for (uint32_t k = 1; k < n_pins; k++) {
    const uint32_t s = now->stage[pins[k]], to = now->device[s];
    if (mark[s] == e) continue;
    mark[s] = e;
    if (s == home + 1) {
      g->near_send[e] = g->near_recv[e] = true;
    } else {
      const int64_t recv = psplit_i_recv_ns(instance, e, from, to);
      g->far_send[e] += psplit_i_send_ns(instance, e, from, to);
      if (!any || recv < g->far_recv[e]) g->far_recv[e] = recv;
    }
    any = true;
  }
  if (!any) g->near_send[e] = g->near_recv[e] = true;
  if (g->near_recv[e]) g->far_recv[e] = 0;
}

void psplit_i_link_guess_make(psplit_i_link_guess *g, const psplit_i_instance *instance,
                              const psplit_i_assignment *now, uint32_t *mark) {
  memset(g->far_send, 0, instance->n_nets * sizeof *g->far_send);
  memset(g->far_recv, 0, instance->n_nets * sizeof *g->far_recv);
  memset(g->near_send, true, instance->n_nets * sizeof *g->near_send);
  memset(g->near_recv, true, instance->n_nets * sizeof *g->near_recv);
  memset(mark, 0xff, instance->n_stages * sizeof *mark);
  for (uint32_t e = 0; now && e < instance->n_nets; e++) look_at(g, instance, now, e, mark);
}
