/* The load of a stage that grows and shrinks. */
#ifndef PSPLIT_PARTITION_LOAD_TRACKER_H
#define PSPLIT_PARTITION_LOAD_TRACKER_H

#include "automaton.h"

/* The load of a set of items that grows and shrinks one item at a time: O(types * degree). */
typedef struct psplit_walk {
  const psplit_core *core;
  const uint32_t *times_sent; /* [n_nets] receivers to charge the producer for; NULL: 1 */
  int64_t *w, *recv, *send;   /* [n_types] */
  uint32_t *n_forbidden;      /* [n_types] items inside that the type cannot run */
  uint64_t weight_bytes, act_bytes;
  uint32_t n_counted, pin, n_pinned;
  uint32_t *n_in;         /* [n_nets] pins inside */
  bool *has_source;       /* [n_nets] the producer is inside */
  uint32_t *n_users;      /* [n_groups] */
  uint32_t *paid, n_paid; /* types that pay communication */
} psplit_walk;

PSPLIT_MUST_USE psplit_code psplit_i_walk_init(psplit_walk *walk, const psplit_core *core,
                                               psplit_arena *arena);
void psplit_i_walk_add(psplit_walk *walk, uint32_t item);
void psplit_i_walk_remove(psplit_walk *walk, uint32_t item);
/* Empties the set; `items` are exactly those inside. */
void psplit_i_walk_clear(psplit_walk *walk, const uint32_t *items, uint32_t n);

/* Load of the set as a stage made by `move`; INF when it does not fit the device. */
int64_t psplit_i_walk_load(const psplit_walk *walk, const psplit_machine *machine,
                           const psplit_move *move);

#endif
