/* Comparing models as messages. */
#ifndef PSPLIT_TESTS_TEXT_SAME_H
#define PSPLIT_TESTS_TEXT_SAME_H

#include "onnx.pb-c.h"
#include "text_form.h"

/* Writes what protobuf-c kept of fields it does not know with the shortest varints: the text form
 * has their values, not how wide a writer made them. In place. */
void shorten_unknown(ProtobufCMessage *message);

/* The message's bytes; the caller frees them. Fields stand in the order of their numbers. */
typedef struct packed {
  uint8_t *bytes;
  size_t n;
} packed;
packed pack_model(const Onnx__ModelProto *model);

bool same_packed(const Onnx__ModelProto *a, const Onnx__ModelProto *b);

#endif
