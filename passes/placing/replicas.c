/* Replicated stages: several identical devices run a stage, each on different micro-batches.
 *
 * The solver gets one entry for all devices, and chooses the number of devices of each stage that
 * minimises the bottleneck. Stages that hold nothing are dropped, and each stage is named by the
 * first of its devices. If memory forbids that split, a split with one device per stage may be
 * better, or the only one. */
#include <stdlib.h>
#include <string.h>

#include "devices_inside.h"
#include "request.h"

enum { MOST_ROUNDS = 6 };

typedef struct replicas {
  psplit_planner *planner;
  const psplit_i_request *request;
  psplit_diag *diag;
  psplit_i_arena arena;
  uint32_t n_devices;
  const char **names;  /* [n_devices] */
  uint32_t *first;     /* [n_stages] a stage's first device */
  uint32_t *n_of;      /* [n_stages] */
  uint32_t n_stages;   /* number of stages that hold nodes */
  uint64_t room_bytes; /* memory per device that is offered to the solver */
  uint32_t *group;     /* [nodes] */
  int64_t bound_ns;
  const char *bound;
} replicas;

static psplit_code refuse(psplit_planner *planner, psplit_diag *diag) {
  const psplit_planner_options *o = &planner->options;
  const char *what = NULL;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (planner->pin[n] != PSPLIT_NONE) what = "nodes that are pinned to stages";
  if (planner->states.n) what = "state that goes from step to step, which is one device's";
  if (o->prefill) what = "two kinds of steps";
  if (o->tied_weights == PSPLIT_TIED_TOGETHER) what = "tied weights that stay together";
  if (o->objective != PSPLIT_THROUGHPUT) what = "latency, which they do not shorten";
  if (o->training) what = "training";
  if (o->certify) what = "a certificate";
  if (o->max_segments > 1) what = "several segments on a device";
  if (what)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "replicas of stages cannot be combined with %s",
                         what);
  const uint32_t n = o->n_stages;
  for (uint32_t d = 1; d < n; d++)
    if (planner->next_hop || !psplit_i_devices_swappable(planner->devices, 0, d))
      return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                           "replicas require identical devices and links: %.80s and %.80s differ",
                           psplit_devices_name(planner->devices, 0),
                           psplit_devices_name(planner->devices, d));
  return PSPLIT_OK;
}

/* Solves with a single entry of all devices, from which stages take their replicas. */
static psplit_code solve(replicas *r, double share, psplit_solution **out, psplit_diag *why) {
  psplit_code code;
  psplit_planner *planner = r->planner;
  psplit_i_builder b = {.planner = planner, .arena = &r->arena, .diag = why};
  uint64_t *memory_bytes = psplit_i_arena_array(&r->arena, r->n_devices, sizeof *memory_bytes);
  if (!memory_bytes) return psplit_i_nomem(why);
  for (uint32_t d = 0; d < r->n_devices; d++) memory_bytes[d] = r->room_bytes;
  PSPLIT_TRY(psplit_i_builder_number(&b));
  if (!b.n_groups)
    PSPLIT_FAIL(
      psplit_i_fail(why, PSPLIT_UNSUPPORTED,
                    "replicas of stages cannot be combined with a model of constants alone"));
  PSPLIT_TRY(psplit_i_builder_build(&b, memory_bytes));
  psplit_device all = b.problem.devices[0];
  all.count = r->n_devices;
  b.problem.devices = &all;
  b.problem.n_devices = 1;
  b.problem.any_device_order = false;
  psplit_partition_options options = psplit_i_request_options(planner, r->request, share);
  options.require_nonempty = false;
  const uint32_t most = r->n_devices < PSPLIT_MOST_REPLICAS ? r->n_devices : PSPLIT_MOST_REPLICAS;
  options.max_replicas =
    planner->options.max_replicas < most ? planner->options.max_replicas : most;
  PSPLIT_TRY(psplit_i_request_run(planner, r->request, &b.problem, &options, why, NULL, out));
  r->group = b.group;
out:
  return code;
}

/* Assigns consecutive devices to the stages that hold nodes. */
static void deal(replicas *r, const psplit_solution *solution, uint32_t *number) {
  uint32_t next = 0;
  r->n_stages = 0;
  for (uint32_t s = 0; s < solution->n_stages; s++) {
    if (!solution->stages[s].n_nodes) continue;
    number[s] = r->n_stages;
    r->first[r->n_stages] = next;
    r->n_of[r->n_stages++] = solution->stages[s].replicas;
    next += solution->stages[s].replicas;
  }
}

static psplit_code name_devices(replicas *r) {
  psplit_planner *planner = r->planner;
  planner->n_replicas = psplit_i_arena_array(&planner->arena, r->n_stages, sizeof(uint32_t));
  planner->replica_devices =
    psplit_i_arena_array(&planner->arena, r->n_stages, sizeof *planner->replica_devices);
  if (!planner->n_replicas || !planner->replica_devices) return psplit_i_nomem(r->diag);
  for (uint32_t s = 0; s < r->n_stages; s++) {
    planner->n_replicas[s] = r->n_of[s];
    planner->replica_devices[s] = r->names + r->first[s];
  }
  return PSPLIT_OK;
}

/* Makes the plan of a solution. */
static psplit_code realise(replicas *r, const psplit_solution *solution) {
  psplit_code code;
  psplit_planner *planner = r->planner;
  uint32_t *number = psplit_i_arena_array(&r->arena, solution->n_stages, sizeof *number);
  if (!number) return psplit_i_nomem(r->diag);
  deal(r, solution, number);
  PSPLIT_TRY(psplit_i_planner_order_devices(planner, r->first, r->n_stages, r->diag));
  PSPLIT_TRY(name_devices(r));
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (r->group[n] != PSPLIT_NONE) planner->stage[n] = number[solution->stage[r->group[n]]];
  psplit_i_builder b = {
    .planner = planner, .arena = &planner->scratch, .diag = r->diag, .group = r->group};
  PSPLIT_TRY(psplit_i_builder_place_free(&b));
  PSPLIT_TRY(psplit_i_plan_make(planner, r->diag));
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

/* The largest excess of a stage over the memory of its device. */
static uint64_t excess_bytes(const psplit_planner *planner) {
  uint64_t most = 0;
  for (uint32_t s = 0; s < planner->plan->n_stages; s++) {
    const uint64_t need = planner->plan->stages[s].memory_bytes,
                   has = psplit_devices_memory_bytes(planner->devices, s);
    if (need > has && need - has > most) most = need - has;
  }
  return most;
}

/* Sets the value and the bound of the solution. The bound of the first solution holds for all
 * plans. */
static void tell_bound(const replicas *r, psplit_solution *solution, int64_t value_ns) {
  solution->lower_bound_ns = r->bound_ns;
  solution->bound = r->bound;
  solution->objective_ns = value_ns;
  solution->proved_optimal &= value_ns == r->bound_ns;
}

/* The solver counts only weights. While a stage needs more memory than its device has, the solver
 * is offered less, until no split is found. */
static psplit_code place(replicas *r, unsigned *out_round, bool *out_fits) {
  psplit_code code;
  psplit_planner *planner = r->planner;
  *out_fits = false;
  for (unsigned round = 0;; round++) {
    *out_round = round;
    psplit_solution *solution = NULL;
    psplit_diag why = {0};
    code = solve(r, round ? 0.1 : 1, &solution, &why);
    /* of the memory that was offered, which is less than the device has */
    if (code == PSPLIT_INFEASIBLE && round) return PSPLIT_OK;
    if (code != PSPLIT_OK) return psplit_i_fail_as(r->diag, &why);
    if (round == 0) {
      r->bound_ns = solution->lower_bound_ns;
      r->bound = solution->bound;
    }
    tell_bound(r, solution, solution->objective_ns);
    psplit_solution_destroy(planner->solution);
    planner->solution = solution;
    PSPLIT_TRY(realise(r, solution));
    const uint64_t excess = excess_bytes(planner);
    *out_fits = !excess;
    if (!excess || round == MOST_ROUNDS || r->room_bytes <= excess) return PSPLIT_OK;
    r->room_bytes -= excess;
    planner->plan = NULL;
    PSPLIT_TRY(psplit_i_planner_order_devices(planner, NULL, 0, r->diag));
  }
out:
  return code;
}

/* Solves with one device per stage, where all memory counts. *out_ns is INT64_MAX if nothing
 * fits, for the reason in *out_why. */
static psplit_code place_one_each(replicas *r, int64_t *out_ns, psplit_diag *out_why) {
  psplit_code code;
  psplit_planner *planner = r->planner;
  *out_ns = INT64_MAX;
  planner->plan = NULL;
  PSPLIT_TRY(psplit_i_planner_order_devices(planner, NULL, 0, r->diag));
  code = psplit_i_solve_within_memory(planner, r->request, 0.5, out_why);
  if (code == PSPLIT_INFEASIBLE) return PSPLIT_OK;
  if (code != PSPLIT_OK) PSPLIT_FAIL(psplit_i_fail_as(r->diag, out_why));
  r->n_stages = planner->options.n_stages;
  for (uint32_t s = 0; s < r->n_stages; s++) {
    r->first[s] = s;
    r->n_of[s] = 1;
  }
  PSPLIT_TRY(name_devices(r));
  *out_ns = planner->plan->value_ns;
  if (planner->solution) tell_bound(r, planner->solution, *out_ns);
  PSPLIT_TRY(psplit_i_plan_make(planner, r->diag));
out:
  return code;
}

/* If the first split exceeds the memory, takes the better of a replicated split within less memory
 * and of one without replicas. */
static psplit_code place_within_memory(replicas *r) {
  psplit_code code;
  psplit_planner *planner = r->planner;
  psplit_solution *several = NULL;
  unsigned round;
  bool fits;
  PSPLIT_TRY(place(r, &round, &fits));
  if (fits && round == 0) return PSPLIT_OK;
  const int64_t several_ns = fits ? planner->plan->value_ns : INT64_MAX;
  int64_t one_ns;
  psplit_diag why = {0};
  several = planner->solution;
  planner->solution = NULL;
  PSPLIT_TRY(place_one_each(r, &one_ns, &why));
  if (one_ns < several_ns) goto out;
  if (!fits) PSPLIT_FAIL(psplit_i_fail_as(r->diag, &why));
  psplit_solution_destroy(planner->solution);
  planner->solution = several;
  several = NULL;
  PSPLIT_TRY(psplit_i_planner_order_devices(planner, NULL, 0, r->diag));
  PSPLIT_TRY(realise(r, planner->solution));
out:
  psplit_solution_destroy(several);
  return code;
}

psplit_code psplit_i_place_replicas(psplit_planner *planner, const psplit_i_request *request,
                                    psplit_diag *diag) {
  const uint32_t n = planner->options.n_stages;
  psplit_code code = refuse(planner, diag);
  if (code != PSPLIT_OK) return code;
  replicas r = {.planner = planner,
                .request = request,
                .diag = diag,
                .n_devices = n,
                .room_bytes = psplit_devices_memory_bytes(planner->devices, 0)};
  psplit_i_arena_init(&r.arena, 0);
  r.names = PSPLIT_NEW(&planner->arena, const char *, n);
  r.first = psplit_i_arena_array(&r.arena, n, sizeof *r.first);
  r.n_of = psplit_i_arena_array(&r.arena, n, sizeof *r.n_of);
  code = r.names && r.first && r.n_of ? PSPLIT_OK : psplit_i_nomem(diag);
  for (uint32_t d = 0; d < n && code == PSPLIT_OK; d++) {
    const char *name = psplit_devices_name(planner->devices, d);
    r.names[d] = psplit_i_arena_strndup(&planner->arena, name, strlen(name));
    if (!r.names[d]) code = psplit_i_nomem(diag);
  }
  if (code == PSPLIT_OK) code = place_within_memory(&r);
  psplit_i_arena_fini(&r.arena);
  return code;
}
