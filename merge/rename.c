/* Names inside messages, on the bytes of the skeleton, so that data which stayed in the file stays
 * there. */
#include <string.h>

#include "fields.h"
#include "merge.h"
#include "wire.h"

enum { ANNOTATION_PARAMETERS = 2, ENTRY_VALUE = 2 };

typedef struct renamer {
  psplit_i_merger *m;
  uint32_t stage;
  bool lost;
} renamer;

/* What a value of the stage's main graph or of a body is called in the whole. */
static const char *name_of(const renamer *r, const psplit_i_graph *graph, uint32_t value) {
  const psplit_i_graph *defined = graph;
  const uint32_t v = psplit_i_value_resolve(&defined, value);
  if (defined != r->m->stages[r->stage].graph) return defined->values[v].name;
  const char *name = r->m->names[psplit_i_merge_value(r->m, r->stage, v)];
  return name ? name : defined->values[v].name;
}

bool psplit_i_merge_renames(psplit_i_merger *m, uint32_t stage, uint32_t n) {
  const renamer r = {.m = m, .stage = stage};
  const psplit_i_graph *graph = m->stages[stage].graph;
  const psplit_i_node *node = &graph->nodes[n];
  PSPLIT_FOR_EACH_READ(node, v)
    if (strcmp(name_of(&r, graph, v), graph->values[v].name) != 0) return true;
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE &&
        strcmp(name_of(&r, graph, node->outputs[o]), graph->values[node->outputs[o]].name) != 0)
      return true;
  return false;
}

static void keep(psplit_i_text *out, const psplit_i_field *f) {
  psplit_i_text_add(out, f->start, (size_t)(f->end - f->start));
}

static void put_name(psplit_i_text *out, uint32_t field, const char *name) {
  psplit_i_wire_bytes(out, field, name, strlen(name));
}

/* `inner` as field `number` of `out`; inner is freed. */
static void put_message(psplit_i_text *out, uint32_t number, psplit_i_text *inner) {
  psplit_i_wire_bytes(out, number, inner->bytes, inner->n);
  out->failed |= inner->failed;
  psplit_i_text_fini(inner);
}

static bool next(renamer *r, const uint8_t **io_at, const uint8_t *end, psplit_i_field *f) {
  if (*io_at >= end || r->lost) return false;
  r->lost = !psplit_i_next_field(io_at, end, f);
  return !r->lost;
}

/* A message whose field 1 names a value of `graph`. */
static void add_value_info(renamer *r, const psplit_i_graph *graph, const psplit_i_field *f,
                           psplit_i_text *out) {
  psplit_i_text inner = {0}, name = {0};
  psplit_i_field part;
  for (const uint8_t *at = f->content; next(r, &at, f->end, &part);) {
    if (part.number != PSPLIT_I_VALUE_INFO_NAME) {
      keep(&inner, &part);
      continue;
    }
    name.n = 0;
    psplit_i_text_add(&name, part.content, (size_t)(part.end - part.content));
    psplit_i_text_add(&name, "", 1);
    const uint32_t v = name.failed ? PSPLIT_NONE : psplit_i_graph_find_value(graph, name.bytes);
    if (v == PSPLIT_NONE)
      keep(&inner, &part);
    else
      put_name(&inner, PSPLIT_I_VALUE_INFO_NAME, name_of(r, graph, v));
  }
  out->failed |= name.failed;
  psplit_i_text_fini(&name);
  put_message(out, f->number, &inner);
}

static void add_node(renamer *r, const psplit_i_graph *graph, uint32_t n, const psplit_i_field *f,
                     psplit_i_text *out);

/* A body: what it takes from outside may have another name there. */
static void add_body(renamer *r, const psplit_i_graph *body, const psplit_i_field *f,
                     psplit_i_text *out) {
  psplit_i_text inner = {0};
  psplit_i_field part;
  uint32_t n = 0;
  for (const uint8_t *at = f->content; next(r, &at, f->end, &part);) {
    if (part.number == PSPLIT_I_GRAPH_NODE && n < body->n_nodes)
      add_node(r, body, n++, &part, &inner);
    else if (part.number == PSPLIT_I_GRAPH_OUTPUT || part.number == PSPLIT_I_GRAPH_VALUE_INFO ||
             part.number == PSPLIT_I_GRAPH_ANNOTATION)
      add_value_info(r, body, &part, &inner);
    else
      keep(&inner, &part);
  }
  put_message(out, f->number, &inner);
}

static void add_attribute(renamer *r, const psplit_i_node *node, uint32_t *io_body,
                          const psplit_i_field *f, psplit_i_text *out) {
  psplit_i_text inner = {0};
  psplit_i_field part;
  for (const uint8_t *at = f->content; next(r, &at, f->end, &part);) {
    if ((part.number == PSPLIT_I_ATTRIBUTE_GRAPH || part.number == PSPLIT_I_ATTRIBUTE_GRAPHS) &&
        *io_body < node->n_bodies)
      add_body(r, node->bodies[(*io_body)++], &part, &inner);
    else
      keep(&inner, &part);
  }
  put_message(out, PSPLIT_I_NODE_ATTRIBUTE, &inner);
}

static void add_node(renamer *r, const psplit_i_graph *graph, uint32_t n, const psplit_i_field *f,
                     psplit_i_text *out) {
  const psplit_i_node *node = &graph->nodes[n];
  psplit_i_text inner = {0};
  psplit_i_field part;
  uint32_t n_inputs = 0, n_outputs = 0, body = 0;
  for (const uint8_t *at = f->content; next(r, &at, f->end, &part);) {
    const uint32_t *values = part.number == PSPLIT_I_NODE_INPUT    ? node->inputs
                             : part.number == PSPLIT_I_NODE_OUTPUT ? node->outputs
                                                                   : NULL;
    uint32_t *io_at = part.number == PSPLIT_I_NODE_INPUT ? &n_inputs : &n_outputs;
    const uint32_t n_values = part.number == PSPLIT_I_NODE_INPUT ? node->n_inputs : node->n_outputs;
    if (part.number == PSPLIT_I_NODE_ATTRIBUTE) {
      add_attribute(r, node, &body, &part, &inner);
    } else if (values && *io_at < n_values && values[*io_at] != PSPLIT_NONE) {
      put_name(&inner, part.number, name_of(r, graph, values[*io_at]));
    } else {
      keep(&inner, &part);
    }
    if (values) ++*io_at;
  }
  put_message(out, f->number, &inner);
}

static psplit_code finish(const renamer *r) {
  if (r->lost)
    return psplit_i_fail(r->m->diag, PSPLIT_INTERNAL, "a message changed since it was scanned");
  return r->m->scratch.failed ? psplit_i_nomem(r->m->diag) : PSPLIT_OK;
}

static psplit_i_field whole_field(renamer *r, const psplit_model *model,
                                  const psplit_i_span *span) {
  psplit_i_field f = {0};
  const uint8_t *at = model->skeleton.bytes + span->skeleton_offset;
  r->lost = !psplit_i_next_field(&at, at + span->skeleton_bytes, &f);
  return f;
}

psplit_code psplit_i_merge_node(psplit_i_merger *m, uint32_t stage, uint32_t node) {
  renamer r = {.m = m, .stage = stage};
  const psplit_model *model = m->stages[stage].model;
  const psplit_i_field f =
    whole_field(&r, model, &model->skeleton.graph_fields.items[model->node_spans[node]]);
  m->scratch.n = 0;
  if (!r.lost) add_node(&r, m->stages[stage].graph, node, &f, &m->scratch);
  return finish(&r);
}

static void add_named(renamer *r, const psplit_i_field *f, uint32_t number, const uint32_t *path,
                      const char *name, psplit_i_text *out) {
  psplit_i_text inner = {0};
  psplit_i_field part;
  for (const uint8_t *at = f->content; next(r, &at, f->end, &part);) {
    if (part.number != path[0])
      keep(&inner, &part);
    else if (path[1])
      add_named(r, &part, part.number, path + 1, name, &inner);
    else
      put_name(&inner, part.number, name);
  }
  put_message(out, number, &inner);
}

psplit_code psplit_i_merge_named(psplit_i_merger *m, const psplit_model *model,
                                 const psplit_i_span *span, uint32_t field, const uint32_t *path,
                                 const char *name) {
  renamer r = {.m = m};
  const psplit_i_field f = whole_field(&r, model, span);
  m->scratch.n = 0;
  if (!r.lost) add_named(&r, &f, field, path, name, &m->scratch);
  return finish(&r);
}

psplit_code psplit_i_merge_annotation(psplit_i_merger *m, uint32_t stage,
                                      const psplit_i_span *span) {
  renamer r = {.m = m, .stage = stage};
  const psplit_i_merge_stage *s = &m->stages[stage];
  const psplit_i_field f = whole_field(&r, s->model, span);
  psplit_i_text inner = {0};
  psplit_i_field part;
  m->scratch.n = 0;
  for (const uint8_t *at = f.content; !r.lost && next(&r, &at, f.end, &part);) {
    if (part.number != ANNOTATION_PARAMETERS) {
      keep(&inner, &part);
      continue;
    }
    /* An entry (what it is, tensor's name): its second string names a value. */
    psplit_i_text entry = {0}, name = {0};
    psplit_i_field item;
    for (const uint8_t *inside = part.content; next(&r, &inside, part.end, &item);) {
      if (item.number != ENTRY_VALUE) {
        keep(&entry, &item);
        continue;
      }
      name.n = 0;
      psplit_i_text_add(&name, item.content, (size_t)(item.end - item.content));
      psplit_i_text_add(&name, "", 1);
      const uint32_t v =
        name.failed ? PSPLIT_NONE : psplit_i_graph_find_value(s->graph, name.bytes);
      if (v == PSPLIT_NONE)
        keep(&entry, &item);
      else
        put_name(&entry, ENTRY_VALUE, name_of(&r, s->graph, v));
    }
    inner.failed |= name.failed;
    psplit_i_text_fini(&name);
    put_message(&inner, ANNOTATION_PARAMETERS, &entry);
  }
  /* What the annotation speaks of is its field 1, as in a value_info. */
  psplit_i_text whole = {0};
  put_message(&whole, PSPLIT_I_GRAPH_ANNOTATION, &inner);
  const uint8_t *at = (const uint8_t *)whole.bytes;
  psplit_i_field renamed;
  if (!r.lost && !whole.failed && next(&r, &at, at + whole.n, &renamed))
    add_value_info(&r, s->graph, &renamed, &m->scratch);
  m->scratch.failed |= whole.failed;
  psplit_i_text_fini(&whole);
  return finish(&r);
}
