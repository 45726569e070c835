/* The way from a node to its entry in the table of rules. */
#include <string.h>

#include "infer.h"

bool psplit_i_rules_index(psplit_i_shapes *s) {
  s->rule_first = psplit_i_arena_array(&s->arena, s->n_rules, sizeof *s->rule_first);
  s->rule_next = psplit_i_arena_array(&s->arena, s->n_rules, sizeof *s->rule_next);
  if (!s->rule_first || !s->rule_next) return false;
  for (uint32_t i = 0; i < s->n_rules; i++) {
    const uint32_t n = s->rule_names.n;
    const uint32_t id = psplit_i_intern_add(&s->rule_names, s->rules[i].op_type);
    if (id == PSPLIT_NONE) return false;
    s->rule_next[i] = id == n ? PSPLIT_NONE : s->rule_first[id];
    s->rule_first[id] = i;
  }
  return true;
}

const psplit_i_rule *psplit_i_rule_of(const psplit_i_shapes *s, const psplit_i_node *node) {
  const uint32_t id = psplit_i_intern_find(&s->rule_names, node->op_type);
  if (id == PSPLIT_NONE) return NULL;
  for (uint32_t i = s->rule_first[id]; i != PSPLIT_NONE; i = s->rule_next[i]) {
    const psplit_i_rule *rule = &s->rules[i];
    if (strcmp(rule->domain, node->domain) != 0) continue;
    if (node->opset > 0 && node->opset < rule->since) continue;
    if (rule->until > 0 && (node->opset == 0 || node->opset > rule->until)) continue;
    return rule;
  }
  return NULL;
}
