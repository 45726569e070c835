/* The communication pattern of training: wires between stages, from pipeline.json, and between
 * devices, for decisions of device 0 at the end of a step. */
#ifndef PSPLIT_RUNTIME_TRAIN_WIRING_H
#define PSPLIT_RUNTIME_TRAIN_WIRING_H

#include "pipeline.h"

typedef enum psplit_i_wire_kind {
  PSPLIT_I_WIRE_FORWARD,  /* between stages, a bundle for each micro-batch */
  PSPLIT_I_WIRE_BACKWARD, /* the same, the other way */
  /* Once a step: from who sums some of a weight's gradient to who updates the weight; ... */
  PSPLIT_I_WIRE_PARTS,
  PSPLIT_I_WIRE_GRADIENTS, /* ... from a stage of a later replica to the first one's; ... */
  PSPLIT_I_WIRE_SUMS,      /* ... back; ... */
  PSPLIT_I_WIRE_WEIGHTS,   /* ... from who updates weights to who reads them too */
  PSPLIT_I_WIRE_REPORT,    /* from each device to device 0: one tensor, float64 */
  PSPLIT_I_WIRE_ORDER      /* back; the same */
} psplit_i_wire_kind;

typedef struct psplit_i_wire {
  psplit_i_wire_kind kind;
  uint32_t from, to; /* stages; devices of REPORT and ORDER */
  uint32_t from_replica, to_replica;
  uint32_t from_device, to_device; /* that have these stages */
  uint32_t n_tensors;
  const char **given, **taken; /* [n_tensors] their names where they come from and where they go */
} psplit_i_wire;

typedef struct psplit_i_wiring {
  psplit_i_arena arena;
  uint32_t n_replicas;
  uint32_t n_line,
    n_chunks;         /* stage s is chunk s / n_line of device s % n_line of a replica, ... */
  uint32_t n_devices; /* ... of all devices number replica * n_line + s % n_line */
  uint32_t n_wires;
  psplit_i_wire *wires;
} psplit_i_wiring;

/* `pipe` outlives it; its stages train. Errors: USAGE (no such number of devices), INVALID (the
 * manifest's tables do not agree), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_wiring_make(const psplit_i_pipe *pipe, uint32_t n_chunks,
                                                 uint32_t n_replicas, psplit_diag *diag,
                                                 psplit_i_wiring *out);
void psplit_i_wiring_fini(psplit_i_wiring *wiring); /* a zeroed one is fine */

/* How many gradients there are of a weight, each summed by itself, and their names. */
uint32_t psplit_i_n_gradients(const psplit_i_trained_weight *weight);
psplit_i_gradient_row psplit_i_gradient_of(const psplit_i_trained_weight *weight, uint32_t part);

/* The wire to `to` of a replica, PSPLIT_NONE: there is none. */
uint32_t psplit_i_wiring_find(const psplit_i_wiring *wiring, psplit_i_wire_kind kind, uint32_t from,
                              uint32_t to, uint32_t to_replica);

static inline bool psplit_i_wire_leaves(const psplit_i_wire *wire, psplit_i_wire_kind kind,
                                        uint32_t stage, uint32_t replica) {
  return wire->kind == kind && wire->from == stage && wire->from_replica == replica;
}
static inline bool psplit_i_wire_enters(const psplit_i_wire *wire, psplit_i_wire_kind kind,
                                        uint32_t stage, uint32_t replica) {
  return wire->kind == kind && wire->to == stage && wire->to_replica == replica;
}

#endif
