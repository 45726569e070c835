/* Supervision of a device's ONNX Runtime calls by other threads: stopping them, and detecting
 * timeouts; and the device's current activity, for ending a run soon. */
#ifndef PSPLIT_RUNTIME_TRAIN_WATCH_H
#define PSPLIT_RUNTIME_TRAIN_WATCH_H

#include <stdatomic.h>

#include "ort.h"

typedef struct psplit_i_watch {
  pthread_mutex_t mutex;
  psplit_i_session *running; /* guarded; NULL: none */
  bool stopped;              /* guarded */
  bool in_pieces, gives_up;  /* guarded */
  _Atomic bool finishes;     /* it saves, or has trained: waited for once the run is cancelled */
  const char *_Atomic file;  /* that is opened or run; NULL: nothing is */
  _Atomic int64_t since_ns;
  _Atomic bool opens;
} psplit_i_watch;

void psplit_i_watch_init(psplit_i_watch *watch);
void psplit_i_watch_fini(psplit_i_watch *watch);

/* Around a call of ONNX Runtime for `file`; `session` NULL: it is opened or closed. */
void psplit_i_watch_begin(psplit_i_watch *watch, psplit_i_session *session, const char *file);
void psplit_i_watch_end(psplit_i_watch *watch);

/* Makes the run under way, and all later ones, fail. From any thread. */
void psplit_i_watch_stop(psplit_i_watch *watch);
/* The same of pieces alone, which come to nothing then. From any thread. */
void psplit_i_watch_give_up(psplit_i_watch *watch);
/* Around pieces: what may be given up. Both return whether it is. */
bool psplit_i_watch_pieces(psplit_i_watch *watch, bool begin);
bool psplit_i_watch_gives_up(psplit_i_watch *watch);
/* Fails where a call has taken more than most_s; 0: any time. From any thread. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_watch_check(psplit_i_watch *watch, double most_s,
                                                 psplit_diag *diag);

#endif
