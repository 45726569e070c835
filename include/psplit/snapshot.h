/* The planner's state as plain data: operators, supernodes, stages, and the tensors between them.
 * Taken before, between or after passes; flags say what is known yet. */
#ifndef PSPLIT_SNAPSHOT_H
#define PSPLIT_SNAPSHOT_H

#include <psplit/base.h>
#include <psplit/passes.h>
#include <psplit/plan.h>
#include <psplit/work.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PSPLIT_SNAPSHOT_SHAPES = 1, /* types of values are known */
  PSPLIT_SNAPSHOT_COSTS = 2,  /* work, times and bytes are known */
  PSPLIT_SNAPSHOT_LIVE = 4,   /* node flags are */
  PSPLIT_SNAPSHOT_STAGES = 8  /* stages and the plan are */
};

enum {
  PSPLIT_SNAPSHOT_NODE_DEAD = 1, /* reaches no output */
  /* A function of constants: in no supernode, and in every stage that reads its result. */
  PSPLIT_SNAPSHOT_NODE_FREE = 2,
  PSPLIT_SNAPSHOT_NODE_REPEATABLE = 4, /* may be copied instead of sending its result */
  PSPLIT_SNAPSHOT_NODE_DATA = 8        /* its time depends on data and was not measured */
};

/* An operator; its id is its position in the file. */
typedef struct psplit_snapshot_node {
  const char *name; /* "" if it has none */
  const char *op_type;
  const char *domain;       /* "" for the standard operators */
  const uint32_t *inputs;   /* [n_inputs] value ids; PSPLIT_NONE for an omitted one */
  const uint32_t *captures; /* [n_captures] value ids that its bodies read */
  const uint32_t *outputs;  /* [n_outputs] value ids; PSPLIT_NONE for an omitted one */
  uint32_t n_inputs, n_captures, n_outputs;
  uint32_t group;         /* supernode, or PSPLIT_NONE for free nodes */
  uint32_t stage;         /* the one that owns it; PSPLIT_NONE while unknown */
  unsigned flags;         /* PSPLIT_SNAPSHOT_NODE_* */
  psplit_work work;       /* zero without COSTS */
  const char *class_name; /* psplit_op_class_name(work.op_class) */
  int64_t cost_ns;        /* on the device of its stage, or the first one while that is unknown */
} psplit_snapshot_node;

typedef struct psplit_snapshot_value {
  const char *name;
  const char *type;  /* "float32[batch, 64]"; NULL without SHAPES */
  uint32_t producer; /* node, or PSPLIT_NONE */
  bool is_input, is_output;
  bool is_constant; /* a weight, or made by a free node */
  bool bytes_known; /* no assumption was needed */
  uint64_t bytes;   /* 0 without COSTS or where it cannot be told */
} psplit_snapshot_value;

/* A supernode. Without grouping passes, every operator that is not free is one. */
typedef struct psplit_snapshot_group {
  const char *title;     /* from the exporter's scope names */
  const char *kind;      /* kind of operation: "attention", "conv + add + ReLU" */
  const char *scope;     /* of all its operators: "encoder.layers.3"; "" without one */
  const uint32_t *nodes; /* [n_nodes] in topological order */
  uint32_t n_nodes;
  uint32_t stage;   /* PSPLIT_NONE while unknown */
  bool bytes_known; /* of bytes_in and bytes_out */
  int64_t cost_ns;
  uint64_t weight_bytes; /* constants that it reads, each once, or contains */
  uint64_t bytes_in,
    bytes_out; /* tensors from and to other supernodes and the model's own; each once */
} psplit_snapshot_group;

/* A sequence of repeated blocks, such as layers: block b is the n_groups supernodes from first + b
 * * n_groups on. */
typedef struct psplit_snapshot_repeat {
  const char *title; /* "encoder.layers.[0-11]"; "" where the model has no scope names */
  uint32_t first, n_blocks, n_groups;
} psplit_snapshot_repeat;

/* A note of a plugin's pass. */
typedef struct psplit_snapshot_note {
  uint32_t node; /* PSPLIT_NONE: about the model as a whole */
  const char *pass, *text;
} psplit_snapshot_note;

/* Matches of a fusion pattern in the pass fuse. Patterns of the same name, which are alternatives,
 * count together. */
typedef struct psplit_snapshot_pattern {
  const char *name;
  uint32_t n_matches;
  uint32_t n_nodes; /* of all matches; operators in several matches count in each */
} psplit_snapshot_pattern;

/* A state: an output that is an input of the next run. */
typedef struct psplit_snapshot_state {
  uint32_t output, input;    /* values */
  uint32_t writer, reader;   /* stages, as psplit_plan_state has them; PSPLIT_NONE while unknown */
  bool shared_buffer, named; /* as there */
} psplit_snapshot_state;

/* A tensor between two supernodes. */
typedef struct psplit_snapshot_edge {
  uint32_t from, to, value;
} psplit_snapshot_edge;

/* Data for computing times and memory of any split of the supernodes into the plan's stages, in
 * addition to the plan, operators and values; docs/inspect.md describes the computation. */
typedef struct psplit_snapshot_counting {
  /* Reason why this is insufficient ("a plan for training"), and then everything below is 0; NULL:
   * sufficient. */
  const char *refused;
  uint32_t n_classes;             /* different devices */
  const uint32_t *stage_class;    /* [n_stages] */
  const int64_t *group_ns;        /* [n_classes * n_groups], by class */
  const uint8_t *group_refused;   /* likewise: 1 if it cannot run there */
  const uint32_t *group_pin;      /* [n_groups] required stage, or PSPLIT_NONE */
  const uint32_t *group_together; /* [n_groups] equal numbers share a stage; or PSPLIT_NONE */
  const uint32_t *group_state;    /* likewise, for states */
  /* Groups were merged beyond patterns, so pinning single nodes would change the groups. */
  bool coarsened;
  const uint8_t *unsendable;      /* [n_values] 1: must not be sent */
  const int64_t *link_latency_ns; /* [n_stages * n_stages], by sender */
  const double *link_bytes_per_second;
  /* [n_stages * n_stages] by sender: the next stage on the route, PSPLIT_NONE if there is none;
   * NULL: all devices are linked. */
  const uint32_t *next_hop;
  /* Stages relay tensors if that reduces the bottleneck by more than slack_frac. */
  bool may_pass_on;
  double slack_frac;
  /* Layout costs of cuts: a stage with one of the readers (groups) of price p but not its producer
   * takes recv_ns more, and the producer's stage send_ns; times [n_prices * n_classes]. */
  uint32_t n_prices;
  const uint32_t *price_maker, *price_off, *price_reader; /* [n_prices], [n_prices + 1] */
  const int64_t *price_recv_ns, *price_send_ns;
  /* Memory. Of a constant's bytes, copies_percent[4 * value_copies[v] + 2 * (weights stand outside
   * of the model) + (read by a convolution first)] are held besides. */
  const uint8_t *value_copies; /* [n_values], of constants */
  uint32_t n_copies_percent;
  const uint32_t *copies_percent;
  const uint32_t *node_nodes;            /* [n_nodes] with those in bodies */
  const uint8_t *node_has_bodies;        /* [n_nodes] */
  const uint64_t *node_bytes;            /* [n_nodes] constants in bodies, functions and tables */
  const uint64_t *node_copies_bytes;     /* [n_nodes] what a runtime that copies holds besides */
  const uint64_t *node_workspace_bytes;  /* [n_nodes] while it runs */
  const uint64_t *stage_workspace_bytes; /* [n_stages] */
  const uint8_t *stage_keeps_copies;     /* its runtime does, with the parameters below */
  uint32_t queue_depth, n_sequences, body_percent, arena_percent;
  bool inline_weights;
  uint64_t outside_bytes, session_bytes, operator_bytes;
} psplit_snapshot_counting;

typedef struct psplit_snapshot {
  unsigned facts;   /* PSPLIT_SNAPSHOT_* */
  const char *pass; /* the last pass that ran; NULL: none */
  uint32_t n_nodes, n_values, n_groups, n_edges, n_stages, n_repeats, n_notes;
  const psplit_snapshot_node *nodes;
  const psplit_snapshot_value *values;
  const uint32_t *topo;                  /* [n_nodes] */
  const psplit_snapshot_group *groups;   /* numbered in topological order */
  const psplit_snapshot_edge *edges;     /* by from, to, value */
  const psplit_snapshot_repeat *repeats; /* by first; they do not overlap */
  const psplit_snapshot_note *notes;     /* in order of creation */
  /* Groups by stage, then number: every cut between adjacent positions of this order is a split in
   * two. After position i, cut_bytes[i] bytes cross, which take cut_ns[i] over the first link. */
  const uint32_t *order;              /* [n_groups] */
  const uint64_t *cut_bytes;          /* [n_groups] */
  const int64_t *cut_ns;              /* [n_groups]; 0 for a single device */
  const psplit_plan *plan;            /* NULL without STAGES */
  const char *const *device_name;     /* [n_stages] */
  const uint64_t *memory_limit_bytes; /* [n_stages]; UINT64_MAX: none */
  /* [n_patterns] of the last fuse, in the order of the pattern file; NULL before one. */
  const psplit_snapshot_pattern *patterns;
  uint32_t n_patterns;
  uint32_t n_states;
  const psplit_snapshot_state *states;      /* [n_states] in the order of the model's inputs */
  const psplit_snapshot_counting *counting; /* NULL before psplit_snapshot_count() */
} psplit_snapshot;

/* The unit as it is now. The snapshot borrows from the planner and its model, which outlive it;
 * later passes do not change it. Errors: NOMEM. O(nodes + values + edges, times log). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_snapshot_take(psplit_planner *planner,
                                                            psplit_diag *diag,
                                                            psplit_snapshot **out_snapshot);
/* Fills in `counting` of a snapshot that was taken of the planner as it still is; nothing where
 * there are no stages. Pages use it. Errors: NOMEM. O(nodes * classes of devices + edges). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_snapshot_count(const psplit_planner *planner,
                                                             psplit_snapshot *snapshot,
                                                             psplit_diag *diag);
/* NULL is fine. */
PSPLIT_API void psplit_snapshot_destroy(psplit_snapshot *snapshot);

#ifdef __cplusplus
}
#endif
#endif
