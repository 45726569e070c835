/* A heap of keys with the least first, in an array that has room for all of them. */
#ifndef PSPLIT_PARTITION_MIN_HEAP_H
#define PSPLIT_PARTITION_MIN_HEAP_H

#include <stdint.h>

/* Adds a key. O(log *size). */
static inline void psplit_i_heap_push(uint64_t *heap, uint32_t *size, uint64_t key) {
  uint32_t i = (*size)++;
  for (; i > 0 && heap[(i - 1) / 2] > key; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = key;
}

/* Takes out the least key of those that there are, one at least. O(log *size). */
static inline uint64_t psplit_i_heap_pop(uint64_t *heap, uint32_t *size) {
  const uint64_t top = heap[0], last = heap[--*size];
  uint32_t at = 0;
  for (uint32_t child; (child = 2 * at + 1) < *size; at = child) {
    if (child + 1 < *size && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= last) break;
    heap[at] = heap[child];
  }
  heap[at] = last;
  return top;
}

#endif
