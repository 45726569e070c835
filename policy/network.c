#include "network.h"

#include <string.h>

#include "counter_random.h"

enum {
  X = PSPLIT_I_ITEM_FEATURES,
  C = PSPLIT_I_CANDIDATE_FEATURES,
  W = PSPLIT_I_WIDTH,
  M = PSPLIT_I_MEMORY,
  S = PSPLIT_I_SCORE
};

#define T(name, rows, columns) \
  {#name, (rows), (columns), offsetof(psplit_i_policy_network, name) / sizeof(psplit_i_real)},
const psplit_i_tensor_row psplit_i_policy_tensors[] = {PSPLIT_I_TENSORS(T)};
#undef T
const uint32_t psplit_i_policy_n_tensors =
  sizeof psplit_i_policy_tensors / sizeof *psplit_i_policy_tensors;

void psplit_i_policy_randomize(psplit_i_policy_network *network, uint64_t seed) {
  psplit_i_real *all = (psplit_i_real *)network;
  for (uint32_t t = 0; t < psplit_i_policy_n_tensors; t++) {
    const psplit_i_tensor_row *tensor = &psplit_i_policy_tensors[t];
    const psplit_i_random_stream stream = {seed, PSPLIT_I_RANDOM_POLICY, 0, t};
    const bool of_schedules = strcmp(tensor->name, "schedule_out") == 0;
    const bool out = of_schedules || strcmp(tensor->name, "score_out") == 0;
    const bool bias = tensor->rows == 1 || strcmp(tensor->name, "round_bias") == 0;
    const uint32_t fan =
      tensor->rows % PSPLIT_I_ROUNDS == 0 && strncmp(tensor->name, "round", 5) == 0 ? 3 * W
      : of_schedules ? PSPLIT_I_SCHEDULE_HIDDEN
      : out          ? S
                     : tensor->rows;
    /* A uniform variable in [-b, b) has variance b^2 / 3. sqrt is exact to the last bit. */
    double bound = 6.0 / fan, root = 1;
    for (int k = 0; k < 40; k++) root = (root + bound / root) / 2;
    bound = bias && !out ? 0 : out ? root / 10 : root / 2;
    for (uint32_t k = 0; k < tensor->rows * tensor->columns; k++)
      all[tensor->offset + k] =
        (psplit_i_real)(bound * (2 * psplit_i_random_uniform(&stream, k) - 1));
  }
}

/* --- encoder --- */

bool psplit_i_encoding_init(psplit_i_encoding *c, uint32_t n, psplit_i_arena *arena) {
  c->e = PSPLIT_NEW(arena, psplit_i_real, (size_t)n * W * (PSPLIT_I_ROUNDS + 1));
  c->mean = PSPLIT_NEW(arena, psplit_i_real, (size_t)n * W * 2 * PSPLIT_I_ROUNDS);
  c->score_part = PSPLIT_NEW(arena, psplit_i_real, (size_t)n * S);
  c->gru_part = PSPLIT_NEW(arena, psplit_i_real, (size_t)n * 3 * M);
  c->start = PSPLIT_NEW(arena, psplit_i_real, M);
  c->pooled = PSPLIT_NEW(arena, psplit_i_real, W);
  return c->e && c->mean && c->score_part && c->gru_part && c->start && c->pooled;
}

static void mean_of(const uint32_t *off, const uint32_t *list, uint32_t n, const psplit_i_real *e,
                    psplit_i_real *out) {
  memset(out, 0, (size_t)n * W * sizeof *out);
  for (uint32_t i = 0; i < n; i++) {
    psplit_i_real *sum = out + (size_t)i * W;
    const uint32_t degree = off[i + 1] - off[i];
    if (degree == 0) continue;
    for (uint32_t k = off[i]; k < off[i + 1]; k++)
      for (uint32_t j = 0; j < W; j++) sum[j] += e[(size_t)list[k] * W + j];
    for (uint32_t j = 0; j < W; j++) sum[j] /= (psplit_i_real)degree;
  }
}

void psplit_i_encode(const psplit_i_policy_network *w, const psplit_i_policy_graph *g,
                     psplit_i_encoding *c) {
  const uint32_t n = g->n;
  const size_t layer = (size_t)n * W;
  for (uint32_t i = 0; i < n; i++) {
    psplit_i_real *e = c->e + (size_t)i * W;
    memcpy(e, w->item_bias, sizeof w->item_bias);
    psplit_i_rows_add(g->x + (size_t)i * X, w->item_weight, X, W, e);
    for (uint32_t j = 0; j < W; j++) e[j] = e[j] > 0 ? e[j] : 0;
  }
  for (uint32_t r = 0; r < PSPLIT_I_ROUNDS; r++) {
    const psplit_i_real *before = c->e + r * layer;
    psplit_i_real *pred = c->mean + 2 * r * layer, *succ = pred + layer;
    mean_of(g->pred_off, g->pred, n, before, pred);
    mean_of(g->succ_off, g->succ, n, before, succ);
    for (uint32_t i = 0; i < n; i++) {
      psplit_i_real z[W];
      memcpy(z, w->round_bias + r * W, sizeof z);
      psplit_i_rows_add(before + (size_t)i * W, w->round_self + r * W * W, W, W, z);
      psplit_i_rows_add(pred + (size_t)i * W, w->round_pred + r * W * W, W, W, z);
      psplit_i_rows_add(succ + (size_t)i * W, w->round_succ + r * W * W, W, W, z);
      psplit_i_real *after = c->e + (r + 1) * layer + (size_t)i * W;
      for (uint32_t j = 0; j < W; j++) after[j] = before[(size_t)i * W + j] + (z[j] > 0 ? z[j] : 0);
    }
  }
  const psplit_i_real *last = c->e + PSPLIT_I_ROUNDS * layer;
  memset(c->pooled, 0, W * sizeof *c->pooled);
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < W; j++) c->pooled[j] += last[(size_t)i * W + j];
    memcpy(c->score_part + (size_t)i * S, w->score_bias, sizeof w->score_bias);
    psplit_i_rows_add(last + (size_t)i * W, w->score_item, W, S, c->score_part + (size_t)i * S);
    memcpy(c->gru_part + (size_t)i * 3 * M, w->gru_bias, sizeof w->gru_bias);
    psplit_i_rows_add(last + (size_t)i * W, w->gru_item, W, 3 * M, c->gru_part + (size_t)i * 3 * M);
  }
  for (uint32_t j = 0; j < W && n > 0; j++) c->pooled[j] /= (psplit_i_real)n;
  memcpy(c->start, w->start_bias, sizeof w->start_bias);
  psplit_i_rows_add(c->pooled, w->start_weight, W, M, c->start);
  for (uint32_t j = 0; j < M; j++) c->start[j] = psplit_i_tanh(c->start[j]);
}

static void add_all(psplit_i_real *sum, const psplit_i_real *x, uint32_t n) {
  for (uint32_t j = 0; j < n; j++) sum[j] += x[j];
}

/* From scores, states and the beginning back to the last round's encodings, d_e [n][W]. */
static void readout_back(const psplit_i_policy_network *w, uint32_t n, const psplit_i_encoding *c,
                         const psplit_i_encoding_gradient *d_c, psplit_i_real *d_e,
                         psplit_i_policy_network *d) {
  const psplit_i_real *last = c->e + PSPLIT_I_ROUNDS * (size_t)n * W;
  psplit_i_real d_pre[M], d_pooled[W] = {0};
  for (uint32_t j = 0; j < M; j++) d_pre[j] = d_c->start[j] * (1 - c->start[j] * c->start[j]);
  add_all(d->start_bias, d_pre, M);
  psplit_i_rows_grad(c->pooled, d_pre, W, M, d->start_weight);
  psplit_i_rows_back(d_pre, w->start_weight, W, M, d_pooled);
  for (uint32_t i = 0; i < n; i++) {
    const psplit_i_real *e = last + (size_t)i * W, *ds = d_c->score + (size_t)i * S,
                        *dg = d_c->gru + (size_t)i * 3 * M;
    psplit_i_real *de = d_e + (size_t)i * W;
    for (uint32_t j = 0; j < W; j++) de[j] = d_pooled[j] / (psplit_i_real)n;
    add_all(d->score_bias, ds, S);
    psplit_i_rows_grad(e, ds, W, S, d->score_item);
    psplit_i_rows_back(ds, w->score_item, W, S, de);
    add_all(d->gru_bias, dg, 3 * M);
    psplit_i_rows_grad(e, dg, W, 3 * M, d->gru_item);
    psplit_i_rows_back(dg, w->gru_item, W, 3 * M, de);
  }
}

/* Adds to d_before, of all items, what comes back through the mean over item i's predecessors, or
 * successors, of z [W], the gradient of item i before the rectifier. */
static void mean_back(const psplit_i_policy_graph *g, uint32_t i, bool successors,
                      const psplit_i_real *z, const psplit_i_real *weight,
                      psplit_i_real *d_before) {
  const uint32_t *off = successors ? g->succ_off : g->pred_off;
  const uint32_t *list = successors ? g->succ : g->pred;
  const uint32_t degree = off[i + 1] - off[i];
  psplit_i_real d_mean[W] = {0};
  if (degree == 0) return;
  psplit_i_rows_back(z, weight, W, W, d_mean);
  for (uint32_t k = off[i]; k < off[i + 1]; k++)
    for (uint32_t j = 0; j < W; j++)
      d_before[(size_t)list[k] * W + j] += d_mean[j] / (psplit_i_real)degree;
}

/* Round r back: from d_e, of what it made, to d_before, of what it was given. */
static void round_back(const psplit_i_policy_network *w, const psplit_i_policy_graph *g,
                       const psplit_i_encoding *c, uint32_t r, const psplit_i_real *d_e,
                       psplit_i_real *d_before, psplit_i_policy_network *d) {
  const size_t layer = (size_t)g->n * W, square = (size_t)r * W * W;
  const psplit_i_real *before = c->e + r * layer, *after = before + layer;
  const psplit_i_real *pred = c->mean + 2 * r * layer, *succ = pred + layer;
  memcpy(d_before, d_e, layer * sizeof *d_e); /* around the layer */
  for (uint32_t i = 0; i < g->n; i++) {
    psplit_i_real z[W];
    const uint32_t off = i * W;
    for (uint32_t j = 0; j < W; j++) z[j] = after[off + j] > before[off + j] ? d_e[off + j] : 0;
    add_all(d->round_bias + r * W, z, W);
    psplit_i_rows_grad(before + off, z, W, W, d->round_self + square);
    psplit_i_rows_grad(pred + off, z, W, W, d->round_pred + square);
    psplit_i_rows_grad(succ + off, z, W, W, d->round_succ + square);
    psplit_i_rows_back(z, w->round_self + square, W, W, d_before + off);
    mean_back(g, i, false, z, w->round_pred + square, d_before);
    mean_back(g, i, true, z, w->round_succ + square, d_before);
  }
}

void psplit_i_encode_back(const psplit_i_policy_network *w, const psplit_i_policy_graph *g,
                          const psplit_i_encoding *c, const psplit_i_encoding_gradient *d_c,
                          psplit_i_real *scratch, psplit_i_policy_network *d) {
  psplit_i_real *d_e = scratch, *d_before = scratch + (size_t)g->n * W;
  readout_back(w, g->n, c, d_c, d_e, d);
  for (uint32_t r = PSPLIT_I_ROUNDS; r-- > 0;) {
    round_back(w, g, c, r, d_e, d_before, d);
    psplit_i_real *swap = d_e;
    d_e = d_before;
    d_before = swap;
  }
  for (uint32_t i = 0; i < g->n; i++) {
    psplit_i_real z[W];
    for (uint32_t j = 0; j < W; j++) {
      const size_t at = (size_t)i * W + j;
      z[j] = c->e[at] > 0 ? d_e[at] : 0;
    }
    add_all(d->item_bias, z, W);
    psplit_i_rows_grad(g->x + (size_t)i * X, z, X, W, d->item_weight);
  }
}

/* --- decisions --- */

void psplit_i_score(const psplit_i_policy_network *w, const psplit_i_encoding *c, uint32_t i,
                    const psplit_i_decision *decision, psplit_i_real *out_logit) {
  psplit_i_real common[S];
  memcpy(common, c->score_part + (size_t)i * S, sizeof common);
  psplit_i_rows_add(decision->memory, w->score_memory, M, S, common);
  for (uint32_t k = 0; k < decision->n; k++) {
    psplit_i_real *h = decision->hidden + (size_t)k * S, logit = 0;
    memcpy(h, common, sizeof common);
    psplit_i_rows_add(decision->candidates + (size_t)k * C, w->score_candidate, C, S, h);
    for (uint32_t j = 0; j < S; j++) h[j] = h[j] > 0 ? h[j] : 0;
    for (uint32_t j = 0; j < S; j++) logit += h[j] * w->score_out[j];
    out_logit[k] = logit;
  }
}

void psplit_i_score_back(const psplit_i_policy_network *w, const psplit_i_decision *decision,
                         const psplit_i_real *d_logit, psplit_i_real *d_memory,
                         psplit_i_real *d_score_part, psplit_i_policy_network *d) {
  psplit_i_real d_common[S] = {0};
  for (uint32_t k = 0; k < decision->n; k++) {
    const psplit_i_real *h = decision->hidden + (size_t)k * S;
    psplit_i_real z[S];
    for (uint32_t j = 0; j < S; j++) {
      d->score_out[j] += d_logit[k] * h[j];
      z[j] = h[j] > 0 ? d_logit[k] * w->score_out[j] : 0;
    }
    psplit_i_rows_grad(decision->candidates + (size_t)k * C, z, C, S, d->score_candidate);
    add_all(d_common, z, S);
  }
  psplit_i_rows_grad(decision->memory, d_common, M, S, d->score_memory);
  psplit_i_rows_back(d_common, w->score_memory, M, S, d_memory);
  add_all(d_score_part, d_common, S);
}

void psplit_i_remember(const psplit_i_policy_network *w, const psplit_i_encoding *c, uint32_t i,
                       const psplit_i_gru_step *step, psplit_i_real *out_memory) {
  psplit_i_real x[3 * M], h[3 * M];
  memcpy(x, c->gru_part + (size_t)i * 3 * M, sizeof x);
  psplit_i_rows_add(step->candidate, w->gru_candidate, C, 3 * M, x);
  memcpy(h, w->gru_memory_bias, sizeof h);
  psplit_i_rows_add(step->memory, w->gru_memory, M, 3 * M, h);
  double e[2 * M];
  for (uint32_t j = 0; j < 2 * M; j++) e[j] = -(double)(psplit_i_real)(x[j] + h[j]);
  psplit_i_policy_exp_all(e, sizeof e / sizeof *e);
  for (uint32_t j = 0; j < 2 * M; j++) step->gates[j] = (psplit_i_real)(1 / (1 + e[j]));
  for (uint32_t j = 0; j < M; j++) {
    step->gates[3 * M + j] = h[2 * M + j];
    e[j] = 2 * (double)(psplit_i_real)(x[2 * M + j] + step->gates[j] * h[2 * M + j]);
  }
  psplit_i_policy_exp_all(e, M);
  for (uint32_t j = 0; j < M; j++) {
    const psplit_i_real update = step->gates[M + j], fresh = (psplit_i_real)(1 - 2 / (e[j] + 1));
    step->gates[2 * M + j] = fresh;
    out_memory[j] = (1 - update) * fresh + update * step->memory[j];
  }
}

void psplit_i_remember_back(const psplit_i_policy_network *w, const psplit_i_gru_step *step,
                            const psplit_i_real *d_out, psplit_i_real *d_memory,
                            psplit_i_real *d_gru_part, psplit_i_policy_network *d) {
  const psplit_i_real *memory = step->memory, *gates = step->gates;
  psplit_i_real dx[3 * M], dh[3 * M];
  for (uint32_t j = 0; j < M; j++) {
    const psplit_i_real reset = gates[j], update = gates[M + j], fresh = gates[2 * M + j];
    const psplit_i_real d_fresh = d_out[j] * (1 - update) * (1 - fresh * fresh);
    const psplit_i_real d_update = d_out[j] * (memory[j] - fresh) * update * (1 - update);
    const psplit_i_real d_reset = d_fresh * gates[3 * M + j] * reset * (1 - reset);
    dx[j] = dh[j] = d_reset;
    dx[M + j] = dh[M + j] = d_update;
    dx[2 * M + j] = d_fresh;
    dh[2 * M + j] = d_fresh * reset;
    d_memory[j] = d_out[j] * update;
  }
  add_all(d_gru_part, dx, 3 * M);
  psplit_i_rows_grad(step->candidate, dx, C, 3 * M, d->gru_candidate);
  add_all(d->gru_memory_bias, dh, 3 * M);
  psplit_i_rows_grad(memory, dh, M, 3 * M, d->gru_memory);
  psplit_i_rows_back(dh, w->gru_memory, M, 3 * M, d_memory);
}

psplit_i_real psplit_i_softmax(psplit_i_real *p, uint32_t n) {
  psplit_i_real most = p[0];
  double sum = 0, entropy = 0;
  for (uint32_t k = 1; k < n; k++) most = p[k] > most ? p[k] : most;
  for (uint32_t k = 0; k < n; k++) {
    const double shifted = (double)p[k] - (double)most, weight = psplit_i_policy_exp(shifted);
    entropy -= weight * shifted;
    sum += weight;
    p[k] = (psplit_i_real)weight;
  }
  for (uint32_t k = 0; k < n; k++) p[k] = (psplit_i_real)((double)p[k] / sum);
  return (psplit_i_real)(entropy / sum + psplit_i_policy_log(sum));
}
