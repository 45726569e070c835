#include "cost_table.h"
#include "planner.h"

int64_t psplit_i_roofline_ns(const psplit_planner *planner, const psplit_i_costs *costs,
                             uint32_t device, uint32_t node) {
  const psplit_work work = psplit_i_costs_node(costs, node);
  return planner->node_flags[node] & (PSPLIT_I_NODE_DEAD | PSPLIT_I_NODE_FREE)
           ? 0
           : psplit_devices_work_ns(planner->devices, device, &work);
}

int64_t psplit_i_planner_total_ns(const psplit_planner *planner, uint32_t device) {
  const size_t n_nodes = planner->graph->n_nodes;
  int64_t total = 0;
  for (uint32_t n = 0; n < n_nodes; n++) {
    int64_t ns = planner->node_ns[n];
    if (device < planner->options.n_stages) {
      ns = planner->node_ns[planner->device_class[device] * n_nodes + n];
    } else if (ns) { /* as much longer as its roofline: see psplit_i_cost_apply */
      const int64_t first =
        psplit_i_roofline_ns(planner, planner->costs, planner->class_device[0], n);
      const int64_t here = psplit_i_roofline_ns(planner, planner->costs, device, n);
      if (first) ns = psplit_i_whole_ns((double)ns * ((double)here / (double)first));
    }
    total = psplit_i_sat_add_i64(total, ns);
  }
  return total;
}
