/* Routes of tensors between stages with missing links. Stages send only to later ones, so stage
 * numbers increase along a route, and intermediate stages forward the tensor. */
#ifndef PSPLIT_BASE_ROUTE_H
#define PSPLIT_BASE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

/* Fills out_next[n * n]: out_next[i * n + j], i < j, is the next stage on the route from i to j: j
 * itself for a direct link, PSPLIT_NONE without a route. link_ns[n * n] is the time of a hop,
 * negative without a link. A direct link is always used; otherwise the route has the fewest hops,
 * then the least time, then the lowest next stage. scratch[2 * n]. O(n^3). */
void psplit_i_route_table(uint32_t n, const int64_t *link_ns, int64_t *scratch, uint32_t *out_next);

typedef struct psplit_i_hop {
  uint32_t from, to;
} psplit_i_hop;

/* The hops that bring a tensor of stage `home` to stage `to`: directly from home; else directly
 * from the first stage that holds the tensor; else from home along `next`, without stages on the
 * route that hold it already. held[n] equals `stamp` for stages that hold the tensor, and is
 * updated for the destinations of the hops. Receivers must be processed in ascending order.
 * out_hops has room for n; returns their number, 0 without a route. O(n). */
uint32_t psplit_i_route(uint32_t n, const uint32_t *next, uint32_t home, uint32_t to,
                        uint32_t *held, uint32_t stamp, psplit_i_hop *out_hops);

#endif
