/* The last part of a path. */
#ifndef PSPLIT_BASE_BASE_NAME_H
#define PSPLIT_BASE_BASE_NAME_H

#include <string.h>

/* The part after the last slash, or all of it. Points into `path`. */
static inline const char *psplit_i_base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

#endif
