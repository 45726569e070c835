/* Equal branches, by permutations of clusters that are their own inverse. One that leads from u to
 * v is guessed by colours, and then checked: every net and every edge must be one again, and every
 * cluster must take what its image takes. So splits stay splits, with the same loads.
 *
 * Let u(1) ... u(m) be clusters such that such a permutation exchanges each with the next and moves
 * no other of them. Then any order of their stages can be had, and that in which they ascend: order
 * edges from each to the next lose no value. Further clusters may be ordered so afterwards if their
 * permutations move none that is ordered already. */
#include "equal_branches.h"

#include "hash.h"
#include "lists.h"
#include "methods.h"

#include <string.h>

enum {
  ROUNDS = 8,          /* in which colours are refined */
  MOST_CLUSTERS = 128, /* equal branches are looked for among no more */
};

typedef struct finder {
  const psplit_i_instance *instance;
  uint64_t *colour, *refined; /* [n] equal where clusters are, as far as is known */
  uint64_t *net_colour;       /* [n_nets] */
  uint32_t *image;            /* [n] of the permutation */
  bool *moved, *ordered;      /* [n] by the permutation; one of some u(1) ... u(m) */
  uint32_t *todo;             /* [n] moved clusters of which half are looked at */
  uint32_t *mine, *theirs;    /* [n_nets + n] nets, or pins, that one has and the other has not */
  uint32_t n_todo;
} finder;

/* What a net takes. The trunk stands for messages, which are counted for themselves in the end, and
 * it leads through one of many equal branches: without it. */
static int64_t net_ns(const psplit_i_instance *instance, uint32_t e, uint32_t t, bool send) {
  if (psplit_i_pairs_count(instance))
    return send ? psplit_i_tensor_send_ns(instance, e, t, t)
                : psplit_i_tensor_recv_ns(instance, e, t, t);
  return (send ? instance->send : instance->recv)[(size_t)t * instance->n_nets + e];
}

static bool nets_alike(const psplit_i_instance *instance, uint32_t a, uint32_t b) {
  if (instance->net_off[a + 1] - instance->net_off[a] !=
        instance->net_off[b + 1] - instance->net_off[b] ||
      instance->net_forward[a] != instance->net_forward[b] ||
      (instance->makes_message && instance->makes_message[a] != instance->makes_message[b]))
    return false;
  for (uint32_t t = 0; t < instance->n_types; t++)
    if (net_ns(instance, a, t, true) != net_ns(instance, b, t, true) ||
        net_ns(instance, a, t, false) != net_ns(instance, b, t, false))
      return false;
  return true;
}

/* Whether nothing tells the clusters apart but their nets and edges. Shared weights are not
 * compared: with any, a cluster is equal to none. */
static bool clusters_alike(const psplit_i_instance *instance, uint32_t a, uint32_t b) {
  if (instance->weight_bytes[a] != instance->weight_bytes[b] ||
      instance->act_bytes[a] != instance->act_bytes[b] ||
      instance->n_counted[a] != instance->n_counted[b] || instance->pin[a] != instance->pin[b] ||
      instance->own_off[a + 1] != instance->own_off[a] ||
      instance->own_off[b + 1] != instance->own_off[b])
    return false;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const int64_t *w = instance->w + (size_t)t * instance->n;
    if (w[a] != w[b]) return false;
  }
  return true;
}

static uint64_t mixed(uint64_t a, uint64_t b) { return psplit_i_mix64(a ^ psplit_i_mix64(b + 1)); }

static void refine(finder *f) {
  const psplit_i_instance *in = f->instance;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    uint64_t colour = mixed(in->net_forward[e], f->colour[in->net_pin[in->net_off[e]]]), sum = 0;
    for (uint32_t t = 0; t < in->n_types; t++)
      colour =
        mixed(mixed(colour, (uint64_t)net_ns(in, e, t, true)), (uint64_t)net_ns(in, e, t, false));
    for (uint32_t k = in->net_off[e] + 1; k < in->net_off[e + 1]; k++)
      sum += psplit_i_mix64(f->colour[in->net_pin[k]]);
    f->net_colour[e] = mixed(colour, sum);
  }
  for (uint32_t v = 0; v < in->n; v++) {
    uint64_t sum = 0;
    for (uint32_t k = in->inc_off[v]; k < in->inc_off[v + 1]; k++)
      sum += mixed(f->net_colour[in->inc[k] >> 1], in->inc[k] & 1);
    f->refined[v] = mixed(f->colour[v], sum);
  }
  memcpy(f->colour, f->refined, in->n * sizeof *f->colour);
}

static void colour_all(finder *f) {
  const psplit_i_instance *in = f->instance;
  for (uint32_t v = 0; v < in->n; v++) {
    uint64_t colour = mixed(in->weight_bytes[v], in->act_bytes[v]);
    for (uint32_t t = 0; t < in->n_types; t++)
      colour = mixed(colour, (uint64_t)in->w[(size_t)t * in->n + v]);
    f->colour[v] = colour;
  }
  for (uint32_t round = 0; round < ROUNDS; round++) refine(f);
}

/* a and b are to change places; false: they cannot. */
static bool exchange(finder *f, uint32_t a, uint32_t b) {
  if (f->moved[a] || f->moved[b] || a == b) return f->image[a] == b;
  if (f->ordered[a] || f->ordered[b] || f->colour[a] != f->colour[b] ||
      !clusters_alike(f->instance, a, b))
    return false;
  f->image[a] = b;
  f->image[b] = a;
  f->moved[a] = f->moved[b] = true;
  f->todo[f->n_todo++] = a;
  f->todo[f->n_todo++] = b;
  return true;
}

/* out[]: items of x[n_x] that are not among y[n_y], both ascending; in the order of their colours,
 * by `colour`, then ascending. */
static uint32_t difference(const uint32_t *x, uint32_t n_x, const uint32_t *y, uint32_t n_y,
                           const uint64_t *colour, uint32_t *out) {
  uint32_t n = 0;
  for (uint32_t i = 0, j = 0; i < n_x; i++) {
    while (j < n_y && y[j] < x[i]) j++;
    if (j < n_y && y[j] == x[i]) continue;
    uint32_t at = n++;
    for (; at > 0 && colour[out[at - 1]] > colour[x[i]]; at--) out[at] = out[at - 1];
    out[at] = x[i];
  }
  return n;
}

/* Nets change places: their producers do, and those consumers that one alone has. */
static bool exchange_nets(finder *f, uint32_t x, uint32_t y) {
  const psplit_i_instance *in = f->instance;
  const uint32_t *x_pin = in->net_pin + in->net_off[x], *y_pin = in->net_pin + in->net_off[y];
  const uint32_t n_x = in->net_off[x + 1] - in->net_off[x];
  const uint32_t n_y = in->net_off[y + 1] - in->net_off[y];
  uint32_t *a = f->mine + in->n_nets, *b = f->theirs + in->n_nets;
  const uint32_t n = difference(x_pin + 1, n_x - 1, y_pin + 1, n_y - 1, f->colour, a);
  if (difference(y_pin + 1, n_y - 1, x_pin + 1, n_x - 1, f->colour, b) != n) return false;
  if (x_pin[0] != y_pin[0] && !exchange(f, x_pin[0], y_pin[0])) return false;
  for (uint32_t k = 0; k < n; k++)
    if (!exchange(f, a[k], b[k])) return false;
  return true;
}

/* Nets of v as `inc` has them, but for those that `other` has. */
static uint32_t own_nets(const finder *f, uint32_t v, uint32_t other, bool made, uint32_t *out) {
  const psplit_i_instance *in = f->instance;
  uint32_t n = 0;
  for (uint32_t k = in->inc_off[v], l = in->inc_off[other]; k < in->inc_off[v + 1]; k++) {
    while (l < in->inc_off[other + 1] && in->inc[l] < in->inc[k]) l++;
    if (l < in->inc_off[other + 1] && in->inc[l] == in->inc[k]) continue;
    if ((in->inc[k] & 1) != made) continue;
    const uint32_t e = in->inc[k] >> 1;
    uint32_t at = n++;
    for (; at > 0 && f->net_colour[out[at - 1]] > f->net_colour[e]; at--) out[at] = out[at - 1];
    out[at] = e;
  }
  return n;
}

/* What a and b alone are in changes places with them. */
static bool exchange_around(finder *f, uint32_t a, uint32_t b) {
  for (uint32_t made = 0; made < 2; made++) {
    const uint32_t n = own_nets(f, a, b, made, f->mine);
    if (own_nets(f, b, a, made, f->theirs) != n) return false;
    for (uint32_t k = 0; k < n; k++)
      if (!exchange_nets(f, f->mine[k], f->theirs[k])) return false;
  }
  return true;
}

/* Whether the net that has the images of e's pins is like e. */
static bool net_stays(finder *f, uint32_t e) {
  const psplit_i_instance *in = f->instance;
  const uint32_t n = in->net_off[e + 1] - in->net_off[e];
  const uint32_t *pin = in->net_pin + in->net_off[e];
  const uint32_t producer = f->image[pin[0]];
  for (uint32_t k = 1; k < n; k++) f->todo[k - 1] = f->image[pin[k]];
  psplit_i_sort_distinct(f->todo, n - 1);
  for (uint32_t k = in->inc_off[producer]; k < in->inc_off[producer + 1]; k++) {
    const uint32_t x = in->inc[k] >> 1;
    if ((in->inc[k] & 1) && nets_alike(in, e, x) &&
        memcmp(in->net_pin + in->net_off[x] + 1, f->todo, (n - 1) * sizeof *f->todo) == 0)
      return true;
  }
  return false;
}

/* Whether the images of v's successors are the successors of its image. */
static bool edges_stay(finder *f, uint32_t v) {
  const psplit_i_instance *in = f->instance;
  const uint32_t *to = in->succ + in->succ_off[v], *image = in->succ + in->succ_off[f->image[v]];
  const uint32_t n = in->succ_off[v + 1] - in->succ_off[v];
  if (in->succ_off[f->image[v] + 1] - in->succ_off[f->image[v]] != n) return false;
  for (uint32_t k = 0; k < n; k++) f->todo[k] = f->image[to[k]];
  psplit_i_sort_distinct(f->todo, n);
  return n == 0 || memcmp(f->todo, image, n * sizeof *image) == 0;
}

/* Whether a permutation exchanges u and v and moves nothing else that is ordered. */
static bool are_equal(finder *f, uint32_t u, uint32_t v) {
  const psplit_i_instance *in = f->instance;
  if (f->colour[u] != f->colour[v] || f->ordered[v]) return false;
  for (uint32_t i = 0; i < in->n; i++) f->image[i] = i;
  memset(f->moved, 0, in->n * sizeof *f->moved);
  f->n_todo = 0;
  f->ordered[u] = false;
  bool is = exchange(f, u, v);
  f->ordered[u] = true;
  for (uint32_t k = 0; is && k < f->n_todo; k += 2)
    is = exchange_around(f, f->todo[k], f->todo[k + 1]);
  for (uint32_t e = 0; is && e < in->n_nets; e++) is = net_stays(f, e);
  for (uint32_t i = 0; is && i < in->n; i++) is = edges_stay(f, i);
  return is;
}

/* edges[]: from << 32 | to, behind those of the instance. Returns how many. */
static uint32_t find(finder *f, psplit_i_budget *budget, uint64_t *edges) {
  const psplit_i_instance *in = f->instance;
  const uint64_t n_pins = in->net_off[in->n_nets];
  uint32_t n_edges = 0;
  if (!psplit_i_spend(budget, ROUNDS * n_pins * in->n_types)) return 0;
  colour_all(f);
  for (uint32_t first = 0; first < in->n; first++) {
    if (f->ordered[first]) continue;
    f->ordered[first] = true; /* while others are compared with it */
    uint32_t u = first;
    for (uint32_t v = first + 1; v < in->n; v++) {
      if (f->colour[u] != f->colour[v]) continue;
      if (!psplit_i_spend(budget, 2 * n_pins)) return n_edges;
      if (!are_equal(f, u, v)) continue;
      edges[n_edges++] = (uint64_t)u << 32 | v;
      f->ordered[v] = true;
      u = v;
    }
    if (u == first) f->ordered[first] = false;
  }
  return n_edges;
}

static psplit_code init(finder *f, const psplit_i_instance *instance, psplit_i_arena *scratch) {
  const uint32_t n = instance->n, n_nets = instance->n_nets;
  f->instance = instance;
  f->colour = PSPLIT_NEW(scratch, uint64_t, n);
  f->refined = PSPLIT_NEW(scratch, uint64_t, n);
  f->net_colour = PSPLIT_NEW(scratch, uint64_t, n_nets);
  f->image = PSPLIT_NEW(scratch, uint32_t, n);
  f->moved = PSPLIT_NEW(scratch, bool, n);
  f->ordered = PSPLIT_NEW(scratch, bool, n);
  f->todo = PSPLIT_NEW(scratch, uint32_t, n);
  f->mine = PSPLIT_NEW(scratch, uint32_t, (size_t)n_nets + n);
  f->theirs = PSPLIT_NEW(scratch, uint32_t, (size_t)n_nets + n);
  return scratch->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

psplit_code psplit_i_equal_branches_make(const psplit_i_instance *instance, psplit_i_budget *budget,
                                         psplit_i_arena *arena, psplit_i_equal_branches *out) {
  const uint32_t n = instance->n, n_known = instance->succ_off[n];
  psplit_code code = PSPLIT_OK;
  finder f = {0};
  psplit_i_arena scratch;
  *out = (psplit_i_equal_branches){.n = n};
  psplit_i_arena_init(&scratch, 0);
  uint64_t *edges = PSPLIT_NEW(&scratch, uint64_t, (size_t)n_known + n);
  PSPLIT_TRY(init(&f, instance, &scratch));
  uint32_t n_edges = 0;
  for (uint32_t v = 0; v < n; v++)
    for (uint32_t k = instance->succ_off[v]; k < instance->succ_off[v + 1]; k++)
      edges[n_edges++] = (uint64_t)v << 32 | instance->succ[k];
  out->n_edges = find(&f, budget, edges + n_edges);
  if (out->n_edges == 0) goto out;
  n_edges += out->n_edges;
  out->succ_off = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  out->pred_off = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  out->succ = PSPLIT_NEW(arena, uint32_t, n_edges);
  out->pred = PSPLIT_NEW(arena, uint32_t, n_edges);
  if (arena->failed) {
    code = PSPLIT_NOMEM;
    goto out;
  }
  psplit_i_lists_of_edges(edges, n_edges, n, out->succ_off, out->succ);
  psplit_i_lists_transpose(n, out->succ_off, out->succ, n, out->pred_off, out->pred);
out:
  psplit_i_arena_fini(&scratch);
  return code;
}

static psplit_i_instance with_edges(const psplit_i_equal_branches *branches,
                                    const psplit_i_instance *instance) {
  psplit_i_instance ordered = *instance;
  ordered.succ_off = branches->succ_off;
  ordered.succ = branches->succ;
  ordered.pred_off = branches->pred_off;
  ordered.pred = branches->pred;
  return ordered;
}

psplit_code psplit_i_equal_branches_apply(const psplit_i_instance *instance,
                                          const psplit_i_automaton *automaton,
                                          psplit_i_budget *budget, psplit_i_arena *arena,
                                          psplit_i_equal_branches *io_known,
                                          psplit_i_instance *out) {
  *out = *instance;
  if (instance->n > MOST_CLUSTERS ||
      !psplit_i_takes(PSPLIT_I_RULE_EQUAL_BRANCHES, automaton->features))
    return PSPLIT_OK;
  if (io_known->n == 0) {
    const psplit_code code = psplit_i_equal_branches_make(instance, budget, arena, io_known);
    if (code != PSPLIT_OK) return code;
  }
  if (io_known->n_edges > 0) *out = with_edges(io_known, instance);
  return PSPLIT_OK;
}
