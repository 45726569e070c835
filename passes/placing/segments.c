/* Several stages per device, so that execution alternates between devices.
 *
 * A candidate is an assignment of supernodes to devices. It is turned into segments, the longest
 * runs on one device that the order of execution permits, and is evaluated by the plan they make.
 * The plan counts everything, whatever heuristic the candidate came from. */
#include <stdlib.h>
#include <string.h>

#include "cut_devices.h"
#include "devices_inside.h"
#include "least_memory.h"
#include "methods.h"
#include "request.h"
#include "segment_bounds.h"
#include "segment_runs.h"
#include "units.h"

enum { MOST_DEVICES = PSPLIT_I_MOST_SEGMENT_DEVICES, MOST_PAIRS = 8, MOST_SEGMENTS = 1024 };

typedef struct segments {
  psplit_planner *planner;
  const psplit_i_request *request;
  psplit_diag *diag;
  psplit_i_arena arena;
  psplit_problem problem; /* supernodes on all devices, in any order */
  uint32_t *group;        /* [nodes] supernode, or PSPLIT_NONE */
  uint32_t n_groups, n_devices, max_segments;
  uint32_t *n_before;      /* [n_groups] number of reads of other groups' results */
  uint32_t *net_off, *net; /* [n_groups + 1] nets of a producer */
  uint32_t *device;        /* [n_groups] the candidate */
  uint32_t *segment;       /* [n_groups] */
  uint32_t list[MOST_SEGMENTS], n_segments; /* devices of the segments */
  /* state of the simulation: [n_groups], [n_devices], [n_groups] */
  uint32_t *waits, *ready, *next_ready;
  uint32_t *trial, *joined; /* [n_groups] */
  int64_t best_ns, bound_ns;
  uint32_t *best_segment; /* [n_groups] */
  uint32_t best_list[MOST_SEGMENTS], n_best;
  const char *best_by, *bound;
} segments;

/* --- from devices to segments --- */

/* Puts everything that is ready on `device` into one segment, and what becomes ready there. Each
 * device has a linked list of ready groups. */
static void absorb(segments *s, uint32_t device, uint32_t segment, uint32_t *out) {
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
static bool runs_from(segments *s, uint32_t first, uint32_t *out, uint32_t *out_list,
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
    if (*out_n == MOST_SEGMENTS) return false;
    absorb(s, d, *out_n, out);
    out_list[(*out_n)++] = d;
    n_idle = 0;
  }
  return true;
}

/* Finds the fewest segments, over the choice of the first device. */
static bool make_segments(segments *s) {
  uint32_t list[MOST_SEGMENTS], n;
  s->n_segments = 0;
  for (uint32_t d = 0; d < s->n_devices; d++) {
    if (!runs_from(s, d, s->trial, list, &n) || (s->n_segments && n >= s->n_segments)) continue;
    s->n_segments = n;
    memcpy(s->list, list, n * sizeof *list);
    memcpy(s->segment, s->trial, s->n_groups * sizeof *s->trial);
  }
  uint32_t used[MOST_DEVICES] = {0};
  for (uint32_t i = 0; i < s->n_segments; i++)
    if (++used[s->list[i]] > s->max_segments) return false;
  return s->n_segments > 0;
}

/* --- evaluation --- */

/* Whether nodes that must share a stage do, and no uncuttable tensor is cut. */
static bool keeps_wishes(const segments *s, const uint32_t *segment) {
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
static psplit_code realise(segments *s, const uint32_t *segment, const uint32_t *list, uint32_t n) {
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

/* Evaluates s->segment on the devices of s->list. */
static psplit_code judge_segments(segments *s, const char *by) {
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

/* Evaluates the candidate s->device. *out_kept (may be NULL): it has at most the permitted number
 * of segments. */
static psplit_code judge(segments *s, const char *by, bool *out_kept) {
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
  return kept ? judge_segments(s, by) : PSPLIT_OK;
}

/* --- candidates --- */

static int64_t time_on(const segments *s, uint32_t g, uint32_t d) {
  const int64_t ns =
    s->problem.time_ns[(size_t)g * s->problem.n_classes + s->problem.devices[d].class_id];
  return ns == PSPLIT_TIME_FORBIDDEN ? INT64_MAX : ns;
}

static uint32_t fastest(const segments *s, uint32_t g) {
  uint32_t best = 0;
  for (uint32_t d = 1; d < s->n_devices; d++)
    if (time_on(s, g, d) < time_on(s, g, best)) best = d;
  return best;
}

enum { STEPS = 16 }; /* number of weights */

/* Assigns other devices to the segments of the last candidate, in at most so many runs, and
 * evaluates the assignment. */
static psplit_code join(segments *s, uint32_t n, const uint32_t *weight, uint32_t runs,
                        bool *out_kept) {
  uint32_t device[MOST_SEGMENTS];
  bool found;
  const psplit_i_segment_row row = {
    .segment = s->joined, .n = n, .weight = weight, .most_runs = runs};
  psplit_code code = psplit_i_join_segments(&s->problem, &row, s->diag, device, &found);
  *out_kept = false;
  if (code != PSPLIT_OK || !found) return code;
  for (uint32_t g = 0; g < s->n_groups; g++) s->device[g] = device[s->joined[g]];
  return judge(s, "joined segments", out_kept);
}

/* Reduces the last candidate to fewer runs: to the permitted number or, if it has at most that, by
 * halving. */
static psplit_code try_joined(segments *s, const uint32_t *weight, bool keeps) {
  enum { HALVINGS = 3 };
  psplit_code code = PSPLIT_OK;
  const uint32_t n = s->n_segments, most = s->max_segments;
  const uint32_t all = most > MOST_SEGMENTS ? MOST_SEGMENTS : most * s->n_devices;
  bool kept = false;
  if (!n) return PSPLIT_OK;
  memcpy(s->joined, s->segment, s->n_groups * sizeof *s->joined);
  /* With two devices the runs alternate. With more, one device may have too many, so fewer runs are
   * tried as well. */
  for (uint32_t runs = all; !keeps && !kept && runs > 0; runs = runs > most ? most : 0)
    PSPLIT_TRY(join(s, n, weight, runs, &kept));
  for (uint32_t i = 1; keeps && i <= HALVINGS && n >> i > 0; i++)
    PSPLIT_TRY(join(s, n, weight, n >> i, &kept));
out:
  return code;
}

/* Evaluates and reduces the candidate `device` for several weights of two devices. */
static psplit_code join_at_weights(segments *s, const char *by, const uint32_t *device) {
  psplit_code code = PSPLIT_OK;
  const bool one = s->planner->options.objective == PSPLIT_LATENCY || s->n_devices != 2;
  bool kept = false;
  /* Tries many weights as long as no candidate has the permitted number of segments. */
  for (uint32_t step = one ? STEPS / 2 : 1; step < STEPS; step += kept ? STEPS / 4 : 1) {
    uint32_t weight[MOST_DEVICES];
    for (uint32_t d = 0; d < s->n_devices; d++) weight[d] = STEPS / 2;
    if (!one) weight[0] = step, weight[1] = STEPS - step;
    memcpy(s->device, device, s->n_groups * sizeof *device);
    PSPLIT_TRY(judge(s, by, &kept));
    PSPLIT_TRY(try_joined(s, weight, kept));
    if (one) break;
  }
out:
  return code;
}

/* Each device alone; each device with everything it can run, and the rest where that is fastest;
 * and every group where it is fastest. */
static psplit_code try_greedy(segments *s) {
  psplit_code code;
  uint32_t *device = psplit_i_arena_array(&s->arena, s->n_groups, sizeof *device);
  if (!device) return psplit_i_nomem(s->diag);
  for (uint32_t d = 0; d < s->n_devices; d++) {
    for (uint32_t g = 0; g < s->n_groups; g++) s->device[g] = d;
    PSPLIT_TRY(judge(s, "one device", NULL));
    for (uint32_t g = 0; g < s->n_groups; g++)
      device[g] = time_on(s, g, d) < INT64_MAX ? d : fastest(s, g);
    PSPLIT_TRY(join_at_weights(s, "greedy", device));
  }
  for (uint32_t g = 0; g < s->n_groups; g++) device[g] = fastest(s, g);
  code = join_at_weights(s, "greedy", device);
out:
  return code;
}

/* Minimum cuts between devices a and b for one pair of weights. The price of crossing is doubled
 * until the segments are few enough. */
static psplit_code try_cut(segments *s, uint32_t a, uint32_t b, uint32_t weight_a,
                           uint32_t weight_b, uint8_t *on_b) {
  enum { MOST_CROSSING = 1 << 12, TRIED_ANYWAY = 4 };
  psplit_code code;
  bool found, kept = false;
  for (uint32_t crossing = 1; crossing <= MOST_CROSSING && (!kept || crossing <= TRIED_ANYWAY);
       crossing *= 2) {
    const psplit_i_device_cut what = {s->problem.devices[a].class_id,
                                      s->problem.devices[b].class_id, weight_a, weight_b, crossing};
    PSPLIT_TRY(psplit_i_cut_devices(&s->problem, &what, s->diag, on_b, &found, NULL));
    if (!found) return PSPLIT_OK;
    for (uint32_t g = 0; g < s->n_groups; g++) s->device[g] = on_b[g] ? b : a;
    PSPLIT_TRY(judge(s, "min cut", &kept));
    if (crossing == 1) {
      uint32_t weight[MOST_DEVICES];
      for (uint32_t d = 0; d < s->n_devices; d++) weight[d] = STEPS / 2;
      weight[a] = weight_a;
      weight[b] = weight_b;
      PSPLIT_TRY(try_joined(s, weight, kept));
    }
  }
out:
  return code;
}

/* The latency of a micro-batch is the sum of both devices' times. For throughput, weights
 * approximate the larger of the two. */
static psplit_code try_cuts(segments *s) {
  psplit_code code = PSPLIT_OK;
  const bool latency = s->planner->options.objective == PSPLIT_LATENCY;
  uint32_t n_pairs = 0;
  uint8_t *on_b = psplit_i_arena_array(&s->arena, s->n_groups, sizeof *on_b);
  if (!on_b) return psplit_i_nomem(s->diag);
  for (uint32_t a = 0; a < s->n_devices; a++)
    for (uint32_t b = a + 1; b < s->n_devices && n_pairs < MOST_PAIRS; b++, n_pairs++)
      for (uint32_t step = 1; step < STEPS; step++) {
        const uint32_t weight = latency ? STEPS / 2 : step;
        PSPLIT_TRY(try_cut(s, a, b, weight, STEPS - weight, on_b));
        if (latency) break;
      }
out:
  return code;
}

static void raise_bound(segments *s, int64_t ns, const char *by) {
  if (ns <= s->bound_ns) return;
  s->bound_ns = ns;
  s->bound = by;
}

/* Lower bounds for all assignments of nodes to devices. */
static psplit_code find_bounds(segments *s) {
  psplit_code code;
  int64_t ns;
  PSPLIT_TRY(psplit_i_bound_devices(&s->problem, &s->arena, s->diag, &ns));
  raise_bound(s, ns, "weighted devices");
  if (s->planner->options.objective != PSPLIT_LATENCY) return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_bound_paths(&s->problem, &s->arena, s->diag, &ns));
  raise_bound(s, ns, "paths over devices");
out:
  return code;
}

/* Whether the error ends the whole search, not only one of several methods. */
static bool ends_all(psplit_code code) {
  return code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED || code == PSPLIT_USAGE;
}

enum { FREE, CHUNKS, CONTIGUOUS, ONE_EACH, N_WAYS };

/* The plan with one segment per device, where all memory counts and devices are chosen. */
static psplit_code try_one_each(segments *s) {
  psplit_code code;
  psplit_planner *planner = s->planner;
  psplit_diag why = {0};
  const double time_limit_s = planner->options.time_limit_s;
  PSPLIT_TRY(psplit_i_planner_order_devices(planner, NULL, 0, s->diag));
  if (s->n_groups < planner->options.n_stages || planner->options.n_stages > MOST_SEGMENTS)
    return PSPLIT_OK;
  planner->options.time_limit_s /= N_WAYS;
  code = psplit_i_choose_devices(planner, s->request, &why);
  if (code == PSPLIT_OK) code = psplit_i_solve_in_orders(planner, s->request, 1, &why);
  planner->options.time_limit_s = time_limit_s;
  const char *by =
    planner->solution ? planner->solution->solver : psplit_i_method_name(PSPLIT_I_SOLVER_FIT);
  psplit_solution_destroy(planner->solution);
  planner->solution = NULL;
  if (ends_all(code)) PSPLIT_FAIL(psplit_i_fail_as(s->diag, &why));
  if (code != PSPLIT_OK) return PSPLIT_OK;
  s->n_segments = planner->options.n_stages;
  memcpy(s->list, planner->device_id, s->n_segments * sizeof *s->list);
  for (uint32_t v = 0; v < planner->graph->n_nodes; v++)
    if (s->group[v] != PSPLIT_NONE) s->segment[s->group[v]] = planner->stage[v];
  code = judge_segments(s, by);
out:
  return code;
}

/* The solver's solutions: free placement, with its bound, chunks, and one stage per device. */
static psplit_code try_solver(segments *s) {
  psplit_code code = PSPLIT_OK;
  const bool latency = s->planner->options.objective == PSPLIT_LATENCY;
  for (int way = FREE; way <= CONTIGUOUS; way++) {
    psplit_partition_options options =
      psplit_i_request_options(s->planner, s->request, 1.0 / N_WAYS);
    psplit_solution *solution = NULL;
    psplit_diag why = {0};
    if (latency && way != CONTIGUOUS) continue; /* not supported by the solver */
    if (way == CHUNKS && s->max_segments > 8) continue;
    options.require_nonempty = false;
    options.logger = NULL;
    options.noncontiguous = way == FREE;
    options.chunks = way == CHUNKS ? s->max_segments : 1;
    psplit_problem problem = s->problem;
    /* not supported by the solver: only bytes count */
    if (way == CHUNKS) problem.message_ns = NULL;
    code = psplit_i_request_run(s->planner, s->request, &problem, &options, &why, NULL, &solution);
    if (ends_all(code)) return psplit_i_fail_as(s->diag, &why);
    if (code != PSPLIT_OK) continue;
    if (way == FREE) raise_bound(s, solution->lower_bound_ns, solution->bound);
    for (uint32_t g = 0; g < s->n_groups; g++)
      s->device[g] = solution->stages[solution->stage[g]].device;
    const char *by = solution->solver;
    psplit_solution_destroy(solution);
    PSPLIT_TRY(judge(s, by, NULL));
  }
  code = PSPLIT_OK;
out:
  return code;
}

/* --- the whole search --- */

/* The problem on all devices, and the readers of results. */
static psplit_code prepare(segments *s) {
  psplit_code code;
  psplit_planner *planner = s->planner;
  uint32_t list[MOST_DEVICES];
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
  if (planner->n_candidates > MOST_DEVICES) what = "more than 64 devices";
  if (!what) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "several segments on a device cannot be combined with %s", what);
}

/* Reports why there is no placement: memory that no number of segments helps, or too few
 * segments. */
static psplit_code none_found(segments *s) {
  psplit_code code;
  char need[PSPLIT_I_UNIT_BYTES];
  uint32_t list[MOST_DEVICES];
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

static psplit_code place(segments *s) {
  psplit_code code;
  PSPLIT_TRY(prepare(s));
  if (s->n_groups == 0) return realise(s, NULL, (uint32_t[]){0}, 1);
  PSPLIT_TRY(find_bounds(s));
  PSPLIT_TRY(try_greedy(s));
  PSPLIT_TRY(try_cuts(s));
  PSPLIT_TRY(try_solver(s));
  PSPLIT_TRY(try_one_each(s));
  if (s->best_ns == INT64_MAX) return none_found(s);
  code = realise(s, s->best_segment, s->best_list, s->n_best);
out:
  return code;
}

psplit_code psplit_i_place_segments(psplit_planner *planner, const psplit_i_request *r,
                                    psplit_diag *diag) {
  psplit_code code = refuse(planner, diag);
  if (code != PSPLIT_OK) return code;
  segments *s = calloc(1, sizeof *s);
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
