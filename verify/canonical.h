/* A form of protobuf messages in which equal content is equal bytes: lengths are not padded, and a
 * tensor's raw bytes are taken out, wherever they were stored (inline or external). */
#ifndef PSPLIT_VERIFY_CANONICAL_H
#define PSPLIT_VERIFY_CANONICAL_H

#include "base.h"
#include "model.h"

/* Raw bytes of a tensor inside a message, in the order of the message's fields. */
typedef PSPLIT_VEC(psplit_i_payload) psplit_i_payloads;

/* Appends the canonical form of the field `span` of `model` to `out`, and the payloads met to
 * `payloads`. Errors: NOMEM; INTERNAL (the model is not one that was scanned). */
PSPLIT_MUST_USE psplit_code psplit_i_canonical_span(const psplit_model *model,
                                                    const ProtobufCMessageDescriptor *owner,
                                                    const psplit_i_span *span, psplit_i_text *out,
                                                    psplit_i_payloads *payloads, psplit_diag *diag);

#endif
