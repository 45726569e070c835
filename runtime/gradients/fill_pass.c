#include "fill_pass.h"

#include <stdlib.h>
#include <string.h>

#include "feed_check.h"
#include "options.h"

/* Weights of a branch that was inlined are not in the main graph of the model as its file has
 * it. */
static psplit_code inline_ifs(psplit_i_checked_model *c, const psplit_i_manifest *m,
                              const psplit_gradient_check_options *options, psplit_diag *diag) {
  psplit_code code;
  psplit_inline_if *choices = calloc((size_t)m->n_inlined + 1, sizeof *choices);
  psplit_read_options read;
  psplit_read_options_init(&read);
  if (!choices) return psplit_i_nomem(diag);
  if (!options->model_path)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE,
                              "the stages are of the model with Ifs inlined, and it is not said "
                              "where it can be read again"));
  for (uint32_t r = 0; r < m->n_inlined; r++)
    choices[r] = (psplit_inline_if){m->inlined[r].node, m->inlined[r].then_branch};
  if (options->read)
    PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_read_options, options->read, &read, diag));
  read.inline_ifs = choices;
  read.n_inline_ifs = m->n_inlined;
  read.cancel = options->cancel;
  PSPLIT_TRY(psplit_model_open(options->model_path, &read, diag, &c->inlined));
  c->model = c->inlined;
out:
  free(choices);
  return code;
}

/* Weights that are Constant nodes of the model are read as initializers. */
static psplit_code move_constants(psplit_i_checked_model *c, const psplit_i_training_table *table,
                                  psplit_diag *diag) {
  const char **names = calloc((size_t)table->n_weights + 1, sizeof *names);
  if (!names) return psplit_i_nomem(diag);
  for (uint32_t w = 0; w < table->n_weights; w++) names[w] = table->weights[w].name;
  const psplit_code code =
    psplit_model_move_constants(c->model, names, table->n_weights, diag, &c->moved);
  if (c->moved) c->model = c->moved;
  free(names);
  return code;
}

psplit_code psplit_i_checked_model_open(const psplit_model *model,
                                        const psplit_i_manifest *manifest,
                                        const psplit_gradient_check_options *options,
                                        psplit_diag *diag, psplit_i_checked_model *out) {
  psplit_code code = PSPLIT_OK;
  *out = (psplit_i_checked_model){.model = model};
  if (manifest->n_inlined) PSPLIT_TRY(inline_ifs(out, manifest, options, diag));
  PSPLIT_TRY(move_constants(out, manifest->training, diag));
out:
  return code;
}

void psplit_i_checked_model_close(psplit_i_checked_model *checked) {
  psplit_model_close(checked->moved);
  psplit_model_close(checked->inlined);
}

psplit_code psplit_i_pass_fill(psplit_i_train_pass *pass, psplit_i_pass_kind kind, const char *name,
                               psplit_i_tensor *tensor, psplit_diag *diag) {
  uint32_t slot = PSPLIT_NONE;
  const psplit_code code = psplit_i_train_pass_slot(pass, kind, 0, name, diag, &slot);
  psplit_i_train_pass_put(pass, slot, tensor);
  return code;
}

/* A weight's first value, or with `zeros` the zeros that its gradient is added to. */
static psplit_code put_weight(psplit_i_train_pass *pass, const psplit_model *model,
                              psplit_i_pass_kind kind, const char *name, const char *zeros,
                              psplit_diag *diag) {
  psplit_code code;
  psplit_initializer initializer;
  psplit_i_tensor *tensor = NULL;
  psplit_i_tensor_view view;
  PSPLIT_TRY(psplit_model_initializer(model, name, diag, &initializer));
  PSPLIT_TRY(psplit_i_tensor_make(pass->ort, initializer.data_type, initializer.dims,
                                  initializer.n_dims, diag, &tensor, &view));
  if (zeros && view.n_bytes)
    memset(view.data, 0, (size_t)view.n_bytes);
  else if (!zeros)
    PSPLIT_TRY(psplit_model_read_initializer(model, name, view.data, view.n_bytes, diag));
  code = psplit_i_pass_fill(pass, kind, zeros ? zeros : name, tensor, diag);
  tensor = NULL;
out:
  psplit_i_tensor_release(tensor);
  return code;
}

psplit_code psplit_i_pass_fill_weights(psplit_i_train_pass *pass, const psplit_model *model,
                                       psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_training_table *table = pass->pipe->manifest.training;
  for (uint32_t w = 0; w < table->n_weights; w++) {
    const psplit_i_trained_weight *row = &table->weights[w];
    PSPLIT_TRY(put_weight(pass, model, PSPLIT_I_PASS_WEIGHT, row->name, NULL, diag));
    if (row->before)
      PSPLIT_TRY(put_weight(pass, model, PSPLIT_I_PASS_BEFORE, row->name, row->before, diag));
    for (uint32_t i = 0; i < row->n_more; i++)
      PSPLIT_TRY(
        put_weight(pass, model, PSPLIT_I_PASS_BEFORE, row->name, row->more[i].before, diag));
  }
out:
  return code;
}

const psplit_i_session_port *psplit_i_pass_find_input(const psplit_i_train_pass *pass,
                                                      const char *name, uint32_t *out_stage) {
  const psplit_i_manifest *m = &pass->pipe->manifest;
  for (uint32_t s = 0; s < m->n_stages; s++)
    for (uint32_t i = 0; i < m->stages[s].n_inputs; i++) {
      const psplit_i_row *row = &m->stages[s].inputs[i];
      if (row->from != PSPLIT_I_FROM_MODEL || strcmp(row->tensor, name) != 0) continue;
      *out_stage = s;
      return psplit_i_session_input(&pass->forward[s].session, row->name);
    }
  *out_stage = PSPLIT_NONE;
  return NULL;
}

psplit_code psplit_i_pass_fill_data(psplit_i_train_pass *pass, const psplit_feed_options *given,
                                    psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest *m = &pass->pipe->manifest;
  psplit_i_feed_options options = {0};
  PSPLIT_TRY(psplit_i_take_feed(given, diag, &options.given));
  PSPLIT_TRY(psplit_i_feed_meet(&options, pass->pipe, diag));
  for (uint32_t i = 0; i < m->n_inputs; i++) {
    uint32_t stage;
    bool used;
    psplit_i_feed feed = {0};
    psplit_i_tensor *tensor = NULL;
    const psplit_i_feed_input input = {pass->ort,
                                       psplit_i_pass_find_input(pass, m->inputs[i], &stage),
                                       m->inputs[i], i >= m->n_needed};
    if (stage == PSPLIT_NONE) continue; /* no stage reads it */
    PSPLIT_TRY(psplit_i_feed_open(&input, &options, 1, diag, &feed, &used));
    code = used ? psplit_i_feed_get(&feed, 0, diag, &tensor) : PSPLIT_OK;
    if (used) psplit_i_feed_close(&feed);
    if (code != PSPLIT_OK) goto out;
    PSPLIT_TRY(psplit_i_pass_fill(pass, PSPLIT_I_PASS_DATA, m->inputs[i], tensor, diag));
  }
out:
  return code;
}
