/* Makes the bare partition problem of a planner: supernodes with the tensors between them, weights
 * and devices. */
#ifndef PSPLIT_PASSES_PROBLEM_H
#define PSPLIT_PASSES_PROBLEM_H

#include "layout.h"
#include "links.h"

/* Explicit charges as nets: a stage with a reader but without the producer pays recv_ns, and the
 * producer's stage pays send_ns for each such stage. */
typedef struct psplit_i_charges {
  uint32_t n;
  uint32_t *producer;         /* [n] node */
  uint32_t *off, *reader;     /* nodes: off[n + 1] into reader */
  int64_t *send_ns, *recv_ns; /* [n] */
  /* Only stages of the charge's kind pay it: [n], and [columns] of times. kind_of_column NULL: all
   * stages pay all charges. */
  uint32_t *kind;
  const uint32_t *kind_of_column;
} psplit_i_charges;

/* The model of links that differ. AS_THEY_ARE cannot represent the layout prices of cuts. With the
 * other two, each stage is a device class of its own, whose tensors take the time of the stage's
 * best link (BEST, a relaxation), or of the link to the neighbouring stage, which carries most
 * tensors (BESIDE, an approximation). */
typedef enum psplit_i_link_model {
  PSPLIT_I_LINKS_AS_THEY_ARE,
  PSPLIT_I_LINKS_BEST,
  PSPLIT_I_LINKS_BESIDE
} psplit_i_link_model;

/* A problem under construction. Its arrays live in the pass scratch. */
typedef struct psplit_i_builder {
  psplit_planner *planner;
  psplit_i_arena *arena;
  psplit_diag *diag;
  uint32_t *group; /* [n_nodes] supernode, PSPLIT_NONE for free nodes */
  uint32_t n_groups;
  uint32_t *together; /* [n_groups] class, or PSPLIT_NONE */
  psplit_i_links links;
  psplit_i_layout_prices prices;
  /* For bounds on splits with copies (copies.c). [n_nodes] 1: the node may be copied, so its
   * results cost nothing. NULL: no node is copied. */
  const uint8_t *copied;
  /* if not NULL, these charges replace the costs of all tensors */
  const psplit_i_charges *charges;
  /* The devices may be in any order. Where links differ, a tensor takes the time of the best link
   * of all, which is a relaxation. Where one is missing, a stage that relays a tensor sends it in
   * its producer's place, so that each stage sends it once (shared memory). */
  bool any_order;
  /* With options.overlap there are two relaxations: computation with layout prices but free tensors
   * (true), and overlapping tensors without layout prices (false). */
  bool layouts_alone;
  psplit_i_link_model link_model;
  bool charges_messages; /* with latency per message, `charges` contain all of it */
  uint32_t n_tensors;    /* the first nets, which are tensors */
  psplit_problem problem;
} psplit_i_builder;

/* n zeroed items in the builder's arena; NULL when out of memory. */
static inline void *psplit_i_builder_array(psplit_i_builder *b, size_t n, size_t size) {
  return psplit_i_arena_zeroed(b->arena, n, size);
}

/* The number of classes of `together`: those of the user, and those of shared state. */
static inline uint32_t psplit_i_builder_n_together(const psplit_planner *planner) {
  return planner->n_together + planner->n_state_classes;
}

/* The number of columns of times in the problem, and the planner's device class of a column. */
static inline uint32_t psplit_i_builder_n_columns(const psplit_i_builder *b) {
  return b->link_model ? b->planner->options.n_stages : b->planner->n_classes;
}
static inline uint32_t psplit_i_builder_class(const psplit_i_builder *b, uint32_t column) {
  return b->link_model ? b->planner->device_class[column] : column;
}

/* Numbers the supernodes. To be called first. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_number(psplit_i_builder *b);
/* Builds the problem on devices with memory_bytes[n_stages]; UINT64_MAX: no limit. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_build(psplit_i_builder *b,
                                                   const uint64_t *memory_bytes);
/* Whether cuts have layout prices that the problem does not count, but would count with
 * layouts_alone or another model of links. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_lacks_layouts(psplit_i_builder *b, bool *out);
/* The same without memory limits, and for any order of devices if the planner's is free. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_unlimited(psplit_i_builder *b);
/* Adds the backward pass to the problem: node n_groups + g is the backward pass of supernode g.
 * Errors: UNSUPPORTED (links that differ, or are missing), LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_add_backward(psplit_i_builder *b);
/* Sets the classes of nodes that share a stage: supernodes of the same class of `together`, of
 * which there are n_classes, and backward nodes with their supernodes. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_share(psplit_i_builder *b, uint32_t n_classes);
/* Assigns each free node to the stages that read its result, after all other nodes have stages. The
 * lowest of these stages owns the node, and the others hold copies. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_place_free(psplit_i_builder *b);

/* Assigns node_stage[n_nodes] to the nodes that are not free, drops all copies of others, and makes
 * the plan. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_builder_adopt(psplit_planner *planner,
                                                   const uint32_t *node_stage, psplit_diag *diag);
/* Whether each stage of the plan fits the memory of its device. */
bool psplit_i_plan_fits(const psplit_planner *planner);

/* The planner's problem without memory limits, for any order of devices if it is free. Node i is
 * the supernode to which psplit_i_grouping_number() gives number i, and *out_group gives it for
 * each operator. Lives in planner->scratch. Needs COSTS, LIVE and GROUPS. */
PSPLIT_MUST_USE psplit_code psplit_i_problem_make(psplit_planner *planner, psplit_diag *diag,
                                                  psplit_problem *out_problem,
                                                  uint32_t **out_group);

#endif
