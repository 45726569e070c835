/* Weights and nodes that stand in several stages: weights that several parts of the model use, and
 * nodes whose result is cheaper to compute twice than to send. They are one again where they are
 * the same: equal content under equal names, and for nodes equal inputs. */
#include <string.h>

#include "canonical.h"
#include "merge.h"

typedef struct finder {
  psplit_i_merger *m;
  psplit_i_intern weights, results;                /* by name, of all stages so far: ... */
  PSPLIT_VEC(uint32_t) weight_stage, result_stage; /* ... the stage that has it first */
  psplit_i_text a, b;
  psplit_i_payloads payload_a, payload_b;
} finder;

enum { CHUNK_BYTES = 64 << 10 };

/* Some bytes of a payload. */
static psplit_code read_some(const psplit_model *model, const psplit_i_payload *payload,
                             uint64_t at, size_t n, uint8_t *out, psplit_diag *diag) {
  if (payload->memory) {
    memcpy(out, payload->memory + at, n);
    return PSPLIT_OK;
  }
  return psplit_i_model_read(model, payload->file, payload->offset + at, out, n, diag);
}

static psplit_code same_payload(finder *f, const psplit_model *x, const psplit_i_payload *a,
                                const psplit_model *y, const psplit_i_payload *b, bool *out) {
  psplit_code code = PSPLIT_OK;
  uint8_t one[CHUNK_BYTES], other[CHUNK_BYTES];
  *out = a->bytes == b->bytes;
  for (uint64_t at = 0; *out && at < a->bytes; at += CHUNK_BYTES) {
    const size_t n = a->bytes - at < CHUNK_BYTES ? (size_t)(a->bytes - at) : CHUNK_BYTES;
    PSPLIT_TRY(psplit_i_go_on(f->m->options->cancel, f->m->diag));
    PSPLIT_TRY(read_some(x, a, at, n, one, f->m->diag));
    PSPLIT_TRY(read_some(y, b, at, n, other, f->m->diag));
    *out = memcmp(one, other, n) == 0;
  }
out:
  return code;
}

/* Whether two fields of graphs have equal content, wherever tensors are stored. */
static psplit_code same_content(finder *f, const psplit_model *x, const psplit_i_span *a,
                                const psplit_model *y, const psplit_i_span *b, bool *out) {
  psplit_code code;
  const ProtobufCMessageDescriptor *owner = &onnx__graph_proto__descriptor;
  f->a.n = f->b.n = 0;
  f->payload_a.n = f->payload_b.n = 0;
  PSPLIT_TRY(psplit_i_canonical_span(x, owner, a, &f->a, &f->payload_a, f->m->diag));
  PSPLIT_TRY(psplit_i_canonical_span(y, owner, b, &f->b, &f->payload_b, f->m->diag));
  *out = f->a.n == f->b.n && memcmp(f->a.bytes, f->b.bytes, f->a.n) == 0 &&
         f->payload_a.n == f->payload_b.n;
  for (size_t i = 0; i < f->payload_a.n && *out; i++)
    PSPLIT_TRY(same_payload(f, x, &f->payload_a.items[i], y, &f->payload_b.items[i], out));
out:
  return code;
}

static const psplit_i_span *weight_span(const psplit_i_merge_stage *stage,
                                        const psplit_i_value *value) {
  const psplit_i_span *all = stage->model->skeleton.graph_fields.items;
  return value->initializer != PSPLIT_NONE
           ? &all[stage->model->initializer_spans[value->initializer]]
           : &all[stage->model->sparse_spans[value->sparse_initializer]];
}

static bool is_weight(const psplit_i_value *value) {
  return value->initializer != PSPLIT_NONE || value->sparse_initializer != PSPLIT_NONE;
}

static psplit_code join_weight(finder *f, uint32_t s, uint32_t v) {
  psplit_code code;
  psplit_i_merger *m = f->m;
  const psplit_i_merge_stage *stage = &m->stages[s];
  const psplit_i_value *value = &stage->graph->values[v];
  const uint32_t before = f->weights.n, id = psplit_i_intern_add(&f->weights, value->name);
  if (id == PSPLIT_NONE) return psplit_i_nomem(m->diag);
  if (id == before)
    return psplit_i_vec_push(&f->weight_stage, s) ? PSPLIT_OK : psplit_i_nomem(m->diag);
  const uint32_t t = f->weight_stage.items[id];
  const psplit_i_merge_stage *other = &m->stages[t];
  const uint32_t u = psplit_i_graph_find_value(other->graph, value->name);
  const psplit_i_value *twin = &other->graph->values[u];
  bool same = (value->input == PSPLIT_NONE) == (twin->input == PSPLIT_NONE);
  if (same)
    PSPLIT_TRY(same_content(f, stage->model, weight_span(stage, value), other->model,
                            weight_span(other, twin), &same));
  /* An input that may be overridden has one default, or there is no one model. */
  if (!same && value->input != PSPLIT_NONE && twin->input != PSPLIT_NONE)
    return psplit_i_fail(m->diag, PSPLIT_INVALID,
                         "input \"%s\" has another default in %s than in %s", value->name,
                         stage->model->path, other->model->path);
  if (same) m->same_as[stage->first + v] = psplit_i_merge_value(m, t, u);
  return PSPLIT_OK;
out:
  return code;
}

/* The first named output; PSPLIT_NONE: there is none. */
static uint32_t first_output(const psplit_i_node *node) {
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE) return node->outputs[o];
  return PSPLIT_NONE;
}

static bool same_inputs(psplit_i_merger *m, uint32_t s, const psplit_i_node *a, uint32_t t,
                        const psplit_i_node *b) {
  if (a->n_inputs != b->n_inputs || a->n_captures != b->n_captures) return false;
  for (uint32_t k = 0; k < a->n_inputs; k++) {
    if ((a->inputs[k] == PSPLIT_NONE) != (b->inputs[k] == PSPLIT_NONE)) return false;
    if (a->inputs[k] != PSPLIT_NONE &&
        psplit_i_merge_value(m, s, a->inputs[k]) != psplit_i_merge_value(m, t, b->inputs[k]))
      return false;
  }
  /* Equal bytes capture by equal names, which may stand in another order. */
  for (uint32_t k = 0; k < a->n_captures; k++) {
    const uint32_t twin = psplit_i_graph_find_value(
      m->stages[t].graph, m->stages[s].graph->values[a->captures[k]].name);
    if (twin == PSPLIT_NONE ||
        psplit_i_merge_value(m, s, a->captures[k]) != psplit_i_merge_value(m, t, twin))
      return false;
  }
  return true;
}

static psplit_code join_node(finder *f, uint32_t s, uint32_t n) {
  psplit_code code = PSPLIT_OK;
  psplit_i_merger *m = f->m;
  psplit_i_merge_stage *stage = &m->stages[s];
  const psplit_i_node *node = &stage->graph->nodes[n];
  const uint32_t v = first_output(node);
  if (v == PSPLIT_NONE || stage->gone[n]) return PSPLIT_OK;
  const uint32_t before = f->results.n;
  const uint32_t id = psplit_i_intern_add(&f->results, stage->graph->values[v].name);
  if (id == PSPLIT_NONE) return psplit_i_nomem(m->diag);
  if (id == before)
    return psplit_i_vec_push(&f->result_stage, s) ? PSPLIT_OK : psplit_i_nomem(m->diag);
  const uint32_t t = f->result_stage.items[id];
  if (t == s || !m->manifest.stages[s].n_duplicated) return PSPLIT_OK;
  const psplit_i_merge_stage *other = &m->stages[t];
  const uint32_t u = psplit_i_graph_find_value(other->graph, stage->graph->values[v].name);
  const uint32_t twin = other->graph->values[u].producer;
  bool same = same_inputs(m, s, node, t, &other->graph->nodes[twin]);
  if (same)
    PSPLIT_TRY(same_content(
      f, stage->model, &stage->model->skeleton.graph_fields.items[stage->model->node_spans[n]],
      other->model, &other->model->skeleton.graph_fields.items[other->model->node_spans[twin]],
      &same));
  if (!same) return PSPLIT_OK;
  stage->gone[n] = 1;
  m->report.n_copies++;
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE)
      m->same_as[stage->first + node->outputs[o]] =
        psplit_i_merge_value(m, t, other->graph->nodes[twin].outputs[o]);
out:
  return code;
}

psplit_code psplit_i_merge_copies(psplit_i_merger *m) {
  psplit_code code = PSPLIT_OK;
  finder f = {.m = m};
  psplit_i_intern_init(&f.weights);
  psplit_i_intern_init(&f.results);
  for (uint32_t s = 0; s < m->manifest.n_stages; s++) {
    const psplit_i_graph *graph = m->stages[s].graph;
    for (uint32_t v = 0; v < graph->n_values; v++)
      if (is_weight(&graph->values[v])) PSPLIT_TRY(join_weight(&f, s, v));
    for (uint32_t i = 0; i < graph->n_nodes; i++) PSPLIT_TRY(join_node(&f, s, graph->topo[i]));
  }
out:
  psplit_i_intern_fini(&f.weights);
  psplit_i_intern_fini(&f.results);
  psplit_i_vec_fini(&f.weight_stage);
  psplit_i_vec_fini(&f.result_stage);
  psplit_i_vec_fini(&f.payload_a);
  psplit_i_vec_fini(&f.payload_b);
  psplit_i_text_fini(&f.a);
  psplit_i_text_fini(&f.b);
  return code;
}
