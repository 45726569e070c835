/* Reporting the progress of a call (psplit/activity.h). NULL is fine everywhere. */
#ifndef PSPLIT_BASE_ACTIVITY_H
#define PSPLIT_BASE_ACTIVITY_H

#include <psplit/activity.h>

/* Begins to count; `all` may be an estimate; 0: unknown. */
void psplit_i_activity_begin(psplit_activity *activity, psplit_activity_unit unit, uint64_t all);
/* From any thread. */
void psplit_i_activity_add(psplit_activity *activity, uint64_t n);
void psplit_i_activity_set(psplit_activity *activity, uint64_t done);

#endif
