/* Several stages per device: how a candidate becomes a plan, and the search as a whole. */
#include "segments.h"

#include <stdlib.h>
#include <string.h>

#include "devices_inside.h"
#include "least_memory.h"
#include "methods.h"
#include "segment_bounds.h"
#include "units.h"

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

/* Makes the plan of these segments; `segment` may be NULL without groups. */
static psplit_code realise(psplit_i_segments *s, const uint32_t *segment, const uint32_t *list,
                           uint32_t n) {
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
  const psplit_code code = realise(s, s->segment, s->list, s->n_segments);
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

/* Lower bounds for all assignments of nodes to devices. */
static psplit_code find_bounds(psplit_i_segments *s) {
  psplit_code code;
  int64_t ns;
  PSPLIT_TRY(psplit_i_bound_devices(&s->problem, &s->arena, s->diag, &ns));
  psplit_i_segments_raise_bound(s, ns, "weighted devices");
  if (s->planner->options.objective != PSPLIT_LATENCY) return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_bound_paths(&s->problem, &s->arena, s->diag, &ns));
  psplit_i_segments_raise_bound(s, ns, "paths over devices");
out:
  return code;
}

/* --- the whole search --- */

/* The problem on all devices, and the readers of results. */
static psplit_code prepare(psplit_i_segments *s) {
  psplit_code code;
  psplit_planner *planner = s->planner;
  uint32_t list[PSPLIT_I_MOST_SEGMENT_DEVICES];
  for (uint32_t d = 0; d < s->n_devices; d++) list[d] = d;
  PSPLIT_TRY(psplit_i_planner_order_devices(planner, list, s->n_devices, s->diag));
  if (planner->next_hop)
    return psplit_i_fail(s->diag, PSPLIT_UNSUPPORTED,
                         "segments need a link between every two devices");
  psplit_i_builder b = {.planner = planner, .arena = &s->arena, .diag = s->diag, .any_order = true};
  uint64_t *memory_bytes = psplit_i_arena_array(&s->arena, s->n_devices, sizeof *memory_bytes);
  if (!memory_bytes) return psplit_i_nomem(s->diag);
  for (uint32_t d = 0; d < s->n_devices; d++)
    memory_bytes[d] = psplit_devices_memory_bytes(planner->devices, d);
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(psplit_i_builder_build(&b, memory_bytes));
  s->problem = b.problem;
  s->group = b.group;
  const size_t n = s->n_groups = b.n_groups;
  s->n_before = psplit_i_arena_zeroed(&s->arena, n, sizeof *s->n_before);
  s->net_off = psplit_i_arena_zeroed(&s->arena, n + 2, sizeof *s->net_off);
  s->net = psplit_i_arena_array(&s->arena, s->problem.n_nets, sizeof *s->net);
  uint32_t **const arrays[] = {&s->device, &s->segment,      &s->waits, &s->next_ready,
                               &s->trial,  &s->best_segment, &s->joined};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    *arrays[i] = psplit_i_arena_array(&s->arena, n, sizeof **arrays[i]);
  s->ready = psplit_i_arena_array(&s->arena, s->n_devices, sizeof *s->ready);
  if (s->arena.failed) return psplit_i_nomem(s->diag);
  const psplit_problem *p = &s->problem;
  for (uint32_t e = 0; e < p->n_nets; e++) {
    s->net_off[p->net_producer[e] + 2]++;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) s->n_before[p->net_consumer[k]]++;
  }
  for (size_t g = 0; g < n; g++) s->net_off[g + 2] += s->net_off[g + 1];
  for (uint32_t e = 0; e < p->n_nets; e++) s->net[s->net_off[p->net_producer[e] + 1]++] = e;
out:
  return code;
}

static psplit_code refuse(const psplit_planner *planner, psplit_diag *diag) {
  const char *what = planner->options.training ? "training" : NULL;
  if (planner->options.tied_weights == PSPLIT_TIED_TOGETHER)
    what = "tied weights that stay together";
  if (planner->options.n_states) what = "state that must stay where it is used";
  if (planner->options.prefill) what = "two kinds of steps";
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (planner->pin[n] != PSPLIT_NONE) what = "nodes that are pinned to stages";
  if (planner->n_candidates > PSPLIT_I_MOST_SEGMENT_DEVICES) what = "more than 64 devices";
  if (!what) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "several segments on a device cannot be combined with %s", what);
}

/* Reports why there is no placement: memory that no number of segments helps, or too few
 * segments. */
static psplit_code none_found(psplit_i_segments *s) {
  psplit_code code;
  char need[PSPLIT_I_UNIT_BYTES];
  uint32_t list[PSPLIT_I_MOST_SEGMENT_DEVICES];
  psplit_i_least_memory least;
  for (uint32_t d = 0; d < s->n_devices; d++) list[d] = d;
  PSPLIT_TRY(psplit_i_planner_order_devices(s->planner, list, s->n_devices, s->diag));
  PSPLIT_TRY(psplit_i_least_memory_find(s->planner, s->n_devices, &least, s->diag));
  if (least.node != PSPLIT_NONE) {
    const psplit_i_graph *graph = s->planner->graph;
    PSPLIT_FAIL(
      psplit_i_fail(s->diag, PSPLIT_INFEASIBLE,
                    "memory: node \"%s\" and the nodes it must stay with need %s, which no "
                    "device has; a device with more memory helps, more segments do not",
                    psplit_i_node_known_as(graph, &graph->nodes[least.node]),
                    psplit_i_in_bytes(least.node_bytes, need)));
  }
  code = psplit_i_fail(
    s->diag, PSPLIT_INFEASIBLE,
    "no placement with so few segments on each device was found to fit; allow more segments");
out:
  return code;
}

static psplit_code place(psplit_i_segments *s) {
  psplit_code code;
  PSPLIT_TRY(prepare(s));
  if (s->n_groups == 0) return realise(s, NULL, (uint32_t[]){0}, 1);
  PSPLIT_TRY(find_bounds(s));
  PSPLIT_TRY(psplit_i_segments_try_greedy(s));
  PSPLIT_TRY(psplit_i_segments_try_cuts(s));
  PSPLIT_TRY(psplit_i_segments_try_solver(s));
  PSPLIT_TRY(psplit_i_segments_try_one_each(s));
  if (s->best_ns == INT64_MAX) return none_found(s);
  code = realise(s, s->best_segment, s->best_list, s->n_best);
out:
  return code;
}

psplit_code psplit_i_place_segments(psplit_planner *planner, const psplit_i_request *r,
                                    psplit_diag *diag) {
  psplit_code code = refuse(planner, diag);
  if (code != PSPLIT_OK) return code;
  psplit_i_segments *s = calloc(1, sizeof *s);
  if (!s) return psplit_i_nomem(diag);
  s->planner = planner;
  s->request = r;
  s->diag = diag;
  s->n_devices = planner->n_candidates;
  s->max_segments = planner->options.max_segments;
  s->best_ns = INT64_MAX;
  s->bound = psplit_i_method_name(PSPLIT_I_N_METHODS);
  psplit_i_arena_init(&s->arena, 0);
  psplit_solution_destroy(planner->solution);
  planner->solution = NULL;
  code = place(s);
  psplit_i_arena_fini(&s->arena);
  free(s);
  return code;
}
