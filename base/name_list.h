/* Searching lists of names, and name suffixes. */
#ifndef PSPLIT_BASE_NAME_LIST_H
#define PSPLIT_BASE_NAME_LIST_H

#include <psplit/base.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* Index of the first equal name, or PSPLIT_NONE. O(n). */
static inline uint32_t psplit_i_name_find(const char *const *names, uint32_t n, const char *name) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(names[i], name) == 0) return i;
  return PSPLIT_NONE;
}

/* Whether the name has this suffix, case-insensitively. */
static inline bool psplit_i_name_ends(const char *name, const char *end) {
  const size_t n = strlen(name), m = strlen(end);
  return n >= m && strcasecmp(name + n - m, end) == 0;
}

#endif
