/* Strings in messages of protobuf-c: NULL where a field is missing, and never const. */
#ifndef PSPLIT_ONNX_PROTO_TEXT_H
#define PSPLIT_ONNX_PROTO_TEXT_H

#include <string.h>

static inline const char *psplit_i_text_or_empty(const char *text) { return text ? text : ""; }

/* A name for ONNX's own domain, which has two. */
static inline const char *psplit_i_domain_of(const char *domain) {
  return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* For a message that is packed, which protobuf-c only reads. */
static inline char *psplit_i_proto_text(const char *string) {
  union {
    const char *in;
    char *out;
  } u = {string};
  return u.out;
}

#endif
