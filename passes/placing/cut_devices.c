#include "cut_devices.h"

#include <stdlib.h>

#include "flow.h"

enum { SOURCE, SINK, FIRST };

static const int64_t NEVER = INT64_MAX / 4;

static int64_t times(int64_t ns, uint32_t by) {
  const int64_t product = psplit_i_sat_mul_i64(ns, (int64_t)by);
  return product < NEVER ? product : NEVER;
}

static int64_t weighted(int64_t ns, uint32_t by) {
  return ns == PSPLIT_TIME_FORBIDDEN ? NEVER : times(ns, by);
}

/* Nodes on the source side are on device a. A node on b cuts the arc from the source, so that arc
 * has its time on b, and the arc to the sink has its time on a. */
static bool add_nodes(psplit_i_flow *flow, const psplit_problem *p,
                      const psplit_i_device_cut *what) {
  bool good = psplit_i_flow_node(flow) == SOURCE && psplit_i_flow_node(flow) == SINK;
  for (uint32_t v = 0; v < p->n_nodes && good; v++) {
    const int64_t *ns = &p->time_ns[(size_t)v * p->n_classes];
    good =
      psplit_i_flow_node(flow) == FIRST + v &&
      psplit_i_flow_arc_add(flow, SOURCE, FIRST + v, weighted(ns[what->class_b], what->weight_b)) &&
      psplit_i_flow_arc_add(flow, FIRST + v, SINK, weighted(ns[what->class_a], what->weight_a));
  }
  return good;
}

/* A net costs once if its producer is on one side and any consumer on the other, in either
 * direction. */
static bool add_net(psplit_i_flow *flow, const psplit_problem *p, uint32_t net, int64_t a_to_b,
                    int64_t b_to_a) {
  const uint32_t producer = FIRST + p->net_producer[net];
  const uint32_t ahead = psplit_i_flow_node(flow), back = psplit_i_flow_node(flow);
  bool good = ahead != PSPLIT_NONE && back != PSPLIT_NONE &&
              psplit_i_flow_arc_add(flow, producer, ahead, a_to_b) &&
              psplit_i_flow_arc_add(flow, back, producer, b_to_a);
  for (uint32_t k = p->net_off[net]; k < p->net_off[net + 1] && good; k++)
    good = psplit_i_flow_arc_add(flow, ahead, FIRST + p->net_consumer[k], NEVER) &&
           psplit_i_flow_arc_add(flow, FIRST + p->net_consumer[k], back, NEVER);
  return good;
}

static bool add_nets(psplit_i_flow *flow, const psplit_problem *p,
                     const psplit_i_device_cut *what) {
  const size_t n = p->n_classes;
  bool good = true;
  for (uint32_t e = 0; e < p->n_nets && good; e++) {
    const bool stays = p->net_flags && p->net_flags[e] & PSPLIT_NET_UNCUTTABLE;
    const int64_t sent_a = times(times(p->net_send_ns[e * n + what->class_a], what->weight_a),
                                 what->crossing),
                  sent_b = times(times(p->net_send_ns[e * n + what->class_b], what->weight_b),
                                 what->crossing),
                  got_a = times(times(p->net_recv_ns[e * n + what->class_a], what->weight_a),
                                what->crossing),
                  got_b = times(times(p->net_recv_ns[e * n + what->class_b], what->weight_b),
                                what->crossing);
    good = add_net(flow, p, e, stays ? NEVER : psplit_i_sat_add_i64(sent_a, got_b),
                   stays ? NEVER : psplit_i_sat_add_i64(sent_b, got_a));
  }
  return good;
}

psplit_code psplit_i_cut_devices(const psplit_problem *p, const psplit_i_device_cut *what,
                                 psplit_diag *diag, uint8_t *out_b, bool *out_found,
                                 int64_t *out_value) {
  psplit_i_flow flow = {0};
  int64_t value = 0;
  bool *side = NULL;
  psplit_i_budget budget = psplit_i_budget_unlimited();
  bool good = add_nodes(&flow, p, what) && add_nets(&flow, p, what) &&
              psplit_i_flow_run(&flow, SOURCE, SINK, NEVER, &budget, &value) &&
              (side = calloc(flow.head.n + 1, sizeof *side)) != NULL &&
              psplit_i_flow_side(&flow, SOURCE, side);
  *out_found = good && value < NEVER;
  if (out_value) *out_value = value;
  for (uint32_t v = 0; v < p->n_nodes && good; v++) out_b[v] = !side[FIRST + v];
  free(side);
  psplit_i_flow_fini(&flow);
  return good ? PSPLIT_OK : psplit_i_nomem(diag);
}
