/* What a command says while it works: what it does now and how far it is, warnings and notes, how
 * long each part took (--verbose), and all of that in a file (--log).
 *
 * There is one command in a process, and so one of each; calls may come from any thread. The line
 * about the work appears where standard error is a terminal, once the command has taken half a
 * second, without --quiet; a thread of its own writes it ten times a second. */
#ifndef PSPLIT_TOOLS_LOGGING_H
#define PSPLIT_TOOLS_LOGGING_H

#include <psplit/activity.h>
#include <psplit/base.h>
#include <stdbool.h>

/* Rows of an option table; cli_next takes these options itself. */
enum { CLI_VERBOSE = 'v', CLI_LOG = 1002 };
/* clang-format off */
#define CLI_VERBOSE_OPTION \
  {CLI_VERBOSE, "verbose", NULL, "print how long each phase took to stderr"}
#define CLI_LOG_OPTION {CLI_LOG, "log", "FILE", "write a timestamped log with all messages"}
#define CLI_LOGGING_OPTIONS CLI_VERBOSE_OPTION, CLI_LOG_OPTION
/* clang-format on */

/* What the options say. A log replaces one of before, and nothing else: false after an error line.
 * Ranks of MPI have one each, those behind the first FILE.RANK. */
void cli_logging_command(int argc, char **argv);
void cli_logging_quiet(void);
void cli_logging_verbose(void);
bool cli_logging_file(const char *program, const char *path);
/* Once all options are known: whether no other word of the command names the log; false after an
 * error line. */
bool cli_logging_apart(int argc, char **argv);

/* A part of the work begins, and the one before it ends: "reading m.onnx", "pass fuse". Names may
 * be those of files. */
void cli_doing(const char *format, ...) PSPLIT_PRINTF(1, 2);

/* What is done from here on is the number `at`, from 1, of `all` of its kind, such as plans: the
 * line about the work says so where there are several. */
void cli_series(uint32_t at, uint32_t all);

/* The part has ended, and what comes now is no work, such as waiting for requests. */
void cli_idle(void);

/* For `activity` of options: where calls count what is done of the part. NULL where nobody wants to
 * know. */
psplit_activity *cli_activity(void);

/* Counts the part that has begun in another way: until the next one begins `count` is called from
 * another thread, and returns how many of *out_all (0: not known) `unit`s are done. */
typedef uint64_t (*cli_counter)(void *user, uint64_t *out_all);
void cli_count_by(cli_counter count, void *user, const char *unit);

/* A line of what is said: in the log, and if it is `loud` on standard error. */
void cli_say_line(const char *kind, const char *line, bool loud);
void cli_warn(const char *format, ...) PSPLIT_PRINTF(1, 2);

/* Takes the line about the work away, before something else is written to the terminal; it comes
 * again while the part goes on. */
void cli_make_room(void);

/* The work has ended with that status, which is returned: says how long it took, closes the log.
 * The second call does nothing. */
int cli_logging_end(int status);

/* In a signal handler, at the first signal: says on a terminal that it was heard. */
void cli_logging_heard(void);

#endif
