#include "cost_table.h"
#include "devices_inside.h"
#include "planner.h"

int64_t psplit_i_roofline_ns(const psplit_planner *planner, const psplit_i_costs *costs,
                             uint32_t device, uint32_t node) {
  const psplit_i_device_model *model = &planner->devices->devices[device].model;
  const psplit_work work = psplit_i_costs_node(costs, node);
  const psplit_i_kernel kernel = psplit_i_costs_kernel(costs, node);
  const psplit_i_part *part = psplit_i_costs_parts(costs, node);
  if (!psplit_i_node_runs(planner->node_flags[node])) return 0;
  if (planner->node_folded && planner->node_folded[node]) return 0;
  if (!part) return psplit_i_kernel_ns(model, &work, &kernel);
  int64_t ns = 0;
  for (; part; part = part->next)
    ns = psplit_i_sat_add_i64(ns, psplit_i_kernel_ns(model, &part->work, &part->kernel));
  return ns;
}

int64_t psplit_i_planner_total_ns(const psplit_planner *planner, uint32_t device) {
  const size_t n_nodes = planner->graph->n_nodes;
  int64_t total = 0;
  for (uint32_t n = 0; n < n_nodes; n++) {
    int64_t ns = planner->node_ns[n];
    if (device < planner->n_classed) {
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
