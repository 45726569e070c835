/* A model with other values of some initializers, held against the model that it was made of. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "verify.h"
#include "wire.h"

enum { BUFFER_BYTES = 1 << 20 };

typedef struct comparison {
  const psplit_model *before, *after;
  psplit_i_text a, b; /* canonical forms at hand */
  psplit_i_payloads payload_a, payload_b;
  uint8_t *buffers; /* [2 * BUFFER_BYTES] */
  const volatile int *cancel;
  psplit_diag *diag;
  psplit_new_values_report *report;
} comparison;

/* --- bytes --- */

static psplit_code same_bytes(comparison *c, const psplit_i_payload *x, const psplit_i_payload *y,
                              bool *out) {
  psplit_code code = PSPLIT_OK;
  *out = x->bytes == y->bytes;
  for (uint64_t at = 0; *out && at < x->bytes; at += BUFFER_BYTES) {
    const size_t n = x->bytes - at < BUFFER_BYTES ? (size_t)(x->bytes - at) : BUFFER_BYTES;
    const uint8_t *a, *b;
    PSPLIT_TRY(psplit_i_go_on(c->cancel, c->diag));
    PSPLIT_TRY(psplit_i_payload_fetch(c->before, x, at, n, c->buffers, &a, c->diag));
    PSPLIT_TRY(psplit_i_payload_fetch(c->after, y, at, n, c->buffers + BUFFER_BYTES, &b, c->diag));
    *out = memcmp(a, b, n) == 0;
    c->report->compared_bytes += n;
  }
out:
  return code;
}

/* Whether two fields hold the same, tensors' data wherever it is stored included. */
static psplit_code same_field(comparison *c, const ProtobufCMessageDescriptor *owner,
                              const psplit_i_span *x, const psplit_i_span *y, bool *out) {
  psplit_code code;
  c->a.n = c->b.n = c->payload_a.n = c->payload_b.n = 0;
  PSPLIT_TRY(psplit_i_go_on(c->cancel, c->diag));
  PSPLIT_TRY(psplit_i_canonical_span(c->before, owner, x, &c->a, &c->payload_a, c->diag));
  PSPLIT_TRY(psplit_i_canonical_span(c->after, owner, y, &c->b, &c->payload_b, c->diag));
  *out = c->a.n == c->b.n && memcmp(c->a.bytes, c->b.bytes, c->a.n) == 0 &&
         c->payload_a.n == c->payload_b.n;
  for (size_t i = 0; *out && i < c->payload_a.n; i++)
    PSPLIT_TRY(same_bytes(c, &c->payload_a.items[i], &c->payload_b.items[i], out));
out:
  return code;
}

/* --- initializers --- */

/* Fields of a tensor, in their order: all but its data, or with `places` where external data is
 * said to be. */
static bool add_frame(const psplit_model *model, const psplit_i_span *span, bool places,
                      psplit_i_text *out) {
  const uint8_t *at = model->skeleton.bytes + span->skeleton_offset;
  psplit_i_field whole, field;
  if (!psplit_i_next_field(&at, at + span->skeleton_bytes, &whole)) return false;
  for (at = whole.content; at < whole.end;) {
    if (!psplit_i_next_field(&at, whole.end, &field)) return false;
    if (places ? field.number == PSPLIT_I_TENSOR_EXTERNAL_DATA ||
                   field.number == PSPLIT_I_TENSOR_DATA_LOCATION
               : !psplit_i_is_tensor_data(field.number))
      psplit_i_text_add(out, field.start, (size_t)(field.end - field.start));
  }
  return !out->failed;
}

static psplit_code same_frame(comparison *c, const psplit_i_span *x, const psplit_i_span *y,
                              bool places, bool *out) {
  c->a.n = c->b.n = 0;
  if (!add_frame(c->before, x, places, &c->a) || !add_frame(c->after, y, places, &c->b))
    return psplit_i_nomem(c->diag);
  *out = c->a.n == c->b.n && (!c->a.n || memcmp(c->a.bytes, c->b.bytes, c->a.n) == 0);
  return PSPLIT_OK;
}

static psplit_code differs(comparison *c, const char *what, const char *name) {
  return psplit_i_fail(c->diag, PSPLIT_MISMATCH,
                       "%s is not %s with other weights: %s \"%s\" differs", c->after->path,
                       c->before->path, what, name);
}

/* An initializer that is not the same: only its data may be another. */
static psplit_code check_changed(comparison *c, uint32_t index, const psplit_i_span *x,
                                 const psplit_i_span *y) {
  const char *name = c->before->proto->graph->initializer[index]->name;
  bool equal = false;
  const psplit_code code = same_frame(c, x, y, false, &equal);
  if (code != PSPLIT_OK) return code;
  if (!equal) return differs(c, "in its name, type or shape the initializer", name);
  c->report->n_changed++;
  return PSPLIT_OK;
}

/* --- the whole --- */

static psplit_code compare_graphs(comparison *c, const psplit_changed_value *changed) {
  const psplit_i_spans *x = &c->before->skeleton.graph_fields,
                       *y = &c->after->skeleton.graph_fields;
  psplit_code code = PSPLIT_OK;
  uint32_t next = 0;
  for (size_t i = 0; i < x->n || i < y->n; i++) {
    bool equal = i < x->n && i < y->n && x->items[i].field == y->items[i].field;
    const uint32_t field = i < x->n ? x->items[i].field : y->items[i].field;
    const ProtobufCFieldDescriptor *known =
      protobuf_c_message_descriptor_get_field(&onnx__graph_proto__descriptor, field);
    const char *name = known ? known->name : "unknown";
    if (!equal) return differs(c, "the graph's field", name);
    PSPLIT_TRY(same_field(c, &onnx__graph_proto__descriptor, &x->items[i], &y->items[i], &equal));
    if (field != PSPLIT_I_GRAPH_INITIALIZER) {
      if (!equal) return differs(c, "the graph's field", name);
      continue;
    }
    if (equal) PSPLIT_TRY(same_frame(c, &x->items[i], &y->items[i], true, &equal));
    if (!equal) {
      PSPLIT_TRY(check_changed(c, next, &x->items[i], &y->items[i]));
      if (changed) changed->tell(changed->user, c->before->proto->graph->initializer[next]->name);
    }
    next++;
    c->report->n_initializers++;
  }
out:
  return code;
}

static psplit_code compare_models(comparison *c) {
  const psplit_i_spans *x = &c->before->skeleton.model_fields,
                       *y = &c->after->skeleton.model_fields;
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < x->n || i < y->n; i++) {
    bool equal = i < x->n && i < y->n && x->items[i].field == y->items[i].field;
    const uint32_t field = i < x->n ? x->items[i].field : y->items[i].field;
    if (equal && field == PSPLIT_I_MODEL_GRAPH) continue;
    if (equal)
      PSPLIT_TRY(same_field(c, &onnx__model_proto__descriptor, &x->items[i], &y->items[i], &equal));
    const ProtobufCFieldDescriptor *known =
      protobuf_c_message_descriptor_get_field(&onnx__model_proto__descriptor, field);
    if (!equal) return differs(c, "the model's field", known ? known->name : "unknown");
  }
out:
  return code;
}

static psplit_code compare(const psplit_model *before, const psplit_model *after,
                           const psplit_changed_value *changed, const volatile int *cancel,
                           psplit_diag *diag, psplit_new_values_report *out_report) {
  psplit_new_values_report report = {0};
  comparison c = {
    .before = before, .after = after, .cancel = cancel, .diag = diag, .report = &report};
  psplit_code code;
  c.buffers = malloc((size_t)2 * BUFFER_BYTES);
  if (!c.buffers) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(compare_models(&c));
  PSPLIT_TRY(compare_graphs(&c, changed));
  if (out_report) *out_report = report;
out:
  free(c.buffers);
  psplit_i_text_fini(&c.a);
  psplit_i_text_fini(&c.b);
  psplit_i_vec_fini(&c.payload_a);
  psplit_i_vec_fini(&c.payload_b);
  return code;
}

/* Constant nodes of `before` that are initializers of `after` are taken for initializers. */
psplit_code psplit_verify_new_values(const psplit_model *before, const psplit_model *after,
                                     const psplit_changed_value *changed,
                                     const volatile int *cancel, psplit_diag *diag,
                                     psplit_new_values_report *out_report) {
  const psplit_i_graph *graph = psplit_i_model_graph(after);
  psplit_model *moved = NULL;
  const char **names = calloc((size_t)graph->n_initializers + 1, sizeof *names);
  if (!names) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < graph->n_initializers; i++)
    names[i] = graph->values[graph->initializers[i]].name;
  psplit_code code =
    psplit_model_move_constants(before, names, graph->n_initializers, diag, &moved);
  if (code == PSPLIT_OK)
    code = compare(moved ? moved : before, after, changed, cancel, diag, out_report);
  psplit_model_close(moved);
  free(names);
  return code;
}
