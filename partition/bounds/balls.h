/* Balls around clusters: what a stage of limited weight that holds a cluster says of pairs nearby.
 *
 * With a length for each pair, a ball is the clusters nearest to its root, with a tree of shortest
 * paths. Let y be 1 for pairs in different parts, x for clusters in the root's part. Each cluster
 * of the ball has x >= 1 - (y along its path). The root's part weighs no more than T, so
 *
 *   sum over pairs of behind * y  >=  weight - T,
 *
 * with `behind` the weight whose path leads over the pair, `weight` that of the ball.
 *
 * A part also pays `alone` for each pair at its edge. With w_u x_u of the weight of a cluster u and
 * q of it, q <= alone: q x_u + q |x_v - x_u| >= q x_v. So as much of u's weight may count at v, and
 * does where v is nearer: from clusters beside the ball, too. */
#ifndef PSPLIT_PARTITION_BALLS_H
#define PSPLIT_PARTITION_BALLS_H

#include "arena.h"
#include "cluster_vectors.h"

/* Pairs, each once. */
typedef struct psplit_i_ball_graph {
  uint32_t n, n_pairs;
  const double *weight;       /* [n] of clusters */
  uint32_t *off, *to, *which; /* [n + 1], [off[n]] neighbours and pairs with them */
  double *cost, *alone;       /* [n_pairs] */
  uint32_t *one_of;           /* [pairs->off[n]] of the problem's pairs, where to > from */
} psplit_i_ball_graph;

typedef struct psplit_i_balls {
  const psplit_i_ball_graph *graph;
  double *distance, *left, *moved, *behind; /* [n]; left: weight that is not counted elsewhere */
  uint32_t *state, *at, *entry, *before; /* [n] at: in the heap; entry: of the path's last pair */
  uint32_t *heap, *order, *seen;         /* [n] order: by distance */
  uint32_t n_heap, n_order, n_seen;
  uint32_t n_ball;  /* the ball are the first of `order` */
  uint64_t n_looks; /* at neighbours: the work of the last ball */
} psplit_i_balls;

/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_ball_graph_make(const psplit_i_pairs *pairs,
                                                     psplit_i_arena *arena,
                                                     psplit_i_ball_graph *out);
PSPLIT_MUST_USE psplit_code psplit_i_balls_init(psplit_i_balls *balls,
                                                const psplit_i_ball_graph *graph,
                                                psplit_i_arena *arena);

/* Grows the ball around a cluster for which the sum of lengths times `behind`, divided by the
 * weight above `most`, is least. Returns that ratio; infinity if no ball weighs more than
 * `most`. */
double psplit_i_ball_grow(psplit_i_balls *balls, uint32_t root, const double *length, double most);

/* After that: sets balls->behind of the ball's clusters, for the last pair of each one's path.
 * Returns the weight behind the root: that of the ball, with what counts of clusters beside it. */
double psplit_i_ball_weigh(psplit_i_balls *balls);

#endif
