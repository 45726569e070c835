/* Random numbers for random operators in training. They are counter-based, so that recomputing a
 * micro-batch, resuming a run, replicating stages or changing their number yields the same numbers.
 * pipeline.json, `training.masks`, lists the inputs that are filled with them; docs/training.md
 * gives the formulas, for implementations in other languages. */
#ifndef PSPLIT_RANDOM_H
#define PSPLIT_RANDOM_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum psplit_draw_kind {
  PSPLIT_DRAW_KEEP,    /* bool: false with probability `ratio` */
  PSPLIT_DRAW_UNIFORM, /* float32 in [0, 1) */
  PSPLIT_DRAW_NORMAL   /* float32 of mean 0 and deviation 1 */
} psplit_draw_kind;

/* The counter of a draw: different counters give independent numbers. */
typedef struct psplit_draw {
  uint64_t seed;
  uint32_t step;        /* from 0 */
  uint32_t micro_batch; /* within the step, from 0, over all replicas */
  uint32_t number;      /* `number` of the mask */
} psplit_draw;

/* Elements first .. first + n - 1, in row-major order, of a tensor with up to 2^34; `ratio` is in
 * [0, 1). `keep` is 1 with probability 1 - ratio, else 0; `uniform` is in [0, 1); `normal` has mean
 * 0 and variance 1. Pure functions of their arguments; O(n). */
PSPLIT_API void psplit_draw_keep(const psplit_draw *draw, double ratio, uint64_t first, size_t n,
                                 uint8_t *out_keep);
PSPLIT_API void psplit_draw_uniform(const psplit_draw *draw, uint64_t first, size_t n, float *out);
PSPLIT_API void psplit_draw_normal(const psplit_draw *draw, uint64_t first, size_t n, float *out);

#ifdef __cplusplus
}
#endif
#endif
