#include "call_annealing.h"

#include <string.h>

/* Part of the energy that counts the time of all accelerators, relative to latency: of two
 * placements with the same latency, the one with less total time is closer to a better one. */
static const double BUSY = 1.0 / 64;
static const double HOT = 0.05, COLD = 1e-5; /* of the latency, when a round begins */

enum { N_CHAINS = PSPLIT_I_ANNEAL_CHAINS, STEPS_PER_GROUP = 300, LEAST_STEPS = 20000 };

typedef struct chain {
  const psplit_i_calls *calls;
  psplit_i_calls_scratch scratch;
  psplit_i_calls_mover mover;
  psplit_i_annealing chance;
  psplit_i_budget *budget;
  uint32_t *now, *best, *trial; /* [n] */
  int64_t value;                /* of the best */
  double energy;                /* of `now` */
  uint64_t n_steps, ops;        /* of a round; of a step */
} chain;

typedef struct round {
  chain chains[N_CHAINS];
  const psplit_i_calls_placed *start;
} round_of;

static double energy_of(int64_t latency, int64_t busy) {
  return (double)latency + BUSY * (double)busy;
}

static bool step(void *with, uint64_t i) {
  chain *c = with;
  int64_t busy;
  (void)i;
  if (!psplit_i_spend(c->budget, c->ops)) return false;
  memcpy(c->trial, c->now, c->calls->n * sizeof *c->trial);
  if (!psplit_i_calls_move(&c->mover, &c->chance, c->trial)) return true;
  const int64_t value = psplit_i_calls_latency(c->calls, &c->scratch, c->trial, &busy);
  if (value >= PSPLIT_I_INF) return true;
  const double energy = energy_of(value, busy);
  if (!psplit_i_anneal_accepts(&c->chance, c->energy - energy)) return true;
  uint32_t *swap = c->now;
  c->now = c->trial;
  c->trial = swap;
  c->energy = energy;
  if (value < c->value) {
    c->value = value;
    memcpy(c->best, c->now, c->calls->n * sizeof *c->best);
  }
  return true;
}

static void run_chain(void *with, size_t i, int thread) {
  round_of *r = with;
  chain *c = &r->chains[i];
  int64_t busy;
  (void)thread;
  memcpy(c->now, r->start->device, c->calls->n * sizeof *c->now);
  c->value = psplit_i_calls_latency(c->calls, &c->scratch, c->now, &busy);
  c->energy = energy_of(c->value, busy);
  const double heat = (double)c->value / (double)(1 << 2 * i); /* chains differ in it, too */
  psplit_i_anneal(&c->chance, HOT * heat + 1, COLD * (double)c->value + 1e-3, c->n_steps, c->budget,
                  step, c);
}

static psplit_code init(round_of *r, const psplit_i_solver_request *request,
                        const psplit_i_calls *calls, const psplit_i_calls_closure *closure,
                        uint64_t step_ops, psplit_i_arena *arena) {
  const uint32_t n = calls->n;
  const uint64_t n_steps = (uint64_t)STEPS_PER_GROUP * calls->n_groups;
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < N_CHAINS; i++) {
    chain *c = &r->chains[i];
    *c = (chain){.calls = calls,
                 .mover = {.calls = calls,
                           .closure = closure,
                           .behind = PSPLIT_NEW(arena, uint64_t, closure->words),
                           .before = PSPLIT_NEW(arena, uint64_t, closure->words)},
                 .chance = {.seed = request->options->seed * N_CHAINS + i},
                 .now = PSPLIT_NEW(arena, uint32_t, n),
                 .best = PSPLIT_NEW(arena, uint32_t, n),
                 .trial = PSPLIT_NEW(arena, uint32_t, n),
                 .n_steps = n_steps > LEAST_STEPS ? n_steps : LEAST_STEPS,
                 .ops = step_ops};
    PSPLIT_TRY(psplit_i_calls_scratch_init(&c->scratch, calls, arena));
    PSPLIT_TRY(c->mover.behind && c->mover.before && c->now && c->best && c->trial ? PSPLIT_OK
                                                                                   : PSPLIT_NOMEM);
  }
out:
  return code;
}

/* Takes at most half of what is left, since others may need the rest. */
psplit_code psplit_i_calls_anneal(const psplit_i_solver_request *request,
                                  const psplit_i_calls *calls,
                                  const psplit_i_calls_closure *closure, uint64_t step_ops,
                                  uint32_t most_idle, int64_t bound, psplit_i_calls_placed *best) {
  psplit_i_arena arena;
  psplit_i_budget budgets[N_CHAINS];
  psplit_i_budget half = psplit_i_budget_share(request->budget, 2);
  psplit_i_solver_request inner = *request;
  round_of r = {.start = best};
  inner.budget = &half;
  psplit_i_arena_init(&arena, 0);
  const psplit_code code = init(&r, request, calls, closure, step_ops, &arena);
  for (uint32_t i = 0; i < N_CHAINS; i++) r.chains[i].budget = &budgets[i];
  for (uint32_t idle = 0;
       code == PSPLIT_OK && idle < most_idle && best->value > bound && !psplit_i_expired(&half);
       idle++) {
    psplit_i_anneal_chains(&inner, budgets, run_chain, &r);
    for (uint32_t i = 0; i < N_CHAINS; i++) {
      if (r.chains[i].value >= best->value) continue;
      best->value = r.chains[i].value;
      memcpy(best->device, r.chains[i].best, calls->n * sizeof *best->device);
      idle = 0;
    }
  }
  psplit_i_spend(request->budget, half.spent);
  psplit_i_arena_fini(&arena);
  return code;
}
