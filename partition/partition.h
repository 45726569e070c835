/* partition: bare weighted DAGs, the cost of a stage, bounds, solvers, the independent checker and
 * the schedule simulator. Knows nothing of ONNX. Public face: <psplit/partition.h>.
 *
 * One way through the folder:
 *   problem.c   is the caller's problem valid?          read_json.c  problems from files
 *   core.c      problem -> core: items, order, nets     kernel.c     lossless reductions
 *   machine.c   which device may take the next stage    walk.c       load of a growing stage
 *   slice.c     best cut of one topological order       search.c     local search over orders
 *   anneal.c    label moves: wide, non-contiguous, chunks, latency
 *   flow.c      min cut                                 bound.c      cheap and min-cut bounds
 *   wamc.c      weight-axis min-cut bound and windows   exact.c      DP over downsets
 *   coarsen.c   acyclic coarsening                      multilevel.c a million nodes
 *   brute.c     branch and bound for small variants     solve.c      the portfolio
 *   check.c     the independent checker                 schedule.c   the simulator
 *
 * Every table here is indexed by items: sets of nodes that share a stage in some optimal solution.
 * Items are numbered topologically: every order edge goes from a smaller to a larger id. */
#ifndef PSPLIT_PARTITION_INTERNAL_H
#define PSPLIT_PARTITION_INTERNAL_H

#include <psplit/partition.h>

#include "base.h"

/* Above every sum of a valid problem (they stay below 2^60), and safe to add twice. */
#define PSPLIT_I_INF (INT64_C(1) << 61)

/* --- core.c --------------------------------------------------------------------------------- */

/* A problem in the form the solvers use. Costs depend on the device type: an entry of
 * problem->devices. Arrays with a type are type-major: w[t * n + v], send[t * n_nets + e]. */
typedef struct psplit_core {
  uint32_t n, n_types, n_nets, n_groups, n_stages;
  int64_t *w;             /* [n_types * n]; INF: cannot run there */
  uint64_t *weight_bytes; /* [n] */
  uint64_t *act_bytes;    /* [n] */
  uint32_t *n_counted;    /* [n] nodes that make a stage non-empty */
  uint32_t *pin;          /* [n] stage or NONE */
  uint32_t *pred_off, *pred, *succ_off, *succ;
  /* Net e has pins net_pin[net_off[e] .. net_off[e+1]): the producer first, then consumers in
   * ascending order, all distinct, at least two. */
  uint32_t *net_off, *net_pin;
  int64_t *send, *recv; /* [n_types * n_nets] */
  bool *net_forward;    /* [n_nets] producer comes before every consumer in any stage order */
  /* Incidences of item v: inc[inc_off[v] .. ): net * 2 + (v is the producer). */
  uint32_t *inc_off, *inc;
  /* Shared weights: group g counts group_bytes[g] once per stage with an item of it. */
  uint64_t *group_bytes;
  uint32_t *group_off, *group_item; /* by group */
  uint32_t *own_off, *own;          /* groups by item */
  uint32_t *item_of_node;           /* [problem->n_nodes] */
  int64_t *total_w;                 /* [n_types] sum of w; INF when some item is forbidden */
  uint32_t n_counted_items;
  bool has_memory; /* some type has a limit and some item has bytes */
  bool has_pins;
  bool p2p; /* sends count per receiving stage */
  bool overlap;
  bool stash;
  bool all_forward; /* every net is forward */
  const psplit_problem *problem;
  psplit_arena arena; /* owns every array above */
} psplit_core;

/* Builds the core of a validated problem with the nodes of each class of `merge` (union-find
 * parents over nodes, may be NULL) together. Contracts keep-together classes, uncuttable nets and
 * cycles between contracted nodes; sums identical nets; drops nets with one pin.
 * O((nodes + pins) log nodes). Errors: INFEASIBLE (pins that contradict), NOMEM. */
psplit_code psplit_i_core_init(psplit_core *core, const psplit_problem *problem,
                               const uint32_t *merge, psplit_diag *diag);
void psplit_i_core_fini(psplit_core *core);

/* Union-find over dense ids: the root is always the smallest member, so results do not depend on
 * the order of unions. */
uint32_t psplit_i_find(uint32_t *parent, uint32_t x);
bool psplit_i_unite(uint32_t *parent, uint32_t a, uint32_t b);

/* --- problem.c ------------------------------------------------------------------------------ */

psplit_code psplit_i_problem_validate(const psplit_problem *problem, psplit_diag *diag);

/* Ticks to send (or receive) net e on class c. */
int64_t psplit_i_net_ns(const psplit_problem *problem, uint32_t net, uint32_t class_id, bool send);

/* Name of a node for messages, in `buffer` when it has none. */
const char *psplit_i_node_name(const psplit_problem *problem, uint32_t node, char buffer[32]);

#endif
