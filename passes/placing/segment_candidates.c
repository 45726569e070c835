/* The candidates of the search for segments: assignments of supernodes to devices. */
#include <string.h>

#include "cut_devices.h"
#include "methods.h"
#include "segment_runs.h"
#include "segments.h"

enum { MOST_PAIRS = 8, STEPS = 16 /* number of weights */ };

static int64_t time_on(const psplit_i_segments *s, uint32_t g, uint32_t d) {
  const int64_t ns =
    s->problem.time_ns[(size_t)g * s->problem.n_classes + s->problem.devices[d].class_id];
  return ns == PSPLIT_TIME_FORBIDDEN ? INT64_MAX : ns;
}

static uint32_t fastest(const psplit_i_segments *s, uint32_t g) {
  uint32_t best = 0;
  for (uint32_t d = 1; d < s->n_devices; d++)
    if (time_on(s, g, d) < time_on(s, g, best)) best = d;
  return best;
}

/* Assigns other devices to the segments of the last candidate, in at most so many runs, and
 * evaluates the assignment. */
static psplit_code join(psplit_i_segments *s, uint32_t n, const uint32_t *weight, uint32_t runs,
                        bool *out_kept) {
  uint32_t device[PSPLIT_I_MOST_SEGMENTS];
  bool found;
  const psplit_i_segment_row row = {
    .segment = s->joined, .n = n, .weight = weight, .most_runs = runs};
  psplit_code code = psplit_i_join_segments(&s->problem, &row, s->diag, device, &found);
  *out_kept = false;
  if (code != PSPLIT_OK || !found) return code;
  for (uint32_t g = 0; g < s->n_groups; g++) s->device[g] = device[s->joined[g]];
  return psplit_i_segments_judge_devices(s, "joined segments", out_kept);
}

/* Reduces the last candidate to fewer runs: to the permitted number or, if it has at most that, by
 * halving. */
static psplit_code try_joined(psplit_i_segments *s, const uint32_t *weight, bool keeps) {
  enum { HALVINGS = 3 };
  psplit_code code = PSPLIT_OK;
  const uint32_t n = s->n_segments, most = s->max_segments;
  const uint32_t all = most > PSPLIT_I_MOST_SEGMENTS ? PSPLIT_I_MOST_SEGMENTS : most * s->n_devices;
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
static psplit_code join_at_weights(psplit_i_segments *s, const char *by, const uint32_t *device) {
  psplit_code code = PSPLIT_OK;
  const bool one = s->planner->options.objective == PSPLIT_LATENCY || s->n_devices != 2;
  bool kept = false;
  /* Tries many weights as long as no candidate has the permitted number of segments. */
  for (uint32_t step = one ? STEPS / 2 : 1; step < STEPS; step += kept ? STEPS / 4 : 1) {
    uint32_t weight[PSPLIT_I_MOST_SEGMENT_DEVICES];
    for (uint32_t d = 0; d < s->n_devices; d++) weight[d] = STEPS / 2;
    if (!one) weight[0] = step, weight[1] = STEPS - step;
    memcpy(s->device, device, s->n_groups * sizeof *device);
    PSPLIT_TRY(psplit_i_segments_judge_devices(s, by, &kept));
    PSPLIT_TRY(try_joined(s, weight, kept));
    if (one) break;
  }
out:
  return code;
}

psplit_code psplit_i_segments_try_greedy(psplit_i_segments *s) {
  psplit_code code;
  uint32_t *device = psplit_i_arena_array(&s->arena, s->n_groups, sizeof *device);
  if (!device) return psplit_i_nomem(s->diag);
  for (uint32_t d = 0; d < s->n_devices; d++) {
    for (uint32_t g = 0; g < s->n_groups; g++) s->device[g] = d;
    PSPLIT_TRY(psplit_i_segments_judge_devices(s, "one device", NULL));
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
static psplit_code try_cut(psplit_i_segments *s, uint32_t a, uint32_t b, uint32_t weight_a,
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
    PSPLIT_TRY(psplit_i_segments_judge_devices(s, "min cut", &kept));
    if (crossing == 1) {
      uint32_t weight[PSPLIT_I_MOST_SEGMENT_DEVICES];
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
psplit_code psplit_i_segments_try_cuts(psplit_i_segments *s) {
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

/* Whether the error ends the whole search, not only one of several methods. */
static bool ends_all(psplit_code code) {
  return code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED || code == PSPLIT_USAGE;
}

enum { FREE, CHUNKS, CONTIGUOUS, ONE_EACH, N_WAYS };

psplit_code psplit_i_segments_try_one_each(psplit_i_segments *s) {
  psplit_code code;
  psplit_planner *planner = s->planner;
  psplit_diag why = {0};
  const double time_limit_s = planner->options.time_limit_s;
  PSPLIT_TRY(psplit_i_planner_order_devices(planner, NULL, 0, s->diag));
  if (s->n_groups < planner->options.n_stages || planner->options.n_stages > PSPLIT_I_MOST_SEGMENTS)
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
  code = psplit_i_segments_judge(s, by);
out:
  return code;
}

psplit_code psplit_i_segments_try_solver(psplit_i_segments *s) {
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
    if (way == FREE) psplit_i_segments_raise_bound(s, solution->lower_bound_ns, solution->bound);
    for (uint32_t g = 0; g < s->n_groups; g++)
      s->device[g] = solution->stages[solution->stage[g]].device;
    const char *by = solution->solver;
    psplit_solution_destroy(solution);
    PSPLIT_TRY(psplit_i_segments_judge_devices(s, by, NULL));
  }
  code = PSPLIT_OK;
out:
  return code;
}
