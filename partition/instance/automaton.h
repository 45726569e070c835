/* The device automaton: which device may take the next stage. */
#ifndef PSPLIT_PARTITION_AUTOMATON_H
#define PSPLIT_PARTITION_AUTOMATON_H

#include "instance.h"
#include "methods.h"
#include "problem.h"

/* A move of the automaton: one more stage, formed in front of those that there are. Stages are
 * formed from the last one backwards, because a sender's cost depends on its receivers, which come
 * later. A state says which devices are used up; state 0: none. */
typedef struct psplit_i_transition {
  uint32_t type, next, replicas;
  uint32_t stage; /* number of the stage this makes */
} psplit_i_transition;

typedef struct psplit_i_automaton {
  uint32_t n_states, n_stages, n_types;
  uint32_t *move_off; /* [n_states + 1] */
  psplit_i_transition *moves;
  bool any_order;  /* a state is a vector of counts by type (mixed radix); else a number used */
  bool all_used;   /* every device takes a non-empty stage: only the last state is final */
  uint32_t *radix; /* [n_types] weight of type t's count in a state, when any_order */
  uint32_t stage_radix;  /* weight of the number of stages passed, used or not; 0: not counted */
  uint32_t most_copies;  /* of one stage */
  uint32_t *count;       /* [n_types] */
  uint32_t *used;        /* [n_states] devices used up */
  uint32_t *stage_type;  /* [n_stages] when the order is fixed */
  uint32_t *first_stage; /* [n_types] of the stages of a type, which stand together, likewise */
  /* Share of the reference weight (instance's min_time) that the devices not yet used can take when
   * none may exceed 1; INF-like when unbounded. [n_states] */
  double *capacity;
  double *taken; /* [n_states] the same of the devices used up; not the rest of a difference, which
                     would drown devices that are very slow at something */
  int64_t *min_time; /* [instance n] least time over types */
  double *ratio;     /* [n_types] least w / min_time over clusters, >= 1 */
  int64_t total_min_time;
  uint32_t features; /* psplit_i_feature of the problem and the options, as bits */
  bool adds_up;      /* the value of a split is the sum of its loads, not the largest */
  bool replicated;
  double sync_ns_per_byte; /* of replicas, before 4 (r-1) / r */
  psplit_i_arena arena;
} psplit_i_automaton;

/* Errors: UNSUPPORTED (too many device types in free order), INFEASIBLE (a cluster that no device
 * can run), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_automaton_init(psplit_i_automaton *automaton,
                                                    const psplit_i_instance *instance,
                                                    const psplit_partition_options *options,
                                                    psplit_diag *diag);
void psplit_i_automaton_fini(psplit_i_automaton *automaton);

/* Whether a device of the type is left. */
bool psplit_i_automaton_has(const psplit_i_automaton *automaton, uint32_t state, uint32_t type);

/* Whether state a has used no more of any device than b. */
bool psplit_i_automaton_leq(const psplit_i_automaton *automaton, uint32_t a, uint32_t b);

/* Adds moves that skip any number of free devices, so that a stage can have every number; by
 * default it takes the last free device of a type. Not for replicas. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_automaton_number_freely(psplit_i_automaton *automaton);

/* The move from `state` for a stage with a cluster pinned to `pin` on so many devices of `type`;
 * false: none. */
bool psplit_i_automaton_pinned(const psplit_i_automaton *automaton, uint32_t state, uint32_t pin,
                               uint32_t type, uint32_t copies, psplit_i_transition *out_move);
/* The move that led from one state to another; pin: of the stage's clusters, or NONE. */
psplit_i_transition psplit_i_automaton_between(const psplit_i_automaton *automaton, uint32_t from,
                                               uint32_t to, uint32_t pin);
/* Gives stages whose device[] is NONE, which hold nothing, what is left of each type. */
void psplit_i_automaton_name_devices(const psplit_i_automaton *automaton, const uint32_t *replicas,
                                     uint32_t *device);

/* Whether all stages may have been formed in the state: any, unless every device must be used. */
static inline bool psplit_i_automaton_final(const psplit_i_automaton *automaton, uint32_t state) {
  return !automaton->all_used || automaton->used[state] == automaton->n_stages;
}

/* Devices that one move gives a stage, at most. */
uint32_t psplit_i_automaton_most_replicas(const psplit_i_automaton *automaton);
/* What a stage within the limit may weigh, on as many devices as it may have; at most INF. */
int64_t psplit_i_automaton_reach(const psplit_i_automaton *automaton, int64_t limit);
/* Bytes of the device that has most of those there are; UINT64_MAX: one has no limit. */
uint64_t psplit_i_automaton_most_memory(const psplit_i_automaton *automaton,
                                        const psplit_i_instance *instance);

/* What each of the copies of a stage takes, by the load of one alone: its share, and to keep
 * weights alike; INF where that is beyond all limits. */
static inline int64_t psplit_i_automaton_copies_load(const psplit_i_automaton *automaton,
                                                     int64_t load, uint32_t copies,
                                                     uint64_t weight_bytes) {
  const double r = copies;
  const double sync = weight_bytes ? (double)weight_bytes * automaton->sync_ns_per_byte : 0;
  if (load >= PSPLIT_I_INF || !(4 * (r - 1) / r * sync < 0x1p60)) return PSPLIT_I_INF;
  return (load + copies - 1) / copies + (int64_t)(4 * (r - 1) / r * sync);
}

#endif
