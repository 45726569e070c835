/* pipeline.json, as far as running needs it, and what follows from it: who sends what to whom. */
#ifndef PSPLIT_RUNTIME_PIPELINE_H
#define PSPLIT_RUNTIME_PIPELINE_H

#include "base.h"

/* A graph input or output of a stage file. */
typedef struct psplit_i_pipe_port {
  const char *name, *tensor;
  uint32_t from;         /* inputs: a stage, or PSPLIT_NONE for the model */
  bool optional;         /* inputs: the file has a default for it */
  uint32_t model_output; /* outputs: position in the model's outputs, or PSPLIT_NONE */
  uint32_t n_to, *to;    /* outputs: stages */
} psplit_i_pipe_port;

/* All that goes from one stage to another for a micro-batch, in the order of the tags. */
typedef struct psplit_i_pipe_link {
  uint32_t from, to;
  uint32_t n_tensors;
  uint32_t *outputs; /* [n_tensors] ports of `from` */
  uint32_t *inputs;  /* [n_tensors] ports of `to` */
} psplit_i_pipe_link;

typedef struct psplit_i_pipe_stage {
  const char *file, *device;
  uint32_t n_inputs, n_outputs;
  psplit_i_pipe_port *inputs, *outputs;
  int64_t compute_ns, recv_ns, send_ns, load_ns; /* as planned; -1 where not known */
} psplit_i_pipe_stage;

typedef struct psplit_i_pipe {
  psplit_arena arena;
  const char *directory;
  uint32_t n_stages, n_inputs, n_outputs;
  psplit_i_pipe_stage *stages;
  uint32_t n_needed;    /* inputs that are not optional: the first ones */
  const char **inputs;  /* of the model */
  const char **outputs; /* of the model */
  uint32_t n_links;
  psplit_i_pipe_link *links;               /* by from, then to */
  int64_t bottleneck_ns, total_compute_ns; /* -1: not known */
  const char *cost_source;
} psplit_i_pipe;

/* Reads directory/pipeline.json strictly; `directory` outlives it. Errors: IO, MALFORMED, INVALID
 * (also where the tables of two stages do not agree), UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pipe_read(const char *directory, psplit_diag *diag,
                                               psplit_i_pipe *out);
void psplit_i_pipe_fini(psplit_i_pipe *pipe); /* a zeroed one is fine */

#endif
