/* Files that are no models, told for what they are. */
#ifndef PSPLIT_ONNX_KINDS_H
#define PSPLIT_ONNX_KINDS_H

#include <psplit/base.h>

/* Replaces the message of a scan that failed by what the first bytes of the file say it is, with
 * what helps; leaves it where they say nothing, as of a model that is damaged. `code` is returned.
 */
PSPLIT_MUST_USE psplit_code psplit_i_tell_kind(int fd, psplit_code code, psplit_diag *diag);

#endif
