/* The options that say what the model is fed with: onnx-pipeline-run and onnx-pipeline-verify
 * --run. */
#ifndef PSPLIT_TOOLS_FEED_OPTIONS_H
#define PSPLIT_TOOLS_FEED_OPTIONS_H

#include "cli.h"
#include "runtime.h"

enum { OPT_INPUT = 'i', OPT_RANDOM = 2000, OPT_SEED, OPT_DIM, OPT_SHAPE };

/* Rows of an option table. */
#define FEED_OPTIONS                                                               \
  {OPT_INPUT, "input", "[NAME=]FILE",                                              \
   "an input: .npy, .pb or raw; .npz has several; {} is the micro-batch"},         \
    {OPT_SEED, "seed", "N", "of random inputs; default: 1"},                       \
    {OPT_DIM, "dim", "NAME=VALUE", "size of a symbolic dimension (repeatable)"}, { \
    OPT_SHAPE, "shape", "NAME=N,N,...", "size of an input (repeatable)"            \
  }

typedef struct feed_settings {
  PSPLIT_VEC(psplit_i_given) given;
  PSPLIT_VEC(psplit_i_dim_value) dims;
  PSPLIT_VEC(psplit_i_shape_value) shapes;
  psplit_i_feed_options options; /* points into the lists */
} feed_settings;

/* Takes one of these options; false after an error line, or where `id` is none of them. */
bool feed_option(const cli *program, feed_settings *settings, int id, const char *argument);
void feed_fini(feed_settings *settings);

/* Inputs and dimensions that the split, or the model, does not have are a mistake: USAGE. */
PSPLIT_MUST_USE psplit_code feed_check(const feed_settings *settings, const psplit_i_pipe *pipe,
                                       psplit_diag *diag);
PSPLIT_MUST_USE psplit_code feed_check_model(const feed_settings *settings,
                                             const psplit_model *model, psplit_diag *diag);

#endif
