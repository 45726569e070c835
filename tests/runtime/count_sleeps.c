/* Counts how often a thread that has nothing else to do slept to the end of a long nap at a
 * doorbell of runtime/mpi/mpi_doorbell.c, for LD_PRELOAD; tells at the end of MPI. Where all ranks
 * are on one host, and what moves is rung for, that is what a lost wake-up costs. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "few_windows.h"

enum { IDLE = 1 }; /* PSPLIT_I_DOORBELL_IDLE */
static const double LONG_S = 0.01;
static atomic_long n_sleeps, n_long;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

__attribute__((visibility("default"))) long syscall(long number, ...) {
  static long (*_Atomic real)(long, ...);
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  long (*next)(long, ...) = atomic_load(&real);
  if (!next) {
    union {
      void *object;
      long (*function)(long, ...);
    } found = {dlsym(RTLD_NEXT, "syscall")};
    next = found.function;
    atomic_store(&real, next);
  }
  const int idle = number == SYS_futex && a[1] == FUTEX_WAIT_BITSET && a[5] == IDLE;
  const double since_s = idle ? now_s() : 0;
  const long result = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const int reason = errno;
  if (idle) {
    atomic_fetch_add(&n_sleeps, 1);
    if (result < 0 && reason == ETIMEDOUT && now_s() - since_s > LONG_S)
      atomic_fetch_add(&n_long, 1);
  }
  errno = reason;
  return result;
}

__attribute__((visibility("default"))) int MPI_Finalize(void) {
  fprintf(stderr, "%ld sleeps, %ld to the end\n", n_sleeps, n_long);
  return PMPI_Finalize();
}
