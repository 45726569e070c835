/* A stage in a separate process, for services: it holds the session, and receives micro-batches and
 * returns outputs over a socket (frames.h). If it ends for any reason, it is restarted and receives
 * its current micro-batch again; earlier ones are complete and later ones still queued, so each is
 * computed for its request once. A micro-batch that terminates it twice fails. */
#ifndef PSPLIT_RUNTIME_PROCESS_H
#define PSPLIT_RUNTIME_PROCESS_H

#include "ort.h"
#include "source.h"

typedef struct psplit_i_process psplit_i_process;

typedef struct psplit_i_process_options {
  const psplit_i_ort *ort;
  const char *const *command; /* psplit_service_options.stage_command */
  uint32_t stage;
  const char *path; /* of its file; copied, like all names, but for the command */
  const psplit_i_session_options *session;
  const char *const *input_names, *const *output_names;
  uint32_t n_inputs, n_outputs;
  psplit_i_live *live; /* gets its id, and how often it was started again; may be NULL */
} psplit_i_process_options;

/* Nothing is started yet. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_process_create(const psplit_i_process_options *options,
                                                    psplit_diag *diag, psplit_i_process **out);
void psplit_i_process_destroy(psplit_i_process *process); /* ends it; NULL is fine */

/* Starts it and returns when the stage is open. Errors: IO (it cannot be started), PLUGIN (it
 * ended, or sent nonsense), those of psplit_i_session_open. */
PSPLIT_MUST_USE psplit_code psplit_i_process_open(psplit_i_process *process, psplit_diag *diag);

/* As psplit_i_session_run, by one thread at a time. `deadline_ns`: it is not waited for longer
 * until the process runs again; 0: any time. Errors: those, and PLUGIN: the process ended twice
 * with it, or cannot be started again. */
PSPLIT_MUST_USE psplit_code psplit_i_process_run(psplit_i_process *process,
                                                 psplit_i_tensor *const *inputs,
                                                 psplit_i_tensor **outputs, int64_t deadline_ns,
                                                 psplit_diag *diag);

/* From any thread: the run under way is stopped between two nodes, and fails; later ones run. */
void psplit_i_process_stop_run(psplit_i_process *process);
/* From any thread: the process is killed and not started again; runs fail. */
void psplit_i_process_end(psplit_i_process *process);
/* From any thread, now and then: where nothing is run, starts a process that has ended; kills one
 * that has been at work for longer than most_s (0: any time), which is then started again. */
void psplit_i_process_look(psplit_i_process *process, double most_s);

/* What a process makes of the text of PSPLIT_I_FRAME_OPEN. */
typedef struct psplit_i_process_task {
  const char *library, *path;
  const char *const *custom_ops; /* [n_custom_ops] */
  size_t n_custom_ops;
  psplit_i_session_options session;
  const char **names; /* malloc'd: all lists of the rest, which the text holds */
  const char *const *input_names, *const *output_names;
  uint32_t n_inputs, n_outputs;
} psplit_i_process_task;

/* `text` has n bytes and a NUL behind; it outlives *out. Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_process_task_read(const char *text, uint64_t n,
                                                       psplit_diag *diag,
                                                       psplit_i_process_task *out);
/* malloc'd in *out. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_process_task_write(const char *library,
                                                        const psplit_i_process_options *options,
                                                        psplit_diag *diag, psplit_i_text *out);

/* Where a process of a stage finds its sockets: messages; numbers of runs that are to stop. */
enum { PSPLIT_I_PROCESS_FD = 3, PSPLIT_I_PROCESS_CONTROL_FD };

#endif
