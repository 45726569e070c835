#include "feeding.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "loss_text.h"
#include "name_list.h"

static psplit_code check_names(const psplit_i_manifest *m, psplit_subject subject,
                               const psplit_feed_file *files, size_t n, psplit_diag *diag) {
  for (size_t i = 0; i < n; i++)
    if (files[i].input && psplit_i_name_find(m->inputs, m->n_inputs, files[i].input) == PSPLIT_NONE)
      return psplit_i_fail_unknown(diag, subject, "the model has no input", files[i].input,
                                   m->inputs, m->n_inputs);
  return PSPLIT_OK;
}

psplit_code psplit_i_feeding_check(const psplit_i_manifest *m, const psplit_train_options *o,
                                   psplit_diag *diag) {
  psplit_code code = check_names(m, PSPLIT_SUBJECT_TRAIN_DATA, o->data, o->n_data, diag);
  if (code == PSPLIT_OK)
    code = check_names(m, PSPLIT_SUBJECT_NONE, o->eval_data, o->n_eval_data, diag);
  return code == PSPLIT_OK ? check_names(m, PSPLIT_SUBJECT_NONE, o->fixed, o->n_fixed, diag) : code;
}

/* The file that gives an input, NULL: none does. */
static psplit_code find_file(const psplit_feed_file *files, size_t n, const char *input,
                             psplit_diag *diag, const char **out) {
  *out = NULL;
  for (size_t i = 0; i < n && !*out; i++)
    if (files[i].input && strcmp(files[i].input, input) == 0) *out = files[i].path;
  for (size_t i = 0; i < n && !*out; i++) {
    bool has = false;
    if (files[i].input) continue;
    const psplit_code code = psplit_i_npz_has(files[i].path, input, diag, &has);
    if (code != PSPLIT_OK) return code;
    if (has) *out = files[i].path;
  }
  return PSPLIT_OK;
}

const char *psplit_i_feeding_file(const psplit_train_options *o, psplit_i_feed_set set,
                                  const char *input) {
  const bool trains = set == PSPLIT_I_SET_TRAIN;
  psplit_diag ignored = {0};
  const char *path = NULL;
  const psplit_code code = find_file(trains ? o->data : o->eval_data,
                                     trains ? o->n_data : o->n_eval_data, input, &ignored, &path);
  return code == PSPLIT_OK && path ? path : input;
}

static int32_t type_of(const char *dtype) {
  for (int32_t t = 1; dtype && psplit_i_element_name(t); t++)
    if (strcmp(psplit_i_element_name(t), dtype) == 0) return t;
  return 0;
}

typedef struct opening {
  const psplit_train_options *options;
  psplit_i_feeding *feeding;
  psplit_i_rows_wanted wanted;
  int64_t dims[PSPLIT_I_MAX_RANK];
} opening;

static psplit_code want(opening *o, const psplit_i_manifest_value *value, psplit_diag *diag) {
  o->wanted = (psplit_i_rows_wanted){.name = value->name,
                                     .data_type = type_of(value->dtype),
                                     .n_dims = PSPLIT_NONE,
                                     .max_unpacked_bytes = o->options->max_unpacked_bytes};
  if (!o->wanted.data_type)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "input %s is not a tensor of a known type",
                         value->name);
  if (value->shape.rank < 0 || value->shape.rank > PSPLIT_I_MAX_RANK) return PSPLIT_OK;
  o->wanted.n_dims = (uint32_t)value->shape.rank;
  for (uint32_t i = 0; i < o->wanted.n_dims; i++) o->dims[i] = value->shape.dims[i].value;
  o->wanted.dims = o->dims;
  return PSPLIT_OK;
}

static psplit_code open_rows(opening *o, psplit_i_feed_set set, const char *path,
                             psplit_i_fed_input *input, psplit_diag *diag) {
  psplit_i_order *order = &o->feeding->order[set];
  psplit_code code = psplit_i_rows_open(path, &o->wanted, diag, &input->rows[set]);
  if (code != PSPLIT_OK) return code;
  if (!order->n_rows) {
    order->n_rows = input->rows[set].n_rows;
    o->feeding->first_fed[set] = (uint32_t)(input - o->feeding->inputs);
  }
  for (uint32_t i = 0; i < o->feeding->manifest->n_inputs && code == PSPLIT_OK; i++) {
    const psplit_i_rows *other = &o->feeding->inputs[i].rows[set];
    if (other->n_rows)
      code = psplit_i_rows_agree(input->rows[set].path, input->rows[set].n_rows, other->path,
                                 other->n_rows, diag);
  }
  return code;
}

/* Opens what gives one input: an array for all micro-batches, or rows. */
static psplit_code open_input(opening *o, uint32_t i, psplit_diag *diag) {
  const psplit_train_options *options = o->options;
  psplit_i_fed_input *input = &o->feeding->inputs[i];
  const char *name = o->feeding->manifest->inputs[i], *path = NULL;
  psplit_code code = PSPLIT_OK;
  if (psplit_i_find_mask(o->feeding->manifest, i)) return PSPLIT_OK;
  PSPLIT_TRY(want(o, &o->feeding->manifest->input_values[i], diag));
  PSPLIT_TRY(find_file(options->fixed, options->n_fixed, name, diag, &path));
  if (path) {
    const psplit_i_array_wanted wanted = {.data_type = o->wanted.data_type,
                                          .n_dims = PSPLIT_NONE,
                                          .max_unpacked_bytes = o->wanted.max_unpacked_bytes};
    return psplit_i_array_read(o->feeding->ort, path, name, &wanted, diag, &input->fixed);
  }
  PSPLIT_TRY(find_file(options->data, options->n_data, name, diag, &path));
  if (!path)
    return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS_WITH(TRAIN_DATA, name),
                               "there is no data for input %s", name);
  PSPLIT_TRY(open_rows(o, PSPLIT_I_SET_TRAIN, path, input, diag));
  if (!options->eval_every) return code;
  PSPLIT_TRY(find_file(options->eval_data, options->n_eval_data, name, diag, &path));
  if (!path)
    return psplit_i_fail(diag, PSPLIT_USAGE, "the data of evaluations does not give the input %s",
                         name);
  PSPLIT_TRY(open_rows(o, PSPLIT_I_SET_EVAL, path, input, diag));
out:
  return code;
}

/* --- classes --- */

/* The output of the model that has the logits: the one that is named, or the first. */
static const psplit_i_manifest_value *find_logits(const psplit_i_manifest *m) {
  const psplit_i_loss_word word = psplit_i_loss_prediction(m->training->loss);
  for (uint32_t i = 0; i < m->n_outputs; i++)
    if (word.at ? psplit_i_loss_word_is(word, m->outputs[i])
                : strcmp(m->outputs[i], m->training->loss_tensor) != 0)
      return &m->output_values[i];
  return NULL;
}

/* ONNX Runtime 1.30 takes a negative label for a class counted from the end, and says of one that
 * is too large neither row nor value. */
static void find_labels(psplit_i_feeding *f) {
  const psplit_i_manifest *m = f->manifest;
  const char *loss = m->training->loss;
  f->labels = PSPLIT_NONE;
  if (!loss || !psplit_i_loss_is(loss, "softmax-cross-entropy")) return;
  const psplit_i_manifest_value *logits = find_logits(m);
  psplit_i_loss_word word = psplit_i_loss_value(loss, "axis", NULL);
  const int32_t rank = logits ? logits->shape.rank : -1;
  int64_t axis = word.at ? strtoll(word.at, NULL, 10) : 1;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || logits->shape.dims[axis].value < 0) return;
  f->n_classes = logits->shape.dims[axis].value;
  word = psplit_i_loss_value(loss, "ignore", NULL);
  f->ignores = word.at != NULL;
  if (f->ignores) f->ignored = strtoll(word.at, NULL, 10);
  word = psplit_i_loss_target(loss);
  for (uint32_t i = 0; i < m->n_inputs; i++)
    if (psplit_i_loss_word_is(word, m->inputs[i])) f->labels = i;
}

static psplit_code check_labels(const psplit_i_feeding *f, psplit_i_feed_set set,
                                const psplit_i_slice *slice, const psplit_i_tensor *tensor,
                                psplit_diag *diag) {
  enum { INT32 = 6, INT64 = 7 };
  psplit_i_tensor_view view;
  const psplit_code code = psplit_i_tensor_look(tensor, diag, &view);
  if (code != PSPLIT_OK) return code;
  if (view.data_type != INT32 && view.data_type != INT64) return PSPLIT_OK;
  for (uint64_t i = 0; i < view.n_elements; i++) {
    const int64_t label =
      view.data_type == INT64 ? ((const int64_t *)view.data)[i] : ((const int32_t *)view.data)[i];
    if ((label >= 0 && label < f->n_classes) || (f->ignores && label == f->ignored)) continue;
    const psplit_i_rows *rows = &f->inputs[f->labels].rows[set];
    if (!slice)
      return psplit_i_fail(diag, PSPLIT_INVALID,
                           "input %s: the label %" PRId64 " is not one of the %" PRId64 " classes",
                           f->manifest->inputs[f->labels], label, f->n_classes);
    const uint64_t per_row = view.n_elements / (slice->end - slice->begin);
    const uint64_t row =
      psplit_i_order_row(&f->order[set], slice->epoch, slice->begin + i / (per_row ? per_row : 1));
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "%s: row %" PRIu64 ": the label %" PRId64 " is not one of the %" PRId64
                         " classes",
                         rows->path, row, label, f->n_classes);
  }
  return PSPLIT_OK;
}

/* --- opening and reading --- */

/* What the inputs that are here say of symbols. */
static psplit_code note_sizes(psplit_i_feeding *f, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_symbols_list(f->manifest, diag, &f->symbols));
  for (int set = 0; set < PSPLIT_I_N_SETS; set++) {
    f->sizes[set] = calloc((size_t)f->symbols.n + 1, sizeof *f->sizes[set]);
    if (!f->sizes[set]) return psplit_i_nomem(diag);
    for (uint32_t i = 0; i < f->symbols.n; i++) f->sizes[set][i] = -1;
    for (uint32_t i = 0; i < f->manifest->n_inputs; i++) {
      const psplit_i_fed_input *input = &f->inputs[i];
      const psplit_i_manifest_value *value = &f->manifest->input_values[i];
      psplit_i_tensor_view view;
      if (input->fixed) {
        PSPLIT_TRY(psplit_i_tensor_look(input->fixed, diag, &view));
        psplit_i_symbols_note(&f->symbols, value, view.dims, view.n_dims, f->sizes[set]);
      } else if (input->rows[set].n_rows) {
        psplit_i_symbols_note(&f->symbols, value, input->rows[set].dims, input->rows[set].n_dims,
                              f->sizes[set]);
      }
    }
  }
out:
  return code;
}

psplit_code psplit_i_feeding_open(const psplit_i_ort *ort, const psplit_i_manifest *manifest,
                                  const psplit_train_options *options, const bool *needed,
                                  psplit_diag *diag, psplit_i_feeding *out) {
  static const psplit_i_rows NONE = PSPLIT_I_ROWS_NONE;
  psplit_code code = PSPLIT_OK;
  opening o = {.options = options, .feeding = out};
  *out = (psplit_i_feeding){.ort = ort, .manifest = manifest, .options = options};
  out->inputs = calloc((size_t)manifest->n_inputs + 1, sizeof *out->inputs);
  if (!out->inputs) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < manifest->n_inputs; i++)
    for (int set = 0; set < PSPLIT_I_N_SETS; set++) out->inputs[i].rows[set] = NONE;
  find_labels(out);
  for (uint32_t i = 0; i < manifest->n_inputs && code == PSPLIT_OK; i++) {
    if (!needed[i]) continue;
    code = open_input(&o, i, diag);
    if (code == PSPLIT_OK && i == out->labels && out->inputs[i].fixed)
      code = check_labels(out, PSPLIT_I_SET_TRAIN, NULL, out->inputs[i].fixed, diag);
  }
  return code == PSPLIT_OK ? note_sizes(out, diag) : code;
}

void psplit_i_feeding_close(psplit_i_feeding *feeding) {
  for (uint32_t i = 0; feeding->inputs && i < feeding->manifest->n_inputs; i++) {
    psplit_i_tensor_release(feeding->inputs[i].fixed);
    for (int set = 0; set < PSPLIT_I_N_SETS; set++)
      psplit_i_rows_close(&feeding->inputs[i].rows[set]);
  }
  for (int set = 0; set < PSPLIT_I_N_SETS; set++) free(feeding->sizes[set]);
  psplit_i_symbols_fini(&feeding->symbols);
  free(feeding->inputs);
  feeding->inputs = NULL;
}

static bool is_fixed(const psplit_train_options *o, const char *input) {
  for (size_t i = 0; i < o->n_fixed; i++)
    if (o->fixed[i].input && strcmp(o->fixed[i].input, input) == 0) return true;
  return false;
}

/* Whether the model takes any number of samples at once, for all that this device knows: all come
 * to the same answer. */
static bool any_batch(const psplit_i_manifest *m, const psplit_train_options *options) {
  for (uint32_t i = 0; i < m->n_needed; i++) {
    const psplit_i_shape *shape = &m->input_values[i].shape;
    if (shape->rank > 0 && shape->dims[0].value >= 0 && !is_fixed(options, m->inputs[i]))
      return false;
  }
  return true;
}

psplit_code psplit_i_feeding_settle(psplit_i_feeding *f, const psplit_train_options *options,
                                    const uint64_t n_rows[PSPLIT_I_N_SETS], psplit_diag *diag) {
  psplit_i_order *train = &f->order[PSPLIT_I_SET_TRAIN], *eval = &f->order[PSPLIT_I_SET_EVAL];
  const uint64_t batch = options->batch ? options->batch : n_rows[PSPLIT_I_SET_TRAIN];
  psplit_code code;
  *train = (psplit_i_order){.n_rows = n_rows[PSPLIT_I_SET_TRAIN],
                            .batch_rows = batch,
                            .n_micro_batches = options->n_micro_batches,
                            .in_order = options->in_order,
                            .seed = options->seed};
  PSPLIT_TRY(psplit_i_order_check(train, diag));
  if (!options->eval_every) return code;
  *eval = (psplit_i_order){.n_rows = n_rows[PSPLIT_I_SET_EVAL],
                           .batch_rows = batch / options->n_micro_batches,
                           .n_micro_batches = 1,
                           .keep_last = any_batch(f->manifest, options),
                           .in_order = true};
  PSPLIT_TRY(psplit_i_order_check(eval, diag));
out:
  return code;
}

/* Whose first axis is samples; symbols that name it have the size of a micro-batch. */
static bool is_rows(const psplit_i_feeding *f, uint32_t i, const psplit_train_options *options) {
  return !psplit_i_find_mask(f->manifest, i) && !is_fixed(options, f->manifest->inputs[i]) &&
         f->manifest->input_values[i].shape.rank > 0;
}

static void note_batch(const psplit_i_feeding *f, const psplit_train_options *options, int64_t rows,
                       double *sizes) {
  for (uint32_t i = 0; i < f->manifest->n_needed; i++)
    if (is_rows(f, i, options))
      psplit_i_symbols_note(&f->symbols, &f->manifest->input_values[i], &rows, 1, sizes);
}

/* What a mask is drawn from: masks of evaluations are the same each time, and differ from all that
 * training draws. */
static psplit_i_drawing drawing_of(const psplit_i_feeding *f, psplit_i_feed_set set, uint64_t step,
                                   uint32_t m) {
  const bool trains = set == PSPLIT_I_SET_TRAIN;
  return (psplit_i_drawing){f->options->seed, trains ? (uint32_t)step : UINT32_MAX,
                            trains ? m : (uint32_t)step, &f->symbols, f->sizes[set]};
}

psplit_code psplit_i_feeding_get(const psplit_i_feeding *f, psplit_i_feed_set set, uint64_t step,
                                 uint32_t m, uint32_t input, psplit_diag *diag,
                                 psplit_i_tensor **out) {
  const psplit_i_fed_input *fed = &f->inputs[input];
  if (fed->fixed) {
    *out = psplit_i_tensor_hold(fed->fixed);
    return PSPLIT_OK;
  }
  const psplit_i_order *order = &f->order[set];
  const psplit_i_slice slice = psplit_i_order_slice(order, psplit_i_order_place(order, step), m);
  const psplit_i_mask_row *mask = psplit_i_find_mask(f->manifest, input);
  if (mask) {
    const psplit_i_drawing from = drawing_of(f, set, step, m);
    note_batch(f, f->options, (int64_t)(slice.end - slice.begin), f->sizes[set]);
    return psplit_i_draw_mask(f->ort, mask, &from, diag, out);
  }
  psplit_code code = psplit_i_rows_tensor(f->ort, &fed->rows[set], order, &slice, diag, out);
  if (code != PSPLIT_OK || input != f->labels) return code;
  code = check_labels(f, set, &slice, *out, diag);
  if (code != PSPLIT_OK) {
    psplit_i_tensor_release(*out);
    *out = NULL;
  }
  return code;
}

uint64_t psplit_i_feeding_n_eval(const psplit_i_feeding *f) {
  return psplit_i_order_n_batches(&f->order[PSPLIT_I_SET_EVAL]);
}

uint64_t psplit_i_feeding_eval_rows(const psplit_i_feeding *f, uint64_t micro_batch) {
  const psplit_i_order *order = &f->order[PSPLIT_I_SET_EVAL];
  const psplit_i_slice slice = psplit_i_order_slice(order, (psplit_i_place){0, micro_batch}, 0);
  return slice.end - slice.begin;
}
