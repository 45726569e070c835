/* The planner: what passes work on. It holds the model, what is known of it so far (facts: shapes,
 * costs, flags, the grouping, the stages) and at the end the plan. A pass states which facts it
 * needs and which it keeps; the pass manager establishes needs, runs the pass and drops what the
 * pass did not keep. Groups are always convex and the quotient graph acyclic; check.c proves it
 * after each pass. Does no I/O and sees no protobuf type. */
#ifndef PSPLIT_PASSES_PLANNER_H
#define PSPLIT_PASSES_PLANNER_H

#include <psplit/partition.h>
#include <psplit/passes.h>

#include "base.h"
#include "graph.h"
#include "grouping.h"
#include "node_flags.h"
#include "pattern.h"
#include "shape.h"
#include "state.h"
#include "work.h"

typedef enum psplit_i_fact {
  PSPLIT_I_FACT_SHAPES = 1 << 0,
  PSPLIT_I_FACT_COSTS = 1 << 1,
  PSPLIT_I_FACT_LIVE = 1 << 2,   /* node flags */
  PSPLIT_I_FACT_GROUPS = 1 << 3, /* grouping beyond one node a group */
  PSPLIT_I_FACT_STAGES = 1 << 4
} psplit_i_fact;

/* What a profile says of the kernel that a node is part of. */
typedef enum psplit_i_layout_seen {
  PSPLIT_I_LAYOUT_UNKNOWN,
  PSPLIT_I_LAYOUT_PLAIN,
  PSPLIT_I_LAYOUT_BLOCKED
} psplit_i_layout_seen;

/* A line that a pass left with a node, or with the model (PSPLIT_NONE). */
typedef struct psplit_i_note {
  uint32_t node;
  const char *pass, *text;
} psplit_i_note;

/* A bare problem that was solved, as JSON, and the answer. */
typedef struct psplit_i_solved {
  char *problem;
  size_t n;
  bool next_hop; /* links were missing, which the JSON does not tell */
  /* [n_stages^2] in the arena: tensors go so, and the bound holds for all ways; NULL: not. */
  const uint32_t *ways;
  psplit_partition_options options;
  psplit_solution *solution;
} psplit_i_solved;

struct psplit_planner {
  const psplit_model *model;
  const psplit_i_graph *graph;
  psplit_planner_options options;
  /* options.dims are the caller's, and behind these the sizes that tables of costs were measured
   * with, where no size of the caller's contradicts them. */
  size_t n_own_dims;
  size_t n_given_dims;              /* without those of options.decode */
  const psplit_cost_table *seen_in; /* whose shapes of values count; NULL: none does */
  const psplit_i_seen *given;       /* [options.n_shapes] sizes of inputs that the caller gave */
  psplit_devices *own_devices;      /* where the caller gave none */
  /* Stage i runs on device i of these: the caller's, or the same in another order, `ordered`. */
  const psplit_devices *devices;
  psplit_devices *ordered;
  uint32_t *device_id; /* [devices] a device's position in the order that was given */
  bool order_is_free;  /* `partition` may choose another */
  uint32_t n_asked;    /* stages that the caller asked for; with segments devices, of which */
  bool segmented;      /* a device may have several stages; then bound and solver: */
  int64_t segments_bound_ns;
  const char *segments_bound, *segments_solver;
  /* Where stages may have several devices, by stage: how many, and their names. NULL: one each. */
  uint32_t *n_replicas;
  const char *const **replica_devices;
  /* The first of the given devices, which stages may run on: n_asked unless the order is free. */
  uint32_t n_candidates;
  bool
    order_chosen; /* then bounds: of any order; of all orders but the chosen one (or INT64_MAX) */
  int64_t any_order_bound_ns, other_orders_bound_ns;
  const char *any_order_bound;
  /* [n_stages * n_stages] where a tensor goes on its way between stages (base/route.h); NULL where
   * every two stages have a link. */
  uint32_t *next_hop;
  bool
    passes_on; /* that is by choice, to save messages: every two stages have a link all the same */
  psplit_i_arena arena;   /* facts: lives as long as the planner */
  psplit_i_arena scratch; /* reset by the pass manager after every pass */
  unsigned facts;

  /* Of all that passes ask solvers (placing/plan_budget.h); NULL before a pipeline runs. */
  struct psplit_i_plan_budget *budget;
  const char *last_pass; /* that ran; NULL before the first */

  uint32_t *pin;       /* [n_nodes] stage, or PSPLIT_NONE */
  uint32_t *apart;     /* [n_nodes] nodes of different marks are never grouped; PSPLIT_NONE: any */
  uint32_t *together;  /* [n_nodes] class, or PSPLIT_NONE */
  uint32_t n_together; /* classes */
  uint8_t *uncuttable; /* [n_values] 1: no cut may send it */

  psplit_i_states_request named_states; /* options.states */
  psplit_i_states states;               /* with SHAPES */
  /* [n_nodes] class of those that read or write one state, or PSPLIT_NONE: they share a stage. */
  uint32_t *state_class;
  uint32_t n_state_classes;
  bool states_parted; /* no such split: only what was named shares one */
  PSPLIT_VEC(psplit_i_note) notes;

  psplit_i_shapes *shapes;
  psplit_i_costs *costs;
  int64_t assumed_size;   /* what a size that nothing fixes counts as */
  uint32_t n_classes;     /* devices that differ, by first appearance */
  uint32_t *class_device; /* [n_classes] a device of the class */
  uint32_t *device_class; /* [n_classed] by device, as they stand now */
  uint32_t n_classed;     /* the first devices: all that stages run on, and others */
  uint32_t *given_class;  /* [n_candidates] by device as they were given */
  int64_t *node_ns;       /* [n_classes][n_nodes] */
  /* With options.prefill node_ns are means over steps; these are of decode alone, and those of
   * prefill are the node_ns of the other planner, which has its sizes. NULL without. */
  int64_t *decode_ns;
  psplit_planner *prefill;
  int64_t *node_more_ns;          /* [n_classes][n_nodes] to train: of node_ns, what is not forward;
                                     NULL: nothing */
  uint8_t *node_refused;          /* [n_classes][n_nodes] 1: it cannot run there; NULL: all can */
  uint64_t *node_workspace_bytes; /* [n_nodes] as given in costs files; NULL: none was */
  const char *cost_source;        /* "analytic", "measured" or "given" */
  uint8_t *node_layout;           /* [n_nodes] psplit_i_layout_seen */
  double move_factor;   /* how long moving bytes of images takes, over what it would from memory */
  double measured_frac; /* part of all nodes' time that tables of costs speak of */
  psplit_op_class *node_class; /* [n_nodes] */
  /* [n_nodes] psplit_i_data_dependence of the node's time: none where a costs file has measured
   * it. */
  uint8_t *node_data;
  /* [n_nodes] times on the first device if a thousand times as much were found of what only a run
   * can tell; NULL where no node's work hangs on that. */
  int64_t *node_plenty_ns;
  uint8_t *node_flags; /* [n_nodes] PSPLIT_I_NODE_* */
  /* [n_nodes] with COSTS. 1: it runs, but once, when a session is opened. NULL: none does. */
  uint8_t *node_folded;

  psplit_i_grouping grouping;
  const psplit_i_pattern_count *patterns; /* [n_patterns] of the last `fuse`; NULL before one */
  uint32_t n_patterns;
  bool coarsened; /* groups were merged that a best cut might part */

  uint32_t *stage;                     /* [n_nodes] the stage that owns the node */
  psplit_solution *solution;           /* of the last `partition` */
  PSPLIT_VEC(psplit_i_solved) solved;  /* with options.certify */
  PSPLIT_VEC(psplit_plan_copy) copies; /* by stage, then node */
  /* What was given up for fewer transfers: of the best split. best_ns 0: nothing. */
  int64_t best_ns;
  uint32_t best_transfers;
  bool best_proved;
  const char *best_proof_scope;
  int64_t copies_bound_ns; /* bound on splits with such copies; 0: none was asked for */
  bool copies_any_route;   /* it holds for all ways that tensors may go */
  bool copies_tried;       /* it holds for all sets of copies, not of those alone that each pay */
  /* Bound on splits without copies and all ways that tensors may go; 0: none was asked for. */
  int64_t any_route_bound_ns;
  psplit_plan *plan;
  bool plan_holds; /* the last pass made it and changed nothing since */
};

/* Takes the sizes of inputs that the caller gave: of symbolic dimensions into options.dims, all
 * into `given`. Errors: USAGE (no such input, a size that it cannot have), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_take_shapes(psplit_planner *planner,
                                                         psplit_diag *diag);
/* Takes sizes from the tables of costs, see n_own_dims. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_take_sizes(psplit_planner *planner, psplit_diag *diag);
/* The dimensions that count, in the scratch arena; NULL when out of memory. */
psplit_i_binding *psplit_i_planner_bindings(psplit_planner *planner);

/* Whether a value's type can be sent: a tensor of known element type. */
bool psplit_i_planner_sendable(const psplit_planner *planner, uint32_t value);

/* Makes n stages, of which i runs on device order[i] of those that were given; the devices that run
 * none follow. NULL: n_asked stages on the devices as they were given. Resets planner->scratch.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_order_devices(psplit_planner *planner,
                                                           const uint32_t *order, uint32_t n,
                                                           psplit_diag *diag);
/* Ways between stages whose devices have no link, as they stand now. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_find_routes(psplit_planner *planner,
                                                         psplit_diag *diag);

/* Which pairs of stages have been met, in transfers that stand by sending stage: where latency is a
 * message's, the first transfer of a pair has it. */
typedef struct psplit_i_pairs_met {
  const psplit_planner *planner;
  uint32_t *by; /* [n_stages] 1 + the stage that sent the stage something last */
} psplit_i_pairs_met;

/* In planner->scratch. False: out of memory. */
PSPLIT_MUST_USE bool psplit_i_pairs_begin(psplit_planner *planner, psplit_i_pairs_met *out);
int64_t psplit_i_pairs_transfer_ns(psplit_i_pairs_met *met, const psplit_plan_transfer *transfer,
                                   uint64_t bytes);

/* Time to bring `bytes` from one stage to a later one, all hops together; INT64_MAX: no way. */
int64_t psplit_i_planner_transfer_ns(const psplit_planner *planner, uint32_t from, uint32_t to,
                                     uint64_t bytes);

/* Bytes of a value under the planner's assumptions; *out_known (may be NULL) tells whether they
 * hold without one. */
uint64_t psplit_i_planner_value_bytes(const psplit_planner *planner, uint32_t value,
                                      bool *out_known);

/* The same for what a transfer takes: the mean over steps where there are two kinds of them. */
uint64_t psplit_i_planner_sent_bytes(const psplit_planner *planner, uint32_t value,
                                     bool *out_known);

bool psplit_i_planner_is_constant(const psplit_planner *planner, uint32_t value);

/* Bytes of a constant that a stage keeps all its life: as stored, or as a free node makes it. */
uint64_t psplit_i_planner_weight_bytes(const psplit_planner *planner, uint32_t value);

/* Whether only a run can tell the bytes of a value. */
bool psplit_i_planner_value_data(const psplit_planner *planner, uint32_t value);

/* Fills node_refused and `apart` from what devices support. Needs node_ns, classes and LIVE.
 * Errors: INFEASIBLE (a node that no device supports, and why; a device that supports none), NOMEM.
 */
PSPLIT_MUST_USE psplit_code psplit_i_planner_find_refusals(psplit_planner *planner,
                                                           psplit_diag *diag);
/* Whether the device of a stage cannot run a node. */
static inline bool psplit_i_planner_refuses(const psplit_planner *planner, uint32_t stage,
                                            uint32_t node) {
  return planner->node_refused &&
         planner
           ->node_refused[(size_t)planner->device_class[stage] * planner->graph->n_nodes + node];
}
/* Whether a device, used by the plan or not, supports all nodes. */
bool psplit_i_planner_runs_all(const psplit_planner *planner, uint32_t device);
/* Adds to what `diag` says that some nodes run on some devices alone, if so. */
void psplit_i_name_refused(const psplit_planner *planner, psplit_diag *diag);

/* Time of the whole model on a device, used by the plan or not. O(nodes). */
int64_t psplit_i_planner_total_ns(const psplit_planner *planner, uint32_t device);

/* Finds what is folded besides free nodes. Needs SHAPES and LIVE. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_find_folded(psplit_planner *planner,
                                                         psplit_diag *diag);

/* Roofline of a node; 0 for dead, free and folded ones, since runtimes drop or fold them. */
int64_t psplit_i_roofline_ns(const psplit_planner *planner, const psplit_i_costs *costs,
                             uint32_t device, uint32_t node);

/* To train: adds the times of options.training to node_ns. Those of a node that is free, which has
 * none, go to what reads it. Needs LIVE; node_ns as computed forward. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_add_training(psplit_planner *planner,
                                                          psplit_diag *diag);

/* What a stage takes for a micro-batch: the sum of what it does, or with options.overlap the
 * largest part. */
static inline int64_t psplit_i_planner_load_ns(const psplit_planner *planner, int64_t compute_ns,
                                               int64_t recv_ns, int64_t send_ns) {
  if (!planner->options.overlap)
    return psplit_i_sat_add_i64(compute_ns, psplit_i_sat_add_i64(recv_ns, send_ns));
  const int64_t moved_ns = recv_ns > send_ns ? recv_ns : send_ns;
  return compute_ns > moved_ns ? compute_ns : moved_ns;
}

/* Of a node's time, cell [class][node] of node_ns: what is not forward. Plugins may have made
 * node_ns less than that. */
static inline int64_t psplit_i_planner_backward_ns(const psplit_planner *planner, size_t cell) {
  if (!planner->node_more_ns) return 0;
  const int64_t more_ns = planner->node_more_ns[cell], all_ns = planner->node_ns[cell];
  return more_ns < all_ns ? more_ns : all_ns;
}

/* Of what crosses, there and back: what comes back. */
static inline int64_t psplit_i_planner_returning_ns(int64_t crossing_ns) {
  return crossing_ns - crossing_ns / 2;
}

/* How many micro-batches a stage that trains holds at a time. */
static inline uint32_t psplit_i_planner_in_flight(const psplit_planner_options *options,
                                                  uint32_t stage) {
  if (options->objective == PSPLIT_FILL_DRAIN)
    return options->n_micro_batches ? options->n_micro_batches : 1;
  return stage < options->n_stages ? options->n_stages - stage : 1;
}

/* Puts planner->copies in their order. */
void psplit_i_copies_sort(psplit_planner *planner);
/* Whether any of them takes time. */
bool psplit_i_copies_take_time(const psplit_planner *planner);
/* Whether the stage holds a copy of a node that another stage owns. O(log copies). */
bool psplit_i_planner_is_copied(const psplit_planner *planner, uint32_t node, uint32_t stage);

/* Says how an If with more than half of the work can be inlined, where there are stages to make.
 * Needs node_ns. */
void psplit_i_say_heavy_if(const psplit_planner *planner);
/* The same for a state that was known by name. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_say_heavy_state(psplit_planner *planner, psplit_diag *diag);

/* Warns where nodes of one graph share a name, which ONNX Runtime refuses. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_say_shared_names(const psplit_planner *planner,
                                                      psplit_diag *diag);

typedef PSPLIT_VEC(psplit_plan_transfer) psplit_i_transfers;

/* By value, then by receiver. O(n log n). */
void psplit_i_sort_by_value(psplit_plan_transfer *transfers, size_t n);

/* Puts in place of each transfer between stages without a link its hops by way of others. In: from
 * the stage of the producer, in any order; out: in any order. Errors: INFEASIBLE (no way; names the
 * devices), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_relay_transfers(psplit_planner *planner,
                                                     psplit_i_transfers *io_transfers,
                                                     psplit_diag *diag);
/* Adds the names of two devices that no links join, if there are such, to what `diag` says. */
void psplit_i_name_unreachable(const psplit_planner *planner, psplit_diag *diag);

/* Whether stages may pass tensors on to save messages: for throughput over three devices and more
 * that are alike but for memory and all linked alike, where latency is a message's; in the order of
 * devices as they stand. O(n_stages^2). */
bool psplit_i_planner_may_pass_on(const psplit_planner *planner);

/* Makes planner->plan from stage, copies and solution: transfers, loads, memory. Resets
 * planner->scratch: nothing of it outlives the call. Errors: NOMEM, INTERNAL (a bound above the
 * plan). */
PSPLIT_MUST_USE psplit_code psplit_i_plan_make(psplit_planner *planner, psplit_diag *diag);
/* Says what the plan may be taken to promise; takes back its proof where a run may tell
 * otherwise. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_headline(psplit_planner *planner, psplit_plan *plan,
                                                   psplit_diag *diag);
/* What of a load is not backward. */
static inline int64_t psplit_i_stage_forward_ns(const psplit_plan_stage *stage) {
  return stage->load_ns - stage->backward_load_ns;
}
/* Of the stage that takes most of that. */
static inline int64_t psplit_i_plan_forward_ns(const psplit_plan *plan) {
  int64_t most_ns = 0;
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const int64_t ns = psplit_i_stage_forward_ns(&plan->stages[s]);
    if (ns > most_ns) most_ns = ns;
  }
  return most_ns;
}

/* Independent proof that groups partition the nodes and that the quotient graph is acyclic (which
 * implies that every group is convex). INTERNAL with the names of two nodes otherwise. */
PSPLIT_MUST_USE psplit_code psplit_i_check_groups(const psplit_planner *planner, psplit_diag *diag);
/* The same for stages: never decreasing along an edge that no copy explains away, all in range. */
PSPLIT_MUST_USE psplit_code psplit_i_check_stages(const psplit_planner *planner, psplit_diag *diag);

#endif
