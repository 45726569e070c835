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

/* time_ns of a node on a device class that cannot run it. */
#define PSPLIT_TIME_FORBIDDEN INT64_MIN

typedef enum psplit_comm { PSPLIT_COMM_P2P, PSPLIT_COMM_SHARED } psplit_comm;

enum {
  PSPLIT_NODE_BACKWARD = 1, /* part of the backward pass: its edges do not order stages */
  PSPLIT_NODE_AUXILIARY = 2 /* does not make a stage non-empty (require_nonempty) */
};
enum {
  PSPLIT_NET_UNCUTTABLE = 1, /* producer and consumers share a stage */
  PSPLIT_NET_NO_MESSAGE = 2  /* what a cut costs besides: nothing is sent */
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

/* All arrays belong to the caller (or to the object that psplit_problem_read_json made) and are
 * only read. An optional array may be NULL. */
typedef struct psplit_problem {
  uint32_t n_nodes;
  uint32_t n_classes; /* >= 1 */

  const int64_t *time_ns;           /* [n_nodes * n_classes], node-major; >= 0 or FORBIDDEN */
  const uint64_t *weight_bytes;     /* [n_nodes] private to the node; optional: 0 */
  const uint64_t *activation_bytes; /* [n_nodes] held per micro-batch in flight; optional: 0 */
  const uint8_t *node_flags;        /* [n_nodes] PSPLIT_NODE_*; optional: 0 */
  const uint32_t *together;         /* [n_nodes] equal ids share a stage, NONE: free; optional */
  const uint32_t *pin;              /* [n_nodes] fixed stage, NONE: free; optional */
  const char *const *node_name;     /* [n_nodes] for messages; optional */

  /* Nets: one tensor each. Several nets may have the same producer. */
  uint32_t n_nets;
  const uint32_t *net_producer; /* [n_nets] */
  const uint32_t *net_off;      /* [n_nets + 1] into net_consumer */
  const uint32_t *net_consumer; /* repeated consumers count once */
  const uint64_t *net_bytes;    /* [n_nets]; optional when both times are given */
  const int64_t *net_send_ns;   /* [n_nets * n_classes]; optional: from bytes and the link */
  const int64_t *net_recv_ns;   /* likewise */
  const uint8_t *net_flags;     /* [n_nets] PSPLIT_NET_*; optional: 0 */

  /* Edges that order nodes and carry nothing. */
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
  bool any_device_order; /* the solver chooses the order of devices (as the published format) */
  /* With memory limits: activations of stage j of K are held K - j times (1F1B), not once. */
  bool stash_1f1b;

  /* Where some stages have no link to each other: next_hop[i * stages + j], i < j, is the stage
   * that a tensor of stage i goes to on its way to j; j itself: there is a link; NONE: no way. Who
   * passes a tensor on pays for receiving and for sending it. A stage without a link from the
   * producer gets the tensor from the first stage that has it and a link, else over the producer's
   * next hops, and nobody twice. Point to point, contiguous, one chunk, no replicas, devices in
   * their order. [stages * stages]; optional: all have links. */
  const uint32_t *next_hop;

  /* Where the time of a tensor depends on the devices at both ends (hosts, racks): the link from a
   * device of entry i to one of entry j is of class device_link[i * n_devices + j] (i = j: from one
   * device of the entry to another), and tensor e takes sender and receiver
   * net_link_ns[e * n_link_classes + class] each; net_send_ns, net_recv_ns and links are not read.
   * Point to point, no replicas, devices in their order. n_link_classes 0: there are none. */
  uint32_t n_link_classes;
  const uint32_t *device_link; /* [n_devices * n_devices] < n_link_classes */
  const int64_t *net_link_ns;  /* [n_nets * n_link_classes] >= 0 */

  /* Where all tensors of a stage for another travel in one message: what a message takes sender and
   * receiver, each once, besides the times of the tensors in it (which then leave latency out).
   * [n_link_classes], without link classes [n_classes]; optional: nothing. Nets that carry
   * NO_MESSAGE cost what they cost, and make none. By shared memory it is one message for all that
   * a stage sends, and one for all that it receives. One chunk. */
  const int64_t *message_ns; /* >= 0 */

  double ticks_per_unit; /* for printing; 1 when times are plain ns */
  /* Ids of the input file, for reports; optional. */
  const int64_t *file_id;
} psplit_problem;

typedef enum psplit_objective {
  PSPLIT_THROUGHPUT,
  PSPLIT_LATENCY,
  /* Of bare problems alone: one sample's way where accelerators are called, each once, for a set of
   * nodes that no path leaves and enters again, and CPUs (devices that pay no communication) have a
   * core for every node. Source: the latency model of Tarnawski et al., NeurIPS 2020. All nodes on
   * CPUs are in the stage of the first CPU, whose load is all that they compute. */
  PSPLIT_CALL_LATENCY,
  /* Of bare problems with backward nodes, and of plans that train: the largest forward load and the
   * largest backward load, added up, of whatever stages. A net counts with its producer. What a
   * micro-batch takes where all of them run forward before any runs backward. Source: the same, of
   * GPipe's schedule. */
  PSPLIT_FILL_DRAIN
} psplit_objective;

typedef struct psplit_partition_options {
  size_t struct_size; /* set by psplit_partition_options_init() */
  psplit_objective objective;
  /* "auto", or a PSPLIT_METHOD_OPTION of psplit_partition_methods() to use only that solver (with
   * the same bounds). */
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
  /* Count work against the limit, not the clock: about as many seconds on an ordinary machine, and
   * the same answer on every one, however busy. The default. */
  bool limit_by_work;
  double gap_frac;    /* stop when value - bound <= gap_frac * value */
  uint32_t n_threads; /* 0: what OpenMP would use. Never changes the answer */
  uint64_t seed;
  uint64_t memory_cap_bytes;   /* of the solver's own tables; 0: 1 GiB */
  const psplit_logger *logger; /* progress and advice; may be NULL */
  const volatile int *cancel;  /* see base.h */
  /* Splits that others propose, for contiguous throughput and all that starts from it. Solvers
   * "drlpp" and "drlpp+slice" need it; "auto", "exact", "search" and "anneal" begin with what
   * "drlpp+slice" finds where there is one. NULL: none. */
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
  int64_t load_ns; /* what the objective counts; with replicas: divided, plus sync */
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
  /* "alike": no order of the devices is better than another; "given": the answer and its bound are
   * for the order of problem->devices; "chosen": for all orders. Static text. */
  const char *device_order;
  /* The answer is the only one: of all splits with its objective it has the least comm_ns, and of
   * those the stages that, read by node id, are lexicographically least. Only for contiguous
   * throughput. */
  bool ties_proved;
  const char *solver; /* the solver that found it; static text */
  const char *bound;  /* the bound that holds; static text */
  double seconds;     /* wall clock */
  /* Why the answer is not proved, in a few words; NULL where it is. Static text. */
  const char *unproved;
} psplit_solution;

/* Solves `problem`. *out_solution is the caller's (psplit_solution_destroy).
 * Same problem, options and seed give the same answer for any number of threads, as long as the
 * time limit does not strike.
 * Errors: INVALID (an id out of range, a cycle - a node on it is named -, a negative time),
 * LIMIT (sums that overflow), USAGE (option out of range), UNSUPPORTED (a combination of options
 * that no solver handles), INFEASIBLE (pins or keep-together contradict the edges; memory - the
 * message says how many stages would fit), NOMEM, CANCELLED. */
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

/* All bounds and solvers that there are, static; *out_n of them. */
PSPLIT_API const psplit_method *psplit_partition_methods(size_t *out_n);

/* Classes of nodes that some best split keeps together: the least bottleneck over splits that keep
 * all of them together is the least of all. out_class[n_nodes] holds 0..*out_n_classes-1, numbered
 * topologically. `limit_ns` is the bottleneck of a split that meets every demand, the smaller the
 * more is united; INT64_MAX: one is looked for. With require_nonempty the demand is kept.
 * Errors: those of psplit_partition_solve, except that a problem without any split may go
 * unnoticed; UNSUPPORTED for what is not contiguous throughput with one chunk. The outputs are
 * untouched then.
 * O(rounds * pins log nodes), plus about a second for a million nodes to find a split. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_partition_reduce(
  const psplit_problem *problem, const psplit_partition_options *options, int64_t limit_ns,
  psplit_diag *diag, uint32_t *out_class, uint32_t *out_n_classes);

/* Recomputes loads, objective and every constraint of `stage` (and `chunk`, which may be NULL)
 * from the problem alone; shares no code with the solvers. The result has no bound (0).
 * stage_device[n_stages] (optional) gives each stage's entry in problem->devices, default: the
 * devices in their order; replicas[n_stages] (optional) defaults to 1.
 * Errors: MISMATCH, with the first constraint that does not hold. O(nodes + pins). */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_partition_check(const psplit_problem *problem, const psplit_partition_options *options,
                       const uint32_t *stage, const uint32_t *chunk, const uint32_t *stage_device,
                       const uint32_t *replicas, psplit_diag *diag, psplit_solution **out_solution);

/* What each (virtual) stage of a contiguous solution takes for a micro-batch, for schedules:
 * out_forward_ns, out_backward_ns and out_activation_bytes[chunks * n_stages], by chunk, then
 * stage. Transfers count with the direction in which the stage's first chunk computes longer.
 * Returns whether there is a backward pass. Not for replicas. O(nodes). */
PSPLIT_API bool psplit_solution_pieces(const psplit_problem *problem,
                                       const psplit_solution *solution, uint32_t chunks,
                                       int64_t *out_forward_ns, int64_t *out_backward_ns,
                                       uint64_t *out_activation_bytes);

/* A certificate of `solution`, which psplit_partition_solve gave for the same problem and options:
 * the split, and a proof of the largest lower bound up to lower_bound_ns that can be proved to a
 * program that knows nothing of this library (psplit-check-certificate.py; docs/certificates.md).
 * *out_text (NUL-terminated, the caller's to free()) has *out_n bytes; *out_bound_ns is the bound
 * that it proves. Takes as much time as the options allow a solver, at most.
 * Errors: those of psplit_partition_solve. */
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
/* The same from memory; `name` stands for the file in messages. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_problem_parse_json(const char *text, size_t n_bytes,
                                                                 const char *name,
                                                                 psplit_diag *diag,
                                                                 psplit_problem **out_problem);
/* The problem as JSON of our own format, with whole ticks for times; what is read back is the same
 * problem but for next_hop, which the format does not know, for the unit and for ids. *out_text
 * (NUL-terminated, the caller's to free()) has *out_n bytes. Errors: those of a solver for a
 * problem that is none, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_problem_format_json(const psplit_problem *problem,
                                                                  psplit_diag *diag,
                                                                  char **out_text, size_t *out_n);
/* Only for problems that were read. */
PSPLIT_API void psplit_problem_destroy(psplit_problem *problem);

/* Number of stages of a problem: the sum of its devices' counts, saturating. */
PSPLIT_API uint32_t psplit_problem_n_stages(const psplit_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
