/* Fuzz target: what running, generating and training make of pipeline.json. The input's first byte
 * says which of three splits' it is and how it is run; what follows are edits of it, each a place
 * (16 bits), what is done there (8 bits) and a number (8 bits): another number, another text of the
 * file, an element once more or no more. What is taken sends whole tensors between stages that
 * there are; what is refused has a reason. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder.h"
#include "feeding.h"
#include "kept.h"
#include "phases.h"
#include "splits.h"
#include "wiring.h"

#define HEAD "<ir_version: 10, opset_import: [\"\": 18]> g "
static const char *const MODELS[] = {
  HEAD
  "(float[\"n\", 4] x, bool c) => (float[\"n\", 4] y, float[\"n\", 4] z) <float[4, 4] v = "
  "{...}, float[4, 4] w = {...}> {"
  " a = MatMul (x, v) b = Relu (a) e = MatMul (b, w) z = Add (e, b) f = MatMul (z, v)"
  " y = Where (c, f, a) }",
  HEAD
  "(int64[1, \"s\"] input_ids, int64[1, \"t\"] attention_mask, float[1, 1, \"p\", 4] "
  "\"past_key_values.0.key\", float[1, 1, \"p\", 4] \"past_key_values.1.key\") => "
  "(float[1, \"s\", 4] logits, float[1, 1, \"t\", 4] \"present.0.key\", float[1, 1, \"t\", 4] "
  "\"present.1.key\") <float[9, 4] emb = {...}, float[4, 4] w = {...}, int64[1] one = {1}> {"
  " e = Gather (emb, input_ids) n = Unsqueeze (e, one)"
  " \"present.0.key\" = Concat <axis = 2> (\"past_key_values.0.key\", n)"
  " h = MatMul (n, w) \"present.1.key\" = Concat <axis = 2> (\"past_key_values.1.key\", h)"
  " m = ReduceMax <keepdims = 0> (attention_mask) f = Cast <to = 1> (m) g = Mul (h, f)"
  " q = Squeeze (g, one) logits = MatMul (q, w) }",
  HEAD
  "(float[\"n\", 4] x, float[\"n\", 4] t) => (float[] loss) <float[4, 4] v = {...}, "
  "float[4, 4] w = {...}> {"
  " a = MatMul (x, v) b = Relu (a) e = MatMul (b, w) h = MatMul (e, v) d = Sub (h, t)"
  " s = Mul (d, d) loss = ReduceMean <keepdims = 0> (s) }"};

enum { N_SPLITS = 3, DECODES = 1, TRAINS = 2, MOST_BYTES = 1 << 16, MOST_EDITS = 64 };

typedef struct split {
  char directory[FUZZ_PATH_BYTES], path[FUZZ_PATH_BYTES + 32];
  char *text;
  size_t n;
} split;

static split splits[N_SPLITS];

static void make(uint32_t which) {
  split *s = &splits[which];
  psplit_model *model = fuzz_model_of(MODELS[which]);
  char name[32];
  snprintf(name, sizeof name, "split%u", which);
  fuzz_path(name, s->directory);
  if (which == TRAINS) {
    psplit_training_form form;
    psplit_training_form_init(&form);
    form.optimizer = "adam";
    form.weights = PSPLIT_WEIGHTS_INPUT;
    fuzz_must_train(model, s->directory, &form);
  } else {
    fuzz_must_split(model, s->directory, 0);
  }
  psplit_model_close(model);
  snprintf(name, sizeof name, "split%u/pipeline.json", which);
  fuzz_path(name, s->path);
  FILE *in = fopen(s->path, "rb");
  s->text = malloc(MOST_BYTES);
  FUZZ_HOLDS(in && s->text);
  s->n = fread(s->text, 1, MOST_BYTES, in);
  fclose(in);
}

/* --- edits --- */

/* The end of the number, text, list or object that begins at `at`. */
static size_t end_of(const char *text, size_t n, size_t at) {
  size_t depth = 0;
  for (size_t i = at; i < n; i++) {
    if (text[i] == '"') {
      while (++i < n && text[i] != '"') i += text[i] == '\\';
      if (!depth) return i < n ? i + 1 : n;
    } else if (strchr("[{", text[i])) {
      depth++;
    } else if (strchr("]}", text[i])) {
      if (depth <= 1) return depth ? i + 1 : i;
      depth--;
    } else if (!depth && strchr(",:\n ", text[i])) {
      return i;
    }
  }
  return n;
}

/* Where the next number, text, list or object begins, from `at` on and round. */
static size_t next_value(const char *text, size_t n, size_t at) {
  for (size_t i = 0; i < n; i++) {
    const size_t place = (at + i) % n;
    if (strchr("\"[{-0123456789", text[place]) && place && strchr("[ \n", text[place - 1]))
      return place;
  }
  return 0;
}

static void replace(psplit_i_text *text, size_t at, size_t end, const char *by, size_t n) {
  psplit_i_text made = {0};
  psplit_i_text_add(&made, text->bytes, at);
  psplit_i_text_add(&made, by, n);
  psplit_i_text_add(&made, text->bytes + end, text->n - end);
  psplit_i_text_fini(text);
  *text = made;
}

static void edit(psplit_i_text *text, const uint8_t *by) {
  static const char *const values[] = {
    "0",    "1",    "2",  "3",  "-1",        "4294967295", "4294967296", "9223372036854775807",
    "null", "\"\"", "[]", "{}", "\"model\"", "\"stash\"",  "\"update\"", "true"};
  const size_t at = next_value(text->bytes, text->n, (by[0] | (size_t)by[1] << 8) % text->n);
  size_t end = end_of(text->bytes, text->n, at);
  psplit_i_text other = {0};
  switch (by[2] % 4) {
    case 0: psplit_i_text_puts(&other, values[by[3] % 16]); break;
    case 1: {
      const size_t from = next_value(text->bytes, text->n, (size_t)by[3] * text->n / 256);
      psplit_i_text_add(&other, text->bytes + from, end_of(text->bytes, text->n, from) - from);
      break;
    }
    case 2: /* once more */
      psplit_i_text_add(&other, text->bytes + at, end - at);
      psplit_i_text_puts(&other, ", ");
      psplit_i_text_add(&other, text->bytes + at, end - at);
      break;
    default: /* no more */
      while (end < text->n && strchr(", \n", text->bytes[end])) end++;
  }
  if (end >= at) replace(text, at, end, other.bytes ? other.bytes : "", other.n);
  psplit_i_text_fini(&other);
}

/* --- what is made of it --- */

static void check_links(const psplit_i_pipe *pipe) {
  const psplit_i_manifest *m = &pipe->manifest;
  for (uint32_t l = 0; l < pipe->n_links; l++) {
    const psplit_i_pipe_link *link = &pipe->links[l];
    const bool fed = link->from == (uint32_t)PSPLIT_I_OUTSIDE,
               collected = link->to == (uint32_t)PSPLIT_I_OUTSIDE;
    FUZZ_HOLDS((fed || link->from < m->n_stages) && (collected || link->to < m->n_stages));
    const uint32_t n_from = fed ? m->n_inputs : m->stages[link->from].n_outputs,
                   n_to = collected ? m->n_outputs : m->stages[link->to].n_inputs;
    for (uint32_t t = 0; t < link->n_tensors; t++)
      FUZZ_HOLDS(link->outputs[t] < n_from && link->inputs[t] < n_to);
  }
}

/* Whether it is a decoder. */
static bool check_decoder(const psplit_i_pipe *read, bool twice) {
  const psplit_i_pipe *const both[] = {read, read};
  const psplit_i_decoder_phases phases = {
    .encode = PSPLIT_NONE, .prompt = 0, .token = twice ? 1 : 0};
  const psplit_i_pipe_wants wants = {.feed = true, .collect = true, .outputs = true};
  psplit_generator_options options;
  psplit_i_pipe pipe = {0};
  psplit_i_decoder decoder;
  psplit_diag diag = {0};
  psplit_generator_options_init(&options);
  psplit_code code = psplit_i_pipes_join(both, twice ? 2 : 1, &diag, &pipe);
  if (code == PSPLIT_OK) code = psplit_i_decoder_make(&pipe, &phases, &options, &diag, &decoder);
  if (code == PSPLIT_OK) {
    const psplit_i_manifest *m = &pipe.manifest;
    psplit_i_kept kept = {.pipe = &pipe, .decoder = &decoder};
    for (uint32_t k = 0; k < decoder.n_kept; k++) {
      const psplit_i_kept_port *port = &decoder.kept[k];
      FUZZ_HOLDS(port->stage < m->n_stages && port->input < m->stages[port->stage].n_inputs);
      FUZZ_HOLDS(port->first_output < m->stages[port->stage].n_outputs);
      FUZZ_HOLDS(port->output == PSPLIT_NONE || port->output < m->stages[port->stage].n_outputs);
    }
    FUZZ_HOLDS(decoder.token.stage < m->n_stages && decoder.token.output < m->n_outputs);
    FUZZ_HOLDS(decoder.prompt.stage < m->n_stages && decoder.prompt.output < m->n_outputs);
    code = psplit_i_kept_init(&kept, 2, &diag);
    psplit_i_kept_fini(&kept);
  }
  if (code == PSPLIT_OK) code = psplit_i_pipe_open_ends(&pipe, wants, &diag);
  if (code == PSPLIT_OK) check_links(&pipe);
  FUZZ_HOLDS((code == PSPLIT_OK) == !*diag.message);
  psplit_i_pipe_fini(&pipe);
  return code == PSPLIT_OK;
}

/* Whether there are wires. */
static bool check_wiring(const psplit_i_pipe *pipe, uint32_t n_chunks, uint32_t n_replicas) {
  psplit_train_options options;
  psplit_i_wiring w = {0};
  psplit_diag diag = {0};
  psplit_train_options_init(&options);
  psplit_code code = psplit_i_feeding_check(&pipe->manifest, &options, &diag);
  if (code == PSPLIT_OK) code = psplit_i_wiring_make(pipe, n_chunks, n_replicas, &diag, &w);
  FUZZ_HOLDS((code == PSPLIT_OK) == !*diag.message);
  for (uint32_t i = 0; code == PSPLIT_OK && i < w.n_wires; i++) {
    const psplit_i_wire *wire = &w.wires[i];
    FUZZ_HOLDS(wire->from_device < w.n_devices && wire->to_device < w.n_devices);
    for (uint32_t t = 0; t < wire->n_tensors; t++) FUZZ_HOLDS(wire->given[t] && wire->taken[t]);
  }
  psplit_i_wiring_fini(&w);
  return code == PSPLIT_OK;
}

static void check(const char *directory, uint8_t how, bool decodes, bool trains) {
  const psplit_i_pipe_wants wants = {.feed = true, .collect = true, .outputs = how & 1};
  psplit_i_pipe pipe;
  psplit_diag diag = {0};
  psplit_code code = psplit_i_pipe_read(directory, 0, &diag, &pipe);
  FUZZ_HOLDS((code == PSPLIT_OK) == !*diag.message);
  FUZZ_HOLDS(code == PSPLIT_OK || code == PSPLIT_MALFORMED || code == PSPLIT_INVALID ||
             code == PSPLIT_UNSUPPORTED || code == PSPLIT_LIMIT);
  if (code != PSPLIT_OK) {
    FUZZ_HOLDS(!decodes && !trains);
    return;
  }
  check_links(&pipe);
  FUZZ_HOLDS(check_decoder(&pipe, how & 2) || !decodes);
  if (pipe.manifest.training && pipe.manifest.training->plain_weights)
    FUZZ_HOLDS(check_wiring(&pipe, 1 + (how >> 2 & 1), 1 + (how >> 3 & 1)) || !trains);
  FUZZ_HOLDS(psplit_i_pipe_depth(&pipe) > 0);
  for (uint32_t l = 0; l < pipe.n_links; l++) (void)psplit_i_pipe_link_bytes(&pipe, &pipe.links[l]);
  code = psplit_i_pipe_open_ends(&pipe, wants, &diag);
  if (code == PSPLIT_OK) {
    check_links(&pipe);
    FUZZ_HOLDS(psplit_i_pipe_deliverer(&pipe) < pipe.manifest.n_stages);
  }
  psplit_i_pipe_fini(&pipe);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  if (!splits[0].text)
    for (uint32_t i = 0; i < N_SPLITS; i++) make(i);
  if (!n) return 0;
  const split *s = &splits[data[0] % N_SPLITS];
  psplit_i_text text = {0};
  psplit_i_text_add(&text, s->text, s->n);
  for (size_t i = 1; i + 4 <= n && i < 4 * (size_t)MOST_EDITS && text.n < MOST_BYTES; i += 4)
    if (text.n) edit(&text, data + i);
  FILE *out = fopen(s->path, "wb");
  FUZZ_HOLDS(out && fwrite(text.bytes, 1, text.n, out) == text.n && fclose(out) == 0);
  psplit_i_text_fini(&text);
  const bool whole = n == 1; /* without edits */
  check(s->directory, data[0] / N_SPLITS, whole && s == &splits[DECODES],
        whole && s == &splits[TRAINS]);
  return 0;
}
