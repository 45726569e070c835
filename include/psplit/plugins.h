/* Loading pass plugins into a program that uses the library. Writing one: psplit/plugin.h. */
#ifndef PSPLIT_PLUGINS_H
#define PSPLIT_PLUGINS_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A set of loaded plugins. Must outlive all planners that use it. */
typedef struct psplit_plugins psplit_plugins;

/* An empty set; NULL when out of memory. */
PSPLIT_API psplit_plugins *psplit_plugins_create(void);
PSPLIT_API void psplit_plugins_destroy(psplit_plugins *plugins);

/* Loads a shared object. Its code runs in this process with all its rights. Errors: PLUGIN
 * (missing, not a plugin, another ABI, an invalid description, a pass whose name is taken), with
 * the file and the reason; NOMEM. The set is unchanged then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_plugins_load(psplit_plugins *plugins,
                                                           const char *path, psplit_diag *diag);

/* psplit_pipeline_canonical() and psplit_passes_help() with the passes of the set (may be NULL).
 * Errors: those of the former; the latter is NULL when out of memory. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_plugins_canonical(const psplit_plugins *plugins,
                                                                const char *pipeline,
                                                                psplit_diag *diag, char **out_text);
PSPLIT_API char *psplit_plugins_help(const psplit_plugins *plugins);

#ifdef __cplusplus
}
#endif
#endif
