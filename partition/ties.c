/* Ties: of the splits with the least bottleneck the one that sends least, and of those the one
 * whose stages, read by node id, come first. The exact program finds it, over all splits of the
 * problem as it is: what reductions lose does not count here. The less a split is known to send,
 * the more the program leaves out; so where a short run does not do, the kernel is asked for a
 * split that sends less. */
#include <string.h>

#include "attempt.h"

enum {
  SHORT_STEPS = 1 << 18, /* of the first run */
  TIE_STEPS = 1 << 20,   /* of each of the others */
  MOST_MOVES = 1 << 20   /* of a machine that numbers stages freely */
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
  if (a->core.n > PSPLIT_I_LARGE || m->replicated || a->job->problem->next_hop) return false;
  if (!psplit_i_exact_numbers(&a->core)) return false;
  if (!numbers_matter(a) || m->all_used) return true;
  if (m->any_order && !m->stage_radix) return false;
  return (uint64_t)m->n_states * m->n_stages * m->n_types <= MOST_MOVES;
}

/* place[n]: items by their smallest node. */
static uint32_t *order_items(psplit_attempt *a) {
  const psplit_core *core = &a->core;
  uint32_t *place = PSPLIT_NEW(&a->arena, uint32_t, core->n);
  if (!place) return NULL;
  memset(place, 0xff, core->n * sizeof *place);
  for (uint32_t v = 0, n = 0; v < core->problem->n_nodes; v++)
    if (place[core->item_of_node[v]] == PSPLIT_NONE) place[core->item_of_node[v]] = n++;
  return place;
}

/* An attempt at the job's problem that holds the answer, and its reductions. */
static psplit_code open_attempt(psplit_attempt *a, bool keep_all) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_attempt_init(a));
  const uint32_t n_nodes = a->job->problem->n_nodes;
  uint32_t *parent = psplit_i_arena_array(&a->arena, n_nodes, sizeof *parent);
  PSPLIT_TRY(parent ? PSPLIT_OK : psplit_i_nomem(a->job->diag));
  for (uint32_t v = 0; v < n_nodes; v++) parent[v] = v;
  psplit_i_answer_give(a->answer, &a->core, &a->machine, &a->best, a->scratch);
  PSPLIT_TRY(psplit_i_attempt_reduce_keeping_all(a, a->best.value, parent));
  if (!keep_all) PSPLIT_TRY(psplit_i_attempt_reduce(a, PSPLIT_I_INF, parent));
out:
  return code;
}

/* A split of the kernel that sends less than the answer, if it can be had. */
static psplit_code send_less(const psplit_job *job, psplit_answer *answer, uint64_t budget) {
  psplit_attempt a = {.job = job, .answer = answer};
  psplit_verdict verdict;
  psplit_code code;
  PSPLIT_TRY(open_attempt(&a, false));
  PSPLIT_TRY(psplit_i_attempt_windows(&a));
  PSPLIT_TRY(psplit_i_attempt_least_comm(&a, NULL, budget, &verdict));
out:
  psplit_i_attempt_fini(&a);
  return code;
}

static psplit_code find_first(psplit_attempt *a, uint32_t *place, uint64_t budget,
                              psplit_verdict *out_verdict) {
  const psplit_first first = {place, !numbers_matter(a), a->best.comm};
  const psplit_code code = psplit_i_attempt_least_comm(a, &first, budget, out_verdict);
  if (code == PSPLIT_OK && *out_verdict == PSPLIT_I_YES)
    psplit_i_answer_take(a->answer, &a->core, &a->trial);
  return code;
}

static uint64_t at_most(const psplit_attempt *a, uint64_t steps) {
  return steps < a->most ? steps : a->most;
}

static psplit_code prove(psplit_attempt *a, bool *out_proved) {
  const psplit_job *job = a->job;
  psplit_verdict verdict;
  psplit_code code;
  PSPLIT_TRY(psplit_i_attempt_windows(a));
  if (numbers_matter(a) && !a->machine.all_used)
    PSPLIT_TRY(psplit_i_machine_number_freely(&a->machine));
  uint32_t *place = order_items(a);
  PSPLIT_TRY(place ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(find_first(a, place, at_most(a, SHORT_STEPS), &verdict));
  if (verdict == PSPLIT_I_UNKNOWN && !psplit_i_expired(&job->deadline)) {
    PSPLIT_TRY(send_less(job, a->answer, at_most(a, TIE_STEPS)));
    psplit_i_answer_give(a->answer, &a->core, &a->machine, &a->best, a->scratch);
    PSPLIT_TRY(find_first(a, place, at_most(a, TIE_STEPS), &verdict));
  }
  *out_proved = verdict == PSPLIT_I_YES;
out:
  return code == PSPLIT_NOMEM ? psplit_i_nomem(job->diag) : code;
}

psplit_code psplit_i_ties_break(const psplit_job *job, psplit_answer *answer) {
  psplit_attempt a = {.job = job, .answer = answer};
  psplit_code code;
  PSPLIT_TRY(open_attempt(&a, true));
  if (answer->bound >= a.best.value && is_within_reach(&a) && !psplit_i_expired(&job->deadline))
    PSPLIT_TRY(prove(&a, &answer->ties_proved));
out:
  psplit_i_attempt_fini(&a);
  return code;
}
