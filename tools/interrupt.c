#include "interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "talk.h"
#include "texts.h"

static volatile int cancelled; /* the number of the signal that did */

void cli_on_interrupt(void (*handler)(int)) {
  signal(SIGINT, handler);
  signal(SIGTERM, handler);
  if (signal(SIGHUP, handler) == SIG_IGN) signal(SIGHUP, SIG_IGN);
}

static bool is_again(void) {
  static const double ONE_S = 0.05; /* shells and terminals may both tell the same */
  static volatile double first_s;
  const double now_s = cli_now_s();
  if (first_s == 0) first_s = now_s;
  return now_s - first_s > ONE_S;
}

/* How long what is under way may take to end: a process with much memory takes the rest of the
 * second to be gone. */
static const struct itimerval PATIENCE = {.it_value = {.tv_usec = 800000}};
static volatile sig_atomic_t leave_status;

/* Only what a handler may call, and nothing that waits for who reads the line. */
_Noreturn static void leave(const char *line, size_t n) {
  struct pollfd event = {.fd = STDERR_FILENO, .events = POLLOUT};
  const ssize_t written = poll(&event, 1, 0) > 0 ? write(STDERR_FILENO, line, n) : 0;
  (void)written;
  _exit(leave_status);
}

static void leave_late(int number) {
  static const char LINE[] = "error: interrupted; what was under way did not end and was left\n";
  (void)number;
  leave(LINE, sizeof LINE - 1);
}

/* Where nothing is under way that would end by itself: options are read, or results printed. */
static void leave_at_once(int number) {
  static const char LINE[] = "error: interrupted\n";
  leave_status = 128 + number;
  leave(LINE, sizeof LINE - 1);
}

void cli_leave_again(int number) {
  static const char LINE[] = "error: interrupted again; what was under way was left\n";
  leave_status = 128 + number;
  cli_talk_heard();
  if (is_again()) leave(LINE, sizeof LINE - 1);
}

void cli_leave_now(int number) {
  const bool first = !leave_status;
  cli_leave_again(number);
  if (!first) return;
  signal(SIGALRM, leave_late);
  setitimer(ITIMER_REAL, &PATIENCE, NULL);
}

/* Once only: options are asked for one by one. */
void cli_heed_signals(void) {
  static bool heeds;
  if (!heeds) cli_on_interrupt(leave_at_once);
  heeds = true;
}

static void on_cancel(int number) {
  cancelled = number;
  cli_leave_now(number);
}

const volatile int *cli_cancel(void) {
  cli_on_interrupt(on_cancel);
  return &cancelled;
}

psplit_code cli_cancel_no_more(psplit_diag *diag) {
  cli_on_interrupt(leave_at_once);
  return cancelled ? psplit_diag_fail(diag, PSPLIT_CANCELLED, "interrupted") : PSPLIT_OK;
}

int cli_cancelled_by(void) { return cancelled; }
