/* Fields outside of the graph: operator sets and functions of all stages; unique fields (metadata)
 * are taken from the first stage. */
#include <inttypes.h>

#include "fields.h"
#include "merge.h"
#include "proto_text.h"

/* Where a name stands first: its stage and its field there. */
typedef struct first_place {
  uint32_t stage;
  size_t number; /* of its operator set or function, in the model of the stage */
  const psplit_i_span *span;
} first_place;

/* Operator sets by domain, and functions by key. */
typedef struct first_places {
  psplit_i_intern names;
  PSPLIT_VEC(first_place) places; /* by the id of the name */
} first_places;

typedef struct common_fields {
  first_places opsets, functions;
} common_fields;

static void first_places_fini(first_places *f) {
  psplit_i_intern_fini(&f->names);
  psplit_i_vec_fini(&f->places);
}

/* Where `name` stands first, which is `here` unless it stood somewhere before; NULL when out of
 * memory. The name has to remain. */
static const first_place *place_of(first_places *f, const char *name, first_place here) {
  const uint32_t id = psplit_i_intern_add(&f->names, name);
  if (id == PSPLIT_NONE || (id == f->places.n && !psplit_i_vec_push(&f->places, here))) return NULL;
  return &f->places.items[id];
}

static psplit_code add_opset(const psplit_i_merger *m, first_places *opsets, first_place here,
                             psplit_i_segments *head) {
  const Onnx__ModelProto *proto = m->stages[here.stage].model->proto;
  const Onnx__OperatorSetIdProto *opset = proto->opset_import[here.number];
  const char *domain = psplit_i_domain_of(opset->domain);
  if (psplit_i_merge_drops_opset(m, domain)) return PSPLIT_OK;
  const first_place *first = place_of(opsets, domain, here);
  if (!first) return psplit_i_nomem(m->diag);
  if (first->stage < here.stage) {
    const int64_t version =
      m->stages[first->stage].model->proto->opset_import[first->number]->version;
    if (version == opset->version) return PSPLIT_OK;
    return psplit_i_fail(m->diag, PSPLIT_UNSUPPORTED,
                         "stage %" PRIu32 " has version %" PRId64
                         " of the operators \"%s\", stage "
                         "%" PRIu32 " version %" PRId64 ": convert them to one version first",
                         here.stage, opset->version, *domain ? domain : "ai.onnx", first->stage,
                         version);
  }
  psplit_i_rope *out = psplit_i_last_rope(head, m->stages[here.stage].model);
  if (!out) return psplit_i_nomem(m->diag);
  psplit_i_rope_span(out, m->stages[here.stage].model, here.span);
  return PSPLIT_OK;
}

/* As place_of, by the key of the function. */
static const first_place *function_place(psplit_i_merger *m, first_places *functions,
                                         const Onnx__FunctionProto *function, first_place here) {
  const char *key = psplit_i_function_key(&m->scratch, psplit_i_domain_of(function->domain),
                                          psplit_i_text_or_empty(function->name),
                                          psplit_i_text_or_empty(function->overload));
  const uint32_t known = key ? psplit_i_intern_find(&functions->names, key) : PSPLIT_NONE;
  if (known != PSPLIT_NONE) return &functions->places.items[known];
  const char *kept = key ? psplit_i_arena_strndup(&m->arena, key, m->scratch.n) : NULL;
  return kept ? place_of(functions, kept, here) : NULL;
}

static psplit_code add_function(psplit_i_merger *m, first_places *functions, first_place here,
                                psplit_i_segments *head) {
  psplit_code code;
  psplit_i_merge_stage *stage = &m->stages[here.stage];
  const Onnx__FunctionProto *function = stage->model->proto->functions[here.number];
  const first_place *first = function_place(m, functions, function, here);
  if (!first) return psplit_i_nomem(m->diag);
  if (psplit_i_merge_drops_function(m, here.stage, here.number)) return PSPLIT_OK;
  if (first->stage < here.stage) {
    bool same = false;
    PSPLIT_TRY(psplit_i_merge_same(m, &onnx__model_proto__descriptor, stage->model, here.span,
                                   m->stages[first->stage].model, first->span, &same));
    if (same) return PSPLIT_OK;
    return psplit_i_fail(m->diag, PSPLIT_UNSUPPORTED,
                         "function %s of stage %" PRIu32 " is another one in stage %" PRIu32,
                         function->name, here.stage, first->stage);
  }
  psplit_i_rope *out = psplit_i_last_rope(head, stage->model);
  if (!out) return psplit_i_nomem(m->diag);
  if (!stage->model->has_external_data) {
    psplit_i_rope_span(out, stage->model, here.span);
    return PSPLIT_OK;
  }
  stage->weights.in_node = true;
  code = psplit_i_merge_rewrite(m, here.stage, &onnx__function_proto__descriptor,
                                stage->model->skeleton.bytes + here.span->skeleton_offset,
                                here.span->skeleton_bytes, out);
  stage->weights.in_node = false;
out:
  return code;
}

/* The newest of all stages; the span where that is the first one's own. */
static psplit_code add_ir_version(psplit_i_merger *m, const psplit_i_span *span,
                                  psplit_i_segments *head) {
  const int64_t own = psplit_i_model_ir_version(m->stages[0].model);
  int64_t newest = own;
  for (uint32_t s = 1; s < m->manifest.n_stages; s++) {
    const int64_t version = psplit_i_model_ir_version(m->stages[s].model);
    if (version > newest) newest = version;
  }
  psplit_i_rope *out = psplit_i_last_rope(head, m->stages[0].model);
  if (!out) return psplit_i_nomem(m->diag);
  if (newest == own) {
    psplit_i_rope_span(out, m->stages[0].model, span);
    return PSPLIT_OK;
  }
  psplit_i_text field = {0};
  psplit_i_wire_tag(&field, PSPLIT_I_MODEL_IR_VERSION, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(&field, (uint64_t)newest);
  const bool failed = field.failed;
  if (!failed) psplit_i_rope_copy(out, &m->arena, field.bytes, field.n);
  psplit_i_text_fini(&field);
  return failed ? psplit_i_nomem(m->diag) : PSPLIT_OK;
}

/* How many fields of these kinds a stage's model has had so far. */
typedef struct fields_met {
  size_t n_opsets, n_functions;
} fields_met;

/* A field of the model of stage s: what all stages share is taken of the first. */
static psplit_code add_field(psplit_i_merger *m, common_fields *common, uint32_t s,
                             const psplit_i_span *span, fields_met *met, psplit_i_segments *head) {
  const psplit_model *model = m->stages[s].model;
  first_place here = {.stage = s, .span = span};
  switch (span->field) {
    case PSPLIT_I_MODEL_GRAPH: return PSPLIT_OK;
    case PSPLIT_I_MODEL_OPSETS:
      here.number = met->n_opsets++;
      return add_opset(m, &common->opsets, here, head);
    case PSPLIT_I_MODEL_FUNCTIONS:
      here.number = met->n_functions++;
      return add_function(m, &common->functions, here, head);
    default: break;
  }
  if (s > 0) return PSPLIT_OK;
  if (span->field == PSPLIT_I_MODEL_IR_VERSION) return add_ir_version(m, span, head);
  psplit_i_rope *out = psplit_i_last_rope(head, model);
  if (!out) return psplit_i_nomem(m->diag);
  psplit_i_rope_span(out, model, span);
  return PSPLIT_OK;
}

psplit_code psplit_i_merge_model(psplit_i_merger *m, psplit_i_segments *head) {
  psplit_code code = PSPLIT_OK;
  common_fields common = {0};
  psplit_i_intern_init(&common.opsets.names);
  psplit_i_intern_init(&common.functions.names);
  for (uint32_t s = 0; s < m->manifest.n_stages; s++) {
    const psplit_i_spans *fields = &m->stages[s].model->skeleton.model_fields;
    fields_met met = {0};
    for (size_t i = 0; i < fields->n; i++)
      PSPLIT_TRY(add_field(m, &common, s, &fields->items[i], &met, head));
  }
out:
  first_places_fini(&common.opsets);
  first_places_fini(&common.functions);
  return code;
}
