#include "union_find.h"

uint32_t psplit_i_find(uint32_t *parent, uint32_t x) {
  while (parent[x] != x) {
    parent[x] = parent[parent[x]];
    x = parent[x];
  }
  return x;
}

bool psplit_i_unite(uint32_t *parent, uint32_t a, uint32_t b) {
  a = psplit_i_find(parent, a);
  b = psplit_i_find(parent, b);
  if (a == b) return false;
  if (a < b)
    parent[b] = a;
  else
    parent[a] = b;
  return true;
}
