#include "route.h"

#include "base.h"

void psplit_i_route_table(uint32_t n, const int64_t *link_ns, int64_t *scratch,
                          uint32_t *out_next) {
  int64_t *hops = scratch, *ns = scratch + n; /* of the way to j; hops -1: none */
  for (uint32_t j = 0; j < n; j++) {
    hops[j] = ns[j] = 0;
    for (uint32_t i = n; i-- > 0;) {
      uint32_t next = PSPLIT_NONE;
      const int64_t *link = &link_ns[(size_t)i * n];
      for (uint32_t m = i + 1; m <= j; m++) {
        if (link[m] < 0 || hops[m] < 0) continue;
        const int64_t time = psplit_i_sat_add_i64(link[m], ns[m]);
        if (next != PSPLIT_NONE &&
            (hops[m] + 1 > hops[i] || (hops[m] + 1 == hops[i] && time >= ns[i])))
          continue;
        hops[i] = hops[m] + 1;
        ns[i] = time;
        next = m;
      }
      if (i != j && next == PSPLIT_NONE) hops[i] = -1;
      out_next[(size_t)i * n + j] = next;
    }
  }
}

uint32_t psplit_i_route(uint32_t n, const uint32_t *next, uint32_t home, uint32_t to,
                        uint32_t *held, uint32_t stamp, psplit_i_hop *out_hops) {
  uint32_t from = PSPLIT_NONE, n_hops = 0;
  if (next[(size_t)home * n + to] == to) from = home;
  for (uint32_t s = 0; from == PSPLIT_NONE && s < to; s++)
    if (held[s] == stamp && next[(size_t)s * n + to] == to) from = s;
  if (from != PSPLIT_NONE) {
    out_hops[n_hops++] = (psplit_i_hop){from, to};
    held[to] = stamp;
    return n_hops;
  }
  for (uint32_t at = home; at != to;) {
    const uint32_t hop = next[(size_t)at * n + to];
    if (hop == PSPLIT_NONE) return 0;
    if (held[hop] != stamp) out_hops[n_hops++] = (psplit_i_hop){at, hop};
    held[hop] = stamp;
    at = hop;
  }
  return n_hops;
}
