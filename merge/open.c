/* Opens the stages and connects them by pipeline.json. Other tools may have changed the interior of
 * a stage; its inputs and outputs must still exist, with the same types. */
#include <inttypes.h>
#include <string.h>

#include "merge.h"
#include "verify.h"

static psplit_code open_stage(psplit_i_merger *m, uint32_t s) {
  psplit_i_text path = {0};
  psplit_read_options read = *m->read;
  read.is_stage = true;
  psplit_i_merge_stage *stage = &m->stages[s];
  psplit_i_text_addf(&path, "%s/%s", m->directory, m->manifest.stages[s].file);
  const psplit_code code = path.failed
                             ? psplit_i_nomem(m->diag)
                             : psplit_model_open(path.bytes, &read, m->diag, &stage->model);
  psplit_i_text_fini(&path);
  if (code != PSPLIT_OK) return code;
  stage->graph = psplit_i_model_graph(stage->model);
  stage->first = m->n_values;
  stage->gone = PSPLIT_NEW(&m->arena, uint8_t, stage->graph->n_nodes);
  stage->offers = PSPLIT_NEW(&m->arena, uint32_t, m->manifest.stages[s].n_inputs);
  if (!stage->gone || !stage->offers) return psplit_i_nomem(m->diag);
  const psplit_code found =
    psplit_i_field_spans_init(stage->model, &m->arena, m->diag, &stage->ports);
  if (found != PSPLIT_OK) return found;
  if (stage->graph->n_values >= PSPLIT_NONE - m->n_values)
    return psplit_i_fail(m->diag, PSPLIT_LIMIT, "%s: the stages have too many values",
                         m->directory);
  m->n_values += stage->graph->n_values;
  return PSPLIT_OK;
}

uint32_t psplit_i_merge_value(psplit_i_merger *m, uint32_t stage, uint32_t value) {
  uint32_t at = m->stages[stage].first + value, end = at;
  while (m->same_as[end] != end) end = m->same_as[end];
  while (m->same_as[at] != end) {
    const uint32_t next = m->same_as[at];
    m->same_as[at] = end;
    at = next;
  }
  return end;
}

/* A graph input of stage s, PSPLIT_NONE where it has none of that name. */
static uint32_t find_input(const psplit_i_merge_stage *stage, const char *name) {
  const uint32_t v = psplit_i_graph_find_value(stage->graph, name);
  return v != PSPLIT_NONE && stage->graph->values[v].input != PSPLIT_NONE ? v : PSPLIT_NONE;
}

static uint32_t find_output(const psplit_i_merge_stage *stage, const char *name) {
  const uint32_t v = psplit_i_graph_find_value(stage->graph, name);
  return v != PSPLIT_NONE && stage->graph->values[v].is_output ? v : PSPLIT_NONE;
}

static const char *elem_name(const Onnx__TypeProto *type) {
  const char *name = psplit_i_type_kind(type) == PSPLIT_TYPE_TENSOR
                       ? psplit_i_dtype_name(psplit_i_type_elem(type))
                       : NULL;
  return name ? name : "no tensor";
}

/* Whether two declarations can speak of one tensor: sizes that both know are equal. */
static psplit_code check_types(const psplit_i_merger *m, const char *tensor, uint32_t from,
                               const Onnx__TypeProto *sent, uint32_t to,
                               const Onnx__TypeProto *received) {
  if (psplit_i_type_kind(sent) == PSPLIT_TYPE_UNKNOWN ||
      psplit_i_type_kind(received) == PSPLIT_TYPE_UNKNOWN)
    return PSPLIT_OK;
  if (psplit_i_type_kind(sent) != psplit_i_type_kind(received) ||
      psplit_i_type_elem(sent) != psplit_i_type_elem(received))
    return psplit_i_fail(m->diag, PSPLIT_INVALID,
                         "\"%s\" is %s where stage %" PRIu32 " sends it and %s where stage %" PRIu32
                         " takes it: a tool that changed one of them has to leave its inputs and "
                         "outputs as they are",
                         tensor, elem_name(sent), from, elem_name(received), to);
  const int64_t rank = psplit_i_type_rank(sent), other = psplit_i_type_rank(received);
  if (rank < 0 || other < 0) return PSPLIT_OK;
  if (rank != other)
    return psplit_i_fail(m->diag, PSPLIT_INVALID,
                         "\"%s\" has %" PRId64 " dimensions in stage %" PRIu32 " and %" PRId64
                         " in stage %" PRIu32,
                         tensor, rank, from, other, to);
  for (uint32_t d = 0; d < rank; d++) {
    const int64_t a = psplit_i_type_dim(sent, d).value, b = psplit_i_type_dim(received, d).value;
    if (a >= 0 && b >= 0 && a != b)
      return psplit_i_fail(m->diag, PSPLIT_INVALID,
                           "dimension %" PRIu32 " of \"%s\" is %" PRId64 " in stage %" PRIu32
                           " and %" PRId64 " in stage %" PRIu32,
                           d, tensor, a, from, b, to);
  }
  return PSPLIT_OK;
}

/* Joins input v of stage s, which row i of the manifest describes, to what sends it. */
static psplit_code join_received(psplit_i_merger *m, uint32_t s, uint32_t v, uint32_t i) {
  psplit_code code;
  const psplit_i_row *row = &m->manifest.stages[s].inputs[i];
  const psplit_i_row *offer = &m->manifest.stages[row->from].outputs[m->stages[s].offers[i]];
  const psplit_i_merge_stage *from = &m->stages[row->from], *to = &m->stages[s];
  const uint32_t sent = find_output(from, offer->name); /* it is there: check_outputs */
  PSPLIT_TRY(check_types(m, row->tensor, row->from, from->graph->values[sent].declared_type, s,
                         to->graph->values[v].declared_type));
  m->same_as[to->first + v] = psplit_i_merge_value(m, row->from, sent);
  m->report.n_transfers++;
out:
  return code;
}

/* `inputs` knows the model's inputs by name. */
static void join_given(psplit_i_merger *m, uint32_t s, uint32_t v, const char *tensor,
                       const psplit_i_intern *inputs) {
  const uint32_t number = m->stages[s].first + v, id = psplit_i_intern_find(inputs, tensor);
  if (m->given[id] == PSPLIT_NONE) m->given[id] = number;
  m->same_as[number] = m->given[id];
}

static psplit_code join_inputs(psplit_i_merger *m, uint32_t s, const psplit_i_intern *inputs) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_merge_stage *stage = &m->stages[s];
  const psplit_i_manifest_stage *wanted = &m->manifest.stages[s];
  uint8_t *known = PSPLIT_NEW(&m->arena, uint8_t, stage->graph->n_values);
  if (!known) return psplit_i_nomem(m->diag);
  for (uint32_t i = 0; i < wanted->n_inputs; i++) {
    const psplit_i_row *row = &wanted->inputs[i];
    const uint32_t v = find_input(stage, row->name);
    /* What nothing in the stage reads any more, a tool may have taken out. */
    if (v == PSPLIT_NONE) continue;
    known[v] = 1;
    if (row->from == PSPLIT_I_FROM_MODEL)
      join_given(m, s, v, row->tensor, inputs);
    else
      PSPLIT_TRY(join_received(m, s, v, i));
  }
  for (uint32_t i = 0; i < stage->graph->n_inputs; i++) {
    const uint32_t v = stage->graph->inputs[i];
    const psplit_i_value *value = &stage->graph->values[v];
    if (!known[v] && !psplit_i_has_initializer(value))
      return psplit_i_fail(m->diag, PSPLIT_INVALID,
                           "stage %" PRIu32
                           " (%s) takes \"%s\", which pipeline.json does not give "
                           "it",
                           s, stage->model->path, value->name);
  }
out:
  return code;
}

static psplit_code check_outputs(const psplit_i_merger *m, uint32_t s) {
  const psplit_i_manifest_stage *wanted = &m->manifest.stages[s];
  for (uint32_t o = 0; o < wanted->n_outputs; o++) {
    const psplit_i_row *row = &wanted->outputs[o];
    if (find_output(&m->stages[s], row->name) == PSPLIT_NONE)
      return psplit_i_fail(m->diag, PSPLIT_INVALID,
                           "stage %" PRIu32
                           " (%s) has no output \"%s\" any more, which "
                           "pipeline.json says it gives",
                           s, m->stages[s].model->path, row->name);
  }
  return PSPLIT_OK;
}

/* The model that was split, as it was split. */
static psplit_code open_whole(psplit_i_merger *m) {
  const uint32_t n = m->manifest.n_inlined;
  m->whole = m->options->model;
  if (!m->whole || !n || m->whole->inlined.n) return PSPLIT_OK;
  psplit_inline_if *choices = psplit_i_arena_array(&m->arena, n, sizeof *choices);
  if (!choices) return psplit_i_nomem(m->diag);
  for (uint32_t r = 0; r < n; r++)
    choices[r] =
      (psplit_inline_if){m->manifest.inlined[r].node, m->manifest.inlined[r].then_branch};
  const psplit_code code =
    psplit_i_model_reopen(m->whole, choices, n, m->read, m->diag, &m->inlined);
  m->whole = m->inlined;
  return code;
}

psplit_code psplit_i_merge_open(psplit_i_merger *m) {
  psplit_code code;
  psplit_i_intern inputs;
  const psplit_i_ports *ports;
  psplit_i_intern_init(&inputs);
  PSPLIT_TRY(psplit_i_manifest_read(m->directory, m->options->max_text_bytes, &m->arena, m->diag,
                                    &m->manifest));
  if (m->manifest.training)
    PSPLIT_FAIL(psplit_i_fail_about(m->diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(EXPORT),
                                    "%s: the stages are for training", m->directory));
  PSPLIT_TRY(psplit_i_manifest_check(m->directory, &m->manifest, &m->arena, m->diag, &ports));
  PSPLIT_TRY(open_whole(m));
  m->stages = PSPLIT_NEW(&m->arena, psplit_i_merge_stage, m->manifest.n_stages);
  if (!m->stages) PSPLIT_FAIL(psplit_i_nomem(m->diag));
  for (uint32_t s = 0; s < m->manifest.n_stages; s++) PSPLIT_TRY(open_stage(m, s));
  for (uint32_t t = 0; t < m->manifest.n_transfers; t++)
    m->stages[m->manifest.transfers[t].to].offers[ports[t].input] = ports[t].output;
  m->same_as = psplit_i_arena_array(&m->arena, m->n_values, sizeof *m->same_as);
  m->names = PSPLIT_NEW(&m->arena, const char *, m->n_values);
  m->declared = PSPLIT_NEW(&m->arena, uint8_t, m->n_values);
  m->given = psplit_i_arena_array(&m->arena, m->manifest.n_inputs, sizeof *m->given);
  if (m->arena.failed) PSPLIT_FAIL(psplit_i_nomem(m->diag));
  for (uint32_t v = 0; v < m->n_values; v++) m->same_as[v] = v;
  for (uint32_t i = 0; i < m->manifest.n_inputs; i++) {
    m->given[i] = PSPLIT_NONE;
    if (psplit_i_intern_add(&inputs, m->manifest.inputs[i]) == PSPLIT_NONE)
      PSPLIT_FAIL(psplit_i_nomem(m->diag));
  }
  psplit_i_merge_keep_of_model(m);
  for (uint32_t s = 0; s < m->manifest.n_stages; s++) {
    PSPLIT_TRY(check_outputs(m, s));
    PSPLIT_TRY(psplit_i_merge_boundary(m, s));
    PSPLIT_TRY(join_inputs(m, s, &inputs));
  }
  m->report.n_stages = m->manifest.n_stages;
out:
  psplit_i_intern_fini(&inputs);
  return code;
}
