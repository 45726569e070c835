/* The full cross product of what a problem and its options can have, drawn at random, against two
 * programs that share nothing with the solvers: enumeration, up to 14 nodes and 4 stages, and
 * dynamic programming over downsets (lattice.c), up to 36. In every case
 *
 *   bound <= optimum <= value           of the answer, and of every bound by itself
 *   proved: bound = optimum = value     and ties as enumeration has them
 *   psplit_partition_check              finds the same value, and takes no case that is refused
 *
 * PSPLIT_CROSS_CASES: feasible cases, by default 1,000. PSPLIT_CROSS_SEED: of the first draw. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "exact.h"
#include "lattice.h"
#include "messages.h"
#include "random_problem.h"
#include "random_proposer.h"
#include "reductions.h"

enum { MOST_WRONG = 20, MOST_ENUMERATED = 14, MOST_IN_LATTICE = 36 };

static const psplit_i_method BOUNDS[] = {
#define PSPLIT_I_BOUND(id, ...) PSPLIT_I_BOUND_##id,
#include "methods.def"
};

/* Of an answer. */
typedef struct counts {
  uint32_t feasible, infeasible, refused, in_lattice, proved, ties, united, wrong;
  uint32_t bounds[PSPLIT_I_N_METHODS], tight[PSPLIT_I_N_METHODS];
} counts;

typedef struct draw {
  uint64_t seed;
  random_problem r;
  psplit_partition_options o;
  psplit_proposer proposer; /* for solvers that need one */
  unsigned features;
  shape kind;
  uint32_t n, k;
  char what[256];
  psplit_diag why_not;
} draw;

static counts n_of;

static uint32_t pick(const draw *d, uint32_t what, uint32_t n) {
  return (uint32_t)(psplit_i_splitmix64(d->seed, what) % n);
}

static void wrong(const draw *d, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  print_message("# %s: %s\n", d->what, text);
  n_of.wrong++;
}

/* Every feature with a coin of its own: mostly tails, so that some cases have few. */
static void draw_options(draw *d) {
  const uint32_t odds = 2 + pick(d, 1, 4);
  d->features = 0;
  for (uint32_t bit = 0; bit < N_PROBLEM_FEATURES; bit++)
    if (pick(d, 10 + bit, odds) == 0) d->features |= 1u << bit;
  psplit_partition_options *o = &d->o;
  psplit_partition_options_init(o);
  o->n_threads = 1;
  if (pick(d, 40, odds + 1) == 0) o->objective = PSPLIT_LATENCY;
  if (pick(d, 41, odds + 2) == 0) o->chunks = 2 + pick(d, 42, 2);
  if (pick(d, 43, odds + 2) == 0) o->noncontiguous = true;
  if (pick(d, 44, odds + 2) == 0) o->max_replicas = 2 + pick(d, 45, 2);
  o->require_nonempty = pick(d, 46, odds) == 0;
  if (pick(d, 47, 2)) o->sync_bytes_per_s = pick(d, 48, 2) ? 1e9 : 1e10;
  o->micro_batches = 1 + pick(d, 49, 3);
  /* What a solver leaves unfinished must be true as well. */
  const uint32_t time = pick(d, 50, 6);
  o->time_limit_s = time == 0 ? 0 : time == 1 ? 0.001 : time == 2 ? 1 : time == 3 ? 0.1 : 0.3;
  size_t n;
  const psplit_method *methods = psplit_partition_methods(&n);
  for (uint32_t tries = 0; pick(d, 51, 3) == 0 && tries < 64; tries++) {
    const psplit_method *method = &methods[pick(d, 60 + tries, (uint32_t)n)];
    if (!(method->kind & PSPLIT_METHOD_OPTION)) continue;
    o->solver = method->name;
    d->proposer = random_proposer(1 + pick(d, 59, 3));
    o->proposer = &d->proposer;
    break;
  }
}

static void make(draw *d) {
  make_random_problem(&d->r, d->seed, d->kind, d->n, d->k, d->features);
  snprintf(d->what, sizeof d->what,
           "seed %" PRIu64
           ": shape %d, %u nodes, %u stages, features %#x%s%s%s, chunks %u, "
           "replicas %u, %s in %g s",
           d->seed, (int)d->kind, d->r.problem.n_nodes, d->k, d->features,
           d->o.objective == PSPLIT_LATENCY ? ", latency" : "",
           d->o.noncontiguous ? ", free placement" : "", d->o.require_nonempty ? ", nonempty" : "",
           d->o.chunks, d->o.max_replicas, d->o.solver, d->o.time_limit_s);
}

/* The answer checked by itself; INT64_MAX where there is none, -1 where it is refused. */
static psplit_solution *solve(draw *d, bool *out_refused) {
  psplit_diag diag = {0};
  psplit_solution *s = NULL, *again = NULL;
  const psplit_code code = psplit_partition_solve(&d->r.problem, &d->o, &diag, &s);
  d->why_not = diag;
  *out_refused = code == PSPLIT_UNSUPPORTED;
  if (*out_refused || code == PSPLIT_INFEASIBLE) return NULL;
  if (code != PSPLIT_OK) {
    wrong(d, "%s: %s", psplit_code_name(code), diag.message);
    return NULL;
  }
  uint32_t device[64], replicas[64];
  for (uint32_t k = 0; k < s->n_stages; k++) {
    device[k] = s->stages[k].device;
    replicas[k] = s->stages[k].replicas;
  }
  if (psplit_partition_check(&d->r.problem, &d->o, s->stage, s->chunk, device, replicas, &diag,
                             &again) != PSPLIT_OK)
    wrong(d, "the checker says: %s", diag.message);
  else if (again->objective_ns != s->objective_ns || again->comm_ns != s->comm_ns)
    wrong(d, "the checker says %" PRId64, again->objective_ns);
  psplit_solution_destroy(again);
  return s;
}

/* Little time may not do to find a split, which is then not called impossible. */
static void refute(const draw *d, int64_t best) {
  if (d->o.time_limit_s >= 1 || d->why_not.hint != PSPLIT_HINT_TIME_LIMIT)
    wrong(d, "%s, but %" PRId64 " is possible", d->why_not.message, best);
}

static void compare(const draw *d, int64_t best, const psplit_solution *s) {
  if (s->lower_bound_ns > best)
    wrong(d, "optimum %" PRId64 ", bound %" PRId64 " (%s)", best, s->lower_bound_ns, s->bound);
  if (s->objective_ns < best)
    wrong(d, "optimum %" PRId64 ", value %" PRId64 " (%s)", best, s->objective_ns, s->solver);
  if (s->proved_optimal && (s->objective_ns != best || s->lower_bound_ns != best))
    wrong(d, "optimum %" PRId64 ", proved %" PRId64 " (%s, %s)", best, s->objective_ns, s->solver,
          s->bound);
  if (s->proved_optimal != !s->unproved) wrong(d, "does not say why it is not proved");
  n_of.proved += s->proved_optimal;
}

static void compare_ties(const draw *d, int64_t comm, const uint32_t *first,
                         const psplit_solution *s) {
  if (!s->ties_proved) return;
  n_of.ties++;
  if (s->comm_ns != comm) wrong(d, "sends %" PRId64 ", could be %" PRId64, s->comm_ns, comm);
  for (uint32_t v = 0; v < s->n_nodes; v++)
    if (s->stage[v] != first[v]) {
      wrong(d, "ties: node %u on stage %u, not %u", v, s->stage[v], first[v]);
      break;
    }
}

/* What the solvers make of a problem, before an instance is made: a trunk is marked. */
static psplit_problem marked(const draw *d, psplit_i_arena *arena) {
  psplit_problem p = d->r.problem;
  assert_int_equal(psplit_i_messages_mark(arena, NULL, &p), PSPLIT_OK);
  return p;
}

/* Every bound of the table that is asked for this variant, from several values. */
static void ask_bounds(const draw *d, int64_t best) {
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_weight_axis axis = {0};
  psplit_i_arena arena;
  psplit_i_budget budget = psplit_i_budget_unlimited();
  psplit_partition_options loose = d->o;
  const psplit_i_variant variant = psplit_i_variant_of(&d->o);
  if (variant != PSPLIT_I_STAGES) loose.require_nonempty = false;
  psplit_i_arena_init(&arena, 0);
  const psplit_problem problem = marked(d, &arena);
  const psplit_i_solver_request request = {
    .problem = &problem, .options = &loose, .budget = &budget, .arena = &arena};
  psplit_i_result result;
  assert_int_equal(psplit_i_result_init(&result, &request), PSPLIT_OK);
  if ((d->o.noncontiguous ? psplit_i_instance_init_unordered : psplit_i_instance_init)(
        &instance, &problem, NULL, NULL) != PSPLIT_OK) {
    psplit_i_arena_fini(&arena);
    return;
  }
  if (psplit_i_automaton_init(&automaton, &instance, &loose, NULL) == PSPLIT_OK)
    for (uint32_t i = 0; i < PSPLIT_I_N_METHODS; i++)
      for (uint32_t more = 0; more < 3; more++) {
        const psplit_i_bound_query query = {
          &request, &instance, &automaton, variant, best + more * (best / 3 + 1), 0, &axis};
        bool due = false;
        for (uint32_t when = PSPLIT_I_AT_ONCE; when <= PSPLIT_I_WHERE_STUCK; when++)
          due |= psplit_i_bound_is_due(i, &query, when);
        if (!due) continue;
        result.bound = 0;
        assert_int_equal(psplit_i_bound_run(i, &query, &result), PSPLIT_OK);
        n_of.bounds[i]++;
        n_of.tight[i] += result.bound == best;
        if (result.bound > best)
          wrong(d, "optimum %" PRId64 ", %s says %" PRId64 " of a value of %" PRId64, best,
                psplit_i_method_name(i), result.bound, query.value);
      }
  psplit_i_weight_axis_fini(&axis);
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  psplit_i_arena_fini(&arena);
}

/* The exact program by itself: it finds the optimum, and nothing below. */
static void ask_exact(const draw *d, int64_t best) {
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_weight_axis axis = {0};
  psplit_i_assignment assignment;
  psplit_i_arena arena;
  if (psplit_i_variant_of(&d->o) != PSPLIT_I_STAGES) return;
  psplit_i_arena_init(&arena, 0);
  const psplit_problem problem = marked(d, &arena);
  if (psplit_i_instance_init(&instance, &problem, NULL, NULL) != PSPLIT_OK) {
    psplit_i_arena_fini(&arena);
    return;
  }
  if (psplit_i_automaton_init(&automaton, &instance, &d->o, NULL) != PSPLIT_OK ||
      !psplit_i_takes(PSPLIT_I_SOLVER_EXACT, automaton.features))
    goto out;
  assert_int_equal(psplit_i_assignment_init(&assignment, &instance, &arena), PSPLIT_OK);
  if (pick(d, 90, 2))
    assert_int_equal(psplit_i_weight_axis_make(&instance, &automaton, best, 1, NULL, &axis),
                     PSPLIT_OK);
  for (int64_t limit = best ? best - 1 : 0; limit <= best; limit++)
    for (int once = 0; once < 2; once++) {
      psplit_i_verdict verdict;
      const psplit_i_exact_options options = {.limit = limit,
                                              .max_steps = 1 << 22,
                                              .memory_bytes = 1 << 30,
                                              .n_threads = 1,
                                              .send_once = once};
      assert_int_equal(
        psplit_i_exact(&instance, &automaton, &axis, &options, &assignment, &verdict), PSPLIT_OK);
      if (verdict == PSPLIT_I_NO && limit == best)
        wrong(d, "optimum %" PRId64 ", the exact program says there is none (once %d)", best, once);
      /* Receivers that are not counted, or what is passed on: only a whole split tells. */
      const bool may = once || (!psplit_i_exact_counts_messages(&instance, &automaton) &&
                                !psplit_i_takes(PSPLIT_I_RULE_WHOLE_LOADS,
                                                psplit_i_features_of(&d->r.problem, &d->o)));
      if (verdict == PSPLIT_I_YES &&
          (assignment.value < best || (assignment.value > limit && !may)))
        wrong(d, "optimum %" PRId64 ", the exact program finds %" PRId64 " within %" PRId64, best,
              assignment.value, limit);
    }
out:
  psplit_i_weight_axis_fini(&axis);
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  psplit_i_arena_fini(&arena);
}

/* What the reductions unite shares a stage in some best split; at a limit that is that split's. A
 * class with a forward node orders no backward edges: so the united problem may be better. */
static void ask_reductions(draw *d, int64_t best) {
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  uint32_t parent[MAX_NODES];
  if (psplit_i_variant_of(&d->o) == PSPLIT_I_LATENCY || d->o.chunks > 1) return;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  const psplit_problem problem = marked(d, &arena);
  if ((d->o.noncontiguous ? psplit_i_instance_init_unordered : psplit_i_instance_init)(
        &instance, &problem, NULL, NULL) != PSPLIT_OK) {
    psplit_i_arena_fini(&arena);
    return;
  }
  const uint32_t n_before = instance.n;
  for (uint32_t v = 0; v < d->r.problem.n_nodes; v++) parent[v] = v;
  if (psplit_i_automaton_init(&automaton, &instance, &d->o, NULL) == PSPLIT_OK) {
    assert_int_equal(psplit_i_reduce(&instance, &automaton, best, parent, NULL, NULL), PSPLIT_OK);
    n_of.united += instance.n < n_before;
    psplit_problem united = d->r.problem;
    united.together = instance.cluster_of_node;
    int64_t comm;
    if (instance.n < n_before && best_by_enumeration(&united, &d->o, &comm, NULL) > best)
      wrong(d, "optimum %" PRId64 " is lost where %u clusters become %u", best, n_before,
            instance.n);
  }
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  psplit_i_arena_fini(&arena);
}

/* Fewer nodes until there are few enough assignments. */
static void draw_small(draw *d, uint64_t most_leaves) {
  draw_options(d);
  d->kind = (shape)pick(d, 2, N_SHAPES);
  d->k = 1 + pick(d, 3, MAX_DEVICES);
  const bool twins = d->features & WITH_TWINS;
  for (d->n = 1 + pick(d, 4, twins ? MOST_ENUMERATED / 2 : MOST_ENUMERATED);; d->n--) {
    make(d);
    if (d->n == 1 || count_to_enumerate(&d->r.problem, &d->o, most_leaves) < most_leaves) return;
  }
}

static void one_enumerated(uint64_t seed, uint64_t most_leaves) {
  static draw d;
  d.seed = seed;
  draw_small(&d, most_leaves);
  bool refused;
  psplit_solution *s = solve(&d, &refused);
  n_of.refused += refused;
  if (refused) return;
  uint32_t first[MAX_NODES];
  int64_t comm;
  const int64_t best = best_by_enumeration(&d.r.problem, &d.o, &comm, first);
  if (best == INT64_MAX) {
    if (s) wrong(&d, "nothing is feasible, but %" PRId64 " is found", s->objective_ns);
    n_of.infeasible++;
  } else {
    n_of.feasible++;
    if (!s) refute(&d, best);
    ask_bounds(&d, best);
    ask_exact(&d, best);
    ask_reductions(&d, best);
  }
  if (s && best < INT64_MAX) {
    compare(&d, best, s);
    compare_ties(&d, comm, first, s);
  }
  psplit_solution_destroy(s);
}

/* What lattice.c takes: contiguous throughput without copies and with links between all stages. */
static void one_in_lattice(uint64_t seed, uint32_t most_downsets) {
  static draw d;
  d.seed = seed;
  draw_options(&d);
  d.o.objective = PSPLIT_THROUGHPUT;
  d.o.chunks = d.o.max_replicas = 1;
  d.o.noncontiguous = false;
  d.features &= ~(unsigned)(WITH_RELAYS | WITH_PAIRS | WITH_MESSAGES);
  d.kind = (shape)pick(&d, 2, N_SHAPES);
  d.k = 2 + pick(&d, 3, MAX_DEVICES - 1);
  const bool twins = d.features & WITH_TWINS;
  d.o.time_limit_s = pick(&d, 5, 4) ? 0.1 : 0;
  bool refused;
  for (d.n = (8 + pick(&d, 4, MOST_IN_LATTICE - 7)) / (twins ? 2 : 1); d.n > 3; d.n--) {
    make(&d);
    int64_t best = INT64_MAX;
    psplit_solution *s = solve(&d, &refused);
    if (refused) break;
    const lattice_answer answer =
      lattice_best(&d.r.problem, d.o.require_nonempty, s ? s->objective_ns : INT64_MAX / 8,
                   most_downsets, 20 * most_downsets, &best);
    if (answer == LATTICE_BEST) {
      n_of.feasible++;
      n_of.in_lattice++;
      if (!s) refute(&d, best);
      if (s) compare(&d, best, s);
      ask_bounds(&d, best);
      ask_exact(&d, best);
    } else if (answer == LATTICE_NONE && s) {
      wrong(&d, "%" PRId64 " is not possible", s->objective_ns);
    }
    psplit_solution_destroy(s);
    if (answer != LATTICE_TOO_LARGE) break;
  }
}

static uint64_t from_environment(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void every_statement_holds(void **state) {
  (void)state;
  const uint64_t n_cases = from_environment("PSPLIT_CROSS_CASES", 1000);
  const uint64_t seed = from_environment("PSPLIT_CROSS_SEED", 1);
  const bool long_run = n_cases > 1000;
  for (uint64_t i = 0; n_of.feasible < n_cases && n_of.wrong < MOST_WRONG; i++) {
    if (i % 6 == 5)
      one_in_lattice(seed + i, long_run ? 1500 : 300);
    else
      one_enumerated(seed + i, long_run ? 20000 : 2000);
  }
  print_message(
    "# %u feasible (%u of them in the lattice), %u proved, %u with ties, %u reduced; %u "
    "infeasible, %u refused\n",
    n_of.feasible, n_of.in_lattice, n_of.proved, n_of.ties, n_of.united, n_of.infeasible,
    n_of.refused);
  for (uint32_t i = 0; i < PSPLIT_I_N_METHODS; i++)
    if (n_of.bounds[i])
      print_message("# %s: asked %u times, the optimum itself %u times\n", psplit_i_method_name(i),
                    n_of.bounds[i], n_of.tight[i]);
  if (n_of.wrong) fail_msg("%u statements are false", n_of.wrong);
  /* A bound of nothing would never be wrong, and a draw of nothing feasible never tell. */
  assert_true(n_of.proved > n_of.feasible / 2);
  assert_true(n_of.united > n_of.feasible / 20);
  assert_true(n_of.in_lattice > n_of.feasible / 50);
  for (size_t i = 0; i < sizeof BOUNDS / sizeof *BOUNDS; i++)
    if (!n_of.bounds[BOUNDS[i]]) fail_msg("%s was not asked", psplit_i_method_name(BOUNDS[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_statement_holds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
