#include "placing_state.h"

#include <string.h>

#include "problem.h"

int64_t psplit_i_placing_judge(psplit_i_placement *placement, const uint32_t *types,
                               const uint32_t *label) {
  const psplit_i_instance *instance = placement->instance;
  memcpy(placement->type, types, placement->n_devices * sizeof *types);
  bool ok = true;
  for (uint32_t v = 0; v < instance->n; v++) {
    const uint32_t k = label[v] % placement->n_devices;
    ok &= instance->w[(size_t)types[k] * instance->n + v] < PSPLIT_I_INF;
    ok &= instance->pin[v] == PSPLIT_NONE || instance->pin[v] == k;
  }
  if (!ok) return PSPLIT_I_INF;
  for (uint32_t v = 0; v < instance->n; v++) psplit_i_placement_add(placement, v, label[v]);
  for (uint32_t k = 0; k < placement->n_devices; k++) {
    ok &= psplit_i_placement_fits(placement, k);
    ok &= !placement->nonempty || placement->n_counted[k] > 0;
  }
  const int64_t value = ok ? psplit_i_placement_settle(placement, NULL) : PSPLIT_I_INF;
  for (uint32_t v = 0; v < instance->n; v++) psplit_i_placement_remove(placement, v);
  return value;
}

void psplit_i_placing_take(psplit_i_placing *p, const uint32_t *label, int64_t value) {
  for (uint32_t v = 0; v < p->request->problem->n_nodes; v++)
    p->node_label[v] = label[p->instance.cluster_of_node[v]];
  p->value = value;
}
