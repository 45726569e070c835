#include <math.h>

#include "annealing.h"
#include "team.h"

uint64_t psplit_i_anneal_draw(psplit_i_annealing *a) {
  return psplit_i_splitmix64(a->seed, a->n_drawn++);
}

uint32_t psplit_i_anneal_below(psplit_i_annealing *a, uint32_t n) {
  return (uint32_t)(((psplit_i_anneal_draw(a) >> 32) * n) >> 32);
}

bool psplit_i_anneal_accepts(psplit_i_annealing *a, double gain) {
  if (gain >= 0) return true;
  const double chance = (double)(psplit_i_anneal_draw(a) >> 11) * 0x1p-53;
  return chance < exp(gain / a->temperature);
}

static double factor_of(double hot, double cold, uint64_t n_steps) {
  return pow(cold / hot, 1.0 / (double)(n_steps + 1));
}

void psplit_i_anneal(psplit_i_annealing *a, double hot, double cold, uint64_t n_steps,
                     const psplit_i_budget *budget, bool (*step)(void *with, uint64_t i),
                     void *with) {
  enum { LOOK = 1024 };
  const uint64_t before = budget ? budget->spent : 0;
  double factor = factor_of(hot, cold, n_steps);
  a->temperature = hot;
  for (uint64_t i = 0; i < n_steps; i++) {
    if (budget && i > 0 && i % LOOK == 0) {
      const uint64_t each = (budget->spent - before + i - 1) / i;
      const uint64_t affords = psplit_i_budget_left(budget) / (each ? each : 1);
      if (affords < n_steps - i) factor = factor_of(a->temperature, cold, affords);
    }
    if (!step(with, i)) return;
    a->temperature *= factor;
  }
}

void psplit_i_anneal_chains(const psplit_i_solver_request *request, psplit_i_budget *budgets,
                            void (*run)(void *with, size_t i, int thread), void *with) {
  enum { N = PSPLIT_I_ANNEAL_CHAINS };
  const int n_threads = psplit_i_team_size(request->options->n_threads);
  for (uint32_t i = 0; i < N; i++) budgets[i] = psplit_i_budget_beside(request->budget, N);
  psplit_i_team_for(n_threads < N ? n_threads : N, 0, N, run, with);
  for (uint32_t i = 0; i < N; i++) psplit_i_spend(request->budget, budgets[i].spent);
}
