/* Bare partition problems: a weighted DAG, devices and links in; a stage for every node out.
 *
 * Knows nothing of ONNX. Times are int64 ticks; a tick is one nanosecond unless the problem's
 * `ticks_per_unit` says otherwise. All arithmetic on them is exact, so a proof is the same bits on
 * every machine, for every thread count.
 *
 * Load of a stage S on device d (docs/partitioning/problem.md states the model in full):
 *   compute  sum of time(v, class of d), v in S
 *   recv     once for every net with a consumer in S whose producer is not in S
 *   send     for every net with its producer in S and a consumer outside: once per stage that
 *            receives it (PSPLIT_COMM_P2P), or once (PSPLIT_COMM_SHARED)
 *            Both take the time of the device's class, or of the link between the two devices.
 *            With `message_ns`: and once for every other stage that it sends to, or receives from,
 *            what a message takes.
 *   load     compute + recv + send, or with `overlap` the largest of the three
 * Throughput minimises the largest load. A contiguous split numbers stages so that they never
 * decrease along a forward edge.
 * Source of the model: Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
 * Operators", NeurIPS 2020, sections 3-5. */
#ifndef PSPLIT_PARTITION_H
#define PSPLIT_PARTITION_H

#include <psplit/activity.h>
#include <psplit/base.h>
#include <psplit/proposer.h>
#include <psplit/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

/* time_ns of a node on a device class that does not support it. */
#define PSPLIT_TIME_FORBIDDEN INT64_MIN

typedef enum psplit_comm { PSPLIT_COMM_P2P, PSPLIT_COMM_SHARED } psplit_comm;

enum {
  PSPLIT_NODE_BACKWARD = 1, /* part of the backward pass: its edges do not order stages */
  PSPLIT_NODE_AUXILIARY = 2 /* does not make a stage non-empty (require_nonempty) */
};
enum {
  PSPLIT_NET_UNCUTTABLE = 1, /* producer and consumers share a stage */
  PSPLIT_NET_NO_MESSAGE = 2  /* only the cost of a cut: no tensor is sent */
};

typedef struct psplit_device {
  uint32_t class_id;     /* column of time_ns and of net_send_ns / net_recv_ns */
  uint32_t count;        /* how many of them, >= 0; consecutive in the device order */
  uint64_t memory_bytes; /* hard limit per device; 0: none */
  bool free_comm;        /* pays no communication (a CPU beside accelerators) */
  const char *name;      /* for reports; may be NULL */
} psplit_device;

/* Time to move a tensor = latency_ns + bytes / bytes_per_s, rounded up; charged to the sender and
 * to the receiver. */
typedef struct psplit_link {
  int64_t latency_ns;
  double bytes_per_s; /* > 0; 0: moving bytes takes no time beyond the latency */
} psplit_link;

/* All arrays are owned by the caller (or by the object that psplit_problem_read_json created) and
 * only read. Optional arrays may be NULL. */
typedef struct psplit_problem {
  uint32_t n_nodes;
  uint32_t n_classes; /* >= 1 */

  const int64_t *time_ns;           /* [n_nodes * n_classes], node-major; >= 0 or FORBIDDEN */
  const uint64_t *weight_bytes;     /* [n_nodes] private to the node; optional: 0 */
  const uint64_t *activation_bytes; /* [n_nodes] held per micro-batch in flight; optional: 0 */
  const uint8_t *node_flags;        /* [n_nodes] PSPLIT_NODE_*; optional: 0 */
  const uint32_t
    *together; /* [n_nodes] nodes of equal id share a stage, NONE: unconstrained; optional */
  const uint32_t *pin;          /* [n_nodes] fixed stage, NONE: unconstrained; optional */
  const char *const *node_name; /* [n_nodes] for messages; optional */

  /* Nets: one tensor each. Several nets may have the same producer. */
  uint32_t n_nets;
  const uint32_t *net_producer; /* [n_nets] */
  const uint32_t *net_off;      /* [n_nets + 1] into net_consumer */
  const uint32_t *net_consumer; /* repeated consumers count once */
  const uint64_t *net_bytes;    /* [n_nets]; optional when both times are given */
  const int64_t *net_send_ns;   /* [n_nets * n_classes]; optional: from bytes and the link */
  const int64_t *net_recv_ns;   /* likewise */
  const uint8_t *net_flags;     /* [n_nets] PSPLIT_NET_*; optional: 0 */

  /* Precedence edges without a tensor. */
  uint32_t n_order;
  const uint32_t *order_from, *order_to; /* [n_order] */

  /* Weights used by several nodes: their bytes count once per stage with a user. */
  uint32_t n_weights;
  const uint64_t *weight_group_bytes; /* [n_weights] */
  const uint32_t *weight_off;         /* [n_weights + 1] into weight_user */
  const uint32_t *weight_user;

  uint32_t n_devices; /* entries of `devices`; stages = sum of their counts */
  const psplit_device *devices;
  const psplit_link *links; /* [n_classes]; optional when both net times are given */
  psplit_comm comm;
  bool overlap;
  bool any_device_order; /* the solver chooses the order of devices, as in the published format */
  /* With memory limits: stage j of K stores activations K - j times (1F1B), not once. */
  bool stash_1f1b;

  /* For missing links between stages: next_hop[i * stages + j], i < j, is the next stage on the
   * route of a tensor from stage i to j; j itself: a direct link; NONE: no route. A stage that
   * forwards a tensor pays for receiving and sending it. A stage without a link from the producer
   * gets the tensor from the first stage that has it and a link, else along the producer's route;
   * no stage receives it twice. Requires point-to-point, contiguous, one chunk, no replicas, fixed
   * device order. [stages * stages]; optional: all stages are linked. */
  const uint32_t *next_hop;

  /* If transfer times depend on both devices (hosts, racks): the link from a device of entry i to
   * one of entry j has class device_link[i * n_devices + j] (i = j: between two devices of the
   * entry), and tensor e takes net_link_ns[e * n_link_classes + class] at the sender and at the
   * receiver; net_send_ns, net_recv_ns and links are ignored. Requires point-to-point, no replicas,
   * fixed device order. n_link_classes 0: not used. */
  uint32_t n_link_classes;
  const uint32_t *device_link; /* [n_devices * n_devices] < n_link_classes */
  const int64_t *net_link_ns;  /* [n_nets * n_link_classes] >= 0 */

  /* If all tensors from one stage to another form one message: its fixed cost, paid once by the
   * sender and once by the receiver, in addition to the times of the tensors (which then exclude
   * latency). [n_link_classes], or [n_classes] without link classes; optional: 0. NO_MESSAGE nets
   * do not form messages. With PSPLIT_COMM_SHARED, everything that a stage sends is one message,
   * and so is everything that it receives. Requires one chunk. */
  const int64_t *message_ns; /* >= 0 */

  double ticks_per_unit; /* for printing; 1 when times are plain ns */
  /* Ids of the input file, for reports; optional. */
  const int64_t *file_id;
} psplit_problem;

typedef enum psplit_objective {
  PSPLIT_THROUGHPUT,
  PSPLIT_LATENCY,
  /* Only for bare problems: latency of one sample where each accelerator is called once, for a
   * convex set of nodes, and CPUs (devices with free_comm) have a core for every node. Source: the
   * latency model of Tarnawski et al., NeurIPS 2020. All nodes on CPUs are in the stage of the
   * first CPU, whose load is their total time. */
  PSPLIT_CALL_LATENCY,
  /* For bare problems with backward nodes, and training plans: the largest forward load plus the
   * largest backward load, possibly of different stages. A net belongs to the direction of its
   * producer. The time of a micro-batch if all of them run forward before any runs backward.
   * Source: the same paper, for GPipe's schedule. */
  PSPLIT_FILL_DRAIN
} psplit_objective;

typedef struct psplit_partition_options {
  size_t struct_size; /* set by psplit_partition_options_init() */
  psplit_objective objective;
  /* "auto", or a PSPLIT_METHOD_OPTION of psplit_partition_methods() to use only that solver (with
   * all bounds). */
  const char *solver;
  bool noncontiguous;    /* any node on any stage; throughput only */
  bool require_nonempty; /* every stage holds at least one node that is not AUXILIARY */
  uint32_t chunks;       /* virtual stages per device, >= 1 (interleaved schedules) */
  uint32_t max_replicas; /* data-parallel copies of one stage, >= 1; copies use up devices */
  /* Replicated stage: load = (compute + recv + send) / r + sync, where sync =
   * 4 (r-1)/r * parameter bytes / (micro_batches * sync_bytes_per_s). Source: PipeDream. */
  double sync_bytes_per_s;
  uint32_t micro_batches;
  double time_limit_s; /* < 0: none. 0 still gives a valid solution and a valid bound */
  /* The default: the limit applies to counted work instead of wall time. It corresponds to about as
   * many seconds on an ordinary machine, and makes the result independent of machine and load. */
  bool limit_by_work;
  double gap_frac;    /* stop when value - bound <= gap_frac * value */
  uint32_t n_threads; /* 0: OpenMP's default. Does not affect the result */
  uint64_t seed;
  uint64_t memory_cap_bytes;   /* of the solver's own tables; 0: 1 GiB */
  const psplit_logger *logger; /* progress and advice; may be NULL */
  const volatile int *cancel;  /* see base.h */
  /* External proposals of splits, for contiguous throughput and what starts from it. Required by
   * solvers "drlpp" and "drlpp+slice"; if present, "auto", "exact", "search" and "anneal" start
   * from the result of "drlpp+slice". NULL: none. */
  const psplit_proposer *proposer;
  psplit_activity *activity; /* see activity.h: work, of the limit */
} psplit_partition_options;

/* Throughput, solver "auto", 1 chunk, 1 replica, 10 s, gap 0, seed 1. */
PSPLIT_API void psplit_partition_options_defaults(psplit_partition_options *options,
                                                  size_t struct_size);
static inline void psplit_partition_options_init(psplit_partition_options *options) {
  psplit_partition_options_defaults(options, sizeof *options);
}

typedef struct psplit_stage_load {
  uint32_t device;  /* index into problem->devices */
  uint32_t n_nodes; /* 0: the device stays empty */
  uint32_t replicas;
  int64_t compute_ns, recv_ns, send_ns;
  int64_t load_ns; /* as the objective counts it; with replicas: divided, plus sync */
  int64_t forward_ns, backward_ns; /* of load_ns, with PSPLIT_FILL_DRAIN; else 0 */
  uint64_t memory_bytes;
} psplit_stage_load;

typedef struct psplit_solution {
  uint32_t n_nodes;
  uint32_t n_stages;
  uint32_t *stage;           /* [n_nodes] 0..n_stages-1 */
  uint32_t *chunk;           /* [n_nodes] 0..chunks-1, virtual stage = chunk * n_stages + stage */
  psplit_stage_load *stages; /* [n_stages] */
  int64_t objective_ns;      /* bottleneck, or latency */
  int64_t lower_bound_ns;    /* no solution is below this */
  int64_t comm_ns;           /* sum of all recv and send times */
  double gap_frac;           /* (objective - bound) / objective, 0 when both are 0 */
  bool proved_optimal;
  /* Scope of result and bound. "alike": all orders of the devices are equivalent; "given": the
   * order of problem->devices; "chosen": all orders. Static text. */
  const char *device_order;
  /* The result is unique: of all splits with its objective it has the least comm_ns, and among
   * those the lexicographically least stages by node id. Only for contiguous throughput. */
  bool ties_proved;
  const char *solver; /* name of the solver that found it; static text */
  const char *bound;  /* name of the bound; static text */
  double seconds;     /* wall clock */
  /* Short reason why the result is not proved optimal; NULL if it is. Static text. */
  const char *unproved;
} psplit_solution;

/* Solves `problem`. *out_solution is owned by the caller (psplit_solution_destroy). The result
 * depends only on problem, options and seed, not on the number of threads, unless a wall-clock time
 * limit expires. Errors: INVALID (an id out of range, a cycle, of which a node is named, a negative
 * time), LIMIT (overflow of sums), USAGE (option out of range), UNSUPPORTED (a combination of
 * options that no solver handles), INFEASIBLE (pins or keep-together contradict the edges; memory,
 * with the number of stages that would suffice), NOMEM, CANCELLED. */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_partition_solve(const psplit_problem *problem, const psplit_partition_options *options,
                       psplit_diag *diag, psplit_solution **out_solution);
PSPLIT_API void psplit_solution_destroy(psplit_solution *solution);

enum {
  PSPLIT_METHOD_BOUND = 1, /* as psplit_solution.bound and psplit_plan.bound name it */
  PSPLIT_METHOD_SOLVER =
    2,                     /* as psplit_solution.solver names what found a split; some prove, too */
  PSPLIT_METHOD_OPTION = 4 /* psplit_partition_options.solver can ask for it */
};

typedef struct psplit_method {
  unsigned kind;    /* PSPLIT_METHOD_* */
  const char *name; /* static text, as all here */
  const char *does; /* one line */
} psplit_method;

/* All bounds and solvers, static; *out_n is their number. */
PSPLIT_API const psplit_method *psplit_partition_methods(size_t *out_n);

/* Finds classes of nodes such that some optimal split keeps each class in one stage.
 * out_class[n_nodes] holds 0..*out_n_classes-1, numbered topologically. `limit_ns` is the
 * bottleneck of a feasible split: the smaller, the coarser the classes; INT64_MAX: one is searched
 * for. Respects require_nonempty. Errors: those of psplit_partition_solve, except that
 * infeasibility may go unnoticed; UNSUPPORTED except for contiguous throughput with one chunk.
 * Outputs are untouched then. O(rounds * pins log nodes), plus about a second for a million nodes
 * to find a split. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_partition_reduce(
  const psplit_problem *problem, const psplit_partition_options *options, int64_t limit_ns,
  psplit_diag *diag, uint32_t *out_class, uint32_t *out_n_classes);

/* Recomputes loads, objective and every constraint of `stage` (and `chunk`, which may be NULL) from
 * the problem alone, without code of the solvers. The result has no bound (0).
 * stage_device[n_stages] (optional) is each stage's entry in problem->devices, by default in their
 * order; replicas[n_stages] (optional) defaults to 1. Errors: MISMATCH, with the first violated
 * constraint. O(nodes + pins). */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_partition_check(const psplit_problem *problem, const psplit_partition_options *options,
                       const uint32_t *stage, const uint32_t *chunk, const uint32_t *stage_device,
                       const uint32_t *replicas, psplit_diag *diag, psplit_solution **out_solution);

/* Time of each (virtual) stage of a contiguous solution per micro-batch, for schedules:
 * out_forward_ns, out_backward_ns and out_activation_bytes[chunks * n_stages], by chunk, then
 * stage. Transfers count in the direction in which the stage's first chunk computes longer. Returns
 * whether there is a backward pass. Not for replicas. O(nodes). */
PSPLIT_API bool psplit_solution_pieces(const psplit_problem *problem,
                                       const psplit_solution *solution, uint32_t chunks,
                                       int64_t *out_forward_ns, int64_t *out_backward_ns,
                                       uint64_t *out_activation_bytes);

/* A certificate for `solution`, a result of psplit_partition_solve for the same problem and
 * options: the split, and a proof of a lower bound, the largest up to lower_bound_ns that can be
 * proved to an independent checker (psplit-check-certificate.py; docs/certificates.md). *out_text
 * (NUL-terminated, to be freed by the caller) has *out_n bytes; *out_bound_ns is the proved bound.
 * Takes at most the solver's time limit. Errors: those of psplit_partition_solve. */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_certificate_make(const psplit_problem *problem, const psplit_partition_options *options,
                        const psplit_solution *solution, psplit_diag *diag, char **out_text,
                        size_t *out_n, int64_t *out_bound_ns);

/* Reads a problem from a JSON file: our own format or those of dnn-partitioning and of Piper
 * (docs/partitioning/problem.md), a regular file of at most 64 MiB. `path` "-" is not special.
 * *out_problem is the caller's.
 * Errors: IO, MALFORMED, INVALID, LIMIT, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_problem_read_json(const char *path, psplit_diag *diag,
                                                                psplit_problem **out_problem);
/* The same from memory; `name` is used in messages instead of a path. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_problem_parse_json(const char *text, size_t n_bytes,
                                                                 const char *name,
                                                                 psplit_diag *diag,
                                                                 psplit_problem **out_problem);
/* The problem as JSON in our own format, with integer ticks. Reading it back gives the same problem
 * except for next_hop, which the format lacks, units and ids. *out_text (NUL-terminated, to be
 * freed by the caller) has *out_n bytes. Errors: those of a solver for an invalid problem,
 * NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_problem_format_json(const psplit_problem *problem,
                                                                  psplit_diag *diag,
                                                                  char **out_text, size_t *out_n);
/* Only for problems created by the functions above. */
PSPLIT_API void psplit_problem_destroy(psplit_problem *problem);

/* Number of stages of a problem: the sum of its devices' counts, saturating. */
PSPLIT_API uint32_t psplit_problem_n_stages(const psplit_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
