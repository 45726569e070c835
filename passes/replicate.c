/* needs: shapes, costs, live, stages  keeps: everything  breaks: nothing
 *
 * Computes a node again in a stage that receives its result, where that is cheaper than sending: a
 * DequantizeLinear behind an int8 tensor, a Cast, a mask made from the model's inputs. Decided by
 * cost alone, for repeatable nodes only, only while no stage it touches gets slower than the
 * slowest is, and only where the stage's memory holds the weights that come along. What it reads is
 * received for it, or computed again as well where that is cheaper: back to the model's inputs. A
 * stage that holds more than its device can, once all is counted, does without. */
#include <string.h>

#include "all_copies.h"
#include "builder.h"
#include "copies.h"
#include "copies_add.h"
#include "copies_idle.h"
#include "pass.h"
#include "pass_on.h"

/* Of the planner's time, for each of two searches of all splits with copies: where copies are
 * likely to be of use, and where not. */
static const double LIKELY_SHARE = 0.1, SHARE = 0.02;

/* A split to come back to; of its copies also stage by stage: when which did, from 1. */
typedef struct fallback {
  uint32_t *stage; /* [n_nodes] */
  psplit_plan_copy *copies;
  size_t n;
  uint32_t *round; /* [n_stages] 0: not yet */
  uint32_t n_rounds;
} fallback;

static psplit_code remember(psplit_planner *planner, psplit_diag *diag, fallback *out) {
  psplit_i_arena *arena = &planner->arena;
  out->n = planner->copies.n;
  out->n_rounds = 0;
  out->copies = psplit_i_arena_array(arena, out->n, sizeof *out->copies);
  out->round = PSPLIT_NEW(arena, uint32_t, planner->plan->n_stages);
  out->stage = psplit_i_arena_array(arena, planner->graph->n_nodes, sizeof *out->stage);
  if (!out->copies || !out->round || !out->stage) return psplit_i_nomem(diag);
  memcpy(out->stage, planner->stage, planner->graph->n_nodes * sizeof *out->stage);
  if (out->n) memcpy(out->copies, planner->copies.items, out->n * sizeof *out->copies);
  return PSPLIT_OK;
}

/* Stages of the plan that hold more than their devices can go back to the copies that they had, and
 * the plan is made again; *out_any: there were some. What they receive then others send, who may
 * hold too much for that. */
static psplit_code go_back(psplit_planner *planner, fallback *to, bool *out_any,
                           psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t now = ++to->n_rounds;
  size_t kept = 0;
  *out_any = false;
  for (uint32_t s = 0; s < planner->plan->n_stages; s++)
    if (!to->round[s] &&
        planner->plan->stages[s].memory_bytes > psplit_devices_memory_bytes(planner->devices, s)) {
      to->round[s] = now;
      *out_any = true;
    }
  if (!*out_any) return PSPLIT_OK;
  for (size_t c = 0; c < planner->copies.n; c++)
    if (to->round[planner->copies.items[c].stage] != now)
      planner->copies.items[kept++] = planner->copies.items[c];
  planner->copies.n = kept;
  for (size_t c = 0; c < to->n; c++)
    if (to->round[to->copies[c].stage] == now &&
        !psplit_i_vec_push(&planner->copies, to->copies[c]))
      PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_i_copies_sort(planner);
  bool moved = false; /* what used a node may be gone now */
  PSPLIT_TRY(psplit_i_copies_drop_idle(planner, false, &moved, diag));
  PSPLIT_TRY(psplit_i_plan_make(planner, diag));
out:
  return code;
}

/* Copies for the stages as they stand, and the plan with them; nodes that would be idle may move,
 * *out_moved. */
static psplit_code copy_nodes(psplit_planner *planner, bool moving, bool *out_moved,
                              psplit_diag *diag) {
  psplit_code code;
  const size_t n_before = planner->copies.n;
  PSPLIT_TRY(psplit_i_copies_add(planner, diag));
  PSPLIT_TRY(psplit_i_copies_drop_idle(planner, moving, out_moved, diag));
  planner->plan_holds = !n_before && !planner->copies.n && !*out_moved;
  if (!planner->plan_holds) PSPLIT_TRY(psplit_i_plan_make(planner, diag));
out:
  return code;
}

/* All stages and copies as they were; the plan is another's until it is made. */
static psplit_code put_back(psplit_planner *planner, const fallback *to, psplit_diag *diag) {
  memcpy(planner->stage, to->stage, planner->graph->n_nodes * sizeof *planner->stage);
  planner->copies.n = 0;
  for (size_t c = 0; c < to->n; c++)
    if (!psplit_i_vec_push(&planner->copies, to->copies[c])) return psplit_i_nomem(diag);
  return PSPLIT_OK;
}

static psplit_code restore(psplit_planner *planner, const fallback *to, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(put_back(planner, to, diag));
  PSPLIT_TRY(psplit_i_plan_make(planner, diag));
out:
  return code;
}

/* Copies for the stages as they stand, within memory. Nodes move where the plan is faster for it
 * than where they stay: of a chain that moves, what stays behind is sent all the same. */
static psplit_code replicate(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code;
  fallback before, with_moves = {0};
  int64_t moved_ns = INT64_MAX;
  bool moved = false, idle = false;
  const bool moving = planner->options.objective == PSPLIT_THROUGHPUT;
  PSPLIT_TRY(remember(planner, diag, &before));
  PSPLIT_TRY(copy_nodes(planner, moving, &moved, diag));
  if (moved) {
    PSPLIT_TRY(psplit_i_copies_leave_idle(planner, &idle, diag));
    if (psplit_i_plan_fits(planner) && !idle) moved_ns = planner->plan->bottleneck_ns;
    PSPLIT_TRY(remember(planner, diag, &with_moves));
    PSPLIT_TRY(restore(planner, &before, diag));
    PSPLIT_TRY(copy_nodes(planner, false, &moved, diag));
  }
  for (bool any = !planner->plan_holds; any;) PSPLIT_TRY(go_back(planner, &before, &any, diag));
  PSPLIT_TRY(psplit_i_copies_leave_idle(planner, &idle, diag));
  if (idle) PSPLIT_TRY(restore(planner, &before, diag));
  if (moved_ns < planner->plan->bottleneck_ns) PSPLIT_TRY(restore(planner, &with_moves, diag));
out:
  return code;
}

/* Whether other stages may be taken than those that the plan has: what binds the plan binds them,
 * and nothing was given up for other ends. */
static bool may_move(const psplit_planner *planner) {
  return !planner->best_ns && !planner->options.training &&
         planner->options.tied_weights != PSPLIT_TIED_TOGETHER;
}

static bool are_other(const psplit_planner *planner, const uint32_t *other) {
  bool differs = false;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    differs |= other[n] != PSPLIT_NONE && other[n] != planner->stage[n];
  return differs;
}

/* These stages with copies as they pay, or with these copies. *out_ns: INT64_MAX where they do not
 * fit, or one would have no use. */
static psplit_code copy_into(psplit_planner *planner, const uint32_t *other,
                             const psplit_i_all_copies *all, psplit_diag *diag, int64_t *out_ns) {
  psplit_code code;
  bool idle = false;
  PSPLIT_TRY(psplit_i_builder_adopt(planner, other, diag));
  if (all) {
    PSPLIT_TRY(psplit_i_copies_give(planner, all->copies, all->n_copies, diag));
    PSPLIT_TRY(psplit_i_plan_make(planner, diag));
    PSPLIT_TRY(psplit_i_copies_leave_idle(planner, &idle, diag));
  } else {
    PSPLIT_TRY(replicate(planner, diag));
  }
  *out_ns = idle || !psplit_i_plan_fits(planner) ? INT64_MAX : planner->plan->bottleneck_ns;
out:
  return code;
}

/* Takes these stages with copies, if they fit and no stage is as slow as the slowest is now. */
static psplit_code try_stages(psplit_planner *planner, const uint32_t *other,
                              const psplit_i_all_copies *all, bool *out_taken, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const int64_t best_ns = planner->plan->bottleneck_ns;
  psplit_solution *solution = planner->solution;
  fallback before;
  int64_t ns;
  *out_taken = false;
  if (!may_move(planner) || !(all || are_other(planner, other))) return PSPLIT_OK;
  PSPLIT_TRY(remember(planner, diag, &before));
  /* Bounds are not asked until it is known whether the split counts: stages that do not fit their
   * devices may be faster than all that do. */
  planner->solution = NULL;
  code = copy_into(planner, other, all, diag, &ns);
  if (code == PSPLIT_OK) {
    *out_taken = ns < best_ns;
    if (!*out_taken) code = restore(planner, &before, diag);
  }
  planner->solution = solution;
out:
  return code;
}

/* Whether a slowest stage spends more on what it receives and sends than it computes: then another
 * split may be far better with copies, though this one has no use for any. */
static bool mostly_moves(const psplit_planner *planner) {
  const psplit_plan *plan = planner->plan;
  bool moves = false;
  for (uint32_t s = 0; s < plan->n_stages; s++)
    moves |= plan->stages[s].load_ns == plan->bottleneck_ns &&
             plan->stages[s].compute_ns < plan->bottleneck_ns - plan->stages[s].compute_ns;
  return moves && may_move(planner);
}

/* A bound with copies may be far lower than the one without, which says nothing of other plans with
 * copies: what it says is told besides. */
static void tell_without(const psplit_planner *planner, int64_t plain_ns, int64_t value_ns) {
  const int64_t bound_ns = planner->copies_bound_ns; /* 0: the plan says the other one */
  if (!psplit_i_copies_take_time(planner) || bound_ns <= 0 || plain_ns <= bound_ns || value_ns <= 0)
    return;
  if (plain_ns >= value_ns) {
    psplit_i_say(planner->options.logger, PSPLIT_NOTE,
                 "of the plans without copies that the bound covers, none is faster");
    return;
  }
  psplit_i_say(planner->options.logger, PSPLIT_NOTE,
               "the gap is to plans with copies; to those without that the bound covers, it is "
               "%.2f %%",
               100.0 * (double)(value_ns - plain_ns) / (double)value_ns);
}

/* All splits of few nodes, with all copies: the best becomes the plan. *out_settled: no plan is
 * better, or the bound is what there is to know. */
static psplit_code try_all(psplit_planner *planner, double share, bool *io_taken, bool *out_settled,
                           psplit_diag *diag) {
  psplit_code code;
  psplit_i_all_copies all;
  PSPLIT_TRY(psplit_i_all_copies_find(planner, planner->plan->bottleneck_ns, share, diag, &all));
  if (all.value_ns < planner->plan->bottleneck_ns) {
    uint32_t *next = planner->next_hop;
    const bool passes_on = planner->passes_on;
    psplit_i_pass_nothing_on(planner);
    PSPLIT_TRY(try_stages(planner, all.stage, &all, io_taken, diag));
    if (!*io_taken) {
      planner->next_hop = next;
      planner->passes_on = passes_on;
    }
  }
  planner->copies_any_route =
    planner->passes_on || all.any_bound_ns >= planner->plan->bottleneck_ns;
  planner->copies_bound_ns = planner->copies_any_route ? all.any_bound_ns : all.bound_ns;
  planner->copies_tried = planner->copies_bound_ns > 0;
  *out_settled = planner->copies_bound_ns >= planner->plan->bottleneck_ns;
out:
  return code;
}

/* The bound knows what copies save, and its split may be better than one that was found without. */
static psplit_code try_bound(psplit_planner *planner, bool *io_taken, psplit_diag *diag) {
  psplit_code code;
  int64_t bound_ns;
  bool taken = false;
  const bool any_route = planner->passes_on;
  uint32_t *other = psplit_i_arena_array(&planner->arena, planner->graph->n_nodes, sizeof *other);
  if (!other) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_bound_with_copies(planner, diag, &bound_ns, other));
  PSPLIT_TRY(try_stages(planner, other, NULL, &taken, diag));
  *io_taken |= taken;
  if (bound_ns <= planner->copies_bound_ns) goto out;
  planner->copies_bound_ns = bound_ns;
  planner->copies_tried = false;
  planner->copies_any_route = any_route;
out:
  return code;
}

/* The solver's bound is for splits without copies, and so is its split: asks with them. Where they
 * are not likely to be of use, few nodes are tried in little time; if that finds a better plan, all
 * is asked of it. What is passed on is not, unless that stays the plan. */
static psplit_code ask_with_copies(psplit_planner *planner, bool likely, psplit_diag *diag) {
  psplit_code code;
  uint32_t *next = planner->next_hop;
  const bool passes_on = planner->passes_on;
  bool taken = false, settled;
  /* What holds for all plans holds for those without copies, too. */
  const int64_t plain_ns = planner->plan->lower_bound_ns, before_ns = planner->plan->bottleneck_ns;
  planner->plan_holds = false;
  if (!psplit_i_copies_take_time(planner)) psplit_i_pass_nothing_on(planner);
  if (!likely) PSPLIT_TRY(try_all(planner, SHARE, &taken, &settled, diag));
  if (likely || (taken && !settled)) {
    PSPLIT_TRY(try_all(planner, LIKELY_SHARE, &taken, &settled, diag));
    if (!settled) PSPLIT_TRY(try_bound(planner, &taken, diag));
  }
  planner->plan_holds = false;
  tell_without(planner, plain_ns, taken ? planner->plan->bottleneck_ns : before_ns);
  if (taken) goto out;
  planner->next_hop = next;
  planner->passes_on = passes_on;
out:
  return code;
}

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  (void)values;
  psplit_code code = PSPLIT_OK;
  if (planner->segmented || planner->n_replicas) return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_plan_make(planner, diag));
  if (planner->options.objective == PSPLIT_FILL_DRAIN) return PSPLIT_OK; /* of loads as a whole */
  PSPLIT_TRY(replicate(planner, diag));
  if (!planner->solution || planner->options.objective != PSPLIT_THROUGHPUT) goto out;
  const bool likely = psplit_i_copies_take_time(planner) || mostly_moves(planner);
  if (likely || (may_move(planner) && psplit_i_all_copies_apply(planner)))
    PSPLIT_TRY(ask_with_copies(planner, likely, diag));
out:
  return code;
}

const psplit_i_pass psplit_i_pass_replicate = {
  .name = "replicate",
  .help = "recompute nodes where that is cheaper than receiving their results",
  .needs = PSPLIT_I_FACT_SHAPES | PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_STAGES,
  .keeps = ~0u,
  .run = run,
};
