/* Strings in messages of protobuf-c, which are NULL for missing fields, and never const. */
#ifndef PSPLIT_ONNX_PROTO_TEXT_H
#define PSPLIT_ONNX_PROTO_TEXT_H

#include <string.h>

static inline const char *psplit_i_text_or_empty(const char *text) { return text ? text : ""; }

/* Canonical name of a domain: ONNX's own has two names, and may be missing. */
static inline const char *psplit_i_domain_of(const char *domain) {
  return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* Casts away const, for messages that are only packed. */
static inline char *psplit_i_proto_text(const char *string) {
  union {
    const char *in;
    char *out;
  } u = {string};
  return u.out;
}

#endif
