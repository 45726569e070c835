/* Why: what a block of calls adds is bounded by labels that stand for others; random blocks are
 * held against all ways to cut them, valued by the definition, with any number of calls inside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crossings.h"
#include "draws.h"

enum { MOST = 9, CALLS = 3, TYPES = 2, SEEDS = 1000, LEFT, RIGHT, CPU, CALL };

/* A net for each cluster that is read. */
static struct {
  psplit_i_calls_clusters x;
  int64_t time[TYPES * MOST], alone[MOST], send[TYPES * MOST], recv[TYPES * MOST];
  uint64_t bytes[MOST];
  uint32_t from[MOST], to_off[MOST + 1], to[MOST * MOST], out_off[MOST + 1], in_off[MOST + 1];
  uint32_t in[MOST * MOST];
  bool reads[MOST][MOST]; /* [reader][producer] */
  psplit_i_calls_block block;
} r;

static uint32_t n_calls; /* that are tried inside */

/* Up to five clusters, or seven and one call inside, between a separator before, or none, and one
 * behind, or none: all lead to that. */
static void make(uint64_t seed) {
  memset(&r, 0, sizeof r);
  draw_state = seed;
  const bool first = draw(4) > 0, last = draw(4) > 0;
  n_calls = draw(2) ? CALLS : 1;
  const uint32_t n = 2 + draw(n_calls > 1 ? 4 : 6) + first + last, grown = seed % 2 ? 5000 : 1;
  for (uint32_t v = 1; v < n; v++) {
    for (uint32_t u = 0; u < v; u++) r.reads[v][u] = draw(3) == 0;
    if (first && v > 0) r.reads[v][draw(2) ? 0 : draw(v)] = true;
  }
  for (uint32_t v = 0; last && v + 1 < n; v++) {
    bool any = false;
    for (uint32_t to = v + 1; to < n; to++) any |= r.reads[to][v];
    r.reads[n - 1][v] |= !any;
  }
  for (uint32_t v = 0; v < n; v++) {
    const uint32_t begin = r.to_off[r.x.n_nets];
    uint32_t at = begin;
    r.alone[v] = draw(8) ? draw(60) * grown + draw(3) : PSPLIT_I_INF;
    r.bytes[v] = draw(10);
    for (uint32_t t = 0; t < TYPES; t++) r.time[t * n + v] = draw(20) * grown + draw(3);
    for (uint32_t to = v + 1; to < n; to++)
      if (r.reads[to][v]) r.to[at++] = to;
    for (uint32_t t = 0; t < TYPES; t++) {
      r.send[t * MOST + r.x.n_nets] = draw(20) * grown + draw(3);
      r.recv[t * MOST + r.x.n_nets] = t == 1 && draw(2) ? 0 : draw(20) * grown + draw(3);
    }
    r.out_off[v] = r.x.n_nets;
    if (at > begin) {
      r.from[r.x.n_nets++] = v;
      r.to_off[r.x.n_nets] = at;
    }
  }
  r.out_off[n] = r.x.n_nets;
  for (uint32_t v = 0, at = 0; v < n; v++) {
    r.in_off[v] = at;
    for (uint32_t e = 0; e < r.x.n_nets; e++)
      if (r.reads[v][r.from[e]]) r.in[at++] = e;
    r.in_off[v + 1] = at;
  }
  const uint32_t n_nets = r.x.n_nets;
  r.x = (psplit_i_calls_clusters){.n = n,
                                  .n_types = 1 + draw(TYPES),
                                  .memory = {draw(2) ? 20 : UINT64_MAX, draw(2) ? 15 : UINT64_MAX},
                                  .sends_to_each = draw(2),
                                  .time = r.time,
                                  .alone = r.alone,
                                  .bytes = r.bytes,
                                  .n_nets = n_nets,
                                  .from = r.from,
                                  .to_off = r.to_off,
                                  .to = r.to,
                                  .out_off = r.out_off,
                                  .in_off = r.in_off,
                                  .in = r.in,
                                  .net_stride = MOST,
                                  .send = r.send,
                                  .recv = r.recv};
  r.block.first = first ? 0 : -1;
  r.block.last = last ? n - 1 : n;
}

/* A way to cut the block: parts of clusters, CALL + k for call k inside, of type[k]. */
typedef struct way {
  uint32_t a, b, part[MOST], type[CALLS];
} way;

/* What the separators run on counts as a part as well. */
static uint32_t part_of(const way *w, uint32_t v) {
  if (v == r.block.first) return w->a < r.x.n_types ? LEFT : CPU;
  if (v == r.block.last) return w->b < r.x.n_types ? RIGHT : CPU;
  return w->part[v];
}

/* Receivers of net e beside `home`: each call is a device, and all CPUs are one. */
static uint32_t count_receivers(const way *w, uint32_t e, uint32_t home) {
  bool on[CALL + CALLS] = {false};
  uint32_t n = 0;
  for (uint32_t k = r.to_off[e]; k < r.to_off[e + 1]; k++) on[part_of(w, r.to[k])] = true;
  for (uint32_t p = LEFT; p < CALL + CALLS; p++) n += on[p] && p != home;
  return n;
}

/* What the call of a part computes, receives and sends, on a device of a type. */
static int64_t load_of(const way *w, uint32_t part, uint32_t type) {
  int64_t sum = 0;
  for (uint32_t v = (uint32_t)(r.block.first + 1); v < r.block.last; v++)
    if (w->part[v] == part) sum += r.time[type * r.x.n + v];
  for (uint32_t e = 0; e < r.x.n_nets; e++) {
    const uint32_t home = part_of(w, r.from[e]), n = count_receivers(w, e, home);
    bool reads = false;
    for (uint32_t k = r.to_off[e]; k < r.to_off[e + 1]; k++) reads |= part_of(w, r.to[k]) == part;
    if (home != part && reads) sum += r.recv[type * MOST + e];
    if (home == part && n > 0) sum += r.send[type * MOST + e] * (r.x.sends_to_each ? n : 1);
  }
  return sum;
}

static int64_t end[MOST]; /* of clusters inside; -1: not yet known */

/* When the unit of cluster v can begin; -1: something that it waits for has not ended. */
static int64_t start_of(const way *w, uint32_t v) {
  int64_t start = 0;
  for (uint32_t u = (uint32_t)(r.block.first + 1); u < r.block.last; u++)
    for (uint32_t to = 0; to < r.x.n; to++) {
      const bool mine = to == v || (w->part[v] >= CALL && to > r.block.first && to < r.block.last &&
                                    w->part[to] == w->part[v]);
      const bool other = u != v && !(w->part[v] >= CALL && w->part[u] == w->part[v]);
      if (!mine || !other || !r.reads[to][u] || w->part[u] < CPU) continue;
      if (end[u] < 0) return -1;
      if (end[u] > start) start = end[u];
    }
  return start;
}

/* When all inside has ended; INF: units wait for each other. */
static int64_t last_of(const way *w) {
  int64_t last = 0;
  uint32_t n_left = 0;
  for (uint32_t v = (uint32_t)(r.block.first + 1); v < r.block.last; v++) {
    end[v] = w->part[v] >= CPU ? -1 : 0;
    n_left += end[v] < 0;
  }
  for (bool any = true; any && n_left > 0;) {
    any = false;
    for (uint32_t v = (uint32_t)(r.block.first + 1); v < r.block.last; v++) {
      const int64_t start = end[v] < 0 ? start_of(w, v) : -1;
      if (start < 0) continue;
      const uint32_t part = w->part[v];
      const int64_t takes = part == CPU ? r.alone[v] : load_of(w, part, w->type[part - CALL]);
      any = true;
      for (uint32_t u = v; u < r.block.last; u++) {
        if (u != v && (part == CPU || w->part[u] != part)) continue;
        end[u] = start + takes;
        n_left--;
      }
      if (start + takes > last) last = start + takes;
    }
  }
  return n_left > 0 ? PSPLIT_I_INF : last;
}

/* Whether parts read what they may. */
static bool is_allowed(const way *w) {
  for (uint32_t v = 0; v < r.x.n; v++)
    for (uint32_t u = 0; u < v; u++) {
      const uint32_t to = part_of(w, v), from = part_of(w, u);
      if (!r.reads[v][u]) continue;
      if ((to == LEFT && from != LEFT) || (from == RIGHT && to != RIGHT)) return false;
    }
  return true;
}

static int64_t cost_of(const way *w) {
  int64_t cost = 0;
  if (!is_allowed(w)) return PSPLIT_I_INF;
  for (uint32_t v = (uint32_t)(r.block.first + 1); v < r.block.last; v++)
    if (w->part[v] == CPU && r.alone[v] >= PSPLIT_I_INF) return PSPLIT_I_INF;
  if (w->a < r.x.n_types) cost += load_of(w, LEFT, w->a);
  if (w->b < r.x.n_types) cost += load_of(w, RIGHT, w->b);
  const int64_t last = last_of(w);
  return last >= PSPLIT_I_INF ? last : cost + last;
}

/* What calls inside are priced at. */
static int64_t price_of(const way *w) {
  int64_t price = 0;
  bool used[CALLS] = {false};
  for (uint32_t v = (uint32_t)(r.block.first + 1); v < r.block.last; v++)
    if (w->part[v] >= CALL) used[w->part[v] - CALL] = true;
  for (uint32_t k = 0; k < CALLS; k++) price += used[k] ? r.block.price[w->type[k]] : 0;
  return price;
}

static uint32_t n_ways, n_met, n_told, n_exact, n_both;

/* Some crossing is no worse than the way. */
static void hold(const way *w, int64_t cost, uint64_t seed) {
  uint64_t left = 0, right = 0;
  uint32_t calls[TYPES] = {0};
  bool used[CALLS] = {false}, found = false;
  for (uint32_t v = (uint32_t)(r.block.first + 1); v < r.block.last; v++) {
    left += w->part[v] == LEFT ? r.bytes[v] : 0;
    right += w->part[v] == RIGHT ? r.bytes[v] : 0;
    if (w->part[v] >= CALL) used[w->part[v] - CALL] = true;
  }
  for (uint32_t k = 0; k < CALLS; k++) calls[w->type[k]] += used[k];
  if (w->a < r.x.n_types && left + r.bytes[r.block.first] > r.x.memory[w->a]) return;
  if (w->b < r.x.n_types && right + r.bytes[r.block.last] > r.x.memory[w->b]) return;
  const psplit_i_calls_crossings *list = &r.block.list[w->a][w->b];
  n_ways++;
  for (size_t i = 0; i < list->n && !found; i++) {
    const psplit_i_calls_crossing *c = &list->items[i];
    found = c->cost <= cost && c->left <= left && c->right <= right && c->calls[0] <= calls[0] &&
            c->calls[1] <= calls[1];
  }
  if (!found) fail_msg("seed %llu: a way is in no list", (unsigned long long)seed);
}

/* Tries all ways from cluster v on. */
static int64_t try_all(way *w, uint32_t v, int64_t limit, uint64_t seed) {
  int64_t best = PSPLIT_I_INF;
  if (v == r.block.last) {
    const int64_t cost = cost_of(w);
    if (psplit_i_sum_or_inf(cost, price_of(w)) < limit) hold(w, cost, seed);
    return cost;
  }
  for (uint32_t part = LEFT; part < CALL + n_calls; part++) {
    if ((part == LEFT && w->a >= r.x.n_types) || (part == RIGHT && w->b >= r.x.n_types)) continue;
    w->part[v] = part;
    const int64_t cost = try_all(w, v + 1, limit, seed);
    if (cost < best) best = cost;
  }
  return best;
}

/* A crossing that tells calls is a way with the parts that it gives, which takes no less, and
 * mostly just that: what reads from a call that goes on may have to wait for the rest of it. */
static void hold_parts(uint32_t a, uint32_t b, uint64_t seed) {
  const psplit_i_calls_crossings *list = &r.block.list[a][b];
  for (size_t i = 0; i < list->n; i++) {
    const psplit_i_calls_crossing *c = &list->items[i];
    way w = {.a = a, .b = b, .type = {0, 1}};
    uint64_t left = 0, right = 0;
    if (!c->told || !c->parts.known) continue;
    for (uint32_t k = 0, v = (uint32_t)(r.block.first + 1); v < r.block.last; k++, v++) {
      const uint32_t part = psplit_i_calls_part(&c->parts, k);
      w.part[v] = part == PSPLIT_I_CALLS_LEFT     ? LEFT
                  : part == PSPLIT_I_CALLS_RIGHT  ? RIGHT
                  : part == PSPLIT_I_CALLS_ON_CPU ? CPU
                                                  : CALL + part - PSPLIT_I_CALLS_INSIDE;
      left += w.part[v] == LEFT ? r.bytes[v] : 0;
      right += w.part[v] == RIGHT ? r.bytes[v] : 0;
    }
    const int64_t cost = cost_of(&w);
    if (c->own_cost > cost || c->own_left != left || c->own_right != right || c->cost > c->own_cost)
      fail_msg("seed %llu: a crossing is not what it says", (unsigned long long)seed);
    n_told++;
    n_both += c->calls[0] == 1 && c->calls[1] == 1;
    n_exact += c->own_cost == cost;
  }
}

/* Types of calls inside: any number of either. */
static void hold_all(uint32_t a, uint32_t b, int64_t limit, uint64_t seed) {
  int64_t best = PSPLIT_I_INF;
  for (uint32_t types = 0; types < (r.x.n_types > 1 ? CALLS + 1u : 1u); types++) {
    way w = {.a = a, .b = b, .type = {types > 2, types > 1, types > 0}};
    const int64_t cost = try_all(&w, (uint32_t)(r.block.first + 1), limit, seed);
    if (cost < best) best = cost;
  }
  const psplit_i_calls_crossings *list = &r.block.list[a][b];
  if (best < limit && list->n > 0) n_met += list->items[0].cost == best;
}

static void every_way_is_in_a_list(void **unused) {
  (void)unused;
  const uint32_t kinds = TYPES + 2;
  uint32_t n_lists = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    make(seed);
    const uint32_t outside = psplit_i_calls_outside(&r.x);
    const bool again = seed % 3 > 0;
    const psplit_i_calls_grain grain = {1 + draw(64), seed % 4 == 1 ? 3000 : 0};
    psplit_i_budget budget = psplit_i_budget_unlimited();
    r.block.limit = seed % 5 ? PSPLIT_I_INF : 60 * (seed % 2 ? 5000 : 1);
    for (uint32_t t = 0; t < TYPES && seed % 7 == 0; t++)
      r.block.price[t] = draw(10) * (seed % 2 ? 5000 : 1);
    assert_int_equal(psplit_i_calls_cross(&r.x, &budget, grain, again, &r.block), PSPLIT_OK);
    for (uint32_t a = 0; a <= outside; a++)
      for (uint32_t b = 0; b <= outside; b++) {
        if ((a == outside) != (r.block.first < 0) || (b == outside) != (r.block.last == r.x.n))
          continue;
        if ((a == outside - 1 && r.alone[r.block.first] >= PSPLIT_I_INF) ||
            (b == outside - 1 && r.alone[r.block.last] >= PSPLIT_I_INF))
          continue; /* the separator does not run there */
        if (again && r.x.n_types > 1 && seed % 4 > 1) {
          const uint32_t types = 1 + draw((1u << TYPES) - 1);
          psplit_i_budget some = psplit_i_budget_unlimited();
          if (draw(2)) some.most = 1 + draw(100000); /* does for some sets of types */
          assert_int_equal(psplit_i_calls_tell(&r.x, &some, grain, a, b, types, &r.block),
                           PSPLIT_OK);
        }
        hold_all(a, b, r.block.limit, seed);
        hold_parts(a, b, seed);
        n_lists++;
      }
    for (uint32_t i = 0; i < kinds * kinds; i++)
      psplit_i_vec_fini(&r.block.list[i / kinds][i % kinds]);
  }
  print_message("# %u ways, %u of %u lists begin with the best\n", n_ways, n_met, n_lists);
  print_message(
    "# %u of %u that tell calls take what they say, %u of them with calls of two types\n", n_exact,
    n_told, n_both);
  assert_true(n_ways > 100 * SEEDS);
  assert_true(n_exact > n_told * 9 / 10 && n_told > SEEDS && n_both > SEEDS / 10);
  assert_true(n_met > n_lists / 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_way_is_in_a_list),
  };
  return cmocka_run_group_tests_name("partition-crossings", tests, NULL, NULL);
}
