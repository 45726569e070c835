/* The response to a request: a psplit_response and its contents. */
#ifndef PSPLIT_RUNTIME_ANSWER_H
#define PSPLIT_RUNTIME_ANSWER_H

#include <psplit/run_service.h>

#include "pipeline.h"
#include "tensor.h"

/* `outputs` by their place in the manifest; NULL where `failure` tells why there are none. Never
 * fails: without memory it says that. What it gives is released by psplit_response_release, but for
 * one that stands in `spare`, which needs none. */
const psplit_response *psplit_i_answer_make(const psplit_i_manifest *manifest,
                                            const psplit_response *head,
                                            psplit_i_tensor *const *outputs,
                                            const psplit_diag *failure, psplit_response *spare);

#endif
