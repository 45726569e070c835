/* tune: what runs tell about costs. Knows runs, passes and the emitter, and is what they have in
 * common; above it are the commands alone.
 *
 *   profile_model.c   a whole model, measured once: psplit_profile_model
 *   autotune.c        split, run, correct the costs, again: psplit_autotune
 *
 * Their interface is psplit/profile.h. */
#ifndef PSPLIT_TUNE_TUNE_H
#define PSPLIT_TUNE_TUNE_H

#include <psplit/profile.h>

#include "options.h"
#include "run.h"

#endif
