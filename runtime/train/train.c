#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

void psplit_train_options_defaults(psplit_train_options *options, size_t struct_size) {
  psplit_train_options defaults = {.schedule = PSPLIT_SCHEDULE_1F1B,
                                   .n_chunks = 1,
                                   .n_replicas = 1,
                                   .n_micro_batches = 8,
                                   .n_epochs = 1,
                                   .seed = 1,
                                   .learning_rate = 1e-3,
                                   .timeout_s = 60,
                                   .chunk_bytes = 1 << 30,
                                   .smooth_samples = 1};
  psplit_i_options_defaults(options, struct_size, &defaults, sizeof defaults);
}

static psplit_code check_numbers(const psplit_train_options *o, psplit_diag *diag) {
  enum { MOST_PIECES = 1 << 20 }; /* of a stage in a step, forward */
  if (!o->n_micro_batches || (!o->n_steps && !o->n_epochs))
    return psplit_i_fail(diag, PSPLIT_USAGE, "training takes at least one micro-batch and a step");
  if (!o->n_replicas || o->n_micro_batches % o->n_replicas)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "%u micro-batches cannot be divided evenly among %u replicas",
                         o->n_micro_batches, o->n_replicas);
  if (!(o->smooth_gamma >= 0) || isinf(o->smooth_gamma) || !o->smooth_samples ||
      (o->smooth_samples > 1 && o->smooth_samples > MOST_PIECES / o->n_micro_batches))
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "smoothing takes a gamma of 0 or more, and from 1 to %d samples of all "
                         "micro-batches",
                         MOST_PIECES);
  if (!(o->learning_rate >= 0) || !(o->last_learning_rate >= 0) || isinf(o->learning_rate) ||
      isinf(o->last_learning_rate) || !(o->clip_norm >= 0))
    return psplit_i_fail(diag, PSPLIT_USAGE, "learning rates and norms must be 0 or more");
  if (!(o->timeout_s > 0) || !(o->stall_timeout_s >= 0) || !o->chunk_bytes ||
      o->chunk_bytes > (uint64_t)1 << 30)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a timeout must be above 0 s, and a message between 1 and 2^30 bytes");
  return PSPLIT_OK;
}

static psplit_code check(const psplit_train_options *o, uint32_t n_stages, psplit_diag *diag) {
  if (o->schedule == PSPLIT_SCHEDULE_STREAM || o->schedule > PSPLIT_SCHEDULE_ZERO_BUBBLE)
    return psplit_i_fail(diag, PSPLIT_USAGE, "no such schedule for training");
  if ((o->schedule == PSPLIT_SCHEDULE_INTERLEAVED) != (o->n_chunks > 1))
    return psplit_i_fail(
      diag, PSPLIT_USAGE,
      "the interleaved schedule needs two or more stages per device, the others one");
  if (o->n_sessions > 1 && o->n_sessions != n_stages)
    return psplit_i_fail(diag, PSPLIT_USAGE, "%zu sessions are given for %u stages", o->n_sessions,
                         n_stages);
  if (o->rate > PSPLIT_RATE_COSINE || o->on_nan > PSPLIT_ON_NAN_SKIP)
    return psplit_i_fail(diag, PSPLIT_USAGE, "no such learning rate, or way with NaN");
  return check_numbers(o, diag);
}

/* A state goes from one micro-batch to the next, whatever its weights were. */
static psplit_code check_states(const psplit_i_training_table *t, const psplit_train_options *o,
                                psplit_diag *diag) {
  const bool smooths = o->smooth_gamma > 0 || o->smooth_samples > 1;
  for (uint32_t w = 0; w < t->n_weights; w++) {
    if (!t->weights[w].next) continue;
    if (o->n_replicas > 1)
      return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                           "%s goes from one micro-batch to the next, which replicas do not have "
                           "in their order",
                           t->weights[w].name);
    if (smooths)
      return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                           "%s passes from one micro-batch to the next, and smoothing would fill "
                           "it from perturbed weights",
                           t->weights[w].name);
  }
  return PSPLIT_OK;
}

static bool has_weight_gradients(const psplit_i_manifest *m) {
  for (uint32_t s = 0; s < m->n_stages; s++)
    if (m->training->stages[s].weight_gradients.file) return true;
  return false;
}

static psplit_code check_split(const psplit_i_pipe *pipe, const psplit_train_options *o,
                               psplit_diag *diag) {
  const psplit_i_training_table *t = pipe->manifest.training;
  if (!t)
    return psplit_i_fail_about(diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(TRAINING),
                               "the stages of %s were not made for training", pipe->directory);
  if (!t->optimizer)
    return psplit_i_fail_about(
      diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(TRAINING),
      "the stages of %s have no updates: they were made without an optimizer", pipe->directory);
  const psplit_code code = check_states(t, o, diag);
  if (code != PSPLIT_OK) return code;
  if (o->schedule == PSPLIT_SCHEDULE_ZERO_BUBBLE && !has_weight_gradients(&pipe->manifest))
    return psplit_i_fail_about(
      diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(WEIGHT_GRADIENTS),
      "the backward files in %s compute gradients of inputs and of weights "
      "together, which the zero-bubble schedule runs separately",
      pipe->directory);
  if (!t->plain_weights)
    return psplit_i_fail_about(diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(WEIGHT_INPUTS),
                               "the stages of %s hold the initial values of their weights",
                               pipe->directory);
  return PSPLIT_OK;
}

static psplit_code take_sessions(psplit_i_train_setup *s, uint32_t n_stages, psplit_diag *diag) {
  enum { BASIC = 1 };
  const psplit_train_options *o = &s->given;
  s->sessions = calloc(n_stages, sizeof *s->sessions);
  if (!s->sessions) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n_stages; i++) {
    const psplit_session *given = !o->n_sessions ? NULL : &o->sessions[o->n_sessions > 1 ? i : 0];
    s->sessions[i] = psplit_i_take_session(given);
    if (!given || given->optimization < 0) s->sessions[i].optimization = BASIC;
  }
  return PSPLIT_OK;
}

/* The order of pieces, which does not depend on times: any will do here. */
static psplit_code make_schedule(psplit_i_train_setup *s, uint32_t n_stages, psplit_diag *diag) {
  const psplit_train_options *o = &s->given;
  const bool apart = o->schedule == PSPLIT_SCHEDULE_ZERO_BUBBLE;
  int64_t *ones = calloc(n_stages, sizeof *ones);
  if (!ones) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n_stages; i++) ones[i] = 1;
  s->n_micro_batches = o->n_micro_batches / o->n_replicas * o->smooth_samples;
  const psplit_schedule_input input = {.kind = o->schedule,
                                       .n_stages = s->wiring.n_line,
                                       .n_chunks = o->n_chunks,
                                       .n_micro_batches = s->n_micro_batches,
                                       .forward_ns = ones,
                                       .backward_ns = ones,
                                       .weights_ns = apart ? ones : NULL};
  const psplit_code code = psplit_schedule_simulate(&input, diag, &s->schedule);
  free(ones);
  s->n_slots = (apart ? 3 : 2) * o->n_chunks * s->n_micro_batches;
  return code;
}

static psplit_code set_up(psplit_i_train_setup *s, const psplit_i_pipe *pipe,
                          const psplit_train_options *options, psplit_diag *diag) {
  const uint32_t n_stages = pipe->manifest.n_stages;
  psplit_train_options *o = &s->given;
  psplit_code code;
  psplit_train_options_init(o);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_train_options, options, o, diag));
  if (o->as_planned) o->schedule = psplit_i_planned_schedule(&pipe->manifest);
  PSPLIT_TRY(check(o, n_stages, diag));
  PSPLIT_TRY(check_split(pipe, o, diag));
  PSPLIT_TRY(psplit_i_feeding_check(&pipe->manifest, o, diag));
  PSPLIT_TRY(take_sessions(s, n_stages, diag));
  PSPLIT_TRY(psplit_i_wiring_make(pipe, o->n_chunks, o->n_replicas, diag, &s->wiring));
  PSPLIT_TRY(make_schedule(s, n_stages, diag));
  s->run = (psplit_i_run_options){.stage_sessions = s->sessions,
                                  .n_micro_batches = o->n_micro_batches * o->smooth_samples,
                                  .depth = 1,
                                  .timeout_s = o->timeout_s,
                                  .stall_timeout_s = o->stall_timeout_s,
                                  .failures = &s->none,
                                  .chunk_bytes = o->chunk_bytes,
                                  .give_up = o->give_up,
                                  .give_up_user = o->give_up_user};
out:
  return code;
}

psplit_code psplit_i_train_over(const psplit_i_train_communicator *comm,
                                const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                const psplit_train_options *options, psplit_diag *diag,
                                psplit_training_run **out_run) {
  psplit_training_run *run = calloc(1, sizeof *run);
  psplit_code code;
  if (!run) return psplit_i_nomem(diag);
  run->ort = ort;
  run->pipeline = pipeline;
  run->transport = comm->name;
  PSPLIT_TRY(set_up(&run->setup, &pipeline->pipe, options, diag));
  PSPLIT_TRY(psplit_i_go_on(run->setup.given.cancel, diag));
  PSPLIT_TRY(comm->transport(&ort->ort, &pipeline->pipe, &run->setup, comm->rank, diag,
                             &run->timeline, &run->result));
  if (comm->rank == 0) PSPLIT_TRY(psplit_i_train_report_make(run, diag));
  if (run->result.interrupted && !run->result.n_steps)
    code = psplit_i_fail(diag, PSPLIT_CANCELLED, "interrupted before a step had ended");
  else if (run->result.interrupted)
    code = psplit_i_fail(diag, PSPLIT_CANCELLED, "interrupted after step %" PRIu64 "%s%s",
                         run->result.first_step + run->result.n_steps,
                         run->setup.given.checkpoint ? ", which is in " : "",
                         run->setup.given.checkpoint ? run->setup.given.checkpoint : "");
out:
  if (code == PSPLIT_OK) *out_run = comm->rank == 0 ? run : NULL;
  if (code != PSPLIT_OK || comm->rank != 0) psplit_training_run_destroy(run);
  return code;
}

psplit_code psplit_train(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                         const psplit_train_options *options, psplit_diag *diag,
                         psplit_training_run **out_run) {
  static const psplit_i_train_communicator over_threads = {psplit_i_train_threads, "threads", 0};
  return psplit_i_train_over(&over_threads, ort, pipeline, options, diag, out_run);
}

void psplit_training_run_destroy(psplit_training_run *run) {
  if (!run) return;
  psplit_schedule_destroy(run->setup.schedule);
  psplit_i_wiring_fini(&run->setup.wiring);
  free(run->setup.sessions);
  psplit_i_timeline_fini(&run->timeline);
  psplit_i_train_result_fini(&run->result);
  free(run);
}

const psplit_train_report *psplit_training_run_report(const psplit_training_run *run) {
  return &run->report;
}
