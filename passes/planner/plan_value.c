#include "planner.h"

int64_t psplit_i_plan_value_ns(const psplit_unit *unit, const psplit_plan *plan) {
  return unit->options.objective == PSPLIT_LATENCY ? plan->latency_ns : plan->bottleneck_ns;
}
