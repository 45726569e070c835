/* The weight axis: what a downset of some weight must and cannot hold, and what crossing it costs.
 * weight_axis_buckets.c builds buckets and windows, weight_axis_network.c the network of one,
 * weight_axis_cut.c its minimum cuts, weight_axis.c and reachability.c the programs over them. */
#ifndef PSPLIT_PARTITION_WEIGHT_AXIS_INSIDE_H
#define PSPLIT_PARTITION_WEIGHT_AXIS_INSIDE_H

#include "automaton.h"
#include "budget.h"
#include "instance.h"
#include "weight_axis.h"

enum { PSPLIT_I_MAX_STEPS = 24 };

/* The least crossing cost once nets up to a threshold count. */
typedef struct psplit_i_crossing_step {
  uint32_t bucket; /* counts for partner buckets >= (in) or <= (out) this one */
  int64_t value;
} psplit_i_crossing_step;

typedef struct psplit_i_cluster_rank {
  int64_t key, sum; /* sum: min_time of this and all before (or after) it */
  uint32_t cluster;
} psplit_i_cluster_rank;

typedef struct psplit_i_weight_axis_build {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_arena arena;
  psplit_i_weight_axis *out;
  psplit_i_budget *budget;
  int64_t limit, reach; /* reach: most min_time of one stage */
  bool weighed;         /* cuts know what their downsets weigh */
  uint32_t most_exact;  /* clusters between separators whose ancestors are counted exactly */
  uint32_t most_close;  /* clusters between two separators, at most: once ranked */
  /* by_in: clusters by the largest weight of a downset without them, the total min_time less that
   * of the descendants. by_out: clusters by the least weight of a downset with them, the min_time
   * of the ancestors. Both count the cluster itself. */
  psplit_i_cluster_rank *by_in, *by_out;
  uint32_t *tin, *tout;        /* [n] free in bucket q iff tout < q < tin */
  int64_t *weight_in;          /* [n_buckets + 1] of what all of a bucket hold; where weighed */
  uint32_t *run;               /* [n_buckets + 1] same number: the same free in neighbours */
  uint32_t *net_in, *net_out;  /* [n_nets] largest tin, least tout of the pins */
  uint32_t *net_of_pin;        /* [pins of all nets] */
  int64_t *cost_in, *cost_out; /* [n_nets] least recv / send over paying types */
  /* What messages take a stage with something before it at least to receive, and one with something
   * behind it to send; part of what crosses where there is a trunk. */
  int64_t least_in, least_out;
  bool has_trunk;
  uint32_t *free_off, *free_cluster, *near_off, *near_net; /* by bucket */
  psplit_i_crossing_step *in, *outgoing;                   /* [n_buckets * MAX_STEPS] */
  uint8_t *n_in, *n_outgoing;
} psplit_i_weight_axis_build;

/* Ranks clusters by the weight of their ancestors and descendants: exact between separators
 * (clusters comparable with all others) that are close, from below by longest paths elsewhere, and
 * where the budget is spent. Errors, of these and those below: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_weight_axis_rank(psplit_i_weight_axis_build *x);
/* Cuts the axis into at most n_cells buckets, and lists what is free in each; halves n_cells while
 * that is too much. Leaves out->n_buckets 0 where next to nothing is forced anywhere. */
PSPLIT_MUST_USE psplit_code psplit_i_weight_axis_divide(psplit_i_weight_axis_build *x,
                                                        uint32_t n_cells);
/* The cheapest crossings of every bucket. Parallel; the same for any number of threads. */
PSPLIT_MUST_USE psplit_code psplit_i_weight_axis_cut(psplit_i_weight_axis_build *x, int n_threads);

/* --- what the programs over buckets read --- */

/* Where the steps of pairs of buckets stand while q1 falls for one q2, and q2 rises. */
typedef struct psplit_i_weight_axis_reader {
  const psplit_i_weight_axis_build *x;
  uint8_t *at_in; /* [n_buckets] */
  uint32_t q2;
  uint8_t at_out;
} psplit_i_weight_axis_reader;

/* Turns to the next q2; q1 falls from here on. */
static inline void psplit_i_weight_axis_turn(psplit_i_weight_axis_reader *r, uint32_t q2) {
  r->q2 = q2;
  r->at_out = 0;
}

/* Lower bounds on what a stage receives and sends that begins at a downset of bucket q1 and ends at
 * one of q2. */
static inline void psplit_i_weight_axis_read(psplit_i_weight_axis_reader *r, uint32_t q1,
                                             int64_t *out_in, int64_t *out_out) {
  const psplit_i_weight_axis_build *x = r->x;
  const uint32_t last = x->out->n_buckets - 1;
  const psplit_i_crossing_step *in = x->in + (size_t)q1 * PSPLIT_I_MAX_STEPS;
  const psplit_i_crossing_step *out = x->outgoing + (size_t)r->q2 * PSPLIT_I_MAX_STEPS;
  const uint8_t n_in = q1 > 0 ? x->n_in[q1] : 0, n_out = r->q2 < last ? x->n_outgoing[r->q2] : 0;
  while (r->at_in[q1] < n_in && in[r->at_in[q1]].bucket <= r->q2) r->at_in[q1]++;
  while (r->at_out < n_out && out[r->at_out].bucket >= q1) r->at_out++;
  *out_in = r->at_in[q1] ? in[r->at_in[q1] - 1].value : 0;
  *out_out = r->at_out ? out[r->at_out - 1].value : 0;
  const int64_t in_ns = x->out->low[q1] > 0 ? x->least_in : 0;
  const int64_t out_ns = x->out->high[r->q2] < x->automaton->total_min_time ? x->least_out : 0;
  *out_in = !x->has_trunk ? *out_in + in_ns : *out_in < in_ns ? in_ns : *out_in;
  *out_out = !x->has_trunk ? *out_out + out_ns : *out_out < out_ns ? out_ns : *out_out;
}

/* --- reachability.c --- */

/* Raises the bound by weights that are not rounded to buckets; one kind of device. */
PSPLIT_MUST_USE psplit_code psplit_i_weight_axis_reach(psplit_i_weight_axis_build *x,
                                                       int64_t *inout_bound);

#endif
