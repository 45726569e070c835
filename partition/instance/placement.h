/* Items on devices, moved one at a time: the state of annealing and of branch and bound. */
#ifndef PSPLIT_PARTITION_PLACEMENT_H
#define PSPLIT_PARTITION_PLACEMENT_H

#include "relay.h"

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

#endif
