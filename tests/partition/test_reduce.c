/* The lossless reductions against enumeration on thousands of random problems: the best split that
 * keeps the classes together is as good as the best of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../support/plain_problem.h"
#include "../support/sample.h"
#include "random_problem.h"

typedef struct family {
  const char *name;
  unsigned features;
  uint32_t most_nodes, most_stages;
  bool nonempty;
} family;

static const family FAMILIES[] = {
  {"plain", 0, 8, 4, false},
  {"nonempty", 0, 8, 4, true},
  {"classes", WITH_CLASSES, 7, 3, false},
  {"classes, nonempty", WITH_CLASSES, 7, 3, true},
  {"cpu", WITH_CLASSES | WITH_FREE_COMM, 7, 3, false},
  {"memory", WITH_MEMORY, 7, 3, false},
  {"memory, nonempty", WITH_MEMORY, 7, 3, true},
  {"stash", WITH_MEMORY | WITH_STASH, 7, 3, false},
  {"twins", WITH_TWINS, 4, 3, false},
  {"pins", WITH_PINS | WITH_TOGETHER, 7, 3, false},
  {"pins, nonempty", WITH_PINS | WITH_TOGETHER, 7, 3, true},
  {"overlap", WITH_OVERLAP, 7, 3, false},
};

/* What the reductions did over all problems. */
typedef struct tally {
  uint32_t n_problems, n_reduced, n_nodes, n_classes;
} tally;

static void assert_topological(const psplit_problem *p, const uint32_t *class_of) {
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
      if (!(p->node_flags[p->net_producer[e]] & PSPLIT_NODE_BACKWARD) &&
          !(p->node_flags[p->net_consumer[k]] & PSPLIT_NODE_BACKWARD))
        assert_true(class_of[p->net_producer[e]] <= class_of[p->net_consumer[k]]);
}

/* Reduces for bottlenecks up to `limit` and looks for the best split again. */
static void compare(const family *f, random_problem *r, const psplit_partition_options *o,
                    int64_t best, int64_t limit, uint32_t seed, tally *t) {
  uint32_t class_of[MAX_NODES], n_classes, kept[MAX_NODES];
  const uint32_t n = r->problem.n_nodes;
  int64_t comm;
  psplit_diag diag = {0};
  const psplit_code code =
    psplit_partition_reduce(&r->problem, o, limit, &diag, class_of, &n_classes);
  if (code != PSPLIT_OK) fail_msg("%s, seed %u: %s", f->name, (unsigned)seed, diag.message);
  assert_true(n_classes <= n);
  assert_topological(&r->problem, class_of);
  memcpy(kept, r->together, sizeof kept);
  memcpy(r->together, class_of, n * sizeof *class_of);
  const int64_t again = best_by_enumeration(&r->problem, o, &comm, NULL);
  memcpy(r->together, kept, sizeof kept);
  if (again != best)
    fail_msg("%s, seed %u, limit %lld: %u classes of %u nodes, best %lld instead of %lld", f->name,
             (unsigned)seed, (long long)limit, (unsigned)n_classes, (unsigned)n, (long long)again,
             (long long)best);
  t->n_problems++;
  t->n_reduced += n_classes < n;
  t->n_nodes += n;
  t->n_classes += n_classes;
}

static void a_best_split_is_left(void **state) {
  (void)state;
  static random_problem r;
  const uint32_t n_seeds = sample_of(200, 50);
  for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++) {
    const family *f = &FAMILIES[i];
    tally t = {0};
    psplit_partition_options o;
    psplit_partition_options_init(&o);
    o.require_nonempty = f->nonempty;
    for (uint32_t seed = 0; seed < n_seeds; seed++)
      for (shape kind = 0; kind < N_SHAPES; kind++) {
        const uint32_t k = 2 + (seed * 5 + kind * 3) % (f->most_stages - 1);
        int64_t comm;
        make_random_problem(&r, 7000 + seed, kind, 2 + (seed * 7 + kind) % (f->most_nodes - 1), k,
                            f->features);
        if (f->nonempty && r.problem.any_device_order) continue; /* not supported */
        const int64_t best = best_by_enumeration(&r.problem, &o, &comm, NULL);
        if (best == INT64_MAX) continue;
        compare(f, &r, &o, best, best, seed, &t);
        compare(f, &r, &o, best, best + best / 2, seed, &t);
        compare(f, &r, &o, best, INT64_MAX, seed, &t);
      }
    /* Often enough to mean something. */
    print_message("# %s: %u of %u problems reduced, %u nodes to %u\n", f->name, t.n_reduced,
                  t.n_problems, t.n_nodes, t.n_classes);
    assert_true(t.n_reduced > t.n_problems / 20);
  }
}

/* 0 and 1 feed 2 and 3, which feed 4. Receiving both tensors, 2 alone is above the best bottleneck
 * (31); receiving one of them it is not. */
static void siblings_are_united(void **state) {
  (void)state;
  const int64_t time_ns[] = {3, 3, 20, 3, 29}, net_ns[] = {8, 8, 1, 1};
  const uint32_t producer[] = {0, 1, 2, 3}, off[] = {0, 2, 4, 5, 6};
  const uint32_t consumer[] = {2, 3, 2, 3, 4, 4};
  const psplit_device devices[] = {{.count = 2}};
  const psplit_problem problem =
    plain_problem(devices, 5, time_ns, 4, producer, off, consumer, net_ns);
  uint32_t class_of[5], n_classes;
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.require_nonempty = true;
  assert_int_equal(psplit_partition_reduce(&problem, &o, INT64_MAX, NULL, class_of, &n_classes),
                   PSPLIT_OK);
  assert_int_equal(class_of[2], class_of[3]);
  assert_int_not_equal(class_of[2], class_of[4]);
  o.objective = PSPLIT_LATENCY;
  assert_int_equal(psplit_partition_reduce(&problem, &o, INT64_MAX, NULL, class_of, &n_classes),
                   PSPLIT_UNSUPPORTED);
}

/* Branches of three nodes, of which each sends more than it receives, so that all of them join the
 * node that reads them; but that takes one branch a round, and with no work left there are no turns
 * beyond the first. */
static void a_limit_ends_the_turns(void **state) {
  (void)state;
  enum { BRANCHES = 100, N = 2 + 3 * BRANCHES, PINS = 4 * BRANCHES };
  int64_t time_ns[N], net_ns[N - 1];
  uint32_t producer[N - 1], off[N] = {0}, consumer[PINS], class_of[N], n_all, n_limited;
  uint32_t n_pins = 0;
  for (uint32_t v = 0; v < N; v++) time_ns[v] = 20;
  for (uint32_t v = 0; v < N - 1; v++) {
    producer[v] = v;
    net_ns[v] = 900 + 100 * (v == 0 ? 0 : 1 + (v - 1) % 3);
    for (uint32_t b = 0; v == 0 && b < BRANCHES; b++) consumer[n_pins++] = 1 + 3 * b;
    if (v > 0) consumer[n_pins++] = v % 3 ? v + 1 : N - 1;
    off[v + 1] = n_pins;
  }
  const psplit_device devices[] = {{.count = 2}};
  const psplit_problem problem =
    plain_problem(devices, N, time_ns, N - 1, producer, off, consumer, net_ns);
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.limit_by_work = true;
  o.time_limit_s = -1;
  assert_int_equal(psplit_partition_reduce(&problem, &o, INT64_MAX, NULL, class_of, &n_all),
                   PSPLIT_OK);
  o.time_limit_s = 0;
  assert_int_equal(psplit_partition_reduce(&problem, &o, INT64_MAX, NULL, class_of, &n_limited),
                   PSPLIT_OK);
  print_message("# %u classes without a limit, %u with none of the work\n", n_all, n_limited);
  assert_true(n_limited > n_all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_best_split_is_left),
    cmocka_unit_test(siblings_are_united),
    cmocka_unit_test(a_limit_ends_the_turns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
