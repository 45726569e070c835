/* Contraction of aggregates of clusters, from instance to instance. */
#include <stdlib.h>
#include <string.h>

#include "contraction.h"
#include "instance.h"
#include "lists.h"
#include "problem.h"

static psplit_code sum_clusters(const psplit_i_instance *instance, const uint32_t *aggregate,
                                psplit_i_instance *out) {
  psplit_i_arena *arena = &out->arena;
  const uint32_t n = out->n;
  out->w = PSPLIT_NEW(arena, int64_t, (size_t)n * instance->n_types);
  out->weight_bytes = PSPLIT_NEW(arena, uint64_t, n);
  out->act_bytes = PSPLIT_NEW(arena, uint64_t, n);
  out->n_counted = PSPLIT_NEW(arena, uint32_t, n);
  out->pin = PSPLIT_NEW(arena, uint32_t, n);
  out->total_w = instance->total_w;
  if (!out->w || !out->weight_bytes || !out->act_bytes || !out->n_counted || !out->pin)
    return PSPLIT_NOMEM;
  memset(out->pin, 0xff, n * sizeof *out->pin);
  for (uint32_t i = 0; i < instance->n; i++) {
    const uint32_t c = aggregate[i];
    for (uint32_t t = 0; t < instance->n_types; t++) {
      const int64_t w = instance->w[(size_t)t * instance->n + i];
      int64_t *sum = &out->w[(size_t)t * n + c];
      *sum = w >= PSPLIT_I_INF || *sum >= PSPLIT_I_INF ? PSPLIT_I_INF : *sum + w;
    }
    out->weight_bytes[c] += instance->weight_bytes[i];
    out->act_bytes[c] += instance->act_bytes[i];
    out->n_counted[c] += instance->n_counted[i];
    if (instance->pin[i] != PSPLIT_NONE) out->pin[c] = instance->pin[i];
  }
  for (uint32_t c = 0; c < n; c++) out->n_counted_clusters += out->n_counted[c] > 0;
  return PSPLIT_OK;
}

static psplit_code map_edges(const psplit_i_instance *instance, const uint32_t *aggregate,
                             psplit_i_arena *scratch, psplit_i_instance *out) {
  size_t n = 0;
  for (uint32_t i = 0; i < instance->n; i++)
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      n += aggregate[i] != aggregate[instance->succ[k]];
  uint64_t *edges = psplit_i_arena_array(scratch, n, sizeof *edges);
  if (!edges) return PSPLIT_NOMEM;
  n = 0;
  for (uint32_t i = 0; i < instance->n; i++)
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      if (aggregate[i] != aggregate[instance->succ[k]])
        edges[n++] = (uint64_t)aggregate[i] << 32 | aggregate[instance->succ[k]];
  out->pred_off = PSPLIT_NEW(&out->arena, uint32_t, (size_t)out->n + 1);
  out->succ_off = PSPLIT_NEW(&out->arena, uint32_t, (size_t)out->n + 1);
  out->pred = PSPLIT_NEW(&out->arena, uint32_t, n);
  out->succ = PSPLIT_NEW(&out->arena, uint32_t, n);
  if (!out->pred_off || !out->succ_off || !out->pred || !out->succ) return PSPLIT_NOMEM;
  psplit_i_lists_of_edges(edges, n, out->n, out->succ_off, out->succ);
  psplit_i_lists_transpose(out->n, out->succ_off, out->succ, out->n, out->pred_off, out->pred);
  return PSPLIT_OK;
}

/* A surviving net: its pins in a pool, and a hash to bring equal ones together. */
typedef struct mapped_net {
  uint64_t hash;
  uint32_t at, n_pins, net;
} mapped_net;

static int compare_mapped(const void *a, const void *b) {
  const mapped_net *x = a, *y = b;
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  return x->net < y->net ? -1 : x->net > y->net;
}

static bool equal_nets(const psplit_i_instance *instance, const uint32_t *pool, const mapped_net *x,
                       const mapped_net *y) {
  return x->hash == y->hash && x->n_pins == y->n_pins &&
         instance->net_forward[x->net] == instance->net_forward[y->net] &&
         memcmp(pool + x->at, pool + y->at, x->n_pins * sizeof *pool) == 0;
}

static uint32_t map_pins(const psplit_i_instance *instance, const uint32_t *aggregate, uint32_t e,
                         uint32_t *pins) {
  uint32_t n = 1;
  pins[0] = aggregate[instance->net_pin[instance->net_off[e]]];
  for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++) {
    const uint32_t c = aggregate[instance->net_pin[k]];
    if (c != pins[0]) pins[n++] = c;
  }
  return 1 + psplit_i_sort_distinct(pins + 1, n - 1);
}

/* What net e takes, as part of net `net` of `out`. */
static void add_net(const psplit_i_instance *instance, uint32_t e, psplit_i_instance *out,
                    uint32_t net) {
  const size_t n_nets = out->n_nets;
  if (instance->makes_message) {
    out->makes_message[net] |= instance->makes_message[e];
    out->on_trunk[net] |= instance->on_trunk[e];
  }
  for (uint32_t c = 0; instance->link && c < instance->n_link_classes; c++)
    out->link[c * n_nets + net] += instance->link[(size_t)c * instance->n_nets + e];
  for (uint32_t t = 0; t < instance->n_types; t++) {
    out->send[t * n_nets + net] += instance->send[(size_t)t * instance->n_nets + e];
    out->recv[t * n_nets + net] += instance->recv[(size_t)t * instance->n_nets + e];
  }
}

static psplit_code map_nets(const psplit_i_instance *instance, const uint32_t *aggregate,
                            psplit_i_arena *scratch, psplit_i_instance *out) {
  uint32_t *pool = psplit_i_arena_array(scratch, instance->net_off[instance->n_nets], sizeof *pool);
  mapped_net *nets = psplit_i_arena_array(scratch, instance->n_nets, sizeof *nets);
  if (!pool || !nets) return PSPLIT_NOMEM;
  uint32_t n = 0, at = 0;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t n_pins = map_pins(instance, aggregate, e, pool + at);
    if (n_pins < 2) continue;
    uint64_t hash = n_pins * 2 + instance->net_forward[e];
    for (uint32_t k = 0; k < n_pins; k++) hash = psplit_i_mix64(hash ^ pool[at + k]);
    nets[n++] = (mapped_net){hash, at, n_pins, e};
    at += n_pins;
  }
  qsort(nets, n, sizeof *nets, compare_mapped);
  uint32_t n_nets = 0, n_pins = 0;
  for (uint32_t k = 0; k < n; k++)
    if (k == 0 || !equal_nets(instance, pool, &nets[k], &nets[k - 1]))
      n_nets++, n_pins += nets[k].n_pins;
  if (psplit_i_instance_make_nets(out, n_nets, n_pins,
                                  instance->link ? instance->n_link_classes : 0,
                                  instance->makes_message) != PSPLIT_OK)
    return PSPLIT_NOMEM;
  uint32_t net = 0;
  at = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (k == 0 || !equal_nets(instance, pool, &nets[k], &nets[k - 1])) {
      out->net_off[net] = at;
      out->net_forward[net++] = instance->net_forward[nets[k].net];
      memcpy(out->net_pin + at, pool + nets[k].at, nets[k].n_pins * sizeof *pool);
      at += nets[k].n_pins;
    }
    add_net(instance, nets[k].net, out, net - 1);
  }
  out->net_off[n_nets] = at;
  psplit_i_lists_transpose_marked(n_nets, out->net_off, out->net_pin, out->n, out->inc_off,
                                  out->inc);
  return PSPLIT_OK;
}

static psplit_code map_groups(const psplit_i_instance *instance, const uint32_t *aggregate,
                              psplit_i_instance *out) {
  const uint32_t n_users = instance->group_off[instance->n_groups];
  psplit_i_arena *arena = &out->arena;
  out->group_bytes = PSPLIT_NEW(arena, uint64_t, instance->n_groups);
  out->group_off = PSPLIT_NEW(arena, uint32_t, (size_t)instance->n_groups + 1);
  out->group_cluster = PSPLIT_NEW(arena, uint32_t, n_users);
  out->own_off = PSPLIT_NEW(arena, uint32_t, (size_t)out->n + 1);
  out->own = PSPLIT_NEW(arena, uint32_t, n_users);
  if (!out->group_bytes || !out->group_off || !out->group_cluster || !out->own_off || !out->own)
    return PSPLIT_NOMEM;
  uint32_t at = 0;
  for (uint32_t g = 0; g < instance->n_groups; g++) {
    uint32_t *clusters = out->group_cluster + at, n = 0;
    for (uint32_t k = instance->group_off[g]; k < instance->group_off[g + 1]; k++)
      clusters[n++] = aggregate[instance->group_cluster[k]];
    const uint32_t kept = psplit_i_sort_distinct(clusters, n);
    if (kept == 1) {
      out->weight_bytes[clusters[0]] += instance->group_bytes[g];
      continue;
    }
    out->group_bytes[out->n_groups] = instance->group_bytes[g];
    at += kept;
    out->group_off[++out->n_groups] = at;
  }
  psplit_i_lists_transpose(out->n_groups, out->group_off, out->group_cluster, out->n, out->own_off,
                           out->own);
  return PSPLIT_OK;
}

psplit_code psplit_i_contract(const psplit_i_instance *instance, const uint32_t *aggregate,
                              uint32_t n_aggregates, psplit_i_instance *out) {
  *out = *instance;
  psplit_i_arena_init(&out->arena, 0);
  out->n = n_aggregates;
  out->n_groups = out->n_counted_clusters = 0;
  out->cluster_of_node = NULL; /* nodes belong to clusters, not to aggregates */
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  psplit_code code;
  PSPLIT_TRY(sum_clusters(instance, aggregate, out));
  PSPLIT_TRY(map_edges(instance, aggregate, &scratch, out));
  PSPLIT_TRY(map_nets(instance, aggregate, &scratch, out));
  PSPLIT_TRY(map_groups(instance, aggregate, out));
out:
  psplit_i_arena_fini(&scratch);
  if (code != PSPLIT_OK) psplit_i_instance_fini(out);
  return code;
}
