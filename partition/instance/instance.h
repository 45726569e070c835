/* The reduced instance: a problem in the form that bounds and solvers read. Every table is indexed
 * by clusters: sets of nodes that share a stage in some optimal split, numbered topologically
 * (every order edge goes from a smaller to a larger id). */
#ifndef PSPLIT_PARTITION_INSTANCE_H
#define PSPLIT_PARTITION_INSTANCE_H

#include "problem.h"

/* Costs depend on the device type: an entry of problem->devices, where entries that are alike are
 * merged (device_merge.h). Arrays by type are type-major: w[t * n + v], send[t * n_nets + e]. */
typedef struct psplit_i_instance {
  uint32_t n, n_types, n_nets, n_groups, n_stages;
  int64_t *w;             /* [n_types * n]; INF: cannot run there */
  uint64_t *weight_bytes; /* [n] */
  uint64_t *act_bytes;    /* [n] */
  uint32_t *n_counted;    /* [n] nodes that make a stage non-empty */
  uint32_t *pin;          /* [n] stage or NONE */
  uint32_t *pred_off, *pred, *succ_off, *succ;
  /* Net e has pins net_pin[net_off[e] .. net_off[e+1]): the producer first, then consumers in
   * ascending order, all distinct, at least two. */
  uint32_t *net_off, *net_pin;
  int64_t *send,
    /* [n_types * n_nets]; with `link`: the least over all pairs of devices */
    *recv;
  /* If transfers depend on both devices: net e takes link[c * n_nets + e] over links of class c,
   * and device_link[from * n_types + to] is the class. NULL: `send` and `recv` are exact. */
  uint32_t n_link_classes;
  uint32_t *device_link;
  int64_t *link;
  bool *net_forward; /* [n_nets] producer comes before every consumer in any stage order */
  /* With messages (messages.h), NULL otherwise: nets that make one, and nets whose times above
   * include that of a message. */
  bool *makes_message, *on_trunk; /* [n_nets] */
  /* [2 * n_types] least time to send a message, and to receive one */
  int64_t *least_message;
  /* Clusters that receive no message, and clusters that send none (message_floor.h). n_roots 0:
   * neither these nor parts are known. */
  bool *is_root, *is_leaf; /* [n] */
  uint32_t n_roots, n_leaves;
  /* number of parts: sets of clusters that nets which make messages connect */
  uint32_t n_parts;
  /* Incidences of cluster v: inc[inc_off[v] .. ): net * 2 + (v is the producer). */
  uint32_t *inc_off, *inc;
  /* Shared weights: group g counts group_bytes[g] once per stage with a cluster of it. */
  uint64_t *group_bytes;
  uint32_t *group_off, *group_cluster; /* by group */
  uint32_t *own_off, *own;             /* groups by cluster */
  uint32_t *cluster_of_node;           /* [problem->n_nodes] */
  int64_t *total_w;                    /* [n_types] sum of w; INF when some cluster is forbidden */
  uint32_t n_counted_clusters;
  bool has_memory; /* some type has a limit and some cluster has bytes */
  bool has_pins;
  bool p2p; /* sends count per receiving stage */
  bool overlap;
  bool stash;
  bool all_forward; /* every net is forward */
  bool unordered;   /* no edges: any cluster on any stage */
  const psplit_problem *problem;
  psplit_i_arena arena; /* owns every array above */
} psplit_i_instance;

/* Builds the instance of a validated problem, with one cluster for each class of `merge`
 * (union-find parents over nodes, may be NULL). Contracts keep-together classes, uncuttable nets
 * and cycles between contracted nodes; adds up identical nets; drops nets with one pin. O((nodes +
 * pins) log nodes). Errors: INFEASIBLE (contradicting pins), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_instance_init(psplit_i_instance *instance,
                                                   const psplit_problem *problem,
                                                   const uint32_t *merge, psplit_diag *diag);
/* Likewise for placement without any order: there are no edges, so there are no cycles to
 * contract. */
PSPLIT_MUST_USE psplit_code psplit_i_instance_init_unordered(psplit_i_instance *instance,
                                                             const psplit_problem *problem,
                                                             const uint32_t *merge,
                                                             psplit_diag *diag);
/* Allocates zeroed nets and pins for the instance's clusters and types. n_link_classes 0: no times
 * by link, and `link` is NULL. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_instance_make_nets(psplit_i_instance *instance,
                                                        uint32_t n_nets, size_t n_pins,
                                                        uint32_t n_link_classes, bool messages);
void psplit_i_instance_fini(psplit_i_instance *instance);

/* Time for a device of type `from` to send net e to one of type `to`, and for that one to receive
 * it. */
static inline int64_t psplit_i_send_ns(const psplit_i_instance *instance, uint32_t e, uint32_t from,
                                       uint32_t to) {
  if (!instance->link) return instance->send[(size_t)from * instance->n_nets + e];
  if (instance->problem->devices[from].free_comm) return 0;
  const uint32_t c = instance->device_link[(size_t)from * instance->n_types + to];
  return instance->link[(size_t)c * instance->n_nets + e];
}
static inline int64_t psplit_i_recv_ns(const psplit_i_instance *instance, uint32_t e, uint32_t from,
                                       uint32_t to) {
  if (!instance->link) return instance->recv[(size_t)to * instance->n_nets + e];
  if (instance->problem->devices[to].free_comm) return 0;
  const uint32_t c = instance->device_link[(size_t)from * instance->n_types + to];
  return instance->link[(size_t)c * instance->n_nets + e];
}

/* Time of a message from a device of type `from` to one of type `to`, at the sender and the
 * receiver. */
static inline int64_t psplit_i_message_ns(const psplit_i_instance *instance, uint32_t from,
                                          uint32_t to, bool send) {
  const psplit_problem *p = instance->problem;
  const psplit_device *who = &p->devices[send ? from : to];
  if (who->free_comm) return 0;
  if (!p->n_link_classes) return p->message_ns[who->class_id];
  return p->message_ns[instance->device_link[(size_t)from * instance->n_types + to]];
}

/* The same as the times of nets above, but without the time of a message that they may include. */
static inline int64_t psplit_i_tensor_send_ns(const psplit_i_instance *instance, uint32_t e,
                                              uint32_t from, uint32_t to) {
  const int64_t ns = psplit_i_send_ns(instance, e, from, to);
  const bool more = instance->on_trunk && instance->on_trunk[e];
  return more ? ns - psplit_i_message_ns(instance, from, to, true) : ns;
}
static inline int64_t psplit_i_tensor_recv_ns(const psplit_i_instance *instance, uint32_t e,
                                              uint32_t from, uint32_t to) {
  const int64_t ns = psplit_i_recv_ns(instance, e, from, to);
  const bool more = instance->on_trunk && instance->on_trunk[e];
  return more ? ns - psplit_i_message_ns(instance, from, to, false) : ns;
}

/* Whether a stage sends at most one message and receives at most one, as with shared
 * communication. */
static inline bool psplit_i_one_message(const psplit_i_instance *instance) {
  return instance->makes_message && instance->problem->comm == PSPLIT_COMM_SHARED;
}

/* Whether loads depend on pairs of stages, rather than only on nets and their times. */
static inline bool psplit_i_pairs_count(const psplit_i_instance *instance) {
  return instance->link || (instance->makes_message && !psplit_i_one_message(instance));
}

/* Load of a stage from what it computes, receives and sends. */
static inline int64_t psplit_i_load(const psplit_i_instance *instance, int64_t w, int64_t recv,
                                    int64_t send) {
  if (!instance->overlap) return w + recv + send;
  const int64_t comm = recv > send ? recv : send;
  return w > comm ? w : comm;
}

#endif
