/* Several stages per device: how a candidate becomes segments and a plan, which is kept if it is
 * the best so far. */
#include <string.h>

#include "segments.h"

/* --- from devices to segments --- */

/* Puts everything that is ready on `device` into one segment, and what becomes ready there. Each
 * device has a linked list of ready groups. */
static void absorb(psplit_i_segments *s, uint32_t device, uint32_t segment, uint32_t *out) {
  const psplit_problem *p = &s->problem;
  for (uint32_t g; (g = s->ready[device]) != PSPLIT_NONE;) {
    s->ready[device] = s->next_ready[g];
    out[g] = segment;
    for (uint32_t i = s->net_off[g]; i < s->net_off[g + 1]; i++)
      for (uint32_t k = p->net_off[s->net[i]]; k < p->net_off[s->net[i] + 1]; k++) {
        const uint32_t reader = p->net_consumer[k];
        if (--s->waits[reader] > 0) continue;
        s->next_ready[reader] = s->ready[s->device[reader]];
        s->ready[s->device[reader]] = reader;
      }
  }
}

/* The segments if device `first` begins. Returns false if there are too many. */
static bool runs_from(psplit_i_segments *s, uint32_t first, uint32_t *out, uint32_t *out_list,
                      uint32_t *out_n) {
  memcpy(s->waits, s->n_before, s->n_groups * sizeof *s->waits);
  for (uint32_t d = 0; d < s->n_devices; d++) s->ready[d] = PSPLIT_NONE;
  for (uint32_t g = s->n_groups; g-- > 0;)
    if (!s->waits[g]) {
      s->next_ready[g] = s->ready[s->device[g]];
      s->ready[s->device[g]] = g;
    }
  *out_n = 0;
  for (uint32_t d = first, n_idle = 0; n_idle < s->n_devices; d = (d + 1) % s->n_devices) {
    if (s->ready[d] == PSPLIT_NONE) {
      n_idle++;
      continue;
    }
    if (*out_n == PSPLIT_I_MOST_SEGMENTS) return false;
    absorb(s, d, *out_n, out);
    out_list[(*out_n)++] = d;
    n_idle = 0;
  }
  return true;
}

/* Finds the fewest segments, over the choice of the first device. */
static bool make_segments(psplit_i_segments *s) {
  uint32_t list[PSPLIT_I_MOST_SEGMENTS], n;
  s->n_segments = 0;
  for (uint32_t d = 0; d < s->n_devices; d++) {
    if (!runs_from(s, d, s->trial, list, &n) || (s->n_segments && n >= s->n_segments)) continue;
    s->n_segments = n;
    memcpy(s->list, list, n * sizeof *list);
    memcpy(s->segment, s->trial, s->n_groups * sizeof *s->trial);
  }
  uint32_t used[PSPLIT_I_MOST_SEGMENT_DEVICES] = {0};
  for (uint32_t i = 0; i < s->n_segments; i++)
    if (++used[s->list[i]] > s->max_segments) return false;
  return s->n_segments > 0;
}

/* --- evaluation --- */

/* Whether nodes that must share a stage do, and no uncuttable tensor is cut. */
static bool keeps_wishes(const psplit_i_segments *s, const uint32_t *segment) {
  const psplit_problem *p = &s->problem;
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t k = p->net_off[e];
         p->net_flags[e] & PSPLIT_NET_UNCUTTABLE && k < p->net_off[e + 1]; k++)
      if (segment[p->net_consumer[k]] != segment[p->net_producer[e]]) return false;
  for (uint32_t g = 0; p->together && g < s->n_groups; g++)
    for (uint32_t h = 0; h < g && p->together[g] != PSPLIT_NONE; h++)
      if (p->together[h] == p->together[g] && segment[h] != segment[g]) return false;
  return true;
}

psplit_code psplit_i_segments_realise(psplit_i_segments *s, const uint32_t *segment,
                                      const uint32_t *list, uint32_t n) {
  psplit_code code;
  psplit_planner *planner = s->planner;
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = s->diag};
  PSPLIT_TRY(psplit_i_planner_order_devices(planner, list, n, s->diag));
  planner->segmented = true;
  planner->segments_bound_ns = s->bound_ns;
  planner->segments_bound = s->bound;
  planner->segments_solver = s->best_by;
  PSPLIT_TRY(psplit_i_builder_number(&b));
  planner->copies.n = 0;
  for (uint32_t v = 0; s->n_groups && v < planner->graph->n_nodes; v++)
    if (s->group[v] != PSPLIT_NONE) planner->stage[v] = segment[s->group[v]];
  PSPLIT_TRY(psplit_i_builder_place_free(&b));
  PSPLIT_TRY(psplit_i_plan_make(planner, s->diag));
out:
  return code;
}

/* Whether each device has enough memory for all of its stages. */
static bool fits(const psplit_planner *planner) {
  const psplit_plan *plan = planner->plan;
  for (uint32_t i = 0; i < plan->n_stages; i++) {
    uint64_t bytes = 0;
    for (uint32_t j = 0; j < plan->n_stages; j++)
      if (plan->stages[j].device_id == plan->stages[i].device_id)
        bytes = psplit_i_sat_add_u64(bytes, plan->stages[j].memory_bytes);
    if (bytes > psplit_devices_memory_bytes(planner->devices, i)) return false;
  }
  return true;
}

psplit_code psplit_i_segments_judge(psplit_i_segments *s, const char *by) {
  if (!keeps_wishes(s, s->segment)) return PSPLIT_OK;
  s->best_by = s->best_by ? s->best_by : by;
  const psplit_code code = psplit_i_segments_realise(s, s->segment, s->list, s->n_segments);
  if (code != PSPLIT_OK || !fits(s->planner)) return code;
  const int64_t ns = s->planner->plan->value_ns;
  if (ns > s->best_ns || (ns == s->best_ns && s->n_segments >= s->n_best)) return PSPLIT_OK;
  s->best_ns = ns;
  s->best_by = by;
  s->n_best = s->n_segments;
  memcpy(s->best_list, s->list, s->n_segments * sizeof *s->list);
  memcpy(s->best_segment, s->segment, s->n_groups * sizeof *s->segment);
  return PSPLIT_OK;
}

psplit_code psplit_i_segments_judge_devices(psplit_i_segments *s, const char *by, bool *out_kept) {
  psplit_code code = psplit_i_go_on(s->planner->options.cancel, s->diag);
  if (code != PSPLIT_OK) return code;
  bool runs = true;
  for (uint32_t g = 0; g < s->n_groups && runs; g++) {
    const uint32_t c = s->problem.devices[s->device[g]].class_id;
    runs = s->problem.time_ns[(size_t)g * s->problem.n_classes + c] != PSPLIT_TIME_FORBIDDEN;
  }
  s->n_segments = 0;
  const bool kept = runs && make_segments(s);
  if (out_kept) *out_kept = kept;
  return kept ? psplit_i_segments_judge(s, by) : PSPLIT_OK;
}

void psplit_i_segments_raise_bound(psplit_i_segments *s, int64_t ns, const char *by) {
  if (ns <= s->bound_ns) return;
  s->bound_ns = ns;
  s->bound = by;
}
