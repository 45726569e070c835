#include "resuming.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "all_reduce.h"
#include "saving.h"

enum { PATH_NUMBERS = 512 }; /* of a path, in place of so many numbers */

/* A psplit_i_decide: where the stages are to be written. */
static psplit_code decide_save(void *user, const double *reports, size_t n, double *answer,
                               psplit_diag *diag) {
  psplit_i_work *w = user;
  (void)reports, (void)n;
  const psplit_code code =
    psplit_i_checkpoint_begin(psplit_i_given(w)->checkpoint, diag, &w->writer);
  if (code != PSPLIT_OK) return code;
  const size_t n_path = strlen(w->writer.path) + 1;
  if (n_path > PATH_NUMBERS * sizeof *answer)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "%s: too long a path", psplit_i_given(w)->checkpoint);
  memset(answer, 0, PATH_NUMBERS * sizeof *answer);
  memcpy(answer, w->writer.path, n_path);
  return PSPLIT_OK;
}

static psplit_i_checkpoint_state state_of(const psplit_i_work *w) {
  const psplit_i_order *order = &w->feeding.order[PSPLIT_I_SET_TRAIN];
  const psplit_i_place place = psplit_i_order_place(order, w->step);
  return (psplit_i_checkpoint_state){.step = w->n_updates,
                                     .epoch = place.epoch,
                                     .batch = place.batch,
                                     .seed = psplit_i_given(w)->seed,
                                     .optimizer = w->device->pipe->manifest.training->optimizer,
                                     .n_rows = order->n_rows,
                                     .batch_rows = order->batch_rows,
                                     .n_micro_batches = order->n_micro_batches,
                                     .n_stages = w->device->pipe->manifest.n_stages};
}

/* A psplit_i_decide: all have written, and said how much. */
static psplit_code decide_commit(void *user, const double *reports, size_t n, double *answer,
                                 psplit_diag *diag) {
  psplit_i_work *w = user;
  const psplit_i_manifest *m = &w->device->pipe->manifest;
  const uint32_t n_line = w->setup->wiring.n_line;
  const psplit_i_checkpoint_state state = state_of(w);
  uint64_t *bytes = calloc((size_t)m->n_stages + 1, sizeof *bytes);
  if (!bytes) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < m->n_stages; s++)
    bytes[s] = (uint64_t)reports[n * (s % n_line) + s / n_line];
  const psplit_code code = psplit_i_checkpoint_commit(&w->writer, &state, m->training->weights,
                                                      m->training->n_weights, bytes, diag);
  free(bytes);
  answer[0] = 0;
  return code;
}

/* Tells who may interrupt the run that this is not to be: all devices are here, and write. */
static void tell_saving(psplit_i_work *w, bool saves) {
  const psplit_train_options *o = psplit_i_given(w);
  if (o->saving) o->saving(o->saving_user, saves);
  atomic_store(&w->device->watch.finishes, saves);
}

psplit_code psplit_i_save(psplit_i_work *w, psplit_diag *diag) {
  double path[PATH_NUMBERS] = {0}, ignored;
  psplit_code code;
  w->report[0] = 0;
  PSPLIT_TRY(psplit_i_all_reduce(w->device, w->report, 1,
                                 (psplit_i_reduction){decide_save, w, PATH_NUMBERS}, diag, path));
  tell_saving(w, true);
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++) {
    uint64_t bytes = 0;
    if (w->replica == 0)
      PSPLIT_TRY(psplit_i_save_stage(&w->learners[c], (const char *)path, diag, &bytes));
    w->report[c] = (double)bytes;
  }
  PSPLIT_TRY(psplit_i_all_reduce(w->device, w->report, w->setup->wiring.n_chunks,
                                 (psplit_i_reduction){decide_commit, w, 1}, diag, &ignored));
out:
  if (code != PSPLIT_OK)
    psplit_i_diag_show(diag, (const char *)path, psplit_i_given(w)->checkpoint);
  tell_saving(w, false);
  return code;
}

/* Weights and states of a checkpoint, in place of the first ones. */
psplit_code psplit_i_load(psplit_i_work *w, psplit_diag *diag) {
  const psplit_i_training_table *t = w->device->pipe->manifest.training;
  const char *path = psplit_i_given(w)->resume;
  psplit_code code = PSPLIT_OK;
  if (!path) return code;
  PSPLIT_TRY(psplit_i_checkpoint_open(path, diag, &w->resumed));
  PSPLIT_TRY(psplit_i_checkpoint_fits(w->resumed, t->weights, t->n_weights, t->optimizer, diag));
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++)
    PSPLIT_TRY(psplit_i_load_stage(&w->learners[c], w->resumed, diag));
  w->n_updates = psplit_i_checkpoint_state_of(w->resumed)->step;
out:
  return code;
}

/* Where the run goes on: a number of steps means the same only for the same batches. */
psplit_code psplit_i_find_place(psplit_i_work *w, psplit_diag *diag) {
  const psplit_i_order *order = &w->feeding.order[PSPLIT_I_SET_TRAIN];
  if (!w->resumed) return PSPLIT_OK;
  const psplit_i_checkpoint_state *s = psplit_i_checkpoint_state_of(w->resumed);
  if (s->n_rows != order->n_rows || s->batch_rows != order->batch_rows || s->seed != order->seed)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "%s is of a run with seed %" PRIu64 ", batches of %" PRIu64 " and %" PRIu64
                         " samples, not seed %" PRIu64 ", %" PRIu64 " and %" PRIu64,
                         psplit_i_given(w)->resume, s->seed, s->batch_rows, s->n_rows, order->seed,
                         order->batch_rows, order->n_rows);
  w->step = s->epoch * psplit_i_order_n_batches(order) + s->batch;
  return PSPLIT_OK;
}
