/* Builds the partition problem of a planner, and applies stages to the planner. */
#include "builder.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "devices_inside.h"

enum { MOST_LINK_TIMES = 1 << 26 }; /* upper bound on tensors times kinds of links */

/* Puts group `g` into a class. A class that it is in already is merged into that one. */
static void unite(uint32_t *together, uint32_t g, uint32_t *merged, uint32_t class_id) {
  if (class_id == PSPLIT_NONE) return;
  while (merged[class_id] != class_id) class_id = merged[class_id];
  if (together[g] != PSPLIT_NONE) {
    uint32_t other = together[g];
    while (merged[other] != other) other = merged[other];
    merged[other] = class_id;
  }
  together[g] = class_id;
}

static psplit_code build_nodes(psplit_i_builder *b) {
  const psplit_planner *planner = b->planner;
  const psplit_i_graph *graph = planner->graph;
  const size_t n = b->n_groups, n_classes = psplit_i_builder_n_columns(b);
  int64_t *time_ns = psplit_i_builder_array(b, n * n_classes, sizeof *time_ns);
  uint8_t *flags = psplit_i_builder_array(b, n, sizeof *flags);
  uint32_t *pin = psplit_i_builder_array(b, n, sizeof *pin);
  uint32_t *together = psplit_i_builder_array(b, n, sizeof *together);
  const char **names = psplit_i_builder_array(b, n, sizeof *names);
  /* Merges the classes that the members of a group join: `merged` is the parent array of a
   * union-find. */
  const uint32_t n_together = psplit_i_builder_n_together(planner);
  uint32_t *merged = psplit_i_builder_array(b, n_together, sizeof *merged);
  if (b->arena->failed) return psplit_i_nomem(b->diag);
  for (uint32_t c = 0; c < n_together; c++) merged[c] = c;
  for (uint32_t g = 0; g < n; g++) {
    pin[g] = together[g] = PSPLIT_NONE;
    flags[g] = PSPLIT_NODE_AUXILIARY;
  }
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t g = b->group[i];
    if (g == PSPLIT_NONE) continue;
    if (!names[g]) names[g] = graph->nodes[i].name;
    if (!(planner->node_flags[i] & PSPLIT_I_NODE_DEAD)) flags[g] = 0;
    if (planner->pin[i] != PSPLIT_NONE) pin[g] = planner->pin[i];
    for (uint32_t c = 0; c < n_classes; c++) {
      const size_t at = (size_t)psplit_i_builder_class(b, c) * graph->n_nodes + i;
      int64_t *ns = &time_ns[g * n_classes + c];
      if (planner->node_refused && planner->node_refused[at])
        *ns = PSPLIT_TIME_FORBIDDEN;
      else if (*ns != PSPLIT_TIME_FORBIDDEN)
        *ns = psplit_i_sat_add_i64(*ns, planner->node_ns[at]);
    }
    const uint32_t state = planner->state_class[i];
    unite(together, g, merged, planner->together[i]);
    unite(together, g, merged, state == PSPLIT_NONE ? state : planner->n_together + state);
  }
  for (uint32_t g = 0; g < n; g++)
    while (together[g] != PSPLIT_NONE && merged[together[g]] != together[g])
      together[g] = merged[together[g]];
  b->problem.n_nodes = b->n_groups;
  b->problem.n_classes = psplit_i_builder_n_columns(b);
  b->problem.time_ns = time_ns;
  b->problem.node_flags = flags;
  b->problem.pin = pin;
  b->together = together;
  b->problem.node_name = names;
  return psplit_i_builder_share(b, n_together);
}

/* Nets under construction: tensors first, then layout prices and charges. */
typedef struct net_list {
  uint32_t *producer, *off, *consumer; /* off[n + 1] into consumer */
  uint64_t *bytes;
  uint8_t *flags;
  bool *charged;    /* false: the net costs nothing */
  bool *message;    /* the net makes a message, where latency is charged per message */
  uint32_t *charge; /* index into b->charges, or PSPLIT_NONE */
  uint32_t *price;  /* index into the layout prices, or PSPLIT_NONE */
  uint32_t n;
  uint32_t *last; /* [n_groups] stamp (from 1) of the last net that includes the group */
} net_list;

/* Whether the value is read by a group other than that of its producer `p`. */
static bool crosses(const psplit_i_builder *b, uint32_t p, uint32_t value) {
  const psplit_i_graph *graph = b->planner->graph;
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
    const uint32_t g = b->group[graph->consumers[c]];
    if (g != PSPLIT_NONE && g != b->group[p]) return true;
  }
  return false;
}

static psplit_code make_net_list(psplit_i_builder *b, net_list *out) {
  const psplit_i_graph *graph = b->planner->graph;
  const psplit_i_layout_prices *prices = &b->prices;
  size_t n_nets = prices->n, n_pins = prices->n ? prices->off[prices->n] : 0;
  if (b->charges && b->charges->n) {
    n_nets += b->charges->n;
    n_pins += b->charges->off[b->charges->n];
  }
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t p = graph->values[v].producer;
    if (p == PSPLIT_NONE || b->group[p] == PSPLIT_NONE || !crosses(b, p, v)) continue;
    n_nets++;
    n_pins += graph->consumer_off[v + 1] - graph->consumer_off[v];
  }
  *out = (net_list){.producer = psplit_i_builder_array(b, n_nets, sizeof *out->producer),
                    .off = psplit_i_builder_array(b, n_nets + 1, sizeof *out->off),
                    .consumer = psplit_i_builder_array(b, n_pins, sizeof *out->consumer),
                    .bytes = psplit_i_builder_array(b, n_nets, sizeof *out->bytes),
                    .flags = psplit_i_builder_array(b, n_nets, sizeof *out->flags),
                    .charged = psplit_i_builder_array(b, n_nets, sizeof *out->charged),
                    .message = psplit_i_builder_array(b, n_nets, sizeof *out->message),
                    .charge = psplit_i_builder_array(b, n_nets, sizeof *out->charge),
                    .price = psplit_i_builder_array(b, n_nets, sizeof *out->price),
                    .last = psplit_i_builder_array(b, b->n_groups, sizeof *out->last)};
  return b->arena->failed ? psplit_i_nomem(b->diag) : PSPLIT_OK;
}

/* Adds the net from node `p` to the readers in other groups. Returns false if there are none. */
static bool add_net(psplit_i_builder *b, net_list *nets, uint32_t p, const uint32_t *reader,
                    uint32_t n) {
  const uint32_t first = nets->off[nets->n], stamp = nets->n + 1;
  uint32_t end = first;
  if (b->group[p] == PSPLIT_NONE) return false;
  nets->last[b->group[p]] = stamp;
  for (uint32_t r = 0; r < n; r++) {
    const uint32_t g = b->group[reader[r]];
    if (g == PSPLIT_NONE || nets->last[g] == stamp) continue;
    nets->last[g] = stamp;
    nets->consumer[end++] = g;
  }
  if (end == first) {
    nets->last[b->group[p]] = 0; /* the next net uses the same stamp */
    return false;
  }
  nets->producer[nets->n] = b->group[p];
  nets->price[nets->n] = nets->charge[nets->n] = PSPLIT_NONE;
  nets->off[++nets->n] = end;
  return true;
}

/* The time of one tensor over a link. Where latency is charged per message, only its bytes
 * count. */
static int64_t tensor_ns(const psplit_i_builder *b, const psplit_device_link *link,
                         uint64_t bytes) {
  psplit_device_link of = *link;
  if (b->planner->options.message_latency == PSPLIT_LATENCY_PER_PAIR) of.latency_ns = 0;
  return psplit_i_link_ns(&of, bytes);
}

static const psplit_device_link *link_of(const psplit_i_builder *b, uint32_t s, uint32_t t) {
  const uint32_t n_stages = b->planner->options.n_stages;
  const uint32_t at = t < s ? t * n_stages + s : s * n_stages + t;
  return &b->links.link[b->links.of_pair[at]];
}

/* The time of a tensor between stage s and a stage before it or behind it. 0 if there is none. */
static int64_t stage_link_ns(const psplit_i_builder *b, uint32_t s, bool before, uint64_t bytes) {
  int64_t least = INT64_MAX;
  const uint32_t n_stages = b->planner->options.n_stages;
  if (before ? s == 0 : s + 1 == n_stages) return 0;
  if (b->link_model == PSPLIT_I_LINKS_BESIDE)
    return tensor_ns(b, link_of(b, s, before ? s - 1 : s + 1), bytes);
  for (uint32_t t = before ? 0 : s + 1; t < (before ? s : n_stages); t++) {
    const int64_t ns = tensor_ns(b, link_of(b, s, t), bytes);
    if (ns < least) least = ns;
  }
  return least;
}

/* The least latency of the links of stage s, or the mean of those to its neighbours. */
static int64_t stage_latency_ns(const psplit_i_builder *b, uint32_t s) {
  int64_t least = INT64_MAX;
  const uint32_t n_stages = b->planner->options.n_stages;
  if (b->link_model == PSPLIT_I_LINKS_BESIDE) {
    const int64_t in = link_of(b, s, s ? s - 1 : 1)->latency_ns;
    const int64_t out = link_of(b, s, s + 1 < n_stages ? s + 1 : s - 1)->latency_ns;
    return in / 2 + out / 2;
  }
  for (uint32_t t = 0; t < n_stages; t++)
    if (t != s && link_of(b, s, t)->latency_ns < least) least = link_of(b, s, t)->latency_ns;
  return least;
}

static int64_t least_link_ns(const psplit_i_builder *b, uint64_t bytes) {
  int64_t least = INT64_MAX;
  for (uint32_t k = 0; k < b->links.n; k++) {
    const int64_t ns = tensor_ns(b, &b->links.link[k], bytes);
    if (ns < least) least = ns;
  }
  return least;
}

/* Sets the message latencies, per kind of link or per device class, if latency is charged per
 * message. */
static psplit_code build_messages(psplit_i_builder *b, net_list *nets, size_t n_kinds) {
  psplit_problem *p = &b->problem;
  const size_t n = n_kinds > 1 ? n_kinds : p->n_classes;
  if (b->planner->options.message_latency != PSPLIT_LATENCY_PER_PAIR || n_kinds == 0 ||
      b->charges_messages)
    return PSPLIT_OK;
  int64_t *ns = psplit_i_builder_array(b, n, sizeof *ns), most = 0;
  if (!ns) return psplit_i_nomem(b->diag);
  for (size_t c = 0; c < n; c++) { /* the first has the least latency */
    ns[c] = b->link_model ? stage_latency_ns(b, (uint32_t)c)
                          : b->links.link[n_kinds > 1 ? c : 0].latency_ns;
    if (ns[c] > most) most = ns[c];
  }
  if (most == 0) return PSPLIT_OK; /* identical to the problem with latency per tensor */
  for (uint32_t e = 0; e < nets->n; e++)
    if (!nets->message[e]) nets->flags[e] |= PSPLIT_NET_NO_MESSAGE;
  p->message_ns = ns;
  return PSPLIT_OK;
}

/* Whether the stages of a column pay the charge. */
static bool pays(const psplit_i_charges *charges, uint32_t charge, size_t column) {
  return !charges->kind_of_column || charges->kind_of_column[column] == charges->kind[charge];
}

/* Whether the problem is a relaxation that has one kind of link, whatever links there are. */
static bool any_links_do(const psplit_i_builder *b) {
  return b->any_order || b->link_model || b->layouts_alone;
}

/* Sets the times of each net: for the single kind of link, or for each kind. */
static psplit_code build_times(psplit_i_builder *b, net_list *nets) {
  psplit_problem *p = &b->problem;
  const bool one_kind = any_links_do(b) && b->links.n;
  const size_t n_kinds = one_kind ? 1 : b->links.n, n_classes = p->n_classes;
  const size_t n = n_kinds > 1 ? n_kinds : n_classes;
  if (n_kinds > 1 && p->n_nets > MOST_LINK_TIMES / n_kinds)
    return psplit_i_fail(b->diag, PSPLIT_LIMIT,
                         "%" PRIu32 " different links and %" PRIu32
                         " tensors are too many to plan; "
                         "let links be equal, or fewer tensors cross between supernodes",
                         b->links.n, p->n_nets);
  int64_t *ns = psplit_i_builder_array(b, p->n_nets * n, sizeof *ns), *recv_ns = ns;
  if (b->prices.n || b->charges || b->link_model)
    recv_ns = psplit_i_builder_array(b, p->n_nets * n, sizeof *recv_ns);
  if (!ns || !recv_ns) return psplit_i_nomem(b->diag);
  for (size_t e = 0; e < p->n_nets && n_kinds; e++) {
    const uint32_t price = nets->price[e];
    const uint32_t charge = nets->charge[e];
    for (size_t c = 0; c < n && nets->charged[e]; c++) {
      if (charge != PSPLIT_NONE) {
        if (!pays(b->charges, charge, c)) continue;
        ns[e * n + c] = b->charges->send_ns[charge];
        recv_ns[e * n + c] = b->charges->recv_ns[charge];
        continue;
      }
      if (price != PSPLIT_NONE) {
        const size_t at =
          (size_t)price * b->planner->n_classes + psplit_i_builder_class(b, (uint32_t)c);
        ns[e * n + c] = b->prices.send_ns[at];
        recv_ns[e * n + c] = b->prices.recv_ns[at];
        continue;
      }
      const int64_t sent_ns =
        b->any_order    ? least_link_ns(b, p->net_bytes[e])
        : b->link_model ? stage_link_ns(b, (uint32_t)c, false, p->net_bytes[e])
                        : tensor_ns(b, &b->links.link[n_kinds > 1 ? c : 0], p->net_bytes[e]);
      ns[e * n + c] = sent_ns;
      recv_ns[e * n + c] =
        b->link_model ? stage_link_ns(b, (uint32_t)c, true, p->net_bytes[e]) : sent_ns;
    }
  }
  if (n_kinds > 1) {
    p->n_link_classes = b->links.n;
    p->device_link = b->links.of_pair;
    p->net_link_ns = ns;
  } else {
    p->net_send_ns = ns;
    p->net_recv_ns = recv_ns;
  }
  return build_messages(b, nets, n_kinds);
}

/* Makes one net for every value that is read by another group than its producer's, one for every
 * layout price between groups, and one for every charge. */
static psplit_code build_nets(psplit_i_builder *b) {
  psplit_code code;
  const psplit_planner *planner = b->planner;
  const psplit_i_graph *graph = planner->graph;
  const psplit_i_layout_prices *prices = &b->prices;
  net_list nets;
  PSPLIT_TRY(make_net_list(b, &nets));
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t p = graph->values[v].producer, first = graph->consumer_off[v];
    const uint32_t e = nets.n;
    if (p == PSPLIT_NONE ||
        !add_net(b, &nets, p, graph->consumers + first, graph->consumer_off[v + 1] - first))
      continue;
    nets.bytes[e] = psplit_i_planner_sent_bytes(planner, v, NULL);
    if (!psplit_i_planner_sendable(planner, v) || planner->uncuttable[v])
      nets.flags[e] = PSPLIT_NET_UNCUTTABLE;
    /* Results of nodes that are not copied make messages, even if charges stand for their bytes. */
    nets.message[e] = !b->layouts_alone && !(b->copied && b->copied[p]);
    nets.charged[e] = nets.message[e] && !b->charges;
  }
  b->n_tensors = nets.n;
  for (uint32_t i = 0; i < prices->n; i++) {
    const uint32_t p = prices->maker[i], first = prices->off[i], e = nets.n;
    if (!add_net(b, &nets, p, prices->reader + first, prices->off[i + 1] - first)) continue;
    nets.price[e] = i;
    nets.charged[e] = !(b->copied && b->copied[p]);
  }
  for (uint32_t i = 0; b->charges && i < b->charges->n; i++) {
    const psplit_i_charges *charges = b->charges;
    const uint32_t first = charges->off[i], e = nets.n;
    if (!add_net(b, &nets, charges->producer[i], charges->reader + first,
                 charges->off[i + 1] - first))
      continue;
    nets.charge[e] = i;
    nets.charged[e] = true;
  }
  b->problem.n_nets = nets.n;
  b->problem.net_producer = nets.producer;
  b->problem.net_off = nets.off;
  b->problem.net_consumer = nets.consumer;
  b->problem.net_bytes = nets.bytes;
  b->problem.net_flags = nets.flags;
  return build_times(b, &nets);
out:
  return code;
}

/* Weights: private to a group, or shared by several groups and then counted once per stage. */
static psplit_code build_weights(psplit_i_builder *b) {
  const psplit_planner *planner = b->planner;
  const psplit_i_graph *graph = planner->graph;
  size_t n_shared = 0, n_users = 0;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (psplit_i_planner_is_constant(planner, v)) {
      n_shared++;
      n_users += graph->consumer_off[v + 1] - graph->consumer_off[v];
    }
  uint64_t *private_bytes = psplit_i_builder_array(b, b->n_groups, sizeof *private_bytes);
  uint64_t *shared_bytes = psplit_i_builder_array(b, n_shared, sizeof *shared_bytes);
  uint32_t *off = psplit_i_builder_array(b, n_shared + 1, sizeof *off);
  uint32_t *user = psplit_i_builder_array(b, n_users, sizeof *user);
  uint32_t *last = psplit_i_builder_array(b, b->n_groups, sizeof *last);
  if (b->arena->failed) return psplit_i_nomem(b->diag);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const uint32_t g = b->group[n];
    if (g == PSPLIT_NONE) continue;
    private_bytes[g] = psplit_i_sat_add_u64(private_bytes[g], psplit_i_node_inner_bytes(graph, n));
  }
  uint32_t weight = 0, at = 0;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    if (!psplit_i_planner_is_constant(planner, v)) continue;
    const uint32_t first = at;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++) {
      const uint32_t g = b->group[graph->consumers[c]];
      if (g == PSPLIT_NONE || last[g] == v + 1) continue;
      last[g] = v + 1;
      user[at++] = g;
    }
    const uint64_t bytes = psplit_i_planner_weight_bytes(planner, v);
    if (at == first + 1) {
      private_bytes[user[first]] = psplit_i_sat_add_u64(private_bytes[user[first]], bytes);
      at = first;
    } else if (at > first) {
      shared_bytes[weight++] = bytes;
      off[weight] = at;
    }
  }
  b->problem.weight_bytes = private_bytes;
  b->problem.n_weights = weight;
  b->problem.weight_group_bytes = shared_bytes;
  b->problem.weight_off = off;
  b->problem.weight_user = user;
  return PSPLIT_OK;
}

/* Whether tensors may take any route. Shared memory is a relaxation of all of them. Charges are not
 * tensors, so no stage relays them. Where the order is open and a link is missing, stages relay in
 * some order. */
static bool any_route(const psplit_i_builder *b) {
  return b->planner->passes_on || (b->charges && b->planner->next_hop) ||
         (b->any_order && !psplit_i_all_linked(b->planner, true));
}

static psplit_code build_devices(psplit_i_builder *b, const uint64_t *memory_bytes) {
  const psplit_planner *planner = b->planner;
  psplit_device *devices = psplit_i_builder_array(b, planner->options.n_stages, sizeof *devices);
  if (!devices) return psplit_i_nomem(b->diag);
  for (uint32_t d = 0; d < planner->options.n_stages; d++)
    devices[d] =
      (psplit_device){.class_id = b->link_model ? d : planner->device_class[d],
                      .count = 1,
                      .memory_bytes = memory_bytes[d] == UINT64_MAX ? 0 : memory_bytes[d],
                      .name = psplit_devices_name(planner->devices, d)};
  b->problem.n_devices = planner->options.n_stages;
  b->problem.devices = devices;
  b->problem.comm = any_route(b) ? PSPLIT_COMM_SHARED : PSPLIT_COMM_P2P;
  b->problem.next_hop = b->any_order || any_route(b) ? NULL : planner->next_hop;
  b->problem.any_device_order = b->any_order;
  b->problem.overlap = planner->options.overlap && !b->layouts_alone;
  b->problem.ticks_per_unit = 1;
  return PSPLIT_OK;
}

psplit_code psplit_i_builder_number(psplit_i_builder *b) {
  b->group = psplit_i_builder_array(b, b->planner->graph->n_nodes, sizeof *b->group);
  if (!b->group) return psplit_i_nomem(b->diag);
  psplit_i_grouping_number(&b->planner->grouping, b->group);
  b->n_groups = b->planner->grouping.n_groups;
  return PSPLIT_OK;
}

psplit_code psplit_i_builder_build(psplit_i_builder *b, const uint64_t *memory_bytes) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_links_find(b->planner, b->any_order, b->arena, b->diag, &b->links));
  PSPLIT_TRY(build_nodes(b));
  /* Layout prices are not counted with relays, which would pay them too; with links per pair, whose
   * times are the same at both ends; or with overlap, where they belong to computation. Then only
   * the plan counts them, and the bound is lower. */
  const bool counted = !b->planner->options.overlap || b->layouts_alone;
  const bool linked = !b->planner->next_hop || b->planner->passes_on || b->charges;
  const bool one_kind = b->links.n == 1 || any_links_do(b);
  if (one_kind && linked && counted)
    PSPLIT_TRY(psplit_i_layout_prices_find(b->planner, b->arena, b->diag, &b->prices));
  PSPLIT_TRY(build_nets(b));
  PSPLIT_TRY(build_weights(b));
  PSPLIT_TRY(build_devices(b, memory_bytes));
  if (b->planner->options.objective == PSPLIT_FILL_DRAIN)
    PSPLIT_TRY(psplit_i_builder_add_backward(b));
out:
  return code;
}

psplit_code psplit_i_builder_lacks_layouts(psplit_i_builder *b, bool *out) {
  const psplit_planner *planner = b->planner;
  psplit_i_layout_prices prices = {0};
  const bool differ = b->links.n > 1 && !b->any_order;
  *out = false;
  if (!(differ || planner->options.overlap) || b->layouts_alone || b->link_model ||
      planner->next_hop || planner->options.objective != PSPLIT_THROUGHPUT)
    return PSPLIT_OK;
  const psplit_code code = psplit_i_layout_prices_find(planner, b->arena, b->diag, &prices);
  if (code == PSPLIT_OK) *out = prices.n > 0;
  return code;
}

psplit_code psplit_i_builder_unlimited(psplit_i_builder *b) {
  psplit_code code;
  b->any_order |= b->planner->order_is_free && !b->planner->order_chosen;
  const uint32_t n_stages = b->planner->options.n_stages;
  uint64_t *no_limit = psplit_i_builder_array(b, n_stages, sizeof *no_limit);
  if (!no_limit) return psplit_i_nomem(b->diag);
  for (uint32_t s = 0; s < n_stages; s++) no_limit[s] = UINT64_MAX;
  PSPLIT_TRY(psplit_i_builder_build(b, no_limit));
out:
  return code;
}

psplit_code psplit_i_builder_adopt(psplit_planner *planner, const uint32_t *node_stage,
                                   psplit_diag *diag) {
  psplit_code code;
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  planner->copies.n = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (b.group[n] != PSPLIT_NONE) planner->stage[n] = node_stage[n];
  PSPLIT_TRY(psplit_i_builder_place_free(&b));
  PSPLIT_TRY(psplit_i_plan_make(planner, diag));
out:
  return code;
}

bool psplit_i_plan_fits(const psplit_planner *planner) {
  for (uint32_t s = 0; s < planner->options.n_stages; s++)
    if (planner->plan->stages[s].memory_bytes > psplit_devices_memory_bytes(planner->devices, s))
      return false;
  return true;
}

psplit_code psplit_i_problem_make(psplit_planner *planner, psplit_diag *diag,
                                  psplit_problem *out_problem, uint32_t **out_group) {
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = diag};
  psplit_code code = psplit_i_builder_number(&b);
  if (code == PSPLIT_OK) code = psplit_i_builder_unlimited(&b);
  if (code != PSPLIT_OK) return code;
  *out_problem = b.problem;
  *out_group = b.group;
  return PSPLIT_OK;
}
