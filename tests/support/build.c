#include "build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

static void check(const pb *out) {
  if (!out->failed) return;
  fputs("tests: out of memory\n", stderr);
  abort();
}

void pb_int(pb *out, uint32_t field, int64_t value) {
  psplit_i_wire_tag(out, field, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(out, (uint64_t)value);
  check(out);
}

void pb_string(pb *out, uint32_t field, const char *value) {
  pb_bytes(out, field, value, strlen(value));
}

void pb_bytes(pb *out, uint32_t field, const void *bytes, size_t n) {
  psplit_i_wire_bytes(out, field, bytes, n);
  check(out);
}

void pb_message(pb *out, uint32_t field, pb *message) {
  pb_bytes(out, field, message->bytes, message->n);
  psplit_i_text_fini(message);
}

void pb_message_padded(pb *out, uint32_t field, pb *message, unsigned width) {
  uint8_t length[PSPLIT_I_VARINT_MAX];
  psplit_i_varint_write(length, width, message->n);
  psplit_i_wire_tag(out, field, PSPLIT_I_WIRE_BYTES);
  psplit_i_text_add(out, length, width);
  psplit_i_text_add(out, message->bytes, message->n);
  psplit_i_text_fini(message);
  check(out);
}

void write_file(const char *path, const void *bytes, size_t n) {
  FILE *file = fopen(path, "wb");
  const bool written = file && (n == 0 || fwrite(bytes, 1, n, file) == n);
  if (!file || fclose(file) != 0 || !written) {
    perror(path);
    abort();
  }
}
