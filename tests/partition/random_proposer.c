#include "random_proposer.h"

#include "hash.h"

static psplit_code stages(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                          uint32_t *out_stage, uint32_t *out_type, psplit_diag *diag) {
  (void)user;
  (void)diag;
  for (uint32_t s = 0; s < items->n_stages; s++) out_type[s] = PSPLIT_NONE;
  for (uint32_t i = 0; i < items->n_items; i++) {
    uint32_t least = 0;
    for (uint32_t k = items->pred_off[i]; k < items->pred_off[i + 1]; k++)
      if (out_stage[items->pred[k]] > least) least = out_stage[items->pred[k]];
    const uint64_t coin = psplit_i_splitmix64(seed + attempt, i);
    out_stage[i] = least + (coin % 4 == 0 && least + 1 < items->n_stages);
    if (items->pin[i] != PSPLIT_NONE && coin % 8 != 1) out_stage[i] = items->pin[i];
  }
  return PSPLIT_OK;
}

static psplit_code keys(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                        uint32_t *out_key, psplit_diag *diag) {
  (void)user;
  (void)diag;
  for (uint32_t i = 0; i < items->n_items; i++)
    out_key[i] = (uint32_t)psplit_i_splitmix64(seed + attempt, 1000 + i);
  return PSPLIT_OK;
}

psplit_proposer random_proposer(uint32_t n_attempts) {
  return (psplit_proposer){.n_attempts = n_attempts, .stages = stages, .keys = keys};
}
