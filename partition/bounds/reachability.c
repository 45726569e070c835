/* How far j stages of at most T reach along the weight axis. Buckets say what crossings cost, but
 * weights are not rounded to them: a stage from weight a to weight b has a load of at least b - a
 * and both crossings. Where T stages do not reach the end, the bottleneck is larger. Coarse buckets
 * do, so this is the bound of wide graphs, whose buckets are few, and of very large ones. */
#include <string.h>

#include "bisect.h"
#include "weight_axis.h"
#include "weight_axis_inside.h"

static const uint64_t MAX_READS = UINT64_C(1) << 28;

typedef struct reach {
  psplit_i_weight_axis_reader reader;
  int64_t *now, *next; /* [n_buckets] most weight of a downset in the bucket, -1: none */
  uint32_t first, end; /* buckets with one in `now` */
  uint64_t n_reads;
} reach;

/* The most weight in bucket q2 with one stage more, loads <= most; -1: none. */
static int64_t step_to(reach *r, uint32_t q2, int64_t most) {
  const psplit_i_weight_axis_build *x = r->reader.x;
  const psplit_i_weight_axis *axis = x->out;
  int64_t best = q2 < r->end ? r->now[q2] : -1;
  if (best >= 0) best += most; /* within a bucket nothing is known of crossings */
  psplit_i_weight_axis_turn(&r->reader, q2);
  for (uint32_t q1 = q2 < r->end ? q2 : r->end; q1-- > r->first && best < axis->high[q2];) {
    int64_t in, out;
    if (axis->low[q2] - axis->high[q1] > most) break;
    r->n_reads++;
    if (r->now[q1] < 0) continue;
    psplit_i_weight_axis_read(&r->reader, q1, &in, &out);
    const int64_t spent = x->instance->overlap ? 0 : in + out;
    if (in > most || out > most || spent > most) continue;
    if (r->now[q1] + most - spent > best) best = r->now[q1] + most - spent;
  }
  if (best < axis->low[q2]) return -1;
  return best < axis->high[q2] ? best : axis->high[q2];
}

/* False: no split has every load <= most. */
static bool reaches_end(const void *of, int64_t most) {
  reach *r = *(reach *const *)of;
  const psplit_i_weight_axis_build *x = r->reader.x;
  const psplit_i_weight_axis *axis = x->out;
  const uint32_t n = axis->n_buckets, n_stages = x->automaton->n_stages;
  const int64_t total = x->automaton->total_min_time;
  r->first = 0;
  r->end = 1;
  r->now[0] = 0;
  for (uint32_t j = 1; j <= n_stages && r->n_reads < MAX_READS; j++) {
    const uint64_t n_reads = r->n_reads;
    /* What is left must fit the stages that are left. */
    const double least = (double)total - (double)(n_stages - j) * (double)most * (1 + 1e-9);
    memset(r->reader.at_in + r->first, 0, r->end - r->first);
    uint32_t first = n, end = r->first;
    for (uint32_t q2 = r->first; q2 < n; q2++) {
      if (axis->low[q2] - axis->high[r->end - 1] > most) break;
      r->next[q2] = (double)axis->high[q2] < least ? -1 : step_to(r, q2, most);
      if (r->next[q2] < 0) continue;
      if (first == n) first = q2;
      end = q2 + 1;
    }
    if (first == n) return false;
    if (!psplit_i_spend(x->budget, r->n_reads - n_reads + n / 16)) return true; /* who knows */
    if (end == n && r->next[n - 1] >= total) return true;
    int64_t *const swap = r->now;
    r->now = r->next;
    r->next = swap;
    r->first = first;
    r->end = end;
  }
  return r->n_reads >= MAX_READS;
}

static bool one_kind(const psplit_i_weight_axis_build *x) {
  uint32_t n_kinds = 0;
  for (uint32_t t = 0; t < x->instance->n_types; t++) n_kinds += x->automaton->count[t] > 0;
  return n_kinds == 1 && psplit_i_takes(PSPLIT_I_RULE_REACH, x->automaton->features);
}

psplit_code psplit_i_weight_axis_reach(psplit_i_weight_axis_build *x, int64_t *inout_bound) {
  const uint32_t n = x->out->n_buckets;
  if (!one_kind(x)) return PSPLIT_OK;
  reach r = {.reader = {.x = x, .at_in = PSPLIT_NEW(&x->arena, uint8_t, n)},
             .now = PSPLIT_NEW(&x->arena, int64_t, n),
             .next = PSPLIT_NEW(&x->arena, int64_t, n)};
  if (!r.reader.at_in || !r.now || !r.next) return PSPLIT_NOMEM;
  reach *const of = &r;
  if (*inout_bound < x->limit)
    *inout_bound = psplit_i_bisect(*inout_bound, x->limit, reaches_end, &of);
  return PSPLIT_OK;
}
