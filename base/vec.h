/* Growable arrays: {items, n, capacity} with malloc'd items. */
#ifndef PSPLIT_BASE_VEC_H
#define PSPLIT_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

/* Declares an array type: PSPLIT_VEC(uint32_t) ids; zero-initialise it with {0}. */
#define PSPLIT_VEC(type) \
  struct {               \
    type *items;         \
    size_t n;            \
    size_t capacity;     \
  }

/* Room for `extra` more items; false when out of memory (the array stays valid). */
#define psplit_i_vec_reserve(vec, extra)                                         \
  psplit_i_vec_grow((void **)&(vec)->items, &(vec)->capacity, (vec)->n, (extra), \
                    sizeof *(vec)->items)

/* Appends `value`; false when out of memory. */
#define psplit_i_vec_push(vec, value) \
  (psplit_i_vec_reserve((vec), 1) ? ((vec)->items[(vec)->n++] = (value), true) : false)

#define psplit_i_vec_fini(vec) \
  psplit_i_vec_free((void **)&(vec)->items, &(vec)->capacity, &(vec)->n)

bool psplit_i_vec_grow(void **items, size_t *capacity, size_t n, size_t extra, size_t size);
void psplit_i_vec_free(void **items, size_t *capacity, size_t *n);

#endif
