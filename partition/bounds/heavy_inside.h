/* Shared by the files that build the problem of the heavy clusters alone. */
#ifndef PSPLIT_PARTITION_HEAVY_INSIDE_H
#define PSPLIT_PARTITION_HEAVY_INSIDE_H

#include "heavy.h"
#include "vec.h"

enum { PSPLIT_I_MOST_FLUIDS = 4 };

/* Who receives a net, and who sends it, are looked at apart. */
typedef enum psplit_i_net_side {
  PSPLIT_I_RECEIVES,
  PSPLIT_I_SENDS,
  PSPLIT_I_N_SIDES
} psplit_i_net_side;

typedef struct psplit_i_fluid {
  int64_t min_time;          /* what it computes at least */
  uint64_t *before, *behind; /* [closure words] kept clusters that all of it comes behind, before */
  uint32_t n_pieces;
} psplit_i_fluid;

typedef struct psplit_i_heavy_build {
  const psplit_i_instance *instance;
  const psplit_i_closure *closure;
  psplit_i_budget *budget;
  psplit_i_arena scratch;
  int64_t *min_time; /* [n] least time over types */
  int64_t *time;     /* [n_types * n] with what has been left to it; INF: cannot run */
  int64_t *rest;     /* [n] least time over types that it has not left to others, if it left */
  double total;      /* of all clusters */
  bool take_over;    /* work that is left out may stay with others */
  uint64_t *kept, *coarse; /* [closure words] what is kept, and the heaviest of it */
  uint32_t *number;        /* [n] of those kept, else NONE */
  uint32_t *cluster;       /* [n_kept] by number */
  uint32_t n_kept;
  uint32_t n_fluids;
  psplit_i_fluid fluids[PSPLIT_I_MOST_FLUIDS];
  int64_t piece; /* what each piece of a fluid computes */
  /* Of the nets, by side: the kept clusters that are consumers, and what it costs. */
  uint32_t words;                  /* of n_kept bits */
  uint64_t *to[PSPLIT_I_N_SIDES];  /* [n_nets * words] by number */
  int64_t *cost[PSPLIT_I_N_SIDES]; /* [n_types * n_nets] */
} psplit_i_heavy_build;

/* Whether a cluster is heavy, and so kept. */
static inline bool psplit_i_is_kept(const psplit_i_heavy_build *x, uint32_t i) {
  return x->number[i] != PSPLIT_NONE;
}

/* Whether a set is empty. */
static inline bool psplit_i_no_bits(const uint64_t *row, uint32_t words) {
  for (uint32_t k = 0; k < words; k++)
    if (row[k]) return false;
  return true;
}

/* The largest amounts of work that nobody has, between the same clusters of `coarse`. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_fluids_find(psplit_i_heavy_build *x);

/* Sets x->to and x->cost to nets between kept clusters, x->time to what these have to compute then,
 * and x->rest. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_heavy_nets(psplit_i_heavy_build *x);

#endif
