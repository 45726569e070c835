/* A plan: which stage owns each operator node, what crosses between stages, and how good it is. */
#ifndef PSPLIT_PLAN_H
#define PSPLIT_PLAN_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Times are ns of one micro-batch, under the assumptions the plan names. */
typedef struct psplit_plan_stage {
  const char *device;
  uint32_t n_nodes;      /* operator nodes in the stage's file, duplicates included */
  uint32_t n_duplicated; /* of these, nodes whose own stage is another */
  uint32_t n_supernodes;
  uint64_t weight_bytes;          /* initializers and constants, each once */
  uint64_t peak_activation_bytes; /* most bytes of live values at once, in the file's order */
  uint64_t buffer_bytes;          /* received and sent tensors of the micro-batches that wait */
  uint64_t workspace_bytes;       /* what the device's runtime keeps for itself */
  uint64_t memory_bytes;          /* the sum of these: held against the device's memory */
  int64_t compute_ns, recv_ns, send_ns, load_ns;
  int64_t backward_ns;  /* to train: of compute_ns, what is not forward */
  uint64_t stash_bytes; /* to train: kept by micro-batches in flight; `memory_bytes` counts it */
  /* Of compute_ns, what the stage takes because of cuts: tensors that it brings from one layout of
   * the runtime into another, and kernels that are no longer one. */
  int64_t layout_ns;
  uint64_t state_bytes; /* caches of all sequences in flight; `memory_bytes` counts them */
  uint64_t
    mapped_bytes;      /* of memory_bytes, what weights in a file of their own would save, about */
  uint32_t device_id;  /* position of `device` in the planner's devices */
  uint32_t n_replicas; /* devices that compute the stage, each a micro-batch of its own */
  int64_t
    turn_ns; /* load_ns over their number, rounded up: what the bottleneck is the largest of */
  const char *const *replica_devices; /* [n_replicas] names; NULL: `device` alone */
  int64_t backward_load_ns; /* to train: of load_ns, what is not forward: backward_ns, and of what
                               crosses the half that comes back */
  uint32_t n_in_flight;     /* to train: micro-batches whose stash is kept at a time */
} psplit_plan_stage;

/* A tensor that crosses: sent once to each stage that receives it. */
typedef struct psplit_plan_transfer {
  uint32_t value;      /* id in the model's graph index */
  const char *tensor;  /* its name */
  uint32_t from, to;   /* from < to */
  bool bytes_known;    /* no assumption was needed */
  bool data_dependent; /* only a run can tell them */
  uint64_t bytes;      /* of one micro-batch */
} psplit_plan_transfer;

/* A node computed in a stage besides its own, because that is cheaper than sending its result. */
typedef struct psplit_plan_copy {
  uint32_t node, stage;
} psplit_plan_copy;

/* A pair of an output and an input that is state: what a run gives and the next one takes. */
typedef struct psplit_plan_state {
  const char *output, *input;
  /* Stages that make the one and read the other; PSPLIT_NONE: none does. Where several read it, one
   * that does not make it. The state crosses no link where they are the same. */
  uint32_t writer, reader;
  bool shared_buffer; /* sizes agree: one buffer, which counts once */
  bool named;         /* by the caller, not found by name */
  bool bytes_known;   /* no assumption was needed */
  uint64_t bytes;     /* of the input, for one sequence */
} psplit_plan_state;

/* A kind of step of a decoder that the plan is for. */
typedef struct psplit_plan_phase {
  const char *name;            /* "decode" or "prefill" */
  int64_t past, tokens, batch; /* psplit_working_point */
  double step_frac;            /* of all steps; the sum over phases is 1 */
  int64_t bottleneck_ns;
  const int64_t *load_ns; /* [n_stages] of such a step, without layouts */
} psplit_plan_phase;

/* What a plan's times and transfers hang on that only a run can tell: numbers that are found
 * (NonZero), sizes read from tensors, branches taken, operators nobody knows. */
typedef struct psplit_plan_data {
  const uint8_t *node;  /* [n_nodes] 1: the node's time does, and no costs file has measured it */
  uint32_t n_nodes;     /* of these */
  double time_frac;     /* their part of the time on the first device, as counted */
  double plenty_frac;   /* the same if a run finds 1000 times as much: never less */
  uint32_t heaviest;    /* the one that takes most, if much is found; PSPLIT_NONE */
  uint32_t n_transfers; /* whose bytes do */
  uint32_t largest;     /* position of the largest of them, as counted; PSPLIT_NONE */
  /* More than 5 % of the time does, or may (a heavy operator, or many that are found), or a
   * transfer: nothing is proved then, and there is no speed-up to tell. */
  bool matters;
} psplit_plan_data;

typedef struct psplit_plan {
  uint32_t n_nodes;
  const uint32_t *node_stage; /* [n_nodes] the stage that owns it; never falls along an edge */
  uint32_t n_stages;
  const psplit_plan_stage *stages;
  uint32_t n_copies;
  const psplit_plan_copy *copies; /* by stage, then node; distinct; not the node's own stage */
  uint32_t n_transfers;
  /* By sending stage, then value, then receiving stage; the position is the message tag. */
  const psplit_plan_transfer *transfers;
  bool trains;                /* times and memory are those of training */
  const char *objective;      /* "throughput", "latency" or "fill-drain" */
  const char *solver, *bound; /* what found the plan, what certifies it */
  const char *cost_source;    /* "analytic", "measured" or "given" */
  double measured_frac;       /* part of total_compute_ns that costs files speak of */
  int64_t bottleneck_ns;      /* load of the slowest stage; with segments, device */
  int64_t latency_ns;         /* of one micro-batch: a stage starts when all that send to it ended;
                             receives, computes and sends then, one after the other */
  bool latency_per_pair;      /* a link's latency counts once for all that a stage sends another */
  int64_t lower_bound_ns;     /* these three are of the objective, value_ns */
  double gap_frac;
  bool proved_optimal; /* never where data.matters */
  /* Bound and proof are "given": for the devices in the order that they were given; "chosen": for
   * all orders, of which the plan has the best that was found; "alike": no order of them is better
   * than another. */
  const char *device_order;
  int64_t total_compute_ns; /* of the whole model on the first device */
  /* Of all devices that hold and support the whole model, the one that is fastest at it, and its
   * time; NULL where none can. It may be one that the plan leaves unused. */
  const char *single_device;
  int64_t single_device_ns;
  double speed_up; /* over it, of what the objective makes small; -1: cannot be told */
  /* Of what the objective makes small, the stages' layout_ns: that of the slowest one, or for
   * latency of all. */
  int64_t layout_ns;
  psplit_plan_data data;
  const char *assumed; /* "batch = 1, x[0] = 1"; NULL where nothing is */
  /* The speed-up and what it rests on, or why there is none: a line to show, names as they are in
   * the file; NULL where no time passes. */
  const char *headline;
  uint32_t n_supernodes;
  uint32_t n_unknown_nodes; /* nodes whose cost could not be told */
  uint32_t n_dead_nodes;    /* nodes that reach no output */
  /* Symbols not fixed by the caller that costs depend on; "x[0]": a dimension of input x without a
   * name. */
  uint32_t n_assumed;
  const char *const *assumed_names; /* [n_assumed] */
  int64_t assumed_value;            /* what each was counted as */
  uint32_t n_devices;               /* as stages; with segments those that do something */
  psplit_hint headline_hint;        /* what would tell a speed-up where the headline has none */
  /* Of the best split that was found, where this one has fewer transfers and a bottleneck within
   * psplit_planner_options.slack_frac of its: the bottleneck, how many transfers, and whether no
   * split is below. 0: nothing was given up. */
  int64_t best_ns;
  uint32_t best_transfers;
  bool best_proved;
  /* 0: no working point was given. With two, the stages' times and the bytes of transfers are means
   * over steps. */
  uint32_t n_phases;
  const psplit_plan_phase *phases;
  uint32_t n_states;
  const psplit_plan_state *states; /* [n_states] in the order of the model's inputs */
  /* Stages receive and send while they compute: load_ns is the largest of the three, not their sum,
   * and what a device with several stages does is the largest of three sums. */
  bool overlap;
  /* Among which plans, of these costs, none is below lower_bound_ns: "among plans without copies
   * that send directly, for this order of devices", or "among all plans". proof_scope is the same
   * where the plan is proved_optimal, else NULL; best_proof_scope is best_proved's. */
  const char *bound_scope, *proof_scope, *best_proof_scope;
  /* To train: the largest forward load of a stage and the largest backward load of one, added up,
   * which is what a micro-batch takes where all run forward before any runs backward. */
  int64_t fill_drain_ns;
  /* What the objective makes small: bottleneck_ns for throughput, latency_ns, fill_drain_ns. */
  int64_t value_ns;
} psplit_plan;

/* Whether its stages' times are to be read by fill-drain, not by 1F1B. */
static inline bool psplit_plan_is_fill_drain(const psplit_plan *plan) {
  return strcmp(plan->objective, "fill-drain") == 0;
}

#ifdef __cplusplus
}
#endif
#endif
