/* Ties: of the splits with the least bottleneck the one that sends least, and of those the one
 * whose stages, read by node id, come first. The exact program finds it, over all splits of the
 * problem as it is: what the kernel of the search has lost counts here. The less a split is known
 * to send, the more the program leaves out: small moves come first. */
#include <string.h>

#include "automaton.h"
#include "budget.h"
#include "exact.h"
#include "instance.h"
#include "result.h"
#include "solver_state.h"
#include "tie_breaking.h"
#include "tie_descent.h"

enum {
  TIE_STEPS = 1 << 20,   /* of the exact program */
  LOWER_STEPS = 1 << 22, /* of small moves before it */
  MOST_TOGETHER = 64,    /* items in one of them */
  MOST_MOVES = 1 << 20,  /* of a machine that numbers stages freely */
};

/* Does a stage number mean anything but an order? */
static bool numbers_matter(const psplit_attempt *a) {
  uint32_t n_kinds = 0;
  for (uint32_t t = 0; t < a->machine.n_types; t++) n_kinds += a->machine.count[t] > 0;
  return a->core.has_pins || a->core.stash || (n_kinds > 1 && !a->machine.any_order);
}

/* Can the exact program see every split, and every number a stage can have? */
static bool is_within_reach(const psplit_attempt *a) {
  const psplit_machine *m = &a->machine;
  if (a->core.n > PSPLIT_I_LARGE || !psplit_i_exact_numbers(&a->core)) return false;
  if (!numbers_matter(a) || m->all_used) return true;
  if (m->any_order && !m->stage_radix) return false;
  return (uint64_t)m->n_states * m->n_stages * m->n_types <= MOST_MOVES;
}

/* Items by their smallest node, and the place of each. */
typedef struct sequence {
  uint32_t *items, *place; /* [n] */
} sequence;

static bool order_items(psplit_attempt *a, sequence *out) {
  const psplit_core *core = &a->core;
  out->items = PSPLIT_NEW(&a->arena, uint32_t, core->n);
  out->place = PSPLIT_NEW(&a->arena, uint32_t, core->n);
  if (!out->items || !out->place) return false;
  memset(out->place, 0xff, core->n * sizeof *out->place);
  for (uint32_t v = 0, n = 0; v < core->problem->n_nodes; v++) {
    const uint32_t item = core->item_of_node[v];
    if (out->place[item] != PSPLIT_NONE) continue;
    out->place[item] = n;
    out->items[n++] = item;
  }
  return true;
}

/* An attempt at the job's problem that holds the answer, reduced as far as the first split allows.
 */
static psplit_code open_attempt(psplit_attempt *a) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_attempt_init(a));
  const uint32_t n_nodes = a->job->problem->n_nodes;
  uint32_t *parent = psplit_i_arena_array(&a->arena, n_nodes, sizeof *parent);
  PSPLIT_TRY(parent ? PSPLIT_OK : psplit_i_nomem(a->job->diag));
  for (uint32_t v = 0; v < n_nodes; v++) parent[v] = v;
  psplit_i_answer_give(a->answer, &a->core, &a->machine, &a->best, a->scratch);
  PSPLIT_TRY(psplit_i_attempt_reduce(a, a->best.value, true, parent));
out:
  return code;
}

psplit_code psplit_i_ties_lower(psplit_attempt *a, bool keep_full, uint32_t most_together,
                                uint64_t max_steps) {
  sequence order;
  if (!order_items(a, &order)) return psplit_i_nomem(a->job->diag);
  const psplit_lower_options options = {order.items, most_together, keep_full, max_steps};
  if (psplit_i_lower(&a->core, &a->machine, &options, &a->best) != PSPLIT_OK)
    return psplit_i_nomem(a->job->diag);
  psplit_i_answer_take(a->answer, &a->core, &a->best);
  return PSPLIT_OK;
}

static psplit_code prove(psplit_attempt *a, bool *out_proved) {
  psplit_verdict verdict;
  psplit_code code;
  sequence order;
  PSPLIT_TRY(psplit_i_attempt_windows(a));
  if (numbers_matter(a) && !a->machine.all_used)
    PSPLIT_TRY(psplit_i_machine_number_freely(&a->machine));
  PSPLIT_TRY(order_items(a, &order) ? PSPLIT_OK : PSPLIT_NOMEM);
  const psplit_first first = {order.place, !numbers_matter(a), a->best.comm};
  PSPLIT_TRY(psplit_i_attempt_least_comm(a, &first, TIE_STEPS, &verdict));
  *out_proved = verdict == PSPLIT_I_YES;
  if (*out_proved) psplit_i_answer_take(a->answer, &a->core, &a->trial);
out:
  return code == PSPLIT_NOMEM ? psplit_i_nomem(a->job->diag) : code;
}

psplit_code psplit_i_ties_break(const psplit_job *job, psplit_answer *answer) {
  psplit_attempt a = {.job = job, .answer = answer};
  psplit_code code = PSPLIT_OK;
  if (job->problem->n_nodes > PSPLIT_I_TIE_NODES || job->problem->next_hop ||
      job->options->max_replicas > 1 || psplit_i_expired(&job->deadline))
    return code;
  PSPLIT_TRY(open_attempt(&a));
  PSPLIT_TRY(psplit_i_ties_lower(&a, a.machine.all_used, MOST_TOGETHER, LOWER_STEPS));
  if (answer->bound >= a.best.value && a.most >= TIE_STEPS && is_within_reach(&a))
    PSPLIT_TRY(prove(&a, &answer->ties_proved));
out:
  psplit_i_attempt_fini(&a);
  return code;
}
