/* psplit_i_team_for() for more than one thread. */
#ifndef PSPLIT_BASE_TEAM_SHARE_H
#define PSPLIT_BASE_TEAM_SHARE_H

#include <stddef.h>

void psplit_i_team_share(int n_threads, size_t begin, size_t end,
                         void (*work)(void *with, size_t i, int thread), void *with);

#endif
