/* Opens and closes a stage that learns: room, files, wires, first weights and states. */
#include <string.h>

#include "learner_inside.h"

static psplit_code first_states(psplit_i_learner *l, psplit_diag *diag) {
  const psplit_i_update_part *part = &l->parts->update;
  const psplit_i_trained_weight *weights = psplit_i_learner_table(l)->weights;
  psplit_code code = PSPLIT_OK;
  for (uint32_t w = 0; w < psplit_i_learner_table(l)->n_weights; w++)
    if (psplit_i_learner_owns(l, w) && !l->weights[w])
      return psplit_i_fail(diag, PSPLIT_INVALID, "%s does not give %s",
                           l->parts->first_weights ? l->parts->first_weights : "no file",
                           weights[w].name);
  for (uint32_t k = 0; k < part->n_kept; k++) {
    const uint32_t w = psplit_i_learner_find_weight(l, part->kept[k].weight);
    if (part->kept[k].is_state)
      PSPLIT_TRY(psplit_i_learner_zeros(l->ort, l->weights[w], diag, &l->states[k]));
  }
out:
  return code;
}

/* Where the tensors of wires that come in are put. */
static psplit_code place_received(psplit_i_learner *l, psplit_diag *diag) {
  const psplit_i_wiring *wiring = l->wiring;
  uint32_t n_way[PSPLIT_I_WIRE_ORDER + 1] = {0};
  l->wire_base = PSPLIT_NEW(&l->arena, uint32_t, wiring->n_wires);
  l->wire_tensors = PSPLIT_NEW(&l->arena, uint32_t *, wiring->n_wires);
  if (l->arena.failed) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < wiring->n_wires; i++) {
    const psplit_i_wire *w = &wiring->wires[i];
    if (w->kind > PSPLIT_I_WIRE_BACKWARD || !psplit_i_wire_enters(w, w->kind, l->index, l->replica))
      continue;
    l->wire_base[i] = n_way[w->kind];
    n_way[w->kind] += w->n_tensors;
  }
  const uint32_t forward = n_way[PSPLIT_I_WIRE_FORWARD], backward = n_way[PSPLIT_I_WIRE_BACKWARD];
  l->n_received = forward > backward ? forward : backward;
  l->received = PSPLIT_NEW(&l->arena, psplit_i_tensor *, l->n_received);
  return l->received ? PSPLIT_OK : psplit_i_nomem(diag);
}

static uint32_t find_gradient(const psplit_i_learner *l, const char *name) {
  for (uint32_t g = 0; g < l->n_gradients; g++)
    if (strcmp(psplit_i_learner_gradient(l, g).gradient, name) == 0) return g;
  return PSPLIT_NONE;
}

/* What goes out by a wire, or is taken from one with weights or gradients. */
static psplit_code place_wire(psplit_i_learner *l, uint32_t i, psplit_diag *diag) {
  const psplit_i_wire *w = &l->wiring->wires[i];
  const psplit_i_learner_file *f = w->kind == PSPLIT_I_WIRE_BACKWARD ? &l->backward : &l->forward;
  uint32_t *tensors = l->wire_tensors[i] = PSPLIT_NEW(&l->arena, uint32_t, w->n_tensors);
  if (!tensors) return psplit_i_nomem(diag);
  for (uint32_t t = 0; t < w->n_tensors; t++) {
    tensors[t] = w->kind == PSPLIT_I_WIRE_WEIGHTS ? psplit_i_learner_find_weight(l, w->given[t])
                 : w->kind > PSPLIT_I_WIRE_BACKWARD
                   ? find_gradient(l, w->given[t])
                   : psplit_i_name_find(f->output_names, f->n_outputs, w->given[t]);
    if (tensors[t] == PSPLIT_NONE)
      return psplit_i_nothing_gives(l, f->file ? f->file : "no file", w->given[t], diag);
  }
  return PSPLIT_OK;
}

static psplit_code place_wires(psplit_i_learner *l, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < l->wiring->n_wires && code == PSPLIT_OK; i++) {
    const psplit_i_wire *w = &l->wiring->wires[i];
    const bool in =
      w->kind > PSPLIT_I_WIRE_BACKWARD && psplit_i_wire_enters(w, w->kind, l->index, l->replica);
    const bool out = psplit_i_wire_leaves(w, w->kind, l->index, l->replica);
    if (w->kind < PSPLIT_I_WIRE_REPORT && (in || out)) code = place_wire(l, i, diag);
  }
  return code;
}

static psplit_code place_gradients(psplit_i_learner *l, psplit_diag *diag) {
  const psplit_i_learner_file *files[PSPLIT_I_N_HALVES] = {&l->backward, &l->weight_gradients};
  for (int h = 0; h < PSPLIT_I_N_HALVES; h++) {
    l->gradient_at[h] = PSPLIT_NEW(&l->arena, uint32_t, l->n_gradients);
    if (!l->gradient_at[h]) return psplit_i_nomem(diag);
    for (uint32_t g = 0; g < l->n_gradients; g++)
      l->gradient_at[h][g] = psplit_i_name_find(files[h]->output_names, files[h]->n_outputs,
                                                psplit_i_learner_gradient(l, g).gradient);
  }
  return PSPLIT_OK;
}

static bool count_gradients(psplit_i_learner *l) {
  const psplit_i_training_table *t = psplit_i_learner_table(l);
  l->first_gradient = PSPLIT_NEW(&l->arena, uint32_t, (size_t)t->n_weights + 1);
  for (uint32_t w = 0; w < t->n_weights && l->first_gradient; w++)
    l->first_gradient[w + 1] = l->first_gradient[w] + psplit_i_n_gradients(&t->weights[w]);
  if (!l->first_gradient) return false;
  l->n_gradients = l->first_gradient[t->n_weights];
  l->gradient_weight = PSPLIT_NEW(&l->arena, uint32_t, l->n_gradients);
  for (uint32_t w = 0; w < t->n_weights && l->gradient_weight; w++)
    for (uint32_t g = l->first_gradient[w]; g < l->first_gradient[w + 1]; g++)
      l->gradient_weight[g] = w;
  return l->gradient_weight != NULL;
}

static psplit_code make_room(psplit_i_learner *l, psplit_diag *diag) {
  const uint32_t n_weights = psplit_i_learner_table(l)->n_weights,
                 n_inputs = l->pipe->manifest.n_inputs;
  l->weights = PSPLIT_NEW(&l->arena, psplit_i_tensor *, n_weights);
  if (!count_gradients(l)) return psplit_i_nomem(diag);
  l->perturbed = PSPLIT_NEW(&l->arena, psplit_i_tensor *, n_weights);
  l->before = PSPLIT_NEW(&l->arena, psplit_i_tensor *, n_weights);
  l->next_at = PSPLIT_NEW(&l->arena, uint32_t, n_weights);
  l->sums = PSPLIT_NEW(&l->arena, psplit_i_tensor *, l->n_gradients);
  l->states = PSPLIT_NEW(&l->arena, psplit_i_tensor *, l->parts->update.n_kept);
  l->reads = PSPLIT_NEW(&l->arena, bool, n_inputs);
  l->held = PSPLIT_NEW(&l->arena, psplit_i_held, l->n_micro_batches);
  for (uint32_t m = 0; m < l->n_micro_batches && !l->arena.failed; m++) {
    l->held[m].data = PSPLIT_NEW(&l->arena, psplit_i_tensor *, n_inputs);
    l->held[m].stash = PSPLIT_NEW(&l->arena, psplit_i_tensor *, l->parts->n_stash);
  }
  return l->arena.failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}

psplit_code psplit_i_learner_open(psplit_i_learner *l, psplit_diag *diag) {
  psplit_code code;
  psplit_i_arena_init(&l->arena, 0);
  l->parts = &psplit_i_learner_table(l)->stages[l->index];
  PSPLIT_TRY(make_room(l, diag));
  psplit_i_learner_needs(l->pipe, l->index, l->reads);
  PSPLIT_TRY(place_received(l, diag));
  PSPLIT_TRY(psplit_i_learner_open_files(l, diag));
  PSPLIT_TRY(place_wires(l, diag));
  PSPLIT_TRY(place_gradients(l, diag));
  PSPLIT_TRY(psplit_i_learner_first_weights(l, diag));
  PSPLIT_TRY(first_states(l, diag));
out:
  return code;
}

static void close_file(psplit_i_learner *l, psplit_i_learner_file *f) {
  psplit_i_tensors_release(f->got, f->n_outputs);
  if (f->file) psplit_i_watch_begin(l->watch, NULL, f->file);
  psplit_i_session_close(&f->session);
  if (f->file) psplit_i_watch_end(l->watch);
}

void psplit_i_learner_close(psplit_i_learner *l) {
  if (!l->parts) return;
  psplit_i_learner_file *const files[] = {&l->forward, &l->again, &l->backward,
                                          &l->weight_gradients, &l->update};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) close_file(l, files[i]);
  for (uint32_t m = 0; l->held && m < l->n_micro_batches; m++) {
    psplit_i_tensors_release(l->held[m].data, l->pipe->manifest.n_inputs);
    if (l->held[m].data) psplit_i_tensors_release(l->held[m].stash, l->parts->n_stash);
    if (l->held[m].kept) psplit_i_tensors_release(l->held[m].kept, l->n_kept);
  }
  psplit_i_tensors_release(l->received, l->n_received);
  psplit_i_tensors_release(l->weights, psplit_i_learner_table(l)->n_weights);
  psplit_i_tensors_release(l->perturbed, psplit_i_learner_table(l)->n_weights);
  psplit_i_tensors_release(l->before, psplit_i_learner_table(l)->n_weights);
  psplit_i_tensors_release(l->sums, l->n_gradients);
  psplit_i_tensors_release(l->states, l->parts->update.n_kept);
  psplit_i_arena_fini(&l->arena);
  l->parts = NULL;
}
