#include "profile_watch.h"

#include <time.h>

#include "queue.h"

/* With the mutex held, and w->diag said. */
static void stop(psplit_i_profile_watch *w) {
  w->stopped_ns = psplit_i_now_ns();
  if (w->session) psplit_i_session_stop(w->session);
}

/* With the mutex held. True: nothing helps. */
static bool look(psplit_i_profile_watch *w) {
  const psplit_i_run_options *o = w->options;
  const int64_t now_ns = psplit_i_now_ns();
  if (w->diag.code != PSPLIT_OK)
    return w->doing && o->give_up && now_ns - w->stopped_ns > psplit_i_stop_ns(o);
  if (o->interrupted && atomic_load(o->interrupted)) {
    w->diag.code = psplit_i_fail(&w->diag, PSPLIT_CANCELLED, "interrupted");
    stop(w);
  } else if (w->doing && o->stall_timeout_s > 0 &&
             1e-9 * (double)(now_ns - w->since_ns) > o->stall_timeout_s) {
    w->diag.code =
      psplit_i_fail_about(&w->diag, PSPLIT_IO, PSPLIT_I_HELPS(TIMEOUT),
                          "the model %s for more than %g s", w->doing, o->stall_timeout_s);
    stop(w);
  }
  return false;
}

static void *watch_main(void *argument) {
  static const long LOOK_NS = 20000000;
  psplit_i_profile_watch *w = argument;
  psplit_diag told;
  bool stuck = false, done = false;
  while (!stuck && !done) {
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
    pthread_mutex_lock(&w->mutex);
    done = w->done;
    stuck = !done && look(w);
    told = w->diag;
    pthread_mutex_unlock(&w->mutex);
  }
  if (!stuck) return NULL;
  w->clean_up(w->user);
  w->options->give_up(w->options->give_up_user, &told);
  return NULL;
}

psplit_code psplit_i_profile_watch_start(psplit_i_profile_watch *w, psplit_diag *diag) {
  pthread_mutex_init(&w->mutex, NULL);
  if (!pthread_create(&w->thread, NULL, watch_main, w)) return PSPLIT_OK;
  pthread_mutex_destroy(&w->mutex);
  return psplit_i_fail(diag, PSPLIT_NOMEM, "cannot start a thread");
}

void psplit_i_profile_watch_begin(psplit_i_profile_watch *w, const char *doing,
                                  psplit_i_session *session) {
  pthread_mutex_lock(&w->mutex);
  w->doing = doing;
  w->session = session;
  w->since_ns = psplit_i_now_ns();
  if (w->diag.code != PSPLIT_OK && session) psplit_i_session_stop(session);
  pthread_mutex_unlock(&w->mutex);
}

psplit_code psplit_i_profile_watch_end(psplit_i_profile_watch *w, psplit_code code,
                                       psplit_diag *diag) {
  pthread_mutex_lock(&w->mutex);
  w->doing = NULL;
  w->session = NULL;
  if (w->diag.code != PSPLIT_OK) {
    *diag = w->diag;
    code = diag->code;
  }
  pthread_mutex_unlock(&w->mutex);
  return code;
}

void psplit_i_profile_watch_stop(psplit_i_profile_watch *w) {
  pthread_mutex_lock(&w->mutex);
  w->done = true;
  pthread_mutex_unlock(&w->mutex);
  pthread_join(w->thread, NULL);
  pthread_mutex_destroy(&w->mutex);
}
