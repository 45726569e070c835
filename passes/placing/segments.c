/* Several stages per device: the search as a whole. */
#include "segments.h"

#include <stdlib.h>
#include <string.h>

#include "devices_inside.h"
#include "least_memory.h"
#include "methods.h"
#include "segment_bounds.h"
#include "units.h"

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

/* Reports why there is no placement: memory that no number of segments helps, or maybe too few
 * segments, if a device may have fewer than there are supernodes. */
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
    psplit_i_advice advice;
    const char *undivided = psplit_i_why_undivided(s->planner, least.node, &advice);
    if (!undivided) PSPLIT_FAIL(psplit_i_nomem(s->diag));
    PSPLIT_FAIL(
      psplit_i_fail_about(s->diag, PSPLIT_INFEASIBLE, advice,
                          "memory: node \"%s\" and the nodes it must stay with need %s, which no "
                          "device has%s; a device with more memory helps, more segments do not",
                          psplit_i_node_known_as(graph, &graph->nodes[least.node]),
                          psplit_i_in_bytes(least.node_bytes, need), undivided));
  }
  code = psplit_i_fail(s->diag, PSPLIT_INFEASIBLE, "no placement %swas found to fit%s",
                       s->max_segments < s->n_groups ? "with so few segments on each device " : "",
                       s->max_segments < s->n_groups ? "; allow more segments" : "");
out:
  return code;
}

static psplit_code place(psplit_i_segments *s) {
  psplit_code code;
  PSPLIT_TRY(prepare(s));
  if (s->n_groups == 0) return psplit_i_segments_realise(s, NULL, (uint32_t[]){0}, 1);
  PSPLIT_TRY(find_bounds(s));
  PSPLIT_TRY(psplit_i_segments_try_greedy(s));
  PSPLIT_TRY(psplit_i_segments_try_cuts(s));
  PSPLIT_TRY(psplit_i_segments_try_solver(s));
  PSPLIT_TRY(psplit_i_segments_try_one_each(s));
  if (s->best_ns == INT64_MAX) return none_found(s);
  code = psplit_i_segments_realise(s, s->best_segment, s->best_list, s->n_best);
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
