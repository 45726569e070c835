/* A planner as a bare partition problem: supernodes and the tensors between them, weights,
 * devices. */
#ifndef PSPLIT_PASSES_PROBLEM_H
#define PSPLIT_PASSES_PROBLEM_H

#include "layout.h"
#include "links.h"

/* A problem under construction; every array lives in the pass scratch. */
typedef struct psplit_i_builder {
  psplit_planner *planner;
  psplit_i_arena *arena;
  psplit_diag *diag;
  uint32_t *group; /* [n_nodes] supernode, PSPLIT_NONE for free nodes */
  uint32_t n_groups;
  uint32_t *together; /* [n_groups] class, or PSPLIT_NONE */
  psplit_i_links links;
  psplit_i_layout_prices prices;
  bool copies_are_free; /* tensors that a copy of their node may replace are sent for nothing */
  /* The devices may stand in any order: where links differ, a tensor takes what it takes over the
   * best of them, which no order is below. */
  bool any_order;
  /* With options.overlap: computing and what cuts add to it are added up, and tensors are sent for
   * nothing; else what cuts add is left out, and tensors overlap. A plan is above both. */
  bool layouts_alone;
  psplit_problem problem;
} psplit_i_builder;

/* n zeroed items in the builder's arena; NULL when out of memory. */
void *psplit_i_builder_array(psplit_i_builder *b, size_t n, size_t size);

/* Classes of `together`: those that were asked for, and of state. */
uint32_t psplit_i_builder_n_together(const psplit_planner *planner);

/* Numbers the supernodes: the first step. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_number(psplit_i_builder *b);
/* The problem on the devices, which have memory_bytes[n_stages]; UINT64_MAX: no limit. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_build(psplit_i_builder *b,
                                                   const uint64_t *memory_bytes);
/* Gives each free node to the stages that read its result, once the other nodes have theirs: the
 * least owns it, the others hold copies. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_place_free(psplit_i_builder *b);

/* The planner's problem without memory limits, for any order of devices where it is free: node i is
 * the supernode that psplit_i_grouping_number numbers i, as *out_group has it by operator. Lives in
 * planner->scratch. Needs COSTS, LIVE and GROUPS. */
PSPLIT_MUST_USE psplit_code psplit_i_problem_make(psplit_planner *planner, psplit_diag *diag,
                                                  psplit_problem *out_problem,
                                                  uint32_t **out_group);
/* How the planner's options have it solved. */
void psplit_i_partition_options(const psplit_planner *planner, psplit_partition_options *out);

/* A lower bound (ns) on the bottleneck of any split of the supernodes that, besides, computes nodes
 * again where that costs less than it takes to receive their results. 0 where none was found. Uses
 * planner->scratch. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_with_copies(psplit_planner *planner, psplit_diag *diag,
                                                       int64_t *out_bound_ns);

#endif
