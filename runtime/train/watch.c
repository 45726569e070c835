#include "watch.h"

#include "queue.h"

void psplit_i_watch_init(psplit_i_watch *watch) { pthread_mutex_init(&watch->mutex, NULL); }

void psplit_i_watch_fini(psplit_i_watch *watch) { pthread_mutex_destroy(&watch->mutex); }

static void set_running(psplit_i_watch *watch, psplit_i_session *session) {
  pthread_mutex_lock(&watch->mutex);
  watch->running = session;
  if (session && (watch->stopped || watch->gives_up)) psplit_i_session_stop(session);
  pthread_mutex_unlock(&watch->mutex);
}

void psplit_i_watch_begin(psplit_i_watch *watch, psplit_i_session *session, const char *file) {
  set_running(watch, session);
  atomic_store(&watch->opens, session == NULL);
  atomic_store(&watch->since_ns, psplit_i_now_ns());
  atomic_store(&watch->file, file);
}

void psplit_i_watch_end(psplit_i_watch *watch) {
  atomic_store(&watch->file, NULL);
  set_running(watch, NULL);
}

void psplit_i_watch_stop(psplit_i_watch *watch) {
  pthread_mutex_lock(&watch->mutex);
  watch->stopped = true;
  if (watch->running) psplit_i_session_stop(watch->running);
  pthread_mutex_unlock(&watch->mutex);
}

void psplit_i_watch_give_up(psplit_i_watch *watch) {
  pthread_mutex_lock(&watch->mutex);
  watch->gives_up |= watch->in_pieces;
  if (watch->gives_up && watch->running) psplit_i_session_stop(watch->running);
  pthread_mutex_unlock(&watch->mutex);
}

bool psplit_i_watch_pieces(psplit_i_watch *watch, bool begin) {
  pthread_mutex_lock(&watch->mutex);
  watch->in_pieces = begin;
  const bool gives_up = watch->gives_up;
  pthread_mutex_unlock(&watch->mutex);
  return gives_up;
}

bool psplit_i_watch_gives_up(psplit_i_watch *watch) {
  pthread_mutex_lock(&watch->mutex);
  const bool gives_up = watch->gives_up;
  pthread_mutex_unlock(&watch->mutex);
  return gives_up;
}

psplit_code psplit_i_watch_check(psplit_i_watch *watch, double most_s, psplit_diag *diag) {
  const char *file = atomic_load(&watch->file);
  if (!(most_s > 0) || !file) return PSPLIT_OK;
  const double s = 1e-9 * (double)(psplit_i_now_ns() - atomic_load(&watch->since_ns));
  if (s <= most_s || file != atomic_load(&watch->file)) return PSPLIT_OK;
  return psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(TIMEOUT),
                             "%s has been %s for more than %g s", file,
                             atomic_load(&watch->opens) ? "opened or closed" : "computed", most_s);
}
