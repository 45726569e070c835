/* Each rank periodically sends a small message to every other, whatever its stage does. A rank that
 * was not heard for too long is gone or out of reach. The messages also say what the stage has done
 * and, to the rank that gives outputs, that a rank ends because it has failed. */
#ifndef PSPLIT_RUNTIME_MPI_HEARTBEAT_H
#define PSPLIT_RUNTIME_MPI_HEARTBEAT_H

#include "queue.h"
#include "source.h"

typedef struct psplit_i_heartbeat psplit_i_heartbeat;

/* live[n_ranks]: what the stage of this rank has done is told from there, what others tell is put
 * there; may be NULL. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_heartbeat_create(uint32_t rank, uint32_t n_ranks,
                                                      double timeout_s, psplit_i_live *live,
                                                      psplit_diag *diag, psplit_i_heartbeat **out);
/* Frees; not while messages are under way. NULL is fine. */
void psplit_i_heartbeat_destroy(psplit_i_heartbeat *heartbeat);

/* Sends and receives what is due. With `last` this rank says that it needs nothing any more.
 * *out_all_last: it has, and so has every other. Errors: IO (a rank was not heard for timeout_s),
 * what another rank has failed with. */
PSPLIT_MUST_USE psplit_code psplit_i_heartbeat_step(psplit_i_heartbeat *heartbeat, bool last,
                                                    psplit_diag *diag, bool *out_all_last);

/* Tells rank `to` that this one ends with `diag`, and waits a little until that has heard it: it
 * has things to say before all are ended. */
void psplit_i_heartbeat_tell_failure(psplit_i_heartbeat *heartbeat, uint32_t to,
                                     const psplit_diag *diag);

#endif
