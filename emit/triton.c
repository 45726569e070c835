/* The stages as a model repository of Triton Inference Server: a script that lays it out, with a
 * config.pbtxt for each stage and for the ensemble that makes one model of them.
 * Source of the fields: triton-inference-server/common, protobuf/model_config.proto (ModelConfig,
 * ModelInput, ModelOutput, ModelInstanceGroup, ModelEnsembling), and the server's documentation of
 * model repositories. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device_id.h"
#include "emit.h"

typedef struct writer {
  const psplit_i_split *split;
  const psplit_triton_options *options;
  psplit_i_text *out;
  psplit_diag *diag;
  char name[64]; /* of the ensemble */
} writer;

/* [TensorProto.DataType] Triton's name; NULL: it has none. */
static const char *const TYPES[] = {
  NULL,          "TYPE_FP32",   "TYPE_UINT8",  "TYPE_INT8", "TYPE_UINT16", "TYPE_INT16",
  "TYPE_INT32",  "TYPE_INT64",  "TYPE_STRING", "TYPE_BOOL", "TYPE_FP16",   "TYPE_FP64",
  "TYPE_UINT32", "TYPE_UINT64", NULL,          NULL,        "TYPE_BF16"};

/* As text of protocol buffers has strings; what may not be shown is written by its bytes. */
static void add_string(psplit_i_text *out, const char *text) {
  const unsigned char *c = (const unsigned char *)text;
  psplit_i_text_puts(out, "\"");
  for (size_t left = strlen(text); left;) {
    const size_t length = psplit_i_printable_length(c, left), n = length ? length : 1;
    if (*c == '"' || *c == '\\')
      psplit_i_text_addf(out, "\\%c", *c);
    else if (length)
      psplit_i_text_add(out, c, length);
    else
      psplit_i_text_addf(out, "\\%03o", *c);
    c += n;
    left -= n;
  }
  psplit_i_text_puts(out, "\"");
}

/* Sizes of a port: those of its declared type, or of the tensor that it brings. */
typedef struct sizes {
  int32_t elem;
  int64_t rank;
  const Onnx__TypeProto *type; /* or else: */
  const psplit_i_declared_dim *dims;
} sizes;

static sizes sizes_of(const psplit_i_split *split, const psplit_i_port *port, bool is_input) {
  if (!port->model) {
    const psplit_i_boundary_type *type = &split->types[port->transfer];
    return (sizes){type->elem, type->rank, NULL, type->dims};
  }
  const Onnx__GraphProto *graph = split->graph->proto;
  const Onnx__TypeProto *type =
    is_input ? graph->input[port->position]->type : graph->output[port->position]->type;
  if (psplit_i_type_kind(type) != PSPLIT_TYPE_TENSOR) return (sizes){.rank = -1};
  return (sizes){psplit_i_type_elem(type), psplit_i_type_rank(type), type, NULL};
}

/* A tensor without dimensions is one of size 1 to clients, which the stage's model reshapes; an
 * ensemble has none of its own to reshape for. */
static void add_dims(psplit_i_text *out, const sizes *s, bool reshapes) {
  psplit_i_text_puts(out, s->rank ? "    dims: [ " : "    dims: [ 1 ]\n");
  if (!s->rank && reshapes) psplit_i_text_puts(out, "    reshape: { shape: [ ] }\n");
  for (int64_t axis = 0; axis < s->rank; axis++) {
    const psplit_i_declared_dim dim =
      s->dims ? s->dims[axis] : psplit_i_type_dim(s->type, (uint32_t)axis);
    psplit_i_text_addf(out, "%s%" PRId64, axis ? ", " : "", dim.value > 0 ? dim.value : -1);
  }
  if (s->rank) psplit_i_text_puts(out, " ]\n");
}

static psplit_code add_port(const writer *w, const psplit_i_port *port, bool is_input,
                            bool reshapes) {
  const char *name = reshapes ? port->name : w->split->graph->values[port->value].name;
  const sizes s = sizes_of(w->split, port, is_input);
  const size_t n_types = sizeof TYPES / sizeof *TYPES;
  const char *type = s.elem > 0 && (size_t)s.elem < n_types ? TYPES[s.elem] : NULL;
  if (!type || s.rank < 0)
    return psplit_i_fail(
      w->diag, PSPLIT_UNSUPPORTED,
      "Triton needs the number of dimensions of \"%s\", and a type that it supports", name);
  psplit_i_text_puts(w->out, "  {\n    name: ");
  add_string(w->out, name);
  psplit_i_text_addf(w->out, "\n    data_type: %s\n", type);
  add_dims(w->out, &s, reshapes);
  psplit_i_text_puts(w->out, "  }");
  return PSPLIT_OK;
}

static bool is_optional(const psplit_i_split *split, const psplit_i_port *port) {
  const psplit_i_value *value = &split->graph->values[port->value];
  return value->initializer != PSPLIT_NONE || value->sparse_initializer != PSPLIT_NONE;
}

/* input [ ... ] or output [ ... ]: the ports of a file. */
static psplit_code add_ports(const writer *w, const char *key, const psplit_i_port *ports,
                             uint32_t n, bool is_input) {
  psplit_code code = PSPLIT_OK;
  bool any = false;
  for (uint32_t i = 0; i < n; i++) {
    if (is_input && is_optional(w->split, &ports[i])) continue;
    psplit_i_text_addf(w->out, any ? ",\n" : "%s [\n", key);
    any = true;
    PSPLIT_TRY(add_port(w, &ports[i], is_input, true));
  }
  if (!any)
    PSPLIT_FAIL(psplit_i_fail(w->diag, PSPLIT_UNSUPPORTED,
                              "Triton runs no stage without an %s; ask for fewer stages", key));
  psplit_i_text_puts(w->out, "\n]\n");
out:
  return code;
}

/* Providers of GPUs name theirs by an option. */
static psplit_code add_instances(const writer *w, uint32_t stage) {
  const psplit_session *session = w->options->sessions ? w->options->sessions[stage] : NULL;
  if (!psplit_i_deployed_on_gpu(session)) {
    psplit_i_text_puts(w->out, "instance_group [ { count: 1 kind: KIND_CPU } ]\n");
    return PSPLIT_OK;
  }
  int device = 0;
  const psplit_code code = psplit_i_device_id(session->provider_keys, session->provider_values,
                                              session->n_provider_options, w->diag, &device);
  if (code != PSPLIT_OK) {
    psplit_i_diag_context(w->diag, "stage %" PRIu32 " on %s", stage, session->provider);
    return code;
  }
  psplit_i_text_addf(w->out, "instance_group [ { count: 1 kind: KIND_GPU gpus: [ %d ] } ]\n",
                     device);
  return PSPLIT_OK;
}

static psplit_code add_stage(const writer *w, uint32_t s) {
  psplit_code code;
  const psplit_i_stage *stage = &w->split->stages[s];
  const char *file = w->split->stage_names[s];
  psplit_i_text_addf(w->out,
                     "place %s_stage%" PRIu32
                     " %s <<'END_OF_CONFIG'\n"
                     "name: \"%s_stage%" PRIu32
                     "\"\nbackend: \"onnxruntime\"\n"
                     "default_model_filename: \"%s\"\nmax_batch_size: 0\n",
                     w->name, s, file, w->name, s, file);
  PSPLIT_TRY(add_ports(w, "input", stage->inputs, stage->n_inputs, true));
  PSPLIT_TRY(add_ports(w, "output", stage->outputs, stage->n_outputs, false));
  PSPLIT_TRY(add_instances(w, s));
  psplit_i_text_puts(w->out, "END_OF_CONFIG\n\n");
out:
  return code;
}

/* What a tensor is called between the steps: the model's inputs and outputs by their names, the
 * others by who gives them too, since several stages may give one. */
static void add_tensor(const writer *w, const psplit_i_port *given, uint32_t from) {
  psplit_i_text name = {0};
  const char *tensor = w->split->graph->values[given->value].name;
  if (given->model)
    psplit_i_text_puts(&name, tensor);
  else
    psplit_i_text_addf(&name, "stage%" PRIu32 ":%s", from, tensor);
  add_string(w->out, name.bytes ? name.bytes : "");
  w->out->failed |= name.failed;
  psplit_i_text_fini(&name);
}

/* The output of a stage that a transfer begins at. */
static const psplit_i_port *port_of(const psplit_i_split *split, uint32_t transfer,
                                    uint32_t *out_stage) {
  const psplit_plan_transfer *t = &split->plan->transfers[transfer];
  const psplit_i_stage *stage = &split->stages[t->from];
  *out_stage = t->from;
  for (uint32_t o = 0; o < stage->n_outputs; o++)
    if (stage->outputs[o].value == t->value) return &stage->outputs[o];
  return NULL;
}

static void add_maps(const writer *w, uint32_t s) {
  const psplit_i_stage *stage = &w->split->stages[s];
  for (uint32_t i = 0; i < stage->n_inputs; i++) {
    const psplit_i_port *port = &stage->inputs[i], *given = port;
    uint32_t from = PSPLIT_NONE;
    if (is_optional(w->split, port)) continue;
    if (!port->model && !(given = port_of(w->split, port->transfer, &from))) continue;
    psplit_i_text_puts(w->out, "      input_map { key: ");
    add_string(w->out, port->name);
    psplit_i_text_puts(w->out, " value: ");
    add_tensor(w, given, from);
    psplit_i_text_puts(w->out, " }\n");
  }
  for (uint32_t o = 0; o < stage->n_outputs; o++) {
    psplit_i_text_puts(w->out, "      output_map { key: ");
    add_string(w->out, stage->outputs[o].name);
    psplit_i_text_puts(w->out, " value: ");
    add_tensor(w, &stage->outputs[o], s);
    psplit_i_text_puts(w->out, " }\n");
  }
}

static psplit_code add_model_ports(const writer *w, const char *key, bool is_input) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = w->split->graph;
  const uint32_t n = is_input ? graph->n_inputs : graph->n_outputs;
  const uint32_t *values = is_input ? graph->inputs : graph->outputs;
  bool any = false;
  for (uint32_t i = 0; i < n; i++) {
    const psplit_i_port port = {.value = values[i], .model = true, .position = i};
    if (is_input && is_optional(w->split, &port)) continue;
    psplit_i_text_addf(w->out, any ? ",\n" : "%s [\n", key);
    any = true;
    PSPLIT_TRY(add_port(w, &port, is_input, false));
  }
  if (!any)
    PSPLIT_FAIL(
      psplit_i_fail(w->diag, PSPLIT_UNSUPPORTED, "Triton runs no model without an %s", key));
  psplit_i_text_puts(w->out, "\n]\n");
out:
  return code;
}

static psplit_code add_ensemble(const writer *w) {
  psplit_code code;
  psplit_i_text_addf(w->out,
                     "place %s '' <<'END_OF_CONFIG'\nname: \"%s\"\nplatform: \"ensemble\"\n"
                     "max_batch_size: 0\n",
                     w->name, w->name);
  PSPLIT_TRY(add_model_ports(w, "input", true));
  PSPLIT_TRY(add_model_ports(w, "output", false));
  psplit_i_text_puts(w->out, "ensemble_scheduling {\n  step [\n");
  for (uint32_t s = 0; s < w->split->plan->n_stages; s++) {
    psplit_i_text_addf(
      w->out, "%s    {\n      model_name: \"%s_stage%" PRIu32 "\"\n      model_version: -1\n",
      s ? ",\n" : "", w->name, s);
    add_maps(w, s);
    psplit_i_text_puts(w->out, "    }");
  }
  psplit_i_text_puts(w->out, "\n  ]\n}\nEND_OF_CONFIG\n");
out:
  return code;
}

static const char HEAD[] =
  "#!/bin/sh\n"
  "# Lays the stages beside this file out as a model repository of Triton Inference Server:\n"
  "#   sh triton.sh REPOSITORY\n"
  "set -eu\n"
  "here=$(CDPATH='' cd -- \"$(dirname -- \"$0\")\" && pwd)\n"
  "repository=${1:?usage: sh triton.sh REPOSITORY}\n"
  "\n"
  "place() { # MODEL FILE < config.pbtxt; links where the file system allows it\n"
  "  mkdir -p \"$repository/$1/1\"\n"
  "  cat >\"$repository/$1/config.pbtxt\"\n"
  "  for file in \"$here/$2\" \"$here/$2.data\"; do\n"
  "    if [ -f \"$file\" ]; then\n"
  "      ln -f \"$file\" \"$repository/$1/1/\" 2>/dev/null || cp -f \"$file\" "
  "\"$repository/$1/1/\"\n"
  "    fi\n"
  "  done\n"
  "}\n"
  "\n";

psplit_code psplit_triton_script(const psplit_model *model, const psplit_plan *plan,
                                 const psplit_emit_options *options,
                                 const psplit_triton_options *triton, psplit_diag *diag,
                                 char **out_text) {
  psplit_code code;
  psplit_i_split split = {0};
  psplit_i_text text = {0};
  psplit_triton_options given = {.struct_size = sizeof given};
  psplit_emit_options taken = {.struct_size = sizeof taken};
  writer w = {.split = &split, .options = &given, .out = &text, .diag = diag};
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_emit_options, options, &taken, diag));
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_triton_options, triton, &given, diag));
  if (taken.weights == PSPLIT_WEIGHTS_REFERENCE)
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_USAGE,
                    "a model repository must contain its weights: they cannot be references"));
  PSPLIT_TRY(psplit_i_split_init(&split, model, plan, &taken, diag));
  psplit_i_deployed_name(psplit_i_model_path(model), '_', w.name, sizeof w.name);
  psplit_i_text_puts(&text, HEAD);
  for (uint32_t s = 0; s < plan->n_stages; s++) PSPLIT_TRY(add_stage(&w, s));
  PSPLIT_TRY(add_ensemble(&w));
  if (text.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_text = text.bytes;
  text = (psplit_i_text){0};
out:
  psplit_i_text_fini(&text);
  psplit_i_split_fini(&split);
  return code;
}
