/* genai_config.json: the stages of a decoder as the pipeline that ONNX Runtime GenAI runs.
 * Source of its fields and of what it does with them: onnxruntime-genai, src/config.cpp and
 * src/models/decoder_only_pipeline.cpp. It goes by names: a stage takes what the model is given,
 * the state, and what stages before it gave under the name of its input. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "emit.h"
#include "json_put.h"

/* A name of the state with the layer's number in it, as GenAI wants it: "past_key_values.%d.key".
 */
typedef struct name_form {
  char *text;
  uint32_t n; /* pairs of that form */
} name_form;

enum { KEY, VALUE, MOST_FORMS };

typedef struct writer {
  const psplit_i_split *split;
  const psplit_genai_options *options;
  psplit_i_arena arena;
  psplit_i_json *json;
  psplit_diag *diag;
  name_form past[MOST_FORMS], present[MOST_FORMS];
  uint32_t n_forms, n_layers;
  uint32_t past_input; /* position of the first state among the model's inputs */
  uint32_t logits;     /* value */
} writer;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The name with its last number as %d, and the number; NULL where it has none, or out of memory. */
static char *form_of(writer *w, const char *name, uint64_t *out_number) {
  const char *end = name + strlen(name);
  while (end > name && !is_digit(end[-1])) end--;
  const char *at = end;
  while (at > name && is_digit(at[-1])) at--;
  if (at == end || end - at > 9) return NULL;
  *out_number = 0;
  for (const char *c = at; c < end; c++) *out_number = *out_number * 10 + (uint64_t)(*c - '0');
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, "%.*s%%d%s", (int)(at - name), name, end);
  char *own = text.failed ? NULL : psplit_i_arena_strndup(&w->arena, text.bytes, text.n);
  if (!own) w->arena.failed = true;
  psplit_i_text_fini(&text);
  return own;
}

static psplit_code other_state(const writer *w, const psplit_plan_state *state) {
  return psplit_i_fail(w->diag, PSPLIT_UNSUPPORTED,
                       "ONNX Runtime GenAI keeps one or two state tensors per layer, numbered from "
                       "0; \"%s\" is not one of them",
                       state->input);
}

static psplit_code add_state(writer *w, const psplit_plan_state *state) {
  uint64_t number, again;
  char *past = form_of(w, state->input, &number), *present = form_of(w, state->output, &again);
  if (w->arena.failed) return psplit_i_nomem(w->diag);
  if (!past || !present || number != again) return other_state(w, state);
  uint32_t f = 0;
  while (f < w->n_forms && strcmp(w->past[f].text, past) != 0) f++;
  if (f == MOST_FORMS) return other_state(w, state);
  if (f == w->n_forms) {
    w->past[f].text = past;
    w->present[f].text = present;
    w->n_forms++;
  }
  /* Numbers count up from 0 in the order of the inputs: then none is missing. */
  if (strcmp(w->present[f].text, present) != 0 || number != w->past[f].n)
    return other_state(w, state);
  w->past[f].n++;
  if (w->past[f].n > w->n_layers) w->n_layers = w->past[f].n;
  return PSPLIT_OK;
}

static psplit_code find_states(writer *w) {
  psplit_code code = PSPLIT_OK;
  const psplit_plan *plan = w->split->plan;
  const psplit_i_graph *graph = w->split->graph;
  if (!plan->n_states)
    return psplit_i_fail(w->diag, PSPLIT_UNSUPPORTED,
                         "ONNX Runtime GenAI runs decoders, and the model has no state from step "
                         "to step");
  for (uint32_t i = 0; i < plan->n_states; i++) {
    PSPLIT_TRY(add_state(w, &plan->states[i]));
    if (plan->states[i].reader == PSPLIT_NONE || plan->states[i].writer == PSPLIT_NONE)
      PSPLIT_FAIL(psplit_i_fail(
        w->diag, PSPLIT_UNSUPPORTED,
        "ONNX Runtime GenAI runs one model for first and later steps, and "
        "nothing %s \"%s\"",
        plan->states[i].reader == PSPLIT_NONE ? "reads" : "makes",
        plan->states[i].reader == PSPLIT_NONE ? plan->states[i].input : plan->states[i].output));
    if (plan->states[i].writer != plan->states[i].reader)
      PSPLIT_FAIL(psplit_i_fail(w->diag, PSPLIT_UNSUPPORTED,
                                "\"%s\" is made by another stage than reads \"%s\"",
                                plan->states[i].output, plan->states[i].input));
  }
  for (uint32_t f = 0; f < w->n_forms; f++)
    if (w->past[f].n != w->n_layers) return other_state(w, &plan->states[0]);
  for (uint32_t i = graph->n_inputs; i-- > 0;)
    if (strcmp(graph->values[graph->inputs[i]].name, plan->states[0].input) == 0) w->past_input = i;
out:
  return code;
}

static bool is_state(const psplit_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->n_states; i++)
    if (strcmp(plan->states[i].input, name) == 0 || strcmp(plan->states[i].output, name) == 0)
      return true;
  return false;
}

/* Inputs that GenAI gives, by names that are its own for them. */
static const char *const GIVEN[] = {"input_ids",
                                    "inputs_embeds",
                                    "attention_mask",
                                    "position_ids",
                                    "past_sequence_length",
                                    "current_sequence_length",
                                    "total_sequence_length"};

static psplit_code check_inputs(const writer *w) {
  const psplit_i_graph *graph = w->split->graph;
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const psplit_i_value *value = &graph->values[graph->inputs[i]];
    bool given = value->initializer != PSPLIT_NONE || is_state(w->split->plan, value->name);
    for (size_t k = 0; k < sizeof GIVEN / sizeof *GIVEN; k++)
      given |= strcmp(value->name, GIVEN[k]) == 0;
    if (!given)
      return psplit_i_fail(w->diag, PSPLIT_UNSUPPORTED,
                           "ONNX Runtime GenAI does not provide the decoder input \"%s\"",
                           value->name);
  }
  return PSPLIT_OK;
}

static psplit_code find_logits(writer *w) {
  const psplit_i_graph *graph = w->split->graph;
  uint32_t n = 0;
  w->logits = PSPLIT_NONE;
  for (uint32_t o = 0; o < graph->n_outputs; o++) {
    const psplit_i_value *value = &graph->values[graph->outputs[o]];
    if (is_state(w->split->plan, value->name)) continue;
    const bool named = strcmp(value->name, "logits") == 0;
    if (n++ == 0 || named) w->logits = o;
    if (named) return PSPLIT_OK;
  }
  if (n == 1) return PSPLIT_OK;
  return psplit_i_fail(w->diag, PSPLIT_UNSUPPORTED,
                       "cannot determine the output with the logits: none is called \"logits\"");
}

/* The size of an axis that is declared as a number. */
static bool fixed(const Onnx__TypeProto *type, int64_t axis, uint64_t *out) {
  const int64_t rank = psplit_i_type_rank(type), at = axis < 0 ? rank + axis : axis;
  if (rank < 0 || at < 0 || at >= rank) return false;
  const int64_t size = psplit_i_type_dim(type, (uint32_t)at).value;
  if (size <= 0) return false;
  *out = (uint64_t)size;
  return true;
}

/* --- the pipeline --- */

static const char *level_name(int32_t level) {
  return level == 0   ? "ORT_DISABLE_ALL"
         : level == 1 ? "ORT_ENABLE_BASIC"
         : level == 2 ? "ORT_ENABLE_EXTENDED"
                      : "ORT_ENABLE_ALL";
}

static void write_session(const writer *w, uint32_t s) {
  static const psplit_session PLAIN = {.optimization = -1};
  psplit_i_json *json = w->json;
  char id[24];
  const psplit_session *given = w->options->sessions ? w->options->sessions[s] : NULL;
  const psplit_session *session = given ? given : &PLAIN;
  snprintf(id, sizeof id, "stage%" PRIu32, s);
  psplit_i_json_put_open(json, "session_options", '{');
  psplit_i_json_put_string(json, "log_id", id);
  if (session->n_threads) psplit_i_json_put_uint(json, "intra_op_num_threads", session->n_threads);
  if (session->optimization >= 0)
    psplit_i_json_put_string(json, "graph_optimization_level", level_name(session->optimization));
  for (uint32_t c = 0; c < session->n_config; c++)
    psplit_i_json_put_string(json, session->config_keys[c], session->config_values[c]);
  psplit_i_json_put_open(json, "provider_options", '[');
  if (session->provider && strncasecmp(session->provider, "CPU", 3) != 0) {
    psplit_i_json_open(json, '{');
    psplit_i_json_put_open(json, session->provider, '{');
    for (uint32_t o = 0; o < session->n_provider_options; o++)
      psplit_i_json_put_string(json, session->provider_keys[o], session->provider_values[o]);
    psplit_i_json_close(json, '}');
    psplit_i_json_close(json, '}');
  }
  psplit_i_json_close(json, ']');
  psplit_i_json_close(json, '}');
}

static void write_names(psplit_i_json *json, const char *key, const psplit_i_port *ports,
                        uint32_t n) {
  psplit_i_json_put_open(json, key, '[');
  for (uint32_t i = 0; i < n; i++) psplit_i_json_string(json, ports[i].name);
  psplit_i_json_close(json, ']');
}

/* The input of the receiving stage that the transfer is for. */
static const char *input_of(const psplit_i_split *split, uint32_t transfer) {
  const psplit_i_stage *to = &split->stages[split->plan->transfers[transfer].to];
  for (uint32_t i = 0; i < to->n_inputs; i++)
    if (to->inputs[i].n_transfers && to->inputs[i].transfer == transfer) return to->inputs[i].name;
  return split->graph->values[split->plan->transfers[transfer].value].name;
}

/* What leaves under one name and is awaited under another. An output goes on under one name alone,
 * and what is the model's own output goes to nobody else. */
static psplit_code write_forwards(const writer *w, uint32_t s) {
  const psplit_i_split *split = w->split;
  const psplit_i_stage *stage = &split->stages[s];
  bool open = false;
  for (uint32_t o = 0; o < stage->n_outputs; o++) {
    const psplit_i_port *port = &stage->outputs[o];
    const char *to = port->n_transfers ? input_of(split, port->transfer) : NULL;
    bool alike = true;
    for (uint32_t t = 1; t < port->n_transfers; t++)
      alike &= strcmp(input_of(split, port->transfer + t), to) == 0;
    if ((to && port->model) || !alike)
      return psplit_i_fail(w->diag, PSPLIT_UNSUPPORTED,
                           "ONNX Runtime GenAI cannot forward \"%s\" from stage %" PRIu32
                           " where it is read: it is an output of the model, or goes on under "
                           "several names",
                           port->name, s);
    if (!to || strcmp(to, port->name) == 0) continue;
    if (!open) psplit_i_json_key(w->json, "output_names_forwarder");
    if (!open) psplit_i_json_open(w->json, '{');
    open = true;
    psplit_i_json_put_string(w->json, port->name, to);
  }
  if (open) psplit_i_json_close(w->json, '}');
  return PSPLIT_OK;
}

static bool has_state(const psplit_plan *plan, uint32_t stage) {
  for (uint32_t i = 0; i < plan->n_states; i++)
    if (plan->states[i].writer == stage) return true;
  return false;
}

static bool gives_logits(const writer *w, uint32_t stage) {
  const psplit_i_stage *s = &w->split->stages[stage];
  for (uint32_t o = 0; o < s->n_outputs; o++)
    if (s->outputs[o].model && s->outputs[o].position == w->logits) return true;
  return false;
}

static psplit_code write_stage(const writer *w, uint32_t s) {
  psplit_code code;
  psplit_i_json *json = w->json;
  const psplit_i_stage *stage = &w->split->stages[s];
  char id[24];
  snprintf(id, sizeof id, "stage%" PRIu32, s);
  psplit_i_json_put_open(json, id, '{');
  psplit_i_json_put_string(json, "filename", w->split->stage_names[s]);
  write_names(json, "inputs", stage->inputs, stage->n_inputs);
  write_names(json, "outputs", stage->outputs, stage->n_outputs);
  PSPLIT_TRY(write_forwards(w, s));
  psplit_i_json_put_bool(json, "run_on_prompt", true);
  psplit_i_json_put_bool(json, "run_on_token_gen", true);
  /* Of a prompt in chunks, the last one's logits are wanted alone. */
  psplit_i_json_put_bool(json, "is_lm_head", gives_logits(w, s) && !has_state(w->split->plan, s));
  write_session(w, s);
  psplit_i_json_close(json, '}');
out:
  return code;
}

static void write_inputs(const writer *w) {
  psplit_i_json *json = w->json;
  const psplit_i_graph *graph = w->split->graph;
  const bool pairs = w->n_forms == 2;
  psplit_i_json_put_open(json, "inputs", '{');
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const char *name = graph->values[graph->inputs[i]].name;
    for (size_t k = 0; k < sizeof GIVEN / sizeof *GIVEN; k++)
      if (strcmp(name, GIVEN[k]) == 0) psplit_i_json_put_string(json, GIVEN[k], name);
  }
  psplit_i_json_put_string(json, pairs ? "past_key_names" : "past_names", w->past[KEY].text);
  if (pairs) psplit_i_json_put_string(json, "past_value_names", w->past[VALUE].text);
  psplit_i_json_close(json, '}');
  psplit_i_json_put_open(json, "outputs", '{');
  psplit_i_json_put_string(json, "logits", graph->values[graph->outputs[w->logits]].name);
  psplit_i_json_put_string(json, pairs ? "present_key_names" : "present_names",
                           w->present[KEY].text);
  if (pairs) psplit_i_json_put_string(json, "present_value_names", w->present[VALUE].text);
  psplit_i_json_close(json, '}');
}

static psplit_code write_decoder(const writer *w) {
  psplit_code code = PSPLIT_OK;
  psplit_i_json *json = w->json;
  const Onnx__TypeProto *past = w->split->graph->proto->input[w->past_input]->type;
  uint64_t heads, head_size;
  if (!fixed(past, -3, &heads) || !fixed(past, -1, &head_size))
    return psplit_i_fail(w->diag, PSPLIT_UNSUPPORTED,
                         "ONNX Runtime GenAI makes the state itself: the model has to fix how many "
                         "heads \"%s\" has and how large they are",
                         w->split->plan->states[0].input);
  psplit_i_json_put_open(json, "decoder", '{');
  psplit_i_json_put_uint(json, "num_hidden_layers", w->n_layers);
  psplit_i_json_put_uint(json, "num_key_value_heads", heads);
  psplit_i_json_put_uint(json, "head_size", head_size);
  write_inputs(w);
  psplit_i_json_put_open(json, "pipeline", '[');
  psplit_i_json_open(json, '{');
  for (uint32_t s = 0; s < w->split->plan->n_stages; s++) PSPLIT_TRY(write_stage(w, s));
  psplit_i_json_close(json, '}');
  psplit_i_json_close(json, ']');
  psplit_i_json_close(json, '}');
out:
  return code;
}

static psplit_code write_config(writer *w) {
  psplit_code code;
  psplit_i_json *json = w->json;
  uint64_t vocabulary;
  PSPLIT_TRY(find_states(w));
  PSPLIT_TRY(check_inputs(w));
  PSPLIT_TRY(find_logits(w));
  if (!fixed(w->split->graph->proto->output[w->logits]->type, -1, &vocabulary))
    PSPLIT_FAIL(psplit_i_fail(w->diag, PSPLIT_UNSUPPORTED,
                              "ONNX Runtime GenAI needs the vocabulary size, but the model leaves "
                              "the last dimension of its logits open"));
  psplit_i_json_open(json, '{');
  psplit_i_json_put_open(json, "model", '{');
  psplit_i_json_put_string(json, "type", "decoder-pipeline");
  psplit_i_json_put_uint(json, "vocab_size", vocabulary);
  psplit_i_json_put_uint(json, "context_length", w->options->context_length);
  PSPLIT_TRY(write_decoder(w));
  psplit_i_json_close(json, '}');
  psplit_i_json_put_open(json, "search", '{');
  psplit_i_json_put_uint(json, "max_length", w->options->context_length);
  psplit_i_json_close(json, '}');
  psplit_i_json_close(json, '}');
out:
  return code;
}

psplit_code psplit_genai_config(const psplit_model *model, const psplit_plan *plan,
                                const psplit_emit_options *options,
                                const psplit_genai_options *genai, psplit_diag *diag,
                                char **out_text) {
  psplit_code code;
  psplit_i_split split = {0};
  psplit_i_text text = {0};
  psplit_i_json json;
  psplit_genai_options given = {.struct_size = sizeof given};
  psplit_emit_options taken = {.struct_size = sizeof taken};
  writer w = {.split = &split, .options = &given, .json = &json, .diag = diag};
  psplit_i_arena_init(&w.arena, 0);
  psplit_i_json_init(&json, &text);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_emit_options, options, &taken, diag));
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_genai_options, genai, &given, diag));
  if (!given.context_length)
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_USAGE, "ONNX Runtime GenAI requires a maximum sequence length"));
  PSPLIT_TRY(psplit_i_split_init(&split, model, plan, &taken, diag));
  PSPLIT_TRY(write_config(&w));
  if (text.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_text = text.bytes;
  text = (psplit_i_text){0};
out:
  psplit_i_text_fini(&text);
  psplit_i_split_fini(&split);
  psplit_i_arena_fini(&w.arena);
  return code;
}
