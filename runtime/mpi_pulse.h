/* Signs of life: each rank now and then sends a small message to every other, whatever its stage
 * does, and so notices one that is gone, or out of reach. */
#ifndef PSPLIT_RUNTIME_MPI_PULSE_H
#define PSPLIT_RUNTIME_MPI_PULSE_H

#include "queue.h"

typedef struct psplit_i_pulse psplit_i_pulse;

/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pulse_create(uint32_t rank, uint32_t n_ranks, double timeout_s,
                                                  psplit_diag *diag, psplit_i_pulse **out);
/* Frees; not while messages are under way. NULL is fine. */
void psplit_i_pulse_destroy(psplit_i_pulse *pulse);

/* Sends and receives what is due. With `last` this rank says that it needs nothing any more.
 * *out_all_last: it has, and so has every other. Errors: IO (a rank was not heard for timeout_s).
 */
PSPLIT_MUST_USE psplit_code psplit_i_pulse_step(psplit_i_pulse *pulse, bool last, psplit_diag *diag,
                                                bool *out_all_last);

#endif
