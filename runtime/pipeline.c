#include "pipeline.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct transfer {
  int64_t tag;
  uint32_t from, to, output, input;
} transfer;

static psplit_code bad(psplit_diag *diag, const char *what) {
  return psplit_i_fail(diag, PSPLIT_INVALID, "pipeline.json: %s", what);
}

static psplit_code get_text(psplit_i_pipe *p, const json_t *object, const char *key,
                            psplit_diag *diag, const char **out) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
    return psplit_i_fail(diag, PSPLIT_INVALID, "pipeline.json: %s is missing or not a string", key);
  *out = psplit_i_arena_strndup(&p->arena, json_string_value(value), json_string_length(value));
  return *out ? PSPLIT_OK : psplit_i_nomem(diag);
}

static bool as_stage(const json_t *value, uint32_t n_stages, uint32_t *out) {
  if (!json_is_integer(value) || json_integer_value(value) < 0 ||
      json_integer_value(value) >= (json_int_t)n_stages)
    return false;
  *out = (uint32_t)json_integer_value(value);
  return true;
}

static bool is_model(const json_t *value) {
  return json_is_string(value) && strcmp(json_string_value(value), "model") == 0;
}

static int64_t get_ns(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value) : -1;
}

static psplit_code get_array(const json_t *object, const char *key, bool needed, psplit_diag *diag,
                             const json_t **out) {
  *out = json_object_get(object, key);
  if (json_is_array(*out) || (!*out && !needed)) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_INVALID, "pipeline.json: %s is missing or not an array", key);
}

static psplit_code read_names(psplit_i_pipe *p, const json_t *list, psplit_diag *diag,
                              const char **names) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < json_array_size(list); i++)
    PSPLIT_TRY(get_text(p, json_array_get(list, i), "name", diag, &names[i]));
out:
  return code;
}

static psplit_code read_inputs(psplit_i_pipe *p, const json_t *list, bool optional,
                               psplit_diag *diag, psplit_i_pipe_port *ports) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *row = json_array_get(list, i), *from = json_object_get(row, "from");
    ports[i] = (psplit_i_pipe_port){.from = PSPLIT_NONE, .optional = optional};
    PSPLIT_TRY(get_text(p, row, "name", diag, &ports[i].name));
    PSPLIT_TRY(get_text(p, row, "tensor", diag, &ports[i].tensor));
    if (!is_model(from) && !as_stage(from, p->n_stages, &ports[i].from))
      return bad(diag, "an input comes neither from a stage nor from the model");
  }
out:
  return code;
}

static psplit_code read_outputs(psplit_i_pipe *p, const json_t *list, psplit_diag *diag,
                                psplit_i_pipe_port *ports) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *row = json_array_get(list, i), *to;
    ports[i] = (psplit_i_pipe_port){.from = PSPLIT_NONE, .model_output = PSPLIT_NONE};
    PSPLIT_TRY(get_text(p, row, "name", diag, &ports[i].name));
    PSPLIT_TRY(get_text(p, row, "tensor", diag, &ports[i].tensor));
    PSPLIT_TRY(get_array(row, "to", true, diag, &to));
    ports[i].to = PSPLIT_NEW(&p->arena, uint32_t, json_array_size(to));
    if (!ports[i].to) return psplit_i_nomem(diag);
    for (size_t t = 0; t < json_array_size(to); t++) {
      if (as_stage(json_array_get(to, t), p->n_stages, &ports[i].to[ports[i].n_to])) {
        ports[i].n_to++;
        continue;
      }
      if (!is_model(json_array_get(to, t))) return bad(diag, "an output goes to no stage");
      for (uint32_t o = 0; o < p->n_outputs; o++)
        if (strcmp(p->outputs[o], ports[i].tensor) == 0) ports[i].model_output = o;
      if (ports[i].model_output == PSPLIT_NONE)
        return bad(diag, "a stage gives the model an output that the model has not");
    }
  }
out:
  return code;
}

static psplit_code read_stage(psplit_i_pipe *p, const json_t *object, psplit_diag *diag,
                              psplit_i_pipe_stage *stage) {
  psplit_code code;
  const json_t *inputs, *optional, *outputs;
  PSPLIT_TRY(get_text(p, object, "file", diag, &stage->file));
  if (!*stage->file || *stage->file == '.' || strchr(stage->file, '/'))
    return bad(diag, "a stage's file is not a plain name");
  PSPLIT_TRY(get_text(p, object, "device", diag, &stage->device));
  PSPLIT_TRY(get_array(object, "inputs", true, diag, &inputs));
  PSPLIT_TRY(get_array(object, "optional_inputs", false, diag, &optional));
  PSPLIT_TRY(get_array(object, "outputs", true, diag, &outputs));
  const size_t n_inputs = json_array_size(inputs) + json_array_size(optional);
  stage->inputs = PSPLIT_NEW(&p->arena, psplit_i_pipe_port, n_inputs);
  stage->outputs = PSPLIT_NEW(&p->arena, psplit_i_pipe_port, json_array_size(outputs));
  if (!stage->inputs || !stage->outputs) return psplit_i_nomem(diag);
  PSPLIT_TRY(read_inputs(p, inputs, false, diag, stage->inputs));
  PSPLIT_TRY(read_inputs(p, optional, true, diag, stage->inputs + json_array_size(inputs)));
  PSPLIT_TRY(read_outputs(p, outputs, diag, stage->outputs));
  stage->n_inputs = (uint32_t)n_inputs;
  stage->n_outputs = (uint32_t)json_array_size(outputs);
  stage->compute_ns = get_ns(object, "compute_ns");
  stage->recv_ns = get_ns(object, "recv_ns");
  stage->send_ns = get_ns(object, "send_ns");
  stage->load_ns = get_ns(object, "load_ns");
out:
  return code;
}

static bool find_input(const psplit_i_pipe_stage *stage, const char *tensor, uint32_t from,
                       uint32_t *out) {
  for (*out = 0; *out < stage->n_inputs; ++*out)
    if (stage->inputs[*out].from == from && strcmp(stage->inputs[*out].tensor, tensor) == 0)
      return true;
  return false;
}

static bool find_output(const psplit_i_pipe_stage *stage, const char *tensor, uint32_t to,
                        uint32_t *out) {
  for (*out = 0; *out < stage->n_outputs; ++*out) {
    const psplit_i_pipe_port *port = &stage->outputs[*out];
    if (strcmp(port->tensor, tensor) != 0) continue;
    for (uint32_t i = 0; i < port->n_to; i++)
      if (port->to[i] == to) return true;
  }
  return false;
}

static psplit_code read_transfer(psplit_i_pipe *p, const json_t *row, psplit_diag *diag,
                                 transfer *out) {
  const json_t *tag = json_object_get(row, "tag");
  const char *tensor;
  psplit_code code = get_text(p, row, "tensor", diag, &tensor);
  if (code != PSPLIT_OK) return code;
  if (!json_is_integer(tag) || !as_stage(json_object_get(row, "from"), p->n_stages, &out->from) ||
      !as_stage(json_object_get(row, "to"), p->n_stages, &out->to) || out->from >= out->to)
    return bad(diag, "a transfer needs a tag, and must go to a later stage");
  out->tag = json_integer_value(tag);
  if (!find_output(&p->stages[out->from], tensor, out->to, &out->output) ||
      !find_input(&p->stages[out->to], tensor, out->from, &out->input))
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "pipeline.json: %s goes from stage %u to %u, which do not list it", tensor,
                         out->from, out->to);
  return PSPLIT_OK;
}

static int by_pair_and_tag(const void *a, const void *b) {
  const transfer *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return x->tag < y->tag ? -1 : x->tag > y->tag;
}

static psplit_code read_links(psplit_i_pipe *p, const json_t *list, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const size_t n = json_array_size(list);
  transfer *all = PSPLIT_NEW(&p->arena, transfer, n);
  uint32_t *ports = PSPLIT_NEW(&p->arena, uint32_t, 2 * n);
  p->links = PSPLIT_NEW(&p->arena, psplit_i_pipe_link, n);
  if (!all || !ports || !p->links) return psplit_i_nomem(diag);
  for (size_t i = 0; i < n; i++)
    PSPLIT_TRY(read_transfer(p, json_array_get(list, i), diag, &all[i]));
  if (n) qsort(all, n, sizeof *all, by_pair_and_tag);
  for (size_t i = 0; i < n; i++) {
    psplit_i_pipe_link *link = p->n_links ? &p->links[p->n_links - 1] : NULL;
    if (!link || link->from != all[i].from || link->to != all[i].to) {
      link = &p->links[p->n_links++];
      *link = (psplit_i_pipe_link){
        .from = all[i].from, .to = all[i].to, .outputs = ports + i, .inputs = ports + n + i};
    }
    ports[i] = all[i].output;
    ports[n + i] = all[i].input;
    link->n_tensors++;
  }
  size_t n_received = 0;
  for (uint32_t s = 0; s < p->n_stages; s++)
    for (uint32_t i = 0; i < p->stages[s].n_inputs; i++)
      n_received += p->stages[s].inputs[i].from != PSPLIT_NONE;
  if (n_received != n) return bad(diag, "transfers are not what the stages receive");
out:
  return code;
}

static psplit_code read_root(psplit_i_pipe *p, const json_t *root, psplit_diag *diag) {
  psplit_code code;
  const char *format;
  const json_t *inputs, *optional, *outputs, *stages, *transfers;
  PSPLIT_TRY(get_text(p, root, "format", diag, &format));
  if (strcmp(format, "onnx-pipeline-split") != 0 ||
      json_integer_value(json_object_get(root, "version")) != 1)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "pipeline.json is not of format onnx-pipeline-split, version 1");
  PSPLIT_TRY(get_array(root, "inputs", true, diag, &inputs));
  PSPLIT_TRY(get_array(root, "optional_inputs", false, diag, &optional));
  PSPLIT_TRY(get_array(root, "outputs", true, diag, &outputs));
  PSPLIT_TRY(get_array(root, "stages", true, diag, &stages));
  PSPLIT_TRY(get_array(root, "transfers", true, diag, &transfers));
  p->n_inputs = (uint32_t)(json_array_size(inputs) + json_array_size(optional));
  p->n_needed = (uint32_t)json_array_size(inputs);
  p->n_outputs = (uint32_t)json_array_size(outputs);
  p->n_stages = (uint32_t)json_array_size(stages);
  if (p->n_stages == 0) return bad(diag, "there are no stages");
  p->inputs = PSPLIT_NEW(&p->arena, const char *, p->n_inputs);
  p->outputs = PSPLIT_NEW(&p->arena, const char *, p->n_outputs);
  p->stages = PSPLIT_NEW(&p->arena, psplit_i_pipe_stage, p->n_stages);
  if (!p->inputs || !p->outputs || !p->stages) return psplit_i_nomem(diag);
  PSPLIT_TRY(read_names(p, inputs, diag, p->inputs));
  PSPLIT_TRY(read_names(p, optional, diag, p->inputs + json_array_size(inputs)));
  PSPLIT_TRY(read_names(p, outputs, diag, p->outputs));
  for (uint32_t s = 0; s < p->n_stages; s++)
    PSPLIT_TRY(read_stage(p, json_array_get(stages, s), diag, &p->stages[s]));
  PSPLIT_TRY(read_links(p, transfers, diag));
  const json_t *plan = json_object_get(root, "plan");
  PSPLIT_TRY(get_text(p, plan, "cost_source", diag, &p->cost_source));
  p->bottleneck_ns = get_ns(plan, "bottleneck_ns");
  p->total_compute_ns = get_ns(plan, "total_compute_ns");
out:
  return code;
}

psplit_code psplit_i_pipe_read(const char *directory, psplit_diag *diag, psplit_i_pipe *out) {
  psplit_i_pipe pipe = {.directory = directory};
  psplit_i_arena_init(&pipe.arena, 0);
  psplit_text path = {0};
  psplit_i_text_addf(&path, "%s/pipeline.json", directory);
  if (path.failed) return psplit_i_nomem(diag);
  psplit_code code;
  json_error_t error;
  FILE *file = fopen(path.bytes, "rb");
  json_t *root = file ? json_loadf(file, JSON_REJECT_DUPLICATES, &error) : NULL;
  if (!file)
    code = psplit_i_fail(diag, PSPLIT_IO, "%s: cannot open: %s", path.bytes, strerror(errno));
  else if (!root)
    code = psplit_i_fail(diag, PSPLIT_MALFORMED, "%s:%d: %s", path.bytes, error.line, error.text);
  else
    code = read_root(&pipe, root, diag);
  json_decref(root);
  if (file) fclose(file);
  psplit_i_text_fini(&path);
  if (code == PSPLIT_OK)
    *out = pipe;
  else
    psplit_i_pipe_fini(&pipe);
  return code;
}

void psplit_i_pipe_fini(psplit_i_pipe *pipe) { psplit_i_arena_fini(&pipe->arena); }
