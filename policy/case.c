#include "case.h"

#include <string.h>

#include "diag.h"

/* `n` elements of `bytes` each, copied; *io_failed where memory is out. */
static const void *copied(psplit_i_arena *arena, const void *from, size_t n, size_t bytes,
                          bool *io_failed) {
  void *to = from ? psplit_i_arena_array(arena, n ? n : 1, bytes) : NULL;
  *io_failed |= from && !to;
  if (to && n) memcpy(to, from, n * bytes);
  return to;
}

#define COPY(field, n) out->field = copied(&c->arena, in->field, (n), sizeof *in->field, &failed)

/* As begin() of a proposer: it keeps what it is shown, and proposes nothing. */
static psplit_code capture(void *user, const psplit_items *in, psplit_diag *diag) {
  psplit_i_case *c = user;
  psplit_items *out = &c->items;
  bool failed = false;
  if (in->n_items > PSPLIT_I_MOST_CASE_ITEMS)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "graphs to learn from have at most %d items",
                         (int)PSPLIT_I_MOST_CASE_ITEMS);
  if (out->n_items) return PSPLIT_OK; /* later runs of the solver reduce more */
  *out = *in;
  const size_t n = in->n_items, types = in->n_types, nets = in->n_nets;
  COPY(item_of_node, in->n_nodes);
  COPY(time_ns, n * types);
  COPY(weight_bytes, n);
  COPY(activation_bytes, n);
  COPY(pin, n);
  COPY(pred_off, n + 1);
  COPY(pred, in->pred_off[n]);
  COPY(succ_off, n + 1);
  COPY(succ, in->succ_off[n]);
  COPY(net_off, nets + 1);
  COPY(net_pin, in->net_off[nets]);
  COPY(send_ns, nets * types);
  COPY(recv_ns, nets * types);
  COPY(inc_off, n + 1);
  COPY(inc, in->inc_off[n]);
  COPY(group_bytes, in->n_groups);
  COPY(own_off, n + 1);
  COPY(own, in->own_off[n]);
  COPY(type_count, types);
  COPY(type_memory, types);
  COPY(stage_type, in->n_stages);
  return failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}

static psplit_code no_stages(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                             uint32_t *out_stage, uint32_t *out_type, psplit_diag *diag) {
  (void)user, (void)seed, (void)attempt, (void)out_type, (void)diag;
  memset(out_stage, 0xff, items->n_items * sizeof *out_stage);
  return PSPLIT_OK;
}

static psplit_code no_keys(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                           uint32_t *out_key, psplit_diag *diag) {
  (void)user, (void)seed, (void)attempt, (void)diag;
  memset(out_key, 0, items->n_items * sizeof *out_key);
  return PSPLIT_OK;
}

/* An item's stage is that of its heaviest node: ties of the best split may divide items. */
static psplit_code label(psplit_i_case *c, const psplit_problem *problem,
                         const psplit_solution *best) {
  const psplit_items *in = &c->items;
  if (in->n_types > 1 && !in->stage_type) return PSPLIT_OK; /* its devices are not known here */
  c->label = PSPLIT_NEW(&c->arena, uint32_t, in->n_items);
  int64_t *heaviest = PSPLIT_NEW(&c->arena, int64_t, in->n_items);
  if (!c->label || !heaviest) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < in->n_items; i++) heaviest[i] = -1;
  for (uint32_t v = 0; v < in->n_nodes; v++) {
    const uint32_t i = in->item_of_node[v];
    const int64_t ns = problem->time_ns[(size_t)v * problem->n_classes];
    const int64_t weight = ns < 0 ? 0 : ns;
    if (weight <= heaviest[i]) continue;
    heaviest[i] = weight;
    c->label[i] = best->stage[v];
  }
  return PSPLIT_OK;
}

/* What schedules need of the problem's best split. */
static psplit_code pieces(psplit_i_case *c, const psplit_problem *problem,
                          const psplit_solution *best) {
  const uint32_t n = best->n_stages;
  c->forward_ns = PSPLIT_NEW(&c->arena, int64_t, n);
  c->backward_ns = PSPLIT_NEW(&c->arena, int64_t, n);
  c->piece_bytes = PSPLIT_NEW(&c->arena, uint64_t, n);
  if (!c->forward_ns || !c->backward_ns || !c->piece_bytes) return PSPLIT_NOMEM;
  const bool trains =
    psplit_solution_pieces(problem, best, 1, c->forward_ns, c->backward_ns, c->piece_bytes);
  for (uint32_t s = 0; s < n; s++) {
    if (best->stages[s].n_nodes == 0) continue;
    c->forward_ns[c->n_pieces] = c->forward_ns[s];
    c->backward_ns[c->n_pieces] = c->backward_ns[s];
    c->piece_bytes[c->n_pieces++] = c->piece_bytes[s];
  }
  if (!trains) return PSPLIT_OK;
  double *all = PSPLIT_NEW(&c->arena, double, c->items.n_items);
  c->backward_share = PSPLIT_NEW(&c->arena, double, c->items.n_items);
  if (!all || !c->backward_share) return PSPLIT_NOMEM;
  for (uint32_t v = 0; v < problem->n_nodes; v++) {
    const int64_t ns = problem->time_ns[(size_t)v * problem->n_classes];
    const uint32_t i = c->items.item_of_node[v];
    all[i] += ns > 0 ? (double)ns : 0;
    if (problem->node_flags && (problem->node_flags[v] & PSPLIT_NODE_BACKWARD))
      c->backward_share[i] += ns > 0 ? (double)ns : 0;
  }
  for (uint32_t i = 0; i < c->items.n_items; i++) c->backward_share[i] /= all[i] > 0 ? all[i] : 1;
  return PSPLIT_OK;
}

psplit_code psplit_i_case_init(psplit_i_case *c, const psplit_problem *problem, double seconds,
                               const volatile int *cancel, psplit_diag *diag) {
  psplit_partition_options options;
  psplit_solution *solution = NULL;
  *c = (psplit_i_case){0};
  psplit_i_arena_init(&c->arena, 0);
  const psplit_proposer proposer = {c, 1, capture, no_stages, no_keys};
  psplit_partition_options_init(&options);
  options.solver = "drlpp";
  options.proposer = &proposer;
  options.cancel = cancel;
  options.n_threads = 1;
  options.time_limit_s = seconds;
  psplit_code code = psplit_partition_solve(problem, &options, diag, &solution);
  psplit_solution_destroy(solution);
  solution = NULL;
  options.solver = "auto";
  options.proposer = NULL;
  if (code == PSPLIT_OK) code = psplit_partition_solve(problem, &options, diag, &solution);
  if (code == PSPLIT_OK) {
    c->bound = solution->lower_bound_ns;
    c->value = solution->objective_ns;
    code = label(c, problem, solution);
    if (code == PSPLIT_OK) code = pieces(c, problem, solution);
    if (code == PSPLIT_NOMEM) code = psplit_i_nomem(diag);
  }
  psplit_solution_destroy(solution);
  return code;
}

void psplit_i_case_fini(psplit_i_case *c) { psplit_i_arena_fini(&c->arena); }
