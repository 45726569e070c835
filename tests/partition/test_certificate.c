/* Why: a certificate is of a problem that others read, so what is written must be the problem; and
 * one over links that differ is of the problem with the least links, which no split may beat. What
 * certificates prove is tested from outside (certificates.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "least_links.h"
#include "random_problem.h"

enum { ROUNDS = 400 };

static random_problem made;

static void is_the_same(const psplit_problem *p) {
  psplit_diag diag = {0};
  char *text = NULL, *again = NULL;
  size_t n = 0, n_again = 0;
  psplit_problem *read = NULL;
  assert_int_equal(psplit_problem_format_json(p, &diag, &text, &n), PSPLIT_OK);
  if (psplit_problem_parse_json(text, n, "text", &diag, &read) != PSPLIT_OK)
    fail_msg("%s\n%s", diag.message, text);
  if (p->n_link_classes) { /* send and receive times are those of links */
    assert_int_equal(read->n_link_classes, p->n_link_classes);
    assert_memory_equal(read->device_link, p->device_link,
                        (size_t)p->n_devices * p->n_devices * sizeof *p->device_link);
    assert_memory_equal(read->net_link_ns, p->net_link_ns,
                        (size_t)p->n_nets * p->n_link_classes * sizeof *p->net_link_ns);
  } else {
    assert_int_equal(psplit_i_problem_digest(read), psplit_i_problem_digest(p));
  }
  assert_int_equal(read->comm, p->comm);
  assert_int_equal(read->overlap, p->overlap);
  for (uint32_t d = 0; d < p->n_devices; d++)
    assert_int_equal(read->devices[d].count, p->devices[d].count);
  assert_int_equal(psplit_problem_format_json(read, &diag, &again, &n_again), PSPLIT_OK);
  assert_string_equal(again, text);
  psplit_problem_destroy(read);
  free(text);
  free(again);
}

static void what_is_written_is_the_problem(void **state) {
  (void)state;
  const unsigned features = WITH_CLASSES | WITH_FREE_COMM | WITH_MEMORY | WITH_TWINS | WITH_PINS |
                            WITH_TOGETHER | WITH_OVERLAP | WITH_STASH | WITH_ALIKE | WITH_MESSAGES;
  for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
    make_random_problem(&made, seed, (shape)(seed % N_SHAPES), (uint32_t)(2 + seed % 12),
                        (uint32_t)(1 + seed % 4),
                        seed % 3 == 0   ? 0
                        : seed % 5 == 0 ? features | WITH_PAIRS
                                        : features);
    is_the_same(&made.problem);
  }
}

static void another_number_is_another_digest(void **state) {
  (void)state;
  make_random_problem(&made, 7, CHAIN, 6, 3, 0);
  const uint32_t before = psplit_i_problem_digest(&made.problem);
  made.time_ns[2]++;
  assert_int_not_equal(psplit_i_problem_digest(&made.problem), before);
}

static void the_checksum_is_that_of_zlib(void **state) {
  (void)state;
  assert_int_equal(psplit_i_crc32(0, "123456789", 9), 0xcbf43926);
  assert_int_equal(psplit_i_crc32(psplit_i_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
}

static void no_split_is_below_the_least_links(void **state) {
  (void)state;
  uint32_t n_told = 0, n_below = 0;
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
    psplit_diag diag = {0};
    psplit_i_arena arena;
    psplit_problem least;
    psplit_i_arena_init(&arena, 0);
    make_random_problem(
      &made, seed, (shape)(seed % N_SHAPES), 2 + seed % 4, 2 + seed % 2,
      WITH_PAIRS | (seed % 2 ? WITH_CLASSES | WITH_TWINS : 0) | (seed % 3 ? 0 : WITH_MESSAGES));
    if (made.problem.n_link_classes) {
      int64_t comm;
      assert_int_equal(psplit_i_least_links(&made.problem, &arena, &diag, &least), PSPLIT_OK);
      const int64_t most = best_by_enumeration(&made.problem, &options, &comm, NULL);
      const int64_t bound = best_by_enumeration(&least, &options, &comm, NULL);
      assert_true(bound <= most);
      n_told++;
      n_below += bound < most;
    }
    psplit_i_arena_fini(&arena);
  }
  assert_true(n_told > ROUNDS / 4);
  assert_true(n_below < n_told); /* else it is too weak to be of use */
}

static void what_no_certificate_knows_is_refused(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_partition_options options;
  psplit_solution *solution = NULL;
  char *text = NULL;
  size_t n;
  int64_t bound;
  psplit_partition_options_init(&options);
  make_random_problem(&made, 3, CHAIN, 5, 2, 0);
  assert_int_equal(psplit_partition_solve(&made.problem, &options, &diag, &solution), PSPLIT_OK);
  options.max_replicas = 2;
  assert_int_equal(
    psplit_certificate_make(&made.problem, &options, solution, &diag, &text, &n, &bound),
    PSPLIT_UNSUPPORTED);
  assert_null(text);
  psplit_solution_destroy(solution);
}

/* Pins keep apart what is too dear apart below a bound that is looked for. */
static void a_proof_is_looked_for_with_pins(void **state) {
  (void)state;
  uint32_t n_made = 0;
  for (uint64_t seed = 1; seed <= 3 * ROUNDS; seed++) {
    psplit_diag diag = {0};
    psplit_partition_options options;
    psplit_solution *solution = NULL;
    char *text = NULL;
    size_t n;
    int64_t bound;
    psplit_partition_options_init(&options);
    options.n_threads = 1;
    make_random_problem(&made, seed, (shape)(seed % N_SHAPES), 3 + (uint32_t)(seed % 5),
                        2 + (uint32_t)(seed % 3), WITH_PINS | (seed % 2 ? WITH_TWINS : 0));
    if (psplit_partition_solve(&made.problem, &options, &diag, &solution) != PSPLIT_OK) continue;
    diag = (psplit_diag){0};
    if (psplit_certificate_make(&made.problem, &options, solution, &diag, &text, &n, &bound) !=
        PSPLIT_OK)
      fail_msg("seed %u: %s", (unsigned)seed, diag.message);
    assert_true(bound <= solution->objective_ns);
    n_made++;
    free(text);
    psplit_solution_destroy(solution);
  }
  assert_true(n_made > ROUNDS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_written_is_the_problem),
    cmocka_unit_test(another_number_is_another_digest),
    cmocka_unit_test(the_checksum_is_that_of_zlib),
    cmocka_unit_test(no_split_is_below_the_least_links),
    cmocka_unit_test(what_no_certificate_knows_is_refused),
    cmocka_unit_test(a_proof_is_looked_for_with_pins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
