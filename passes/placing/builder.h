/* A planner as a bare partition problem: supernodes and the tensors between them, weights,
 * devices. */
#ifndef PSPLIT_PASSES_PROBLEM_H
#define PSPLIT_PASSES_PROBLEM_H

#include "layout.h"
#include "links.h"

/* Nets by hand: a stage with one of the readers and without the producer pays recv_ns, that of the
 * producer send_ns for each such stage. */
typedef struct psplit_i_charges {
  uint32_t n;
  uint32_t *producer;         /* [n] node */
  uint32_t *off, *reader;     /* nodes: off[n + 1] into reader */
  int64_t *send_ns, *recv_ns; /* [n] */
} psplit_i_charges;

/* How links that differ are represented. As they are, the problem cannot hold what cuts add.
 * Otherwise each stage is a device class of its own, and a tensor takes it the time of its best
 * link, which no plan is below, or of the link to the stage beside it, which carries most. */
typedef enum psplit_i_link_model {
  PSPLIT_I_LINKS_AS_THEY_ARE,
  PSPLIT_I_LINKS_BEST,
  PSPLIT_I_LINKS_BESIDE
} psplit_i_link_model;

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
  /* For bounds on splits with copies (copies.c). [n_nodes] 1: a copy may stand in for the node,
   * whose results are sent for nothing. NULL: no node is copied. */
  const uint8_t *copied;
  const psplit_i_charges *charges; /* else than NULL: all results are sent for nothing, but these */
  /* The devices may stand in any order: where links differ, a tensor takes what it takes over the
   * best of them, which no order is below. */
  bool any_order;
  /* With options.overlap: computing and what cuts add to it are added up, and tensors are sent for
   * nothing; else what cuts add is left out, and tensors overlap. A plan is above both. */
  bool layouts_alone;
  psplit_i_link_model link_model;
  bool charges_messages; /* where latency is a message's: `charges` are all that it adds */
  uint32_t n_tensors;    /* nets that are tensors: the first */
  psplit_problem problem;
} psplit_i_builder;

/* n zeroed items in the builder's arena; NULL when out of memory. */
static inline void *psplit_i_builder_array(psplit_i_builder *b, size_t n, size_t size) {
  return psplit_i_arena_zeroed(b->arena, n, size);
}

/* Classes of `together`: those that were asked for, and of state. */
static inline uint32_t psplit_i_builder_n_together(const psplit_planner *planner) {
  return planner->n_together + planner->n_state_classes;
}

/* Columns of times in the problem: kinds of devices; and the planner's class of such a column. */
static inline uint32_t psplit_i_builder_n_columns(const psplit_i_builder *b) {
  return b->link_model ? b->planner->options.n_stages : b->planner->n_classes;
}
static inline uint32_t psplit_i_builder_class(const psplit_i_builder *b, uint32_t column) {
  return b->link_model ? b->planner->device_class[column] : column;
}

/* Numbers the supernodes: the first step. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_number(psplit_i_builder *b);
/* The problem on the devices, which have memory_bytes[n_stages]; UINT64_MAX: no limit. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_build(psplit_i_builder *b,
                                                   const uint64_t *memory_bytes);
/* Whether cuts add something that the problem as it was built does not count, and with
 * another model of links would. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_lacks_layouts(psplit_i_builder *b, bool *out);
/* The same without limits of memory, and for any order of devices where the planner's is free. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_unlimited(psplit_i_builder *b);
/* Beside the forward nodes of the problem that was built, and what crosses between them, what comes
 * back: node n_groups + g is supernode g's backward pass. Errors: UNSUPPORTED (links that differ,
 * or are missing), LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_add_backward(psplit_i_builder *b);
/* Says in the problem which nodes share a stage: supernodes of one class of `together`, of which
 * there are n_classes, and backward nodes with their supernodes. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_share(psplit_i_builder *b, uint32_t n_classes);
/* Gives each free node to the stages that read its result, once the other nodes have theirs: the
 * least owns it, the others hold copies. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_place_free(psplit_i_builder *b);

/* Gives the nodes that are not free the stages node_stage[n_nodes], without copies of others, and
 * makes the plan. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_adopt(psplit_planner *planner,
                                                   const uint32_t *node_stage, psplit_diag *diag);
/* Whether each stage of the plan finds room on its device. */
bool psplit_i_plan_fits(const psplit_planner *planner);

/* The planner's problem without memory limits, for any order of devices where it is free: node i is
 * the supernode that psplit_i_grouping_number numbers i, as *out_group has it by operator. Lives in
 * planner->scratch. Needs COSTS, LIVE and GROUPS. */
PSPLIT_MUST_USE psplit_code psplit_i_problem_make(psplit_planner *planner, psplit_diag *diag,
                                                  psplit_problem *out_problem,
                                                  uint32_t **out_group);

#endif
