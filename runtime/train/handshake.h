/* Handshake of devices before the first step: they check that they belong to one run, and exchange
 * properties of the data. */
#ifndef PSPLIT_RUNTIME_TRAIN_HANDSHAKE_H
#define PSPLIT_RUNTIME_TRAIN_HANDSHAKE_H

#include "work.h"

/* Settles the number of steps and the place in the data as well. Errors: INVALID (other options, or
 * data of other sizes), those of psplit_i_feeding_settle and psplit_i_find_place. */
PSPLIT_MUST_USE psplit_code psplit_i_handshake(psplit_i_work *work, psplit_diag *diag);

#endif
