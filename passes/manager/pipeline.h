/* Pipeline texts: `pass,pass:option=value:option=value,...`. */
#ifndef PSPLIT_PASSES_PIPELINE_H
#define PSPLIT_PASSES_PIPELINE_H

#include "pass.h"

enum { PSPLIT_I_MAX_STEPS = 256, PSPLIT_I_MAX_OPTIONS = 16 };

typedef struct psplit_i_step {
  const psplit_i_pass *pass;
  psplit_i_option_value values[PSPLIT_I_MAX_OPTIONS]; /* texts point into the parsed copy */
} psplit_i_step;

typedef struct psplit_i_pass_pipeline {
  size_t n_steps;
  psplit_i_step *steps;
} psplit_i_pass_pipeline;

/* Parses a text that may name passes of `plugins` (may be NULL); steps and option texts live in
 * `arena`. Errors: USAGE, naming the word and what would be right; NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pipeline_parse(const psplit_plugins *plugins, const char *text,
                                                    psplit_i_arena *arena, psplit_diag *diag,
                                                    psplit_i_pass_pipeline *out_pipeline);

/* Whether `text` is a value of the option; *out_value then holds it, and points into it. */
bool psplit_i_option_parse(const psplit_i_option *option, const char *text,
                           psplit_i_option_value *out_value);

/* The default values of a pass's options. */
void psplit_i_pass_defaults(const psplit_i_pass *pass, psplit_i_option_value *out_values);

#endif
