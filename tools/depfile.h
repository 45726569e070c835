/* Make rules that say which files a split was made from. */
#ifndef PSPLIT_TOOLS_DEPFILE_H
#define PSPLIT_TOOLS_DEPFILE_H

#include "plan_options.h"

/* The text "DIRECTORY/pipeline.json: ..." with the model, its external data, and the files that
 * `options` names for devices, costs and plugins, and those that the passes of `made` read, escaped
 * as make reads names; *out_text is malloc'd, on failure too, or NULL. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code depfile_make(const char *directory, const psplit_model *model,
                                         const plan_options *options, const planned *made,
                                         psplit_diag *diag, char **out_text, size_t *out_n);

#endif
