/* A mutator that knows protobuf: it changes one field somewhere in the tree of messages and mends
 * the lengths around it, so that the fuzzer's time goes into models rather than into broken
 * framing. One mutation in four is left to libFuzzer's own, framing be damned. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "wire.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max_bytes, unsigned seed);

enum { MAX_FIELDS = 4096, MAX_LEVELS = 60 };

typedef struct field {
  size_t start, content, end; /* of the whole field, of what follows the length, of both */
  bool delimited;
} field;

/* Fields of a message; 0 where the bytes are not one, or hold too many. */
static size_t parse(const uint8_t *bytes, size_t n, field *fields) {
  size_t count = 0;
  for (size_t at = 0; at < n;) {
    uint64_t tag, value;
    field *f = &fields[count];
    f->start = at;
    const unsigned tag_width = psplit_i_varint_read(bytes + at, n - at, &tag);
    if (!tag_width || tag >> 3 == 0 || ++count == MAX_FIELDS) return 0;
    at += tag_width;
    const unsigned wire_type = (unsigned)(tag & 7);
    unsigned width = wire_type == PSPLIT_I_WIRE_FIXED64 ? 8 : 4;
    if (wire_type == PSPLIT_I_WIRE_VARINT || wire_type == PSPLIT_I_WIRE_BYTES)
      width = psplit_i_varint_read(bytes + at, n - at, &value);
    else if (wire_type != PSPLIT_I_WIRE_FIXED64 && wire_type != PSPLIT_I_WIRE_FIXED32)
      return 0;
    if (!width || width > n - at) return 0;
    at += width;
    f->content = at;
    f->delimited = wire_type == PSPLIT_I_WIRE_BYTES;
    if (f->delimited) {
      if (value > n - at) return 0;
      at += (size_t)value;
    }
    f->end = at;
  }
  return count;
}

static uint64_t next_random(uint64_t *state) { return psplit_i_splitmix64(*state, (*state)++); }

/* Changes `bytes` (n of them, room for `room`); the new count. */
static size_t mutate(uint8_t *bytes, size_t n, size_t room, unsigned level, uint64_t *state) {
  field *fields = malloc(MAX_FIELDS * sizeof *fields);
  const size_t count = fields && level < MAX_LEVELS ? parse(bytes, n, fields) : 0;
  if (!count) {
    free(fields);
    return LLVMFuzzerMutate(bytes, n, room);
  }
  const field f = fields[next_random(state) % count], g = fields[next_random(state) % count];
  free(fields);
  const unsigned choice = (unsigned)(next_random(state) % 12);
  if (f.delimited && choice < 8) { /* go down, then write the field again around what came back */
    const size_t before = f.content - f.start, inside = f.end - f.content;
    uint8_t *copy = malloc(room + 1);
    if (!copy) return n;
    memcpy(copy, bytes + f.content, inside);
    const size_t left = room - n > 10 ? room - n - 10 : 0;
    const size_t changed = mutate(copy, inside, inside + left, level + 1, state);
    uint64_t tag;
    const unsigned tag_width = psplit_i_varint_read(bytes + f.start, before, &tag);
    const unsigned width = psplit_i_varint_width(changed);
    const size_t content = f.start + tag_width + width;
    if (content + changed + (n - f.end) <= room) {
      memmove(bytes + content + changed, bytes + f.end, n - f.end);
      memcpy(bytes + content, copy, changed);
      psplit_i_varint_write(bytes + f.start + tag_width, width, changed);
      n = content + changed + (n - f.end);
    }
    free(copy);
    return n;
  }
  const size_t f_bytes = f.end - f.start, g_bytes = g.end - g.start;
  if (choice < 9 && f_bytes < n) { /* drop */
    memmove(bytes + f.start, bytes + f.end, n - f.end);
    return n - f_bytes;
  }
  if (choice < 11 && f_bytes <= room - n) { /* repeat `f` before `g` */
    uint8_t *copy = malloc(f_bytes);
    if (!copy) return n;
    memcpy(copy, bytes + f.start, f_bytes);
    memmove(bytes + g.start + f_bytes, bytes + g.start, n - g.start);
    memcpy(bytes + g.start, copy, f_bytes);
    free(copy);
    return n + f_bytes;
  }
  if (f.delimited && g.delimited && f.end - f.content == g.end - g.content) { /* `g` becomes `f` */
    memmove(bytes + g.content, bytes + f.content, f.end - f.content);
    return n;
  }
  return g_bytes ? g.start + LLVMFuzzerMutate(bytes + g.start, n - g.start, room - g.start) : n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max_bytes, unsigned seed) {
  uint64_t state = seed;
  if (next_random(&state) % 4 == 0 || n > max_bytes) return LLVMFuzzerMutate(data, n, max_bytes);
  const size_t changed = mutate(data, n, max_bytes, 0, &state);
  return changed ? changed : LLVMFuzzerMutate(data, n, max_bytes);
}
