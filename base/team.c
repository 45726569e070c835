#include "team.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "team_share.h"

/* LLVM's OpenMP runtime keeps a record of each process in shared memory, named by process id. One
 * that a dead process left is replaced, but not if that was killed while making it: without a
 * length it is read all the same, and SIGBUS ends a later process with that id when it first needs
 * the runtime; without the three parts of a text it passes for a second OpenMP library in the
 * process ("Error #15"). So an unfinished record of this process's id is taken away, as the library
 * is loaded: compilers call the runtime from the first line of a function with a parallel region.
 * Only a regular file of this user's is: what else has that name is not ours to remove, or to wait
 * for; the runtime would end the process over it, and is left alone: one thread does all. The name
 * is that of __kmp_reg_status_name() in libomp's kmp_runtime.cpp. */
static bool is_barred;

__attribute__((constructor)) static void remove_unfinished_record(void) {
  enum { MOST = 256 };
  char name[64], text[MOST + 1];
  struct stat status;
  snprintf(name, sizeof name, "/__KMP_REGISTERED_LIB_%ld_%ld", (long)getpid(), (long)getuid());
  const int fd = shm_open(name, O_RDONLY | O_NONBLOCK, 0);
  if (fd < 0) {
    is_barred = errno != ENOENT;
    return;
  }
  const bool is_ours =
    fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
  const ssize_t n = is_ours ? read(fd, text, MOST) : -1;
  is_barred = n < 0;
  text[n > 0 ? n : 0] = '\0';
  const char *dash = strchr(text, '-');
  if (n >= 0 && (!dash || !strchr(dash + 1, '-'))) shm_unlink(name);
  close(fd);
}

#ifdef PSPLIT_I_ONE_THREAD /* tests/analyse.sh: MemorySanitizer does not see what libomp writes */

int psplit_i_team_size(uint32_t asked) { return asked && !is_barred ? (int)asked : 1; }

void psplit_i_team_for(int n_threads, size_t begin, size_t end,
                       void (*work)(void *with, size_t i, int thread), void *with) {
  (void)n_threads;
  for (size_t i = begin; i < end; i++) work(with, i, 0);
}

#else

/* If OMP_NUM_THREADS is not a list of whole numbers, the runtime fails an assertion or reads
 * uninitialised memory: a number of threads below 0, or of millions. */
static bool is_readable(const char *wanted) {
  enum { MOST_DIGITS = 5 };
  for (bool is_first = true; is_first || *wanted == ','; is_first = false) {
    wanted += !is_first;
    wanted += strspn(wanted, " \t");
    const size_t n_digits = strspn(wanted, "0123456789");
    if (n_digits == 0 || n_digits > MOST_DIGITS) return false;
    wanted += n_digits;
    wanted += strspn(wanted, " \t");
  }
  return !*wanted;
}

int psplit_i_team_size(uint32_t asked) {
  enum { MOST = 1024 }; /* as of what is asked for */
  const char *wanted = getenv("OMP_NUM_THREADS");
  if (is_barred || (wanted && !is_readable(wanted))) return 1;
  if (asked) return (int)asked;
  if (wanted && strcmp(wanted, "1") == 0)
    return 1; /* without asking the runtime, which begins then */
  const int n = omp_get_max_threads();
  return n < MOST ? n : MOST;
}

void psplit_i_team_for(int n_threads, size_t begin, size_t end,
                       void (*work)(void *with, size_t i, int thread), void *with) {
  if (end <= begin) return;
  if (n_threads > 1 && end - begin > 1 && !is_barred)
    psplit_i_team_share(n_threads, begin, end, work, with);
  else
    for (size_t i = begin; i < end; i++) work(with, i, 0);
}

#endif
