/* onnx-pipeline-split --probe: ONNX Runtime is asked. */
#ifndef PSPLIT_TOOLS_ASK_H
#define PSPLIT_TOOLS_ASK_H

#include "probe.h"

/* A probe_asker's `ask`; `user` is the library, or NULL for the one that onnx-pipeline-run finds.
 * Errors: those of psplit_probe_provider; UNSUPPORTED where the runner was not built. */
PSPLIT_MUST_USE psplit_code ask_provider(void *user, const char *path,
                                         const psplit_session *session, const plan_options *options,
                                         psplit_diag *diag, char **out_text, char *out_line);

#endif
