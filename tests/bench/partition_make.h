/* Generated problems for the bench: graphs of any size, and stand-ins with the structure of the
 * published instances (which are not part of the project). Deterministic. */
#ifndef PSPLIT_BENCH_PARTITION_MAKE_H
#define PSPLIT_BENCH_PARTITION_MAKE_H

#include <psplit/partition.h>

/* Growing arrays of a problem. Times are ns; a net's send and receive times are equal. */
typedef struct maker {
  uint32_t n, n_nets, n_pins, most;
  size_t most_pins;
  int64_t *time, *send;
  uint32_t *producer, *off, *consumer, *together;
  uint8_t *flags;
  uint64_t state;
} maker;

typedef struct made_family {
  const char *name;
  void (*make)(maker *m);
  bool training; /* backward twins are added */
  uint32_t n_stages;
} made_family;

typedef struct made_shape {
  const char *name;
  void (*make)(maker *m, uint32_t n_nodes);
} made_shape;

extern const made_family kMadeFamilies[];
extern const uint32_t kNMadeFamilies;
extern const made_shape kMadeShapes[]; /* of any size */
extern const uint32_t kNMadeShapes;
extern const made_shape kMadeRandom[]; /* models of random graphs; O(nodes^2) */
extern const uint32_t kNMadeRandom;
extern const made_shape kMadeHardShapes[]; /* whose gaps stay open; not in the grid */
extern const uint32_t kNMadeHardShapes;

/* At most about `most` nodes; ends the program when out of memory. */
void maker_init(maker *m, uint32_t most);
void maker_fini(maker *m);

uint64_t maker_draw(maker *m);
uint32_t maker_node(maker *m, int64_t ns);
/* The tensor of `producer`, to `n` consumers; nets come in the order of calls. */
void maker_net(maker *m, uint32_t producer, int64_t ns, const uint32_t *to, uint32_t n);

/* Repeated blocks of attention and feed-forward; random layers of 100 nodes. */
void make_transformer(maker *m, uint32_t n_nodes);
void make_layered(maker *m, uint32_t n_nodes);
void make_experts_256(maker *m, uint32_t n_nodes); /* mixtures of 256 */
/* Mirrors every node and tensor as the backward pass; twins stay together. */
void make_training(maker *m);
void make_family(const made_family *family, maker *m);

/* Of either table; NULL: there is none of that name. */
const made_shape *made_shape_named(const char *name);

/* The problem over the maker's arrays; devices are the caller's. */
psplit_problem maker_problem(const maker *m, const psplit_device *devices, uint32_t n_devices);

#endif
