#include "sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the three above first. */
#include <cmocka.h>
#include <stdio.h>

#include "local_search.h"
#include "node_cut.h"

static uint32_t in_range(sweep_range range, uint32_t seed) { return range.least + seed % range.n; }

/* Shape, features and seed of the next problem; false: there is none. */
static bool draw_next(sweep *s) {
  const uint32_t n_sets = s->n_features ? s->n_features : 1;
  const uint32_t n_inside = s->order == EVERY_SET     ? n_sets * N_SHAPES
                            : s->order == EVERY_SHAPE ? N_SHAPES
                                                      : 1;
  const uint32_t at = s->n_before++, turn = at / n_inside, inside = at % n_inside;
  uint32_t set = turn % n_sets;
  if (turn >= percent(s->n_seeds)) return false;
  s->seed = s->first_seed + turn;
  s->kind = s->order == ONE_EACH ? (shape)(turn / n_sets % N_SHAPES) : (shape)(inside % N_SHAPES);
  if (s->order == EVERY_SET) set = inside / N_SHAPES;
  s->with = s->features ? s->features[set] : 0;
  return true;
}

static void make(const sweep *s, random_problem *r) {
  const bool twins = s->with & WITH_TWINS && s->twins.n;
  make_random_problem(r, s->seed, s->kind, in_range(twins ? s->twins : s->nodes, s->seed),
                      in_range(s->stages, s->seed), s->with);
  if (s->shared_every)
    r->problem.comm =
      s->seed % s->shared_every || r->problem.n_link_classes ? PSPLIT_COMM_P2P : PSPLIT_COMM_SHARED;
}

bool next_problem(sweep *s, bed *b) {
  if (s->is_open) bed_fini(b);
  s->is_open = false;
  while (!s->is_open && draw_next(s)) {
    make(s, &b->r);
    s->is_open = bed_take(b);
  }
  snprintf(s->what, sizeof s->what, "seed %u, shape %d, features %#x", s->seed, (int)s->kind,
           s->with);
  return s->is_open;
}

bool proved_best(const bed *b, int64_t *out_best) {
  psplit_diag diag = {0};
  psplit_solution *s;
  if (psplit_partition_solve(&b->r.problem, &b->options, &diag, &s) != PSPLIT_OK) return false;
  const bool proved = s->proved_optimal;
  *out_best = s->objective_ns;
  psplit_solution_destroy(s);
  return proved;
}

int64_t bound_by(const bed *b, bound_function asked, int64_t value, int64_t bound) {
  psplit_i_budget budget = psplit_i_budget_unlimited();
  psplit_diag diag = {0};
  const psplit_i_solver_request request = {
    .problem = &b->r.problem, .options = &b->options, .budget = &budget, .diag = &diag};
  const psplit_i_bound_query query = {.request = &request,
                                      .instance = &b->instance,
                                      .automaton = &b->automaton,
                                      .variant = PSPLIT_I_STAGES,
                                      .value = value};
  assert_int_equal(asked(&query, &budget, &bound), PSPLIT_OK);
  return bound;
}

void expect_bound_holds(const sweep *s, int64_t limit, int64_t bound, int64_t best) {
  if (bound > best)
    fail_msg("%s, limit %lld: bound %lld above the optimum %lld", s->what, (long long)limit,
             (long long)bound, (long long)best);
}

/* For one limit; `known`: a bound that is below it. */
static void hold_for(const sweep *s, const bed *b, bound_function asked, int64_t limit,
                     int64_t best, int64_t known, bound_tally *tally) {
  const int64_t bound = bound_by(b, asked, limit, known);
  expect_bound_holds(s, limit, bound, best);
  if (!tally) return;
  tally->n_asked++;
  tally->n_raised += bound > known + 1; /* an average is rounded down */
  tally->n_met += bound == best && best > known;
}

bound_tally hold_bound(sweep *s, psplit_i_method method, bound_function asked, int first_limit,
                       int n_limits, bool from_average) {
  static bed b;
  bound_tally tally = {0};
  int64_t best;
  while (next_problem(s, &b)) {
    const bool takes = psplit_i_takes(method, b.automaton.features);
    tally.n_left_out += !takes;
    if (!takes || !proved_best(&b, &best) || best >= PSPLIT_I_INF / 4) continue;
    const int64_t simple = psplit_i_simple_bound(&b.instance, &b.automaton);
    const int64_t average = b.automaton.total_min_time / b.automaton.n_stages;
    for (int k = first_limit; k < first_limit + n_limits; k++) {
      const int64_t limit = best + k * best / 4 + (k > 0);
      hold_for(s, &b, asked, limit, best, simple, from_average ? NULL : &tally);
      if (from_average)
        hold_for(s, &b, asked, limit, best, average < limit - 1 ? average : 0, &tally);
    }
  }
  return tally;
}

/* Each cluster with each: all splits into stages of as many cut as much. */
static psplit_problem *each_with_each(uint32_t n_clusters, uint32_t n_stages, uint32_t time_ns) {
  char text[4096];
  int n = snprintf(text, sizeof text,
                   "{\"format\": \"psplit-problem\", \"version\": 1, \"comm\": \"p2p\","
                   " \"devices\": [{\"name\": \"d\", \"class\": 0, \"count\": %u}], \"nodes\": [",
                   n_stages);
  for (uint32_t i = 0; i < n_clusters; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s{\"id\": %u, \"time_ns\": %u}",
                  i ? "," : "", i, time_ns);
  n += snprintf(text + n, sizeof text - (size_t)n, "], \"tensors\": [");
  for (uint32_t i = 0; i < n_clusters; i++)
    for (uint32_t j = i + 1; j < n_clusters; j++)
      n += snprintf(text + n, sizeof text - (size_t)n,
                    "%s{\"producer\": %u, \"consumers\": [%u], \"send_ns\": 1, \"recv_ns\": 1}",
                    j > 1 ? "," : "", i, j);
  n += snprintf(text + n, sizeof text - (size_t)n, "]}");
  assert_true((size_t)n < sizeof text);
  return parsed_problem(text);
}

void expect_tight(bound_function asked, uint32_t n_clusters, uint32_t n_stages, uint32_t time_ns,
                  int64_t best) {
  static bed b;
  int64_t solved = 0;
  psplit_problem *p = each_with_each(n_clusters, n_stages, time_ns);
  b.r.problem = *p;
  assert_true(bed_take(&b));
  assert_true(proved_best(&b, &solved));
  assert_int_equal(solved, best);
  const int64_t average = b.automaton.total_min_time / n_stages;
  for (int64_t value = best; value <= best + 1; value++)
    assert_int_equal(bound_by(&b, asked, value, average), best);
  bed_fini(&b);
  psplit_problem_destroy(p);
}

int64_t some_split(bed *b, uint32_t n_steps) {
  const psplit_i_local_search_options quickly = {
    .seed = 1, .n_threads = 1, .n_rounds = 1, .n_steps = n_steps};
  b->assignment.value = PSPLIT_I_INF;
  assert_int_equal(psplit_i_local_search(&b->instance, &b->automaton, &quickly, &b->assignment),
                   PSPLIT_OK);
  return b->assignment.value;
}
