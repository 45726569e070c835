/* What a plan may be taken to promise, as pipeline.json and the snapshots of a planner both say it:
 * docs/manifest.md. */
#ifndef PSPLIT_MANIFEST_PROMISE_H
#define PSPLIT_MANIFEST_PROMISE_H

#include <psplit/plan.h>

#include "base.h"

/* The members device_order to headline of an object that is open. */
void psplit_i_promise_write(psplit_i_json *json, const psplit_plan *plan);
/* "data_dependent": an object that is left open, for who knows what the ids in `data` are of. */
void psplit_i_promise_open_data(psplit_i_json *json, const psplit_plan_data *data);

#endif
