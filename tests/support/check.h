/* Independent checks of what the reader promises; they abort with a line on stderr where a promise
 * is broken. Used by unit tests and fuzz targets alike. */
#ifndef PSPLIT_TESTS_CHECK_H
#define PSPLIT_TESTS_CHECK_H

#include "graph.h"
#include "skeleton.h"

/* Every invariant that graph.h states, for the main graph, all bodies and all functions; then every
 * constant is read. */
void check_model(const psplit_model *model);

/* What skeleton.h states of a skeleton of `file`: spans tile the model and its graph, bytes are the
 * file's where no payload was left, views point to payloads, and protobuf-c can unpack it. */
void check_skeleton(const psplit_i_skeleton *skeleton, const uint8_t *file, size_t n);

#endif
