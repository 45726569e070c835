#include "learner_inside.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "smoothing.h"

static void put(psplit_i_tensor **slot, psplit_i_tensor *tensor) {
  psplit_i_tensor_release(*slot);
  *slot = tensor;
}

/* --- one piece --- */

/* A scalar of type float32, float64 or int64. */
static psplit_code make_scalar(const psplit_i_ort *ort, int32_t data_type, double value,
                               psplit_diag *diag, psplit_i_tensor **out) {
  enum { FLOAT = 1, INT64 = 7, DOUBLE = 11 };
  psplit_i_tensor_view view;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_make(ort, data_type, NULL, 0, diag, out, &view));
  if (data_type == FLOAT)
    *(float *)view.data = (float)value;
  else if (data_type == DOUBLE)
    *(double *)view.data = value;
  else if (data_type == INT64)
    *(int64_t *)view.data = (int64_t)value;
  else
    code = psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "a scalar of type %s",
                         psplit_i_element_name(data_type));
out:
  return code;
}

/* What scalars a piece is given, made for it. */
typedef struct scalars {
  double loss, rate, scale;
  int64_t update;
  psplit_i_tensor *made[4];
  uint32_t n;
} scalars;

static psplit_code give_scalar(psplit_i_learner *l, const psplit_i_learner_file *f, uint32_t i,
                               scalars *s, psplit_diag *diag) {
  const psplit_i_origin origin = f->inputs[i].origin;
  const double value = origin == PSPLIT_I_ORIGIN_LOSS    ? s->loss
                       : origin == PSPLIT_I_ORIGIN_RATE  ? s->rate
                       : origin == PSPLIT_I_ORIGIN_SCALE ? s->scale
                                                         : (double)s->update;
  const psplit_i_session_port *port = psplit_i_session_input(&f->session, f->input_names[i]);
  if (s->n == sizeof s->made / sizeof *s->made)
    return psplit_i_fail(diag, PSPLIT_INVALID, "%s has too many scalars", f->file);
  const psplit_code code = make_scalar(l->ort, port->data_type, value, diag, &s->made[s->n]);
  if (code == PSPLIT_OK) f->given[i] = s->made[s->n++];
  return code;
}

psplit_code psplit_i_learner_zeros(const psplit_i_ort *ort, const psplit_i_tensor *like,
                                   psplit_diag *diag, psplit_i_tensor **out) {
  psplit_i_tensor_view view;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_look(like, diag, &view));
  PSPLIT_TRY(psplit_i_tensor_make(ort, view.data_type, view.dims, view.n_dims, diag, out, &view));
  if (view.n_bytes) memset(view.data, 0, (size_t)view.n_bytes);
out:
  return code;
}

static psplit_code give_one(psplit_i_learner *l, psplit_i_learner_file *f,
                            const psplit_i_held *held, scalars *s, uint32_t i, psplit_diag *diag) {
  const uint32_t k = f->inputs[i].index;
  psplit_code code = PSPLIT_OK;
  const psplit_i_origin origin = f->inputs[i].origin;
  assert(held || (origin != PSPLIT_I_ORIGIN_DATA && origin != PSPLIT_I_ORIGIN_STASH &&
                  origin != PSPLIT_I_ORIGIN_KEPT));
  switch (origin) {
    case PSPLIT_I_ORIGIN_DATA: f->given[i] = held->data[k]; break;
    case PSPLIT_I_ORIGIN_WIRE: f->given[i] = l->received[k]; break;
    case PSPLIT_I_ORIGIN_WEIGHT:
      /* The update, which is of no micro-batch, moves the weights themselves. */
      f->given[i] = held && held->perturbed && l->perturbed[k] ? l->perturbed[k] : l->weights[k];
      break;
    case PSPLIT_I_ORIGIN_STASH: f->given[i] = held->stash[k]; break;
    case PSPLIT_I_ORIGIN_AGAIN: f->given[i] = l->again.got[k]; break;
    case PSPLIT_I_ORIGIN_BACKWARD: f->given[i] = l->backward.got[k]; break;
    case PSPLIT_I_ORIGIN_KEPT: f->given[i] = held->kept[k]; break;
    case PSPLIT_I_ORIGIN_STATE: f->given[i] = l->states[k]; break;
    case PSPLIT_I_ORIGIN_GRADIENT:
      if (!l->sums[k])
        code = psplit_i_learner_zeros(l->ort, l->weights[l->gradient_weight[k]], diag, &l->sums[k]);
      f->given[i] = l->sums[k];
      break;
    case PSPLIT_I_ORIGIN_LOSS:
    case PSPLIT_I_ORIGIN_RATE:
    case PSPLIT_I_ORIGIN_SCALE:
    case PSPLIT_I_ORIGIN_STEP: return give_scalar(l, f, i, s, diag);
  }
  if (code == PSPLIT_OK && !f->given[i])
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "%s: no value for %s", f->file, f->input_names[i]);
  return code;
}

/* Runs a file for its first n_outputs outputs. */
static psplit_code run_file(psplit_i_learner *l, psplit_i_learner_file *f,
                            const psplit_i_held *held, uint32_t n_outputs, scalars *s,
                            psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < f->n_inputs; i++) PSPLIT_TRY(give_one(l, f, held, s, i, diag));
  psplit_i_watch_begin(l->watch, &f->session, f->file);
  code = psplit_i_session_run(&f->session,
                              &(psplit_i_session_io){f->input_names, f->given, f->n_inputs,
                                                     f->output_names, f->got, n_outputs},
                              diag);
  psplit_i_watch_end(l->watch);
  if (code != PSPLIT_OK) {
    memset(f->got, 0, f->n_outputs * sizeof *f->got); /* session_run has released them */
    psplit_i_diag_context(diag, "%s", f->file);
  }
out:
  for (uint32_t i = 0; i < s->n; i++) psplit_i_tensor_release(s->made[i]);
  s->n = 0;
  return code;
}

static uint64_t bytes_of(const psplit_i_tensor *tensor) {
  psplit_diag ignored = {0};
  psplit_i_tensor_view view;
  return tensor && psplit_i_tensor_look(tensor, &ignored, &view) == PSPLIT_OK ? view.n_bytes : 0;
}

/* What a micro-batch holds besides weights. */
static uint64_t bytes_held(const psplit_i_learner *l, const psplit_i_held *held) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < l->parts->n_stash; i++) n += bytes_of(held->stash[i]);
  for (uint32_t i = 0; i < l->n_kept; i++) n += bytes_of(held->kept[i]);
  return n;
}

static void keep_stash(psplit_i_learner *l, psplit_i_held *held) {
  const psplit_i_learner_file *f = &l->forward;
  for (uint32_t i = 0; i < l->parts->n_stash; i++) {
    psplit_i_tensor *tensor =
      l->stash_is_input[i] ? f->given[l->stash_at[i]] : f->got[l->stash_at[i]];
    held->stash[i] = psplit_i_tensor_hold(tensor);
  }
  l->n_held++;
  l->held_bytes += bytes_held(l, held);
}

/* A state is what the last micro-batch made of it. */
static void move_on(psplit_i_learner *l) {
  for (uint32_t w = 0; w < psplit_i_learner_table(l)->n_weights; w++)
    if (l->next_at[w] != PSPLIT_NONE)
      put(&l->weights[w], psplit_i_tensor_hold(l->forward.got[l->next_at[w]]));
}

static void drop_held(psplit_i_learner *l, psplit_i_held *held) {
  psplit_i_tensors_release(held->data, l->pipe->manifest.n_inputs);
  psplit_i_tensors_release(held->stash, l->parts->n_stash);
  psplit_i_tensors_release(held->kept, l->n_kept);
}

static psplit_code read_loss(const psplit_i_tensor *loss, psplit_diag *diag, double *out_loss) {
  enum { FLOAT = 1, DOUBLE = 11 };
  psplit_i_tensor_view view;
  const psplit_code code = psplit_i_tensor_look(loss, diag, &view);
  if (code != PSPLIT_OK) return code;
  if (view.n_elements != 1 || (view.data_type != FLOAT && view.data_type != DOUBLE))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "the loss is not one number of type float32 or float64");
  *out_loss = view.data_type == FLOAT ? *(const float *)view.data : *(const double *)view.data;
  return PSPLIT_OK;
}

psplit_code psplit_i_learner_feed(psplit_i_learner *l, psplit_i_feed_set set, uint64_t step,
                                  uint32_t m, psplit_diag *diag) {
  const bool trains = set == PSPLIT_I_SET_TRAIN;
  const uint32_t sample = l->replica * l->n_micro_batches + m;
  const uint32_t rows = trains ? sample / l->n_samples : m;
  psplit_i_held *held = &l->held[m];
  psplit_code code = PSPLIT_OK;
  held->perturbed = trains && l->gamma > 0;
  held->step = (uint32_t)step;
  held->sample = sample;
  for (uint32_t i = 0; i < l->pipe->manifest.n_inputs && code == PSPLIT_OK; i++)
    if (l->reads[i])
      code = psplit_i_feeding_get(l->feeding, set, step, rows, i, diag, &held->data[i]);
  return code;
}

/* Makes l->perturbed what was drawn, or is, for this micro-batch. The last piece may have been of
 * it too. */
static psplit_code perturb(psplit_i_learner *l, const psplit_i_held *held, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  if (!held->perturbed ||
      (l->has_drawn && l->drawn_step == held->step && l->drawn_sample == held->sample))
    return code;
  l->has_drawn = false;
  for (uint32_t w = 0; w < psplit_i_learner_table(l)->n_weights && code == PSPLIT_OK; w++) {
    if (!l->weights[w] || l->first_gradient[w] == l->first_gradient[w + 1]) continue;
    const psplit_i_perturbation at = {l->gamma, l->seed, held->step, held->sample, w};
    code = psplit_i_perturb(l->ort, l->weights[w], &at, diag, &l->perturbed[w]);
    if (code != PSPLIT_OK)
      psplit_i_diag_context(diag, "%s", psplit_i_learner_table(l)->weights[w].name);
  }
  l->has_drawn = code == PSPLIT_OK;
  l->drawn_step = held->step;
  l->drawn_sample = held->sample;
  return code;
}

/* Keeps, or puts back, copies of states: a kernel may write where it reads. */
static psplit_code copy_states(psplit_i_learner *l, psplit_i_tensor **copies, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t w = 0; w < psplit_i_learner_table(l)->n_weights; w++) {
    psplit_i_tensor_view from, to;
    if (l->next_at[w] == PSPLIT_NONE) continue;
    PSPLIT_TRY(psplit_i_learner_zeros(l->ort, l->weights[w], diag, &copies[w]));
    PSPLIT_TRY(psplit_i_tensor_look(l->weights[w], diag, &from));
    PSPLIT_TRY(psplit_i_tensor_look(copies[w], diag, &to));
    if (from.n_bytes) memcpy(to.data, from.data, (size_t)from.n_bytes);
  }
out:
  return code;
}

static void put_copies(psplit_i_learner *l, psplit_i_tensor **copies) {
  for (uint32_t w = 0; w < psplit_i_learner_table(l)->n_weights; w++) {
    if (copies[w]) put(&l->weights[w], copies[w]);
    copies[w] = NULL;
  }
}

psplit_code psplit_i_learner_keep(psplit_i_learner *l, psplit_diag *diag) {
  psplit_i_tensors_release(l->before, psplit_i_learner_table(l)->n_weights);
  return copy_states(l, l->before, diag);
}

void psplit_i_learner_put_back(psplit_i_learner *l) { put_copies(l, l->before); }

/* The forward piece of other data, which leaves no trace. */
static psplit_code evaluate(psplit_i_learner *l, psplit_i_held *held, psplit_diag *diag) {
  scalars none = {0};
  psplit_code code;
  psplit_i_tensor **copies =
    calloc((size_t)psplit_i_learner_table(l)->n_weights + 1, sizeof *copies);
  if (!copies) return psplit_i_nomem(diag);
  PSPLIT_TRY(copy_states(l, copies, diag));
  PSPLIT_TRY(run_file(l, &l->forward, held, l->n_essential, &none, diag));
out:
  put_copies(l, copies);
  free(copies);
  return code;
}

psplit_code psplit_i_learner_forward(psplit_i_learner *l, psplit_i_feed_set set, uint32_t m,
                                     psplit_diag *diag, double *out_loss) {
  const bool trains = set == PSPLIT_I_SET_TRAIN;
  psplit_i_held *held = &l->held[m];
  scalars none = {0};
  psplit_code code;
  *out_loss = 0;
  PSPLIT_TRY(perturb(l, held, diag));
  code = trains ? run_file(l, &l->forward, held, l->forward.n_outputs, &none, diag)
                : evaluate(l, held, diag);
  if (code != PSPLIT_OK) goto out;
  if (l->loss != PSPLIT_NONE) PSPLIT_TRY(read_loss(l->forward.got[l->loss], diag, out_loss));
  if (trains) {
    keep_stash(l, held);
    move_on(l);
  } else {
    drop_held(l, held);
  }
out:
  psplit_i_tensors_release(l->received, l->n_received);
  return code;
}

/* A file of the backward pass, whose gradients of weights take the place of the sums so far. */
static psplit_code run_half(psplit_i_learner *l, int half, const psplit_i_held *held,
                            psplit_diag *diag) {
  psplit_i_learner_file *f = half ? &l->weight_gradients : &l->backward;
  scalars s = {.loss = 1 / ((double)l->n_micro_batches * l->n_replicas)};
  if (!f->file) return PSPLIT_OK;
  const psplit_code code = run_file(l, f, held, f->n_outputs, &s, diag);
  for (uint32_t g = 0; code == PSPLIT_OK && g < l->n_gradients; g++)
    if (l->gradient_at[half][g] != PSPLIT_NONE)
      put(&l->sums[g], psplit_i_tensor_hold(f->got[l->gradient_at[half][g]]));
  return code;
}

static psplit_code compute_again(psplit_i_learner *l, const psplit_i_held *held,
                                 psplit_diag *diag) {
  scalars none = {0};
  return l->again.file ? run_file(l, &l->again, held, l->again.n_outputs, &none, diag) : PSPLIT_OK;
}

/* Of a micro-batch whose gradients of weights are still to come, what these need stays. */
static void keep_for_later(psplit_i_learner *l, psplit_i_held *held) {
  l->held_bytes -= bytes_held(l, held);
  for (uint32_t i = 0; i < l->n_kept; i++) {
    const psplit_i_learner_input *from = &l->kept_from[i];
    held->kept[i] =
      psplit_i_tensor_hold(from->origin == PSPLIT_I_ORIGIN_WIRE    ? l->received[from->index]
                           : from->origin == PSPLIT_I_ORIGIN_AGAIN ? l->again.got[from->index]
                                                                   : l->backward.got[from->index]);
  }
  for (uint32_t i = 0; i < l->parts->n_stash; i++)
    if (!l->later_stash[i]) put(&held->stash[i], NULL);
  for (uint32_t i = 0; i < l->pipe->manifest.n_inputs; i++)
    if (!l->later_data[i]) put(&held->data[i], NULL);
  l->held_bytes += bytes_held(l, held);
}

psplit_code psplit_i_learner_backward(psplit_i_learner *l, uint32_t m, psplit_diag *diag) {
  psplit_i_held *held = &l->held[m];
  psplit_code code = PSPLIT_OK;
  if (!l->again_later) {
    PSPLIT_TRY(perturb(l, held, diag));
    PSPLIT_TRY(compute_again(l, held, diag));
    PSPLIT_TRY(run_half(l, 0, held, diag));
  }
  keep_for_later(l, held);
out:
  psplit_i_tensors_release(l->again.got, l->again.n_outputs);
  psplit_i_tensors_release(l->received, l->n_received);
  return code;
}

psplit_code psplit_i_learner_weight_gradients(psplit_i_learner *l, uint32_t m, psplit_diag *diag) {
  psplit_i_held *held = &l->held[m];
  psplit_code code = PSPLIT_OK;
  if (l->later_needs_weights) PSPLIT_TRY(perturb(l, held, diag));
  if (l->again_later) PSPLIT_TRY(compute_again(l, held, diag));
  PSPLIT_TRY(run_half(l, 1, held, diag));
out:
  psplit_i_tensors_release(l->again.got, l->again.n_outputs);
  psplit_i_tensors_release(l->weight_gradients.got, l->weight_gradients.n_outputs);
  l->held_bytes -= bytes_held(l, held);
  l->n_held--;
  drop_held(l, held);
  return code;
}

void psplit_i_learner_drop_results(psplit_i_learner *l) {
  psplit_i_tensors_release(l->forward.got, l->forward.n_outputs);
  psplit_i_tensors_release(l->backward.got, l->backward.n_outputs);
}

void psplit_i_learner_take(psplit_i_learner *l, uint32_t wire, psplit_i_bundle *bundle) {
  const psplit_i_wire *w = &l->wiring->wires[wire];
  for (uint32_t t = 0; t < w->n_tensors; t++) {
    if (w->kind == PSPLIT_I_WIRE_WEIGHTS)
      put(&l->weights[l->wire_tensors[wire][t]], bundle->tensors[t]);
    else if (w->kind == PSPLIT_I_WIRE_SUMS || w->kind == PSPLIT_I_WIRE_PARTS)
      put(&l->sums[l->wire_tensors[wire][t]], bundle->tensors[t]);
    else
      put(&l->received[l->wire_base[wire] + t], bundle->tensors[t]);
    bundle->tensors[t] = NULL;
  }
}

void psplit_i_learner_give(const psplit_i_learner *l, uint32_t wire, psplit_i_bundle *bundle) {
  const psplit_i_wire *w = &l->wiring->wires[wire];
  psplit_i_tensor **from = w->kind == PSPLIT_I_WIRE_FORWARD    ? l->forward.got
                           : w->kind == PSPLIT_I_WIRE_BACKWARD ? l->backward.got
                           : w->kind == PSPLIT_I_WIRE_WEIGHTS  ? l->weights
                                                               : l->sums;
  for (uint32_t t = 0; t < w->n_tensors; t++)
    bundle->tensors[t] = psplit_i_tensor_hold(from[l->wire_tensors[wire][t]]);
}

/* --- the end of a step --- */

psplit_code psplit_i_learner_update(psplit_i_learner *l, double rate, double scale, int64_t update,
                                    psplit_diag *diag) {
  scalars s = {.rate = rate, .scale = scale, .update = update};
  if (!l->update.file) return PSPLIT_OK;
  const psplit_code code = run_file(l, &l->update, NULL, l->update.n_outputs, &s, diag);
  for (uint32_t k = 0; k < l->update.n_outputs && code == PSPLIT_OK; k++) {
    psplit_i_tensor **to =
      l->kept_weight[k] == PSPLIT_NONE ? &l->states[k] : &l->weights[l->kept_weight[k]];
    put(to, l->update.got[k]);
    l->update.got[k] = NULL;
  }
  return code;
}

void psplit_i_learner_drop_sums(psplit_i_learner *l) {
  psplit_i_tensors_release(l->sums, l->n_gradients);
}

bool psplit_i_learner_owns(const psplit_i_learner *l, uint32_t weight) {
  return psplit_i_learner_table(l)->weights[weight].owner == l->index;
}

uint64_t psplit_i_learner_bytes(const psplit_i_learner *l) {
  uint64_t n = 0;
  for (uint32_t w = 0; l->weights && w < psplit_i_learner_table(l)->n_weights; w++)
    n += bytes_of(l->weights[w]) + bytes_of(l->perturbed[w]);
  for (uint32_t k = 0; l->states && k < l->parts->update.n_kept; k++) n += bytes_of(l->states[k]);
  return n;
}

uint64_t psplit_i_learner_digest(const psplit_i_learner *l, uint32_t weight) {
  psplit_diag ignored = {0};
  psplit_i_tensor_view view;
  if (psplit_i_tensor_look(l->weights[weight], &ignored, &view) != PSPLIT_OK) return 0;
  return psplit_i_hash_bytes(view.data, (size_t)view.n_bytes, weight);
}
