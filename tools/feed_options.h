/* The options that say what the model is fed with: onnx-pipeline-run and onnx-pipeline-verify
 * --run. */
#ifndef PSPLIT_TOOLS_FEED_OPTIONS_H
#define PSPLIT_TOOLS_FEED_OPTIONS_H

#include <psplit/run.h>

#include "cli.h"

enum {
  OPT_INPUT = 'i',
  OPT_RANDOM = 2000,
  OPT_SEED,
  OPT_DIM,
  OPT_SHAPE,
  OPT_CASTS,
  OPT_MAX_UNPACKED
};

/* Rows of an option table. */
/* clang-format off */
#define FEED_SIZE_OPTIONS \
  {OPT_DIM, "dim", "NAME=VALUE", "size of a symbolic dimension of inputs (repeatable)"}, \
  {OPT_SHAPE, "shape", "NAME=N,N,...", "size of an input (repeatable)"}, \
  {OPT_CASTS, "safe-casts", NULL, \
   "also accept files of another type whose values all fit the input's type"}, \
  CLI_MAX_UNPACKED(OPT_MAX_UNPACKED)
/* clang-format on */
#define FEED_OPTIONS                                                                              \
  {OPT_INPUT, "input", "NAME=FILE|ones|zeros|LO..HI",                                             \
   "data for an input: .npy, .pb or raw; {} is the micro-batch; .npz for several; or generated"}, \
    {OPT_SEED, "seed", "N", "seed of random inputs; default: 1"}, FEED_SIZE_OPTIONS

typedef struct feed_settings {
  psplit_feed_options options; /* its lists are the ones below */
  psplit_feed_file *files;
  psplit_dim_value *dims;
  psplit_feed_shape *shapes;
  psplit_feed_range *ranges;
} feed_settings;

void feed_init(feed_settings *settings);
/* Takes one of these options; false after an error line, or where `id` is none of them. */
bool feed_option(const cli *program, feed_settings *settings, int id, const char *argument);
void feed_fini(feed_settings *settings);

#endif
