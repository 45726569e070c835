/* A problem as JSON of the project's own format. Times are whole ticks, so what is read back is the
 * same problem. */
#include "base.h"
#include "problem.h"

static void write_times(psplit_i_json *json, const char *key, const int64_t *ticks, uint32_t n) {
  psplit_i_json_key(json, key);
  if (n > 1) psplit_i_json_open(json, '[');
  for (uint32_t c = 0; c < n; c++)
    if (ticks[c] == PSPLIT_TIME_FORBIDDEN)
      psplit_i_json_null(json);
    else
      psplit_i_json_int(json, ticks[c]);
  if (n > 1) psplit_i_json_close(json, ']');
}

static void write_uint(psplit_i_json *json, const char *key, uint64_t value) {
  psplit_i_json_key(json, key);
  psplit_i_json_uint(json, value);
}

static void write_flag(psplit_i_json *json, const char *key, bool value) {
  if (!value) return;
  psplit_i_json_key(json, key);
  psplit_i_json_bool(json, true);
}

/* Classes up to the last that a device is of: readers expect so many. */
static uint32_t n_classes_listed(const psplit_problem *p) {
  uint32_t n = 1;
  for (uint32_t d = 0; d < p->n_devices; d++)
    if (p->devices[d].class_id >= n) n = p->devices[d].class_id + 1;
  return n;
}

static void write_devices(psplit_i_json *json, const psplit_problem *p) {
  psplit_i_json_key(json, "devices");
  psplit_i_json_open(json, '[');
  for (uint32_t d = 0; d < p->n_devices; d++) {
    const psplit_device *device = &p->devices[d];
    psplit_i_json_open(json, '{');
    json->compact = true;
    if (device->name) {
      psplit_i_json_key(json, "name");
      psplit_i_json_string(json, device->name);
    }
    write_uint(json, "class", device->class_id);
    write_uint(json, "count", device->count);
    /* More than the format holds is more than there is. */
    const bool limited = device->memory_bytes && device->memory_bytes < UINT64_C(1) << 53;
    if (limited) write_uint(json, "memory_bytes", device->memory_bytes);
    write_flag(json, "free_comm", device->free_comm);
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

/* Links: what a message takes over each, if messages count. */
static void write_messages(psplit_i_json *json, const psplit_problem *p, uint32_t n) {
  for (uint32_t c = 0; c < n; c++) {
    psplit_i_json_open(json, '{');
    json->compact = true;
    if (p->message_ns) {
      psplit_i_json_key(json, "latency_ns");
      psplit_i_json_int(json, p->message_ns[c]);
    }
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
}

/* Links by class of devices, which say what a message takes. */
static void write_class_links(psplit_i_json *json, const psplit_problem *p, uint32_t n_classes) {
  psplit_i_json_key(json, "links");
  psplit_i_json_open(json, '[');
  write_messages(json, p, n_classes);
  psplit_i_json_close(json, ']');
}

/* Which class of links joins which entries; what each takes stands with the tensors. */
static void write_links(psplit_i_json *json, const psplit_problem *p) {
  psplit_i_json_key(json, "link_classes");
  psplit_i_json_open(json, '[');
  write_messages(json, p, p->n_link_classes);
  psplit_i_json_close(json, ']');
  psplit_i_json_key(json, "device_links");
  psplit_i_json_open(json, '[');
  for (uint32_t d = 0; d < p->n_devices; d++) {
    psplit_i_json_open(json, '[');
    json->compact = true;
    for (uint32_t other = 0; other < p->n_devices; other++)
      psplit_i_json_uint(json, p->device_link[(size_t)d * p->n_devices + other]);
    psplit_i_json_close(json, ']');
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

static void write_node(psplit_i_json *json, const psplit_problem *p, uint32_t v,
                       uint32_t n_classes) {
  const uint8_t flags = p->node_flags ? p->node_flags[v] : 0;
  psplit_i_json_open(json, '{');
  json->compact = true;
  write_uint(json, "id", v);
  if (p->node_name && p->node_name[v]) {
    psplit_i_json_key(json, "name");
    psplit_i_json_string(json, p->node_name[v]);
  }
  write_times(json, "time_ns", p->time_ns + (size_t)v * p->n_classes, n_classes);
  if (p->weight_bytes && p->weight_bytes[v]) write_uint(json, "weight_bytes", p->weight_bytes[v]);
  if (p->activation_bytes && p->activation_bytes[v])
    write_uint(json, "activation_bytes", p->activation_bytes[v]);
  if (p->together && p->together[v] != PSPLIT_NONE) write_uint(json, "together", p->together[v]);
  if (p->pin && p->pin[v] != PSPLIT_NONE) write_uint(json, "pin", p->pin[v]);
  write_flag(json, "backward", flags & PSPLIT_NODE_BACKWARD);
  write_flag(json, "auxiliary", flags & PSPLIT_NODE_AUXILIARY);
  psplit_i_json_close(json, '}');
  json->compact = false;
}

static void write_ids(psplit_i_json *json, const char *key, const uint32_t *ids, uint32_t n) {
  if (key) psplit_i_json_key(json, key);
  psplit_i_json_open(json, '[');
  for (uint32_t k = 0; k < n; k++) psplit_i_json_uint(json, ids[k]);
  psplit_i_json_close(json, ']');
}

/* ticks[n_classes] is its own. */
static void write_tensor(psplit_i_json *json, const psplit_problem *p, uint32_t e, int64_t *ticks,
                         uint32_t n_classes) {
  psplit_i_json_open(json, '{');
  json->compact = true;
  write_uint(json, "producer", p->net_producer[e]);
  write_ids(json, "consumers", p->net_consumer + p->net_off[e], p->net_off[e + 1] - p->net_off[e]);
  if (p->net_bytes && p->net_bytes[e]) write_uint(json, "bytes", p->net_bytes[e]);
  if (p->n_link_classes)
    write_times(json, "link_ns", p->net_link_ns + (size_t)e * p->n_link_classes, p->n_link_classes);
  for (int send = 1; send >= 0 && !p->n_link_classes; send--) {
    for (uint32_t c = 0; c < n_classes; c++) ticks[c] = psplit_i_net_ns(p, e, c, send);
    write_times(json, send ? "send_ns" : "recv_ns", ticks, n_classes);
  }
  write_flag(json, "uncuttable", p->net_flags && (p->net_flags[e] & PSPLIT_NET_UNCUTTABLE));
  write_flag(json, "no_message", p->net_flags && (p->net_flags[e] & PSPLIT_NET_NO_MESSAGE));
  psplit_i_json_close(json, '}');
  json->compact = false;
}

static void write_order(psplit_i_json *json, const psplit_problem *p) {
  psplit_i_json_key(json, "order");
  psplit_i_json_open(json, '[');
  for (uint32_t k = 0; k < p->n_order; k++) {
    const uint32_t pair[] = {p->order_from[k], p->order_to[k]};
    json->compact = true;
    write_ids(json, NULL, pair, 2);
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

static void write_weights(psplit_i_json *json, const psplit_problem *p) {
  psplit_i_json_key(json, "weights");
  psplit_i_json_open(json, '[');
  for (uint32_t g = 0; g < p->n_weights; g++) {
    psplit_i_json_open(json, '{');
    json->compact = true;
    write_uint(json, "bytes", p->weight_group_bytes[g]);
    write_ids(json, "users", p->weight_user + p->weight_off[g],
              p->weight_off[g + 1] - p->weight_off[g]);
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

psplit_code psplit_problem_format_json(const psplit_problem *p, psplit_diag *diag, char **out_text,
                                       size_t *out_n) {
  psplit_code code = psplit_i_problem_validate(p, diag);
  if (code != PSPLIT_OK) return code;
  psplit_i_arena arena;
  psplit_i_text text = {0};
  psplit_i_json json;
  psplit_i_arena_init(&arena, 0);
  const uint32_t n_classes = n_classes_listed(p);
  int64_t *ticks = PSPLIT_NEW(&arena, int64_t, n_classes);
  psplit_i_json_init(&json, &text);
  psplit_i_json_open(&json, '{');
  psplit_i_json_key(&json, "format");
  psplit_i_json_string(&json, "psplit-problem");
  write_uint(&json, "version", 1);
  psplit_i_json_key(&json, "comm");
  psplit_i_json_string(&json, p->comm == PSPLIT_COMM_P2P ? "p2p" : "shared");
  if (p->message_ns) {
    psplit_i_json_key(&json, "message_latency");
    psplit_i_json_string(&json, "per_pair");
  }
  write_flag(&json, "overlap", p->overlap);
  write_flag(&json, "any_device_order", p->any_device_order);
  write_flag(&json, "stash_1f1b", p->stash_1f1b);
  write_devices(&json, p);
  if (p->n_link_classes) write_links(&json, p);
  if (p->message_ns && !p->n_link_classes) write_class_links(&json, p, n_classes);
  psplit_i_json_key(&json, "nodes");
  psplit_i_json_open(&json, '[');
  for (uint32_t v = 0; v < p->n_nodes; v++) write_node(&json, p, v, n_classes);
  psplit_i_json_close(&json, ']');
  psplit_i_json_key(&json, "tensors");
  psplit_i_json_open(&json, '[');
  for (uint32_t e = 0; ticks && e < p->n_nets; e++) write_tensor(&json, p, e, ticks, n_classes);
  psplit_i_json_close(&json, ']');
  if (p->n_order) write_order(&json, p);
  if (p->n_weights) write_weights(&json, p);
  psplit_i_json_close(&json, '}');
  psplit_i_text_puts(&text, "\n");
  code = ticks && !text.failed ? PSPLIT_OK : psplit_i_nomem(diag);
  if (code == PSPLIT_OK) {
    *out_text = text.bytes;
    *out_n = text.n;
  } else {
    psplit_i_text_fini(&text);
  }
  psplit_i_arena_fini(&arena);
  return code;
}
