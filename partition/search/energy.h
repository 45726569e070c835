/* The energy of a placement whose value is its largest load: the sum of a power of the loads, which
 * sees every device and, the higher the power, is ruled by the largest. Kept as clusters move, by
 * the devices that a move touches alone. */
#ifndef PSPLIT_PARTITION_ENERGY_H
#define PSPLIT_PARTITION_ENERGY_H

#include "placement.h"

typedef struct psplit_i_energy {
  psplit_i_placement *placement;
  double unit;    /* what loads are measured in */
  bool of_sixths; /* the power is 6 times 2 to n_squares; else 2 to n_squares */
  uint32_t n_squares;
  int64_t best;              /* least value met */
  uint32_t n_over;           /* devices with a load >= best */
  int64_t *load, *fresh;     /* [n_devices] before and after a move */
  double *part, *fresh_part; /* [n_devices] of the energy, the same */
} psplit_i_energy;

/* Room for it. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_energy_init(psplit_i_energy *energy,
                                                 psplit_i_placement *placement,
                                                 psplit_i_arena *arena);
/* Starts with the placement as it is; `best`, the best known value, is the unit of loads. */
void psplit_i_energy_begin(psplit_i_energy *energy, int64_t best);
void psplit_i_energy_set_best(psplit_i_energy *energy, int64_t best);
/* A load's part of the energy. */
double psplit_i_energy_of(const psplit_i_energy *energy, int64_t load);
/* How much the energy rises with the present loads of the devices that were touched. */
double psplit_i_energy_rise(psplit_i_energy *energy);
/* Accepts these loads; true if the value is then below `best`, which is lowered to it. */
bool psplit_i_energy_take(psplit_i_energy *energy);

#endif
