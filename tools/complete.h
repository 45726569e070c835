/* Which sequences are complete, of any number of them: ranges, which grow together. */
#ifndef PSPLIT_TOOLS_COMPLETE_H
#define PSPLIT_TOOLS_COMPLETE_H

#include <psplit/base.h>
#include <stdbool.h>

typedef struct complete_range {
  uint64_t first, last;
} complete_range;

typedef struct complete_set {
  complete_range *ranges; /* [n] in order, none beside another */
  size_t n;
} complete_set;

/* `id` is not in it yet; false when out of memory. O(n), usually O(1): what is complete late is
 * near the end. */
bool complete_add(complete_set *set, uint64_t id);
/* Adds to the message of a failure which of `n_all` sequences are complete, the first ranges where
 * there are many. */
void complete_tell(const complete_set *set, uint64_t n_all, psplit_diag *diag);
void complete_fini(complete_set *set);

#endif
