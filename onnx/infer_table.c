/* The table of rules and the way from a node to its entry. */
#include <string.h>

#include "infer.h"
#include "work.h"

const psplit_rule psplit_i_rules[] = {
#define PSPLIT_RULE(domain, op, since, until, fn, op_class, flops) \
  {domain, op, since, until, psplit_i_infer_##fn, PSPLIT_CLASS_##op_class, PSPLIT_FLOPS_##flops},
#include "rules.def"
#undef PSPLIT_RULE
};
const uint32_t psplit_i_n_rules = sizeof psplit_i_rules / sizeof *psplit_i_rules;

bool psplit_i_rules_index(psplit_i_shapes *s) {
  s->rule_first = psplit_i_arena_array(&s->arena, psplit_i_n_rules, sizeof *s->rule_first);
  s->rule_next = psplit_i_arena_array(&s->arena, psplit_i_n_rules, sizeof *s->rule_next);
  if (!s->rule_first || !s->rule_next) return false;
  for (uint32_t i = 0; i < psplit_i_n_rules; i++) {
    const uint32_t n = s->rule_names.n;
    const uint32_t id = psplit_i_intern_add(&s->rule_names, psplit_i_rules[i].op_type);
    if (id == PSPLIT_NONE) return false;
    s->rule_next[i] = id == n ? PSPLIT_NONE : s->rule_first[id];
    s->rule_first[id] = i;
  }
  return true;
}

const psplit_rule *psplit_i_rule_of(const psplit_i_shapes *s, const psplit_node *node) {
  const uint32_t id = psplit_i_intern_find(&s->rule_names, node->op_type);
  if (id == PSPLIT_NONE) return NULL;
  for (uint32_t i = s->rule_first[id]; i != PSPLIT_NONE; i = s->rule_next[i]) {
    const psplit_rule *rule = &psplit_i_rules[i];
    if (strcmp(rule->domain, node->domain) != 0) continue;
    if (node->opset > 0 && node->opset < rule->since) continue;
    if (rule->until > 0 && (node->opset == 0 || node->opset > rule->until)) continue;
    return rule;
  }
  return NULL;
}

psplit_op_class psplit_i_op_class(const char *domain, const char *op_type) {
  for (uint32_t i = 0; i < psplit_i_n_rules; i++)
    if (strcmp(psplit_i_rules[i].op_type, op_type) == 0 &&
        strcmp(psplit_i_rules[i].domain, domain) == 0)
      return psplit_i_rules[i].op_class;
  return PSPLIT_CLASS_OTHER;
}
