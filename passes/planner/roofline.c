#include "cost_table.h"
#include "planner.h"

int64_t psplit_i_roofline_ns(const psplit_unit *unit, const psplit_i_costs *costs, uint32_t device,
                             uint32_t node) {
  const psplit_work work = psplit_i_costs_node(costs, node);
  return unit->node_flags[node] & (PSPLIT_I_NODE_DEAD | PSPLIT_I_NODE_FREE)
           ? 0
           : psplit_devices_work_ns(unit->devices, device, &work);
}

int64_t psplit_i_unit_total_ns(const psplit_unit *unit, uint32_t device) {
  const size_t n_nodes = unit->graph->n_nodes;
  int64_t total = 0;
  for (uint32_t n = 0; n < n_nodes; n++) {
    int64_t ns = unit->node_ns[n];
    if (device < unit->options.n_stages) {
      ns = unit->node_ns[unit->device_class[device] * n_nodes + n];
    } else if (ns) { /* as much longer as its roofline: see psplit_i_cost_apply */
      const int64_t first = psplit_i_roofline_ns(unit, unit->costs, unit->class_device[0], n);
      const int64_t here = psplit_i_roofline_ns(unit, unit->costs, device, n);
      if (first) ns = psplit_i_whole_ns((double)ns * ((double)here / (double)first));
    }
    total = psplit_i_sat_add_i64(total, ns);
  }
  return total;
}
