/* Whether two fields of stages say the same, wherever their tensors are stored. */
#include <string.h>

#include "merge.h"

enum { CHUNK_BYTES = 64 << 10 };

/* Some bytes of a payload. */
static psplit_code read_some(const psplit_model *model, const psplit_i_payload *payload,
                             uint64_t at, size_t n, uint8_t *out, psplit_diag *diag) {
  if (payload->memory) {
    memcpy(out, payload->memory + at, n);
    return PSPLIT_OK;
  }
  return psplit_i_model_read(model, payload->file, payload->offset + at, out, n, diag);
}

static psplit_code same_payload(psplit_i_merger *m, const psplit_model *x,
                                const psplit_i_payload *a, const psplit_model *y,
                                const psplit_i_payload *b, bool *out) {
  psplit_code code = PSPLIT_OK;
  uint8_t one[CHUNK_BYTES], other[CHUNK_BYTES];
  *out = a->bytes == b->bytes;
  for (uint64_t at = 0; *out && at < a->bytes; at += CHUNK_BYTES) {
    const size_t n = a->bytes - at < CHUNK_BYTES ? (size_t)(a->bytes - at) : CHUNK_BYTES;
    PSPLIT_TRY(psplit_i_go_on(m->options->cancel, m->diag));
    PSPLIT_TRY(read_some(x, a, at, n, one, m->diag));
    PSPLIT_TRY(read_some(y, b, at, n, other, m->diag));
    *out = memcmp(one, other, n) == 0;
  }
out:
  return code;
}

psplit_code psplit_i_merge_same(psplit_i_merger *m, const ProtobufCMessageDescriptor *owner,
                                const psplit_model *x, const psplit_i_span *a,
                                const psplit_model *y, const psplit_i_span *b, bool *out) {
  psplit_code code;
  psplit_i_comparer *c = &m->comparer;
  c->a.n = c->b.n = 0;
  c->payload_a.n = c->payload_b.n = 0;
  PSPLIT_TRY(psplit_i_canonical_span(x, owner, a, &c->a, &c->payload_a, m->diag));
  PSPLIT_TRY(psplit_i_canonical_span(y, owner, b, &c->b, &c->payload_b, m->diag));
  *out = c->a.n == c->b.n && memcmp(c->a.bytes, c->b.bytes, c->a.n) == 0 &&
         c->payload_a.n == c->payload_b.n;
  for (size_t i = 0; i < c->payload_a.n && *out; i++)
    PSPLIT_TRY(same_payload(m, x, &c->payload_a.items[i], y, &c->payload_b.items[i], out));
out:
  return code;
}

void psplit_i_comparer_fini(psplit_i_comparer *c) {
  psplit_i_text_fini(&c->a);
  psplit_i_text_fini(&c->b);
  psplit_i_vec_fini(&c->payload_a);
  psplit_i_vec_fini(&c->payload_b);
}
