/* Costs of cuts besides communication: layouts.
 *
 * ONNX Runtime on a CPU computes convolutions on blocked channels, and the operators that follow
 * (sums, activations, joins) too, as long as all of their inputs are blocked. A tensor
 * that crosses is in plain layout. So in the stage that receives it, its sum with a blocked tensor
 * is plain, and no longer fused into a convolution's kernel. Each later convolution converts its
 * input to blocks and its result back, until the residual run ends.
 *
 *   layout.c        which nodes work on blocks, and what must be in their stage for that
 *   layout_price.c  the cost where it is not */
#ifndef PSPLIT_PASSES_LAYOUT_H
#define PSPLIT_PASSES_LAYOUT_H

#include "planner.h"

/* Layouts of the whole model when it runs unsplit. */
typedef struct psplit_i_layouts {
  const psplit_planner *planner;
  uint32_t *position; /* [n_nodes] position in the topological order */
  uint8_t *blocked;   /* [n_nodes] it works on blocks */
  uint8_t *inside;    /* [n_nodes] its work is fused into the kernel of its input */
  /* For a node that keeps blocks: the nodes that bring the first tensor of its run into blocks. The
   * node is plain in a stage that lacks one of them. None of them precedes another. */
  uint32_t *source_begin, *source_end; /* [n_nodes] into `sources` */
  PSPLIT_VEC(uint32_t) sources;
} psplit_i_layouts;

/* Arrays live in `arena`, but for `sources`: psplit_i_layouts_fini in any case.
 * O(edges * sources / 64). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_layouts_find(const psplit_planner *planner,
                                                  psplit_i_arena *arena, psplit_diag *diag,
                                                  psplit_i_layouts *out);
void psplit_i_layouts_fini(psplit_i_layouts *layouts);

/* Whether the node counts, that is, whether it is neither dead nor folded. */
bool psplit_i_layouts_counts(const psplit_i_layouts *layouts, uint32_t node);

/* Layout prices of cuts, as nets of a bare problem: a stage with one of the readers but without the
 * maker takes recv_ns more, and the maker's stage takes send_ns more for each such stage. These are
 * times of computation. */
typedef struct psplit_i_layout_prices {
  uint32_t n;
  uint32_t *maker;            /* [n] node */
  uint32_t *off;              /* [n + 1] into reader */
  uint32_t *reader;           /* nodes */
  int64_t *recv_ns, *send_ns; /* [n * n_classes], by price, then device class */
} psplit_i_layout_prices;

/* There are none (n is 0) if no device's runtime has layouts of its own. Needs COSTS and LIVE.
 * Arrays live in `arena`. As psplit_i_layouts_find. */
PSPLIT_MUST_USE psplit_code psplit_i_layout_prices_find(const psplit_planner *planner,
                                                        psplit_i_arena *arena, psplit_diag *diag,
                                                        psplit_i_layout_prices *out);

#endif
