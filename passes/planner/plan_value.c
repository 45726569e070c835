#include "planner.h"

int64_t psplit_i_plan_value_ns(const psplit_planner *planner, const psplit_plan *plan) {
  return planner->options.objective == PSPLIT_LATENCY ? plan->latency_ns : plan->bottleneck_ns;
}
