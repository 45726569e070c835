#include "made_problem.h"

#include <string.h>

void begin_problem(random_problem *r, uint32_t n_devices) {
  *r = (random_problem){0};
  r->devices[0] = (psplit_device){.count = n_devices};
  r->problem = (psplit_problem){.n_classes = 1,
                                .time_ns = r->time_ns,
                                .net_producer = r->producer,
                                .net_off = r->off,
                                .net_consumer = r->consumer,
                                .net_send_ns = r->send_ns,
                                .net_recv_ns = r->recv_ns,
                                .n_devices = 1,
                                .devices = r->devices,
                                .comm = PSPLIT_COMM_P2P,
                                .ticks_per_unit = 1};
}

uint32_t add_node(random_problem *r, int64_t ns) {
  r->time_ns[r->problem.n_nodes] = ns;
  return r->problem.n_nodes++;
}

void add_net(random_problem *r, uint32_t producer, int64_t ns, const uint32_t *to, uint32_t n) {
  psplit_problem *p = &r->problem;
  const uint32_t first = r->off[p->n_nets];
  if (n == 0) return;
  memcpy(r->consumer + first, to, n * sizeof *to);
  r->producer[p->n_nets] = producer;
  r->send_ns[p->n_nets] = r->recv_ns[p->n_nets] = ns;
  r->off[++p->n_nets] = first + n;
}
