#include "draft.h"

#include "fields.h"
#include "wire.h"

void psplit_i_draft_add(psplit_i_draft *draft, const void *bytes, size_t n, psplit_i_span span) {
  span.skeleton_offset = (uint32_t)draft->graph.n;
  span.skeleton_bytes = (uint32_t)n;
  psplit_i_text_add(&draft->graph, bytes, n);
  if (!psplit_i_vec_push(&draft->graph_fields, span)) draft->failed = true;
}

/* The model's fields into `whole`, its graph by the draft's. */
static bool add_model_fields(psplit_i_draft *draft, const psplit_i_skeleton *skeleton,
                             psplit_i_text *whole, psplit_i_spans *spans) {
  for (size_t i = 0; i < skeleton->model_fields.n; i++) {
    psplit_i_span span = skeleton->model_fields.items[i];
    const uint8_t *bytes = skeleton->bytes + span.skeleton_offset;
    span.skeleton_offset = (uint32_t)whole->n;
    if (span.field == PSPLIT_I_MODEL_GRAPH) {
      psplit_i_wire_bytes(whole, PSPLIT_I_MODEL_GRAPH, draft->graph.bytes, draft->graph.n);
      span.file_bytes = 0;
      span.has_view = true;
      const uint32_t base = (uint32_t)(whole->n - draft->graph.n);
      for (size_t g = 0; g < draft->graph_fields.n; g++)
        draft->graph_fields.items[g].skeleton_offset += base;
    } else {
      psplit_i_text_add(whole, bytes, span.skeleton_bytes);
    }
    span.skeleton_bytes = (uint32_t)(whole->n - span.skeleton_offset);
    if (!psplit_i_vec_push(spans, span)) return false;
  }
  return !whole->failed;
}

psplit_code psplit_i_draft_finish(psplit_i_draft *draft, const psplit_i_skeleton *skeleton,
                                  psplit_diag *diag, psplit_i_skeleton *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_text whole = {0};
  psplit_i_spans spans = {0};
  if (draft->failed || draft->graph.failed || !add_model_fields(draft, skeleton, &whole, &spans))
    PSPLIT_FAIL(psplit_i_nomem(diag));
  if (whole.n > INT32_MAX)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_LIMIT, "the model's structure is over 2 GiB"));
  *out = (psplit_i_skeleton){.bytes = (uint8_t *)whole.bytes,
                             .n_bytes = whole.n,
                             .capacity = whole.capacity,
                             .model_fields = spans,
                             .graph_fields = draft->graph_fields,
                             .unpacked_bytes = skeleton->unpacked_bytes};
  draft->graph_fields = (psplit_i_spans){0};
  psplit_i_draft_fini(draft);
  return PSPLIT_OK;
out:
  psplit_i_text_fini(&whole);
  psplit_i_vec_fini(&spans);
  return code;
}

void psplit_i_draft_fini(psplit_i_draft *draft) {
  psplit_i_text_fini(&draft->graph);
  psplit_i_vec_fini(&draft->graph_fields);
}
