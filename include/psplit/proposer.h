/* Splits that others propose: what a proposer of the solvers "drlpp" and "drlpp+slice" sees, and
 * what it hands back. A learned policy is one (policy.h). */
#ifndef PSPLIT_PROPOSER_H
#define PSPLIT_PROPOSER_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* time_ns of an item, and of anything, from here on: not on this device. */
#define PSPLIT_ITEM_FORBIDDEN (INT64_C(1) << 61)

/* A problem as solvers of contiguous stages see it: items are sets of nodes that share a stage in
 * some best split or, in large graphs, segments of an order. They are numbered topologically. Only
 * read, and valid until the next begin(), or the solver's end. Tables with a device type are
 * type-major. */
typedef struct psplit_items {
  uint32_t n_items, n_types, n_nets, n_groups, n_stages, n_nodes;
  const uint32_t *item_of_node;     /* [n_nodes] of the problem */
  const int64_t *time_ns;           /* [n_types * n_items] >= 0, or >= FORBIDDEN */
  const uint64_t *weight_bytes;     /* [n_items] */
  const uint64_t *activation_bytes; /* [n_items] */
  const uint32_t *pin;              /* [n_items] fixed stage, or NONE */
  /* What orders stages: an item's stage is no smaller than those of pred[pred_off[i] ..]. */
  const uint32_t *pred_off, *pred, *succ_off, *succ;
  /* Net e: net_pin[net_off[e]] sends to the others up to net_off[e + 1], all distinct. Not all nets
   * run ahead: gradients run back. */
  const uint32_t *net_off, *net_pin;
  const int64_t *send_ns, *recv_ns; /* [n_types * n_nets]; over links that differ: the least */
  /* Incidences of item i: inc[inc_off[i] ..] is net * 2 + (i is the producer). */
  const uint32_t *inc_off, *inc;
  /* Weights that items share: group g counts group_bytes[g] once per stage with a user, and own
   * holds the groups of item i from own_off[i] on. */
  const uint64_t *group_bytes;
  const uint32_t *own_off, *own;
  const uint32_t *type_count;  /* [n_types] devices */
  const uint64_t *type_memory; /* [n_types] bytes; 0: no limit */
  const uint32_t *stage_type;  /* [n_stages] in the order that is given; NULL: any order */
  bool p2p;                    /* a net is sent once per stage that receives it; else once */
  bool overlap; /* a load is the largest of compute, received and sent; else their sum */
  bool stash;   /* activations of stage j of K are held K - j times */
} psplit_items;

/* Attempt 0 is the best guess, without chance; others are drawn from `seed` and their number. The
 * same arguments must give the same answer. Called by one thread at a time. */
typedef struct psplit_proposer {
  void *user;
  uint32_t n_attempts; /* to be asked for, >= 1 */
  /* Other items are asked about from now on; may be NULL. */
  psplit_code (*begin)(void *user, const psplit_items *items, psplit_diag *diag);
  /* out_stage[n_items]; out_type[n_stages] the type of each stage's device, NONE where the stage is
   * empty. What breaks a rule is not taken. Errors: any, which ends the solver. */
  psplit_code (*stages)(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                        uint32_t *out_stage, uint32_t *out_type, psplit_diag *diag);
  /* out_key[n_items]: of the items that may come next in an order, that of the least key does. */
  psplit_code (*keys)(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                      uint32_t *out_key, psplit_diag *diag);
} psplit_proposer;

#ifdef __cplusplus
}
#endif
#endif
