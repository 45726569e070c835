/* Identifying files that are not models. */
#ifndef PSPLIT_ONNX_KINDS_H
#define PSPLIT_ONNX_KINDS_H

#include <psplit/base.h>

/* Replaces the message of a failed scan by the type of the file, according to its first bytes, and
 * a remedy; unchanged if they are not recognised, as for a damaged model. Returns `code`. */
PSPLIT_MUST_USE psplit_code psplit_i_tell_kind(int fd, psplit_code code, psplit_diag *diag);

#endif
