#include "complete.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool complete_add(complete_set *set, uint64_t id) {
  size_t at = set->n; /* where it goes: behind all that are before it */
  while (at && set->ranges[at - 1].first > id) at--;
  complete_range *before = at ? &set->ranges[at - 1] : NULL;
  complete_range *behind = at < set->n ? &set->ranges[at] : NULL;
  const bool joins_before = before && before->last + 1 == id;
  const bool joins_behind = behind && id + 1 == behind->first;
  if (joins_before && joins_behind) {
    before->last = behind->last;
    set->n--;
    memmove(behind, behind + 1, (set->n - at) * sizeof *behind);
  } else if (joins_before) {
    before->last = id;
  } else if (joins_behind) {
    behind->first = id;
  } else {
    complete_range *grown = cli_grow(set->ranges, set->n, sizeof *grown);
    if (!grown) return false;
    set->ranges = grown;
    memmove(grown + at + 1, grown + at, (set->n - at) * sizeof *grown);
    grown[at] = (complete_range){id, id};
    set->n++;
  }
  return true;
}

void complete_tell(const complete_set *set, uint64_t n_all, psplit_diag *diag) {
  enum { MOST = 8 };
  char text[MOST * 48 + 64];
  size_t n = (size_t)snprintf(text, sizeof text,
                              set->n ? "; of %" PRIu64 " sequences complete: "
                                     : "; of %" PRIu64
                                       " sequences none is "
                                       "complete",
                              n_all);
  for (size_t i = 0; i < set->n && i < MOST; i++) {
    const complete_range *r = &set->ranges[i];
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%" PRIu64, i ? ", " : "", r->first);
    if (r->last > r->first) n += (size_t)snprintf(text + n, sizeof text - n, "-%" PRIu64, r->last);
  }
  if (set->n > MOST) n += (size_t)snprintf(text + n, sizeof text - n, ", ...");
  /* Where there is no room for both, the end of a long message goes. */
  const size_t room = sizeof diag->message - 1, length = strlen(diag->message);
  const size_t keep = length + n <= room ? length : room - n;
  snprintf(diag->message + keep, sizeof diag->message - keep, "%s", text);
}

void complete_fini(complete_set *set) { free(set->ranges); }
