/* A small net's pairs may cost more than an even share each, as long as no division of its pins
 * into two sides has more between them than two stages pay. Of t parts, each two are on two sides
 * in 2^(t - 2) of the 2^(t - 1) - 1 ways to unite parts to sides: so all that is apart costs no
 * more than 2 - 2^(2 - t) times what two pay, and pair_costs.c takes nets for which t pay that.
 *
 * What a pair has of each of its nets is the share of it that the net has of its cost. */
#include "ball_sides.h"

enum {
  MOST_PINS = 4,
  MOST_NET_PAIRS = MOST_PINS * (MOST_PINS - 1) / 2,
  MOST_NET_SIDES = (1 << (MOST_PINS - 1)) - 1
};
#define NOTHING 1e-9 /* of a cost: rounding */

/* A small net's pairs, and the pins of each by number. */
typedef struct net_pairs {
  uint32_t n, n_pins, pin[MOST_PINS];
  uint32_t pair[MOST_NET_PAIRS];
  uint8_t low[MOST_NET_PAIRS], high[MOST_NET_PAIRS];
  double each; /* of their costs */
} net_pairs;

static uint8_t number_of(net_pairs *net, uint32_t cluster) {
  uint32_t k = 0;
  while (k < net->n_pins && net->pin[k] != cluster) k++;
  if (k == net->n_pins) net->pin[net->n_pins++] = cluster;
  return (uint8_t)k;
}

/* Collects nets' pairs; taken: [n_pairs] of costs by nets. */
static void collect(const psplit_i_pairs *pairs, const psplit_i_ball_graph *g, net_pairs *nets,
                    double *taken) {
  for (uint32_t i = 0; i < pairs->n; i++)
    for (uint32_t l = pairs->off[i]; l < pairs->off[i + 1]; l++) {
      if (pairs->to[l] < i || pairs->net[l] == PSPLIT_NONE) continue;
      net_pairs *net = &nets[pairs->net[l]];
      net->low[net->n] = number_of(net, i);
      net->high[net->n] = number_of(net, pairs->to[l]);
      net->pair[net->n++] = g->one_of[l];
      net->each = pairs->cost[l];
      taken[g->one_of[l]] += pairs->cost[l];
    }
}

static void add(psplit_i_ball_sides *s, uint32_t pair, double fills) {
  s->pair[s->pair_off[s->n + 1]] = pair;
  s->pair_fills[s->pair_off[s->n + 1]++] = fills;
}

static void end_limit(psplit_i_ball_sides *s) {
  s->n++;
  s->pair_off[s->n + 1] = s->pair_off[s->n];
}

/* All divisions of a net's pins into two sides; the last pin is on the same side in each. */
static void add_sides(psplit_i_ball_sides *s, const psplit_i_ball_graph *g, const net_pairs *net,
                      double most) {
  for (uint32_t side = 1; side < 1u << (net->n_pins - 1); side++) {
    for (uint32_t k = 0; k < net->n; k++)
      if ((side >> net->low[k] ^ side >> net->high[k]) & 1)
        add(s, net->pair[k], net->each / g->cost[net->pair[k]] / most);
    end_limit(s);
  }
}

/* The same by pair. scratch: [n_pairs]. */
static void turn_around(psplit_i_ball_sides *s, uint32_t n_pairs, uint32_t *scratch) {
  for (uint32_t l = 0; l < s->pair_off[s->n]; l++) s->off[s->pair[l] + 1]++;
  for (uint32_t e = 0; e < n_pairs; e++) {
    s->off[e + 1] += s->off[e];
    scratch[e] = s->off[e];
  }
  for (uint32_t r = 0; r < s->n; r++)
    for (uint32_t l = s->pair_off[r]; l < s->pair_off[r + 1]; l++) {
      const uint32_t place = scratch[s->pair[l]]++;
      s->of[place] = r;
      s->fills[place] = s->pair_fills[l];
    }
}

psplit_code psplit_i_ball_sides_make(const psplit_i_pairs *pairs, const psplit_i_ball_graph *graph,
                                     psplit_i_arena *arena, psplit_i_ball_sides *out) {
  const uint32_t n_pairs = graph->n_pairs;
  const size_t n_limits = n_pairs + (size_t)MOST_NET_SIDES * pairs->n_nets;
  const size_t n_entries = n_pairs + (size_t)MOST_NET_SIDES * MOST_NET_PAIRS * pairs->n_nets;
  psplit_i_ball_sides s = {0};
  net_pairs *nets = PSPLIT_NEW(arena, net_pairs, pairs->n_nets);
  double *taken = PSPLIT_NEW(arena, double, n_pairs);
  uint32_t *scratch = PSPLIT_NEW(arena, uint32_t, n_pairs);
  s.pair_off = PSPLIT_NEW(arena, uint32_t, n_limits + 2);
  s.pair = PSPLIT_NEW(arena, uint32_t, n_entries);
  s.pair_fills = PSPLIT_NEW(arena, double, n_entries);
  s.off = PSPLIT_NEW(arena, uint32_t, n_pairs + 1);
  s.of = PSPLIT_NEW(arena, uint32_t, n_entries);
  s.fills = PSPLIT_NEW(arena, double, n_entries);
  if (arena->failed) return PSPLIT_NOMEM;
  if (pairs->net) collect(pairs, graph, nets, taken);
  for (uint32_t k = 0; k < pairs->n_nets; k++) add_sides(&s, graph, &nets[k], pairs->sides[k]);
  for (uint32_t e = 0; e < n_pairs; e++) {
    if (taken[e] > 0 && taken[e] >= graph->cost[e] * (1 - NOTHING)) continue;
    add(&s, e, 1 / graph->cost[e]);
    end_limit(&s);
  }
  turn_around(&s, n_pairs, scratch);
  *out = s;
  return PSPLIT_OK;
}
