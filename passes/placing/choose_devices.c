/* Chooses the devices of the stages, and their order.
 *
 * If all links are alike, the solver orders the devices itself. If links differ, the solver
 * requires a given order, so orders are tried one by one: all of them if they are few, otherwise a
 * local search that swaps two devices, starting from the best order of the relaxation with the best
 * links. Interchangeable devices are of one type, and an order is a sequence of types. Types are
 * sorted by name, so this choice does not depend on the order of devices in the file, which
 * listed_order.c plans as well. */
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "devices_inside.h"
#include "methods.h"
#include "request.h"

enum { MOST_TRIALS = 64 };

/* Share of the time limit for the choice, and its minimum; then the same while no order with a
 * split is known. */
static const double SHARE = 0.5, LEAST_SECONDS = 1, FIRST_SHARE = 1, FIRST_SECONDS = 4;

typedef struct choice {
  psplit_planner *planner;
  const psplit_i_request *request;
  psplit_diag *diag;
  psplit_i_arena arena;
  uint32_t n_stages, n_types;
  uint32_t *off, *member; /* [n_types + 1], [n_candidates] devices of each type, as given */
  uint32_t *count;        /* [n_types] devices of each type in the current subset */
  uint32_t *order;        /* [n_stages] types of the current order, by stage */
  uint64_t *memory_bytes; /* [n_stages] */
  uint32_t n_trials;      /* number of trials that share the time */
  psplit_i_budget budget; /* for all trials, since one may exceed its share */
  psplit_i_budget first;  /* until an order with a split is found */
  uint32_t *best;         /* [n_stages] types; at best_ns */
  int64_t best_ns, best_bound_ns;
  int64_t others_bound_ns; /* lower bound on the orders that were tried, except the best */
  /* Lower bounds: on all orders of the current subset, and on all orders of all subsets. */
  int64_t subset_bound_ns, any_bound_ns;
  const char *any_bound;
  psplit_diag gave_up; /* why the solver rejects the orders, or PSPLIT_OK */
} choice;

typedef struct type {
  const char *name; /* first in alphabetical order */
  uint32_t first, n;
} type;

static int compare_types(const void *a, const void *b) {
  const type *x = a, *y = b;
  return strcmp(x->name, y->name);
}

/* Sorts devices by type, and types by name. Devices of a type keep the given order. */
static psplit_code find_types(choice *c) {
  const psplit_devices *devices = c->planner->devices;
  const uint32_t n = c->planner->n_candidates;
  type *types = psplit_i_arena_zeroed(&c->arena, n, sizeof *types);
  uint32_t *of = psplit_i_arena_array(&c->arena, n, sizeof *of);
  c->off = psplit_i_arena_zeroed(&c->arena, (size_t)n + 1, sizeof *c->off);
  c->member = psplit_i_arena_array(&c->arena, n, sizeof *c->member);
  c->count = psplit_i_arena_zeroed(&c->arena, n, sizeof *c->count);
  c->order = psplit_i_arena_array(&c->arena, c->n_stages, sizeof *c->order);
  c->best = psplit_i_arena_array(&c->arena, c->n_stages, sizeof *c->best);
  c->memory_bytes = psplit_i_arena_array(&c->arena, c->n_stages, sizeof *c->memory_bytes);
  if (c->arena.failed) return psplit_i_nomem(c->diag);
  for (uint32_t d = 0; d < n; d++) {
    uint32_t t = 0;
    while (t < c->n_types && !psplit_i_devices_swappable(devices, types[t].first, d)) t++;
    const char *name = psplit_devices_name(devices, d);
    if (t == c->n_types) types[c->n_types++] = (type){name, d, 0};
    if (strcmp(name, types[t].name) < 0) types[t].name = name;
    types[t].n++;
    of[d] = types[t].first;
  }
  qsort(types, c->n_types, sizeof *types, compare_types);
  uint32_t at = 0;
  for (uint32_t t = 0; t < c->n_types; t++) {
    for (uint32_t d = 0; d < n; d++)
      if (of[d] == types[t].first) c->member[at++] = d;
    c->off[t + 1] = at;
  }
  return PSPLIT_OK;
}

static uint32_t size_of(const choice *c, uint32_t t) { return c->off[t + 1] - c->off[t]; }

/* Assigns devices of these types to the stages. */
static psplit_code apply(choice *c, const uint32_t *types) {
  uint32_t *given = psplit_i_arena_array(&c->arena, c->n_stages, sizeof *given);
  uint32_t *next = psplit_i_arena_array(&c->arena, c->n_types, sizeof *next);
  if (!given || !next) return psplit_i_nomem(c->diag);
  memcpy(next, c->off, c->n_types * sizeof *next);
  for (uint32_t s = 0; s < c->n_stages; s++) given[s] = c->member[next[types[s]]++];
  const psplit_code code = psplit_i_planner_order_devices(c->planner, given, c->n_stages, c->diag);
  for (uint32_t s = 0; s < c->n_stages; s++)
    c->memory_bytes[s] = psplit_devices_memory_bytes(c->planner->devices, s);
  return code;
}

/* Records a lower bound for an order that is not the best. */
static void none_above(choice *c, int64_t bound_ns) {
  if (bound_ns < c->others_bound_ns) c->others_bound_ns = bound_ns;
}

static bool has_time(const choice *c) {
  return !psplit_i_expired(c->best_ns < INT64_MAX ? &c->budget : &c->first);
}

/* Solves for the current order, or for any, and counts the work. Returns the solver's code. */
static psplit_code run(choice *c, bool any_order, bool with_layouts, psplit_diag *why,
                       bool *out_lacks_layouts, psplit_solution **out) {
  uint64_t n_ops = 0;
  *out = NULL;
  const psplit_i_solver_run solver_run = {.memory_bytes = c->memory_bytes,
                                          .any_order = any_order,
                                          .with_layouts = with_layouts,
                                          .share = SHARE / c->n_trials};
  const psplit_code code =
    psplit_i_request_try(c->planner, c->request, &solver_run, why, &n_ops, out_lacks_layouts, out);
  psplit_i_spend(&c->budget, n_ops);
  psplit_i_spend(&c->first, n_ops);
  return code;
}

/* Solves for the current order. *out is NULL if there is no split, or none was found. */
static psplit_code ask(choice *c, bool any_order, bool *out_lacks_layouts, psplit_solution **out) {
  psplit_diag why = {0};
  const psplit_code code = run(c, any_order, false, &why, out_lacks_layouts, out);
  if (code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED) return psplit_i_fail_as(c->diag, &why);
  if (code == PSPLIT_UNSUPPORTED || code == PSPLIT_LIMIT) {
    c->gave_up = why;
    c->others_bound_ns = any_order ? c->others_bound_ns : 0;
    c->any_bound_ns = any_order ? 0 : c->any_bound_ns;
  }
  if (code == PSPLIT_INFEASIBLE && why.hint == PSPLIT_HINT_TIME_LIMIT) {
    none_above(c, any_order ? 0 : c->subset_bound_ns);
    c->any_bound_ns = any_order ? 0 : c->any_bound_ns;
  }
  return PSPLIT_OK;
}

/* Solves the relaxation with layout prices. *out is NULL if it did not find a split. */
static psplit_code ask_with_layouts(choice *c, bool any_order, psplit_solution **out) {
  psplit_diag why = {0};
  bool lacks_layouts;
  const psplit_code code = run(c, any_order, true, &why, &lacks_layouts, out);
  return code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED ? psplit_i_fail_as(c->diag, &why)
                                                          : PSPLIT_OK;
}

/* Records the value and bound of c->order. */
static void take(choice *c, int64_t value_ns, int64_t bound_ns) {
  if (value_ns >= c->best_ns) {
    none_above(c, bound_ns);
    return;
  }
  none_above(c, c->best_bound_ns);
  c->best_ns = value_ns;
  c->best_bound_ns = bound_ns;
  memcpy(c->best, c->order, c->n_stages * sizeof *c->best);
}

/* Tries c->order. *out_ns is INT64_MAX if no split was found. */
static psplit_code try_order(choice *c, int64_t *out_ns) {
  psplit_code code;
  psplit_solution *solution = NULL, *other = NULL;
  bool lacks_layouts;
  *out_ns = INT64_MAX;
  PSPLIT_TRY(apply(c, c->order));
  PSPLIT_TRY(ask(c, false, &lacks_layouts, &solution));
  if (!solution) return PSPLIT_OK;
  int64_t value_ns = solution->objective_ns, bound_ns = solution->lower_bound_ns, other_ns;
  if (lacks_layouts) PSPLIT_TRY(psplit_i_request_plan_ns(c->planner, solution, c->diag, &value_ns));
  if (value_ns > solution->objective_ns) PSPLIT_TRY(ask_with_layouts(c, false, &other));
  if (other) {
    PSPLIT_TRY(psplit_i_request_plan_ns(c->planner, other, c->diag, &other_ns));
    if (other_ns < value_ns) value_ns = other_ns;
    if (other->lower_bound_ns > bound_ns) bound_ns = other->lower_bound_ns;
  }
  *out_ns = value_ns;
  take(c, value_ns, bound_ns);
out:
  psplit_solution_destroy(other);
  psplit_solution_destroy(solution);
  return code;
}

/* Sets c->order to the sorted types of the current subset. */
static void first_order(choice *c) {
  uint32_t s = 0;
  for (uint32_t t = 0; t < c->n_types; t++)
    for (uint32_t k = 0; k < c->count[t]; k++) c->order[s++] = t;
}

/* The lexicographically next order. Returns false after the last. */
static bool next_order(choice *c) {
  uint32_t *o = c->order, i = c->n_stages - 1, j = i;
  while (i > 0 && o[i - 1] >= o[i]) i--;
  if (i == 0) return false;
  while (o[j] <= o[i - 1]) j--;
  const uint32_t kept = o[i - 1];
  o[i - 1] = o[j];
  o[j] = kept;
  for (uint32_t a = i, b = c->n_stages - 1; a < b; a++, b--) {
    const uint32_t left = o[a];
    o[a] = o[b];
    o[b] = left;
  }
  return true;
}

/* The number of distinct orders of the current subset, at most MOST_TRIALS + 1. */
static uint32_t count_orders(choice *c) {
  uint32_t n = 1, placed = 0;
  for (uint32_t t = 0; t < c->n_types; t++)
    for (uint32_t k = 1; k <= c->count[t]; k++) {
      placed++;
      /* A product of binomials: each intermediate result is an integer, and they only grow. */
      const uint64_t product = (uint64_t)n * placed;
      n = product / k > MOST_TRIALS ? MOST_TRIALS + 1 : (uint32_t)(product / k);
      if (n > MOST_TRIALS) return n;
    }
  return n;
}

static psplit_code try_all_orders(choice *c) {
  psplit_code code = PSPLIT_OK;
  bool any_left;
  int64_t value_ns;
  first_order(c);
  do {
    PSPLIT_TRY(try_order(c, &value_ns));
    any_left = next_order(c);
  } while (any_left && c->best_ns > c->subset_bound_ns && has_time(c));
  if (any_left) none_above(c, c->subset_bound_ns);
out:
  return code;
}

/* Local search from c->order, which need not have a split, by swaps of the devices of two
 * stages. */
static psplit_code try_swaps(choice *c) {
  psplit_code code;
  const size_t bytes = c->n_stages * sizeof *c->order;
  uint32_t *at = psplit_i_arena_array(&c->arena, c->n_stages, sizeof *at);
  uint32_t n_tried = 1;
  int64_t at_ns, value_ns;
  if (!at) return psplit_i_nomem(c->diag);
  memcpy(at, c->order, bytes);
  PSPLIT_TRY(try_order(c, &at_ns));
  for (bool better = true; better && c->best_ns > c->subset_bound_ns;) {
    better = false;
    for (uint32_t i = 0; i < c->n_stages && !better; i++)
      for (uint32_t j = i + 1; j < c->n_stages && !better && n_tried < MOST_TRIALS && has_time(c);
           j++) {
        if (at[i] == at[j]) continue;
        memcpy(c->order, at, bytes);
        c->order[i] = at[j];
        c->order[j] = at[i];
        PSPLIT_TRY(try_order(c, &value_ns));
        n_tried++;
        better = value_ns < at_ns;
      }
    if (better) {
      memcpy(at, c->order, bytes);
      at_ns = value_ns;
    }
  }
  c->others_bound_ns = 0; /* not all were tried */
out:
  return code;
}

/* Whether any two devices of the current subset are linked, and all these links are alike. */
static bool has_alike_links(const choice *c) {
  const psplit_devices *devices = c->planner->devices;
  return c->n_stages == 1 || (psplit_i_devices_links_alike(devices, c->n_stages, true) &&
                              psplit_devices_link(devices, 0, 1).bytes_per_second > 0);
}

/* Sets c->order to that of a solution for any order, whose devices are of the types listed[]. */
static void order_as(choice *c, const uint32_t *listed, const psplit_solution *solution) {
  for (uint32_t s = 0; s < c->n_stages; s++) c->order[s] = listed[solution->stages[s].device];
}

/* Records the value of a solution's plan in c->order, and the bound of the subset. */
static psplit_code take_plan(choice *c, const psplit_solution *solution) {
  psplit_code code;
  int64_t value_ns;
  PSPLIT_TRY(apply(c, c->order));
  PSPLIT_TRY(psplit_i_request_plan_ns(c->planner, solution, c->diag, &value_ns));
  take(c, value_ns, c->subset_bound_ns);
out:
  return code;
}

/* Tries the orders of the subset that has c->count devices of each type. */
static psplit_code try_subset(choice *c) {
  psplit_code code;
  psplit_solution *solution = NULL, *other = NULL;
  bool lacks_layouts;
  const uint32_t n_subsets = c->n_trials;
  if (!has_time(c)) {
    c->any_bound_ns = c->others_bound_ns = 0; /* others may be better */
    return PSPLIT_OK;
  }
  first_order(c);
  PSPLIT_TRY(apply(c, c->order));
  const bool alike = has_alike_links(c);
  if (!alike) c->n_trials *= 2;
  PSPLIT_TRY(ask(c, true, &lacks_layouts, &solution));
  if (!solution) goto out;
  if (lacks_layouts) PSPLIT_TRY(ask_with_layouts(c, true, &other));
  const psplit_solution *higher =
    other && other->lower_bound_ns > solution->lower_bound_ns ? other : solution;
  c->subset_bound_ns = higher->lower_bound_ns;
  if (c->any_bound_ns > higher->lower_bound_ns) {
    c->any_bound_ns = higher->lower_bound_ns;
    c->any_bound = higher->bound;
  }
  uint32_t *listed = psplit_i_arena_array(&c->arena, c->n_stages, sizeof *listed);
  if (!listed) PSPLIT_FAIL(psplit_i_nomem(c->diag));
  memcpy(listed, c->order, c->n_stages * sizeof *listed);
  order_as(c, listed, solution);
  if (alike) {
    if (lacks_layouts)
      PSPLIT_TRY(take_plan(c, solution));
    else
      take(c, solution->objective_ns, c->subset_bound_ns);
    if (other) {
      order_as(c, listed, other);
      PSPLIT_TRY(take_plan(c, other));
    }
    /* the bound of orders that the solver did not solve to optimality */
    none_above(c, c->subset_bound_ns);
    goto out;
  }
  const uint32_t n_orders = count_orders(c);
  c->n_trials *= n_orders < MOST_TRIALS ? n_orders : MOST_TRIALS;
  PSPLIT_TRY(n_orders <= MOST_TRIALS ? try_all_orders(c) : try_swaps(c));
out:
  c->n_trials = n_subsets;
  psplit_solution_destroy(other);
  psplit_solution_destroy(solution);
  return code;
}

/* The number of subsets of n_stages devices from type `t` on, at most MOST_TRIALS + 1. */
static uint32_t count_subsets(const choice *c, uint32_t t, uint32_t left) {
  if (t + 1 >= c->n_types) return left <= size_of(c, t);
  uint32_t n = 0;
  for (uint32_t k = 0; k <= size_of(c, t) && k <= left && n <= MOST_TRIALS; k++) {
    if (c->off[c->n_types] - c->off[t + 1] < left - k) continue; /* too few are left */
    n += count_subsets(c, t + 1, left - k);
  }
  return n < MOST_TRIALS ? n : MOST_TRIALS + 1;
}

static psplit_code try_subsets(choice *c, uint32_t t, uint32_t left) {
  psplit_code code = PSPLIT_OK;
  if (t == c->n_types) return left ? PSPLIT_OK : try_subset(c);
  for (uint32_t k = left < size_of(c, t) ? left : size_of(c, t);; k--) {
    if (c->off[c->n_types] - c->off[t + 1] < left - k) break; /* too few are left */
    c->count[t] = k;
    PSPLIT_TRY(try_subsets(c, t + 1, left - k));
    if (k == 0) break;
  }
out:
  return code;
}

/* Chooses the devices that run the whole model fastest, where there are too many subsets. */
static void take_fastest(choice *c) {
  memset(c->count, 0, c->n_types * sizeof *c->count);
  for (uint32_t left = c->n_stages; left;) {
    uint32_t best = PSPLIT_NONE;
    int64_t best_ns = INT64_MAX;
    for (uint32_t t = 0; t < c->n_types; t++) {
      const int64_t ns = psplit_i_planner_total_ns(c->planner, c->member[c->off[t]]);
      if (c->count[t] || (best != PSPLIT_NONE && ns >= best_ns)) continue;
      best = t;
      best_ns = ns;
    }
    c->count[best] = left < size_of(c, best) ? left : size_of(c, best);
    left -= c->count[best];
  }
}

static psplit_code choose(choice *c) {
  psplit_code code;
  PSPLIT_TRY(find_types(c));
  if (c->n_types == 1) goto out; /* all subsets are equivalent */
  c->n_trials = count_subsets(c, 0, c->n_stages);
  if (c->n_trials <= MOST_TRIALS) {
    PSPLIT_TRY(try_subsets(c, 0, c->n_stages));
  } else {
    take_fastest(c);
    c->n_trials = 1;
    PSPLIT_TRY(try_subset(c));
    c->any_bound_ns = c->others_bound_ns = 0; /* others may be better */
  }
  if (c->best_ns == INT64_MAX) goto out;
  PSPLIT_TRY(apply(c, c->best));
  c->planner->order_chosen = true;
  c->planner->any_order_bound_ns = c->any_bound_ns;
  c->planner->other_orders_bound_ns = c->others_bound_ns;
  c->planner->any_order_bound = c->any_bound;
  return PSPLIT_OK;
out:
  if (code == PSPLIT_OK) code = psplit_i_planner_order_devices(c->planner, NULL, 0, c->diag);
  return code;
}

static psplit_i_budget budget_of(const psplit_planner *planner, const psplit_i_request *r,
                                 double share, double least_seconds) {
  const psplit_partition_options options = psplit_i_request_options(planner, r, share);
  psplit_i_budget budget = psplit_i_budget_of(&options);
  psplit_i_budget_extend(&budget, least_seconds);
  return budget;
}

psplit_code psplit_i_choose_devices(psplit_planner *planner, const psplit_i_request *r,
                                    psplit_diag *diag) {
  if (!planner->order_is_free) return PSPLIT_OK;
  psplit_code code = psplit_i_planner_order_devices(planner, NULL, 0, diag);
  if (code != PSPLIT_OK || planner->grouping.n_groups < planner->options.n_stages) return code;
  choice c = {.planner = planner,
              .request = r,
              .diag = diag,
              .n_stages = planner->options.n_stages,
              .best_ns = INT64_MAX,
              .best_bound_ns = INT64_MAX,
              .others_bound_ns = INT64_MAX,
              .any_bound_ns = INT64_MAX,
              .any_bound = psplit_i_method_name(PSPLIT_I_BOUND_TOTAL)};
  c.budget = budget_of(planner, r, SHARE, LEAST_SECONDS);
  c.first = budget_of(planner, r, FIRST_SHARE, FIRST_SECONDS);
  psplit_i_arena_init(&c.arena, 0);
  code = choose(&c);
  psplit_i_arena_fini(&c.arena);
  if (code == PSPLIT_OK && c.gave_up.code != PSPLIT_OK && !planner->order_chosen)
    psplit_i_say(planner->options.logger, PSPLIT_NOTE,
                 "the order of the devices is not chosen: stages use them as listed: %s",
                 c.gave_up.message);
  return code;
}
