/* The MPI transport, as used by other components. */
#ifndef PSPLIT_RUNTIME_OVER_MPI_H
#define PSPLIT_RUNTIME_OVER_MPI_H

#include "run.h"

/* This rank's; MPI has begun. */
psplit_i_communicator psplit_i_over_mpi(void);

#endif
