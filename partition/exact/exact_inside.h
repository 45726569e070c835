/* Inside the exact program: labels, the table that holds them, and the walk that expands one.
 * From the bottom up: receivers.c counts who receives, labels.c keeps the labels, stage.c grows a
 * stage, dominance.c says what need not be looked at, push.c makes labels of a stage,
 * lexicographic.c tells equal ones apart, expand.c walks over all stages behind a label, exact.c
 * runs the rounds. */
#ifndef PSPLIT_PARTITION_EXACT_INSIDE_H
#define PSPLIT_PARTITION_EXACT_INSIDE_H

#include <omp.h>
#include <stdatomic.h>

#include "assignment.h"
#include "automaton.h"
#include "exact.h"
#include "instance.h"
#include "load_tracker.h"
#include "weight_axis.h"

/* What threads write stands this far from what the others read: caches move whole lines, in pairs.
 */
enum { APART = 128 };

enum { N_SHARDS = 128, N_RECENT = 1 << 13, STEPS_PER_LABEL = 8 };

typedef struct label {
  uint64_t hash, receivers; /* of the downset; of the receiver counts */
  uint64_t parent_hash;     /* tie-break between equal labels, so that the parent is unique */
  int64_t comm;             /* least communication of what is placed */
  int64_t omega;            /* of what is left */
  uint32_t parent;          /* id of a label, NONE: the first */
  uint32_t state, next_of_round;
} label;

/* Labels by hash; a label's id is index * N_SHARDS + shard. */
typedef struct shard {
  omp_lock_t lock;
  PSPLIT_VEC(label) labels;
  PSPLIT_VEC(uint64_t) bits;      /* [labels.n * words] */
  PSPLIT_VEC(uint8_t) numbers;    /* [labels.n * n_numbers] */
  PSPLIT_VEC(uint32_t) counts;    /* net, count pairs of all labels, one after the other */
  PSPLIT_VEC(uint32_t) counts_at; /* [labels.n] end of a label's pairs */
  uint32_t *slots;
  size_t n_slots;
  uint32_t *round_head; /* [n_stages + 1] labels by devices used */
  char apart[APART];
} shard;

typedef struct exact {
  const psplit_core *core;
  const psplit_machine *machine;
  const psplit_wamc *wamc;
  const psplit_exact_options *options;
  psplit_arena arena;
  uint32_t words;
  uint64_t *weightless; /* bitset: items that go to the first stage of all; NULL: none */
  uint32_t n_numbers;   /* bytes that say which way to a label comes first; 0: not asked for */
  uint64_t *zobrist2;   /* [n] a second, independent hash */
  uint64_t *zobrist;    /* [n] */
  bool count_receivers;
  int64_t *least_send, *least_recv; /* [n_nets] over types that pay; 0 with overlap */
  bool *counted;                    /* [n_nets] several consumers, sent to each */
  bool *mixed, ration; /* [n_nets] of them: some may be formed after the producer; any such net */
  shard shards[N_SHARDS];
  int64_t *low, *high; /* [n_states] omega a downset before the state may have at all */
  /* [n_states] reference time that the devices not yet used have within the limit, and the part of
   * it that a tick of communication takes at least; 0: some device communicates for nothing. */
  double *room, open_share;
  bool *all_pay; /* [n_states] every device not yet used pays communication, and adds it to loads */
  int64_t reach; /* most omega of one stage */
  uint64_t most_bytes; /* most memory of any device */
  char apart_before[APART];
  _Atomic uint64_t n_steps, n_bytes;
  atomic_bool out_of_work, out_of_memory;
  char apart_behind[APART];
  /* The labels of the round in flight, copied: shards grow while it runs. */
  uint32_t n_round;
  uint32_t *round_ids;
  uint64_t *round_bits;
  uint8_t *round_numbers;
} exact;

/* What a thread handed in lately, by 128 bits of hash: most offers repeat one, and need no lock. */
typedef struct recent {
  uint64_t hash, check, parent_hash;
  int64_t comm;
  uint32_t state;
} recent;

/* So many more stages may receive net `net`, whose producer is placed. */
typedef struct ration {
  uint32_t net, count;
} ration;

/* One thread's walk down from a label. */
typedef struct digger {
  exact *x;
  psplit_walk walk;
  psplit_arena arena;
  uint32_t *times_sent, *pairs;
  uint64_t *left, *tops; /* bitsets: what is left, its maximal items */
  uint8_t *numbers;      /* [n_numbers] of the label that is offered */
  uint32_t *n_succ;      /* successors left, by item */
  uint32_t *n_placed;    /* [n_nets] pins that are not left */
  int64_t open;          /* least communication of nets that cross out of what is left, for it */
  uint32_t *taken;       /* items of the stage, in order */
  uint32_t n_taken;
  ration *rations, *next_rations; /* [n_nets] of the label; of the one that is offered */
  uint32_t n_rations, n_next_rations;
  uint32_t *sources, n_sources; /* [n_nets] mixed nets with their producer in the stage */
  int64_t could_send; /* least that one receiver more would cost, where one may be added */
  int64_t *passed;    /* [n + 1] received for good, by depth */
  uint64_t hash, check, receivers;
  uint64_t n_steps, n_told; /* of work; of them, those that all threads know of */
  recent *recent;           /* [N_RECENT] */
  int64_t omega;            /* of what is left */
  const label *from;
  uint32_t from_id;
  char apart[APART];
} digger;

/* --- labels.c --- */

PSPLIT_MUST_USE psplit_code psplit_i_exact_table_init(exact *x);
void psplit_i_exact_table_fini(exact *x);
/* Inserts the digger's downset as a label with `fresh`'s state, or lets it improve an equal one.
 * Without memory or work left it says so in x. */
void psplit_i_exact_insert(digger *d, const label *fresh);
/* Is there a label of an earlier round with the same downset and receivers that used no more of any
 * device (and, where it matters, no more communication)? */
bool psplit_i_exact_dominated(const exact *x, const shard *s, uint32_t index);
/* Is there a label like this one, with these bits? */
bool psplit_i_exact_reached(exact *x, const label *like, const uint64_t *bits);

/* --- receivers.c --- */

/* In the pairs of a label: the count is a ration. */
#define PSPLIT_I_RATION (UINT32_C(1) << 31)

static inline uint64_t psplit_i_count_key(uint32_t net, uint32_t count) {
  return psplit_i_splitmix64(net, (UINT64_C(1) << 32) + count);
}

static inline bool psplit_i_is_left(const digger *d, uint32_t item) {
  return d->left[item / 64] >> (item % 64) & 1;
}

static inline uint32_t psplit_i_net_producer(const psplit_core *core, uint32_t net) {
  return core->net_pin[core->net_off[net]];
}

/* Pins of a net that are neither placed nor in the stage. */
static inline uint32_t psplit_i_pins_left(const digger *d, uint32_t net) {
  const psplit_core *core = d->x->core;
  return core->net_off[net + 1] - core->net_off[net] - d->n_placed[net];
}

/* Receivers of a net that a choice must tell apart: as many as items and devices in front allow. */
static inline uint32_t psplit_i_most_receivers(const digger *d, uint32_t net, uint32_t next) {
  const psplit_machine *m = d->x->machine;
  const uint32_t items = psplit_i_pins_left(d, net), stages = m->n_stages - m->used[next];
  return items < stages ? items : stages;
}

/* The digger's counts and rations become those of a label; its hash of them loses the rations. */
void psplit_i_receivers_load(digger *d, const uint32_t *pairs, uint32_t n_pairs);
/* The stage takes an item or gives it back. */
void psplit_i_receivers_take(digger *d, uint32_t item, bool add);
/* Does the stage send to receivers that are not formed yet? */
bool psplit_i_receivers_open(const digger *d);
/* Counts and rations of the label that is offered, as pairs; how many numbers. */
uint32_t psplit_i_receivers_list(const digger *d, uint32_t *pairs);

/* --- lexicographic.c --- */

/* Finds x->weightless. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_first_prepare(exact *x);
static inline bool psplit_i_is_weightless(const exact *x, uint32_t item) {
  return x->weightless && x->weightless[item / 64] >> (item % 64) & 1;
}
/* Nothing is placed. */
void psplit_i_first_start(digger *d);
/* Numbers what the stage holds; the other function takes the stage's device away again. */
void psplit_i_first_number(digger *d, const psplit_move *move);
void psplit_i_first_forget(digger *d, const psplit_move *move);
/* Of two labels with nothing left, by id: does the split of a come before that of b? */
bool psplit_i_first_before(const exact *x, uint32_t a, const label *at_a, uint32_t b,
                           const label *at_b);
/* The split of a label with nothing left; not evaluated. */
void psplit_i_first_write(const exact *x, uint32_t id, const label *at, psplit_cut *cut);

/* --- dominance.c --- */

/* Moves of the label's state after which the stage could hold one more item that whoever is in
 * front gives up gladly, as bits: the label behind that larger stage does for all that this one
 * does. n_moves <= 64. */
uint64_t psplit_i_dominated_moves(digger *d, const psplit_move *moves, uint32_t n_moves);
/* Was a label reached with one item less, which whoever holds it would give up gladly? */
bool psplit_i_digger_less_is_left(digger *d);

/* --- push.c --- */

/* Offers every label that the stage as it has grown leads to. */
void psplit_i_digger_offer_stage(digger *d);

/* --- stage.c --- */

void psplit_i_digger_take(digger *d, uint32_t item);
void psplit_i_digger_give_back(digger *d); /* the item that was taken last */

/* --- expand.c --- */

PSPLIT_MUST_USE psplit_code psplit_i_digger_init(digger *d, exact *x);
void psplit_i_digger_load(digger *d, const label *from, uint32_t id, const uint64_t *left,
                          const uint8_t *numbers, const uint32_t *counts, uint32_t n_counts);
/* Offers every label that one more stage behind the label that was loaded gives. */
void psplit_i_digger_expand(digger *d);

#endif
