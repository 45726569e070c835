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

/* out[n]: of all clusters, the largest first, with `messages` (ns) for each; send, recv and least
 * are those of psplit_i_least_costs. O(n log n + pins). */
void psplit_i_lone_loads(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                         const int64_t *send, const int64_t *recv, const int64_t *least,
                         int64_t messages, psplit_i_lone_load *out);

/* What minimum cuts around single clusters start from. */
typedef struct psplit_i_cut_start {
  int64_t *send, *recv, *least; /* psplit_i_least_costs */
  psplit_i_lone_load *lone;     /* [n] the largest first */
  uint32_t *all;                /* [n] all clusters, as their own numbers */
} psplit_i_cut_start;

/* Fills *out, in the arena, with `messages` as of psplit_i_lone_loads. *out_any: some type pays for
 * transfers; otherwise there is nothing to cut, and loads are not listed. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cut_start_init(const psplit_i_instance *instance,
                                                    const psplit_i_automaton *automaton,
                                                    int64_t messages, psplit_i_arena *arena,
                                                    psplit_i_cut_start *out, bool *out_any);

/* Network of cluster[n], each numbered in local[] (NONE: not among them), whose source sides are
 * the sets S of them: arc 2 * local[i], to the sink, node n, pays w[i] of a member i, and arcs of
 * nets produced among them pay what S sends or receives. False: out of memory. */
bool psplit_i_set_network(psplit_i_flow *flow, const psplit_i_instance *instance,
                          const uint32_t *cluster, uint32_t n, const uint32_t *local,
                          const int64_t *w, const int64_t *send, const int64_t *recv);

/* Largest over clusters v of the least load of a set with v, by min cut; raises *inout_bound. Valid
 * for any placement. Looks at the `most_clusters` clusters that are heaviest with their nets.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_node_cut_bound(const psplit_i_instance *instance,
                                                    const psplit_i_automaton *automaton,
                                                    int64_t limit, uint32_t most_clusters,
                                                    psplit_i_budget *budget, int64_t *inout_bound);

#endif
