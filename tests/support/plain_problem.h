/* A bare problem with as little in it as can be. */
#ifndef PSPLIT_TESTS_PLAIN_PROBLEM_H
#define PSPLIT_TESTS_PLAIN_PROBLEM_H

#include <psplit/partition.h>

/* For devices of one entry, point to point, over arrays that others fill; a tensor takes as long to
 * send as to receive. */
static inline psplit_problem plain_problem(const psplit_device *devices, uint32_t n_nodes,
                                           const int64_t *time_ns, uint32_t n_nets,
                                           const uint32_t *producer, const uint32_t *off,
                                           const uint32_t *consumer, const int64_t *net_ns) {
  return (psplit_problem){.n_nodes = n_nodes,
                          .n_classes = 1,
                          .time_ns = time_ns,
                          .n_nets = n_nets,
                          .net_producer = producer,
                          .net_off = off,
                          .net_consumer = consumer,
                          .net_send_ns = net_ns,
                          .net_recv_ns = net_ns,
                          .n_devices = 1,
                          .devices = devices,
                          .comm = PSPLIT_COMM_P2P,
                          .ticks_per_unit = 1};
}

#endif
