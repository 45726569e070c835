#include "generator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "feed_check.h"
#include "kept.h"
#include "phases.h"
#include "sequences.h"
#include "step_input.h"

/* What every rank needs. */
typedef struct part {
  psplit_i_communicator comm;
  const psplit_onnxruntime *ort;
  psplit_pipeline joined; /* of the decoder, its first step and the encoder */
  psplit_run_options run;
  psplit_generator_options own;
  psplit_i_decoder decoder;
  psplit_i_kept kept;
  psplit_i_keeper keeper;
  psplit_i_source source;
  uint32_t n_slots;
} part;

struct psplit_generator {
  part part;
  psplit_i_feed_options feed;
  psplit_i_sequences *sequences;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool running, ready, ended;
  volatile int stop; /* looked at by the run, where nobody gave another flag */
  psplit_code code;
  psplit_diag diag; /* of the run */
  psplit_run *measured;
};

void psplit_generator_options_defaults(psplit_generator_options *options, size_t struct_size) {
  psplit_generator_options defaults = {.max_waiting = 64, .top_p = 1};
  psplit_i_options_defaults(options, struct_size, &defaults, sizeof defaults);
}

static psplit_code check(const psplit_generator_options *o, psplit_diag *diag) {
  if (!o->max_waiting) return psplit_i_fail(diag, PSPLIT_USAGE, "one prompt at least may wait");
  if (!(o->temperature >= 0) || !isfinite(o->temperature) || !(o->top_p > 0) || o->top_p > 1)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a temperature is 0 or more, top_p above 0, at most 1");
  return PSPLIT_OK;
}

/* The splits as one pipeline. */
static psplit_code join(part *p, const psplit_pipeline *decoder, psplit_diag *diag) {
  const psplit_pipeline *const given[] = {p->own.encoder, p->own.prompt, decoder};
  const psplit_i_pipe *pipes[3];
  psplit_i_decoder_phases phases = {.encode = p->own.encoder ? 0 : PSPLIT_NONE};
  uint32_t n = 0;
  for (size_t i = 0; i < 3; i++)
    if (given[i]) pipes[n++] = &given[i]->pipe;
  phases.token = n - 1;
  phases.prompt = p->own.prompt ? n - 2 : n - 1;
  psplit_code code;
  PSPLIT_TRY(psplit_i_pipes_join(pipes, n, diag, &p->joined.pipe));
  PSPLIT_TRY(psplit_i_decoder_make(&p->joined.pipe, &phases, &p->own, diag, &p->decoder));
out:
  return code;
}

static void part_fini(part *p) {
  psplit_i_kept_fini(&p->kept);
  psplit_i_pipe_fini(&p->joined.pipe);
}

static psplit_code part_make(part *p, const psplit_i_communicator *comm,
                             const psplit_onnxruntime *ort, const psplit_pipeline *pipeline,
                             const psplit_run_options *run, const psplit_generator_options *own,
                             psplit_diag *diag) {
  psplit_code code;
  *p = (part){.comm = *comm, .ort = ort};
  psplit_run_options_init(&p->run);
  psplit_generator_options_init(&p->own);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_run_options, run, &p->run, diag));
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_generator_options, own, &p->own, diag));
  PSPLIT_TRY(check(&p->own, diag));
  PSPLIT_TRY(join(p, pipeline, diag));
  p->n_slots = p->own.n_in_flight ? p->own.n_in_flight : pipeline->pipe.manifest.n_stages + 1;
  p->kept =
    (psplit_i_kept){.ort = &ort->ort,
                    .pipe = &p->joined.pipe,
                    .decoder = &p->decoder,
                    .sampling = {p->own.temperature, p->own.top_k, p->own.top_p, p->own.seed}};
  PSPLIT_TRY(psplit_i_kept_init(&p->kept, p->n_slots, diag));
  p->keeper = psplit_i_kept_keeper(&p->kept);
  p->source.keeper = &p->keeper;
  p->run.output = NULL;
  p->run.take_output = NULL;
  p->run.stream = true;
  p->run.n_micro_batches = PSPLIT_RUN_ENDLESS;
  p->run.n_warmup = 0;
  p->run.deadline_s = 0;
  p->run.on_error = PSPLIT_ON_ERROR_SKIP; /* a step that fails ends its sequence alone */
out:
  return code;
}

/* --- rank 0 --- */

static void set(psplit_generator *g, bool *what) {
  pthread_mutex_lock(&g->mutex);
  *what = true;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->mutex);
}

static void ready(void *user) {
  psplit_generator *g = user;
  set(g, &g->ready);
}

/* The run, from the first stage that opens to the last token. */
static void *generator_main(void *user) {
  static const psplit_diag OVER = {.code = PSPLIT_IO, .message = "the generator was stopped"};
  psplit_generator *g = user;
  part *p = &g->part;
  g->code =
    psplit_i_run_over(&p->comm, p->ort, &p->joined, &p->run, &p->source, &g->diag, &g->measured);
  psplit_i_sequences_stop_all(g->sequences, g->code == PSPLIT_OK ? &OVER : &g->diag);
  if (p->own.ended) p->own.ended(p->own.ended_user);
  set(g, &g->ended);
  return NULL;
}

/* Whether the generator makes what the input takes, whatever sizes are given. */
static bool is_made(const part *p, uint32_t input) {
  const psplit_i_manifest *m = &p->joined.pipe.manifest;
  const psplit_i_role role = p->decoder.roles[input];
  return input < m->n_needed && role != PSPLIT_I_ROLE_OTHER &&
         !(role == PSPLIT_I_ROLE_MASK && !psplit_i_decoder_knows_mask(m->inputs[input]));
}

static bool has_symbol(const psplit_i_shape *shape, const char *symbol) {
  for (int32_t axis = 0; axis < shape->rank; axis++)
    if (shape->dims[axis].param && strcmp(shape->dims[axis].param, symbol) == 0) return true;
  return false;
}

/* Sizes of inputs that are made alone: each step has its own. */
static psplit_code check_sizes(const psplit_feed_options *given, const part *p, psplit_diag *diag) {
  const psplit_i_manifest *m = &p->joined.pipe.manifest;
  for (size_t n = 0; n < given->n_dims; n++) {
    const char *symbol = given->dims[n].name;
    bool made = false, other = false;
    for (uint32_t i = 0; i < m->n_inputs; i++) {
      if (!has_symbol(&m->input_values[i].shape, symbol)) continue;
      *(is_made(p, i) ? &made : &other) = true;
    }
    if (made && !other)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "dimension %s is of inputs that are made from the tokens and the steps "
                           "before: it is not given",
                           symbol);
  }
  return PSPLIT_OK;
}

/* What the generator makes itself is not given: it would be without effect. A name that another of
 * the models has as well may be meant for that. */
static psplit_code check_given(const psplit_feed_options *given, const part *p, psplit_diag *diag) {
  const psplit_i_manifest *m = &p->joined.pipe.manifest;
  for (size_t n = 0; n < psplit_i_feed_n_names(given); n++) {
    const char *name = psplit_i_feed_name(given, n);
    bool made = false, is_other = false;
    for (uint32_t i = 0; name && i < m->n_inputs; i++) {
      if (strcmp(m->inputs[i], name) != 0) continue;
      const bool other = !is_made(p, i) || (n < given->n_files &&
                                            psplit_i_step_input_may_be_given(p->decoder.roles[i]));
      made |= !other;
      is_other |= other;
    }
    if (made && !is_other)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "input %s is made from the tokens and the steps before, not given",
                           name);
  }
  return check_sizes(given, p, diag);
}

static psplit_code make(psplit_generator *g, psplit_diag *diag) {
  part *p = &g->part;
  psplit_code code;
  /* The pipeline is fed by steps; files and ranges are for what stays the same. */
  PSPLIT_TRY(psplit_i_take_feed(p->run.feed, diag, &g->feed.given));
  PSPLIT_TRY(psplit_i_feed_meet(&g->feed, &p->joined.pipe, diag));
  PSPLIT_TRY(check_given(&g->feed.given, p, diag));
  p->run.feed = NULL;
  const psplit_i_sequences_options options = {.ort = &p->ort->ort,
                                              .pipe = &p->joined.pipe,
                                              .decoder = &p->decoder,
                                              .feed = &g->feed,
                                              .n_slots = p->n_slots,
                                              .max_waiting = p->own.max_waiting,
                                              .prompt_inputs = p->own.prompt_inputs,
                                              .context = p->own.context,
                                              .end_tokens = p->own.end_tokens,
                                              .n_end_tokens = p->own.n_end_tokens};
  PSPLIT_TRY(psplit_i_sequences_create(&options, diag, &g->sequences));
  psplit_i_sequences_connect(g->sequences, &p->source);
  p->source.ready = ready;
  p->source.ready_user = g;
  if (!p->run.cancel) p->run.cancel = &g->stop;
out:
  return code;
}

psplit_code psplit_i_generator_start_over(const psplit_i_communicator *comm,
                                          const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                          const psplit_run_options *run,
                                          const psplit_generator_options *own, psplit_diag *diag,
                                          psplit_generator **out) {
  psplit_generator *g = calloc(1, sizeof *g);
  psplit_code code = g ? PSPLIT_OK : psplit_i_nomem(diag);
  if (!g) return code;
  pthread_mutex_init(&g->mutex, NULL);
  pthread_cond_init(&g->changed, NULL);
  PSPLIT_TRY(part_make(&g->part, comm, ort, pipeline, run, own, diag));
  PSPLIT_TRY(make(g, diag));
  if (pthread_create(&g->thread, NULL, generator_main, g))
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_NOMEM, "cannot start a thread"));
  g->running = true;
  pthread_mutex_lock(&g->mutex);
  while (!g->ready && !g->ended) pthread_cond_wait(&g->changed, &g->mutex);
  const bool good = g->ready;
  pthread_mutex_unlock(&g->mutex);
  if (!good) {
    code = psplit_generator_finish(g, diag);
    if (code == PSPLIT_OK) code = psplit_i_fail(diag, PSPLIT_IO, "the stages have ended");
  }
out:
  if (code == PSPLIT_OK)
    *out = g;
  else
    psplit_generator_destroy(g);
  return code;
}

psplit_code psplit_generator_start(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                   const psplit_run_options *run,
                                   const psplit_generator_options *own, psplit_diag *diag,
                                   psplit_generator **out) {
  return psplit_i_generator_start_over(&PSPLIT_I_OVER_THREADS, ort, pipeline, run, own, diag, out);
}

psplit_code psplit_generator_submit(psplit_generator *g, const psplit_prompt *prompt,
                                    psplit_diag *diag, uint64_t *out_id) {
  return psplit_i_sequences_submit(g->sequences, prompt, diag, out_id);
}

void psplit_generator_get_stats(psplit_generator *g, psplit_generator_stats *out) {
  psplit_generator_stats now = {0};
  psplit_i_sequences_get_stats(g->sequences, &now);
  now.struct_size = out->struct_size;
  now.n_states = g->part.decoder.n_kept;
  now.state_bytes = atomic_load(&g->part.kept.at_most);
  psplit_i_options_defaults(out, out->struct_size, &now, sizeof now);
}

/* Ends the stages, if any run. */
static void join_stages(psplit_generator *g) {
  if (!g->running) return;
  psplit_i_sequences_close(g->sequences);
  pthread_join(g->thread, NULL);
  g->running = false;
}

psplit_code psplit_generator_finish(psplit_generator *g, psplit_diag *diag) {
  join_stages(g);
  return g->code == PSPLIT_OK ? PSPLIT_OK : psplit_i_fail_as(diag, &g->diag);
}

const psplit_run *psplit_generator_get_run(const psplit_generator *g) { return g->measured; }

void psplit_generator_destroy(psplit_generator *g) {
  if (!g) return;
  psplit_i_cancel(&g->stop);
  join_stages(g); /* what stopped them was told to the sequences */
  psplit_i_sequences_destroy(g->sequences);
  psplit_run_destroy(g->measured);
  part_fini(&g->part);
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->mutex);
  free(g);
}

/* --- other ranks --- */

psplit_code psplit_i_generator_run_over(const psplit_i_communicator *comm,
                                        const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                        const psplit_run_options *run,
                                        const psplit_generator_options *own, psplit_diag *diag) {
  part p;
  psplit_run *none = NULL;
  psplit_code code;
  PSPLIT_TRY(part_make(&p, comm, ort, pipeline, run, own, diag));
  p.run.feed = NULL;
  code = psplit_i_run_over(comm, ort, &p.joined, &p.run, &p.source, diag, &none);
out:
  part_fini(&p);
  return code;
}
