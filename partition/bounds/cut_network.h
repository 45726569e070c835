/* A flow network whose minimum cut is wanted, and which may grow between cuts. For networks whose
 * source is one of their clusters see node_cut.h. */
#ifndef PSPLIT_PARTITION_CUT_NETWORK_H
#define PSPLIT_PARTITION_CUT_NETWORK_H

#include "tree_flow.h"

enum { PSPLIT_I_SOURCE = 0, PSPLIT_I_SINK = 1 }; /* nodes that there are from the start */

typedef struct psplit_i_cut_network {
  psplit_i_flow flow;
  psplit_i_tree_flow trees;
  PSPLIT_VEC(bool) reached; /* by node: on the source's side of the last cut */
  bool failed;              /* out of memory; then nothing is added any more */
} psplit_i_cut_network;     /* a zeroed one is empty; to be freed by fini */

void psplit_i_cut_network_fini(psplit_i_cut_network *network);
/* Begins a network with a source and a sink alone; keeps the memory of the one before. */
void psplit_i_cut_network_begin(psplit_i_cut_network *network);
/* A new node; the source when out of memory. */
uint32_t psplit_i_cut_network_node(psplit_i_cut_network *network);
/* Adds an arc, cut at a cost of `cap` when `from` is on the source side and `to` is not. Nothing is
 * added for a cap of 0 or less, or for arcs into the source or out of the sink, which cannot be
 * cut. */
void psplit_i_cut_network_arc(psplit_i_cut_network *network, uint32_t from, uint32_t to,
                              int64_t cap);
/* Raises *inout_value, which is 0 for a network that was just begun, to the minimum cut or up to
 * `enough`. The flow found before arcs were added is kept. Stops lower when the budget ends. False
 * when out of memory, now or before. */
bool psplit_i_cut_network_raise(psplit_i_cut_network *network, int64_t enough,
                                psplit_i_budget *budget, int64_t *inout_value);
/* After that, unless `enough` or the budget ended it: sets network->reached to the source side of a
 * minimum cut. False when out of memory, now or before. */
bool psplit_i_cut_network_sides(psplit_i_cut_network *network);
/* Both of the above: the value of a minimum cut and its sides. False if the budget ended before,
 * *out_value then being a lower bound on the cut, or if out of memory. */
bool psplit_i_cut_network_run(psplit_i_cut_network *network, psplit_i_budget *budget,
                              int64_t *out_value);
/* The same by trees, which is faster where paths are short and many. */
bool psplit_i_cut_network_run_trees(psplit_i_cut_network *network, psplit_i_budget *budget,
                                    int64_t *out_value);

#endif
