/* Numbers that a graph holds. */
#ifndef PSPLIT_GRADIENT_CONSTANTS_H
#define PSPLIT_GRADIENT_CONSTANTS_H

#include "shape.h"

/* The one element of a value that is a constant: by inference, of an initializer that nobody may
 * override, or of a Constant. *out_known says whether it is one. Errors: NOMEM, IO. */
PSPLIT_MUST_USE psplit_code psplit_i_constant_number(const psplit_i_shapes *shapes, uint32_t value,
                                                     psplit_diag *diag, bool *out_known,
                                                     double *out);

#endif
