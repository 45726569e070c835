/* Blocks that repeat: the layers of a model, found by their structure and named by their scopes. */
#ifndef PSPLIT_PASSES_REPEAT_H
#define PSPLIT_PASSES_REPEAT_H

#include <psplit/snapshot.h>

#include "base.h"

/* What there is to compare: supernodes in topological order. */
typedef struct psplit_i_repeat_input {
  uint32_t n;
  const uint64_t *shape;    /* [n] equal where the operators inside and their wiring are */
  const char *const *scope; /* [n] dotted, "" where there is none */
  uint32_t n_edges;
  const psplit_snapshot_edge *edges; /* by from, to */
} psplit_i_repeat_input;

/* Runs of equal blocks: consecutive supernodes whose shapes come again, with the same edges within
 * every block. Of overlapping runs the one that hides most. A run whose numbers in scope names do
 * not count its blocks up is left out, unless there are no scopes at all. Titles are scopes with
 * the numbers of all blocks in brackets: "encoder.layers.[0-11]"; "" without scopes. Sorted by
 * `first`; everything lives in `arena`. Errors: NOMEM. O(n * longest block), with blocks of at most
 * 2^28 / n supernodes. */
PSPLIT_MUST_USE psplit_code psplit_i_repeats_find(const psplit_i_repeat_input *input,
                                                  psplit_i_arena *arena, psplit_diag *diag,
                                                  psplit_snapshot_repeat **out_repeats,
                                                  uint32_t *out_n);

#endif
