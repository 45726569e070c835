/* --probe PROVIDER[=FILE]: which nodes ONNX Runtime's provider takes. FILE keeps the answer, for
 * users to read and to edit; where it is there, nobody is asked. */
#ifndef PSPLIT_TOOLS_PROBE_H
#define PSPLIT_TOOLS_PROBE_H

#include "plan_options.h"
#include "probe_file.h"

/* Asks a provider about options->probed, the model that was read from `path`: gives the text of
 * FILE, malloc'd, and a line about it (CLI_ADVICE_BYTES). */
typedef struct probe_asker {
  psplit_code (*ask)(void *user, const char *path, const psplit_session *session,
                     const plan_options *options, psplit_diag *diag, char **out_text,
                     char *out_line);
  void *user;
} probe_asker;

/* Reads the file, or asks and writes it: once the model, from `path`, is open and before a plan is
 * made; nothing without --probe. `asker` NULL: the file has to be there. Errors: USAGE (no device
 * has that provider, no such file), IO, those of asking. */
PSPLIT_MUST_USE psplit_code probe_load(plan_options *options, const char *path,
                                       const psplit_model *model, const probe_asker *asker,
                                       psplit_diag *diag);

/* What the file says, for the devices of that provider. Errors: those of psplit_devices_restrict,
 * which name the file. */
PSPLIT_MUST_USE psplit_code probe_restrict(const plan_options *options, psplit_devices *devices,
                                           psplit_diag *diag);

#endif
