/* A bound from balls around clusters. No load is above T. The sum of all loads is the work plus
 * what is cut, and what is cut costs at least weight - balls T of the packing. So (n_stages +
 * balls) T is at least the work plus that weight. */
#include <math.h>

#include "ball_packing.h"
#include "bounds.h"
#include "instance.h"
#include "pair_costs.h"

enum { MOST_CLUSTERS = 1 << 14 };
#define SURELY 1e-9 /* relative error of the quotient, at most */

psplit_code psplit_i_bound_balls(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                 int64_t *inout_bound) {
  const psplit_i_automaton *m = query->automaton;
  const int64_t limit = query->value - 1;
  psplit_i_arena arena;
  psplit_i_pairs pairs;
  psplit_i_pair_units units;
  psplit_i_packed packed;
  psplit_code code;
  if (query->instance->n > MOST_CLUSTERS || !psplit_i_pairs_suit(query) || limit <= *inout_bound)
    return PSPLIT_OK;
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(psplit_i_pairs_make(query, limit, true, &arena, &pairs, &units));
  PSPLIT_TRY(psplit_i_pack_balls(&pairs, m->n_stages, (double)*inout_bound / units.cost, budget,
                                 &arena, &packed));
  const double loads = (double)m->total_min_time + packed.weight * units.cost;
  const double bound = loads / (m->n_stages + packed.balls) * (1 - SURELY);
  const int64_t next = bound < (double)limit ? (int64_t)ceil(bound) : limit + 1;
  if (next > *inout_bound) *inout_bound = next;
out:
  psplit_i_arena_fini(&arena);
  return code;
}
