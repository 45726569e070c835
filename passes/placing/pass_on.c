/* Tensors that stages pass on.
 *
 * A message of its own for each receiver takes both ends the latency of a link. Where a stage in
 * between gets a message from the one and sends one to the other anyway, passing the tensor on
 * costs it the bytes, twice, and saves the others a message. The least that this may lead to is a
 * split through shared memory: each stage sends its tensors once, in one message, and receives them
 * in one. That is solved as a problem of its own. Its split, and that of who sends to all, are then
 * measured over the links that are best for them: at first from each stage to the next alone, or
 * all, then one more or one less while that makes the slowest stage faster. */
#include "pass_on.h"

#include <stdlib.h>
#include <string.h>

#include "any_way.h"
#include "builder.h"
#include "devices_inside.h"
#include "links.h"
#include "methods.h"
#include "order_by_memory.h"
#include "record.h"
#include "tied_weights.h"

enum { MOST_SWEEPS = 4, MOST_HOPS = 1 << 26, LARGE = 512 /* supernodes: not soon decided */ };

/* Of the time that the split itself may take: for shared memory, where the exact program decides
 * soon or what stages pass on helps it more, and where it takes a search; for all ways; and for
 * shared memory again, if that has not been decided. */
static const double DECIDED = 0.15, SEARCHED = 0.3, ANY_WAY = 0.3, AGAIN = 0.45;
/* And for sending directly, of which a bound is known by then: behind that which was asked. */
static const double BEHIND_ONE = 0.5, BEHIND_TWO = 0.4, BEHIND_ALL = 0.1;
/* What may stay open; and above which the exact program would not get far with all ways. */
static const double CLOSE = 0.001, WIDE = 0.01;

typedef struct ways {
  const psplit_planner *planner;
  uint32_t n; /* stages */
  psplit_plan_transfer *wishes;
  uint32_t n_wishes;
  const int64_t *compute_ns; /* [n] */
  bool *linked;              /* [n * n] these send each other something */
  int64_t *link_ns, *scratch;
  uint32_t *next, *held, *sent; /* [n * n], [n], [n * n] */
  psplit_i_hop *hops;
  int64_t *load_ns;
  uint64_t n_hops; /* looked at so far */
} ways;

/* What a split takes: the slowest stage, then all. */
typedef struct toll {
  int64_t slowest_ns, sum_ns;
} toll;

static bool is_less(toll a, toll b) {
  return a.slowest_ns != b.slowest_ns ? a.slowest_ns < b.slowest_ns : a.sum_ns < b.sum_ns;
}

static int64_t bytes_ns(const ways *w, uint32_t from, uint32_t to, uint64_t bytes) {
  const psplit_devices *devices = w->planner->devices;
  return psplit_devices_transfer_ns(devices, from, to, bytes) -
         psplit_devices_transfer_ns(devices, from, to, 0);
}

static void charge(ways *w, psplit_i_hop hop, int64_t ns) {
  w->load_ns[hop.from] = psplit_i_sat_add_i64(w->load_ns[hop.from], ns);
  w->load_ns[hop.to] = psplit_i_sat_add_i64(w->load_ns[hop.to], ns);
}

/* The wishes, which stand by value and receiver, over the links that there are. */
static toll measure(ways *w) {
  const size_t n = w->n;
  for (size_t k = 0; k < n * n; k++) w->link_ns[k] = w->linked[k] ? 1 : -1;
  psplit_i_route_table(w->n, w->link_ns, w->scratch, w->next);
  memset(w->held, 0, n * sizeof *w->held);
  memset(w->sent, 0, n * n * sizeof *w->sent);
  memcpy(w->load_ns, w->compute_ns, n * sizeof *w->load_ns);
  w->n_hops += n * n;
  for (uint32_t t = 0, stamp = 0; t < w->n_wishes; t++) {
    const psplit_plan_transfer *wish = &w->wishes[t];
    if (t == 0 || wish[-1].value != wish->value) stamp = t + 1;
    w->held[wish->from] = stamp;
    if (w->held[wish->to] == stamp) continue; /* it was passed on there */
    const uint32_t n_hops =
      psplit_i_route(w->n, w->next, wish->from, wish->to, w->held, stamp, w->hops);
    w->n_hops += n_hops + n / 4;
    for (uint32_t h = 0; h < n_hops; h++) {
      const psplit_i_hop hop = w->hops[h];
      uint32_t *met = &w->sent[hop.from * n + hop.to];
      const int64_t latency_ns =
        *met ? 0 : psplit_devices_transfer_ns(w->planner->devices, hop.from, hop.to, 0);
      *met = 1;
      charge(w, hop, psplit_i_sat_add_i64(latency_ns, bytes_ns(w, hop.from, hop.to, wish->bytes)));
    }
  }
  toll sum = {0, 0};
  for (size_t s = 0; s < n; s++) {
    if (w->load_ns[s] > sum.slowest_ns) sum.slowest_ns = w->load_ns[s];
    sum.sum_ns = psplit_i_sat_add_i64(sum.sum_ns, w->load_ns[s]);
  }
  return sum;
}

/* One link more or less, while that is better. Neighbours stay linked: there is always a way. */
static toll improve(ways *w) {
  const uint32_t n = w->n;
  toll best = measure(w);
  bool any = true;
  for (unsigned sweep = 0; any && sweep < MOST_SWEEPS; sweep++) {
    any = false;
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t j = i + 2; j < n && w->n_hops < MOST_HOPS; j++) {
        bool *link = &w->linked[(size_t)i * n + j];
        *link = !*link;
        const toll other = measure(w);
        if (is_less(other, best)) {
          best = other;
          any = true;
        } else {
          *link = !*link;
        }
      }
  }
  return best;
}

static void link_stages(ways *w, bool all) {
  for (uint32_t i = 0; i < w->n; i++)
    for (uint32_t j = 0; j < w->n; j++)
      w->linked[(size_t)i * w->n + j] = j == i + 1 || (all && j > i);
}

static psplit_code begin(ways *w, psplit_planner *planner, psplit_diag *diag) {
  psplit_i_arena *arena = &planner->scratch;
  const psplit_plan *plan = planner->plan;
  const size_t n = plan->n_stages, n_pairs = n * n;
  *w = (ways){.planner = planner, .n = plan->n_stages, .n_wishes = plan->n_transfers};
  w->wishes = psplit_i_arena_zeroed(arena, w->n_wishes, sizeof *w->wishes);
  int64_t *compute_ns = psplit_i_arena_zeroed(arena, n, sizeof *compute_ns);
  w->linked = psplit_i_arena_zeroed(arena, n_pairs, sizeof *w->linked);
  w->link_ns = psplit_i_arena_zeroed(arena, n_pairs, sizeof *w->link_ns);
  w->scratch = psplit_i_arena_zeroed(arena, 2 * n, sizeof *w->scratch);
  w->next = psplit_i_arena_zeroed(arena, n_pairs, sizeof *w->next);
  w->held = psplit_i_arena_zeroed(arena, n, sizeof *w->held);
  w->sent = psplit_i_arena_zeroed(arena, n_pairs, sizeof *w->sent);
  w->hops = psplit_i_arena_zeroed(arena, n, sizeof *w->hops);
  w->load_ns = psplit_i_arena_zeroed(arena, n, sizeof *w->load_ns);
  if (arena->failed) return psplit_i_nomem(diag);
  if (w->n_wishes) memcpy(w->wishes, plan->transfers, w->n_wishes * sizeof *w->wishes);
  psplit_i_sort_by_value(w->wishes, w->n_wishes);
  for (size_t s = 0; s < n; s++) compute_ns[s] = plan->stages[s].compute_ns;
  w->compute_ns = compute_ns;
  return PSPLIT_OK;
}

/* The best ways for the planner's plan, in which all send to each other: out_next[n_stages^2]. */
static psplit_code find_ways(psplit_planner *planner, uint32_t *out_next, toll *out_toll,
                             psplit_diag *diag) {
  ways w;
  psplit_code code;
  PSPLIT_TRY(begin(&w, planner, diag));
  for (int all = 0; all < 2; all++) {
    link_stages(&w, all);
    const toll found = improve(&w);
    if (all && !is_less(found, *out_toll)) continue;
    *out_toll = measure(&w);
    memcpy(out_next, w.next, (size_t)w.n * w.n * sizeof *out_next);
  }
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

/* In an order that was chosen only where all orders of the devices that stages may run on are one,
 * but for memory. */
static bool applies(const psplit_planner *planner) {
  return !planner->next_hop && psplit_i_planner_may_pass_on(planner) &&
         (!planner->order_chosen ||
          psplit_i_devices_links_alike(planner->devices, planner->n_candidates, true));
}

static uint32_t *new_ways(psplit_planner *planner) {
  const size_t n = planner->options.n_stages;
  return psplit_i_arena_array(&planner->arena, n * n, sizeof(uint32_t));
}

/* The split as the planner's plan, whose tensors go as `next` says (NULL: straight), and of which
 * no bound is told yet. */
static psplit_code adopt(psplit_planner *planner, const uint32_t *stage, uint32_t *next,
                         psplit_diag *diag) {
  psplit_solution *solution = planner->solution;
  planner->solution = NULL;
  planner->next_hop = next;
  planner->passes_on = next != NULL;
  const psplit_code code = psplit_i_builder_adopt(planner, stage, diag);
  planner->solution = solution;
  return code;
}

/* Whether the plan fits the devices as they stand; else, if they may stand otherwise, *out_order in
 * which it does, or NULL. */
static psplit_code find_order(psplit_planner *planner, bool reorder, bool *out_fits,
                              uint32_t **out_order, psplit_diag *diag) {
  *out_order = NULL;
  *out_fits = psplit_i_plan_fits(planner);
  if (*out_fits || !reorder || !planner->order_chosen) return PSPLIT_OK;
  return psplit_i_order_by_memory(planner, diag, out_order);
}

/* Puts the plan, of these stages and ways, on devices in another order where it fits in that alone;
 * where it fits in none they stand as before. */
static psplit_code find_room(psplit_planner *planner, const uint32_t *stage, uint32_t *next,
                             bool reorder, bool *out_fits, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  uint32_t *order;
  const uint32_t *before = planner->device_id;
  PSPLIT_TRY(find_order(planner, reorder, out_fits, &order, diag));
  if (!order) goto out;
  PSPLIT_TRY(psplit_i_choose_order(planner, order, diag));
  PSPLIT_TRY(adopt(planner, stage, next, diag));
  *out_fits = psplit_i_plan_fits(planner);
  if (!*out_fits) PSPLIT_TRY(psplit_i_choose_order(planner, before, diag));
out:
  return code;
}

/* Splits of supernodes, measured one after the other. */
typedef struct trial {
  psplit_planner *planner;
  bool reorder; /* the split may be one for other devices under the stages: it is to be the plan */
  psplit_i_shared_split *best;
  const uint32_t *group;  /* [n_nodes] */
  size_t n_bare;          /* nodes of the bare problem */
  uint32_t *stage, *next; /* of the one at hand */
} trial;

/* psplit_i_measure: by the best ways that are found, if stages fit. The best so far is kept. */
static psplit_code measure_split(void *with, const uint32_t *group_stage, psplit_diag *diag,
                                 int64_t *out_ns) {
  trial *t = with;
  psplit_code code;
  toll found;
  bool fits;
  uint32_t *order;
  psplit_planner *planner = t->planner;
  psplit_i_shared_split *best = t->best;
  const size_t n_nodes = planner->graph->n_nodes, n = planner->options.n_stages;
  for (size_t v = 0; v < n_nodes; v++)
    t->stage[v] = t->group[v] == PSPLIT_NONE ? 0 : group_stage[t->group[v]];
  PSPLIT_TRY(adopt(planner, t->stage, NULL, diag));
  const int64_t direct_ns = planner->plan->bottleneck_ns;
  PSPLIT_TRY(find_ways(planner, t->next, &found, diag));
  PSPLIT_TRY(adopt(planner, t->stage, t->next, diag));
  PSPLIT_TRY(find_order(planner, t->reorder, &fits, &order, diag));
  *out_ns = fits || order ? found.slowest_ns : INT64_MAX;
  psplit_i_pass_nothing_on(planner);
  if (*out_ns == INT64_MAX || !is_less(found, (toll){best->slowest_ns, best->sum_ns})) goto out;
  memcpy(best->stage, t->stage, n_nodes * sizeof *best->stage);
  memcpy(best->group_stage, group_stage, t->n_bare * sizeof *best->group_stage);
  memcpy(best->next, t->next, n * n * sizeof *best->next);
  best->slowest_ns = found.slowest_ns;
  best->sum_ns = found.sum_ns;
  best->direct_ns = direct_ns;
out:
  return code;
}

/* Whether no more than that is open beside the plan that was found. */
static bool is_within(const psplit_i_shared_split *shared, double open) {
  return (double)shared->slowest_ns <= (double)shared->solution->lower_bound_ns * (1 + open);
}

/* Between the bound by shared memory and what its split takes: what counts then is which stages
 * pass tensors on. */
static psplit_code close_in(trial *t, const psplit_problem *problem, psplit_diag *diag) {
  psplit_code code;
  psplit_partition_options options;
  psplit_solution *solution = t->best->solution;
  int64_t bound_ns = solution->lower_bound_ns, value_ns = t->best->slowest_ns;
  if (value_ns == INT64_MAX || value_ns <= bound_ns) return PSPLIT_OK;
  if (!solution->proved_optimal && t->best->n_groups > LARGE)
    return PSPLIT_OK; /* the program would not get far */
  psplit_i_partition_options(t->planner, &options);
  options.time_limit_s *= ANY_WAY;
  options.logger = NULL;
  PSPLIT_TRY(
    psplit_i_bound_any_way(problem, &options, measure_split, t, &bound_ns, &value_ns, diag));
  if (bound_ns > solution->lower_bound_ns) {
    solution->lower_bound_ns = bound_ns;
    solution->bound = psplit_i_method_name(PSPLIT_I_SOLVER_EXACT);
    psplit_i_record_any_way(t->planner, &options, bound_ns, t->best->group_stage, t->best->next);
  }
out:
  return code;
}

static psplit_code make_room(psplit_planner *planner, psplit_i_shared_split *io, trial *out,
                             psplit_diag *diag) {
  const size_t n = planner->graph->n_nodes;
  io->stage = psplit_i_arena_array(&planner->arena, n, sizeof *io->stage);
  io->group_stage = psplit_i_arena_array(&planner->arena, out->n_bare, sizeof *io->group_stage);
  io->next = new_ways(planner);
  io->slowest_ns = io->sum_ns = io->direct_ns = INT64_MAX;
  out->stage = psplit_i_arena_array(&planner->arena, n, sizeof *out->stage);
  out->next = new_ways(planner);
  return planner->arena.failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}

/* In a share of the time: of two answers the larger bound counts, and the better split. */
static psplit_code ask(trial *t, const psplit_problem *problem, double share, bool joined,
                       psplit_diag *diag) {
  psplit_code code;
  psplit_partition_options options;
  psplit_diag why = {0};
  psplit_planner *planner = t->planner;
  psplit_solution *found = NULL, **best = &t->best->solution;
  int64_t ns;
  psplit_i_partition_options(planner, &options);
  options.time_limit_s *= share;
  options.logger = NULL;
  code = psplit_partition_solve(problem, &options, &why, &found);
  if (code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED) PSPLIT_FAIL(psplit_i_fail_as(diag, &why));
  code = PSPLIT_OK;
  if (!found) goto out;
  if (!joined) PSPLIT_TRY(psplit_i_record(planner, problem, &options, found, diag));
  PSPLIT_TRY(measure_split(t, found->stage, diag, &ns));
  if (*best && (*best)->lower_bound_ns > found->lower_bound_ns) goto out;
  psplit_solution_destroy(*best);
  *best = found;
  found = NULL;
out:
  psplit_solution_destroy(found);
  return code;
}

/* Asked once for these supernodes. The planner's plan is another one then. `joined` (with `ties`;
 * else NULL): of splits that keep these weights' users together, what is soon found. */
static psplit_code solve_shared(psplit_planner *planner, const psplit_i_tied_weights *ties,
                                const uint8_t *joined, psplit_i_shared_split *io,
                                psplit_diag *diag) {
  psplit_code code;
  psplit_i_arena arena; /* plans are made while the problem is asked */
  psplit_i_builder b = {.planner = planner, .arena = &arena, .diag = diag};
  trial t = {.planner = planner, .reorder = !joined, .best = io};
  psplit_i_shared_split_fini(io);
  if (!joined) planner->any_way_bound_ns = 0;
  psplit_i_arena_init(&arena, 0);
  io->n_groups = planner->grouping.n_groups;
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(psplit_i_builder_unlimited(&b));
  if (b.problem.n_link_classes || !b.problem.message_ns) goto out;
  b.problem.comm = PSPLIT_COMM_SHARED;
  if (joined) PSPLIT_TRY(psplit_i_tied_weights_join(&b, ties, joined));
  t.group = b.group;
  t.n_bare = b.problem.n_nodes;
  PSPLIT_TRY(make_room(planner, io, &t, diag));
  const bool large = b.n_groups > LARGE;
  PSPLIT_TRY(ask(&t, &b.problem, large ? SEARCHED : DECIDED, joined, diag));
  if (!io->solution || joined) goto out;
  io->left_frac = BEHIND_ONE;
  if (!large && !io->solution->proved_optimal && io->slowest_ns < INT64_MAX &&
      !is_within(io, WIDE)) {
    PSPLIT_TRY(ask(&t, &b.problem, AGAIN, false, diag));
    io->left_frac = io->solution->proved_optimal ? BEHIND_ALL : BEHIND_TWO;
    if (!io->solution->proved_optimal) goto out;
  }
  PSPLIT_TRY(close_in(&t, &b.problem, diag));
out:
  if (code == PSPLIT_OK && io->solution && !joined)
    planner->any_way_bound_ns = io->solution->lower_bound_ns;
  psplit_i_arena_fini(&arena);
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

void psplit_i_shared_split_fini(psplit_i_shared_split *shared) {
  psplit_solution_destroy(shared->solution);
  *shared = (psplit_i_shared_split){0};
}

/* The solution is the one of the planner's plan, which it has owned since. Its bound, which knows
 * of no memory, is of any order of devices that may pass tensors on. */
static psplit_code make_it_the_plan(psplit_planner *planner, psplit_i_shared_split *shared,
                                    psplit_diag *diag) {
  psplit_solution *solution = shared->solution;
  solution->objective_ns = planner->plan->bottleneck_ns;
  solution->proved_optimal = solution->objective_ns <= solution->lower_bound_ns;
  shared->solution = planner->solution;
  planner->solution = solution;
  planner->any_order_bound_ns = 0;
  planner->other_orders_bound_ns = INT64_MAX;
  return psplit_i_plan_make(planner, diag);
}

/* What holds for all ways, in all orders of devices, holds for sending directly, too. */
static void raise_bound(psplit_planner *planner, const psplit_solution *shared) {
  psplit_solution *direct = planner->solution;
  if (shared->lower_bound_ns > planner->any_order_bound_ns) {
    planner->any_order_bound_ns = shared->lower_bound_ns;
    planner->any_order_bound = shared->bound;
  }
  if (shared->lower_bound_ns > planner->other_orders_bound_ns)
    planner->other_orders_bound_ns = shared->lower_bound_ns;
  if (shared->lower_bound_ns <= direct->lower_bound_ns) return;
  direct->lower_bound_ns = shared->lower_bound_ns;
  direct->bound = shared->bound;
  direct->proved_optimal = direct->objective_ns <= direct->lower_bound_ns;
}

/* Whether what takes `ns` is faster by more than may be given up for less to cross. */
static bool pays(const psplit_planner *planner, int64_t ns, int64_t before_ns) {
  const double slack = planner->options.slack_frac > 0 ? planner->options.slack_frac : 0;
  return (double)ns * (1 + slack) < (double)before_ns;
}

void psplit_i_pass_nothing_on(psplit_planner *planner) {
  if (!planner->passes_on) return;
  planner->passes_on = false;
  planner->next_hop = NULL;
}

/* As the plan, if stages fit: sent directly, where that takes no longer or too little is saved. */
static psplit_code take(psplit_planner *planner, psplit_i_shared_split *shared, bool reorder,
                        bool *out_fits, psplit_diag *diag) {
  psplit_code code;
  const bool directly = !pays(planner, shared->slowest_ns, shared->direct_ns);
  uint32_t *next = directly ? NULL : shared->next;
  PSPLIT_TRY(adopt(planner, shared->stage, next, diag));
  PSPLIT_TRY(find_room(planner, shared->stage, next, reorder, out_fits, diag));
  if (*out_fits) PSPLIT_TRY(make_it_the_plan(planner, shared, diag));
out:
  return code;
}

typedef struct shared_cutter {
  psplit_planner *planner;
  const psplit_i_tied_weights *ties;
} shared_cutter;

/* psplit_i_cutter: without weights that are joined the plan is there. */
static psplit_code cut_shared(void *user, const uint8_t *joined, psplit_i_effort effort,
                              psplit_diag *diag) {
  const shared_cutter *c = user;
  psplit_i_shared_split split = {0};
  bool fits = false;
  if (effort == PSPLIT_I_CUT) return PSPLIT_OK;
  psplit_code code = solve_shared(c->planner, c->ties, joined, &split, diag);
  if (code == PSPLIT_OK && split.solution && split.slowest_ns < INT64_MAX)
    code = take(c->planner, &split, false, &fits, diag);
  if (code == PSPLIT_OK && !fits) code = PSPLIT_INFEASIBLE;
  psplit_i_shared_split_fini(&split);
  return code;
}

/* The plan, or one that is as good and cuts no weight apart. */
static psplit_code settle_ties(psplit_planner *planner, const psplit_i_tied_weights *ties,
                               psplit_diag *diag) {
  shared_cutter c = {planner, ties};
  const psplit_plan *plan = planner->plan;
  uint32_t *next = planner->next_hop;
  const bool passes_on = planner->passes_on;
  const psplit_code code = psplit_i_tied_weights_settle(planner, ties, cut_shared, &c, diag);
  if (planner->plan != plan) return code;
  planner->next_hop = next;
  planner->passes_on = passes_on;
  return code;
}

psplit_code psplit_i_share_memory_first(psplit_planner *planner, const psplit_i_tied_weights *ties,
                                        psplit_i_shared_split *out, bool *out_settled,
                                        psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  *out_settled = false;
  *out = (psplit_i_shared_split){0};
  if (!applies(planner) || planner->grouping.n_groups < planner->options.n_stages) return code;
  psplit_solution_destroy(planner->solution);
  planner->solution = NULL;
  PSPLIT_TRY(solve_shared(planner, NULL, NULL, out, diag));
  if (!out->solution || out->slowest_ns == INT64_MAX || !is_within(out, CLOSE)) goto out;
  /* Where too little is saved, another split may be better that sends directly. */
  if (out->direct_ns > out->slowest_ns && !pays(planner, out->slowest_ns, out->direct_ns)) goto out;
  PSPLIT_TRY(take(planner, out, true, out_settled, diag));
  if (*out_settled) PSPLIT_TRY(settle_ties(planner, ties, diag));
out:
  if (!*out_settled) psplit_i_pass_nothing_on(planner);
  return code;
}

/* The plan that sends directly, with what is known of it by now. */
static psplit_code go_straight(psplit_planner *planner, const uint32_t *stage, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(adopt(planner, stage, NULL, diag));
  PSPLIT_TRY(psplit_i_plan_make(planner, diag));
out:
  return code;
}

psplit_code psplit_i_pass_on(psplit_planner *planner, psplit_i_shared_split *shared,
                             psplit_diag *diag) {
  psplit_code code;
  toll found;
  if (!planner->solution || !applies(planner)) return PSPLIT_OK;
  const size_t n_nodes = planner->graph->n_nodes;
  if (!planner->plan) PSPLIT_TRY(psplit_i_plan_make(planner, diag));
  const int64_t before_ns = planner->plan->bottleneck_ns;
  uint32_t *direct = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *direct);
  uint32_t *next = new_ways(planner);
  if (!direct || !next) PSPLIT_FAIL(psplit_i_nomem(diag));
  memcpy(direct, planner->stage, n_nodes * sizeof *direct);
  if (shared->n_groups != planner->grouping.n_groups)
    PSPLIT_TRY(solve_shared(planner, NULL, NULL, shared, diag));
  if (!shared->solution) {
    PSPLIT_TRY(go_straight(planner, direct, diag));
    goto out;
  }
  raise_bound(planner, shared->solution);
  if (shared->solution->lower_bound_ns >= before_ns) {
    PSPLIT_TRY(go_straight(planner, direct, diag));
    goto out;
  }
  PSPLIT_TRY(adopt(planner, direct, NULL, diag));
  PSPLIT_TRY(find_ways(planner, next, &found, diag));
  const bool other = is_less((toll){shared->slowest_ns, shared->sum_ns}, found);
  const uint32_t *stage = other ? shared->stage : direct;
  if (other) next = shared->next;
  bool fits = false;
  PSPLIT_TRY(adopt(planner, stage, next, diag));
  if (pays(planner, planner->plan->bottleneck_ns, before_ns))
    PSPLIT_TRY(find_room(planner, stage, next, true, &fits, diag));
  if (fits)
    PSPLIT_TRY(make_it_the_plan(planner, shared, diag));
  else
    PSPLIT_TRY(go_straight(planner, direct, diag));
out:
  return code;
}
