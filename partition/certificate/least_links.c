#include "least_links.h"

#include <inttypes.h>
#include <string.h>

#include "messages.h"

enum { MOST_TIMES = 1 << 24 };

/* Whether a device of entry i may send to one of entry j. */
static bool may_send(const psplit_problem *p, bool both_ways, uint32_t i, uint32_t j) {
  if (p->devices[i].count == 0 || p->devices[j].count == 0) return false;
  return i == j ? p->devices[i].count > 1 : both_ways || i < j;
}

/* Least times of all nets for entry d: out[n_nets] sending, then [n_nets] receiving. */
static void least_times(const psplit_problem *p, bool both_ways, uint32_t d, int64_t *out) {
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const int64_t *ns = p->net_link_ns + (size_t)e * p->n_link_classes;
    int64_t send = INT64_MAX, recv = INT64_MAX;
    for (uint32_t j = 0; j < p->n_devices; j++) {
      const int64_t there = ns[p->device_link[(size_t)d * p->n_devices + j]];
      const int64_t back = ns[p->device_link[(size_t)j * p->n_devices + d]];
      if (may_send(p, both_ways, d, j) && there < send) send = there;
      if (may_send(p, both_ways, j, d) && back < recv) recv = back;
    }
    out[e] = send == INT64_MAX ? 0 : send;
    out[p->n_nets + e] = recv == INT64_MAX ? 0 : recv;
  }
}

static psplit_code find_least(const psplit_problem *p, psplit_i_arena *arena, psplit_diag *diag,
                              psplit_problem *out) {
  const size_t n = p->n_nets, n_devices = p->n_devices;
  if (n_devices && n > MOST_TIMES / n_devices)
    return psplit_i_fail(diag, PSPLIT_LIMIT,
                         "%" PRIu32 " tensors and %" PRIu32
                         " devices are too many to certify "
                         "with links that differ",
                         p->n_nets, p->n_devices);
  bool both_ways = false;
  for (uint32_t v = 0; p->node_flags && v < p->n_nodes; v++)
    both_ways |= (p->node_flags[v] & PSPLIT_NODE_BACKWARD) != 0;
  psplit_device *devices = PSPLIT_NEW(arena, psplit_device, n_devices);
  uint32_t *of_class = PSPLIT_NEW(arena, uint32_t, n_devices); /* an entry of each new class */
  int64_t *times = psplit_i_arena_array(arena, n_devices * 2 * n, sizeof *times);
  if (!devices || !of_class || !times) return psplit_i_nomem(diag);
  uint32_t n_classes = 0;
  for (uint32_t d = 0; d < n_devices; d++) {
    int64_t *mine = times + 2 * n * n_classes;
    least_times(p, both_ways, d, mine);
    uint32_t c = 0;
    while (c < n_classes && (p->devices[of_class[c]].class_id != p->devices[d].class_id ||
                             memcmp(times + 2 * n * c, mine, 2 * n * sizeof *mine) != 0))
      c++;
    if (c == n_classes) of_class[n_classes++] = d;
    devices[d] = p->devices[d];
    devices[d].class_id = c;
  }
  int64_t *time_ns = psplit_i_arena_array(arena, (size_t)p->n_nodes * n_classes, sizeof *time_ns);
  int64_t *send = psplit_i_arena_array(arena, n * n_classes, sizeof *send);
  int64_t *recv = psplit_i_arena_array(arena, n * n_classes, sizeof *recv);
  if (!time_ns || !send || !recv) return psplit_i_nomem(diag);
  for (uint32_t c = 0; c < n_classes; c++) {
    const uint32_t class_id = p->devices[of_class[c]].class_id;
    for (uint32_t v = 0; v < p->n_nodes; v++)
      time_ns[(size_t)v * n_classes + c] = p->time_ns[(size_t)v * p->n_classes + class_id];
    for (size_t e = 0; e < n; e++) {
      send[e * n_classes + c] = times[2 * n * c + e];
      recv[e * n_classes + c] = times[2 * n * c + n + e];
    }
  }
  *out = *p;
  out->n_classes = n_classes;
  out->devices = devices;
  out->time_ns = time_ns;
  out->net_send_ns = send;
  out->net_recv_ns = recv;
  out->links = NULL;
  out->n_link_classes = 0;
  out->device_link = NULL;
  out->net_link_ns = NULL;
  return PSPLIT_OK;
}

psplit_code psplit_i_least_links(const psplit_problem *p, psplit_i_arena *arena, psplit_diag *diag,
                                 psplit_problem *out) {
  psplit_problem marked = *p, relaxed = *p;
  if (p->message_ns && (psplit_i_messages_mark(arena, NULL, &marked) != PSPLIT_OK ||
                        psplit_i_messages_relax(&marked, arena, &relaxed) != PSPLIT_OK))
    return psplit_i_nomem(diag);
  return find_least(&relaxed, arena, diag, out);
}
