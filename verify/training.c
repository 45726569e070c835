#include "training.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "declared.h"

/* The model differentiated again, and what its values are called. */
typedef struct context {
  psplit_i_proof *p; /* of the forward stages: its model is the gradient's, with the loss */
  const psplit_i_training_table *table;
  const char *directory;
  const psplit_verify_options *options;
  psplit_gradient *gradient;
  psplit_model *backward;
  psplit_i_intern names;
  psplit_i_table sets;
  uint8_t *trained, *first_seen;
  uint32_t *row_of;  /* [n_trainables] of a weight: its row in the table */
  const char *twice; /* kept, or computed again */
  psplit_i_rim rim;
} context;

/* --- differentiating --- */

static psplit_code differentiate(context *c) {
  psplit_code code;
  psplit_i_proof *p = c->p;
  const psplit_i_training_table *table = c->table;
  psplit_diag why = {0};
  const char **train = PSPLIT_NEW(&p->arena, const char *, (size_t)table->n_weights + 1);
  if (!train) return psplit_i_nomem(p->diag);
  for (uint32_t w = 0; w < table->n_weights; w++) train[w] = table->weights[w].name;
  const psplit_training_options options = {.loss = table->loss,
                                           .loss_output = table->loss_output,
                                           .train = train,
                                           .n_train = table->n_weights,
                                           .train_names = true,
                                           .gradient_of = table->input_gradients,
                                           .n_gradient_of = table->n_input_gradients,
                                           .accumulate = true,
                                           .batch_norm = (psplit_batch_norm)table->batch_norm};
  code = psplit_gradient_create(p->model, &options, NULL, &why, &c->gradient);
  if (code == PSPLIT_USAGE || code == PSPLIT_UNSUPPORTED)
    return PSPLIT_I_DIFFERS(p, "what the manifest trains cannot be: %s", why.message);
  if (code != PSPLIT_OK) return psplit_i_fail_as(p->diag, &why);
  p->model = c->gradient->model;
  p->graph = psplit_i_model_graph(p->model);
  return PSPLIT_OK;
}

static psplit_code open_backward(context *c) {
  psplit_code code;
  psplit_i_proof *p = c->p;
  psplit_read_options options;
  psplit_read_options_init(&options);
  char *directory = NULL;
  FILE *file = tmpfile();
  if (!file) PSPLIT_TRY(psplit_i_fail(p->diag, PSPLIT_IO, "cannot make a temporary file"));
  PSPLIT_TRY(psplit_i_gradient_put_backward(c->gradient, file, "the backward pass", p->diag));
  if (p->model->has_external_data) {
    options.data_directory = directory = psplit_i_model_data_directory(p->model);
    options.follow_symlinks = p->model->options.follow_symlinks;
    if (!directory) PSPLIT_TRY(psplit_i_nomem(p->diag));
  }
  PSPLIT_TRY(psplit_model_open_fd(fileno(file), "backward", &options, p->diag, &c->backward));
out:
  free(directory);
  if (file) fclose(file);
  return code;
}

/* What stands twice is remembered where it must not. */
static bool add_name(context *c, psplit_i_set set, const char *name, uint32_t stage,
                     uint32_t value) {
  const uint32_t id = psplit_i_intern_add(&c->names, name);
  const bool once = set == PSPLIT_I_SET_STASH_TENSOR || set == PSPLIT_I_SET_AGAIN_OUTPUT;
  if (id != PSPLIT_NONE && !psplit_i_table_add(&c->sets, id, stage, set, value) && once)
    c->twice = name;
  return id != PSPLIT_NONE;
}

/* Names of the gradient's. */
static bool add_gradient(context *c) {
  const psplit_gradient *gradient = c->gradient;
  bool good = true;
  uint32_t row = 0;
  for (uint32_t i = 0; i < gradient->n_trainables && good; i++) {
    const psplit_trainable t = psplit_gradient_trainable(gradient, i);
    if (t.gradient) good = add_name(c, PSPLIT_I_SET_GRADIENT, t.gradient, 0, i);
    if (t.before) good = good && add_name(c, PSPLIT_I_SET_BEFORE, t.before, 0, i);
    c->row_of[i] = t.is_input ? PSPLIT_NONE : row++;
    if (!t.is_input) c->trained[gradient->trainables[i].value] = 1;
  }
  for (size_t i = 0; i < gradient->stashed.n && good; i++) {
    const psplit_i_bvalue *value = &gradient->b.values.items[gradient->stashed.items[i]];
    if (value->origin == PSPLIT_ORIGIN_SHAPE)
      good = add_name(c, PSPLIT_I_SET_SHAPE, value->name, 0, value->index);
  }
  return good;
}

/* Names of a stage in the manifest. */
static bool add_stage(context *c, uint32_t s) {
  const psplit_i_training_parts *stage = &c->table->stages[s];
  bool good = true;
  for (uint32_t w = 0; w < stage->n_weights && good; w++)
    good = add_name(c, PSPLIT_I_SET_WEIGHT, stage->weights[w], s, 0) &&
           add_name(c, PSPLIT_I_SET_TAKES, stage->weights[w], s, 0);
  for (uint32_t i = 0; i < stage->n_stash && good; i++)
    good = add_name(c, PSPLIT_I_SET_STASH_PORT, stage->stash[i].name, s, i) &&
           add_name(c, PSPLIT_I_SET_STASH_TENSOR, stage->stash[i].tensor, s, i);
  for (uint32_t i = 0; i < stage->backward.n_inputs && good; i++)
    if (stage->backward.inputs[i].source == PSPLIT_I_PART_WEIGHTS)
      good = add_name(c, PSPLIT_I_SET_TAKES, stage->backward.inputs[i].name, s, 0);
  for (uint32_t i = 0; i < stage->again.n_inputs && good; i++)
    good = add_name(c, PSPLIT_I_SET_AGAIN_INPUT, stage->again.inputs[i].name, s, 0);
  for (uint32_t o = 0; o < stage->again.n_outputs && good; o++)
    good = add_name(c, PSPLIT_I_SET_AGAIN_OUTPUT, stage->again.outputs[o].name, s, o);
  return good;
}

static size_t count_names(const context *c) {
  size_t n = 2 * (size_t)c->gradient->n_trainables + c->gradient->stashed.n;
  for (uint32_t s = 0; s < c->p->manifest.n_stages; s++) {
    const psplit_i_training_parts *stage = &c->table->stages[s];
    n += 2 * ((size_t)stage->n_weights + stage->n_stash) + stage->backward.n_inputs +
         (size_t)stage->again.n_inputs + stage->again.n_outputs;
  }
  return n;
}

/* Every question about names is answered in constant time. */
static psplit_code index_names(context *c) {
  psplit_i_proof *p = c->p;
  c->trained = PSPLIT_NEW(&p->arena, uint8_t, p->graph->n_values);
  c->first_seen = PSPLIT_NEW(&p->arena, uint8_t, p->graph->n_values);
  c->row_of = PSPLIT_NEW(&p->arena, uint32_t, c->gradient->n_trainables);
  /* The first name brings the intern table's secret key. */
  bool good = c->trained && c->first_seen && c->row_of && psplit_i_intern_reserve(&c->names, 16) &&
              psplit_i_table_init(&c->sets, &p->arena, count_names(c), c->names.key[0]) &&
              add_gradient(c);
  for (uint32_t s = 0; s < p->manifest.n_stages && good; s++) good = add_stage(c, s);
  if (!good) return psplit_i_nomem(p->diag);
  if (c->twice)
    return PSPLIT_I_DIFFERS(p, "a stage keeps \"%s\" twice, by the manifest, or computes it twice",
                            c->twice);
  c->rim = (psplit_i_rim){.gradient = c->gradient,
                          .table = c->table,
                          .trained = c->trained,
                          .first_seen = c->first_seen,
                          .names = &c->names,
                          .sets = &c->sets};
  p->rim = &c->rim;
  return PSPLIT_OK;
}

static uint32_t find(const context *c, psplit_i_set set, const char *name, uint32_t stage) {
  return psplit_i_rim_find(&c->rim, set, name, stage);
}

static bool same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* The stages that take the weight, forward or back: the files themselves are held to that. */
static bool lists_stages(const context *c, const psplit_i_trained_weight *row) {
  uint32_t n = 0;
  for (uint32_t s = 0; s < c->p->manifest.n_stages; s++)
    if (find(c, PSPLIT_I_SET_TAKES, row->name, s) != PSPLIT_NONE &&
        (n >= row->n_stages || row->stages[n++] != s))
      return false;
  return n == row->n_stages;
}

/* The manifest's weights are the trained ones, each once, with their gradients. */
static psplit_code check_weights(const context *c) {
  psplit_i_proof *p = c->p;
  uint32_t w = 0, g = 0;
  for (uint32_t i = 0; i < c->gradient->n_trainables; i++) {
    const psplit_trainable t = psplit_gradient_trainable(c->gradient, i);
    if (t.is_input) {
      if (g == c->table->n_input_gradients || !same(c->table->input_gradients[g], t.name) ||
          !same(c->table->gradient_names[g], t.gradient))
        return PSPLIT_I_DIFFERS(p, "the manifest's gradient of input \"%s\" is another", t.name);
      g++;
      continue;
    }
    const psplit_i_trained_weight *row = w < c->table->n_weights ? &c->table->weights[w] : NULL;
    if (!row || !same(row->name, t.name) || !same(row->gradient, t.gradient) ||
        !same(row->before, t.before) || !lists_stages(c, row))
      return PSPLIT_I_DIFFERS(p, "the manifest's trained weight %" PRIu32 " is not \"%s\" as it is",
                              w, t.name);
    w++;
  }
  if (g != c->table->n_input_gradients)
    return PSPLIT_I_DIFFERS(p, "the manifest has the gradient of input \"%s\" twice",
                            c->table->input_gradients[g]);
  if (w != c->table->n_weights)
    return PSPLIT_I_DIFFERS(p, "the manifest trains \"%s\" twice", c->table->weights[w].name);
  return PSPLIT_OK;
}

/* The loss is an output of the model that the stage gives, and multiplied by what is said. */
static psplit_code check_loss(const context *c) {
  const psplit_i_training_table *table = c->table;
  const psplit_i_manifest_stage *stage = &c->p->manifest.stages[table->loss_stage];
  bool given = false;
  for (uint32_t o = 0; o < stage->n_outputs; o++)
    given |= stage->outputs[o].to_model && same(stage->outputs[o].tensor, table->loss_tensor);
  if (given && same(table->loss_tensor, psplit_gradient_loss(c->gradient)) &&
      same(table->loss_gradient, psplit_gradient_loss_gradient(c->gradient)))
    return PSPLIT_OK;
  return PSPLIT_I_DIFFERS(c->p, "stage %" PRIu32 " does not give the loss \"%s\"",
                          table->loss_stage, psplit_gradient_loss(c->gradient));
}

/* --- the backward pass as a split of its own --- */

/* Stages are numbered in the order in which they run: from the last back. */
static uint32_t number_stages(const context *c, uint32_t *number) {
  uint32_t n = 0;
  for (uint32_t s = c->p->manifest.n_stages; s-- > 0;)
    number[s] = c->table->stages[s].backward.file ? n++ : PSPLIT_NONE;
  return n;
}

static psplit_code wrong_stage(const context *c, const char *what) {
  return PSPLIT_I_DIFFERS(
    c->p, "the manifest sends \"%s\" to or from a stage without backward pass", what);
}

static psplit_code part_stage(context *c, psplit_i_arena *arena, const uint32_t *number,
                              const psplit_i_part *part, psplit_i_manifest_stage *out) {
  psplit_i_row *inputs = PSPLIT_NEW(arena, psplit_i_row, part->n_inputs);
  psplit_i_row *outputs = PSPLIT_NEW(arena, psplit_i_row, part->n_outputs);
  if (!inputs || !outputs) return psplit_i_nomem(c->p->diag);
  for (uint32_t i = 0; i < part->n_inputs; i++) {
    const psplit_i_part_input *in = &part->inputs[i];
    const bool stage = in->source == PSPLIT_I_PART_STAGE;
    inputs[i] = (psplit_i_row){
      .name = in->name, .tensor = in->name, .from = stage ? number[in->from] : PSPLIT_I_FROM_MODEL};
    if (stage && number[in->from] == PSPLIT_NONE) return wrong_stage(c, in->name);
  }
  for (uint32_t o = 0; o < part->n_outputs; o++) {
    const psplit_i_part_output *result = &part->outputs[o];
    uint32_t *to = psplit_i_arena_array(arena, result->n_to, sizeof *to);
    if (!to) return psplit_i_nomem(c->p->diag);
    for (uint32_t k = 0; k < result->n_to; k++)
      if ((to[k] = number[result->to[k]]) == PSPLIT_NONE) return wrong_stage(c, result->name);
    outputs[o] = (psplit_i_row){.name = result->name,
                                .tensor = result->name,
                                .to_model = result->goal != PSPLIT_I_PART_NOWHERE,
                                .to = to,
                                .n_to = result->n_to};
  }
  *out = (psplit_i_manifest_stage){.file = part->file,
                                   .device = "",
                                   .n_nodes = part->n_nodes,
                                   .n_inputs = part->n_inputs,
                                   .n_outputs = part->n_outputs,
                                   .inputs = inputs,
                                   .outputs = outputs};
  return PSPLIT_OK;
}

/* Inputs or outputs of the backward model as it declares them. */
static psplit_code list_values(context *c, psplit_i_arena *arena, const uint32_t *values,
                               uint32_t n, Onnx__ValueInfoProto *const *protos,
                               const psplit_i_manifest_value **out, const char *const **out_names) {
  const psplit_i_graph *graph = psplit_i_model_graph(c->backward);
  psplit_i_manifest_value *list = PSPLIT_NEW(arena, psplit_i_manifest_value, n);
  const char **names = PSPLIT_NEW(arena, const char *, n);
  if (!list || !names) return psplit_i_nomem(c->p->diag);
  for (uint32_t i = 0; i < n; i++) {
    const int64_t rank = psplit_i_type_rank(protos[i]->type);
    psplit_i_manifest_dim *dims =
      PSPLIT_NEW(arena, psplit_i_manifest_dim, rank < 0 ? 0 : (size_t)rank);
    if (!dims) return psplit_i_nomem(c->p->diag);
    for (int64_t a = 0; a < rank; a++) {
      const psplit_i_declared_dim dim = psplit_i_type_dim(protos[i]->type, (uint32_t)a);
      dims[a] = (psplit_i_manifest_dim){dim.value, dim.value < 0 ? dim.param : NULL};
    }
    names[i] = graph->values[values[i]].name;
    list[i] =
      (psplit_i_manifest_value){.name = names[i],
                                .dtype = psplit_i_dtype_name(psplit_i_type_elem(protos[i]->type)),
                                .shape = {(int32_t)rank, dims}};
  }
  *out = list;
  *out_names = names;
  return PSPLIT_OK;
}

static psplit_code number_transfers(context *c, psplit_i_arena *arena, const uint32_t *number,
                                    psplit_i_manifest *m) {
  psplit_i_manifest_transfer *transfers =
    PSPLIT_NEW(arena, psplit_i_manifest_transfer, c->table->n_transfers);
  if (!transfers) return psplit_i_nomem(c->p->diag);
  for (uint32_t t = 0; t < c->table->n_transfers; t++) {
    transfers[t] = c->table->transfers[t];
    transfers[t].from = number[transfers[t].from];
    transfers[t].to = number[transfers[t].to];
    if (transfers[t].from == PSPLIT_NONE || transfers[t].to == PSPLIT_NONE)
      return wrong_stage(c, transfers[t].tensor);
  }
  m->transfers = transfers;
  m->n_transfers = c->table->n_transfers;
  return PSPLIT_OK;
}

static psplit_code number_duplicates(context *c, psplit_i_arena *arena, const uint32_t *number,
                                     psplit_i_manifest_stage *stages, psplit_i_manifest *m) {
  psplit_i_duplicate *duplicates = PSPLIT_NEW(arena, psplit_i_duplicate, c->table->n_duplicates);
  if (!duplicates) return psplit_i_nomem(c->p->diag);
  for (uint32_t d = 0; d < c->table->n_duplicates; d++) {
    duplicates[d] = c->table->duplicates[d];
    uint32_t *also = psplit_i_arena_array(arena, duplicates[d].n_also, sizeof *also);
    if (!also) return psplit_i_nomem(c->p->diag);
    duplicates[d].stage = number[duplicates[d].stage];
    for (uint32_t k = 0; k < duplicates[d].n_also; k++) {
      also[k] = number[c->table->duplicates[d].also[k]];
      if (also[k] == PSPLIT_NONE) return wrong_stage(c, "a copy");
      stages[also[k]].n_duplicated++;
    }
    if (duplicates[d].stage == PSPLIT_NONE) return wrong_stage(c, "a copy");
    duplicates[d].also = also;
  }
  m->duplicates = duplicates;
  m->n_duplicates = c->table->n_duplicates;
  return PSPLIT_OK;
}

/* The object "training" as the manifest of a split of the backward model. */
static psplit_code backward_manifest(context *c, psplit_i_arena *arena, psplit_i_manifest *out) {
  psplit_code code;
  const psplit_i_graph *graph = psplit_i_model_graph(c->backward);
  const Onnx__GraphProto *proto = c->backward->proto->graph;
  psplit_i_manifest m = {.n_inputs = graph->n_inputs,
                         .n_outputs = graph->n_outputs,
                         .n_needed = graph->n_inputs,
                         .cost_source = ""};
  uint32_t *number = PSPLIT_NEW(arena, uint32_t, c->p->manifest.n_stages);
  psplit_i_manifest_stage *stages =
    PSPLIT_NEW(arena, psplit_i_manifest_stage, c->p->manifest.n_stages);
  if (!number || !stages) return psplit_i_nomem(c->p->diag);
  m.n_stages = number_stages(c, number);
  m.stages = stages;
  for (uint32_t s = 0; s < c->p->manifest.n_stages; s++)
    if (number[s] != PSPLIT_NONE)
      PSPLIT_TRY(part_stage(c, arena, number, &c->table->stages[s].backward, &stages[number[s]]));
  PSPLIT_TRY(list_values(c, arena, graph->inputs, graph->n_inputs, proto->input, &m.input_values,
                         &m.inputs));
  PSPLIT_TRY(list_values(c, arena, graph->outputs, graph->n_outputs, proto->output,
                         &m.output_values, &m.outputs));
  PSPLIT_TRY(number_transfers(c, arena, number, &m));
  PSPLIT_TRY(number_duplicates(c, arena, number, stages, &m));
  *out = m;
out:
  return code;
}

/* Puts the file that a message means before it. */
static void name_file(const psplit_i_proof *b) {
  uint32_t stage;
  char text[128];
  const bool known = b->diag && sscanf(b->diag->message, "stage %" SCNu32, &stage) == 1 &&
                     stage < b->manifest.n_stages;
  snprintf(text, sizeof text, "%.60s, where stages count from the last",
           known ? b->manifest.stages[stage].file : "backward");
  psplit_i_diag_context(b->diag, "%s", text);
}

static psplit_code prove_backward(context *c) {
  psplit_code code;
  psplit_i_proof b;
  psplit_i_proof_init(&b, c->backward, c->p->diag);
  PSPLIT_TRY(backward_manifest(c, &b.arena, &b.manifest));
  code = psplit_i_prove(&b, c->directory, c->options);
  if (code != PSPLIT_OK) name_file(&b);
out:
  c->p->weight_bytes += b.weight_bytes;
  psplit_i_proof_fini(&b);
  return code;
}

/* --- where inputs come from --- */

static bool is_input_of_model(const context *c, const char *name) {
  const uint32_t value = psplit_i_graph_find_value(c->p->graph, name);
  return value != PSPLIT_NONE && c->p->graph->values[value].input != PSPLIT_NONE &&
         !c->trained[value];
}

/* Whether what the manifest feeds to an input is what its name stands for. Names of the model, of
 * shapes and of gradients are distinct. */
static bool is_fed(const context *c, uint32_t s, const psplit_i_part_input *in) {
  switch (in->source) {
    case PSPLIT_I_PART_MODEL: return is_input_of_model(c, in->name);
    case PSPLIT_I_PART_WEIGHTS: return psplit_i_is_trained(c->p, in->name);
    case PSPLIT_I_PART_STASH: return find(c, PSPLIT_I_SET_STASH_TENSOR, in->name, s) != PSPLIT_NONE;
    case PSPLIT_I_PART_AGAIN: return find(c, PSPLIT_I_SET_AGAIN_OUTPUT, in->name, s) != PSPLIT_NONE;
    case PSPLIT_I_PART_LOSS:
      return strcmp(in->name, psplit_gradient_loss_gradient(c->gradient)) == 0;
    case PSPLIT_I_PART_BEFORE: return find(c, PSPLIT_I_SET_BEFORE, in->name, 0) != PSPLIT_NONE;
    case PSPLIT_I_PART_STAGE: return true; /* the proof of the backward pass says so */
  }
  return false;
}

static psplit_code check_feeds(const context *c, uint32_t s, const psplit_i_part *part) {
  for (uint32_t i = 0; part->file && i < part->n_inputs; i++)
    if (!is_fed(c, s, &part->inputs[i]))
      return PSPLIT_I_DIFFERS(c->p, "%s: input \"%s\" is not what the manifest takes it from",
                              part->file, part->inputs[i].name);
  return PSPLIT_OK;
}

/* Gradients of weights go to the update, those of inputs to the caller, and nothing else does. */
static psplit_code check_goals(const context *c, const psplit_i_part *backward) {
  for (uint32_t o = 0; backward->file && o < backward->n_outputs; o++) {
    const psplit_i_part_output *output = &backward->outputs[o];
    psplit_i_part_goal goal = PSPLIT_I_PART_NOWHERE;
    const uint32_t t = find(c, PSPLIT_I_SET_GRADIENT, output->name, 0);
    if (t != PSPLIT_NONE)
      goal = c->gradient->trainables[t].is_input ? PSPLIT_I_PART_CALLER : PSPLIT_I_PART_UPDATE;
    if (output->goal != goal)
      return PSPLIT_I_DIFFERS(c->p, "%s: output \"%s\" does not go where the manifest says",
                              backward->file, output->name);
  }
  return PSPLIT_OK;
}

/* --- what is computed again --- */

/* A node of the model, with the model's bytes, that gives the same again. */
static psplit_code check_again_node(psplit_i_proof *p, const char *file, uint32_t part) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_node *node = &p->part->nodes[part];
  char label[128];
  uint32_t value = PSPLIT_NONE;
  bool equal = false;
  for (uint32_t o = 0; o < node->n_outputs && value == PSPLIT_NONE; o++)
    if (node->outputs[o] != PSPLIT_NONE)
      value = psplit_i_graph_find_value(p->graph, p->part->values[node->outputs[o]].name);
  const uint32_t n = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].producer;
  if (n != PSPLIT_NONE)
    PSPLIT_TRY(psplit_i_compare(p, PSPLIT_I_GRAPH_NODE, n, part, p->graph->nodes[n].name, &equal));
  if (!equal || psplit_i_may_vary(node) || node->n_bodies || node->function != PSPLIT_NONE)
    return PSPLIT_I_DIFFERS(p, "%s: node %s is %s", file,
                            psplit_i_node_label(p->part, part, label, sizeof label),
                            equal ? "not sure to give the same again" : "not the model's");
out:
  return code;
}

/* An initializer is the model's, and no trained weight: its first value would be read for ever. */
static psplit_code check_again_initializer(psplit_i_proof *p, const char *file, uint32_t i) {
  psplit_code code = PSPLIT_OK;
  const char *name = p->part->values[p->part->initializers[i]].name;
  const uint32_t value = psplit_i_graph_find_value(p->graph, name);
  const uint32_t whole = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].initializer;
  bool equal = false;
  if (whole != PSPLIT_NONE && !psplit_i_is_trained(p, name))
    PSPLIT_TRY(psplit_i_compare(p, PSPLIT_I_GRAPH_INITIALIZER, whole, i, name, &equal));
  if (!equal) return PSPLIT_I_DIFFERS(p, "%s: initializer \"%s\" is not the model's", file, name);
out:
  return code;
}

static psplit_code check_again(context *c, uint32_t s) {
  psplit_code code;
  psplit_i_proof *p = c->p;
  const psplit_i_part *again = &c->table->stages[s].again;
  p->at = s;
  PSPLIT_TRY(psplit_i_check_recompute(p, false));
  if (!again->file) return PSPLIT_OK;
  PSPLIT_TRY(check_feeds(c, s, again));
  PSPLIT_TRY(psplit_i_open_part(p, c->directory, again->file, c->options));
  PSPLIT_TRY(psplit_i_compare_rest(p));
  for (uint32_t n = 0; n < p->part->n_nodes; n++) PSPLIT_TRY(check_again_node(p, again->file, n));
  for (uint32_t i = 0; i < p->part->n_initializers; i++)
    PSPLIT_TRY(check_again_initializer(p, again->file, i));
  bool good = p->part->n_inputs == again->n_inputs && p->part->n_outputs == again->n_outputs &&
              p->part->n_nodes == again->n_nodes && !p->part->n_sparse_initializers;
  for (uint32_t i = 0; good && i < p->part->n_inputs; i++) {
    good =
      find(c, PSPLIT_I_SET_AGAIN_INPUT, p->part->values[p->part->inputs[i]].name, s) != PSPLIT_NONE;
    if (good) PSPLIT_TRY(psplit_i_is_declared_input(p, i, &good));
  }
  for (uint32_t o = 0; good && o < p->part->n_outputs; o++) {
    const char *name = p->part->values[p->part->outputs[o]].name;
    const uint32_t value = psplit_i_graph_find_value(p->graph, name);
    good = same(again->outputs[o].name, name) && value != PSPLIT_NONE &&
           again->outputs[o].goal == PSPLIT_I_PART_BACKWARD && !again->outputs[o].n_to;
    if (good) PSPLIT_TRY(psplit_i_is_declared(p, o, value, &good));
  }
  if (!good)
    PSPLIT_TRY(PSPLIT_I_DIFFERS(p, "%s has other inputs, outputs or nodes than the manifest says",
                                again->file));
  PSPLIT_TRY(psplit_i_check_recompute(p, true));
  PSPLIT_TRY(psplit_i_pairs_compare(p->model, p->stage, p->at, &p->pairs, c->options->n_threads,
                                    p->cancel, p->diag));
out:
  psplit_i_close_part(p);
  return code;
}

/* --- updates and first values --- */

static psplit_code differs_from(const context *c, const char *file, const psplit_i_text *expected) {
  psplit_i_text path = {0};
  psplit_i_text_addf(&path, "%s/%s", c->directory, file);
  FILE *in = path.failed ? NULL : fopen(path.bytes, "rbe");
  psplit_i_text_fini(&path);
  if (!in) return psplit_i_fail(c->p->diag, PSPLIT_IO, "%s: cannot open", file);
  bool equal = true;
  size_t at = 0, n;
  char buffer[65536];
  while (equal && (n = fread(buffer, 1, sizeof buffer, in)) > 0) {
    equal = n <= expected->n - at && memcmp(buffer, expected->bytes + at, n) == 0;
    at += n;
  }
  equal = equal && at == expected->n && !ferror(in);
  fclose(in);
  if (equal) return PSPLIT_OK;
  return PSPLIT_I_DIFFERS(c->p, "%s is not the update by \"%s\"", file, c->table->optimizer);
}

/* What the manifest says goes in and out of an update. */
static bool lists_ports(const context *c, const psplit_i_update_part *update,
                        const psplit_i_update_ports *ports) {
  bool good = same(update->lr, ports->lr) && same(update->scale, ports->scale) &&
              same(update->step, ports->step) && update->n_kept == ports->kept.n;
  for (uint32_t i = 0; good && i < update->n_kept; i++) {
    const psplit_i_kept *kept = &ports->kept.items[i];
    const psplit_i_kept_row *row = &update->kept[i];
    good = same(row->name, kept->name) && same(row->new_name, kept->new_name) &&
           same(row->weight, psplit_gradient_trainable(c->gradient, kept->trainable).name) &&
           row->is_state == kept->is_state;
  }
  return good;
}

static int compare_numbers(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

/* The stage updates what its backward pass gives gradients of, and owns it. */
static psplit_code check_update(context *c, uint32_t s) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_training_parts *stage = &c->table->stages[s];
  const psplit_gradient *gradient = c->gradient;
  psplit_i_text expected = {0};
  psplit_i_update_ports ports = {0};
  uint32_t *updated = malloc((stage->backward.n_outputs + (size_t)1) * sizeof *updated);
  uint32_t n = 0;
  if (!updated) return psplit_i_nomem(c->p->diag);
  for (uint32_t o = 0; o < stage->backward.n_outputs; o++) {
    const psplit_i_part_output *output = &stage->backward.outputs[o];
    if (output->goal != PSPLIT_I_PART_UPDATE) continue;
    const uint32_t t = find(c, PSPLIT_I_SET_GRADIENT, output->name, 0);
    updated[n++] = t; /* check_goals has shown that it is one */
    if (c->table->weights[c->row_of[t]].owner != s)
      PSPLIT_TRY(PSPLIT_I_DIFFERS(
        c->p, "\"%s\" arises in stage %" PRIu32 ", and another one is said to own its weight",
        output->name, s));
  }
  if (n) qsort(updated, n, sizeof *updated, compare_numbers);
  const bool updates = c->table->optimizer && n;
  if (updates != (stage->update.file != NULL))
    PSPLIT_TRY(PSPLIT_I_DIFFERS(c->p, "stage %" PRIu32 " has %s update", s, updates ? "no" : "an"));
  if (!updates) goto out;
  psplit_diag why = {0};
  code = psplit_i_gradient_update(gradient, c->table->optimizer, updated, n, &c->p->arena, &why,
                                  &expected, &ports);
  if (code == PSPLIT_USAGE) PSPLIT_TRY(PSPLIT_I_DIFFERS(c->p, "%s", why.message));
  if (code != PSPLIT_OK) PSPLIT_TRY(psplit_i_fail_as(c->p->diag, &why));
  PSPLIT_TRY(differs_from(c, stage->update.file, &expected));
  if (!lists_ports(c, &stage->update, &ports))
    PSPLIT_TRY(PSPLIT_I_DIFFERS(c->p, "%s has other inputs or outputs than the manifest says",
                                stage->update.file));
out:
  psplit_i_update_ports_fini(&ports);
  psplit_i_text_fini(&expected);
  free(updated);
  return code;
}

/* A file of weights holds the model's, which are its outputs, and nothing else. */
static psplit_code check_first_weights(context *c, uint32_t s) {
  psplit_code code;
  psplit_i_proof *p = c->p;
  const char *file = c->table->stages[s].first_weights;
  if (!file) return PSPLIT_OK;
  p->at = s;
  PSPLIT_TRY(psplit_i_open_part(p, c->directory, file, c->options));
  bool good = p->part->n_nodes == 0 && p->part->n_inputs == 0 &&
              p->part->n_outputs == p->part->n_initializers && c->table->plain_weights;
  if (good) PSPLIT_TRY(psplit_i_is_weights_file(p, &good));
  for (uint32_t o = 0; good && o < p->part->n_outputs; o++) {
    const uint32_t value =
      psplit_i_graph_find_value(p->graph, p->part->values[p->part->outputs[o]].name);
    good = value != PSPLIT_NONE;
    if (good) PSPLIT_TRY(psplit_i_is_declared(p, o, value, &good));
  }
  for (uint32_t i = 0; good && i < p->part->n_initializers; i++) {
    const psplit_i_value *part = &p->part->values[p->part->initializers[i]];
    const uint32_t value = psplit_i_graph_find_value(p->graph, part->name);
    good = part->is_output && psplit_i_is_trained(p, part->name) && !c->first_seen[value];
    if (good)
      PSPLIT_TRY(psplit_i_compare(p, PSPLIT_I_GRAPH_INITIALIZER,
                                  p->graph->values[value].initializer, i, part->name, &good));
    if (good) c->first_seen[value] = 1;
  }
  if (!good)
    PSPLIT_TRY(
      PSPLIT_I_DIFFERS(p, "%s does not hold first values of weights as the model does", file));
  PSPLIT_TRY(psplit_i_pairs_compare(p->model, p->stage, p->at, &p->pairs, c->options->n_threads,
                                    p->cancel, p->diag));
out:
  psplit_i_close_part(p);
  return code;
}

/* --- the whole --- */

static psplit_code prove(context *c) {
  psplit_code code;
  psplit_i_proof *p = c->p;
  PSPLIT_TRY(differentiate(c));
  PSPLIT_TRY(open_backward(c));
  PSPLIT_TRY(index_names(c));
  PSPLIT_TRY(check_weights(c));
  PSPLIT_TRY(check_loss(c));
  PSPLIT_TRY(psplit_i_check_stated(p));
  for (uint32_t s = 0; s < p->manifest.n_stages; s++) PSPLIT_TRY(check_first_weights(c, s));
  PSPLIT_TRY(psplit_i_prove(p, c->directory, c->options));
  PSPLIT_TRY(prove_backward(c));
  for (uint32_t s = 0; s < p->manifest.n_stages; s++) {
    PSPLIT_TRY(check_feeds(c, s, &c->table->stages[s].backward));
    PSPLIT_TRY(check_goals(c, &c->table->stages[s].backward));
    PSPLIT_TRY(check_again(c, s));
    PSPLIT_TRY(check_update(c, s));
  }
out:
  return code;
}

psplit_code psplit_i_prove_training(psplit_i_proof *p, const char *directory,
                                    const psplit_verify_options *options) {
  context c = {.p = p, .table = p->manifest.training, .directory = directory, .options = options};
  psplit_i_intern_init(&c.names);
  const psplit_code code = prove(&c);
  psplit_i_intern_fini(&c.names);
  psplit_model_close(c.backward);
  p->gradient = c.gradient; /* p->model is its */
  p->rim = NULL;
  return code;
}
