#include "scan.h"

#include "onnx_fields.h"

enum { MAX_SCAN_VALUES = 32 };

static const char *fresh(psplit_i_scan *scan) {
  return psplit_i_backward_name(scan->at->b, "step");
}

static const char *add_input(psplit_i_scan *scan) {
  const char *name = fresh(scan);
  psplit_i_put_value(&scan->inputs, PSPLIT_I_GRAPH_INPUT, name, scan->at->elem, 0, NULL);
  return name;
}

const char *psplit_i_scan_state(psplit_i_scan *scan, psplit_i_ref initial) {
  if (!psplit_i_vec_push(&scan->states, initial)) scan->at->b->failed = true;
  return add_input(scan);
}

const char *psplit_i_scan_row(psplit_i_scan *scan, psplit_i_ref rows) {
  if (!psplit_i_vec_push(&scan->rows, rows)) scan->at->b->failed = true;
  return add_input(scan);
}

const char *psplit_i_scan_outer(psplit_i_scan *scan, psplit_i_ref value) {
  return psplit_i_backward_capture(scan->at->b, value);
}

const char *psplit_i_scan_op(psplit_i_scan *scan, const char *op_type, const char *a,
                             const char *b) {
  const char *y = fresh(scan);
  const char *const inputs[] = {a, b, NULL}, *const outputs[] = {y, NULL};
  psplit_i_put_node(&scan->nodes, op_type, NULL, inputs, outputs, NULL);
  return y;
}

const char *psplit_i_scan_concat(psplit_i_scan *scan, const char *const *parts, size_t n) {
  const char *y = fresh(scan), *inputs[MAX_SCAN_VALUES + 1] = {NULL};
  const char *const outputs[] = {y, NULL};
  psplit_i_text attributes = {0};
  for (size_t i = 0; i < n && i < MAX_SCAN_VALUES; i++) inputs[i] = parts[i];
  psplit_i_put_attr_int(&attributes, "axis", -1);
  psplit_i_put_node(&scan->nodes, "Concat", NULL, inputs, outputs, &attributes);
  if (attributes.failed) scan->at->b->failed = true;
  psplit_i_text_fini(&attributes);
  return y;
}

void psplit_i_scan_output(psplit_i_scan *scan, const char *value) {
  /* An output has to be a node's, and no two the same. */
  const char *y = psplit_i_scan_op(scan, "Identity", value, NULL);
  psplit_i_put_value(&scan->outputs, PSPLIT_I_GRAPH_OUTPUT, y, scan->at->elem, 0, NULL);
  scan->n_outputs++;
}

psplit_i_ref psplit_i_scan_end(psplit_i_scan *scan, bool backwards) {
  psplit_i_backward *b = scan->at->b;
  ref inputs[MAX_SCAN_VALUES];
  int64_t directions[MAX_SCAN_VALUES];
  uint32_t n = 0;
  for (size_t i = 0; i < scan->states.n; i++) inputs[n++] = scan->states.items[i];
  for (size_t i = 0; i < scan->rows.n; i++) inputs[n++] = scan->rows.items[i];
  for (uint32_t i = 0; i < MAX_SCAN_VALUES; i++) directions[i] = 1;
  psplit_i_text *body = &scan->nodes;
  psplit_i_put_string(body, PSPLIT_I_GRAPH_NAME, "step");
  psplit_i_text_add(body, scan->inputs.bytes, scan->inputs.n);
  psplit_i_text_add(body, scan->outputs.bytes, scan->outputs.n);
  if (body->failed || scan->inputs.failed || scan->outputs.failed) b->failed = true;
  psplit_i_ref out = PSPLIT_NONE;
  if (!b->failed) {
    psplit_i_backward_attr_graph(b, "body", body->bytes, body->n);
    with_int(scan->at, "num_scan_inputs", (int64_t)scan->rows.n);
    if (backwards) {
      with_ints(scan->at, "scan_input_directions", directions, scan->rows.n);
      with_ints(scan->at, "scan_output_directions", directions, scan->n_outputs - scan->states.n);
    }
    out = psplit_i_backward_node(b, "Scan", n, inputs, scan->n_outputs);
  }
  psplit_i_text_fini(&scan->nodes);
  psplit_i_text_fini(&scan->inputs);
  psplit_i_text_fini(&scan->outputs);
  psplit_i_vec_fini(&scan->states);
  psplit_i_vec_fini(&scan->rows);
  return out;
}
