/* Monotonic time for waits, independent of adjustments of the system clock. */
#ifndef PSPLIT_RUNTIME_CLOCK_H
#define PSPLIT_RUNTIME_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

int64_t psplit_i_now_ns(void); /* CLOCK_MONOTONIC */
/* So many seconds later, 30 years where they are more; NaN and what is below 0 count as 0. */
int64_t psplit_i_after(int64_t from_ns, double seconds);
/* For qsort: int64_t, the least first. */
int psplit_i_compare_ns(const void *a, const void *b);

/* A condition that can be waited for until a time of that clock. */
void psplit_i_timed_cond_init(pthread_cond_t *cond);
/* With the mutex held: waits for it, at most until then. False: it is past. */
bool psplit_i_timed_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_ns);

#endif
