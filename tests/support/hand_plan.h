/* A plan that no planner made. */
#ifndef PSPLIT_TESTS_HAND_PLAN_H
#define PSPLIT_TESTS_HAND_PLAN_H

#include <psplit/plan.h>

/* Over arrays that others fill: node_stage[n_nodes], stages[n_stages], transfers[n_transfers]. */
static inline psplit_plan hand_plan(uint32_t n_nodes, const uint32_t *node_stage, uint32_t n_stages,
                                    const psplit_plan_stage *stages, uint32_t n_transfers,
                                    const psplit_plan_transfer *transfers) {
  return (psplit_plan){.n_nodes = n_nodes,
                       .node_stage = node_stage,
                       .n_stages = n_stages,
                       .stages = stages,
                       .n_transfers = n_transfers,
                       .transfers = transfers,
                       .objective = "throughput",
                       .solver = "hand",
                       .bound = "none",
                       .cost_source = "given"};
}

#endif
