/* Pass plugins inside the library: the set of loaded ones, and running a pass of theirs. */
#ifndef PSPLIT_PASSES_PLUGIN_INTERNAL_H
#define PSPLIT_PASSES_PLUGIN_INTERNAL_H

#include <psplit/plugin.h>
#include <psplit/plugins.h>

#include "pass.h"

/* The index-th pass, in the order of loading, or NULL past the last; `plugins` may be NULL. */
const psplit_i_pass *psplit_i_plugins_pass(const psplit_plugins *plugins, size_t index);

/* Runs a pass of a plugin and checks what it left. Errors: PLUGIN, with the pass's name. */
PSPLIT_MUST_USE psplit_code psplit_i_plugin_run(psplit_planner *planner, const psplit_i_pass *pass,
                                                const psplit_i_option_value *values,
                                                psplit_diag *diag);

/* One of those, or of the loaded plugins (may be NULL); NULL if there is none of that name. */
const psplit_i_pass *psplit_i_pass_find(const psplit_plugins *plugins, const char *name, size_t n);

#endif
