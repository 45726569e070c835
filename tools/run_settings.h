/* The options of onnx-pipeline-run. */
#ifndef PSPLIT_TOOLS_RUN_SETTINGS_H
#define PSPLIT_TOOLS_RUN_SETTINGS_H

#include <psplit/run.h>

#include "feed_options.h"
#include "ort_library.h"
#include "ort_options.h"

typedef struct run_settings {
  const char *directory, *trace, *profile;
  ort_library library;
  bool json, quiet, mpi;
  feed_settings feed;
  ort_settings ort;
  psplit_session session; /* of all stages */
  psplit_run_options run;
  uint32_t resume; /* the micro-batch to begin with; PSPLIT_NONE: it has to be found */
} run_settings;

/* Sets the defaults. fini frees what parse adds. */
void run_settings_init(run_settings *settings);
void run_settings_fini(run_settings *settings);
/* Returns -1 if the program goes on, and otherwise its exit status, after a message for the user.
 * The settings point into argv. */
int run_settings_parse(int argc, char **argv, run_settings *settings);

#endif
