/* Solvers against enumeration on thousands of random problems: bound <= optimum <= value always,
 * and equality wherever optimality is claimed - which, at this size, is everywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/sample.h"
#include "communication_share.h"
#include "exact.h"
#include "latency_chain.h"
#include "placement.h"
#include "random_problem.h"

/* Of the bound from shares of communication. */
static uint32_t n_asked, n_tight;

typedef struct family {
  const char *name;
  unsigned features; /* and PERHAPS(features) that each problem has or not, at random */
  uint32_t n_seeds, most_nodes, most_stages;
  uint32_t chunks, replicas;
  bool nonempty, noncontiguous, latency;
} family;

#define PERHAPS(features) ((unsigned)(features) << 16)
enum {
  WHAT_TRAINING_TAKES = WITH_CLASSES | WITH_ALIKE | WITH_FREE_COMM | WITH_MEMORY | WITH_STASH |
                        WITH_PINS | WITH_TOGETHER,
  WHAT_ALL_TAKE = WHAT_TRAINING_TAKES | WITH_OVERLAP
};

static const family kFamilies[] = {
  {"plain", 0, 120, 8, 4, 1, 1, false, false, false},
  {"nonempty", 0, 60, 7, 4, 1, 1, true, false, false},
  {"classes", WITH_CLASSES, 50, 7, 3, 1, 1, false, false, false},
  {"alike", WITH_CLASSES | WITH_ALIKE, 20, 6, 4, 1, 1, false, false, false},
  {"alike, nonempty", WITH_CLASSES | WITH_ALIKE | PERHAPS(WITH_MEMORY | WITH_OVERLAP), 20, 6, 4, 1,
   1, true, false, false},
  {"cpu", WITH_CLASSES | WITH_FREE_COMM, 50, 7, 3, 1, 1, false, false, false},
  {"cpu, overlap, memory", WITH_CLASSES | WITH_FREE_COMM | WITH_OVERLAP | WITH_MEMORY, 40, 7, 3, 1,
   1, false, false, false},
  {"cpu, twins", WITH_CLASSES | WITH_FREE_COMM | WITH_TWINS, 40, 4, 4, 1, 1, false, false, false},
  {"memory", WITH_MEMORY, 60, 7, 3, 1, 1, false, false, false},
  {"stash", WITH_MEMORY | WITH_STASH | WITH_CLASSES, 40, 7, 3, 1, 1, false, false, false},
  {"twins", WITH_TWINS, 60, 4, 3, 1, 1, false, false, false},
  {"twins, more of them", WITH_TWINS, 60, 5, 4, 1, 1, false, false, false},
  {"twins, nonempty", WITH_TWINS | WITH_CLASSES, 40, 4, 3, 1, 1, true, false, false},
  {"twins and memory", WITH_TWINS | WITH_MEMORY, 40, 4, 3, 1, 1, false, false, false},
  {"pins", WITH_PINS | WITH_TOGETHER, 60, 7, 3, 1, 1, false, false, false},
  {"pins and classes", WITH_PINS | WITH_CLASSES | WITH_TOGETHER, 40, 7, 3, 1, 1, true, false,
   false},
  {"together", WITH_TOGETHER, 60, 7, 4, 1, 1, false, false, false},
  {"overlap", WITH_OVERLAP, 60, 7, 3, 1, 1, false, false, false},
  {"chunks", 0, 30, 6, 2, 2, 1, false, false, false},
  {"chunks, memory, classes", WITH_MEMORY | WITH_CLASSES, 20, 5, 2, 2, 1, false, false, false},
  {"non-contiguous", 0, 40, 6, 3, 1, 1, false, true, false},
  {"non-contiguous, nonempty", WITH_TOGETHER, 20, 6, 3, 1, 1, true, true, false},
  {"non-contiguous, cpu", WITH_CLASSES | WITH_FREE_COMM, 20, 6, 3, 1, 1, false, true, false},
  {"non-contiguous, memory, pins", WITH_MEMORY | WITH_PINS, 20, 6, 3, 1, 1, false, true, false},
  {"non-contiguous, twins", WITH_TWINS, 20, 3, 3, 1, 1, false, true, false},
  {"latency", 0, 40, 7, 3, 1, 1, false, false, true},
  {"latency, classes", WITH_CLASSES, 20, 6, 3, 1, 1, false, false, true},
  {"latency, memory, pins", WITH_MEMORY | WITH_PINS, 20, 6, 3, 1, 1, true, false, true},
  {"latency, cpu", WITH_CLASSES | WITH_FREE_COMM | WITH_MEMORY, 40, 7, 3, 1, 1, false, false, true},
  {"latency, overlap", WITH_OVERLAP | WITH_TOGETHER, 40, 7, 4, 1, 1, false, false, true},
  {"relays", WITH_RELAYS, 90, 7, 4, 1, 1, false, false, false},
  {"relays, nonempty", WITH_RELAYS | WITH_OVERLAP, 60, 7, 4, 1, 1, true, false, false},
  {"relays, memory, pins", WITH_RELAYS | WITH_MEMORY | WITH_PINS, 40, 7, 3, 1, 1, true, false,
   false},
  {"relays, latency", WITH_RELAYS, 40, 6, 4, 1, 1, true, false, true},
  {"relays, latency, empty stages", WITH_RELAYS, 40, 6, 4, 1, 1, false, false, true},
  {"replicas", WITH_MEMORY, 30, 6, 3, 1, 3, false, false, false},
  {"overlap, twins", WITH_OVERLAP | WITH_TWINS, 30, 6, 4, 1, 1, false, false, false},
  {"overlap, twins, any", WITH_OVERLAP | WITH_TWINS | PERHAPS(WHAT_TRAINING_TAKES), 40, 5, 3, 1, 1,
   false, false, false},
  {"overlap, twins, any, nonempty", WITH_OVERLAP | WITH_TWINS | PERHAPS(WHAT_TRAINING_TAKES), 30, 5,
   3, 1, 1, true, false, false},
  {"overlap, twins, any, non-contiguous", WITH_OVERLAP | WITH_TWINS | PERHAPS(WHAT_TRAINING_TAKES),
   10, 3, 3, 1, 1, false, true, false},
  {"overlap, twins, any, chunks", WITH_OVERLAP | WITH_TWINS | PERHAPS(WHAT_TRAINING_TAKES), 10, 3,
   2, 2, 1, false, false, false},
  {"pairs", WITH_PAIRS, 45, 8, 4, 1, 1, false, false, false},
  {"pairs, nonempty", WITH_PAIRS, 45, 8, 4, 1, 1, true, false, false},
  {"pairs, any", WITH_PAIRS | PERHAPS(WHAT_ALL_TAKE), 30, 7, 4, 1, 1, false, false, false},
  {"pairs, any, nonempty", WITH_PAIRS | PERHAPS(WHAT_ALL_TAKE), 30, 7, 4, 1, 1, true, false, false},
  {"pairs, twins, any", WITH_PAIRS | WITH_TWINS | PERHAPS(WHAT_ALL_TAKE), 30, 4, 4, 1, 1, false,
   false, false},
  {"pairs, twins, nonempty", WITH_PAIRS | WITH_TWINS | PERHAPS(WHAT_ALL_TAKE), 15, 4, 3, 1, 1, true,
   false, false},
  {"pairs, latency", WITH_PAIRS | PERHAPS(WHAT_ALL_TAKE), 30, 7, 4, 1, 1, false, false, true},
  {"pairs, latency, nonempty", WITH_PAIRS | PERHAPS(WHAT_ALL_TAKE), 20, 7, 4, 1, 1, true, false,
   true},
  {"pairs, non-contiguous", WITH_PAIRS | PERHAPS(WHAT_ALL_TAKE), 20, 6, 3, 1, 1, false, true,
   false},
  {"pairs, non-contiguous, twins", WITH_PAIRS | WITH_TWINS, 5, 3, 3, 1, 1, false, true, false},
  {"pairs, chunks", WITH_PAIRS | PERHAPS(WHAT_ALL_TAKE), 20, 6, 2, 2, 1, false, false, false},
  {"pairs, chunks, three devices", WITH_PAIRS, 10, 5, 3, 2, 1, false, false, false},
  {"pairs, relays", WITH_PAIRS | WITH_RELAYS | PERHAPS(WITH_OVERLAP | WITH_MEMORY | WITH_PINS), 30,
   7, 4, 1, 1, false, false, false},
  {"pairs, relays, nonempty", WITH_PAIRS | WITH_RELAYS, 20, 7, 4, 1, 1, true, false, false},
  {"pairs, relays, latency", WITH_PAIRS | WITH_RELAYS, 20, 6, 4, 1, 1, false, false, true},
  {"messages", WITH_MESSAGES | PERHAPS(WHAT_ALL_TAKE), 15, 7, 4, 1, 1, false, false, false},
  {"messages, nonempty", WITH_MESSAGES | PERHAPS(WHAT_ALL_TAKE), 10, 7, 4, 1, 1, true, false,
   false},
  {"messages, pairs", WITH_MESSAGES | WITH_PAIRS | PERHAPS(WHAT_ALL_TAKE), 10, 7, 4, 1, 1, false,
   false, false},
  {"messages, relays", WITH_MESSAGES | WITH_RELAYS | PERHAPS(WITH_OVERLAP | WITH_MEMORY), 20, 7, 4,
   1, 1, false, false, false},
  {"messages, latency", WITH_MESSAGES | PERHAPS(WHAT_ALL_TAKE), 10, 7, 4, 1, 1, false, false, true},
  {"messages, relays, latency", WITH_MESSAGES | WITH_RELAYS, 15, 6, 4, 1, 1, false, false, true},
  {"messages, non-contiguous", WITH_MESSAGES | PERHAPS(WHAT_ALL_TAKE), 15, 6, 3, 1, 1, false, true,
   false},
  {"messages, twins", WITH_MESSAGES | WITH_TWINS | PERHAPS(WHAT_ALL_TAKE), 15, 4, 3, 1, 1, false,
   false, false},
  {"messages, replicas", WITH_MESSAGES | PERHAPS(WITH_MEMORY), 10, 6, 3, 1, 3, false, false, false},
  {"any", PERHAPS(WHAT_ALL_TAKE), 40, 6, 3, 1, 1, false, false, false},
  {"any, latency", PERHAPS(WHAT_ALL_TAKE), 40, 6, 3, 1, 1, false, false, true},
};

/* The family's features, and those that this problem drew. */
static unsigned features_of(const family *f, uint32_t seed, shape kind) {
  const uint64_t coins = psplit_i_splitmix64(seed, 1000 + kind);
  return (f->features & 0xffff) | (f->features >> 16 & (unsigned)coins);
}

static psplit_partition_options options_of(const family *f) {
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.chunks = f->chunks;
  o.max_replicas = f->replicas;
  o.require_nonempty = f->nonempty;
  o.noncontiguous = f->noncontiguous;
  o.objective = f->latency ? PSPLIT_LATENCY : PSPLIT_THROUGHPUT;
  o.sync_bytes_per_s = f->replicas > 1 ? 1e9 : 0;
  return o;
}

/* Contiguous throughput, but for what docs/partitioning/exact.md says stays open. */
static bool ties_are_provable(const family *f, const psplit_problem *p) {
  return f->chunks == 1 && f->replicas == 1 && !f->noncontiguous && !f->latency && !p->next_hop &&
         !p->message_ns &&
         !(p->stash_1f1b && p->any_device_order && p->n_devices > 1 && !p->pin && !f->nonempty);
}

/* Of the best splits, the one that sends least and comes first - from any seed. */
static void check_ties(const family *f, const random_problem *r, psplit_partition_options o,
                       int64_t comm, const uint32_t *first, const psplit_solution *solution,
                       const char *what) {
  const psplit_problem *p = &r->problem;
  /* Where links differ by pair ties are searched; where they turn out to be alike, proved. */
  if (!p->n_link_classes && ties_are_provable(f, p) != solution->ties_proved)
    fail_msg("%s %s: ties %sproved", f->name, what, solution->ties_proved ? "" : "not ");
  if (!solution->ties_proved) return;
  if (solution->comm_ns != comm)
    fail_msg("%s %s: sends %lld, could be %lld", f->name, what, (long long)solution->comm_ns,
             (long long)comm);
  for (uint32_t v = 0; v < p->n_nodes; v++)
    if (solution->stage[v] != first[v])
      fail_msg("%s %s: node %u on stage %u, not %u", f->name, what, v, solution->stage[v],
               first[v]);
  uint32_t device[MAX_DEVICES * 2];
  if (p->any_device_order) first_devices_by_enumeration(p, &o, device);
  for (uint32_t s = 0; p->any_device_order && s < solution->n_stages; s++)
    if (solution->stages[s].device != device[s])
      fail_msg("%s %s: stage %u on device %u, not %u", f->name, what, s, solution->stages[s].device,
               device[s]);
  psplit_solution *other;
  o.seed += 77;
  assert_int_equal(psplit_partition_solve(p, &o, NULL, &other), PSPLIT_OK);
  assert_memory_equal(other->stage, solution->stage, p->n_nodes * sizeof *other->stage);
  for (uint32_t s = 0; s < other->n_stages; s++)
    assert_int_equal(other->stages[s].device, solution->stages[s].device);
  psplit_solution_destroy(other);
}

static void compare(const family *f, const random_problem *r, const psplit_partition_options *o,
                    const char *what) {
  uint32_t first[MAX_NODES];
  int64_t comm, best = best_by_enumeration(&r->problem, o, &comm, first);
  psplit_diag diag = {0};
  psplit_solution *solution = NULL;
  const psplit_code code = psplit_partition_solve(&r->problem, o, &diag, &solution);
  if (best == INT64_MAX) {
    if (code != PSPLIT_INFEASIBLE)
      fail_msg("%s %s: infeasible, but %s: %s", f->name, what, psplit_code_name(code),
               diag.message);
    return;
  }
  if (code != PSPLIT_OK)
    fail_msg("%s %s: optimum %lld, but %s", f->name, what, (long long)best, diag.message);
  if (solution->lower_bound_ns > best || solution->objective_ns < best)
    fail_msg("%s %s: bound %lld (%s) <= optimum %lld <= value %lld (%s) does not hold", f->name,
             what, (long long)solution->lower_bound_ns, solution->bound, (long long)best,
             (long long)solution->objective_ns, solution->solver);
  if (solution->objective_ns != best &&
      (solution->proved_optimal || strcmp(o->solver, "auto") == 0))
    fail_msg("%s %s: optimum %lld, value %lld (%s, bound %lld)", f->name, what, (long long)best,
             (long long)solution->objective_ns, solution->solver,
             (long long)solution->lower_bound_ns);
  check_ties(f, r, *o, comm, first, solution, what);
  psplit_solution_destroy(solution);
}

/* The solver enumerates at this size, which hides what the bound on latency says: ask it itself. */
static void ask_chain_bound(const family *f, const random_problem *r,
                            const psplit_partition_options *o, const char *what) {
  int64_t comm, bound = 0;
  const int64_t best = best_by_enumeration(&r->problem, o, &comm, NULL);
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  if (best == INT64_MAX || psplit_i_instance_init(&instance, &r->problem, NULL, NULL) != PSPLIT_OK)
    return;
  psplit_partition_options loose = *o; /* a chain may pass over stages that hold something else */
  loose.require_nonempty = false;
  if (psplit_i_automaton_init(&automaton, &instance, &loose, NULL) == PSPLIT_OK) {
    assert_int_equal(psplit_i_latency_chain_bound(&instance, &automaton, PSPLIT_NONE, NULL, &bound),
                     PSPLIT_OK);
    if (bound > best)
      fail_msg("%s %s: chain bound %lld, latency %lld", f->name, what, (long long)bound,
               (long long)best);
    psplit_i_automaton_fini(&automaton);
  }
  psplit_i_instance_fini(&instance);
}

/* The solver seldom needs the exact program at this size: ask it itself. With the windows that the
 * optimum leaves and without any, it must find the optimum and nothing below. */
static void ask_exact(const family *f, const random_problem *r, const psplit_partition_options *o,
                      const char *what) {
  int64_t comm;
  const int64_t best = best_by_enumeration(&r->problem, o, &comm, NULL);
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_weight_axis axis[2] = {0};
  psplit_i_arena arena;
  psplit_i_assignment assignment;
  psplit_i_arena_init(&arena, 0);
  if (r->problem.next_hop && best == INT64_MAX) return; /* it does not know who is reached */
  if (psplit_i_instance_init(&instance, &r->problem, NULL, NULL) != PSPLIT_OK) {
    assert_true(best == INT64_MAX);
    return;
  }
  if (psplit_i_automaton_init(&automaton, &instance, o, NULL) != PSPLIT_OK) goto no_machine;
  assert_int_equal(psplit_i_assignment_init(&assignment, &instance, &arena), PSPLIT_OK);
  if (best < INT64_MAX)
    assert_int_equal(psplit_i_weight_axis_make(&instance, &automaton, best, 1, NULL, &axis[1]),
                     PSPLIT_OK);
  for (int windows = 0; windows < 2; windows++)
    for (int64_t limit = best == INT64_MAX ? best : best - 1; limit <= best; limit++) {
      psplit_i_exact_options options = {
        .limit = limit < PSPLIT_I_INF / 2 ? limit : PSPLIT_I_INF / 2,
        .max_steps = UINT64_MAX,
        .memory_bytes = 1 << 30,
        .n_threads = 1,
      };
      for (int once = 0; once < 2 && limit >= 0; once++) {
        psplit_i_verdict verdict;
        options.send_once = once;
        assert_int_equal(
          psplit_i_exact(&instance, &automaton, &axis[windows], &options, &assignment, &verdict),
          PSPLIT_OK);
        /* Sends undercounted, or what others pass on, or what pairs of devices take more than the
         * least, or messages, which some problems have counted only when a split is whole. */
        const bool may =
          verdict == PSPLIT_I_YES && assignment.value > limit &&
          (once || r->problem.next_hop || r->problem.n_link_classes ||
           (r->problem.message_ns && !psplit_i_exact_counts_messages(&instance, &automaton)));
        if (best < INT64_MAX && limit == best ? verdict != PSPLIT_I_YES
                                              : verdict != PSPLIT_I_NO && !may)
          fail_msg("%s %s: optimum %lld, exact says %d at %lld (value %lld; windows %d, once %d)",
                   f->name, what, (long long)best, (int)verdict, (long long)limit,
                   (long long)assignment.value, windows, once);
        if (verdict == PSPLIT_I_YES && assignment.value > limit && !may)
          fail_msg("%s %s: exact is wrong about its own answer", f->name, what);
      }
      if (limit == INT64_MAX) break;
    }
  psplit_i_weight_axis_fini(&axis[1]);
no_machine:
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  psplit_i_arena_fini(&arena);
}

/* Small problems seldom need the bound from shares of communication: ask it itself, from any value
 * that a split has. It must stay at or below the optimum; where it does not reach, it says nothing.
 */
static void ask_shares(const family *f, const random_problem *r, const psplit_partition_options *o,
                       const char *what) {
  int64_t comm;
  const int64_t best = best_by_enumeration(&r->problem, o, &comm, NULL);
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  if (best == INT64_MAX) return;
  /* An order unites what lies on a cycle of keep-together classes: of no use without one. */
  for (int unordered = o->noncontiguous; unordered < 2; unordered++) {
    assert_int_equal((unordered ? psplit_i_instance_init_unordered : psplit_i_instance_init)(
                       &instance, &r->problem, NULL, NULL),
                     PSPLIT_OK);
    psplit_partition_options loose = *o;
    loose.require_nonempty = false;
    const psplit_code code = psplit_i_automaton_init(&automaton, &instance, &loose, NULL);
    for (int more = 0; more < 3 && code == PSPLIT_OK; more++) {
      int64_t bound = 0;
      assert_int_equal(psplit_i_communication_share_bound(
                         &instance, &automaton, best + more * (best / 3 + 1), o, NULL, &bound),
                       PSPLIT_OK);
      n_asked++;
      n_tight += bound == best;
      if (bound > best)
        fail_msg("%s %s: optimum %lld, bound from shares %lld", f->name, what, (long long)best,
                 (long long)bound);
    }
    psplit_i_automaton_fini(&automaton);
    psplit_i_instance_fini(&instance);
  }
}

/* Moving a cluster leaves a placement as if it had been put there at once, and every load that
 * changed among those touched. */
static void move_about(const random_problem *r, const psplit_partition_options *o, uint64_t seed) {
  psplit_i_instance instance;
  psplit_i_arena arena;
  psplit_i_placement moved, fresh;
  psplit_i_arena_init(&arena, 0);
  if (psplit_i_instance_init_unordered(&instance, &r->problem, NULL, NULL) != PSPLIT_OK) return;
  assert_int_equal(psplit_i_placement_init(&moved, &instance, o->chunks, o, &arena), PSPLIT_OK);
  for (uint32_t v = 0; v < instance.n; v++) psplit_i_placement_add(&moved, v, v % moved.n_labels);
  for (uint32_t step = 0; step < 20; step++) {
    int64_t before[MAX_DEVICES];
    for (uint32_t k = 0; k < moved.n_devices; k++) before[k] = psplit_i_placement_load(&moved, k);
    const uint64_t x = psplit_i_splitmix64(seed, step);
    psplit_i_placement_forget_touched(&moved);
    psplit_i_placement_move(&moved, (uint32_t)(x % instance.n),
                            (uint32_t)((x >> 32) % moved.n_labels));
    assert_int_equal(psplit_i_placement_init(&fresh, &instance, o->chunks, o, &arena), PSPLIT_OK);
    for (uint32_t v = 0; v < instance.n; v++) psplit_i_placement_add(&fresh, v, moved.label[v]);
    for (uint32_t k = 0; k < moved.n_devices; k++) {
      assert_int_equal(psplit_i_placement_load(&moved, k), psplit_i_placement_load(&fresh, k));
      assert_int_equal(moved.weight[k], fresh.weight[k]);
      assert_int_equal(moved.act[k], fresh.act[k]);
      assert_int_equal(moved.n_counted[k], fresh.n_counted[k]);
      assert_true(moved.is_touched[k] || before[k] == psplit_i_placement_load(&moved, k));
    }
    assert_int_equal(psplit_i_placement_value(&moved), psplit_i_placement_value(&fresh));
  }
  psplit_i_instance_fini(&instance);
  psplit_i_arena_fini(&arena);
}

static void run_family(const family *f) {
  static random_problem r;
  const psplit_partition_options o = options_of(f);
  const uint32_t n_seeds = sample_of(f->n_seeds, 50); /* all is what a release runs */
  for (uint32_t seed = 0; seed < n_seeds; seed++)
    for (shape kind = 0; kind < N_SHAPES; kind++) {
      const uint32_t n = 1 + (seed * 7 + kind) % f->most_nodes;
      const uint32_t k = 1 + (seed * 5 + kind * 3) % f->most_stages;
      make_random_problem(&r, seed, kind, n, k, features_of(f, seed, kind));
      char what[96];
      snprintf(what, sizeof what, "(seed %u, shape %d, %u nodes, %u stages, features %u)", seed,
               (int)kind, n, k, features_of(f, seed, kind));
      compare(f, &r, &o, what);
      if (f->chunks == 1 && !f->noncontiguous && !f->latency) ask_exact(f, &r, &o, what);
      if (f->latency) ask_chain_bound(f, &r, &o, what);
      if (f->replicas == 1) ask_shares(f, &r, &o, what);
      move_about(&r, &o, seed);
    }
}

static void solvers_agree_with_enumeration(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kFamilies / sizeof *kFamilies; i++) run_family(&kFamilies[i]);
  /* A bound of nothing would never be wrong. */
  if (n_tight < n_asked / 10)
    fail_msg("the bound met the optimum %u times of %u", n_tight, n_asked);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(solvers_agree_with_enumeration),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
