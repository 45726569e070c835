/* Who sends what to whom when stages train: what pipeline.json says, as wires between stages and,
 * besides, between devices, for what device 0 decides at the end of a step. */
#ifndef PSPLIT_RUNTIME_TRAIN_WIRING_H
#define PSPLIT_RUNTIME_TRAIN_WIRING_H

#include "pipeline.h"

typedef enum psplit_i_wire_kind {
  PSPLIT_I_WIRE_FORWARD,  /* between stages, a bundle for each micro-batch */
  PSPLIT_I_WIRE_BACKWARD, /* the same, the other way */
  /* From who sums some of a weight's gradient to who updates the weight, a bundle a step. */
  PSPLIT_I_WIRE_GRADIENTS,
  PSPLIT_I_WIRE_WEIGHTS, /* from who updates weights to who reads them too, a bundle a step */
  PSPLIT_I_WIRE_REPORT,  /* from each device to device 0: one tensor, float64 */
  PSPLIT_I_WIRE_ORDER    /* back; the same */
} psplit_i_wire_kind;

typedef struct psplit_i_wire {
  psplit_i_wire_kind kind;
  uint32_t from, to;               /* stages; devices of REPORT and ORDER */
  uint32_t from_device, to_device; /* that have these stages */
  uint32_t n_tensors;
  const char **given, **taken; /* [n_tensors] their names where they come from and where they go */
} psplit_i_wire;

typedef struct psplit_i_wiring {
  psplit_i_arena arena;
  uint32_t n_devices, n_chunks; /* stage s is chunk s / n_devices of device s % n_devices */
  uint32_t n_wires;
  psplit_i_wire *wires; /* by kind */
} psplit_i_wiring;

/* `pipe` outlives it; its stages train. Errors: USAGE (no such number of devices), INVALID (the
 * manifest's tables do not agree), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_wiring_make(const psplit_i_pipe *pipe, uint32_t n_chunks,
                                                 psplit_diag *diag, psplit_i_wiring *out);
void psplit_i_wiring_fini(psplit_i_wiring *wiring); /* a zeroed one is fine */

/* How many gradients there are of weight `weight`, each summed by itself, and their names. */
uint32_t psplit_i_n_gradients(const psplit_i_trained_weight *weight);
psplit_i_gradient_row psplit_i_gradient_of(const psplit_i_trained_weight *weight, uint32_t part);

/* The wire between two devices, PSPLIT_NONE: there is none. */
uint32_t psplit_i_wiring_find(const psplit_i_wiring *wiring, psplit_i_wire_kind kind, uint32_t from,
                              uint32_t to);

#endif
