/* Small models for the emitter's tests, written field by field: what protobuf-c does not write
 * (unknown fields, odd layouts) can be put in as well. Each message is a psplit_text; adding one to
 * another frees it. */
#ifndef PSPLIT_TESTS_EMIT_FIXTURE_H
#define PSPLIT_TESTS_EMIT_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "wire.h"

static inline void put_int(psplit_text *out, uint32_t field, uint64_t value) {
  psplit_i_wire_tag(out, field, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(out, value);
}

static inline void put_string(psplit_text *out, uint32_t field, const char *value) {
  psplit_i_wire_bytes(out, field, value, strlen(value));
}

static inline void put(psplit_text *out, uint32_t field, psplit_text inner) {
  psplit_i_wire_bytes(out, field, inner.bytes, inner.n);
  psplit_i_text_fini(&inner);
}

/* One field for each word of `words`; "-" stands for the empty name. */
static inline void put_words(psplit_text *out, uint32_t field, const char *words) {
  while (*words) {
    const size_t n = strcspn(words, " ");
    const bool omitted = n == 1 && *words == '-';
    psplit_i_wire_bytes(out, field, words, omitted ? 0 : n);
    words += n;
    while (*words == ' ') words++;
  }
}

static inline psplit_text pair(const char *key, const char *value) {
  psplit_text out = {0};
  put_string(&out, 1, key);
  put_string(&out, 2, value);
  return out;
}

static inline psplit_text node(const char *op, const char *inputs, const char *outputs) {
  psplit_text out = {0};
  put_words(&out, 1, inputs);
  put_words(&out, 2, outputs);
  put_string(&out, 4, op);
  return out;
}

static inline psplit_text value_info(const char *name, int elem, const char *dims) {
  psplit_text shape = {0}, tensor = {0}, type = {0}, out = {0};
  while (*dims) {
    const size_t n = strcspn(dims, " ");
    psplit_text dim = {0};
    if (*dims >= '0' && *dims <= '9')
      put_int(&dim, 1, strtoull(dims, NULL, 10));
    else
      psplit_i_wire_bytes(&dim, 2, dims, n);
    put(&shape, 1, dim);
    dims += n;
    while (*dims == ' ') dims++;
  }
  put_int(&tensor, 1, (uint64_t)elem);
  put(&tensor, 2, shape);
  put(&type, 1, tensor);
  put_string(&out, 1, name);
  put(&out, 2, type);
  return out;
}

/* float[n] with raw_data 0, 1, 2, ... plus `first`. */
static inline psplit_text weight(const char *name, unsigned n, float first) {
  psplit_text out = {0}, raw = {0};
  for (unsigned i = 0; i < n; i++) {
    const float x = first + (float)i;
    psplit_i_text_add(&raw, &x, sizeof x);
  }
  put_int(&out, 1, n);
  put_int(&out, 2, 1);
  put_string(&out, 8, name);
  put(&out, 9, raw);
  return out;
}

static inline psplit_text external_weight(const char *name, unsigned n, const char *location,
                                          const char *offset) {
  psplit_text out = {0};
  char length[24];
  snprintf(length, sizeof length, "%u", 4 * n);
  put_int(&out, 1, n);
  put_int(&out, 2, 1);
  put_string(&out, 8, name);
  put(&out, 13, pair("checksum", "kept"));
  put(&out, 13, pair("location", location));
  put(&out, 13, pair("offset", offset));
  put(&out, 13, pair("length", length));
  put_int(&out, 14, 1);
  put_string(&out, 12, "a tensor's doc_string");
  return out;
}

static inline psplit_text model_of(psplit_text graph, unsigned ir_version, unsigned opset) {
  psplit_text out = {0}, import = {0};
  put_int(&out, 1, ir_version);
  put_string(&out, 2, "fixture");
  put(&out, 7, graph);
  put_int(&import, 2, opset);
  if (ir_version >= 3)
    put(&out, 8, import);
  else
    psplit_i_text_fini(&import);
  return out;
}

#endif
