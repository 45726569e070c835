/* A library for LD_PRELOAD under which one allocation or one system call of a command fails, or
 * SIGTERM comes before that call. It counts from the first line of main(), so that the loader is
 * left alone.
 *
 *   PSPLIT_FAULT_FILE=FILE  where what happened is found, a `record`
 *   PSPLIT_FAULT=alloc|call|signal|none  what is to fail
 *   PSPLIT_FAULT_AT=N       the N-th of them, from 1; 0: none
 *   PSPLIT_FAULT_FOR=M      so many, one after the other; 1 without it
 *
 * System calls are failed by the kernel: a filter asks a thread of this library about each, so that
 * those which the C library makes inside are counted too. What cannot fail, or what the C library
 * answers by abort() because no kernel fails it, is passed. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Read by tests/support/faults.py. */
typedef struct record {
  atomic_ullong n_allocations, n_calls;
  atomic_llong failed_call;      /* its number; -1: none failed */
  atomic_ullong failed_argument; /* its first */
  atomic_ullong hit;             /* whether anything failed */
  atomic_llong unavailable;      /* why calls cannot be made to fail; 0: they can */
} record;

enum { NONE, ALLOCATIONS, CALLS, SIGNALS };

static record nowhere, *found = &nowhere;
static int what;
static unsigned long long first, last; /* those that fail; 0: none */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_bool counting;

static bool is_turn(atomic_ullong *count) {
  const unsigned long long n = atomic_fetch_add(count, 1) + 1;
  return first && n >= first && n <= last;
}

static bool allocation_fails(void) {
  if (!atomic_load_explicit(&counting, memory_order_relaxed) || what >= CALLS) return false;
  if (!is_turn(&found->n_allocations) || what != ALLOCATIONS) return false;
  found->hit = 1;
  errno = ENOMEM;
  return true;
}

void *malloc(size_t bytes) { return allocation_fails() ? NULL : __libc_malloc(bytes); }

void *calloc(size_t n, size_t bytes) { return allocation_fails() ? NULL : __libc_calloc(n, bytes); }

void *realloc(void *memory, size_t bytes) {
  return allocation_fails() ? NULL : __libc_realloc(memory, bytes);
}

void *reallocarray(void *memory, size_t n, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(n, bytes, &total)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(memory, total);
}

void *memalign(size_t alignment, size_t bytes) {
  return allocation_fails() ? NULL : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void **out, size_t alignment, size_t bytes) {
  void *memory = memalign(alignment, bytes);
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}

/* --- the clock --- */

/* Each of the first readings is up to 97 ms later than the last: all in all less than a second. */
int clock_gettime(clockid_t clock, struct timespec *out) {
  static int (*real_clock)(clockid_t, struct timespec *);
  static atomic_uint n_readings;
  enum { MOST = 10, NS_PER_S = 1000000000 };
  if (!real_clock) *(void **)&real_clock = dlsym(RTLD_NEXT, "clock_gettime");
  const int code = real_clock(clock, out);
  unsigned n = atomic_fetch_add(&n_readings, 1) + 1;
  if (n > MOST) n = MOST;
  out->tv_nsec += (long)n * (getpid() % 97) * 1000000;
  out->tv_sec += out->tv_nsec / NS_PER_S;
  out->tv_nsec %= NS_PER_S;
  return code;
}

/* --- system calls --- */

/* What is never failed: it cannot, or the C library holds that against the kernel. */
static const int PASSED[] = {SYS_exit,
                             SYS_exit_group,
                             SYS_rt_sigreturn,
                             SYS_restart_syscall,
                             SYS_futex,
                             SYS_rt_sigaction,
                             SYS_rt_sigprocmask,
                             SYS_sigaltstack,
                             SYS_set_robust_list,
                             SYS_rseq,
                             SYS_getpid,
                             SYS_gettid,
                             SYS_getuid,
                             SYS_geteuid,
                             SYS_getgid,
                             SYS_brk,
                             SYS_getegid,
                             SYS_clock_gettime,
                             SYS_gettimeofday,
                             SYS_time,
                             SYS_sched_yield,
                             SYS_munmap,
                             SYS_madvise,
                             SYS_nanosleep,
                             SYS_clock_nanosleep,
                             SYS_execve,
                             SYS_arch_prctl,
                             SYS_set_tid_address,
                             SYS_tgkill,
                             SYS_alarm,
                             SYS_umask,
                             SYS_sched_getaffinity,
                             SYS_rt_sigtimedwait,
                             SYS_wait4};

static int reason_for(int number) {
  switch (number) {
    case SYS_mmap:
    case SYS_mremap:
    case SYS_mprotect: return ENOMEM;
    case SYS_clone:
    case SYS_clone3:
    case SYS_fork:
    case SYS_vfork: return EAGAIN;
    case SYS_open:
    case SYS_openat:
    case SYS_pipe2:
    case SYS_socket:
    case SYS_dup: return EMFILE;
    case SYS_copy_file_range:
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_fallocate:
    case SYS_mkdir: return ENOSPC;
    default: return EIO;
  }
}

static int asked_by; /* the filter's descriptor */

static int listen_to_calls(void) {
  struct sock_filter program[4 + 2 * sizeof PASSED / sizeof *PASSED];
  unsigned short n = 0;
  program[n++] =
    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < sizeof PASSED / sizeof *PASSED; i++) {
    program[n++] =
      (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)PASSED[i], 0, 1);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
  const struct sock_fprog filter = {.len = n, .filter = program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                      &filter);
}

/* Children that were not told to fail are passed. */
static bool is_own(uint32_t thread) { return syscall(SYS_tgkill, getpid(), (pid_t)thread, 0) == 0; }

static atomic_int ready;

static void *answer_calls(void *unused) {
  (void)unused;
  while (!ready) sched_yield();
  for (;;) {
    struct seccomp_notif asked = {0};
    struct seccomp_notif_resp answer = {0};
    if (ioctl(asked_by, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) continue;
    answer.id = asked.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    if (is_own(asked.pid) && is_turn(&found->n_calls)) {
      if (what == SIGNALS) {
        kill(getpid(), SIGTERM);
      } else {
        answer.flags = 0;
        answer.error = -reason_for(asked.data.nr);
      }
      found->failed_call = asked.data.nr;
      found->failed_argument = asked.data.args[0];
      found->hit = 1;
    }
    ioctl(asked_by, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  return NULL;
}

/* The thread is begun before the filter stands, which it is then free of. */
static void begin_calls(void) {
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const bool begun = pthread_create(&thread, NULL, answer_calls, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  asked_by = begun ? listen_to_calls() : -1;
  if (asked_by < 0) found->unavailable = errno ? errno : -1;
  if (asked_by >= 0) ready = 1;
}

/* --- from main() on --- */

static int (*real_main)(int, char **, char **);

static int watched_main(int argc, char **argv, char **environment) {
  const char *file = getenv("PSPLIT_FAULT_FILE"), *which = getenv("PSPLIT_FAULT");
  const char *at = getenv("PSPLIT_FAULT_AT"), *many = getenv("PSPLIT_FAULT_FOR");
  const int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (fd >= 0) {
    if (ftruncate(fd, sizeof(record)) == 0) {
      void *mapped = mmap(NULL, sizeof(record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (mapped != MAP_FAILED) found = mapped;
    }
    close(fd);
  }
  found->failed_call = -1;
  first = at ? strtoull(at, NULL, 10) : 0;
  last = first + (many ? strtoull(many, NULL, 10) : 1) - 1;
  what = which && strcmp(which, "alloc") == 0    ? ALLOCATIONS
         : which && strcmp(which, "call") == 0   ? CALLS
         : which && strcmp(which, "signal") == 0 ? SIGNALS
                                                 : NONE;
  unsetenv("LD_PRELOAD"); /* not for children */
  if (what >= CALLS) begin_calls();
  counting = true;
  return real_main(argc, argv, environment);
}

int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void), void *stack);
int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *stack) {
  int (*next)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
              void (*)(void), void *) = NULL;
  *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = start;
  return next(watched_main, argc, argv, init, fini, rtld_fini, stack);
}
