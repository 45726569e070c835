#include "policy_file.h"

#include <math.h>
#include <psplit/file.h>
#include <psplit/model.h>
#include <psplit/model_text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "policy.h"

enum { FLOAT_TYPE = 1 };

/* Tensors of all rounds are in the file one by one. */
static uint32_t parts_of(const psplit_i_tensor_row *t) {
  return strncmp(t->name, "round_", 6) == 0 ? PSPLIT_I_ROUNDS : 1;
}

static void name_of(const psplit_i_tensor_row *t, uint32_t part, char name[64]) {
  if (parts_of(t) == 1)
    snprintf(name, 64, "%s", t->name);
  else
    snprintf(name, 64, "%s_%u", t->name, part);
}

/* Rows and columns as the graph multiplies by them. */
static void shape_of(const psplit_i_tensor_row *t, uint32_t *rows, uint32_t *columns) {
  const bool column = strcmp(t->name, "score_out") == 0 || strcmp(t->name, "schedule_out") == 0;
  *rows = column ? t->columns : t->rows / parts_of(t);
  *columns = column ? 1 : t->columns;
}

static void add_weights(psplit_i_text *text, const psplit_policy *policy) {
  const psplit_i_real *all = (const psplit_i_real *)&policy->network;
  for (uint32_t i = 0; i < psplit_i_policy_n_tensors; i++) {
    const psplit_i_tensor_row *t = &psplit_i_policy_tensors[i];
    uint32_t rows, columns;
    shape_of(t, &rows, &columns);
    for (uint32_t part = 0; part < parts_of(t); part++) {
      char name[64];
      name_of(t, part, name);
      psplit_i_text_addf(text, "  float[%u,%u] %s = raw x\"", rows, columns, name);
      const psplit_i_real *w = all + t->offset + (size_t)part * rows * columns;
      for (uint32_t k = 0; k < rows * columns; k++) {
        const float value = (float)w[k];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        psplit_i_text_addf(text, "%02x%02x%02x%02x", bits & 255, bits >> 8 & 255, bits >> 16 & 255,
                           bits >> 24);
      }
      psplit_i_text_puts(text, "\",\n");
    }
  }
}

static const char HEAD[] =
  "<\n  ir_version: 8,\n  opset_import: [\"\": 16],\n  producer_name: \"onnx-pipeline-split\"\n>\n"
  "policy (float[items,%u] item_features, int64[edges] edge_from, int64[edges] edge_to,\n"
  "  float[edges,1] share_of_to, float[edges,1] share_of_from, int64[1] item,\n"
  "  float[1,%u] memory, float[candidates,%u] candidate_features, int64[1] chosen,\n"
  "  float[schedules,%u] schedule_features)\n"
  "  => (float[candidates,1] score, float[1,%u] next_memory, float[1,%u] start_memory,\n"
  "  float[schedules,1] schedule_score)\n<\n";

static const char DECISION[] =
  "  pooled = ReduceMean <axes = [0], keepdims = 1> (e%u)\n"
  "  start_product = MatMul (pooled, start_weight)\n"
  "  start_sum = Add (start_product, start_bias)\n"
  "  start_memory = Tanh (start_sum)\n"
  "  here = Gather <axis = 0> (e%u, item)\n"
  "  score_1 = MatMul (here, score_item)\n"
  "  score_2 = MatMul (memory, score_memory)\n"
  "  score_3 = MatMul (candidate_features, score_candidate)\n"
  "  score_4 = Add (score_1, score_bias)\n"
  "  score_5 = Add (score_4, score_2)\n"
  "  score_6 = Add (score_5, score_3)\n"
  "  score_7 = Relu (score_6)\n"
  "  score = MatMul (score_7, score_out)\n"
  "  taken = Gather <axis = 0> (candidate_features, chosen)\n"
  "  gru_1 = MatMul (here, gru_item)\n"
  "  gru_2 = MatMul (taken, gru_candidate)\n"
  "  gru_3 = Add (gru_1, gru_bias)\n"
  "  gru_x = Add (gru_3, gru_2)\n"
  "  gru_4 = MatMul (memory, gru_memory)\n"
  "  gru_h = Add (gru_4, gru_memory_bias)\n"
  "  x_reset, x_update, x_new = Split <axis = 1> (gru_x, gates)\n"
  "  h_reset, h_update, h_new = Split <axis = 1> (gru_h, gates)\n"
  "  reset_sum = Add (x_reset, h_reset)\n"
  "  reset = Sigmoid (reset_sum)\n"
  "  update_sum = Add (x_update, h_update)\n"
  "  update = Sigmoid (update_sum)\n"
  "  reset_part = Mul (reset, h_new)\n"
  "  new_sum = Add (x_new, reset_part)\n"
  "  new = Tanh (new_sum)\n"
  "  change = Sub (memory, new)\n"
  "  kept = Mul (update, change)\n"
  "  next_memory = Add (new, kept)\n"
  "  schedule_1 = MatMul (schedule_features, schedule_in)\n"
  "  schedule_2 = Add (schedule_1, schedule_bias)\n"
  "  schedule_3 = Relu (schedule_2)\n"
  "  schedule_score = MatMul (schedule_3, schedule_out)\n}\n";

static void add_rounds(psplit_i_text *text) {
  psplit_i_text_puts(text,
                     "  to_index = Unsqueeze (edge_to, last_axis)\n"
                     "  from_index = Unsqueeze (edge_from, last_axis)\n"
                     "  item_product = MatMul (item_features, item_weight)\n"
                     "  item_sum = Add (item_product, item_bias)\n"
                     "  e0 = Relu (item_sum)\n");
  for (uint32_t r = 0; r < PSPLIT_I_ROUNDS; r++)
    psplit_i_text_addf(
      text,
      "  none_%u = Mul (e%u, zero)\n"
      "  sent_%u = Gather <axis = 0> (e%u, edge_from)\n"
      "  sent_part_%u = Mul (sent_%u, share_of_to)\n"
      "  pred_%u = ScatterND <reduction = \"add\"> (none_%u, to_index, sent_part_%u)\n"
      "  back_%u = Gather <axis = 0> (e%u, edge_to)\n"
      "  back_part_%u = Mul (back_%u, share_of_from)\n"
      "  succ_%u = ScatterND <reduction = \"add\"> (none_%u, from_index, back_part_%u)\n"
      "  self_product_%u = MatMul (e%u, round_self_%u)\n"
      "  pred_product_%u = MatMul (pred_%u, round_pred_%u)\n"
      "  succ_product_%u = MatMul (succ_%u, round_succ_%u)\n"
      "  sum_1_%u = Add (self_product_%u, round_bias_%u)\n"
      "  sum_2_%u = Add (sum_1_%u, pred_product_%u)\n"
      "  sum_3_%u = Add (sum_2_%u, succ_product_%u)\n"
      "  relu_%u = Relu (sum_3_%u)\n"
      "  e%u = Add (e%u, relu_%u)\n",
      r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r,
      r, r, r, r, r, r + 1, r, r);
}

psplit_code psplit_policy_write(const psplit_policy *policy, const char *path, psplit_diag *diag) {
  psplit_i_text text = {0};
  void *bytes;
  size_t n;
  psplit_i_text_addf(&text, HEAD, PSPLIT_I_ITEM_FEATURES, PSPLIT_I_MEMORY,
                     PSPLIT_I_CANDIDATE_FEATURES, PSPLIT_I_SCHEDULE_FEATURES, PSPLIT_I_MEMORY,
                     PSPLIT_I_MEMORY);
  add_weights(&text, policy);
  psplit_i_text_addf(&text, "  int64[3] gates = {%u, %u, %u},\n", PSPLIT_I_MEMORY, PSPLIT_I_MEMORY,
                     PSPLIT_I_MEMORY);
  psplit_i_text_puts(&text, "  int64[1] last_axis = {1},\n  float zero = {0}\n> {\n");
  add_rounds(&text);
  psplit_i_text_addf(&text, DECISION, PSPLIT_I_ROUNDS, PSPLIT_I_ROUNDS);
  psplit_code code = text.failed
                       ? psplit_i_nomem(diag)
                       : psplit_model_parse_text(text.bytes, text.n, NULL, diag, &bytes, &n);
  psplit_i_text_fini(&text);
  if (code != PSPLIT_OK) return code;
  code = psplit_file_write(path, bytes, n, NULL, diag);
  free(bytes);
  return code;
}

static psplit_code read_tensor(const psplit_model *model, const char *path,
                               const psplit_i_tensor_row *t, uint32_t part, psplit_i_real *out,
                               psplit_diag *diag) {
  char name[64];
  uint32_t rows, columns;
  psplit_initializer found;
  name_of(t, part, name);
  shape_of(t, &rows, &columns);
  const size_t n = (size_t)rows * columns;
  if (psplit_model_initializer(model, name, NULL, &found) != PSPLIT_OK ||
      found.data_type != FLOAT_TYPE || found.n_dims != 2 || found.dims[0] != rows ||
      found.dims[1] != columns)
    return psplit_i_fail(diag, PSPLIT_MALFORMED,
                         "%s: no policy that onnx-pipeline-learn wrote: it has no %ux%u floats "
                         "\"%s\"",
                         path, rows, columns, name);
  float *values = malloc(n * sizeof *values);
  if (!values) return psplit_i_nomem(diag);
  psplit_code code = psplit_model_read_initializer(model, name, values, n * sizeof *values, diag);
  for (size_t k = 0; k < n && code == PSPLIT_OK; k++) {
    out[k] = values[k];
    if (!(fabs((double)values[k]) < PSPLIT_I_MOST_WEIGHT))
      code = psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: %s holds what is not a weight", path, name);
  }
  free(values);
  return code;
}

psplit_code psplit_policy_read(const char *path, psplit_diag *diag, psplit_policy **out_policy) {
  psplit_model *model = NULL;
  psplit_policy *policy = NULL;
  psplit_code code = psplit_model_open(path, NULL, diag, &model);
  if (code == PSPLIT_OK) code = psplit_policy_create(0, diag, &policy);
  for (uint32_t i = 0; i < psplit_i_policy_n_tensors && code == PSPLIT_OK; i++) {
    const psplit_i_tensor_row *t = &psplit_i_policy_tensors[i];
    psplit_i_real *w = (psplit_i_real *)&policy->network + t->offset;
    const size_t n = (size_t)t->rows * t->columns / parts_of(t);
    for (uint32_t part = 0; part < parts_of(t) && code == PSPLIT_OK; part++)
      code = read_tensor(model, path, t, part, w + n * part, diag);
  }
  psplit_model_close(model);
  if (code == PSPLIT_OK)
    *out_policy = policy;
  else
    psplit_policy_destroy(policy);
  return code;
}
