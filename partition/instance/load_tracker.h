/* Load trackers: the load of a set of clusters, updated as clusters are added and removed. */
#ifndef PSPLIT_PARTITION_LOAD_TRACKER_H
#define PSPLIT_PARTITION_LOAD_TRACKER_H

#include "automaton.h"

/* The links over which a set sends and receives, if links differ between pairs of devices. A net
 * goes to the next stage (near), to other stages (far) or both; likewise, it comes from the stage
 * before or from others. */
typedef struct psplit_i_link_guess {
  /* [n_stages] class of the link to the next stage; of the link from the stage before */
  uint32_t *send_class, *recv_class;
  uint32_t *classes, n_classes; /* the distinct classes of the two above */
  bool *near_send, *near_recv;  /* [n_nets] */
  int64_t *far_send, *far_recv; /* [n_nets] minimum over the devices that pay */
} psplit_i_link_guess;

/* Computation, communication and memory of a set on each device type. Adding or removing a cluster
 * takes O(types * degree). */
typedef struct psplit_i_load_tracker {
  const psplit_i_instance *instance;
  /* NULL: the least times over pairs of devices. Otherwise w is by type, communication is by class
   * of link, and times_sent is ignored. Only an empty tracker may get another guess. */
  const psplit_i_link_guess *guess;
  int64_t *near[2], far[2]; /* sending, receiving; near: [n_link_classes] */
  const int64_t *sent_ns;   /* [n_nets] what a producer that pays is charged, or NULL */
  /* [n_nets] otherwise, number of receivers that the producer is charged for; NULL: 1 */
  const uint32_t *times_sent;
  int64_t *w, *recv, *send; /* [n_types] */
  uint32_t *n_forbidden;    /* [n_types] clusters inside that the type cannot run */
  /* With messages: number of nets of the set that make a message, sent and received; and number of
   * nets on the trunk, whose time includes that of a message. If there are some of the former and
   * none of the latter, one message is added. */
  uint32_t n_messages[2], n_on_trunk[2];
  uint64_t weight_bytes, act_bytes;
  uint32_t n_counted, pin, n_pinned;
  uint32_t *n_in;         /* [n_nets] pins inside */
  bool *has_source;       /* [n_nets] the producer is inside */
  uint32_t *n_users;      /* [n_groups] */
  uint32_t *paid, n_paid; /* types that pay for communication */
} psplit_i_load_tracker;

/* An empty set without a guess. Arrays live in `arena`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_load_tracker_init(psplit_i_load_tracker *tracker,
                                                       const psplit_i_instance *instance,
                                                       psplit_i_arena *arena);
/* Adds a cluster that is not in the set, or removes one that is. */
void psplit_i_load_tracker_add(psplit_i_load_tracker *tracker, uint32_t cluster);
void psplit_i_load_tracker_remove(psplit_i_load_tracker *tracker, uint32_t cluster);
/* Empties the set, whose clusters are exactly `clusters`. */
void psplit_i_load_tracker_clear(psplit_i_load_tracker *tracker, const uint32_t *clusters,
                                 uint32_t n);

/* Load of the set as the stage that `move` forms; INF if it does not fit the device. */
int64_t psplit_i_load_tracker_load(const psplit_i_load_tracker *tracker,
                                   const psplit_i_automaton *automaton,
                                   const psplit_i_transition *move);

#endif
