/* The format of msr-fiddle/dnn-partitioning: throughput inputs. */
#include <math.h>
#include <stdlib.h>

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

static void published_nodes(psplit_i_problem_reader *r, const psplit_i_json_item *nodes) {
  psplit_problem *p = r->problem;
  int64_t *time = PSPLIT_I_JSON_NEW(r->json, int64_t, (size_t)p->n_nodes * 2);
  uint64_t *bytes = PSPLIT_I_JSON_NEW(r->json, uint64_t, p->n_nodes);
  uint8_t *flags = PSPLIT_I_JSON_NEW(r->json, uint8_t, p->n_nodes);
  uint32_t *together = PSPLIT_I_JSON_NEW(r->json, uint32_t, p->n_nodes);
  int64_t *colors = PSPLIT_I_JSON_NEW(r->json, int64_t, (size_t)p->n_nodes * 2);
  uint32_t n_colored = 0;
  for (uint32_t v = 0; v < p->n_nodes && r->json->code == PSPLIT_OK; v++) {
    const psplit_i_json_item node = psplit_i_json_element(nodes, v),
                             color = psplit_i_json_find(&node, "colorClass");
    psplit_i_read_ticks(r, psplit_i_json_need(&node, "fpgaLatency"), &time[2 * v]);
    psplit_i_read_ticks(r, psplit_i_json_need(&node, "cpuLatency"), &time[2 * v + 1]);
    if (!psplit_i_read_truth(psplit_i_json_find(&node, "supportedOnFpga")))
      time[2 * v] = PSPLIT_TIME_FORBIDDEN;
    bytes[v] = psplit_i_read_bytes(psplit_i_json_find(&node, "size"));
    if (psplit_i_read_truth(psplit_i_json_find(&node, "isBackwardNode")))
      flags[v] = PSPLIT_NODE_BACKWARD;
    together[v] = PSPLIT_NONE;
    if (!psplit_i_json_given(psplit_i_json_unless_null(color))) continue;
    psplit_i_json_i64(color, INT64_MIN, INT64_MAX, &colors[2 * n_colored]);
    colors[2 * n_colored++ + 1] = v;
  }
  if (r->json->code != PSPLIT_OK) return;
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
  psplit_i_read_exact(r, nodes);
}

/* Edges of one source are one net. Their costs should be equal; the largest counts. */
static void published_edges(psplit_i_problem_reader *r, const psplit_i_json_item *edges) {
  psplit_problem *p = r->problem;
  const size_t n = psplit_i_json_length(edges, 0, PSPLIT_I_MOST_ELEMENTS);
  edge *list = PSPLIT_I_JSON_NEW(r->json, edge, n);
  uint32_t *producer = PSPLIT_I_JSON_NEW(r->json, uint32_t, n),
           *consumer = PSPLIT_I_JSON_NEW(r->json, uint32_t, n);
  uint32_t *off = PSPLIT_I_JSON_NEW(r->json, uint32_t, n + 1);
  int64_t *cost = PSPLIT_I_JSON_NEW(r->json, int64_t, 2 * n);
  for (size_t k = 0; k < n && r->json->code == PSPLIT_OK; k++) {
    const psplit_i_json_item item = psplit_i_json_element(edges, k);
    list[k].from = psplit_i_read_node(r, psplit_i_json_need(&item, "sourceId"));
    list[k].to = psplit_i_read_node(r, psplit_i_json_need(&item, "destId"));
    psplit_i_read_ticks(r, psplit_i_json_need(&item, "cost"), &list[k].cost);
  }
  if (r->json->code != PSPLIT_OK) return;
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
}

static double published_total(const psplit_i_json_item *nodes, const psplit_i_json_item *edges) {
  const size_t n_nodes = psplit_i_json_length(nodes, 0, SIZE_MAX),
               n_edges = psplit_i_json_length(edges, 0, SIZE_MAX);
  double total = 0;
  for (size_t v = 0; v < n_nodes; v++) {
    const psplit_i_json_item node = psplit_i_json_element(nodes, v);
    total += fmax(psplit_i_json_number_or(psplit_i_json_find(&node, "cpuLatency"), 0), 0);
    total += fmax(psplit_i_json_number_or(psplit_i_json_find(&node, "fpgaLatency"), 0), 0);
  }
  for (size_t k = 0; k < n_edges; k++) {
    const psplit_i_json_item item = psplit_i_json_element(edges, k);
    total += fmax(2 * psplit_i_json_number_or(psplit_i_json_find(&item, "cost"), 0), 0);
  }
  return total;
}

void psplit_i_read_published(psplit_i_problem_reader *r, const psplit_i_json_item *root) {
  psplit_problem *p = r->problem;
  const psplit_i_json_item nodes = psplit_i_json_need(root, "nodes"),
                           edges = psplit_i_json_need(root, "edges"),
                           memory = psplit_i_json_find(root, "maxSizePerFPGA");
  const double total = published_total(&nodes, &edges);
  p->ticks_per_unit = r->scale = psplit_i_read_scale(total);
  psplit_i_read_ids(r, &nodes);
  published_nodes(r, &nodes);
  published_edges(r, &edges);
  psplit_device *devices = PSPLIT_I_JSON_NEW(r->json, psplit_device, 2);
  if (!devices) return;
  devices[0] = (psplit_device){.class_id = 0, .name = "accelerator"};
  devices[1] = (psplit_device){.class_id = 1, .free_comm = true, .name = "cpu"};
  psplit_i_json_u32(psplit_i_json_need(root, "maxFPGAs"), 0, PSPLIT_NONE - 1, &devices[0].count);
  psplit_i_json_u32(psplit_i_json_find(root, "maxCPUs"), 0, PSPLIT_NONE - 1, &devices[1].count);
  if (psplit_i_json_number_or(memory, 0) < 0x1p53)
    devices[0].memory_bytes = psplit_i_read_bytes(memory);
  p->n_devices = 2;
  p->devices = devices;
  p->comm = PSPLIT_COMM_SHARED;
  p->any_device_order = true;
}
