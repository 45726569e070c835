/* Learning from what choices are worth, by proximal policy optimization. The value of a state is
 * not estimated by a network: several rollouts of the same graph are drawn, and each is compared
 * with the mean of the others. Source: Schulman et al., "Proximal Policy Optimization Algorithms",
 * arXiv 1707.06347; the mean of the others: Kool, van Hoof, Welling, "Buy 4 REINFORCE samples, get
 * a baseline for free", 2019. */
#include <math.h>
#include <string.h>

#include "diag.h"
#include "lesson.h"

/* Draws rollouts of a graph; advantages are not yet divided by their spread. */
static psplit_code roll(psplit_policy_learner *l, psplit_i_lesson *s, uint32_t which,
                        psplit_diag *diag, psplit_policy_step *io_step) {
  const uint32_t n = l->options.rollouts;
  double mean = 0;
  psplit_i_encode(&l->policy->network, &s->view.graph, &s->decider->encoding);
  psplit_i_lesson_aim(l, s, which, false);
  for (uint32_t r = 0; r < n; r++) {
    const psplit_i_random_stream stream = {l->options.seed ^ 0x5eed, PSPLIT_I_RANDOM_POLICY,
                                           l->step, which * PSPLIT_I_MOST_ROLLOUTS + r};
    psplit_code code =
      psplit_i_decide(s->decider, &l->policy->network, &stream, NULL, &s->rollout[r]);
    double ratio = 1;
    if (code == PSPLIT_OK) code = psplit_i_lesson_ratio(l, s, r, &stream, diag, &ratio);
    if (code != PSPLIT_OK) return code;
    if (l->options.reward == PSPLIT_REWARD_SCHEDULE)
      io_step->micro_batches +=
        (double)s->scheduled[r].list.n_micro_batches[s->scheduled[r].chosen] / n /
        l->options.graphs;
    s->advantage[r] = -psplit_i_policy_log(ratio);
    mean += s->advantage[r] / n;
    io_step->ratio -= s->advantage[r] / n / l->options.graphs;
    io_step->valid += (double)s->rollout[r].valid / n / l->options.graphs;
  }
  /* Against the mean of the others. */
  for (uint32_t r = 0; r < n; r++) s->advantage[r] = (s->advantage[r] - mean) * n / (n - 1.0);
  return PSPLIT_OK;
}

static void scale_advantages(psplit_i_lesson *lessons, uint32_t n_lessons, uint32_t n_rollouts) {
  for (uint32_t g = 0; g < n_lessons; g++) {
    double square = 0;
    for (uint32_t r = 0; r < n_rollouts; r++)
      square += lessons[g].advantage[r] * lessons[g].advantage[r];
    /* By graph, as far as there is a spread: a thousandth more or less is worth learning late. */
    const double spread = sqrt(square / n_rollouts) + 0.003;
    for (uint32_t r = 0; r < n_rollouts; r++) lessons[g].advantage[r] /= spread;
  }
}

psplit_code psplit_i_reinforce(psplit_policy_learner *l, psplit_i_lesson *lessons, double done,
                               psplit_diag *diag, psplit_policy_step *step) {
  const psplit_policy_learn_options *o = &l->options;
  psplit_code code = PSPLIT_OK;
  const psplit_i_objective objective = {
    .entropy_weight = o->entropy + (o->last_entropy - o->entropy) * done, .clip = o->clip};
  for (uint32_t g = 0; g < o->graphs; g++) PSPLIT_TRY(roll(l, &lessons[g], g, diag, step));
  scale_advantages(lessons, o->graphs, o->rollouts);
  for (uint32_t epoch = 0; epoch < o->epochs; epoch++) {
    psplit_i_learned learned = {0};
    memset(&l->gradient, 0, sizeof l->gradient);
    for (uint32_t g = 0; g < o->graphs; g++)
      PSPLIT_TRY(psplit_i_lesson_learn(l, &lessons[g], o->rollouts, objective,
                                       1.0 / o->graphs / o->rollouts, &learned));
    step->loss = learned.loss;
    step->entropy = learned.entropy;
    step->kl = learned.kl;
    if (learned.kl > o->kl_stop) break;
    step->epochs++;
    PSPLIT_TRY(psplit_i_adam_step(&l->adam, o->rate + (o->last_rate - o->rate) * done, &l->gradient,
                                  &l->policy->network));
  }
  step->ratio = psplit_i_policy_exp(step->ratio);
out:
  return code;
}
