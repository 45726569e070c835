/* A plan to a directory: checks, the stages, the manifest, and the rename at the end. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "activity.h"
#include "emit.h"
#include "fields.h"
#include "team.h"

/* Above the first AUTO moves initializers out, above the second it moves what stands in nodes, too,
 * and leaves no node as it was. Runtimes read a data file straight into place; weights in the model
 * they copy first, which takes them twice the time to start. */
static const uint64_t SMALL_BYTES = UINT64_C(64) << 20;
static const uint64_t INLINE_BYTES = UINT64_C(1) << 30;
static const uint64_t MODEL_BYTES = INT32_MAX; /* above: protobuf does not read it */

/* Above these, several stages are written at a time: copying in the page cache takes a core. */
static const uint64_t PARALLEL_BYTES = UINT64_C(32) << 20;
static const uint32_t PARALLEL_NODES = 100000;

typedef psplit_i_emission emission;

static psplit_code write_data(emission *e, const psplit_i_weights *weights) {
  psplit_code code;
  psplit_i_file file = {0};
  if (!weights->ranges.n) return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_directory_file(&e->directory, weights->data_name, weights->model,
                                     e->options->cancel, e->diag, &file));
  file.activity = e->options->activity;
  for (size_t r = 0; r < weights->ranges.n; r++) {
    const psplit_i_data_range *range = &weights->ranges.items[r];
    PSPLIT_TRY(psplit_i_file_skip(&file, range->out_offset, e->diag));
    PSPLIT_TRY(psplit_i_file_range(&file, range->file, range->offset, range->bytes, e->diag));
  }
  PSPLIT_TRY(psplit_i_file_close(&file, weights->data_bytes, e->diag));
out:
  psplit_i_file_abandon(&file);
  return code;
}

/* A model's file, and that of the tensors which stand outside. */
static psplit_code write_model(emission *e, const psplit_i_weights *weights,
                               const psplit_i_rope *rope, const char *name) {
  psplit_code code;
  psplit_i_file file = {0};
  PSPLIT_TRY(psplit_i_directory_file(&e->directory, name, weights->model, e->options->cancel,
                                     e->diag, &file));
  file.activity = e->options->activity;
  PSPLIT_TRY(psplit_i_file_rope(&file, rope, e->diag));
  PSPLIT_TRY(psplit_i_file_close(&file, rope->bytes, e->diag));
  PSPLIT_TRY(write_data(e, weights));
out:
  psplit_i_file_abandon(&file);
  return code;
}

/* The stage's model. Where too much of it is weights, it is put together again with initializers
 * outside, and where that is not enough with those in nodes outside, too. */
static psplit_code build_stage(emission *e, const psplit_i_split *split, uint32_t stage,
                               psplit_i_weights *weights, psplit_i_arena *arena,
                               psplit_i_rope *out) {
  psplit_code code;
  for (;;) {
    PSPLIT_TRY(psplit_i_stage_model(split, stage, weights, arena, e->diag, out));
    const bool moved = weights->move_inline || weights->mode != PSPLIT_WEIGHTS_AUTO;
    if (weights->mode == PSPLIT_WEIGHTS_INLINE || weights->move_attributes ||
        out->bytes <= (moved ? INLINE_BYTES : SMALL_BYTES))
      break;
    weights->move_attributes = moved;
    weights->move_inline = true;
    psplit_i_rope_fini(out);
    psplit_i_weights_reset(weights);
  }
  if (out->bytes > MODEL_BYTES)
    PSPLIT_FAIL(psplit_i_fail_about(
      e->diag, PSPLIT_LIMIT,
      (psplit_i_advice){.hint = weights->mode == PSPLIT_WEIGHTS_INLINE
                                  ? PSPLIT_HINT_WEIGHTS_EXTERNAL
                                  : PSPLIT_HINT_NONE},
      "stage %" PRIu32 " takes %" PRIu64 " bytes in one file, and protobuf reads at most %" PRIu64
      "%s",
      stage, out->bytes, MODEL_BYTES,
      weights->mode == PSPLIT_WEIGHTS_INLINE ? "" : "; more stages would help"));
out:
  return code;
}

/* How tensors of `model` are placed beside the file `name`. */
static psplit_i_weights place_weights(const emission *e, const psplit_model *model,
                                      const char *data_name) {
  return (psplit_i_weights){.model = model,
                            .mode = e->options->weights,
                            .move_attributes = e->options->weights == PSPLIT_WEIGHTS_REFERENCE,
                            .data_name = data_name,
                            .locations = e->locations};
}

psplit_code psplit_i_emission_stage(psplit_i_emission *e, const psplit_i_split *split,
                                    uint32_t stage, const char *name) {
  psplit_code code;
  char data_name[PSPLIT_I_FILE_NAME];
  snprintf(data_name, sizeof data_name, "%s.data", name);
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_rope rope = {0};
  psplit_i_weights weights = place_weights(e, split->model, data_name);
  PSPLIT_TRY(build_stage(e, split, stage, &weights, &arena, &rope));
  PSPLIT_TRY(write_model(e, &weights, &rope, name));
out:
  psplit_i_weights_reset(&weights);
  psplit_i_rope_fini(&rope);
  psplit_i_arena_fini(&arena);
  return code;
}

static psplit_code write_stage(emission *e, uint32_t stage) {
  return psplit_i_emission_stage(e, e->split, stage, e->split->stage_names[stage]);
}

static void say_stage(const emission *e, uint32_t stage) {
  psplit_i_say(e->options->logger, PSPLIT_PROGRESS, "writing stage %" PRIu32 " of %" PRIu32,
               stage + 1, e->split->plan->n_stages);
}

/* About what is written: all that stands in the model's files, or nothing of that. */
static uint64_t weight_bytes(const emission *e) {
  const psplit_model *model = e->split->model;
  uint64_t bytes = 0;
  if (e->options->weights != PSPLIT_WEIGHTS_REFERENCE)
    for (size_t f = 0; f < model->files.n; f++)
      bytes = psplit_i_sat_add_u64(bytes, model->files.items[f].bytes);
  return bytes;
}

static bool is_large(const emission *e) {
  return e->split->model->graph->n_nodes > PARALLEL_NODES || weight_bytes(e) > PARALLEL_BYTES;
}

typedef struct stage_writers {
  emission *e;
  pthread_mutex_t lock;
  uint32_t first_bad;
  psplit_diag first_diag;
} stage_writers;

static void write_one(void *with, size_t i, int thread) {
  stage_writers *w = with;
  const uint32_t s = (uint32_t)i;
  psplit_diag diag = {0};
  emission own = *w->e;
  own.diag = &diag;
  (void)thread;
  pthread_mutex_lock(&w->lock);
  const bool skip = s > w->first_bad;
  if (!skip) say_stage(w->e, s);
  pthread_mutex_unlock(&w->lock);
  const psplit_i_held_signal held = psplit_i_hold_size_signal();
  const psplit_code code = skip ? PSPLIT_OK : write_stage(&own, s);
  psplit_i_let_size_signal(&held);
  pthread_mutex_lock(&w->lock);
  if (code != PSPLIT_OK && s < w->first_bad) {
    w->first_bad = s;
    w->first_diag = diag;
  }
  pthread_mutex_unlock(&w->lock);
}

/* Threads take the stages in order. What fails is the first one that does, by number: no stage
 * before a failed one is left out. */
static psplit_code write_stages(emission *e) {
  const uint32_t n_stages = e->split->plan->n_stages;
  stage_writers w = {.e = e, .lock = PTHREAD_MUTEX_INITIALIZER, .first_bad = n_stages};
  psplit_i_activity_begin(e->options->activity, PSPLIT_ACTIVITY_BYTES, weight_bytes(e));
  const int team = is_large(e) ? psplit_i_team_size(e->options->n_threads) : 1;
  psplit_i_team_for(team, 0, n_stages, write_one, &w);
  pthread_mutex_destroy(&w.lock);
  if (w.first_bad == n_stages) return PSPLIT_OK;
  if (e->diag) *e->diag = w.first_diag;
  return w.first_diag.code;
}

psplit_code psplit_i_emission_bytes(psplit_i_emission *e, const void *bytes, size_t n,
                                    const char *name) {
  psplit_code code;
  psplit_i_file file = {0};
  PSPLIT_TRY(psplit_i_directory_file(&e->directory, name, e->split->model, e->options->cancel,
                                     e->diag, &file));
  file.activity = e->options->activity;
  PSPLIT_TRY(psplit_i_file_bytes(&file, bytes, n, e->diag));
  PSPLIT_TRY(psplit_i_file_close(&file, n, e->diag));
out:
  psplit_i_file_abandon(&file);
  return code;
}

static psplit_code write_manifest(emission *e) {
  psplit_code code = PSPLIT_OK;
  psplit_i_text text = {0};
  psplit_i_manifest_write(e->split, &text);
  if (text.failed) PSPLIT_FAIL(psplit_i_nomem(e->diag));
  PSPLIT_TRY(psplit_i_emission_bytes(e, text.bytes, text.n, "pipeline.json"));
out:
  psplit_i_text_fini(&text);
  return code;
}

/* --- weights by themselves --- */

/* Initializers as fields of a graph, their data where `weights` says. */
static psplit_code add_weights(emission *e, psplit_i_weights *weights, const uint32_t *initializers,
                               uint32_t n, psplit_i_arena *arena, psplit_i_rope *out) {
  psplit_code code = PSPLIT_OK;
  const psplit_model *model = weights->model;
  for (uint32_t i = 0; i < n; i++) {
    const psplit_i_span *span =
      &model->skeleton.graph_fields.items[model->initializer_spans[initializers[i]]];
    if ((span->has_view && !span->file_bytes) ||
        psplit_i_weights_change_tensor(weights, model->proto->graph->initializer[initializers[i]]))
      PSPLIT_TRY(psplit_i_rewrite_field(weights, &onnx__tensor_proto__descriptor,
                                        model->skeleton.bytes + span->skeleton_offset,
                                        span->skeleton_bytes, arena, e->diag, out));
    else
      psplit_i_rope_span(out, model, span);
  }
out:
  return code;
}

psplit_code psplit_i_emission_weights(psplit_i_emission *e, const psplit_model *model,
                                      const uint32_t *initializers, uint32_t n,
                                      const psplit_i_text *head, const psplit_i_text *graph,
                                      const char *name) {
  psplit_code code;
  char data_name[PSPLIT_I_FILE_NAME];
  snprintf(data_name, sizeof data_name, "%s.data", name);
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_rope fields = {0}, whole = {0};
  psplit_i_weights weights = place_weights(e, model, data_name);
  for (;;) {
    psplit_i_rope_view(&fields, graph->bytes, graph->n);
    PSPLIT_TRY(add_weights(e, &weights, initializers, n, &arena, &fields));
    if (weights.mode != PSPLIT_WEIGHTS_AUTO || fields.bytes <= INLINE_BYTES || weights.move_inline)
      break;
    weights.move_inline = true;
    psplit_i_rope_fini(&fields);
    fields = (psplit_i_rope){0};
    psplit_i_weights_reset(&weights);
  }
  psplit_i_rope_view(&whole, head->bytes, head->n);
  psplit_i_rope_message(&whole, &arena, PSPLIT_I_MODEL_GRAPH, &fields);
  if (fields.failed || whole.failed) PSPLIT_FAIL(psplit_i_nomem(e->diag));
  if (whole.bytes > MODEL_BYTES)
    PSPLIT_FAIL(psplit_i_fail(e->diag, PSPLIT_LIMIT,
                              "%s takes %" PRIu64 " bytes, and protobuf reads at most %" PRIu64,
                              name, whole.bytes, MODEL_BYTES));
  PSPLIT_TRY(write_model(e, &weights, &whole, name));
out:
  psplit_i_weights_reset(&weights);
  psplit_i_rope_fini(&fields);
  psplit_i_rope_fini(&whole);
  psplit_i_arena_fini(&arena);
  return code;
}

/* The split, and what is to be said with it. */
static psplit_code begin_split(psplit_i_split *split, const psplit_model *model,
                               const psplit_plan *plan, const psplit_emit_options *options,
                               const psplit_i_emit_extra *extra, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_split_init(split, model, plan, options, diag));
  split->extra = extra;
  split->files = options->files;
  split->n_files = options->n_files;
  if (extra && extra->begin) PSPLIT_TRY(extra->begin(extra->user, split, diag));
out:
  return code;
}

static psplit_code emit(const psplit_model *model, const psplit_plan *plan, const char *directory,
                        const psplit_emit_options *options, const psplit_i_emit_extra *extra,
                        psplit_diag *diag) {
  psplit_code code;
  psplit_emit_options taken = {.struct_size = sizeof taken};
  psplit_i_split split = {0};
  emission e = {
    .split = &split, .options = &taken, .directory = PSPLIT_I_DIRECTORY_NONE, .diag = diag};
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_emit_options, options, &taken, diag));
  PSPLIT_TRY(begin_split(&split, model, plan, e.options, extra, diag));
  const bool inside = e.options->weights == PSPLIT_WEIGHTS_REFERENCE;
  if (inside) {
    PSPLIT_TRY(psplit_i_reference_locations(model, directory, &split.arena, diag, &e.locations));
    PSPLIT_TRY(psplit_i_directory_begin_inside(&e.directory, directory, e.options->replace, diag));
  } else {
    PSPLIT_TRY(psplit_i_directory_begin(&e.directory, model, directory, e.options->replace, diag));
  }
  e.directory.sync = !e.options->no_sync;
  PSPLIT_TRY(write_stages(&e));
  if (extra && extra->files) PSPLIT_TRY(extra->files(extra->user, &e));
  for (size_t f = 0; f < e.options->n_files; f++) {
    const psplit_emit_file *file = &e.options->files[f];
    PSPLIT_TRY(psplit_i_emission_bytes(&e, file->text, file->n, file->name));
  }
  PSPLIT_TRY(write_manifest(&e));
  psplit_i_activity_begin(e.options->activity, PSPLIT_ACTIVITY_NONE, 0);
  if (e.options->accept)
    PSPLIT_TRY(e.options->accept(e.options->accept_user, e.directory.temp, diag));
  PSPLIT_TRY(psplit_i_model_unchanged(model, diag));
  PSPLIT_TRY(inside ? psplit_i_directory_commit_inside(&e.directory, model, diag)
                    : psplit_i_directory_commit(&e.directory, diag));
out:
  psplit_i_directory_end(&e.directory);
  psplit_i_split_fini(&split);
  return code;
}

psplit_code psplit_i_emit(const psplit_model *model, const psplit_plan *plan, const char *directory,
                          const psplit_emit_options *options, const psplit_i_emit_extra *extra,
                          psplit_diag *diag) {
  const psplit_i_held_signal held = psplit_i_hold_size_signal();
  const psplit_code code = emit(model, plan, directory, options, extra, diag);
  psplit_i_let_size_signal(&held);
  return code;
}

psplit_code psplit_emit(const psplit_model *model, const psplit_plan *plan, const char *directory,
                        const psplit_emit_options *options, psplit_diag *diag) {
  return psplit_i_emit(model, plan, directory, options, NULL, diag);
}

psplit_code psplit_emit_check(const psplit_model *model, const char *directory,
                              const psplit_emit_options *options, psplit_diag *diag) {
  psplit_code code;
  psplit_i_arena arena;
  psplit_i_directory place = PSPLIT_I_DIRECTORY_NONE;
  const char *const *locations;
  psplit_emit_options taken = {.struct_size = sizeof taken};
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_emit_options, options, &taken, diag));
  PSPLIT_TRY(psplit_i_stage_template_check(taken.name_template, diag));
  if (taken.weights == PSPLIT_WEIGHTS_REFERENCE) {
    PSPLIT_TRY(psplit_i_reference_locations(model, directory, &arena, diag, &locations));
    PSPLIT_TRY(psplit_i_directory_begin_inside(&place, directory, taken.replace, diag));
    char first[PSPLIT_I_FILE_NAME];
    const bool known = !taken.name_template || !strstr(taken.name_template, "{stages");
    if (known) PSPLIT_TRY(psplit_i_stage_name(model, taken.name_template, 0, 1, diag, first));
    PSPLIT_TRY(psplit_i_directory_check_inside(&place, model, known ? first : NULL, diag));
  } else {
    PSPLIT_TRY(psplit_i_directory_begin(&place, model, directory, taken.replace, diag));
  }
out:
  psplit_i_directory_end(&place);
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_i_manifest_text(const psplit_model *model, const psplit_plan *plan,
                                   const psplit_emit_options *options,
                                   const psplit_i_emit_extra *extra, psplit_diag *diag,
                                   char **out_text) {
  psplit_code code;
  psplit_i_split split = {0};
  psplit_i_text text = {0};
  psplit_emit_options taken = {.struct_size = sizeof taken};
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_emit_options, options, &taken, diag));
  PSPLIT_TRY(begin_split(&split, model, plan, &taken, extra, diag));
  psplit_i_manifest_write(&split, &text);
  if (text.failed) {
    psplit_i_text_fini(&text);
    PSPLIT_FAIL(psplit_i_nomem(diag));
  }
  *out_text = text.bytes;
out:
  psplit_i_split_fini(&split);
  return code;
}

psplit_code psplit_stage_file_name(const psplit_model *model, uint32_t stage, uint32_t n_stages,
                                   const psplit_emit_options *options, psplit_diag *diag,
                                   char **out_name) {
  psplit_code code;
  char name[PSPLIT_I_FILE_NAME];
  psplit_emit_options taken = {.struct_size = sizeof taken};
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_emit_options, options, &taken, diag));
  PSPLIT_TRY(psplit_i_stage_name(model, taken.name_template, stage, n_stages, diag, name));
  char *copy = strdup(name);
  if (!copy) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_name = copy;
out:
  return code;
}

psplit_code psplit_manifest(const psplit_model *model, const psplit_plan *plan,
                            const psplit_emit_options *options, psplit_diag *diag,
                            char **out_text) {
  return psplit_i_manifest_text(model, plan, options, NULL, diag, out_text);
}
