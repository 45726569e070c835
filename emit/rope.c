#include "emit.h"
#include "wire.h"

void psplit_i_rope_fini(psplit_i_rope *rope) {
  psplit_i_vec_fini(&rope->pieces);
  *rope = (psplit_i_rope){0};
}

static bool continues(const psplit_i_piece *last, const psplit_i_piece *next) {
  if (last->memory) return next->memory == last->memory + last->bytes;
  return !next->memory && next->file == last->file && next->offset == last->offset + last->bytes;
}

static void add(psplit_i_rope *rope, psplit_i_piece piece) {
  if (rope->failed || !piece.bytes) return;
  rope->bytes += piece.bytes;
  psplit_i_piece *last = rope->pieces.n ? &rope->pieces.items[rope->pieces.n - 1] : NULL;
  if (last && continues(last, &piece))
    last->bytes += piece.bytes;
  else if (!psplit_i_vec_push(&rope->pieces, piece))
    rope->failed = true;
}

void psplit_i_rope_view(psplit_i_rope *rope, const void *bytes, size_t n) {
  add(rope, (psplit_i_piece){.memory = bytes, .bytes = n});
}

void psplit_i_rope_copy(psplit_i_rope *rope, psplit_i_arena *arena, const void *bytes, size_t n) {
  if (!n) return;
  const char *copy = psplit_i_arena_strndup(arena, bytes, n);
  if (copy)
    psplit_i_rope_view(rope, copy, n);
  else
    rope->failed = true;
}

void psplit_i_rope_range(psplit_i_rope *rope, uint32_t file, uint64_t offset, uint64_t n) {
  add(rope, (psplit_i_piece){.file = file, .offset = offset, .bytes = n});
}

void psplit_i_rope_message(psplit_i_rope *rope, psplit_i_arena *arena, uint32_t field,
                           const psplit_i_rope *inner) {
  uint8_t head[2 * PSPLIT_I_VARINT_MAX];
  const uint64_t tag = ((uint64_t)field << 3) | PSPLIT_I_WIRE_BYTES;
  unsigned n = psplit_i_varint_width(tag);
  psplit_i_varint_write(head, n, tag);
  const unsigned width = psplit_i_varint_width(inner->bytes);
  psplit_i_varint_write(head + n, width, inner->bytes);
  psplit_i_rope_copy(rope, arena, head, n + width);
  if (inner->failed) rope->failed = true;
  for (size_t i = 0; i < inner->pieces.n; i++) add(rope, inner->pieces.items[i]);
}

void psplit_i_rope_packed(psplit_i_rope *rope, psplit_i_arena *arena, uint32_t field,
                          const ProtobufCMessage *message) {
  const size_t n = protobuf_c_message_get_packed_size(message);
  uint8_t *bytes = psplit_i_arena_alloc(arena, n);
  psplit_i_rope inner = {0};
  if (bytes) {
    protobuf_c_message_pack(message, bytes);
    psplit_i_rope_view(&inner, bytes, n);
  } else {
    inner.failed = true;
  }
  psplit_i_rope_message(rope, arena, field, &inner);
  psplit_i_rope_fini(&inner);
}
