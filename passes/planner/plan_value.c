#include "planner.h"

int64_t psplit_i_plan_value_ns(const psplit_planner *planner, const psplit_plan *plan) {
  switch (planner->options.objective) {
    case PSPLIT_LATENCY: return plan->latency_ns;
    case PSPLIT_FILL_DRAIN: return plan->fill_drain_ns;
    default: return plan->bottleneck_ns;
  }
}

const char *psplit_i_plan_objective(const psplit_planner *planner) {
  switch (planner->options.objective) {
    case PSPLIT_LATENCY: return "latency";
    case PSPLIT_FILL_DRAIN: return "fill-drain";
    default: return "throughput";
  }
}
