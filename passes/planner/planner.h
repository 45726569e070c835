/* The planner: the object that passes transform. It holds the model, the facts that are known of it
 * (shapes, costs, flags, the grouping, the stages) and finally the plan. A pass declares the facts
 * that it needs and those that it keeps; the pass manager establishes the former, runs the pass and
 * drops the facts that it does not keep. Groups are always convex, and the quotient graph is
 * acyclic: check.c proves this after each pass. The planner does no I/O and sees no protobuf
 * type. */
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
  PSPLIT_I_FACT_GROUPS = 1 << 3, /* a grouping with several nodes per group */
  PSPLIT_I_FACT_STAGES = 1 << 4
} psplit_i_fact;

/* What a profile says of the layout of the kernel that contains a node. */
typedef enum psplit_i_layout_seen {
  PSPLIT_I_LAYOUT_UNKNOWN,
  PSPLIT_I_LAYOUT_PLAIN,
  PSPLIT_I_LAYOUT_BLOCKED
} psplit_i_layout_seen;

/* A line of text that a pass attaches to a node, or to the model (PSPLIT_NONE). */
typedef struct psplit_i_note {
  uint32_t node;
  const char *pass, *text;
} psplit_i_note;

/* A bare problem that was solved, as JSON, and its solution. */
typedef struct psplit_i_solved {
  char *problem;
  size_t n;
  bool next_hop; /* links were missing, which the JSON does not contain */
  /* [n_stages^2] in the arena: route table by which tensors go, if the bound holds for all routes;
   * else NULL. */
  const uint32_t *ways;
  psplit_partition_options options;
  psplit_solution *solution;
} psplit_i_solved;

struct psplit_planner {
  const psplit_model *model;
  const psplit_i_graph *graph;
  psplit_planner_options options;
  /* options.dims starts with the caller's sizes, of which there are n_own_dims. They are followed
   * by the sizes that tables of costs were measured with, unless these contradict the caller's. */
  size_t n_own_dims;
  size_t n_given_dims; /* as n_own_dims, without those of options.decode */
  /* the table whose shapes of values are used, or NULL */
  const psplit_cost_table *seen_in;
  const psplit_i_seen *given;  /* [options.n_shapes] sizes of inputs that the caller gave */
  psplit_devices *own_devices; /* if the caller gave no devices */
  /* Stage i runs on device i of these: the caller's devices, or these in another order,
   * `ordered`. */
  const psplit_devices *devices;
  psplit_devices *ordered;
  uint32_t *device_id; /* [devices] position of a device in the given order */
  bool order_is_free;  /* `partition` may choose another order */
  /* number of stages that the caller asked for; with segments, number of devices */
  uint32_t n_asked;
  /* a device may have several stages; then the bound, and what proved it: */
  bool segmented;
  int64_t segments_bound_ns;
  const char *segments_bound, *segments_solver;
  /* If stages may have several devices: their number, by stage, and their names. NULL: each stage
   * has one. */
  uint32_t *n_replicas;
  const char *const **replica_devices;
  /* Number of given devices, the first ones, on which stages may run: n_asked unless the order is
   * free. */
  uint32_t n_candidates;
  bool
    /* then, bounds on any order, and on all orders except the chosen one (or INT64_MAX) */
    order_chosen;
  int64_t any_order_bound_ns, other_orders_bound_ns;
  const char *any_order_bound;
  /* [n_stages * n_stages] route table between stages (base/route.h); NULL if all pairs of stages
   * are linked. */
  uint32_t *next_hop;
  bool
    /* relays are chosen to save messages, although all pairs of stages are linked */
    passes_on;
  psplit_i_arena arena;   /* of facts; lives as long as the planner */
  psplit_i_arena scratch; /* reset by the pass manager after every pass */
  unsigned facts;

  /* The budget of all problems that passes solve (placing/plan_budget.h); NULL before a pipeline
   * runs. */
  struct psplit_i_plan_budget *budget;
  const char *last_pass; /* name of the last pass that ran, or NULL */

  uint32_t *pin; /* [n_nodes] stage, or PSPLIT_NONE */
  /* [n_nodes] nodes with different marks are never grouped; PSPLIT_NONE: no mark */
  uint32_t *apart;
  uint32_t *together;  /* [n_nodes] class, or PSPLIT_NONE */
  uint32_t n_together; /* number of classes */
  uint8_t *uncuttable; /* [n_values] 1: the value must not be sent between stages */

  psplit_i_states_request named_states; /* options.states */
  psplit_i_states states;               /* with the fact SHAPES */
  /* [n_nodes] class of the nodes that read or write one state, which share a stage, or
   * PSPLIT_NONE. */
  uint32_t *state_class;
  uint32_t n_state_classes;
  /* there is no split that keeps all classes, so only the nodes of named states share a stage */
  bool states_parted;
  PSPLIT_VEC(psplit_i_note) notes;

  psplit_i_shapes *shapes;
  psplit_i_costs *costs;
  int64_t assumed_size;   /* assumed size of dimensions that nothing fixes */
  uint32_t n_classes;     /* number of classes of equal devices, by first appearance */
  uint32_t *class_device; /* [n_classes] one device of the class */
  uint32_t *device_class; /* [n_classed] class of a device, in the current order */
  /* number of devices with a class, the first ones: those of all stages, and maybe others */
  uint32_t n_classed;
  uint32_t *given_class; /* [n_candidates] class of a device, in the given order */
  int64_t *node_ns;      /* [n_classes][n_nodes] */
  /* With options.prefill, node_ns holds means over steps, and this array the times of decode alone.
   * The times of prefill are the node_ns of another planner, which has the sizes of prefill. NULL
   * without options.prefill. */
  int64_t *decode_ns;
  psplit_planner *prefill;
  /* [n_classes][n_nodes] when training: the part of node_ns that is not forward; NULL: none */
  int64_t *node_more_ns;
  /* [n_classes][n_nodes] 1: the device cannot run the node; NULL: all devices run all nodes */
  uint8_t *node_refused;
  uint64_t *node_workspace_bytes; /* [n_nodes] as given in costs files; NULL: not given */
  const char *cost_source;        /* "analytic", "measured" or "given" */
  uint8_t *node_layout;           /* [n_nodes] psplit_i_layout_seen */
  /* time to move bytes of images, relative to the time that memory bandwidth suggests */
  double move_factor;
  double measured_frac;        /* fraction of the time of all nodes that tables of costs cover */
  psplit_op_class *node_class; /* [n_nodes] */
  /* [n_nodes] psplit_i_data_dependence of the node's time; none if a costs file has a measured
   * time. */
  uint8_t *node_data;
  /* [n_nodes] times on the first device if data-dependent sizes were a thousand times as large;
   * NULL if no node's work depends on them. */
  int64_t *node_plenty_ns;
  uint8_t *node_flags; /* [n_nodes] PSPLIT_I_NODE_* */
  /* [n_nodes] with the fact COSTS. 1: the node is executed only once, when a session is opened.
   * NULL: there are no such nodes. */
  uint8_t *node_folded;

  psplit_i_grouping grouping;
  /* [n_patterns] counts of the last `fuse`, or NULL */
  const psplit_i_pattern_count *patterns;
  uint32_t n_patterns;
  bool coarsened; /* groups were merged that an optimal cut might separate */

  uint32_t *stage;                     /* [n_nodes] the stage that owns the node */
  psplit_solution *solution;           /* result of the last `partition` */
  PSPLIT_VEC(psplit_i_solved) solved;  /* with options.certify */
  PSPLIT_VEC(psplit_plan_copy) copies; /* by stage, then node */
  /* If a slower split was chosen that has fewer transfers: values of the best split. best_ns 0:
   * none. */
  int64_t best_ns;
  uint32_t best_transfers;
  bool best_proved;
  const char *best_proof_scope;
  /* lower bound on splits with copies of nodes; 0: not computed */
  int64_t copies_bound_ns;
  bool copies_any_route; /* it holds for all routes of tensors */
  /* it holds for all sets of copies, not only for those in which each copy pays */
  bool copies_tried;
  /* Lower bound on splits without copies and for all routes of tensors; 0: not computed. */
  int64_t any_route_bound_ns;
  psplit_plan *plan;
  bool plan_holds; /* the last pass made the plan, and nothing has changed since */
};

/* Takes the sizes of inputs that the caller gave: adds those of symbolic dimensions to
 * options.dims, and all to `given`. Errors: USAGE (no such input, a size that it cannot have),
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_take_shapes(psplit_planner *planner,
                                                         psplit_diag *diag);
/* Takes sizes from the tables of costs; see n_own_dims. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_take_sizes(psplit_planner *planner, psplit_diag *diag);
/* The sizes of dimensions in use, in the scratch arena; NULL when out of memory. */
psplit_i_binding *psplit_i_planner_bindings(psplit_planner *planner);

/* Whether a value can be sent: it is a tensor of known element type. */
bool psplit_i_planner_sendable(const psplit_planner *planner, uint32_t value);

/* Makes n stages, of which stage i runs on given device order[i]; unused devices follow. NULL:
 * n_asked stages on the devices in the given order. Resets planner->scratch. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_order_devices(psplit_planner *planner,
                                                           const uint32_t *order, uint32_t n,
                                                           psplit_diag *diag);
/* Finds routes between stages whose devices are not linked, in the current order. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_find_routes(psplit_planner *planner,
                                                         psplit_diag *diag);

/* The pairs of stages met so far in a list of transfers that is sorted by sending stage. If latency
 * is per message, the first transfer of a pair has it. */
typedef struct psplit_i_pairs_met {
  const psplit_planner *planner;
  uint32_t *by; /* [n_stages] 1 + the stage that last sent something to the stage */
} psplit_i_pairs_met;

/* Memory is from planner->scratch. Returns false if out of memory. */
PSPLIT_MUST_USE bool psplit_i_pairs_begin(psplit_planner *planner, psplit_i_pairs_met *out);
int64_t psplit_i_pairs_transfer_ns(psplit_i_pairs_met *met, const psplit_plan_transfer *transfer,
                                   uint64_t bytes);

/* Time to move `bytes` from one stage to a later one, over all hops; INT64_MAX: there is no
 * route. */
int64_t psplit_i_planner_transfer_ns(const psplit_planner *planner, uint32_t from, uint32_t to,
                                     uint64_t bytes);

/* Bytes of a value under the planner's assumptions. *out_known (may be NULL): they do not depend on
 * an assumption. */
uint64_t psplit_i_planner_value_bytes(const psplit_planner *planner, uint32_t value,
                                      bool *out_known);

/* Likewise for transfers: the mean over steps if there are steps of two kinds. */
uint64_t psplit_i_planner_sent_bytes(const psplit_planner *planner, uint32_t value,
                                     bool *out_known);

bool psplit_i_planner_is_constant(const psplit_planner *planner, uint32_t value);

/* Bytes of a constant that a stage keeps as long as it lives: as stored, or as computed by free
 * nodes. */
uint64_t psplit_i_planner_weight_bytes(const psplit_planner *planner, uint32_t value);

/* Whether the bytes of a value depend on data, so that only a run can tell. */
bool psplit_i_planner_value_data(const psplit_planner *planner, uint32_t value);

/* Sets node_refused and `apart` from what the devices support. Needs node_ns, classes and LIVE.
 * Errors: INFEASIBLE (a node that no device supports, and why; a device that supports no node),
 * NOMEM. */
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
/* If some nodes only run on some devices, adds this to the message of `diag`. */
void psplit_i_name_refused(const psplit_planner *planner, psplit_diag *diag);

/* Time of the whole model on a device, used by the plan or not. O(nodes). */
int64_t psplit_i_planner_total_ns(const psplit_planner *planner, uint32_t device);

/* Finds the nodes that are folded, in addition to free ones. Needs SHAPES and LIVE. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_find_folded(psplit_planner *planner,
                                                         psplit_diag *diag);

/* Roofline time of a node; 0 for dead, free and folded nodes, which runtimes drop or fold. */
int64_t psplit_i_roofline_ns(const psplit_planner *planner, const psplit_i_costs *costs,
                             uint32_t device, uint32_t node);

/* For training: adds the times of options.training to node_ns. A free node takes no time itself, so
 * its part is added to the nodes that read it. Needs LIVE, and the forward times in node_ns. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_add_training(psplit_planner *planner,
                                                          psplit_diag *diag);

/* Load of a stage per micro-batch: the sum of its parts or, with options.overlap, the largest. */
static inline int64_t psplit_i_planner_load_ns(const psplit_planner *planner, int64_t compute_ns,
                                               int64_t recv_ns, int64_t send_ns) {
  if (!planner->options.overlap)
    return psplit_i_sat_add_i64(compute_ns, psplit_i_sat_add_i64(recv_ns, send_ns));
  const int64_t moved_ns = recv_ns > send_ns ? recv_ns : send_ns;
  return compute_ns > moved_ns ? compute_ns : moved_ns;
}

/* The part of a node's time that is not forward; `cell` is [class][node] of node_ns. It is limited
 * by node_ns, which plugins may have lowered. */
static inline int64_t psplit_i_planner_backward_ns(const psplit_planner *planner, size_t cell) {
  if (!planner->node_more_ns) return 0;
  const int64_t more_ns = planner->node_more_ns[cell], all_ns = planner->node_ns[cell];
  return more_ns < all_ns ? more_ns : all_ns;
}

/* The returning part of a transfer in both directions. */
static inline int64_t psplit_i_planner_returning_ns(int64_t crossing_ns) {
  return crossing_ns - crossing_ns / 2;
}

/* Number of micro-batches that a stage holds at the same time in training. */
static inline uint32_t psplit_i_planner_in_flight(const psplit_planner_options *options,
                                                  uint32_t stage) {
  if (options->objective == PSPLIT_FILL_DRAIN)
    return options->n_micro_batches ? options->n_micro_batches : 1;
  return stage < options->n_stages ? options->n_stages - stage : 1;
}

/* Sorts planner->copies. */
void psplit_i_copies_sort(psplit_planner *planner);
/* Whether any copy takes time. */
bool psplit_i_copies_take_time(const psplit_planner *planner);
/* Whether the stage has a copy of a node that another stage owns. O(log copies). */
bool psplit_i_planner_is_copied(const psplit_planner *planner, uint32_t node, uint32_t stage);

/* What to say after a node (or PSPLIT_NONE) that is in the way: if it is an If, that no cut goes
 * through its branches, and as *out_advice how to inline one; else "" and no advice. NULL when out
 * of memory. */
const char *psplit_i_why_undivided(const psplit_planner *planner, uint32_t node,
                                   psplit_i_advice *out_advice);
/* If there are several stages and an If has more than half of the work, says how to inline it.
 * Needs node_ns. */
void psplit_i_say_heavy_if(const psplit_planner *planner);
/* Likewise, if a state that was found by name keeps more than half of the work in one stage, says
 * how to part it. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_say_heavy_state(psplit_planner *planner, psplit_diag *diag);

/* Warns if nodes of one graph share a name, which ONNX Runtime refuses. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_say_shared_names(const psplit_planner *planner,
                                                      psplit_diag *diag);

typedef PSPLIT_VEC(psplit_plan_transfer) psplit_i_transfers;

/* Sorts by value, then by receiver. O(n log n). */
void psplit_i_sort_by_value(psplit_plan_transfer *transfers, size_t n);

/* Replaces each transfer between stages without a link by its hops over other stages. The transfers
 * start at the producer's stage; their order is arbitrary before and after. Errors: INFEASIBLE (no
 * route; names the devices), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_relay_transfers(psplit_planner *planner,
                                                     psplit_i_transfers *io_transfers,
                                                     psplit_diag *diag);
/* If no route joins two devices, adds their names to the message of `diag`. */
void psplit_i_name_unreachable(const psplit_planner *planner, psplit_diag *diag);

/* Whether stages may pass tensors on to save messages: for throughput, with latency per message, on
 * three or more devices that are alike except for memory, and whose links are alike in the current
 * order. O(n_stages^2). */
bool psplit_i_planner_may_pass_on(const psplit_planner *planner);

/* Makes planner->plan from stages, copies and solution: transfers, loads and memory. Resets
 * planner->scratch, and uses it only during the call. Errors: NOMEM, INTERNAL (a bound above the
 * plan). */
PSPLIT_MUST_USE psplit_code psplit_i_plan_make(psplit_planner *planner, psplit_diag *diag);
/* States what the plan promises; withdraws its proof if a run may show otherwise. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_headline(psplit_planner *planner, psplit_plan *plan,
                                                   psplit_diag *diag);
/* The part of a load that is not backward. */
static inline int64_t psplit_i_stage_forward_ns(const psplit_plan_stage *stage) {
  return stage->load_ns - stage->backward_load_ns;
}
/* The largest such part of any stage. */
static inline int64_t psplit_i_plan_forward_ns(const psplit_plan *plan) {
  int64_t most_ns = 0;
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const int64_t ns = psplit_i_stage_forward_ns(&plan->stages[s]);
    if (ns > most_ns) most_ns = ns;
  }
  return most_ns;
}

/* Proves independently that groups partition the nodes, and that the quotient graph is acyclic,
 * which implies that every group is convex. Otherwise INTERNAL, with the names of two nodes. */
PSPLIT_MUST_USE psplit_code psplit_i_check_groups(const psplit_planner *planner, psplit_diag *diag);
/* Likewise for stages: all are in range, and none decreases along an edge, unless a copy explains
 * it. */
PSPLIT_MUST_USE psplit_code psplit_i_check_stages(const psplit_planner *planner, psplit_diag *diag);

#endif
