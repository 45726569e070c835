#include "budget.h"

#include <time.h>

double psplit_i_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

psplit_i_deadline psplit_i_deadline_in(const psplit_partition_options *options) {
  const double seconds = options->time_limit_s;
  return (psplit_i_deadline){seconds < 0 || options->limit_by_work ? -1 : psplit_i_now() + seconds};
}

bool psplit_i_expired(const psplit_i_deadline *deadline) {
  return deadline->end >= 0 && psplit_i_now() >= deadline->end;
}
