/* The price of a cluster (prices.h) is a lower bound on the part of a stage that it needs. So a
 * stage with the largest possible sum of prices is a good one, whatever the others are, since it
 * leaves least to them. A beam of partial splits (price_beam.h) is extended by such stages, from
 * the last one on. The downsets between all stages that were found are given to the dynamic program
 * over downsets (downset_dp.h), together with those of the best split. Then windows of a few
 * stages, among them the slowest, are rebuilt in the same way. With all other clusters fixed,
 * tables are small, so a window takes a hundredth of the time of the whole. */
#include "stages_by_price.h"

#include <stdlib.h>

#include "downset_dp.h"
#include "hash.h"
#include "price_beam.h"

enum {
  MOST_LIMITS = 8,
  MOST_IDLE = 2,     /* limits in a row that bring nothing */
  FIRST_PART = 4,    /* the limit is below the value by one of so many parts of the gap */
  NEXT_PART = 16,    /* the same where the first limit brought nothing */
  FIRST_ROUNDS = 10, /* in which prices grow, with the first limit */
  NEXT_ROUNDS = 3,
  LEAST_ROUNDS = 32,     /* that the budget has to be worth */
  LEAST_WINDOW = 3,      /* stages of a window, */
  MOST_WINDOW = 8,       /* the same, at most */
  WINDOW_LIMITS = 4,     /* one of which it has: */
  WINDOW_PART = 24,      /* they differ by one of so many parts of the gap */
  MOST_IDLE_WINDOWS = 40 /* in a row that bring nothing */
};

/* Tries one limit after the other, each chosen by the result of the last. */
static psplit_code try_limits(psplit_i_beam *b, const psplit_i_automaton *automaton, int64_t bound,
                              int64_t *scratch, psplit_i_assignment *trial,
                              psplit_i_assignment *io_split) {
  psplit_code code = PSPLIT_OK;
  uint32_t n_idle = 0;
  for (uint32_t k = 0; k < MOST_LIMITS && n_idle < MOST_IDLE && !psplit_i_expired(b->budget); k++) {
    const int64_t gap = io_split->value - bound;
    int64_t sum;
    b->limit = io_split->value - 1 - gap / (n_idle ? NEXT_PART : FIRST_PART);
    if (!psplit_i_downsets_add_split(b->set, b->instance, io_split->stage)) return PSPLIT_NOMEM;
    PSPLIT_TRY(psplit_i_beam_price(b, k ? NEXT_ROUNDS : FIRST_ROUNDS, &sum));
    if (sum > 0) PSPLIT_TRY(psplit_i_beam_run(b));
    PSPLIT_TRY(psplit_i_downset_dp(b->instance, automaton, b->set, io_split->value, b->budget,
                                   scratch, trial));
    n_idle = trial->value < io_split->value ? 0 : n_idle + 1;
    if (n_idle == 0) psplit_i_assignment_copy(io_split, trial, b->instance);
  }
out:
  return code;
}

/* Rebuilds the stages of a window, in which the slowest one may have any position. */
static psplit_code form_window(psplit_i_beam *b, const psplit_i_assignment *split, int64_t bound,
                               uint32_t slowest, uint64_t drawn) {
  const uint32_t n_stages = b->instance->n_stages;
  const int64_t step = (split->value - bound) / WINDOW_PART;
  const uint32_t width =
    LEAST_WINDOW + (uint32_t)(drawn & 0xffff) % (MOST_WINDOW - LEAST_WINDOW + 1);
  const uint32_t before = (uint32_t)(drawn >> 16 & 0xffff) % width;
  const uint32_t first = slowest > before ? slowest - before : 0;
  const uint32_t last = first + width < n_stages ? first + width - 1 : n_stages - 1;
  b->limit = split->value - 1 - step * (int64_t)((drawn >> 32) % WINDOW_LIMITS);
  psplit_i_downsets_forget(b->set, 0);
  if (!psplit_i_downsets_add_split(b->set, b->instance, split->stage)) return PSPLIT_NOMEM;
  return psplit_i_beam_window(b, split->stage, first, last);
}

/* Rebuilds windows, for at most `most` of the budget. A split of the same value whose other stages
 * are less full is accepted, too. */
static psplit_code try_windows(psplit_i_beam *b, const psplit_i_automaton *automaton, int64_t bound,
                               uint64_t most, int64_t *scratch, psplit_i_assignment *trial,
                               psplit_i_assignment *io_split) {
  psplit_code code = PSPLIT_OK;
  psplit_i_downsets *all = b->set, set;
  psplit_i_budget *whole = b->budget, part = {0};
  if (whole) {
    part = psplit_i_budget_share(whole, 1);
    if (part.most > most) part.most = most;
    b->budget = &part;
  }
  psplit_i_downsets_init(&set, b->instance);
  b->set = &set;
  for (uint32_t k = 0, n_idle = 0; n_idle < MOST_IDLE_WINDOWS; k++) {
    const int64_t before = io_split->value;
    if (before <= bound || psplit_i_expired(b->budget)) break;
    psplit_i_assignment_evaluate(io_split, b->instance, automaton, scratch);
    const uint32_t slowest = psplit_i_slowest_stage(b->instance, scratch);
    PSPLIT_TRY(form_window(b, io_split, bound, slowest, psplit_i_splitmix64(WINDOW_PART, k)));
    PSPLIT_TRY(
      psplit_i_downset_dp(b->instance, automaton, b->set, before, b->budget, scratch, trial));
    n_idle = trial->value < before ? 0 : n_idle + 1;
    if (trial->value <= before) psplit_i_assignment_copy(io_split, trial, b->instance);
  }
out:
  if (whole) psplit_i_spend(whole, part.spent);
  b->budget = whole;
  b->set = all;
  psplit_i_downsets_fini(&set);
  return code;
}

/* Whether a fraction of the budget suffices for a round of prices. If not, the attempt is not
 * charged, so that it does not change the results of later solvers. */
static psplit_code can_afford(psplit_i_beam *b, int64_t value, bool *out_afford) {
  psplit_i_budget *whole = b->budget;
  psplit_i_budget part = psplit_i_budget_share(whole, LEAST_ROUNDS);
  int64_t sum = 0;
  *out_afford = false;
  b->budget = &part;
  psplit_code code = psplit_i_beam_init(b, value);
  if (code == PSPLIT_OK && b->pricing)
    code = psplit_i_prices_grow(&b->prices, b->pricing, value - 1, 1, true, &part, &sum);
  b->budget = whole;
  if (sum == 0) return code;
  *out_afford = true;
  psplit_i_spend(whole, part.spent);
  return code;
}

psplit_code psplit_i_stages_by_price(const psplit_i_instance *instance,
                                     const psplit_i_automaton *automaton, int64_t bound,
                                     psplit_i_budget *budget, int64_t *scratch,
                                     psplit_i_assignment *io_split, psplit_i_downsets *io_set) {
  const uint64_t start = budget ? budget->spent : 0;
  psplit_code code;
  psplit_i_assignment trial;
  bool affordable;
  if (instance->n_stages > PSPLIT_I_PRICED_STAGES) return PSPLIT_OK;
  psplit_i_beam *b = calloc(1, sizeof *b);
  if (!b) return PSPLIT_NOMEM;
  b->instance = instance;
  b->budget = budget;
  b->set = io_set;
  PSPLIT_TRY(can_afford(b, io_split->value, &affordable));
  PSPLIT_TRY(psplit_i_assignment_init(&trial, instance, &b->arena));
  if (!affordable) goto out;
  PSPLIT_TRY(try_limits(b, automaton, bound, scratch, &trial, io_split));
  const uint64_t spent = budget ? budget->spent - start : 0;
  if (instance->n_stages > LEAST_WINDOW)
    PSPLIT_TRY(try_windows(b, automaton, bound, spent, scratch, &trial, io_split));
out:
  psplit_i_beam_fini(b);
  free(b);
  return code;
}
