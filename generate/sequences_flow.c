/* Scheduling of steps in the pipeline: choosing the next sequence, its inputs, and handling
 * results. Runs in the feeder and the collector. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "sequences_inside.h"
#include "step_input.h"

/* The phase of the step that is next. */
static uint32_t phase_of(const psplit_i_sequences *ss, const psplit_i_sequence *s) {
  const psplit_i_decoder_phases *phases = &ss->options.decoder->phases;
  return !s->encoded ? phases->encode : s->n_past ? phases->token : phases->prompt;
}

/* Of the inputs that stay the same, those that a phase has not had yet. */
static bool has_same(const psplit_i_sequences *ss, const psplit_i_sequence *s, uint32_t phase) {
  const psplit_i_decoder_phases *phases = &ss->options.decoder->phases;
  return phase != phases->token || s->n_past == (phases->prompt == phases->token ? 0 : s->n_prompt);
}

static psplit_code make_inputs(const psplit_i_sequences *ss, const psplit_i_sequence *s,
                               uint32_t phase, psplit_diag *diag, psplit_i_tensor **inputs) {
  const psplit_i_role *roles = ss->options.decoder->roles;
  const psplit_i_manifest *manifest = &ss->options.pipe->manifest;
  const psplit_i_phase *p = &ss->options.pipe->phases[phase];
  const psplit_i_step_tokens step = {s->tokens, s->n_tokens, s->n_past};
  const bool same = has_same(ss, s, phase);
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = p->first_input; i < p->first_input + p->n_needed && code == PSPLIT_OK; i++) {
    const psplit_i_step_input input = {manifest->inputs[i], roles[i], &manifest->input_values[i]};
    if (roles[i] == PSPLIT_I_ROLE_STATE) continue;
    if (roles[i] != PSPLIT_I_ROLE_OTHER && roles[i] != PSPLIT_I_ROLE_ENCODED)
      code = psplit_i_step_input_make(ss->options.ort, &input, s->same[i], &step, diag, &inputs[i]);
    else if (same)
      inputs[i] = psplit_i_tensor_hold(s->same[i]);
  }
  return code;
}

/* Reads what stays the same for a sequence, when it is admitted. */
static psplit_code admit(psplit_i_sequences *ss, psplit_i_sequence *s, psplit_diag *diag) {
  const uint32_t n = ss->options.pipe->manifest.n_needed;
  psplit_code code = PSPLIT_OK;
  s->admitted_ns = psplit_i_now_ns();
  s->same = calloc((size_t)n + 1, sizeof *s->same);
  if (!s->same) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n && code == PSPLIT_OK; i++) {
    if (!ss->is_fed[i]) continue;
    if (s->files && s->files[i])
      code = psplit_i_feed_read(&ss->feeds[i], s->files[i], diag, &s->same[i]);
    else if (ss->like[i] != i && s->same[ss->like[i]])
      s->same[i] = psplit_i_tensor_hold(s->same[ss->like[i]]);
    else if (ss->like[i] == i && !ss->is_made[i])
      code = psplit_i_feed_get(&ss->feeds[i], (uint32_t)s->id, diag, &s->same[i]);
  }
  return code;
}

/* The sequence whose step is next, which is under way from here on; a new one goes before those
 * that are at work, so that all slots are in use. NULL: none can take one now. */
static psplit_i_sequence *choose(psplit_i_sequences *ss, bool *out_new) {
  *out_new = ss->n_free && ss->waiting.first;
  psplit_i_sequence *s = psplit_i_sequences_take(*out_new ? &ss->waiting : &ss->ready);
  if (!s) return NULL;
  if (*out_new) s->slot = ss->free_slots[--ss->n_free];
  psplit_i_sequences_append(&ss->under_way, s);
  if (!ss->began_ns) ss->began_ns = psplit_i_now_ns();
  if (s->encoded)
    ss->stats.n_steps++;
  else
    ss->stats.n_encoded++;
  return s;
}

static bool next(void *user, const atomic_bool *stopped, psplit_i_tensor **inputs,
                 int64_t *out_deadline_ns, psplit_i_step *out_step, psplit_diag *failure) {
  static const int64_t LOOK_NS = 50000000;
  psplit_i_sequences *ss = user;
  bool is_new = false;
  psplit_i_sequence *s = NULL;
  *out_deadline_ns = 0;
  pthread_mutex_lock(&ss->mutex);
  while (!atomic_load(stopped) && !(s = choose(ss, &is_new))) {
    /* Not by the lists: one whose token is being told is in none of them. */
    if (ss->closed && !ss->waiting.first && ss->n_free == ss->options.n_slots) break;
    psplit_i_timed_cond_wait(&ss->changed, &ss->mutex, psplit_i_now_ns() + LOOK_NS);
  }
  if (is_new) pthread_cond_broadcast(&ss->changed); /* there is room for another that waits */
  pthread_mutex_unlock(&ss->mutex);
  if (!s) return false;
  /* Only the collector touches a sequence that is under way, and only once this step is done. */
  *out_step = (psplit_i_step){
    .sequence = s->id, .position = s->n_past, .slot = s->slot, .phase = phase_of(ss, s)};
  psplit_code code = is_new ? admit(ss, s, failure) : PSPLIT_OK;
  if (code == PSPLIT_OK) code = make_inputs(ss, s, out_step->phase, failure, inputs);
  if (code != PSPLIT_OK) psplit_i_diag_context(failure, "sequence %" PRIu64, s->id);
  return true;
}

/* Keeps what the encoder gave for the phases that take it. */
static psplit_code take_encoded(const psplit_i_sequences *ss, psplit_i_sequence *s,
                                psplit_i_tensor *const *outputs, psplit_diag *diag) {
  const psplit_i_decoder *d = ss->options.decoder;
  for (uint32_t i = 0; i < ss->options.pipe->manifest.n_needed; i++) {
    if (d->roles[i] != PSPLIT_I_ROLE_ENCODED) continue;
    if (!outputs[d->encoded[i]])
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "the encoder's results have not arrived");
    s->same[i] = psplit_i_tensor_hold(outputs[d->encoded[i]]);
  }
  s->encoded = true;
  return PSPLIT_OK;
}

/* Adds a token. True where that was the last. Errors: NOMEM, INVALID. */
static psplit_code add_token(const psplit_i_sequences *ss, psplit_i_sequence *s,
                             psplit_i_tensor *const *outputs, psplit_diag *diag, bool *out_ended,
                             psplit_generation_end *out_end) {
  const psplit_i_sequences_options *o = &ss->options;
  const psplit_i_tensor *logits =
    outputs[s->n_past ? o->decoder->token.output : o->decoder->prompt.output];
  psplit_i_tensor_view view;
  if (!logits) return psplit_i_fail(diag, PSPLIT_INTERNAL, "no token has come");
  const psplit_code code = psplit_i_tensor_look(logits, diag, &view);
  if (code != PSPLIT_OK) return code;
  if (view.data_type != 7 || view.n_elements != 1)
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "no token has come");
  if (s->n_tokens == s->capacity) {
    int64_t *grown = realloc(s->tokens, 2 * s->capacity * sizeof *grown);
    if (!grown) return psplit_i_nomem(diag);
    s->tokens = grown;
    s->capacity *= 2;
  }
  const int64_t token = *(const int64_t *)view.data;
  s->n_past = s->n_tokens;
  s->tokens[s->n_tokens++] = token;
  s->last_ns = psplit_i_now_ns();
  if (!s->first_ns) s->first_ns = s->last_ns;
  *out_ended = true;
  *out_end = PSPLIT_GENERATION_END_TOKEN;
  for (size_t i = 0; i < o->n_end_tokens; i++)
    if (o->end_tokens[i] == token) return PSPLIT_OK;
  *out_end = PSPLIT_GENERATION_LENGTH;
  if (s->n_tokens - s->n_prompt >= s->max_new) return PSPLIT_OK;
  *out_end = PSPLIT_GENERATION_CONTEXT;
  *out_ended = o->context && s->n_tokens >= o->context;
  return PSPLIT_OK;
}

static void done(void *user, psplit_i_tensor *const *outputs, const psplit_diag *failure) {
  psplit_i_sequences *ss = user;
  psplit_diag diag = {0};
  psplit_generation_end end = PSPLIT_GENERATION_FAILED;
  bool ended = true;
  pthread_mutex_lock(&ss->mutex);
  psplit_i_sequence *s =
    psplit_i_sequences_take(&ss->under_way); /* they come in the order in which they went */
  assert(s);
  pthread_mutex_unlock(&ss->mutex);
  const uint64_t n_before = s->n_tokens, n_read = n_before - s->n_past;
  const bool was_prompt = s->encoded && s->n_past == 0;
  psplit_code code = failure->code;
  if (code == PSPLIT_OK && !s->encoded) {
    code = take_encoded(ss, s, outputs, &diag);
    ended = false;
  } else if (code == PSPLIT_OK) {
    code = add_token(ss, s, outputs, &diag, &ended, &end);
    if (code == PSPLIT_OK && s->token)
      s->token(s->user, s->id, s->n_tokens - s->n_prompt - 1, s->tokens[s->n_tokens - 1]);
  }
  if (code != PSPLIT_OK) ended = true;
  if (ended)
    psplit_i_sequence_tell_end(ss, s, end,
                               code == PSPLIT_OK ? NULL
                               : failure->code   ? failure
                                                 : &diag);
  pthread_mutex_lock(&ss->mutex);
  ss->ended_ns = psplit_i_now_ns();
  if (was_prompt) ss->stats.n_prompt_tokens += n_read;
  ss->stats.n_tokens += s->n_tokens - n_before;
  if (ended)
    ss->free_slots[ss->n_free++] = s->slot;
  else
    psplit_i_sequences_append(&ss->ready, s);
  pthread_cond_broadcast(&ss->changed);
  pthread_mutex_unlock(&ss->mutex);
  if (ended) psplit_i_sequence_destroy(s, ss->options.pipe->manifest.n_needed);
}

void psplit_i_sequences_connect(psplit_i_sequences *ss, psplit_i_source *source) {
  source->user = ss;
  source->next = next;
  source->done = done;
}
