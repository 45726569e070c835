#include "scheduling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checked.h"
#include "choose.h"
#include "diag.h"

/* --- what was chosen --- */

static void choose(const psplit_policy_learner *l, const psplit_i_random_stream *stream,
                   uint32_t draw, psplit_i_scheduled *s) {
  psplit_i_real p[PSPLIT_I_MOST_SCHEDULES];
  double sum = 0;
  psplit_i_schedules_score(&l->policy->network, &s->list, p);
  psplit_i_softmax(p, s->list.n);
  s->chosen = 0;
  for (uint32_t k = 1; k < s->list.n && !stream; k++)
    if (p[k] > p[s->chosen]) s->chosen = k;
  if (stream) {
    const double at = psplit_i_random_uniform(stream, draw);
    sum = (double)p[0];
    while (sum <= at && s->chosen + 1 < s->list.n) sum += (double)p[++s->chosen];
  }
  s->chance = p[s->chosen];
}

void psplit_i_schedule_learn(psplit_policy_learner *l, psplit_i_scheduled *s,
                             const psplit_i_objective *objective, double share,
                             psplit_i_learned *out) {
  psplit_i_real p[PSPLIT_I_MOST_SCHEDULES];
  if (s->list.n < 2) return;
  psplit_i_schedules_score(&l->policy->network, &s->list, p);
  psplit_i_softmax(p, s->list.n);
  out->loss += share * psplit_i_objective_back(objective, s->chosen, (double)s->chance, p,
                                               s->list.n, share, out);
  psplit_i_schedules_score_back(&l->policy->network, &s->list, p, &l->gradient);
}

/* --- of a rollout --- */

static bool has_backward(const psplit_i_case *c) { return c->backward_share != NULL; }

psplit_code psplit_i_schedule_rollout(const psplit_policy_learner *l, const psplit_i_case *c,
                                      const psplit_i_stages *stages,
                                      const psplit_i_random_stream *stream, psplit_diag *diag,
                                      psplit_i_scheduled *out, double *out_ratio) {
  const psplit_items *in = &c->items;
  const uint32_t k = in->n_stages, samples = l->options.batch;
  uint32_t n = 0;
  int64_t *ns = calloc((size_t)4 * k, sizeof *ns), step = 0;
  uint64_t *bytes = calloc((size_t)2 * k, sizeof *bytes);
  if (!ns || !bytes) {
    free(ns);
    free(bytes);
    return psplit_i_nomem(diag);
  }
  int64_t *back = ns + k;
  for (uint32_t i = 0; has_backward(c) && i < in->n_items; i++) {
    const uint32_t s = stages->stage[i];
    const int64_t time = in->time_ns[(size_t)stages->type[s] * in->n_items + i];
    if (time < PSPLIT_ITEM_FORBIDDEN)
      ns[2 * k + s] += (int64_t)((double)time * c->backward_share[i]);
  }
  for (uint32_t s = 0; s < k; s++) {
    const int64_t sent = stages->recv[s] + stages->send[s];
    if (stages->compute[s] + sent == 0) continue;
    const uint64_t memory = stages->type[s] == PSPLIT_NONE ? 0 : in->type_memory[stages->type[s]];
    back[n] = ns[2 * k + s];
    ns[n] = stages->compute[s] - back[n];
    *(back[n] > ns[n] ? &back[n] : &ns[n]) += sent;
    bytes[n] = stages->activations[s];
    bytes[k + n++] = memory == 0                   ? UINT64_MAX
                     : memory > stages->weights[s] ? memory - stages->weights[s]
                                                   : 0;
  }
  const psplit_policy_batch batch = {
    .n_stages = n ? n : 1,
    .n_samples = samples,
    .fixed_ns = psplit_i_sat_i64(l->options.fixed_cost * (double)c->bound),
    .forward_ns = ns,
    .backward_ns = has_backward(c) ? back : NULL,
    .activation_bytes = bytes,
    .room_bytes = bytes + k};
  psplit_i_schedules_list(&batch, &out->list);
  choose(l, stream, in->n_items + 1, out);
  const psplit_code code = psplit_i_batch_simulate(
    &batch, out->list.kind[out->chosen], out->list.n_micro_batches[out->chosen], diag, &step);
  /* No order of samples ends before the work of one, and the bottleneck for all others. */
  const double least = (double)stages->view->total + (double)(samples - 1) * (double)c->bound;
  *out_ratio = least > 0 ? (double)step / least : 1;
  free(ns);
  free(bytes);
  return code;
}

/* --- schedules alone --- */

enum { SCENARIOS = 4 /* of a graph of a step */ };

/* A batch by chance; all numbers of it hang on the step and `which`. */
static psplit_code draw_batch(const psplit_policy_learner *l, uint32_t which, psplit_i_arena *arena,
                              psplit_policy_batch *out) {
  static const uint32_t kSamples[] = {8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
  const psplit_i_random_stream stream = {l->options.seed ^ 0x5c4ed, PSPLIT_I_RANDOM_POLICY, l->step,
                                         which};
  uint32_t at = 0;
#define CHANCE() psplit_i_random_uniform(&stream, at++)
  const psplit_i_case *c =
    l->cases.items[psplit_i_random_below(&stream, at++, (uint32_t)l->cases.n)];
  const uint32_t n = c->n_pieces;
  const bool own = has_backward(c), trains = CHANCE() < 0.75 || own, apart = CHANCE() < 0.25;
  const double noise = CHANCE() < 0.5 ? 0.5 : 0;
  int64_t *forward = PSPLIT_NEW(arena, int64_t, n), *backward = PSPLIT_NEW(arena, int64_t, n),
          *weights = PSPLIT_NEW(arena, int64_t, n);
  uint64_t *bytes = PSPLIT_NEW(arena, uint64_t, n), *room = PSPLIT_NEW(arena, uint64_t, n);
  if (!forward || !backward || !weights || !bytes || !room) return PSPLIT_NOMEM;
  const uint32_t samples =
    kSamples[psplit_i_random_below(&stream, at++, sizeof kSamples / sizeof *kSamples)];
  const bool limited = CHANCE() < 0.6;
  const double part = 1.1 * psplit_i_policy_exp(-psplit_i_policy_log(samples) * CHANCE());
  double most = 0;
  for (uint32_t s = 0; s < n; s++) {
    const double f = (double)c->forward_ns[s] * (1 + noise * CHANCE());
    const double b = own ? (double)c->backward_ns[s] * (1 + noise * CHANCE()) : 2 * f;
    forward[s] = psplit_i_sat_i64(f);
    backward[s] = psplit_i_sat_i64(b);
    weights[s] = apart ? backward[s] / 2 : 0;
    backward[s] -= weights[s];
    if (f + (trains ? b : 0) > most) most = f + (trains ? b : 0);
    bytes[s] = c->piece_bytes[s] ? c->piece_bytes[s] : (uint64_t)(1000000 * (0.5 + CHANCE()));
    room[s] = psplit_i_sat_u64(part * samples * (double)bytes[s]);
  }
  /* A piece's fixed time: none, or up to twice what a sample takes. */
  const double fixed = CHANCE() < 0.2 ? 0 : most * psplit_i_policy_exp(-7 + 7.5 * CHANCE());
#undef CHANCE
  *out = (psplit_policy_batch){.n_stages = n,
                               .n_samples = samples,
                               .fixed_ns = psplit_i_sat_i64(fixed),
                               .forward_ns = forward,
                               .backward_ns = trains ? backward : NULL,
                               .weights_ns = trains && apart ? weights : NULL,
                               .activation_bytes = bytes,
                               .room_bytes = limited ? room : NULL};
  return PSPLIT_OK;
}

/* A batch of a step: what each schedule takes, what is best, and what was drawn. */
typedef struct trial {
  psplit_i_scheduled *drawn; /* [n_drawn] */
  double *advantage;         /* [n_drawn] */
} trial;

static psplit_code prepare(const psplit_policy_learner *l, uint32_t which, uint32_t n_drawn,
                           psplit_i_arena *arena, psplit_diag *diag, trial *out,
                           psplit_policy_step *io_step) {
  const double share = 1.0 / (l->options.graphs * SCENARIOS);
  const psplit_i_random_stream stream = {l->options.seed ^ 0xd4a3, PSPLIT_I_RANDOM_POLICY, l->step,
                                         which};
  psplit_policy_batch batch;
  int64_t ns[PSPLIT_I_MOST_SCHEDULES], least = 0;
  uint32_t best = 0;
  double mean = 0;
  psplit_code code;
  out->drawn = PSPLIT_NEW(arena, psplit_i_scheduled, n_drawn ? n_drawn : 1);
  out->advantage = PSPLIT_NEW(arena, double, n_drawn + 1);
  PSPLIT_TRY(out->drawn && out->advantage ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(draw_batch(l, which, arena, &batch));
  psplit_i_schedules_list(&batch, &out->drawn[0].list);
  PSPLIT_TRY(psplit_i_batch_best(&batch, &out->drawn[0].list, diag, ns, &best, &least));
  out->drawn[0].chosen = best;
  out->advantage[0] = 1;
  for (uint32_t r = 0; r < n_drawn; r++) {
    psplit_i_scheduled *s = &out->drawn[r];
    if (r > 0) s->list = out->drawn[0].list;
    choose(l, &stream, r, s);
    out->advantage[r] = least > 0 ? -psplit_i_policy_log((double)ns[s->chosen] / (double)least) : 0;
    mean += out->advantage[r] / n_drawn;
    io_step->micro_batches += share * s->list.n_micro_batches[s->chosen] / n_drawn;
  }
  if (n_drawn) io_step->ratio -= share * mean;
  for (uint32_t r = 0; r < n_drawn; r++)
    out->advantage[r] = (out->advantage[r] - mean) * n_drawn / (n_drawn - 1.0);
out:
  return code;
}

/* By batch, as far as there is a spread. */
static void scale(trial *t, uint32_t n) {
  double square = 0;
  for (uint32_t r = 0; r < n; r++) square += t->advantage[r] * t->advantage[r];
  for (uint32_t r = 0; r < n; r++) t->advantage[r] /= sqrt(square / n) + 0.003;
}

psplit_code psplit_i_schedule_step(psplit_policy_learner *l, double done, psplit_diag *diag,
                                   psplit_policy_step *step) {
  const psplit_policy_learn_options *o = &l->options;
  const uint32_t n = o->graphs * SCENARIOS;
  const bool warm = done < 2.0 / 3;
  const uint32_t n_drawn = warm ? 0 : o->rollouts, each = warm ? 1 : n_drawn;
  /* To a tenth of the rate over each of both parts. */
  const double part = warm ? done * 1.5 : (done - 2.0 / 3) * 3;
  const double rate = (warm ? 4 * o->warm_rate : o->warm_rate) * (1 - 0.9 * part);
  psplit_i_arena arena;
  psplit_code code;
  psplit_i_arena_init(&arena, 0);
  trial *trials = PSPLIT_NEW(&arena, trial, n);
  PSPLIT_TRY(trials ? PSPLIT_OK : PSPLIT_NOMEM);
  for (uint32_t t = 0; t < n; t++) {
    PSPLIT_TRY(prepare(l, t, n_drawn, &arena, diag, &trials[t], step));
    if (!warm) scale(&trials[t], n_drawn);
  }
  for (uint32_t epoch = 0; epoch < (warm ? 1 : o->epochs); epoch++) {
    psplit_i_learned learned = {0};
    const double share = 1.0 / n / each;
    memset(&l->gradient, 0, sizeof l->gradient);
    for (uint32_t t = 0; t < n; t++)
      for (uint32_t r = 0; r < each; r++) {
        const psplit_i_objective objective = {.weight = trials[t].advantage[r],
                                              .entropy_weight = warm ? 0 : o->last_entropy,
                                              .clip = warm ? 0 : o->clip};
        psplit_i_schedule_learn(l, &trials[t].drawn[r], &objective, share, &learned);
      }
    step->loss = learned.loss;
    step->entropy = learned.entropy;
    step->kl = learned.kl;
    if (learned.kl > o->kl_stop) break;
    step->epochs++;
    PSPLIT_TRY(psplit_i_adam_step(&l->adam, rate, &l->gradient, &l->policy->network));
  }
  step->valid = 1;
  step->ratio = warm ? 0 : psplit_i_policy_exp(step->ratio);
out:
  psplit_i_arena_fini(&arena);
  return code;
}
