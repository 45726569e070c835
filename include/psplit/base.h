/* Result codes and diagnostics shared by every public header of libpsplit. */
#ifndef PSPLIT_BASE_H
#define PSPLIT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PSPLIT_API __attribute__((visibility("default")))
#define PSPLIT_MUST_USE __attribute__((warn_unused_result)) /* on all that return psplit_code */
#define PSPLIT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define PSPLIT_API
#define PSPLIT_MUST_USE
#define PSPLIT_PRINTF(fmt, args)
#endif
/* On a type: callbacks and static functions that return it count too. gcc has no such attribute. */
#if defined(__clang__)
#define PSPLIT_MUST_USE_TYPE PSPLIT_MUST_USE
#else
#define PSPLIT_MUST_USE_TYPE
#endif

/* An id that names nothing. Every dense id in this library is a uint32_t below it. */
#define PSPLIT_NONE UINT32_MAX

typedef enum PSPLIT_MUST_USE_TYPE psplit_code {
  PSPLIT_OK = 0,
  PSPLIT_NOMEM,       /* the allocator refused, or a memory limit the caller set was reached */
  PSPLIT_IO,          /* the operating system could not read or write a file */
  PSPLIT_MALFORMED,   /* bytes that are not what they claim to be (protobuf, JSON) */
  PSPLIT_INVALID,     /* well-formed bytes that break a rule of ONNX or of the file's own format */
  PSPLIT_UNSUPPORTED, /* valid input that this version does not handle; never guessed at */
  PSPLIT_LIMIT,       /* a documented limit on size, depth or count was exceeded */
  PSPLIT_INFEASIBLE,  /* no split satisfies the constraints */
  PSPLIT_PLUGIN,      /* a pass plugin was refused or failed */
  PSPLIT_USAGE,       /* an option, pipeline text or argument that cannot be meant */
  PSPLIT_MISMATCH,    /* a check that was asked for does not hold */
  PSPLIT_INTERNAL     /* a bug in this library; please report it */
} psplit_code;

enum { PSPLIT_DIAG_BYTES = 1536 };

/* The first failure of a call, in the caller's memory; never allocates.
 * `message` says what failed, where, and what would help, on one line. */
typedef struct psplit_diag {
  psplit_code code;
  char message[PSPLIT_DIAG_BYTES];
} psplit_diag;

/* Short upper-case name of a code ("MALFORMED"). */
PSPLIT_API const char *psplit_code_name(psplit_code code);

/* Exit status that the command line tools use for a code (see docs/manual.md). */
PSPLIT_API int psplit_code_exit_status(psplit_code code);

/* Version of the library, "X.Y.Z". */
PSPLIT_API const char *psplit_version(void);

typedef enum psplit_severity { PSPLIT_NOTE, PSPLIT_WARNING, PSPLIT_PROGRESS } psplit_severity;

/* Receives one line (no newline) of advice or progress; libraries never print.
 * May be NULL wherever one is taken. Called from the thread that made the library call. */
typedef struct psplit_logger {
  void (*emit)(void *user, psplit_severity severity, const char *line);
  void *user;
} psplit_logger;

#ifdef __cplusplus
}
#endif
#endif
