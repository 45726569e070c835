#include "order_view.h"

psplit_code psplit_i_order_view_init(psplit_i_order_view *view, const psplit_i_instance *instance,
                                     psplit_i_arena *arena) {
  const uint32_t n = instance->n, n_nets = instance->n_nets, n_types = instance->n_types;
  psplit_i_instance *own = &view->instance;
  *own = *instance;
  own->w = PSPLIT_NEW(arena, int64_t, (size_t)n_types * n);
  own->weight_bytes = PSPLIT_NEW(arena, uint64_t, n);
  own->act_bytes = PSPLIT_NEW(arena, uint64_t, n);
  own->n_counted = PSPLIT_NEW(arena, uint32_t, n);
  own->pin = PSPLIT_NEW(arena, uint32_t, n);
  own->net_off = PSPLIT_NEW(arena, uint32_t, (size_t)n_nets + 1);
  own->send = PSPLIT_NEW(arena, int64_t, (size_t)n_types * n_nets);
  own->recv = PSPLIT_NEW(arena, int64_t, (size_t)n_types * n_nets);
  own->inc_off = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  own->inc = PSPLIT_NEW(arena, uint32_t, instance->inc_off[n]);
  own->own_off = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  own->own = PSPLIT_NEW(arena, uint32_t, instance->own_off[n]);
  if (instance->makes_message) {
    own->makes_message = PSPLIT_NEW(arena, bool, n_nets);
    own->on_trunk = PSPLIT_NEW(arena, bool, n_nets);
    if (!own->makes_message || !own->on_trunk) return PSPLIT_NOMEM;
  }
  view->cluster = PSPLIT_NEW(arena, uint32_t, n);
  view->net = PSPLIT_NEW(arena, uint32_t, n_nets);
  view->times_sent = PSPLIT_NEW(arena, uint32_t, n_nets);
  if (!own->w || !own->weight_bytes || !own->act_bytes || !own->n_counted || !own->pin ||
      !own->net_off || !own->send || !own->recv || !own->inc_off || !own->inc || !own->own_off ||
      !own->own || !view->cluster || !view->net || !view->times_sent)
    return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < n; i++) view->cluster[i] = i;
  return PSPLIT_OK;
}

/* Net e is the next one here, `at`. */
static void set_net(psplit_i_order_view *view, const psplit_i_instance *instance, uint32_t e,
                    uint32_t at) {
  psplit_i_instance *own = &view->instance;
  view->net[e] = at;
  own->net_off[at + 1] = own->net_off[at] + instance->net_off[e + 1] - instance->net_off[e];
  for (size_t t = 0; t < instance->n_types; t++) {
    own->send[t * instance->n_nets + at] = instance->send[t * instance->n_nets + e];
    own->recv[t * instance->n_nets + at] = instance->recv[t * instance->n_nets + e];
  }
  if (!instance->makes_message) return;
  own->makes_message[at] = instance->makes_message[e];
  own->on_trunk[at] = instance->on_trunk[e];
}

/* Cluster v is the i-th. */
static void set_cluster(psplit_i_order_view *view, const psplit_i_instance *instance, uint32_t v,
                        uint32_t i) {
  psplit_i_instance *own = &view->instance;
  for (size_t t = 0; t < instance->n_types; t++)
    own->w[t * instance->n + i] = instance->w[t * instance->n + v];
  own->weight_bytes[i] = instance->weight_bytes[v];
  own->act_bytes[i] = instance->act_bytes[v];
  own->n_counted[i] = instance->n_counted[v];
  own->pin[i] = instance->pin[v];
  uint32_t n_inc = own->inc_off[i], n_own = own->own_off[i];
  for (uint32_t k = instance->inc_off[v]; k < instance->inc_off[v + 1]; k++)
    own->inc[n_inc++] = view->net[instance->inc[k] >> 1] * 2 + (instance->inc[k] & 1);
  for (uint32_t k = instance->own_off[v]; k < instance->own_off[v + 1]; k++)
    own->own[n_own++] = instance->own[k];
  own->inc_off[i + 1] = n_inc;
  own->own_off[i + 1] = n_own;
}

void psplit_i_order_view_set(psplit_i_order_view *view, const psplit_i_instance *instance,
                             const uint32_t *order, const uint32_t *times_sent) {
  uint32_t n_nets = 0;
  for (uint32_t i = 0; i < instance->n; i++)
    for (uint32_t k = instance->inc_off[order[i]]; k < instance->inc_off[order[i] + 1]; k++)
      if (instance->inc[k] & 1) set_net(view, instance, instance->inc[k] >> 1, n_nets++);
  for (uint32_t i = 0; i < instance->n; i++) set_cluster(view, instance, order[i], i);
  for (uint32_t e = 0; times_sent && e < instance->n_nets; e++)
    view->times_sent[view->net[e]] = times_sent[e];
}
