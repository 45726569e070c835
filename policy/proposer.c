/* A policy as a proposer: views and encodings are made once for all attempts on the same items. */
#include <stdlib.h>
#include <string.h>

#include "decisions.h"
#include "diag.h"
#include "policy.h"

typedef struct mind {
  psplit_proposer proposer; /* first: what is handed out */
  const psplit_policy *policy;
  const psplit_items *items;
  psplit_i_arena arena;
  bool ready[PSPLIT_I_N_POLICY_ORDERS];
  psplit_i_view view[PSPLIT_I_N_POLICY_ORDERS];
  psplit_i_decider *decider[PSPLIT_I_N_POLICY_ORDERS];
  uint32_t decided; /* the attempt that its decider holds; NONE */
  uint64_t seed;
} mind;

static psplit_code begin(void *user, const psplit_items *items, psplit_diag *diag) {
  mind *m = user;
  (void)diag;
  psplit_i_arena_fini(&m->arena);
  psplit_i_arena_init(&m->arena, 0);
  m->items = items;
  m->decided = PSPLIT_NONE;
  for (uint32_t k = 0; k < PSPLIT_I_N_POLICY_ORDERS; k++) m->ready[k] = false;
  return PSPLIT_OK;
}

static psplit_code prepare(mind *m, uint32_t order) {
  if (m->ready[order]) return PSPLIT_OK;
  psplit_code code = psplit_i_view_init(&m->view[order], m->items, order, &m->arena);
  if (code != PSPLIT_OK) return code;
  m->decider[order] = PSPLIT_NEW(&m->arena, psplit_i_decider, 1);
  if (!m->decider[order]) return PSPLIT_NOMEM;
  code = psplit_i_decider_init(m->decider[order], &m->view[order], &m->arena);
  if (code != PSPLIT_OK) return code;
  psplit_i_encode(&m->policy->network, &m->view[order].graph, &m->decider[order]->encoding);
  m->ready[order] = true;
  return code;
}

/* Leaves the attempt's stages in its decider. */
static psplit_code decide(mind *m, const psplit_items *items, uint64_t seed, uint32_t attempt,
                          psplit_diag *diag) {
  const uint32_t order = attempt % PSPLIT_I_N_POLICY_ORDERS;
  psplit_code code = PSPLIT_OK;
  if (items != m->items) code = begin(m, items, diag);
  if (m->decided == attempt && m->seed == seed) return code;
  if (code == PSPLIT_OK) code = prepare(m, order);
  const psplit_i_random_stream stream = {seed, PSPLIT_I_RANDOM_POLICY, 1 + attempt, 0};
  if (code == PSPLIT_OK)
    code = psplit_i_decide(m->decider[order], &m->policy->network,
                           attempt < PSPLIT_I_N_POLICY_ORDERS ? NULL : &stream, NULL, NULL, NULL);
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
  const psplit_i_stages *s = &m->decider[attempt % PSPLIT_I_N_POLICY_ORDERS]->stages;
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
  const uint32_t order = attempt % PSPLIT_I_N_POLICY_ORDERS, n = items->n_items;
  const psplit_i_stages *s = &m->decider[order]->stages;
  for (uint32_t at = 0; at < n; at++) {
    const uint32_t i = m->view[order].order[at];
    const uint64_t key = (uint64_t)s->stage[i] * n + at;
    out_key[i] = key < UINT32_MAX ? (uint32_t)key : UINT32_MAX;
  }
  return PSPLIT_OK;
}

psplit_code psplit_policy_proposer_create(const psplit_policy *policy, uint32_t n_attempts,
                                          psplit_diag *diag, psplit_proposer **out_proposer) {
  if (n_attempts == 0) return psplit_i_fail(diag, PSPLIT_USAGE, "a policy is asked at least once");
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
