/* Recording failures, and the two macros with hidden control flow. */
#ifndef PSPLIT_BASE_DIAG_H
#define PSPLIT_BASE_DIAG_H

#include <string.h>

#include <psplit/base.h>

/* Records `code` and a formatted line unless `diag` already holds a failure; returns `code`. `diag`
 * may be NULL. Control characters and invalid UTF-8 are replaced by '?', so that names from files
 * cannot control a terminal. */
PSPLIT_MUST_USE psplit_code psplit_i_fail(psplit_diag *diag, psplit_code code, const char *format,
                                          ...) PSPLIT_PRINTF(3, 4);

/* Subject and hint of a line, with the hint's arguments (base.h). Texts never name options, since
 * programs that use the library have names of their own. */
typedef struct psplit_i_advice {
  psplit_hint hint;
  psplit_subject subject;
  const char *arguments[PSPLIT_HINT_ARGUMENTS + 1]; /* ends with NULL; copied */
} psplit_i_advice;

#define PSPLIT_I_ABOUT(what) ((psplit_i_advice){.subject = PSPLIT_SUBJECT_##what})
#define PSPLIT_I_HELPS(what) ((psplit_i_advice){.hint = PSPLIT_HINT_##what})
#define PSPLIT_I_HELPS_WITH(what, argument) \
  ((psplit_i_advice){.hint = PSPLIT_HINT_##what, .arguments = {argument}})

/* psplit_i_fail() with advice. */
PSPLIT_MUST_USE psplit_code psplit_i_fail_about(psplit_diag *diag, psplit_code code,
                                                psplit_i_advice advice, const char *format, ...)
  PSPLIT_PRINTF(4, 5);

/* Copies the failure of another diag with all details, under the same condition; returns its
 * code. */
PSPLIT_MUST_USE psplit_code psplit_i_fail_as(psplit_diag *diag, const psplit_diag *from);

/* Prefixes the recorded failure, if any, with "<text>: "; not for cancellations, which have no
 * place. */
void psplit_i_diag_context(psplit_diag *diag, const char *format, ...) PSPLIT_PRINTF(2, 3);
/* The same with a file's path, unless it has this prefix already. */
static inline void psplit_i_diag_file(psplit_diag *diag, const char *path) {
  const size_t n = strlen(path);
  if (diag && strncmp(diag->message, path, n) == 0 && strncmp(diag->message + n, ": ", 2) == 0)
    return;
  psplit_i_diag_context(diag, "%s", path);
}

/* Where the recorded failure names the path `hidden`, which will be gone, it names `shown` instead:
 * that which the caller gave. Whether it does. */
bool psplit_i_diag_show(psplit_diag *diag, const char *hidden, const char *shown);

/* Appends "; <text>", likewise. */
void psplit_i_diag_add(psplit_diag *diag, const char *format, ...) PSPLIT_PRINTF(2, 3);

/* Records NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_nomem(psplit_diag *diag);

/* Lets analysers of single files know that the returned code is the given one, and hence not OK. */
#if defined __clang_analyzer__ || defined PSPLIT_I_ANALYSER
PSPLIT_MUST_USE static inline psplit_code psplit_i_code_is(psplit_code returned,
                                                           psplit_code given) {
  (void)returned;
  return given;
}
#define psplit_i_fail(diag, code, ...) \
  psplit_i_code_is((psplit_i_fail)(diag, code, __VA_ARGS__), code)
#define psplit_i_fail_about(diag, code, ...) \
  psplit_i_code_is((psplit_i_fail_about)(diag, code, __VA_ARGS__), code)
#define psplit_i_nomem(diag) psplit_i_code_is((psplit_i_nomem)(diag), PSPLIT_NOMEM)
#endif

/* Sends one formatted line to `logger`, which may be NULL. */
void psplit_i_say(const psplit_logger *logger, psplit_severity severity, const char *format, ...)
  PSPLIT_PRINTF(3, 4);

/* The same with advice. */
void psplit_i_advise(const psplit_logger *logger, psplit_severity severity, psplit_i_advice advice,
                     const char *format, ...) PSPLIT_PRINTF(4, 5);

/* Evaluates a call; on failure goes to the label `out` with `code` set. The function must declare
 * `psplit_code code` before its first use. */
#define PSPLIT_TRY(call)             \
  do {                               \
    code = (call);                   \
    if (code != PSPLIT_OK) goto out; \
  } while (0)

/* The same for a call that always fails, such as psplit_i_fail() and psplit_i_nomem(). */
#define PSPLIT_FAIL(call) \
  do {                    \
    code = (call);        \
    goto out;             \
  } while (0)

#endif
