/* External proposals of splits: the input and output of a proposer, which the solvers "drlpp" and
 * "drlpp+slice" call. A learned policy is one (policy.h). */
#ifndef PSPLIT_PROPOSER_H
#define PSPLIT_PROPOSER_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Times at or above this value mean: not supported on this device. */
#define PSPLIT_ITEM_FORBIDDEN (INT64_C(1) << 61)

/* A problem as seen by solvers for contiguous stages: items are sets of nodes that share a stage in
 * some optimal split or, in large graphs, segments of an order. They are numbered topologically.
 * Read-only, and valid until the next begin() or the end of the solver. Tables with a device type
 * are type-major. */
typedef struct psplit_items {
  uint32_t n_items, n_types, n_nets, n_groups, n_stages, n_nodes;
  const uint32_t *item_of_node;     /* [n_nodes] of the problem */
  const int64_t *time_ns;           /* [n_types * n_items] >= 0, or >= FORBIDDEN */
  const uint64_t *weight_bytes;     /* [n_items] */
  const uint64_t *activation_bytes; /* [n_items] */
  const uint32_t *pin;              /* [n_items] fixed stage, or NONE */
  /* Precedence: an item's stage is not less than those of pred[pred_off[i] ..]. */
  const uint32_t *pred_off, *pred, *succ_off, *succ;
  /* Net e: net_pin[net_off[e]] sends to the others up to net_off[e + 1], all distinct. Nets of
   * gradients run backward. */
  const uint32_t *net_off, *net_pin;
  const int64_t *send_ns, *recv_ns; /* [n_types * n_nets]; the least over different links */
  /* Incidences of item i: inc[inc_off[i] ..] is net * 2 + (i is the producer). */
  const uint32_t *inc_off, *inc;
  /* Shared weights: group g counts group_bytes[g] once per stage with a user; `own` lists the
   * groups of item i from own_off[i] on. */
  const uint64_t *group_bytes;
  const uint32_t *own_off, *own;
  const uint32_t *type_count;  /* [n_types] devices */
  const uint64_t *type_memory; /* [n_types] bytes; 0: no limit */
  const uint32_t *stage_type;  /* [n_stages] in the given order; NULL: any order */
  bool p2p;                    /* a net is sent once per stage that receives it; else once */
  bool overlap; /* a load is the largest of compute, received and sent; else their sum */
  bool stash;   /* activations of stage j of K are held K - j times */
} psplit_items;

/* Attempt 0 is the best guess, deterministic; others are drawn from `seed` and their number. The
 * same arguments must give the same result. Called by one thread at a time. */
typedef struct psplit_proposer {
  void *user;
  uint32_t n_attempts; /* number of attempts, >= 1 */
  /* Announces the items of the following calls; may be NULL. */
  psplit_code (*begin)(void *user, const psplit_items *items, psplit_diag *diag);
  /* out_stage[n_items]; out_type[n_stages]: the type of each stage's device, NONE for empty stages.
   * Infeasible proposals are ignored. Errors: any, which ends the solver. */
  psplit_code (*stages)(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                        uint32_t *out_stage, uint32_t *out_type, psplit_diag *diag);
  /* out_key[n_items]: priorities of a topological order, least first. */
  psplit_code (*keys)(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                      uint32_t *out_key, psplit_diag *diag);
} psplit_proposer;

#ifdef __cplusplus
}
#endif
#endif
