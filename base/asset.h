/* Files that the build takes into the library, as arrays: base/embed.c. */
#ifndef PSPLIT_BASE_ASSET_H
#define PSPLIT_BASE_ASSET_H

#include <stddef.h>

/* A zero byte follows the last one. */
typedef struct psplit_i_asset {
  const unsigned char *bytes;
  size_t n; /* 0 where the build was without the file */
} psplit_i_asset;

#endif
