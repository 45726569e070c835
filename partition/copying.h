/* Splits of few nodes in which stages may compute again what others have computed: the best one, by
 * trying all.
 *
 * A node has a stage, its home; nodes of one group have the same one. Homes never decrease along a
 * tensor. A stage behind a node's home may hold a copy of it besides. What a stage holds has its
 * inputs there: made in the stage, or received from the maker's home. A stage takes the time of all
 * that it holds, and what it receives and sends; where latency is a message's, each pair of stages
 * takes that once. Memory has no limit here. */
#ifndef PSPLIT_PARTITION_COPYING_H
#define PSPLIT_PARTITION_COPYING_H

#include "budget.h"

enum { PSPLIT_I_COPYING_MOST = 64, PSPLIT_I_COPYING_STAGES = 16 };

/* A tensor, or a price of a cut that is no tensor. */
typedef struct psplit_i_copying_net {
  uint32_t producer;
  uint64_t readers; /* nodes, bits; all behind the producer */
  int64_t send_ns, recv_ns;
  bool sendable;
  /* It is paid for, as computing, by a stage that is home to a reader and holds no producer, and by
   * the producer's home: nothing is sent. */
  bool price;
} psplit_i_copying_net;

typedef struct psplit_i_copying {
  uint32_t n_nodes, n_nets, n_stages; /* at most MOST, MOST and STAGES of above */
  /* [n_nodes], and nodes stand in a topological order. Groups need not be convex: what has to share
   * a stage does. */
  const uint32_t *group; /* below n_nodes */
  const uint32_t *pin;   /* stage, or PSPLIT_NONE */
  const int64_t *ns;     /* [n_stages * n_nodes] by stage; PSPLIT_TIME_FORBIDDEN */
  /* Nodes, bits: that may be copied; whose homes are all stages together; that make outputs. */
  uint64_t copyable, live, outputs;
  const psplit_i_copying_net *net;
  int64_t message_ns; /* 0: tensors take all there is */
  bool overlap;       /* a load is its largest part, not the sum */
  /* Tensors may go by way of stages in between, and from copies: what each stage takes at least. */
  bool any_way;
} psplit_i_copying;

typedef struct psplit_i_copying_split {
  int64_t value_ns;                         /* the largest load; INT64_MAX: there is no split */
  uint64_t home[PSPLIT_I_COPYING_STAGES];   /* nodes, bits */
  uint64_t copied[PSPLIT_I_COPYING_STAGES]; /* copies that the stage holds, bits */
} psplit_i_copying_split;

/* The best split below `below_ns`, if there is one, and the best that was found if the budget ends
 * before. *out_bound_ns: no split is below it; below_ns if there is none below, 0 if the budget
 * ended. Each stage has a live node at home and, but by any way, sends a tensor or makes an output.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_copying_solve(const psplit_i_copying *problem,
                                                   int64_t below_ns, psplit_i_budget *budget,
                                                   psplit_diag *diag, psplit_i_copying_split *out,
                                                   int64_t *out_bound_ns);

/* The largest load. O(stages * nets). */
int64_t psplit_i_copying_value(const psplit_i_copying *problem,
                               const psplit_i_copying_split *split);

#endif
