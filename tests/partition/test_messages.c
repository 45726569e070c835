/* Messages: what one stage sends another travels in one, and its time counts once for the two. By
 * hand, in files, in the relaxation that the bounds read, and against an enumeration that shares
 * nothing with the checker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/plain_problem.h"
#include "all_splits.h"
#include "bed.h"
#include "exact.h"
#include "messages.h"
#include "node_cut.h"

/* Two tensors of 5 from node 0, of which node 2 reads both, and one from node 1. */
#define HEAD \
  "{\"format\": \"psplit-problem\", \"comm\": \"p2p\", \"message_latency\": \"per_pair\","
static const char kThree[] = HEAD
  " \"devices\": [{\"count\": 3}], \"links\": [{\"latency_ns\": 100, \"bytes_per_s\": 1e9}],"
  " \"nodes\": [{\"time_ns\": 1}, {\"time_ns\": 2}, {\"time_ns\": 4}],"
  " \"tensors\": [{\"producer\": 0, \"consumers\": [1, 2], \"bytes\": 5},"
  "               {\"producer\": 0, \"consumers\": [2], \"bytes\": 5},"
  "               {\"producer\": 1, \"consumers\": [2], \"send_ns\": 7, \"recv_ns\": 8},"
  "               {\"producer\": 1, \"consumers\": [2], \"recv_ns\": 1000, \"send_ns\": 0,"
  "                \"no_message\": true}]}";

static void expect_loads(const psplit_problem *p, const uint32_t *stage, const int64_t *recv,
                         const int64_t *send) {
  psplit_solution *s;
  psplit_diag diag = {0};
  if (psplit_partition_check(p, NULL, stage, NULL, NULL, NULL, &diag, &s) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  for (uint32_t k = 0; k < s->n_stages; k++) {
    assert_int_equal(s->stages[k].recv_ns, recv[k]);
    assert_int_equal(s->stages[k].send_ns, send[k]);
  }
  psplit_solution_destroy(s);
}

static void a_message_counts_once_for_a_pair_of_stages(void **state) {
  (void)state;
  psplit_problem *p = parsed_problem(kThree);
  /* 0 sends 1 a message with one tensor, 2 one with two; 1 sends 2 one. */
  expect_loads(p, (uint32_t[]){0, 1, 2}, (int64_t[]){0, 105, 110 + 108 + 1000},
               (int64_t[]){105 + 110, 107, 0});
  expect_loads(p, (uint32_t[]){0, 0, 1}, (int64_t[]){0, 100 + 10 + 8 + 1000, 0},
               (int64_t[]){100 + 10 + 7, 0, 0});
  /* Written and read again it is the same. */
  char *text;
  size_t n;
  psplit_diag diag = {0};
  psplit_problem *again = NULL;
  assert_int_equal(psplit_problem_format_json(p, &diag, &text, &n), PSPLIT_OK);
  assert_int_equal(psplit_problem_parse_json(text, n, "again", &diag, &again), PSPLIT_OK);
  expect_loads(again, (uint32_t[]){0, 1, 2}, (int64_t[]){0, 105, 110 + 108 + 1000},
               (int64_t[]){105 + 110, 107, 0});
  psplit_problem_destroy(again);
  free(text);
  psplit_problem_destroy(p);
}

static void by_shared_memory_a_stage_sends_one_message_and_receives_one(void **state) {
  (void)state;
  psplit_problem *p = parsed_problem(kThree), q = *p;
  q.comm = PSPLIT_COMM_SHARED;
  expect_loads(&q, (uint32_t[]){0, 1, 2}, (int64_t[]){0, 105, 100 + 10 + 8 + 1000},
               (int64_t[]){100 + 10, 107, 0});
  expect_loads(&q, (uint32_t[]){0, 0, 1}, (int64_t[]){0, 100 + 10 + 8 + 1000, 0},
               (int64_t[]){100 + 10 + 7, 0, 0});
  psplit_problem_destroy(p);
}

static void a_tensor_that_is_passed_on_is_part_of_two_messages(void **state) {
  (void)state;
  psplit_problem *p = parsed_problem(kThree), q = *p;
  static const uint32_t next[] = {PSPLIT_NONE, 1,           1,           PSPLIT_NONE, PSPLIT_NONE,
                                  2,           PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE};
  q.next_hop = next;
  expect_loads(&q, (uint32_t[]){0, 1, 2}, (int64_t[]){0, 110, 100 + 10 + 8 + 1000},
               (int64_t[]){110, 100 + 10 + 7, 0});
  psplit_problem_destroy(p);
}

static void what_messages_do_not_go_with_is_refused(void **state) {
  (void)state;
  psplit_problem *p = parsed_problem(kThree), q = *p;
  psplit_diag diag = {0};
  psplit_solution *s;
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.chunks = 2;
  diag = (psplit_diag){0};
  assert_int_equal(psplit_partition_solve(p, &o, &diag, &s), PSPLIT_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "one chunk"));
  const int64_t bad[] = {-1}, large[] = {INT64_C(1) << 59};
  q = *p;
  q.message_ns = bad;
  diag = (psplit_diag){0};
  assert_int_equal(psplit_partition_solve(&q, NULL, &diag, &s), PSPLIT_INVALID);
  assert_non_null(strstr(diag.message, "negative time of a message"));
  q.message_ns = large;
  assert_int_equal(psplit_partition_solve(&q, NULL, NULL, &s), PSPLIT_LIMIT);
  psplit_problem *none = NULL;
  static const char unknown[] =
    "{\"format\": \"psplit-problem\", \"message_latency\": \"once\", \"devices\": [{}],"
    " \"nodes\": [{\"time_ns\": 1}]}";
  diag = (psplit_diag){0};
  assert_int_equal(psplit_problem_parse_json(unknown, strlen(unknown), "test", &diag, &none),
                   PSPLIT_INVALID);
  assert_non_null(strstr(diag.message, "message_latency: must be"));
  psplit_problem_destroy(p);
}

/* --- the trunk --- */

static uint32_t trunk_of(const psplit_problem *p) {
  uint32_t n = 0;
  for (uint32_t e = 0; e < p->n_nets; e++) n += psplit_i_on_trunk(p, e);
  return n;
}

/* Blocks of two nodes beside a tensor that skips them: the trunk is what skips. */
static void the_trunk_of_residual_blocks_is_their_sum(void **state) {
  (void)state;
  enum { BLOCKS = 5, N = 3 * BLOCKS + 1 };
  uint32_t producer[N], off[N + 1] = {0}, consumer[2 * N];
  int64_t time[N], zero[N] = {0}, message[] = {10};
  psplit_device device = {.count = 3};
  uint32_t n_pins = 0;
  for (uint32_t v = 0; v < N; v++) {
    time[v] = 1;
    producer[v] = v;
    if (v + 1 < N) consumer[n_pins++] = v + 1;
    if (v % 3 == 0 && v + 3 < N) consumer[n_pins++] = v + 3;
    off[v + 1] = n_pins;
  }
  psplit_problem p = plain_problem(&device, N, time, N - 1, producer, off, consumer, zero);
  p.message_ns = message;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_messages_mark(&arena, NULL, &p), PSPLIT_OK);
  for (uint32_t e = 0; e < p.n_nets; e++) assert_int_equal(psplit_i_on_trunk(&p, e), e % 3 == 0);
  psplit_i_arena_fini(&arena);
}

/* --- ten nodes on four stages, by enumeration that shares nothing with the checker --- */

enum { N_NODES = 10, N_STAGES = 4 };

/* The largest load, or the latency. */
static int64_t value_of(const psplit_problem *p, const uint32_t *stage, bool latency) {
  const bool shared = p->comm == PSPLIT_COMM_SHARED;
  int64_t load[N_STAGES] = {0}, ready[N_STAGES] = {0}, value = 0;
  bool sends[N_STAGES] = {false}, receives[N_STAGES] = {false};
  bool arc[N_STAGES][N_STAGES] = {{false}}, message[N_STAGES][N_STAGES] = {{false}};
  for (uint32_t v = 0; v < p->n_nodes; v++) load[stage[v]] += p->time_ns[v];
  for (uint32_t n = 0; n < p->n_nets; n++) {
    const uint32_t from = stage[p->net_producer[n]];
    uint32_t met = UINT32_C(1) << from;
    for (uint32_t k = p->net_off[n]; k < p->net_off[n + 1]; k++) {
      const uint32_t to = stage[p->net_consumer[k]];
      if (met >> to & 1) continue;
      met |= UINT32_C(1) << to;
      arc[from][to] = true;
      message[from][to] |= !(p->net_flags[n] & PSPLIT_NET_NO_MESSAGE);
      if (!shared || (met & ~(UINT32_C(1) << to)) == UINT32_C(1) << from)
        load[from] += p->net_send_ns[n];
      load[to] += p->net_recv_ns[n];
    }
  }
  for (uint32_t from = 0; from < N_STAGES; from++)
    for (uint32_t to = 0; to < N_STAGES; to++)
      if (message[from][to]) {
        if (!shared || !sends[from]) load[from] += p->message_ns[0];
        if (!shared || !receives[to]) load[to] += p->message_ns[0];
        sends[from] = receives[to] = true;
      }
  for (uint32_t s = 0; s < N_STAGES; s++) {
    const int64_t end = load[s] + (latency ? ready[s] : 0);
    if (end > value) value = end;
    for (uint32_t to = s + 1; to < N_STAGES; to++)
      if (arc[s][to] && end > ready[to]) ready[to] = end;
  }
  return value;
}

static int64_t bottleneck_of(const psplit_problem *p, const uint32_t *stage, const void *unused) {
  (void)unused;
  return value_of(p, stage, false);
}

static int64_t latency_of(const psplit_problem *p, const uint32_t *stage, const void *unused) {
  (void)unused;
  return value_of(p, stage, true);
}

static int64_t best_of(const psplit_problem *p, bool latency) {
  return least_of_all_splits(p, N_STAGES, latency ? latency_of : bottleneck_of, NULL);
}

static void solves(const psplit_problem *p, psplit_partition_options o, const char *solver,
                   int64_t best, bool must_find, uint32_t *n_found, uint32_t seed) {
  psplit_diag diag = {0};
  psplit_solution *s;
  o.solver = solver;
  o.n_threads = 1;
  if (psplit_partition_solve(p, &o, &diag, &s) != PSPLIT_OK)
    fail_msg("seed %u: %s", seed, diag.message);
  if (s->lower_bound_ns > best || s->objective_ns < best ||
      (must_find && (s->objective_ns != best || !s->proved_optimal)))
    fail_msg("seed %u, %s: bound %lld (%s) <= optimum %lld <= value %lld (%s)", seed, solver,
             (long long)s->lower_bound_ns, s->bound, (long long)best, (long long)s->objective_ns,
             s->solver);
  *n_found += s->objective_ns == best;
  psplit_solution_destroy(s);
}

/* In no split does a net of the relaxation cost what its messages do not. */
static void expect_relaxed(const psplit_problem *p, uint32_t seed) {
  psplit_problem marked = *p, relaxed;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_messages_mark(&arena, NULL, &marked), PSPLIT_OK);
  assert_int_equal(psplit_i_messages_relax(&marked, &arena, &relaxed), PSPLIT_OK);
  for (uint32_t i = 0; i < 200; i++) {
    uint32_t stage[MAX_NODES] = {0};
    for (uint32_t v = 0; v < p->n_nodes; v++) {
      for (uint32_t n = 0; n < p->n_nets; n++)
        for (uint32_t k = p->net_off[n]; k < p->net_off[n + 1]; k++)
          if (p->net_consumer[k] == v && stage[p->net_producer[n]] > stage[v])
            stage[v] = stage[p->net_producer[n]];
      const uint64_t coin = psplit_i_splitmix64(seed * 1000 + i, v);
      if (coin % 3 == 0 && stage[v] + 1 < N_STAGES) stage[v]++;
    }
    psplit_solution *truth, *less;
    assert_int_equal(psplit_partition_check(p, NULL, stage, NULL, NULL, NULL, NULL, &truth),
                     PSPLIT_OK);
    assert_int_equal(psplit_partition_check(&relaxed, NULL, stage, NULL, NULL, NULL, NULL, &less),
                     PSPLIT_OK);
    assert_int_equal(truth->objective_ns, value_of(p, stage, false));
    for (uint32_t k = 0; k < N_STAGES; k++) {
      assert_true(less->stages[k].recv_ns <= truth->stages[k].recv_ns);
      assert_true(less->stages[k].send_ns <= truth->stages[k].send_ns);
    }
    psplit_solution_destroy(truth);
    psplit_solution_destroy(less);
  }
  psplit_i_arena_fini(&arena);
}

static void every_solver_values_messages(void **state) {
  (void)state;
  static random_problem r;
  uint32_t n_cases = 0, n_found[3] = {0}, n_trunk = 0;
  for (uint32_t seed = 0; seed < 12; seed++)
    for (shape kind = CHAIN; kind < ANY_ORDER; kind++) {
      make_random_problem(&r, 4000 + seed, kind, N_NODES, N_STAGES, WITH_MESSAGES);
      r.message_ns[0] = seed % 2 ? 5 : 60;
      psplit_partition_options o;
      psplit_partition_options_init(&o);
      o.objective = seed % 4 == 3 ? PSPLIT_LATENCY : PSPLIT_THROUGHPUT;
      o.time_limit_s = 0.2;
      psplit_problem p = r.problem;
      p.comm = seed < 6 ? PSPLIT_COMM_P2P : PSPLIT_COMM_SHARED;
      const int64_t best = best_of(&p, seed % 4 == 3);
      n_cases++;
      uint32_t n;
      solves(&p, o, "auto", best, true, &n, seed);
      solves(&p, o, "search", best, false, &n_found[0], seed);
      solves(&p, o, "anneal", best, false, &n_found[1], seed);
      solves(&p, o, "slice", best, false, &n_found[2], seed);
      expect_relaxed(&p, seed);
      psplit_i_arena arena;
      psplit_problem marked = p;
      psplit_i_arena_init(&arena, 0);
      assert_int_equal(psplit_i_messages_mark(&arena, NULL, &marked), PSPLIT_OK);
      assert_true(p.comm == PSPLIT_COMM_P2P || trunk_of(&marked) == 0);
      n_trunk += trunk_of(&marked) > 0;
      psplit_i_arena_fini(&arena);
    }
  print_message("# of %u optima search finds %u, annealing %u, slicing %u; %u with a trunk\n",
                n_cases, n_found[0], n_found[1], n_found[2], n_trunk);
  assert_true(n_found[0] > n_cases * 3 / 4 && n_trunk > n_cases / 4);
}

/* --- the exact program alone --- */

static psplit_i_verdict decide(const psplit_problem *p, int64_t limit) {
  psplit_partition_options o;
  psplit_problem marked = *p;
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_assignment split;
  psplit_i_weight_axis no_windows = {0};
  psplit_i_verdict verdict;
  psplit_i_arena arena;
  const psplit_i_exact_options options = {
    .limit = limit, .max_steps = UINT64_MAX, .memory_bytes = 1 << 28, .n_threads = 1};
  psplit_partition_options_init(&o);
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_messages_mark(&arena, NULL, &marked), PSPLIT_OK);
  assert_int_equal(psplit_i_instance_init(&instance, &marked, NULL, NULL), PSPLIT_OK);
  assert_int_equal(psplit_i_automaton_init(&automaton, &instance, &o, NULL), PSPLIT_OK);
  assert_true(psplit_i_exact_counts_messages(&instance, &automaton));
  assert_int_equal(psplit_i_assignment_init(&split, &instance, &arena), PSPLIT_OK);
  assert_int_equal(psplit_i_exact(&instance, &automaton, &no_windows, &options, &split, &verdict),
                   PSPLIT_OK);
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  psplit_i_arena_fini(&arena);
  return verdict;
}

/* YES at the best value and NO right below it: as many senders as a stage has time for, no more. */
static void expect_decided(const char *text, int64_t best) {
  psplit_problem *p = parsed_problem(text);
  assert_int_equal(best_of(p, false), best);
  assert_int_equal(decide(p, best), PSPLIT_I_YES);
  assert_int_equal(decide(p, best - 1), PSPLIT_I_NO);
  psplit_problem_destroy(p);
}

/* Problems in which only the messages that the last node receives bind. */
#define SENDERS_OF(devices, nodes, tensors)  \
  HEAD " \"devices\": [{\"count\": " devices \
       "}], \"links\": [{\"latency_ns\": 2," \
       " \"bytes_per_s\": 1e9}], \"nodes\": [" nodes "], \"tensors\": [" tensors "]}"
#define SENDERS(nodes, tensors) SENDERS_OF("4", nodes, tensors)
#define NODE(ns) "{\"time_ns\": " ns "}"
#define SENT(from, to) "{\"producer\": " from ", \"consumers\": [" to "], \"bytes\": 0}"

static void a_stage_receives_from_no_sender_too_many(void **state) {
  (void)state;
  /* Three of 10 that fill a stage each, and send one message to what reads all three. */
  expect_decided(SENDERS(NODE("10") "," NODE("10") "," NODE("10") "," NODE("10"),
                         SENT("0", "3") "," SENT("1", "3") "," SENT("2", "3")),
                 10 + 3 * 2);
  /* Two of them: the limit of one sender. */
  expect_decided(
    SENDERS(NODE("10") "," NODE("10") "," NODE("10"), SENT("0", "2") "," SENT("1", "2")),
    10 + 2 * 2);
  /* Two nodes a stage, which are one sender. */
  expect_decided(SENDERS(NODE("5") "," NODE("5") "," NODE("5") "," NODE("5") "," NODE("10"),
                         SENT("0", "4") "," SENT("1", "4") "," SENT("2", "4") "," SENT("3", "4")),
                 10 + 2 * 2);
}

/* The sender binds as well: its nodes send one message between them, and each of their receivers
 * gets one. */
static void a_stage_sends_one_message_for_all_its_nodes(void **state) {
  (void)state;
  expect_decided(
    SENDERS_OF("2", NODE("5") "," NODE("5") "," NODE("10"), SENT("0", "2") "," SENT("1", "2")),
    10 + 2);
  expect_decided(
    SENDERS_OF("3", NODE("5") "," NODE("5") "," NODE("12") "," NODE("12"),
               SENT("0", "2") "," SENT("1", "2") "," SENT("0", "3") "," SENT("1", "3")),
    10 + 2 * 2);
}

/* --- what messages take at least --- */

static int64_t simple_bound_of(const char *text) {
  psplit_problem *p = parsed_problem(text);
  psplit_partition_options o;
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_partition_options_init(&o);
  assert_int_equal(psplit_i_instance_init(&instance, p, NULL, NULL), PSPLIT_OK);
  assert_int_equal(psplit_i_automaton_init(&automaton, &instance, &o, NULL), PSPLIT_OK);
  const int64_t bound = psplit_i_simple_bound(&instance, &automaton);
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  psplit_problem_destroy(p);
  return bound;
}

/* Node 1 takes less than its tensor, which makes no message: with node 0 it would be what makes one
 * necessary. */
static void by_shared_memory_no_stage_sends_for_who_joins_it(void **state) {
  (void)state;
  static const char *const TENSORS[] = {
    "[{\"producer\": 0, \"consumers\": [1], \"send_ns\": 20, \"recv_ns\": 20, \"no_message\": "
    "true},"
    " {\"producer\": 1, \"consumers\": [2], \"send_ns\": 0, \"recv_ns\": 0}]",
    /* The same backwards: who receives. */
    "[{\"producer\": 0, \"consumers\": [1], \"send_ns\": 0, \"recv_ns\": 0},"
    " {\"producer\": 1, \"consumers\": [2], \"send_ns\": 20, \"recv_ns\": 20, \"no_message\": "
    "true}]"};
  for (int i = 0; i < 2; i++) {
    char text[1024];
    snprintf(
      text, sizeof text,
      "{\"format\": \"psplit-problem\", \"comm\": \"shared\", \"message_latency\": \"per_pair\","
      " \"devices\": [{\"count\": 2}], \"links\": [{\"latency_ns\": 100, \"bytes_per_s\": 1e9}],"
      " \"nodes\": [{\"time_ns\": 50}, {\"time_ns\": 1}, {\"time_ns\": 50}], \"tensors\": %s}",
      TENSORS[i]);
    psplit_problem *p = parsed_problem(text);
    psplit_solution *s;
    psplit_diag diag = {0};
    if (psplit_partition_solve(p, NULL, &diag, &s) != PSPLIT_OK) fail_msg("%s", diag.message);
    assert_int_equal(s->objective_ns, 71);
    assert_int_equal(s->lower_bound_ns, 71);
    psplit_solution_destroy(s);
    psplit_problem_destroy(p);
  }
}

static void all_stages_but_those_with_a_root_receive_a_message(void **state) {
  (void)state;
  /* Two branches that part and meet: of K stages K - 1 receive, and as many messages are sent. */
#define BRANCHES SENT("0", "1") "," SENT("0", "2") "," SENT("1", "3") "," SENT("2", "3")
  const char *two =
    SENDERS_OF("2", NODE("10") "," NODE("10") "," NODE("10") "," NODE("10"), BRANCHES);
  assert_int_equal(simple_bound_of(two), (40 + 2 * 2) / 2);
  const char *four = SENDERS(NODE("10") "," NODE("10") "," NODE("10") "," NODE("10"), BRANCHES);
  assert_int_equal(simple_bound_of(four), (40 + 3 * 2 * 2) / 4);
  expect_decided(four, 14);
  /* Two roots: two of three stages may receive nothing, but each sends the third something then. */
  const char *three =
    SENDERS_OF("3", NODE("9") "," NODE("9") "," NODE("9"), SENT("0", "2") "," SENT("1", "2"));
  assert_int_equal(simple_bound_of(three), (27 + 2 * 2 * 2 + 2) / 3 /* rounded up */);
  expect_decided(three, 13);
  /* Where messages both ways take longer than a stage, some stages are left empty. */
  const char *tiny = SENDERS_OF("2", NODE("1") "," NODE("1"), SENT("0", "1"));
  assert_int_equal(simple_bound_of(tiny), 1);
  expect_decided(tiny, 2);
}

/* Steps of a scan, each of which reads the input: hardly any downsets, in which the time limit
 * would go to annealing. */
static void narrow_graphs_are_decided_before_they_are_annealed(void **state) {
  (void)state;
  enum { STEPS = 4, NODES = 1 + 6 * STEPS, NETS = 10 * STEPS, DEVICES = 6 };
  static const uint32_t kPins[10][2] = {
    /* from and to the nodes of a step; 0 is the input */
    {0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {1, 5}, {4, 6}, {5, 6}, {0, 4}, {6, 7}};
  const psplit_device device = {.count = DEVICES};
  int64_t time_ns[NODES], net_ns[NETS] = {0};
  uint32_t producer[NETS], consumer[NETS], off[NETS + 1] = {0}, n = 0;
  for (uint32_t v = 0; v < NODES; v++) time_ns[v] = v ? 20 + 7 * v % 13 : 100;
  for (uint32_t e = 0; e < NETS; e++) {
    const uint32_t *pins = kPins[e % 10], step = 6 * (e / 10);
    if (step + pins[1] >= NODES) continue;
    producer[n] = pins[0] ? step + pins[0] : 0;
    consumer[n++] = step + pins[1];
    off[n] = n;
  }
  psplit_problem p = plain_problem(&device, NODES, time_ns, n, producer, off, consumer, net_ns);
  p.message_ns = (const int64_t[]){100};
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.limit_by_work = true;
  o.time_limit_s = 0.5;
  o.n_threads = 1;
  psplit_solution *s;
  assert_int_equal(psplit_partition_solve(&p, &o, NULL, &s), PSPLIT_OK);
  assert_true(s->proved_optimal);
  psplit_solution_destroy(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(by_shared_memory_no_stage_sends_for_who_joins_it),
    cmocka_unit_test(all_stages_but_those_with_a_root_receive_a_message),
    cmocka_unit_test(a_message_counts_once_for_a_pair_of_stages),
    cmocka_unit_test(by_shared_memory_a_stage_sends_one_message_and_receives_one),
    cmocka_unit_test(a_tensor_that_is_passed_on_is_part_of_two_messages),
    cmocka_unit_test(what_messages_do_not_go_with_is_refused),
    cmocka_unit_test(the_trunk_of_residual_blocks_is_their_sum),
    cmocka_unit_test(every_solver_values_messages),
    cmocka_unit_test(a_stage_receives_from_no_sender_too_many),
    cmocka_unit_test(a_stage_sends_one_message_for_all_its_nodes),
    cmocka_unit_test(narrow_graphs_are_decided_before_they_are_annealed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
