/* The project's own format of problems. */
#include <math.h>

#include "problem.h"
#include "read_json.h"

enum { MOST_LINK_TIMES = 1 << 26 }; /* of all tensors over all classes of links */

typedef psplit_i_json_item item;

static size_t length(const item *list) {
  return psplit_i_json_length(list, 0, PSPLIT_I_MOST_ELEMENTS);
}

static bool failed(const psplit_i_problem_reader *r) { return r->json->code != PSPLIT_OK; }

/* Adds the largest of the times per class; whether one of them has a fraction. */
static bool add_time(item time, double *io_total) {
  const bool list = psplit_i_json_is_array(time);
  const size_t n = list ? length(&time) : 1;
  double largest = 0;
  bool fraction = false;
  for (size_t c = 0; c < n; c++) {
    const item one = list ? psplit_i_json_element(&time, c) : time;
    const double ns = psplit_i_json_number_or(one, 0);
    fraction |= psplit_i_json_is_number(one) && !psplit_i_json_is_integer(one);
    largest = fmax(largest, ns);
  }
  *io_total += largest;
  return fraction;
}

/* Whole numbers stay what they are; otherwise times are scaled. */
static void choose_scale(psplit_i_problem_reader *r, const item *nodes, const item *tensors) {
  static const char *const KEYS[] = {"send_ns", "recv_ns", "link_ns"};
  const size_t n_nodes = length(nodes), n_tensors = length(tensors);
  double total = 0;
  bool fraction = false;
  for (size_t v = 0; v < n_nodes; v++) {
    const item node = psplit_i_json_element(nodes, v);
    fraction |= add_time(psplit_i_json_find(&node, "time_ns"), &total);
  }
  for (size_t e = 0; e < n_tensors; e++) {
    const item tensor = psplit_i_json_element(tensors, e);
    for (size_t k = 0; k < sizeof KEYS / sizeof *KEYS; k++)
      fraction |= add_time(psplit_i_json_find(&tensor, KEYS[k]), &total);
  }
  r->scale = fraction ? psplit_i_read_scale(total) : 1;
  r->problem->ticks_per_unit = r->scale;
}

/* A number for all of n classes, or an array with one per class; null: cannot run there. */
static void per_class(psplit_i_problem_reader *r, item time, bool null_allowed, uint32_t n,
                      int64_t *out) {
  const bool list = psplit_i_json_is_array(time);
  if (list) (void)psplit_i_json_length(&time, n, n);
  for (uint32_t c = 0; c < n && !failed(r); c++) {
    const item one = list ? psplit_i_json_element(&time, c) : time;
    if (null_allowed && !psplit_i_json_given(psplit_i_json_unless_null(one)))
      out[c] = PSPLIT_TIME_FORBIDDEN;
    else
      psplit_i_read_ticks(r, one, &out[c]);
  }
}

static void own_devices(psplit_i_problem_reader *r, const item *root) {
  static const char *const KEYS[] = {"class", "count", "memory_bytes", "free_comm", "name"};
  enum { MOST_DEVICES = 65535, MOST_CLASSES = 256 };
  psplit_problem *p = r->problem;
  const item list = psplit_i_json_need(root, "devices");
  const size_t n = psplit_i_json_length(&list, 1, MOST_DEVICES);
  psplit_device *devices = PSPLIT_I_JSON_NEW(r->json, psplit_device, n);
  p->n_classes = 1;
  for (size_t d = 0; d < n && !failed(r); d++) {
    psplit_device *device = &devices[d];
    const item row = psplit_i_json_element(&list, d);
    PSPLIT_I_JSON_KEYS(&row, KEYS);
    device->count = 1;
    psplit_i_json_u32(psplit_i_json_find(&row, "class"), 0, MOST_CLASSES - 1, &device->class_id);
    psplit_i_json_u32(psplit_i_json_find(&row, "count"), 0, PSPLIT_NONE - 1, &device->count);
    device->memory_bytes = psplit_i_read_bytes(psplit_i_json_find(&row, "memory_bytes"));
    device->free_comm = psplit_i_read_truth(psplit_i_json_find(&row, "free_comm"));
    psplit_i_json_text(psplit_i_json_unless_null(psplit_i_json_find(&row, "name")), &device->name);
    if (device->class_id >= p->n_classes) p->n_classes = device->class_id + 1;
  }
  p->n_devices = (uint32_t)n;
  p->devices = devices;
}

/* Links, one for each element of an array of {"latency_ns", "bytes_per_s"}. Where latency is
 * that of messages, the problem has it and the links have none. */
static psplit_link *read_links(const psplit_i_problem_reader *r, const item *list, size_t n) {
  static const char *const KEYS[] = {"latency_ns", "bytes_per_s"};
  psplit_link *links = PSPLIT_I_JSON_NEW(r->json, psplit_link, n);
  int64_t *message = NULL;
  if (r->per_pair) message = PSPLIT_I_JSON_NEW(r->json, int64_t, n);
  for (size_t c = 0; c < n && !failed(r); c++) {
    const item row = psplit_i_json_element(list, c);
    PSPLIT_I_JSON_KEYS(&row, KEYS);
    double latency = 0;
    psplit_i_json_real(psplit_i_json_find(&row, "latency_ns"), 0, 0x1p59, &latency);
    psplit_i_json_real(psplit_i_json_find(&row, "bytes_per_s"), 0, HUGE_VAL, &links[c].bytes_per_s);
    links[c].latency_ns = (int64_t)ceil(latency);
    if (!message) continue;
    message[c] = psplit_i_bytes_ns(r->problem, 0, &links[c]);
    links[c].latency_ns = 0;
  }
  if (message) r->problem->message_ns = message;
  return links;
}

static void own_links(psplit_i_problem_reader *r, item list) {
  psplit_problem *p = r->problem;
  if (!psplit_i_json_given(list)) return;
  p->links = read_links(r, &list, psplit_i_json_length(&list, p->n_classes, p->n_classes));
}

/* Classes of links, and which of them joins each two entries of devices. */
static void own_pairs(psplit_i_problem_reader *r, const item *root) {
  enum { MOST_LINK_CLASSES = 65535 };
  psplit_problem *p = r->problem;
  const size_t n = p->n_devices;
  if (!psplit_i_json_given(psplit_i_json_find(root, "link_classes")) &&
      !psplit_i_json_given(psplit_i_json_find(root, "device_links")))
    return;
  const item classes = psplit_i_json_need(root, "link_classes"),
             rows = psplit_i_json_need(root, "device_links");
  p->n_link_classes = (uint32_t)psplit_i_json_length(&classes, 1, MOST_LINK_CLASSES);
  r->class_link = read_links(r, &classes, p->n_link_classes);
  (void)psplit_i_json_length(&rows, n, n);
  uint32_t *link = PSPLIT_I_JSON_NEW(r->json, uint32_t, n * n);
  for (size_t i = 0; i < n && !failed(r); i++) {
    const item row = psplit_i_json_element(&rows, i);
    (void)psplit_i_json_length(&row, n, n);
    for (size_t j = 0; j < n && !failed(r); j++)
      psplit_i_json_u32(psplit_i_json_element(&row, j), 0, p->n_link_classes - 1, &link[i * n + j]);
  }
  p->device_link = link;
}

/* A number that is not given, or null, is NONE. */
static uint32_t read_number(item number) {
  uint32_t value = PSPLIT_NONE;
  psplit_i_json_u32(psplit_i_json_unless_null(number), 0, PSPLIT_NONE - 1, &value);
  return value;
}

static void own_nodes(psplit_i_problem_reader *r, const item *nodes) {
  static const char *const KEYS[] = {
    "id",       "name", "time_ns",  "weight_bytes", "activation_bytes",
    "together", "pin",  "backward", "auxiliary"};
  psplit_problem *p = r->problem;
  const uint32_t n = p->n_nodes;
  int64_t *time = PSPLIT_I_JSON_NEW(r->json, int64_t, (size_t)n * p->n_classes);
  uint64_t *weight = PSPLIT_I_JSON_NEW(r->json, uint64_t, n),
           *activation = PSPLIT_I_JSON_NEW(r->json, uint64_t, n);
  uint8_t *flags = PSPLIT_I_JSON_NEW(r->json, uint8_t, n);
  uint32_t *together = PSPLIT_I_JSON_NEW(r->json, uint32_t, n),
           *pin = PSPLIT_I_JSON_NEW(r->json, uint32_t, n);
  for (uint32_t v = 0; v < n && !failed(r); v++) {
    const item node = psplit_i_json_element(nodes, v);
    PSPLIT_I_JSON_KEYS(&node, KEYS);
    per_class(r, psplit_i_json_need(&node, "time_ns"), true, p->n_classes,
              time + (size_t)v * p->n_classes);
    weight[v] = psplit_i_read_bytes(psplit_i_json_find(&node, "weight_bytes"));
    activation[v] = psplit_i_read_bytes(psplit_i_json_find(&node, "activation_bytes"));
    together[v] = read_number(psplit_i_json_find(&node, "together"));
    pin[v] = read_number(psplit_i_json_find(&node, "pin"));
    if (psplit_i_read_truth(psplit_i_json_find(&node, "backward")))
      flags[v] |= PSPLIT_NODE_BACKWARD;
    if (psplit_i_read_truth(psplit_i_json_find(&node, "auxiliary")))
      flags[v] |= PSPLIT_NODE_AUXILIARY;
  }
  p->time_ns = time;
  p->weight_bytes = weight;
  p->activation_bytes = activation;
  p->node_flags = flags;
  p->together = together;
  p->pin = pin;
  psplit_i_read_exact(r, nodes);
}

/* Lists of ids of nodes, one for each element of an array: their members in `ids`, as indices;
 * off[array's length + 1]. */
typedef struct id_lists {
  uint32_t *off, *ids;
} id_lists;

static id_lists allocate_lists(psplit_i_problem_reader *r, const item *array, const char *key) {
  const size_t n = length(array);
  size_t total = 0;
  for (size_t i = 0; i < n && !failed(r); i++) {
    const item element = psplit_i_json_element(array, i), list = psplit_i_json_need(&element, key);
    total += length(&list);
  }
  if (total >= PSPLIT_NONE)
    psplit_i_json_fail(array, PSPLIT_LIMIT, "%zu %s are too many", total, key);
  return (id_lists){PSPLIT_I_JSON_NEW(r->json, uint32_t, n + 1),
                    PSPLIT_I_JSON_NEW(r->json, uint32_t, total)};
}

/* The list of element i; that of the one before has been read. */
static void read_list(const psplit_i_problem_reader *r, item list, size_t i, id_lists *io_lists) {
  const size_t n = length(&list);
  for (size_t k = 0; k < n && !failed(r); k++)
    io_lists->ids[io_lists->off[i] + k] = psplit_i_read_node(r, psplit_i_json_element(&list, k));
  io_lists->off[i + 1] = io_lists->off[i] + (uint32_t)n;
}

/* What a tensor takes over each class of links. */
static void read_link_times(psplit_i_problem_reader *r, const item *tensor, uint32_t e,
                            int64_t *out) {
  const psplit_problem *p = r->problem;
  const item given = psplit_i_json_find(tensor, "link_ns");
  if (psplit_i_json_given(given) && !p->n_link_classes)
    psplit_i_json_wrong(&given, "is of links between pairs, and there are no \"link_classes\"");
  else if (psplit_i_json_given(given))
    per_class(r, given, false, p->n_link_classes, out);
  else
    for (uint32_t c = 0; c < p->n_link_classes; c++)
      out[c] = psplit_i_bytes_ns(p, p->net_bytes[e], &r->class_link[c]);
}

static void own_tensors(psplit_i_problem_reader *r, const item *tensors) {
  static const char *const KEYS[] = {"producer", "consumers",  "bytes",      "send_ns", "recv_ns",
                                     "link_ns",  "uncuttable", "no_message", "name"};
  psplit_problem *p = r->problem;
  const size_t n = length(tensors);
  id_lists consumers = allocate_lists(r, tensors, "consumers");
  uint32_t *producer = PSPLIT_I_JSON_NEW(r->json, uint32_t, n);
  uint64_t *bytes = PSPLIT_I_JSON_NEW(r->json, uint64_t, n);
  int64_t *send = PSPLIT_I_JSON_NEW(r->json, int64_t, n * p->n_classes);
  int64_t *recv = PSPLIT_I_JSON_NEW(r->json, int64_t, n * p->n_classes);
  if (n * p->n_link_classes > MOST_LINK_TIMES)
    psplit_i_json_fail(tensors, PSPLIT_LIMIT, "has too many tensors times link classes");
  int64_t *link = PSPLIT_I_JSON_NEW(r->json, int64_t, n * p->n_link_classes);
  uint8_t *flags = PSPLIT_I_JSON_NEW(r->json, uint8_t, n);
  p->n_nets = (uint32_t)n;
  p->net_bytes = bytes;
  for (size_t e = 0; e < n && !failed(r); e++) {
    const item row = psplit_i_json_element(tensors, e);
    PSPLIT_I_JSON_KEYS(&row, KEYS);
    const item given[] = {psplit_i_json_find(&row, "send_ns"), psplit_i_json_find(&row, "recv_ns")};
    producer[e] = psplit_i_read_node(r, psplit_i_json_need(&row, "producer"));
    read_list(r, psplit_i_json_need(&row, "consumers"), e, &consumers);
    bytes[e] = psplit_i_read_bytes(psplit_i_json_find(&row, "bytes"));
    if (psplit_i_read_truth(psplit_i_json_find(&row, "uncuttable")))
      flags[e] |= PSPLIT_NET_UNCUTTABLE;
    if (psplit_i_read_truth(psplit_i_json_find(&row, "no_message")))
      flags[e] |= PSPLIT_NET_NO_MESSAGE;
    for (int side = 0; side < 2; side++) {
      int64_t *out = (side ? recv : send) + e * p->n_classes;
      if (psplit_i_json_given(given[side]))
        per_class(r, given[side], false, p->n_classes, out);
      else
        for (uint32_t c = 0; c < p->n_classes; c++)
          out[c] = psplit_i_net_ns(p, (uint32_t)e, c, side == 0);
    }
    read_link_times(r, &row, (uint32_t)e, link + e * p->n_link_classes);
  }
  p->net_producer = producer;
  p->net_off = consumers.off;
  p->net_consumer = consumers.ids;
  p->net_send_ns = send;
  p->net_recv_ns = recv;
  p->net_link_ns = link;
  p->net_flags = flags;
}

static void own_order(psplit_i_problem_reader *r, item order) {
  const size_t n = length(&order);
  uint32_t *from = PSPLIT_I_JSON_NEW(r->json, uint32_t, n),
           *to = PSPLIT_I_JSON_NEW(r->json, uint32_t, n);
  for (size_t k = 0; k < n && !failed(r); k++) {
    const item pair = psplit_i_json_element(&order, k);
    (void)psplit_i_json_length(&pair, 2, 2);
    from[k] = psplit_i_read_node(r, psplit_i_json_element(&pair, 0));
    to[k] = psplit_i_read_node(r, psplit_i_json_element(&pair, 1));
  }
  r->problem->n_order = (uint32_t)n;
  r->problem->order_from = from;
  r->problem->order_to = to;
}

static void own_weights(psplit_i_problem_reader *r, item weights) {
  static const char *const KEYS[] = {"bytes", "users", "name"};
  psplit_problem *p = r->problem;
  const size_t n = length(&weights);
  id_lists users = allocate_lists(r, &weights, "users");
  uint64_t *bytes = PSPLIT_I_JSON_NEW(r->json, uint64_t, n);
  for (size_t g = 0; g < n && !failed(r); g++) {
    const item weight = psplit_i_json_element(&weights, g);
    PSPLIT_I_JSON_KEYS(&weight, KEYS);
    bytes[g] = psplit_i_read_bytes(psplit_i_json_find(&weight, "bytes"));
    read_list(r, psplit_i_json_need(&weight, "users"), g, &users);
  }
  p->n_weights = (uint32_t)n;
  p->weight_group_bytes = bytes;
  p->weight_off = users.off;
  p->weight_user = users.ids;
}

/* What it counts, and in which version. */
static void own_head(psplit_i_problem_reader *r, const item *root) {
  static const char *const KEYS[] = {
    "format",       "version",      "comm",    "overlap", "any_device_order",
    "stash_1f1b",   "nodes",        "tensors", "devices", "links",
    "link_classes", "device_links", "order",   "weights", "message_latency"};
  static const char *const comms[] = {"p2p", "shared"};
  static const char *const latencies[] = {"per_tensor", "per_pair"};
  psplit_problem *p = r->problem;
  const item version = psplit_i_json_find(root, "version");
  uint32_t comm = 0, latency = 0;
  PSPLIT_I_JSON_KEYS(root, KEYS);
  if (psplit_i_json_given(version) && psplit_i_json_number_or(version, 0) != 1)
    psplit_i_json_fail(&version, PSPLIT_UNSUPPORTED, "is not 1");
  psplit_i_json_choice(psplit_i_json_find(root, "comm"), comms, 2, &comm);
  p->comm = comm ? PSPLIT_COMM_SHARED : PSPLIT_COMM_P2P;
  psplit_i_json_choice(psplit_i_json_find(root, "message_latency"), latencies, 2, &latency);
  r->per_pair = latency;
  p->overlap = psplit_i_read_truth(psplit_i_json_find(root, "overlap"));
  p->any_device_order = psplit_i_read_truth(psplit_i_json_find(root, "any_device_order"));
  p->stash_1f1b = psplit_i_read_truth(psplit_i_json_find(root, "stash_1f1b"));
}

void psplit_i_read_own(psplit_i_problem_reader *r, const psplit_i_json_item *root) {
  own_head(r, root);
  const item nodes = psplit_i_json_need(root, "nodes"),
             tensors = psplit_i_json_find(root, "tensors");
  choose_scale(r, &nodes, &tensors);
  psplit_i_read_ids(r, &nodes);
  own_devices(r, root);
  own_links(r, psplit_i_json_find(root, "links"));
  own_pairs(r, root);
  own_nodes(r, &nodes);
  own_tensors(r, &tensors);
  own_order(r, psplit_i_json_find(root, "order"));
  own_weights(r, psplit_i_json_find(root, "weights"));
}
