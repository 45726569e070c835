#include "links.h"

#include <stdlib.h>

#include "devices_inside.h"

typedef struct pair {
  psplit_device_link link;
  size_t at; /* of the pair */
} pair;

/* The least latency first, of equal ones the widest. */
static int compare_links(const psplit_device_link *x, const psplit_device_link *y) {
  if (x->latency_ns != y->latency_ns) return x->latency_ns < y->latency_ns ? -1 : 1;
  return x->bytes_per_second > y->bytes_per_second ? -1 : x->bytes_per_second < y->bytes_per_second;
}

static int compare_pairs(const void *a, const void *b) {
  const pair *x = a, *y = b;
  const int order = compare_links(&x->link, &y->link);
  return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

psplit_code psplit_i_links_find(const psplit_planner *planner, bool both_ways,
                                psplit_i_arena *arena, psplit_diag *diag, psplit_i_links *out) {
  const size_t n_stages = planner->options.n_stages;
  const size_t n_pairs = n_stages * (n_stages - 1) / (both_ways ? 1 : 2);
  pair *pairs = psplit_i_arena_array(arena, n_pairs, sizeof *pairs);
  *out = (psplit_i_links){
    .link = psplit_i_arena_zeroed(arena, n_pairs, sizeof *out->link),
    .of_pair = psplit_i_arena_zeroed(arena, n_stages, n_stages * sizeof(uint32_t))};
  if (!pairs || !out->link || !out->of_pair) return psplit_i_nomem(diag);
  size_t n = 0;
  for (uint32_t i = 0; i < n_stages; i++)
    for (uint32_t j = both_ways ? 0 : i + 1; j < n_stages; j++) {
      if (i == j) continue;
      const psplit_device_link link = psplit_devices_link(planner->devices, i, j);
      if (link.bytes_per_second > 0) pairs[n++] = (pair){link, i * n_stages + j};
    }
  if (n) qsort(pairs, n, sizeof *pairs, compare_pairs);
  for (size_t k = 0; k < n; k++) {
    if (k == 0 || compare_links(&pairs[k].link, &pairs[k - 1].link) != 0)
      out->link[out->n++] = pairs[k].link;
    out->of_pair[pairs[k].at] = out->n - 1;
  }
  return PSPLIT_OK;
}

bool psplit_i_all_linked(const psplit_planner *planner, bool both_ways) {
  const uint32_t n_stages = planner->options.n_stages;
  bool all = true;
  for (uint32_t i = 0; i < n_stages && all; i++)
    for (uint32_t j = both_ways ? 0 : i + 1; j < n_stages && all; j++)
      all = i == j || psplit_devices_link(planner->devices, i, j).bytes_per_second > 0;
  return all;
}
