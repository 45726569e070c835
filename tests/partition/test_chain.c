/* Why: a chain has an optimum that a small program finds, so a gap on one is a fault at any size;
 * and what the solver says it has proved must be that optimum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/partition.h>
#include <stdlib.h>
#include <string.h>

#include "../support/plain_problem.h"
#include "draws.h"

enum { MOST = 20000, ROUNDS = 600 };

static int64_t time_ns[MOST], send_ns[2 * MOST], recv_ns[2 * MOST];
static uint32_t producer[2 * MOST], off[2 * MOST + 1], consumer[2 * MOST];
static psplit_device device;
/* Tensors from each node to the next, two of them now and then, of which one may be cheap to
 * receive and the other to send. */
static psplit_problem make(uint32_t n, uint32_t n_stages, uint64_t dear) {
  uint32_t n_nets = 0;
  for (uint32_t v = 0; v < n; v++) time_ns[v] = draw(v % 7 == 0 ? 100 : 20);
  for (uint32_t v = 0; v + 1 < n; v++)
    for (uint64_t copies = 1 + (draw(4) == 0); copies > 0; copies--) {
      producer[n_nets] = v;
      consumer[n_nets] = v + 1;
      send_ns[n_nets] = draw(dear);
      recv_ns[n_nets++] = draw(dear);
      off[n_nets] = n_nets;
    }
  device = (psplit_device){.count = n_stages};
  psplit_problem p = plain_problem(&device, n, time_ns, n_nets, producer, off, consumer, send_ns);
  p.net_recv_ns = recv_ns;
  return p;
}

static int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }

/* By dynamic programming over all cuts, O(n^2 stages). */
static int64_t best_of_all(const psplit_problem *p) {
  enum { SMALL = 64 };
  static int64_t best[SMALL + 1][SMALL + 1];
  const uint32_t n = p->n_nodes;
  for (uint32_t j = 0; j <= device.count; j++)
    for (uint32_t b = 0; b <= n; b++) {
      best[j][b] = b == 0 ? 0 : INT64_MAX;
      int64_t compute = 0;
      for (uint32_t a = b; j > 0 && a-- > 0;) {
        int64_t recv = 0, send = 0;
        compute += p->time_ns[a];
        for (uint32_t e = 0; e < p->n_nets; e++) {
          if (p->net_consumer[e] == a) recv += p->net_recv_ns[e];
          if (p->net_producer[e] + 1 == b && b < n) send += p->net_send_ns[e];
        }
        const int64_t load =
          p->overlap ? largest(compute, largest(recv, send)) : compute + recv + send;
        const int64_t value = largest(best[j - 1][a], load);
        if (value < best[j][b]) best[j][b] = value;
      }
    }
  return best[device.count][n];
}

static psplit_solution *solve(const psplit_problem *p, bool nonempty) {
  psplit_partition_options options;
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  psplit_partition_options_init(&options);
  options.require_nonempty = nonempty;
  options.n_threads = 1;
  if (psplit_partition_solve(p, &options, &diag, &s) != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_true(s->proved_optimal);
  assert_int_equal(s->objective_ns, s->lower_bound_ns);
  return s;
}

static void small_chains_are_cut_best(void **unused) {
  (void)unused;
  uint32_t n_by_probing = 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    draw_state = round;
    psplit_problem p = make(2 + round % 40, 1 + round % 9, round % 3 == 0 ? 2 : 1 + round % 60);
    p.overlap = round % 5 == 0;
    p.comm = round % 2 ? PSPLIT_COMM_P2P : PSPLIT_COMM_SHARED;
    psplit_solution *s = solve(&p, false);
    assert_int_equal(s->objective_ns, best_of_all(&p));
    n_by_probing += strcmp(s->bound, "chain") == 0;
    psplit_solution_destroy(s);
  }
  assert_true(n_by_probing > ROUNDS / 3);
}

static void long_chains_are_proved(void **unused) {
  (void)unused;
  for (uint32_t round = 0; round < 6; round++) {
    draw_state = 77 + round;
    psplit_problem p = make(round % 2 ? 17000 : MOST - 1, round < 2 ? 256 : 3 + 16 * round, 30);
    psplit_solution *s = solve(&p, round % 3 == 0);
    for (uint32_t k = 0; round % 3 == 0 && k < s->n_stages; k++)
      assert_true(s->stages[k].n_nodes > 0);
    psplit_solution_destroy(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(small_chains_are_cut_best),
    cmocka_unit_test(long_chains_are_proved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
