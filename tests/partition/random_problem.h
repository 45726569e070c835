/* Random small problems of every kind the partitioner takes, and the optimum by enumeration. */
#ifndef PSPLIT_TESTS_RANDOM_PROBLEM_H
#define PSPLIT_TESTS_RANDOM_PROBLEM_H

#include <psplit/partition.h>

enum { MAX_NODES = 64, MAX_EDGES = 1024, MAX_DEVICES = 4 };

typedef enum shape { CHAIN, TREE, SERIES_PARALLEL, LAYERED, ANY_ORDER, FANS, N_SHAPES } shape;

/* What a problem may contain; a set bit means "with some probability". */
enum {
  WITH_CLASSES = 1,   /* several device classes, some nodes forbidden on one */
  WITH_FREE_COMM = 2, /* a CPU that pays no communication */
  WITH_MEMORY = 4,    /* limits that bind, shared weights */
  WITH_TWINS = 8,     /* backward nodes, keep-together classes */
  WITH_PINS = 16,
  WITH_TOGETHER = 32, /* and uncuttable nets, order edges */
  WITH_OVERLAP = 64,
  WITH_STASH = 128,
  WITH_RELAYS = 256, /* stages without links, point to point */
  WITH_ALIKE = 512,  /* and classes: devices of a class that are not listed one after the other */
  WITH_PAIRS = 1024, /* links between pairs of devices, point to point, devices in their order */
  WITH_MESSAGES =
    2048, /* one message for all that a stage sends another, or by shared memory all others */
  N_PROBLEM_FEATURES = 12
};

typedef struct random_problem {
  psplit_problem problem;
  int64_t time_ns[MAX_NODES * MAX_DEVICES], send_ns[MAX_EDGES * MAX_DEVICES],
    recv_ns[MAX_EDGES * MAX_DEVICES];
  uint64_t weight_bytes[MAX_NODES], activation_bytes[MAX_NODES], group_bytes[4];
  uint8_t node_flags[MAX_NODES], net_flags[MAX_EDGES];
  uint32_t together[MAX_NODES], pin[MAX_NODES];
  uint32_t producer[MAX_NODES * 2], off[MAX_NODES * 2 + 1], consumer[MAX_EDGES];
  uint32_t order_from[8], order_to[8];
  uint32_t weight_off[5], weight_user[16];
  psplit_device devices[MAX_DEVICES];
  uint32_t next_hop[MAX_DEVICES * MAX_DEVICES], device_link[MAX_DEVICES * MAX_DEVICES];
  int64_t link_ns[MAX_EDGES * 3], message_ns[MAX_DEVICES];
} random_problem;

/* Deterministic in (seed, shape, n_nodes, n_stages, features). */
void make_random_problem(random_problem *out, uint64_t seed, shape kind, uint32_t n_nodes,
                         uint32_t n_stages, unsigned features);

/* The best objective over all assignments, INT64_MAX when none is valid; the least sum of
 * communication among the best; and, if out_stage[n_nodes] is not NULL, the lexicographically least
 * stages among those. Every assignment is judged by psplit_partition_check. */
int64_t best_by_enumeration(const psplit_problem *problem, const psplit_partition_options *options,
                            int64_t *out_comm, uint32_t *out_stage);

/* Assignments that the function above would judge, or `most` where there are more. */
uint64_t count_to_enumerate(const psplit_problem *problem, const psplit_partition_options *options,
                            uint64_t most);

/* The entries of devices, in stage order, that come first among the splits with the value that the
 * function above returns, its communication and its stages. */
void first_devices_by_enumeration(const psplit_problem *problem,
                                  const psplit_partition_options *options, uint32_t *out_device);

#endif
