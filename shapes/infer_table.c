/* The table of rules. */
#include <string.h>

#include "infer.h"
#include "work.h"

static const psplit_i_rule kRules[] = {
#define PSPLIT_RULE(domain, op, since, until, fn, op_class, flops) \
  {domain, op, since, until, psplit_i_infer_##fn, PSPLIT_CLASS_##op_class, PSPLIT_FLOPS_##flops},
#include "rules.def"
#undef PSPLIT_RULE
};
enum { N_RULES = sizeof kRules / sizeof *kRules };

psplit_code psplit_i_shapes_create(const psplit_i_graph *graph, const psplit_i_binding *bindings,
                                   size_t n_bindings, const psplit_logger *logger,
                                   psplit_diag *diag, psplit_i_shapes **out_shapes) {
  return psplit_i_infer_by(kRules, N_RULES, graph, bindings, n_bindings, logger, diag, out_shapes);
}

psplit_op_class psplit_i_op_class(const char *domain, const char *op_type) {
  for (uint32_t i = 0; i < N_RULES; i++)
    if (strcmp(kRules[i].op_type, op_type) == 0 && strcmp(kRules[i].domain, domain) == 0)
      return kRules[i].op_class;
  return PSPLIT_CLASS_OTHER;
}
