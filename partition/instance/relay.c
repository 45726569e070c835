/* Relays: the hops of a net from its producer's stage to all that read it. */
#include "relay.h"
#include "instance.h"

bool psplit_i_relay_net(const psplit_i_instance *instance, uint32_t e, psplit_i_relay *relay,
                        uint8_t *out_arcs) {
  const uint32_t *stage = relay->stage, *device = relay->device;
  const uint32_t n = instance->n_stages;
  const uint32_t *next = instance->problem->next_hop;
  const uint32_t home = stage[instance->net_pin[instance->net_off[e]]];
  uint32_t last = home;
  for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++) {
    const uint32_t s = stage[instance->net_pin[k]];
    relay->wants[s] = e;
    if (s > last) last = s;
  }
  relay->held[home] = e;
  for (uint32_t s = home + 1; s <= last; s++) {
    if (relay->wants[s] != e || relay->held[s] == e) continue;
    const uint32_t n_hops = psplit_i_route(n, next, home, s, relay->held, e, relay->hops);
    if (n_hops == 0) return false;
    for (uint32_t h = 0; h < n_hops; h++) {
      const psplit_i_hop hop = relay->hops[h];
      relay->send[hop.from] +=
        psplit_i_tensor_send_ns(instance, e, device[hop.from], device[hop.to]);
      relay->recv[hop.to] += psplit_i_tensor_recv_ns(instance, e, device[hop.from], device[hop.to]);
      if (out_arcs) out_arcs[(size_t)hop.from * n + hop.to] = 1;
    }
  }
  return true;
}
