/* What the commands share: options from one table, sizes and times as people read them, lines on
 * stderr. No logic. */
#ifndef PSPLIT_TOOLS_CLI_H
#define PSPLIT_TOOLS_CLI_H

#include <psplit/base.h>
#include <psplit/devices.h>
#include <psplit/partition.h>
#include <psplit/passes.h>
#include <stdio.h>

#include "advice.h"
#include "exit_status.h"
#include "interrupt.h"
#include "logging.h"
#include "texts.h"

/* An option: one row gives its parsing, its line of --help, the words that its argument can be and
 * what shells complete. Rows with neither letter nor name are headings. */
typedef struct cli_option {
  int id;           /* what cli_next returns; a letter if there is a short form, else above 255 */
  const char *name; /* long form */
  const char *argument; /* "FILE", "stop|skip", "N|auto", "NAME=VALUE"; NULL where it takes none */
  const char *help;
} cli_option;

/* The help of an option that takes a solver: what psplit_partition_methods() says of each. */
#define CLI_SOLVERS "\1"

typedef struct cli {
  const char *program;
  const char *synopsis; /* after the program's name */
  const char *about;    /* one paragraph */
  const cli_option *options;
  size_t n_options;
} cli;

enum { CLI_END = -1, CLI_BAD = -2, CLI_COMPLETION = 1000 };
/* The last rows of each table. */
/* clang-format off */
#define CLI_LAST_OPTIONS \
  {CLI_COMPLETION, "completion", "bash|zsh|fish", "print a completion script for that shell"}, \
  {'h', "help", NULL, "print this help"}, \
  {'V', "version", NULL, "print the version"}
/* clang-format on */

/* The next option's id, its argument in *out_argument; CLI_END when only operands are left (optind
 * is the first), CLI_BAD after an error line was printed. Options and operands may be mixed. Takes
 * CLI_LOGGING_OPTIONS itself, and CLI_LAST_OPTIONS, which print something and end the process. */
int cli_next(const cli *program, int argc, char **argv, const char **out_argument);
/* The long name of an option that cli_next returned, without dashes. */
const char *cli_option_name(const cli *program, int id);

/* "error: ..." on stderr; the exit status for its code, or for the signal that cli_cancel heard. */
int cli_fail(const psplit_diag *diag);
/* The same for a mistake in the command line; hints at --help. */
int cli_usage(const cli *program, const char *format, ...) PSPLIT_PRINTF(2, 3);

/* The last thing a command does: `status`, or that of an IO error after its line where standard
 * output did not take what was printed; and cli_logging_end(). */
int cli_finish(int status);

/* Closes a stream of open_memstream; false where memory ran out: glibc may close one without memory
 * for the end of its text as if all were well, and leave *text NULL. */
PSPLIT_MUST_USE bool cli_close_text(FILE *out, char *const *text);

/* Out of memory, in `diag`: NOMEM. */
PSPLIT_MUST_USE psplit_code cli_nomem(psplit_diag *diag);
/* The memory that an option needs, or NULL: then the command ends, as nothing is to be undone yet.
 */
void *cli_need(void *memory);

/* As base/diag.h says to those who read one file at a time: a failure's code is the one given. */
#if defined __clang_analyzer__ || defined PSPLIT_I_ANALYSER
PSPLIT_MUST_USE static inline psplit_code cli_code_is(psplit_code returned, psplit_code given) {
  (void)returned;
  return given;
}
#define cli_nomem(diag) cli_code_is((cli_nomem)(diag), PSPLIT_NOMEM)
#define psplit_diag_fail(diag, code, ...) \
  cli_code_is((psplit_diag_fail)(diag, code, __VA_ARGS__), code)
#endif

/* Numbers of options. False (after an error line) where the text is not one in range. */
bool cli_count(const cli *program, const char *name, const char *text, uint64_t low, uint64_t high,
               uint64_t *out);
bool cli_count32(const cli *program, const char *name, const char *text, uint32_t low,
                 uint32_t high, uint32_t *out);
bool cli_real(const cli *program, const char *name, const char *text, double low, double high,
              double *out);

/* A number of bytes from 1 on: "2000000", "1500MB", "1.5GiB", as tables print them. */
bool cli_size(const cli *program, const char *name, const char *text, uint64_t high, uint64_t *out);
/* A number of MiB, 1 or more, in bytes. */
bool cli_mebibytes(const cli *program, const char *name, const char *text, uint64_t *out_bytes);

/* "3" or "1..8" (low and high, 1 <= low <= high). */
bool cli_range(const cli *program, const char *name, const char *text, uint32_t *out_low,
               uint32_t *out_high);
/* A level of ONNX Runtime's optimiser: 0, 1, 2 or 99. */
bool cli_level(const cli *program, const char *text, int *out);
/* Index of `text` among the words that the option's row of the table has for its argument. */
bool cli_choice(const cli *program, const char *name, const char *text, int *out);
/* Index of `text` among the NULL-terminated `words`. */
bool cli_word(const cli *program, const char *name, const char *text, const char *const *words,
              int *out);
/* NAME=VALUE appended to `dims`; the text is argv's, cut in two at the last '='. */
bool cli_dim(const cli *program, char *text, psplit_dim_value *dims, size_t most, size_t *io_n);
/* The sizes of "N,N,...", at most `most`; false, without a line, where it is none such. */
bool cli_sizes(const char *text, int64_t *sizes, uint32_t most, uint32_t *out_n);
/* Whether it says of which input a file is: NAME=FILE, or an .npz, whose arrays have names. */
bool cli_names_input(const cli *program, const char *name, const char *text);
/* `text` appended to `list`. */
bool cli_repeated(const cli *program, const char *name, const char *text, const char **list,
                  size_t most, size_t *io_n);

/* The text of the file that --devices names, if it names one; *out_text stays as it is else. */
PSPLIT_MUST_USE psplit_code cli_devices_read(const char *name, uint64_t max_bytes, bool or_stdin,
                                             psplit_diag *diag, char **out_text, size_t *out_n);
/* Devices of --devices, a preset's name or a file with that text; *out_devices stays NULL where
 * `name` is. A number of stages of 0 becomes the file's number of devices. */
PSPLIT_MUST_USE psplit_code cli_devices(const char *name, const char *text, size_t n,
                                        uint32_t *io_n_stages, psplit_diag *diag,
                                        psplit_devices **out_devices);
/* Whether it is neither a preset nor this machine. */
bool cli_is_file(const char *devices);
bool cli_is_preset(const char *name);
/* n_devices cores of this machine as a short measurement found them. The measurement is kept in
 * $XDG_CACHE_HOME/onnx-pipeline-split (~/.cache where that is not set), a file for each kind of
 * CPU; without such a place it is taken each time. Errors: USAGE, NOMEM. */
PSPLIT_MUST_USE psplit_code cli_this_machine(uint32_t n_devices, psplit_diag *diag,
                                             psplit_devices **out_devices);

/* Row of an option table, and what it says: the limit on each text that is read. */
/* clang-format off */
#define CLI_MAX_TEXT(id) \
  {(id), "max-text", "MIB", "maximum size of each JSON or text input file; default: 64"}
/* clang-format on */
bool cli_max_text(const cli *program, const char *argument, uint64_t *out_bytes);
/* The same of what --input and --data read. */
/* clang-format off */
#define CLI_MAX_UNPACKED(id) \
  {(id), "max-unpacked", "MIB", \
   "maximum size of a compressed .npz array that the model does not fix; default: 64"}
/* clang-format on */

/* Reads a whole regular file of at most max_bytes (0: 64 MiB), or with or_stdin standard input for
 * "-"; malloc'd, NUL-terminated. Errors: IO, LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code cli_read_file(const char *path, uint64_t max_bytes, bool or_stdin,
                                          psplit_diag *diag, char **out_text, size_t *out_n);
/* The same of a bare problem; *out is the caller's. Errors: those of psplit_problem_parse_json,
 * too. */
PSPLIT_MUST_USE psplit_code cli_read_problem(const char *path, uint64_t max_bytes, bool or_stdin,
                                             psplit_diag *diag, psplit_problem **out);

/* Warnings and notes to stderr, unless *quiet, which is looked at each time; what is done now to
 * cli_doing(). */
psplit_logger cli_sink(const bool *quiet);
/* For a logger that is to say nothing from here on. */
void cli_quiet(void *user, psplit_severity severity, const char *line);

#endif
