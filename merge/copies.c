/* Merges copies in several stages: weights with users in several stages, and nodes whose result is
 * cheaper to compute twice than to send. They are merged if they are the same: equal content and
 * names, and for nodes equal inputs. */

#include "merge.h"

typedef struct finder {
  psplit_i_merger *m;
  psplit_i_intern weights, results;                /* by name, of all stages so far: ... */
  PSPLIT_VEC(uint32_t) weight_stage, result_stage; /* ... the stage that has it first */
} finder;

static const psplit_i_span *weight_span(const psplit_i_merge_stage *stage,
                                        const psplit_i_value *value) {
  const psplit_i_span *all = stage->model->skeleton.graph_fields.items;
  return value->initializer != PSPLIT_NONE
           ? &all[stage->model->initializer_spans[value->initializer]]
           : &all[stage->model->sparse_spans[value->sparse_initializer]];
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
    PSPLIT_TRY(psplit_i_merge_same(m, &onnx__graph_proto__descriptor, stage->model,
                                   weight_span(stage, value), other->model,
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
    PSPLIT_TRY(psplit_i_merge_same(
      m, &onnx__graph_proto__descriptor, stage->model,
      &stage->model->skeleton.graph_fields.items[stage->model->node_spans[n]], other->model,
      &other->model->skeleton.graph_fields.items[other->model->node_spans[twin]], &same));
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
      if (psplit_i_has_initializer(&graph->values[v])) PSPLIT_TRY(join_weight(&f, s, v));
    for (uint32_t i = 0; i < graph->n_nodes; i++) PSPLIT_TRY(join_node(&f, s, graph->topo[i]));
  }
out:
  psplit_i_intern_fini(&f.weights);
  psplit_i_intern_fini(&f.results);
  psplit_i_vec_fini(&f.weight_stage);
  psplit_i_vec_fini(&f.result_stage);
  return code;
}
