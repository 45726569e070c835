/* Balls around clusters: however clusters are divided, each ball and whatever is packed of them say
 * no more than is cut, and no split is below what follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "ball_packing.h"
#include "balls.h"
#include "bounds.h"
#include "draws.h"
#include "pair_costs.h"
#include "sweep.h"

static const unsigned kFeatures[] = {
  0,          WITH_FREE_COMM, WITH_PINS | WITH_TOGETHER,
  WITH_TWINS, WITH_MEMORY,    WITH_STASH | WITH_TWINS,
  WITH_PAIRS,
};
enum {
  N_FEATURES = sizeof kFeatures / sizeof *kFeatures,
  MOST = 8,
  MOST_PAIRS = 2 * 28,
  MOST_NETS = 3,
  MOST_PINS = 4,
  MOST_ENDS = 2 * MOST_PAIRS + MOST_NETS * MOST_PINS * (MOST_PINS - 1)
};

/* A few clusters, some pairs of them twice, and small nets: each part that holds some pins of one,
 * and not all, pays half of `sides`. */
typedef struct few {
  psplit_i_pairs pairs;
  double weight[MOST], cost[MOST_ENDS], alone[MOST_ENDS], sides[MOST_NETS], total;
  uint32_t off[MOST + 1], to[MOST_ENDS], net[MOST_ENDS];
  uint32_t pins[MOST_NETS]; /* as bits */
} few;

static void draw_nets(few *f, uint32_t n) {
  for (uint32_t k = 0, asked = 1 + draw(MOST_NETS); n >= MOST_PINS && k < asked; k++) {
    for (const int n_pins = 3 + (int)draw(2); __builtin_popcount(f->pins[k]) < n_pins;)
      f->pins[k] |= 1u << draw(n);
    f->sides[k] = (double)(1 + draw(32)) / 8;
    f->pairs.n_nets++;
  }
}

static void put_end(few *f, uint32_t i, uint32_t to, double cost, double alone, uint32_t net) {
  const uint32_t l = f->off[i + 1]++;
  f->to[l] = to;
  f->cost[l] = cost;
  f->alone[l] = alone;
  f->net[l] = net;
}

/* Costs are an even share: a half or a quarter, for three or four pins. */
static void put_nets(few *f, uint32_t i) {
  for (uint32_t k = 0; k < f->pairs.n_nets; k++) {
    const int apart = 2 * (__builtin_popcount(f->pins[k]) - 2);
    for (uint32_t j = 0; (f->pins[k] >> i & 1) && j < MOST; j++)
      if (j != i && (f->pins[k] >> j & 1))
        put_end(f, i, j, f->sides[k] / apart, f->sides[k] / 2 / apart, k);
  }
}

static void draw_few(few *f, bool nets) {
  const uint32_t n = 2 + draw(MOST - 1);
  uint32_t times[MOST][MOST] = {{0}};
  double cost[MOST][MOST], alone[MOST][MOST];
  memset(f, 0, sizeof *f);
  for (uint32_t i = 0; i < n; i++) {
    f->weight[i] = draw(8) ? (double)(1 + draw(16)) / 8 : 0;
    f->total += f->weight[i];
    for (uint32_t j = 0; j < i; j++) {
      times[i][j] = times[j][i] = draw(2) + draw(2);
      cost[i][j] = cost[j][i] = (double)(1 + draw(32)) / 16;
      alone[i][j] = alone[j][i] = draw(3) ? (double)draw(16) / 16 : 0;
    }
  }
  if (nets) draw_nets(f, n);
  for (uint32_t i = 0; i < n; i++) {
    f->off[i + 1] = f->off[i];
    for (uint32_t j = 0; j < n; j++)
      for (uint32_t k = 0; i != j && k < times[i][j]; k++)
        put_end(f, i, j, cost[i][j], alone[i][j], PSPLIT_NONE);
    put_nets(f, i);
  }
  f->pairs = (psplit_i_pairs){.n = n,
                              .weight = f->weight,
                              .off = f->off,
                              .to = f->to,
                              .cost = f->cost,
                              .alone = f->alone,
                              .n_nets = f->pairs.n_nets,
                              .net = f->net,
                              .sides = f->sides};
}

/* What the part of a cluster weighs and pays. */
static double load_of(const few *f, const uint32_t *part, uint32_t which) {
  double load = 0;
  for (uint32_t i = 0; i < f->pairs.n; i++) {
    if (part[i] != which) continue;
    load += f->weight[i];
    for (uint32_t l = f->off[i]; l < f->off[i + 1]; l++)
      if (part[f->to[l]] != which) load += f->alone[l];
  }
  return load;
}

static double cut_of(const few *f, const uint32_t *part) {
  double cut = 0;
  for (uint32_t i = 0; i < f->pairs.n; i++)
    for (uint32_t l = f->off[i]; l < f->off[i + 1]; l++)
      if (part[f->to[l]] != part[i] && f->net[l] == PSPLIT_NONE) cut += f->cost[l] / 2;
  for (uint32_t k = 0; k < f->pairs.n_nets; k++) {
    uint32_t held = 0;
    for (uint32_t i = 0; i < f->pairs.n; i++)
      if (f->pins[k] >> i & 1) held |= 1u << part[i];
    if (held & (held - 1)) cut += f->sides[k] / 2 * __builtin_popcount(held);
  }
  return cut;
}

/* The next division, numbered by first clusters; false behind the last. */
static bool next_division(uint32_t *part, uint32_t n) {
  for (uint32_t i = n; i-- > 1;) {
    uint32_t most = 0;
    for (uint32_t k = 0; k < i; k++)
      if (part[k] > most) most = part[k];
    if (part[i] > most) continue;
    part[i]++;
    memset(part + i + 1, 0, (n - i - 1) * sizeof *part);
    return true;
  }
  return false;
}

/* The ball says of every division what it should, and its ratio is that of its clusters. */
static void check_ball(const few *f, psplit_i_balls *balls, uint32_t root, const double *length,
                       double most, double ratio) {
  uint32_t part[MOST] = {0};
  const double weight = psplit_i_ball_weigh(balls);
  double paths = 0;
  for (uint32_t k = 1; k < balls->n_ball; k++)
    paths += balls->behind[balls->order[k]] * length[balls->entry[balls->order[k]]];
  assert_true(fabs(paths - ratio * (weight - most)) < 1e-9);
  do {
    double cut = 0;
    for (uint32_t k = 1; k < balls->n_ball; k++) {
      const uint32_t i = balls->order[k];
      if (part[i] != part[balls->before[i]]) cut += balls->behind[i];
    }
    assert_true(cut >= weight - load_of(f, part, part[root]) - 1e-9);
  } while (next_division(part, f->pairs.n));
}

static void balls_hold_for_every_division(void **state) {
  (void)state;
  uint32_t n_balls = 0;
  const uint32_t n_asked = percent(200);
  for (uint32_t seed = 0; seed < n_asked; seed++) {
    few f;
    psplit_i_arena arena;
    psplit_i_ball_graph graph;
    psplit_i_balls balls;
    double length[MOST_PAIRS];
    draw_state = seed;
    draw_few(&f, seed % 2);
    psplit_i_arena_init(&arena, 0);
    assert_int_equal(psplit_i_ball_graph_make(&f.pairs, &arena, &graph), PSPLIT_OK);
    assert_int_equal(psplit_i_balls_init(&balls, &graph, &arena), PSPLIT_OK);
    for (uint32_t e = 0; e < graph.n_pairs; e++) length[e] = (double)(1 + draw(16)) / 16;
    const double most = f.total * (1 + draw(8)) / 10;
    for (uint32_t root = 0; root < f.pairs.n; root++) {
      const double ratio = psplit_i_ball_grow(&balls, root, length, most);
      if (!isfinite(ratio)) continue;
      check_ball(&f, &balls, root, length, most, ratio);
      n_balls++;
    }
    psplit_i_arena_fini(&arena);
  }
  assert_true(n_balls > 2 * n_asked);
}

static void no_division_cuts_less(void **state) {
  (void)state;
  uint32_t n_positive[2] = {0}, n_near[2] = {0}; /* without small nets, with some */
  const uint32_t n_asked = percent(200);
  for (uint32_t seed = 0; seed < 2 * n_asked; seed++) {
    few f;
    psplit_i_arena arena;
    psplit_i_packed packed;
    psplit_i_budget budget = psplit_i_budget_unlimited();
    uint32_t part[MOST] = {0};
    bool near = false;
    draw_state = seed / 2;
    draw_few(&f, seed % 2);
    const uint32_t n_parts = 2 + draw(3);
    psplit_i_arena_init(&arena, 0);
    assert_int_equal(
      psplit_i_pack_balls(&f.pairs, n_parts, f.total / n_parts, &budget, &arena, &packed),
      PSPLIT_OK);
    psplit_i_arena_fini(&arena);
    do {
      double most = 0;
      for (uint32_t i = 0; i < f.pairs.n; i++) {
        const double load = load_of(&f, part, part[i]);
        if (load > most) most = load;
      }
      const double cut = cut_of(&f, part), least = packed.weight - packed.balls * most;
      if (cut < least) fail_msg("seed %u: %f, and %f is cut", seed, least, cut);
      near |= least > 0.7 * cut && cut > 0;
    } while (next_division(part, f.pairs.n));
    n_positive[seed % 2] += packed.weight > 0;
    n_near[seed % 2] += near;
  }
  assert_true(n_positive[0] > n_asked / 3 && n_near[0] > n_asked / 5);
  assert_true(n_positive[1] > n_asked / 6 && n_near[1] > n_asked / 25);
}

/* Three of a net's four pins stay together, and two parts have no room for the fourth and half of
 * the work: so two parts pay 1 each, and T is 31. An even share of the net would be half of 1 for
 * each pair, and 30.7 what balls say. */
static void a_net_is_paid_for_as_a_whole(void **state) {
  (void)state;
  few f = {.weight = {10, 10, 10, 10, 20}, .pins = {15}, .sides = {2}, .pairs = {.n_nets = 1}};
  psplit_i_arena arena;
  psplit_i_packed packed;
  psplit_i_budget budget = psplit_i_budget_unlimited();
  for (uint32_t i = 0; i < MOST_PINS; i++) {
    f.off[i + 1] = f.off[i];
    for (uint32_t j = 0; j < 3; j++) /* the first three stay together */
      if (i < 3 && i != j) put_end(&f, i, j, 1000, 0, PSPLIT_NONE);
    put_nets(&f, i);
  }
  memset(f.alone, 0, sizeof f.alone);
  f.off[MOST_PINS + 1] = f.off[MOST_PINS];
  f.pairs = (psplit_i_pairs){.n = MOST_PINS + 1,
                             .weight = f.weight,
                             .off = f.off,
                             .to = f.to,
                             .cost = f.cost,
                             .alone = f.alone,
                             .n_nets = 1,
                             .net = f.net,
                             .sides = f.sides};
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_pack_balls(&f.pairs, 2, 30, &budget, &arena, &packed), PSPLIT_OK);
  psplit_i_arena_fini(&arena);
  const double bound = (60 + packed.weight) / (2 + packed.balls);
  assert_true(bound > 30.8 && bound <= 31);
}

/* Each cluster of a torus has four neighbours. There is no time for a ball around each: those
 * around some say something all the same. */
static void some_balls_do_where_time_is_short(void **state) {
  (void)state;
  enum { WIDE = 16, LONG = 64, N = WIDE * LONG, PARTS = 16 };
  static double weight[N], cost[4 * N], alone[4 * N];
  static uint32_t off[N + 1], to[4 * N];
  for (uint32_t i = 0; i < N; i++) {
    const uint32_t x = i % WIDE, y = i / WIDE;
    const uint32_t next[] = {y * WIDE + (x + 1) % WIDE, y * WIDE + (x + WIDE - 1) % WIDE,
                             (y + 1) % LONG * WIDE + x, (y + LONG - 1) % LONG * WIDE + x};
    weight[i] = 1;
    off[i + 1] = 4 * (i + 1);
    for (uint32_t k = 0; k < 4; k++) {
      to[4 * i + k] = next[k];
      cost[4 * i + k] = 1;
    }
  }
  const psplit_i_pairs pairs = {
    .n = N, .weight = weight, .off = off, .to = to, .cost = cost, .alone = alone};
  psplit_i_arena arena;
  psplit_i_packed packed;
  psplit_i_budget budget = psplit_i_budget_unlimited();
  budget.most = 4000000; /* a ball takes about 8,000 */
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_pack_balls(&pairs, PARTS, N / PARTS, &budget, &arena, &packed),
                   PSPLIT_OK);
  psplit_i_arena_fini(&arena);
  /* 16 squares of 64 clusters have sides of 8: 256 pairs are cut. */
  const double least = packed.weight - packed.balls * (N / PARTS);
  assert_true(least > 40 && least < 256);
}

/* Pins of a net in a part; *out_parts: parts that hold some. */
static uint32_t pins_in(const psplit_i_instance *in, uint32_t e, const uint32_t *part,
                        uint32_t which, uint32_t *out_parts) {
  uint32_t n = 0, held = 0;
  for (uint32_t k = in->net_off[e]; k < in->net_off[e + 1]; k++) {
    n += part[in->net_pin[k]] == which;
    held |= 1u << part[in->net_pin[k]];
  }
  *out_parts = 0;
  for (; held; held &= held - 1) ++*out_parts;
  return n;
}

/* What a part pays at least, and its share of what all pay. */
static void pay(const psplit_i_instance *in, const uint32_t *part, uint32_t which,
                double *out_alone, double *out_all) {
  *out_alone = *out_all = 0;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const double send = (double)in->send[e], recv = (double)in->recv[e];
    uint32_t n_parts;
    const uint32_t n = pins_in(in, e, part, which, &n_parts);
    if (n == 0 || n_parts == 1) continue;
    const double times = in->net_forward[e] ? n_parts - 1 : 1;
    if (in->net_forward[e]) *out_alone += send < recv ? send : recv;
    *out_all += ((in->p2p ? send * times : send) + recv * times) / n_parts;
  }
}

/* Draws what pairs of a small net may have, so that some division into two sides is full, and adds
 * up what of it is apart. */
static double drawn_apart(const psplit_i_pairs *pairs, uint32_t net, const uint32_t *part) {
  uint32_t pin[MOST_PINS], n = 0;
  const bool even = draw(2);
  double room[MOST_PINS][MOST_PINS], most = 0, apart = 0;
  for (uint32_t i = 0; i < pairs->n; i++)
    for (uint32_t l = pairs->off[i]; l < pairs->off[i + 1]; l++)
      if (pairs->net[l] == net && (n == 0 || pin[n - 1] != i)) {
        assert_true(n < MOST_PINS);
        pin[n++] = i;
      }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < i; j++) room[i][j] = even ? 1 : draw(9);
  for (uint32_t side = 1; side < 1u << (n - 1); side++) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t j = 0; j < i; j++)
        if ((side >> i ^ side >> j) & 1) sum += room[i][j];
    if (sum > most) most = sum;
  }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < i; j++)
      if (part[pin[i]] != part[pin[j]]) apart += room[i][j];
  return most > 0 ? apart / most * pairs->sides[net] : 0;
}

static void check_pairs(const bed *b, const psplit_i_pairs *pairs, double unit, uint32_t n_parts) {
  uint32_t part[64];
  double all = 0, cut = 0, drawn = 0;
  for (uint32_t i = 0; i < pairs->n; i++) part[i] = draw(n_parts);
  for (uint32_t k = 0; k < n_parts; k++) {
    double alone = 0, least, share;
    pay(&b->instance, part, k, &least, &share);
    all += share;
    for (uint32_t i = 0; i < pairs->n; i++)
      for (uint32_t l = pairs->off[i]; part[i] == k && l < pairs->off[i + 1]; l++) {
        if (part[pairs->to[l]] == k) continue;
        alone += pairs->alone[l] * unit;
        cut += pairs->cost[l] / 2 * unit;
        if (pairs->net[l] == PSPLIT_NONE) drawn += pairs->cost[l] / 2 * unit;
      }
    assert_true(alone <= least * (1 + 1e-9));
  }
  for (uint32_t e = 0; e < pairs->n_nets; e++) drawn += drawn_apart(pairs, e, part) * unit;
  assert_true(cut <= all * (1 + 1e-9) && drawn <= all * (1 + 1e-9));
}

/* To receive may take less than to send, to send to many as long as to one; mostly one net alone
 * costs anything, which leaves no slack that others make. */
static void spoil_costs(psplit_i_instance *in) {
  in->p2p = in->p2p && draw(4) == 0;
  uint32_t alone = in->n_nets > 0 && draw(4) ? draw(in->n_nets) : UINT32_MAX;
  for (uint32_t e = 0; e < in->n_nets && alone != UINT32_MAX; e++) /* rather one of many pins */
    if (in->net_off[alone + 1] - in->net_off[alone] < 3) alone = (alone + 1) % in->n_nets;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    if (alone != UINT32_MAX && e != alone) in->send[e] = in->recv[e] = 0;
    if (in->send[e] >= PSPLIT_I_INF || in->recv[e] >= PSPLIT_I_INF) continue;
    in->send[e] *= 4;
    in->recv[e] *= 4 - draw(3);
  }
}

/* Pairs of the bed's problem, against some ways to divide clusters. */
static psplit_i_pairs check_costs(const bed *b) {
  const psplit_i_bound_query query = {
    .instance = &b->instance, .automaton = &b->automaton, .value = 1 << 20};
  psplit_i_arena arena;
  psplit_i_pairs pairs = {0};
  psplit_i_pair_units units;
  if (!psplit_i_pairs_suit(&query)) return pairs;
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_pairs_make(&query, 1 << 20, true, &arena, &pairs, &units), PSPLIT_OK);
  assert_true(pairs.n <= 64 && units.cost == units.weight);
  for (int k = 0; k < 16; k++) check_pairs(b, &pairs, units.cost, 2 + draw(4));
  if (pairs.off[pairs.n] == 0) pairs.n = 0;
  psplit_i_arena_fini(&arena);
  return pairs;
}

/* Shared out among pairs, no net costs more than is paid for it, by all or by one. */
static void pairs_cost_no_more_than_is_paid(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_nets = 0;
  sweep s = {.n_seeds = 4,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {4, 40},
             .twins = {4, 28},
             .stages = {2, 3},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    const psplit_i_pairs pairs = check_costs(&b);
    n_asked += pairs.n > 0;
    spoil_costs(&b.instance);
    n_nets += pairs.n_nets + check_costs(&b).n_nets;
  }
  assert_true(n_asked > percent(40) && n_nets > percent(40));
}

/* What follows for splits, from bounds that are known and from less. */
static void no_split_is_below(void **state) {
  (void)state;
  sweep s = {.n_seeds = 2,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {4, 15},
             .stages = {2, 3},
             .shared_every = 3};
  const bound_tally t = hold_bound(&s, PSPLIT_I_BOUND_BALLS, psplit_i_bound_balls, 1, 1, true);
  assert_true(t.n_asked > percent(30) && t.n_raised > percent(7));
}

/* What is said of four clusters, or six, is said to the last nanosecond. */
static void it_may_be_the_optimum(void **state) {
  (void)state;
  expect_tight(psplit_i_bound_balls, 4, 2, 10, 24);
  expect_tight(psplit_i_bound_balls, 6, 3, 10, 28);
  expect_tight(psplit_i_bound_balls, 6, 2, 100, 309);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(balls_hold_for_every_division),
    cmocka_unit_test(no_division_cuts_less),
    cmocka_unit_test(a_net_is_paid_for_as_a_whole),
    cmocka_unit_test(some_balls_do_where_time_is_short),
    cmocka_unit_test(pairs_cost_no_more_than_is_paid),
    cmocka_unit_test(no_split_is_below),
    cmocka_unit_test(it_may_be_the_optimum),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
