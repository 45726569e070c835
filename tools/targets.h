/* What other programs read of a plan: files of DIR for ONNX Runtime GenAI, Triton and Kubernetes,
 * layers by stage for vLLM and llama.cpp. */
#ifndef PSPLIT_TOOLS_TARGETS_H
#define PSPLIT_TOOLS_TARGETS_H

#include <psplit/emit.h>

#include "plan_options.h"

/* A row of the table of targets; NULL: there is none. */
typedef struct target_row target_row;
typedef const target_row *target;

/* By its name; false after an error line. */
bool target_parse(const cli *program, const char *text, target *out);

const char *target_name(target t);
/* Its file in DIR. */
const char *target_file(target t);
/* Whether it is a line to print, not a file of DIR. */
bool target_prints(target t);
/* Whether sizes of sequences are needed (--context). */
bool target_needs_context(target t);

/* What its file holds for stages that are written with `emit`; *out_text is malloc'd.
 * Errors: those of psplit_genai_config and its like. */
PSPLIT_MUST_USE psplit_code target_make(target t, const psplit_model *model, const planned *made,
                                        const plan_options *options,
                                        const psplit_emit_options *emit, psplit_diag *diag,
                                        char **out_text);

/* Prints the line to `out`, and says to `logger` where layers are cut. Errors: UNSUPPORTED (no
 * layers). */
PSPLIT_MUST_USE psplit_code target_print(target t, const planned *made, const psplit_logger *logger,
                                         FILE *out, psplit_diag *diag);

#endif
