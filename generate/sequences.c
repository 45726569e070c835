#include "sequences.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "feed_check.h"
#include "step_input.h"

/* A prompt and what has come of it. */
typedef struct sequence {
  struct sequence *next; /* in the list that it is in */
  uint64_t id, slot;
  int64_t *tokens; /* [n_tokens] those of the prompt first; room for `capacity` */
  uint64_t n_prompt, n_tokens, capacity;
  uint64_t n_past; /* tokens whose state is kept */
  uint64_t max_new;
  psplit_i_tensor **same; /* [n_needed] inputs that stay the same; NULL: the others */
  char **files;           /* [n_needed] that the prompt names for them; NULL: none, or no others */
  bool encoded;           /* there is nothing to encode, or it is done */
  int64_t asked_ns, admitted_ns, first_ns, last_ns;
  void (*token)(void *user, uint64_t id, uint64_t index, int64_t token);
  void (*end)(void *user, const psplit_generation *generation);
  void *user;
} sequence;

typedef struct list {
  sequence *first, **end; /* end: where the next one is hung */
  uint32_t n;
} list;

struct psplit_i_sequences {
  psplit_i_sequences_options options;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  list waiting; /* for a slot */
  list ready;   /* for their next step */
  list under_way;
  uint64_t *free_slots; /* [n_free] */
  uint32_t n_free;
  bool closed, over;
  uint64_t n_ids;
  psplit_i_feed *feeds; /* [n_needed]; of inputs that stay the same */
  bool *is_fed;         /* [n_needed] */
  bool *is_made;        /* [n_needed] of these: made of the tokens, unless a prompt names a file */
  uint32_t *like;       /* [n_needed] the input of another phase that gives this one, or itself */
  psplit_generator_stats stats;
  int64_t began_ns, ended_ns;
};

static void hang(list *l, sequence *s) {
  s->next = NULL;
  *l->end = s;
  l->end = &s->next;
  l->n++;
}

static sequence *take(list *l) {
  sequence *s = l->first;
  if (!s) return NULL;
  l->first = s->next;
  if (!l->first) l->end = &l->first;
  l->n--;
  return s;
}

static void free_files(char **files, uint32_t n) {
  for (uint32_t i = 0; files && i < n; i++) free(files[i]);
  free(files);
}

static void sequence_destroy(sequence *s, uint32_t n_needed) {
  if (!s) return;
  for (uint32_t i = 0; s->same && i < n_needed; i++) psplit_i_tensor_release(s->same[i]);
  free_files(s->files, n_needed);
  free(s->same);
  free(s->tokens);
  free(s);
}

/* --- steps --- */

/* The phase of the step that is next. */
static uint32_t phase_of(const psplit_i_sequences *ss, const sequence *s) {
  const psplit_i_decoder_phases *phases = &ss->options.decoder->phases;
  return !s->encoded ? phases->encode : s->n_past ? phases->token : phases->prompt;
}

/* Of the inputs that stay the same, those that a phase has not had yet. */
static bool has_same(const psplit_i_sequences *ss, const sequence *s, uint32_t phase) {
  const psplit_i_decoder_phases *phases = &ss->options.decoder->phases;
  return phase != phases->token || s->n_past == (phases->prompt == phases->token ? 0 : s->n_prompt);
}

static psplit_code make_inputs(const psplit_i_sequences *ss, const sequence *s, uint32_t phase,
                               psplit_diag *diag, psplit_i_tensor **inputs) {
  const psplit_i_role *roles = ss->options.decoder->roles;
  const psplit_i_phase *p = &ss->options.pipe->phases[phase];
  const psplit_i_step_tokens step = {s->tokens, s->n_tokens, s->n_past};
  const bool same = has_same(ss, s, phase);
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = p->first_input; i < p->first_input + p->n_needed && code == PSPLIT_OK; i++) {
    if (roles[i] == PSPLIT_I_ROLE_STATE) continue;
    if (roles[i] != PSPLIT_I_ROLE_OTHER && roles[i] != PSPLIT_I_ROLE_ENCODED)
      code = psplit_i_step_input_make(ss->options.ort, ss->options.pipe, ss->options.decoder, i,
                                      s->same[i], &step, diag, &inputs[i]);
    else if (same)
      inputs[i] = psplit_i_tensor_hold(s->same[i]);
  }
  return code;
}

/* Reads what stays the same for a sequence, when it is admitted. */
static psplit_code admit(psplit_i_sequences *ss, sequence *s, psplit_diag *diag) {
  const uint32_t n = ss->options.pipe->manifest.n_needed;
  psplit_code code = PSPLIT_OK;
  s->admitted_ns = psplit_i_now_ns();
  s->same = calloc((size_t)n + 1, sizeof *s->same);
  if (!s->same) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n && code == PSPLIT_OK; i++) {
    if (!ss->is_fed[i]) continue;
    if (s->files && s->files[i])
      code = psplit_i_array_read(ss->options.ort, s->files[i], ss->feeds[i].input,
                                 &ss->feeds[i].wanted, diag, &s->same[i]);
    else if (ss->like[i] != i && s->same[ss->like[i]])
      s->same[i] = psplit_i_tensor_hold(s->same[ss->like[i]]);
    else if (ss->like[i] == i && !ss->is_made[i])
      code = psplit_i_feed_get(&ss->feeds[i], (uint32_t)s->id, diag, &s->same[i]);
  }
  return code;
}

/* The sequence whose step is next, which is under way from here on; a new one goes before those
 * that are at work, so that all slots are in use. NULL: none can take one now. */
static sequence *choose(psplit_i_sequences *ss, bool *out_new) {
  *out_new = ss->n_free && ss->waiting.first;
  sequence *s = take(*out_new ? &ss->waiting : &ss->ready);
  if (!s) return NULL;
  if (*out_new) s->slot = ss->free_slots[--ss->n_free];
  hang(&ss->under_way, s);
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
  sequence *s = NULL;
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

/* --- what comes of them --- */

static void tell_end(psplit_i_sequences *ss, sequence *s, psplit_generation_end end,
                     const psplit_diag *failure) {
  const psplit_generation told = {.id = s->id,
                                  .end = end,
                                  .code = failure ? failure->code : PSPLIT_OK,
                                  .message = failure ? failure->message : "",
                                  .n_prompt = s->n_prompt,
                                  .n_tokens = s->n_tokens - s->n_prompt,
                                  .tokens = s->tokens + s->n_prompt,
                                  .waited_ns = s->admitted_ns ? s->admitted_ns - s->asked_ns : 0,
                                  .first_ns = s->first_ns ? s->first_ns - s->admitted_ns : 0,
                                  .total_ns = s->last_ns ? s->last_ns - s->admitted_ns : 0};
  pthread_mutex_lock(&ss->mutex);
  ss->stats.n_ended++;
  ss->stats.n_failed += failure != NULL;
  pthread_mutex_unlock(&ss->mutex);
  if (s->end) s->end(s->user, &told);
}

/* Keeps what the encoder gave for the phases that take it. */
static psplit_code take_encoded(const psplit_i_sequences *ss, sequence *s,
                                psplit_i_tensor *const *outputs, psplit_diag *diag) {
  const psplit_i_decoder *d = ss->options.decoder;
  for (uint32_t i = 0; i < ss->options.pipe->manifest.n_needed; i++) {
    if (d->roles[i] != PSPLIT_I_ROLE_ENCODED) continue;
    if (!outputs[d->encoded[i]])
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "what is encoded has not come");
    s->same[i] = psplit_i_tensor_hold(outputs[d->encoded[i]]);
  }
  s->encoded = true;
  return PSPLIT_OK;
}

/* Adds a token. True where that was the last. Errors: NOMEM, INVALID. */
static psplit_code add_token(const psplit_i_sequences *ss, sequence *s,
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
  sequence *s = take(&ss->under_way); /* they come in the order in which they went */
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
  if (ended) tell_end(ss, s, end, code == PSPLIT_OK ? NULL : failure->code ? failure : &diag);
  pthread_mutex_lock(&ss->mutex);
  ss->ended_ns = psplit_i_now_ns();
  if (was_prompt) ss->stats.n_prompt_tokens += n_read;
  ss->stats.n_tokens += s->n_tokens - n_before;
  if (ended)
    ss->free_slots[ss->n_free++] = s->slot;
  else
    hang(&ss->ready, s);
  pthread_cond_broadcast(&ss->changed);
  pthread_mutex_unlock(&ss->mutex);
  if (ended) sequence_destroy(s, ss->options.pipe->manifest.n_needed);
}

/* --- in and out --- */

void psplit_i_sequences_connect(psplit_i_sequences *ss, psplit_i_source *source) {
  source->user = ss;
  source->next = next;
  source->done = done;
}

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
    code = psplit_i_feed_open(ss->options.ort, &port, m->inputs[i], false,
                              ss->is_made[i] ? &none : &feed, UINT32_MAX, diag, &ss->feeds[i],
                              &ss->is_fed[i]);
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

static psplit_code check_prompt(const psplit_i_sequences *ss, const psplit_prompt *p,
                                psplit_diag *diag) {
  if (!p->n_tokens || !p->tokens || !p->max_new_tokens)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a prompt has at least one token, and asks for at least one");
  for (uint64_t i = 0; i < p->n_tokens; i++)
    if (p->tokens[i] < 0)
      return psplit_i_fail(diag, PSPLIT_USAGE, "token %" PRId64 " of a prompt is negative",
                           p->tokens[i]);
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
    free_files(files, m->n_needed);
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
  sequence *s = calloc(1, sizeof *s);
  int64_t *tokens = malloc((prompt->n_tokens + 16) * sizeof *tokens);
  if (!s || !tokens) {
    free_files(files, ss->options.pipe->manifest.n_needed);
    free(s);
    free(tokens);
    return psplit_i_nomem(diag);
  }
  memcpy(tokens, prompt->tokens, prompt->n_tokens * sizeof *tokens);
  *s = (sequence){.tokens = tokens,
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
    hang(&ss->waiting, s);
    pthread_cond_broadcast(&ss->changed);
  }
  pthread_mutex_unlock(&ss->mutex);
  if (open) return PSPLIT_OK;
  sequence_destroy(s, ss->options.pipe->manifest.n_needed);
  return psplit_i_fail(diag, PSPLIT_IO, "the generator has ended");
}

void psplit_i_sequences_close(psplit_i_sequences *ss) {
  pthread_mutex_lock(&ss->mutex);
  ss->closed = true;
  pthread_cond_broadcast(&ss->changed);
  pthread_mutex_unlock(&ss->mutex);
}

void psplit_i_sequences_stop_all(psplit_i_sequences *ss, const psplit_diag *why) {
  list *all[] = {&ss->under_way, &ss->ready, &ss->waiting};
  pthread_mutex_lock(&ss->mutex);
  ss->closed = ss->over = true;
  pthread_cond_broadcast(&ss->changed);
  pthread_mutex_unlock(&ss->mutex);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    for (sequence *s; (s = take(all[i]));) {
      tell_end(ss, s, PSPLIT_GENERATION_STOPPED, why);
      sequence_destroy(s, ss->options.pipe->manifest.n_needed);
    }
  }
}

void psplit_i_sequences_get_stats(psplit_i_sequences *ss, psplit_generator_stats *out) {
  pthread_mutex_lock(&ss->mutex);
  *out = ss->stats;
  out->seconds = ss->ended_ns ? 1e-9 * (double)(ss->ended_ns - ss->began_ns) : 0;
  pthread_mutex_unlock(&ss->mutex);
}
