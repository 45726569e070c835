#include "all_splits.h"

enum { MOST = 64 };

typedef struct enumeration {
  const psplit_problem *p;
  uint32_t n_stages, stage[MOST];
  split_value *value_of;
  const void *with;
  int64_t best;
} enumeration;

static uint32_t first_stage_of(const enumeration *e, uint32_t v) {
  const psplit_problem *p = e->p;
  uint32_t first = 0;
  for (uint32_t n = 0; n < p->n_nets; n++)
    for (uint32_t k = p->net_off[n]; k < p->net_off[n + 1]; k++)
      if (p->net_consumer[k] == v && e->stage[p->net_producer[n]] > first)
        first = e->stage[p->net_producer[n]];
  return first;
}

static void place(enumeration *e, uint32_t v) {
  if (v == e->p->n_nodes) {
    const int64_t value = e->value_of(e->p, e->stage, e->with);
    if (value < e->best) e->best = value;
    return;
  }
  for (e->stage[v] = first_stage_of(e, v); e->stage[v] < e->n_stages; e->stage[v]++)
    place(e, v + 1);
}

int64_t least_of_all_splits(const psplit_problem *p, uint32_t n_stages, split_value *value_of,
                            const void *with) {
  enumeration e = {
    .p = p, .n_stages = n_stages, .value_of = value_of, .with = with, .best = INT64_MAX};
  place(&e, 0);
  return e.best;
}
