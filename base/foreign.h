/* What a file is that is no UTF-8 text, told by its first bytes. */
#ifndef PSPLIT_BASE_FOREIGN_H
#define PSPLIT_BASE_FOREIGN_H

#include <psplit/base.h>
#include <stddef.h>

enum { PSPLIT_I_FOREIGN_BYTES = 512 }; /* of a file that count */

typedef struct psplit_i_foreign {
  const char *is;    /* "compressed by gzip", behind "it is" */
  const char *helps; /* "; gunzip it first"; may be empty */
} psplit_i_foreign;

/* NULL where the n bytes at `text`, of which the first so many count, may be UTF-8 text or
 * something else that has no mark of its own. */
const psplit_i_foreign *psplit_i_foreign_find(const char *text, size_t n);
/* The same, and an ONNX model. */
const psplit_i_foreign *psplit_i_foreign_marked(const char *text, size_t n);
/* The same for what has to be text: other bytes, too. */
const psplit_i_foreign *psplit_i_foreign_to_text(const char *text, size_t n);

#endif
