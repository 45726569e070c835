/* The options of onnx-pipeline-train. */
#ifndef PSPLIT_TOOLS_TRAIN_SETTINGS_H
#define PSPLIT_TOOLS_TRAIN_SETTINGS_H

#include <psplit/train.h>

#include "ort_library.h"
#include "ort_options.h"

/* A list of files, in the order of the options. */
typedef struct train_files {
  psplit_feed_file *list;
  size_t n;
} train_files;

/* What the options say. */
typedef struct train_settings {
  const char *directory, *trace, *export, *model;
  bool json, quiet, mpi, force, leads; /* leads: rank 0 */
  uint64_t log_every;
  train_files data, eval_data, fixed;
  ort_library library;
  ort_settings ort;
  psplit_train_options train;
} train_settings;

/* Their defaults; fini frees what parse adds. */
void train_settings_init(train_settings *settings);
void train_settings_fini(train_settings *settings);
/* -1: go on; else the exit status, after what the user has to read. Points into argv. */
int train_settings_parse(int argc, char **argv, train_settings *settings);

#endif
