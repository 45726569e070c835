/* Adds the backward pass to the partition problem. Each supernode gets a backward node in the same
 * stage, with its backward time, and each tensor that crosses gets its gradient, which is sent
 * back. */
#include "builder.h"

#include <inttypes.h>
#include <string.h>

/* The backward times of the supernodes: [n_groups * n_classes]. */
static int64_t *sum_backward(psplit_i_builder *b) {
  const psplit_planner *planner = b->planner;
  const size_t n_classes = planner->n_classes, n_nodes = planner->graph->n_nodes;
  int64_t *ns = psplit_i_builder_array(b, b->n_groups * n_classes, sizeof *ns);
  for (uint32_t i = 0; ns && i < n_nodes; i++)
    for (size_t c = 0; c < n_classes && b->group[i] != PSPLIT_NONE; c++) {
      int64_t *sum = &ns[b->group[i] * n_classes + c];
      *sum = psplit_i_sat_add_i64(*sum, psplit_i_planner_backward_ns(planner, c * n_nodes + i));
    }
  return ns;
}

/* Divides supernode g into nodes g and n_groups + g. Properties of the stage (pins, weights,
 * whether it has work) are stated for the first only. */
static psplit_code double_nodes(psplit_i_builder *b) {
  psplit_problem *p = &b->problem;
  const size_t n = b->n_groups, n_classes = p->n_classes;
  const int64_t *backward_ns = sum_backward(b);
  int64_t *time_ns = psplit_i_builder_array(b, 2 * n * n_classes, sizeof *time_ns);
  uint64_t *weight_bytes = psplit_i_builder_array(b, 2 * n, sizeof *weight_bytes);
  uint8_t *flags = psplit_i_builder_array(b, 2 * n, sizeof *flags);
  uint32_t *pin = psplit_i_builder_array(b, 2 * n, sizeof *pin);
  const char **names = psplit_i_builder_array(b, 2 * n, sizeof *names);
  if (b->arena->failed) return psplit_i_nomem(b->diag);
  for (size_t g = 0; g < n; g++) {
    for (size_t c = 0; c < n_classes; c++) {
      const int64_t ns = p->time_ns[g * n_classes + c], back_ns = backward_ns[g * n_classes + c];
      const bool runs = ns != PSPLIT_TIME_FORBIDDEN;
      time_ns[g * n_classes + c] = runs ? ns - back_ns : ns;
      time_ns[(n + g) * n_classes + c] = runs ? back_ns : ns;
    }
    weight_bytes[g] = p->weight_bytes[g];
    flags[g] = p->node_flags[g];
    flags[n + g] = PSPLIT_NODE_BACKWARD | PSPLIT_NODE_AUXILIARY;
    pin[g] = p->pin[g];
    pin[n + g] = PSPLIT_NONE;
    names[g] = names[n + g] = p->node_name[g];
  }
  p->n_nodes = 2 * b->n_groups;
  p->time_ns = time_ns;
  p->weight_bytes = weight_bytes;
  p->node_flags = flags;
  p->pin = pin;
  p->node_name = names;
  return psplit_i_builder_share(b, psplit_i_builder_n_together(b->planner));
}

/* Divides the cost of the first n_tensors nets between the tensor and its gradient. The gradients
 * are appended as nets among the backward nodes. They keep the direction of the tensor, since
 * sender and receiver are charged the same time. Other costs of cuts are part of the forward
 * pass. */
static psplit_code double_nets(psplit_i_builder *b) {
  psplit_problem *p = &b->problem;
  const uint32_t n = p->n_nets, n_back = b->n_tensors;
  const size_t n_all = (size_t)n + n_back, n_classes = p->n_classes, n_pins = p->net_off[n];
  uint32_t *producer = psplit_i_builder_array(b, n_all, sizeof *producer);
  uint32_t *off = psplit_i_builder_array(b, n_all + 1, sizeof *off);
  uint32_t *consumer = psplit_i_builder_array(b, n_pins + p->net_off[n_back], sizeof *consumer);
  uint64_t *bytes = psplit_i_builder_array(b, n_all, sizeof *bytes);
  int64_t *send_ns = psplit_i_builder_array(b, n_all * n_classes, sizeof *send_ns);
  int64_t *recv_ns = psplit_i_builder_array(b, n_all * n_classes, sizeof *recv_ns);
  uint8_t *flags = psplit_i_builder_array(b, n_all, sizeof *flags);
  if (b->arena->failed) return psplit_i_nomem(b->diag);
  for (uint32_t e = 0; e < n_all; e++) {
    const uint32_t from = e < n ? e : e - n, first = p->net_off[from];
    const uint32_t shift = e < n ? 0 : b->n_groups, n_readers = p->net_off[from + 1] - first;
    producer[e] = shift + p->net_producer[from];
    off[e + 1] = off[e] + n_readers;
    for (uint32_t k = 0; k < n_readers; k++)
      consumer[off[e] + k] = shift + p->net_consumer[first + k];
    bytes[e] = p->net_bytes[from];
    flags[e] = p->net_flags[from];
    for (size_t c = 0; c < n_classes; c++) {
      int64_t sent = p->net_send_ns[from * n_classes + c];
      int64_t received = p->net_recv_ns[from * n_classes + c];
      if (from < n_back) {
        const int64_t back = psplit_i_planner_returning_ns(sent);
        sent = received = e < n ? sent - back : back;
      }
      send_ns[e * n_classes + c] = sent;
      recv_ns[e * n_classes + c] = received;
    }
  }
  p->n_nets = (uint32_t)n_all;
  p->net_producer = producer;
  p->net_off = off;
  p->net_consumer = consumer;
  p->net_bytes = bytes;
  p->net_send_ns = send_ns;
  p->net_recv_ns = recv_ns;
  p->net_flags = flags;
  return PSPLIT_OK;
}

psplit_code psplit_i_builder_add_backward(psplit_i_builder *b) {
  psplit_code code;
  psplit_problem *p = &b->problem;
  if (p->n_link_classes || p->next_hop)
    return psplit_i_fail(b->diag, PSPLIT_UNSUPPORTED,
                         "fill-drain requires the same link between all pairs of devices");
  if (b->n_groups > UINT32_MAX / 2 || p->n_nets > UINT32_MAX / 2 ||
      p->net_off[p->n_nets] > UINT32_MAX / 2)
    return psplit_i_fail(b->diag, PSPLIT_LIMIT,
                         "%" PRIu32 " supernodes are too many for fill-drain", b->n_groups);
  /* Message latencies are left out here. The plan counts them, so its value is above the bound. */
  p->message_ns = NULL;
  PSPLIT_TRY(double_nodes(b));
  PSPLIT_TRY(double_nets(b));
out:
  return code;
}

psplit_code psplit_i_builder_share(psplit_i_builder *b, uint32_t n_classes) {
  const bool doubled = b->problem.n_nodes > b->n_groups;
  b->problem.together = n_classes ? b->together : NULL;
  if (!doubled) return PSPLIT_OK;
  uint32_t *together = psplit_i_builder_array(b, b->problem.n_nodes, sizeof *together);
  if (!together) return psplit_i_nomem(b->diag);
  for (uint32_t g = 0; g < b->n_groups; g++)
    together[g] = together[b->n_groups + g] =
      b->together[g] == PSPLIT_NONE ? n_classes + g : b->together[g];
  b->problem.together = together;
  return PSPLIT_OK;
}
