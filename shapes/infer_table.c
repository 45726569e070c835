/* The table of rules. */

#include "infer.h"
#include "operator.h"

static const psplit_i_rule RULES[] = {
#define FLOPS(flops, ...) PSPLIT_FLOPS_##flops
#define PSPLIT_RULE(domain, op, since, until, fn, op_class, ...) \
  {domain, op, since, until, psplit_i_infer_##fn, PSPLIT_CLASS_##op_class, FLOPS(__VA_ARGS__, 0)},
#define PSPLIT_NO_RULE(domain, op, flags) \
  {domain, op, 0, 0, NULL, PSPLIT_CLASS_OTHER, PSPLIT_FLOPS_NONE},
#include "rules.def"
#undef PSPLIT_RULE
#undef PSPLIT_NO_RULE
};
enum { N_RULES = sizeof RULES / sizeof *RULES };

psplit_code psplit_i_shapes_create(const psplit_i_graph *graph, const psplit_i_binding *bindings,
                                   size_t n_bindings, const psplit_logger *logger,
                                   psplit_diag *diag, psplit_i_shapes **out_shapes) {
  const psplit_i_known_sizes sizes = {
    .bindings = bindings, .n_bindings = n_bindings, .n_told = n_bindings};
  return psplit_i_infer_by(RULES, N_RULES, graph, &sizes, logger, diag, out_shapes);
}

psplit_code psplit_i_shapes_create_seen(const psplit_i_graph *graph,
                                        const psplit_i_known_sizes *sizes,
                                        const psplit_logger *logger, psplit_diag *diag,
                                        psplit_i_shapes **out_shapes) {
  return psplit_i_infer_by(RULES, N_RULES, graph, sizes, logger, diag, out_shapes);
}
