/* The device automaton: which device may take the next stage. */
#ifndef PSPLIT_PARTITION_AUTOMATON_H
#define PSPLIT_PARTITION_AUTOMATON_H

#include "instance.h"
#include "methods.h"
#include "problem.h"

/* A move of the automaton: one more stage, in front of the stages so far. Stages are formed from
 * the last one backwards, because a sender's cost depends on its receivers, which are later stages.
 * A state says which devices are used; state 0: none. */
typedef struct psplit_i_transition {
  uint32_t type, next, replicas;
  uint32_t stage; /* number of the stage that the move forms */
} psplit_i_transition;

typedef struct psplit_i_automaton {
  uint32_t n_states, n_stages, n_types;
  uint32_t *move_off; /* [n_states + 1] */
  psplit_i_transition *moves;
  /* a state holds counts by type (mixed radix); otherwise the number of devices used */
  bool any_order;
  bool all_used;   /* every device has a non-empty stage: only the last state is final */
  uint32_t *radix; /* [n_types] weight of type t's count in a state, when any_order */
  /* weight of the number of stages formed, empty ones included; 0: not counted */
  uint32_t stage_radix;
  uint32_t most_copies; /* largest number of replicas of a stage */
  uint32_t *count;      /* [n_types] */
  uint32_t *used;       /* [n_states] number of devices used */
  uint32_t *stage_type; /* [n_stages] if the order is fixed */
  /* [n_types] first stage of a type, whose stages are adjacent, if the order is fixed */
  uint32_t *first_stage;
  /* [n_states] Share of the reference weight (the instance's min_time) that the unused devices can
   * take if no load may exceed 1; INF-like if unbounded. */
  double *capacity;
  /* [n_states] the same for the used devices. It is not computed as a difference, whose rounding
   * error would exceed the share of devices that are very slow for some clusters. */
  double *taken;
  int64_t *min_time; /* [instance n] least time over types */
  double *ratio;     /* [n_types] least w / min_time over clusters, >= 1 */
  int64_t total_min_time;
  uint32_t features; /* psplit_i_feature bits of the problem and the options */
  bool adds_up;      /* the value of a split is the sum of its loads, not the maximum */
  bool replicated;
  double sync_ns_per_byte; /* synchronisation of replicas, to be multiplied by 4 (r-1) / r */
  psplit_i_arena arena;
} psplit_i_automaton;

/* Errors: UNSUPPORTED (too many device types in free order), INFEASIBLE (a cluster that no device
 * can run), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_automaton_init(psplit_i_automaton *automaton,
                                                    const psplit_i_instance *instance,
                                                    const psplit_partition_options *options,
                                                    psplit_diag *diag);
void psplit_i_automaton_fini(psplit_i_automaton *automaton);

/* Whether a device of the type is unused. */
bool psplit_i_automaton_has(const psplit_i_automaton *automaton, uint32_t state, uint32_t type);

/* Whether state a uses no more devices of any type than b. */
bool psplit_i_automaton_leq(const psplit_i_automaton *automaton, uint32_t a, uint32_t b);

/* Adds moves that skip any number of free devices, so that a stage can have any number. By default
 * a stage takes the last free device of a type. Not for replicas. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_automaton_number_freely(psplit_i_automaton *automaton);

/* Finds the move from `state` for a stage on that many devices of `type` with a cluster pinned to
 * `pin`. Returns false if there is none. */
bool psplit_i_automaton_pinned(const psplit_i_automaton *automaton, uint32_t state, uint32_t pin,
                               uint32_t type, uint32_t copies, psplit_i_transition *out_move);
/* The move from one state to another. `pin`: pin of the stage's clusters, or NONE. */
psplit_i_transition psplit_i_automaton_between(const psplit_i_automaton *automaton, uint32_t from,
                                               uint32_t to, uint32_t pin);
/* Assigns unused devices to empty stages, whose device[] is NONE. */
void psplit_i_automaton_name_devices(const psplit_i_automaton *automaton, const uint32_t *replicas,
                                     uint32_t *device);

/* Whether the state can be the last: any state, unless every device must be used. */
static inline bool psplit_i_automaton_final(const psplit_i_automaton *automaton, uint32_t state) {
  return !automaton->all_used || automaton->used[state] == automaton->n_stages;
}

/* The largest number of replicas that one move can give a stage. */
uint32_t psplit_i_automaton_most_replicas(const psplit_i_automaton *automaton);
/* The largest weight of a stage within the limit, on as many devices as it may have; at most
 * INF. */
int64_t psplit_i_automaton_reach(const psplit_i_automaton *automaton, int64_t limit);
/* The largest memory of any device; UINT64_MAX if one has no limit. */
uint64_t psplit_i_automaton_most_memory(const psplit_i_automaton *automaton,
                                        const psplit_i_instance *instance);

/* Load of each of the replicas of a stage whose load on one device is given: its share, and the
 * synchronisation of weights. INF if it exceeds all limits. */
static inline int64_t psplit_i_automaton_copies_load(const psplit_i_automaton *automaton,
                                                     int64_t load, uint32_t copies,
                                                     uint64_t weight_bytes) {
  const double r = copies;
  const double sync = weight_bytes ? (double)weight_bytes * automaton->sync_ns_per_byte : 0;
  if (load >= PSPLIT_I_INF || !(4 * (r - 1) / r * sync < 0x1p60)) return PSPLIT_I_INF;
  return (load + copies - 1) / copies + (int64_t)(4 * (r - 1) / r * sync);
}

#endif
