/* Make rules that say which files a split was made from. */
#ifndef PSPLIT_TOOLS_DEPFILE_H
#define PSPLIT_TOOLS_DEPFILE_H

#include "plan_options.h"

/* Writes "DIRECTORY/pipeline.json: ..." with the model, its external data, and the files that
 * `options` names for devices, costs and plugins, and those that the passes of `made` read, escaped
 * as make reads names. Errors: IO. */
PSPLIT_MUST_USE psplit_code depfile_write(const char *path, const char *directory,
                                          const psplit_model *model, const plan_options *options,
                                          const planned *made, psplit_diag *diag);

#endif
