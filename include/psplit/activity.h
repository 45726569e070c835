/* Progress of a long call, for programs that display it. */
#ifndef PSPLIT_ACTIVITY_H
#define PSPLIT_ACTIVITY_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `psplit_activity *activity` in options: the call records there how much of its current work is
 * done, such as bytes of the file that it reads. Only one call may use it at a time, and it must
 * stay valid until the call returns. NULL: progress is not recorded. Never changes a result. */
typedef struct psplit_activity psplit_activity;

typedef enum psplit_activity_unit {
  PSPLIT_ACTIVITY_NONE,  /* nothing is being counted */
  PSPLIT_ACTIVITY_BYTES, /* of files */
  PSPLIT_ACTIVITY_WORK   /* of a limit that is seldom reached: the rest is an upper bound */
} psplit_activity_unit;

/* The caller owns *out_activity. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_activity_create(psplit_diag *diag,
                                                              psplit_activity **out_activity);
PSPLIT_API void psplit_activity_destroy(psplit_activity *activity); /* NULL is fine */

/* Work done and total work (0: unknown), from any thread at any time. The three values are
 * consistent with each other up to a count or two. */
PSPLIT_API psplit_activity_unit psplit_activity_get(const psplit_activity *activity,
                                                    uint64_t *out_done, uint64_t *out_all);

/* Stops counting until a call begins to. */
PSPLIT_API void psplit_activity_reset(psplit_activity *activity);

#ifdef __cplusplus
}
#endif
#endif
