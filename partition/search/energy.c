#include "energy.h"

psplit_code psplit_i_energy_init(psplit_i_energy *energy, psplit_i_placement *placement,
                                 psplit_i_arena *arena) {
  const size_t n = placement->n_devices;
  energy->placement = placement;
  energy->load = PSPLIT_NEW(arena, int64_t, 2 * n);
  energy->part = PSPLIT_NEW(arena, double, 2 * n);
  if (!energy->load || !energy->part) return PSPLIT_NOMEM;
  energy->fresh = energy->load + n;
  energy->fresh_part = energy->part + n;
  return PSPLIT_OK;
}

double psplit_i_energy_of(const psplit_i_energy *energy, int64_t load) {
  double x = (double)load / energy->unit;
  if (energy->of_sixths) {
    const double cube = x * x * x;
    x = cube * cube;
  }
  for (uint32_t i = 0; i < energy->n_squares; i++) x *= x;
  return x;
}

void psplit_i_energy_set_best(psplit_i_energy *energy, int64_t best) {
  energy->best = best;
  energy->n_over = 0;
  for (uint32_t k = 0; k < energy->placement->n_devices; k++)
    energy->n_over += energy->load[k] >= best;
}

void psplit_i_energy_begin(psplit_i_energy *energy, int64_t best) {
  energy->unit = best > 0 ? (double)best : 1;
  for (uint32_t k = 0; k < energy->placement->n_devices; k++) {
    energy->load[k] = psplit_i_placement_load(energy->placement, k);
    energy->part[k] = psplit_i_energy_of(energy, energy->load[k]);
  }
  psplit_i_energy_set_best(energy, best);
}

double psplit_i_energy_rise(psplit_i_energy *energy) {
  const psplit_i_placement *b = energy->placement;
  double rise = 0;
  for (uint32_t i = 0; i < b->n_touched; i++) {
    const uint32_t k = b->touched[i];
    energy->fresh[k] = psplit_i_placement_load(b, k);
    energy->fresh_part[k] = psplit_i_energy_of(energy, energy->fresh[k]);
    rise += energy->fresh_part[k] - energy->part[k];
  }
  return rise;
}

bool psplit_i_energy_take(psplit_i_energy *energy) {
  const psplit_i_placement *b = energy->placement;
  for (uint32_t i = 0; i < b->n_touched; i++) {
    const uint32_t k = b->touched[i];
    energy->n_over -= energy->load[k] >= energy->best;
    energy->n_over += energy->fresh[k] >= energy->best;
    energy->load[k] = energy->fresh[k];
    energy->part[k] = energy->fresh_part[k];
  }
  if (energy->n_over > 0) return false;
  int64_t most = 0;
  for (uint32_t k = 0; k < b->n_devices; k++)
    if (energy->load[k] > most) most = energy->load[k];
  psplit_i_energy_set_best(energy, most);
  return true;
}
