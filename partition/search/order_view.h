/* An instance with its clusters and nets numbered as one order has them: what a sweep along the
 * order reads then lies in the order in which it is read. Loads of ranges are what they are. */
#ifndef PSPLIT_PARTITION_ORDER_VIEW_H
#define PSPLIT_PARTITION_ORDER_VIEW_H

#include "instance.h"

typedef struct psplit_i_order_view {
  psplit_i_instance instance; /* what load trackers read is its own, the rest the original's */
  uint32_t *cluster;          /* [n] the i-th of the order: i */
  uint32_t *net;              /* [n_nets of the original] its number here */
  uint32_t *times_sent;       /* [n_nets] */
} psplit_i_order_view;

/* With no order yet. Arrays live in `arena`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_order_view_init(psplit_i_order_view *view,
                                                     const psplit_i_instance *instance,
                                                     psplit_i_arena *arena);
/* Numbers by another order. times_sent: by net of the original; or NULL. O(n + pins). */
void psplit_i_order_view_set(psplit_i_order_view *view, const psplit_i_instance *instance,
                             const uint32_t *order, const uint32_t *times_sent);

#endif
