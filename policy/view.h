/* What a policy reads of a problem: scale, order of decisions, and features of items, all divided
 * by the ideal load, so that neither units nor sizes matter. */
#ifndef PSPLIT_POLICY_VIEW_H
#define PSPLIT_POLICY_VIEW_H

#include <psplit/proposer.h>

#include "network.h"

typedef struct psplit_i_view {
  const psplit_items *items;
  int64_t *least;  /* [n] least time over the types that can run an item */
  int64_t total;   /* of these */
  double ideal;    /* load if all devices had the same; at least the heaviest item, >= 1 */
  double *speed;   /* [n_types] of the least times, <= 1 */
  uint32_t *order; /* [n] topological: items in the order in which they are placed */
  /* [n] Bit L: not all that need the item, or itself, can run on the set L of types. Up to 6 types,
   * else no bit is set. */
  uint64_t *stuck;
  uint64_t bytes;       /* of all items, without groups and stashes */
  uint32_t *last_stage; /* [n] none behind it can hold the item and all that need it */
  psplit_i_policy_graph graph;
} psplit_i_view;

/* Orders: depth first from the sources, from the sinks, or by id; those behind are depth first from
 * the sources, too, with chance where there is a choice. */
enum { PSPLIT_I_N_FIXED_ORDERS = 3, PSPLIT_I_N_ORDERS = 8 };

/* Arrays are of `arena`. O((n + pins) types). Errors: NOMEM, LIMIT (sums overflow). */
PSPLIT_MUST_USE psplit_code psplit_i_view_init(psplit_i_view *view, const psplit_items *items,
                                               uint32_t order, psplit_i_arena *arena);

/* The least that a net takes on any type: table[n_types * n_nets] is send_ns or recv_ns. */
static inline int64_t psplit_i_least_of(const psplit_items *items, const int64_t *table,
                                        uint32_t net) {
  int64_t least = table[net];
  for (uint32_t t = 1; t < items->n_types; t++) {
    const int64_t ns = table[(size_t)t * items->n_nets + net];
    if (ns < least) least = ns;
  }
  return least;
}

#endif
