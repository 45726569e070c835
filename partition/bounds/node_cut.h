/* Bounds on any placement: totals, and the least load of any set that holds a given cluster, by a
 * minimum cut. */
#ifndef PSPLIT_PARTITION_NODE_CUT_H
#define PSPLIT_PARTITION_NODE_CUT_H

#include "automaton.h"
#include "budget.h"
#include "flow.h"

/* max(total / devices, heaviest cluster), for any placement. */
int64_t psplit_i_simple_bound(const psplit_i_instance *instance,
                              const psplit_i_automaton *automaton);
/* The same from work and messages alone, also valid where stages pass on tensors of others. */
int64_t psplit_i_total_any_route(const psplit_i_instance *instance,
                                 const psplit_i_automaton *automaton);

/* Least costs of nets over the device types that pay for transfers, send[n_nets] and recv[n_nets];
 * least[n]: least times of clusters over the types that do not. False: no type pays. */
bool psplit_i_least_costs(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                          int64_t *send, int64_t *recv, int64_t *least);

/* What a stage that holds a cluster alone takes at most: no bound by it is above. */
typedef struct psplit_i_lone_load {
  int64_t most; /* ns */
  uint32_t cluster;
} psplit_i_lone_load;

/* What minimum cuts around single clusters start from. */
typedef struct psplit_i_cut_start {
  int64_t *send, *recv, *least; /* psplit_i_least_costs */
  psplit_i_lone_load *lone;     /* [n] the largest first */
  uint32_t *all;                /* [n] all clusters, as their own numbers */
} psplit_i_cut_start;

/* Fills *out, in the arena; a cluster alone takes `messages` (ns) more. *out_any: some type pays
 * for transfers; otherwise there is nothing to cut, and loads are not listed. Errors: NOMEM.
 * O(types * (n + pins) + n log n). */
PSPLIT_MUST_USE psplit_code psplit_i_cut_start_init(const psplit_i_instance *instance,
                                                    const psplit_i_automaton *automaton,
                                                    int64_t messages, psplit_i_arena *arena,
                                                    psplit_i_cut_start *out, bool *out_any);

/* Clusters of which a cut selects a set, and what the set pays for its members and its nets. */
typedef struct psplit_i_cut_costs {
  const uint32_t *cluster; /* [n] the clusters to select from */
  const uint32_t *local; /* [instance->n] index of each in cluster[], or NONE if it is not there */
  uint32_t n;
  const int64_t *weight;      /* [instance->n] cost of a member */
  const int64_t *send, *recv; /* [n_nets] cost of a net that leaves the set, or enters it */
} psplit_i_cut_costs;

/* Builds the network whose source sides are the sets of `costs`: nodes 0..n-1 are the clusters, and
 * node n is the sink. Arc 2 * local[i] leads from cluster i to the sink and has its weight as
 * capacity; nets are counted if their producer is among the clusters. False: out of memory. */
bool psplit_i_set_network(psplit_i_flow *flow, const psplit_i_instance *instance,
                          const psplit_i_cut_costs *costs);

/* Largest over clusters v of the least load of a set with v, by min cut; raises *inout_bound. Valid
 * for any placement. Looks at the `most_clusters` clusters that are heaviest with their nets.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_node_cut_bound(const psplit_i_instance *instance,
                                                    const psplit_i_automaton *automaton,
                                                    int64_t limit, uint32_t most_clusters,
                                                    psplit_i_budget *budget, int64_t *inout_bound);

#endif
