/* Decides which values of the forward pass are kept for the backward pass, and which are
 * recomputed. */
#include <string.h>

#include "operator.h"
#include "training.h"

/* A node whose results are no function of its inputs, or of which that is not known. */
static bool is_bound(const psplit_i_node *node) {
  const bool known_domain = !*node->domain || strcmp(node->domain, "com.microsoft") == 0;
  return !known_domain || node->n_bodies || node->function != PSPLIT_NONE ||
         psplit_i_node_has(node, PSPLIT_I_OP_RANDOM);
}

static psplit_i_fate fate_of(const psplit_i_fates *fates, uint32_t value) {
  const uint32_t producer = fates->graph->values[value].producer;
  if (producer == PSPLIT_NONE) return PSPLIT_FATE_GIVEN;
  if (fates->made && !fates->made[value]) return PSPLIT_FATE_KEPT;
  const psplit_i_node *node = &fates->graph->nodes[producer];
  if (fates->how == PSPLIT_RECOMPUTE_NONE || is_bound(node)) return PSPLIT_FATE_KEPT;
  return fates->how == PSPLIT_RECOMPUTE_HEAVY && psplit_i_op_is_heavy(node->domain, node->op_type)
           ? PSPLIT_FATE_KEPT
           : PSPLIT_FATE_AGAIN;
}

typedef PSPLIT_VEC(uint32_t) values;

static bool meet(psplit_i_fates *fates, uint32_t value, values *open) {
  if (fates->value[value] != PSPLIT_FATE_NONE) return true;
  fates->value[value] = (uint8_t)fate_of(fates, value);
  return fates->value[value] != PSPLIT_FATE_AGAIN || psplit_i_vec_push(open, value);
}

psplit_code psplit_i_fates_settle(psplit_i_fates *fates, const uint32_t *wanted, size_t n,
                                  psplit_diag *diag) {
  values open = {0};
  bool good = true;
  for (size_t i = 0; i < n && good; i++) good = meet(fates, wanted[i], &open);
  while (open.n && good) {
    const uint32_t producer = fates->graph->values[open.items[--open.n]].producer;
    if (fates->again[producer]) continue;
    fates->again[producer] = 1;
    PSPLIT_FOR_EACH_READ(&fates->graph->nodes[producer], value)
      good = good && meet(fates, value, &open);
  }
  psplit_i_vec_fini(&open);
  return good ? PSPLIT_OK : psplit_i_nomem(diag);
}
