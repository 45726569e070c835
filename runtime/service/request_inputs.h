/* Converts the inputs of a request to tensors, and checks them against pipeline.json. */
#ifndef PSPLIT_RUNTIME_REQUEST_INPUTS_H
#define PSPLIT_RUNTIME_REQUEST_INPUTS_H

#include <psplit/run_service.h>

#include "ort.h"
#include "pipeline.h"

/* Copies each of the inputs that the model needs into out[n_needed], which is all NULL and which
 * the caller releases, also after a failure. Errors: USAGE (one is missing, twice or unknown),
 * INVALID (its type or shape), UNSUPPORTED (optional ones), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_request_inputs_take(const psplit_i_ort *ort,
                                                         const psplit_i_manifest *manifest,
                                                         const psplit_request *request,
                                                         psplit_diag *diag, psplit_i_tensor **out);

#endif
