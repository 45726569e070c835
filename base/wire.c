#include "wire.h"

bool psplit_i_next_field(const uint8_t **io_at, const uint8_t *end, psplit_i_field *out) {
  const uint8_t *at = *io_at;
  uint64_t tag, length;
  const unsigned width = psplit_i_varint_read(at, (size_t)(end - at), &tag);
  if (!width) return false;
  *out =
    (psplit_i_field){.start = at, .number = (uint32_t)(tag >> 3), .wire_type = (unsigned)(tag & 7)};
  at += width;
  unsigned more = 0;
  uint64_t n = 0;
  switch (out->wire_type) {
    case PSPLIT_I_WIRE_VARINT: n = psplit_i_varint_read(at, (size_t)(end - at), &length); break;
    case PSPLIT_I_WIRE_FIXED64: n = 8; break;
    case PSPLIT_I_WIRE_FIXED32: n = 4; break;
    case PSPLIT_I_WIRE_BYTES:
      more = psplit_i_varint_read(at, (size_t)(end - at), &n);
      if (!more) return false;
      break;
    default: return false;
  }
  at += more;
  if (n > (uint64_t)(end - at) || (n == 0 && out->wire_type == PSPLIT_I_WIRE_VARINT)) return false;
  out->content = at;
  out->end = *io_at = at + n;
  return true;
}
