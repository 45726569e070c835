/* Validation of the caller's problem: everything that solvers rely on is checked here, once. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"

/* Sums of all times must stay below this, so that two of them can be added without checks. */
static const int64_t SUM_LIMIT = INT64_C(1) << 60;

void psplit_partition_options_defaults(psplit_partition_options *options, size_t struct_size) {
  psplit_partition_options defaults = {.solver = "auto",
                                       .chunks = 1,
                                       .max_replicas = 1,
                                       .micro_batches = 1,
                                       .time_limit_s = 10,
                                       .limit_by_work = true,
                                       .seed = 1};
  psplit_i_options_defaults(options, struct_size, &defaults, sizeof defaults);
}

uint32_t psplit_problem_n_stages(const psplit_problem *problem) {
  uint64_t sum = 0;
  for (uint32_t d = 0; d < problem->n_devices; d++) sum += problem->devices[d].count;
  return sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

const char *psplit_i_node_name(const psplit_problem *problem, uint32_t node, char buffer[32]) {
  if (problem->node_name && problem->node_name[node]) return problem->node_name[node];
  if (problem->file_id)
    snprintf(buffer, 32, "%" PRId64, problem->file_id[node]);
  else
    snprintf(buffer, 32, "%" PRIu32, node);
  return buffer;
}

bool psplit_i_entries_alike(const psplit_device *a, const psplit_device *b) {
  return a->class_id == b->class_id && a->memory_bytes == b->memory_bytes &&
         a->free_comm == b->free_comm;
}

int64_t psplit_i_bytes_ns(const psplit_problem *problem, uint64_t bytes, const psplit_link *link) {
  double ns = 0;
  if (link->bytes_per_s > 0) ns = ceil((double)bytes / link->bytes_per_s * 1e9);
  ns = (ns + (double)link->latency_ns) * problem->ticks_per_unit;
  return ns < 0x1p60 ? (int64_t)ns : SUM_LIMIT;
}

int64_t psplit_i_net_ns(const psplit_problem *problem, uint32_t net, uint32_t class_id, bool send) {
  const int64_t *given = send ? problem->net_send_ns : problem->net_recv_ns;
  if (given) return given[(size_t)net * problem->n_classes + class_id];
  if (!problem->links || !problem->net_bytes) return 0;
  return psplit_i_bytes_ns(problem, problem->net_bytes[net], &problem->links[class_id]);
}

static psplit_code check_nodes(const psplit_problem *p, psplit_diag *diag) {
  char buffer[32];
  int64_t total = 0, most = -1;
  uint32_t slowest = 0;
  uint64_t bytes = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    int64_t largest = 0;
    for (uint32_t c = 0; c < p->n_classes; c++) {
      const int64_t ns = p->time_ns[(size_t)v * p->n_classes + c];
      if (ns == PSPLIT_TIME_FORBIDDEN) continue;
      if (ns < 0)
        return psplit_i_fail(diag, PSPLIT_INVALID, "node %s: negative time %" PRId64,
                             psplit_i_node_name(p, v, buffer), ns);
      if (ns > largest) largest = ns;
    }
    if (largest > most) slowest = v;
    if (largest > most) most = largest;
    total = psplit_i_sat_add_i64(total, largest);
    if (p->weight_bytes) bytes = psplit_i_sat_add_u64(bytes, p->weight_bytes[v]);
    if (p->activation_bytes) bytes = psplit_i_sat_add_u64(bytes, p->activation_bytes[v]);
  }
  for (uint32_t g = 0; g < p->n_weights; g++)
    bytes = psplit_i_sat_add_u64(bytes, p->weight_group_bytes[g]);
  if (total >= SUM_LIMIT)
    return psplit_i_fail(diag, PSPLIT_LIMIT,
                         "the nodes' times add up to more than 2^60 ticks, 36 years of "
                         "a model's nanoseconds, most of them of node %s; see what sizes it has, "
                         "use a coarser unit, or faster devices",
                         psplit_i_node_name(p, slowest, buffer));
  if (bytes >= (uint64_t)1 << 53)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "the nodes' memory adds up to more than 2^53 bytes");
  return PSPLIT_OK;
}

static psplit_code check_csr(const uint32_t *off, uint32_t n, const uint32_t *ids, uint32_t n_nodes,
                             const char *what, psplit_diag *diag) {
  if (off[0] != 0)
    return psplit_i_fail(diag, PSPLIT_INVALID, "%s offsets begin at %" PRIu32 ", not at 0", what,
                         off[0]);
  for (uint32_t i = 0; i < n; i++) /* all, before ids are read through any */
    if (off[i + 1] < off[i])
      return psplit_i_fail(diag, PSPLIT_INVALID, "%s %" PRIu32 ": offsets decrease", what, i);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = off[i]; k < off[i + 1]; k++)
      if (!ids || ids[k] >= n_nodes)
        return psplit_i_fail(diag, PSPLIT_INVALID, "%s %" PRIu32 ": no node %" PRIu32, what, i,
                             ids ? ids[k] : PSPLIT_NONE);
  return PSPLIT_OK;
}

/* The most that a message takes its two ends together; negative where some time is. */
static int64_t most_of_message(const psplit_problem *p) {
  const uint32_t n = p->message_ns ? p->n_link_classes ? p->n_link_classes : p->n_classes : 0;
  int64_t most = 0;
  for (uint32_t c = 0; c < n; c++) {
    if (p->message_ns[c] < 0) return -1;
    if (p->message_ns[c] > most) most = p->message_ns[c];
  }
  return psplit_i_sat_add_i64(most, most);
}

/* The most that a net takes a sender and a receiver together; negative where some time is. */
static int64_t most_of_net(const psplit_problem *p, uint32_t e) {
  int64_t most = 0;
  for (uint32_t c = 0; p->n_link_classes == 0 && c < p->n_classes; c++) {
    const int64_t send = psplit_i_net_ns(p, e, c, true), recv = psplit_i_net_ns(p, e, c, false);
    if (send < 0 || recv < 0) return -1;
    const int64_t both = psplit_i_sat_add_i64(send, recv);
    if (both > most) most = both;
  }
  for (uint32_t c = 0; c < p->n_link_classes; c++) {
    const int64_t ns = p->net_link_ns[(size_t)e * p->n_link_classes + c];
    if (ns < 0) return -1;
    const int64_t both = psplit_i_sat_add_i64(ns, ns);
    if (both > most) most = both;
  }
  return most;
}

static psplit_code check_nets(const psplit_problem *p, psplit_diag *diag) {
  if (p->n_nets == 0) return PSPLIT_OK;
  if (!p->net_producer || !p->net_off || (!p->net_consumer && p->net_off[p->n_nets] > 0))
    return psplit_i_fail(diag, PSPLIT_USAGE, "nets without net_producer, net_off or net_consumer");
  const psplit_code code =
    check_csr(p->net_off, p->n_nets, p->net_consumer, p->n_nodes, "net", diag);
  if (code != PSPLIT_OK) return code;
  const uint32_t n_stages = psplit_problem_n_stages(p);
  const int64_t message = most_of_message(p);
  int64_t total = 0, most = -1;
  uint32_t slowest = 0;
  char buffer[32];
  if (message < 0) return psplit_i_fail(diag, PSPLIT_INVALID, "negative time of a message");
  for (uint32_t e = 0; e < p->n_nets; e++) {
    if (p->net_producer[e] >= p->n_nodes)
      return psplit_i_fail(diag, PSPLIT_INVALID, "net %" PRIu32 ": no node %" PRIu32, e,
                           p->net_producer[e]);
    int64_t largest = most_of_net(p, e);
    if (largest < 0)
      return psplit_i_fail(diag, PSPLIT_INVALID, "net %" PRIu32 ": negative transfer time", e);
    largest = psplit_i_sat_add_i64(largest, message); /* at most one for each that receives it */
    const uint32_t fan = p->net_off[e + 1] - p->net_off[e];
    const uint32_t times = fan < n_stages && !p->next_hop ? fan : n_stages;
    const uint64_t paid = psplit_i_sat_mul_u64((uint64_t)largest, times);
    const int64_t all = paid > INT64_MAX ? INT64_MAX : (int64_t)paid;
    if (all > most) slowest = p->net_producer[e];
    if (all > most) most = all;
    total = psplit_i_sat_add_i64(total, all);
  }
  if (total >= SUM_LIMIT)
    return psplit_i_fail(diag, PSPLIT_LIMIT,
                         "the transfer times add up to more than 2^60 ticks, 36 years of a "
                         "model's nanoseconds, most of them of what node %s gives; see what sizes "
                         "it has, use a coarser unit, or faster links",
                         psplit_i_node_name(p, slowest, buffer));
  return PSPLIT_OK;
}

static psplit_code check_order(const psplit_problem *p, psplit_diag *diag) {
  if (p->n_order && (!p->order_from || !p->order_to))
    return psplit_i_fail(diag, PSPLIT_USAGE, "order edges without order_from or order_to");
  for (uint32_t k = 0; k < p->n_order; k++)
    if (p->order_from[k] >= p->n_nodes || p->order_to[k] >= p->n_nodes)
      return psplit_i_fail(diag, PSPLIT_INVALID, "order edge %" PRIu32 ": no such node", k);
  return PSPLIT_OK;
}

static psplit_code check_weights(const psplit_problem *p, psplit_diag *diag) {
  if (!p->n_weights) return PSPLIT_OK;
  if (!p->weight_group_bytes || !p->weight_off ||
      (!p->weight_user && p->weight_off[p->n_weights] > 0))
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "weights without weight_group_bytes, weight_off or weight_user");
  return check_csr(p->weight_off, p->n_weights, p->weight_user, p->n_nodes, "weight", diag);
}

static psplit_code check_devices(const psplit_problem *p, psplit_diag *diag) {
  if (p->n_devices == 0 || !p->devices)
    return psplit_i_fail(diag, PSPLIT_USAGE, "no devices: at least one stage is needed");
  uint64_t total = 0;
  for (uint32_t d = 0; d < p->n_devices; d++) {
    if (p->devices[d].class_id >= p->n_classes)
      return psplit_i_fail(diag, PSPLIT_INVALID, "device %" PRIu32 ": no class %" PRIu32, d,
                           p->devices[d].class_id);
    total += p->devices[d].count;
  }
  if (total == 0) return psplit_i_fail(diag, PSPLIT_USAGE, "0 devices: at least one is needed");
  if (total > 65535)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "%" PRIu64 " devices; at most 65535", total);
  for (uint32_t v = 0; p->pin && v < p->n_nodes; v++)
    if (p->pin[v] != PSPLIT_NONE && p->pin[v] >= total) {
      char buffer[32];
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "node %s is pinned to stage %" PRIu32 ", but there are %" PRIu64
                           " stages (0 is the first)",
                           psplit_i_node_name(p, v, buffer), p->pin[v], total);
    }
  for (uint32_t c = 0; p->links && c < p->n_classes; c++)
    if (p->links[c].latency_ns < 0 || !(p->links[c].bytes_per_s >= 0) ||
        isinf(p->links[c].bytes_per_s))
      return psplit_i_fail(diag, PSPLIT_INVALID,
                           "link of class %" PRIu32 ": negative latency or bandwidth", c);
  if (!(p->ticks_per_unit > 0) || isinf(p->ticks_per_unit))
    return psplit_i_fail(diag, PSPLIT_USAGE, "ticks_per_unit must be positive");
  return PSPLIT_OK;
}

/* Kahn's algorithm over all edges, forward and backward. */
static psplit_code check_acyclic(const psplit_problem *p, psplit_diag *diag) {
  const uint32_t n = p->n_nodes;
  const uint32_t pins = p->n_nets ? p->net_off[p->n_nets] : 0;
  const size_t n_edges = (size_t)pins + p->n_order;
  uint32_t *memory = calloc((size_t)n * 3 + 2 + n_edges, sizeof *memory);
  if (!memory) return psplit_i_nomem(diag);
  uint32_t *off = memory, *indegree = off + n + 1, *queue = indegree + n, *to = queue + n;
  for (uint32_t e = 0; e < p->n_nets; e++)
    off[p->net_producer[e] + 1] += p->net_off[e + 1] - p->net_off[e];
  for (uint32_t k = 0; k < p->n_order; k++) off[p->order_from[k] + 1]++;
  for (uint32_t v = 0; v < n; v++) off[v + 1] += off[v];
  uint32_t *fill = queue; /* the queue is not in use yet */
  memcpy(fill, off, n * sizeof *fill);
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      to[fill[p->net_producer[e]]++] = p->net_consumer[k];
      indegree[p->net_consumer[k]]++;
    }
  for (uint32_t k = 0; k < p->n_order; k++) {
    to[fill[p->order_from[k]]++] = p->order_to[k];
    indegree[p->order_to[k]]++;
  }
  uint32_t head = 0, tail = 0;
  for (uint32_t v = 0; v < n; v++)
    if (indegree[v] == 0) queue[tail++] = v;
  while (head < tail) {
    const uint32_t v = queue[head++];
    for (uint32_t k = off[v]; k < off[v + 1]; k++)
      if (--indegree[to[k]] == 0) queue[tail++] = to[k];
  }
  psplit_code code = PSPLIT_OK;
  if (tail < n) {
    /* Every unfinished node has an unfinished predecessor, so n steps back end on a cycle. */
    uint32_t v = 0;
    while (indegree[v] == 0) v++;
    uint32_t *from = queue;
    for (uint32_t u = 0; u < n; u++) {
      if (indegree[u] == 0) continue;
      for (uint32_t k = off[u]; k < off[u + 1]; k++)
        if (indegree[to[k]] > 0) from[to[k]] = u;
    }
    for (uint32_t step = 0; step < n; step++) v = from[v];
    char buffer[32];
    code = psplit_i_fail(diag, PSPLIT_INVALID, "the graph has a cycle through node %s",
                         psplit_i_node_name(p, v, buffer));
  }
  free(memory);
  return code;
}

/* Whether all hops of next_hop ascend, go over links, and lead to the stage that they are for. */
static psplit_code check_ways(const psplit_problem *p, psplit_diag *diag) {
  if (!p->next_hop) return PSPLIT_OK;
  const uint32_t n = psplit_problem_n_stages(p);
  bool backward = false;
  for (uint32_t v = 0; p->node_flags && v < p->n_nodes; v++)
    backward |= p->node_flags[v] & PSPLIT_NODE_BACKWARD;
  if (p->any_device_order || p->comm != PSPLIT_COMM_P2P || backward)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "missing links require forward graphs, point to point, on devices in "
                         "their order");
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = i + 1; j < n; j++) {
      const uint32_t m = p->next_hop[(size_t)i * n + j];
      const bool good = m == PSPLIT_NONE || m == j ||
                        (m > i && m < j && p->next_hop[(size_t)i * n + m] == m &&
                         p->next_hop[(size_t)m * n + j] != PSPLIT_NONE);
      if (!good)
        return psplit_i_fail(
          diag, PSPLIT_INVALID,
          "next_hop: the way from stage %" PRIu32 " to %" PRIu32 " does not get there", i, j);
    }
  return PSPLIT_OK;
}

/* Links between pairs of devices: what they go with, and that every pair has one. */
static psplit_code check_pairs(const psplit_problem *p, psplit_diag *diag) {
  if (!p->n_link_classes) return PSPLIT_OK;
  if (!p->device_link || (!p->net_link_ns && p->n_nets))
    return psplit_i_fail(diag, PSPLIT_USAGE, "link classes without device_link or net_link_ns");
  if (p->any_device_order || p->comm != PSPLIT_COMM_P2P)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "links between pairs of devices require point-to-point sends and "
                         "devices in their order");
  for (uint32_t i = 0; i < p->n_devices; i++)
    for (uint32_t j = 0; j < p->n_devices; j++)
      if (p->device_link[(size_t)i * p->n_devices + j] >= p->n_link_classes)
        return psplit_i_fail(diag, PSPLIT_INVALID,
                             "device_link: entries %" PRIu32 " and %" PRIu32
                             " have a link of class %" PRIu32 "; there are %" PRIu32,
                             i, j, p->device_link[(size_t)i * p->n_devices + j], p->n_link_classes);
  return PSPLIT_OK;
}

psplit_code psplit_i_problem_validate(const psplit_problem *p, psplit_diag *diag) {
  psplit_code code;
  if (p->n_nodes == 0) return psplit_i_fail(diag, PSPLIT_INVALID, "the problem has no nodes");
  if (p->n_nodes >= PSPLIT_NONE / 4)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "%" PRIu32 " nodes are too many", p->n_nodes);
  if (p->n_classes == 0 || !p->time_ns)
    return psplit_i_fail(diag, PSPLIT_USAGE, "no device class or no node times");
  PSPLIT_TRY(check_devices(p, diag));
  PSPLIT_TRY(check_ways(p, diag));
  PSPLIT_TRY(check_pairs(p, diag));
  PSPLIT_TRY(check_weights(p, diag));
  PSPLIT_TRY(check_nodes(p, diag));
  PSPLIT_TRY(check_nets(p, diag));
  PSPLIT_TRY(check_order(p, diag));
  PSPLIT_TRY(check_acyclic(p, diag));
out:
  return code;
}
