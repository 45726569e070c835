/* Partition problems from lines of a list, so that a list of what was learned from, and of what was
 * kept out, says all. A line is
 *
 *   FAMILY SEED NODES STAGES DEVICES COMM MEMORY MODE
 *
 *   DEVICES  1: of one kind; 2 or 3 kinds, the second takes 1.5 times as long, the third twice,
 *            some nodes run on the first alone; behind it g: in a given order, a: in any
 *   COMM     what tensors cost, times what the family says
 *   MEMORY   of a device, times an even share of all; 0: no limit
 *   MODE     p2p, shared, overlap, or train: shared, with a backward pass */
#ifndef PSPLIT_BENCH_LISTED_H
#define PSPLIT_BENCH_LISTED_H

#include "../partition_make.h"

typedef struct listed {
  char family[32], mode[16], devices_as[8];
  unsigned seed, nodes, stages, kinds;
  double comm, memory;
  maker m;
  psplit_device devices[3];
  int64_t *times, *transfers;
  uint64_t *bytes;
  psplit_problem problem;
} listed;

/* False where the line is none, with a message on stderr unless it is empty or a comment. */
bool listed_make(const char *line, listed *out);
void listed_fini(listed *l);
/* What tells one line of a list from the others, as a word. */
void listed_name(const listed *l, char *out, size_t n);

#endif
