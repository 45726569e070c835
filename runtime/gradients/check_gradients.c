/* psplit/run_gradients.h: gradients by backward files against differences of the loss by forward
 * files. */
#include <psplit/run_gradients.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "counter_random.h"
#include "differences.h"
#include "exact_loss.h"
#include "fill_pass.h"
#include "run.h"
#include "train_pass.h"

enum { FLOAT = 1, DOUBLE = 11 };

/* Of what is stored in single precision, a gradient may be off by so much of itself. */
static const double OWN_ROUNDING = 1e-3, OWN_ROUNDING_DOUBLE = 1e-7;

struct psplit_gradient_check {
  psplit_i_pipe pipe;
  psplit_gradient_finding *findings;
  uint32_t n_findings;
  double loss;
};

/* What is moved: a weight or an input of the model, as it is at first. */
typedef struct variable {
  psplit_i_tensor *tensor;
  psplit_i_tensor_view view;
  double *gradient, *direction; /* [n_elements] */
  uint32_t slot, first_stage;
} variable;

typedef struct checker {
  psplit_gradient_check *check;
  const psplit_gradient_check_options *options;
  psplit_i_checked_model model;
  psplit_i_train_pass pass;
  variable at; /* the one at hand */
  uint32_t loss_slot;
  psplit_i_exact_loss exact; /* of no kind: the loss is as the stages give it */
  double value, grain;       /* without a move, and what it is rounded to at best */
} checker;

static double set(const psplit_i_tensor_view *view, uint64_t i, double value) {
  if (view->data_type == DOUBLE) return ((double *)view->data)[i] = value;
  return (double)(((float *)view->data)[i] = (float)value);
}

static const psplit_i_training_table *table_of(const checker *c) {
  return c->check->pipe.manifest.training;
}

/* --- the loss --- */

static psplit_code look_at_loss(const checker *c, psplit_diag *diag, psplit_i_tensor_view *out) {
  const psplit_i_training_table *table = table_of(c);
  const psplit_i_tensor *tensor = c->pass.slots[c->loss_slot];
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, out));
  if (out->n_elements != 1 || (out->data_type != FLOAT && out->data_type != DOUBLE))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "the loss \"%s\" is not a single float or double", table->loss_tensor);
out:
  return code;
}

static psplit_code take_loss(checker *c, uint32_t first_stage, bool stash, psplit_diag *diag,
                             double *out) {
  psplit_code code;
  psplit_i_tensor_view view;
  double grain;
  PSPLIT_TRY(psplit_i_go_on(c->options->cancel, diag));
  PSPLIT_TRY(psplit_i_train_pass_forward(&c->pass, first_stage, stash, diag));
  if (psplit_i_exact_loss_value(&c->pass, &c->exact, out, &grain)) return PSPLIT_OK;
  PSPLIT_TRY(look_at_loss(c, diag, &view));
  *out = psplit_i_real_at(&view, 0);
out:
  return code;
}

/* Whether differences are taken of the loss in float64: where it is that of the stages, but for
 * rounding. */
static psplit_code choose_loss(checker *c, psplit_diag *diag) {
  static const double SAME = 1e-3;
  const double given = c->check->loss;
  psplit_code code;
  c->value = given;
  c->grain = 0;
  PSPLIT_TRY(psplit_i_exact_loss_find(&c->pass, diag, &c->exact));
  if (!psplit_i_exact_loss_value(&c->pass, &c->exact, &c->value, &c->grain) ||
      !(fabs(c->value - given) <= SAME * fabs(given))) {
    c->exact.kind = PSPLIT_I_LOSS_OTHER;
    c->value = given;
  }
out:
  return code;
}

/* The loss, which is multiplied by 1 on its way back, and all gradients. */
static psplit_code run_once(checker *c, psplit_diag *diag) {
  psplit_code code;
  psplit_i_tensor_view view;
  psplit_i_tensor *one = NULL;
  double again;
  PSPLIT_TRY(take_loss(c, 0, true, diag, &c->check->loss));
  if (!isfinite(c->check->loss))
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_INVALID, "the loss is %g: it has no differences", c->check->loss));
  PSPLIT_TRY(look_at_loss(c, diag, &view));
  PSPLIT_TRY(
    psplit_i_tensor_make(c->pass.ort, view.data_type, view.dims, view.n_dims, diag, &one, &view));
  PSPLIT_TRY(
    psplit_i_pass_fill(&c->pass, PSPLIT_I_PASS_LOSS, table_of(c)->loss_gradient, one, diag));
  set(&view, 0, 1);
  PSPLIT_TRY(psplit_i_train_pass_backward(&c->pass, diag));
  PSPLIT_TRY(take_loss(c, 0, false, diag, &again));
  if (again != c->check->loss)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INVALID,
                              "the loss is %.9g, and %.9g when it is computed again: a model that "
                              "draws random numbers has no differences",
                              c->check->loss, again));
  PSPLIT_TRY(choose_loss(c, diag));
out:
  return code;
}

/* --- one weight --- */

/* Adds what backward passes give under a name. */
static psplit_code add_gradient(checker *c, const char *name, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  variable *at = &c->at;
  psplit_i_tensor_view view;
  for (uint32_t s = 0; s < c->check->pipe.manifest.n_stages; s++) {
    uint32_t slot;
    PSPLIT_TRY(psplit_i_train_pass_slot(&c->pass, PSPLIT_I_PASS_BACK, s, name, diag, &slot));
    if (slot == PSPLIT_NONE || !c->pass.slots[slot]) continue;
    PSPLIT_TRY(psplit_i_tensor_look(c->pass.slots[slot], diag, &view));
    if (view.data_type != at->view.data_type || view.n_elements != at->view.n_elements)
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INVALID,
                                "\"%s\" has another type or shape than what it is of", name));
    for (uint64_t i = 0; i < view.n_elements; i++) at->gradient[i] += psplit_i_real_at(&view, i);
  }
out:
  return code;
}

/* Of root mean square 1. The first is along the gradient, where the least is lost in rounding; the
 * others are signs, which also meet what the gradient leaves out. False: the gradient is 0, or
 * not finite. */
static bool choose_direction(checker *c, uint32_t variable_index, uint32_t direction) {
  variable *at = &c->at;
  const uint64_t n = at->view.n_elements;
  const uint64_t seed = c->options->feed ? c->options->feed->seed : 1;
  const psplit_i_random_stream stream = {seed, PSPLIT_I_RANDOM_DIRECTION, variable_index,
                                         direction};
  double squares = 0;
  for (uint64_t i = 0; i < n; i++) {
    at->direction[i] =
      direction ? (psplit_i_random_bits(&stream, i) & 1 ? 1 : -1) : at->gradient[i];
    squares += at->direction[i] * at->direction[i];
  }
  const double size = sqrt(squares / (double)n);
  if (!(size > 0) || !isfinite(size)) return false;
  for (uint64_t i = 0; i < n; i++) at->direction[i] /= size;
  return true;
}

/* A psplit_i_move: the loss with the variable moved. */
static psplit_code move(void *user, double h, psplit_diag *diag, double *out_value,
                        double *out_change) {
  psplit_code code;
  checker *c = user;
  variable *at = &c->at;
  psplit_i_tensor *tensor;
  psplit_i_tensor_view view;
  double change = 0;
  PSPLIT_TRY(psplit_i_tensor_make(c->pass.ort, at->view.data_type, at->view.dims, at->view.n_dims,
                                  diag, &tensor, &view));
  psplit_i_train_pass_put(&c->pass, at->slot, tensor);
  for (uint64_t i = 0; i < view.n_elements; i++) {
    const double from = psplit_i_real_at(&at->view, i),
                 to = set(&view, i, from + h * at->direction[i]);
    change += at->gradient[i] * (to - from);
  }
  PSPLIT_TRY(take_loss(c, at->first_stage, false, diag, out_value));
  *out_change = change;
out:
  return code;
}

/* How large the variable's elements are: what steps are measured by. */
static double size_of(const psplit_i_tensor_view *view) {
  double squares = 0;
  for (uint64_t i = 0; i < view->n_elements; i++)
    squares += psplit_i_real_at(view, i) * psplit_i_real_at(view, i);
  const double size = sqrt(squares / (double)view->n_elements);
  return size > 1e-3 && isfinite(size) ? size : 1e-1; /* as biases that begin as zeros */
}

static double own_rounding(const checker *c) {
  return c->at.view.data_type == DOUBLE ? OWN_ROUNDING_DOUBLE : OWN_ROUNDING;
}

/* The derivative along the direction, or what it is on the whole along signs. */
static double scale_of(const variable *at) {
  double inner = 0, squares = 0;
  for (uint64_t i = 0; i < at->view.n_elements; i++) {
    const double term = at->gradient[i] * at->direction[i];
    inner += term;
    squares += term * term;
  }
  return isfinite(squares) ? fmax(fabs(inner), sqrt(squares)) : INFINITY;
}

static psplit_code examine_direction(checker *c, psplit_diag *diag, psplit_gradient_finding *out) {
  static const psplit_gradient_verdict verdicts[] = {
    [PSPLIT_I_ANSWER_HOLDS] = PSPLIT_GRADIENT_HOLDS,
    [PSPLIT_I_ANSWER_DIFFERS] = PSPLIT_GRADIENT_DIFFERS,
    [PSPLIT_I_ANSWER_NONE] = PSPLIT_GRADIENT_UNTOLD};
  psplit_code code;
  const bool is_double = c->at.view.data_type == DOUBLE;
  const double scale = scale_of(&c->at);
  const psplit_i_question question = {
    .value = c->value,
    .least_noise = c->exact.kind == PSPLIT_I_LOSS_OTHER
                     ? 0.3 * (is_double ? DBL_EPSILON : FLT_EPSILON) * fabs(c->value)
                     : c->grain,
    .largest_h = size_of(&c->at.view) / 8,
    .epsilon = is_double ? DBL_EPSILON : FLT_EPSILON,
    .scale = scale,
    .enough = scale * own_rounding(c)};
  psplit_i_differences found;
  PSPLIT_TRY(psplit_i_differences_find(move, c, &question, diag, &found));
  *out = (psplit_gradient_finding){.verdict = verdicts[found.answer],
                                   .scale = scale,
                                   .gap = found.gap,
                                   .bound = found.bound,
                                   .n_runs = found.n_values};
out:
  return code;
}

/* Whether a finding speaks more against the gradient than the one before, which is of an earlier
 * direction. What holds within ten times its own rounding speaks against nothing. */
static bool is_worse(const checker *c, const psplit_gradient_finding *a,
                     const psplit_gradient_finding *b) {
  const bool differs = a->verdict == PSPLIT_GRADIENT_DIFFERS;
  if (differs != (b->verdict == PSPLIT_GRADIENT_DIFFERS)) return differs;
  /* One direction that tells is enough. */
  if (a->verdict != b->verdict) return a->verdict == PSPLIT_GRADIENT_HOLDS;
  if (a->verdict == PSPLIT_GRADIENT_HOLDS && a->bound <= 10 * own_rounding(c) * a->scale)
    return false;
  return a->bound * b->scale > b->bound * a->scale;
}

/* The tensor in the slot, whose gradient is under `name` (NULL: the loss does not depend on it, it
 * is said) and, of a weight whose gradient comes in parts, under the names in `row`. */
static psplit_code examine(checker *c, uint32_t index, const char *name,
                           const psplit_i_trained_weight *row, psplit_diag *diag,
                           psplit_gradient_finding *io) {
  psplit_code code = PSPLIT_OK;
  variable *at = &c->at;
  bool any = false;
  if (at->slot == PSPLIT_NONE || !c->pass.slots[at->slot]) return PSPLIT_OK;
  at->tensor = psplit_i_tensor_hold(c->pass.slots[at->slot]);
  PSPLIT_TRY(psplit_i_tensor_look(at->tensor, diag, &at->view));
  if (at->view.data_type != FLOAT && at->view.data_type != DOUBLE)
    PSPLIT_FAIL(psplit_i_fail(
      diag, PSPLIT_UNSUPPORTED,
      "\"%s\" is neither float nor double: differences would be meaningless", io->name));
  io->n_elements = at->view.n_elements;
  at->gradient = calloc((size_t)io->n_elements + 1, sizeof *at->gradient);
  at->direction = calloc((size_t)io->n_elements + 1, sizeof *at->direction);
  if (!at->gradient || !at->direction) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (name) PSPLIT_TRY(add_gradient(c, name, diag));
  for (uint32_t i = 0; row && i < row->n_more; i++)
    PSPLIT_TRY(add_gradient(c, row->more[i].gradient, diag));
  uint32_t n_runs = 0;
  for (uint32_t d = 0; d < c->options->n_directions + !any && io->n_elements; d++) {
    psplit_gradient_finding finding;
    if (!choose_direction(c, index, d)) continue;
    PSPLIT_TRY(examine_direction(c, diag, &finding));
    finding.name = io->name;
    finding.is_input = io->is_input;
    finding.n_elements = io->n_elements;
    n_runs += finding.n_runs;
    if (!any || is_worse(c, &finding, io)) *io = finding;
    any = true;
  }
  io->n_runs = n_runs;
out:
  if (code != PSPLIT_OK) psplit_i_diag_context(diag, "\"%s\"", io->name);
  if (at->tensor) psplit_i_train_pass_put(&c->pass, at->slot, at->tensor);
  free(at->gradient);
  free(at->direction);
  *at = (variable){0};
  return code;
}

/* Stages before the one at hand stay as they are without a move, so the last ones are first. */
static psplit_code examine_stage(checker *c, uint32_t s, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_training_table *table = table_of(c);
  for (uint32_t w = 0; w < table->n_weights; w++) {
    const psplit_i_trained_weight *row = &table->weights[w];
    if (row->next || !row->n_stages || row->stages[0] != s) continue;
    c->at.first_stage = s;
    PSPLIT_TRY(
      psplit_i_train_pass_slot(&c->pass, PSPLIT_I_PASS_WEIGHT, 0, row->name, diag, &c->at.slot));
    PSPLIT_TRY(examine(c, w, row->gradient, row, diag, &c->check->findings[w]));
  }
  for (uint32_t i = 0; i < table->n_input_gradients; i++) {
    const char *name = table->input_gradients[i];
    uint32_t stage;
    (void)psplit_i_pass_find_input(&c->pass, name, &stage);
    if (stage != s) continue;
    c->at.first_stage = s;
    PSPLIT_TRY(psplit_i_train_pass_slot(&c->pass, PSPLIT_I_PASS_DATA, 0, name, diag, &c->at.slot));
    PSPLIT_TRY(examine(c, table->n_weights + i, table->gradient_names[i], NULL, diag,
                       &c->check->findings[table->n_weights + i]));
  }
out:
  return code;
}

static psplit_code list_findings(psplit_gradient_check *check, psplit_diag *diag) {
  const psplit_i_training_table *table = check->pipe.manifest.training;
  check->n_findings = table->n_weights + table->n_input_gradients;
  check->findings = calloc((size_t)check->n_findings + 1, sizeof *check->findings);
  if (!check->findings) return psplit_i_nomem(diag);
  for (uint32_t w = 0; w < table->n_weights; w++)
    check->findings[w] =
      (psplit_gradient_finding){.name = table->weights[w].name, .verdict = PSPLIT_GRADIENT_UNTOLD};
  for (uint32_t i = 0; i < table->n_input_gradients; i++)
    check->findings[table->n_weights + i] = (psplit_gradient_finding){
      .name = table->input_gradients[i], .is_input = true, .verdict = PSPLIT_GRADIENT_UNTOLD};
  return PSPLIT_OK;
}

/* What is fed like weights and is none has no gradient. */
static void drop_states(psplit_gradient_check *check) {
  const psplit_i_training_table *table = check->pipe.manifest.training;
  uint32_t n = 0;
  for (uint32_t i = 0; i < check->n_findings; i++)
    if (i >= table->n_weights || !table->weights[i].next) check->findings[n++] = check->findings[i];
  check->n_findings = n;
}

void psplit_gradient_check_options_defaults(psplit_gradient_check_options *options,
                                            size_t struct_size) {
  psplit_gradient_check_options defaults = {.n_directions = 2};
  psplit_i_options_defaults(options, struct_size, &defaults, sizeof defaults);
}

static psplit_code check(checker *c, const psplit_onnxruntime *ort, const char *directory,
                         const psplit_model *model, psplit_diag *diag) {
  psplit_code code;
  psplit_i_pipe *pipe = &c->check->pipe;
  psplit_i_session_options session = psplit_i_take_session(c->options->session);
  if (!c->options->session) session.optimization = 0;
  if (!c->options->n_directions)
    return psplit_i_fail(diag, PSPLIT_USAGE, "gradients are checked in one direction at least");
  PSPLIT_TRY(psplit_i_pipe_read(directory, c->options->max_text_bytes, diag, pipe));
  if (!pipe->manifest.training)
    return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(TRAINING),
                               "the stages of %s do not train", directory);
  PSPLIT_TRY(psplit_i_checked_model_open(model, &pipe->manifest, c->options, diag, &c->model));
  PSPLIT_TRY(list_findings(c->check, diag));
  PSPLIT_TRY(psplit_i_train_pass_open(&ort->ort, pipe, &session, diag, &c->pass));
  PSPLIT_TRY(psplit_i_train_pass_slot(&c->pass, PSPLIT_I_PASS_SENT, table_of(c)->loss_stage,
                                      table_of(c)->loss_tensor, diag, &c->loss_slot));
  if (c->loss_slot == PSPLIT_NONE)
    return psplit_i_fail(diag, PSPLIT_INVALID, "pipeline.json: no stage gives the loss \"%s\"",
                         table_of(c)->loss_tensor);
  PSPLIT_TRY(psplit_i_pass_fill_weights(&c->pass, c->model.model, diag));
  PSPLIT_TRY(psplit_i_pass_fill_data(&c->pass, c->options->feed, diag));
  PSPLIT_TRY(run_once(c, diag));
  for (uint32_t s = pipe->manifest.n_stages; s-- > 0;) PSPLIT_TRY(examine_stage(c, s, diag));
  drop_states(c->check);
out:
  return code;
}

psplit_code psplit_check_gradients(const psplit_onnxruntime *ort, const char *directory,
                                   const psplit_model *model,
                                   const psplit_gradient_check_options *options, psplit_diag *diag,
                                   psplit_gradient_check **out_check) {
  psplit_gradient_check_options taken;
  psplit_code code;
  checker c = {.check = calloc(1, sizeof *c.check), .options = &taken};
  psplit_gradient_check_options_init(&taken);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_gradient_check_options, options, &taken, diag));
  if (!c.check) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(check(&c, ort, directory, model, diag));
out:
  psplit_i_train_pass_close(&c.pass);
  psplit_i_checked_model_close(&c.model);
  if (code == PSPLIT_OK)
    *out_check = c.check;
  else
    psplit_gradient_check_destroy(c.check);
  return code;
}

void psplit_gradient_check_destroy(psplit_gradient_check *check) {
  if (!check) return;
  psplit_i_pipe_fini(&check->pipe);
  free(check->findings);
  free(check);
}

uint32_t psplit_gradient_check_n_findings(const psplit_gradient_check *check) {
  return check->n_findings;
}

const psplit_gradient_finding *psplit_gradient_check_finding(const psplit_gradient_check *check,
                                                             uint32_t index) {
  return &check->findings[index];
}

double psplit_gradient_check_loss(const psplit_gradient_check *check) { return check->loss; }
