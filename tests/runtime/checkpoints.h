/* Checkpoints of a run with three weights, each with a state, over as many stages as one likes. */
#ifndef PSPLIT_TESTS_CHECKPOINTS_H
#define PSPLIT_TESTS_CHECKPOINTS_H

#include <stdbool.h>

#include "checkpoint.h"

enum { N_WEIGHTS = 3, N_ELEMENTS = 24, /* of each tensor */ FLOAT = 1 /* as ONNX numbers types */ };
extern const psplit_i_trained_weight WEIGHTS[N_WEIGHTS];

/* Whether file systems cannot exchange two entries; needs --wrap=psplit_i_exchange. */
extern bool cannot_exchange;

/* A checkpoint of `step` in `path`; tensors are dealt to the stages in turn. */
PSPLIT_MUST_USE psplit_code save(const char *path, uint64_t step, uint32_t n_stages,
                                 const char *optimizer, psplit_diag *diag);
void must_save(const char *path, uint64_t step, uint32_t n_stages);
/* The step of the checkpoint in `path`, all of which is as it was written; -1 and *out_diag: it
 * cannot be opened. */
int64_t look(const char *path, psplit_diag *out_diag);
int64_t must_look(const char *path);

/* How many entries a directory has. */
unsigned n_entries(const char *path);
/* Writes a file of `n` bytes. */
void put(const char *path, const char *text, size_t n);

#endif
