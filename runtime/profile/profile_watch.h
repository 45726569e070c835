/* A watchdog thread for profiling: it stops a run on interrupts and timeouts of ONNX Runtime calls,
 * and terminates the process if that has no effect. */
#ifndef PSPLIT_RUNTIME_PROFILE_WATCH_H
#define PSPLIT_RUNTIME_PROFILE_WATCH_H

#include "ort.h"
#include "runtime.h"

typedef struct psplit_i_profile_watch {
  const psplit_i_run_options *options; /* interrupted, stall_timeout_s, give_up */
  void (*clean_up)(void *user);        /* called before give_up, by the other thread */
  void *user;
  pthread_t thread;
  pthread_mutex_t mutex;
  /* Guarded: */
  const char *doing;         /* "has been opened", what the call does; NULL: there is none */
  psplit_i_session *session; /* that a stop can reach; NULL: none */
  int64_t since_ns, stopped_ns;
  psplit_diag diag; /* why it was stopped; OK: it was not */
  bool done;
} psplit_i_profile_watch;

/* With what it is given set. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_profile_watch_start(psplit_i_profile_watch *watch,
                                                         psplit_diag *diag);
/* Around calls. `session` may be NULL. `end` gives `code`, or what stopped the call, in place of
 * what ONNX Runtime says of that. */
void psplit_i_profile_watch_begin(psplit_i_profile_watch *watch, const char *doing,
                                  psplit_i_session *session);
PSPLIT_MUST_USE psplit_code psplit_i_profile_watch_end(psplit_i_profile_watch *watch,
                                                       psplit_code code, psplit_diag *diag);
void psplit_i_profile_watch_stop(psplit_i_profile_watch *watch);

#endif
