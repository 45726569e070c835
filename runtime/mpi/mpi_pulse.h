/* Signs of life: each rank now and then sends a small message to every other, whatever its stage
 * does, and so notices one that is gone, or out of reach. They also tell what the stage has done,
 * and, to the rank that gives outputs, that a rank ends because it has failed. */
#ifndef PSPLIT_RUNTIME_MPI_PULSE_H
#define PSPLIT_RUNTIME_MPI_PULSE_H

#include "queue.h"
#include "source.h"

typedef struct psplit_i_pulse psplit_i_pulse;

/* live[n_ranks]: what the stage of this rank has done is told from there, what others tell is put
 * there; may be NULL. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pulse_create(uint32_t rank, uint32_t n_ranks, double timeout_s,
                                                  psplit_i_live *live, psplit_diag *diag,
                                                  psplit_i_pulse **out);
/* Frees; not while messages are under way. NULL is fine. */
void psplit_i_pulse_destroy(psplit_i_pulse *pulse);

/* Sends and receives what is due. With `last` this rank says that it needs nothing any more.
 * *out_all_last: it has, and so has every other. Errors: IO (a rank was not heard for timeout_s),
 * what another rank has failed with. */
PSPLIT_MUST_USE psplit_code psplit_i_pulse_step(psplit_i_pulse *pulse, bool last, psplit_diag *diag,
                                                bool *out_all_last);

/* Tells rank `to` that this one ends with `diag`, and waits a little until that has heard it: it
 * has things to say before all are ended. */
void psplit_i_pulse_tell_failure(psplit_i_pulse *pulse, uint32_t to, const psplit_diag *diag);

#endif
