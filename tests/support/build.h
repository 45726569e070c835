/* Protobuf bytes, written field by field: for tests of what the text form of a model (text_model.h)
 * cannot say, since it is wrong on the wire. Allocation failures end the test program. */
#ifndef PSPLIT_TESTS_BUILD_H
#define PSPLIT_TESTS_BUILD_H

#include <stdint.h>

#include "base.h"

/* The bytes of a message under construction; zero-initialise it. */
typedef psplit_i_text pb;

void pb_int(pb *out, uint32_t field, int64_t value);
void pb_string(pb *out, uint32_t field, const char *value);
void pb_bytes(pb *out, uint32_t field, const void *bytes, size_t n);
/* Appends `message` as a field and frees it. */
void pb_message(pb *out, uint32_t field, pb *message);
/* The same with a length prefix of exactly `width` bytes. */
void pb_message_padded(pb *out, uint32_t field, pb *message, unsigned width);

/* Writes a file, replacing it. */
void write_file(const char *path, const void *bytes, size_t n);

#endif
