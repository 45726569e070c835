/* How far a call is that takes long, for programs that show it. */
#ifndef PSPLIT_ACTIVITY_H
#define PSPLIT_ACTIVITY_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `psplit_activity *activity` in options: the call says there what it has done of what there is to
 * do now, such as bytes of the file that it reads. One call at a time writes it; it has to be there
 * until that returns. NULL: nobody wants to know. Never changes a result. */
typedef struct psplit_activity psplit_activity;

typedef enum psplit_activity_unit {
  PSPLIT_ACTIVITY_NONE,  /* nothing that is counted */
  PSPLIT_ACTIVITY_BYTES, /* of files */
  PSPLIT_ACTIVITY_WORK   /* of a limit that is seldom reached: what is left is a most */
} psplit_activity_unit;

/* The caller owns *out_activity. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_activity_create(psplit_diag *diag,
                                                              psplit_activity **out_activity);
PSPLIT_API void psplit_activity_destroy(psplit_activity *activity); /* NULL is fine */

/* What is done and what there is in all (0: not known), from any thread at any time. The three are
 * of one moment but for a count or two. */
PSPLIT_API psplit_activity_unit psplit_activity_get(const psplit_activity *activity,
                                                    uint64_t *out_done, uint64_t *out_all);

/* Nothing is counted, until a call begins to. */
PSPLIT_API void psplit_activity_reset(psplit_activity *activity);

#ifdef __cplusplus
}
#endif
#endif
