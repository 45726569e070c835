/* The table of rules, and finding one. */
#include <stdlib.h>
#include <string.h>

#include "rule.h"

#define NOTHING 0
#define PARAMETERS(inputs) (inputs)
#define OPERAND PSPLIT_WEIGHTS_OPERAND
#define JOINED PSPLIT_WEIGHTS_JOINED
#define HANDS_ON PSPLIT_WEIGHTS_HANDED_ON
#define HANDS_ALL_ON PSPLIT_WEIGHTS_ALL_HANDED_ON
#define PSPLIT_GRADIENT(op, since, until, fn, needs, inputs, outputs, weights) \
  {DOMAIN, op, since, until, psplit_i_gradient_##fn, needs, inputs, outputs, weights},
#define PSPLIT_NO_GRADIENT(op) {DOMAIN, op, 1, 0, NULL, 0, 0, 0, NOTHING},
static const psplit_i_gradient_rule RULES[] = {
#define DOMAIN ""
#include "rules.def"
#undef DOMAIN
#define DOMAIN "com.microsoft"
#include "rules_contrib.def"
#undef DOMAIN
};
#undef PSPLIT_GRADIENT
#undef PSPLIT_NO_GRADIENT

static int by_name(const void *node, const void *rule) {
  const psplit_i_node *n = node;
  const psplit_i_gradient_rule *r = rule;
  const int domains = strcmp(n->domain, r->domain);
  return domains ? domains : strcmp(n->op_type, r->op_type);
}

const psplit_i_gradient_rule *psplit_i_gradient_rule_of(const psplit_i_node *node) {
  if (node->function != PSPLIT_NONE) return NULL;
  const psplit_i_gradient_rule *rule =
    bsearch(node, RULES, sizeof RULES / sizeof *RULES, sizeof *RULES, by_name);
  if (!rule || node->opset < rule->since || (rule->until && node->opset > rule->until)) return NULL;
  return rule;
}

const psplit_i_gradient_rule *psplit_i_gradient_rules(uint32_t *out_n) {
  *out_n = sizeof RULES / sizeof *RULES;
  return RULES;
}
