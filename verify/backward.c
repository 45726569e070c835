/* Backward passes of stages as a split of the backward pass, proved as the stages are. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "training_inside.h"

/* Files are numbered in an order in which they may run: from the last stage back, and of a stage
 * the gradients of weights behind the rest. number[2 s + half]. */
static uint32_t number_files(const psplit_i_training_proof *c, uint32_t *number) {
  uint32_t n = 0;
  for (uint32_t s = c->p->manifest.n_stages; s-- > 0;)
    for (uint32_t h = 0; h < PSPLIT_I_N_HALVES; h++)
      number[2 * s + h] =
        psplit_i_backward_part(&c->table->stages[s], (int)h)->file ? n++ : PSPLIT_NONE;
  return n;
}

/* Which files of stage `to` take what stage `from` gives by this name, out[2]; the first that there
 * is where none says so, for the proof to tell. */
static uint32_t find_takers(const psplit_i_training_proof *c, const uint32_t *number,
                            const char *name, uint32_t from, uint32_t to, uint32_t *out) {
  uint32_t n = 0;
  for (uint32_t h = 0; h < PSPLIT_I_N_HALVES; h++)
    if (number[2 * to + h] != PSPLIT_NONE &&
        psplit_i_named(c, PSPLIT_I_SET_BACKWARD, name, 2 * to + h) == from)
      out[n++] = number[2 * to + h];
  for (uint32_t h = 0; h < PSPLIT_I_N_HALVES && n == 0; h++)
    if (number[2 * to + h] != PSPLIT_NONE) out[n++] = number[2 * to + h];
  return n;
}

static psplit_code wrong_stage(const psplit_i_training_proof *c, const char *what) {
  return PSPLIT_I_DIFFERS(
    c->p, "the manifest sends \"%s\" to or from a stage without backward pass", what);
}

static psplit_code part_stage(psplit_i_training_proof *c, psplit_i_arena *arena,
                              const uint32_t *number, uint32_t s, const psplit_i_part *part,
                              psplit_i_manifest_stage *out) {
  psplit_i_row *inputs = PSPLIT_NEW(arena, psplit_i_row, part->n_inputs);
  psplit_i_row *outputs = PSPLIT_NEW(arena, psplit_i_row, part->n_outputs);
  if (!inputs || !outputs) return psplit_i_nomem(c->p->diag);
  for (uint32_t i = 0; i < part->n_inputs; i++) {
    const psplit_i_part_input *in = &part->inputs[i];
    const bool stage = in->source == PSPLIT_I_PART_STAGE;
    inputs[i] = (psplit_i_row){.name = in->name,
                               .tensor = in->name,
                               .from = stage ? number[2 * in->from] : PSPLIT_I_FROM_MODEL,
                               .optional = in->optional};
    if (stage && number[2 * in->from] == PSPLIT_NONE) return wrong_stage(c, in->name);
  }
  for (uint32_t o = 0; o < part->n_outputs; o++) {
    const psplit_i_part_output *result = &part->outputs[o];
    uint32_t n_to = 0, *to = psplit_i_arena_array(arena, 2 * (size_t)result->n_to, sizeof *to);
    if (!to) return psplit_i_nomem(c->p->diag);
    for (uint32_t k = 0; k < result->n_to; k++) {
      const uint32_t n = find_takers(c, number, result->name, s, result->to[k], to + n_to);
      if (n == 0) return wrong_stage(c, result->name);
      n_to += n;
    }
    outputs[o] = (psplit_i_row){.name = result->name,
                                .tensor = result->name,
                                .to_model = result->goal != PSPLIT_I_PART_NOWHERE,
                                .to = to,
                                .n_to = n_to};
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
static psplit_code list_values(psplit_i_training_proof *c, psplit_i_arena *arena,
                               const uint32_t *values, uint32_t n,
                               Onnx__ValueInfoProto *const *protos,
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

/* Inputs of the backward model, those with a default last, as manifests have them. */
static psplit_code list_inputs(psplit_i_training_proof *c, psplit_i_arena *arena,
                               psplit_i_manifest *m) {
  const psplit_i_graph *graph = psplit_i_model_graph(c->backward);
  Onnx__ValueInfoProto **protos = PSPLIT_NEW(arena, Onnx__ValueInfoProto *, graph->n_inputs);
  uint32_t *values = PSPLIT_NEW(arena, uint32_t, graph->n_inputs), n = 0;
  if (!protos || !values) return psplit_i_nomem(c->p->diag);
  for (int optional = 0; optional < 2; optional++) {
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
      const psplit_i_value *value = &graph->values[graph->inputs[i]];
      const bool has_default =
        value->initializer != PSPLIT_NONE || value->sparse_initializer != PSPLIT_NONE;
      if (has_default != (optional == 1)) continue;
      values[n] = graph->inputs[i];
      protos[n++] = c->backward->proto->graph->input[i];
    }
    if (!optional) m->n_needed = n;
  }
  m->n_inputs = n;
  return list_values(c, arena, values, n, protos, &m->input_values, &m->inputs);
}

static psplit_code number_transfers(psplit_i_training_proof *c, psplit_i_arena *arena,
                                    const uint32_t *number, psplit_i_manifest *m) {
  psplit_i_manifest_transfer *transfers =
    PSPLIT_NEW(arena, psplit_i_manifest_transfer, 2 * (size_t)c->table->n_transfers);
  if (!transfers) return psplit_i_nomem(c->p->diag);
  for (uint32_t t = 0; t < c->table->n_transfers; t++) {
    const psplit_i_manifest_transfer *row = &c->table->transfers[t];
    uint32_t to[PSPLIT_I_N_HALVES];
    const uint32_t n = find_takers(c, number, row->tensor, row->from, row->to, to);
    if (number[2 * row->from] == PSPLIT_NONE || n == 0) return wrong_stage(c, row->tensor);
    for (uint32_t k = 0; k < n; k++) {
      psplit_i_manifest_transfer *one = &transfers[m->n_transfers++];
      *one = *row;
      one->from = number[2 * row->from];
      one->to = to[k];
      if (k) one->tag = ~row->tag; /* one row stands for both */
    }
  }
  m->transfers = transfers;
  return PSPLIT_OK;
}

static psplit_code number_duplicates(psplit_i_training_proof *c, psplit_i_arena *arena,
                                     const uint32_t *number, psplit_i_manifest_stage *stages,
                                     psplit_i_manifest *m) {
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
static psplit_code backward_manifest(psplit_i_training_proof *c, psplit_i_arena *arena,
                                     psplit_i_manifest *out) {
  psplit_code code;
  const psplit_i_graph *graph = psplit_i_model_graph(c->backward);
  const Onnx__GraphProto *proto = c->backward->proto->graph;
  psplit_i_manifest m = {.n_outputs = graph->n_outputs, .cost_source = ""};
  const uint32_t n_files = PSPLIT_I_N_HALVES * c->p->manifest.n_stages; /* at most */
  uint32_t *number = PSPLIT_NEW(arena, uint32_t, n_files);
  psplit_i_manifest_stage *stages = PSPLIT_NEW(arena, psplit_i_manifest_stage, n_files);
  if (!number || !stages) return psplit_i_nomem(c->p->diag);
  m.n_stages = number_files(c, number);
  m.stages = stages;
  for (uint32_t f = 0; f < n_files; f++)
    if (number[f] != PSPLIT_NONE)
      PSPLIT_TRY(part_stage(c, arena, number, f / 2,
                            psplit_i_backward_part(&c->table->stages[f / 2], f % 2),
                            &stages[number[f]]));
  PSPLIT_TRY(list_inputs(c, arena, &m));
  PSPLIT_TRY(list_values(c, arena, graph->outputs, graph->n_outputs, proto->output,
                         &m.output_values, &m.outputs));
  PSPLIT_TRY(number_transfers(c, arena, number, &m));
  PSPLIT_TRY(number_duplicates(c, arena, number, stages, &m));
  *out = m;
out:
  return code;
}

/* Puts the file that a message means before it. */
static void name_file(const psplit_i_training_proof *c, const psplit_i_proof *b) {
  const char *file = "the manifest's backward pass";
  static const char STAGE[] = "stage ";
  const char *message = b->diag ? b->diag->message : "";
  unsigned long stage = PSPLIT_NONE;
  if (strncmp(message, STAGE, strlen(STAGE)) == 0) {
    char *end;
    stage = strtoul(message + strlen(STAGE), &end, 10);
    if (end == message + strlen(STAGE)) stage = PSPLIT_NONE;
  }
  if (stage < c->p->manifest.n_stages) {
    const psplit_i_training_parts *parts = &c->table->stages[stage];
    if (b->part && b->at < b->manifest.n_stages && b->called[b->at] == stage)
      file = b->manifest.stages[b->at].file;
    else if (parts->backward.file || parts->weight_gradients.file)
      file = psplit_i_backward_part(parts, parts->backward.file == NULL)->file;
  }
  psplit_i_diag_context(b->diag, "%s", file);
}

/* The user's numbers of the backward files, in the order in which they run. */
static psplit_code call_stages(const psplit_i_training_proof *c, psplit_i_proof *b) {
  uint32_t n = 0, *called = PSPLIT_NEW(&b->arena, uint32_t, b->manifest.n_stages);
  if (!called) return psplit_i_nomem(c->p->diag);
  for (uint32_t s = c->p->manifest.n_stages; s-- > 0;)
    for (int h = 0; h < PSPLIT_I_N_HALVES; h++)
      if (psplit_i_backward_part(&c->table->stages[s], h)->file) called[n++] = s;
  b->called = called;
  return PSPLIT_OK;
}

psplit_code psplit_i_prove_backward(psplit_i_training_proof *c) {
  psplit_code code;
  psplit_i_proof b;
  psplit_i_proof_init(&b, c->backward, c->p->diag);
  PSPLIT_TRY(backward_manifest(c, &b.arena, &b.manifest));
  PSPLIT_TRY(call_stages(c, &b));
  code = psplit_i_prove(&b, c->directory, c->options);
  if (code != PSPLIT_OK) name_file(c, &b);
out:
  c->p->weight_bytes += b.weight_bytes;
  psplit_i_proof_fini(&b);
  return code;
}
