/* The protobuf wire format: varints and tags. */
#ifndef PSPLIT_BASE_WIRE_H
#define PSPLIT_BASE_WIRE_H

#include <stdint.h>

#include "base.h"

enum {
  PSPLIT_I_WIRE_VARINT = 0,
  PSPLIT_I_WIRE_FIXED64 = 1,
  PSPLIT_I_WIRE_BYTES = 2,
  PSPLIT_I_WIRE_FIXED32 = 5
};

enum { PSPLIT_I_VARINT_MAX = 10 };

/* One field of a message. */
typedef struct psplit_i_field {
  const uint8_t *start, *content, *end; /* content: after the tag and the length */
  uint32_t number;
  unsigned wire_type;
} psplit_i_field;

/* The field that starts at *io_at, which moves past it; false where none can be read. */
bool psplit_i_next_field(const uint8_t **io_at, const uint8_t *end, psplit_i_field *out);

/* Reads a varint from at most `n` bytes; returns its width, or 0 (and a value of 0) when it is
 * truncated or longer than 64 bits. */
static inline unsigned psplit_i_varint_read(const uint8_t *bytes, size_t n, uint64_t *out) {
  uint64_t value = 0;
  *out = 0;
  for (unsigned i = 0; i < PSPLIT_I_VARINT_MAX && i < n; i++) {
    value |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
    if (bytes[i] & 0x80) continue;
    if (i == 9 && bytes[i] > 1) return 0;
    *out = value;
    return i + 1;
  }
  return 0;
}

/* Bytes of the shortest varint. */
static inline unsigned psplit_i_varint_width(uint64_t value) {
  unsigned width = 1;
  for (; value >= 0x80; value >>= 7) width++;
  return width;
}

/* Writes `value` in exactly `width` bytes (padded where it could be shorter). */
static inline void psplit_i_varint_write(uint8_t *out, unsigned width, uint64_t value) {
  for (unsigned i = 0; i + 1 < width; i++, value >>= 7) out[i] = (uint8_t)(value | 0x80);
  out[width - 1] = (uint8_t)(value & 0x7f);
}

/* Appends to a text buffer: a varint, and a field's tag with wire type. */
static inline void psplit_i_wire_varint(psplit_i_text *out, uint64_t value) {
  uint8_t bytes[PSPLIT_I_VARINT_MAX];
  const unsigned width = psplit_i_varint_width(value);
  psplit_i_varint_write(bytes, width, value);
  psplit_i_text_add(out, bytes, width);
}

static inline void psplit_i_wire_tag(psplit_i_text *out, uint32_t field, unsigned wire_type) {
  psplit_i_wire_varint(out, ((uint64_t)field << 3) | wire_type);
}

static inline void psplit_i_wire_bytes(psplit_i_text *out, uint32_t field, const void *bytes,
                                       size_t n) {
  psplit_i_wire_tag(out, field, PSPLIT_I_WIRE_BYTES);
  psplit_i_wire_varint(out, n);
  psplit_i_text_add(out, bytes, n);
}

#endif
