/* From the caller's problem to an instance: classes of nodes (classes.h) become clusters, and
 * tensors between them nets. */
#include "instance.h"
#include "classes.h"
#include "lists.h"
#include "messages.h"
#include "pair_links.h"
#include "problem.h"
#include "union_find.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Scratch of one build. */
typedef struct build {
  const psplit_problem *p;
  psplit_i_arena scratch;
  uint32_t n;
  uint32_t *class_of; /* [n_nodes] */
  bool unordered;     /* no edge orders anything */
} build;

static bool allocate_clusters(psplit_i_instance *instance, const psplit_problem *p) {
  const uint32_t n = instance->n;
  psplit_i_arena *arena = &instance->arena;
  instance->w = PSPLIT_NEW(arena, int64_t, (size_t)n * instance->n_types);
  instance->total_w = PSPLIT_NEW(arena, int64_t, instance->n_types);
  instance->weight_bytes = PSPLIT_NEW(arena, uint64_t, n);
  instance->act_bytes = PSPLIT_NEW(arena, uint64_t, n);
  instance->n_counted = PSPLIT_NEW(arena, uint32_t, n);
  instance->pin = PSPLIT_NEW(arena, uint32_t, n);
  instance->cluster_of_node = PSPLIT_NEW(arena, uint32_t, p->n_nodes);
  instance->pred_off = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  instance->pred = PSPLIT_NEW(arena, uint32_t, instance->succ_off[n]);
  return instance->w && instance->total_w && instance->weight_bytes && instance->act_bytes &&
         instance->n_counted && instance->pin && instance->cluster_of_node && instance->pred_off &&
         instance->pred;
}

/* Adds what node v takes to its cluster, i. */
static void add_node(psplit_i_instance *instance, const psplit_problem *p, uint32_t v, uint32_t i) {
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const int64_t ns = p->time_ns[(size_t)v * p->n_classes + p->devices[t].class_id];
    int64_t *w = &instance->w[(size_t)t * instance->n + i];
    *w = ns == PSPLIT_TIME_FORBIDDEN || *w >= PSPLIT_I_INF ? PSPLIT_I_INF : *w + ns;
  }
  if (p->weight_bytes) instance->weight_bytes[i] += p->weight_bytes[v];
  if (p->activation_bytes) instance->act_bytes[i] += p->activation_bytes[v];
  if (!p->node_flags || !(p->node_flags[v] & PSPLIT_NODE_AUXILIARY)) instance->n_counted[i]++;
}

static psplit_code pin_cluster(psplit_i_instance *instance, const psplit_problem *p, uint32_t v,
                               uint32_t i, psplit_diag *diag) {
  instance->has_pins = true;
  if (instance->pin[i] != PSPLIT_NONE && instance->pin[i] != p->pin[v]) {
    char buffer[32];
    return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                         "node %s is pinned to stage %" PRIu32 ", but it must share stage %" PRIu32
                         " with another pinned node",
                         psplit_i_node_name(p, v, buffer), p->pin[v], instance->pin[i]);
  }
  instance->pin[i] = p->pin[v];
  return PSPLIT_OK;
}

static psplit_code fill_clusters(psplit_i_instance *instance, build *b, psplit_diag *diag) {
  const psplit_problem *p = b->p;
  const uint32_t n = instance->n = b->n;
  psplit_code code = PSPLIT_OK;
  if (!allocate_clusters(instance, p)) return psplit_i_nomem(diag);
  memset(instance->pin, 0xff, n * sizeof *instance->pin);
  bool bytes = p->n_weights > 0, limit = false;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const uint32_t i = instance->cluster_of_node[v] = b->class_of[v];
    add_node(instance, p, v, i);
    if (p->pin && p->pin[v] != PSPLIT_NONE) PSPLIT_TRY(pin_cluster(instance, p, v, i, diag));
  }
  for (uint32_t i = 0; i < n; i++) {
    bytes |= instance->weight_bytes[i] || instance->act_bytes[i];
    instance->n_counted_clusters += instance->n_counted[i] > 0;
    for (uint32_t t = 0; t < instance->n_types; t++) {
      const int64_t w = instance->w[(size_t)t * n + i];
      int64_t *total = &instance->total_w[t];
      *total = w >= PSPLIT_I_INF || *total >= PSPLIT_I_INF ? PSPLIT_I_INF : *total + w;
    }
  }
  for (uint32_t t = 0; t < instance->n_types; t++) limit |= p->devices[t].memory_bytes > 0;
  instance->has_memory = bytes && limit;
  psplit_i_lists_transpose(n, instance->succ_off, instance->succ, n, instance->pred_off,
                           instance->pred);
out:
  return code;
}

/* Order of nets for merging identical ones: by length, then pins. */
typedef struct net_key {
  const uint32_t *pins;
  uint32_t n_pins, net;
  bool forward;
} net_key;

static int compare_nets(const void *a, const void *b) {
  const net_key *x = a, *y = b;
  if (x->pins[0] != y->pins[0]) return x->pins[0] < y->pins[0] ? -1 : 1;
  if (x->n_pins != y->n_pins) return x->n_pins < y->n_pins ? -1 : 1;
  for (uint32_t k = 1; k < x->n_pins; k++)
    if (x->pins[k] != y->pins[k]) return x->pins[k] < y->pins[k] ? -1 : 1;
  if (x->forward != y->forward) return x->forward ? -1 : 1;
  return x->net < y->net ? -1 : x->net > y->net;
}

static bool same_pins(const net_key *x, const net_key *y) {
  return x->n_pins == y->n_pins && x->forward == y->forward &&
         memcmp(x->pins, y->pins, x->n_pins * sizeof *x->pins) == 0;
}

/* The least of the classes for each net. */
static void least_link(const psplit_i_instance *instance, const uint32_t *classes, uint32_t n,
                       int64_t *out) {
  for (uint32_t e = 0; e < instance->n_nets; e++)
    for (uint32_t k = 0; k < n; k++) {
      const int64_t ns = instance->link[(size_t)classes[k] * instance->n_nets + e];
      if (k == 0 || ns < out[e]) out[e] = ns;
    }
}

/* With links between pairs of devices: what each type takes at least to send and to receive, over
 * the classes that it may use. Where that is one class each way the least is exact. */
static psplit_code fill_links(psplit_i_instance *instance, psplit_i_arena *scratch) {
  const psplit_problem *p = instance->problem;
  const uint32_t n_types = instance->n_types;
  psplit_i_used_links used;
  bool exact = true;
  if (!p->n_link_classes) return PSPLIT_OK;
  instance->n_link_classes = p->n_link_classes;
  instance->device_link =
    psplit_i_arena_array(&instance->arena, n_types, n_types * sizeof *instance->device_link);
  if (!instance->device_link || psplit_i_pairs_used(p, scratch, &used) != PSPLIT_OK)
    return PSPLIT_NOMEM;
  for (size_t k = 0; k < (size_t)n_types * n_types; k++)
    instance->device_link[k] = p->device_link[k] & ~PSPLIT_I_LINK_UNUSED;
  for (uint32_t k = 0; k < 2 * n_types; k++) {
    const uint32_t t = k / 2;
    /* Who can only send, or only receive, counts as what it can: no bound may take it for free. */
    const uint32_t from = used.off[k] < used.off[k + 1] ? k : k ^ 1;
    const uint32_t n = used.off[k + 1] - used.off[k];
    exact &= n <= 1;
    if (p->devices[t].free_comm) continue;
    least_link(instance, used.link + used.off[from], used.off[from + 1] - used.off[from],
               (k % 2 ? instance->recv : instance->send) + (size_t)t * instance->n_nets);
  }
  if (exact) instance->link = NULL;
  return PSPLIT_OK;
}

/* Nets of the trunk take as long as a message longer. */
static void add_trunk(psplit_i_instance *instance) {
  const psplit_problem *p = instance->problem;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    if (!instance->on_trunk[e]) continue;
    for (uint32_t c = 0; c < p->n_link_classes; c++)
      instance->link[(size_t)c * instance->n_nets + e] += p->message_ns[c];
    for (uint32_t t = 0; t < instance->n_types && !p->n_link_classes; t++) {
      if (p->devices[t].free_comm) continue;
      instance->send[(size_t)t * instance->n_nets + e] += p->message_ns[p->devices[t].class_id];
      instance->recv[(size_t)t * instance->n_nets + e] += p->message_ns[p->devices[t].class_id];
    }
  }
}

/* What a message takes each type at least, over the links that it may use. */
static psplit_code fill_messages(psplit_i_instance *instance, psplit_i_arena *scratch) {
  const psplit_problem *p = instance->problem;
  psplit_i_used_links used;
  instance->least_message = PSPLIT_NEW(&instance->arena, int64_t, 2 * (size_t)instance->n_types);
  if (!instance->least_message) return PSPLIT_NOMEM;
  if (p->n_link_classes && psplit_i_pairs_used(p, scratch, &used) != PSPLIT_OK) return PSPLIT_NOMEM;
  for (uint32_t k = 0; k < 2 * instance->n_types; k++) {
    const psplit_device *device = &p->devices[k / 2];
    int64_t *least = &instance->least_message[(size_t)(k % 2) * instance->n_types + k / 2];
    if (device->free_comm) continue;
    if (!p->n_link_classes) {
      *least = p->message_ns[device->class_id];
      continue;
    }
    for (uint32_t l = used.off[k]; l < used.off[k + 1]; l++)
      if (l == used.off[k] || p->message_ns[used.link[l]] < *least)
        *least = p->message_ns[used.link[l]];
  }
  return PSPLIT_OK;
}

/* Clusters that no message comes to, or leaves, and parts, where all nets run ahead. */
static psplit_code fill_roots(psplit_i_instance *instance) {
  instance->is_root = PSPLIT_NEW(&instance->arena, bool, instance->n);
  instance->is_leaf = PSPLIT_NEW(&instance->arena, bool, instance->n);
  uint32_t *part = psplit_i_arena_array(&instance->arena, instance->n, sizeof *part);
  if (!instance->is_root || !instance->is_leaf || !part) return PSPLIT_NOMEM;
  if (!instance->all_forward || instance->unordered) return PSPLIT_OK;
  for (uint32_t v = 0; v < instance->n; v++) {
    instance->is_root[v] = instance->is_leaf[v] = true;
    part[v] = v;
  }
  instance->n_parts = instance->n;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    if (!instance->makes_message[e]) continue;
    instance->is_leaf[instance->net_pin[instance->net_off[e]]] = false;
    for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
      instance->is_root[instance->net_pin[k]] = false;
    for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
      instance->n_parts -=
        psplit_i_unite(part, instance->net_pin[instance->net_off[e]], instance->net_pin[k]);
  }
  for (uint32_t v = 0; v < instance->n; v++) {
    instance->n_roots += instance->is_root[v];
    instance->n_leaves += instance->is_leaf[v];
  }
  return PSPLIT_OK;
}

/* keys[]: nets that have consumers in other clusters, ordered, nets of the same pins side by side;
 * room for all. Returns how many. */
static uint32_t list_nets(const build *b, net_key *keys, uint32_t *pins) {
  const psplit_problem *p = b->p;
  uint32_t n_keys = 0;
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t producer = b->class_of[p->net_producer[e]];
    bool forward = !psplit_i_is_backward(p, p->net_producer[e]);
    uint32_t n = 0;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t cluster = b->class_of[p->net_consumer[k]];
      if (cluster == producer) continue;
      forward &= !psplit_i_is_backward(p, p->net_consumer[k]);
      pins[1 + n++] = cluster;
    }
    if (n == 0) continue;
    const uint32_t kept = 1 + psplit_i_sort_distinct(pins + 1, n);
    pins[0] = producer;
    keys[n_keys++] = (net_key){pins, kept, e, forward};
    pins += kept;
  }
  bool ascends = true; /* often: nets come in the order of their producers */
  for (uint32_t k = 1; k < n_keys && ascends; k++)
    ascends = compare_nets(&keys[k - 1], &keys[k]) < 0;
  if (!ascends) qsort(keys, n_keys, sizeof *keys, compare_nets);
  return n_keys;
}

psplit_code psplit_i_instance_make_nets(psplit_i_instance *instance, uint32_t n_nets, size_t n_pins,
                                        uint32_t n_link_classes, bool messages) {
  psplit_i_arena *arena = &instance->arena;
  instance->n_nets = n_nets;
  instance->net_off = PSPLIT_NEW(arena, uint32_t, (size_t)n_nets + 1);
  instance->net_pin = PSPLIT_NEW(arena, uint32_t, n_pins);
  instance->net_forward = PSPLIT_NEW(arena, bool, n_nets);
  instance->send = PSPLIT_NEW(arena, int64_t, (size_t)n_nets * instance->n_types);
  instance->recv = PSPLIT_NEW(arena, int64_t, (size_t)n_nets * instance->n_types);
  instance->inc_off = PSPLIT_NEW(arena, uint32_t, (size_t)instance->n + 1);
  instance->inc = PSPLIT_NEW(arena, uint32_t, n_pins);
  instance->link =
    n_link_classes ? PSPLIT_NEW(arena, int64_t, (size_t)n_nets * n_link_classes) : NULL;
  instance->makes_message = messages ? PSPLIT_NEW(arena, bool, n_nets) : NULL;
  instance->on_trunk = messages ? PSPLIT_NEW(arena, bool, n_nets) : NULL;
  return arena->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

/* A net of the problem becomes part of net `net` of the instance. */
static void add_to_net(psplit_i_instance *instance, const build *b, uint32_t net, uint32_t from) {
  const psplit_problem *p = b->p;
  const size_t n_nets = instance->n_nets;
  if (p->message_ns) {
    instance->makes_message[net] |= psplit_i_makes_message(p, from);
    instance->on_trunk[net] |= !b->unordered && psplit_i_on_trunk(p, from);
  }
  for (uint32_t c = 0; c < p->n_link_classes; c++)
    instance->link[c * n_nets + net] += p->net_link_ns[(size_t)from * p->n_link_classes + c];
  for (uint32_t t = 0; t < instance->n_types && !p->n_link_classes; t++) {
    if (p->devices[t].free_comm) continue;
    instance->send[t * n_nets + net] += psplit_i_net_ns(p, from, p->devices[t].class_id, true);
    instance->recv[t * n_nets + net] += psplit_i_net_ns(p, from, p->devices[t].class_id, false);
  }
}

static psplit_code fill_nets(psplit_i_instance *instance, build *b, psplit_diag *diag) {
  const psplit_problem *p = b->p;
  const size_t n_pins = p->n_nets ? (size_t)p->net_off[p->n_nets] + p->n_nets : 0;
  net_key *keys = psplit_i_arena_array(&b->scratch, p->n_nets, sizeof *keys);
  uint32_t *pins = psplit_i_arena_array(&b->scratch, n_pins, sizeof *pins);
  if (!keys || !pins) return psplit_i_nomem(diag);
  const uint32_t n_keys = list_nets(b, keys, pins);
  uint32_t n_nets = 0;
  size_t n_kept_pins = 0;
  for (uint32_t k = 0; k < n_keys; k++)
    if (k == 0 || !same_pins(&keys[k], &keys[k - 1])) n_nets++, n_kept_pins += keys[k].n_pins;
  if (psplit_i_instance_make_nets(instance, n_nets, n_kept_pins, p->n_link_classes,
                                  p->message_ns) != PSPLIT_OK)
    return psplit_i_nomem(diag);
  instance->all_forward = true;
  uint32_t net = 0, at = 0;
  for (uint32_t k = 0; k < n_keys; k++) {
    if (k == 0 || !same_pins(&keys[k], &keys[k - 1])) {
      instance->net_off[net] = at;
      memcpy(instance->net_pin + at, keys[k].pins, keys[k].n_pins * sizeof *instance->net_pin);
      instance->net_forward[net] = keys[k].forward;
      instance->all_forward &= keys[k].forward;
      at += keys[k].n_pins;
      net++;
    }
    add_to_net(instance, b, net - 1, keys[k].net);
  }
  instance->net_off[n_nets] = at;
  if (p->message_ns) add_trunk(instance);
  if (p->message_ns &&
      (fill_messages(instance, &b->scratch) != PSPLIT_OK || fill_roots(instance) != PSPLIT_OK))
    return psplit_i_nomem(diag);
  if (fill_links(instance, &b->scratch) != PSPLIT_OK) return psplit_i_nomem(diag);
  psplit_i_lists_transpose_marked(n_nets, instance->net_off, instance->net_pin, instance->n,
                                  instance->inc_off, instance->inc);
  return PSPLIT_OK;
}

/* Groups whose users fell into one cluster become that cluster's own bytes. */
static psplit_code fill_groups(psplit_i_instance *instance, build *b, psplit_diag *diag) {
  const psplit_problem *p = b->p;
  const size_t n_users = p->n_weights ? p->weight_off[p->n_weights] : 0;
  psplit_i_arena *arena = &instance->arena;
  instance->group_bytes = PSPLIT_NEW(arena, uint64_t, p->n_weights);
  instance->group_off = PSPLIT_NEW(arena, uint32_t, (size_t)p->n_weights + 1);
  instance->group_cluster = PSPLIT_NEW(arena, uint32_t, n_users);
  instance->own_off = PSPLIT_NEW(arena, uint32_t, (size_t)instance->n + 1);
  instance->own = PSPLIT_NEW(arena, uint32_t, n_users);
  if (!instance->group_bytes || !instance->group_off || !instance->group_cluster ||
      !instance->own_off || !instance->own)
    return psplit_i_nomem(diag);
  uint32_t at = 0;
  for (uint32_t g = 0; g < p->n_weights; g++) {
    uint32_t *clusters = instance->group_cluster + at, n = 0;
    for (uint32_t k = p->weight_off[g]; k < p->weight_off[g + 1]; k++)
      clusters[n++] = b->class_of[p->weight_user[k]];
    const uint32_t kept = psplit_i_sort_distinct(clusters, n);
    if (kept == 1) instance->weight_bytes[clusters[0]] += p->weight_group_bytes[g];
    if (kept < 2) continue;
    instance->group_bytes[instance->n_groups] = p->weight_group_bytes[g];
    at += kept;
    instance->group_off[++instance->n_groups] = at;
  }
  psplit_i_lists_transpose(instance->n_groups, instance->group_off, instance->group_cluster,
                           instance->n, instance->own_off, instance->own);
  return PSPLIT_OK;
}

static psplit_code init(psplit_i_instance *instance, const psplit_problem *problem,
                        const uint32_t *merge, bool unordered, psplit_diag *diag) {
  psplit_code code;
  memset(instance, 0, sizeof *instance);
  psplit_i_arena_init(&instance->arena, 0);
  instance->problem = problem;
  instance->n_types = problem->n_devices;
  instance->n_stages = psplit_problem_n_stages(problem);
  /* Relaxation: with relays a stage may send once to have several receive. Solvers count one send,
   * which no split goes below; assignments and placements value whole splits as they are. */
  instance->p2p = problem->comm == PSPLIT_COMM_P2P && !problem->next_hop;
  instance->overlap = problem->overlap;
  instance->unordered = unordered;
  instance->stash = problem->stash_1f1b;
  build b = {.p = problem, .unordered = unordered};
  psplit_i_arena_init(&b.scratch, 0);
  psplit_i_classes classes = {0};
  PSPLIT_TRY(
    psplit_i_classes_make(problem, merge, unordered, &instance->arena, &b.scratch, &classes));
  b.n = classes.n;
  b.class_of = classes.class_of;
  instance->succ_off = classes.succ_off;
  instance->succ = classes.succ;
  PSPLIT_TRY(fill_clusters(instance, &b, diag));
  PSPLIT_TRY(fill_nets(instance, &b, diag));
  PSPLIT_TRY(fill_groups(instance, &b, diag));
out:
  psplit_i_arena_fini(&b.scratch);
  if (code == PSPLIT_NOMEM) code = psplit_i_nomem(diag);
  if (code != PSPLIT_OK) psplit_i_instance_fini(instance);
  return code;
}

psplit_code psplit_i_instance_init(psplit_i_instance *instance, const psplit_problem *problem,
                                   const uint32_t *merge, psplit_diag *diag) {
  return init(instance, problem, merge, false, diag);
}

psplit_code psplit_i_instance_init_unordered(psplit_i_instance *instance,
                                             const psplit_problem *problem, const uint32_t *merge,
                                             psplit_diag *diag) {
  return init(instance, problem, merge, true, diag);
}

void psplit_i_instance_fini(psplit_i_instance *instance) {
  psplit_i_arena_fini(&instance->arena);
  memset(instance, 0, sizeof *instance);
}
