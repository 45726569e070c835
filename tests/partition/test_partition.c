/* The partitioner's public face: the checker by hand-made numbers, errors, and the promise that
 * threads never change an answer. */
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
#include <time.h>

#include "../support/plain_problem.h"
#include "random_problem.h"
#include "random_proposer.h"

static psplit_partition_options defaults(void) {
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  return o;
}

/* a -> {b, c}, b -> d, c -> d; times 10, 20, 30, 40; a's tensor costs 3 to send and 5 to receive.
 */
static const int64_t kTimes[] = {10, 20, 30, 40};
static const uint32_t kProducer[] = {0, 1, 2}, kOff[] = {0, 2, 3, 4}, kConsumer[] = {1, 2, 3, 3};
static const int64_t kSend[] = {3, 7, 11}, kRecv[] = {5, 13, 17};

static psplit_problem diamond(const psplit_device *device) {
  psplit_problem p = plain_problem(device, 4, kTimes, 3, kProducer, kOff, kConsumer, kSend);
  p.net_recv_ns = kRecv;
  return p;
}

static void checker_counts_by_hand(void **state) {
  (void)state;
  const psplit_device three = {.count = 3};
  psplit_problem p = diamond(&three);
  psplit_partition_options o = defaults();
  psplit_diag diag = {0};
  psplit_solution *s;
  const uint32_t stage[] = {0, 1, 2, 2};
  assert_int_equal(psplit_partition_check(&p, &o, stage, NULL, NULL, NULL, &diag, &s), PSPLIT_OK);
  /* a goes to two stages: 2 * 3. b receives a and sends to d. c and d: a's and b's tensors. */
  assert_int_equal(s->stages[0].load_ns, 10 + 2 * 3);
  assert_int_equal(s->stages[1].load_ns, 20 + 5 + 7);
  assert_int_equal(s->stages[2].load_ns, 30 + 40 + 5 + 13);
  assert_int_equal(s->objective_ns, 88);
  assert_int_equal(s->comm_ns, 6 + 12 + 18);
  psplit_solution_destroy(s);
  p.comm = PSPLIT_COMM_SHARED;
  assert_int_equal(psplit_partition_check(&p, &o, stage, NULL, NULL, NULL, &diag, &s), PSPLIT_OK);
  assert_int_equal(s->stages[0].load_ns, 10 + 3);
  psplit_solution_destroy(s);
  p.overlap = true;
  assert_int_equal(psplit_partition_check(&p, &o, stage, NULL, NULL, NULL, &diag, &s), PSPLIT_OK);
  assert_int_equal(s->objective_ns, 70);
  psplit_solution_destroy(s);
  p.overlap = false;
  o.objective = PSPLIT_LATENCY; /* 13, then 32, then 88 */
  assert_int_equal(psplit_partition_check(&p, &o, stage, NULL, NULL, NULL, &diag, &s), PSPLIT_OK);
  assert_int_equal(s->objective_ns, 13 + 32 + 88);
  psplit_solution_destroy(s);
}

static void checker_finds_every_kind_of_violation(void **state) {
  (void)state;
  static const uint32_t good[] = {0, 0, 1, 1}, back[] = {1, 0, 1, 1}, far[] = {0, 0, 0, 9};
  static const uint32_t empty[] = {0, 0, 0, 0}, split[] = {0, 1, 1, 1};
  static const uint32_t pin[] = {PSPLIT_NONE, PSPLIT_NONE, 0, PSPLIT_NONE};
  static const uint32_t together[] = {5, 5, PSPLIT_NONE, PSPLIT_NONE};
  static const uint64_t bytes[] = {60, 60, 10, 10}, group[] = {50};
  static const uint32_t group_off[] = {0, 2}, users[] = {2, 3}, from[] = {2}, to[] = {3};
  static const uint32_t hop[] = {0, 0, 1, 0};
  static const uint64_t middle[] = {0, 10, 10, 0};
  static const uint8_t uncuttable[] = {PSPLIT_NET_UNCUTTABLE, 0, 0};
  const psplit_device two = {.count = 2}, small = {.count = 2, .memory_bytes = 100};
  const psplit_device tight = {.count = 2, .memory_bytes = 69};
  static const struct {
    const char *what;
    const uint32_t *stage;
    int variant;
    psplit_code code;
  } cases[] = {
    {"fine", good, 0, PSPLIT_OK},
    {"edge back", back, 0, PSPLIT_MISMATCH},
    {"no such stage", far, 0, PSPLIT_MISMATCH},
    {"empty stage", empty, 1, PSPLIT_MISMATCH},
    {"pinned", good, 2, PSPLIT_MISMATCH},
    {"together", split, 3, PSPLIT_MISMATCH},
    {"together, kept", good, 3, PSPLIT_OK},
    {"memory", good, 4, PSPLIT_MISMATCH},
    {"shared weight counts once", split, 5, PSPLIT_MISMATCH},
    {"uncuttable", good, 6, PSPLIT_MISMATCH},
    {"order edge", hop, 7, PSPLIT_MISMATCH},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_problem p = diamond(cases[i].variant == 4   ? &small
                               : cases[i].variant == 5 ? &tight
                                                       : &two);
    psplit_partition_options o = defaults();
    o.require_nonempty = cases[i].variant == 1;
    if (cases[i].variant == 2) p.pin = pin;
    if (cases[i].variant == 3) p.together = together;
    if (cases[i].variant == 4) p.weight_bytes = bytes;
    if (cases[i].variant == 5) {
      p.weight_bytes = middle;
      p.n_weights = 1, p.weight_group_bytes = group, p.weight_off = group_off,
      p.weight_user = users;
    }
    if (cases[i].variant == 6) p.net_flags = uncuttable;
    if (cases[i].variant == 7) {
      p.n_nets = 0;
      p.n_order = 1, p.order_from = from, p.order_to = to;
    }
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    const psplit_code code =
      psplit_partition_check(&p, &o, cases[i].stage, NULL, NULL, NULL, &diag, &s);
    if (code != cases[i].code)
      fail_msg("%s: %s %s", cases[i].what, psplit_code_name(code), diag.message);
    psplit_solution_destroy(s);
  }
}

static void invalid_problems_are_named(void **state) {
  (void)state;
  const psplit_device two = {.count = 2}, none = {.count = 0};
  static const int64_t negative[] = {1, -2, 3, 4}, huge[] = {INT64_MAX / 2, INT64_MAX / 2, 3, 4};
  static const uint32_t cyclic[] = {1, 2, 3, 0}, outside[] = {1, 2, 3, 7};
  for (int i = 0; i < 7; i++) {
    psplit_problem p = diamond(i == 0 ? &none : &two);
    psplit_partition_options o = defaults();
    psplit_code want = PSPLIT_INVALID;
    if (i == 0) want = PSPLIT_USAGE;
    if (i == 1) p.time_ns = negative;
    if (i == 2) p.time_ns = huge, want = PSPLIT_LIMIT;
    if (i == 3) p.net_consumer = cyclic;
    if (i == 4) p.net_consumer = outside;
    if (i == 5) o.solver = "magic", want = PSPLIT_USAGE;
    if (i == 6) p.n_nodes = 0;
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    const psplit_code code = psplit_partition_solve(&p, &o, &diag, &s);
    if (code != want || diag.message[0] == '\0' || s)
      fail_msg("case %d: %s %s", i, psplit_code_name(code), diag.message);
    if (i == 3) assert_non_null(strstr(diag.message, "cycle through node"));
  }
}

/* Numbers that no cost can be: refused by name wherever they may stand. */
static void impossible_numbers_are_refused(void **state) {
  (void)state;
  static const int64_t negative[] = {3, -7, 11}, huge[] = {3, INT64_MAX / 2, 11};
  static const uint64_t bytes[] = {8, 8, 8}, many[] = {UINT64_MAX, UINT64_MAX, 1, 1};
  static const uint32_t chain_of_order[] = {3, 0};
  const psplit_device two = {.count = 2};
  static const struct {
    const char *what;
    psplit_code code;
  } cases[] = {
    {"negative send", PSPLIT_INVALID},
    {"negative recv", PSPLIT_INVALID},
    {"huge send", PSPLIT_LIMIT},
    {"NaN bandwidth", PSPLIT_INVALID},
    {"negative bandwidth", PSPLIT_INVALID},
    {"negative latency", PSPLIT_INVALID},
    {"bytes overflow", PSPLIT_LIMIT},
    {"order edges make a cycle", PSPLIT_INVALID},
    {"NaN time limit", PSPLIT_USAGE},
    {"NaN gap", PSPLIT_USAGE},
    {"pin beyond the stages", PSPLIT_USAGE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_problem p = diamond(&two);
    psplit_partition_options o = defaults();
    psplit_link link = {.latency_ns = i == 5 ? -1 : 0,
                        .bytes_per_s = i == 3   ? strtod("nan", NULL)
                                       : i == 4 ? -1.0
                                                : 1e9};
    static const uint32_t pin[] = {PSPLIT_NONE, 2, PSPLIT_NONE, PSPLIT_NONE};
    if (i == 0) p.net_send_ns = negative;
    if (i == 1) p.net_recv_ns = negative;
    if (i == 2) p.net_send_ns = huge;
    if (i >= 3 && i <= 5) {
      p.net_send_ns = p.net_recv_ns = NULL;
      p.net_bytes = bytes;
      p.links = &link;
    }
    if (i == 6) p.weight_bytes = many;
    if (i == 7) p.n_order = 1, p.order_from = chain_of_order, p.order_to = chain_of_order + 1;
    if (i == 8) o.time_limit_s = strtod("nan", NULL);
    if (i == 9) o.gap_frac = strtod("nan", NULL);
    if (i == 10) p.pin = pin;
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    const psplit_code code = psplit_partition_solve(&p, &o, &diag, &s);
    if (code != cases[i].code || diag.message[0] == '\0' || s)
      fail_msg("%s: %s %s", cases[i].what, psplit_code_name(code), diag.message);
  }
}

/* Nothing is read through offsets that lead out of their array, nor from one that is not there. */
static void arrays_are_checked_before_they_are_read(void **state) {
  (void)state;
  static const uint32_t up_and_down[] = {0, 1u << 30, 2, 4}, down_to_none[] = {0, 4, 0, 0},
                        later[] = {1, 2, 3, 4}, one[] = {0}, two_users[] = {0, 1},
                        user_off[] = {0, 2}, from_one[] = {1, 2};
  static const uint64_t bytes[] = {8};
  const psplit_device two = {.count = 2};
  static const struct {
    const char *what, *says;
    psplit_code code;
  } cases[] = {
    {"net offsets that rise too far", "net 1: offsets decrease", PSPLIT_INVALID},
    {"net offsets without consumers", "net 1: offsets decrease", PSPLIT_INVALID},
    {"net offsets that begin later", "net offsets begin at 1", PSPLIT_INVALID},
    {"order without its ends", "order_to", PSPLIT_USAGE},
    {"weights without bytes", "weight_group_bytes", PSPLIT_USAGE},
    {"weights without offsets", "weight_off", PSPLIT_USAGE},
    {"weights without users", "weight_user", PSPLIT_USAGE},
    {"weight offsets that begin later", "weight offsets begin at 1", PSPLIT_INVALID},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_problem p = diamond(&two);
    const psplit_partition_options o = defaults();
    if (i == 0) p.net_off = up_and_down;
    if (i == 1) p.net_off = down_to_none, p.net_consumer = NULL;
    if (i == 2) p.net_off = later;
    if (i == 3) p.n_order = 1, p.order_from = one;
    if (i > 3) {
      p.n_weights = 1;
      p.weight_group_bytes = i == 4 ? NULL : bytes;
      p.weight_off = i == 5 ? NULL : i == 7 ? from_one : user_off;
      p.weight_user = i == 6 ? NULL : two_users;
    }
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    const psplit_code code = psplit_partition_solve(&p, &o, &diag, &s);
    if (code != cases[i].code || !strstr(diag.message, cases[i].says) || s)
      fail_msg("%s: %s %s", cases[i].what, psplit_code_name(code), diag.message);
  }
}

/* More devices than nodes is no error where devices may stay empty. */
static void more_stages_than_nodes_leave_some_empty(void **state) {
  (void)state;
  const psplit_device nine = {.count = 9};
  const psplit_problem p = diamond(&nine);
  const psplit_partition_options o = defaults();
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  if (psplit_partition_solve(&p, &o, &diag, &s) != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_true(s->proved_optimal && s->n_stages == 9);
  psplit_solution_destroy(s);
}

/* The most stages that there may be, for four nodes: what a stage without nodes costs is little. In
 * the second problem memory, a pin and what is sent leave the bound to the exact program. */
static void stages_without_nodes_cost_little(void **state) {
  (void)state;
  static const int64_t times[] = {1500, 400, 4100, 7000}, ns[] = {9000, 3100, 2400};
  static const uint32_t producer[] = {0, 2, 0}, off[] = {0, 1, 2, 5}, consumer[] = {2, 3, 1, 2, 3},
                        pin[] = {PSPLIT_NONE, PSPLIT_NONE, 0, PSPLIT_NONE};
  const psplit_device most = {.count = 65535};
  const psplit_problem apart = diamond(&most);
  psplit_problem pinned = plain_problem(&most, 4, times, 3, producer, off, consumer, ns);
  pinned.pin = pin;
  for (int i = 0; i < 3; i++) {
    psplit_partition_options o = defaults();
    if (i == 1) o.chunks = 2;
    o.n_threads = 1;
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    const clock_t start = clock();
    const psplit_code code = psplit_partition_solve(i == 2 ? &pinned : &apart, &o, &diag, &s);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (code != PSPLIT_OK || !s->proved_optimal) fail_msg("case %d: %s", i, diag.message);
    if (seconds > 6) fail_msg("case %d: %.1f s of CPU", i, seconds); /* 0.1; sanitizers: slow */
    psplit_solution_destroy(s);
  }
}

/* Links between copies so slow that no integer has what they take: then there are no copies, and
 * weights without a byte take nothing. */
static void copies_that_take_for_ever_are_none(void **state) {
  (void)state;
  static const uint64_t bytes[] = {943883, 1, 0, 1000};
  static const double bytes_per_s[] = {1e-9, 1e-320, 1e-9, 1e-320};
  const psplit_device two = {.count = 2};
  psplit_problem p = diamond(&two);
  for (int i = 0; i < 4; i++) {
    psplit_partition_options o = defaults();
    o.max_replicas = 2;
    o.sync_bytes_per_s = bytes_per_s[i];
    p.weight_bytes = i < 2 ? bytes : NULL;
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    if (psplit_partition_solve(&p, &o, &diag, &s) != PSPLIT_OK) fail_msg("%d: %s", i, diag.message);
    /* Alone all take 100, in two copies 50. */
    if (i < 2 ? s->objective_ns <= 50 : s->objective_ns != 50)
      fail_msg("%d: %" PRId64, i, s->objective_ns);
    psplit_solution_destroy(s);
  }
}

static void infeasible_says_what_would_do(void **state) {
  (void)state;
  static const uint64_t bytes[] = {60, 60, 60, 60};
  psplit_device device = {.count = 2, .memory_bytes = 70};
  psplit_problem p = diamond(&device);
  p.weight_bytes = bytes;
  psplit_partition_options o = defaults();
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  assert_int_equal(psplit_partition_solve(&p, &o, &diag, &s), PSPLIT_INFEASIBLE);
  assert_non_null(strstr(diag.message, "4 stages would fit"));
  device.memory_bytes = 50;
  diag = (psplit_diag){0};
  assert_int_equal(psplit_partition_solve(&p, &o, &diag, &s), PSPLIT_INFEASIBLE);
  assert_non_null(strstr(diag.message, "no number of stages helps"));
  device = (psplit_device){.count = 5};
  o.require_nonempty = true;
  diag = (psplit_diag){0};
  assert_int_equal(psplit_partition_solve(&p, &o, &diag, &s), PSPLIT_INFEASIBLE);
  assert_non_null(strstr(diag.message, "at most 4"));
}

/* Layers of 20 nodes, each fed by two of the layer before; bytes differ. Four devices with barely
 * the sum of all bytes: nobody knows quickly whether anything fits. */
static void memory_that_hardly_fits_takes_no_longer_than_allowed(void **state) {
  (void)state;
  enum { WIDTH = 20, N = 1200 };
  static int64_t time_ns[N], cost[N];
  static uint64_t bytes[N];
  static uint32_t producer[N], off[N + 1], consumer[2 * N];
  uint64_t sum = 0;
  uint32_t n_nets = 0;
  for (uint32_t v = 0; v < N; v++) {
    time_ns[v] = 100 + v * 7 % 31;
    cost[v] = 1 + v % 5;
    bytes[v] = 1000 + v * v % 977;
    sum += bytes[v];
    if (v + WIDTH >= N) continue;
    producer[n_nets] = v;
    const uint32_t next = (v / WIDTH + 1) * WIDTH;
    consumer[2 * n_nets] = next + v * 3 % WIDTH;
    consumer[2 * n_nets + 1] = next + (v * 3 + 1 + v % 7) % WIDTH;
    n_nets++;
    off[n_nets] = 2 * n_nets;
  }
  const psplit_device four = {.count = 4, .memory_bytes = sum / 4 + 1};
  psplit_problem p = plain_problem(&four, N, time_ns, n_nets, producer, off, consumer, cost);
  p.weight_bytes = bytes;
  for (int by_work = 0; by_work < 2; by_work++) {
    psplit_partition_options o = defaults();
    o.time_limit_s = 0.5;
    o.limit_by_work = by_work;
    o.n_threads = 1;
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    const clock_t start = clock();
    const psplit_code code = psplit_partition_solve(&p, &o, &diag, &s);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_true(code == PSPLIT_OK || (code == PSPLIT_INFEASIBLE && strstr(diag.message, "memory")));
    if (seconds > 30) fail_msg("%.1f s of CPU for a limit of 0.5", seconds); /* sanitizers: slow */
    psplit_solution_destroy(s);
  }
}

/* Wide enough that the exact program, several searches and ties all get to run. */
static void threads_never_change_the_answer(void **state) {
  (void)state;
  static random_problem r;
  for (uint64_t seed = 0; seed < 12; seed++) {
    const unsigned features = seed % 3 == 0 ? WITH_CLASSES : seed % 3 == 1 ? WITH_MEMORY : 0;
    make_random_problem(&r, seed, seed % 2 ? ANY_ORDER : LAYERED, 24, 3, features);
    if (features & WITH_MEMORY) r.devices[0].memory_bytes = 300;
    psplit_solution *first = NULL;
    for (uint32_t threads = 1; threads <= 8; threads *= 2) {
      psplit_partition_options o = defaults();
      o.n_threads = threads;
      o.noncontiguous = seed % 4 == 3;
      o.time_limit_s = -1;
      psplit_diag diag = {0};
      psplit_solution *s = NULL;
      if (psplit_partition_solve(&r.problem, &o, &diag, &s) != PSPLIT_OK)
        fail_msg("%s", diag.message);
      if (!first) {
        first = s;
        continue;
      }
      assert_int_equal(s->objective_ns, first->objective_ns);
      assert_int_equal(s->lower_bound_ns, first->lower_bound_ns);
      assert_string_equal(s->solver, first->solver);
      assert_memory_equal(s->stage, first->stage, s->n_nodes * sizeof *s->stage);
      psplit_solution_destroy(s);
    }
    psplit_solution_destroy(first);
  }
}

static void no_time_still_gives_a_split_and_a_bound(void **state) {
  (void)state;
  static random_problem r;
  for (uint64_t seed = 0; seed < 20; seed++) {
    make_random_problem(&r, seed, LAYERED, 40, 4, 0);
    psplit_partition_options o = defaults();
    o.time_limit_s = 0;
    o.noncontiguous = seed % 3 == 1;
    o.chunks = seed % 3 == 2 ? 2 : 1;
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    if (psplit_partition_solve(&r.problem, &o, &diag, &s) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    assert_true(s->lower_bound_ns <= s->objective_ns);
    psplit_solution_destroy(s);
  }
}

/* Layers of ten, each node fed by two of the layer before. A late one cannot run on the last three
 * of six devices, which leaves the first three hardly room for more than what it needs. */
static void no_time_still_obeys_devices(void **state) {
  (void)state;
  enum { WIDTH = 10, N = 100, CLASSES = 2 };
  int64_t time_ns[N * CLASSES], cost[2 * N];
  uint64_t bytes[N];
  uint32_t producer[N], off[N + 1] = {0}, consumer[2 * N], n_nets = 0;
  for (uint32_t v = 0; v < N; v++) {
    time_ns[CLASSES * v] = 100 + v * 7 % 31;
    time_ns[CLASSES * v + 1] = v == 93 ? PSPLIT_TIME_FORBIDDEN : 150 + v * 7 % 31;
    bytes[v] = 1000 + v * v % 977;
    if (v + WIDTH >= N) continue;
    const uint32_t next = (v / WIDTH + 1) * WIDTH;
    producer[n_nets] = v;
    cost[2 * n_nets] = cost[2 * n_nets + 1] = 1 + v % 5;
    consumer[2 * n_nets] = next + v * 3 % WIDTH;
    consumer[2 * n_nets + 1] = next + (v * 3 + 1 + v % 7) % WIDTH;
    n_nets++;
    off[n_nets] = 2 * n_nets;
  }
  const psplit_device devices[] = {{.count = 3, .memory_bytes = 41000},
                                   {.class_id = 1, .count = 3, .memory_bytes = 41000}};
  psplit_problem p = plain_problem(devices, N, time_ns, n_nets, producer, off, consumer, cost);
  p.n_devices = p.n_classes = CLASSES;
  p.weight_bytes = bytes;
  psplit_partition_options o = defaults();
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  o.time_limit_s = 0;
  if (psplit_partition_solve(&p, &o, &diag, &s) != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_true(s->lower_bound_ns <= s->objective_ns);
  psplit_solution_destroy(s);
}

static void every_solver_answers(void **state) {
  (void)state;
  static random_problem r;
  size_t n;
  const psplit_method *methods = psplit_partition_methods(&n);
  uint32_t n_asked = 0;
  for (size_t i = 0; i < n; i++) {
    if (!(methods[i].kind & PSPLIT_METHOD_OPTION)) continue;
    n_asked++;
    make_random_problem(&r, i, LAYERED, 40, 4, 0);
    psplit_partition_options o = defaults();
    const psplit_proposer proposer = random_proposer(2);
    o.solver = methods[i].name;
    if (strncmp(o.solver, "drlpp", 5) == 0) o.proposer = &proposer;
    if (strcmp(o.solver, "copies") == 0) o.max_replicas = 4;
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    if (psplit_partition_solve(&r.problem, &o, &diag, &s) != PSPLIT_OK)
      fail_msg("%s: %s", methods[i].name, diag.message);
    assert_true(s->lower_bound_ns <= s->objective_ns);
    psplit_solution_destroy(s);
  }
  assert_int_equal(n_asked, 12);
}

/* A name that is none, of the table or of a part that cannot be asked for alone, is refused with
 * those that there are. */
static void a_solver_that_is_none_is_refused_with_the_list(void **state) {
  (void)state;
  static random_problem r;
  make_random_problem(&r, 1, CHAIN, 6, 2, 0);
  static const char *const names[] = {"branch and bound", "node min cut", "Exact", "", NULL};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    psplit_partition_options o = defaults();
    o.solver = names[i];
    psplit_diag diag = {0};
    psplit_solution *s = NULL;
    assert_int_equal(psplit_partition_solve(&r.problem, &o, &diag, &s), PSPLIT_USAGE);
    size_t n;
    const psplit_method *methods = psplit_partition_methods(&n);
    for (size_t m = 0; m < n; m++)
      if (methods[m].kind & PSPLIT_METHOD_OPTION)
        assert_non_null(strstr(strstr(diag.message, "there are"), methods[m].name));
  }
}

static void count_lines(void *user, psplit_severity severity, const char *line) {
  assert_int_equal(severity, PSPLIT_WARNING);
  assert_non_null(strstr(line, "solver exact"));
  ++*(uint32_t *)user;
}

/* Who asks for the exact solver wants a proof, or one line that says what stopped it. */
static void the_exact_solver_proves_or_says_why_not(void **state) {
  (void)state;
  static random_problem r;
  uint32_t n_lines = 0, n_open = 0;
  const psplit_logger logger = {.emit = count_lines, .user = &n_lines};
  for (uint64_t seed = 0; seed < 30; seed++) {
    const bool large = seed % 3 == 0;
    make_random_problem(&r, seed, LAYERED, large ? 60 : 19, 2 + seed % 2, 0);
    psplit_partition_options o = defaults();
    o.solver = seed % 2 ? "exact" : "auto";
    o.logger = &logger;
    if (large) o.time_limit_s = 0;
    psplit_solution *s;
    const uint32_t before = n_lines;
    assert_int_equal(psplit_partition_solve(&r.problem, &o, NULL, &s), PSPLIT_OK);
    assert_int_equal(s->proved_optimal, s->unproved == NULL);
    assert_true(s->proved_optimal || large);
    assert_int_equal(n_lines - before, !s->proved_optimal && seed % 2 == 1);
    n_open += !s->proved_optimal;
    psplit_solution_destroy(s);
  }
  assert_true(n_lines > 0 && n_open > n_lines);
}

/* A chain of 25 equal layers on six devices: one of them holds five, whatever the total says. Too
 * large for branch and bound to hide what the bound alone can do. */
static void free_placement_is_bounded_by_what_fits_side_by_side(void **state) {
  (void)state;
  enum { N = 25 };
  int64_t time_ns[N], cost[N];
  uint32_t producer[N], off[N + 1] = {0}, consumer[N];
  for (uint32_t v = 0; v < N; v++) {
    time_ns[v] = 100, cost[v] = 1;
    producer[v] = v, consumer[v] = v + 1, off[v + 1] = v + 1;
  }
  const psplit_device six = {.count = 6};
  psplit_problem p = plain_problem(&six, N, time_ns, N - 1, producer, off, consumer, cost);
  p.comm = PSPLIT_COMM_SHARED;
  psplit_partition_options o = defaults();
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  o.noncontiguous = true;
  if (psplit_partition_solve(&p, &o, &diag, &s) != PSPLIT_OK) fail_msg("%s", diag.message);
  if (s->objective_ns > 502 || s->lower_bound_ns < 500) /* 417 by the total */
    fail_msg("value %" PRId64 ", bound %" PRId64, s->objective_ns, s->lower_bound_ns);
  psplit_solution_destroy(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(checker_counts_by_hand),
    cmocka_unit_test(checker_finds_every_kind_of_violation),
    cmocka_unit_test(invalid_problems_are_named),
    cmocka_unit_test(impossible_numbers_are_refused),
    cmocka_unit_test(arrays_are_checked_before_they_are_read),
    cmocka_unit_test(more_stages_than_nodes_leave_some_empty),
    cmocka_unit_test(stages_without_nodes_cost_little),
    cmocka_unit_test(copies_that_take_for_ever_are_none),
    cmocka_unit_test(infeasible_says_what_would_do),
    cmocka_unit_test(memory_that_hardly_fits_takes_no_longer_than_allowed),
    cmocka_unit_test(threads_never_change_the_answer),
    cmocka_unit_test(no_time_still_gives_a_split_and_a_bound),
    cmocka_unit_test(no_time_still_obeys_devices),
    cmocka_unit_test(every_solver_answers),
    cmocka_unit_test(the_exact_solver_proves_or_says_why_not),
    cmocka_unit_test(a_solver_that_is_none_is_refused_with_the_list),
    cmocka_unit_test(free_placement_is_bounded_by_what_fits_side_by_side),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
