#include "open_heap.h"

#include <stdbool.h>
#include <string.h>

typedef struct heap {
  char *items;
  size_t size;
} heap;

static bool less(const heap *h, size_t a, size_t b) {
  psplit_i_open x, y;
  memcpy(&x, h->items + a * h->size, sizeof x);
  memcpy(&y, h->items + b * h->size, sizeof y);
  return x.least != y.least ? x.least < y.least : x.number < y.number;
}

static void exchange(const heap *h, size_t a, size_t b) {
  char *x = h->items + a * h->size, *y = h->items + b * h->size;
  for (size_t i = 0; i < h->size; i++) {
    const char kept = x[i];
    x[i] = y[i];
    y[i] = kept;
  }
}

void psplit_i_open_pushed(void *items, size_t n, size_t size) {
  const heap h = {items, size};
  for (size_t i = n - 1; i > 0 && less(&h, i, (i - 1) / 2); i = (i - 1) / 2)
    exchange(&h, i, (i - 1) / 2);
}

void psplit_i_open_pop(void *items, size_t n, size_t size) {
  const heap h = {items, size};
  const size_t last = n - 1;
  exchange(&h, 0, last);
  for (size_t at = 0, child; (child = 2 * at + 1) < last; at = child) {
    if (child + 1 < last && less(&h, child + 1, child)) child++;
    if (!less(&h, child, at)) break;
    exchange(&h, at, child);
  }
}
