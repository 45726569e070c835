/* What other programs read of a plan: a file for ONNX Runtime GenAI, layers by stage for vLLM and
 * llama.cpp. */
#ifndef PSPLIT_TOOLS_TARGETS_H
#define PSPLIT_TOOLS_TARGETS_H

#include <psplit/emit.h>

#include "plan_options.h"

typedef enum target { TARGET_NONE, TARGET_GENAI, TARGET_VLLM, TARGET_LLAMA_CPP } target;

/* By its name; false after an error line. */
bool target_parse(const cli *program, const char *text, target *out);

/* Whether it is a line to print, not a file of DIR. */
bool target_prints(target t);

/* genai_config.json for stages that are written with `emit`; *out_text is malloc'd. Errors: those
 * of psplit_genai_config. */
PSPLIT_MUST_USE psplit_code target_genai(const psplit_model *model, const planned *made,
                                         const plan_options *options,
                                         const psplit_emit_options *emit, psplit_diag *diag,
                                         char **out_text);

/* Prints the line to `out`, and says to `logger` where layers are cut. Errors: UNSUPPORTED (no
 * layers). */
PSPLIT_MUST_USE psplit_code target_print(target t, const planned *made, const psplit_logger *logger,
                                         FILE *out, psplit_diag *diag);

#endif
