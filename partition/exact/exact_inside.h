/* Inside the exact program: labels, the table that holds them, and expanders. From the bottom up:
 *
 *   receivers.c        counts the stages that receive a net
 *   receiver_groups.c  counts them by the links that reach them
 *   message_counts.c   counts messages: who sends to whom
 *   bypasses.c         counts what stages pass on
 *   labels.c           the table of labels
 *   stage.c            the stage that grows: clusters in and out
 *   lexicographic.c    keys, by which equal labels are told apart
 *   dominance.c        stages and labels that others make superfluous
 *   label_dominance.c  labels that others of their round make superfluous
 *   passed_over.c      what stays out of the stage, and what it costs
 *   push.c             from a stage to the labels that it leads to
 *   expand.c           all stages behind a label
 *   exact.c            the rounds */
#ifndef PSPLIT_PARTITION_EXACT_INSIDE_H
#define PSPLIT_PARTITION_EXACT_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "assignment.h"
#include "automaton.h"
#include "bits.h"
#include "closure.h"
#include "exact.h"
#include "instance.h"
#include "load_tracker.h"
#include "message_floor.h"
#include "pricing.h"
#include "weight_axis.h"

/* Bytes between what one thread writes and what others read: caches move whole lines, in pairs. */
enum { PSPLIT_I_APART = 128 };

enum { PSPLIT_I_N_SHARDS = 128, PSPLIT_I_MOST_RECENT = 1 << 13, PSPLIT_I_STEPS_PER_LABEL = 8 };

typedef struct psplit_i_label {
  uint64_t hash, receivers; /* of the downset; of the receiver counts */
  uint64_t parent_hash;     /* tie-break between equal labels, so that the parent is unique */
  int64_t comm;             /* least communication of what is placed */
  int64_t min_time;         /* of what is left */
  uint32_t parent;          /* id of a label, NONE: the first */
  uint32_t state, next_of_round;
} psplit_i_label;

/* Labels by hash; a label's id is index * PSPLIT_I_N_SHARDS + shard. */
typedef struct psplit_i_shard {
  pthread_mutex_t lock;
  PSPLIT_VEC(psplit_i_label) labels;
  PSPLIT_VEC(uint64_t) bits;      /* [labels.n * words] */
  PSPLIT_VEC(uint8_t) keys;       /* [labels.n * n_key_bytes] */
  PSPLIT_VEC(uint32_t) counts;    /* net, count pairs of all labels, one after the other */
  PSPLIT_VEC(uint32_t) counts_at; /* [labels.n] end of a label's pairs */
  uint32_t *slots;
  size_t n_slots;
  uint32_t *round_head; /* [n_stages + 1] labels by devices used */
  char apart[PSPLIT_I_APART];
} psplit_i_shard;

typedef struct psplit_i_program {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  const psplit_i_weight_axis *axis;
  const psplit_i_exact_options *options;
  psplit_i_arena arena;
  uint32_t words;
  uint64_t *weightless; /* bitset: clusters that go to the first stage of all; NULL: none */
  uint32_t n_key_bytes; /* of a key; 0: keys are not asked for */
  uint64_t *zobrist2;   /* [n] a second, independent hash */
  uint64_t *zobrist;    /* [n] */
  bool count_receivers;
  bool messages;         /* counted for each pair of stages */
  bool bypasses;         /* what stages pass on is counted */
  int64_t least_message; /* to receive, on any device that pays; 0 with overlap */
  psplit_i_message_floor floor;
  /* Receivers count with their links, where those differ by pair: stages r and
   * alike[top * n_stages + r] are reached alike from all stages below `top`. NULL: all are. */
  uint32_t *alike;
  uint32_t *type_of_stage; /* [n_stages] */
  int64_t *most_extra;     /* [n_stages] most that a net takes a receiver above the least */
  int64_t *least_send, *least_recv; /* [n_nets] over types that pay; 0 with overlap */
  bool *counted;                    /* [n_nets] several consumers, sent to each */
  bool *mixed;          /* [n_nets] of them: some receivers may be formed after the producer */
  bool receiver_budget; /* any net is mixed */
  psplit_i_shard shards[PSPLIT_I_N_SHARDS];
  int64_t *low, *high; /* [n_states] min_time a downset before the state may have at all */
  double *room; /* [n_states] reference time that devices not yet used have within the limit */
  /* Of it, what a tick of communication takes at least; 0: a device communicates for nothing. */
  double open_share;
  /* [n_states * n_types] What may be left, and the room for it, behind a stage on a type. */
  int64_t *most_left;
  double *most_room;
  bool follows;             /* passed_over.c */
  psplit_i_closure closure; /* where it follows */
  bool *all_pay; /* [n_states] every device not yet used pays communication, and adds it to loads */
  int64_t reach; /* most min_time of one stage */
  uint64_t most_bytes; /* most memory of any device */
  char apart_before[PSPLIT_I_APART];
  _Atomic uint64_t n_steps, n_bytes;
  _Atomic uint64_t n_loads;    /* labels that were looked through */
  uint64_t load_ops, most_ops; /* of one; of all and the steps together, as the budget allows */
  atomic_bool out_of_work, out_of_memory, full; /* full: out of work for want of memory_bytes */
  char apart_behind[PSPLIT_I_APART];
  uint64_t max_steps; /* of all rounds up to the one in flight */
  uint32_t n_widest;  /* labels of the largest round so far */
  /* The labels of the round in flight, copied: shards grow while it runs. */
  uint32_t n_round;
  uint32_t *round_ids;
  uint64_t *round_bits;
  uint8_t *round_keys;
} psplit_i_program;

/* A label that the thread pushed lately, by 128 bits of hash: most pushes repeat one, and need no
 * lock. */
typedef struct psplit_i_recent {
  uint64_t hash, check, parent_hash;
  int64_t comm;
  uint32_t state;
} psplit_i_recent;

/* `count` more stages may receive net `net`, whose producer is placed and has paid for them. */
typedef struct psplit_i_receiver_budget {
  uint32_t net, count;
} psplit_i_receiver_budget;

/* `count` stages that are reached like stage `group` receive net `net`. */
typedef struct psplit_i_receiver_group {
  uint32_t net, group, count;
} psplit_i_receiver_group;

/* Stages whose bits are set in `mask` cannot send net `net`: a receiver has no time left for it. */
typedef struct psplit_i_barred_net {
  uint32_t net, mask;
} psplit_i_barred_net;

/* What clusters left that stay out of the stage cost for good. */
typedef struct psplit_i_passed {
  int64_t recv_ns;        /* what the stage receives from them */
  int64_t sent_ns;        /* what stages in front send from them, to this stage or behind it */
  bool message, on_trunk; /* of what is received: any that makes a message, any of the trunk */
  bool unseen;            /* more since fits() was asked */
  uint32_t n_crossed;     /* of the expander's */
} psplit_i_passed;

/* A cluster with a net that crosses out of what is left: its place in the list of those of which
 * the stage has not decided. */
typedef struct psplit_i_crossing {
  uint32_t next, previous;
  bool crosses;
  bool decided, stays; /* it was taken, or stays out */
} psplit_i_crossing;

/* A stage behind the label that waits for messages from clusters left: awaited[first ..) are n of
 * them, of which n_here are in the stage that grows; they may stand in `senders` stages, NONE: any
 * number. */
typedef struct psplit_i_waiting_stage {
  uint32_t first, n, senders, n_here;
} psplit_i_waiting_stage;

/* A cluster that a stage waits for; `next` is one more wait for it. */
typedef struct psplit_i_awaited_cluster {
  uint32_t cluster, stage, next;
} psplit_i_awaited_cluster;

/* What goes past a stage as it has grown: nets that are made in front of it and read behind it. Of
 * those that it reads as well, what sending takes alone. */
typedef struct psplit_i_passing {
  int64_t send_ns, recv_ns;
  uint32_t n_sent, n_received;
} psplit_i_passing;

/* What a label may say of the stage in front, what the stage takes more for that, and a hash. */
typedef struct psplit_i_bypass_way {
  uint32_t beside;
  int64_t more_ns;
  uint64_t key;
} psplit_i_bypass_way;

enum { PSPLIT_I_MOST_BYPASS_WAYS = 3 };

/* An expander: one thread's scratch for the stages behind one label. */
typedef struct psplit_i_expander {
  psplit_i_program *x;
  psplit_i_load_tracker tracker;
  psplit_i_arena arena;
  uint32_t *times_sent, *pairs;
  uint64_t *left, *tops; /* bitsets: what is left, its maximal clusters */
  uint8_t *keys;         /* [n_key_bytes] of the label that is pushed */
  uint32_t *n_succ;      /* successors left, by cluster */
  uint32_t *n_placed;    /* [n_nets] pins that are not left */
  int64_t open;          /* least that what is left pays for nets that cross out of it */
  uint32_t *taken;       /* clusters of the stage, in order */
  uint32_t n_taken;
  uint32_t dominator; /* cluster that made all moves needless last */
  psplit_i_receiver_budget *budgets,
    *next_budgets; /* [n_nets] of the label; of the one that is pushed */
  uint32_t n_budgets, n_next_budgets;
  /* Over links between pairs, of the label and as the stages in front of this one see it: */
  psplit_i_receiver_group *groups; /* [pins] by net */
  uint32_t *first_group;           /* [n_nets + 1] */
  uint32_t *here;                  /* [n_nets] receivers in the group of this stage */
  uint64_t *group_hash;            /* [n_nets] of the groups */
  int64_t *sent_ns;           /* [n_nets] what the net takes this stage if it holds the producer */
  uint32_t stage, here_group; /* of this stage */
  uint32_t *mask;             /* [n_nets] stages up to this one that cannot send the net */
  uint32_t n_barred_here;     /* nets that this one holds the producer of, and cannot send */
  psplit_i_barred_net *barred, *next_barred; /* [n_nets] of the label; of the one that is pushed */
  uint32_t n_barred, n_next_barred;
  /* With messages, of the label and of the one that is pushed, as a label lists them: */
  psplit_i_waiting_stage *waiting;   /* [n_stages] */
  psplit_i_awaited_cluster *awaited; /* [pins] by stage */
  uint32_t *first_awaited;           /* [n] by cluster */
  uint32_t *next_waiting;            /* [pins + 2 * n_stages] */
  uint32_t n_waiting, n_awaited, n_next_waiting, n_still_waiting;
  uint32_t n_messages;    /* that this stage sends */
  uint32_t n_trunk_times; /* that the tracker has in the times of nets of the trunk for them */
  uint32_t *sender_seen, n_sender_seen; /* [n] stamps */
  uint32_t *part;                       /* [n] of what is left; union-find */
  uint32_t *seen, n_seen;               /* [n_nets] stamps */
  uint32_t *sources, n_sources;         /* [n_nets] mixed nets with their producer in the stage */
  /* Where stages pass on: whether this one is bypassed, what the label says of it, what the one
   * that is pushed will say of the next, and what it passes on if it is not bypassed. */
  bool bypassed;
  uint32_t beside, next_beside;
  psplit_i_passing passing;
  int64_t could_send;          /* least that one receiver more would cost, where one may be added */
  psplit_i_passed *passed;     /* [n + 1] by depth */
  psplit_i_crossing *crossing; /* [n + 1] by cluster; n: both ends of the list */
  uint32_t *crossed;           /* [2 * n] clusters that came into the list or left it, in order */
  uint64_t hash, check, receivers;
  uint64_t n_steps, n_told; /* of work; of them, those added to the total */
  uint64_t n_loads, n_loads_told;
  uint64_t n_stages, n_pushed; /* stages that were formed, labels that they led to */
  psplit_i_recent *recent;     /* [n_recent], a power of two */
  uint32_t n_recent;
  int64_t min_time;   /* of what is left */
  int64_t price_left; /* of what is left, by options->price */
  const psplit_i_label *from;
  uint32_t from_id;
  char apart[PSPLIT_I_APART];
} psplit_i_expander;

/* --- labels.c --- */

/* The table without labels; fini frees it. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_labels_init(psplit_i_program *x);
void psplit_i_labels_fini(psplit_i_program *x);
/* Inserts the expander's downset as a label with `fresh`'s state, or improves an equal one.
 * Sets x->out_of_memory or x->out_of_work where it cannot. */
void psplit_i_exact_insert(psplit_i_expander *d, const psplit_i_label *fresh);
/* Dominance: whether an earlier round has a label with the same downset and receivers that used no
 * more of any device (and, where it counts, sends less). */
bool psplit_i_exact_dominated(const psplit_i_program *x, const psplit_i_shard *s, uint32_t index);
/* Whether there is a label like this one, with these bits. */
bool psplit_i_exact_reached(psplit_i_program *x, const psplit_i_label *like, const uint64_t *bits);

/* --- receivers.c --- */

/* Flag of a net in the pairs of a label: the count is a receiver budget. */
#define PSPLIT_I_RECEIVER_BUDGET (UINT32_C(1) << 31)

/* What a count of receivers adds to the hash of all of them. */
static inline uint64_t psplit_i_count_key(uint32_t net, uint32_t count) {
  return psplit_i_splitmix64(net, (UINT64_C(1) << 32) + count);
}

/* Numbers of a label's list for each net and group, or net. */
enum { PSPLIT_I_GROUP_SHIFT = 16 };

/* Whether a cluster is in the loaded label's downset; the stage that grows may hold it. */
static inline bool psplit_i_is_left(const psplit_i_expander *d, uint32_t cluster) {
  return psplit_i_holds(d->left, cluster);
}

static inline uint32_t psplit_i_net_producer(const psplit_i_instance *instance, uint32_t net) {
  return instance->net_pin[instance->net_off[net]];
}

/* Pins of a net that are neither placed nor in the stage. */
static inline uint32_t psplit_i_pins_left(const psplit_i_expander *d, uint32_t net) {
  const psplit_i_instance *instance = d->x->instance;
  return instance->net_off[net + 1] - instance->net_off[net] - d->n_placed[net];
}

/* Most further receivers of a net: as many as clusters and devices in front allow. */
static inline uint32_t psplit_i_most_receivers(const psplit_i_expander *d, uint32_t net,
                                               uint32_t next) {
  const psplit_i_automaton *m = d->x->automaton;
  const uint32_t clusters = psplit_i_pins_left(d, net), stages = m->n_stages - m->used[next];
  return clusters < stages ? clusters : stages;
}

/* The expander's counts and receiver budgets become those of a label; its hash of them loses the
 * receiver budgets. */
void psplit_i_receivers_load(psplit_i_expander *d, const uint32_t *pairs, uint32_t n_pairs);
/* Adds a cluster to the stage or takes it out. */
void psplit_i_receivers_take(psplit_i_expander *d, uint32_t cluster, bool add);
/* Whether the stage sends to receivers that are not formed yet. */
bool psplit_i_receivers_open(const psplit_i_expander *d);
/* Counts and receiver budgets of the label that is pushed, as pairs; returns how many numbers. */
uint32_t psplit_i_receivers_list(const psplit_i_expander *d, uint32_t *pairs);

/* --- receiver_groups.c: the same where links differ by pair and x->alike is there --- */

/* Whether this run can count receivers so: no stage may be empty, and all nets run ahead. */
bool psplit_i_groups_apply(const psplit_i_program *x);
/* Finds x->alike. False: out of memory. */
bool psplit_i_groups_prepare(psplit_i_program *x);
/* Scratch of an expander, if there is x->alike. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_groups_init(psplit_i_expander *d);
/* Each as of receivers. */
void psplit_i_groups_load(psplit_i_expander *d, const uint32_t *pairs, uint32_t n_pairs);
void psplit_i_groups_take(psplit_i_expander *d, uint32_t cluster, bool add);
uint32_t psplit_i_groups_list(const psplit_i_expander *d, uint32_t *pairs);

/* Finds the nets that only some stages in front can still send, now that the stage is formed by
 * `move`; adds their hash. False: one of them no stage can send. */
bool psplit_i_groups_bar(psplit_i_expander *d, const psplit_i_transition *move,
                         uint64_t *inout_receivers);

/* --- message_counts.c: with messages, if x->messages --- */

/* Flag of a number in a label's list: how many clusters a stage waits for. */
#define PSPLIT_I_WAITING (UINT32_C(1) << 30)

/* Whether this run counts messages. */
bool psplit_i_messages_apply(const psplit_i_program *x);
/* Scratch of an expander, if x->messages. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_messages_init(psplit_i_expander *d);
/* Each as of receivers. */
void psplit_i_messages_load(psplit_i_expander *d, const uint32_t *list, uint32_t n);
void psplit_i_messages_take(psplit_i_expander *d, uint32_t cluster, bool add);
/* What the stage really sends beyond what its tracker counts. Monotonicity: the sum of both only
 * grows. */
int64_t psplit_i_messages_more_sent(const psplit_i_expander *d, uint32_t type);
/* Finds who waits for whom once the stage is formed by `move`; adds its hash. False: the stage, or
 * one behind it, has no time for as many messages. */
bool psplit_i_messages_pass(psplit_i_expander *d, const psplit_i_transition *move,
                            uint64_t *inout_receivers);
uint32_t psplit_i_messages_list(const psplit_i_expander *d, uint32_t *out_list);
/* Whether messages, besides those that d->open counts, take more reference time of the devices that
 * are left than `spare`, once the stage is formed by `move`; also where messages are not
 * counted. */
bool psplit_i_messages_exceed(psplit_i_expander *d, const psplit_i_transition *move, double spare);

/* --- bypasses.c: what stages pass on, if x->bypasses --- */

/* Each as of receivers: from a label, to a label, and a cluster in or out of the stage. */
void psplit_i_bypasses_load(psplit_i_expander *d, const uint32_t *list, uint32_t n);
uint32_t psplit_i_bypasses_list(const psplit_i_expander *d, uint32_t *out_list);
void psplit_i_bypasses_take(psplit_i_expander *d, uint32_t cluster, bool add);
/* Dominance: whether a label that says `beside` of the stage in front goes for one of the same
 * downset and devices that says `other`. None does for one that says more. */
bool psplit_i_bypasses_cover(uint32_t beside, uint32_t other);
/* Whether the stage in front of the loaded label may be bypassed, or not be. */
bool psplit_i_bypasses_may(const psplit_i_expander *d, bool bypassed);
/* What the stage sends more than its tracker has. Monotonicity: the sum of both only grows. */
int64_t psplit_i_bypasses_more_sent(const psplit_i_expander *d, uint32_t type);
/* Whether the stage sends something though the one behind has no time for it. Monotone. */
bool psplit_i_bypasses_sends_in_vain(const psplit_i_expander *d);
/* What labels behind the stage may say, and how many: PSPLIT_I_MOST_BYPASS_WAYS at most. */
uint32_t psplit_i_bypasses_ways(psplit_i_expander *d, uint32_t type, psplit_i_bypass_way *out_ways);

/* --- lexicographic.c --- */

/* Finds x->weightless. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_lexicographic_prepare(psplit_i_program *x);
static inline bool psplit_i_is_weightless(const psplit_i_program *x, uint32_t cluster) {
  return x->weightless && psplit_i_holds(x->weightless, cluster);
}
/* The key where nothing is placed. */
void psplit_i_lexicographic_start(psplit_i_expander *d);
/* Writes what the stage holds, and its device, into the key; forget() takes the device out
 * again. */
void psplit_i_lexicographic_number(psplit_i_expander *d, const psplit_i_transition *move);
void psplit_i_lexicographic_forget(psplit_i_expander *d, const psplit_i_transition *move);
/* Of two labels with nothing left, by id: whether the key of a is less than that of b. */
bool psplit_i_lexicographic_before(const psplit_i_program *x, uint32_t a,
                                   const psplit_i_label *at_a, uint32_t b,
                                   const psplit_i_label *at_b);
/* The split of a label with nothing left; not evaluated. */
void psplit_i_lexicographic_write(const psplit_i_program *x, uint32_t id, const psplit_i_label *at,
                                  psplit_i_assignment *assignment);

/* --- dominance.c --- */

/* Dominance of larger stages. Of the label's state's moves that are within the limit, as bits,
 * those that have to be made: with another the stage could hold one more cluster v within the
 * limit, and no stage in front that holds v is worse off without it. So the label behind the stage
 * with v dominates. */
uint64_t psplit_i_undominated_moves(psplit_i_expander *d, const psplit_i_transition *moves,
                                    uint64_t fitting);
/* Dominance of labels: whether one was reached with the same devices and one cluster v less left,
 * where no stage in front is worse off without v. */
bool psplit_i_expander_less_is_left(psplit_i_expander *d);

/* --- label_dominance.c --- */

/* A label of the round in flight, and where its list stands in the round's counts. */
typedef struct psplit_i_round_label {
  psplit_i_label head;
  uint32_t counts_from, counts_to;
} psplit_i_round_label;

/* Beside x->round_ids and x->round_bits. */
typedef struct psplit_i_round {
  psplit_i_round_label *labels; /* [x->n_round] */
  uint32_t *counts;
} psplit_i_round;

/* Drops labels of the round that another label of the round dominates; charges steps to `d`.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_exact_drop_dominated(psplit_i_expander *d,
                                                          psplit_i_round *round);

/* --- passed_over.c --- */

/* Scratch of an expander. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_passed_init(psplit_i_expander *d);
/* Behind a round with so many stages, which led to so many labels: whether what comes before
 * clusters that are passed over is followed from now on. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_exact_follow(psplit_i_program *x, uint64_t n_stages,
                                                  uint64_t n_labels);
/* d->passed[0] becomes that of a stage that holds nothing. */
void psplit_i_passed_start(psplit_i_expander *d);
/* Of a stage no more; `p`: what it passed over. */
void psplit_i_passed_end(psplit_i_expander *d, const psplit_i_passed *p);
/* The stage has taken a cluster: what it receives for good by that. */
void psplit_i_passed_take(psplit_i_expander *d, uint32_t cluster, psplit_i_passed *p);
/* A maximal cluster of what is left stays out, and all that comes before it. */
void psplit_i_passed_over(psplit_i_expander *d, uint32_t cluster, psplit_i_passed *p);
/* So do clusters from..to-1, which will not be visited any more. */
void psplit_i_passed_beside(psplit_i_expander *d, uint32_t from, uint32_t to, psplit_i_passed *p);
/* The stage gives back what it took since `p`, and decides anew of what came behind. */
void psplit_i_passed_undo(psplit_i_expander *d, const psplit_i_passed *undone,
                          const psplit_i_passed *p);

/* --- push.c --- */

/* Pushes every label that the stage as it has grown leads to. */
void psplit_i_expander_push_stage(psplit_i_expander *d);

/* --- stage.c --- */

/* The stage takes a maximal cluster of what is left. O(its pins). */
void psplit_i_expander_take(psplit_i_expander *d, uint32_t cluster);
void psplit_i_expander_give_back(psplit_i_expander *d); /* the cluster that was taken last */

/* --- expand.c --- */

/* Scratch of one thread, in an arena of its own. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_expander_init(psplit_i_expander *d, psplit_i_program *x);
/* Makes a label, with its downset, key and list of counts, the one behind which stages grow. `from`
 * is borrowed until the next one is loaded. O(clusters + pins). */
void psplit_i_expander_load(psplit_i_expander *d, const psplit_i_label *from, uint32_t id,
                            const uint64_t *left, const uint8_t *keys, const uint32_t *counts,
                            uint32_t n_counts);
/* Pushes every label that one more stage behind the loaded label leads to. */
void psplit_i_expander_expand(psplit_i_expander *d);

#endif
