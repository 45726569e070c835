/* Load trackers: the load of a set of clusters, updated as clusters are added and removed. */
#ifndef PSPLIT_PARTITION_LOAD_TRACKER_H
#define PSPLIT_PARTITION_LOAD_TRACKER_H

#include "automaton.h"

/* Over which links a set sends and receives, where they differ between pairs of devices. A net goes
 * to the next stage (near), to others (far) or both; receiving likewise, from the stage before. */
typedef struct psplit_i_link_guess {
  uint32_t *send_class, *recv_class; /* [n_stages] link to the next stage, from the one before */
  uint32_t *classes, n_classes;      /* those of the two above, once each */
  bool *near_send, *near_recv;       /* [n_nets] */
  int64_t *far_send, *far_recv;      /* [n_nets] on any device that pays */
} psplit_i_link_guess;

/* Compute, communication and memory of a set, on each device type. A cluster more or less takes
 * O(types * degree). */
typedef struct psplit_i_load_tracker {
  const psplit_i_instance *instance;
  /* NULL: the least that pairs of devices take. Else w counts by type, communication by class of
   * links, and times_sent does not count. Only an empty tracker may get another guess. */
  const psplit_i_link_guess *guess;
  int64_t *near[2], far[2];   /* sending, receiving; near: [n_link_classes] */
  const int64_t *sent_ns;     /* [n_nets] NULL, or what a producer that pays is charged */
  const uint32_t *times_sent; /* [n_nets] else: receivers to charge the producer for; NULL: 1 */
  int64_t *w, *recv, *send;   /* [n_types] */
  uint32_t *n_forbidden;      /* [n_types] clusters inside that the type cannot run */
  /* With messages: nets that make one and are sent, received; and those of the trunk, whose time
   * has a message's in it. Where some of the first make one, and none of the trunk, one counts. */
  uint32_t n_messages[2], n_on_trunk[2];
  uint64_t weight_bytes, act_bytes;
  uint32_t n_counted, pin, n_pinned;
  uint32_t *n_in;         /* [n_nets] pins inside */
  bool *has_source;       /* [n_nets] the producer is inside */
  uint32_t *n_users;      /* [n_groups] */
  uint32_t *paid, n_paid; /* types that pay communication */
} psplit_i_load_tracker;

/* An empty set, without a guess. Arrays live in `arena`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_load_tracker_init(psplit_i_load_tracker *tracker,
                                                       const psplit_i_instance *instance,
                                                       psplit_i_arena *arena);
/* A cluster that is not in the set joins it; one that is leaves it. */
void psplit_i_load_tracker_add(psplit_i_load_tracker *tracker, uint32_t cluster);
void psplit_i_load_tracker_remove(psplit_i_load_tracker *tracker, uint32_t cluster);
/* Empties the set; `clusters` are exactly those inside. */
void psplit_i_load_tracker_clear(psplit_i_load_tracker *tracker, const uint32_t *clusters,
                                 uint32_t n);

/* Load of the set as a stage made by `move`; INF when it does not fit the device. */
int64_t psplit_i_load_tracker_load(const psplit_i_load_tracker *tracker,
                                   const psplit_i_automaton *automaton,
                                   const psplit_i_transition *move);

#endif
