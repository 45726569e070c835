#include "vec.h"

#include <stdlib.h>

#include "checked.h"

/* A first allocation holds this much, or what was asked for. */
enum { FIRST_BYTES = 128 };

bool psplit_i_vec_grow(void **items, size_t *capacity, size_t n, size_t extra, size_t size) {
  size_t need, bytes;
  if (!psplit_i_add_size(n, extra, &need)) return false;
  if (need <= *capacity) return true;
  size_t wanted = *capacity + *capacity / 2;
  if (wanted < FIRST_BYTES / size) wanted = FIRST_BYTES / size;
  if (wanted < need) wanted = need;
  if (!psplit_i_mul_size(wanted, size, &bytes)) return false;
  void *grown = realloc(*items, bytes);
  if (!grown) return false;
  *items = grown;
  *capacity = wanted;
  return true;
}

void psplit_i_vec_free(void **items, size_t *capacity, size_t *n) {
  free(*items);
  *items = NULL;
  *capacity = *n = 0;
}
