/* A skeleton with nodes replaced and fields added: the model that a file's becomes when something
 * is put to it in memory. */
#include "draft.h"
#include "model.h"
#include "wire.h"

/* New fields, one span each. */
static bool add_new(psplit_i_draft *draft, const void *fields, size_t bytes, bool has_view) {
  if (!bytes) return true;
  const uint8_t *at = fields, *end = at + bytes;
  psplit_i_field field;
  while (at < end) {
    if (!psplit_i_next_field(&at, end, &field)) return false;
    psplit_i_draft_add(draft, field.start, (size_t)(field.end - field.start),
                       (psplit_i_span){.field = field.number, .has_view = has_view});
  }
  return true;
}

psplit_code psplit_i_skeleton_edit(const psplit_model *model, const psplit_i_node_edit *edits,
                                   size_t n_edits, const void *fields, size_t bytes,
                                   psplit_diag *diag, psplit_i_skeleton *out_skeleton) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_skeleton *skeleton = &model->skeleton;
  psplit_i_draft draft = {0};
  size_t next = 0;
  bool sound = true;
  for (size_t i = 0; i < skeleton->graph_fields.n; i++) {
    const psplit_i_span *span = &skeleton->graph_fields.items[i];
    if (next < n_edits && i == model->node_spans[edits[next].node]) {
      sound &= add_new(&draft, edits[next].fields, edits[next].bytes, edits[next].has_view);
      next++;
    } else {
      psplit_i_draft_add(&draft, skeleton->bytes + span->skeleton_offset, span->skeleton_bytes,
                         *span);
    }
  }
  sound &= add_new(&draft, fields, bytes, false);
  if (!sound) PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_MALFORMED, "new fields cannot be read"));
  PSPLIT_TRY(psplit_i_draft_finish(&draft, skeleton, diag, out_skeleton));
out:
  psplit_i_draft_fini(&draft);
  return code;
}
