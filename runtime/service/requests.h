/* Requests in a pipeline: a bounded queue, and the requests in flight. Any thread may submit; the
 * feeder takes requests, the collector answers them (source.h). */
#ifndef PSPLIT_RUNTIME_REQUESTS_H
#define PSPLIT_RUNTIME_REQUESTS_H

#include <psplit/run_service.h>

#include "pipeline.h"
#include "source.h"

typedef struct psplit_i_requests psplit_i_requests;

typedef struct psplit_i_requests_options {
  const psplit_i_ort *ort;
  const psplit_i_pipe *pipe;
  uint32_t max_waiting;
  double deadline_s;  /* of requests that say none; 0: none */
  uint32_t max_batch; /* psplit_service_options; these three */
  double batch_delay_s;
  const char *batch_dim;
} psplit_i_requests_options;

/* Errors: those of psplit_i_batching_init. */
PSPLIT_MUST_USE psplit_code psplit_i_requests_create(const psplit_i_requests_options *options,
                                                     psplit_diag *diag, psplit_i_requests **out);
void psplit_i_requests_destroy(psplit_i_requests *requests); /* all answered; NULL is fine */

/* Sets `next`, `done` and `user`. */
void psplit_i_requests_connect(psplit_i_requests *requests, psplit_i_source *source);

/* As psplit_service_submit, _wait, _cancel and _get_stats say. */
PSPLIT_MUST_USE psplit_code psplit_i_requests_submit(psplit_i_requests *requests,
                                                     const psplit_request *request,
                                                     psplit_diag *diag, uint64_t *out_id);
PSPLIT_MUST_USE psplit_code psplit_i_requests_wait(psplit_i_requests *requests, uint64_t id,
                                                   double most_s, psplit_diag *diag,
                                                   const psplit_response **out);
bool psplit_i_requests_cancel(psplit_i_requests *requests, uint64_t id);
void psplit_i_requests_get_stats(psplit_i_requests *requests, psplit_service_stats *out);

/* No more are accepted. */
void psplit_i_requests_close(psplit_i_requests *requests);
/* Answers all with `why`; what is in the pipeline goes through it, in vain. */
void psplit_i_requests_cancel_all(psplit_i_requests *requests, const psplit_diag *why);
/* Once there is no pipeline any more: the same for all that are left. */
void psplit_i_requests_fail_all(psplit_i_requests *requests, const psplit_diag *why);
bool psplit_i_requests_are_open(psplit_i_requests *requests);

#endif
