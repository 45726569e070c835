#include "closure.h"

#include <string.h>

psplit_code psplit_i_closure_make(const psplit_i_instance *instance, psplit_i_budget *budget,
                                  psplit_i_closure *out) {
  const uint32_t n = instance->n, words = (n + 63) / 64;
  *out = (psplit_i_closure){.n = n, .words = words};
  psplit_i_arena_init(&out->arena, 0);
  out->before = PSPLIT_NEW(&out->arena, uint64_t, (size_t)n * words);
  out->behind = PSPLIT_NEW(&out->arena, uint64_t, (size_t)n * words);
  if (out->arena.failed) {
    psplit_i_closure_fini(out);
    return PSPLIT_NOMEM;
  }
  for (int down = 0; down < 2; down++) {
    const uint32_t *off = down ? instance->succ_off : instance->pred_off;
    const uint32_t *list = down ? instance->succ : instance->pred;
    uint64_t *bits = down ? out->behind : out->before;
    for (uint32_t k = 0; k < n; k++) {
      const uint32_t i = down ? n - 1 - k : k;
      uint64_t *row = bits + (size_t)i * words;
      row[i / 64] |= UINT64_C(1) << (i % 64);
      for (uint32_t l = off[i]; l < off[i + 1]; l++) {
        const uint64_t *other = bits + (size_t)list[l] * words;
        for (uint32_t j = 0; j < words; j++) row[j] |= other[j];
      }
    }
    psplit_i_spend(budget, (uint64_t)(off[n] + n) * words / 8 + n);
  }
  return PSPLIT_OK;
}

void psplit_i_closure_fini(psplit_i_closure *closure) {
  psplit_i_arena_fini(&closure->arena);
  memset(closure, 0, sizeof *closure);
}
