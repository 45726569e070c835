/* Identifying files that are not UTF-8 text by their first bytes. */
#ifndef PSPLIT_BASE_FOREIGN_H
#define PSPLIT_BASE_FOREIGN_H

#include <psplit/base.h>
#include <stddef.h>

enum { PSPLIT_I_FOREIGN_BYTES = 512 }; /* examined bytes of a file */

typedef struct psplit_i_foreign {
  const char *is;    /* "compressed by gzip", to follow "it is" */
  const char *helps; /* "; gunzip it first"; may be empty */
} psplit_i_foreign;

/* NULL if the n bytes at `text`, of which the first PSPLIT_I_FOREIGN_BYTES are examined, may be
 * UTF-8 text or have no known signature. */
const psplit_i_foreign *psplit_i_foreign_find(const char *text, size_t n);
/* The same, but also recognises an ONNX model. */
const psplit_i_foreign *psplit_i_foreign_marked(const char *text, size_t n);
/* The same for required text: also recognises other binary data. */
const psplit_i_foreign *psplit_i_foreign_to_text(const char *text, size_t n);

#endif
