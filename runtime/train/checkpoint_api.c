/* The API of psplit/checkpoint.h. */
#include <psplit/checkpoint.h>
#include <psplit/emit.h>
#include <stdlib.h>

#include "checkpoint.h"

struct psplit_checkpoint {
  psplit_i_checkpoint *of;
  psplit_checkpoint_info info;
  psplit_checkpoint_weight *weights;
};

void psplit_checkpoint_close(psplit_checkpoint *checkpoint) {
  if (!checkpoint) return;
  psplit_i_checkpoint_close(checkpoint->of);
  free(checkpoint->weights);
  free(checkpoint);
}

psplit_code psplit_checkpoint_open(const char *path, psplit_diag *diag,
                                   psplit_checkpoint **out_checkpoint) {
  psplit_checkpoint *c = calloc(1, sizeof *c);
  psplit_code code = c ? psplit_i_checkpoint_open(path, diag, &c->of) : psplit_i_nomem(diag);
  if (code != PSPLIT_OK) goto out;
  const psplit_i_checkpoint_state *state = psplit_i_checkpoint_state_of(c->of);
  const psplit_i_trained_weight *weights = psplit_i_checkpoint_weights(c->of, &c->info.n_weights);
  c->weights = calloc(c->info.n_weights + (size_t)1, sizeof *c->weights);
  if (!c->weights) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t i = 0; i < c->info.n_weights; i++) {
    const psplit_i_stored *stored = psplit_i_checkpoint_find(c->of, weights[i].name);
    c->weights[i] = (psplit_checkpoint_weight){.name = stored->name,
                                               .data_type = stored->data_type,
                                               .n_dims = stored->n_dims,
                                               .dims = stored->dims,
                                               .n_bytes = stored->n_bytes};
  }
  c->info.step = state->step;
  c->info.seed = state->seed;
  c->info.optimizer = state->optimizer;
  c->info.n_stages = state->n_stages;
  c->info.weights = c->weights;
out:
  if (code == PSPLIT_OK)
    *out_checkpoint = c;
  else
    psplit_checkpoint_close(c);
  return code;
}

const psplit_checkpoint_info *psplit_checkpoint_get_info(const psplit_checkpoint *checkpoint) {
  return &checkpoint->info;
}

psplit_code psplit_checkpoint_read(const psplit_checkpoint *checkpoint, uint32_t index,
                                   psplit_diag *diag, void *out) {
  if (index >= checkpoint->info.n_weights)
    return psplit_i_fail(diag, PSPLIT_USAGE, "a checkpoint of %u weights has no weight %u",
                         checkpoint->info.n_weights, index);
  return psplit_i_checkpoint_read(
    checkpoint->of, psplit_i_checkpoint_find(checkpoint->of, checkpoint->weights[index].name), diag,
    out);
}

psplit_code psplit_checkpoint_export(const psplit_checkpoint *checkpoint, const psplit_model *model,
                                     const char *path, const psplit_emit_options *options,
                                     psplit_diag *diag) {
  const uint32_t n = checkpoint->info.n_weights;
  psplit_weight_value *values = calloc(n + (size_t)1, sizeof *values);
  psplit_code code = values ? PSPLIT_OK : psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n && code == PSPLIT_OK; i++) {
    const psplit_checkpoint_weight *weight = &checkpoint->weights[i];
    void *data = malloc((size_t)weight->n_bytes + 1);
    values[i] = (psplit_weight_value){.name = weight->name,
                                      .data_type = weight->data_type,
                                      .n_dims = weight->n_dims,
                                      .dims = weight->dims,
                                      .n_bytes = weight->n_bytes,
                                      .data = data};
    code = data ? psplit_checkpoint_read(checkpoint, i, diag, data) : psplit_i_nomem(diag);
  }
  if (code == PSPLIT_OK) code = psplit_emit_new_values(model, values, n, path, options, diag);
  for (uint32_t i = 0; values && i < n; i++) free((void *)(uintptr_t)values[i].data);
  free(values);
  return code;
}
