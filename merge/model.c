/* Fields outside of the graph: operator sets and functions of all stages; unique fields (metadata)
 * are taken from the first stage. */
#include <inttypes.h>
#include <string.h>

#include "fields.h"
#include "merge.h"
#include "proto_text.h"
#include "verify.h"

static bool same_domain(const char *a, const char *b) {
  return strcmp(psplit_i_domain_of(a), psplit_i_domain_of(b)) == 0;
}

/* Stage t < s that imports the domain, with its version. */
static bool imported_before(const psplit_i_merger *m, uint32_t s, const char *domain,
                            uint32_t *out_stage, int64_t *out_version) {
  for (uint32_t t = 0; t < s; t++) {
    const Onnx__ModelProto *proto = m->stages[t].model->proto;
    for (size_t i = 0; i < proto->n_opset_import; i++) {
      if (!same_domain(proto->opset_import[i]->domain, domain)) continue;
      *out_stage = t;
      *out_version = proto->opset_import[i]->version;
      return true;
    }
  }
  return false;
}

static psplit_code add_opset(const psplit_i_merger *m, uint32_t s, const psplit_i_span *span,
                             const Onnx__OperatorSetIdProto *opset, psplit_i_segments *head) {
  uint32_t other;
  int64_t version;
  const char *domain = psplit_i_domain_of(opset->domain);
  if (psplit_i_merge_drops_opset(m, domain)) return PSPLIT_OK;
  if (imported_before(m, s, domain, &other, &version)) {
    if (version == opset->version) return PSPLIT_OK;
    return psplit_i_fail(m->diag, PSPLIT_UNSUPPORTED,
                         "stage %" PRIu32 " has version %" PRId64
                         " of the operators \"%s\", stage "
                         "%" PRIu32 " version %" PRId64 ": convert them to one version first",
                         s, opset->version, *domain ? domain : "ai.onnx", other, version);
  }
  psplit_i_rope *out = psplit_i_last_rope(head, m->stages[s].model);
  if (!out) return psplit_i_nomem(m->diag);
  psplit_i_rope_span(out, m->stages[s].model, span);
  return PSPLIT_OK;
}

static bool is_same_function(const Onnx__FunctionProto *a, const Onnx__FunctionProto *b) {
  return same_domain(a->domain, b->domain) && strcmp(a->name, b->name) == 0 &&
         strcmp(psplit_i_text_or_empty(a->overload), psplit_i_text_or_empty(b->overload)) == 0;
}

/* Function k, which there is. */
static const psplit_i_span *function_span(const psplit_model *model, size_t k) {
  const psplit_i_span *field = model->skeleton.model_fields.items;
  while (field->field != PSPLIT_I_MODEL_FUNCTIONS || k--) field++;
  return field;
}

static psplit_code add_function(psplit_i_merger *m, uint32_t s, const psplit_i_span *span, size_t k,
                                psplit_i_segments *head) {
  psplit_code code;
  psplit_i_merge_stage *stage = &m->stages[s];
  const Onnx__FunctionProto *function = stage->model->proto->functions[k];
  if (psplit_i_merge_drops_function(m, s, k)) return PSPLIT_OK;
  for (uint32_t t = 0; t < s; t++) {
    const psplit_model *other = m->stages[t].model;
    for (size_t i = 0; i < other->proto->n_functions; i++) {
      bool same = false;
      if (!is_same_function(function, other->proto->functions[i])) continue;
      PSPLIT_TRY(psplit_i_merge_same(m, &onnx__model_proto__descriptor, stage->model, span, other,
                                     function_span(other, i), &same));
      if (same) return PSPLIT_OK;
      return psplit_i_fail(m->diag, PSPLIT_UNSUPPORTED,
                           "function %s of stage %" PRIu32 " is another one in stage %" PRIu32,
                           function->name, s, t);
    }
  }
  psplit_i_rope *out = psplit_i_last_rope(head, stage->model);
  if (!out) return psplit_i_nomem(m->diag);
  if (!stage->model->has_external_data) {
    psplit_i_rope_span(out, stage->model, span);
    return PSPLIT_OK;
  }
  stage->weights.in_node = true;
  code = psplit_i_merge_rewrite(m, s, &onnx__function_proto__descriptor,
                                stage->model->skeleton.bytes + span->skeleton_offset,
                                span->skeleton_bytes, out);
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
static psplit_code add_field(psplit_i_merger *m, uint32_t s, const psplit_i_span *span,
                             fields_met *met, psplit_i_segments *head) {
  const psplit_model *model = m->stages[s].model;
  switch (span->field) {
    case PSPLIT_I_MODEL_GRAPH: return PSPLIT_OK;
    case PSPLIT_I_MODEL_OPSETS:
      return add_opset(m, s, span, model->proto->opset_import[met->n_opsets++], head);
    case PSPLIT_I_MODEL_FUNCTIONS: return add_function(m, s, span, met->n_functions++, head);
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
  for (uint32_t s = 0; s < m->manifest.n_stages; s++) {
    const psplit_i_spans *fields = &m->stages[s].model->skeleton.model_fields;
    fields_met met = {0};
    for (size_t i = 0; i < fields->n; i++)
      PSPLIT_TRY(add_field(m, s, &fields->items[i], &met, head));
  }
out:
  return code;
}
