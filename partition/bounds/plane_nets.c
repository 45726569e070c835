/* The nets whose receivers have prices in the cutting planes. Each limit divides receivers anew, so
 * the nets may differ from those of the last limit. Nets with the same pins and cost are taken to
 * be the same. */
#include <string.h>

#include "hash.h"
#include "planes_inside.h"

/* The typical change of a receiver's price, as a multiple of the cost of sending to it. */
static const double FAR = 2;

int64_t psplit_i_planes_load(const psplit_i_planes *x, uint32_t plane) {
  const int8_t *has = x->has + (size_t)plane * x->most;
  int64_t load = psplit_i_pricing_load(x->pricing, (const uint8_t *)has);
  for (uint32_t v = x->n_clusters; v < x->n; v++)
    if (has[v] > 1) load += (has[v] - 1) * x->instance->send[x->net[v - x->n_clusters]];
  return load;
}

void psplit_i_planes_multiply(psplit_i_planes *x, uint32_t a, uint32_t b) {
  const int8_t *p = x->has + (size_t)a * x->most, *q = x->has + (size_t)b * x->most;
  double sum = 0;
  for (uint32_t v = 0; v < x->n; v++) sum += p[v] * q[v] * x->weight[v];
  x->product[a * PSPLIT_I_MOST_PLANES + b] = x->product[b * PSPLIT_I_MOST_PLANES + a] = sum;
}

/* The coefficient of a net in a plane: 1 if the stage sends it (to one receiver), -1 if it receives
 * it, else 0. */
static int8_t deal_of(const psplit_i_instance *in, uint32_t e, const int8_t *holds) {
  const int8_t producer = holds[in->net_pin[in->net_off[e]]];
  for (uint32_t q = in->net_off[e] + 1; q < in->net_off[e + 1]; q++)
    if (holds[in->net_pin[q]] != producer) return producer ? 1 : -1;
  return 0;
}

static uint64_t known_by(const psplit_i_instance *in, uint32_t e) {
  uint64_t hash = (uint64_t)in->send[e];
  for (uint32_t q = in->net_off[e]; q < in->net_off[e + 1]; q++)
    hash = psplit_i_splitmix64(hash, in->net_pin[q]);
  return hash;
}

/* Finds the former index of each of n nets, or NONE. Nets mostly keep their order. */
static void look_up(const psplit_i_planes *x, const uint64_t *known, uint32_t n, uint32_t *out) {
  const uint32_t n_before = x->n - x->n_clusters;
  for (uint32_t i = 0, at = 0; i < n; i++) {
    out[i] = PSPLIT_NONE;
    for (uint32_t k = 0; k < n_before && out[i] == PSPLIT_NONE; k++)
      if (x->known_by[(at + k) % n_before] == known[i]) out[i] = (at + k) % n_before;
    if (out[i] != PSPLIT_NONE) at = out[i];
  }
}

/* Renumbers the receiver prices and coefficients. before[i] is the former index of net i. */
static void rename_nets(psplit_i_planes *x, uint32_t n, const uint32_t *before, double *center,
                        int8_t *has) {
  for (uint32_t i = 0; i < n; i++)
    center[i] = before[i] == PSPLIT_NONE ? 0 : x->center[x->n_clusters + before[i]];
  if (n > 0) memcpy(x->center + x->n_clusters, center, n * sizeof *center);
  for (uint32_t p = 0; p < x->n_planes; p++) {
    int8_t *of = x->has + (size_t)p * x->most;
    for (uint32_t i = 0; i < n; i++)
      has[i] = before[i] == PSPLIT_NONE ? deal_of(x->instance, x->net[i], of)
                                        : of[x->n_clusters + before[i]];
    if (n > 0) memcpy(of + x->n_clusters, has, n);
  }
}

psplit_code psplit_i_planes_take_nets(psplit_i_planes *x, const psplit_i_instance *in,
                                      int64_t limit) {
  psplit_i_arena arena;
  psplit_code code = PSPLIT_OK;
  uint32_t n = 0;
  x->instance = in;
  if (!in) x->n = x->n_clusters;
  if (!in || x->most_nets == 0) return PSPLIT_OK;
  psplit_i_arena_init(&arena, 0);
  uint64_t *known = PSPLIT_NEW(&arena, uint64_t, in->n_nets);
  uint32_t *before = PSPLIT_NEW(&arena, uint32_t, in->n_nets);
  double *center = PSPLIT_NEW(&arena, double, in->n_nets);
  int8_t *has = PSPLIT_NEW(&arena, int8_t, in->n_nets);
  PSPLIT_TRY(arena.failed ? PSPLIT_NOMEM : PSPLIT_OK);
  memset(x->receiver, 0, x->most_nets * sizeof *x->receiver);
  for (uint32_t e = 0; e < in->n_nets; e++) {
    if (psplit_i_pricing_receivers(in, e) < 2) continue;
    known[n] = known_by(in, e);
    x->net[n++] = e;
  }
  const bool same =
    x->n - x->n_clusters == n && (n == 0 || memcmp(known, x->known_by, n * sizeof *known) == 0);
  psplit_i_spend(x->budget, in->net_off[in->n_nets]);
  if (same) goto out;
  look_up(x, known, n, before);
  rename_nets(x, n, before, center, has);
  if (n > 0) memcpy(x->known_by, known, n * sizeof *known);
  x->n = x->n_clusters + n;
  for (uint32_t i = 0; i < n; i++) {
    const double far = FAR * (double)in->send[x->net[i]] / (double)limit;
    x->weight[x->n_clusters + i] = far * far;
  }
  for (uint32_t p = 0; p < x->n_planes; p++)
    for (uint32_t q = 0; q <= p; q++) psplit_i_planes_multiply(x, p, q);
  psplit_i_spend(x->budget, (uint64_t)x->n * x->n_planes * x->n_planes / 8);
out:
  psplit_i_arena_fini(&arena);
  return code;
}
