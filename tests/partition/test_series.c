/* Why: above 16,384 clusters the exact program has windows only where separators are close, and
 * what it says to have proved there must be the optimum that a small program finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/partition.h>

#include "../support/plain_problem.h"
#include "draws.h"

/* Diamonds in a row: a, b and c behind it, d behind those, which the next one's a reads. */
enum { DIAMOND = 4, CUTS = 5, MOST = 20000, ROUNDS = 4, NO_STAGES = 1000 };
enum { A, B, C, D };

static int64_t time_ns[MOST], net_ns[MOST];
static uint32_t producer[MOST], off[MOST + 1], consumer[2 * MOST];
static psplit_device device;

static psplit_problem make(uint32_t n_diamonds, uint32_t n_stages, uint64_t dear) {
  uint32_t n_nets = 0, n_pins = 0;
  for (uint32_t v = 0; v < n_diamonds * DIAMOND; v++) {
    const uint32_t kind = v % DIAMOND, first = v - kind;
    time_ns[v] = 1 + draw(kind == B ? 200 : 90);
    if (v + 1 == n_diamonds * DIAMOND) break;
    producer[n_nets] = v;
    net_ns[n_nets] = 1 + draw(dear);
    if (kind == A) consumer[n_pins++] = first + B;
    consumer[n_pins++] = kind == A ? first + C : kind == D ? v + 1 : first + D;
    off[++n_nets] = n_pins;
  }
  device = (psplit_device){.count = n_stages};
  return plain_problem(&device, n_diamonds * DIAMOND, time_ns, n_nets, producer, off, consumer,
                       net_ns);
}

/* What is in front of the k-th cut of a diamond in it, and whose tensors cross. */
static const uint32_t FRONT[CUTS][DIAMOND] = {
  {0, 0, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}, {1, 0, 1, 0}, {1, 1, 1, 0}};
static const uint32_t CROSSES[CUTS][DIAMOND] = {
  {0, 0, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}, {1, 0, 1, 0}, {0, 1, 1, 0}};

typedef struct cut {
  int64_t before, crosses; /* time in front of it; of tensors */
} cut;

static cut cut_at(int64_t before, uint32_t diamond, uint32_t k) {
  cut c = {.before = before};
  const uint32_t first = diamond * DIAMOND;
  if (k == 0 && diamond > 0) c.crosses = net_ns[first - 1];
  for (uint32_t v = 0; v < DIAMOND; v++) {
    c.before += FRONT[k][v] ? time_ns[first + v] : 0;
    c.crosses += CROSSES[k][v] ? net_ns[first + v] : 0;
  }
  return c;
}

/* Whether all stages can be within the limit, which is far above what a diamond takes: so no two
 * cuts are in one diamond. least[j]: of the cuts passed that j stages get in front of, the least of
 * what crosses without what is in front of it. */
static bool fits(uint32_t n_diamonds, int64_t limit) {
  static int64_t least[NO_STAGES];
  const uint32_t n_stages = (uint32_t)device.count;
  int64_t before = 0;
  for (uint32_t j = 0; j <= n_stages; j++) least[j] = j == 0 ? 0 : INT64_MAX / 2;
  for (uint32_t i = 0; i < n_diamonds; i++) {
    uint32_t stages[CUTS];
    cut cuts[CUTS];
    for (uint32_t k = 0; k < CUTS; k++) {
      cuts[k] = cut_at(before, i, k);
      stages[k] = NO_STAGES;
      for (uint32_t j = n_stages; j-- > 0;)
        if (cuts[k].before + cuts[k].crosses + least[j] <= limit) stages[k] = j + 1;
    }
    for (uint32_t k = 0; k < CUTS; k++)
      for (uint32_t j = stages[k]; j <= n_stages; j++)
        if (cuts[k].crosses - cuts[k].before < least[j])
          least[j] = cuts[k].crosses - cuts[k].before;
    for (uint32_t v = 0; v < DIAMOND; v++) before += time_ns[i * DIAMOND + v];
  }
  for (uint32_t j = 0; j < n_stages; j++)
    if (before + least[j] <= limit) return true;
  return false;
}

static int64_t least_limit(uint32_t n_diamonds) {
  int64_t low = 0, high = 0; /* does not fit; fits */
  for (uint32_t v = 0; v < n_diamonds * DIAMOND; v++) high += time_ns[v];
  low = high / device.count - 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (fits(n_diamonds, middle))
      high = middle;
    else
      low = middle;
  }
  return high;
}

static void long_rows_of_diamonds_are_proved(void **unused) {
  (void)unused;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    draw_state = 5 + round;
    const uint32_t n_diamonds = round % 2 ? MOST / DIAMOND : 4200;
    psplit_problem p = make(n_diamonds, 7 + 9 * round, 120);
    p.comm = round < 2 ? PSPLIT_COMM_P2P : PSPLIT_COMM_SHARED;
    psplit_partition_options options;
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    psplit_partition_options_init(&options);
    options.n_threads = 1;
    if (psplit_partition_solve(&p, &options, &diag, &s) != PSPLIT_OK) fail_msg("%s", diag.message);
    assert_true(s->proved_optimal);
    assert_int_equal(s->objective_ns, least_limit(n_diamonds));
    psplit_solution_destroy(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(long_rows_of_diamonds_are_proved)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
