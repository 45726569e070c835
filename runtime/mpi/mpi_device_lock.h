/* A lock for each device that has several stages (segments): of the ranks with these stages, one
 * computes at a time, as threads of one process do. */
#ifndef PSPLIT_RUNTIME_MPI_DEVICE_LOCK_H
#define PSPLIT_RUNTIME_MPI_DEVICE_LOCK_H

#include <pthread.h>

#include "pipeline.h"

typedef struct psplit_i_device_lock psplit_i_device_lock;

/* By all ranks at once; waits for them. *out stays NULL where no device has several stages.
 * Devices are told by name and host. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_device_lock_create(const psplit_i_manifest *manifest,
                                                        uint32_t rank, psplit_diag *diag,
                                                        psplit_i_device_lock **out);
/* By all ranks at once, when no stage computes any more. NULL is fine. */
void psplit_i_device_lock_destroy(psplit_i_device_lock *lock);

/* What the stage of this rank holds while it computes. A rank that is killed lets it go. NULL: no
 * other rank of this host has its device, or ranks have no memory in common. */
pthread_mutex_t *psplit_i_device_lock_mine(const psplit_i_device_lock *lock);

#endif
