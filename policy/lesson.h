/* A lesson is one graph of a step of learning, with the rollouts that are drawn for it. */
#ifndef PSPLIT_POLICY_LESSON_H
#define PSPLIT_POLICY_LESSON_H

#include "learner.h"
#include "scheduling.h"

enum { PSPLIT_I_MOST_ROLLOUTS = 256 };

typedef struct psplit_i_lesson {
  const psplit_i_case *c;
  psplit_i_view view;
  psplit_i_decider *decider;
  psplit_i_rollout *rollout; /* [n_rollouts]; the caller ends each with psplit_i_rollout_fini */
  double *advantage;         /* [n_rollouts] */
  /* [n_rollouts] if schedules are part of the reward; otherwise one that is not used */
  psplit_i_scheduled *scheduled;
  psplit_i_encoding_gradient d_encoding;
  psplit_i_real *scratch;
} psplit_i_lesson;

/* Prepares a lesson on the items of `c` in a fixed order, 0..PSPLIT_I_N_FIXED_ORDERS-1, with its
 * memory from the arena. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_lesson_init(psplit_i_lesson *lesson, const psplit_i_case *c,
                                                 uint32_t order, uint32_t n_rollouts,
                                                 bool schedules, psplit_i_arena *arena);

/* Draws the target that the decisions aim at: of graph `which` of the learner's step, between the
 * lower bound and a value that is easy to reach, so that the policy also learns what to do where a
 * target is too low. With `warm`, slightly above the value of the best known split. */
void psplit_i_lesson_aim(const psplit_policy_learner *learner, psplit_i_lesson *lesson,
                         uint32_t which, bool warm);

/* Adds the gradient of all rollouts of a lesson, each with its weight. */
PSPLIT_MUST_USE psplit_code psplit_i_lesson_learn(psplit_policy_learner *learner,
                                                  psplit_i_lesson *lesson, uint32_t n_rollouts,
                                                  psplit_i_objective objective, double share,
                                                  psplit_i_learned *out);

/* The value of a rollout over the lower bound, as the learner's kind of reward measures it. The
 * schedule of a reward that includes one is drawn from `stream`, or is the likeliest if `stream` is
 * NULL. Errors: those of the measuring function, LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_lesson_ratio(const psplit_policy_learner *learner,
                                                  const psplit_i_lesson *lesson, uint32_t which,
                                                  const psplit_i_random_stream *stream,
                                                  psplit_diag *diag, double *out);

/* A step of cross-entropy on the best known split of each graph (imitate.c). */
PSPLIT_MUST_USE psplit_code psplit_i_imitate_labels(psplit_policy_learner *learner,
                                                    psplit_i_lesson *lessons,
                                                    psplit_policy_step *step);

/* A step of PPO (reinforce.c); `done` is the fraction of such steps that came before. */
PSPLIT_MUST_USE psplit_code psplit_i_reinforce(psplit_policy_learner *learner,
                                               psplit_i_lesson *lessons, double done,
                                               psplit_diag *diag, psplit_policy_step *step);

/* Reports failures of the functions above that have no message yet. Returns `code`. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_failed(psplit_code code, psplit_diag *diag);

#endif
