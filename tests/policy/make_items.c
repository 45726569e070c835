#include "make_items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

static void *need(psplit_i_arena *arena, size_t n, size_t bytes) {
  void *memory = psplit_i_arena_zeroed(arena, n ? n : 1, bytes);
  if (!memory) {
    fputs("error: out of memory\n", stderr);
    exit(6);
  }
  return memory;
}
#define NEW(type, n) ((type *)need(arena, (n), sizeof(type)))

/* Net e: from item e to one to three behind it, or in front of it where nets run back. */
static void make_nets(psplit_items *in, uint32_t seed, bool backward, psplit_i_arena *arena) {
  const uint32_t n = in->n_items;
  uint32_t *off = NEW(uint32_t, 2 * n + 1), *pin = NEW(uint32_t, 8 * n), n_nets = 0, at = 0;
  uint32_t *edge = NEW(uint32_t, n * n);
  for (uint32_t v = 0; v + 1 < n; v++) {
    off[n_nets++] = at;
    pin[at++] = v;
    for (uint32_t k = 0, behind = v; k < 3 && behind + 1 < n; k++) {
      const uint64_t coin = psplit_i_splitmix64(seed, 17 * v + k);
      if (k > 0 && coin % 2) break;
      behind += 1 + (uint32_t)(coin / 2 % 3);
      if (behind >= n) behind = n - 1;
      if (edge[v * n + behind]) break;
      pin[at++] = behind;
      edge[v * n + behind] = 1;
    }
    if (backward && psplit_i_splitmix64(seed, 9000 + v) % 2) {
      off[n_nets++] = at;
      pin[at++] = v + 1;
      pin[at++] = v;
      if (v > 2 && v % 2) pin[at++] = v - 2;
    }
  }
  off[n_nets] = at;
  in->n_nets = n_nets;
  in->net_off = off;
  in->net_pin = pin;
  uint32_t *lists[4] = {NEW(uint32_t, n + 1), NEW(uint32_t, n * n), NEW(uint32_t, n + 1),
                        NEW(uint32_t, n * n)};
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t count = 0;
    for (uint32_t v = 0; v < n; v++) {
      lists[2 * side][v] = count;
      for (uint32_t u = 0; u < n; u++)
        if (side == 0 ? edge[u * n + v] : edge[v * n + u]) lists[2 * side + 1][count++] = u;
    }
    lists[2 * side][n] = count;
  }
  in->pred_off = lists[0], in->pred = lists[1], in->succ_off = lists[2], in->succ = lists[3];
  uint32_t *inc_off = NEW(uint32_t, n + 1), *inc = NEW(uint32_t, at), count = 0;
  for (uint32_t v = 0; v < n; v++) {
    inc_off[v] = count;
    for (uint32_t e = 0; e < n_nets; e++)
      for (uint32_t k = off[e]; k < off[e + 1]; k++)
        if (pin[k] == v) inc[count++] = 2 * e + (k == off[e]);
  }
  inc_off[n] = count;
  in->inc_off = inc_off, in->inc = inc;
}

psplit_items make_items(uint32_t seed, uint32_t n, uint32_t n_stages, unsigned features,
                        psplit_i_arena *arena) {
  const uint32_t n_types = features & ITEMS_TYPES && n_stages > 1 ? 2 : 1;
  psplit_items in = {.n_items = n, .n_types = n_types, .n_stages = n_stages, .n_nodes = n};
  in.p2p = !(features & ITEMS_SHARED);
  in.overlap = features & ITEMS_OVERLAP;
  make_nets(&in, seed, features & ITEMS_BACKWARD, arena);
  int64_t *time = NEW(int64_t, n * n_types), *send = NEW(int64_t, in.n_nets * n_types),
          *recv = NEW(int64_t, in.n_nets * n_types);
  uint64_t *weight = NEW(uint64_t, n), *activation = NEW(uint64_t, n), *group = NEW(uint64_t, 2),
           *memory = NEW(uint64_t, n_types), total = 0;
  uint32_t *pin = NEW(uint32_t, n), *own_off = NEW(uint32_t, n + 1), *own = NEW(uint32_t, n),
           *count = NEW(uint32_t, n_types), *node = NEW(uint32_t, n),
           *stage_type = NEW(uint32_t, n_stages);
  for (uint32_t i = 0; i < n; i++) {
    node[i] = i;
    pin[i] = PSPLIT_NONE;
    weight[i] = psplit_i_splitmix64(seed, 100 + i) % 50;
    activation[i] = psplit_i_splitmix64(seed, 200 + i) % 10;
    total += weight[i] + activation[i];
    own_off[i + 1] = own_off[i];
    if (features & ITEMS_MEMORY && i % 3 == 0) own[own_off[i + 1]++] = i % 2;
    for (uint32_t t = 0; t < n_types; t++) {
      time[t * n + i] = 100 + (int64_t)(psplit_i_splitmix64(seed, 300 + i) % 900) * (1 + t);
      if (t == 1 && i % 5 == 4) time[t * n + i] = PSPLIT_ITEM_FORBIDDEN;
    }
  }
  for (uint32_t e = 0; e < in.n_nets * n_types; e++) {
    send[e] = 1 + (int64_t)(psplit_i_splitmix64(seed, 5000 + e) % 60);
    recv[e] = 1 + (int64_t)(psplit_i_splitmix64(seed, 6000 + e) % 60);
  }
  group[0] = 20, group[1] = 35;
  for (uint32_t s = 0; s < n_stages; s++) {
    stage_type[s] = n_types == 2 && s % 2;
    count[stage_type[s]]++;
  }
  for (uint32_t t = 0; t < n_types; t++)
    if (features & ITEMS_MEMORY) memory[t] = total * 3 / 2 / n_stages + 80;
  in.time_ns = time, in.send_ns = send, in.recv_ns = recv;
  in.weight_bytes = weight, in.activation_bytes = activation, in.group_bytes = group;
  in.n_groups = features & ITEMS_MEMORY ? 2 : 0;
  in.own_off = own_off, in.own = own, in.pin = pin, in.item_of_node = node;
  in.type_count = count, in.type_memory = memory;
  in.stage_type = features & ITEMS_ANY_ORDER ? NULL : stage_type;
  return in;
}

int64_t bottleneck_of(const psplit_items *in, const uint32_t *stage, const uint32_t *type,
                      uint64_t *out_bytes) {
  int64_t most = 0;
  for (uint32_t s = 0; s < in->n_stages; s++) {
    int64_t compute = 0, recv = 0, send = 0;
    uint64_t bytes = 0;
    const uint32_t t = type[s] == PSPLIT_NONE ? 0 : type[s];
    for (uint32_t i = 0; i < in->n_items; i++) {
      if (stage[i] != s) continue;
      compute += in->time_ns[(size_t)t * in->n_items + i];
      bytes += in->weight_bytes[i] + in->activation_bytes[i];
    }
    for (uint32_t g = 0; g < in->n_groups; g++) {
      bool used = false;
      for (uint32_t i = 0; i < in->n_items; i++)
        for (uint32_t k = in->own_off[i]; k < in->own_off[i + 1]; k++)
          used |= stage[i] == s && in->own[k] == g;
      if (used) bytes += in->group_bytes[g];
    }
    for (uint32_t e = 0; e < in->n_nets; e++) {
      const uint32_t from = stage[in->net_pin[in->net_off[e]]];
      bool receives = false;
      uint32_t n_receivers = 0;
      for (uint32_t q = 0; q < in->n_stages; q++) {
        bool here = false;
        for (uint32_t k = in->net_off[e] + 1; k < in->net_off[e + 1]; k++)
          here |= stage[in->net_pin[k]] == q && q != from;
        n_receivers += here;
        receives |= here && q == s;
      }
      if (receives) recv += in->recv_ns[(size_t)t * in->n_nets + e];
      if (from == s && n_receivers)
        send += in->send_ns[(size_t)t * in->n_nets + e] * (in->p2p ? n_receivers : 1);
    }
    const int64_t comm = recv > send ? recv : send;
    const int64_t load = !in->overlap ? compute + recv + send : compute > comm ? compute : comm;
    most = load > most ? load : most;
    if (out_bytes) out_bytes[s] = bytes;
  }
  return most;
}
