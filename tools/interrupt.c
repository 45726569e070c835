#include "interrupt.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>
#include <unistd.h>

#include "exit_status.h"
#include "logging.h"
#include "texts.h"

/* The flag. Threads look at it while a handler sets it: written plainly it would race with them. */
static atomic_int cancelled;
_Static_assert(sizeof cancelled == sizeof(int), "an atomic int is an int");
static atomic_int ended_by; /* so with all that a handler writes */
static atomic_int ending = CLI_ENDS_AT_ONCE;

static bool is_again(void) {
  static const double ONE_S = 0.05;
  static _Atomic double first_s;
  const double now_s = cli_now_s();
  if (first_s == 0) first_s = now_s;
  return now_s - first_s > ONE_S;
}

/* Only what a handler may call, and nothing that waits for who reads the line. */
_Noreturn static void leave(const char *line, size_t n) {
  struct pollfd event = {.fd = STDERR_FILENO, .events = POLLOUT};
  const ssize_t written = poll(&event, 1, 0) > 0 ? write(STDERR_FILENO, line, n) : 0;
  (void)written;
  _exit(128 + ended_by);
}

static void leave_late(int number) {
  static const char LINE[] = "error: interrupted; what was under way did not end and was left\n";
  (void)number;
  if (ending == CLI_ENDS_SOON) leave(LINE, sizeof LINE - 1);
}

/* How long what is under way may take to end: a process with much memory takes the rest of the
 * second to be gone. */
static void be_patient(bool yes) {
  const struct itimerval patience = {.it_value = {.tv_usec = yes ? 800000 : 0}};
  setitimer(ITIMER_REAL, &patience, NULL);
}

static void on_signal(int number) {
  static const char LINE[] = "error: interrupted\n";
  static const char AGAIN[] = "error: interrupted again; what was under way was left\n";
  const bool first = !ended_by;
  ended_by = number;
  if (ending == CLI_ENDS_AT_ONCE) leave(LINE, sizeof LINE - 1);
  cli_logging_heard();
  if (is_again()) leave(AGAIN, sizeof AGAIN - 1);
  if (ending != CLI_ENDS_WHOLE) cancelled = number;
  /* Another thread may have come to that between the two. */
  atomic_thread_fence(memory_order_seq_cst);
  if (ending == CLI_ENDS_WHOLE) cancelled = 0;
  if (first && ending == CLI_ENDS_SOON) be_patient(true);
}

void cli_heed_signals(void) {
  static bool heeds;
  if (heeds) return;
  heeds = true;
  signal(SIGALRM, leave_late);
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  if (signal(SIGHUP, on_signal) == SIG_IGN) signal(SIGHUP, SIG_IGN);
}

const volatile int *cli_ends(cli_ending how) {
  ending = (int)how; /* first: what comes behind this is of the new kind */
  atomic_thread_fence(memory_order_seq_cst);
  if (how != CLI_ENDS_SOON) be_patient(false);
  if (how == CLI_ENDS_SOON && ended_by) be_patient(true);
  if (how == CLI_ENDS_WHOLE) cancelled = 0;
  return (const volatile int *)&cancelled;
}

void cli_cancel_own(void) { cancelled = 1; }

psplit_code cli_cancel_no_more(psplit_diag *diag) {
  cli_ends(CLI_ENDS_AT_ONCE);
  return ended_by ? psplit_diag_fail(diag, PSPLIT_CANCELLED, "interrupted") : PSPLIT_OK;
}

int cli_ended_by(void) { return ended_by; }

int cli_end_status(psplit_code code) {
  const int number = ended_by;
  if (code == PSPLIT_OK || !number) return cli_exit_status(code);
  return code == PSPLIT_CANCELLED || ending != CLI_ENDS_WHOLE ? 128 + number
                                                              : cli_exit_status(code);
}
