/* The open branches of a branch and bound, as a heap with the least bound first. */
#ifndef PSPLIT_PARTITION_OPEN_HEAP_H
#define PSPLIT_PARTITION_OPEN_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* What the structs in a heap begin with. */
typedef struct psplit_i_open {
  int64_t least;   /* nothing in it is below */
  uint32_t number; /* in order of opening: of equals the first is in front */
} psplit_i_open;
#define PSPLIT_I_IS_OPEN(type)                                                \
  _Static_assert(offsetof(type, least) == offsetof(psplit_i_open, least) &&   \
                   offsetof(type, number) == offsetof(psplit_i_open, number), \
                 "a heap of what is open reads these fields where psplit_i_open has them")

/* items[n], of `size` bytes each, were a heap but for the last one. O(log n). */
void psplit_i_open_pushed(void *items, size_t n, size_t size);
/* Puts the first of items[n], n > 0, behind the others, which are a heap then. O(log n). */
void psplit_i_open_pop(void *items, size_t n, size_t size);

#endif
