/* A placement of clusters on devices that is changed one cluster at a time: the state of annealing
 * and of branch and bound. */
#ifndef PSPLIT_PARTITION_PLACEMENT_H
#define PSPLIT_PARTITION_PLACEMENT_H

#include "relay.h"

/* Label l stands on device l % n_devices. A placement may be partial; its value is monotone: adding
 * clusters never lowers it. */
typedef struct psplit_i_placement {
  const psplit_i_instance *instance;
  uint32_t n_devices, n_labels;
  bool ordered; /* labels never decrease along an edge */
  bool latency;
  bool nonempty;
  uint32_t *type;           /* [n_devices] */
  uint32_t *label;          /* [n] NONE: not placed */
  int64_t *w, *recv, *send; /* [n_devices] */
  uint64_t *weight, *act;   /* [n_devices] bytes */
  /* [n_devices]; forbidden clusters are not part of w */
  uint32_t *n_counted, *n_clusters, *n_forbidden;
  uint32_t *home, *n_receivers; /* [n_nets] device of the producer; devices that receive */
  uint32_t *n_on;               /* [n_nets * n_devices] consumers */
  uint32_t *n_users;            /* [n_groups * n_devices] */
  uint32_t *n_arcs;             /* [n_devices^2] edges between stages, for latency */
  int64_t *ready;               /* [n_devices] */
  /* [n_devices^2] number of nets that one device sends to another; NULL without messages, or with
   * relays */
  uint32_t *n_sent;
  uint32_t *touched, n_touched; /* devices whose load may have changed by moves */
  bool *is_touched;             /* [n_devices] */
  /* With relays, NULL otherwise. Values of the placement that was settled last. */
  uint8_t *sent;     /* [n_devices^2] with messages: some hop makes one */
  int64_t *passed;   /* [2 * n_devices] receiving, sending */
  uint8_t *hop_arcs; /* [n_devices^2] for latency */
  psplit_i_relay relay;
} psplit_i_placement;

/* An empty placement. `chunks`: number of labels per device. Arrays live in `arena`. Errors: NOMEM,
 * LIMIT (tables above 2^28 cells). */
PSPLIT_MUST_USE psplit_code psplit_i_placement_init(psplit_i_placement *placement,
                                                    const psplit_i_instance *instance,
                                                    uint32_t chunks,
                                                    const psplit_partition_options *options,
                                                    psplit_i_arena *arena);
/* Places a cluster that is not placed; removes one that is. O(its pins). */
void psplit_i_placement_add(psplit_i_placement *placement, uint32_t cluster, uint32_t label);
void psplit_i_placement_remove(psplit_i_placement *placement, uint32_t cluster);
/* Moves a cluster in a full placement. O(its nets), for any number of devices. Adds the devices
 * whose load or memory changes to placement->touched. */
void psplit_i_placement_move(psplit_i_placement *placement, uint32_t cluster, uint32_t label);
/* Empties placement->touched. */
void psplit_i_placement_forget_touched(psplit_i_placement *placement);
/* Load of a device with the clusters placed so far, without relays. O(1). */
int64_t psplit_i_placement_load(const psplit_i_placement *placement, uint32_t device);
/* Largest load, or latency, without relays. */
int64_t psplit_i_placement_value(psplit_i_placement *placement);
/* The exact value of a full placement; INF if a tensor cannot reach a stage. O(pins) with relays,
 * otherwise as above. out_load[n_devices] (may be NULL): the loads. */
int64_t psplit_i_placement_settle(psplit_i_placement *placement, int64_t *out_load);
/* Whether the clusters placed on a device fit into its memory. */
bool psplit_i_placement_fits(const psplit_i_placement *placement, uint32_t device);
/* The range of labels that the placed neighbours and the pin of a cluster permit. Returns false if
 * it is empty. */
bool psplit_i_placement_range(const psplit_i_placement *placement, uint32_t cluster, uint32_t *low,
                              uint32_t *high);

#endif
