/* The way of a tensor between stages of which some have no direct link. Stages send to later ones
 * only, so a way goes up in stage numbers, and the stages in between receive the tensor and send it
 * on. */
#ifndef PSPLIT_BASE_ROUTE_H
#define PSPLIT_BASE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

/* Fills out_next[n * n]: out_next[i * n + j], i < j, is the stage that a tensor goes to from i on
 * its way to j: j itself over a direct link, PSPLIT_NONE where there is no way. link_ns[n * n] is
 * what a hop takes, negative where there is no link. A direct link is always taken; else the way
 * has the fewest hops, of these the least time, of these the lowest next stage. scratch[2 * n].
 * O(n^3). */
void psplit_i_route_table(uint32_t n, const int64_t *link_ns, int64_t *scratch, uint32_t *out_next);

typedef struct psplit_i_hop {
  uint32_t from, to;
} psplit_i_hop;

/* The hops that bring a tensor of stage `home` to stage `to`: straight from home; else straight
 * from the first stage that holds the tensor; else from home by `next`, as far as no stage on the
 * way holds it yet. held[n] is `stamp` for stages that hold it, and becomes so for those that the
 * hops end in. Callers take receivers in ascending order. out_hops has room for n; returns how
 * many, 0 where there is no way. O(n). */
uint32_t psplit_i_route(uint32_t n, const uint32_t *next, uint32_t home, uint32_t to,
                        uint32_t *held, uint32_t stamp, psplit_i_hop *out_hops);

#endif
