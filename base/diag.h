/* Filling a psplit_diag, and the two macros that hide control flow. */
#ifndef PSPLIT_BASE_DIAG_H
#define PSPLIT_BASE_DIAG_H

#include <string.h>

#include <psplit/base.h>

/* Records `code` and a formatted line unless `diag` already holds a failure; returns `code`.
 * `diag` may be NULL. Control characters and invalid UTF-8 in the text are replaced by '?', so
 * that a name taken from a file cannot drive a terminal. */
PSPLIT_MUST_USE psplit_code psplit_i_fail(psplit_diag *diag, psplit_code code, const char *format,
                                          ...) PSPLIT_PRINTF(3, 4);

/* What a line is about and what would help, with the hint's arguments (base.h). Options are never
 * named in the text itself: who uses the library may have none of that name. */
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

/* The failure of another diag, with all that it says, under the same condition; its code. */
PSPLIT_MUST_USE psplit_code psplit_i_fail_as(psplit_diag *diag, const psplit_diag *from);

/* Puts "<text>: " before the recorded failure, if there is one; not before a cancellation, which is
 * of no place. */
void psplit_i_diag_context(psplit_diag *diag, const char *format, ...) PSPLIT_PRINTF(2, 3);
/* The same with a file's path, unless whoever opened it has put it there. */
static inline void psplit_i_diag_file(psplit_diag *diag, const char *path) {
  const size_t n = strlen(path);
  if (diag && strncmp(diag->message, path, n) == 0 && strncmp(diag->message + n, ": ", 2) == 0)
    return;
  psplit_i_diag_context(diag, "%s", path);
}

/* Puts "; <text>" behind it, likewise. */
void psplit_i_diag_add(psplit_diag *diag, const char *format, ...) PSPLIT_PRINTF(2, 3);

/* Out of memory at this place. */
PSPLIT_MUST_USE psplit_code psplit_i_nomem(psplit_diag *diag);

/* Those who read one file at a time do not see that a failure's code is the one that was given, and
 * would go on after it as if all were well. */
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

/* The same of a call that always fails, as psplit_i_fail() and psplit_i_nomem() do. */
#define PSPLIT_FAIL(call) \
  do {                    \
    code = (call);        \
    goto out;             \
  } while (0)

#endif
