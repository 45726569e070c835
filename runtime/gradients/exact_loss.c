#include "exact_loss.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loss_text.h"

enum { FLOAT = 1, INT32 = 6, INT64 = 7, DOUBLE = 11 };

/* Of rounding, to a whole number of units, what is expected. */
static const double ROUNDING = 0.3;

/* What a stage gives under that name, or the model is given. */
static psplit_code find_slot(const psplit_i_train_pass *pass, const char *name, psplit_diag *diag,
                             uint32_t *out) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_train_pass_slot(pass, PSPLIT_I_PASS_DATA, 0, name, diag, out));
  for (uint32_t s = 0; *out == PSPLIT_NONE && s < pass->pipe->manifest.n_stages; s++)
    PSPLIT_TRY(psplit_i_train_pass_slot(pass, PSPLIT_I_PASS_SENT, s, name, diag, out));
out:
  return code;
}

/* The one output that is not the loss, "" where there are several. */
static const char *only_output(const psplit_i_manifest *m) {
  const char *only = "";
  uint32_t n = 0;
  for (uint32_t o = 0; o < m->n_outputs; o++) {
    if (strcmp(m->outputs[o], m->training->loss_tensor) == 0) continue;
    only = m->outputs[o];
    n++;
  }
  return n == 1 ? only : "";
}

static psplit_code find_named(const psplit_i_train_pass *pass, psplit_i_loss_word word,
                              psplit_diag *diag, uint32_t *out) {
  char *name = strndup(word.at, word.n);
  const psplit_code code = name ? find_slot(pass, name, diag, out) : psplit_i_nomem(diag);
  free(name);
  return code;
}

psplit_code psplit_i_exact_loss_find(const psplit_i_train_pass *pass, psplit_diag *diag,
                                     psplit_i_exact_loss *out) {
  static const char *const KINDS[] = {"", "mse", "bce-with-logits", "softmax-cross-entropy"};
  const psplit_i_manifest *m = &pass->pipe->manifest;
  const char *text = m->training->loss;
  psplit_code code = PSPLIT_OK;
  psplit_i_exact_loss loss = {.axis = 1, .prediction = PSPLIT_NONE, .target = PSPLIT_NONE};
  *out = loss;
  if (!text) return PSPLIT_OK;
  for (int k = PSPLIT_I_LOSS_SQUARES; k <= PSPLIT_I_LOSS_CLASSES; k++)
    if (psplit_i_loss_is(text, KINDS[k])) loss.kind = (psplit_i_loss_kind)k;
  const psplit_i_loss_word axis = psplit_i_loss_value(text, "axis", NULL);
  const psplit_i_loss_word ignored = psplit_i_loss_value(text, "ignore", NULL);
  if (axis.at) loss.axis = strtoll(axis.at, NULL, 10);
  loss.ignores = ignored.at != NULL;
  if (loss.ignores) loss.ignored = strtoll(ignored.at, NULL, 10);
  psplit_i_loss_word prediction = psplit_i_loss_prediction(text);
  if (!prediction.at) {
    prediction.at = only_output(m);
    prediction.n = strlen(prediction.at);
  }
  PSPLIT_TRY(find_named(pass, prediction, diag, &loss.prediction));
  PSPLIT_TRY(find_named(pass, psplit_i_loss_target(text), diag, &loss.target));
  if (loss.prediction != PSPLIT_NONE && loss.target != PSPLIT_NONE) *out = loss;
out:
  return code;
}

static bool look(const psplit_i_train_pass *pass, uint32_t slot, psplit_i_tensor_view *out) {
  psplit_diag ignored = {0};
  return pass->slots[slot] && psplit_i_tensor_look(pass->slots[slot], &ignored, out) == PSPLIT_OK;
}

static bool is_real(const psplit_i_tensor_view *view) {
  return view->data_type == FLOAT || view->data_type == DOUBLE;
}

double psplit_i_real_at(const psplit_i_tensor_view *view, uint64_t i) {
  return view->data_type == FLOAT ? (double)((const float *)view->data)[i]
                                  : ((const double *)view->data)[i];
}

/* Means of squares, or of softplus(x) - x t. */
static bool elementwise(bool squares, const psplit_i_tensor_view *x, const psplit_i_tensor_view *t,
                        double *out_value, double *out_grain) {
  double sum = 0, grains = 0;
  if (!is_real(t) || t->n_elements != x->n_elements || !x->n_elements) return false;
  for (uint64_t i = 0; i < x->n_elements; i++) {
    const double a = psplit_i_real_at(x, i), b = psplit_i_real_at(t, i), off = a - b;
    const double slope = squares ? 2 * off : 1 / (1 + exp(-a)) - b;
    sum += squares ? off * off : fmax(a, 0) + log1p(exp(-fabs(a))) - a * b;
    grains += slope * a * slope * a;
  }
  *out_value = sum / (double)x->n_elements;
  *out_grain = sqrt(grains) / (double)x->n_elements;
  return true;
}

/* Of one place: C numbers, `step` apart. */
static double place_loss(const psplit_i_tensor_view *x, uint64_t first, uint64_t step, uint64_t n,
                         uint64_t label, double *io_grains) {
  double most = -INFINITY, sum = 0;
  for (uint64_t c = 0; c < n; c++) most = fmax(most, psplit_i_real_at(x, first + c * step));
  for (uint64_t c = 0; c < n; c++) sum += exp(psplit_i_real_at(x, first + c * step) - most);
  for (uint64_t c = 0; c < n; c++) {
    const double a = psplit_i_real_at(x, first + c * step);
    const double slope = exp(a - most) / sum - (c == label);
    *io_grains += slope * a * slope * a;
  }
  return log(sum) + most - psplit_i_real_at(x, first + label * step);
}

static bool classes(const psplit_i_exact_loss *loss, const psplit_i_tensor_view *x,
                    const psplit_i_tensor_view *labels, double *out_value, double *out_grain) {
  const int64_t axis = loss->axis < 0 ? loss->axis + (int64_t)x->n_dims : loss->axis;
  if (axis < 1 || axis >= (int64_t)x->n_dims || !x->n_elements) return false;
  if (labels->data_type != INT32 && labels->data_type != INT64) return false;
  const uint64_t n = (uint64_t)x->dims[axis];
  uint64_t inner = 1, n_counted = 0;
  double sum = 0, grains = 0;
  for (size_t d = (size_t)axis + 1; d < x->n_dims; d++) inner *= (uint64_t)x->dims[d];
  if (labels->n_elements != x->n_elements / n) return false;
  for (uint64_t i = 0; i < labels->n_elements; i++) {
    const int64_t label = labels->data_type == INT32 ? ((const int32_t *)labels->data)[i]
                                                     : ((const int64_t *)labels->data)[i];
    if (loss->ignores && label == loss->ignored) continue;
    if (label < 0 || (uint64_t)label >= n) return false;
    n_counted++;
    sum += place_loss(x, i / inner * inner * n + i % inner, inner, n, (uint64_t)label, &grains);
  }
  if (!n_counted) return false;
  *out_value = sum / (double)n_counted;
  *out_grain = sqrt(grains) / (double)n_counted;
  return true;
}

bool psplit_i_exact_loss_value(const psplit_i_train_pass *pass, const psplit_i_exact_loss *loss,
                               double *out_value, double *out_grain) {
  psplit_i_tensor_view x, t;
  double grain = 0;
  if (loss->kind == PSPLIT_I_LOSS_OTHER) return false;
  if (!look(pass, loss->prediction, &x) || !look(pass, loss->target, &t) || !is_real(&x))
    return false;
  if (loss->kind == PSPLIT_I_LOSS_CLASSES
        ? !classes(loss, &x, &t, out_value, &grain)
        : !elementwise(loss->kind == PSPLIT_I_LOSS_SQUARES, &x, &t, out_value, &grain))
    return false;
  *out_grain = ROUNDING * (x.data_type == FLOAT ? FLT_EPSILON : DBL_EPSILON) * grain;
  return isfinite(*out_value) && isfinite(*out_grain);
}
