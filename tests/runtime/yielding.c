/* Ranks that wait for each other let others have the processor, for LD_PRELOAD. MPICH over UCX asks
 * this call again and again, and where there are more ranks and tests than processors, whom it
 * waits for comes only once its time is up: half of what a short run took. */
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker);

static unsigned (*real)(void *);

__attribute__((constructor)) static void find_real(void) {
  *(void **)&real = dlsym(RTLD_NEXT, "ucp_worker_progress"); /* NULL: no rank, but its launcher */
}

__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker) {
  enum { SOON = 50 }; /* what comes at once is not waited for longer */
  static _Thread_local unsigned n_idle;
  const unsigned n = real(worker);
  n_idle = n ? 0 : n_idle + 1;
  if (n_idle > SOON) sched_yield();
  return n;
}
