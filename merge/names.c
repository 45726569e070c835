/* Names of values in the merged model: inputs and outputs have the model's names, transferred
 * values their tensor's name, all others their name in the stage. If two stages use one name for
 * different values, as tools that generate names may, the later one is renamed. */
#include <inttypes.h>
#include <string.h>

#include "merge.h"

typedef struct namer {
  psplit_i_merger *m;
  psplit_i_intern taken; /* names of values of the whole, and of bodies: ... */
  PSPLIT_VEC(uint32_t)
  of; /* ... the stage whose bodies define it, SEVERAL, or PSPLIT_NONE: it is a value's */
} namer;

static const uint32_t SEVERAL = PSPLIT_NONE - 1;

/* Whether stage s calls the value so, too: then its bodies hide it only where they do not read
 * it. */
static bool calls_it(psplit_i_merger *m, uint32_t s, const char *name, uint32_t number) {
  const uint32_t v = psplit_i_graph_find_value(m->stages[s].graph, name);
  return v != PSPLIT_NONE && psplit_i_merge_value(m, s, v) == number;
}

static bool has_it(psplit_i_merger *m, uint32_t s, uint32_t number) {
  for (uint32_t v = 0; v < m->stages[s].graph->n_values; v++)
    if (psplit_i_merge_value(m, s, v) == number) return true;
  return false;
}

/* Whether bodies of `of`, another stage or several, define the name and hide nothing by it: stages
 * before `stage`, which makes the value, do not see it, and ONNX lets no body behind have its name
 * but where the stage itself has it so. */
static bool none_hides(psplit_i_merger *m, uint32_t of, const char *name, uint32_t stage,
                       uint32_t number) {
  if (of != SEVERAL) return calls_it(m, of, name, number) || (of < stage && !has_it(m, of, number));
  for (uint32_t s = 0; s < m->manifest.n_stages; s++)
    if (s != stage && !calls_it(m, s, name, number) && has_it(m, s, number)) return false;
  return true;
}

/* Takes the name for value `number` of `stage`; *out_free: whether it could be had. A name that a
 * body of another stage defines would hide the value there. */
static psplit_code take(namer *n, const char *name, uint32_t stage, uint32_t number,
                        bool *out_free) {
  const uint32_t before = n->taken.n, id = psplit_i_intern_add(&n->taken, name);
  if (id == PSPLIT_NONE) return psplit_i_nomem(n->m->diag);
  const uint32_t of = id == before ? stage : n->of.items[id];
  *out_free = of == stage || (of != PSPLIT_NONE && none_hides(n->m, of, name, stage, number));
  if (id == before)
    return psplit_i_vec_push(&n->of, PSPLIT_NONE) ? PSPLIT_OK : psplit_i_nomem(n->m->diag);
  if (*out_free) n->of.items[id] = PSPLIT_NONE;
  return PSPLIT_OK;
}

/* Names that bodies define, by the stage they belong to. Depth is bounded by the scan. */
static psplit_code take_bodies(namer *n, const psplit_i_graph *graph, uint32_t stage) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    for (uint32_t b = 0; b < graph->nodes[i].n_bodies; b++) {
      const psplit_i_graph *body = graph->nodes[i].bodies[b];
      for (uint32_t v = 0; v < body->n_values; v++) {
        if (body->values[v].outer != PSPLIT_NONE) continue;
        const uint32_t before = n->taken.n;
        const uint32_t id = psplit_i_intern_add(&n->taken, body->values[v].name);
        if (id == PSPLIT_NONE || (id == before && !psplit_i_vec_push(&n->of, stage)))
          return psplit_i_nomem(n->m->diag);
        if (n->of.items[id] != stage) n->of.items[id] = SEVERAL;
      }
      PSPLIT_TRY(take_bodies(n, body, stage));
    }
  }
out:
  return code;
}

/* The stage's own name, or that with a suffix. */
static psplit_code give_name(namer *n, uint32_t stage, uint32_t number, const char *name) {
  psplit_code code;
  bool is_free;
  PSPLIT_TRY(take(n, name, stage, number, &is_free));
  const char *given = name;
  for (uint32_t k = 0; !is_free; k++) {
    psplit_i_text text = {0};
    psplit_i_text_addf(&text, k ? "%s.stage%" PRIu32 ".%" PRIu32 : "%s.stage%" PRIu32, name, stage,
                       k);
    given = text.failed ? NULL : psplit_i_arena_strndup(&n->m->arena, text.bytes, text.n);
    psplit_i_text_fini(&text);
    if (!given) return psplit_i_nomem(n->m->diag);
    PSPLIT_TRY(take(n, given, stage, number, &is_free));
    if (is_free) n->m->report.n_renamed++;
  }
  n->m->names[number] = given;
out:
  return code;
}

/* The model's inputs that some stage still takes. */
static psplit_code name_inputs(namer *n, uint32_t s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_merger *m = n->m;
  const psplit_i_manifest_stage *stage = &m->manifest.stages[s];
  for (uint32_t i = 0; i < stage->n_inputs; i++) {
    const psplit_i_row *row = &stage->inputs[i];
    const uint32_t v = row->from == PSPLIT_I_FROM_MODEL
                         ? psplit_i_graph_find_value(m->stages[s].graph, row->name)
                         : PSPLIT_NONE;
    if (v == PSPLIT_NONE) continue;
    const uint32_t number = psplit_i_merge_value(m, s, v);
    if (!m->names[number]) PSPLIT_TRY(give_name(n, s, number, row->tensor));
  }
out:
  return code;
}

/* An output of the model has its name, even where a tool made it the same value as another. */
static psplit_code name_outputs(namer *n, uint32_t s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_merger *m = n->m;
  const psplit_i_manifest_stage *stage = &m->manifest.stages[s];
  for (uint32_t o = 0; o < stage->n_outputs; o++) {
    const psplit_i_row *row = &stage->outputs[o];
    if (!row->to_model) continue;
    bool is_free;
    const uint32_t number =
      psplit_i_merge_value(m, s, psplit_i_graph_find_value(m->stages[s].graph, row->name));
    if (m->names[number] && strcmp(m->names[number], row->tensor) == 0) continue;
    PSPLIT_TRY(take(n, row->tensor, s, number, &is_free));
    if (!is_free)
      return psplit_i_fail(m->diag, PSPLIT_INVALID,
                           "output \"%s\" of the model is the name of another value in a stage",
                           row->tensor);
    const psplit_i_merge_identity identity = {number, row->tensor};
    if (!m->names[number])
      m->names[number] = row->tensor;
    else if (!psplit_i_vec_push(&m->identities, identity))
      return psplit_i_nomem(m->diag);
  }
out:
  return code;
}

static psplit_code name_crossing(namer *n, uint32_t s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_merger *m = n->m;
  const psplit_i_manifest_stage *stage = &m->manifest.stages[s];
  for (uint32_t o = 0; o < stage->n_outputs; o++) {
    const psplit_i_row *row = &stage->outputs[o];
    const uint32_t number =
      psplit_i_merge_value(m, s, psplit_i_graph_find_value(m->stages[s].graph, row->name));
    if (!m->names[number]) PSPLIT_TRY(give_name(n, s, number, row->tensor));
  }
out:
  return code;
}

/* What the rest of stage s makes or holds. */
static psplit_code name_rest(namer *n, uint32_t s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_merger *m = n->m;
  const psplit_i_merge_stage *stage = &m->stages[s];
  for (uint32_t v = 0; v < stage->graph->n_values; v++) {
    const uint32_t number = psplit_i_merge_value(m, s, v);
    if (number != stage->first + v || m->names[number]) continue;
    PSPLIT_TRY(give_name(n, s, number, stage->graph->values[v].name));
  }
out:
  return code;
}

psplit_code psplit_i_merge_names(psplit_i_merger *m) {
  psplit_code code = PSPLIT_OK;
  namer n = {.m = m};
  psplit_i_intern_init(&n.taken);
  const uint32_t n_stages = m->manifest.n_stages;
  for (uint32_t s = 0; s < n_stages; s++) PSPLIT_TRY(take_bodies(&n, m->stages[s].graph, s));
  for (uint32_t s = 0; s < n_stages; s++) PSPLIT_TRY(name_inputs(&n, s));
  for (uint32_t s = 0; s < n_stages; s++) PSPLIT_TRY(name_outputs(&n, s));
  for (uint32_t s = 0; s < n_stages; s++) PSPLIT_TRY(name_crossing(&n, s));
  for (uint32_t s = 0; s < n_stages; s++) PSPLIT_TRY(name_rest(&n, s));
out:
  psplit_i_intern_fini(&n.taken);
  psplit_i_vec_fini(&n.of);
  return code;
}
