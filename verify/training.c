#include "training.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "training_inside.h"
#include "training_masks.h"

/* --- differentiating --- */

static psplit_code differentiate(psplit_i_training_proof *c) {
  psplit_code code;
  psplit_i_proof *p = c->p;
  const psplit_i_training_table *table = c->table;
  psplit_diag why = {0};
  const char **train = PSPLIT_NEW(&p->arena, const char *, (size_t)table->n_weights + 1);
  if (!train) return psplit_i_nomem(p->diag);
  uint32_t n_train = 0;
  for (uint32_t w = 0; w < table->n_weights; w++)
    if (!table->weights[w].next) train[n_train++] = table->weights[w].name;
  const psplit_training_options options = {.loss = table->loss,
                                           .loss_output = table->loss_output,
                                           .train = train,
                                           .n_train = n_train,
                                           .train_names = true,
                                           .gradient_of = table->input_gradients,
                                           .n_gradient_of = table->n_input_gradients,
                                           .accumulate = true,
                                           .batch_norm = (psplit_batch_norm)table->batch_norm,
                                           .dropout = (psplit_dropout)table->dropout};
  code = psplit_gradient_create(p->model, &options, NULL, &why, &c->gradient);
  if (code == PSPLIT_USAGE || code == PSPLIT_UNSUPPORTED)
    return PSPLIT_I_DIFFERS(p, "the training that the manifest describes is invalid: %s",
                            why.message);
  if (code != PSPLIT_OK) return psplit_i_fail_as(p->diag, &why);
  const psplit_model *before = p->model;
  p->model = c->gradient->model;
  p->graph = psplit_i_model_graph(p->model);
  return psplit_i_check_masks(p, before, c->gradient, table);
}

static psplit_code open_backward(psplit_i_training_proof *c) {
  psplit_code code;
  psplit_i_proof *p = c->p;
  psplit_read_options options;
  psplit_read_options_init(&options);
  char *directory = NULL;
  FILE *file = tmpfile();
  if (!file && errno == ENOMEM) PSPLIT_FAIL(psplit_i_nomem(p->diag));
  if (!file)
    PSPLIT_FAIL(
      psplit_i_fail(p->diag, PSPLIT_IO, "cannot make a temporary file: %s", strerror(errno)));
  PSPLIT_TRY(psplit_i_gradient_put_backward(c->gradient, file, "the backward pass", p->diag));
  if (p->model->has_external_data) {
    options.data_directory = directory = psplit_i_model_data_directory(p->model);
    options.follow_symlinks = p->model->options.follow_symlinks;
    if (!directory) PSPLIT_FAIL(psplit_i_nomem(p->diag));
  }
  PSPLIT_TRY(psplit_model_open_fd(fileno(file), "backward", &options, p->diag, &c->backward));
out:
  free(directory);
  if (file) fclose(file);
  return code;
}

/* What stands twice is remembered where it must not. */
static bool add_name(psplit_i_training_proof *c, psplit_i_set set, const char *name, uint32_t stage,
                     uint32_t value) {
  const uint32_t id = psplit_i_intern_add(&c->names, name);
  const bool once = set == PSPLIT_I_SET_STASH_TENSOR || set == PSPLIT_I_SET_AGAIN_OUTPUT;
  if (id != PSPLIT_NONE && !psplit_i_table_add(&c->sets, id, stage, set, value) && once)
    c->twice = name;
  return id != PSPLIT_NONE;
}

/* The output by which the manifest says that trainable i goes on, in the stage that owns it. */
static bool add_state(psplit_i_training_proof *c, uint32_t i, uint32_t row) {
  const psplit_i_trained_weight *weight =
    row < c->table->n_weights ? &c->table->weights[row] : NULL;
  if (!weight || !weight->next || weight->owner == PSPLIT_NONE) return true; /* see check_weights */
  return add_name(c, PSPLIT_I_SET_STATE, weight->next, weight->owner, i);
}

/* Names of the gradient's. */
static bool add_gradient(psplit_i_training_proof *c) {
  const psplit_gradient *gradient = c->gradient;
  bool good = true;
  uint32_t row = 0;
  for (uint32_t i = 0; i < gradient->n_trainables && good; i++) {
    const psplit_trainable t = psplit_gradient_trainable(gradient, i);
    if (t.gradient) good = add_name(c, PSPLIT_I_SET_GRADIENT, t.gradient, 0, i);
    if (t.before) good = good && add_name(c, PSPLIT_I_SET_BEFORE, t.before, 0, i);
    for (uint32_t k = 0; k < t.n_more && good; k++)
      good = add_name(c, PSPLIT_I_SET_GRADIENT, t.more[k].gradient, 0, i) &&
             add_name(c, PSPLIT_I_SET_BEFORE, t.more[k].before, 0, i);
    if (t.next) good = good && add_state(c, i, row);
    c->row_of[i] = t.is_input ? PSPLIT_NONE : row++;
    if (!t.is_input) c->trained[gradient->trainables[i].value] = t.next ? 2 : 1;
  }
  for (size_t i = 0; i < gradient->stashed.n && good; i++) {
    const psplit_i_bvalue *value = &gradient->b.values.items[gradient->stashed.items[i]];
    if (value->origin == PSPLIT_ORIGIN_SHAPE)
      good = add_name(c, PSPLIT_I_SET_SHAPE, value->name, 0, value->index);
  }
  return good;
}

/* Names of a stage in the manifest. */
static bool add_stage(psplit_i_training_proof *c, uint32_t s) {
  const psplit_i_training_parts *stage = &c->table->stages[s];
  bool good = true;
  for (uint32_t w = 0; w < stage->n_weights && good; w++)
    good = add_name(c, PSPLIT_I_SET_WEIGHT, stage->weights[w], s, 0) &&
           add_name(c, PSPLIT_I_SET_TAKES, stage->weights[w], s, 0);
  for (uint32_t i = 0; i < stage->n_stash && good; i++)
    good = add_name(c, PSPLIT_I_SET_STASH_PORT, stage->stash[i].name, s, i) &&
           add_name(c, PSPLIT_I_SET_STASH_TENSOR, stage->stash[i].tensor, s, i);
  for (uint32_t h = 0; h < PSPLIT_I_N_HALVES && good; h++) {
    const psplit_i_part *backward = psplit_i_backward_part(stage, (int)h);
    for (uint32_t i = 0; i < backward->n_inputs && good; i++) {
      const psplit_i_part_input *input = &backward->inputs[i];
      if (input->source == PSPLIT_I_PART_WEIGHTS)
        good = add_name(c, PSPLIT_I_SET_TAKES, input->name, s, 0);
      else if (input->source == PSPLIT_I_PART_STAGE)
        good = add_name(c, PSPLIT_I_SET_BACKWARD, input->name, 2 * s + h, input->from);
    }
  }
  for (uint32_t i = 0; i < stage->again.n_inputs && good; i++)
    good = add_name(c, PSPLIT_I_SET_AGAIN_INPUT, stage->again.inputs[i].name, s, i);
  for (uint32_t o = 0; o < stage->again.n_outputs && good; o++)
    good = add_name(c, PSPLIT_I_SET_AGAIN_OUTPUT, stage->again.outputs[o].name, s, o);
  return good;
}

static size_t count_names(const psplit_i_training_proof *c) {
  size_t n = c->gradient->stashed.n;
  for (uint32_t t = 0; t < c->gradient->n_trainables; t++)
    n += 2 * (size_t)c->gradient->trainables[t].n_parts + c->gradient->trainables[t].is_state;
  for (uint32_t s = 0; s < c->p->manifest.n_stages; s++) {
    const psplit_i_training_parts *stage = &c->table->stages[s];
    n += 2 * ((size_t)stage->n_weights + stage->n_stash) + stage->backward.n_inputs +
         (size_t)stage->weight_gradients.n_inputs + stage->again.n_inputs + stage->again.n_outputs;
  }
  return n;
}

/* Where gradients of weights come out first, by the manifest, which the proof of the backward pass
 * holds to the files. */
static void find_arising(psplit_i_training_proof *c) {
  for (uint32_t t = 0; t < c->gradient->n_trainables; t++) c->arises[t] = PSPLIT_NONE;
  for (uint32_t s = c->p->manifest.n_stages; s-- > 0;)
    for (int h = 0; h < PSPLIT_I_N_HALVES; h++) {
      const psplit_i_part *backward = psplit_i_backward_part(&c->table->stages[s], h);
      for (uint32_t o = 0; backward->file && o < backward->n_outputs; o++) {
        const uint32_t t = psplit_i_named(c, PSPLIT_I_SET_GRADIENT, backward->outputs[o].name, 0);
        if (t != PSPLIT_NONE && !c->gradient->trainables[t].is_input) c->arises[t] = s;
      }
    }
}

/* Every question about names is answered in constant time. */
static psplit_code index_names(psplit_i_training_proof *c) {
  psplit_i_proof *p = c->p;
  c->trained = PSPLIT_NEW(&p->arena, uint8_t, p->graph->n_values);
  c->first_seen = PSPLIT_NEW(&p->arena, uint8_t, p->graph->n_values);
  c->row_of = PSPLIT_NEW(&p->arena, uint32_t, c->gradient->n_trainables);
  c->arises = PSPLIT_NEW(&p->arena, uint32_t, c->gradient->n_trainables);
  /* The first name brings the intern table's secret key. */
  bool good = c->trained && c->first_seen && c->row_of && c->arises &&
              psplit_i_intern_reserve(&c->names, 16) &&
              psplit_i_table_init(&c->sets, &p->arena, count_names(c), c->names.key[0]) &&
              add_gradient(c);
  for (uint32_t s = 0; s < p->manifest.n_stages && good; s++) good = add_stage(c, s);
  if (!good) return psplit_i_nomem(p->diag);
  if (c->twice)
    return PSPLIT_I_DIFFERS(p, "a stage keeps \"%s\" twice, by the manifest, or computes it twice",
                            c->twice);
  c->training = (psplit_i_training_ports){.gradient = c->gradient,
                                          .table = c->table,
                                          .trained = c->trained,
                                          .first_seen = c->first_seen,
                                          .names = &c->names,
                                          .sets = &c->sets};
  p->training = &c->training;
  find_arising(c);
  return PSPLIT_OK;
}

/* The stages that take the weight, forward or back: the files themselves are held to that. */
static bool lists_stages(const psplit_i_training_proof *c, const psplit_i_trained_weight *row) {
  uint32_t n = 0;
  for (uint32_t s = 0; s < c->p->manifest.n_stages; s++)
    if (psplit_i_named(c, PSPLIT_I_SET_TAKES, row->name, s) != PSPLIT_NONE &&
        (n >= row->n_stages || row->stages[n++] != s))
      return false;
  return n == row->n_stages;
}

/* The rest of a gradient that comes in parts. */
static bool lists_parts(const psplit_i_trained_weight *row, const psplit_trainable *t) {
  bool good = row->n_more == t->n_more;
  for (uint32_t i = 0; i < t->n_more && good; i++)
    good = psplit_i_same(row->more[i].gradient, t->more[i].gradient) &&
           psplit_i_same(row->more[i].before, t->more[i].before);
  return good;
}

/* A row too many: of a weight that has one already, or of one that is not trained. */
static psplit_code tell_row(const psplit_i_training_proof *c, uint32_t row) {
  const psplit_i_trained_weight *weights = c->table->weights;
  for (uint32_t w = 0; w < row; w++)
    if (psplit_i_same(weights[w].name, weights[row].name))
      return PSPLIT_I_DIFFERS(c->p, "the manifest trains \"%s\" twice", weights[row].name);
  return PSPLIT_I_DIFFERS(
    c->p, "the manifest lists \"%s\" as trained, but what it describes does not train it",
    weights[row].name);
}

/* The manifest's weights are the trained ones, each once, with their gradients. */
static psplit_code check_weights(const psplit_i_training_proof *c) {
  psplit_i_proof *p = c->p;
  uint32_t w = 0, g = 0;
  for (uint32_t i = 0; i < c->gradient->n_trainables; i++) {
    const psplit_trainable t = psplit_gradient_trainable(c->gradient, i);
    if (t.is_input) {
      if (g == c->table->n_input_gradients ||
          !psplit_i_same(c->table->input_gradients[g], t.name) ||
          !psplit_i_same(c->table->gradient_names[g], t.gradient))
        return PSPLIT_I_DIFFERS(p, "the manifest lists another gradient for input \"%s\"", t.name);
      g++;
      continue;
    }
    const psplit_i_trained_weight *row = w < c->table->n_weights ? &c->table->weights[w] : NULL;
    if (!row || !psplit_i_same(row->name, t.name) || !psplit_i_same(row->gradient, t.gradient) ||
        !psplit_i_same(row->before, t.before) || !lists_parts(row, &t) || !lists_stages(c, row) ||
        !row->next != !t.next)
      return PSPLIT_I_DIFFERS(p, "the manifest's trained weight %" PRIu32 " is not \"%s\" as it is",
                              w, t.name);
    w++;
  }
  if (g != c->table->n_input_gradients)
    return PSPLIT_I_DIFFERS(p, "the manifest has the gradient of input \"%s\" twice",
                            c->table->input_gradients[g]);
  return w == c->table->n_weights ? PSPLIT_OK : tell_row(c, w);
}

/* The loss is an output of the model that the stage gives, and multiplied by what is said. */
static psplit_code check_loss(const psplit_i_training_proof *c) {
  const psplit_i_training_table *table = c->table;
  const psplit_i_manifest_stage *stage = &c->p->manifest.stages[table->loss_stage];
  bool given = false;
  for (uint32_t o = 0; o < stage->n_outputs; o++)
    given |=
      stage->outputs[o].to_model && psplit_i_same(stage->outputs[o].tensor, table->loss_tensor);
  if (given && psplit_i_same(table->loss_tensor, psplit_gradient_loss(c->gradient)) &&
      psplit_i_same(table->loss_gradient, psplit_gradient_loss_gradient(c->gradient)))
    return PSPLIT_OK;
  return PSPLIT_I_DIFFERS(c->p, "stage %" PRIu32 " does not give the loss \"%s\"",
                          table->loss_stage, psplit_gradient_loss(c->gradient));
}

/* --- the whole --- */

static psplit_code prove(psplit_i_training_proof *c) {
  psplit_code code;
  psplit_i_proof *p = c->p;
  PSPLIT_TRY(differentiate(c));
  PSPLIT_TRY(open_backward(c));
  PSPLIT_TRY(index_names(c));
  PSPLIT_TRY(check_weights(c));
  PSPLIT_TRY(check_loss(c));
  PSPLIT_TRY(psplit_i_check_stated(p));
  for (uint32_t s = 0; s < p->manifest.n_stages; s++)
    PSPLIT_TRY(psplit_i_check_first_weights(c, s));
  PSPLIT_TRY(psplit_i_prove(p, c->directory, c->options));
  PSPLIT_TRY(psplit_i_prove_backward(c));
  for (uint32_t s = 0; s < p->manifest.n_stages; s++) {
    for (int h = 0; h < PSPLIT_I_N_HALVES; h++) {
      PSPLIT_TRY(psplit_i_check_feeds(c, s, psplit_i_backward_part(&c->table->stages[s], h)));
      PSPLIT_TRY(psplit_i_check_goals(c, psplit_i_backward_part(&c->table->stages[s], h)));
    }
    PSPLIT_TRY(psplit_i_check_again(c, s));
    PSPLIT_TRY(psplit_i_check_update(c, s));
  }
out:
  return code;
}

psplit_code psplit_i_prove_training(psplit_i_proof *p, const char *directory,
                                    const psplit_verify_options *options) {
  psplit_i_training_proof c = {
    .p = p, .table = p->manifest.training, .directory = directory, .options = options};
  psplit_i_intern_init(&c.names);
  const psplit_code code = prove(&c);
  psplit_i_intern_fini(&c.names);
  psplit_model_close(c.backward);
  p->gradient = c.gradient; /* p->model is its */
  p->training = NULL;
  return code;
}
