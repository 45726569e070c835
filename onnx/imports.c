/* References of nodes beyond their graph: operator sets by domain, functions by name. */
#include <inttypes.h>
#include <string.h>

#include "graph_scope.h"

psplit_code psplit_i_index_opsets(psplit_i_graph_builder *b, size_t n,
                                  Onnx__OperatorSetIdProto *const *imports, psplit_i_opsets *out) {
  for (size_t i = 0; i < n; i++) {
    const char *domain = psplit_i_domain_of(imports[i]->domain);
    const uint32_t id = psplit_i_intern_add(&out->domains, domain);
    if (id == PSPLIT_NONE) return psplit_i_nomem(b->diag);
    if (id == out->versions.n) {
      if (!psplit_i_vec_push(&out->versions, imports[i]->version)) return psplit_i_nomem(b->diag);
    } else if (out->versions.items[id] != imports[i]->version) {
      return psplit_i_fail(b->diag, PSPLIT_INVALID,
                           "operator set \"%s\" is imported in versions %" PRId64 " and %" PRId64,
                           domain, out->versions.items[id], imports[i]->version);
    }
  }
  return PSPLIT_OK;
}

void psplit_i_opsets_fini(psplit_i_opsets *o) {
  psplit_i_intern_fini(&o->domains);
  psplit_i_vec_fini(&o->versions);
}

int64_t psplit_i_opset_of(const psplit_i_graph_scope *s, const char *domain) {
  const uint32_t id = psplit_i_intern_find(&s->opsets->domains, domain);
  return id == PSPLIT_NONE ? 0 : s->opsets->versions.items[id];
}

const char *psplit_i_function_key(psplit_i_text *text, const char *domain, const char *name,
                                  const char *overload) {
  text->n = 0;
  psplit_i_text_addf(text, "%zu %zu ", strlen(domain), strlen(name));
  psplit_i_text_puts(text, domain);
  psplit_i_text_puts(text, name);
  psplit_i_text_puts(text, overload);
  return text->failed ? NULL : text->bytes;
}

psplit_code psplit_i_find_function(psplit_i_graph_builder *b, psplit_i_node *node) {
  if (!b->functions.n) return PSPLIT_OK;
  const char *key = psplit_i_function_key(&b->key, node->domain, node->op_type, node->overload);
  if (!key) return psplit_i_nomem(b->diag);
  node->function = psplit_i_intern_find(&b->functions, key);
  return PSPLIT_OK;
}

psplit_code psplit_i_index_functions(psplit_i_graph_builder *b) {
  psplit_model *model = b->model;
  for (size_t f = 0; f < model->proto->n_functions; f++) {
    const Onnx__FunctionProto *function = model->proto->functions[f];
    const char *key = psplit_i_function_key(&b->key, psplit_i_domain_of(function->domain),
                                            psplit_i_text_or_empty(function->name),
                                            psplit_i_text_or_empty(function->overload));
    char *kept = key ? psplit_i_arena_strndup(&model->arena, key, b->key.n) : NULL;
    const uint32_t id = kept ? psplit_i_intern_add(&b->functions, kept) : PSPLIT_NONE;
    if (id == PSPLIT_NONE) return psplit_i_nomem(b->diag);
    if (id != f)
      return psplit_i_fail(b->diag, PSPLIT_INVALID, "function \"%s\" is defined twice",
                           psplit_i_text_or_empty(function->name));
  }
  return PSPLIT_OK;
}
