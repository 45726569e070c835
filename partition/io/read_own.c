/* The project's own format of problems. */
#include <math.h>
#include <string.h>

#include "problem.h"
#include "read_json.h"

static bool has_fraction(const json_t *value) {
  if (json_is_real(value)) return true;
  size_t i;
  const json_t *cluster;
  json_array_foreach(value, i, cluster) if (json_is_real(cluster)) return true;
  return false;
}

static double largest_of(const json_t *value) {
  double largest = psplit_i_read_number(value);
  size_t i;
  const json_t *cluster;
  json_array_foreach(value, i, cluster) largest = fmax(largest, psplit_i_read_number(cluster));
  return largest;
}

/* Whole numbers stay what they are; otherwise times are scaled. */
static void choose_scale(psplit_i_problem_reader *r, const json_t *nodes, const json_t *tensors) {
  static const char *const keys[] = {"time_ns", "send_ns", "recv_ns"};
  bool fraction = false;
  double total = 1;
  size_t i;
  const json_t *cluster;
  json_array_foreach(nodes, i, cluster) {
    const json_t *value = json_object_get(cluster, keys[0]);
    fraction |= has_fraction(value);
    total += largest_of(value);
  }
  json_array_foreach(tensors, i, cluster) for (int k = 1; k < 3; k++) {
    const json_t *value = json_object_get(cluster, keys[k]);
    fraction |= has_fraction(value);
    total += largest_of(value);
  }
  r->scale = fraction ? psplit_i_read_scale(total) : 1;
  r->problem->ticks_per_unit = r->scale;
}

/* A number for all classes, or an array with one per class; null: cannot run there. */
static bool per_class(const psplit_i_problem_reader *r, const json_t *value, bool null_allowed,
                      int64_t *out) {
  const uint32_t n = r->problem->n_classes;
  if (json_is_array(value) && json_array_size(value) != n) return false;
  for (uint32_t c = 0; c < n; c++) {
    const json_t *cluster = json_is_array(value) ? json_array_get(value, c) : value;
    if (null_allowed && json_is_null(cluster))
      out[c] = PSPLIT_TIME_FORBIDDEN;
    else if (!psplit_i_read_ticks(r, cluster, &out[c]))
      return false;
  }
  return true;
}

static psplit_code own_devices(psplit_i_problem_reader *r, const json_t *root) {
  psplit_problem *p = r->problem;
  const json_t *list = json_object_get(root, "devices"), *links = json_object_get(root, "links");
  const size_t n = json_array_size(list);
  if (n == 0 || n > 65535)
    return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: \"devices\" must be a non-empty array",
                         r->file);
  psplit_device *devices = PSPLIT_NEW(r->arena, psplit_device, n);
  if (!devices) return psplit_i_nomem(r->diag);
  p->n_classes = 1;
  for (size_t d = 0; d < n; d++) {
    const json_t *cluster = json_array_get(list, d), *name = json_object_get(cluster, "name");
    const json_t *class_id = json_object_get(cluster, "class"),
                 *count = json_object_get(cluster, "count");
    devices[d].count = 1;
    if (class_id &&
        (!psplit_i_read_uint(class_id, &devices[d].class_id) || devices[d].class_id > 255))
      return psplit_i_read_bad(r, "device", d, "\"class\" must be an integer from 0 to 255");
    if (count && !psplit_i_read_uint(count, &devices[d].count))
      return psplit_i_read_bad(r, "device", d, "\"count\" must be an integer >= 0");
    if (!psplit_i_read_bytes(json_object_get(cluster, "memory_bytes"), &devices[d].memory_bytes))
      return psplit_i_read_bad(r, "device", d, "\"memory_bytes\" must be a number of bytes");
    devices[d].free_comm = psplit_i_read_truth(json_object_get(cluster, "free_comm"));
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
    const json_t *cluster = json_array_get(links, c), *ns = json_object_get(cluster, "latency_ns");
    const double latency = json_number_value(ns);
    out[c].bytes_per_s = json_number_value(json_object_get(cluster, "bytes_per_s"));
    if (!(latency >= 0 && latency < 0x1p60) || !(out[c].bytes_per_s >= 0))
      return psplit_i_read_bad(r, "link", c, "\"latency_ns\" and \"bytes_per_s\" must be >= 0");
    out[c].latency_ns = (int64_t)ceil(latency);
  }
  p->links = out;
  return PSPLIT_OK;
}

static psplit_code own_nodes(psplit_i_problem_reader *r, const json_t *nodes) {
  psplit_problem *p = r->problem;
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
      return psplit_i_read_bad(r, "node", v,
                               "\"time_ns\" must be >= 0, or one such number (or null) per class");
    if (!psplit_i_read_bytes(json_object_get(node, "weight_bytes"), &weight[v]) ||
        !psplit_i_read_bytes(json_object_get(node, "activation_bytes"), &act[v]))
      return psplit_i_read_bad(r, "node", v, "bytes must be a number from 0 to 2^53");
    if (class_id && !json_is_null(class_id) && !psplit_i_read_uint(class_id, &together[v]))
      return psplit_i_read_bad(r, "node", v, "\"together\" must be an integer >= 0");
    if (stage && !json_is_null(stage) && !psplit_i_read_uint(stage, &pin[v]))
      return psplit_i_read_bad(r, "node", v, "\"pin\" must be a stage number");
    if (psplit_i_read_truth(json_object_get(node, "backward"))) flags[v] |= PSPLIT_NODE_BACKWARD;
    if (psplit_i_read_truth(json_object_get(node, "auxiliary"))) flags[v] |= PSPLIT_NODE_AUXILIARY;
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
static bool read_users(const psplit_i_problem_reader *r, const json_t *list, uint32_t *out) {
  size_t i;
  const json_t *cluster;
  if (!json_is_array(list)) return false;
  json_array_foreach(
    list, i, cluster) if ((out[i] = psplit_i_read_node(r, cluster)) == PSPLIT_NONE) return false;
  return true;
}

static size_t count_lists(const json_t *array, const char *key) {
  size_t total = 0, i;
  const json_t *cluster;
  json_array_foreach(array, i, cluster) total += json_array_size(json_object_get(cluster, key));
  return total;
}

static psplit_code own_tensors(psplit_i_problem_reader *r, const json_t *tensors) {
  psplit_problem *p = r->problem;
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
    const json_t *cluster = json_array_get(tensors, e),
                 *list = json_object_get(cluster, "consumers");
    const json_t *given[] = {json_object_get(cluster, "send_ns"),
                             json_object_get(cluster, "recv_ns")};
    producer[e] = psplit_i_read_node(r, json_object_get(cluster, "producer"));
    if (producer[e] == PSPLIT_NONE || !read_users(r, list, consumer + off[e]))
      return psplit_i_read_bad(r, "tensor", e,
                               "\"producer\" and \"consumers\" must be ids of nodes");
    off[e + 1] = off[e] + (uint32_t)json_array_size(list);
    if (!psplit_i_read_bytes(json_object_get(cluster, "bytes"), &bytes[e]))
      return psplit_i_read_bad(r, "tensor", e, "\"bytes\" must be a number from 0 to 2^53");
    if (psplit_i_read_truth(json_object_get(cluster, "uncuttable")))
      flags[e] = PSPLIT_NET_UNCUTTABLE;
    for (int side = 0; side < 2; side++) {
      int64_t *out = (side ? recv : send) + e * p->n_classes;
      for (uint32_t c = 0; !given[side] && c < p->n_classes; c++)
        out[c] = psplit_i_net_ns(p, (uint32_t)e, c, side == 0);
      if (given[side] && !per_class(r, given[side], false, out))
        return psplit_i_read_bad(r, "tensor", e,
                                 "\"send_ns\" and \"recv_ns\" must be >= 0, or one per class");
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

static psplit_code own_rest(psplit_i_problem_reader *r, const json_t *root) {
  psplit_problem *p = r->problem;
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
    from[k] = psplit_i_read_node(r, json_array_get(pair, 0));
    to[k] = psplit_i_read_node(r, json_array_get(pair, 1));
    if (json_array_size(pair) != 2 || from[k] == PSPLIT_NONE || to[k] == PSPLIT_NONE)
      return psplit_i_read_bad(r, "order edge", k, "must be a pair of node ids");
  }
  for (size_t g = 0; g < n_weights; g++) {
    const json_t *cluster = json_array_get(weights, g), *list = json_object_get(cluster, "users");
    if (!psplit_i_read_bytes(json_object_get(cluster, "bytes"), &bytes[g]) ||
        !read_users(r, list, user + off[g]))
      return psplit_i_read_bad(r, "weight", g, "needs \"bytes\" and \"users\", a list of node ids");
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

psplit_code psplit_i_read_own(psplit_i_problem_reader *r, const json_t *root) {
  psplit_problem *p = r->problem;
  psplit_code code;
  const json_t *version = json_object_get(root, "version"), *comm = json_object_get(root, "comm");
  if (version && json_integer_value(version) != 1)
    return psplit_i_fail(r->diag, PSPLIT_UNSUPPORTED, "%s: \"version\" is not 1", r->file);
  if (comm && (!json_is_string(comm) || (strcmp(json_string_value(comm), "p2p") != 0 &&
                                         strcmp(json_string_value(comm), "shared") != 0)))
    return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: \"comm\" must be \"p2p\" or \"shared\"",
                         r->file);
  p->comm = comm && json_string_value(comm)[0] == 's' ? PSPLIT_COMM_SHARED : PSPLIT_COMM_P2P;
  p->overlap = psplit_i_read_truth(json_object_get(root, "overlap"));
  p->any_device_order = psplit_i_read_truth(json_object_get(root, "any_device_order"));
  p->stash_1f1b = psplit_i_read_truth(json_object_get(root, "stash_1f1b"));
  const json_t *nodes = json_object_get(root, "nodes"), *tensors = json_object_get(root, "tensors");
  choose_scale(r, nodes, tensors);
  PSPLIT_TRY(psplit_i_read_ids(r, nodes));
  PSPLIT_TRY(own_devices(r, root));
  PSPLIT_TRY(own_nodes(r, nodes));
  PSPLIT_TRY(own_tensors(r, tensors));
  PSPLIT_TRY(own_rest(r, root));
out:
  return code;
}
