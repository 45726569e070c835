/* What cuts cost besides sending: layouts.
 *
 * ONNX Runtime on a CPU computes convolutions on blocks of channels, and what follows them (sums,
 * activations, joins) too, as long as all that it reads is in blocks. A tensor that crosses is
 * plain. So in the stage that receives it, a sum of it and a block is plain, and no longer part of
 * a convolution's kernel; each convolution behind brings its input into blocks and its result back,
 * until the residual run ends.
 *
 *   layout.c        which nodes work on blocks, and what has to be in their stage for that
 *   layout_price.c  what it costs where it is not */
#ifndef PSPLIT_PASSES_LAYOUT_H
#define PSPLIT_PASSES_LAYOUT_H

#include "planner.h"

/* Layouts of the whole model, run at once. */
typedef struct psplit_i_layouts {
  const psplit_planner *planner;
  uint32_t *position; /* [n_nodes] in the topological order */
  uint8_t *blocked;   /* [n_nodes] it works on blocks */
  uint8_t *inside;    /* [n_nodes] its work is part of the kernel of what it reads */
  /* For a node that keeps blocks: those that bring the first tensor of its run into blocks. It is
   * plain in a stage that one of them is not in. None is before another one. */
  uint32_t *source_begin, *source_end; /* [n_nodes] into `sources` */
  PSPLIT_VEC(uint32_t) sources;
} psplit_i_layouts;

/* Arrays live in `arena`, but for `sources`: psplit_i_layouts_fini in any case.
 * O(edges * sources / 64). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_layouts_find(const psplit_planner *planner,
                                                  psplit_i_arena *arena, psplit_diag *diag,
                                                  psplit_i_layouts *out);
void psplit_i_layouts_fini(psplit_i_layouts *layouts);

/* Whether the node counts: it is neither dead nor folded. */
bool psplit_i_layouts_counts(const psplit_i_layouts *layouts, uint32_t node);
/* Whether a value can be in blocks at all: an image of floats with whole blocks of channels. */
bool psplit_i_layouts_suits(const psplit_planner *planner, uint32_t value);

/* What cuts cost for layouts, as nets of a bare problem are charged: where a stage has one of the
 * readers and not the maker, it takes recv_ns more, and the maker's stage send_ns, once for each
 * such stage. Times are those of computing. */
typedef struct psplit_i_layout_prices {
  uint32_t n;
  uint32_t *maker;            /* [n] node */
  uint32_t *off;              /* [n + 1] into reader */
  uint32_t *reader;           /* nodes */
  int64_t *recv_ns, *send_ns; /* [n * n_classes], by price, then class of device */
} psplit_i_layout_prices;

/* None (n is 0) where no device's runtime has layouts of its own. Needs COSTS and LIVE. Arrays live
 * in `arena`. As psplit_i_layouts_find. */
PSPLIT_MUST_USE psplit_code psplit_i_layout_prices_find(const psplit_planner *planner,
                                                        psplit_i_arena *arena, psplit_diag *diag,
                                                        psplit_i_layout_prices *out);

#endif
