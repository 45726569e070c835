/* The heavy clusters alone: no split takes longer there, so what their best one takes bounds the
 * others; and what it bounds is seen where work comes in large pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "assignment.h"
#include "heavy.h"
#include "local_search.h"
#include "random_problem.h"

static const unsigned kFeatures[] = {
  0, WITH_CLASSES, WITH_FREE_COMM, WITH_PINS | WITH_TOGETHER, WITH_MEMORY, WITH_OVERLAP, WITH_STASH,
};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures };

static const double kLight[] = {0.05, 0.2, 0.4, 0.7};
enum { N_LIGHT = sizeof kLight / sizeof *kLight };

typedef struct bed {
  random_problem r;
  psplit_partition_options options;
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_closure closure;
  psplit_i_arena arena;
  psplit_i_assignment assignment;
} bed;

static bool bed_init(bed *b, uint64_t seed, shape kind, uint32_t n, uint32_t k, unsigned features) {
  make_random_problem(&b->r, seed, kind, n, k, features);
  b->r.problem.comm = seed % 3 ? PSPLIT_COMM_P2P : PSPLIT_COMM_SHARED;
  psplit_partition_options_init(&b->options);
  psplit_i_arena_init(&b->arena, 0);
  if (psplit_i_instance_init(&b->instance, &b->r.problem, NULL, NULL) != PSPLIT_OK) return false;
  if (psplit_i_automaton_init(&b->automaton, &b->instance, &b->options, NULL) != PSPLIT_OK) {
    psplit_i_instance_fini(&b->instance);
    return false;
  }
  assert_int_equal(psplit_i_closure_make(&b->instance, NULL, &b->closure), PSPLIT_OK);
  assert_int_equal(psplit_i_assignment_init(&b->assignment, &b->instance, &b->arena), PSPLIT_OK);
  return true;
}

static void bed_fini(bed *b) {
  psplit_i_closure_fini(&b->closure);
  psplit_i_automaton_fini(&b->automaton);
  psplit_i_instance_fini(&b->instance);
  psplit_i_arena_fini(&b->arena);
}

static uint32_t percent(uint32_t n) {
  const char *text = getenv("PSPLIT_PROPERTY_PERCENT");
  return n * (text ? (uint32_t)strtoul(text, NULL, 10) : 50) / 100;
}

static psplit_i_heavy make_heavy(bed *b, double light) {
  psplit_i_heavy heavy;
  assert_int_equal(psplit_i_heavy_make(&b->instance, &b->closure, light, &b->arena, NULL, &heavy),
                   PSPLIT_OK);
  assert_true(heavy.n_kept <= heavy.problem.n_nodes);
  return heavy;
}

/* Any split, not only the best, takes no longer when it is read for the heavy clusters. */
static void no_load_grows(void **state) {
  (void)state;
  static bed b;
  uint32_t n_seen = 0;
  const psplit_i_local_search_options quickly = {
    .seed = 1, .n_threads = 1, .n_rounds = 1, .n_steps = 1};
  for (uint32_t seed = 0; seed < percent(120); seed++)
    for (shape kind = 0; kind < N_SHAPES; kind++)
      for (uint32_t f = 0; f < N_FEATURES; f++) {
        if (!bed_init(&b, seed, kind, 4 + seed % 40, 2 + seed % 3, kFeatures[f])) continue;
        assert_int_equal(psplit_i_local_search(&b.instance, &b.automaton, &quickly, &b.assignment),
                         PSPLIT_OK);
        for (uint32_t l = 0; l < N_LIGHT && b.assignment.value < PSPLIT_I_INF; l++) {
          const psplit_i_heavy heavy = make_heavy(&b, kLight[l]);
          uint32_t stage[MAX_NODES];
          psplit_solution *read;
          psplit_diag diag = {0};
          /* Where pieces go is not told; of no work at all nothing is heavy. */
          if (heavy.problem.n_nodes > heavy.n_kept || heavy.n_kept == 0) continue;
          for (uint32_t k = 0; k < heavy.n_kept; k++)
            stage[k] = b.assignment.stage[heavy.cluster[k]];
          assert_int_equal(
            psplit_partition_check(&heavy.problem, &b.options, stage, NULL, b.assignment.device,
                                   b.assignment.replicas, &diag, &read),
            PSPLIT_OK);
          if (read->objective_ns > b.assignment.value)
            fail_msg("seed %u, shape %d, features %#x: a split of %lld takes %lld", seed, (int)kind,
                     kFeatures[f], (long long)b.assignment.value, (long long)read->objective_ns);
          psplit_solution_destroy(read);
          n_seen++;
        }
        bed_fini(&b);
      }
  assert_true(n_seen > percent(2000));
}

/* What is known of a problem's best split; false where there is none. */
static bool solve(const psplit_problem *problem, const psplit_partition_options *options,
                  int64_t *out_bound, int64_t *out_value) {
  psplit_diag diag = {0};
  psplit_solution *best;
  if (psplit_partition_solve(problem, options, &diag, &best) != PSPLIT_OK) return false;
  *out_bound = best->lower_bound_ns;
  *out_value = best->objective_ns;
  psplit_solution_destroy(best);
  return true;
}

/* With fluids: the best split of the relaxation, and what the pieces may add. */
static void the_optimum_is_no_less(void **state) {
  (void)state;
  static bed b;
  uint32_t n_fluids = 0, n_sharp = 0;
  for (uint32_t seed = 0; seed < percent(16); seed++)
    for (shape kind = 0; kind < N_SHAPES; kind++)
      for (uint32_t f = 0; f < N_FEATURES; f++) {
        int64_t bound, best, relaxed = 0, ignored;
        if (!bed_init(&b, 1000 + seed, kind, 4 + seed % 20, 2 + seed % 3, kFeatures[f])) continue;
        b.options.n_threads = 1;
        b.options.time_limit_s = 0.2;
        const psplit_i_heavy heavy = make_heavy(&b, kLight[seed % N_LIGHT]);
        if (heavy.n_kept > 0 && solve(&b.r.problem, &b.options, &bound, &best) && bound == best) {
          assert_true(solve(&heavy.problem, &b.options, &relaxed, &ignored));
          if (relaxed - heavy.slack > best)
            fail_msg("seed %u, shape %d, features %#x: %lld less %lld is above %lld", seed,
                     (int)kind, kFeatures[f], (long long)relaxed, (long long)heavy.slack,
                     (long long)best);
          n_fluids += heavy.problem.n_nodes > heavy.n_kept;
          n_sharp += relaxed == best;
        }
        bed_fini(&b);
      }
  assert_true(n_fluids > percent(80) && n_sharp > percent(16));
}

/* A chain of clusters of 100 with light ones between, for three devices: seven cannot be cut into
 * thirds, whatever the light ones do. */
static void large_pieces_count(void **state) {
  (void)state;
  enum { N_HEAVY = 7, LIGHT = 5, N = N_HEAVY * (LIGHT + 1) };
  int64_t time[N], net[N];
  uint32_t producer[N], off[N + 1] = {0}, consumer[N];
  const psplit_device device = {.name = "d", .count = 3};
  for (uint32_t v = 0; v < N; v++) {
    time[v] = v % (LIGHT + 1) ? 1 : 100;
    producer[v] = v;
    consumer[v] = v + 1;
    off[v + 1] = v + 1;
    net[v] = 3;
  }
  const psplit_problem problem = {.n_nodes = N,
                                  .n_classes = 1,
                                  .time_ns = time,
                                  .n_nets = N - 1,
                                  .net_producer = producer,
                                  .net_off = off,
                                  .net_consumer = consumer,
                                  .net_send_ns = net,
                                  .net_recv_ns = net,
                                  .n_devices = 1,
                                  .devices = &device,
                                  .comm = PSPLIT_COMM_P2P,
                                  .ticks_per_unit = 1};
  static bed b;
  int64_t bound, best;
  psplit_partition_options_init(&b.options);
  psplit_i_arena_init(&b.arena, 0);
  assert_int_equal(psplit_i_instance_init(&b.instance, &problem, NULL, NULL), PSPLIT_OK);
  assert_int_equal(psplit_i_closure_make(&b.instance, NULL, &b.closure), PSPLIT_OK);
  const psplit_i_heavy heavy = make_heavy(&b, 0.06);
  assert_int_equal(heavy.n_kept, N_HEAVY);
  assert_int_equal(heavy.problem.n_nets, N_HEAVY - 1);
  assert_true(solve(&heavy.problem, &b.options, &bound, &best));
  assert_int_equal(best, 300 + 3); /* the first stage, or the last: it has one neighbour */
  psplit_i_closure_fini(&b.closure);
  psplit_i_instance_fini(&b.instance);
  psplit_i_arena_fini(&b.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_load_grows),
    cmocka_unit_test(the_optimum_is_no_less),
    cmocka_unit_test(large_pieces_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
