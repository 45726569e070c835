#include "node_edits.h"

#include <inttypes.h>
#include <stdlib.h>

#include "onnx.pb-c.h"
#include "onnx_fields.h"

char *psplit_i_name_beside(const psplit_i_graph *graph, const char *value, const char *what,
                           psplit_i_arena *arena) {
  psplit_i_text name = {0};
  for (uint32_t k = 0; !name.failed; k++) {
    name.n = 0;
    psplit_i_text_addf(&name, "%s.%s", value, what);
    if (k) psplit_i_text_addf(&name, "~%" PRIu32, k);
    if (!name.failed && psplit_i_graph_find_value(graph, name.bytes) == PSPLIT_NONE) break;
  }
  char *own = name.failed ? NULL : psplit_i_arena_strndup(arena, name.bytes, name.n);
  psplit_i_text_fini(&name);
  return own;
}

psplit_code psplit_i_edits_add(psplit_i_node_edits *edits, uint32_t node,
                               const psplit_i_text *fields, psplit_i_arena *arena,
                               psplit_diag *diag) {
  const psplit_i_node_edit edit = {
    .node = node,
    .fields = fields->failed ? NULL : psplit_i_arena_strndup(arena, fields->bytes, fields->n),
    .bytes = fields->n};
  return edit.fields && psplit_i_vec_push(edits, edit) ? PSPLIT_OK : psplit_i_nomem(diag);
}

static int compare(const void *a, const void *b) {
  const psplit_i_node_edit *x = a, *y = b;
  return x->node < y->node ? -1 : x->node > y->node;
}

void psplit_i_edits_sort(psplit_i_node_edits *edits) {
  if (edits->n) qsort(edits->items, edits->n, sizeof *edits->items, compare);
}

psplit_code psplit_i_pack_node(const struct Onnx__NodeProto *node, psplit_i_text *out,
                               psplit_diag *diag) {
  const size_t n = onnx__node_proto__get_packed_size(node);
  uint8_t *bytes = malloc(n + 1);
  if (!bytes) return psplit_i_nomem(diag);
  onnx__node_proto__pack(node, bytes);
  psplit_i_wire_bytes(out, PSPLIT_I_GRAPH_NODE, bytes, n);
  free(bytes);
  return out->failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}
