/* What a command says when something is wrong, and how it ends. */
#include "cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int cli_fail(const psplit_diag *diag) {
  char text[CLI_ADVICE_BYTES];
  cli_say_line("error", cli_advice(diag, text, sizeof text), true);
  return cli_end_status(diag->code);
}

int cli_usage(const cli *program, const char *format, ...) {
  char line[512], whole[640];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  const size_t n = strlen(line);
  const bool asks = n && line[n - 1] == '?';
  snprintf(whole, sizeof whole, "%s%s see %s --help", line, asks ? "" : ";", program->program);
  cli_say_line("error", whole, true);
  return cli_exit_status(PSPLIT_USAGE);
}

int cli_finish(int status) {
  const bool failed_before = ferror(stdout) != 0; /* the buffer may be empty by now */
  cli_make_room();
  if ((fflush(stdout) != 0 || failed_before) && !status) {
    cli_say_line("error", "standard output cannot be written", true);
    status = cli_exit_status(PSPLIT_IO);
  }
  return cli_logging_end(status);
}

bool cli_close_text(FILE *out, char *const *text) {
  const bool failed = ferror(out);
  return fclose(out) == 0 && !failed && *text;
}

psplit_code(cli_nomem)(psplit_diag *diag) {
  snprintf(diag->message, sizeof diag->message, "out of memory");
  return diag->code = PSPLIT_NOMEM;
}

void *cli_need(void *memory) {
  if (memory) return memory;
  cli_say_line("error", "out of memory", true);
  const int status = cli_finish(cli_exit_status(PSPLIT_NOMEM));
  /* Where MPI starts, other ranks wait for this one unless the launcher sees that it was killed. */
  if (cli_rank()) raise(SIGKILL);
  exit(status);
}
