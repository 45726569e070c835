#include "decoder.h"

#include <stdlib.h>
#include <string.h>

#include "name_list.h"
#include "state_names.h"

/* How exporters call inputs that follow from the tokens (optimum, ONNX Runtime's model builder,
 * transformers.js). */
static const struct {
  const char *end; /* of the name */
  psplit_i_role role;
} ROLES[] = {
  {"token_type_ids", PSPLIT_I_ROLE_TYPES},   {"attention_mask", PSPLIT_I_ROLE_MASK},
  {"position_ids", PSPLIT_I_ROLE_POSITIONS}, {"cache_position", PSPLIT_I_ROLE_POSITIONS},
  {"seqlens_k", PSPLIT_I_ROLE_LAST},         {"total_sequence_length", PSPLIT_I_ROLE_TOTAL},
  {"total_seq_len", PSPLIT_I_ROLE_TOTAL},    {"use_cache_branch", PSPLIT_I_ROLE_HAS_PAST},
};

/* Any of the words, wherever it stands. */
static bool has_word(const char *name, const char *const *words, size_t n) {
  for (const char *at = name; *at; at++)
    for (size_t w = 0; w < n; w++)
      if (strncasecmp(at, words[w], strlen(words[w])) == 0) return true;
  return false;
}
#define HAS_WORD(name, words) has_word(name, words, sizeof(words) / sizeof *(words))

static psplit_i_role role_of(const char *name) {
  /* What masks an encoder's output, or places pixels, is not about the tokens. */
  static const char *const OTHERS[] = {"encoder", "cross", "image", "pixel",
                                       "vision",  "video", "audio"};
  if (HAS_WORD(name, OTHERS)) return PSPLIT_I_ROLE_OTHER;
  for (size_t i = 0; i < sizeof ROLES / sizeof ROLES[0]; i++)
    if (psplit_i_name_ends(name, ROLES[i].end)) return ROLES[i].role;
  return PSPLIT_I_ROLE_OTHER;
}

bool psplit_i_decoder_knows_mask(const char *name) {
  static const char *const NARROW[] = {"sliding", "window", "local", "chunk"};
  return !HAS_WORD(name, NARROW);
}

uint32_t psplit_i_decoder_phase_of(const psplit_i_pipe *pipe, uint32_t input) {
  uint32_t p = 0;
  while (p + 1 < pipe->n_phases && input >= pipe->phases[p + 1].first_input) p++;
  return p;
}

uint32_t psplit_i_decoder_batch_axis(const psplit_i_pipe *pipe, const psplit_i_decoder *decoder,
                                     uint32_t input) {
  const psplit_i_manifest *m = &pipe->manifest;
  const psplit_i_shape *shape = &m->input_values[input].shape;
  const psplit_i_phase *p = &pipe->phases[psplit_i_decoder_phase_of(pipe, input)];
  for (uint32_t i = p->first_input; i < p->first_input + p->n_needed; i++) {
    const psplit_i_shape *ids = &m->input_values[i].shape;
    if (decoder->roles[i] != PSPLIT_I_ROLE_IDS || ids->rank < 2 || !ids->dims[0].param) continue;
    for (int32_t a = 0; a < shape->rank; a++)
      if (shape->dims[a].param && strcmp(shape->dims[a].param, ids->dims[0].param) == 0)
        return (uint32_t)a;
  }
  return 0;
}

/* What decoder_make works on. */
typedef struct making {
  psplit_i_pipe *pipe;
  const psplit_i_manifest *m;
  const psplit_generator_options *options;
  psplit_i_decoder *d;
  psplit_diag *diag;
} making;

static uint32_t find(const char *const *names, uint32_t first, uint32_t n, const char *name) {
  for (uint32_t i = first; i < first + n; i++)
    if (strcmp(names[i], name) == 0) return i;
  return PSPLIT_NONE;
}

static uint32_t find_input(const making *mk, uint32_t phase, const char *name) {
  const psplit_i_phase *p = &mk->pipe->phases[phase];
  return find(mk->m->inputs, p->first_input, p->n_needed, name);
}

static uint32_t find_output(const making *mk, uint32_t phase, const char *name) {
  const psplit_i_phase *p = &mk->pipe->phases[phase];
  return find(mk->m->outputs, p->first_output, p->n_outputs, name);
}

/* Where an output of the pipe comes out. */
static bool find_output_port(const psplit_i_pipe *pipe, uint32_t output, uint32_t *out_stage,
                             uint32_t *out_port) {
  for (uint32_t s = 0; s < pipe->manifest.n_stages && output != PSPLIT_NONE; s++)
    for (uint32_t o = 0; o < pipe->manifest.stages[s].n_outputs; o++)
      if (pipe->model_output[s][o] == output) {
        *out_stage = s;
        *out_port = o;
        return true;
      }
  return false;
}

/* What writes a state in one phase. */
typedef struct writer {
  uint32_t phase, output, stage, port;
  bool is; /* else nothing there writes it */
} writer;

static psplit_code find_writer(const making *mk, uint32_t phase, uint32_t input, const char *name,
                               writer *out) {
  const char *taken = mk->m->input_values[input].dtype;
  *out = (writer){.phase = phase, .output = find_output(mk, phase, name)};
  if (out->output == PSPLIT_NONE) return PSPLIT_OK;
  const char *given = mk->m->output_values[out->output].dtype;
  if (given && taken && strcmp(given, taken) != 0)
    return psplit_i_fail(mk->diag, PSPLIT_UNSUPPORTED, "state %s comes out as %s, and %s takes %s",
                         name, given, mk->m->inputs[input], taken);
  out->is = find_output_port(mk->pipe, out->output, &out->stage, &out->port);
  return PSPLIT_OK;
}

/* What the encoder gave does not change: later steps hand it on, or something in its place. */
static bool is_of_encoder(const char *name) {
  static const char *const WORDS[] = {"encoder", "cross"};
  return HAS_WORD(name, WORDS);
}

static psplit_code fail_apart(const making *mk, uint32_t stage, uint32_t input, const writer *w) {
  if (w->phase == mk->d->phases.token)
    return psplit_i_fail_about(mk->diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(KEEP_TOGETHER),
                               "stage %u reads the state %s, and stage %u writes it as %s: a state "
                               "stays in one stage",
                               stage, mk->m->inputs[input], w->stage, mk->m->outputs[w->output]);
  return psplit_i_fail_about(
    mk->diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(PINS),
    "stage %u of %s reads the state %s, and stage %u of %s writes it: a state "
    "stays in one stage",
    stage, mk->pipe->phases[mk->d->phases.token].directory, mk->m->inputs[input], w->stage,
    mk->pipe->phases[w->phase].directory);
}

/* Has the stage that reads a state keep it: the one that writes it as `name`. */
static psplit_code keep(making *mk, uint32_t input, const char *name) {
  psplit_i_decoder *d = mk->d;
  const psplit_i_manifest *m = mk->m;
  const bool one = d->phases.prompt == d->phases.token;
  writer first, later;
  psplit_code code;
  PSPLIT_TRY(find_writer(mk, d->phases.prompt, input, name, &first));
  PSPLIT_TRY(find_writer(mk, d->phases.token, input, name, &later));
  if (!first.is)
    return psplit_i_fail(mk->diag, PSPLIT_UNSUPPORTED,
                         first.output == PSPLIT_NONE
                           ? "state %s does not come out of the first step"
                           : "state %s is not computed: its output is an input of the model",
                         name);
  const bool changes = later.is && !is_of_encoder(m->inputs[input]);
  for (uint32_t s = 0; s < m->n_stages; s++) {
    for (uint32_t i = 0; i < m->stages[s].n_inputs; i++) {
      if (mk->pipe->model_input[s][i] != input) continue;
      if (s != first.stage) return fail_apart(mk, s, input, &first);
      if (changes && s != later.stage) return fail_apart(mk, s, input, &later);
      d->kept[d->n_kept++] =
        (psplit_i_kept_port){s, i, first.port, changes ? later.port : PSPLIT_NONE};
      PSPLIT_TRY(psplit_i_pipe_keep_input(mk->pipe, s, i, mk->diag));
    }
  }
  psplit_i_pipe_keep_output(mk->pipe, first.stage, first.port);
  if (later.is && !one) psplit_i_pipe_keep_output(mk->pipe, later.stage, later.port);
  d->roles[input] = PSPLIT_I_ROLE_STATE;
out:
  return code;
}

/* The state that an input's name tells, if it does. */
static psplit_code find_state(making *mk, uint32_t input) {
  psplit_i_text name = {0};
  psplit_code code = PSPLIT_OK;
  for (size_t way = 0; way < PSPLIT_I_STATE_WAYS; way++) {
    if (!psplit_i_state_output(mk->m->inputs[input], way, &name)) continue;
    if (name.failed) PSPLIT_FAIL(psplit_i_nomem(mk->diag));
    if (find_output(mk, mk->d->phases.token, name.bytes) == PSPLIT_NONE &&
        find_output(mk, mk->d->phases.prompt, name.bytes) == PSPLIT_NONE)
      continue;
    code = keep(mk, input, name.bytes);
    break;
  }
out:
  psplit_i_text_fini(&name);
  return code;
}

/* Whether the model has what a pair of --state names, and the input no state yet. */
static psplit_code check_state(const making *mk, const psplit_state_pair *pair, uint32_t input) {
  const psplit_i_phase *prompt = &mk->pipe->phases[mk->d->phases.prompt];
  const psplit_i_phase *token = &mk->pipe->phases[mk->d->phases.token];
  if (find_output(mk, mk->d->phases.prompt, pair->output) == PSPLIT_NONE)
    return psplit_i_fail_unknown(mk->diag, PSPLIT_SUBJECT_STATE, "the model has no output",
                                 pair->output, mk->m->outputs + prompt->first_output,
                                 prompt->n_outputs);
  if (input == PSPLIT_NONE)
    return psplit_i_fail_unknown(mk->diag, PSPLIT_SUBJECT_STATE, "the model has no input",
                                 pair->input, mk->m->inputs + token->first_input, token->n_needed);
  if (mk->d->roles[input] == PSPLIT_I_ROLE_STATE)
    return psplit_i_fail_about(mk->diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(STATE),
                               "input %s is given two states", pair->input);
  return PSPLIT_OK;
}

/* States that are named, and those whose names tell. */
static psplit_code find_states(making *mk) {
  const psplit_generator_options *options = mk->options;
  const psplit_i_decoder_phases *phases = &mk->d->phases;
  const psplit_i_phase *token = &mk->pipe->phases[phases->token];
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < options->n_states; i++) {
    const psplit_state_pair *pair = &options->states[i];
    const uint32_t input = find_input(mk, phases->token, pair->input);
    code = check_state(mk, pair, input);
    if (code != PSPLIT_OK) {
      psplit_i_diag_context(mk->diag, "%s=%s", pair->output, pair->input);
      return code;
    }
    PSPLIT_TRY(keep(mk, input, pair->output));
  }
  for (uint32_t i = token->first_input; i < token->first_input + token->n_needed; i++)
    if (mk->d->roles[i] != PSPLIT_I_ROLE_STATE) PSPLIT_TRY(find_state(mk, i));
out:
  return code;
}

/* Inputs of a prompt's own model that take the states: there are none yet. */
static psplit_code find_empty(making *mk) {
  psplit_i_decoder *d = mk->d;
  const psplit_i_phase *prompt = &mk->pipe->phases[d->phases.prompt];
  psplit_code code = PSPLIT_OK;
  if (d->phases.prompt == d->phases.token) return PSPLIT_OK;
  for (uint32_t i = prompt->first_input; i < prompt->first_input + prompt->n_needed; i++) {
    const uint32_t later = find_input(mk, d->phases.token, mk->m->inputs[i]);
    if (later == PSPLIT_NONE || d->roles[later] != PSPLIT_I_ROLE_STATE) continue;
    d->roles[i] = PSPLIT_I_ROLE_STATE;
    for (uint32_t s = 0; s < mk->m->n_stages; s++) {
      for (uint32_t port = 0; port < mk->m->stages[s].n_inputs; port++) {
        if (mk->pipe->model_input[s][port] != i) continue;
        d->empty[d->n_empty++] = (psplit_i_input_port){s, port};
        PSPLIT_TRY(psplit_i_pipe_keep_input(mk->pipe, s, port, mk->diag));
      }
    }
  }
out:
  return code;
}

static bool is_integers(const psplit_i_manifest_value *value) {
  return value->dtype && (strcmp(value->dtype, "int64") == 0 || strcmp(value->dtype, "int32") == 0);
}

static psplit_code find_ids(making *mk, uint32_t phase) {
  const char *asked = mk->options->ids;
  const psplit_i_phase *p = &mk->pipe->phases[phase];
  const uint32_t found = find_input(mk, phase, asked ? asked : "input_ids");
  if (found == PSPLIT_NONE && asked)
    return psplit_i_fail_unknown(mk->diag, PSPLIT_SUBJECT_IDS, "the model has no input", asked,
                                 mk->m->inputs + p->first_input, p->n_needed);
  if (found == PSPLIT_NONE || !is_integers(&mk->m->input_values[found]))
    return psplit_i_fail_about(mk->diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(IDS),
                               "no input of the model takes token ids: it must be int64 or int32 "
                               "and be called input_ids");
  mk->d->roles[found] = PSPLIT_I_ROLE_IDS;
  return PSPLIT_OK;
}

/* The logits: by name, else the only output that is not a state. */
static psplit_code find_logits(making *mk, uint32_t phase, psplit_i_logits *out) {
  const char *asked = mk->options->logits;
  const psplit_i_phase *p = &mk->pipe->phases[phase];
  uint32_t found = find_output(mk, phase, asked ? asked : "logits");
  uint32_t last = PSPLIT_NONE, n = 0, stage, port;
  if (found == PSPLIT_NONE && asked)
    return psplit_i_fail_unknown(mk->diag, PSPLIT_SUBJECT_LOGITS, "the model has no output", asked,
                                 mk->m->outputs + p->first_output, p->n_outputs);
  for (uint32_t o = p->first_output; o < p->first_output + p->n_outputs; o++) {
    if (!find_output_port(mk->pipe, o, &stage, &port)) continue; /* a state */
    last = o;
    n++;
  }
  if (found == PSPLIT_NONE && n == 1) found = last;
  if (found == PSPLIT_NONE || !find_output_port(mk->pipe, found, &out->stage, &out->port))
    return psplit_i_fail_about(mk->diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(LOGITS),
                               "none of the model's outputs is called logits");
  out->output = found;
  return PSPLIT_OK;
}

/* The output of the encoder that an input of the decoder takes; PSPLIT_NONE: it takes none. */
static uint32_t find_encoded(const making *mk, const char *input) {
  const uint32_t phase = mk->d->phases.encode;
  const psplit_i_phase *encode = &mk->pipe->phases[phase];
  const uint32_t found = find_output(mk, phase, input);
  if (found != PSPLIT_NONE || strcmp(input, "encoder_hidden_states") != 0) return found;
  const uint32_t last = find_output(mk, phase, "last_hidden_state");
  return last == PSPLIT_NONE && encode->n_outputs == 1 ? encode->first_output : last;
}

/* What the encoder gives, to inputs that are no others. */
static psplit_code join_encoder(making *mk) {
  psplit_i_decoder *d = mk->d;
  bool any = false;
  if (d->phases.encode == PSPLIT_NONE) return PSPLIT_OK;
  for (uint32_t i = 0; i < mk->m->n_needed; i++) {
    uint32_t stage, port;
    if (psplit_i_decoder_phase_of(mk->pipe, i) == d->phases.encode) continue;
    if (d->roles[i] != PSPLIT_I_ROLE_OTHER) continue;
    const uint32_t output = find_encoded(mk, mk->m->inputs[i]);
    if (!find_output_port(mk->pipe, output, &stage, &port)) continue;
    d->roles[i] = PSPLIT_I_ROLE_ENCODED;
    d->encoded[i] = output;
    any = true;
  }
  if (any) return PSPLIT_OK;
  return psplit_i_fail(mk->diag, PSPLIT_UNSUPPORTED,
                       "the decoder has no input for the encoder's results: encoder_hidden_states, "
                       "or the name of an encoder output");
}

/* All outputs that nobody takes are dropped. */
static void drop_outputs(making *mk) {
  psplit_i_pipe *pipe = mk->pipe;
  const psplit_i_decoder *d = mk->d;
  for (uint32_t s = 0; s < mk->m->n_stages; s++) {
    for (uint32_t o = 0; o < mk->m->stages[s].n_outputs; o++) {
      const uint32_t output = pipe->model_output[s][o];
      bool taken = output == d->prompt.output || output == d->token.output;
      for (uint32_t i = 0; i < mk->m->n_needed; i++)
        taken |= d->roles[i] == PSPLIT_I_ROLE_ENCODED && d->encoded[i] == output;
      if (!taken) psplit_i_pipe_keep_output(pipe, s, o);
    }
  }
}

/* Inputs that come with the first step of a phase that has more than one. */
static void find_same(making *mk) {
  psplit_i_decoder *d = mk->d;
  for (uint32_t s = 0; s < mk->m->n_stages; s++) {
    for (uint32_t i = 0; i < mk->m->stages[s].n_inputs; i++) {
      const uint32_t input = mk->pipe->model_input[s][i];
      if (input == PSPLIT_NONE || input >= mk->m->n_needed) continue;
      const bool same =
        d->roles[input] == PSPLIT_I_ROLE_OTHER || d->roles[input] == PSPLIT_I_ROLE_ENCODED;
      if (same && psplit_i_decoder_phase_of(mk->pipe, input) == d->phases.token)
        d->same[d->n_same++] = (psplit_i_input_port){s, i};
    }
  }
}

static int by_stage(const void *a, const void *b) {
  const psplit_i_kept_port *x = a, *y = b;
  if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
  return x->input < y->input ? -1 : x->input > y->input;
}

static psplit_code find_roles(making *mk) {
  const psplit_i_decoder_phases *phases = &mk->d->phases;
  psplit_code code;
  for (uint32_t i = 0; i < mk->m->n_needed; i++)
    if (psplit_i_decoder_phase_of(mk->pipe, i) != phases->encode)
      mk->d->roles[i] = role_of(mk->m->inputs[i]);
  PSPLIT_TRY(find_states(mk));
  PSPLIT_TRY(find_empty(mk));
  PSPLIT_TRY(find_ids(mk, phases->prompt));
  PSPLIT_TRY(find_ids(mk, phases->token));
  PSPLIT_TRY(join_encoder(mk));
  PSPLIT_TRY(find_logits(mk, phases->prompt, &mk->d->prompt));
  PSPLIT_TRY(find_logits(mk, phases->token, &mk->d->token));
out:
  return code;
}

psplit_code psplit_i_decoder_make(psplit_i_pipe *pipe, const psplit_i_decoder_phases *phases,
                                  const psplit_generator_options *options, psplit_diag *diag,
                                  psplit_i_decoder *out) {
  const psplit_i_manifest *m = &pipe->manifest;
  psplit_i_arena *arena = &pipe->arena;
  making mk = {pipe, m, options, out, diag};
  size_t n_inputs = 1;
  for (uint32_t s = 0; s < m->n_stages; s++) n_inputs += m->stages[s].n_inputs;
  *out = (psplit_i_decoder){.phases = *phases,
                            .roles = PSPLIT_NEW(arena, psplit_i_role, (size_t)m->n_needed + 1),
                            .encoded = PSPLIT_NEW(arena, uint32_t, (size_t)m->n_needed + 1),
                            .kept = PSPLIT_NEW(arena, psplit_i_kept_port, n_inputs),
                            .empty = PSPLIT_NEW(arena, psplit_i_input_port, n_inputs),
                            .same = PSPLIT_NEW(arena, psplit_i_input_port, n_inputs)};
  if (arena->failed) return psplit_i_nomem(diag);
  const psplit_code code = find_roles(&mk);
  if (code != PSPLIT_OK) return code;
  drop_outputs(&mk);
  find_same(&mk);
  if (out->n_kept) qsort(out->kept, out->n_kept, sizeof *out->kept, by_stage);
  return PSPLIT_OK;
}
