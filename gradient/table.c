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
  {op, since, until, psplit_i_gradient_##fn, needs, inputs, outputs, weights},
#define PSPLIT_NO_GRADIENT(op) {op, 1, 0, NULL, 0, 0, 0, NOTHING},
static const psplit_i_gradient_rule rules[] = {
#include "rules.def"
};
#undef PSPLIT_GRADIENT
#undef PSPLIT_NO_GRADIENT

static int by_name(const void *name, const void *rule) {
  return strcmp(name, ((const psplit_i_gradient_rule *)rule)->op_type);
}

const psplit_i_gradient_rule *psplit_i_gradient_rule_of(const psplit_i_node *node) {
  if (*node->domain || node->function != PSPLIT_NONE) return NULL;
  const psplit_i_gradient_rule *rule =
    bsearch(node->op_type, rules, sizeof rules / sizeof *rules, sizeof *rules, by_name);
  if (!rule || node->opset < rule->since || (rule->until && node->opset > rule->until)) return NULL;
  return rule;
}

const psplit_i_gradient_rule *psplit_i_gradient_rules(uint32_t *out_n) {
  *out_n = sizeof rules / sizeof *rules;
  return rules;
}
