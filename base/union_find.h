/* Disjoint sets. */
#ifndef PSPLIT_BASE_UNION_FIND_H
#define PSPLIT_BASE_UNION_FIND_H

#include <stdbool.h>
#include <stdint.h>

/* Union-find over dense ids: the root is always the smallest member, so results do not depend on
 * the order of unions. */
uint32_t psplit_i_find(uint32_t *parent, uint32_t x);
bool psplit_i_unite(uint32_t *parent, uint32_t a, uint32_t b);

#endif
