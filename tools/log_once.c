/* A logger that passes each line on once. */
#include "log_once.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 64 };

struct log_once {
  psplit_logger logger;
  const psplit_logger *to;
  char *said[MOST_LINES]; /* [n_said] */
  size_t n_said;
};

static bool is_new(log_once *log, const char *line) {
  for (size_t i = 0; i < log->n_said; i++)
    if (strcmp(log->said[i], line) == 0) return false;
  if (log->n_said < MOST_LINES && (log->said[log->n_said] = strdup(line))) log->n_said++;
  return true;
}

static void emit_once(void *user, psplit_severity severity, const char *line) {
  log_once *log = user;
  if (severity == PSPLIT_PROGRESS || is_new(log, line))
    log->to->emit(log->to->user, severity, line);
}

static void advise_once(void *user, psplit_severity severity, const psplit_diag *advice) {
  log_once *log = user;
  if (is_new(log, advice->message)) log->to->advise(log->to->user, severity, advice);
}

log_once *log_once_create(const psplit_logger *to) {
  log_once *log = calloc(1, sizeof *log);
  if (!log) return NULL;
  log->to = to;
  log->logger =
    (psplit_logger){.emit = emit_once, .user = log, .advise = to->advise ? advise_once : NULL};
  return log;
}

const psplit_logger *log_once_logger(const log_once *log) { return &log->logger; }

void log_once_destroy(log_once *log) {
  for (size_t i = 0; log && i < log->n_said; i++) free(log->said[i]);
  free(log);
}
