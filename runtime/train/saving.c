#include "saving.h"

#include <stdlib.h>

/* What a stage has to save, by name. */
typedef struct owned {
  const char **names;        /* [n] */
  psplit_i_tensor ***places; /* [n] where each is */
  size_t n;
} owned;

static void free_owned(owned *o) {
  free(o->names);
  free(o->places);
}

static psplit_code list_owned(const psplit_i_learner *l, psplit_diag *diag, owned *out) {
  const psplit_i_training_table *t = l->pipe->manifest.training;
  const psplit_i_update_part *update = &l->parts->update;
  const size_t most = (size_t)t->n_weights + update->n_kept + 1;
  owned o = {calloc(most, sizeof *o.names), calloc(most, sizeof *o.places), 0};
  if (!o.names || !o.places) {
    free_owned(&o);
    return psplit_i_nomem(diag);
  }
  for (uint32_t w = 0; w < t->n_weights; w++) {
    if (!psplit_i_learner_owns(l, w) || !l->weights[w]) continue;
    o.names[o.n] = t->weights[w].name;
    o.places[o.n++] = &l->weights[w];
  }
  for (uint32_t k = 0; k < update->n_kept; k++) {
    if (!update->kept[k].is_state) continue;
    o.names[o.n] = update->kept[k].name;
    o.places[o.n++] = &l->states[k];
  }
  *out = o;
  return PSPLIT_OK;
}

psplit_code psplit_i_save_stage(const psplit_i_learner *l, const char *hidden, psplit_diag *diag,
                                uint64_t *out_bytes) {
  owned o;
  psplit_code code = list_owned(l, diag, &o);
  if (code != PSPLIT_OK) return code;
  psplit_i_checkpoint_tensor *tensors = calloc(o.n + 1, sizeof *tensors);
  psplit_i_tensor_view *views = calloc(o.n + 1, sizeof *views);
  if (!tensors || !views) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (size_t i = 0; i < o.n; i++) {
    const psplit_i_tensor_view *view = &views[i];
    PSPLIT_TRY(psplit_i_tensor_look(*o.places[i], diag, &views[i]));
    tensors[i] = (psplit_i_checkpoint_tensor){.as = {.name = o.names[i],
                                                     .data_type = view->data_type,
                                                     .n_dims = (uint32_t)view->n_dims,
                                                     .dims = view->dims,
                                                     .n_bytes = view->n_bytes},
                                              .data = view->data};
  }
  code = psplit_i_checkpoint_write_stage(hidden, l->index, tensors, o.n, diag, out_bytes);
out:
  free(tensors);
  free(views);
  free_owned(&o);
  return code;
}

static psplit_code load_one(const psplit_i_learner *l, const psplit_i_checkpoint *checkpoint,
                            const char *name, psplit_diag *diag, psplit_i_tensor **place) {
  psplit_i_tensor_view view;
  psplit_i_tensor *made = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_look(*place, diag, &view));
  PSPLIT_TRY(
    psplit_i_tensor_make(l->ort, view.data_type, view.dims, view.n_dims, diag, &made, &view));
  PSPLIT_TRY(psplit_i_checkpoint_load(checkpoint, name, view.data_type, view.dims,
                                      (uint32_t)view.n_dims, diag, view.data));
  psplit_i_tensor_release(*place);
  *place = made;
  made = NULL;
out:
  psplit_i_tensor_release(made);
  return code;
}

psplit_code psplit_i_load_stage(psplit_i_learner *l, const psplit_i_checkpoint *checkpoint,
                                psplit_diag *diag) {
  owned o = {0};
  psplit_code code = list_owned(l, diag, &o);
  for (size_t i = 0; code == PSPLIT_OK && i < o.n; i++)
    code = load_one(l, checkpoint, o.names[i], diag, o.places[i]);
  free_owned(&o);
  return code;
}
