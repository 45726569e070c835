#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "failures.h"
#include "frames.h"
#include "queue.h"

extern char **environ;

enum { MOST_LOSSES = 2 }; /* of the process, with one micro-batch */

/* Which file it is, as far as can be told without reading it; all 0: none. */
typedef struct identity {
  uint64_t device, inode, bytes;
  int64_t changed_ns;
} identity;

struct psplit_i_process {
  psplit_i_process_options options;
  psplit_i_text task;
  char **argv;
  char number_text[16];
  char *path, *data_path; /* the stage's file, and its weights where they are beside it */
  identity file, data;    /* as they were opened */
  /* Of the rest, who runs has what it reads of `fd` to itself; all else is guarded. */
  pthread_mutex_t mutex;
  enum { DOWN, OPENING, OPEN } state;
  pid_t pid;
  int fd, control_fd;
  bool in_use;      /* a run or the first opening is under way, which sees to the process itself */
  bool ended;       /* for good */
  bool was_open;    /* it can be opened */
  bool killed_late; /* it was at work for too long */
  uint64_t number;  /* of the run */
  uint32_t n_in_a_row; /* losses and failed openings since it last answered */
  int64_t since_ns;    /* when it got what it is at work on; 0: nothing */
  int64_t again_ns;    /* not started again before */
};

/* How long to wait before it is started for the n-th time in a row without an answer. */
static int64_t back_off_ns(uint32_t n) {
  static const int64_t FIRST_NS = 100000000, MOST_NS = 5000000000;
  if (n < MOST_LOSSES) return 0;
  const uint32_t doublings = n - MOST_LOSSES;
  return doublings > 6 || FIRST_NS << doublings > MOST_NS ? MOST_NS : FIRST_NS << doublings;
}

static const char *library_of(const psplit_i_ort *ort) {
  struct link_map *map = NULL;
  return dlinfo(ort->library, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
}

static identity identify(const char *path) {
  struct stat found;
  if (stat(path, &found) != 0) return (identity){0};
  return (identity){(uint64_t)found.st_dev, (uint64_t)found.st_ino, (uint64_t)found.st_size,
                    (int64_t)found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec};
}

static bool is_same(const char *path, const identity *known) {
  const identity now = identify(path);
  return memcmp(&now, known, sizeof now) == 0;
}

/* Another split may have been put in the place of the one that is being run. */
static psplit_code check_files(const psplit_i_process *p, psplit_diag *diag) {
  if (!p->was_open || (is_same(p->path, &p->file) && is_same(p->data_path, &p->data)))
    return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_IO,
                       "%s has changed since the stage was opened, and its process has ended: the "
                       "split has to be loaded again",
                       p->path);
}

psplit_code psplit_i_process_create(const psplit_i_process_options *options, psplit_diag *diag,
                                    psplit_i_process **out) {
  size_t n = 0;
  while (options->command[n]) n++;
  psplit_i_process *p = calloc(1, sizeof *p);
  if (!p) return psplit_i_nomem(diag);
  pthread_mutex_init(&p->mutex, NULL);
  p->options = *options;
  p->fd = p->control_fd = -1;
  p->argv = calloc(n + 2, sizeof *p->argv);
  p->path = strdup(options->path);
  if (asprintf(&p->data_path, "%s.data", options->path) < 0) p->data_path = NULL;
  psplit_code code = p->argv && p->path && p->data_path ? PSPLIT_OK : psplit_i_nomem(diag);
  if (code == PSPLIT_OK)
    code = psplit_i_process_task_write(library_of(options->ort), options, diag, &p->task);
  if (code != PSPLIT_OK) {
    psplit_i_process_destroy(p);
    return code;
  }
  /* posix_spawn takes them as it would not change them. */
  for (size_t i = 0; i < n; i++) p->argv[i] = (char *)(uintptr_t)options->command[i];
  snprintf(p->number_text, sizeof p->number_text, "%" PRIu32, options->stage);
  p->argv[n] = p->number_text;
  p->file = identify(p->path);
  p->data = identify(p->data_path);
  *out = p;
  return PSPLIT_OK;
}

/* With the mutex held: our ends of the sockets; their numbers may be others' from here on. */
static void close_ends(psplit_i_process *p) {
  if (p->fd >= 0) close(p->fd);
  if (p->control_fd >= 0) close(p->control_fd);
  p->fd = p->control_fd = -1;
}

/* With the mutex held: the process is no more. What it ended with, in words, to `why`. */
static void reap(psplit_i_process *p, char *why, size_t n_why) {
  int status = 0;
  pid_t got;
  kill(p->pid, SIGKILL);
  do got = waitpid(p->pid, &status, 0);
  while (got < 0 && errno == EINTR);
  if (p->killed_late)
    snprintf(why, n_why, "it was killed: it was at work for too long");
  else if (got == p->pid && WIFSIGNALED(status))
    snprintf(why, n_why, "signal %d", WTERMSIG(status));
  else if (got == p->pid && WIFEXITED(status))
    snprintf(why, n_why, "exit status %d", WEXITSTATUS(status));
  else
    snprintf(why, n_why, "no reason known");
  close_ends(p);
  p->pid = 0;
  p->state = DOWN;
  p->killed_late = false;
  p->since_ns = 0;
  p->again_ns = psplit_i_now_ns() + back_off_ns(++p->n_in_a_row);
  if (p->options.live) atomic_store(&p->options.live->pid, 0);
}

/* A pair of sockets; theirs stands where dup2 to the numbers that the process knows is safe. */
static bool make_pair(int *out_ours, int *out_theirs) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
  const int theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, PSPLIT_I_PROCESS_CONTROL_FD + 1);
  close(pair[1]);
  if (theirs < 0) {
    close(pair[0]);
    return false;
  }
  *out_ours = pair[0];
  *out_theirs = theirs;
  return true;
}

static int spawn(psplit_i_process *p, int fd, int control_fd) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int bad = posix_spawn_file_actions_adddup2(&actions, fd, PSPLIT_I_PROCESS_FD);
  if (!bad)
    bad = posix_spawn_file_actions_adddup2(&actions, control_fd, PSPLIT_I_PROCESS_CONTROL_FD);
  if (!bad) bad = posix_spawn(&p->pid, p->argv[0], &actions, &attributes, p->argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return bad;
}

/* With the mutex held: starts it, and sends it what to open. */
static psplit_code start(psplit_i_process *p, psplit_diag *diag) {
  int fd = -1, control_fd = -1;
  psplit_diag ignored = {0};
  const psplit_code changed = check_files(p, diag);
  if (changed != PSPLIT_OK) return changed;
  if (!make_pair(&p->fd, &fd)) return psplit_i_fail(diag, PSPLIT_IO, "cannot create a socket");
  if (!make_pair(&p->control_fd, &control_fd)) {
    close(fd);
    close_ends(p);
    return psplit_i_fail(diag, PSPLIT_IO, "cannot create a socket");
  }
  const int bad = spawn(p, fd, control_fd);
  close(fd);
  close(control_fd);
  if (bad) {
    p->pid = 0;
    close_ends(p);
    p->again_ns = psplit_i_now_ns() + back_off_ns(++p->n_in_a_row);
    return psplit_i_fail(diag, PSPLIT_IO, "%s cannot be started: %s", p->argv[0], strerror(bad));
  }
  p->state = OPENING;
  p->since_ns = psplit_i_now_ns();
  if (p->options.live) {
    atomic_store(&p->options.live->pid, (int)p->pid);
    atomic_fetch_add(&p->options.live->n_starts, 1);
  }
  /* Where it has ended already, who waits for its answer notices. */
  const psplit_i_frame open = {.kind = PSPLIT_I_FRAME_OPEN, .n_text = p->task.n};
  if (psplit_i_frame_send(p->fd, &open, p->task.bytes, NULL, &ignored) != PSPLIT_OK)
    shutdown(p->fd, SHUT_RDWR);
  return PSPLIT_OK;
}

/* With the mutex held: nothing is asked of it, so it has nothing to say but that it has ended. */
static bool is_lost(const psplit_i_process *p) {
  struct pollfd look = {.fd = p->fd, .events = POLLIN};
  if (p->state == OPENING) look.events = 0;
  return poll(&look, 1, 0) > 0;
}

/* The answer that is due: a failure of which it tells is in *diag, and *out_told. */
static psplit_code receive(psplit_i_process *p, psplit_i_frame_kind wanted, uint64_t number,
                           uint32_t n_tensors, psplit_i_tensor **tensors, psplit_diag *diag,
                           bool *out_told) {
  psplit_i_frame head;
  psplit_diag failure = {0};
  char *text = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_frame_receive(p->fd, wanted, number, n_tensors, &failure, &head));
  PSPLIT_TRY(psplit_i_frame_text(p->fd, &head, &failure, &text));
  *out_told = head.kind == PSPLIT_I_FRAME_FAILURE;
  if (*out_told)
    code = psplit_i_frame_failure(&head, text, &failure);
  else
    code = psplit_i_frame_tensors(p->fd, &head, p->options.ort, &failure, tensors);
out:
  free(text);
  if (code != PSPLIT_OK) *diag = failure;
  return code;
}

static void answered(psplit_i_process *p) {
  pthread_mutex_lock(&p->mutex);
  p->since_ns = 0;
  p->n_in_a_row = 0;
  pthread_mutex_unlock(&p->mutex);
}

/* The process is lost, or talks nonsense: `diag` says which. */
static void lose(psplit_i_process *p, const psplit_diag *diag, char *why, size_t n_why) {
  pthread_mutex_lock(&p->mutex);
  reap(p, why, n_why);
  if (diag->code != PSPLIT_IO) snprintf(why, n_why, "%.200s", diag->message);
  pthread_mutex_unlock(&p->mutex);
}

/* After psplit_i_process_end. Errors: CANCELLED. */
static psplit_code check_over(psplit_i_process *p, psplit_diag *diag) {
  pthread_mutex_lock(&p->mutex);
  const bool ended = p->ended;
  pthread_mutex_unlock(&p->mutex);
  return ended ? psplit_i_fail(diag, PSPLIT_CANCELLED, "interrupted") : PSPLIT_OK;
}

/* Waits until it may be started again. */
static psplit_code wait_turn(psplit_i_process *p, int64_t deadline_ns, psplit_diag *diag) {
  static const long LOOK_NS = 10000000;
  for (;;) {
    psplit_code code = check_over(p, diag);
    if (code == PSPLIT_OK) code = psplit_i_deadline_check(deadline_ns, diag);
    if (code != PSPLIT_OK) return code;
    pthread_mutex_lock(&p->mutex);
    const bool now = p->state != DOWN || psplit_i_now_ns() >= p->again_ns;
    pthread_mutex_unlock(&p->mutex);
    if (now) return PSPLIT_OK;
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
  }
}

/* Makes it open. *out_lost: it ended meanwhile, `why` says how. */
static psplit_code make_open(psplit_i_process *p, int64_t deadline_ns, psplit_diag *diag, char *why,
                             size_t n_why, bool *out_lost) {
  psplit_diag failure = {0};
  psplit_code code;
  bool told = false;
  *out_lost = false;
  PSPLIT_TRY(wait_turn(p, deadline_ns, diag));
  pthread_mutex_lock(&p->mutex);
  /* One that ended while it had nothing to do is nobody's fault. */
  if (p->state == OPEN && is_lost(p)) reap(p, why, n_why);
  code = p->state == DOWN && !p->ended ? start(p, diag) : PSPLIT_OK;
  const bool opening = p->state == OPENING;
  pthread_mutex_unlock(&p->mutex);
  if (code != PSPLIT_OK || !opening) return code;
  code = receive(p, PSPLIT_I_FRAME_OPENED, 0, 0, NULL, &failure, &told);
  if (code == PSPLIT_OK) {
    pthread_mutex_lock(&p->mutex);
    p->state = OPEN;
    p->was_open = true;
    p->since_ns = 0;
    pthread_mutex_unlock(&p->mutex);
    return PSPLIT_OK;
  }
  lose(p, &failure, why, n_why);
  if (told) {
    *diag = failure;
    return code;
  }
  *out_lost = true;
  code = PSPLIT_OK;
out:
  return code;
}

static psplit_code lost_for_good(psplit_i_process *p, const char *what, const char *why,
                                 psplit_diag *diag) {
  const psplit_code code = check_over(p, diag);
  if (code != PSPLIT_OK) return code;
  return psplit_i_fail(diag, PSPLIT_PLUGIN, "its process ended %s: %s", what, why);
}

static void set_in_use(psplit_i_process *p, bool in_use) {
  pthread_mutex_lock(&p->mutex);
  p->in_use = in_use;
  pthread_mutex_unlock(&p->mutex);
}

psplit_code psplit_i_process_open(psplit_i_process *p, psplit_diag *diag) {
  char why[256] = "";
  bool lost;
  set_in_use(p, true);
  psplit_code code = make_open(p, 0, diag, why, sizeof why, &lost);
  if (code == PSPLIT_OK && lost) code = lost_for_good(p, "while it opened the stage", why, diag);
  set_in_use(p, false);
  return code;
}

/* Asks it once. *out_lost as for `make_open`. */
static psplit_code ask(psplit_i_process *p, psplit_i_tensor *const *inputs,
                       psplit_i_tensor **outputs, psplit_diag *diag, char *why, size_t n_why,
                       bool *out_lost) {
  psplit_diag failure = {0};
  bool told = false;
  pthread_mutex_lock(&p->mutex);
  const psplit_i_frame run = {
    .kind = PSPLIT_I_FRAME_RUN, .number = ++p->number, .n_tensors = p->options.n_inputs};
  p->since_ns = psplit_i_now_ns();
  pthread_mutex_unlock(&p->mutex);
  psplit_code code = psplit_i_frame_send(p->fd, &run, NULL, inputs, &failure);
  if (code == PSPLIT_OK)
    code = receive(p, PSPLIT_I_FRAME_OUTPUTS, run.number, p->options.n_outputs, outputs, &failure,
                   &told);
  if (code == PSPLIT_OK || told) answered(p);
  if (told) *diag = failure;
  if (code == PSPLIT_OK || told) return code;
  *out_lost = true;
  lose(p, &failure, why, n_why);
  return PSPLIT_OK;
}

psplit_code psplit_i_process_run(psplit_i_process *p, psplit_i_tensor *const *inputs,
                                 psplit_i_tensor **outputs, int64_t deadline_ns,
                                 psplit_diag *diag) {
  char why[256] = "";
  psplit_code code = PSPLIT_OK;
  uint32_t n_lost = 0;
  set_in_use(p, true);
  for (bool lost = true; code == PSPLIT_OK && lost && n_lost < MOST_LOSSES; n_lost += lost) {
    code = make_open(p, deadline_ns, diag, why, sizeof why, &lost);
    if (code == PSPLIT_OK && !lost) code = ask(p, inputs, outputs, diag, why, sizeof why, &lost);
  }
  if (code == PSPLIT_OK && n_lost == MOST_LOSSES)
    code = lost_for_good(p, "twice while it computed this", why, diag);
  set_in_use(p, false);
  return code;
}

void psplit_i_process_stop_run(psplit_i_process *p) {
  pthread_mutex_lock(&p->mutex);
  /* Where there is no room for it, it will be told later, or it has ended. */
  const ssize_t n =
    p->control_fd < 0 || !p->since_ns
      ? 0
      : send(p->control_fd, &p->number, sizeof p->number, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)n;
  pthread_mutex_unlock(&p->mutex);
}

void psplit_i_process_end(psplit_i_process *p) {
  pthread_mutex_lock(&p->mutex);
  p->ended = true;
  if (p->pid) kill(p->pid, SIGKILL);
  pthread_mutex_unlock(&p->mutex);
}

void psplit_i_process_look(psplit_i_process *p, double most_s) {
  char why[256];
  psplit_diag ignored = {0};
  psplit_code unused = PSPLIT_OK;
  pthread_mutex_lock(&p->mutex);
  const int64_t now_ns = psplit_i_now_ns();
  if (p->pid && p->since_ns && most_s > 0 && !p->killed_late &&
      1e-9 * (double)(now_ns - p->since_ns) > most_s) {
    p->killed_late = true;
    kill(p->pid, SIGKILL);
  }
  if (!p->in_use && !p->ended) {
    if (p->state != DOWN && is_lost(p)) reap(p, why, sizeof why);
    if (p->state == DOWN && p->was_open && now_ns >= p->again_ns) unused = start(p, &ignored);
  }
  (void)unused;
  pthread_mutex_unlock(&p->mutex);
}

void psplit_i_process_destroy(psplit_i_process *p) {
  char why[256];
  if (!p) return;
  if (p->pid) reap(p, why, sizeof why);
  pthread_mutex_destroy(&p->mutex);
  psplit_i_text_fini(&p->task);
  free(p->argv);
  free(p->path);
  free(p->data_path);
  free(p);
}
