/* tune: costs from runs. Combines runs, passes and the emitter; only the commands depend on it.
 *
 *   profile_model.c   profiles a whole model: psplit_profile_model
 *   profile_stages.c  profiles the stages of a split: psplit_profile_stages
 *   autotune.c        repeats splitting with the measured costs of its stages: psplit_autotune
 *   probe.c           which nodes of a model a provider runs: psplit_probe_provider
 *
 * The API is psplit/profile.h. */
#ifndef PSPLIT_TUNE_TUNE_H
#define PSPLIT_TUNE_TUNE_H

#include <psplit/profile.h>

#include "options.h"
#include "profile.h"
#include "run.h"
#include "stage.h"

/* Creates a costs file from profiles of all stages, with their times set; malloc'd. Errors: those
 * of opening stages; NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_costs_of_stages(const psplit_i_ort *ort,
                                                     const psplit_i_pipe *pipe,
                                                     const psplit_i_run_options *run,
                                                     const psplit_i_profile *profiles,
                                                     psplit_diag *diag, char **out_text);

#endif
