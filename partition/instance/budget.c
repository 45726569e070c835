#include "budget.h"

#include <math.h>
#include <time.h>

#include "activity.h"
#include "cancel.h"
#include "checked.h"
#include "team.h"

enum {
  LOOK_OPS = 1 << 17, /* about a millisecond */
  TEAM_OPS = 10 * LOOK_OPS
};
#define WORK_PART 1.1  /* of the limit: what is planned by steps seldom meets the end */
#define CLOCK_PART 0.8 /* some work takes a fourth longer: the last methods have their time; */
#define CLOCK_SLACK 2. /* a share may take so many times its part of the clock's time */

double psplit_i_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

psplit_i_budget psplit_i_budget_unlimited(void) {
  return (psplit_i_budget){.end = -1, .most = UINT64_MAX / 2};
}

psplit_i_budget psplit_i_budget_of(const psplit_partition_options *options) {
  const double seconds = options->time_limit_s;
  psplit_i_budget budget = psplit_i_budget_unlimited();
  budget.cancel = options->cancel;
  budget.activity = options->activity;
  if (seconds < 0) return budget;
  if (!options->limit_by_work) budget.end = psplit_i_now() + seconds;
  const double part = options->limit_by_work ? WORK_PART : CLOCK_PART;
  if (seconds < 1e6)
    budget.most = (uint64_t)(seconds * part * PSPLIT_I_STEPS_PER_SECOND * PSPLIT_I_STEP_OPS) + 1;
  return budget;
}

uint64_t psplit_i_budget_left(const psplit_i_budget *budget) {
  if (!budget) return UINT64_MAX / 2;
  return budget->spent < budget->most ? budget->most - budget->spent : 0;
}

double psplit_i_budget_seconds(const psplit_i_budget *budget) {
  const double part = budget->end < 0 ? WORK_PART : CLOCK_PART,
               left = (double)psplit_i_budget_left(budget) /
                      (part * PSPLIT_I_STEPS_PER_SECOND * PSPLIT_I_STEP_OPS);
  if (budget->end < 0) return left;
  return fmax(fmin(left, budget->end - psplit_i_now()), 0);
}

psplit_i_budget psplit_i_budget_beside(const psplit_i_budget *budget, uint32_t n) {
  if (!budget) return psplit_i_budget_unlimited();
  return (psplit_i_budget){.end = budget->end,
                           .most = psplit_i_budget_left(budget) / n,
                           .cancel = budget->cancel,
                           .activity = budget->activity};
}

psplit_i_budget psplit_i_budget_rated(const psplit_i_budget *budget, uint32_t n, uint32_t rate) {
  psplit_i_budget share = psplit_i_budget_beside(budget, n);
  const double part = (double)rate * CLOCK_SLACK / n, now = share.end < 0 ? 0 : psplit_i_now();
  if (part < 1 && share.end > now) share.end = now + (share.end - now) * part;
  share.most = psplit_i_sat_mul_u64(share.most, rate);
  return share;
}

psplit_i_budget psplit_i_budget_share(const psplit_i_budget *budget, uint32_t n) {
  return psplit_i_budget_rated(budget, n, 1);
}

void psplit_i_spend_rated(psplit_i_budget *budget, const psplit_i_budget *rated, uint32_t rate) {
  psplit_i_spend(budget, rated->spent / rate);
}

psplit_i_budget psplit_i_budget_inner(const psplit_i_budget *budget,
                                      const psplit_partition_options *options) {
  psplit_i_budget inner = psplit_i_budget_of(options);
  const uint64_t left = psplit_i_budget_left(budget);
  if (left < inner.most) inner.most = left;
  if (budget->end >= 0 && (inner.end < 0 || budget->end < inner.end)) inner.end = budget->end;
  return inner;
}

void psplit_i_budget_hold_back(psplit_i_budget *budget, uint32_t n) {
  const double now = budget->end < 0 ? 0 : psplit_i_now();
  budget->most -= psplit_i_budget_left(budget) / n;
  if (budget->end > now) budget->end -= (budget->end - now) / n;
}

void psplit_i_budget_extend(psplit_i_budget *budget, double seconds) {
  const double end = psplit_i_now() + seconds;
  const uint64_t n_ops = (uint64_t)(seconds * PSPLIT_I_STEPS_PER_SECOND * PSPLIT_I_STEP_OPS);
  if (budget->end >= 0 && budget->end < end) budget->end = end;
  if (psplit_i_budget_left(budget) < n_ops) budget->most = budget->spent + n_ops;
}

void psplit_i_spend_pass(psplit_i_budget *budget, const psplit_problem *problem) {
  enum { OPS_OF_NODE = 20, OPS_OF_PIN = 4 };
  const uint64_t n_pins = problem->n_nets ? problem->net_off[problem->n_nets] : 0;
  psplit_i_spend(budget, OPS_OF_NODE * (uint64_t)problem->n_nodes + OPS_OF_PIN * n_pins);
}

bool psplit_i_late(const psplit_i_budget *budget) {
  return budget && (psplit_i_cancelled(budget->cancel) ||
                    (budget->end >= 0 && psplit_i_now() >= budget->end));
}

bool psplit_i_expired(const psplit_i_budget *budget) {
  return budget && (budget->spent >= budget->most || psplit_i_late(budget));
}

bool psplit_i_spend(psplit_i_budget *budget, uint64_t n_ops) {
  if (!budget) return true;
  budget->spent += n_ops;
  if (budget->spent >= budget->most) return false;
  if (budget->spent < budget->look || (budget->end < 0 && !budget->cancel && !budget->activity))
    return true;
  if (psplit_i_late(budget)) return false; /* and looks again the next time */
  budget->look = budget->spent + LOOK_OPS;
  psplit_i_activity_add(budget->activity, LOOK_OPS);
  return true;
}

int psplit_i_budget_team(const psplit_i_budget *budget, uint64_t work, uint32_t asked) {
  const bool is_short = budget && work < TEAM_OPS && budget->spent < TEAM_OPS - work;
  if (work > 0 && work < PSPLIT_I_REGION_OPS) return 1;
  return is_short && !asked ? 1 : psplit_i_team_size(asked);
}
