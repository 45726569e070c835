/* onnx-pipeline-run --profile: how long the nodes of a whole model take, as a costs file. */
#ifndef PSPLIT_TOOLS_PROFILE_MODEL_H
#define PSPLIT_TOOLS_PROFILE_MODEL_H

#include "cli.h"
#include "feed_options.h"

/* Runs `model`, read as `read` says (NULL: defaults), at the options' level and threads and gives
 * what it costs as a costs file, malloc'd JSON. Inputs that no file gives are random. Errors: those
 * of opening and running the model; USAGE (an input that it has not). */
PSPLIT_MUST_USE psplit_code profile_model(const char *model, const psplit_read_options *read,
                                          const char *onnxruntime,
                                          const psplit_i_run_options *options,
                                          const feed_settings *feed, psplit_diag *diag,
                                          char **out_text);

#endif
