/* A model text that is split in two, to be edited; for cmocka, in scratch. */
#ifndef PSPLIT_TESTS_EDITED_TWO_H
#define PSPLIT_TESTS_EDITED_TWO_H

#include <psplit/emit.h>

#include "edited.h"

enum { N_FILES = 3, MANIFEST = 2 }; /* two stages and pipeline.json, as edits number them */

/* Writes model.onnx and opens it, puts its stages into "out" and reads them; forget() frees all. */
void split_in_two(const char *text, const char *const *pins, size_t n_pins,
                  psplit_boundary boundary);
/* The file of a model is the model, wherever it lies; that of `other` is not. */
void proves_itself(const char *text, const char *other);

#endif
