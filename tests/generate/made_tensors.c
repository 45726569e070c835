#include "made_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "casts.h"

struct psplit_i_tensor {
  psplit_i_tensor_view view;
  int n_holders;
};
made_tensors made;

psplit_code __wrap_psplit_i_tensor_create(const psplit_i_ort *ort, int32_t data_type,
                                          const int64_t *dims, size_t n_dims, psplit_diag *diag,
                                          psplit_i_tensor **out);
psplit_code __wrap_psplit_i_tensor_look(const psplit_i_tensor *tensor, psplit_diag *diag,
                                        psplit_i_tensor_view *out);
psplit_i_tensor *__wrap_psplit_i_tensor_hold(psplit_i_tensor *tensor);
void __wrap_psplit_i_tensor_release(psplit_i_tensor *tensor);
void __wrap_psplit_i_tensors_release(psplit_i_tensor **tensors, size_t n);
psplit_code __wrap_psplit_i_feed_open(const psplit_i_feed_input *input,
                                      const psplit_i_feed_options *options,
                                      uint32_t n_micro_batches, psplit_diag *diag,
                                      psplit_i_feed *out, bool *out_used);
psplit_code __wrap_psplit_i_feed_get(const psplit_i_feed *feed, uint32_t micro_batch,
                                     psplit_diag *diag, psplit_i_tensor **out);
void __wrap_psplit_i_feed_close(psplit_i_feed *feed);
psplit_code __wrap_psplit_i_array_read(const psplit_i_ort *ort, const char *path,
                                       const char *member, const psplit_i_array_wanted *wanted,
                                       psplit_diag *diag, psplit_i_tensor **out);

psplit_code __wrap_psplit_i_tensor_create(const psplit_i_ort *ort, int32_t data_type,
                                          const int64_t *dims, size_t n_dims, psplit_diag *diag,
                                          psplit_i_tensor **out) {
  (void)ort;
  psplit_i_tensor *t = calloc(1, sizeof *t);
  if (!t) return psplit_i_nomem(diag);
  t->n_holders = 1;
  t->view.data_type = data_type;
  t->view.n_dims = n_dims;
  if (n_dims) memcpy(t->view.dims, dims, n_dims * sizeof *dims);
  if (made.create_fails || !data_type ||
      !psplit_i_tensor_size(data_type, dims, n_dims, &t->view.n_elements, &t->view.n_bytes)) {
    free(t);
    return psplit_i_fail(diag, PSPLIT_PLUGIN, "no such tensor can be made");
  }
  t->view.data = calloc(1, (size_t)t->view.n_bytes + 1);
  if (!t->view.data) {
    free(t);
    return psplit_i_nomem(diag);
  }
  made.n_live++;
  *out = t;
  return PSPLIT_OK;
}

psplit_i_tensor *made_tensor(int32_t data_type, const int64_t *dims, size_t n_dims,
                             const double *numbers) {
  psplit_i_tensor *t = NULL;
  if (__wrap_psplit_i_tensor_create(NULL, data_type, dims, n_dims, NULL, &t) != PSPLIT_OK) abort();
  for (uint64_t i = 0; numbers && i < t->view.n_elements; i++)
    psplit_i_tensor_set_number(&t->view, i, numbers[i]);
  return t;
}

psplit_code __wrap_psplit_i_tensor_look(const psplit_i_tensor *tensor, psplit_diag *diag,
                                        psplit_i_tensor_view *out) {
  if (made.look_fails) return psplit_i_fail(diag, PSPLIT_PLUGIN, "no look is taken");
  *out = tensor->view;
  return PSPLIT_OK;
}

psplit_i_tensor *__wrap_psplit_i_tensor_hold(psplit_i_tensor *tensor) {
  if (tensor) tensor->n_holders++;
  return tensor;
}

void __wrap_psplit_i_tensor_release(psplit_i_tensor *tensor) {
  if (!tensor || --tensor->n_holders) return;
  made.n_live--;
  free(tensor->view.data);
  free(tensor);
}

void __wrap_psplit_i_tensors_release(psplit_i_tensor **tensors, size_t n) {
  for (size_t i = 0; tensors && i < n; i++) {
    __wrap_psplit_i_tensor_release(tensors[i]);
    tensors[i] = NULL;
  }
}

psplit_code __wrap_psplit_i_feed_open(const psplit_i_feed_input *input,
                                      const psplit_i_feed_options *options,
                                      uint32_t n_micro_batches, psplit_diag *diag,
                                      psplit_i_feed *out, bool *out_used) {
  (void)n_micro_batches;
  *out = (psplit_i_feed){.input = input->name, .give = options->given.give};
  *out_used = true;
  made.needs_prompts |= options->given.give != NULL;
  if (made.file_fails) return psplit_i_fail(diag, PSPLIT_IO, "no file %s", input->name);
  return PSPLIT_OK;
}

/* What nobody gives is asked for; else the number of the sequence. */
psplit_code __wrap_psplit_i_feed_get(const psplit_i_feed *feed, uint32_t micro_batch,
                                     psplit_diag *diag, psplit_i_tensor **out) {
  psplit_tensor_view unused;
  made.given_for = micro_batch;
  if (feed->give) return feed->give(NULL, micro_batch, feed->input, diag, &unused);
  return __wrap_psplit_i_tensor_create(NULL, 1, &(int64_t){1}, 1, diag, out);
}

void __wrap_psplit_i_feed_close(psplit_i_feed *feed) { (void)feed; }

psplit_code __wrap_psplit_i_array_read(const psplit_i_ort *ort, const char *path,
                                       const char *member, const psplit_i_array_wanted *wanted,
                                       psplit_diag *diag, psplit_i_tensor **out) {
  (void)ort, (void)member, (void)wanted;
  snprintf(made.read, sizeof made.read, "%s", path);
  if (made.file_fails) return psplit_i_fail(diag, PSPLIT_IO, "no file %s", path);
  return __wrap_psplit_i_tensor_create(NULL, 1, (const int64_t[]){1, 8}, 2, diag, out);
}
