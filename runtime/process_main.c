#include <psplit/run_service.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "frames.h"
#include "process.h"

/* The process of a stage: what it was told to open, and the run that is under way. */
typedef struct holder {
  psplit_i_ort ort;
  psplit_i_session session;
  psplit_i_process_task task;
  char *text; /* of the task */
  psplit_i_tensor **inputs, **outputs;
  pthread_mutex_t mutex;
  uint64_t running; /* guarded; 0: nothing */
  bool stopped;     /* guarded: that run is to end */
} holder;

/* Ends with the service, whatever the session is at; and stops the runs that it names. */
static void *listen_to_service(void *user) {
  holder *h = user;
  uint64_t number;
  while (recv(PSPLIT_I_PROCESS_CONTROL_FD, &number, sizeof number, MSG_WAITALL) ==
         (ssize_t)sizeof number) {
    pthread_mutex_lock(&h->mutex);
    if (number && number == h->running && !h->stopped) {
      h->stopped = true;
      psplit_i_session_stop(&h->session);
    }
    pthread_mutex_unlock(&h->mutex);
  }
  _exit(0);
}

static void set_running(holder *h, uint64_t number) {
  pthread_mutex_lock(&h->mutex);
  if (h->stopped) psplit_i_session_go_on(&h->session);
  h->stopped = false;
  h->running = number;
  pthread_mutex_unlock(&h->mutex);
}

static psplit_code open_all(holder *h, psplit_diag *diag) {
  const psplit_i_process_task *t = &h->task;
  psplit_code code;
  h->inputs = calloc((size_t)t->n_inputs + 1, sizeof *h->inputs);
  h->outputs = calloc((size_t)t->n_outputs + 1, sizeof *h->outputs);
  if (!h->inputs || !h->outputs) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_ort_open(*t->library ? t->library : NULL, diag, &h->ort));
  for (size_t i = 0; i < t->n_custom_ops; i++)
    PSPLIT_TRY(psplit_i_ort_add_custom_ops(&h->ort, t->custom_ops[i], diag));
  PSPLIT_TRY(psplit_i_session_open(&h->ort, t->path, &t->session, diag, &h->session));
out:
  return code;
}

/* One micro-batch. */
static psplit_code serve_one(holder *h, psplit_diag *diag) {
  const psplit_i_process_task *t = &h->task;
  psplit_diag failure = {0};
  psplit_i_frame run;
  psplit_code code;
  PSPLIT_TRY(
    psplit_i_frame_receive(PSPLIT_I_PROCESS_FD, PSPLIT_I_FRAME_RUN, 0, t->n_inputs, diag, &run));
  PSPLIT_TRY(psplit_i_frame_tensors(PSPLIT_I_PROCESS_FD, &run, &h->ort, diag, h->inputs));
  set_running(h, run.number);
  code = psplit_i_session_run(&h->session,
                              &(psplit_i_session_io){t->input_names, h->inputs, t->n_inputs,
                                                     t->output_names, h->outputs, t->n_outputs},
                              &failure);
  set_running(h, 0);
  psplit_i_tensors_release(h->inputs, t->n_inputs);
  if (code == PSPLIT_OK) {
    const psplit_i_frame outputs = {
      .kind = PSPLIT_I_FRAME_OUTPUTS, .number = run.number, .n_tensors = t->n_outputs};
    code = psplit_i_frame_send(PSPLIT_I_PROCESS_FD, &outputs, NULL, h->outputs, &failure);
    psplit_i_tensors_release(h->outputs, t->n_outputs);
  }
  /* An IO here is that nobody reads: the next message tells. */
  code = code == PSPLIT_OK || code == PSPLIT_IO
           ? PSPLIT_OK
           : psplit_i_frame_send_failure(PSPLIT_I_PROCESS_FD, run.number, &failure, diag);
out:
  return code;
}

static psplit_code begin(holder *h, psplit_diag *diag) {
  psplit_diag failure = {0};
  psplit_i_frame open;
  psplit_code code;
  pthread_t thread;
  PSPLIT_TRY(psplit_i_frame_receive(PSPLIT_I_PROCESS_FD, PSPLIT_I_FRAME_OPEN, 0, 0, diag, &open));
  PSPLIT_TRY(psplit_i_frame_text(PSPLIT_I_PROCESS_FD, &open, diag, &h->text));
  code = pthread_create(&thread, NULL, listen_to_service, h)
           ? psplit_i_fail(&failure, PSPLIT_NOMEM, "cannot start a thread")
           : PSPLIT_OK;
  if (code == PSPLIT_OK)
    code = psplit_i_process_task_read(h->text, open.n_text, &failure, &h->task);
  if (code == PSPLIT_OK) code = open_all(h, &failure);
  if (code != PSPLIT_OK) {
    PSPLIT_TRY(psplit_i_frame_send_failure(PSPLIT_I_PROCESS_FD, 0, &failure, diag));
    *diag = failure;
    return failure.code;
  }
  const psplit_i_frame opened = {.kind = PSPLIT_I_FRAME_OPENED};
  code = psplit_i_frame_send(PSPLIT_I_PROCESS_FD, &opened, NULL, NULL, diag);
out:
  return code;
}

psplit_code psplit_stage_process(psplit_diag *diag) {
  holder h = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  int type;
  socklen_t n = sizeof type;
  if (getsockopt(PSPLIT_I_PROCESS_FD, SOL_SOCKET, SO_TYPE, &type, &n) != 0 ||
      getsockopt(PSPLIT_I_PROCESS_CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &n) != 0)
    return psplit_i_fail(diag, PSPLIT_USAGE, "only a service starts the process of a stage");
  /* These end the service, which sees what it has accepted through and then ends its stages. */
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
#ifdef SYS_close_range
  syscall(SYS_close_range, PSPLIT_I_PROCESS_CONTROL_FD + 1, ~0U, 0);
#endif
  psplit_code code = begin(&h, diag);
  while (code == PSPLIT_OK) code = serve_one(&h, diag);
  /* What ends it is that the service closes the sockets: nobody is left to hear more. */
  const bool over = code == PSPLIT_IO;
  _exit(over ? 0 : 1);
}
