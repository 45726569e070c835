#include "options.h"

#include <math.h>
#include <stdlib.h>

void psplit_feed_options_defaults(psplit_feed_options *options, size_t struct_size) {
  psplit_feed_options defaults = {.seed = 1};
  psplit_i_options_defaults(options, struct_size, &defaults, sizeof defaults);
}

void psplit_run_options_defaults(psplit_run_options *options, size_t struct_size) {
  psplit_run_options defaults = {
    .n_micro_batches = 1, .n_warmup = 1, .timeout_s = 60, .chunk_bytes = 1 << 30};
  psplit_i_options_defaults(options, struct_size, &defaults, sizeof defaults);
}

psplit_code psplit_i_take_feed(const psplit_feed_options *given, psplit_diag *diag,
                               psplit_feed_options *out) {
  psplit_code code = PSPLIT_OK;
  psplit_feed_options_init(out);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_feed_options, given, out, diag));
  for (size_t i = 0; i < out->n_shapes; i++)
    if (out->shapes[i].n_dims > PSPLIT_I_MAX_RANK)
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "input %s is given more than %d dimensions",
                                out->shapes[i].input, PSPLIT_I_MAX_RANK));
  for (size_t i = 0; i < out->n_ranges; i++)
    if (!(out->ranges[i].low <= out->ranges[i].high) || !isfinite(out->ranges[i].low) ||
        !isfinite(out->ranges[i].high))
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "the range of input %s is empty or not finite",
                                out->ranges[i].input));
out:
  return code;
}

psplit_i_session_options psplit_i_take_session(const psplit_session *given) {
  psplit_i_session_options taken = {.optimization = 99, .n_threads = 1};
  if (!given) return taken;
  if (given->n_threads) taken.n_threads = given->n_threads;
  if (given->optimization >= 0) taken.optimization = given->optimization;
  taken.provider = given->provider;
  taken.n_provider_options = given->n_provider_options;
  taken.provider_keys = given->provider_keys;
  taken.provider_values = given->provider_values;
  taken.n_config = given->n_config;
  taken.config_keys = given->config_keys;
  taken.config_values = given->config_values;
  taken.assert_placement = given->assert_placement;
  taken.n_host_nodes = given->n_host_nodes;
  taken.host_nodes = given->host_nodes;
  return taken;
}

/* A psplit_i_output_taker: shows a tensor to who takes outputs. */
static psplit_code take_output(void *user, uint32_t micro_batch, uint32_t output,
                               psplit_i_tensor *tensor, psplit_diag *diag) {
  const psplit_i_run_setup *setup = user;
  psplit_i_tensor_view view;
  const psplit_code code = psplit_i_tensor_look(tensor, diag, &view);
  if (code != PSPLIT_OK) return code;
  const psplit_tensor_view shown = {.data_type = view.data_type,
                                    .n_dims = (uint32_t)view.n_dims,
                                    .dims = view.dims,
                                    .data = view.data,
                                    .n_bytes = view.n_bytes};
  return setup->given.take_output(setup->given.take_output_user, micro_batch, output, &shown, diag);
}

static psplit_code check(const psplit_run_options *o, uint32_t n_stages, psplit_diag *diag) {
  if (!o->n_micro_batches)
    return psplit_i_fail(diag, PSPLIT_USAGE, "a run must have at least one micro-batch");
  if (o->n_micro_batches == PSPLIT_RUN_ENDLESS && !o->stream)
    return psplit_i_fail(diag, PSPLIT_USAGE, "only a stream of micro-batches may be endless");
  if (o->n_micro_batches != PSPLIT_RUN_ENDLESS &&
      (uint64_t)o->first_micro_batch + o->n_micro_batches >= PSPLIT_RUN_ENDLESS)
    return psplit_i_fail(diag, PSPLIT_USAGE, "micro-batches are numbered below %u",
                         PSPLIT_RUN_ENDLESS);
  uint64_t n_replicas = n_stages;
  for (uint32_t s = 0; o->n_replicas && s < n_stages; s++) {
    if (!o->n_replicas[s] || o->n_replicas[s] > PSPLIT_MOST_REPLICAS)
      return psplit_i_fail(diag, PSPLIT_USAGE, "stage %u has %u replicas; from 1 to %d", s,
                           o->n_replicas[s], PSPLIT_MOST_REPLICAS);
    n_replicas += o->n_replicas[s] - 1;
  }
  if (o->n_sessions > 1 && o->n_sessions != n_stages && o->n_sessions != n_replicas)
    return psplit_i_fail(diag, PSPLIT_USAGE, "%zu sessions are given for %u stages", o->n_sessions,
                         n_stages);
  if (!(o->stall_timeout_s >= 0) || !(o->deadline_s >= 0))
    return psplit_i_fail(diag, PSPLIT_USAGE, "a timeout of stages and a deadline are 0 s or more");
  if (o->on_error != PSPLIT_ON_ERROR_STOP && o->on_error != PSPLIT_ON_ERROR_SKIP)
    return psplit_i_fail(diag, PSPLIT_USAGE, "a run stops at errors or skips them");
  if (!(o->timeout_s > 0) || !o->chunk_bytes || o->chunk_bytes > (uint64_t)1 << 30)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a timeout must be above 0 s, and a message between 1 and 2^30 bytes");
  if (o->output && o->take_output)
    return psplit_i_fail(diag, PSPLIT_USAGE, "outputs go to a path or to a function, not to both");
  return PSPLIT_OK;
}

/* A row for each stage, or for each replica. */
static psplit_code take_sessions(uint32_t n_stages, psplit_diag *diag, psplit_i_run_setup *out) {
  const psplit_run_options *o = &out->given;
  psplit_i_run_options *run = &out->run;
  run->stage_sessions = out->sessions = calloc(o->n_sessions, sizeof *out->sessions);
  if (!out->sessions) return psplit_i_nomem(diag);
  for (size_t i = 0; i < o->n_sessions; i++)
    out->sessions[i] = psplit_i_take_session(&o->sessions[i]);
  if (o->n_sessions == n_stages) return PSPLIT_OK;
  out->first_sessions = calloc(n_stages, sizeof *out->first_sessions);
  out->of_replicas = calloc(n_stages, sizeof *out->of_replicas);
  if (!out->first_sessions || !out->of_replicas) return psplit_i_nomem(diag);
  for (uint32_t s = 0, at = 0; s < n_stages; at += o->n_replicas[s++]) {
    out->of_replicas[s] = &out->sessions[at];
    out->first_sessions[s] = out->sessions[at];
  }
  run->stage_sessions = out->first_sessions;
  run->replica_sessions = out->of_replicas;
  return PSPLIT_OK;
}

psplit_code psplit_i_run_setup_make(const psplit_run_options *given, uint32_t n_stages,
                                    bool may_stream, psplit_diag *diag, psplit_i_run_setup *out) {
  psplit_code code = PSPLIT_OK;
  psplit_run_options *o = &out->given;
  psplit_i_run_options *run = &out->run;
  psplit_run_options_init(o);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_run_options, given, o, diag));
  o->stream &= may_stream;
  PSPLIT_TRY(check(o, n_stages, diag));
  run->session = psplit_i_take_session(o->n_sessions ? o->sessions : NULL);
  if (o->n_sessions > 1) PSPLIT_TRY(take_sessions(n_stages, diag, out));
  run->n_replicas = o->n_replicas;
  PSPLIT_TRY(psplit_i_take_feed(o->feed, diag, &run->feed.given));
  run->n_micro_batches = o->n_micro_batches;
  run->n_warmup = o->stream ? 0 : o->n_warmup;
  run->depth = o->depth;
  run->pin = o->pin;
  if (o->one_at_a_time) run->turn = &out->turn;
  run->timeout_s = o->timeout_s;
  run->chunk_bytes = o->chunk_bytes;
  run->stall_timeout_s = o->stall_timeout_s;
  run->deadline_s = o->deadline_s;
  run->on_error = o->on_error;
  run->failures = &out->failures;
  run->first = run->feed.first = o->first_micro_batch;
  if (!o->delivered) PSPLIT_TRY(psplit_delivered_create(diag, &out->delivered));
  run->delivered = o->delivered ? o->delivered : out->delivered;
  run->interrupted = psplit_i_flag(o->cancel);
  run->failed = &out->failed;
  run->give_up = o->give_up;
  run->give_up_user = o->give_up_user;
  if (o->take_output) {
    run->take_output = take_output;
    run->user = out;
  }
out:
  pthread_mutex_init(&out->turn, NULL);
  psplit_i_failures_init(&out->failures);
  return code;
}

void psplit_i_run_setup_fini(psplit_i_run_setup *setup) {
  pthread_mutex_destroy(&setup->turn);
  psplit_i_failures_fini(&setup->failures);
  psplit_delivered_destroy(setup->delivered);
  free(setup->of_replicas);
  free(setup->first_sessions);
  free(setup->sessions);
}
