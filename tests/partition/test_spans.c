/* Spans between separators: what a solver says that goes from one to the next, its bound and its
 * split, against optima of random graphs with separators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../support/sample.h"
#include "draws.h"
#include "result.h"
#include "span.h"
#include "span_row.h"

enum { MOST = 256, MOST_NETS = 4 * MOST, ROUNDS = 80 };

static int64_t time_ns[MOST], send_ns[MOST_NETS], recv_ns[MOST_NETS];
static uint32_t producer[MOST_NETS], off[MOST_NETS + 1], consumer[16 * MOST];
static psplit_device device;

typedef struct graph {
  uint32_t n, n_nets, n_pins;
} graph;

static uint32_t add_node(graph *g, int64_t ns) {
  time_ns[g->n] = ns;
  return g->n++;
}

/* The tensor of `from` to the last of some nodes, and to those of them that are drawn. */
static void add_net(graph *g, uint32_t from, uint32_t first, uint32_t end, uint64_t dear) {
  producer[g->n_nets] = from;
  send_ns[g->n_nets] = draw(dear);
  recv_ns[g->n_nets++] = draw(dear);
  for (uint32_t v = first; v < end; v++)
    if (v + 1 == end || draw(2)) consumer[g->n_pins++] = v;
  off[g->n_nets] = g->n_pins;
}

/* Blocks between separators, of nodes that read some of those in front of them in their block; all
 * alike but for some, where `alike`; now and then a tensor jumps over a separator. */
static psplit_problem make(uint64_t seed, uint32_t n_blocks, uint32_t n_inside, uint64_t dear,
                           bool alike, bool jumps, uint32_t n_stages) {
  graph g = {0};
  uint32_t a = add_node(&g, 40);
  for (uint32_t k = 0; k < n_blocks; k++) {
    draw_state = alike ? seed : seed * 31 + k;
    const uint32_t first = g.n, z = first + n_inside;
    for (uint32_t i = 0; i < n_inside; i++) add_node(&g, 90 + 10 * draw(21));
    add_node(&g, 40);
    add_net(&g, a, first, z, dear);
    for (uint32_t v = first; v < z; v++) add_net(&g, v, v + 1, z + 1, dear);
    /* z waits for all, and all wait for a. */
    for (uint32_t v = first; v < z; v++) {
      producer[g.n_nets] = a;
      consumer[g.n_pins++] = v;
      send_ns[g.n_nets] = recv_ns[g.n_nets] = 0;
      off[++g.n_nets] = g.n_pins;
      producer[g.n_nets] = v;
      consumer[g.n_pins++] = z;
      send_ns[g.n_nets] = recv_ns[g.n_nets] = 0;
      off[++g.n_nets] = g.n_pins;
    }
    if (jumps && k > 0 && draw(2)) {
      producer[g.n_nets] = a - 1;
      consumer[g.n_pins++] = first;
      send_ns[g.n_nets] = recv_ns[g.n_nets] = draw(dear);
      off[++g.n_nets] = g.n_pins;
    }
    a = z;
  }
  device = (psplit_device){.count = n_stages};
  return (psplit_problem){.n_nodes = g.n,
                          .n_classes = 1,
                          .time_ns = time_ns,
                          .n_nets = g.n_nets,
                          .net_producer = producer,
                          .net_off = off,
                          .net_consumer = consumer,
                          .net_send_ns = send_ns,
                          .net_recv_ns = recv_ns,
                          .n_devices = 1,
                          .devices = &device,
                          .ticks_per_unit = 1};
}

/* --- the whole row --- */

/* Of the state's instance, by the exact program alone, from its best split on. */
static int64_t optimum_of(psplit_i_solver_state *a) {
  int64_t best = a->best.value;
  for (psplit_i_verdict verdict = PSPLIT_I_YES; verdict == PSPLIT_I_YES;) {
    const psplit_i_exact_options options = {
      .limit = best - 1, .max_steps = UINT64_MAX, .memory_bytes = 1 << 28, .n_threads = 1};
    assert_int_equal(psplit_i_exact(&a->instance, &a->automaton, &(psplit_i_weight_axis){0},
                                    &options, &a->trial, &verdict),
                     PSPLIT_OK);
    assert_int_not_equal(verdict, PSPLIT_I_UNKNOWN);
    if (verdict == PSPLIT_I_YES) best = a->trial.value;
  }
  return best;
}

/* A split that is none of the best: as many clusters in each stage. */
static void divide_evenly(psplit_i_solver_state *a) {
  const uint32_t n = a->instance.n, n_stages = a->instance.n_stages;
  for (uint32_t i = 0; i < n; i++) a->trial.stage[i] = i * n_stages / n;
  for (uint32_t s = 0; s < n_stages; s++) {
    a->trial.device[s] = 0;
    a->trial.replicas[s] = 1;
  }
  psplit_i_assignment_evaluate(&a->trial, &a->instance, &a->automaton, a->scratch);
  psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_SEARCH);
}

static uint32_t n_asked, n_raised, n_improved, n_close;

static void ask_row(const psplit_problem *p, uint32_t round) {
  psplit_partition_options options;
  psplit_diag diag = {0};
  psplit_i_arena arena;
  psplit_i_budget budget = psplit_i_budget_unlimited();
  psplit_i_result result;
  psplit_partition_options_init(&options);
  options.n_threads = 1;
  psplit_i_arena_init(&arena, 0);
  const psplit_i_solver_request request = {
    .problem = p, .options = &options, .budget = &budget, .arena = &arena, .diag = &diag};
  psplit_i_solver_state a = {.request = &request, .result = &result};
  assert_int_equal(psplit_i_result_init(&result, &request), PSPLIT_OK);
  result.value = PSPLIT_I_INF;
  result.bound = 0;
  assert_int_equal(psplit_i_state_init(&a), PSPLIT_OK);
  divide_evenly(&a);   /* limits above the optimum are asked for, too */
  a.recombined = true; /* what splits there are is to come from spans */
  const int64_t first = a.best.value, best = optimum_of(&a);
  assert_int_equal(psplit_i_spans_turn(&a, &(psplit_i_turn){0}), PSPLIT_OK);
  if (result.bound > best || a.best.value < best)
    fail_msg("round %u: bound %lld, value %lld, but %lld is the optimum", round,
             (long long)result.bound, (long long)a.best.value, (long long)best);
  n_asked++;
  n_raised += result.bound > 0;
  n_improved += a.best.value < first;
  n_close += result.bound > 0 && a.best.value - result.bound <= a.best.value / 100;
  psplit_i_state_fini(&a);
  psplit_i_arena_fini(&arena);
}

static void bounds_and_splits_hold_for_optima(void **state) {
  (void)state;
  n_asked = n_raised = n_improved = n_close = 0;
  for (uint32_t round = 0; round < sample_of(ROUNDS, 100); round++) {
    psplit_problem p = make(round, 24 + round % 5, 2 + round % 3, 2 + round % 4 * 80,
                            round % 2 == 0, round % 8 == 7, 22 + round % 6);
    p.comm = round % 3 ? PSPLIT_COMM_P2P : PSPLIT_COMM_SHARED;
    ask_row(&p, round);
  }
  assert_true(n_raised >= n_asked / 3);
  assert_true(n_improved >= n_asked / 3);
  assert_true(n_close >= n_asked / 4);
}

/* --- one span --- */

enum { MOST_INSIDE = 8 };

/* The loads of stages of a span, counted from the last. */
static void add_loads(const psplit_problem *p, const uint32_t *stage, int64_t *io_load) {
  for (uint32_t v = 0; v < p->n_nodes; v++) io_load[stage[v]] += p->time_ns[v];
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t from = stage[p->net_producer[e]];
    uint32_t n = 0;
    bool receives[MOST_INSIDE] = {false};
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
      if (stage[p->net_consumer[k]] != from) receives[stage[p->net_consumer[k]]] = true;
    for (uint32_t s = 0; s < from; s++)
      if (receives[s]) io_load[s] += p->net_recv_ns[e], n++;
    io_load[from] += p->net_send_ns[e] * (p->comm == PSPLIT_COMM_P2P || n == 0 ? n : 1);
  }
}

static bool is_in_order(const psplit_problem *p, const uint32_t *stage) {
  bool in_order = true;
  for (uint32_t k = 0; k < p->n_order; k++)
    in_order = in_order && stage[p->order_from[k]] >= stage[p->order_to[k]];
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
      in_order = in_order && stage[p->net_producer[e]] >= stage[p->net_consumer[k]];
  return in_order;
}

/* What the stage of the first node takes at least, of all splits of the span; INF: of none. */
static int64_t enumerate(const psplit_problem *p, psplit_i_span_question question) {
  uint32_t stage[MOST_INSIDE + 2] = {0};
  int64_t best = PSPLIT_I_INF;
  for (bool more = true; more;) {
    int64_t load[MOST_INSIDE] = {question.load};
    if (is_in_order(p, stage)) {
      bool fits = true;
      add_loads(p, stage, load);
      for (uint32_t s = 0; s <= question.most; s++) fits = fits && load[s] <= question.limit;
      if (fits && load[stage[0]] < best) best = load[stage[0]];
    }
    uint32_t v = 0;
    while (v + 1 < p->n_nodes && stage[v] == question.most) stage[v++] = 0;
    more = v + 1 < p->n_nodes; /* the last node is in the last stage */
    stage[v]++;
  }
  return best;
}

static uint32_t n_decided;

/* Asks until no more is told, below what a stage less leaves. */
static void ask_span(psplit_i_spans *spans, uint32_t k, psplit_i_span_question question,
                     int64_t cap, int64_t best) {
  for (int i = 0; i < 100; i++) {
    const psplit_i_span_answer *found = psplit_i_span_found(spans, k, question);
    const int64_t least = psplit_i_span_least(spans, k, question);
    if (least > best || (found && found->found < best))
      fail_msg(
        "span %u, limit %lld, load %lld, %u stages: no less than %lld, found %lld, but "
        "%lld is the least",
        k, (long long)question.limit, (long long)question.load, question.most, (long long)least,
        found ? (long long)found->found : -1, (long long)best);
    if (psplit_i_span_cost(spans, k, question, cap) == UINT64_MAX) break;
    assert_int_equal(psplit_i_span_ask(spans, k, question, cap), PSPLIT_OK);
  }
  if (best >= cap) return;
  const psplit_i_span_answer *found = psplit_i_span_found(spans, k, question);
  assert_non_null(found);
  assert_int_equal(found->found, best);
  n_decided++;
}

/* All numbers of stages, as a row asks for them. */
static void ask_stages(psplit_i_spans *spans, uint32_t k, int64_t limit, int64_t load) {
  const psplit_i_span *span = &spans->span[k];
  int64_t cap = limit + 1;
  if (load + span->work < cap) cap = load + span->work;
  for (uint32_t most = 1; most < 4; most++) {
    const psplit_i_span_question question = {limit, load, most};
    const int64_t best = enumerate(&span->problem, question);
    if (cap > span->least) ask_span(spans, k, question, cap, best);
    if (best < cap) cap = best;
  }
}

static void ask_spans(const psplit_problem *p) {
  psplit_partition_options options;
  psplit_diag diag = {0};
  psplit_i_budget budget = psplit_i_budget_unlimited();
  psplit_i_instance instance;
  psplit_i_spans spans;
  psplit_partition_options_init(&options);
  options.n_threads = 1;
  assert_int_equal(psplit_i_instance_init(&instance, p, NULL, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_spans_make(&instance, &options, 40, &budget, &spans), PSPLIT_OK);
  for (uint32_t k = 1; k < spans.n; k++) {
    if (spans.span[k].problem.n_nodes > MOST_INSIDE + 2) continue; /* the next block's besides */
    const int64_t work = spans.span[k].work;
    for (int64_t parts = 2; parts < 5; parts++)
      for (int64_t load = 0; load < 3; load++) ask_stages(&spans, k, work / parts + 60, load * 50);
  }
  psplit_i_spans_fini(&spans);
  psplit_i_instance_fini(&instance);
}

static void answers_hold_for_all_splits(void **state) {
  (void)state;
  const uint32_t n_rounds = sample_of(60, 10);
  n_decided = 0;
  for (uint32_t round = 0; round < n_rounds; round++) {
    psplit_problem p = make(1000 + round, 3, 4 + round % 3, 2 + round % 4 * 80, false, false, 8);
    p.comm = round % 3 ? PSPLIT_COMM_P2P : PSPLIT_COMM_SHARED;
    ask_spans(&p);
  }
  assert_true(n_decided >= n_rounds);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(bounds_and_splits_hold_for_optima),
    cmocka_unit_test(answers_hold_for_all_splits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
