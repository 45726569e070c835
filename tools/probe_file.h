/* The file of --probe: what all commands that read devices may be told of it. */
#ifndef PSPLIT_TOOLS_PROBE_FILE_H
#define PSPLIT_TOOLS_PROBE_FILE_H

#include "cli.h"

/* PROVIDER, and FILE or NULL; allocated. Errors: USAGE (one is empty), NOMEM. */
PSPLIT_MUST_USE psplit_code probe_cut(const char *argument, psplit_diag *diag, char **out_provider,
                                      char **out_file);
/* psplit_devices_restrict with the text of `file`, which the error names. */
PSPLIT_MUST_USE psplit_code probe_apply(psplit_devices *devices, const char *provider,
                                        const char *file, const psplit_model *model,
                                        const char *text, size_t n, psplit_diag *diag);

#endif
