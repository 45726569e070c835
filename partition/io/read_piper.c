/* The format of msr-fiddle/piper (Tarnawski, Narayanan, Phanishayee, "Piper: Multidimensional
 * Planner for DNN Parallelization", NeurIPS 2021), as far as it is a pipeline: of each node the
 * first way that it can be run on one device. What is read is the format that its program takes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "read_json.h"

typedef psplit_i_json_item item;

/* A tensor costs both its ends twice its bytes, ahead and, as its gradient, back. */
typedef struct transfer {
  double send, recv; /* in the unit of the file's times */
} transfer;

/* Names its item by the key of `TMPCs`, so the caller keeps the objects that it is found in. */
static item first_way(const item *ways) {
  const item list = psplit_i_json_need(ways, "1");
  if (psplit_i_json_length(&list, 1, PSPLIT_I_MOST_ELEMENTS) == 0) return (item){0};
  item way = psplit_i_json_element(&list, 0);
  way.parent = ways;
  way.key = "1";
  return way;
}

/* What a node adds to an edge, bytes: an entry for the node at the other end. */
static double sync_bytes(const psplit_i_problem_reader *r, const item *nodes, uint32_t node,
                         const char *key, int64_t other) {
  char name[24];
  double bytes = 0;
  if (node == PSPLIT_NONE) return 0;
  snprintf(name, sizeof name, "%" PRId64, other);
  const item row = psplit_i_json_element(nodes, node), ways = psplit_i_json_need(&row, "TMPCs"),
             way = first_way(&ways), sync = psplit_i_json_need(&way, key);
  if (r->json->code == PSPLIT_OK)
    psplit_i_json_real(psplit_i_json_find(&sync, name), 0, 0x1p53, &bytes);
  return bytes;
}

static transfer *read_transfers(psplit_i_problem_reader *r, const item *nodes, const item *edges,
                                double bandwidth) {
  psplit_problem *p = r->problem;
  const size_t n = psplit_i_json_length(edges, 0, PSPLIT_I_MOST_ELEMENTS);
  uint32_t *producer = PSPLIT_I_JSON_NEW(r->json, uint32_t, n),
           *consumer = PSPLIT_I_JSON_NEW(r->json, uint32_t, n),
           *off = PSPLIT_I_JSON_NEW(r->json, uint32_t, n + 1);
  transfer *transfers = PSPLIT_I_JSON_NEW(r->json, transfer, n);
  for (size_t e = 0; e < n && r->json->code == PSPLIT_OK; e++) {
    const item edge = psplit_i_json_element(edges, e);
    double bytes = 0;
    producer[e] = psplit_i_read_node(r, psplit_i_json_need(&edge, "sourceId"));
    consumer[e] = psplit_i_read_node(r, psplit_i_json_need(&edge, "destId"));
    psplit_i_json_real(psplit_i_json_need(&edge, "communicationCost"), 0, 0x1p53, &bytes);
    if (r->json->code != PSPLIT_OK) return NULL;
    const double ahead = sync_bytes(r, nodes, producer[e], "syncTimeBw", r->ids[consumer[e]]),
                 back = sync_bytes(r, nodes, consumer[e], "syncTimeFw", r->ids[producer[e]]);
    transfers[e] =
      (transfer){.send = 2 * (bytes + ahead) / bandwidth, .recv = 2 * (bytes + back) / bandwidth};
    off[e + 1] = (uint32_t)e + 1;
  }
  p->n_nets = (uint32_t)n;
  p->net_producer = producer;
  p->net_consumer = consumer;
  p->net_off = off;
  return transfers;
}

static int64_t ticks_of(const psplit_i_problem_reader *r, double time) {
  const double ticks = time * r->scale;
  return ticks < 0x1p61 ? llround(ticks) : INT64_C(1) << 61;
}

static void choose_scale(psplit_i_problem_reader *r, const item *nodes, const transfer *transfers) {
  double total = 0;
  for (uint32_t v = 0; v < r->n_nodes && r->json->code == PSPLIT_OK; v++) {
    const item node = psplit_i_json_element(nodes, v), ways = psplit_i_json_need(&node, "TMPCs"),
               way = first_way(&ways);
    total += fmax(psplit_i_json_number_or(psplit_i_json_find(&way, "timePerSample"), 0), 0);
  }
  for (uint32_t e = 0; e < r->problem->n_nets; e++) {
    total += fmax(transfers[e].send, 0);
    total += fmax(transfers[e].recv, 0);
  }
  r->problem->ticks_per_unit = r->scale = psplit_i_read_scale(total);
}

/* memoryUsageA is held once for each micro-batch in flight, memoryUsageB always. */
static void read_nodes(psplit_i_problem_reader *r, const item *nodes) {
  psplit_problem *p = r->problem;
  int64_t *time = PSPLIT_I_JSON_NEW(r->json, int64_t, p->n_nodes);
  uint64_t *activation = PSPLIT_I_JSON_NEW(r->json, uint64_t, p->n_nodes),
           *weight = PSPLIT_I_JSON_NEW(r->json, uint64_t, p->n_nodes);
  for (uint32_t v = 0; v < p->n_nodes && r->json->code == PSPLIT_OK; v++) {
    const item node = psplit_i_json_element(nodes, v), ways = psplit_i_json_need(&node, "TMPCs"),
               way = first_way(&ways);
    psplit_i_read_ticks(r, psplit_i_json_need(&way, "timePerSample"), &time[v]);
    activation[v] = psplit_i_read_bytes(psplit_i_json_find(&way, "memoryUsageA"));
    weight[v] = psplit_i_read_bytes(psplit_i_json_find(&way, "memoryUsageB"));
  }
  p->n_classes = 1;
  p->time_ns = time;
  p->activation_bytes = activation;
  p->weight_bytes = weight;
  psplit_i_read_exact(r, nodes);
}

void psplit_i_read_piper(psplit_i_problem_reader *r, const item *root) {
  psplit_problem *p = r->problem;
  const item nodes = psplit_i_json_need(root, "nodes"), edges = psplit_i_json_need(root, "edges"),
             memory = psplit_i_json_need(root, "maxMemoryPerDevice");
  double bandwidth = 1;
  psplit_i_json_positive(psplit_i_json_need(root, "bandwidth"), HUGE_VAL, &bandwidth);
  psplit_i_read_ids(r, &nodes);
  const transfer *transfers = read_transfers(r, &nodes, &edges, bandwidth);
  if (r->json->code != PSPLIT_OK) return;
  choose_scale(r, &nodes, transfers);
  read_nodes(r, &nodes);
  int64_t *send = PSPLIT_I_JSON_NEW(r->json, int64_t, p->n_nets),
          *recv = PSPLIT_I_JSON_NEW(r->json, int64_t, p->n_nets);
  psplit_device *device = PSPLIT_I_JSON_NEW(r->json, psplit_device, 1);
  psplit_i_json_u32(psplit_i_json_need(root, "maxDevices"), 0, PSPLIT_NONE - 1,
                    device ? &device->count : &(uint32_t){0});
  if (r->json->code != PSPLIT_OK) return;
  for (uint32_t e = 0; e < p->n_nets; e++) {
    send[e] = ticks_of(r, transfers[e].send);
    recv[e] = ticks_of(r, transfers[e].recv);
  }
  p->net_send_ns = send;
  p->net_recv_ns = recv;
  device->name = "accelerator";
  if (psplit_i_json_number_or(memory, 0) < 0x1p53)
    device->memory_bytes = psplit_i_read_bytes(memory);
  p->n_devices = 1;
  p->devices = device;
  p->comm = PSPLIT_COMM_P2P;
  p->stash_1f1b = true;
}
