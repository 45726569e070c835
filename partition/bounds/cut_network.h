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
/* Nothing but source and sink; keeps memory. */
void psplit_i_cut_network_begin(psplit_i_cut_network *network);
/* A new node; the source when out of memory. */
uint32_t psplit_i_cut_network_node(psplit_i_cut_network *network);
/* Costs `cap` where `from` is on the source's side and `to` is not, which nothing into the source
 * or out of the sink can be; 0 or less: nothing. */
void psplit_i_cut_network_arc(psplit_i_cut_network *network, uint32_t from, uint32_t to,
                              int64_t cap);
/* Raises *inout_value, 0 for a network that was just begun, to the minimum cut, up to `enough`:
 * what was found before what has been added since counts. Less where the budget ends before. False
 * when out of memory, now or before. */
bool psplit_i_cut_network_raise(psplit_i_cut_network *network, int64_t enough,
                                psplit_i_budget *budget, int64_t *inout_value);
/* After that, if neither `enough` nor the budget ended it: the sides of a minimum cut, in
 * network->reached. False when out of memory, now or before. */
bool psplit_i_cut_network_sides(psplit_i_cut_network *network);
/* Both: the minimum cut, in *out_value, and its sides. False where the budget ends before:
 * *out_value is no more than the cut then; or out of memory. */
bool psplit_i_cut_network_run(psplit_i_cut_network *network, psplit_i_budget *budget,
                              int64_t *out_value);
/* The same by trees, which is faster where paths are short and many. */
bool psplit_i_cut_network_run_trees(psplit_i_cut_network *network, psplit_i_budget *budget,
                                    int64_t *out_value);

#endif
