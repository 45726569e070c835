/* Loops over lists of ids. */
#ifndef PSPLIT_BASE_EACH_H
#define PSPLIT_BASE_EACH_H

#include <psplit/base.h>

/* Runs the following statement for each id of a[n_a], then of b[n_b], except PSPLIT_NONE; `id`
 * names a uint32_t of the loop. Arguments are evaluated in each iteration. */
#define PSPLIT_EACH_OF_TWO(id, a, n_a, b, n_b)                                               \
  for (uint32_t at_ = 0, id;                                                                 \
       at_ < (n_a) + (n_b) && (id = at_ < (n_a) ? (a)[at_] : (b)[at_ - (n_a)], true); at_++) \
    if (id != PSPLIT_NONE)

#endif
