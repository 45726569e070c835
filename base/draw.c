/* The words of a mask: four to a block of Philox, under a key of their own. */
#include <psplit/random.h>

#include "counter_random.h"

enum { WORDS = 4, KEYS = 1 << 16 };

/* A word at a time; blocks are computed as they come. */
typedef struct words {
  uint32_t counter[4], key[2], block[WORDS];
  uint64_t next;
  bool started;
} words;

static words begin(const psplit_draw *draw, uint64_t first) {
  words w = {.counter = {0, PSPLIT_I_RANDOM_MASK, draw->step, draw->micro_batch}, .next = first};
  /* The key of a mask: the third coordinate, beside step and micro-batch. */
  const uint32_t at[4] = {draw->number, PSPLIT_I_RANDOM_MASK | KEYS, 0, 0};
  const uint32_t seed[2] = {(uint32_t)draw->seed, (uint32_t)(draw->seed >> 32)};
  uint32_t key[4];
  psplit_i_philox(at, seed, key);
  w.key[0] = key[0];
  w.key[1] = key[1];
  return w;
}

static uint32_t next(words *w) {
  const unsigned at = (unsigned)(w->next % WORDS);
  if (at == 0 || !w->started) {
    w->counter[0] = (uint32_t)(w->next / WORDS);
    psplit_i_philox(w->counter, w->key, w->block);
    w->started = true;
  }
  w->next++;
  return w->block[at];
}

void psplit_draw_keep(const psplit_draw *draw, double ratio, uint64_t first, size_t n,
                      uint8_t *out_keep) {
  words w = begin(draw, first);
  const uint32_t least = (uint32_t)(ratio * 0x1p32);
  for (size_t i = 0; i < n; i++) out_keep[i] = next(&w) >= least;
}

void psplit_draw_uniform(const psplit_draw *draw, uint64_t first, size_t n, float *out) {
  words w = begin(draw, first);
  for (size_t i = 0; i < n; i++) out[i] = (float)(next(&w) >> 8) * 0x1p-24F;
}

void psplit_draw_normal(const psplit_draw *draw, uint64_t first, size_t n, float *out) {
  words w = begin(draw, first);
  for (size_t i = 0; i < n; i++)
    out[i] = (float)psplit_i_normal_quantile(((double)next(&w) + 0.5) * 0x1p-32);
}
