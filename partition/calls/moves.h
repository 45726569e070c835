/* Moves of annealing: a group of nodes goes to another device, with the nodes in between. */
#ifndef PSPLIT_PARTITION_CALLS_MOVES_H
#define PSPLIT_PARTITION_CALLS_MOVES_H

#include "annealing.h"
#include "schedule.h"

enum { PSPLIT_I_CALLS_NODES = 4096 /* of a problem whose order is known as a whole */ };

/* Which nodes come before which, as bits; n 0: too many nodes for that, and nothing is known. */
typedef struct psplit_i_calls_closure {
  uint32_t n, words;
  uint64_t *behind, *before; /* [n * words] */
} psplit_i_calls_closure;

/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_closure_init(psplit_i_calls_closure *closure,
                                                        const psplit_i_calls *calls,
                                                        psplit_i_arena *arena);

/* Scratch of one chain. */
typedef struct psplit_i_calls_mover {
  const psplit_i_calls *calls;
  const psplit_i_calls_closure *closure;
  uint64_t *behind, *before; /* [closure->words] */
} psplit_i_calls_mover;

/* Changes io_device[n] at random; false: nothing was changed. O(n), with a closure
 * O(n * words). */
bool psplit_i_calls_move(psplit_i_calls_mover *mover, psplit_i_annealing *chance,
                         uint32_t *io_device);

#endif
