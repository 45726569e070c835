/* The two ends of a pipeline: the feeder reads the inputs of a stream and passes them to the stages
 * that need them; the collector takes outputs of the model from the stages that compute them and
 * passes them to take_output in order. Each is a thread of its own, and cannot deadlock: the feeder
 * precedes all stages, the collector follows them. */
#ifndef PSPLIT_RUNTIME_ENDS_H
#define PSPLIT_RUNTIME_ENDS_H

#include "stage.h"

typedef struct psplit_i_ends {
  const psplit_i_ort *ort;
  const psplit_i_pipe *pipe;
  const psplit_i_run_options *options;
  psplit_i_host *host;
  psplit_i_queue **queues; /* [pipe->n_links] */
} psplit_i_ends;

/* Micro-batches that may wait in a link: what the options say, else 2, or what the plan allows
 * between stages. Not for a service, nor with a deadline: what waits there gets old. */
uint32_t psplit_i_ends_depth(const psplit_i_ends *ends, uint32_t link);

/* They return when all is through or the run was stopped; failures go to the host. The collector
 * ends with the last of the streams that it takes. */
void psplit_i_feeder_main(const psplit_i_ends *ends);
void psplit_i_collector_main(const psplit_i_ends *ends);

#endif
