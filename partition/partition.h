/* partition: bare weighted DAGs, the cost of a stage, bounds, solvers, the independent checker and
 * the schedule simulator. Knows nothing of ONNX. Public face: <psplit/partition.h>.
 *
 * One way through the folder:
 *   problem.c   is the caller's problem valid?          read_json.c  problems from files,
 *   read_own.c, read_published.c                        in two formats
 *   devices.c   device entries that are alike, as one
 *   core.c      problem -> core: items, order, nets     kernel.c     lossless reductions
 *   machine.c   which device may take the next stage    walk.c       load of a growing stage
 *   slice.c     best cut of one topological order       search.c     local search over orders
 *   board.c     items on labels, any objective          anneal.c     label moves
 *   place.c     non-contiguous, chunks, latency         vcycle.c     annealing, coarse to fine
 *   flow.c      min cut                                 bound.c      cheap and min-cut bounds
 *   chain_bound.c  latency of a chain of items
 *   axis.c, axis_cut.c, wamc.c, reach.c                 weight-axis min-cut bound and windows
 *   exact.c     DP over downsets                        shift.c      annealing of ordered stages
 *   share.c     bound with shares of communication
 *   coarsen.c   contraction of clusters                 multilevel.c a million nodes
 *   relay.c     tensors that other stages pass on
 *   brute.c     branch and bound for small variants     solve.c      the portfolio
 *   lower.c     small moves over the cuts               ties.c       which of the best splits
 *   attempt.c   core, best split, bound and budget      feasible.c   is there any split?
 *   check.c     the independent checker                 schedule.c   the simulator
 *   reduce.c    the reductions, for callers
 *
 * Every table here is indexed by items: sets of nodes that share a stage in some optimal solution.
 * Items are numbered topologically: every order edge goes from a smaller to a larger id. */
#ifndef PSPLIT_PARTITION_INTERNAL_H
#define PSPLIT_PARTITION_INTERNAL_H

#include <psplit/partition.h>

#include "base.h"

/* Above every sum of a valid problem (they stay below 2^60), and safe to add twice. */
#define PSPLIT_I_INF (INT64_C(1) << 61)

/* --- core.c --------------------------------------------------------------------------------- */

/* A problem in the form the solvers use. Costs depend on the device type: an entry of
 * problem->devices. Arrays with a type are type-major: w[t * n + v], send[t * n_nets + e]. */
typedef struct psplit_core {
  uint32_t n, n_types, n_nets, n_groups, n_stages;
  int64_t *w;             /* [n_types * n]; INF: cannot run there */
  uint64_t *weight_bytes; /* [n] */
  uint64_t *act_bytes;    /* [n] */
  uint32_t *n_counted;    /* [n] nodes that make a stage non-empty */
  uint32_t *pin;          /* [n] stage or NONE */
  uint32_t *pred_off, *pred, *succ_off, *succ;
  /* Net e has pins net_pin[net_off[e] .. net_off[e+1]): the producer first, then consumers in
   * ascending order, all distinct, at least two. */
  uint32_t *net_off, *net_pin;
  int64_t *send, *recv; /* [n_types * n_nets] */
  bool *net_forward;    /* [n_nets] producer comes before every consumer in any stage order */
  /* Incidences of item v: inc[inc_off[v] .. ): net * 2 + (v is the producer). */
  uint32_t *inc_off, *inc;
  /* Shared weights: group g counts group_bytes[g] once per stage with an item of it. */
  uint64_t *group_bytes;
  uint32_t *group_off, *group_item; /* by group */
  uint32_t *own_off, *own;          /* groups by item */
  uint32_t *item_of_node;           /* [problem->n_nodes] */
  int64_t *total_w;                 /* [n_types] sum of w; INF when some item is forbidden */
  uint32_t n_counted_items;
  bool has_memory; /* some type has a limit and some item has bytes */
  bool has_pins;
  bool p2p; /* sends count per receiving stage */
  bool overlap;
  bool stash;
  bool all_forward; /* every net is forward */
  bool unordered;   /* no edges: any item on any stage */
  const psplit_problem *problem;
  psplit_arena arena; /* owns every array above */
} psplit_core;

/* Builds the core of a validated problem with the nodes of each class of `merge` (union-find
 * parents over nodes, may be NULL) together. Contracts keep-together classes, uncuttable nets and
 * cycles between contracted nodes; sums identical nets; drops nets with one pin.
 * O((nodes + pins) log nodes). Errors: INFEASIBLE (pins that contradict), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_core_init(psplit_core *core, const psplit_problem *problem,
                                               const uint32_t *merge, psplit_diag *diag);
/* The same for placement without any order: no edges, hence no cycles to contract. */
PSPLIT_MUST_USE psplit_code psplit_i_core_init_unordered(psplit_core *core,
                                                         const psplit_problem *problem,
                                                         const uint32_t *merge, psplit_diag *diag);
void psplit_i_core_fini(psplit_core *core);

/* Load of a stage from what it computes, receives and sends. */
static inline int64_t psplit_i_load(const psplit_core *core, int64_t w, int64_t recv,
                                    int64_t send) {
  if (!core->overlap) return w + recv + send;
  const int64_t comm = recv > send ? recv : send;
  return w > comm ? w : comm;
}

/* Union-find over dense ids: the root is always the smallest member, so results do not depend on
 * the order of unions. */
uint32_t psplit_i_find(uint32_t *parent, uint32_t x);
bool psplit_i_unite(uint32_t *parent, uint32_t a, uint32_t b);

/* --- machine.c ------------------------------------------------------------------------------ */

/* Which device may take the next stage. Stages are formed from the last one backwards, because a
 * sender's cost depends on who receives, and receivers come later. A state says which devices are
 * used up; state 0: none. */
typedef struct psplit_move {
  uint32_t type, next, replicas;
  uint32_t stage; /* number of the stage this makes */
} psplit_move;

typedef struct psplit_machine {
  uint32_t n_states, n_stages, n_types;
  uint32_t *move_off; /* [n_states + 1] */
  psplit_move *moves;
  bool any_order;  /* a state is a vector of counts by type (mixed radix); else a number used */
  bool all_used;   /* every device takes a non-empty stage: only the last state is final */
  uint32_t *radix; /* [n_types] weight of type t's count in a state, when any_order */
  uint32_t stage_radix; /* weight of the number of stages passed, used or not; 0: not counted */
  uint32_t *count;      /* [n_types] */
  uint32_t *used;       /* [n_states] devices used up */
  uint32_t *stage_type; /* [n_stages] when the order is fixed */
  /* Share of the reference weight (core's omega) that the devices not yet used can take when none
   * may exceed 1; INF-like when unbounded. [n_states] */
  double *capacity;
  double *taken;  /* [n_states] the same of the devices used up; not the rest of a difference, which
                     would drown devices that are very slow at something */
  int64_t *omega; /* [core n] least time over types */
  double *ratio;  /* [n_types] least w / omega over items, >= 1 */
  int64_t total_omega;
  bool adds_up; /* the value of a split is the sum of its loads, not the largest */
  bool replicated;
  double sync_ns_per_byte; /* of replicas, before 4 (r-1) / r */
  psplit_arena arena;
} psplit_machine;

/* Errors: UNSUPPORTED (too many device types in free order), INFEASIBLE (an item that no device can
 * run), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_machine_init(psplit_machine *machine, const psplit_core *core,
                                                  const psplit_partition_options *options,
                                                  psplit_diag *diag);
void psplit_i_machine_fini(psplit_machine *machine);

/* Is a device of the type left? O(stages). */
bool psplit_i_machine_has(const psplit_machine *machine, uint32_t state, uint32_t type);

/* True when state a used no more of any device than b. */
bool psplit_i_machine_leq(const psplit_machine *machine, uint32_t a, uint32_t b);

/* Lets a stage leave any number of devices in front of those in use empty, so that it can have
 * every number: without that only the last device of each type that is free. Not for replicas.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_machine_number_freely(psplit_machine *machine);

/* The move from `state` for a stage with an item pinned to `pin` on a device of `type`; false:
 * none. */
bool psplit_i_machine_pinned(const psplit_machine *machine, uint32_t state, uint32_t pin,
                             uint32_t type, psplit_move *out_move);
/* The move that led from one state to another; pin: of the stage's items, or NONE. */
psplit_move psplit_i_machine_between(const psplit_machine *machine, uint32_t from, uint32_t to,
                                     uint32_t pin);
/* Gives stages whose device[] is NONE, which hold nothing, what is left of each type. */
void psplit_i_machine_name_devices(const psplit_machine *machine, const uint32_t *replicas,
                                   uint32_t *device);

static inline bool psplit_i_machine_final(const psplit_machine *machine, uint32_t state) {
  return !machine->all_used || machine->used[state] == machine->n_stages;
}

/* --- walk.c --------------------------------------------------------------------------------- */

/* The load of a set of items that grows and shrinks one item at a time: O(types * degree). */
typedef struct psplit_walk {
  const psplit_core *core;
  const uint32_t *times_sent; /* [n_nets] receivers to charge the producer for; NULL: 1 */
  int64_t *w, *recv, *send;   /* [n_types] */
  uint32_t *n_forbidden;      /* [n_types] items inside that the type cannot run */
  uint64_t weight_bytes, act_bytes;
  uint32_t n_counted, pin, n_pinned;
  uint32_t *n_in;         /* [n_nets] pins inside */
  bool *has_source;       /* [n_nets] the producer is inside */
  uint32_t *n_users;      /* [n_groups] */
  uint32_t *paid, n_paid; /* types that pay communication */
} psplit_walk;

PSPLIT_MUST_USE psplit_code psplit_i_walk_init(psplit_walk *walk, const psplit_core *core,
                                               psplit_arena *arena);
void psplit_i_walk_add(psplit_walk *walk, uint32_t item);
void psplit_i_walk_remove(psplit_walk *walk, uint32_t item);
/* Empties the set; `items` are exactly those inside. */
void psplit_i_walk_clear(psplit_walk *walk, const uint32_t *items, uint32_t n);

/* Load of the set as a stage made by `move`; INF when it does not fit the device. */
int64_t psplit_i_walk_load(const psplit_walk *walk, const psplit_machine *machine,
                           const psplit_move *move);

/* --- cut.c: solutions ----------------------------------------------------------------------- */

/* A contiguous solution over items. */
typedef struct psplit_cut {
  int64_t value, comm; /* bottleneck, or sum of loads where the machine says so; sum of
                          communication. INF: none */
  uint32_t *stage;     /* [n items] */
  uint32_t *device;    /* [n_stages] type */
  uint32_t *replicas;  /* [n_stages] */
} psplit_cut;

PSPLIT_MUST_USE psplit_code psplit_i_cut_init(psplit_cut *cut, const psplit_core *core,
                                              psplit_arena *arena);
void psplit_i_cut_copy(psplit_cut *to, const psplit_cut *from, const psplit_core *core);
/* True when a is strictly better: by value, communication, then stages, lexicographically. */
bool psplit_i_cut_better(const psplit_cut *a, const psplit_cut *b, const psplit_core *core);
/* Sets value and comm from the stages: exact, with every receiver and
 * relay counted; INF where a tensor has no way. O(pins).
 * scratch[n_stages * 5]. */
void psplit_i_cut_evaluate(psplit_cut *cut, const psplit_core *core, const psplit_machine *machine,
                           int64_t *scratch);
/* times_sent[e] = stages that receive e, at least 1. mark[n_stages]. */
void psplit_i_cut_times_sent(const psplit_cut *cut, const psplit_core *core, uint32_t *times_sent,
                             uint32_t *mark);

/* --- lower.c -------------------------------------------------------------------------------- */

typedef struct psplit_lower_options {
  const uint32_t *order;  /* [n] items by their smallest node */
  uint32_t most_together; /* items that move at once, >= 1 */
  bool keep_full;         /* no stage becomes empty */
  uint64_t max_steps;     /* pins and edges looked at */
} psplit_lower_options;

/* Moves items of a valid split over its cuts while less is sent, or as much and the stages, read in
 * `order`, become lexicographically smaller; no load rises above cut->value. Does nothing where
 * tensors are passed on or stages have copies. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_lower(const psplit_core *core, const psplit_machine *machine,
                                           const psplit_lower_options *options, psplit_cut *cut);

/* --- relay.c -------------------------------------------------------------------------------- */

/* Scratch of the function below; the first two hold no `stamp` yet. */
typedef struct psplit_relay {
  uint32_t *wants, *held; /* [n_stages] */
  psplit_hop *hops;       /* [n_stages] */
} psplit_relay;

/* Adds to recv[n_stages] and send[n_stages] what it costs to bring net e from the stage of its
 * producer to the others, by problem->next_hop; device[n_stages] are the types of the stages'
 * devices. out_arcs[n_stages^2] (may be NULL) becomes 1 for every hop. False: some stage cannot be
 * reached. O(pins + n_stages) where all have links to the producer, else O(n_stages^2). */
bool psplit_i_relay_net(const psplit_core *core, uint32_t e, const uint32_t *stage,
                        const uint32_t *device, psplit_relay *relay, uint32_t stamp, int64_t *recv,
                        int64_t *send, uint8_t *out_arcs);

/* --- slice.c -------------------------------------------------------------------------------- */

/* Best bottleneck behind a position of the order in a state, and the stage in front of it. */
typedef struct psplit_slice_cell {
  int64_t value;
  uint32_t from, from_state;
} psplit_slice_cell;

/* Scratch for slicing; one per thread. */
typedef struct psplit_slicer {
  const psplit_core *core;
  const psplit_machine *machine;
  psplit_walk walk;
  psplit_arena arena;
  PSPLIT_VEC(psplit_slice_cell) cells;
  size_t *row;      /* [n + 2] first cell of a position */
  uint32_t *first;  /* [n + 1] its state */
  uint32_t *active; /* [n_states] */
  int64_t *scratch; /* [n_stages * 5] */
  uint32_t *times_sent, *mark;
  int64_t *prefix; /* [n + 1] omega before a position */
} psplit_slicer;

PSPLIT_MUST_USE psplit_code psplit_i_slicer_init(psplit_slicer *slicer, const psplit_core *core,
                                                 const psplit_machine *machine);
void psplit_i_slicer_fini(psplit_slicer *slicer);

/* Best cut of the topological order `order` with every load <= limit (INF: no limit), or value INF.
 * Sends are charged times_sent[e] times (NULL: once) during the search; the result is evaluated
 * exactly. False: out of memory. O(n * items per stage * degree * states in the window).
 * Source: dynamic programming over one linear order, Jensen & Bokhari; windows: this project. */
bool psplit_i_slice(psplit_slicer *slicer, const uint32_t *order, const uint32_t *times_sent,
                    int64_t limit, psplit_cut *out_cut);

/* --- search.c ------------------------------------------------------------------------------- */

typedef struct psplit_deadline {
  double end; /* wall clock, seconds; < 0: none */
} psplit_deadline;
double psplit_i_now(void);
bool psplit_i_expired(const psplit_deadline *deadline);
/* The moment options->time_limit_s from now; none where the limit counts work. */
psplit_deadline psplit_i_deadline_in(const psplit_partition_options *options);

typedef struct psplit_search_options {
  uint64_t seed;
  uint32_t n_threads, n_rounds, n_steps; /* rounds of n_steps per chain */
  int64_t target;                        /* stop when value <= target */
  psplit_deadline deadline;
  uint64_t *out_slices; /* orders tried, at most; may be NULL */
} psplit_search_options;

/* Iterated local search over topological orders, from *cut when it has a value. Improves *cut.
 * The same for any number of threads. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_search(const psplit_core *core, const psplit_machine *machine,
                                            const psplit_search_options *options, psplit_cut *cut);

/* --- flow.c --------------------------------------------------------------------------------- */

/* Maximum flow by Dinic's algorithm on a network that may grow between calls. */
typedef struct psplit_flow_arc {
  uint32_t to, next; /* next: arc + 1 of the same tail, 0: last */
  int64_t cap;       /* what is left; the reverse arc is at index ^ 1 */
} psplit_flow_arc;

typedef struct psplit_flow {
  PSPLIT_VEC(uint32_t) head;
  PSPLIT_VEC(psplit_flow_arc) arcs;
  PSPLIT_VEC(uint32_t) scratch;
} psplit_flow;

void psplit_i_flow_reset(psplit_flow *flow); /* to the empty network; keeps memory */
void psplit_i_flow_fini(psplit_flow *flow);
bool psplit_i_flow_copy(psplit_flow *to, const psplit_flow *from); /* false when out of memory */
/* Id of a new node, NONE when out of memory. */
uint32_t psplit_i_flow_node(psplit_flow *flow);
bool psplit_i_flow_arc_add(psplit_flow *flow, uint32_t from, uint32_t to, int64_t cap);
/* Pushes what still fits from `source` to `sink`; adds it to *inout_value, which stops growing at
 * `enough`. False when out of memory. */
bool psplit_i_flow_run(psplit_flow *flow, uint32_t source, uint32_t sink, int64_t enough,
                       int64_t *inout_value);
/* After a run: side[v] = reachable from `source` in what is left. */
bool psplit_i_flow_side(psplit_flow *flow, uint32_t source, bool *side);

/* --- wamc.c --------------------------------------------------------------------------------- */

/* Lower bound along the weight axis, and what it says about every place on the axis. */
typedef struct psplit_wamc {
  int64_t bound;       /* no contiguous split has a smaller bottleneck (if <= limit; see below) */
  uint32_t n_buckets;  /* 0: not computed; then every window is open */
  int64_t *low, *high; /* [n_buckets] omega of the downsets in a bucket; first: empty; last: all */
  /* [n_buckets * n_states] bound on the bottleneck of everything before a downset of the bucket
   * when the devices of the state are used up behind it. */
  int64_t *before;
  uint32_t n_states;
  psplit_arena arena;
} psplit_wamc;

/* Only stages with a load <= limit are considered: the bound is min(true bound, limit + 1).
 * Errors: NOMEM. Needs O(b^2 / 8) bytes for b items, at most 16,384, between items comparable with
 * all others. Above 16,384 items only the bound: n_buckets is 0. Parallel over buckets; integer
 * results, the same for any number of threads. */
PSPLIT_MUST_USE psplit_code psplit_i_wamc(const psplit_core *core, const psplit_machine *machine,
                                          int64_t limit, uint32_t n_threads, psplit_wamc *out_wamc);
void psplit_i_wamc_fini(psplit_wamc *wamc);

/* Bound on the stages before a downset of weight `omega` (neither empty nor all) in `state`. */
int64_t psplit_i_wamc_before(const psplit_wamc *wamc, int64_t omega, uint32_t state);

/* --- exact.c -------------------------------------------------------------------------------- */

typedef enum psplit_verdict {
  PSPLIT_I_YES,    /* a split with every load <= limit was found */
  PSPLIT_I_NO,     /* there is none */
  PSPLIT_I_UNKNOWN /* steps, memory or time ran out */
} psplit_verdict;

/* Of the splits that send least, the one whose stages come first when read in this order. */
typedef struct psplit_first {
  const uint32_t *place; /* [n] of an item in the order */
  bool closed;           /* numbers follow on each other: stages without items come last */
  int64_t most_comm;     /* what some split within the limit sends */
} psplit_first;

typedef struct psplit_exact_options {
  int64_t limit;             /* largest load allowed */
  bool least_comm;           /* among them, one with the least sum of communication */
  const psplit_first *first; /* with least_comm, up to 255 stages and no replicas: NULL or which */
  bool send_once;     /* charge a tensor's producer once: NO holds, YES may be above the limit */
  uint64_t max_steps; /* items moved, 8 a label, over all threads; decides the same for any number
                         of them */
  uint64_t memory_bytes;
  uint32_t n_threads;
  psplit_deadline deadline;
  uint64_t *out_steps; /* may be NULL */
} psplit_exact_options;

/* Is there a contiguous split with every load <= limit? Dynamic programming over downsets, from the
 * last stage backwards: a label is (what is left, devices used, receivers counted so far and, of
 * backward nodes' tensors, those to come), kept only inside the windows of `wamc`. With YES,
 * *out_cut is one, evaluated. Exact but for what stages pass on for others (next_hop): YES may be
 * above the limit then. Source: downset programs of Tarnawski et al. (NeurIPS 2020, section 5); the
 * decision form, the windows and receiver counts are this project's. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_exact(const psplit_core *core, const psplit_machine *machine,
                                           const psplit_wamc *wamc,
                                           const psplit_exact_options *options, psplit_cut *out_cut,
                                           psplit_verdict *out_verdict);

/* Does it take options->first for this core? The others are too many to be told apart. */
bool psplit_i_exact_numbers(const psplit_core *core);

/* --- bound.c -------------------------------------------------------------------------------- */

/* max(total / devices, heaviest item), for any placement. */
int64_t psplit_i_simple_bound(const psplit_core *core, const psplit_machine *machine);

/* Least costs of nets over the types that pay for them, send[n_nets] and recv[n_nets]; least[n]:
 * least times of items over the types that do not. False: no type pays. */
bool psplit_i_least_costs(const psplit_core *core, const psplit_machine *machine, int64_t *send,
                          int64_t *recv, int64_t *least);

/* Network of item[n], each numbered in local[] (NONE: not among them), whose source sides are the
 * sets S of them: arc 2 * local[i], to the sink, node n, pays w[i] of a member i, and arcs of nets
 * produced among them pay what S sends or receives. False: out of memory. */
bool psplit_i_set_network(psplit_flow *flow, const psplit_core *core, const uint32_t *item,
                          uint32_t n, const uint32_t *local, const int64_t *w, const int64_t *send,
                          const int64_t *recv);

/* Largest over items v of the least load of a set with v, by min cut; raises *inout_bound. Valid
 * for any placement. Looks at the `most_items` items that are heaviest with their nets. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_node_bound(const psplit_core *core,
                                                const psplit_machine *machine, int64_t limit,
                                                uint32_t most_items,
                                                const psplit_deadline *deadline,
                                                int64_t *inout_bound);

/* --- chain_bound.c --------------------------------------------------------------------------- */

/* Raises *inout_bound to what a chain of items takes one after the other: a bound on the latency of
 * contiguous splits of `core`, which has edges. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_chain_bound(const psplit_core *core,
                                                 const psplit_machine *machine,
                                                 int64_t *inout_bound);

/* --- share.c -------------------------------------------------------------------------------- */

/* Raises *inout_bound to what the devices need at least when every item's time counts with its
 * share of the communication (see there); valid for any placement, at most `limit`, the value of
 * one. A few minimum cuts for each item, over the threads; the same for any number. Errors: NOMEM.
 */
PSPLIT_MUST_USE psplit_code psplit_i_share_bound(const psplit_core *core,
                                                 const psplit_machine *machine, int64_t limit,
                                                 const psplit_partition_options *options,
                                                 const psplit_deadline *deadline,
                                                 int64_t *inout_bound);

/* --- kernel.c ------------------------------------------------------------------------------- */

/* Rebuilds *core with items united that share a stage in some optimal solution:
 * rule M - an item moves to its only neighbour on one side when the tensor between them costs at
 * least what the item brings along (without an order: any neighbour, when sender and receiver pay
 * the same); and, for bottlenecks up to `limit` (INF: unknown), items that share more nets than a
 * stage with one of them and without the other can afford. `parent[n_nodes]` is union-find over
 * nodes, in and out. Every split of the kernel is a split of the problem with the same loads; some
 * best split of the problem is one of the kernel (any split <= limit, for the second rule).
 * O(rounds * pins log nodes). Errors: NOMEM, INFEASIBLE. */
PSPLIT_MUST_USE psplit_code psplit_i_kernel(psplit_core *core, const psplit_machine *machine,
                                            int64_t limit, uint32_t *parent, psplit_diag *diag);
/* The same; stage[n_nodes] (may be NULL), a split with no load above `limit`, makes the moves as
 * well: no stage gets slower. `keep_first`: the first of the splits up to `limit` that send least
 * (psplit_first) is one of the kernel. */
PSPLIT_MUST_USE psplit_code psplit_i_kernel_carrying(psplit_core *core,
                                                     const psplit_machine *machine, int64_t limit,
                                                     bool keep_first, uint32_t *parent,
                                                     uint32_t *stage, psplit_diag *diag);

/* --- devices.c ------------------------------------------------------------------------------ */

/* Whether no solver needs to tell two entries apart. */
bool psplit_i_entries_alike(const psplit_device *a, const psplit_device *b);
/* *out_problem: the same with entries of devices that are alike as one, adjacent ones only where
 * the order is fixed. out_merged[problem->n_devices]: the new entry of an old one, NONE where that
 * has no devices. Without effect when stages may have copies. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_devices_merge(const psplit_problem *problem,
                                                   const psplit_partition_options *options,
                                                   psplit_arena *arena, psplit_problem *out_problem,
                                                   uint32_t *out_merged);
/* The way back: inout_device[n_stages] from merged entries to those of `problem`, in stage order.
 * stage[n_nodes] tells which stages hold something. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_devices_tell_apart(const psplit_problem *problem,
                                                        const uint32_t *merged,
                                                        const uint32_t *stage, psplit_arena *arena,
                                                        uint32_t *inout_device);
/* Where the solver chooses the order of devices: inout_device[n_stages], entries of `problem` in
 * stage order, become the lexicographically first of those with no load above `limit` that send as
 * little as any. `kinds` and `merged` are of psplit_i_devices_merge. Without effect where there are
 * none, or too many kinds. O(kinds * (pins + states)). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_devices_first(const psplit_problem *problem,
                                                   const psplit_problem *kinds,
                                                   const uint32_t *merged, const uint32_t *stage,
                                                   int64_t limit, psplit_arena *arena,
                                                   uint32_t *inout_device);

/* --- solve.c, contiguous.c -------------------------------------------------------------------- */

/* What a solver hands back, by node; checked and reported in solve.c. */
typedef struct psplit_answer {
  uint32_t *stage, *chunk;     /* [n_nodes] */
  uint32_t *device, *replicas; /* [n_stages] */
  int64_t bound;
  const char *solver, *bound_name;
  bool ties_proved; /* if `bound` is reached, the answer is the only one (ties.c) */
} psplit_answer;

typedef struct psplit_job {
  const psplit_problem *problem;
  const psplit_partition_options *options;
  psplit_deadline deadline;
  psplit_arena *arena; /* owns the answer */
  psplit_diag *diag;
} psplit_job;

PSPLIT_MUST_USE psplit_code psplit_i_answer_init(psplit_answer *answer, const psplit_job *job);
/* Copies a cut of a core of the job's problem. */
void psplit_i_answer_take(psplit_answer *answer, const psplit_core *core, const psplit_cut *cut);
/* The other way round; value and comm are evaluated. Items must not straddle stages. */
void psplit_i_answer_give(const psplit_answer *answer, const psplit_core *core,
                          const psplit_machine *machine, psplit_cut *cut, int64_t *scratch);

/* Gives a checked solution the answer's bound, and says whether that proves it. Errors: INTERNAL, a
 * bound above the value, which some split has: in every build, or a bug would look like a proof. */
PSPLIT_MUST_USE psplit_code psplit_i_answer_prove(const psplit_answer *answer,
                                                  psplit_solution *io_solution, psplit_diag *diag);

/* Contiguous throughput. Fills *out_answer. */
PSPLIT_MUST_USE psplit_code psplit_i_contiguous(const psplit_job *job, psplit_answer *out_answer);

/* --- ties.c --------------------------------------------------------------------------------- */

/* Contiguous throughput: of all splits with the answer's bottleneck one that sends less and comes
 * earlier, and sets answer->ties_proved where it is the one that sends least and comes first: its
 * stages, read by node id, are lexicographically least. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_ties_break(const psplit_job *job, psplit_answer *answer);

/* --- coarsen.c ------------------------------------------------------------------------------ */

/* Core of clusters of `core`'s items. cluster[n] < n_clusters, and never decreases along an edge:
 * clusters are numbered topologically. Splits of it are splits of `core` with the same loads.
 * O((n + pins) log pins). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_contract(const psplit_core *core, const uint32_t *cluster,
                                              uint32_t n_clusters, psplit_core *out_core);

/* --- multilevel.c --------------------------------------------------------------------------- */

/* A split of a graph of any size: orders are cut into segments of equal weight, the segments solved
 * by local search, and the neighbourhood of every cut into finer segments, down to items. Linear
 * time and memory a level; the same for any number of threads. out_cut->value stays INF when no
 * split was found. The idea of coarsening a directed graph without making cycles, and of refining
 * on the way back: Herrmann et al., "Multilevel algorithms for acyclic partitioning of directed
 * acyclic graphs", SIAM J. Sci. Comput. 2019; segments of an order and zooming are this project's.
 */
PSPLIT_MUST_USE psplit_code psplit_i_multilevel(const psplit_core *core,
                                                const psplit_machine *machine,
                                                const psplit_job *job, psplit_cut *out_cut);

/* --- board.c -------------------------------------------------------------------------------- */

/* Items on labels, added and removed one at a time: device = label % n_devices. Partial boards are
 * fine; what is on them never costs less when items are added. */
typedef struct psplit_board {
  const psplit_core *core;
  uint32_t n_devices, n_labels;
  bool ordered; /* labels never decrease along an edge */
  bool latency;
  bool nonempty;
  uint32_t *type;                /* [n_devices] */
  uint32_t *label;               /* [n] NONE: not placed */
  int64_t *w, *recv, *send;      /* [n_devices] */
  uint64_t *weight, *act;        /* [n_devices] bytes */
  uint32_t *n_counted, *n_items; /* [n_devices] */
  uint32_t *home, *n_receivers;  /* [n_nets] device of the producer; devices that receive */
  uint32_t *n_on;                /* [n_nets * n_devices] consumers */
  uint32_t *n_users;             /* [n_groups * n_devices] */
  uint32_t *n_arcs;              /* [n_devices^2] edges between stages, for latency */
  int64_t *ready;                /* [n_devices] */
  uint32_t *touched, n_touched;  /* devices whose load may have changed by moves */
  bool *is_touched;              /* [n_devices] */
  /* Where tensors are passed on; NULL otherwise. Of the placement that was settled last. */
  int64_t *passed;   /* [2 * n_devices] receiving, sending */
  uint8_t *hop_arcs; /* [n_devices^2] for latency */
  psplit_relay relay;
} psplit_board;

/* Errors: NOMEM, LIMIT (tables above 2^28 cells). */
PSPLIT_MUST_USE psplit_code psplit_i_board_init(psplit_board *board, const psplit_core *core,
                                                uint32_t chunks,
                                                const psplit_partition_options *options,
                                                psplit_arena *arena);
void psplit_i_board_add(psplit_board *board, uint32_t item, uint32_t label);
void psplit_i_board_remove(psplit_board *board, uint32_t item);
/* Moves an item on a full board: O(its nets), whatever the number of devices. Devices whose load or
 * memory changes are added to board->touched. */
void psplit_i_board_move(psplit_board *board, uint32_t item, uint32_t label);
void psplit_i_board_forget_touched(psplit_board *board);
int64_t psplit_i_board_load(const psplit_board *board, uint32_t device);
/* Largest load, or latency; what other stages pass on is not counted. */
int64_t psplit_i_board_value(psplit_board *board);
/* The value of a full placement with everything counted; INF where a tensor has no way. With relays
 * O(pins), otherwise as above. load[n_devices] are the loads; may be NULL. */
int64_t psplit_i_board_settle(psplit_board *board, int64_t *out_load);
bool psplit_i_board_fits(const psplit_board *board, uint32_t device);
/* Labels that the placed neighbours and the pin leave to an item; false: none. */
bool psplit_i_board_range(const psplit_board *board, uint32_t item, uint32_t *low, uint32_t *high);

/* --- anneal.c, brute.c ---------------------------------------------------------------------- */

/* Simulated annealing from the full placement label[n]; writes a better one than *inout_value, if
 * it finds any. Chains are independent; the same for any number of threads. */
PSPLIT_MUST_USE psplit_code psplit_i_anneal(const psplit_core *core, uint32_t chunks,
                                            const psplit_job *job, const uint32_t *types,
                                            uint64_t salt, uint64_t max_steps, uint32_t *label,
                                            int64_t *inout_value);

/* The same for contiguous throughput without memory limits, replicas and relays, in time that does
 * not depend on the number of stages. Improves *cut's stages and value. Errors: NOMEM, LIMIT (not
 * for this problem). */
PSPLIT_MUST_USE psplit_code psplit_i_shift(const psplit_core *core, const psplit_machine *machine,
                                           const psplit_job *job, uint64_t salt, uint64_t n_steps,
                                           psplit_cut *cut);

typedef struct psplit_cooling {
  uint64_t seed, n_steps;
  double hot, cold;   /* temperatures: parts of the bottleneck, or of the latency */
  uint32_t n_squares; /* the energy sums loads to the power of 2 to this */
  bool leave;         /* the best of the second half, even where the start was better */
} psplit_cooling;

/* One chain on one thread from the full placement label[n]; out: the best it saw. Steps of O(nets
 * of an item). Errors: NOMEM, LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_anneal_chain(const psplit_core *core, uint32_t chunks,
                                                  const psplit_job *job, const uint32_t *types,
                                                  const psplit_cooling *cooling, uint32_t *label,
                                                  int64_t *out_value);

/* Depth-first branch and bound; *out_done tells whether it finished within max_steps. */
PSPLIT_MUST_USE psplit_code psplit_i_brute(const psplit_core *core, uint32_t chunks,
                                           const psplit_job *job, uint32_t *types,
                                           uint64_t max_steps, uint32_t *label,
                                           int64_t *inout_value, bool *out_done);

/* --- vcycle.c ------------------------------------------------------------------------------- */

/* Annealing on clusters of items with one label, on clusters of clusters, and so on, from the
 * coarsest down to items, several times over; the idea of Walshaw, "Multilevel refinement for
 * combinatorial optimisation problems", Annals of Operations Research 2004. parent[n_nodes] says
 * which nodes the core unites; `n_steps` are those of one way down. Improves node_label[n_nodes]
 * and its value. Four chains, the same for any number of threads. Errors: NOMEM, LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_vcycles(const psplit_core *core, uint32_t chunks,
                                             const psplit_job *job, const uint32_t *types,
                                             const uint32_t *parent, uint64_t salt,
                                             uint64_t n_steps, uint32_t *node_label,
                                             int64_t *inout_value);

/* --- place.c -------------------------------------------------------------------------------- */

/* Latency, interleaved chunks and non-contiguous placement. Fills *out_answer. */
PSPLIT_MUST_USE psplit_code psplit_i_place(const psplit_job *job, psplit_answer *out_answer);

/* --- problem.c ------------------------------------------------------------------------------ */

PSPLIT_MUST_USE psplit_code psplit_i_problem_validate(const psplit_problem *problem,
                                                      psplit_diag *diag);

/* Ticks to send (or receive) net e on class c. */
int64_t psplit_i_net_ns(const psplit_problem *problem, uint32_t net, uint32_t class_id, bool send);

/* Name of a node for messages, in `buffer` when it has none. */
const char *psplit_i_node_name(const psplit_problem *problem, uint32_t node, char buffer[32]);

#endif
