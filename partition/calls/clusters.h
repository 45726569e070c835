/* A problem of calls in the form that the bound on blocks in a row reads. */
#ifndef PSPLIT_PARTITION_CALLS_CLUSTERS_H
#define PSPLIT_PARTITION_CALLS_CLUSTERS_H

#include "moves.h"

enum { PSPLIT_I_CALLS_TYPES = 3 /* of accelerators */ };

/* Nodes that no placement can gain by telling apart, in topological order, branch after branch. A
 * *separator* is a cluster that all others are before or behind. A net that jumps over separators
 * ends at the first: those behind wait for its producer over the separator anyhow. Edges that carry
 * nothing are nets that cost nothing. No placement costs less for what is there. */
typedef struct psplit_i_calls_clusters {
  uint32_t n, n_types;                   /* of accelerators */
  uint32_t *cluster;                     /* [nodes] NONE: it is left out */
  bool all;                              /* no node is left out */
  uint64_t memory[PSPLIT_I_CALLS_TYPES]; /* UINT64_MAX: no limit */
  uint32_t count[PSPLIT_I_CALLS_TYPES];  /* devices of a type */
  bool sends_to_each;                    /* each device that receives costs the sender */
  int64_t *time;                         /* [n_types * n] INF: cannot run there */
  int64_t *alone;                        /* [n] on CPUs; INF: cannot run there */
  uint64_t *bytes;                       /* [n] */
  uint32_t n_nets, *from;                /* [n_nets] ascending */
  uint32_t *to_off, *to;                 /* readers, ascending */
  uint32_t *out_off;                     /* [n + 1] nets of a cluster */
  uint32_t *in_off, *in;                 /* nets that a cluster reads */
  size_t net_stride;                     /* >= n_nets */
  int64_t *send, *recv;                  /* [n_types * net_stride] */
  uint32_t n_separators, *separator;     /* ascending */
} psplit_i_calls_clusters;

/* Arrays are the arena's. `limit`: a latency, of which a net may cost a small part and jump over
 * separators; main_only: only what leads to the end of the longest path.
 * n_separators 0: there are none, or more types than are told apart. O(n +
 * pins log pins). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_clusters_init(psplit_i_calls_clusters *clusters,
                                                         const psplit_i_calls *calls,
                                                         const psplit_i_calls_closure *closure,
                                                         int64_t limit, bool main_only,
                                                         psplit_i_arena *arena);

#endif
