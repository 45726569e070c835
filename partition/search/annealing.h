/* Simulated annealing, whatever moves: chance, temperatures, what is accepted, and the chains that
 * run side by side. What a move is, and its energy, is the caller's: boundaries between stages
 * (boundary_annealing.c), labels (label_annealing.c), on one level or several
 * (multilevel_annealing.c). Source: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated
 * annealing", Science 1983. */
#ifndef PSPLIT_PARTITION_ANNEALING_H
#define PSPLIT_PARTITION_ANNEALING_H

#include "result.h"

enum { PSPLIT_I_ANNEAL_CHAINS = 4 };

/* One chain's chance, and the temperature of its present step. */
typedef struct psplit_i_annealing {
  uint64_t seed, n_drawn;
  double temperature;
} psplit_i_annealing;

/* The next number of the chain, all 64 bits at random. */
uint64_t psplit_i_anneal_draw(psplit_i_annealing *a);
uint32_t psplit_i_anneal_below(psplit_i_annealing *a, uint32_t n); /* 0 .. n - 1 */
/* Metropolis' rule for a move that lowers the energy by `gain`; draws only where it is below 0. */
bool psplit_i_anneal_accepts(psplit_i_annealing *a, double gain);

/* n_steps calls of step(with, i), while it returns true, at temperatures that fall from hot to
 * cold by the same factor each; faster where the budget, which steps charge, affords fewer: a chain
 * that is cut short while it is hot has found nothing. NULL: no budget. */
void psplit_i_anneal(psplit_i_annealing *a, double hot, double cold, uint64_t n_steps,
                     const psplit_i_budget *budget, bool (*step)(void *with, uint64_t i),
                     void *with);

/* Calls run(with, i, thread) for each of the chains, side by side. Each has budgets[i], a share of
 * the request's that does not depend on threads; what they spend is charged in the end. */
void psplit_i_anneal_chains(const psplit_i_solver_request *request, psplit_i_budget *budgets,
                            void (*run)(void *with, size_t i, int thread), void *with);

#endif
