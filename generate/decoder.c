#include "decoder.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "feed_check.h"
#include "state_names.h"

static bool ends_with(const char *name, const char *end) {
  const size_t n = strlen(name), m = strlen(end);
  return n >= m && strcasecmp(name + n - m, end) == 0;
}

/* How exporters call inputs that follow from the tokens (optimum, ONNX Runtime's model builder,
 * transformers.js). */
static const struct {
  const char *end; /* of the name */
  psplit_i_role role;
} ROLES[] = {
  {"attention_mask", PSPLIT_I_ROLE_MASK},         {"position_ids", PSPLIT_I_ROLE_POSITIONS},
  {"cache_position", PSPLIT_I_ROLE_POSITIONS},    {"seqlens_k", PSPLIT_I_ROLE_LAST},
  {"total_sequence_length", PSPLIT_I_ROLE_TOTAL}, {"total_seq_len", PSPLIT_I_ROLE_TOTAL},
  {"use_cache_branch", PSPLIT_I_ROLE_HAS_PAST},
};

static psplit_i_role role_of(const char *name) {
  /* What masks an encoder's output is not about the tokens. */
  if (strncasecmp(name, "encoder", 7) == 0) return PSPLIT_I_ROLE_OTHER;
  for (size_t i = 0; i < sizeof ROLES / sizeof ROLES[0]; i++)
    if (ends_with(name, ROLES[i].end)) return ROLES[i].role;
  return PSPLIT_I_ROLE_OTHER;
}

static uint32_t find(const char *const *names, uint32_t n, const char *name) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(names[i], name) == 0) return i;
  return PSPLIT_NONE;
}

/* Where an output of the model comes out. */
static bool find_output_port(const psplit_i_pipe *pipe, uint32_t output, uint32_t *out_stage,
                             uint32_t *out_port) {
  for (uint32_t s = 0; s < pipe->manifest.n_stages; s++)
    for (uint32_t o = 0; o < pipe->manifest.stages[s].n_outputs; o++)
      if (pipe->model_output[s][o] == output) {
        *out_stage = s;
        *out_port = o;
        return true;
      }
  return false;
}

/* Has the stage that reads a state keep it: the one that writes it. */
static psplit_code keep(psplit_i_pipe *pipe, uint32_t output, uint32_t input, psplit_diag *diag,
                        psplit_i_decoder *d) {
  const psplit_i_manifest *m = &pipe->manifest;
  uint32_t writer, port;
  if (!find_output_port(pipe, output, &writer, &port))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "state %s is an input of the model as it is",
                         m->outputs[output]);
  const char *given = m->output_values[output].dtype, *taken = m->input_values[input].dtype;
  if (given && taken && strcmp(given, taken) != 0)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "state %s comes out as %s, and %s takes %s",
                         m->outputs[output], given, m->inputs[input], taken);
  for (uint32_t s = 0; s < m->n_stages; s++) {
    for (uint32_t i = 0; i < m->stages[s].n_inputs; i++) {
      const psplit_i_row *row = &m->stages[s].inputs[i];
      if (row->from != PSPLIT_I_FROM_MODEL || strcmp(row->tensor, m->inputs[input]) != 0) continue;
      if (s != writer)
        return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                             "stage %u reads the state %s, and stage %u writes it as %s: a state "
                             "stays in one stage; --keep-together of onnx-pipeline-split keeps its "
                             "nodes together",
                             s, m->inputs[input], writer, m->outputs[output]);
      d->kept[d->n_kept++] = (psplit_i_kept_port){s, port, i};
      const psplit_code code = psplit_i_pipe_keep_input(pipe, s, i, diag);
      if (code != PSPLIT_OK) return code;
    }
  }
  psplit_i_pipe_keep_output(pipe, writer, port);
  d->roles[input] = PSPLIT_I_ROLE_STATE;
  return PSPLIT_OK;
}

/* The state that an input's name tells, if it does. */
static psplit_code find_state(psplit_i_pipe *pipe, uint32_t input, psplit_diag *diag,
                              psplit_i_decoder *d) {
  const psplit_i_manifest *m = &pipe->manifest;
  psplit_i_text name = {0};
  psplit_code code = PSPLIT_OK;
  for (size_t way = 0; way < PSPLIT_I_STATE_WAYS; way++) {
    if (!psplit_i_state_output(m->inputs[input], way, &name)) continue;
    if (name.failed) PSPLIT_TRY(psplit_i_nomem(diag));
    const uint32_t output = find(m->outputs, m->n_outputs, name.bytes);
    if (output == PSPLIT_NONE) continue;
    code = keep(pipe, output, input, diag, d);
    break;
  }
out:
  psplit_i_text_fini(&name);
  return code;
}

/* States that are named, and those whose names tell. */
static psplit_code find_states(psplit_i_pipe *pipe, const psplit_generator_options *options,
                               psplit_diag *diag, psplit_i_decoder *d) {
  const psplit_i_manifest *m = &pipe->manifest;
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < options->n_states; i++) {
    const psplit_state_pair *pair = &options->states[i];
    const uint32_t output = find(m->outputs, m->n_outputs, pair->output);
    const uint32_t input = find(m->inputs, m->n_needed, pair->input);
    if (output == PSPLIT_NONE)
      return psplit_i_fail_unknown(diag, "the model has no output", pair->output, m->outputs,
                                   m->n_outputs);
    if (input == PSPLIT_NONE)
      return psplit_i_fail_unknown(diag, "the model has no input", pair->input, m->inputs,
                                   m->n_needed);
    if (d->roles[input] == PSPLIT_I_ROLE_STATE)
      return psplit_i_fail(diag, PSPLIT_USAGE, "input %s is given two states", pair->input);
    PSPLIT_TRY(keep(pipe, output, input, diag, d));
  }
  for (uint32_t i = 0; i < m->n_needed; i++)
    if (d->roles[i] != PSPLIT_I_ROLE_STATE) PSPLIT_TRY(find_state(pipe, i, diag, d));
out:
  return code;
}

static bool is_integers(const psplit_i_manifest_value *value) {
  return value->dtype && (strcmp(value->dtype, "int64") == 0 || strcmp(value->dtype, "int32") == 0);
}

static psplit_code find_ids(const psplit_i_manifest *m, const char *asked, psplit_diag *diag,
                            psplit_i_role *roles) {
  uint32_t found = asked ? find(m->inputs, m->n_needed, asked) : PSPLIT_NONE;
  uint32_t last = PSPLIT_NONE, n = 0;
  if (asked && found == PSPLIT_NONE)
    return psplit_i_fail_unknown(diag, "the model has no input", asked, m->inputs, m->n_needed);
  for (uint32_t i = 0; i < m->n_needed; i++) {
    if (found == PSPLIT_NONE && ends_with(m->inputs[i], "input_ids")) found = i;
    if (roles[i] != PSPLIT_I_ROLE_OTHER || !is_integers(&m->input_values[i]) ||
        m->input_values[i].shape.rank != 2)
      continue;
    last = i;
    n++;
  }
  if (found == PSPLIT_NONE && n == 1) found = last; /* no other can be */
  if (found == PSPLIT_NONE || !is_integers(&m->input_values[found]))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "none of the model's inputs takes tokens: int64 or int32, called "
                         "input_ids, or the one that --ids names");
  roles[found] = PSPLIT_I_ROLE_IDS;
  return PSPLIT_OK;
}

/* The logits: by name, else the only output that is no state. All other outputs are dropped. */
static psplit_code find_logits(psplit_i_pipe *pipe, const char *asked, psplit_diag *diag,
                               psplit_i_decoder *d) {
  const psplit_i_manifest *m = &pipe->manifest;
  uint32_t found = find(m->outputs, m->n_outputs, asked ? asked : "logits");
  uint32_t last = PSPLIT_NONE, n = 0, stage, port;
  if (found == PSPLIT_NONE && asked)
    return psplit_i_fail_unknown(diag, "the model has no output", asked, m->outputs, m->n_outputs);
  for (uint32_t o = 0; o < m->n_outputs; o++) {
    if (!find_output_port(pipe, o, &stage, &port)) continue; /* a state */
    last = o;
    n++;
  }
  if (found == PSPLIT_NONE && n == 1) found = last;
  if (found == PSPLIT_NONE || !find_output_port(pipe, found, &d->logits_stage, &d->logits_port))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "none of the model's outputs is called logits, and --logits names none");
  for (uint32_t s = 0; s < m->n_stages; s++)
    for (uint32_t o = 0; o < m->stages[s].n_outputs; o++)
      if (pipe->model_output[s][o] != found) psplit_i_pipe_keep_output(pipe, s, o);
  d->logits = found;
  return PSPLIT_OK;
}

static int by_stage(const void *a, const void *b) {
  const psplit_i_kept_port *x = a, *y = b;
  if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
  return x->input < y->input ? -1 : x->input > y->input;
}

psplit_code psplit_i_decoder_make(psplit_i_pipe *pipe, const psplit_generator_options *options,
                                  psplit_diag *diag, psplit_i_decoder *out) {
  const psplit_i_manifest *m = &pipe->manifest;
  size_t n_inputs = 1;
  psplit_code code = PSPLIT_OK;
  for (uint32_t s = 0; s < m->n_stages; s++) n_inputs += m->stages[s].n_inputs;
  *out =
    (psplit_i_decoder){.roles = PSPLIT_NEW(&pipe->arena, psplit_i_role, (size_t)m->n_needed + 1),
                       .kept = PSPLIT_NEW(&pipe->arena, psplit_i_kept_port, n_inputs)};
  if (!out->roles || !out->kept) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < m->n_needed; i++) out->roles[i] = role_of(m->inputs[i]);
  PSPLIT_TRY(find_states(pipe, options, diag, out));
  PSPLIT_TRY(find_ids(m, options->ids, diag, out->roles));
  PSPLIT_TRY(find_logits(pipe, options->logits, diag, out));
  if (out->n_kept) qsort(out->kept, out->n_kept, sizeof *out->kept, by_stage);
out:
  return code;
}
