#include "logging.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "advice.h"
#include "exit_status.h"
#include "same_file.h"
#include "texts.h"

static const double PATIENCE_S = 0.5;
enum { TICK_NS = 100000000, PART_BYTES = 64, DOING_BYTES = 256 };
static const char LOG_HEAD[] = "# log of onnx-pipeline";

/* A part of the work, with all times that it ran. */
typedef struct part {
  char name[PART_BYTES];
  double seconds;
} part;

static struct {
  pthread_mutex_t lock;
  bool quiet, verbose, ended;
  bool begun, terminal; /* what follows is set once the first part begins */
  double start_s, since_s;
  char doing[DOING_BYTES];
  uint32_t series_at, series_all;
  part *parts; /* [n_parts] in the order in which they first began */
  size_t n_parts, at;
  psplit_activity *activity;
  cli_counter count;
  void *count_user;
  const char *unit;
  bool ticks, stops, shown;
  double hidden_until_s;
  pthread_t ticker;
  pthread_cond_t wake;
  FILE *log;
  const char *log_name; /* that of argv */
  bool log_is_new;
  char *command;
} logging = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_int on_terminal, was_heard; /* a handler writes, threads look */

void cli_logging_command(int argc, char **argv) {
  size_t n = 1;
  bool wanted = false;
  for (int i = 0; i < argc; i++) wanted |= strncmp(argv[i], "--lo", 4) == 0;
  if (logging.command || !wanted) return;
  for (int i = 0; i < argc; i++) n += strlen(argv[i]) + 1;
  if (!(logging.command = calloc(n, 1))) return; /* the log says less then */
  char *at = logging.command;
  for (int i = 0; i < argc; i++) {
    if (i) *at++ = ' ';
    at = stpcpy(at, argv[i]);
  }
}

void cli_logging_quiet(void) { logging.quiet = true; }

void cli_logging_verbose(void) { logging.verbose = true; }

static double start_of_command(void) {
  if (logging.start_s == 0) logging.start_s = cli_now_s();
  return logging.start_s;
}

/* Empty, or a log of ours; what is not a regular file holds nothing. */
static bool may_replace(int fd) {
  struct stat status;
  char head[sizeof LOG_HEAD - 1];
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return true;
  return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
         memcmp(head, LOG_HEAD, sizeof head) == 0;
}

bool cli_logging_file(const char *program, const char *file) {
  const char *rank = cli_rank();
  const bool follows = rank && strcmp(rank, "0") != 0;
  char path[4096];
  const int n =
    snprintf(path, sizeof path, "%s%s%s", file, follows ? "." : "", follows ? rank : "");
  if (n < 0 || (size_t)n >= sizeof path) {
    fprintf(stderr, "error: --log: the name is too long\n");
    return false;
  }
  logging.log_is_new = !follows && access(path, F_OK) != 0;
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
  int reason = errno;
  if (fd < 0 && (errno == EINVAL || errno == ENXIO || errno == EACCES)) {
    fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* that cannot be read */
    if (errno != ENOENT) reason = errno; /* else there is none, and the first call told why */
  }
  char safe[512];
  cli_printable(path, safe, sizeof safe);
  if (fd >= 0 && !may_replace(fd)) {
    fprintf(stderr, "error: --log %s: it is not a log, so it is not replaced; give another name\n",
            safe);
    close(fd);
    return false;
  }
  if (fd >= 0 && ftruncate(fd, 0) != 0 && errno != EINVAL) {
    reason = errno;
    close(fd);
    fd = -1;
  }
  if (logging.log) fclose(logging.log);
  if (!(logging.log = fd < 0 ? NULL : fdopen(fd, "w"))) {
    fprintf(stderr, "error: --log %s: cannot be written: %s\n", safe, strerror(reason));
    if (fd >= 0) close(fd);
    return false;
  }
  logging.log_name = file;
  setvbuf(logging.log, NULL, _IOLBF, 0);
  fprintf(logging.log, "%s: %s %s\n", LOG_HEAD, program, psplit_version());
  start_of_command();
  return true;
}

bool cli_logging_apart(int argc, char **argv) {
  struct stat log;
  if (!logging.log || fstat(fileno(logging.log), &log) != 0) return true;
  for (int i = 1; i < argc; i++) {
    const char *equals = strchr(argv[i], '=');
    const char *const names[] = {argv[i], equals ? equals + 1 : argv[i]};
    for (int k = 0; k < 2; k++) {
      if (names[k] == logging.log_name || !cli_leads_to(names[k], &log)) continue;
      char safe[512];
      if (logging.log_is_new) unlink(logging.log_name);
      fclose(logging.log);
      logging.log = NULL;
      cli_printable(logging.log_name, safe, sizeof safe);
      fprintf(stderr, "error: --log %s: another file of this command has that name; give another\n",
              safe);
      return false;
    }
  }
  return true;
}

/* With the lock held, as all that is static below. */
static void log_line(const char *kind, const char *line) {
  if (!logging.log) return;
  fprintf(logging.log, "%10.3f s  %s%s%s\n", cli_now_s() - start_of_command(), kind,
          *kind ? ": " : "", line);
}

static void hide(void) {
  if (logging.shown) fputs("\r\033[K", stderr);
  logging.shown = false;
}

/* "1.20 GiB of 3.00 GiB, 2 s left": what is known of the part; an empty text if nothing is. */
static void how_far(double took_s, char *out, size_t bytes) {
  uint64_t done = 0, all = 0;
  char a[CLI_TEXT], b[CLI_TEXT];
  psplit_activity_unit unit = PSPLIT_ACTIVITY_NONE;
  *out = '\0';
  if (logging.count)
    done = logging.count(logging.count_user, &all);
  else if (logging.activity)
    unit = psplit_activity_get(logging.activity, &done, &all);
  if (!logging.count && unit == PSPLIT_ACTIVITY_NONE) return;
  if (all && done > all) done = all; /* the whole was an estimate */
  size_t n = 0;
  if (unit == PSPLIT_ACTIVITY_WORK && all && done == all) { /* what comes then is not counted */
    snprintf(out, bytes, "its limit is used up, %s", cli_time((int64_t)(took_s * 1e9), a));
    return;
  }
  if (unit == PSPLIT_ACTIVITY_WORK && all)
    n = (size_t)snprintf(out, bytes, "%.0f %% of the limit", 100 * (double)done / (double)all);
  else if (unit == PSPLIT_ACTIVITY_BYTES)
    n =
      (size_t)snprintf(out, bytes, all ? "%s of %s" : "%s", cli_bytes(done, a), cli_bytes(all, b));
  else if (logging.count && all)
    n = (size_t)snprintf(out, bytes, "%" PRIu64 " of %" PRIu64 " %s", done, all, logging.unit);
  else if (logging.count)
    n = (size_t)snprintf(out, bytes, "%" PRIu64 " %s", done, logging.unit);
  if (took_s < PATIENCE_S || n >= bytes) return;
  if (!done) /* such as while sessions open */
    snprintf(out + n, bytes - n, ", %s so far", cli_time((int64_t)(took_s * 1e9), a));
  if (!all || !done) return;
  const double left_s = took_s * (double)(all - done) / (double)done;
  snprintf(out + n, bytes - n, unit == PSPLIT_ACTIVITY_WORK ? ", at most %s left" : ", %s left",
           cli_time((int64_t)((left_s < 9e9 ? left_s : 9e9) * 1e9), a));
}

static void draw(void) {
  struct winsize window = {0};
  char far[128], took[CLI_TEXT], series[32] = "", line[DOING_BYTES + 192];
  const double now_s = cli_now_s(), took_s = now_s - logging.since_s;
  if (!*logging.doing || was_heard || now_s < logging.hidden_until_s) return;
  if (now_s - logging.start_s < PATIENCE_S) return;
  how_far(took_s, far, sizeof far);
  if (logging.series_all > 1)
    snprintf(series, sizeof series, "%" PRIu32 " of %" PRIu32 ", ", logging.series_at,
             logging.series_all);
  int n = snprintf(line, sizeof line, "%s%s: %s", series, logging.doing,
                   *far ? far : cli_time((int64_t)(took_s * 1e9), took));
  const int width =
    ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 ? window.ws_col - 1 : 79;
  if (n > width) n = width;
  while (n > 0 && ((unsigned char)line[n] & 0xc0) == 0x80) n--; /* not within a character */
  fprintf(stderr, "\r\033[K%.*s", n, line);
  fflush(stderr);
  logging.shown = true;
}

static void *tick(void *nothing) {
  (void)nothing;
  pthread_mutex_lock(&logging.lock);
  while (!logging.stops) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TICK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&logging.wake, &logging.lock, &until);
    if (!logging.stops) draw();
  }
  pthread_mutex_unlock(&logging.lock);
  return NULL;
}

/* Without a thread there is no line: no work fails for that. Signals are for the others. */
static void start_ticking(void) {
  pthread_condattr_t clock;
  sigset_t all, before;
  if (pthread_condattr_init(&clock) != 0) return;
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  const bool can_wait = pthread_cond_init(&logging.wake, &clock) == 0;
  pthread_condattr_destroy(&clock);
  if (!can_wait) return;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  logging.ticks = pthread_create(&logging.ticker, NULL, tick, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!logging.ticks) pthread_cond_destroy(&logging.wake);
}

static void begin(void) {
  const char *kind = getenv("TERM");
  logging.begun = true;
  logging.since_s = start_of_command();
  logging.terminal =
    !logging.quiet && isatty(STDERR_FILENO) == 1 && !(kind && strcmp(kind, "dumb") == 0);
  on_terminal = logging.terminal;
  if (logging.log && logging.command) {
    char *line = logging.command;
    psplit_make_printable(line);
    log_line("", line);
  }
  if (!logging.terminal) return;
  psplit_diag ignored = {0};
  if (psplit_activity_create(&ignored, &logging.activity) != PSPLIT_OK) logging.activity = NULL;
  start_ticking();
}

/* The row of a part: "writing stage 2 of 4" is one of "writing stages", "running stages, round 1
 * of at most 3" of "running stages". */
static void find_part(const char *doing) {
  char name[PART_BYTES];
  const size_t n = strcspn(doing, "0123456789");
  const char *round = strstr(doing, ", round ");
  const bool numbered = doing[n] && n && doing[n - 1] == ' ' && strncmp(doing, "writing", 7) == 0;
  const size_t most = numbered ? n - 1 : round ? (size_t)(round - doing) : sizeof name;
  snprintf(name, sizeof name, "%.*s%s", (int)most, doing, numbered ? "s" : "");
  for (logging.at = 0; logging.at < logging.n_parts; logging.at++)
    if (strcmp(logging.parts[logging.at].name, name) == 0) return;
  part *grown = cli_grow(logging.parts, logging.n_parts, sizeof *grown);
  if (!grown) return; /* its time is told of nothing */
  logging.parts = grown;
  grown[logging.n_parts] = (part){.seconds = 0};
  memcpy(grown[logging.n_parts++].name, name, sizeof name);
}

static void end_part(double now_s) {
  if (*logging.doing && logging.at < logging.n_parts)
    logging.parts[logging.at].seconds += now_s - logging.since_s;
  *logging.doing = '\0';
  logging.count = NULL;
  if (logging.activity) psplit_activity_reset(logging.activity);
}

void cli_doing(const char *format, ...) {
  char text[DOING_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  pthread_mutex_lock(&logging.lock);
  if (!logging.ended) {
    if (!logging.begun) begin();
    const double now_s = cli_now_s();
    end_part(now_s);
    cli_printable(text, logging.doing, sizeof logging.doing);
    logging.since_s = now_s;
    if (logging.verbose || logging.log) find_part(logging.doing);
    log_line("", logging.doing);
  }
  pthread_mutex_unlock(&logging.lock);
}

void cli_series(uint32_t at, uint32_t all) {
  pthread_mutex_lock(&logging.lock);
  logging.series_at = at;
  logging.series_all = all;
  pthread_mutex_unlock(&logging.lock);
}

void cli_idle(void) {
  pthread_mutex_lock(&logging.lock);
  hide();
  end_part(cli_now_s());
  pthread_mutex_unlock(&logging.lock);
}

psplit_activity *cli_activity(void) {
  pthread_mutex_lock(&logging.lock);
  if (!logging.begun) begin();
  psplit_activity *const activity = logging.activity;
  pthread_mutex_unlock(&logging.lock);
  return activity;
}

void cli_count_by(cli_counter count, void *user, const char *unit) {
  pthread_mutex_lock(&logging.lock);
  logging.count = count;
  logging.count_user = user;
  logging.unit = unit;
  pthread_mutex_unlock(&logging.lock);
}

void cli_say_line(const char *kind, const char *line, bool loud) {
  char safe[CLI_ADVICE_BYTES];
  cli_printable(line, safe, sizeof safe);
  pthread_mutex_lock(&logging.lock);
  hide();
  if (loud) fprintf(stderr, "%s: %s\n", kind, safe);
  log_line(kind, safe);
  pthread_mutex_unlock(&logging.lock);
}

void cli_warn(const char *format, ...) {
  char text[CLI_ADVICE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  cli_say_line("warning", text, true);
}

void cli_make_room(void) {
  static const double WHILE_S = 0.2;
  pthread_mutex_lock(&logging.lock);
  hide();
  logging.hidden_until_s = cli_now_s() + WHILE_S;
  pthread_mutex_unlock(&logging.lock);
}

/* As compilers print the times of their passes. */
static void print_times(FILE *out, double all_s) {
  char text[CLI_TEXT];
  double rest_s = all_s;
  fprintf(out, "%10s  %7s  %s\n", "time", "share", "part");
  for (size_t i = 0; i <= logging.n_parts; i++) {
    const bool is_rest = i == logging.n_parts;
    const double seconds = is_rest ? rest_s : logging.parts[i].seconds;
    if (!is_rest) rest_s -= seconds;
    fprintf(out, "%10s  %5.1f %%  %s\n", cli_time((int64_t)(seconds * 1e9), text),
            all_s > 0 ? 100 * seconds / all_s : 0, is_rest ? "all else" : logging.parts[i].name);
  }
  fprintf(out, "%10s  100.0 %%  in all\n", cli_time((int64_t)(all_s * 1e9), text));
}

/* A log that lacks lines is a failure, of a command that has none of its own. */
static int end_log(int status, double now_s) {
  FILE *log = logging.log;
  char line[CLI_ADVICE_BYTES];
  if (logging.begun) print_times(log, now_s - logging.start_s);
  fprintf(log, "exit status %d\n", status);
  const bool lacks = ferror(log) != 0;
  const bool good = fclose(log) == 0 && !lacks;
  logging.log = NULL;
  if (good || status) return status;
  snprintf(line, sizeof line, "--log %s: cannot be written, and lacks what was done",
           logging.log_name);
  cli_say_line("error", line, true);
  return cli_exit_status(PSPLIT_IO);
}

int cli_logging_end(int status) {
  pthread_mutex_lock(&logging.lock);
  const bool ticks = logging.ticks, again = logging.ended;
  logging.ended = logging.stops = true;
  logging.ticks = false;
  if (ticks) pthread_cond_signal(&logging.wake);
  pthread_mutex_unlock(&logging.lock);
  if (ticks) pthread_join(logging.ticker, NULL);
  if (again) return status;
  hide();
  const double now_s = cli_now_s();
  end_part(now_s);
  if (logging.begun && logging.verbose && !logging.quiet) {
    fflush(stdout);
    print_times(stderr, now_s - logging.start_s);
  }
  if (logging.log) status = end_log(status, now_s);
  psplit_activity_destroy(logging.activity);
  free(logging.parts);
  free(logging.command);
  logging.activity = NULL;
  logging.parts = NULL;
  logging.command = NULL;
  return status;
}

void cli_logging_heard(void) {
  static const char LINE[] = "\r\033[Kinterrupted: ending; interrupt again to end at once\n";
  if (was_heard || !on_terminal) return;
  was_heard = 1;
  const ssize_t written = write(STDERR_FILENO, LINE, sizeof LINE - 1);
  (void)written;
}
