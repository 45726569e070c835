/* What a supernode does, in a word or two, from the operators that it is made of. */
#ifndef PSPLIT_PASSES_KIND_H
#define PSPLIT_PASSES_KIND_H

#include <psplit/snapshot.h>

#include "base.h"

/* "attention", "LayerNorm", "conv + add + ReLU", "MLP"; where nothing is recognised the operators
 * that take longest. Needs nodes, members and weight_bytes of the group. In `arena`, or static;
 * NULL when out of memory. O(members * operators told apart). */
const char *psplit_i_kind_of(const psplit_snapshot_node *nodes, const psplit_snapshot_group *group,
                             psplit_i_arena *arena);

#endif
