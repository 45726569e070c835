/* The backward pass as a model of its own, and the kinds of its inputs and outputs. */
#include "training.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* Frozen weights that the backward pass reads may be large, so that it goes through a file. */
static psplit_code open_backward(psplit_training *training, psplit_diag *diag) {
  psplit_code code;
  const psplit_model *model = training->gradient->model;
  char *directory = NULL;
  FILE *file = tmpfile();
  psplit_read_options options;
  psplit_read_options_init(&options);
  if (!file && errno == ENOMEM) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (!file)
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_IO, "cannot make a temporary file: %s", strerror(errno)));
  PSPLIT_TRY(psplit_i_gradient_put_backward(training->gradient, file, "the backward pass", diag));
  if (model->has_external_data) {
    options.data_directory = directory = psplit_i_model_data_directory(model);
    options.follow_symlinks = model->options.follow_symlinks;
    if (!directory) PSPLIT_FAIL(psplit_i_nomem(diag));
  }
  PSPLIT_TRY(
    psplit_model_open_fd(fileno(file), "backward.onnx", &options, diag, &training->backward));
out:
  free(directory);
  if (file) fclose(file);
  return code;
}

/* The inputs of the backward model by their names, which it has from the gradient. */
static void set_feed(psplit_training *training, const char *name, psplit_i_feed kind,
                     uint32_t index) {
  const uint32_t value =
    name ? psplit_i_graph_find_value(psplit_i_model_graph(training->backward), name) : PSPLIT_NONE;
  if (value != PSPLIT_NONE) training->feeds[value] = (psplit_i_feeding){kind, index};
}

static void set_part(psplit_training *training, psplit_gradient_part part, uint32_t index) {
  const psplit_i_graph *graph = psplit_i_model_graph(training->backward);
  const uint32_t output =
    part.gradient ? psplit_i_graph_find_value(graph, part.gradient) : PSPLIT_NONE;
  set_feed(training, part.before, PSPLIT_FEED_BEFORE, index);
  if (output != PSPLIT_NONE) training->output_trainable[output] = index;
}

static psplit_code index_ports(psplit_training *training, psplit_diag *diag) {
  const psplit_gradient *gradient = training->gradient;
  const psplit_i_graph *graph = psplit_i_model_graph(training->backward);
  training->feeds = PSPLIT_NEW(&training->arena, psplit_i_feeding, graph->n_values);
  training->output_trainable = PSPLIT_NEW(&training->arena, uint32_t, graph->n_values);
  if (!training->feeds || !training->output_trainable) return psplit_i_nomem(diag);
  set_feed(training, psplit_gradient_loss_gradient(gradient), PSPLIT_FEED_LOSS, 0);
  for (uint32_t i = 0; i < gradient->n_trainables; i++) {
    const psplit_trainable t = psplit_gradient_trainable(gradient, i);
    if (!t.is_input) set_feed(training, t.name, PSPLIT_FEED_WEIGHT, i);
    set_part(training, (psplit_gradient_part){t.gradient, t.before}, i);
    for (uint32_t p = 0; p < t.n_more; p++) set_part(training, t.more[p], i);
  }
  for (uint32_t i = 0; i < psplit_gradient_n_stashed(gradient); i++)
    set_feed(training, psplit_gradient_stashed(gradient, i), PSPLIT_FEED_STASH, i);
  return PSPLIT_OK;
}

static psplit_code take_form(psplit_training *training, const psplit_training_form *form,
                             psplit_diag *diag) {
  psplit_code code;
  psplit_training_form taken = {.struct_size = sizeof taken};
  psplit_i_text update = {0};
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_training_form, form, &taken, diag));
  if (taken.weight_gradients > PSPLIT_WEIGHT_GRADIENTS_APART)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "no such place for gradients of weights"));
  training->weights = taken.weights;
  training->weight_gradients = taken.weight_gradients;
  training->asked = taken.recompute;
  training->recompute =
    taken.recompute == PSPLIT_RECOMPUTE_AUTO ? PSPLIT_RECOMPUTE_NONE : taken.recompute;
  if (!taken.optimizer) return PSPLIT_OK;
  training->optimizer =
    psplit_i_arena_strndup(&training->arena, taken.optimizer, strlen(taken.optimizer));
  if (!training->optimizer) PSPLIT_FAIL(psplit_i_nomem(diag));
  /* A mistake in its text is told before the work begins. */
  PSPLIT_TRY(psplit_i_gradient_update(
    &(psplit_i_update_request){training->gradient, training->optimizer, NULL, 0}, NULL, diag,
    &update, NULL));
out:
  psplit_i_text_fini(&update);
  return code;
}

/* What a proof differentiates the model by again. */
static psplit_code keep_options(psplit_training *training, const psplit_training_options *options,
                                psplit_diag *diag) {
  psplit_i_arena *arena = &training->arena;
  training->batch_norm = options->batch_norm;
  training->dropout = options->dropout;
  if (options->loss)
    training->loss = psplit_i_arena_strndup(arena, options->loss, strlen(options->loss));
  else
    training->loss_output =
      psplit_i_arena_strndup(arena, options->loss_output, strlen(options->loss_output));
  return training->loss || training->loss_output ? PSPLIT_OK : psplit_i_nomem(diag);
}

static psplit_code mark_trained(psplit_training *training, psplit_diag *diag) {
  const psplit_gradient *gradient = training->gradient;
  if (training->weights == PSPLIT_WEIGHTS_DEFAULT && psplit_i_model_ir_version(gradient->model) < 4)
    return psplit_i_fail_about(
      diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(WEIGHT_INPUTS),
      "the model is of an IR version before 4, where runtimes take initializers as constants even "
      "if they are inputs");
  training->trained = PSPLIT_NEW(&training->arena, bool, gradient->b.forward->n_values);
  training->moved = PSPLIT_NEW(&training->arena, bool, gradient->b.forward->n_values);
  if (!training->trained || !training->moved) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < gradient->n_trainables; i++) {
    const psplit_i_trainable *t = &gradient->trainables[i];
    training->trained[t->value] |= !t->is_input;
    training->moved[t->value] |= !t->is_input && !t->is_state;
  }
  return PSPLIT_OK;
}

psplit_code psplit_training_create(const psplit_model *model,
                                   const psplit_training_options *options,
                                   const psplit_training_form *form, const psplit_logger *logger,
                                   psplit_diag *diag, psplit_training **out_training) {
  psplit_code code;
  psplit_training_options summed = *options;
  psplit_training *training = calloc(1, sizeof *training);
  if (!training) return psplit_i_nomem(diag);
  psplit_i_arena_init(&training->arena, 0);
  psplit_i_arena_init(&training->times.arena, 0);
  summed.accumulate = true;
  PSPLIT_TRY(psplit_gradient_create(model, &summed, logger, diag, &training->gradient));
  PSPLIT_TRY(keep_options(training, options, diag));
  PSPLIT_TRY(take_form(training, form, diag));
  PSPLIT_TRY(mark_trained(training, diag));
  PSPLIT_TRY(open_backward(training, diag));
  PSPLIT_TRY(index_ports(training, diag));
  *out_training = training;
  return PSPLIT_OK;
out:
  psplit_training_destroy(training);
  return code;
}

void psplit_training_destroy(psplit_training *training) {
  if (!training) return;
  psplit_i_times_fini(&training->times);
  psplit_model_close(training->backward);
  psplit_gradient_destroy(training->gradient);
  psplit_i_arena_fini(&training->arena);
  free(training);
}

const psplit_model *psplit_training_model(const psplit_training *training) {
  return training->gradient->model;
}

const psplit_gradient *psplit_training_gradient(const psplit_training *training) {
  return training->gradient;
}

psplit_recompute psplit_training_recompute(const psplit_training *training) {
  return training->recompute;
}

/* --- a plan to files --- */

static psplit_code begin(void *user, const psplit_i_split *split, psplit_diag *diag) {
  psplit_i_layout *layout = user;
  return psplit_i_layout_init(layout, layout->training, split, diag);
}

static psplit_code add_rim(void *user, uint32_t stage, psplit_i_arena *arena, psplit_diag *diag,
                           psplit_i_stage_extra *out) {
  return psplit_i_stage_training_ports(user, stage, arena, diag, out);
}

static psplit_code add_files(void *user, psplit_i_emission *emission) {
  return psplit_i_training_files(user, emission);
}

static void add_members(void *user, psplit_i_json *json) { psplit_i_training_json(user, json); }

static psplit_i_emit_extra extra_of(psplit_i_layout *layout) {
  const psplit_training *training = layout->training;
  const bool plain = training->weights == PSPLIT_WEIGHTS_INPUT;
  return (psplit_i_emit_extra){.user = layout,
                               .left_out = plain ? training->trained : NULL,
                               .begin = begin,
                               .stage = add_rim,
                               .files = add_files,
                               .manifest = add_members};
}

static psplit_code check_options(const psplit_emit_options *options, psplit_diag *diag) {
  psplit_code code;
  psplit_emit_options taken = {.struct_size = sizeof taken};
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_emit_options, options, &taken, diag));
  if (taken.weights == PSPLIT_WEIGHTS_REFERENCE)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE,
                              "stages that train hold their weights: they cannot point into the "
                              "model's files"));
out:
  return code;
}

psplit_code psplit_training_emit(const psplit_training *training, const psplit_plan *plan,
                                 const char *directory, const psplit_emit_options *options,
                                 psplit_diag *diag) {
  psplit_code code;
  psplit_i_layout layout = {.training = training};
  const psplit_i_emit_extra extra = extra_of(&layout);
  PSPLIT_TRY(check_options(options, diag));
  PSPLIT_TRY(psplit_i_emit(training->gradient->model, plan, directory, options, &extra, diag));
out:
  psplit_i_layout_fini(&layout);
  return code;
}

psplit_code psplit_training_manifest(const psplit_training *training, const psplit_plan *plan,
                                     const psplit_emit_options *options, psplit_diag *diag,
                                     char **out_text) {
  psplit_code code;
  psplit_i_layout layout = {.training = training};
  const psplit_i_emit_extra extra = extra_of(&layout);
  PSPLIT_TRY(check_options(options, diag));
  PSPLIT_TRY(
    psplit_i_manifest_text(training->gradient->model, plan, options, &extra, diag, out_text));
out:
  psplit_i_layout_fini(&layout);
  return code;
}
