/* The options of onnx-pipeline-generate. */
#ifndef PSPLIT_TOOLS_GENERATE_SETTINGS_H
#define PSPLIT_TOOLS_GENERATE_SETTINGS_H

#include <psplit/generate.h>

#include "feed_options.h"
#include "ort_library.h"
#include "ort_options.h"
#include "prompts.h"

typedef struct generate_settings {
  const char *directory, *encoder, *prompt_split;
  ort_library library;
  bool json, quiet, mpi, stream;
  prompts_list given;  /* --prompt-ids */
  const char *prompts; /* --prompts */
  int64_t *end_tokens;
  psplit_state_pair *states;
  uint64_t max_new;
  feed_settings feed;
  ort_settings ort;
  psplit_run_options run;
  psplit_generator_options own;
} generate_settings;

/* Sets the defaults. fini frees what parse adds. */
void generate_settings_init(generate_settings *settings);
void generate_settings_fini(generate_settings *settings);
/* Returns -1 if the program goes on, and otherwise its exit status, after a message for the user.
 * The settings point into argv. */
int generate_settings_parse(int argc, char **argv, generate_settings *settings);

#endif
