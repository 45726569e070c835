/* Submission of prompts, statistics, and stopping. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "feed_check.h"
#include "sequences_inside.h"
#include "step_input.h"

/* An earlier input of the decoder that is the same one in another phase, or the input itself. */
static uint32_t find_like(const psplit_i_sequences *ss, uint32_t input) {
  const psplit_i_pipe *pipe = ss->options.pipe;
  const psplit_i_decoder *d = ss->options.decoder;
  if (psplit_i_decoder_phase_of(pipe, input) == d->phases.encode) return input;
  for (uint32_t i = 0; i < input; i++)
    if (ss->is_fed[i] && psplit_i_decoder_phase_of(pipe, i) != d->phases.encode &&
        strcmp(pipe->manifest.inputs[i], pipe->manifest.inputs[input]) == 0)
      return i;
  return input;
}

/* A psplit_give_input: of a sequence whose prompt should have named a file. */
static psplit_code missing(void *user, uint32_t sequence_id, const char *input, psplit_diag *diag,
                           psplit_tensor_view *out) {
  (void)user, (void)sequence_id, (void)out;
  return psplit_i_fail(diag, PSPLIT_USAGE, "neither the prompt nor any option gives input %s",
                       input);
}

/* Whether a file gives the input to all sequences. */
static bool is_given(const psplit_i_sequences *ss, uint32_t input) {
  const psplit_feed_options *given = &ss->options.feed->given;
  for (size_t f = 0; f < given->n_files; f++)
    if (given->files[f].input &&
        strcmp(given->files[f].input, ss->options.pipe->manifest.inputs[input]) == 0)
      return true;
  return false;
}

static psplit_code open_feeds(psplit_i_sequences *ss, psplit_diag *diag) {
  const psplit_i_manifest *m = &ss->options.pipe->manifest;
  psplit_i_feed_options feed = *ss->options.feed, none = *ss->options.feed;
  if (ss->options.prompt_inputs && !feed.given.give && !feed.given.random)
    feed.given.give = missing;
  none.given.n_files = none.given.n_ranges = 0;
  none.given.random = false;
  none.given.give = missing;
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < m->n_needed && code == PSPLIT_OK; i++) {
    const psplit_i_role role = ss->options.decoder->roles[i];
    psplit_i_session_port port;
    if (role != PSPLIT_I_ROLE_OTHER && !psplit_i_step_input_may_be_given(role)) continue;
    ss->is_made[i] = role != PSPLIT_I_ROLE_OTHER && !is_given(ss, i) &&
                     (role != PSPLIT_I_ROLE_MASK || psplit_i_decoder_knows_mask(m->inputs[i]));
    ss->like[i] = find_like(ss, i);
    ss->is_fed[i] = true;
    if (ss->like[i] != i) continue;
    psplit_i_declared_port(&m->input_values[i], &port);
    port.any_rank |= role != PSPLIT_I_ROLE_OTHER; /* a column for each token that there will be */
    const psplit_i_feed_input input = {ss->options.ort, &port, m->inputs[i], false};
    code = psplit_i_feed_open(&input, ss->is_made[i] ? &none : &feed, UINT32_MAX, diag,
                              &ss->feeds[i], &ss->is_fed[i]);
  }
  return code;
}

psplit_code psplit_i_sequences_create(const psplit_i_sequences_options *options, psplit_diag *diag,
                                      psplit_i_sequences **out) {
  const size_t n = (size_t)options->pipe->manifest.n_needed + 1;
  psplit_i_sequences *ss = calloc(1, sizeof *ss);
  psplit_code code = PSPLIT_OK;
  if (!ss) return psplit_i_nomem(diag);
  ss->options = *options;
  pthread_mutex_init(&ss->mutex, NULL);
  psplit_i_timed_cond_init(&ss->changed);
  ss->waiting.end = &ss->waiting.first;
  ss->ready.end = &ss->ready.first;
  ss->under_way.end = &ss->under_way.first;
  ss->free_slots = calloc(options->n_slots, sizeof *ss->free_slots);
  ss->feeds = calloc(n, sizeof *ss->feeds);
  ss->is_fed = calloc(n, sizeof *ss->is_fed);
  ss->is_made = calloc(n, sizeof *ss->is_made);
  ss->like = calloc(n, sizeof *ss->like);
  if (!ss->free_slots || !ss->feeds || !ss->is_fed || !ss->is_made || !ss->like)
    PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint64_t slot = options->n_slots; slot-- > 0;) ss->free_slots[ss->n_free++] = slot;
  PSPLIT_TRY(open_feeds(ss, diag));
out:
  if (code == PSPLIT_OK)
    *out = ss;
  else
    psplit_i_sequences_destroy(ss);
  return code;
}

void psplit_i_sequences_destroy(psplit_i_sequences *ss) {
  if (!ss) return;
  for (uint32_t i = 0; ss->feeds && i < ss->options.pipe->manifest.n_needed; i++)
    psplit_i_feed_close(&ss->feeds[i]);
  pthread_cond_destroy(&ss->changed);
  pthread_mutex_destroy(&ss->mutex);
  free(ss->free_slots);
  free(ss->feeds);
  free(ss->is_fed);
  free(ss->is_made);
  free(ss->like);
  free(ss);
}

/* Inputs are filled by doubles, which are exact up to there. */
static const int64_t MOST_TOKEN = INT64_C(1) << 53;

static psplit_code check_prompt(const psplit_i_sequences *ss, const psplit_prompt *p,
                                psplit_diag *diag) {
  if (!p->n_tokens || !p->tokens || !p->max_new_tokens)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a prompt must have at least one token, and request at least one");
  for (uint64_t i = 0; i < p->n_tokens; i++) {
    if (p->tokens[i] < 0)
      return psplit_i_fail(diag, PSPLIT_USAGE, "token %" PRId64 " of a prompt is negative",
                           p->tokens[i]);
    if (p->tokens[i] > MOST_TOKEN)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "token %" PRId64 " of a prompt is above %" PRId64
                           ", as those of no model are",
                           p->tokens[i], MOST_TOKEN);
  }
  if (ss->options.context && p->n_tokens >= ss->options.context)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a prompt of %" PRIu64 " tokens leaves no room in a context of %" PRIu64,
                         p->n_tokens, ss->options.context);
  return PSPLIT_OK;
}

/* The files that a prompt names, by input; *out is NULL where it names none. */
static psplit_code take_files(const psplit_i_sequences *ss, const psplit_prompt *prompt,
                              psplit_diag *diag, char ***out) {
  const psplit_i_manifest *m = &ss->options.pipe->manifest;
  psplit_code code = PSPLIT_OK;
  *out = NULL;
  if (!prompt->n_inputs) return PSPLIT_OK;
  char **files = calloc((size_t)m->n_needed + 1, sizeof *files);
  if (!files) return psplit_i_nomem(diag);
  for (size_t f = 0; f < prompt->n_inputs && code == PSPLIT_OK; f++) {
    const char *name = prompt->inputs[f].input;
    uint32_t i = 0;
    while (i < m->n_needed &&
           (!name || !ss->is_fed[i] || ss->like[i] != i || strcmp(m->inputs[i], name) != 0))
      i++;
    if (i == m->n_needed)
      code = psplit_i_fail(diag, PSPLIT_USAGE,
                           "a prompt gives input %s, which the models do not take from outside",
                           name ? name : "without a name");
    else if (files[i])
      code = psplit_i_fail(diag, PSPLIT_USAGE, "a prompt gives input %s twice", name);
    else if (!(files[i] = strdup(prompt->inputs[f].path)))
      code = psplit_i_nomem(diag);
  }
  if (code == PSPLIT_OK)
    *out = files;
  else
    psplit_i_sequence_free_files(files, m->n_needed);
  return code;
}

psplit_code psplit_i_sequences_submit(psplit_i_sequences *ss, const psplit_prompt *given,
                                      psplit_diag *diag, uint64_t *out_id) {
  char **files = NULL;
  psplit_prompt taken = {0};
  psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_prompt, given, &taken, diag);
  const psplit_prompt *prompt = &taken;
  if (code == PSPLIT_OK) code = check_prompt(ss, prompt, diag);
  if (code == PSPLIT_OK) code = take_files(ss, prompt, diag, &files);
  if (code != PSPLIT_OK) return code;
  psplit_i_sequence *s = calloc(1, sizeof *s);
  int64_t *tokens = malloc((prompt->n_tokens + 16) * sizeof *tokens);
  if (!s || !tokens) {
    psplit_i_sequence_free_files(files, ss->options.pipe->manifest.n_needed);
    free(s);
    free(tokens);
    return psplit_i_nomem(diag);
  }
  memcpy(tokens, prompt->tokens, prompt->n_tokens * sizeof *tokens);
  *s = (psplit_i_sequence){.tokens = tokens,
                           .files = files,
                           .n_prompt = prompt->n_tokens,
                           .n_tokens = prompt->n_tokens,
                           .capacity = prompt->n_tokens + 16,
                           .max_new = prompt->max_new_tokens,
                           .encoded = ss->options.decoder->phases.encode == PSPLIT_NONE,
                           .asked_ns = psplit_i_now_ns(),
                           .token = prompt->token,
                           .end = prompt->end,
                           .user = prompt->user};
  pthread_mutex_lock(&ss->mutex);
  while (ss->waiting.n >= ss->options.max_waiting && !ss->closed && !ss->over)
    pthread_cond_wait(&ss->changed, &ss->mutex);
  const bool open = !ss->closed && !ss->over;
  if (open) {
    s->id = ss->n_ids++;
    if (out_id) *out_id = s->id;
    ss->stats.n_prompts++;
    psplit_i_sequences_append(&ss->waiting, s);
    pthread_cond_broadcast(&ss->changed);
  }
  pthread_mutex_unlock(&ss->mutex);
  if (open) return PSPLIT_OK;
  psplit_i_sequence_destroy(s, ss->options.pipe->manifest.n_needed);
  return psplit_i_fail(diag, PSPLIT_IO, "the generator has ended");
}

void psplit_i_sequences_close(psplit_i_sequences *ss) {
  pthread_mutex_lock(&ss->mutex);
  ss->closed = true;
  pthread_cond_broadcast(&ss->changed);
  pthread_mutex_unlock(&ss->mutex);
}

void psplit_i_sequences_stop_all(psplit_i_sequences *ss, const psplit_diag *why) {
  psplit_i_sequence_list *all[] = {&ss->under_way, &ss->ready, &ss->waiting};
  pthread_mutex_lock(&ss->mutex);
  ss->closed = ss->over = true;
  pthread_cond_broadcast(&ss->changed);
  pthread_mutex_unlock(&ss->mutex);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    for (psplit_i_sequence *s; (s = psplit_i_sequences_take(all[i]));) {
      psplit_i_sequence_tell_end(ss, s, PSPLIT_GENERATION_STOPPED, why);
      psplit_i_sequence_destroy(s, ss->options.pipe->manifest.n_needed);
    }
  }
}

void psplit_i_sequences_get_stats(psplit_i_sequences *ss, psplit_generator_stats *out) {
  pthread_mutex_lock(&ss->mutex);
  *out = ss->stats;
  out->seconds = ss->ended_ns ? 1e-9 * (double)(ss->ended_ns - ss->began_ns) : 0;
  pthread_mutex_unlock(&ss->mutex);
}
