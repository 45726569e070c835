/* A plan: the stage of each operator node, the transfers between stages, and its quality. */
#ifndef PSPLIT_PLAN_H
#define PSPLIT_PLAN_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Times are ns per micro-batch, under the assumptions that the plan lists. */
typedef struct psplit_plan_stage {
  const char *device;
  uint32_t n_nodes;      /* operator nodes in the stage's file, duplicates included */
  uint32_t n_duplicated; /* of these, copies of nodes of other stages */
  uint32_t n_supernodes;
  uint64_t weight_bytes;          /* initializers and constants, each once */
  uint64_t peak_activation_bytes; /* peak of live values, in the file's order */
  uint64_t buffer_bytes;          /* received and sent tensors of queued micro-batches */
  uint64_t workspace_bytes;       /* overhead of the device's runtime */
  uint64_t memory_bytes;          /* the sum of these: must fit the device's memory */
  int64_t compute_ns, recv_ns, send_ns, load_ns;
  int64_t backward_ns;  /* training: the part of compute_ns that is not forward */
  uint64_t stash_bytes; /* training: stash of micro-batches in flight; part of memory_bytes */
  /* The part of compute_ns that cuts cause: conversions between layouts of the runtime, and kernels
   * that are no longer fused. */
  int64_t layout_ns;
  uint64_t state_bytes;  /* caches of all sequences in flight; part of memory_bytes */
  uint64_t mapped_bytes; /* of memory_bytes, about what weights in a separate file would save */
  uint32_t device_id;    /* index of `device` in the planner's devices */
  uint32_t n_replicas;   /* devices that run the stage, on alternate micro-batches */
  int64_t turn_ns; /* load_ns / n_replicas, rounded up; the bottleneck is the largest of these */
  const char *const *replica_devices; /* [n_replicas] names; NULL: `device` alone */
  int64_t backward_load_ns; /* training: of load_ns, backward_ns and half of the transfers */
  uint32_t n_in_flight;     /* training: micro-batches whose stash is kept at a time */
} psplit_plan_stage;

/* A transfer of a tensor to one stage. */
typedef struct psplit_plan_transfer {
  uint32_t value;      /* id in the model's graph index */
  const char *tensor;  /* its name */
  uint32_t from, to;   /* from < to */
  bool bytes_known;    /* no assumption was needed */
  bool data_dependent; /* bytes depend on data */
  uint64_t bytes;      /* of one micro-batch */
} psplit_plan_transfer;

/* A copy of a node in another stage, which is cheaper than sending its result. */
typedef struct psplit_plan_copy {
  uint32_t node, stage;
} psplit_plan_copy;

/* A state: an output that is an input of the next run. */
typedef struct psplit_plan_state {
  const char *output, *input;
  /* Stages that write the output and read the input; PSPLIT_NONE: none. With several readers, one
   * that is not the writer. If they are equal, the state is not transferred. */
  uint32_t writer, reader;
  bool shared_buffer; /* equal sizes: one buffer, counted once */
  bool named;         /* by the caller, not found by name */
  bool bytes_known;   /* no assumption was needed */
  uint64_t bytes;     /* of the input, for one sequence */
} psplit_plan_state;

/* A kind of decoder step that the plan is for. */
typedef struct psplit_plan_phase {
  const char *name;            /* "decode" or "prefill" */
  int64_t past, tokens, batch; /* psplit_working_point */
  double step_frac;            /* of all steps; the sum over phases is 1 */
  int64_t bottleneck_ns;
  const int64_t *load_ns; /* [n_stages] of such a step, without layouts */
} psplit_plan_phase;

/* Data-dependent times and transfers of a plan: counts (NonZero), sizes read from tensors,
 * branches, unknown operators. */
typedef struct psplit_plan_data {
  const uint8_t *node;  /* [n_nodes] 1: the node's time depends on data, and was not measured */
  uint32_t n_nodes;     /* of these */
  double time_frac;     /* their fraction of the estimated time on the first device */
  double plenty_frac;   /* the same with 1000 times as many elements: never less */
  uint32_t heaviest;    /* the node with the most time in that case; PSPLIT_NONE */
  uint32_t n_transfers; /* with data-dependent bytes */
  uint32_t largest;     /* index of the largest of them, by estimate; PSPLIT_NONE */
  /* More than 5 % of the time depends on data, or may (a heavy operator, or many results), or a
   * transfer does: then nothing is proved, and no speed-up is reported. */
  bool matters;
} psplit_plan_data;

typedef struct psplit_plan {
  uint32_t n_nodes;
  const uint32_t *node_stage; /* [n_nodes] the stage that owns it; monotone along edges */
  uint32_t n_stages;
  const psplit_plan_stage *stages;
  uint32_t n_copies;
  const psplit_plan_copy *copies; /* by stage, then node; distinct; not the node's own stage */
  uint32_t n_transfers;
  /* By sending stage, then value, then receiving stage; the position is the message tag. */
  const psplit_plan_transfer *transfers;
  bool trains;                /* times and memory are those of training */
  const char *objective;      /* "throughput", "latency" or "fill-drain" */
  const char *solver, *bound; /* the solver that found the plan; the bound */
  const char *cost_source;    /* "analytic", "measured" or "given" */
  double measured_frac;       /* fraction of total_compute_ns from costs files */
  int64_t bottleneck_ns;      /* load of the slowest stage; with segments, device */
  /* Of one micro-batch: a stage starts when all its senders have ended; it receives, computes and
   * sends sequentially. */
  int64_t latency_ns;
  bool latency_per_pair;  /* a link's latency counts once per pair of stages */
  int64_t lower_bound_ns; /* these three refer to the objective, value_ns */
  double gap_frac;
  bool proved_optimal; /* never where data.matters */
  /* Scope of bound and proof: "given": for the given order of the devices; "chosen": for all
   * orders, of which the plan uses the best found; "alike": all orders are equivalent. */
  const char *device_order;
  int64_t total_compute_ns; /* of the whole model on the first device */
  /* The fastest device that can hold and run the whole model, and its time; NULL: none. The plan
   * may not use it. */
  const char *single_device;
  int64_t single_device_ns;
  double speed_up; /* relative to it, of the objective; -1: unknown */
  /* The part of the objective due to layout_ns: of the slowest stage, or for latency of all. */
  int64_t layout_ns;
  psplit_plan_data data;
  const char *assumed; /* "batch = 1, x[0] = 1"; NULL: no assumptions */
  /* The speed-up and its basis, or the reason why there is none: a line to display, with unescaped
   * names; NULL if the total time is 0. */
  const char *headline;
  uint32_t n_supernodes;
  uint32_t n_unknown_nodes; /* nodes of unknown cost */
  uint32_t n_dead_nodes;    /* nodes that reach no output */
  /* Symbols without a given value that costs depend on; "x[0]": an unnamed dimension of input x. */
  uint32_t n_assumed;
  const char *const *assumed_names; /* [n_assumed] */
  int64_t assumed_value;            /* the value that was assumed for each */
  uint32_t n_devices;               /* number of stages; with segments, of devices in use */
  psplit_hint headline_hint;        /* remedy if the headline has no speed-up */
  /* If psplit_planner_options.slack_frac selected a split with fewer transfers than the best one:
   * bottleneck of the best split, its number of transfers, and whether it is proved optimal. 0:
   * nothing was sacrificed. */
  int64_t best_ns;
  uint32_t best_transfers;
  bool best_proved;
  /* 0: no working point. With two, times of stages and bytes of transfers are means over steps. */
  uint32_t n_phases;
  const psplit_plan_phase *phases;
  uint32_t n_states;
  const psplit_plan_state *states; /* [n_states] in the order of the model's inputs */
  /* Communication overlaps with computation: load_ns is the largest of the three, not their sum;
   * for a device with several stages, the largest of three sums. */
  bool overlap;
  /* The class of plans that lower_bound_ns covers, for these costs: "among plans without copies
   * that send directly, for this order of devices", or "among all plans". proof_scope is the same
   * if the plan is proved_optimal, else NULL; best_proof_scope belongs to best_proved. */
  const char *bound_scope, *proof_scope, *best_proof_scope;
  /* Training: the largest forward load plus the largest backward load of stages: the time of a
   * micro-batch if all run forward before any runs backward. */
  int64_t fill_drain_ns;
  /* Value of the objective: bottleneck_ns for throughput, latency_ns, or fill_drain_ns. */
  int64_t value_ns;
} psplit_plan;

/* Whether the plan is for the fill-drain schedule rather than 1F1B. */
static inline bool psplit_plan_is_fill_drain(const psplit_plan *plan) {
  return strcmp(plan->objective, "fill-drain") == 0;
}

#ifdef __cplusplus
}
#endif
#endif
