/* The communication pattern of a pipeline, derived from pipeline.json. */
#ifndef PSPLIT_RUNTIME_PIPELINE_H
#define PSPLIT_RUNTIME_PIPELINE_H

#include "manifest.h"

/* The end of a link that is no stage: the feeder and the collector of a stream. */
enum { PSPLIT_I_OUTSIDE = PSPLIT_I_FROM_MODEL };

/* All that goes from one stage to another for a micro-batch, in the order of the tags. */
typedef struct psplit_i_pipe_link {
  uint32_t from, to;
  uint32_t n_tensors;
  uint32_t *outputs; /* [n_tensors] ports of `from`; inputs of the model where it is the outside */
  uint32_t *inputs;  /* [n_tensors] ports of `to`; outputs of the model where it is the outside */
} psplit_i_pipe_link;

/* A file of a stage: which of the stage's ports are its own. */
typedef struct psplit_i_phase_stage {
  const char *file; /* NULL: none, so that what comes is handed on without being run */
  uint32_t first_input, n_inputs, first_output, n_outputs;
} psplit_i_phase_stage;

/* One of several models that stages hold parts of; a micro-batch goes through one of them. */
typedef struct psplit_i_phase {
  const char *directory;
  uint32_t first_input, n_needed;   /* of manifest.inputs: those of this model that are needed */
  uint32_t first_output, n_outputs; /* of manifest.outputs */
  psplit_i_phase_stage *stages;     /* [n_stages] */
} psplit_i_phase;

typedef struct psplit_i_pipe {
  psplit_i_arena arena;
  const char *directory;
  psplit_i_manifest manifest;
  uint32_t n_phases; /* 1, or more where pipes were joined (phases.h) */
  psplit_i_phase *phases;
  uint32_t **model_input;     /* [stage][input of the stage]: position in manifest.inputs, or
                              PSPLIT_NONE */
  uint32_t **model_output;    /* [stage][output of the stage]: position in manifest.outputs, or
                              PSPLIT_NONE */
  const uint32_t *n_replicas; /* [n_stages] as planned */
  bool **kept; /* [stage][input of the stage]: stages keep it themselves; NULL: none is kept */
  uint32_t n_links;
  psplit_i_pipe_link *links; /* by from, then to; those with the outside behind all others */
  uint32_t **ends; /* [stage]: room for what its links with the outside list, 2 of each port */
} psplit_i_pipe;

/* Reads directory/pipeline.json, of at most max_bytes (0: the default); `directory` outlives it.
 * Errors: those of psplit_i_manifest_read, INVALID also where the tables of two stages do not
 * agree. */
PSPLIT_MUST_USE psplit_code psplit_i_pipe_read(const char *directory, uint64_t max_bytes,
                                               psplit_diag *diag, psplit_i_pipe *out);
/* Whether its stages run without a trainer. Errors: UNSUPPORTED. */
PSPLIT_MUST_USE psplit_code psplit_i_pipe_check_runs(const psplit_i_pipe *pipe, psplit_diag *diag);
/* Makes `ends`: once, as each run opens its own and takes no memory for it. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pipe_make_ends(psplit_i_pipe *pipe, psplit_diag *diag);
void psplit_i_pipe_fini(psplit_i_pipe *pipe); /* a zeroed one is fine */

/* Whether micro-batches end at a stage: it makes outputs of the model, or gives to nobody. The
 * number of these. */
bool psplit_i_pipe_is_final(const psplit_i_pipe *pipe, uint32_t stage);
uint32_t psplit_i_pipe_n_final(const psplit_i_pipe *pipe);
/* The stage at which outputs are given, over MPI its rank: that of the collector, where there is
 * one, is 0. */
uint32_t psplit_i_pipe_deliverer(const psplit_i_pipe *pipe);

/* Before links with the outside are added: that stages keep an input of the model, or what comes
 * out as one, themselves, so that it is not fed, or not collected. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pipe_keep_input(psplit_i_pipe *pipe, uint32_t stage,
                                                     uint32_t port, psplit_diag *diag);
void psplit_i_pipe_keep_output(psplit_i_pipe *pipe, uint32_t stage, uint32_t port);

/* Which links with the outside a run needs. */
typedef struct psplit_i_pipe_wants {
  bool feed;    /* a stream: one to each stage that reads inputs of the model (optional ones do not
                   count) or receives nothing */
  bool collect; /* one from each final stage */
  bool outputs; /* which carries its outputs, rather than nothing but whether it went well */
} psplit_i_pipe_wants;

/* Adds them. Errors: INVALID. */
PSPLIT_MUST_USE psplit_code psplit_i_pipe_open_ends(psplit_i_pipe *pipe, psplit_i_pipe_wants wants,
                                                    psplit_diag *diag);

/* Bytes that a micro-batch takes in a link; 0: the plan does not know. */
uint64_t psplit_i_pipe_link_bytes(const psplit_i_pipe *pipe, const psplit_i_pipe_link *link);
/* Micro-batches that may wait between two stages where the user leaves that open: 2. More where the
 * plan's slowest stage takes less than 200 us, up to 32 and as long as all that waits takes 1 MiB
 * at most: stages that run ahead of each other are woken less often, which takes as long as they
 * do. The plan alone decides. */
uint32_t psplit_i_pipe_depth(const psplit_i_pipe *pipe);

#endif
