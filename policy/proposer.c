/* A policy as a proposer: views and encodings are made once for all attempts on the same items. The
 * first attempts are the likeliest choices over one order each, the others are drawn. */
#include <stdlib.h>
#include <string.h>

#include "decisions.h"
#include "diag.h"
#include "policy.h"

enum { N_FIXED = PSPLIT_I_N_FIXED_ORDERS, N_ORDERS = PSPLIT_I_N_ORDERS };

/* The policy over one order of the items. */
typedef struct look {
  bool ready, encoded;
  double reached; /* by the likeliest choices; 0: not asked */
  psplit_i_view view;
  psplit_i_decider *decider;
} look;

typedef struct mind {
  psplit_proposer proposer; /* first: what is handed out */
  const psplit_policy *policy;
  const psplit_items *items;
  psplit_i_arena arena;
  look look[N_ORDERS];
  uint32_t rank[N_FIXED]; /* of the orders without chance, the one that looks best first */
  uint32_t decided;       /* the attempt that its decider holds; NONE */
  uint64_t seed;
} mind;

static psplit_code begin(void *user, const psplit_items *items, psplit_diag *diag) {
  mind *m = user;
  (void)diag;
  psplit_i_arena_fini(&m->arena);
  psplit_i_arena_init(&m->arena, 0);
  m->items = items;
  m->decided = PSPLIT_NONE;
  memset(m->look, 0, sizeof m->look);
  return PSPLIT_OK;
}

static psplit_code view(mind *m, uint32_t order) {
  look *l = &m->look[order];
  if (l->ready) return PSPLIT_OK;
  psplit_code code = psplit_i_view_init(&l->view, m->items, order, &m->arena);
  if (code != PSPLIT_OK) return code;
  l->decider = PSPLIT_NEW(&m->arena, psplit_i_decider, 1);
  if (!l->decider) return PSPLIT_NOMEM;
  code = psplit_i_decider_init(l->decider, &l->view, &m->arena);
  l->ready = code == PSPLIT_OK;
  return code;
}

static psplit_code rank(mind *m) {
  for (uint32_t k = 0; k < N_FIXED; k++) {
    const psplit_code code = view(m, k);
    if (code != PSPLIT_OK) return code;
    uint32_t at = k;
    for (; at > 0 && m->look[m->rank[at - 1]].decider->least > m->look[k].decider->least; at--)
      m->rank[at] = m->rank[at - 1];
    m->rank[at] = k;
  }
  return PSPLIT_OK;
}

/* Attempts go through the orders again and again. */
static look *look_of(mind *m, uint32_t attempt) {
  const uint32_t k = attempt % N_ORDERS;
  return &m->look[k < N_FIXED ? m->rank[k] : k];
}

static psplit_code prepare(mind *m, look *l) {
  const psplit_code code = view(m, (uint32_t)(l - m->look));
  if (code == PSPLIT_OK && !l->encoded) {
    psplit_i_encode(&m->policy->network, &l->view.graph, &l->decider->encoding);
    l->encoded = true;
  }
  return code;
}

static psplit_code settle(mind *m, look *l) {
  const psplit_code code = psplit_i_settle(l->decider, &m->policy->network, PSPLIT_I_TRIES, NULL);
  l->reached = code == PSPLIT_OK ? (double)l->decider->stages.most : 0;
  return code;
}

/* Aims a little below what the likeliest choices reached. */
static psplit_code draw(mind *m, look *l, uint64_t seed, uint32_t attempt) {
  const psplit_i_random_stream stream = {seed, PSPLIT_I_RANDOM_POLICY, 1 + attempt, 0};
  psplit_i_decider *d = l->decider;
  const psplit_code code = l->reached > 0 ? PSPLIT_OK : settle(m, l);
  if (code != PSPLIT_OK) return code;
  const double range = l->reached - d->view->ideal, most = l->reached / 10;
  const double u = psplit_i_random_uniform(&stream, d->view->graph.n);
  psplit_i_outlook_aim(&d->outlook, l->reached - u * (range < most ? range : most));
  return psplit_i_decide(d, &m->policy->network, &stream, NULL, NULL);
}

/* Leaves the attempt's stages in the decider of its order. */
static psplit_code decide(mind *m, const psplit_items *items, uint64_t seed, uint32_t attempt,
                          psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  if (items != m->items) code = begin(m, items, diag);
  if (m->decided == attempt && m->seed == seed) return code;
  if (code == PSPLIT_OK && !m->look[N_FIXED - 1].ready) code = rank(m);
  look *l = look_of(m, attempt);
  if (code == PSPLIT_OK) code = prepare(m, l);
  if (code == PSPLIT_OK) code = attempt < N_ORDERS ? settle(m, l) : draw(m, l, seed, attempt);
  m->decided = code == PSPLIT_OK ? attempt : PSPLIT_NONE;
  m->seed = seed;
  return code == PSPLIT_NOMEM   ? psplit_i_nomem(diag)
         : code == PSPLIT_LIMIT ? psplit_i_fail(diag, code, "times of nodes add up to too much")
                                : code;
}

static psplit_code stages(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                          uint32_t *out_stage, uint32_t *out_type, psplit_diag *diag) {
  mind *m = user;
  const psplit_code code = decide(m, items, seed, attempt, diag);
  if (code != PSPLIT_OK) return code;
  const psplit_i_stages *s = &look_of(m, attempt)->decider->stages;
  memcpy(out_stage, s->stage, items->n_items * sizeof *out_stage);
  memcpy(out_type, s->type, items->n_stages * sizeof *out_type);
  return PSPLIT_OK;
}

/* By stage, and there in the order of decisions: the order that holds the proposed split. */
static psplit_code keys(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                        uint32_t *out_key, psplit_diag *diag) {
  mind *m = user;
  const psplit_code code = decide(m, items, seed, attempt, diag);
  if (code != PSPLIT_OK) return code;
  const look *l = look_of(m, attempt);
  const uint32_t n = items->n_items;
  for (uint32_t at = 0; at < n; at++) {
    const uint32_t i = l->view.order[at];
    const uint64_t key = (uint64_t)l->decider->stages.stage[i] * n + at;
    out_key[i] = key < UINT32_MAX ? (uint32_t)key : UINT32_MAX;
  }
  return PSPLIT_OK;
}

psplit_code psplit_policy_proposer_create(const psplit_policy *policy, uint32_t n_attempts,
                                          psplit_diag *diag, psplit_proposer **out_proposer) {
  if (n_attempts == 0)
    return psplit_i_fail(diag, PSPLIT_USAGE, "the number of proposals must be at least 1");
  mind *m = calloc(1, sizeof *m);
  if (!m) return psplit_i_nomem(diag);
  m->proposer = (psplit_proposer){m, n_attempts, begin, stages, keys};
  m->policy = policy;
  m->decided = PSPLIT_NONE;
  psplit_i_arena_init(&m->arena, 0);
  *out_proposer = &m->proposer;
  return PSPLIT_OK;
}

void psplit_policy_proposer_destroy(psplit_proposer *proposer) {
  mind *m = (mind *)proposer;
  if (!m) return;
  psplit_i_arena_fini(&m->arena);
  free(m);
}
