/* Learning by cross-entropy to choose as a given split does. */
#include <stdlib.h>
#include <string.h>

#include "cancel.h"
#include "diag.h"
#include "lesson.h"

psplit_code psplit_i_imitate_labels(psplit_policy_learner *l, psplit_i_lesson *lessons,
                                    psplit_policy_step *step) {
  const psplit_i_objective objective = {.entropy_weight = 0};
  psplit_i_learned learned = {0};
  psplit_code code = PSPLIT_OK;
  memset(&l->gradient, 0, sizeof l->gradient);
  for (uint32_t g = 0; g < l->options.graphs; g++) {
    psplit_i_lesson *s = &lessons[g];
    psplit_i_encode(&l->policy->network, &s->view.graph, &s->decider->encoding);
    psplit_i_lesson_aim(l, s, g, true);
    PSPLIT_TRY(psplit_i_decide(s->decider, &l->policy->network, NULL, s->c->label, &s->rollout[0]));
    PSPLIT_TRY(psplit_i_lesson_learn(l, s, 1, objective, 1.0 / l->options.graphs, &learned));
  }
  step->loss = learned.loss;
  step->entropy = learned.entropy;
  step->valid = 1;
  step->epochs = 1;
  /* To a tenth in the end: with one rate the policy keeps wandering. */
  const double done = (double)l->step / l->options.warm_steps;
  code = psplit_i_adam_step(&l->adam, l->options.warm_rate * (1 - 0.9 * done), &l->gradient,
                            &l->policy->network);
out:
  return code;
}

/* The stages of items from those of nodes. */
static psplit_code items_of(const psplit_i_case *c, const uint32_t *stage, uint32_t n_nodes,
                            uint32_t *out, psplit_diag *diag) {
  const psplit_items *in = &c->items;
  bool apart = n_nodes != in->n_nodes;
  for (uint32_t v = 0; v < n_nodes && !apart; v++) out[in->item_of_node[v]] = stage[v];
  for (uint32_t v = 0; v < n_nodes && !apart; v++) apart = out[in->item_of_node[v]] != stage[v];
  return apart ? psplit_i_fail(diag, PSPLIT_USAGE,
                               "a split to imitate is one of the problem's %u nodes, and of its "
                               "items",
                               in->n_nodes)
               : PSPLIT_OK;
}

/* A step over one order; *out_same: the likeliest choices were the split already. */
static psplit_code imitate_one(psplit_policy_learner *l, const psplit_i_case *c, uint32_t order,
                               uint32_t at, const uint32_t *label, bool *out_same) {
  const psplit_i_random_stream stream = {l->options.seed, PSPLIT_I_RANDOM_POLICY, at, 4};
  const psplit_i_objective objective = {.weight = 1};
  const uint32_t n = c->items.n_items;
  psplit_i_learned learned = {0};
  psplit_i_arena arena;
  psplit_i_lesson s = {0};
  psplit_code code;
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(psplit_i_lesson_init(&s, c, order, 1, false, &arena));
  psplit_i_encode(&l->policy->network, &s.view.graph, &s.decider->encoding);
  PSPLIT_TRY(psplit_i_settle(s.decider, &l->policy->network, PSPLIT_I_TRIES, NULL));
  *out_same = memcmp(s.decider->stages.stage, label, n * sizeof *label) == 0;
  if (*out_same) goto out;
  /* Targets as settling tries them: from what looks possible up to the split's own and beyond. */
  PSPLIT_TRY(psplit_i_decide(s.decider, &l->policy->network, NULL, label, &s.rollout[0]));
  const double value = (double)s.rollout[0].value, least = s.decider->least;
  const double low = value < least ? value : least, high = 1.02 * (value < least ? least : value);
  psplit_i_outlook_aim(
    &s.decider->outlook,
    at % 4 == 0 ? least : low + (high - low) * psplit_i_random_uniform(&stream, 0));
  PSPLIT_TRY(psplit_i_decide(s.decider, &l->policy->network, NULL, label, &s.rollout[0]));
  memset(&l->gradient, 0, sizeof l->gradient);
  s.advantage[0] = 1;
  PSPLIT_TRY(psplit_i_lesson_learn(l, &s, 1, objective, 1, &learned));
  code = psplit_i_adam_step(&l->adam, l->options.warm_rate, &l->gradient, &l->policy->network);
out:
  if (s.rollout) psplit_i_rollout_fini(&s.rollout[0]);
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_policy_learner_imitate(psplit_policy_learner *l, uint32_t problem,
                                          const uint32_t *stage, uint32_t n_nodes,
                                          uint32_t max_steps, psplit_diag *diag,
                                          uint32_t *out_steps) {
  enum { N = PSPLIT_I_N_FIXED_ORDERS };
  const psplit_i_case *c = NULL;
  for (size_t i = 0; i < l->cases.n; i++)
    if (l->cases.items[i]->number == problem) c = l->cases.items[i];
  *out_steps = 0;
  if (!c) return PSPLIT_OK;
  uint32_t *label = calloc((size_t)c->items.n_items + 1, sizeof *label), n_same = 0;
  psplit_code code = label ? items_of(c, stage, n_nodes, label, diag) : PSPLIT_NOMEM;
  l->adam = (psplit_i_adam){0};
  for (uint32_t at = 0; code == PSPLIT_OK && n_same < N && *out_steps < max_steps; at++) {
    bool same = false;
    code = psplit_i_go_on(l->options.cancel, diag);
    if (code == PSPLIT_OK) code = imitate_one(l, c, at % N, at, label, &same);
    n_same = same ? n_same + 1 : 0;
    *out_steps += !same;
  }
  free(label);
  return psplit_i_learner_failed(code, diag);
}
