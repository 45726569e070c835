#include "baselines.h"

#include <inttypes.h>
#include <string.h>

#include "check_merged.h"
#include "segments.h"
#include "solver_state.h"

enum { MOST_CLUSTERS = 4000 };

/* What a baseline reads, and what it fills. */
typedef struct baseline {
  const psplit_i_instance *instance;
  const int64_t *work; /* [n] least time of a cluster over types of devices */
  int64_t total;
  uint32_t *order;        /* [n] topological, depth first */
  uint32_t *left, *stack; /* [n] scratch */
  psplit_i_arena *arena;
  psplit_i_assignment *split;
} baseline;

/* Stage j holds cut[j] .. cut[j + 1] of the order. */
static void assign_cuts(const baseline *b, const uint32_t *cut) {
  const uint32_t k = b->instance->n_stages;
  for (uint32_t i = 0, j = 0; i < b->instance->n; i++) {
    while (j + 1 < k && i >= cut[j + 1]) j++;
    b->split->stage[b->order[i]] = j;
  }
}

/* Cuts where the work so far is an even share, to the nearest cluster. */
static psplit_code even(const baseline *b) {
  const uint32_t n = b->instance->n, k = b->instance->n_stages;
  uint32_t *cut = PSPLIT_NEW(b->arena, uint32_t, (size_t)k + 1);
  uint32_t j = 1;
  int64_t before = 0;
  if (!cut) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < n; i++) {
    const int64_t work = b->work[b->order[i]];
    while (j < k && before + work / 2 >= b->total / k * j) cut[j++] = i;
    before += work;
  }
  while (j < k) cut[j++] = n;
  assign_cuts(b, cut);
  return PSPLIT_OK;
}

/* tensor[i]: what the largest tensor of the i-th cluster of the order takes its two ends. */
static void largest_tensors(const baseline *b, uint32_t *place, int64_t *tensor) {
  const psplit_i_instance *in = b->instance;
  for (uint32_t i = 0; i < in->n; i++) place[b->order[i]] = i;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    if (!in->net_forward[e]) continue;
    int64_t *of = &tensor[place[in->net_pin[in->net_off[e]]]];
    if (in->send[e] + in->recv[e] > *of) *of = in->send[e] + in->recv[e];
  }
}

/* Narayanan et al., "PipeDream", SOSP 2019, section 3.1, over a chain of layers, without copies:
 * the largest of a stage's work and of what one layer hands to the next, which it counts as the
 * tensor of the layer in front of the cut alone. */
static psplit_code pipedream(const baseline *b) {
  const uint32_t n = b->instance->n, k = b->instance->n_stages;
  const size_t width = (size_t)n + 1;
  int64_t *best = PSPLIT_NEW(b->arena, int64_t, width * 2); /* rows of j - 1 and j stages */
  uint32_t *from = PSPLIT_NEW(b->arena, uint32_t, width * ((size_t)k + 1));
  int64_t *sum = PSPLIT_NEW(b->arena, int64_t, width);
  int64_t *tensor = PSPLIT_NEW(b->arena, int64_t, width);
  uint32_t *cut = PSPLIT_NEW(b->arena, uint32_t, (size_t)k + 1);
  if (!best || !from || !sum || !tensor || !cut) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < n; i++) sum[i + 1] = sum[i] + b->work[b->order[i]];
  largest_tensors(b, b->left, tensor);
  memcpy(best + width, sum, width * sizeof *sum);
  for (uint32_t j = 2; j <= k; j++) {
    const int64_t *before = best + (j - 1) % 2 * width;
    int64_t *now = best + j % 2 * width;
    for (uint32_t i = 0; i <= n; i++) {
      now[i] = PSPLIT_I_INF;
      for (uint32_t h = 0; h <= i; h++) {
        int64_t value = sum[i] - sum[h];
        if (before[h] > value) value = before[h];
        if (h > 0 && h < i && tensor[h - 1] > value) value = tensor[h - 1];
        if (value < now[i]) now[i] = value, from[j * width + i] = h;
      }
    }
  }
  for (uint32_t j = k, i = n; j > 1; j--) cut[j - 1] = i = from[j * width + i];
  assign_cuts(b, cut);
  return PSPLIT_OK;
}

/* What the stage saves by taking those who read what the cluster makes. */
static void add_gains(const psplit_i_instance *in, uint32_t cluster, int64_t *gain) {
  for (uint32_t k = in->inc_off[cluster]; k < in->inc_off[cluster + 1]; k++) {
    const uint32_t e = in->inc[k] / 2;
    if (in->inc[k] % 2 == 0) continue;
    for (uint32_t c = in->net_off[e] + 1; c < in->net_off[e + 1]; c++)
      gain[in->net_pin[c]] += in->send[e];
  }
}

/* The place in `ready` of the largest gain; of equal ones the first by id. */
static uint32_t largest(const uint32_t *ready, uint32_t n, const int64_t *gain) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < n; i++)
    if (gain[ready[i]] > gain[ready[best]] ||
        (gain[ready[i]] == gain[ready[best]] && ready[i] < ready[best]))
      best = i;
  return best;
}

/* A stage takes, of the clusters that may come next, the one that reads most of what it holds,
 * until it has its share of the work that is left. */
static psplit_code islands(const baseline *b) {
  const psplit_i_instance *in = b->instance;
  int64_t *gain = PSPLIT_NEW(b->arena, int64_t, in->n), rest = b->total, held = 0;
  uint32_t *ready = b->stack, size = 0, j = 0;
  if (!gain) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < in->n; i++) {
    b->left[i] = in->pred_off[i + 1] - in->pred_off[i];
    if (b->left[i] == 0) ready[size++] = i;
  }
  while (size) {
    const uint32_t at = largest(ready, size, gain), i = ready[at];
    if (j + 1 < in->n_stages && held > 0 &&
        held + b->work[i] / 2 >= rest / (int64_t)(in->n_stages - j)) {
      rest -= held;
      held = 0;
      j++;
      memset(gain, 0, in->n * sizeof *gain);
    } else {
      ready[at] = ready[--size];
      b->split->stage[i] = j;
      held += b->work[i];
      add_gains(in, i, gain);
      for (uint32_t k = in->succ_off[i]; k < in->succ_off[i + 1]; k++)
        if (--b->left[in->succ[k]] == 0) ready[size++] = in->succ[k];
    }
  }
  return PSPLIT_OK;
}

/* One stage on as many devices as there are. */
static psplit_code copies(const baseline *b) {
  memset(b->split->stage, 0, b->instance->n * sizeof *b->split->stage);
  b->split->replicas[0] = b->instance->n_stages;
  return PSPLIT_OK;
}

static psplit_code (*const RUN[PSPLIT_I_N_METHODS])(const baseline *b) = {
  [PSPLIT_I_SOLVER_EVEN] = even,
  [PSPLIT_I_SOLVER_PIPEDREAM] = pipedream,
  [PSPLIT_I_SOLVER_ISLANDS] = islands,
  [PSPLIT_I_SOLVER_COPIES] = copies,
};

bool psplit_i_is_baseline(psplit_i_method solver) {
  return solver < PSPLIT_I_N_METHODS && RUN[solver] != NULL;
}

static psplit_code check_size(const psplit_i_solver_request *request, psplit_i_method solver,
                              const psplit_i_instance *instance) {
  if (solver == PSPLIT_I_SOLVER_PIPEDREAM && instance->n > MOST_CLUSTERS)
    return psplit_i_fail(request->diag, PSPLIT_UNSUPPORTED,
                         "solver pipedream takes at most %d nodes that can be told apart, not "
                         "%" PRIu32,
                         MOST_CLUSTERS, instance->n);
  if (solver == PSPLIT_I_SOLVER_COPIES && request->options->max_replicas < instance->n_stages)
    return psplit_i_fail(request->diag, PSPLIT_UNSUPPORTED,
                         "solver copies needs as many replicas of one stage as there are devices, "
                         "%" PRIu32 "; %" PRIu32 " allowed",
                         instance->n_stages, request->options->max_replicas);
  return PSPLIT_OK;
}

/* Baselines know of no limit: the checker says which one is broken. */
static psplit_code check(const psplit_i_solver_request *request, psplit_i_method solver,
                         const psplit_i_result *result) {
  psplit_solution *solution;
  psplit_code code = psplit_i_check_merged(request, result->stage, result->device, result->replicas,
                                           request->diag, &solution);
  if (code == PSPLIT_OK) {
    psplit_solution_destroy(solution);
  } else if (code == PSPLIT_MISMATCH) {
    psplit_i_diag_context(request->diag, "the result of solver %s, which ignores limits",
                          psplit_i_method_name(solver));
    request->diag->code = code = PSPLIT_UNSUPPORTED; /* others may fit */
  }
  return code;
}

/* The split in a->trial, by clusters, and in the result. */
static psplit_code make(psplit_i_solver_state *a, psplit_i_method solver) {
  const psplit_i_solver_request *request = a->request;
  psplit_code code;
  PSPLIT_TRY(psplit_i_state_init(a));
  const uint32_t n = a->instance.n;
  PSPLIT_TRY(check_size(request, solver, &a->instance));
  baseline b = {.instance = &a->instance,
                .work = a->automaton.min_time,
                .total = a->automaton.total_min_time,
                .order = PSPLIT_NEW(&a->arena, uint32_t, n),
                .left = PSPLIT_NEW(&a->arena, uint32_t, n),
                .stack = PSPLIT_NEW(&a->arena, uint32_t, n),
                .arena = &a->arena,
                .split = &a->trial};
  PSPLIT_TRY(b.order && b.left && b.stack ? PSPLIT_OK : PSPLIT_NOMEM);
  psplit_i_topological_order(&a->instance, PSPLIT_I_FROM_SOURCES, b.left, b.stack, b.order);
  for (uint32_t s = 0; s < a->instance.n_stages; s++) {
    a->trial.device[s] = PSPLIT_NONE;
    a->trial.replicas[s] = 1;
  }
  PSPLIT_TRY(RUN[solver](&b));
  psplit_i_automaton_name_devices(&a->automaton, a->trial.replicas, a->trial.device);
  psplit_i_result_take(a->result, &a->instance, &a->trial);
  PSPLIT_TRY(check(request, solver, a->result));
out:
  return code;
}

psplit_code psplit_i_baseline_split(const psplit_i_solver_request *request, psplit_i_method solver,
                                    psplit_i_result *out_result) {
  psplit_i_solver_state a = {.request = request, .result = out_result};
  const psplit_code code = make(&a, solver);
  psplit_i_state_fini(&a);
  return code == PSPLIT_NOMEM ? psplit_i_nomem(request->diag) : code;
}

psplit_code psplit_i_baseline(const psplit_i_solver_request *request, psplit_i_method solver,
                              psplit_i_result *out_result) {
  psplit_i_solver_state a = {.request = request, .result = out_result};
  psplit_code code;
  out_result->value = PSPLIT_I_INF;
  out_result->bound = 0;
  out_result->bound_by = PSPLIT_I_N_METHODS;
  out_result->unproved = "the selected solver proves nothing";
  PSPLIT_TRY(make(&a, solver));
  psplit_i_assignment_evaluate(&a.trial, &a.instance, &a.automaton, a.scratch);
  psplit_i_state_take(&a, &a.trial, solver);
  PSPLIT_TRY(psplit_i_state_run_bounds(&a, PSPLIT_I_AT_ONCE));
  if (!psplit_i_state_done(&a)) PSPLIT_TRY(psplit_i_state_run_bounds(&a, PSPLIT_I_WITH_A_SPLIT));
out:
  psplit_i_state_fini(&a);
  return code == PSPLIT_NOMEM ? psplit_i_nomem(request->diag) : code;
}
