/* Which values carry gradients, for the sweep over nodes and for what rules ask of their node. */
#ifndef PSPLIT_GRADIENT_SITE_H
#define PSPLIT_GRADIENT_SITE_H

#include "differentiate.h"
#include "rule.h"

/* Whether a value can carry a gradient at all; an unknown type may. */
bool psplit_i_carries(const psplit_i_pass *pass, uint32_t value);
/* Input i of the node where it exists and carries gradients from it, or PSPLIT_NONE. Captures come
 * after the inputs. `rule` may be NULL. */
uint32_t psplit_i_edge(const psplit_i_pass *pass, const psplit_i_node *node,
                       const psplit_i_gradient_rule *rule, uint32_t i);
/* Whether the gradient of a value is needed on the way to a wanted one. */
bool psplit_i_needed(const psplit_i_pass *pass, uint32_t value);

#endif
