/* The format of msr-fiddle/dnn-partitioning: throughput inputs. */
#include <stdlib.h>
#include <string.h>

#include "read_json.h"

typedef struct edge {
  uint32_t from, to;
  int64_t cost;
} edge;

static int compare_edges(const void *a, const void *b) {
  const edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

static psplit_code published_nodes(psplit_i_problem_reader *r, const json_t *nodes) {
  psplit_problem *p = r->problem;
  int64_t *time = PSPLIT_NEW(r->arena, int64_t, (size_t)p->n_nodes * 2);
  uint64_t *bytes = PSPLIT_NEW(r->arena, uint64_t, p->n_nodes);
  uint8_t *flags = PSPLIT_NEW(r->arena, uint8_t, p->n_nodes);
  uint32_t *together = PSPLIT_NEW(r->arena, uint32_t, p->n_nodes);
  int64_t *colors = PSPLIT_NEW(r->arena, int64_t, (size_t)p->n_nodes * 2);
  if (!time || !bytes || !flags || !together || !colors) return psplit_i_nomem(r->diag);
  uint32_t n_colored = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const json_t *node = json_array_get(nodes, v);
    if (!psplit_i_read_ticks(r, json_object_get(node, "fpgaLatency"), &time[2 * v]))
      return psplit_i_read_bad(r, "node", v, "\"fpgaLatency\" must be a number >= 0");
    if (!psplit_i_read_ticks(r, json_object_get(node, "cpuLatency"), &time[2 * v + 1]))
      return psplit_i_read_bad(r, "node", v, "\"cpuLatency\" must be a number >= 0");
    if (!psplit_i_read_truth(json_object_get(node, "supportedOnFpga")))
      time[2 * v] = PSPLIT_TIME_FORBIDDEN;
    if (!psplit_i_read_bytes(json_object_get(node, "size"), &bytes[v]))
      return psplit_i_read_bad(r, "node", v, "\"size\" must be a number of bytes below 2^53");
    if (psplit_i_read_truth(json_object_get(node, "isBackwardNode")))
      flags[v] = PSPLIT_NODE_BACKWARD;
    const json_t *color = json_object_get(node, "colorClass");
    together[v] = PSPLIT_NONE;
    if (!color || json_is_null(color)) continue;
    if (!json_is_integer(color))
      return psplit_i_read_bad(r, "node", v, "\"colorClass\" must be an integer");
    colors[2 * n_colored] = (int64_t)json_integer_value(color);
    colors[2 * n_colored++ + 1] = v;
  }
  qsort(colors, n_colored, 2 * sizeof *colors, psplit_i_read_compare_pairs);
  for (uint32_t i = 0, color = 0; i < n_colored; i++) {
    if (i > 0 && colors[2 * i] != colors[2 * i - 2]) color++;
    together[colors[2 * i + 1]] = color;
  }
  p->n_classes = 2;
  p->time_ns = time;
  p->weight_bytes = bytes;
  p->node_flags = flags;
  p->together = together;
  return PSPLIT_OK;
}

/* Edges of one source are one net. Their costs should be equal; the largest counts. */
static psplit_code published_edges(psplit_i_problem_reader *r, const json_t *edges) {
  psplit_problem *p = r->problem;
  const size_t n = json_array_size(edges);
  if (!json_is_array(edges) || n >= PSPLIT_NONE / 4)
    return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: \"edges\" must be an array", r->file);
  edge *list = PSPLIT_NEW(r->arena, edge, n);
  uint32_t *producer = PSPLIT_NEW(r->arena, uint32_t, n),
           *consumer = PSPLIT_NEW(r->arena, uint32_t, n);
  uint32_t *off = PSPLIT_NEW(r->arena, uint32_t, n + 1);
  int64_t *cost = PSPLIT_NEW(r->arena, int64_t, 2 * n);
  if (!list || !producer || !consumer || !off || !cost) return psplit_i_nomem(r->diag);
  for (size_t k = 0; k < n; k++) {
    const json_t *cluster = json_array_get(edges, k);
    list[k].from = psplit_i_read_node(r, json_object_get(cluster, "sourceId"));
    list[k].to = psplit_i_read_node(r, json_object_get(cluster, "destId"));
    if (list[k].from == PSPLIT_NONE || list[k].to == PSPLIT_NONE)
      return psplit_i_read_bad(r, "edge", k, "\"sourceId\" and \"destId\" must be ids of nodes");
    if (!psplit_i_read_ticks(r, json_object_get(cluster, "cost"), &list[k].cost))
      return psplit_i_read_bad(r, "edge", k, "\"cost\" must be a number >= 0");
  }
  qsort(list, n, sizeof *list, compare_edges);
  uint32_t net = 0;
  for (size_t k = 0; k < n; k++) {
    if (k == 0 || list[k].from != list[k - 1].from) {
      off[net] = (uint32_t)k;
      producer[net++] = list[k].from;
    }
    consumer[k] = list[k].to;
    if (list[k].cost > cost[2 * (net - 1)]) cost[2 * (net - 1)] = list[k].cost;
  }
  off[net] = (uint32_t)n;
  p->n_nets = net;
  p->net_producer = producer;
  p->net_off = off;
  p->net_consumer = consumer;
  p->net_send_ns = p->net_recv_ns = cost;
  return PSPLIT_OK;
}

psplit_code psplit_i_read_published(psplit_i_problem_reader *r, const json_t *root) {
  psplit_problem *p = r->problem;
  psplit_code code;
  const json_t *nodes = json_object_get(root, "nodes"), *edges = json_object_get(root, "edges");
  double total = 1;
  size_t i;
  const json_t *cluster;
  json_array_foreach(nodes, i, cluster) {
    const double cpu = psplit_i_read_number(json_object_get(cluster, "cpuLatency"));
    const double fpga = psplit_i_read_number(json_object_get(cluster, "fpgaLatency"));
    total += cpu > fpga ? cpu : fpga;
  }
  json_array_foreach(edges, i, cluster) total +=
    2 * psplit_i_read_number(json_object_get(cluster, "cost"));
  p->ticks_per_unit = r->scale = psplit_i_read_scale(total);
  PSPLIT_TRY(psplit_i_read_ids(r, nodes));
  PSPLIT_TRY(published_nodes(r, nodes));
  PSPLIT_TRY(published_edges(r, edges));
  psplit_device *devices = PSPLIT_NEW(r->arena, psplit_device, 2);
  if (!devices) return psplit_i_nomem(r->diag);
  devices[0] = (psplit_device){.class_id = 0, .name = "accelerator"};
  devices[1] = (psplit_device){.class_id = 1, .free_comm = true, .name = "cpu"};
  const json_t *cpus = json_object_get(root, "maxCPUs");
  if (!psplit_i_read_uint(json_object_get(root, "maxFPGAs"), &devices[0].count) ||
      (cpus && !psplit_i_read_uint(cpus, &devices[1].count)))
    return psplit_i_fail(r->diag, PSPLIT_INVALID,
                         "%s: \"maxFPGAs\" and \"maxCPUs\" must be integers >= 0", r->file);
  const json_t *memory = json_object_get(root, "maxSizePerFPGA");
  if (memory && json_number_value(memory) < 0x1p53 &&
      !psplit_i_read_bytes(memory, &devices[0].memory_bytes))
    return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: \"maxSizePerFPGA\" must be >= 0", r->file);
  p->n_devices = 2;
  p->devices = devices;
  p->comm = PSPLIT_COMM_SHARED;
  p->any_device_order = true;
out:
  return code;
}
