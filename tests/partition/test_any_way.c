/* The bound for splits whose tensors go by any way: against all splits of small problems and ways
 * for their tensors, with loads that are counted here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../support/plain_problem.h"
#include "all_splits.h"
#include "any_route.h"
#include "bed.h"
#include "certificate.h"
#include "exact.h"
#include "hash.h"

enum { STAGES = 4, NODES = 7, PAIRS = STAGES * STAGES, CASES = 120 };

/* What stages have to do so far. */
typedef struct loads {
  int64_t ns[STAGES];
} loads;

static int64_t slowest(const loads *l) {
  int64_t most = 0;
  for (uint32_t s = 0; s < STAGES; s++) most = l->ns[s] > most ? l->ns[s] : most;
  return most;
}

static int64_t sum(const loads *l) {
  int64_t all = 0;
  for (uint32_t s = 0; s < STAGES; s++) all += l->ns[s];
  return all;
}

static bool is_less(const loads *a, const loads *b) {
  const int64_t x = slowest(a), y = slowest(b);
  return x != y ? x < y : sum(a) < sum(b);
}

/* A tensor on its way: from[s] is the stage that sends it to s, NONE: it does not come there. */
typedef struct route {
  const psplit_problem *p;
  uint32_t net, home, readers; /* readers: stages, as bits */
  bool linked[PAIRS];
  loads before, best;
  uint32_t from[STAGES];
  bool found;
} route;

/* All trees over the links. Message times are counted by who chooses the links. */
static void grow(route *r, uint32_t s, const loads *so_far) {
  if (s == STAGES) {
    if (!r->found || is_less(so_far, &r->best)) r->best = *so_far;
    r->found = true;
    return;
  }
  r->from[s] = PSPLIT_NONE;
  if (s <= r->home || !(r->readers >> s & 1)) grow(r, s + 1, so_far);
  for (uint32_t u = r->home; s > r->home && u < s; u++) {
    if (!r->linked[u * STAGES + s] || (u != r->home && r->from[u] == PSPLIT_NONE)) continue;
    loads more = *so_far;
    more.ns[u] += r->p->net_send_ns[r->net];
    more.ns[s] += r->p->net_recv_ns[r->net];
    r->from[s] = u;
    grow(r, s + 1, &more);
  }
}

/* Over these links, each with a message; tensors choose one after the other. False: there is no
 * way for one. */
static bool load_over(const psplit_problem *p, const uint32_t *stage, const bool *linked,
                      loads *out) {
  *out = (loads){{0}};
  for (uint32_t v = 0; v < p->n_nodes; v++) out->ns[stage[v]] += p->time_ns[v];
  for (uint32_t k = 0; k < PAIRS; k++) {
    if (!linked[k]) continue;
    out->ns[k / STAGES] += p->message_ns[0];
    out->ns[k % STAGES] += p->message_ns[0];
  }
  for (uint32_t e = 0; e < p->n_nets; e++) {
    route r = {.p = p, .net = e, .home = stage[p->net_producer[e]]};
    const bool message = !(p->net_flags[e] & PSPLIT_NET_NO_MESSAGE);
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
      if (stage[p->net_consumer[k]] != r.home) r.readers |= 1u << stage[p->net_consumer[k]];
    if (!r.readers) continue;
    if (message) {
      memcpy(r.linked, linked, sizeof r.linked);
      grow(&r, 0, out);
      if (!r.found) return false;
      *out = r.best;
      continue;
    }
    out->ns[r.home] += p->net_send_ns[e]; /* what is not a tensor, once, where it is read */
    for (uint32_t s = 0; s < STAGES; s++)
      if (r.readers >> s & 1) out->ns[s] += p->net_recv_ns[e];
  }
  return true;
}

static int64_t best_ways(const psplit_problem *p, const uint32_t *stage) {
  static const uint32_t PAIR[] = {1, 2, 3, 6, 7, 11}; /* from * STAGES + to */
  int64_t best = INT64_MAX;
  for (uint32_t links = 0; links < 64; links++) {
    bool linked[PAIRS] = {false};
    loads l;
    for (uint32_t k = 0; k < 6; k++) linked[PAIR[k]] = links >> k & 1;
    if (load_over(p, stage, linked, &l) && slowest(&l) < best) best = slowest(&l);
  }
  return best;
}

/* Of splits that leave no stage empty. */
static int64_t best_ways_of_all(const psplit_problem *p, const uint32_t *stage,
                                const void *unused) {
  (void)unused;
  uint32_t held = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    if (!(p->node_flags[v] & PSPLIT_NODE_AUXILIARY)) held |= 1u << stage[v];
    if (p->pin && p->pin[v] != PSPLIT_NONE && p->pin[v] != stage[v]) return INT64_MAX;
  }
  return held + 1 == 1u << STAGES ? best_ways(p, stage) : INT64_MAX;
}

static psplit_code measure(void *with, const uint32_t *stage, psplit_diag *diag, int64_t *out_ns) {
  (void)diag;
  *out_ns = best_ways(with, stage);
  return PSPLIT_OK;
}

/* The bound that a certificate proves, which aims at what is known to hold. */
static int64_t certified(const psplit_problem *p, const psplit_partition_options *o,
                         psplit_solution *shared, int64_t aim) {
  psplit_diag diag = {0};
  psplit_i_text text;
  int64_t bound;
  const int64_t before = shared->lower_bound_ns;
  uint32_t straight[PAIRS];
  for (uint32_t k = 0; k < PAIRS; k++) straight[k] = k % STAGES;
  shared->lower_bound_ns = aim;
  assert_int_equal(psplit_i_certificate_make(p, o, shared, straight, &diag, &text, &bound),
                   PSPLIT_OK);
  shared->lower_bound_ns = before;
  psplit_i_text_fini(&text);
  return bound;
}

static void no_way_is_below_the_bound(void **state) {
  (void)state;
  static random_problem r;
  uint32_t n_cases = 0, n_proved = 0, n_raised = 0, n_certified = 0;
  for (uint32_t seed = 0; seed < percent(CASES); seed++)
    for (shape kind = CHAIN; kind < ANY_ORDER; kind++) {
      make_random_problem(&r, 7000 + seed, kind, NODES, STAGES,
                          WITH_MESSAGES | (seed % 2 ? WITH_PINS : 0));
      r.message_ns[0] = 1 + (int64_t)(seed % 5) * 7;
      psplit_problem p = r.problem;
      p.comm = PSPLIT_COMM_SHARED;
      psplit_partition_options o;
      psplit_diag diag = {0};
      psplit_partition_options_init(&o);
      o.require_nonempty = true;
      o.n_threads = 1;
      const int64_t best = least_of_all_splits(&p, STAGES, best_ways_of_all, NULL);
      if (best == INT64_MAX) continue;
      psplit_solution *shared;
      assert_int_equal(psplit_partition_solve(&p, &o, &diag, &shared), PSPLIT_OK);
      psplit_i_optimum_range range = {shared->lower_bound_ns, best + 50};
      int64_t at_once = 0;
      assert_int_equal(psplit_i_bound_any_route_at_once(&p, &o, &at_once, &diag), PSPLIT_OK);
      if (at_once > best)
        fail_msg("seed %u, shape %d: bound %lld of work and messages, optimum %lld", seed,
                 (int)kind, (long long)at_once, (long long)best);
      assert_int_equal(psplit_i_bound_any_route(&p, &o, measure, &p, &range, NULL, &diag),
                       PSPLIT_OK);
      const int64_t bound = range.bound_ns, value = range.value_ns;
      if (bound > best || value < best || bound < shared->lower_bound_ns)
        fail_msg(
          "seed %u, shape %d: bound by shared memory %lld <= bound %lld <= optimum %lld <= "
          "value %lld does not hold",
          seed, (int)kind, (long long)shared->lower_bound_ns, (long long)bound, (long long)best,
          (long long)value);
      const int64_t whole = certified(&p, &o, shared, bound);
      if (certified(&p, &o, shared, best + 1) > best || whole > bound)
        fail_msg("seed %u, shape %d: more than the optimum %lld is certified", seed, (int)kind,
                 (long long)best);
      n_certified += bound > shared->objective_ns && whole == bound;
      n_cases++;
      n_proved += bound == best && value == best;
      n_raised += bound > shared->objective_ns;
      psplit_solution_destroy(shared);
    }
  print_message(
    "# of %u optima %u are proved; %u are above those by shared memory, of which %u are "
    "certified\n",
    n_cases, n_proved, n_raised, n_certified);
  assert_true(n_cases > 0 && n_proved > n_cases / 2 && n_raised > 0 && n_certified > n_raised / 2);
}

/* By shared memory what reads two stages receives one message, which goes to it in two in truth. */
static void stages_that_send_to_one_make_a_message_each(void **state) {
  (void)state;
  const psplit_device device = {.count = 3};
  psplit_problem p =
    plain_problem(&device, 3, (const int64_t[]){9, 9, 9}, 2, (const uint32_t[]){0, 1},
                  (const uint32_t[]){0, 1, 2}, (const uint32_t[]){2, 2}, (const int64_t[]){0, 0});
  p.comm = PSPLIT_COMM_SHARED;
  p.message_ns = (const int64_t[]){2};
  psplit_partition_options o;
  int64_t bound = 0;
  psplit_partition_options_init(&o);
  o.require_nonempty = true;
  assert_int_equal(psplit_i_bound_any_route_at_once(&p, &o, &bound, NULL), PSPLIT_OK);
  assert_int_equal(bound, (27 + 2 * (2 + 2) + 2) / 3 /* rounded up */);
  o.require_nonempty = false; /* an empty stage may pass on */
  bound = 7;
  assert_int_equal(psplit_i_bound_any_route_at_once(&p, &o, &bound, NULL), PSPLIT_OK);
  assert_int_equal(bound, 7);
}

enum { MOST_BRANCHES = 40 };

/* Nodes that another one sends to and that send to the last; or those alone, without the first. */
typedef struct fan {
  int64_t time_ns[MOST_BRANCHES + 2], net_ns[2 * MOST_BRANCHES], message_ns;
  uint32_t producer[2 * MOST_BRANCHES], off[2 * MOST_BRANCHES + 1], consumer[2 * MOST_BRANCHES];
  uint8_t node_flags[MOST_BRANCHES + 2], net_flags[2 * MOST_BRANCHES];
  psplit_device device;
  psplit_problem problem;
} fan;

static void make_fan(fan *f, uint32_t n_branches, bool headed, int64_t branch_ns, int64_t to_ns,
                     int64_t from_ns, int64_t message_ns) {
  const uint32_t first = headed ? 1 : 0, last = first + n_branches;
  uint32_t n_nets = 0;
  *f = (fan){.device = {.count = STAGES}};
  f->message_ns = message_ns;
  f->time_ns[0] = f->time_ns[last] = 3;
  for (uint32_t v = first; v < last; v++) {
    f->time_ns[v] = branch_ns;
    if (headed) {
      f->producer[n_nets] = 0, f->consumer[n_nets] = v, f->net_ns[n_nets] = to_ns;
      n_nets++;
    }
    f->producer[n_nets] = v, f->consumer[n_nets] = last, f->net_ns[n_nets] = from_ns;
    n_nets++;
  }
  for (uint32_t e = 0; e <= n_nets; e++) f->off[e] = e;
  f->problem = plain_problem(&f->device, last + 1, f->time_ns, n_nets, f->producer, f->off,
                             f->consumer, f->net_ns);
  f->problem.comm = PSPLIT_COMM_SHARED;
  f->problem.message_ns = &f->message_ns;
  f->problem.node_flags = f->node_flags;
  f->problem.net_flags = f->net_flags;
}

/* Some best split has them in order, with all the ways of others. One may be unlike the others. */
static void equal_branches_are_in_order_whatever_the_ways(void **state) {
  (void)state;
  enum { N_BRANCHES = NODES - 2 };
  uint32_t n_cases = 0, n_proved = 0;
  for (uint32_t seed = 0; seed < percent(24); seed++) {
    fan f;
    uint64_t draw = 100 * seed;
    int64_t x[4];
    for (uint32_t k = 0; k < 4; k++) x[k] = (int64_t)(psplit_i_splitmix64(17, draw++) % 12);
    const bool headed = seed % 2;
    make_fan(&f, N_BRANCHES, headed, 1 + x[0], x[1] / 4, x[2] / 3, 1 + x[3]);
    if (seed % 3 == 0) f.time_ns[1 + seed % N_BRANCHES] += 1 + x[1];
    if (seed % 3 == 1) f.net_ns[seed % N_BRANCHES] += 1 + x[2];
    psplit_partition_options o;
    psplit_partition_options_init(&o);
    o.require_nonempty = true;
    o.n_threads = 1;
    const int64_t best = least_of_all_splits(&f.problem, STAGES, best_ways_of_all, NULL);
    psplit_i_optimum_range range = {0, best};
    assert_int_equal(
      psplit_i_bound_any_route(&f.problem, &o, measure, &f.problem, &range, NULL, NULL), PSPLIT_OK);
    if (range.bound_ns > best || range.value_ns != best)
      fail_msg("seed %u: bound %lld <= optimum %lld = value %lld does not hold", seed,
               (long long)range.bound_ns, (long long)best, (long long)range.value_ns);
    n_cases++;
    n_proved += range.bound_ns == best;
  }
  print_message("# of %u fans %u are proved\n", n_cases, n_proved);
  assert_true(n_proved > n_cases / 3);
}

/* 2^40 downsets, of which those in order are 41. */
static void a_fan_of_equal_branches_is_decided(void **state) {
  (void)state;
  fan f;
  psplit_partition_options o;
  make_fan(&f, MOST_BRANCHES, true, 8, 2, 2, 30);
  psplit_partition_options_init(&o);
  o.require_nonempty = true;
  o.n_threads = 1;
  o.time_limit_s = 1;
  int64_t at_once = 0;
  uint32_t stage[MOST_BRANCHES + 2];
  for (uint32_t v = 0; v < f.problem.n_nodes; v++) stage[v] = v * STAGES / f.problem.n_nodes;
  assert_int_equal(psplit_i_bound_any_route_at_once(&f.problem, &o, &at_once, NULL), PSPLIT_OK);
  psplit_i_optimum_range range = {at_once, best_ways(&f.problem, stage)};
  assert_int_equal(
    psplit_i_bound_any_route(&f.problem, &o, measure, &f.problem, &range, NULL, NULL), PSPLIT_OK);
  assert_true(range.bound_ns > at_once && range.bound_ns <= range.value_ns);
}

/* The verdict on splits whose tensors go by any way, and the steps that it takes. */
static psplit_i_verdict decide(const psplit_i_instance *instance,
                               const psplit_i_automaton *automaton, int64_t limit,
                               bool keep_dominated, uint64_t *out_steps) {
  psplit_i_verdict verdict;
  psplit_i_assignment split;
  psplit_i_arena arena;
  const psplit_i_exact_options options = {.limit = limit,
                                          .bypasses = true,
                                          .keep_dominated = keep_dominated,
                                          .max_steps = UINT64_MAX,
                                          .memory_bytes = 1 << 28,
                                          .n_threads = 1,
                                          .out_steps = out_steps};
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_assignment_init(&split, instance, &arena), PSPLIT_OK);
  assert_int_equal(
    psplit_i_exact(instance, automaton, &(psplit_i_weight_axis){0}, &options, &split, &verdict),
    PSPLIT_OK);
  psplit_i_arena_fini(&arena);
  return verdict;
}

static void no_dominated_label_is_missed(void **state) {
  (void)state;
  enum { MORE_NODES = 14, LIMITS = 5 };
  static random_problem r;
  uint32_t n_all = 0, n_found = 0, n_fewer = 0;
  for (uint32_t seed = 0; seed < percent(1200); seed++) {
    psplit_i_instance instance = {0};
    psplit_i_automaton automaton = {0};
    psplit_partition_options o;
    psplit_solution *shared;
    psplit_diag diag = {0};
    make_random_problem(&r, seed, (shape)(seed % ANY_ORDER), MORE_NODES, STAGES,
                        WITH_MESSAGES | (seed % 2 ? WITH_PINS : 0));
    r.message_ns[0] = 1 + (int64_t)(seed % 5) * 7;
    psplit_problem p = r.problem;
    p.comm = PSPLIT_COMM_SHARED;
    psplit_partition_options_init(&o);
    o.require_nonempty = true;
    o.n_threads = 1;
    if (psplit_partition_solve(&p, &o, &diag, &shared) != PSPLIT_OK) continue;
    const int64_t least = shared->objective_ns;
    psplit_solution_destroy(shared);
    assert_int_equal(psplit_i_instance_init(&instance, &p, NULL, &diag), PSPLIT_OK);
    assert_int_equal(psplit_i_automaton_init(&automaton, &instance, &o, &diag), PSPLIT_OK);
    for (uint32_t i = 0; i < LIMITS && psplit_i_exact_counts_bypasses(&instance, &automaton); i++) {
      uint64_t all, fewer;
      const int64_t limit = least + i * r.message_ns[0] / 6;
      const psplit_i_verdict truth = decide(&instance, &automaton, limit, true, &all);
      if (decide(&instance, &automaton, limit, false, &fewer) != truth)
        fail_msg("seed %u, limit %lld: %s without dominated labels", seed, (long long)limit,
                 truth == PSPLIT_I_YES ? "no split" : "a split");
      n_all++;
      n_found += truth == PSPLIT_I_YES;
      n_fewer += fewer < all;
    }
    psplit_i_automaton_fini(&automaton);
    psplit_i_instance_fini(&instance);
  }
  print_message("# of %u verdicts %u are yes; %u take fewer steps without dominated labels\n",
                n_all, n_found, n_fewer);
  assert_true(n_all == 0 || (n_found > n_all / 8 && n_found < n_all && n_fewer > n_all / 4));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_way_is_below_the_bound),
    cmocka_unit_test(stages_that_send_to_one_make_a_message_each),
    cmocka_unit_test(no_dominated_label_is_missed),
    cmocka_unit_test(equal_branches_are_in_order_whatever_the_ways),
    cmocka_unit_test(a_fan_of_equal_branches_is_decided),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
