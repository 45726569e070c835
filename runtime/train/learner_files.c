/* Resolves the inputs of a stage's files by pipeline.json. */
#include <inttypes.h>
#include <string.h>

#include "learner_inside.h"

static const psplit_i_manifest_stage *stage_of(const psplit_i_learner *l) {
  return &l->pipe->manifest.stages[l->index];
}

static uint32_t find_model_input(const psplit_i_pipe *pipe, const char *name) {
  return psplit_i_name_find(pipe->manifest.inputs, pipe->manifest.n_inputs, name);
}

uint32_t psplit_i_learner_find_weight(const psplit_i_learner *l, const char *name) {
  const psplit_i_training_table *t = psplit_i_learner_table(l);
  for (uint32_t w = 0; w < t->n_weights; w++)
    if (strcmp(t->weights[w].name, name) == 0) return w;
  return PSPLIT_NONE;
}

/* The same of one that this stage has: its own, or one that its owner sends. */
static uint32_t find_weight_here(const psplit_i_learner *l, const char *name) {
  const uint32_t w = psplit_i_learner_find_weight(l, name);
  if (w == PSPLIT_NONE) return PSPLIT_NONE;
  const psplit_i_trained_weight *weight = &psplit_i_learner_table(l)->weights[w];
  bool has = weight->owner == l->index || weight->owner == PSPLIT_NONE;
  for (uint32_t i = 0; i < weight->n_stages && !has; i++) has = weight->stages[i] == l->index;
  return has ? w : PSPLIT_NONE;
}

psplit_code psplit_i_nothing_gives(const psplit_i_learner *l, const char *file, const char *name,
                                   psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_INVALID,
                       "pipeline.json: stage %" PRIu32 ": %s: nothing provides %s", l->index, file,
                       name);
}

static void note_parts(const psplit_i_pipe *pipe, const psplit_i_part *part, bool *reads) {
  for (uint32_t i = 0; i < part->n_inputs; i++) {
    if (part->inputs[i].source != PSPLIT_I_PART_MODEL) continue;
    const uint32_t k = find_model_input(pipe, part->inputs[i].name);
    if (k != PSPLIT_NONE) reads[k] = true;
  }
}

void psplit_i_learner_needs(const psplit_i_pipe *pipe, uint32_t stage, bool *reads) {
  const psplit_i_manifest_stage *row = &pipe->manifest.stages[stage];
  const psplit_i_training_parts *parts = &pipe->manifest.training->stages[stage];
  for (uint32_t i = 0; i < row->n_inputs; i++) {
    if (row->inputs[i].from != PSPLIT_I_FROM_MODEL || row->inputs[i].optional) continue;
    const uint32_t k = find_model_input(pipe, row->inputs[i].tensor);
    if (k != PSPLIT_NONE) reads[k] = true;
  }
  note_parts(pipe, &parts->again, reads);
  note_parts(pipe, &parts->backward, reads);
  note_parts(pipe, &parts->weight_gradients, reads);
}

/* Opens `file`, with room for so many inputs and outputs. */
static psplit_code open_file(psplit_i_learner *l, const char *file, uint32_t n_inputs,
                             uint32_t n_outputs, psplit_diag *diag, psplit_i_learner_file *out) {
  psplit_i_text path = {0};
  psplit_code code;
  out->input_names = PSPLIT_NEW(&l->arena, const char *, n_inputs);
  out->inputs = PSPLIT_NEW(&l->arena, psplit_i_learner_input, n_inputs);
  out->given = PSPLIT_NEW(&l->arena, psplit_i_tensor *, n_inputs);
  out->output_names = PSPLIT_NEW(&l->arena, const char *, n_outputs);
  out->got = PSPLIT_NEW(&l->arena, psplit_i_tensor *, n_outputs);
  psplit_i_text_addf(&path, "%s/%s", l->pipe->directory, file);
  psplit_i_watch_begin(l->watch, NULL, file);
  code = l->arena.failed || path.failed
           ? psplit_i_nomem(diag)
           : psplit_i_session_open(l->ort, path.bytes, l->session, diag, &out->session);
  psplit_i_watch_end(l->watch);
  psplit_i_text_fini(&path);
  out->file = file;
  return code;
}

static psplit_code add_input(const psplit_i_learner *l, psplit_i_learner_file *f, const char *name,
                             psplit_i_origin origin, uint32_t index, psplit_diag *diag) {
  if (index == PSPLIT_NONE) return psplit_i_nothing_gives(l, f->file, name, diag);
  if (!psplit_i_session_input(&f->session, name))
    return psplit_i_fail(diag, PSPLIT_INVALID, "%s has no input %s", f->file, name);
  f->input_names[f->n_inputs] = name;
  f->inputs[f->n_inputs++] = (psplit_i_learner_input){origin, index};
  return PSPLIT_OK;
}

static uint32_t add_output(psplit_i_learner_file *f, const char *name) {
  const uint32_t known = psplit_i_name_find(f->output_names, f->n_outputs, name);
  if (known != PSPLIT_NONE) return known;
  f->output_names[f->n_outputs] = name;
  return f->n_outputs++;
}

/* Among the tensors that come in: the one that goes by `name` from stage `from`. */
static uint32_t find_received(const psplit_i_learner *l, psplit_i_wire_kind kind, uint32_t from,
                              const char *name) {
  const uint32_t wire = psplit_i_wiring_find(l->wiring, kind, from, l->index, l->replica);
  if (wire == PSPLIT_NONE) return PSPLIT_NONE;
  const psplit_i_wire *w = &l->wiring->wires[wire];
  const uint32_t t = psplit_i_name_find(w->taken, w->n_tensors, name);
  return t == PSPLIT_NONE ? PSPLIT_NONE : l->wire_base[wire] + t;
}

static psplit_code open_stash(psplit_i_learner *l, psplit_diag *diag) {
  psplit_i_learner_file *f = &l->forward;
  const uint32_t n = l->parts->n_stash;
  l->stash_is_input = PSPLIT_NEW(&l->arena, bool, n);
  l->stash_at = PSPLIT_NEW(&l->arena, uint32_t, n);
  if (l->arena.failed) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n; i++) {
    const char *name = l->parts->stash[i].name;
    const uint32_t input = psplit_i_name_find(f->input_names, f->n_inputs, name);
    l->stash_is_input[i] = input != PSPLIT_NONE;
    l->stash_at[i] = l->stash_is_input[i] ? input : add_output(f, name);
  }
  return PSPLIT_OK;
}

static psplit_code open_forward(psplit_i_learner *l, psplit_diag *diag) {
  const psplit_i_manifest_stage *row = stage_of(l);
  psplit_i_learner_file *f = &l->forward;
  psplit_code code;
  PSPLIT_TRY(open_file(l, row->file, row->n_inputs + l->parts->n_weights,
                       row->n_outputs + l->parts->n_stash + psplit_i_learner_table(l)->n_weights,
                       diag, f));
  for (uint32_t i = 0; i < row->n_inputs; i++) {
    const psplit_i_row *input = &row->inputs[i];
    if (input->optional) continue;
    if (input->from == PSPLIT_I_FROM_MODEL)
      PSPLIT_TRY(add_input(l, f, input->name, PSPLIT_I_ORIGIN_DATA,
                           find_model_input(l->pipe, input->tensor), diag));
    else
      PSPLIT_TRY(add_input(l, f, input->name, PSPLIT_I_ORIGIN_WIRE,
                           find_received(l, PSPLIT_I_WIRE_FORWARD, input->from, input->name),
                           diag));
  }
  for (uint32_t i = 0; i < l->parts->n_weights; i++)
    PSPLIT_TRY(add_input(l, f, l->parts->weights[i], PSPLIT_I_ORIGIN_WEIGHT,
                         find_weight_here(l, l->parts->weights[i]), diag));
  l->loss = PSPLIT_NONE;
  for (uint32_t o = 0; o < row->n_outputs; o++) {
    const psplit_i_row *output = &row->outputs[o];
    const bool is_loss = output->to_model && psplit_i_learner_table(l)->loss_stage == l->index &&
                         strcmp(output->tensor, psplit_i_learner_table(l)->loss_tensor) == 0;
    if (!is_loss && !output->n_to) continue;
    const uint32_t at = add_output(f, output->name);
    if (is_loss) l->loss = at;
  }
  if (psplit_i_learner_table(l)->loss_stage == l->index && l->loss == PSPLIT_NONE)
    return psplit_i_fail(diag, PSPLIT_INVALID, "pipeline.json: stage %" PRIu32 " produces no loss",
                         l->index);
  l->n_essential = f->n_outputs;
  for (uint32_t w = 0; w < psplit_i_learner_table(l)->n_weights; w++) {
    const char *next =
      psplit_i_learner_owns(l, w) ? psplit_i_learner_table(l)->weights[w].next : NULL;
    l->next_at[w] = next ? add_output(f, next) : PSPLIT_NONE;
  }
  code = open_stash(l, diag);
out:
  return code;
}

static psplit_code add_part_input(psplit_i_learner *l, psplit_i_learner_file *f,
                                  const psplit_i_part_input *row, psplit_diag *diag) {
  psplit_i_origin origin = PSPLIT_I_ORIGIN_LOSS;
  uint32_t index = PSPLIT_NONE;
  switch (row->source) {
    case PSPLIT_I_PART_STAGE:
      if (row->from == l->index) {
        origin = PSPLIT_I_ORIGIN_BACKWARD;
        index = psplit_i_name_find(l->backward.output_names, l->backward.n_outputs, row->name);
        break;
      }
      origin = PSPLIT_I_ORIGIN_WIRE;
      index = find_received(l, PSPLIT_I_WIRE_BACKWARD, row->from, row->name);
      break;
    case PSPLIT_I_PART_MODEL:
      origin = PSPLIT_I_ORIGIN_DATA;
      index = find_model_input(l->pipe, row->name);
      break;
    case PSPLIT_I_PART_WEIGHTS:
      origin = PSPLIT_I_ORIGIN_WEIGHT;
      index = find_weight_here(l, row->name);
      break;
    case PSPLIT_I_PART_STASH:
      origin = PSPLIT_I_ORIGIN_STASH;
      for (uint32_t i = 0; i < l->parts->n_stash; i++)
        if (strcmp(l->parts->stash[i].tensor, row->name) == 0) index = i;
      break;
    case PSPLIT_I_PART_AGAIN:
      origin = PSPLIT_I_ORIGIN_AGAIN;
      index = psplit_i_name_find(l->again.output_names, l->again.n_outputs, row->name);
      break;
    case PSPLIT_I_PART_LOSS: index = 0; break;
    case PSPLIT_I_PART_BEFORE:
      origin = PSPLIT_I_ORIGIN_GRADIENT;
      for (uint32_t g = 0; g < l->n_gradients; g++) {
        const char *before = psplit_i_learner_gradient(l, g).before;
        if (before && strcmp(before, row->name) == 0) index = g;
      }
      break;
  }
  return add_input(l, f, row->name, origin, index, diag);
}

static psplit_code open_part(psplit_i_learner *l, const psplit_i_part *part,
                             psplit_i_learner_file *f, psplit_diag *diag) {
  psplit_code code;
  if (!part->file) return PSPLIT_OK;
  PSPLIT_TRY(open_file(l, part->file, part->n_inputs, part->n_outputs, diag, f));
  for (uint32_t i = 0; i < part->n_inputs; i++)
    PSPLIT_TRY(add_part_input(l, f, &part->inputs[i], diag));
  for (uint32_t o = 0; o < part->n_outputs; o++)
    if (part->outputs[o].n_to || part->outputs[o].goal == PSPLIT_I_PART_UPDATE ||
        part->outputs[o].goal == PSPLIT_I_PART_BACKWARD)
      add_output(f, part->outputs[o].name);
out:
  return code;
}

/* What the file of gradients of weights takes, and when that is there. What is computed again is
 * kept for it, unless no other file reads that. */
static psplit_code open_weight_gradients(psplit_i_learner *l, psplit_diag *diag) {
  psplit_i_learner_file *f = &l->weight_gradients;
  psplit_code code;
  PSPLIT_TRY(open_part(l, &l->parts->weight_gradients, f, diag));
  l->kept_from = PSPLIT_NEW(&l->arena, psplit_i_learner_input, f->n_inputs);
  l->later_stash = PSPLIT_NEW(&l->arena, bool, l->parts->n_stash);
  l->later_data = PSPLIT_NEW(&l->arena, bool, l->pipe->manifest.n_inputs);
  if (l->arena.failed) return psplit_i_nomem(diag);
  l->again_later = f->file && !l->backward.file;
  for (uint32_t i = 0; i < f->n_inputs; i++) {
    psplit_i_learner_input *input = &f->inputs[i];
    if (input->origin != PSPLIT_I_ORIGIN_WIRE && input->origin != PSPLIT_I_ORIGIN_BACKWARD &&
        (input->origin != PSPLIT_I_ORIGIN_AGAIN || l->again_later))
      continue;
    l->kept_from[l->n_kept] = *input;
    *input = (psplit_i_learner_input){PSPLIT_I_ORIGIN_KEPT, l->n_kept++};
  }
  const psplit_i_learner_file *later[] = {f, l->again_later ? &l->again : f};
  for (int k = 0; k < 2; k++)
    for (uint32_t i = 0; i < later[k]->n_inputs; i++) {
      const psplit_i_learner_input *input = &later[k]->inputs[i];
      l->later_needs_weights |= input->origin == PSPLIT_I_ORIGIN_WEIGHT;
      if (input->origin == PSPLIT_I_ORIGIN_STASH) l->later_stash[input->index] = true;
      if (input->origin == PSPLIT_I_ORIGIN_DATA) l->later_data[input->index] = true;
    }
  for (uint32_t m = 0; m < l->n_micro_batches && !l->arena.failed; m++)
    l->held[m].kept = PSPLIT_NEW(&l->arena, psplit_i_tensor *, l->n_kept);
  if (l->arena.failed) return psplit_i_nomem(diag);
out:
  return code;
}

/* A weight is its owner's to move, once: then its gradients are those that there is room for. */
static psplit_code check_kept(const psplit_i_learner *l, uint32_t k, uint32_t w,
                              psplit_diag *diag) {
  const psplit_i_kept_row *row = &l->parts->update.kept[k];
  if (w == PSPLIT_NONE) return psplit_i_nothing_gives(l, l->parts->update.file, row->weight, diag);
  bool twice = false;
  for (uint32_t before = 0; before < k && !row->is_state; before++)
    twice |= l->kept_weight[before] == w;
  if (!twice && psplit_i_learner_owns(l, w)) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_INVALID, "pipeline.json: stage %" PRIu32 " updates %s%s",
                       l->index, row->weight, twice ? " twice" : ", which is not its own");
}

static psplit_code open_update(psplit_i_learner *l, psplit_diag *diag) {
  const psplit_i_update_part *part = &l->parts->update;
  psplit_i_learner_file *f = &l->update;
  psplit_code code;
  if (!part->file) return PSPLIT_OK;
  PSPLIT_TRY(open_file(l, part->file, part->n_kept + l->n_gradients + 3, part->n_kept, diag, f));
  l->kept_weight = PSPLIT_NEW(&l->arena, uint32_t, part->n_kept);
  if (!l->kept_weight) return psplit_i_nomem(diag);
  PSPLIT_TRY(add_input(l, f, part->lr, PSPLIT_I_ORIGIN_RATE, 0, diag));
  PSPLIT_TRY(add_input(l, f, part->scale, PSPLIT_I_ORIGIN_SCALE, 0, diag));
  if (part->step) PSPLIT_TRY(add_input(l, f, part->step, PSPLIT_I_ORIGIN_STEP, 0, diag));
  for (uint32_t k = 0; k < part->n_kept; k++) {
    const psplit_i_kept_row *row = &part->kept[k];
    const uint32_t w = psplit_i_learner_find_weight(l, row->weight);
    PSPLIT_TRY(check_kept(l, k, w, diag));
    l->kept_weight[k] = row->is_state ? PSPLIT_NONE : w;
    PSPLIT_TRY(add_input(l, f, row->name,
                         row->is_state ? PSPLIT_I_ORIGIN_STATE : PSPLIT_I_ORIGIN_WEIGHT,
                         row->is_state ? k : w, diag));
    for (uint32_t g = l->first_gradient[w]; g < l->first_gradient[w + 1] && !row->is_state; g++)
      PSPLIT_TRY(add_input(l, f, psplit_i_learner_gradient(l, g).gradient, PSPLIT_I_ORIGIN_GRADIENT,
                           g, diag));
    add_output(f, row->new_name);
  }
out:
  return code;
}

psplit_code psplit_i_learner_open_files(psplit_i_learner *l, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(open_forward(l, diag));
  PSPLIT_TRY(open_part(l, &l->parts->again, &l->again, diag));
  PSPLIT_TRY(open_part(l, &l->parts->backward, &l->backward, diag));
  PSPLIT_TRY(open_weight_gradients(l, diag));
  PSPLIT_TRY(open_update(l, diag));
out:
  return code;
}

psplit_code psplit_i_learner_first_weights(psplit_i_learner *l, psplit_diag *diag) {
  psplit_i_learner_file f = {0};
  psplit_code code;
  if (!l->parts->first_weights) return PSPLIT_OK;
  PSPLIT_TRY(
    open_file(l, l->parts->first_weights, 0, psplit_i_learner_table(l)->n_weights, diag, &f));
  for (size_t o = 0; o < f.session.n_outputs && f.n_outputs < psplit_i_learner_table(l)->n_weights;
       o++)
    f.output_names[f.n_outputs++] = f.session.outputs[o].name;
  psplit_i_watch_begin(l->watch, &f.session, f.file);
  code = psplit_i_session_run(
    &f.session,
    &(psplit_i_session_io){f.input_names, f.given, 0, f.output_names, f.got, f.n_outputs}, diag);
  psplit_i_watch_end(l->watch);
  for (uint32_t o = 0; o < f.n_outputs && code == PSPLIT_OK; o++) {
    const uint32_t w = psplit_i_learner_find_weight(l, f.output_names[o]);
    psplit_i_tensor_release(w == PSPLIT_NONE ? f.got[o] : l->weights[w]);
    if (w != PSPLIT_NONE) l->weights[w] = f.got[o];
  }
out:
  if (code != PSPLIT_OK) psplit_i_diag_context(diag, "%s", l->parts->first_weights);
  psplit_i_session_close(&f.session);
  return code;
}
