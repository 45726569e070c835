/* tune: what runs tell about costs. Knows runs, passes and the emitter, and is what they have in
 * common; above it are the commands alone.
 *
 *   profile_model.c   a whole model, measured once: psplit_profile_model
 *   profile_stages.c  the stages of a split, likewise: psplit_profile_stages
 *   autotune.c        split, run, take the costs from the stages, again: psplit_autotune
 *   probe.c           what of a model a provider takes: psplit_probe_provider
 *
 * Their interface is psplit/profile.h. */
#ifndef PSPLIT_TUNE_TUNE_H
#define PSPLIT_TUNE_TUNE_H

#include <psplit/profile.h>

#include "options.h"
#include "profile.h"
#include "run.h"
#include "stage.h"

/* The costs file of profiles of all stages, with their times set; malloc'd. Errors: those of
 * opening stages; NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_costs_of_stages(const psplit_i_ort *ort,
                                                     const psplit_i_pipe *pipe,
                                                     const psplit_i_run_options *run,
                                                     const psplit_i_profile *profiles,
                                                     psplit_diag *diag, char **out_text);

#endif
