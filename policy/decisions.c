#include "decisions.h"

#include <stdlib.h>
#include <string.h>

enum { C = PSPLIT_I_CANDIDATE_FEATURES, M = PSPLIT_I_MEMORY, S = PSPLIT_I_SCORE };

psplit_code psplit_i_decider_init(psplit_i_decider *d, const psplit_i_view *view,
                                  psplit_i_arena *arena) {
  d->view = view;
  if (!psplit_i_encoding_init(&d->encoding, view->graph.n, arena)) return PSPLIT_NOMEM;
  const psplit_code code = psplit_i_outlook_init(&d->outlook, view, arena);
  if (code != PSPLIT_OK) return code;
  d->least = psplit_i_outlook_least(&d->outlook);
  return psplit_i_stages_init(&d->stages, &d->outlook, arena);
}

void psplit_i_rollout_fini(psplit_i_rollout *r) {
  free(r->off);
  free(r->x);
  free(r->chosen);
  free(r->chance);
  *r = (psplit_i_rollout){0};
}

static bool reserve(psplit_i_rollout *r, uint32_t n) {
  if (r->off) return true;
  r->n = n;
  r->off = calloc((size_t)n + 1, sizeof *r->off);
  r->chosen = calloc((size_t)n + 1, sizeof *r->chosen);
  r->chance = calloc((size_t)n + 1, sizeof *r->chance);
  return r->off && r->chosen && r->chance;
}

static bool note(psplit_i_rollout *r, uint32_t at, const psplit_i_real *x, uint32_t n,
                 uint32_t chosen, psplit_i_real chance) {
  const size_t need = r->off[at] + n;
  if (need > r->most) {
    const size_t most = 2 * need + 64;
    psplit_i_real *grown = realloc(r->x, most * C * sizeof *grown);
    if (!grown) return false;
    r->x = grown;
    r->most = most;
  }
  memcpy(r->x + r->off[at] * C, x, (size_t)n * C * sizeof *x);
  r->off[at + 1] = need;
  r->chosen[at] = chosen;
  r->chance[at] = chance;
  return true;
}

/* The candidate on the stage that a label says; else the one with the largest stage in front of it,
 * else the first. */
static uint32_t labelled(const psplit_i_decider *d, uint32_t n, uint32_t stage) {
  uint32_t best = 0, found = 0;
  for (uint32_t k = 0; k < n; k++) {
    const psplit_i_candidate *c = &d->candidate[k];
    if (c->stage == stage) return k;
    if (c->stage <= stage && c->stage + 1 > found) best = k, found = c->stage + 1;
  }
  return best;
}

static uint32_t drawn(const psplit_i_real *probability, uint32_t n, double at) {
  double sum = 0;
  for (uint32_t k = 0; k + 1 < n; k++) {
    sum += (double)probability[k];
    if (at < sum) return k;
  }
  return n - 1;
}

psplit_code psplit_i_decide(psplit_i_decider *d, const psplit_i_policy_network *network,
                            const psplit_i_random_stream *stream, const uint32_t *label,
                            psplit_i_rollout *keep) {
  const psplit_i_view *v = d->view;
  const uint32_t n_items = v->graph.n;
  psplit_i_real memory[M], after[M], gates[4 * M], logit[PSPLIT_I_MOST_CANDIDATES];
  if (keep && !reserve(keep, n_items)) return PSPLIT_NOMEM;
  psplit_i_stages_clear(&d->stages);
  memcpy(memory, d->encoding.start, sizeof memory);
  double entropy = 0;
  bool valid = true;
  for (uint32_t at = 0; at < n_items; at++) {
    const uint32_t i = v->order[at];
    const uint32_t n = psplit_i_stages_candidates(&d->stages, i, d->candidate, d->x);
    uint32_t chosen = 0;
    psplit_i_real chance = 1;
    if (n > 1) {
      const psplit_i_decision decision = {memory, d->x, n, d->hidden};
      psplit_i_score(network, &d->encoding, i, &decision, logit);
      for (uint32_t k = 1; k < n; k++)
        if (logit[k] > logit[chosen]) chosen = k;
      if (stream || keep) entropy += (double)psplit_i_softmax(logit, n);
      if (label) chosen = labelled(d, n, label[i]);
      if (stream) chosen = drawn(logit, n, psplit_i_random_uniform(stream, at));
      if (stream || keep) chance = logit[chosen];
    }
    valid &= d->candidate[chosen].fits;
    if (keep && !note(keep, at, d->x, n, chosen, chance)) return PSPLIT_NOMEM;
    const psplit_i_gru_step step = {d->x + (size_t)chosen * C, memory, gates};
    psplit_i_remember(network, &d->encoding, i, &step, after);
    memcpy(memory, after, sizeof memory);
    psplit_i_stages_place(&d->stages, i, &d->candidate[chosen]);
  }
  d->valid = valid;
  if (keep) {
    keep->valid = valid;
    keep->value = d->stages.most;
    keep->entropy = n_items ? entropy / n_items : 0;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_settle(psplit_i_decider *d, const psplit_i_policy_network *network,
                            uint32_t n_tries, psplit_i_rollout *keep) {
  double target = d->least, low = d->view->ideal, best = 0, best_target = 0, at = 0;
  bool best_valid = false;
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = 0; k < n_tries && code == PSPLIT_OK; k++) {
    psplit_i_outlook_aim(&d->outlook, at = target);
    code = psplit_i_decide(d, network, NULL, NULL, keep);
    const double value = (double)d->stages.most;
    if (k == 0 || d->valid > best_valid || (d->valid == best_valid && value < best)) {
      best = value;
      best_target = target;
      best_valid = d->valid;
    }
    /* A target that is missed was too low, and one above what is known leads nowhere. */
    if (value > target && target > low) low = target;
    if (best <= low * 1.002) break;
    target = low + (best - low) / 2;
  }
  if (code == PSPLIT_OK && at != best_target) {
    psplit_i_outlook_aim(&d->outlook, best_target);
    code = psplit_i_decide(d, network, NULL, NULL, keep);
  }
  return code;
}

/* --- learning --- */

void psplit_i_learner_fini(psplit_i_learner *l) {
  free(l->memory);
  free(l->gates);
  free(l->hidden);
  free(l->probability);
  *l = (psplit_i_learner){0};
}

static bool room(psplit_i_learner *l, size_t n_items, size_t n_candidates) {
  if (n_items > l->most_items) {
    free(l->memory);
    free(l->gates);
    l->most_items = 0;
    l->memory = malloc((n_items + 1) * M * sizeof *l->memory);
    l->gates = malloc(n_items * 4 * M * sizeof *l->gates);
    if (!l->memory || !l->gates) return false;
    l->most_items = n_items;
  }
  if (n_candidates > l->most_candidates) {
    free(l->hidden);
    free(l->probability);
    l->most_candidates = 0;
    l->hidden = malloc(n_candidates * S * sizeof *l->hidden);
    l->probability = malloc(n_candidates * sizeof *l->probability);
    if (!l->hidden || !l->probability) return false;
    l->most_candidates = n_candidates;
  }
  return true;
}

double psplit_i_objective_back(const psplit_i_objective *o, uint32_t chosen, double old,
                               psplit_i_real *p, uint32_t n, double share, psplit_i_learned *out) {
  const double now = (double)p[chosen] > 1e-30 ? (double)p[chosen] : 1e-30;
  const double log_now = psplit_i_policy_log(now);
  double slope = o->weight, loss = -o->weight * log_now, entropy = 0;
  old = old > 1e-30 ? old : 1e-30;
  if (o->clip > 0) {
    const double ratio = now / old;
    const bool clipped = o->weight > 0 ? ratio > 1 + o->clip : ratio < 1 - o->clip;
    slope = clipped ? 0 : o->weight * ratio;
    loss = -o->weight * (!clipped ? ratio : o->weight > 0 ? 1 + o->clip : 1 - o->clip);
    /* An estimate that is never negative: Schulman, "Approximating KL divergence", 2020. */
    out->kl += share * (ratio - 1 - (log_now - psplit_i_policy_log(old)));
  }
  for (uint32_t k = 0; k < n; k++)
    if (p[k] > 0) entropy -= (double)p[k] * psplit_i_policy_log((double)p[k] + 1e-30);
  out->entropy += share * entropy;
  for (uint32_t k = 0; k < n; k++) {
    const double q = (double)p[k];
    /* d entropy / d logit = -p (log p + entropy) */
    const double d_entropy = -q * (psplit_i_policy_log(q + 1e-30) + entropy);
    p[k] = (psplit_i_real)(share * (slope * (q - (k == chosen)) - o->entropy_weight * d_entropy));
  }
  return loss - o->entropy_weight * entropy;
}

psplit_code psplit_i_learn(const psplit_i_policy_network *network, const psplit_i_decider *d,
                           const psplit_i_rollout *r, const psplit_i_objective *objective,
                           psplit_i_learner *l, psplit_i_gradients *d_all, psplit_i_learned *out) {
  const psplit_i_view *v = d->view;
  const uint32_t n_items = r->n;
  if (!room(l, n_items, r->off[n_items])) return PSPLIT_NOMEM;
  const double share = 1.0 / n_items;
  memcpy(l->memory, d->encoding.start, M * sizeof *l->memory);
  for (uint32_t at = 0; at < n_items; at++) {
    const uint32_t i = v->order[at], n = (uint32_t)(r->off[at + 1] - r->off[at]);
    const psplit_i_real *x = r->x + r->off[at] * C, *memory = l->memory + (size_t)at * M;
    psplit_i_real *p = l->probability + r->off[at];
    if (n > 1) {
      const psplit_i_decision decision = {memory, x, n, l->hidden + r->off[at] * S};
      psplit_i_score(network, &d->encoding, i, &decision, p);
      psplit_i_softmax(p, n);
      out->loss += share * psplit_i_objective_back(objective, r->chosen[at], (double)r->chance[at],
                                                   p, n, share, out);
    }
    const psplit_i_gru_step step = {x + (size_t)r->chosen[at] * C, memory,
                                    l->gates + (size_t)at * 4 * M};
    psplit_i_remember(network, &d->encoding, i, &step, l->memory + (size_t)(at + 1) * M);
  }
  psplit_i_real d_memory[M] = {0}, d_before[M];
  for (uint32_t at = n_items; at-- > 0;) {
    const uint32_t i = v->order[at], n = (uint32_t)(r->off[at + 1] - r->off[at]);
    const psplit_i_real *x = r->x + r->off[at] * C, *memory = l->memory + (size_t)at * M;
    const psplit_i_gru_step step = {x + (size_t)r->chosen[at] * C, memory,
                                    l->gates + (size_t)at * 4 * M};
    psplit_i_remember_back(network, &step, d_memory, d_before,
                           d_all->encoding.gru + (size_t)i * 3 * M, d_all->network);
    const psplit_i_decision decision = {memory, x, n, l->hidden + r->off[at] * S};
    if (n > 1)
      psplit_i_score_back(network, &decision, l->probability + r->off[at], d_before,
                          d_all->encoding.score + (size_t)i * S, d_all->network);
    memcpy(d_memory, d_before, sizeof d_memory);
  }
  for (uint32_t j = 0; j < M; j++) d_all->encoding.start[j] += d_memory[j];
  return PSPLIT_OK;
}
