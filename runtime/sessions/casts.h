/* Conversion of tensors between numeric types. */
#ifndef PSPLIT_RUNTIME_CASTS_H
#define PSPLIT_RUNTIME_CASTS_H

#include "tensor.h"

/* Element i as a number; NAN where it is none that C has. */
double psplit_i_tensor_number(const psplit_i_tensor_view *view, uint64_t i);

/* Whether a type has that number: integers whole ones of their range, bool 0 and 1, floats of 16
 * bits and more what is no larger than their largest, to their precision. */
bool psplit_i_element_holds(int32_t data_type, double value);
bool psplit_i_element_is_float(int32_t data_type); /* of 16 bits and more */
/* Sets element i to a number that its type holds. */
void psplit_i_tensor_set_number(const psplit_i_tensor_view *view, uint64_t i, double value);

/* Whether type `to` holds every value of type `from`. */
bool psplit_i_cast_is_safe(int32_t from, int32_t to);

/* *io_tensor as `data_type`, which is safe; the old one is released. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_cast(const psplit_i_ort *ort, int32_t data_type,
                                                 psplit_diag *diag, psplit_i_tensor **io_tensor);

#endif
