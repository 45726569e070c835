/* Placing all items of a problem by the network, and learning from it. */
#ifndef PSPLIT_POLICY_DECISIONS_H
#define PSPLIT_POLICY_DECISIONS_H

#include "counter_random.h"
#include "stages.h"

/* A way of placing all items, in the order of decisions: what learning needs of it. */
typedef struct psplit_i_rollout {
  uint32_t n;            /* items */
  size_t *off;           /* [n + 1] first candidate of a decision */
  size_t most;           /* room for candidates */
  psplit_i_real *x;      /* [most * CANDIDATE_FEATURES] */
  uint32_t *chosen;      /* [n] of its candidates */
  psplit_i_real *chance; /* [n] with which it was chosen */
  bool valid;            /* every choice was within memory */
  int64_t value;         /* the largest load in the end */
  double entropy;        /* mean over decisions */
} psplit_i_rollout;

/* Everything that placing needs, for one problem; used again and again. */
typedef struct psplit_i_decider {
  const psplit_i_view *view;
  psplit_i_encoding encoding;
  psplit_i_outlook outlook;
  psplit_i_stages stages;
  double least; /* the target at which the outlook is good: where settling begins */
  bool valid;   /* of the last decisions: every choice was within memory */
  psplit_i_candidate candidate[PSPLIT_I_MOST_CANDIDATES];
  psplit_i_real x[PSPLIT_I_MOST_CANDIDATES * PSPLIT_I_CANDIDATE_FEATURES];
  psplit_i_real hidden[PSPLIT_I_MOST_CANDIDATES * PSPLIT_I_SCORE];
} psplit_i_decider;

/* Its outlook is aimed at the least target that looks possible. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_decider_init(psplit_i_decider *decider,
                                                  const psplit_i_view *view, psplit_i_arena *arena);

/* Places all items; the encoding must be of the same network. `stream` NULL: always the candidate
 * of the largest score, the first of equals; else drawn, number by number. label[n_items]: those
 * stages instead, as far as they are candidates (else the one nearest in front); or NULL. `keep`
 * (may be NULL) is filled in, and grows. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_decide(psplit_i_decider *decider,
                                            const psplit_i_policy_network *network,
                                            const psplit_i_random_stream *stream,
                                            const uint32_t *label, psplit_i_rollout *keep);

enum { PSPLIT_I_TRIES = 4 };
/* Places all items by the likeliest choices for several targets, at most `n_tries` (>= 1), and
 * leaves the best stages and their target. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_settle(psplit_i_decider *decider,
                                            const psplit_i_policy_network *network,
                                            uint32_t n_tries, psplit_i_rollout *keep);

void psplit_i_rollout_fini(psplit_i_rollout *rollout);

/* Scratch of learning. */
typedef struct psplit_i_learner {
  size_t most_items, most_candidates;
  psplit_i_real *memory, *gates, *hidden, *probability;
} psplit_i_learner;
void psplit_i_learner_fini(psplit_i_learner *learner);

/* How much a decision's chance weighs: gradients of
 *   -weight * surrogate(chance) - entropy_weight * entropy, the mean over decisions
 * are added, where surrogate is log chance (clip 0: cross-entropy), or PPO's clipped ratio to the
 * chance that the rollout says. */
typedef struct psplit_i_objective {
  double weight, entropy_weight, clip;
} psplit_i_objective;

/* What learning from a rollout looked at. */
typedef struct psplit_i_learned {
  double loss, entropy, kl; /* means over decisions; KL of the old chances from the new */
} psplit_i_learned;

/* Of one decision: probabilities become gradients of `share` times the loss by logits, which is
 * returned without that share; `old` is the chance with which it was chosen, for clipped ratios. */
double psplit_i_objective_back(const psplit_i_objective *objective, uint32_t chosen, double old,
                               psplit_i_real *io_probability, uint32_t n, double share,
                               psplit_i_learned *out);

/* Where gradients are added: to `encoding` what psplit_i_encode_back takes from there on, to
 * `network` what does not pass through the encoder. */
typedef struct psplit_i_gradients {
  psplit_i_encoding_gradient encoding;
  psplit_i_policy_network *network;
} psplit_i_gradients;

/* Adds the gradient of one rollout. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_learn(const psplit_i_policy_network *network,
                                           const psplit_i_decider *decider,
                                           const psplit_i_rollout *rollout,
                                           const psplit_i_objective *objective,
                                           psplit_i_learner *learner, psplit_i_gradients *gradients,
                                           psplit_i_learned *out);

#endif
