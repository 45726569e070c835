/* Branches of nested.c: what is known of each cluster in a branch, and the cheapest split of the
 * branch when loads are weighted by shares. */
#ifndef PSPLIT_PARTITION_NESTED_INSIDE_H
#define PSPLIT_PARTITION_NESTED_INSIDE_H

#include "closure.h"
#include "cut_network.h"
#include "nested.h"
#include "open_heap.h"

enum {
  PSPLIT_I_NESTED_BITS = 10,
  PSPLIT_I_NESTED_WHOLE = 1 << PSPLIT_I_NESTED_BITS /* what the shares sum to */
};

typedef struct psplit_i_nested_branch {
  int64_t least;            /* no split of it is below */
  uint32_t number, cluster; /* NONE: every cluster's stage is known */
  uint8_t boundary;         /* by which it is divided, with the cluster */
  uint8_t *lo, *hi;         /* [n] the stages of each cluster */
  int32_t share[PSPLIT_I_NESTED_STAGES];
} psplit_i_nested_branch;
PSPLIT_I_IS_OPEN(psplit_i_nested_branch);

struct psplit_i_nested_solver {
  const psplit_i_instance *instance;
  const int64_t *w, *send, *recv;
  uint32_t n;
  int n_stages;
  bool all_used;
  double gap_frac;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_i_closure closure;
  uint32_t *pred_off, *pred; /* order edges that no others imply */
  uint32_t *last_off, *last; /* consumers of each net, but those that come before others of it */
  psplit_i_cut_network network;
  PSPLIT_VEC(psplit_i_nested_branch) open; /* a heap, the least in front */
  PSPLIT_VEC(uint8_t *) spare;             /* intervals that no branch has any more */
  uint32_t n_opened;
  uint64_t n_divided;
  uint64_t *free; /* [closure.words] clusters of which the stage is not known, as bits */
  uint32_t (*place)[PSPLIT_I_NESTED_STAGES]; /* [n] nodes of the network by boundary */
  int64_t (*cost)[PSPLIT_I_NESTED_STAGES];   /* [n] by stage, in shares */
  uint32_t (*seen)[PSPLIT_I_NESTED_STAGES];  /* [n] cuts of a branch with it in front */
  uint32_t n_cuts;                           /* of the branch */
  uint8_t *now, *best;                       /* [n] stages */
  int64_t load[PSPLIT_I_NESTED_STAGES];      /* of `now` */
  int64_t work;                              /* of all clusters */
  int64_t above;     /* no split takes more; INF: too much for the networks */
  int64_t known;     /* no larger split matters */
  bool begun, found; /* found: `best` is one of `known` */
  bool failed;
};

static inline uint64_t psplit_i_nested_pins(const psplit_i_nested_solver *d) {
  return d->instance->net_off[d->instance->n_nets];
}

/* Whether the cluster's stage is not known. */
static inline bool psplit_i_nested_free(const psplit_i_nested_branch *b, uint32_t i) {
  return b->lo[i] < b->hi[i];
}

/* nested_intervals.c */

/* Narrows all intervals; false where no split of the branch is better than what is known. */
bool psplit_i_nested_narrow(psplit_i_nested_solver *d, psplit_i_nested_branch *b);
/* Sets d->free, which psplit_i_nested_along reads; returns how many there are. */
uint64_t psplit_i_nested_find_free(psplit_i_nested_solver *d, const psplit_i_nested_branch *b);
/* What comes along where a cluster goes in front of boundary j (ahead) or behind it, and is not
 * there, for the boundaries it may be on both sides of. *out_end is of what comes along to the
 * first, or the last, of its stages. */
void psplit_i_nested_along(const psplit_i_nested_solver *d, const psplit_i_nested_branch *b,
                           uint32_t cluster, bool ahead, int64_t out[PSPLIT_I_NESTED_STAGES],
                           int64_t *out_end);

/* nested_cut.c */

/* Returns a lower bound on all splits of the branch, by its shares. d->now becomes the cheapest
 * split by these shares, with loads d->load and counted in d->seen; it is kept if it is better than
 * the best known. *out_whole: the budget sufficed to find it. d->failed: NOMEM. */
int64_t psplit_i_nested_cheapest(psplit_i_nested_solver *d, const psplit_i_nested_branch *b,
                                 bool *out_whole);

#endif
