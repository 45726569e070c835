/* Problems from JSON: our own format and the published dnn-partitioning one. docs/partitioning.md
 * describes both. Reads whole numbers exactly; numbers with a fraction become fixed-point ticks. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partition.h"

/* The public struct first: psplit_problem_destroy gets a pointer to it. */
typedef struct owned_problem {
  psplit_problem problem;
  psplit_arena arena;
} owned_problem;

typedef struct reader {
  owned_problem *own;
  psplit_arena *arena;
  psplit_diag *diag;
  const char *file;
  double scale;      /* ticks per unit of the file's times */
  int64_t *id_index; /* (id, node) pairs, sorted */
  int64_t *ids;
  uint32_t n_nodes;
} reader;

static psplit_code bad(reader *r, const char *what, size_t i, const char *why) {
  return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: %s %zu: %s", r->file, what, i, why);
}

static bool truth(const json_t *value) {
  return json_is_true(value) || (json_is_number(value) && json_number_value(value) != 0);
}

/* A time in the file's unit -> ticks. */
static bool ticks(const reader *r, const json_t *value, int64_t *out) {
  if (json_is_integer(value) && r->scale == 1) {
    *out = (int64_t)json_integer_value(value);
    return *out >= 0;
  }
  if (!json_is_number(value)) return false;
  const double scaled = json_number_value(value) * r->scale;
  if (!(scaled >= 0 && scaled < 0x1p61)) return false;
  *out = (int64_t)llround(scaled);
  return true;
}

static bool bytes_of(const json_t *value, uint64_t *out) {
  *out = 0;
  if (!value || json_is_null(value)) return true;
  const double number = json_number_value(value);
  if (!json_is_number(value) || !(number >= 0 && number < 0x1p53)) return false;
  *out = json_is_integer(value) ? (uint64_t)json_integer_value(value) : (uint64_t)ceil(number);
  return true;
}

static bool small_uint(const json_t *value, uint32_t *out) {
  if (!json_is_integer(value)) return false;
  const json_int_t number = json_integer_value(value);
  if (number < 0 || number >= PSPLIT_NONE) return false;
  *out = (uint32_t)number;
  return true;
}

static int compare_index(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Index of ids: pairs (id, node), sorted. */
static psplit_code index_ids(reader *r) {
  int64_t *pairs = psplit_i_arena_array(r->arena, r->n_nodes, 2 * sizeof *pairs);
  if (!pairs) return psplit_i_nomem(r->diag);
  for (uint32_t v = 0; v < r->n_nodes; v++) {
    pairs[2 * v] = r->ids[v];
    pairs[2 * v + 1] = v;
  }
  qsort(pairs, r->n_nodes, 2 * sizeof *pairs, compare_index);
  for (uint32_t v = 1; v < r->n_nodes; v++)
    if (pairs[2 * v] == pairs[2 * v - 2])
      return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: two nodes have the id %" PRId64, r->file,
                           pairs[2 * v]);
  r->id_index = pairs;
  return PSPLIT_OK;
}

static uint32_t find_node(const reader *r, const json_t *value) {
  if (!json_is_integer(value)) return PSPLIT_NONE;
  const int64_t id = (int64_t)json_integer_value(value);
  const int64_t *pairs = r->id_index;
  uint32_t low = 0, high = r->n_nodes;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (pairs[2 * (size_t)middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < r->n_nodes && pairs[2 * (size_t)low] == id ? (uint32_t)pairs[2 * (size_t)low + 1]
                                                          : PSPLIT_NONE;
}

/* The finest power of ten, at most 10^9 ticks per unit, that keeps sums far from overflow. */
static double scale_for(double total) {
  double scale = 1e9;
  while (scale > 1e-12 && total * scale > 0x1p58) scale /= 10;
  return scale;
}

static double number_or_0(const json_t *value) {
  const double number = json_number_value(value);
  return number > 0 ? number : 0;
}

static psplit_code read_ids(reader *r, const json_t *nodes) {
  psplit_problem *p = &r->own->problem;
  const size_t n = json_array_size(nodes);
  if (!json_is_array(nodes) || n == 0)
    return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: \"nodes\" must be a non-empty array",
                         r->file);
  if (n >= PSPLIT_NONE / 4)
    return psplit_i_fail(r->diag, PSPLIT_LIMIT, "%s: %zu nodes are too many", r->file, n);
  p->n_nodes = r->n_nodes = (uint32_t)n;
  r->ids = psplit_i_arena_array(r->arena, n, sizeof *r->ids);
  const char **names = PSPLIT_NEW(r->arena, const char *, n);
  if (!r->ids || !names) return psplit_i_nomem(r->diag);
  for (size_t v = 0; v < n; v++) {
    const json_t *node = json_array_get(nodes, v), *id = json_object_get(node, "id");
    if (!json_is_object(node)) return bad(r, "node", v, "not an object");
    if (id && !json_is_integer(id)) return bad(r, "node", v, "\"id\" must be an integer");
    r->ids[v] = id ? (int64_t)json_integer_value(id) : (int64_t)v;
    const json_t *name = json_object_get(node, "name");
    if (!json_is_string(name)) continue;
    names[v] = psplit_i_arena_strndup(r->arena, json_string_value(name), json_string_length(name));
    if (!names[v]) return psplit_i_nomem(r->diag);
  }
  p->node_name = names;
  p->file_id = r->ids;
  return index_ids(r);
}

/* --- the published format ------------------------------------------------------------------- */

typedef struct edge {
  uint32_t from, to;
  int64_t cost;
} edge;

static int compare_edges(const void *a, const void *b) {
  const edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

static psplit_code published_nodes(reader *r, const json_t *nodes) {
  psplit_problem *p = &r->own->problem;
  int64_t *time = PSPLIT_NEW(r->arena, int64_t, (size_t)p->n_nodes * 2);
  uint64_t *bytes = PSPLIT_NEW(r->arena, uint64_t, p->n_nodes);
  uint8_t *flags = PSPLIT_NEW(r->arena, uint8_t, p->n_nodes);
  uint32_t *together = PSPLIT_NEW(r->arena, uint32_t, p->n_nodes);
  int64_t *colors = PSPLIT_NEW(r->arena, int64_t, (size_t)p->n_nodes * 2);
  if (!time || !bytes || !flags || !together || !colors) return psplit_i_nomem(r->diag);
  uint32_t n_colored = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const json_t *node = json_array_get(nodes, v);
    if (!ticks(r, json_object_get(node, "fpgaLatency"), &time[2 * v]))
      return bad(r, "node", v, "\"fpgaLatency\" must be a number >= 0");
    if (!ticks(r, json_object_get(node, "cpuLatency"), &time[2 * v + 1]))
      return bad(r, "node", v, "\"cpuLatency\" must be a number >= 0");
    if (!truth(json_object_get(node, "supportedOnFpga"))) time[2 * v] = PSPLIT_TIME_FORBIDDEN;
    if (!bytes_of(json_object_get(node, "size"), &bytes[v]))
      return bad(r, "node", v, "\"size\" must be a number of bytes below 2^53");
    if (truth(json_object_get(node, "isBackwardNode"))) flags[v] = PSPLIT_NODE_BACKWARD;
    const json_t *color = json_object_get(node, "colorClass");
    together[v] = PSPLIT_NONE;
    if (!color || json_is_null(color)) continue;
    if (!json_is_integer(color)) return bad(r, "node", v, "\"colorClass\" must be an integer");
    colors[2 * n_colored] = (int64_t)json_integer_value(color);
    colors[2 * n_colored++ + 1] = v;
  }
  qsort(colors, n_colored, 2 * sizeof *colors, compare_index);
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
static psplit_code published_edges(reader *r, const json_t *edges) {
  psplit_problem *p = &r->own->problem;
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
    const json_t *item = json_array_get(edges, k);
    list[k].from = find_node(r, json_object_get(item, "sourceId"));
    list[k].to = find_node(r, json_object_get(item, "destId"));
    if (list[k].from == PSPLIT_NONE || list[k].to == PSPLIT_NONE)
      return bad(r, "edge", k, "\"sourceId\" and \"destId\" must be ids of nodes");
    if (!ticks(r, json_object_get(item, "cost"), &list[k].cost))
      return bad(r, "edge", k, "\"cost\" must be a number >= 0");
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

static psplit_code read_published(reader *r, const json_t *root) {
  psplit_problem *p = &r->own->problem;
  psplit_code code;
  const json_t *nodes = json_object_get(root, "nodes"), *edges = json_object_get(root, "edges");
  double total = 1;
  size_t i;
  const json_t *item;
  json_array_foreach(nodes, i, item) {
    const double cpu = number_or_0(json_object_get(item, "cpuLatency"));
    const double fpga = number_or_0(json_object_get(item, "fpgaLatency"));
    total += cpu > fpga ? cpu : fpga;
  }
  json_array_foreach(edges, i, item) total += 2 * number_or_0(json_object_get(item, "cost"));
  p->ticks_per_unit = r->scale = scale_for(total);
  PSPLIT_TRY(read_ids(r, nodes));
  PSPLIT_TRY(published_nodes(r, nodes));
  PSPLIT_TRY(published_edges(r, edges));
  psplit_device *devices = PSPLIT_NEW(r->arena, psplit_device, 2);
  if (!devices) return psplit_i_nomem(r->diag);
  devices[0] = (psplit_device){.class_id = 0, .name = "accelerator"};
  devices[1] = (psplit_device){.class_id = 1, .free_comm = true, .name = "cpu"};
  const json_t *cpus = json_object_get(root, "maxCPUs");
  if (!small_uint(json_object_get(root, "maxFPGAs"), &devices[0].count) ||
      (cpus && !small_uint(cpus, &devices[1].count)))
    return psplit_i_fail(r->diag, PSPLIT_INVALID,
                         "%s: \"maxFPGAs\" and \"maxCPUs\" must be integers >= 0", r->file);
  const json_t *memory = json_object_get(root, "maxSizePerFPGA");
  if (memory && json_number_value(memory) < 0x1p53 && !bytes_of(memory, &devices[0].memory_bytes))
    return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: \"maxSizePerFPGA\" must be >= 0", r->file);
  p->n_devices = 2;
  p->devices = devices;
  p->comm = PSPLIT_COMM_SHARED;
  p->any_device_order = true;
out:
  return code;
}

/* --- our own format ------------------------------------------------------------------------- */

static bool has_fraction(const json_t *value) {
  if (json_is_real(value)) return true;
  size_t i;
  const json_t *item;
  json_array_foreach(value, i, item) if (json_is_real(item)) return true;
  return false;
}

static double largest_of(const json_t *value) {
  double largest = number_or_0(value);
  size_t i;
  const json_t *item;
  json_array_foreach(value, i, item) largest = fmax(largest, number_or_0(item));
  return largest;
}

/* Whole numbers stay what they are; otherwise times are scaled. */
static void choose_scale(reader *r, const json_t *nodes, const json_t *tensors) {
  static const char *const keys[] = {"time_ns", "send_ns", "recv_ns"};
  bool fraction = false;
  double total = 1;
  size_t i;
  const json_t *item;
  json_array_foreach(nodes, i, item) {
    const json_t *value = json_object_get(item, keys[0]);
    fraction |= has_fraction(value);
    total += largest_of(value);
  }
  json_array_foreach(tensors, i, item) for (int k = 1; k < 3; k++) {
    const json_t *value = json_object_get(item, keys[k]);
    fraction |= has_fraction(value);
    total += largest_of(value);
  }
  r->scale = fraction ? scale_for(total) : 1;
  r->own->problem.ticks_per_unit = r->scale;
}

/* A number for all classes, or an array with one per class; null: cannot run there. */
static bool per_class(const reader *r, const json_t *value, bool null_allowed, int64_t *out) {
  const uint32_t n = r->own->problem.n_classes;
  if (json_is_array(value) && json_array_size(value) != n) return false;
  for (uint32_t c = 0; c < n; c++) {
    const json_t *item = json_is_array(value) ? json_array_get(value, c) : value;
    if (null_allowed && json_is_null(item))
      out[c] = PSPLIT_TIME_FORBIDDEN;
    else if (!ticks(r, item, &out[c]))
      return false;
  }
  return true;
}

static psplit_code own_devices(reader *r, const json_t *root) {
  psplit_problem *p = &r->own->problem;
  const json_t *list = json_object_get(root, "devices"), *links = json_object_get(root, "links");
  const size_t n = json_array_size(list);
  if (n == 0 || n > 65535)
    return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: \"devices\" must be a non-empty array",
                         r->file);
  psplit_device *devices = PSPLIT_NEW(r->arena, psplit_device, n);
  if (!devices) return psplit_i_nomem(r->diag);
  p->n_classes = 1;
  for (size_t d = 0; d < n; d++) {
    const json_t *item = json_array_get(list, d), *name = json_object_get(item, "name");
    const json_t *class_id = json_object_get(item, "class"),
                 *count = json_object_get(item, "count");
    devices[d].count = 1;
    if (class_id && (!small_uint(class_id, &devices[d].class_id) || devices[d].class_id > 255))
      return bad(r, "device", d, "\"class\" must be an integer from 0 to 255");
    if (count && !small_uint(count, &devices[d].count))
      return bad(r, "device", d, "\"count\" must be an integer >= 0");
    if (!bytes_of(json_object_get(item, "memory_bytes"), &devices[d].memory_bytes))
      return bad(r, "device", d, "\"memory_bytes\" must be a number of bytes");
    devices[d].free_comm = truth(json_object_get(item, "free_comm"));
    if (json_is_string(name))
      devices[d].name =
        psplit_i_arena_strndup(r->arena, json_string_value(name), json_string_length(name));
    if (devices[d].class_id >= p->n_classes) p->n_classes = devices[d].class_id + 1;
  }
  p->n_devices = (uint32_t)n;
  p->devices = devices;
  if (!links) return PSPLIT_OK;
  if (json_array_size(links) != p->n_classes)
    return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: \"links\" needs one entry per device class",
                         r->file);
  psplit_link *out = PSPLIT_NEW(r->arena, psplit_link, p->n_classes);
  if (!out) return psplit_i_nomem(r->diag);
  for (uint32_t c = 0; c < p->n_classes; c++) {
    const json_t *item = json_array_get(links, c), *ns = json_object_get(item, "latency_ns");
    const double latency = json_number_value(ns);
    out[c].bytes_per_s = json_number_value(json_object_get(item, "bytes_per_s"));
    if (!(latency >= 0 && latency < 0x1p60) || !(out[c].bytes_per_s >= 0))
      return bad(r, "link", c, "\"latency_ns\" and \"bytes_per_s\" must be >= 0");
    out[c].latency_ns = (int64_t)ceil(latency);
  }
  p->links = out;
  return PSPLIT_OK;
}

static psplit_code own_nodes(reader *r, const json_t *nodes) {
  psplit_problem *p = &r->own->problem;
  const uint32_t n = p->n_nodes;
  int64_t *time = PSPLIT_NEW(r->arena, int64_t, (size_t)n * p->n_classes);
  uint64_t *weight = PSPLIT_NEW(r->arena, uint64_t, n), *act = PSPLIT_NEW(r->arena, uint64_t, n);
  uint8_t *flags = PSPLIT_NEW(r->arena, uint8_t, n);
  uint32_t *together = PSPLIT_NEW(r->arena, uint32_t, n), *pin = PSPLIT_NEW(r->arena, uint32_t, n);
  if (!time || !weight || !act || !flags || !together || !pin) return psplit_i_nomem(r->diag);
  for (uint32_t v = 0; v < n; v++) {
    const json_t *node = json_array_get(nodes, v);
    const json_t *class_id = json_object_get(node, "together"),
                 *stage = json_object_get(node, "pin");
    together[v] = pin[v] = PSPLIT_NONE;
    if (!per_class(r, json_object_get(node, "time_ns"), true, time + (size_t)v * p->n_classes))
      return bad(r, "node", v, "\"time_ns\" must be >= 0, or one such number (or null) per class");
    if (!bytes_of(json_object_get(node, "weight_bytes"), &weight[v]) ||
        !bytes_of(json_object_get(node, "activation_bytes"), &act[v]))
      return bad(r, "node", v, "bytes must be a number from 0 to 2^53");
    if (class_id && !json_is_null(class_id) && !small_uint(class_id, &together[v]))
      return bad(r, "node", v, "\"together\" must be an integer >= 0");
    if (stage && !json_is_null(stage) && !small_uint(stage, &pin[v]))
      return bad(r, "node", v, "\"pin\" must be a stage number");
    if (truth(json_object_get(node, "backward"))) flags[v] |= PSPLIT_NODE_BACKWARD;
    if (truth(json_object_get(node, "auxiliary"))) flags[v] |= PSPLIT_NODE_AUXILIARY;
  }
  p->time_ns = time;
  p->weight_bytes = weight;
  p->activation_bytes = act;
  p->node_flags = flags;
  p->together = together;
  p->pin = pin;
  return PSPLIT_OK;
}

/* A list of node ids -> node indices at `out`. */
static bool read_users(const reader *r, const json_t *list, uint32_t *out) {
  size_t i;
  const json_t *item;
  if (!json_is_array(list)) return false;
  json_array_foreach(list, i, item) if ((out[i] = find_node(r, item)) == PSPLIT_NONE) return false;
  return true;
}

static size_t count_lists(const json_t *array, const char *key) {
  size_t total = 0, i;
  const json_t *item;
  json_array_foreach(array, i, item) total += json_array_size(json_object_get(item, key));
  return total;
}

static psplit_code own_tensors(reader *r, const json_t *tensors) {
  psplit_problem *p = &r->own->problem;
  const size_t n = json_array_size(tensors), n_pins = count_lists(tensors, "consumers");
  if (n >= PSPLIT_NONE / 4 || n_pins >= PSPLIT_NONE)
    return psplit_i_fail(r->diag, PSPLIT_LIMIT, "%s: too many tensors", r->file);
  uint32_t *producer = PSPLIT_NEW(r->arena, uint32_t, n),
           *off = PSPLIT_NEW(r->arena, uint32_t, n + 1);
  uint32_t *consumer = PSPLIT_NEW(r->arena, uint32_t, n_pins);
  uint64_t *bytes = PSPLIT_NEW(r->arena, uint64_t, n);
  int64_t *send = PSPLIT_NEW(r->arena, int64_t, n * p->n_classes);
  int64_t *recv = PSPLIT_NEW(r->arena, int64_t, n * p->n_classes);
  uint8_t *flags = PSPLIT_NEW(r->arena, uint8_t, n);
  if (!producer || !off || !consumer || !bytes || !send || !recv || !flags)
    return psplit_i_nomem(r->diag);
  p->n_nets = (uint32_t)n;
  p->net_bytes = bytes;
  for (size_t e = 0; e < n; e++) {
    const json_t *item = json_array_get(tensors, e), *list = json_object_get(item, "consumers");
    const json_t *given[] = {json_object_get(item, "send_ns"), json_object_get(item, "recv_ns")};
    producer[e] = find_node(r, json_object_get(item, "producer"));
    if (producer[e] == PSPLIT_NONE || !read_users(r, list, consumer + off[e]))
      return bad(r, "tensor", e, "\"producer\" and \"consumers\" must be ids of nodes");
    off[e + 1] = off[e] + (uint32_t)json_array_size(list);
    if (!bytes_of(json_object_get(item, "bytes"), &bytes[e]))
      return bad(r, "tensor", e, "\"bytes\" must be a number from 0 to 2^53");
    if (truth(json_object_get(item, "uncuttable"))) flags[e] = PSPLIT_NET_UNCUTTABLE;
    for (int side = 0; side < 2; side++) {
      int64_t *out = (side ? recv : send) + e * p->n_classes;
      for (uint32_t c = 0; !given[side] && c < p->n_classes; c++)
        out[c] = psplit_i_net_ns(p, (uint32_t)e, c, side == 0);
      if (given[side] && !per_class(r, given[side], false, out))
        return bad(r, "tensor", e, "\"send_ns\" and \"recv_ns\" must be >= 0, or one per class");
    }
  }
  p->net_producer = producer;
  p->net_off = off;
  p->net_consumer = consumer;
  p->net_send_ns = send;
  p->net_recv_ns = recv;
  p->net_flags = flags;
  return PSPLIT_OK;
}

static psplit_code own_rest(reader *r, const json_t *root) {
  psplit_problem *p = &r->own->problem;
  const json_t *order = json_object_get(root, "order"), *weights = json_object_get(root, "weights");
  const size_t n_order = json_array_size(order), n_weights = json_array_size(weights);
  const size_t n_users = count_lists(weights, "users");
  if (n_order >= PSPLIT_NONE / 4 || n_users >= PSPLIT_NONE)
    return psplit_i_fail(r->diag, PSPLIT_LIMIT, "%s: too many edges", r->file);
  uint32_t *from = PSPLIT_NEW(r->arena, uint32_t, n_order),
           *to = PSPLIT_NEW(r->arena, uint32_t, n_order);
  uint32_t *off = PSPLIT_NEW(r->arena, uint32_t, n_weights + 1);
  uint32_t *user = PSPLIT_NEW(r->arena, uint32_t, n_users);
  uint64_t *bytes = PSPLIT_NEW(r->arena, uint64_t, n_weights);
  if (!from || !to || !off || !user || !bytes) return psplit_i_nomem(r->diag);
  for (size_t k = 0; k < n_order; k++) {
    const json_t *pair = json_array_get(order, k);
    from[k] = find_node(r, json_array_get(pair, 0));
    to[k] = find_node(r, json_array_get(pair, 1));
    if (json_array_size(pair) != 2 || from[k] == PSPLIT_NONE || to[k] == PSPLIT_NONE)
      return bad(r, "order edge", k, "must be a pair of node ids");
  }
  for (size_t g = 0; g < n_weights; g++) {
    const json_t *item = json_array_get(weights, g), *list = json_object_get(item, "users");
    if (!bytes_of(json_object_get(item, "bytes"), &bytes[g]) || !read_users(r, list, user + off[g]))
      return bad(r, "weight", g, "needs \"bytes\" and \"users\", a list of node ids");
    off[g + 1] = off[g] + (uint32_t)json_array_size(list);
  }
  p->n_order = (uint32_t)n_order;
  p->order_from = from;
  p->order_to = to;
  p->n_weights = (uint32_t)n_weights;
  p->weight_group_bytes = bytes;
  p->weight_off = off;
  p->weight_user = user;
  return PSPLIT_OK;
}

static psplit_code read_own(reader *r, const json_t *root) {
  psplit_problem *p = &r->own->problem;
  psplit_code code;
  const json_t *version = json_object_get(root, "version"), *comm = json_object_get(root, "comm");
  if (version && json_integer_value(version) != 1)
    return psplit_i_fail(r->diag, PSPLIT_UNSUPPORTED, "%s: \"version\" is not 1", r->file);
  if (comm && (!json_is_string(comm) || (strcmp(json_string_value(comm), "p2p") != 0 &&
                                         strcmp(json_string_value(comm), "shared") != 0)))
    return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: \"comm\" must be \"p2p\" or \"shared\"",
                         r->file);
  p->comm = comm && json_string_value(comm)[0] == 's' ? PSPLIT_COMM_SHARED : PSPLIT_COMM_P2P;
  p->overlap = truth(json_object_get(root, "overlap"));
  p->any_device_order = truth(json_object_get(root, "any_device_order"));
  p->stash_1f1b = truth(json_object_get(root, "stash_1f1b"));
  const json_t *nodes = json_object_get(root, "nodes"), *tensors = json_object_get(root, "tensors");
  choose_scale(r, nodes, tensors);
  PSPLIT_TRY(read_ids(r, nodes));
  PSPLIT_TRY(own_devices(r, root));
  PSPLIT_TRY(own_nodes(r, nodes));
  PSPLIT_TRY(own_tensors(r, tensors));
  PSPLIT_TRY(own_rest(r, root));
out:
  return code;
}

psplit_code psplit_problem_parse_json(const char *text, size_t n_bytes, const char *name,
                                      psplit_diag *diag, psplit_problem **out_problem) {
  json_error_t error;
  json_t *root = json_loadb(text, n_bytes, 0, &error);
  if (!root) {
    if (json_error_code(&error) == json_error_out_of_memory) return psplit_i_nomem(diag);
    return psplit_i_fail(diag, PSPLIT_MALFORMED, "%s:%d:%d: %s", name, error.line, error.column,
                         error.text);
  }
  owned_problem *own = calloc(1, sizeof *own);
  psplit_code code = own ? PSPLIT_OK : psplit_i_nomem(diag);
  if (own) {
    psplit_i_arena_init(&own->arena, 0);
    reader r = {.own = own, .arena = &own->arena, .diag = diag, .file = name};
    const json_t *format = json_object_get(root, "format");
    if (json_is_string(format) && strcmp(json_string_value(format), "psplit-problem") == 0)
      code = read_own(&r, root);
    else if (json_object_get(root, "maxFPGAs"))
      code = read_published(&r, root);
    else
      code = psplit_i_fail(diag, PSPLIT_INVALID,
                           "%s: neither \"format\": \"psplit-problem\" nor a dnn-partitioning "
                           "problem (\"maxFPGAs\")",
                           name);
  }
  json_decref(root);
  if (code == PSPLIT_OK)
    *out_problem = &own->problem;
  else
    psplit_problem_destroy(own ? &own->problem : NULL);
  return code;
}

psplit_code psplit_problem_read_json(const char *path, psplit_diag *diag,
                                     psplit_problem **out_problem) {
  FILE *file = fopen(path, "rb");
  if (!file) return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot open: %s", path, strerror(errno));
  PSPLIT_VEC(char) text = {0};
  psplit_code code = PSPLIT_OK;
  for (;;) {
    if (!psplit_i_vec_reserve(&text, 1 << 16)) {
      code = psplit_i_nomem(diag);
      break;
    }
    const size_t got = fread(text.items + text.n, 1, text.capacity - text.n, file);
    if (got == 0) break;
    text.n += got;
  }
  if (code == PSPLIT_OK && ferror(file))
    code = psplit_i_fail(diag, PSPLIT_IO, "%s: cannot read: %s", path, strerror(errno));
  fclose(file);
  if (code == PSPLIT_OK)
    code = psplit_problem_parse_json(text.items, text.n, path, diag, out_problem);
  psplit_i_vec_fini(&text);
  return code;
}

void psplit_problem_destroy(psplit_problem *problem) {
  if (!problem) return;
  owned_problem *own = (owned_problem *)(void *)problem;
  psplit_i_arena_fini(&own->arena);
  free(own);
}
