/* The object "training" of pipeline.json: docs/training.md says what it means,
 * docs/manifest.schema.json its form. */
#include <stdlib.h>
#include <string.h>

#include "manifest_inside.h"

static void write_transfers(const psplit_i_layout *layout, psplit_i_json *json) {
  uint32_t tag = 0;
  psplit_i_json_put_open(json, "transfers", '[');
  for (uint32_t t = 0; t < layout->plan.n_transfers; t++) {
    const psplit_plan_transfer *transfer = &layout->plan.transfers[t];
    if (psplit_i_goes_along(layout, t)) continue;
    psplit_i_open_row(json);
    psplit_i_json_put_uint(json, "tag", tag++);
    psplit_i_json_put_string(json, "tensor", transfer->tensor);
    psplit_i_json_put_uint(json, "from", layout->stage_of[transfer->from]);
    psplit_i_json_put_uint(json, "to", layout->stage_of[transfer->to]);
    psplit_i_manifest_type(json, &layout->backward.types[t]);
    psplit_i_close_row(json);
  }
  psplit_i_json_close(json, ']');
}

static int compare_copies(const void *a, const void *b) {
  const psplit_plan_copy *x = a, *y = b;
  return x->node != y->node ? (x->node < y->node ? -1 : 1)
                            : (x->stage > y->stage) - (x->stage < y->stage);
}

/* Stages that have a copy in this half. */
static void write_also(const psplit_i_layout *layout, const psplit_plan_copy *copies, uint32_t n,
                       int half, psplit_i_json *json) {
  psplit_i_json_put_open(json, half == PSPLIT_HALF_WEIGHTS ? "also_weight_gradients" : "also", '[');
  for (uint32_t c = 0; c < n; c++)
    if (layout->half_of[copies[c].stage] == half)
      psplit_i_json_uint(json, layout->stage_of[copies[c].stage]);
  psplit_i_json_close(json, ']');
}

/* Constants of the backward pass that stand in several stages, as the table of the forward one. */
static void write_duplicates(const psplit_i_layout *layout, psplit_i_json *json) {
  const psplit_plan *plan = &layout->plan;
  const bool apart = layout->training->weight_gradients == PSPLIT_WEIGHT_GRADIENTS_APART;
  const psplit_i_graph *graph = psplit_i_model_graph(layout->training->backward);
  psplit_plan_copy *copies = malloc((plan->n_copies + (size_t)1) * sizeof *copies);
  if (!copies) json->out->failed = true;
  if (!copies || !plan->n_copies) goto out;
  memcpy(copies, plan->copies, plan->n_copies * sizeof *copies);
  qsort(copies, plan->n_copies, sizeof *copies, compare_copies);
  psplit_i_json_put_open(json, "duplicates", '[');
  for (uint32_t c = 0; c < plan->n_copies;) {
    const uint32_t n = copies[c].node;
    uint32_t end = c;
    while (end < plan->n_copies && copies[end].node == n) end++;
    psplit_i_open_row(json);
    psplit_i_json_put_uint(json, "index", n);
    psplit_i_json_put_string(json, "node", graph->nodes[n].name);
    psplit_i_json_put_uint(json, "stage", layout->stage_of[plan->node_stage[n]]);
    if (layout->half_of[plan->node_stage[n]] == PSPLIT_HALF_WEIGHTS)
      psplit_i_json_put_string(json, "file", psplit_i_half_names[PSPLIT_HALF_WEIGHTS]);
    for (int h = 0; h < PSPLIT_N_HALVES; h++)
      if (h == PSPLIT_HALF_BACKWARD || apart) write_also(layout, copies + c, end - c, h, json);
    psplit_i_close_row(json);
    c = end;
  }
  psplit_i_json_close(json, ']');
out:
  free(copies);
}

void psplit_i_training_json(const psplit_i_layout *layout, psplit_i_json *json) {
  static const char *const recomputes[] = {[PSPLIT_RECOMPUTE_AUTO] = "auto",
                                           [PSPLIT_RECOMPUTE_NONE] = "none",
                                           [PSPLIT_RECOMPUTE_HEAVY] = "heavy",
                                           [PSPLIT_RECOMPUTE_ALL] = "all"};
  const psplit_training *training = layout->training;
  psplit_i_json_put_open(json, "training", '{');
  psplit_i_write_options(training, json);
  psplit_i_write_loss(layout, json);
  psplit_i_json_put_string(json, "weight_form",
                           training->weights == PSPLIT_WEIGHTS_INPUT ? "input" : "default");
  psplit_i_json_put_string(json, "optimizer", training->optimizer);
  psplit_i_json_put_string(json, "recompute", recomputes[training->recompute]);
  psplit_i_write_weights(layout, json);
  psplit_i_write_masks(layout, json);
  psplit_i_write_input_gradients(layout, json);
  psplit_i_write_training_stages(layout, json);
  write_transfers(layout, json);
  write_duplicates(layout, json);
  psplit_i_json_close(json, '}');
}
