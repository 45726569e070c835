#include "train_pass.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_of_stage(psplit_i_pass_kind kind) { return kind >= PSPLIT_I_PASS_SENT; }

/* The name of a slot: what it is, of which stage, and its name. */
static void write_key(psplit_i_text *text, psplit_i_pass_kind kind, uint32_t stage,
                      const char *name) {
  psplit_i_text_addf(text, "%u.%" PRIu32 " ", (unsigned)kind, is_of_stage(kind) ? stage : 0);
  psplit_i_text_puts(text, name);
}

psplit_code psplit_i_train_pass_slot(const psplit_i_train_pass *pass, psplit_i_pass_kind kind,
                                     uint32_t stage, const char *name, psplit_diag *diag,
                                     uint32_t *out_slot) {
  psplit_i_text key = {0};
  write_key(&key, kind, stage, name);
  const bool failed = key.failed;
  const uint32_t id = failed ? PSPLIT_NONE : psplit_i_intern_find(&pass->names, key.bytes);
  psplit_i_text_fini(&key);
  if (failed) return psplit_i_nomem(diag);
  *out_slot = id == PSPLIT_NONE ? PSPLIT_NONE : pass->slot_of[id];
  return PSPLIT_OK;
}

/* Gives a name its slot, a new one for PSPLIT_NONE, unless it has one. *out_slot is what it has.
 * False when out of memory. */
static bool add_name(psplit_i_train_pass *pass, psplit_i_pass_kind kind, uint32_t stage,
                     const char *name, uint32_t slot, uint32_t *out_slot) {
  psplit_i_text key = {0};
  write_key(&key, kind, stage, name);
  const uint32_t n = pass->names.n;
  uint32_t id = key.failed ? PSPLIT_NONE : psplit_i_intern_find(&pass->names, key.bytes);
  if (id == PSPLIT_NONE && !key.failed) {
    const char *own = psplit_i_arena_strndup(&pass->arena, key.bytes, key.n);
    if (own) id = psplit_i_intern_add(&pass->names, own);
  }
  psplit_i_text_fini(&key);
  if (id == n) pass->slot_of[id] = slot == PSPLIT_NONE ? pass->n_slots++ : slot;
  if (id != PSPLIT_NONE) *out_slot = pass->slot_of[id];
  return id != PSPLIT_NONE;
}

/* The slot of a name, a new one where it has none; PSPLIT_NONE when out of memory. */
static uint32_t add_slot(psplit_i_train_pass *pass, psplit_i_pass_kind kind, uint32_t stage,
                         const char *name) {
  uint32_t slot = PSPLIT_NONE;
  return add_name(pass, kind, stage, name, PSPLIT_NONE, &slot) ? slot : PSPLIT_NONE;
}

static bool open_lists(psplit_i_train_pass *pass, size_t n_inputs, size_t n_outputs,
                       psplit_i_pass_file *file) {
  file->input_names = PSPLIT_NEW(&pass->arena, const char *, n_inputs);
  file->output_names = PSPLIT_NEW(&pass->arena, const char *, n_outputs);
  file->input_slots = PSPLIT_NEW(&pass->arena, uint32_t, n_inputs);
  file->output_slots = PSPLIT_NEW(&pass->arena, uint32_t, n_outputs);
  return file->input_names && file->output_names && file->input_slots && file->output_slots;
}

static bool add_input(psplit_i_pass_file *file, const char *name, uint32_t slot) {
  file->input_names[file->n_inputs] = name;
  file->input_slots[file->n_inputs++] = slot;
  return slot != PSPLIT_NONE;
}

static bool add_output(psplit_i_pass_file *file, const char *name, uint32_t slot) {
  file->output_names[file->n_outputs] = name;
  file->output_slots[file->n_outputs++] = slot;
  return slot != PSPLIT_NONE;
}

/* The slot of a port of the file, whether it goes in or out; PSPLIT_NONE: it has none. */
static uint32_t find_port(const psplit_i_pass_file *file, const char *name) {
  for (uint32_t o = 0; o < file->n_outputs; o++)
    if (strcmp(file->output_names[o], name) == 0) return file->output_slots[o];
  for (uint32_t i = 0; i < file->n_inputs; i++)
    if (strcmp(file->input_names[i], name) == 0) return file->input_slots[i];
  return PSPLIT_NONE;
}

/* Inputs, what is sent, the stash: which may be an input or be sent besides. */
static bool list_forward(psplit_i_train_pass *pass, uint32_t s) {
  const psplit_i_manifest_stage *stage = &pass->pipe->manifest.stages[s];
  const psplit_i_training_table *table = pass->pipe->manifest.training;
  const psplit_i_training_parts *parts = &table->stages[s];
  psplit_i_pass_file *file = &pass->forward[s];
  bool good = open_lists(pass, (size_t)stage->n_inputs + parts->n_weights,
                         (size_t)stage->n_outputs + parts->n_stash, file);
  for (uint32_t i = 0; good && i < parts->n_weights; i++)
    good = add_input(file, parts->weights[i],
                     add_slot(pass, PSPLIT_I_PASS_WEIGHT, s, parts->weights[i]));
  for (uint32_t i = 0; good && i < stage->n_inputs; i++) {
    const psplit_i_row *row = &stage->inputs[i];
    const bool data = row->from == PSPLIT_I_FROM_MODEL;
    good = add_input(file, row->name,
                     add_slot(pass, data ? PSPLIT_I_PASS_DATA : PSPLIT_I_PASS_SENT,
                              data ? 0 : row->from, row->tensor));
  }
  for (uint32_t o = 0; good && o < stage->n_outputs; o++) {
    const psplit_i_row *row = &stage->outputs[o];
    good = add_output(file, row->name, add_slot(pass, PSPLIT_I_PASS_SENT, s, row->tensor));
  }
  file->n_sent = file->n_outputs;
  for (uint32_t i = 0; good && i < parts->n_stash; i++) {
    const psplit_i_stash_row *row = &parts->stash[i];
    uint32_t port = find_port(file, row->name);
    good = port == PSPLIT_NONE
             ? add_output(file, row->name, add_slot(pass, PSPLIT_I_PASS_STASH, s, row->tensor))
             : add_name(pass, PSPLIT_I_PASS_STASH, s, row->tensor, port, &port);
  }
  return good;
}

/* A file that `part` describes; its outputs are of kind `gives`. */
static bool list_part(psplit_i_train_pass *pass, uint32_t s, const psplit_i_part *part,
                      psplit_i_pass_kind gives, psplit_i_pass_file *file) {
  static const psplit_i_pass_kind kinds[] = {
    [PSPLIT_I_PART_STAGE] = PSPLIT_I_PASS_BACK,     [PSPLIT_I_PART_MODEL] = PSPLIT_I_PASS_DATA,
    [PSPLIT_I_PART_WEIGHTS] = PSPLIT_I_PASS_WEIGHT, [PSPLIT_I_PART_STASH] = PSPLIT_I_PASS_STASH,
    [PSPLIT_I_PART_AGAIN] = PSPLIT_I_PASS_AGAIN,    [PSPLIT_I_PART_LOSS] = PSPLIT_I_PASS_LOSS,
    [PSPLIT_I_PART_BEFORE] = PSPLIT_I_PASS_BEFORE};
  bool good = open_lists(pass, part->n_inputs, part->n_outputs, file);
  for (uint32_t i = 0; good && i < part->n_inputs; i++) {
    const psplit_i_part_input *in = &part->inputs[i];
    const uint32_t stage = in->source == PSPLIT_I_PART_STAGE ? in->from : s;
    good = add_input(file, in->name, add_slot(pass, kinds[in->source], stage, in->name));
  }
  for (uint32_t o = 0; good && o < part->n_outputs; o++)
    good = add_output(file, part->outputs[o].name, add_slot(pass, gives, s, part->outputs[o].name));
  return good;
}

static psplit_code open_file(psplit_i_train_pass *pass, const char *name,
                             const psplit_i_session_options *options, psplit_diag *diag,
                             psplit_i_pass_file *file) {
  psplit_i_text path = {0};
  psplit_i_text_addf(&path, "%s/%s", pass->pipe->directory, name);
  const psplit_code code =
    path.failed ? psplit_i_nomem(diag)
                : psplit_i_session_open(pass->ort, path.bytes, options, diag, &file->session);
  psplit_i_text_fini(&path);
  return code;
}

/* At most so many names are given slots. */
static size_t count_names(const psplit_i_manifest *m) {
  size_t n = 0;
  for (uint32_t s = 0; s < m->n_stages; s++) {
    const psplit_i_training_parts *parts = &m->training->stages[s];
    n += (size_t)m->stages[s].n_inputs + m->stages[s].n_outputs + parts->n_weights +
         parts->n_stash + parts->again.n_inputs + parts->again.n_outputs +
         parts->backward.n_inputs + parts->backward.n_outputs + parts->weight_gradients.n_inputs +
         parts->weight_gradients.n_outputs;
  }
  return n;
}

psplit_code psplit_i_train_pass_open(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                     const psplit_i_session_options *options, psplit_diag *diag,
                                     psplit_i_train_pass *out) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest *m = &pipe->manifest;
  psplit_i_train_pass pass = {.ort = ort, .pipe = pipe};
  psplit_i_arena_init(&pass.arena, 0);
  psplit_i_intern_init(&pass.names);
  const size_t n = count_names(m);
  pass.slot_of = PSPLIT_NEW(&pass.arena, uint32_t, n);
  pass.slots = PSPLIT_NEW(&pass.arena, psplit_i_tensor *, n);
  pass.forward = PSPLIT_NEW(&pass.arena, psplit_i_pass_file, m->n_stages);
  pass.again = PSPLIT_NEW(&pass.arena, psplit_i_pass_file, m->n_stages);
  pass.backward = PSPLIT_NEW(&pass.arena, psplit_i_pass_file, m->n_stages);
  pass.weight_gradients = PSPLIT_NEW(&pass.arena, psplit_i_pass_file, m->n_stages);
  bool good = pass.slot_of && pass.slots && pass.forward && pass.again && pass.backward &&
              pass.weight_gradients;
  for (uint32_t s = 0; good && s < m->n_stages; s++) {
    const psplit_i_training_parts *parts = &m->training->stages[s];
    good =
      list_forward(&pass, s) &&
      list_part(&pass, s, &parts->again, PSPLIT_I_PASS_AGAIN, &pass.again[s]) &&
      list_part(&pass, s, &parts->backward, PSPLIT_I_PASS_BACK, &pass.backward[s]) &&
      list_part(&pass, s, &parts->weight_gradients, PSPLIT_I_PASS_BACK, &pass.weight_gradients[s]);
  }
  if (!good) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t s = 0; s < m->n_stages; s++) {
    const psplit_i_training_parts *parts = &m->training->stages[s];
    PSPLIT_TRY(open_file(&pass, m->stages[s].file, options, diag, &pass.forward[s]));
    if (parts->again.file)
      PSPLIT_TRY(open_file(&pass, parts->again.file, options, diag, &pass.again[s]));
    if (parts->backward.file)
      PSPLIT_TRY(open_file(&pass, parts->backward.file, options, diag, &pass.backward[s]));
    if (parts->weight_gradients.file)
      PSPLIT_TRY(
        open_file(&pass, parts->weight_gradients.file, options, diag, &pass.weight_gradients[s]));
  }
  *out = pass;
  return PSPLIT_OK;
out:
  psplit_i_train_pass_close(&pass);
  return code;
}

void psplit_i_train_pass_close(psplit_i_train_pass *pass) {
  if (!pass->ort) return;
  for (uint32_t i = 0; pass->slots && i < pass->n_slots; i++)
    psplit_i_tensor_release(pass->slots[i]);
  for (uint32_t s = 0; s < pass->pipe->manifest.n_stages; s++) {
    if (pass->forward) psplit_i_session_close(&pass->forward[s].session);
    if (pass->again) psplit_i_session_close(&pass->again[s].session);
    if (pass->backward) psplit_i_session_close(&pass->backward[s].session);
    if (pass->weight_gradients) psplit_i_session_close(&pass->weight_gradients[s].session);
  }
  psplit_i_intern_fini(&pass->names);
  psplit_i_arena_fini(&pass->arena);
}

void psplit_i_train_pass_put(psplit_i_train_pass *pass, uint32_t slot, psplit_i_tensor *tensor) {
  psplit_i_tensor **place = slot == PSPLIT_NONE ? NULL : &pass->slots[slot];
  psplit_i_tensor_release(place ? *place : tensor);
  if (place) *place = tensor;
}

static psplit_code run(psplit_i_train_pass *pass, psplit_i_pass_file *file, uint32_t n_outputs,
                       psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  uint32_t n = 0;
  const char **names = calloc((size_t)file->n_inputs + 1, sizeof *names);
  psplit_i_tensor **given = calloc((size_t)file->n_inputs + 1, sizeof *given);
  psplit_i_tensor **got = calloc((size_t)n_outputs + 1, sizeof *got);
  if (!names || !given || !got) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t i = 0; i < file->n_inputs; i++) {
    given[n] = pass->slots[file->input_slots[i]];
    names[n] = file->input_names[i];
    n += given[n] != NULL;
  }
  PSPLIT_TRY(psplit_i_session_run(
    &file->session, &(psplit_i_session_io){names, given, n, file->output_names, got, n_outputs},
    diag));
  for (uint32_t o = 0; o < n_outputs; o++)
    psplit_i_train_pass_put(pass, file->output_slots[o], got[o]);
out:
  free(got);
  free(given);
  free(names);
  return code;
}

psplit_code psplit_i_train_pass_forward(psplit_i_train_pass *pass, uint32_t first, bool stash,
                                        psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest *m = &pass->pipe->manifest;
  for (uint32_t s = first; s < m->n_stages && code == PSPLIT_OK; s++) {
    psplit_i_pass_file *file = &pass->forward[s];
    const uint32_t n = stash ? file->n_outputs : file->n_sent;
    if (n) code = run(pass, file, n, diag);
    if (code != PSPLIT_OK) psplit_i_diag_context(diag, "%s", m->stages[s].file);
  }
  return code;
}

psplit_code psplit_i_train_pass_backward(psplit_i_train_pass *pass, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest *m = &pass->pipe->manifest;
  for (uint32_t s = m->n_stages; s-- > 0 && code == PSPLIT_OK;) {
    enum { N_FILES = 3 };
    const psplit_i_training_parts *stage = &m->training->stages[s];
    const psplit_i_part *parts[N_FILES] = {&stage->again, &stage->backward,
                                           &stage->weight_gradients};
    psplit_i_pass_file *files[N_FILES] = {&pass->again[s], &pass->backward[s],
                                          &pass->weight_gradients[s]};
    for (int i = 0; i < N_FILES && code == PSPLIT_OK; i++) {
      if (parts[i]->file) code = run(pass, files[i], files[i]->n_outputs, diag);
      if (code != PSPLIT_OK) psplit_i_diag_context(diag, "%s", parts[i]->file);
    }
  }
  return code;
}
