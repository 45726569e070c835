/* A skeleton with nodes replaced and fields added: the model that a file's becomes when something
 * is put to it in memory. */
#include "model.h"
#include "wire.h"

enum { MODEL_GRAPH = 7 };

typedef struct editor {
  psplit_i_text graph, whole;
  psplit_i_spans graph_fields, model_fields;
  bool failed;
} editor;

static void add_span(editor *e, const uint8_t *bytes, size_t n, psplit_i_span span) {
  span.skeleton_offset = (uint32_t)e->graph.n;
  span.skeleton_bytes = (uint32_t)n;
  psplit_i_text_add(&e->graph, bytes, n);
  if (!psplit_i_vec_push(&e->graph_fields, span)) e->failed = true;
}

/* New fields, one span each. */
static bool add_new(editor *e, const void *fields, size_t bytes) {
  if (!bytes) return true;
  const uint8_t *at = fields, *end = at + bytes;
  psplit_i_field field;
  while (at < end) {
    if (!psplit_i_next_field(&at, end, &field)) return false;
    add_span(e, field.start, (size_t)(field.end - field.start),
             (psplit_i_span){.field = field.number});
  }
  return true;
}

static void add_model_fields(editor *e, const psplit_i_skeleton *skeleton) {
  for (size_t i = 0; i < skeleton->model_fields.n; i++) {
    psplit_i_span span = skeleton->model_fields.items[i];
    const uint8_t *bytes = skeleton->bytes + span.skeleton_offset;
    span.skeleton_offset = (uint32_t)e->whole.n;
    if (span.field == MODEL_GRAPH) {
      psplit_i_wire_bytes(&e->whole, MODEL_GRAPH, e->graph.bytes, e->graph.n);
      span.file_bytes = 0;
      span.has_view = true;
      const uint32_t base = (uint32_t)(e->whole.n - e->graph.n);
      for (size_t g = 0; g < e->graph_fields.n; g++)
        e->graph_fields.items[g].skeleton_offset += base;
    } else {
      psplit_i_text_add(&e->whole, bytes, span.skeleton_bytes);
    }
    span.skeleton_bytes = (uint32_t)(e->whole.n - span.skeleton_offset);
    if (!psplit_i_vec_push(&e->model_fields, span)) e->failed = true;
  }
}

psplit_code psplit_i_skeleton_edit(const psplit_model *model, const psplit_i_node_edit *edits,
                                   size_t n_edits, const void *fields, size_t bytes,
                                   psplit_diag *diag, psplit_i_skeleton *out_skeleton) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_skeleton *skeleton = &model->skeleton;
  editor e = {0};
  size_t next = 0;
  bool sound = true;
  for (size_t i = 0; i < skeleton->graph_fields.n; i++) {
    const psplit_i_span *span = &skeleton->graph_fields.items[i];
    if (next < n_edits && i == model->node_spans[edits[next].node]) {
      sound &= add_new(&e, edits[next].fields, edits[next].bytes);
      next++;
    } else {
      add_span(&e, skeleton->bytes + span->skeleton_offset, span->skeleton_bytes, *span);
    }
  }
  sound &= add_new(&e, fields, bytes);
  if (!sound) PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_MALFORMED, "new fields cannot be read"));
  add_model_fields(&e, skeleton);
  if (e.whole.n > INT32_MAX)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_LIMIT, "the model's structure is over 2 GiB"));
  if (e.failed || e.graph.failed || e.whole.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_skeleton = (psplit_i_skeleton){.bytes = (uint8_t *)e.whole.bytes,
                                      .n_bytes = e.whole.n,
                                      .capacity = e.whole.capacity,
                                      .model_fields = e.model_fields,
                                      .graph_fields = e.graph_fields,
                                      .unpacked_bytes = skeleton->unpacked_bytes};
  psplit_i_text_fini(&e.graph);
  return PSPLIT_OK;
out:
  psplit_i_text_fini(&e.graph);
  psplit_i_text_fini(&e.whole);
  psplit_i_vec_fini(&e.graph_fields);
  psplit_i_vec_fini(&e.model_fields);
  return code;
}
