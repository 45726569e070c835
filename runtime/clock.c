#include "clock.h"

#include <time.h>

static const int64_t SECOND_NS = 1000000000;

int64_t psplit_i_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

int64_t psplit_i_after(int64_t from_ns, double seconds) {
  static const double LONGEST_S = 1e9;
  const double s = seconds > 0 ? seconds : 0;
  return from_ns + (int64_t)(1e9 * (s < LONGEST_S ? s : LONGEST_S));
}

int psplit_i_compare_ns(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

void psplit_i_timed_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &clock);
  pthread_condattr_destroy(&clock);
}

bool psplit_i_timed_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_ns) {
  const struct timespec until = {until_ns / SECOND_NS, until_ns % SECOND_NS};
  return pthread_cond_timedwait(cond, mutex, &until) == 0;
}
