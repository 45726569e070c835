#include "schedules.h"

#include <assert.h>
#include <string.h>

#include "real.h"

enum { X = PSPLIT_I_SCHEDULE_FEATURES, H = PSPLIT_I_SCHEDULE_HIDDEN };

/* The ladder: those that divide the samples, and micro-batches of one sample each. */
static const uint32_t COUNTS[] = {1,  2,  3,  4,  6,   8,   12,  16,  24,
                                  32, 48, 64, 96, 128, 192, 256, 384, 512};
enum { N_COUNTS = sizeof COUNTS / sizeof *COUNTS };

uint32_t psplit_i_schedule_in_flight(psplit_schedule_kind kind, uint32_t n_stages, uint32_t stage,
                                     uint32_t n_micro_batches) {
  const uint32_t most = kind == PSPLIT_SCHEDULE_STREAM        ? 1
                        : kind == PSPLIT_SCHEDULE_1F1B        ? n_stages - stage
                        : kind == PSPLIT_SCHEDULE_ZERO_BUBBLE ? n_stages
                                                              : n_micro_batches;
  return most < n_micro_batches ? most : n_micro_batches;
}

/* A stage's pieces of a micro-batch. */
typedef struct pieces {
  double forward, back, weights;
} pieces;

static pieces pieces_of(const psplit_policy_batch *b, psplit_schedule_kind kind, uint32_t s,
                        double samples) {
  const double fixed = (double)b->fixed_ns;
  pieces p = {fixed + samples * (double)b->forward_ns[s], 0, 0};
  if (b->backward_ns) p.back = fixed + samples * (double)b->backward_ns[s];
  if (!b->weights_ns) return p;
  /* In one piece with the others, they have no fixed time of their own. */
  p.weights = samples * (double)b->weights_ns[s];
  if (kind == PSPLIT_SCHEDULE_ZERO_BUBBLE) {
    p.weights += fixed;
  } else {
    p.back += p.weights;
    p.weights = 0;
  }
  return p;
}

/* What is known of a schedule without running it. */
typedef struct outline {
  double step;    /* it is no less than this */
  double busiest; /* work of the stage that has most */
  double work;    /* of all stages */
  double turns;   /* what round trips of what may be in flight take, over `busiest` */
  double memory;  /* largest share of a stage's room */
} outline;

static outline outline_of(const psplit_policy_batch *b, psplit_schedule_kind kind, uint32_t m) {
  const uint32_t k = b->n_stages;
  const double samples = (double)b->n_samples / m;
  outline o = {0};
  double head = 0, tail = 0, path = 0, before = 0, turns = 0;
  for (uint32_t s = 0; s < k; s++) {
    const pieces p = pieces_of(b, kind, s, samples);
    path += p.forward + p.back;
  }
  if (!b->backward_ns) tail = path;
  for (uint32_t s = 0; s < k; s++) {
    const pieces p = pieces_of(b, kind, s, samples);
    const double work = m * (p.forward + p.back + p.weights);
    const uint32_t held = psplit_i_schedule_in_flight(kind, k, s, m);
    if (!b->backward_ns) tail -= p.forward;
    const double step = head + work + tail;
    const double round = path - before;
    const uint32_t turns_of_m = (m - 1) / held + 1;
    const double trips = b->backward_ns ? round * turns_of_m : 0;
    if (step > o.step) o.step = step;
    if (head + trips + tail > o.step) o.step = head + trips + tail;
    if (trips > turns) turns = trips;
    if (work > o.busiest) o.busiest = work;
    o.work += work;
    if (b->activation_bytes && b->room_bytes && b->room_bytes[s] != UINT64_MAX) {
      const double need = (double)b->activation_bytes[s] * samples * held;
      const double room = b->room_bytes[s] > 0 ? (double)b->room_bytes[s] : 1;
      if (need / room > o.memory) o.memory = need / room;
    }
    head += p.forward;
    before += p.forward + p.back;
    if (b->backward_ns && kind != PSPLIT_SCHEDULE_ZERO_BUBBLE) tail += p.back;
  }
  if (path > o.step) o.step = path;
  o.turns = o.busiest > 0 ? turns / o.busiest : 0;
  return o;
}

static psplit_i_real upto(double x, double most) { return (psplit_i_real)(x < most ? x : most); }

static void describe(const psplit_policy_batch *b, psplit_schedule_kind kind, uint32_t m,
                     const outline *o, double least, psplit_i_real *x) {
  const double above = least > 0 ? psplit_i_policy_log(o->step / least) : 0;
  const double fixed = (double)b->fixed_ns * m * (b->backward_ns ? 2 : 1);
  x[0] = upto(above, 4);
  x[1] = upto(10 * above, 4);
  x[2] = upto(100 * above, 4);
  x[3] = above < 1e-9;
  x[4] = kind == PSPLIT_SCHEDULE_FILL_DRAIN;
  x[5] = kind == PSPLIT_SCHEDULE_1F1B;
  x[6] = kind == PSPLIT_SCHEDULE_ZERO_BUBBLE;
  x[7] = (psplit_i_real)(psplit_i_policy_log(m) / 6);
  x[8] = upto((double)m / b->n_stages / 4, 4);
  x[9] = o->busiest > 0 ? upto(fixed / o->busiest, 4) : 0;
  x[10] = o->step > 0 ? upto(o->busiest / o->step, 1) : 0;
  x[11] = o->busiest > 0 ? upto(o->work / (b->n_stages * o->busiest), 1) : 0;
  x[12] = upto(o->turns, 4);
  x[13] = upto(o->memory, 4);
  x[14] = upto(b->n_stages / 32.0, 4);
  x[15] = m == b->n_samples;
}

static void add(const psplit_policy_batch *b, uint32_t m, outline *outlines,
                psplit_i_schedules *out) {
  static const psplit_schedule_kind kinds[] = {PSPLIT_SCHEDULE_1F1B, PSPLIT_SCHEDULE_ZERO_BUBBLE,
                                               PSPLIT_SCHEDULE_FILL_DRAIN, PSPLIT_SCHEDULE_STREAM};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if ((kinds[i] == PSPLIT_SCHEDULE_STREAM) != (b->backward_ns == NULL)) continue;
    if (kinds[i] == PSPLIT_SCHEDULE_ZERO_BUBBLE && !b->weights_ns) continue;
    outlines[out->n] = outline_of(b, kinds[i], m);
    out->kind[out->n] = kinds[i];
    out->n_micro_batches[out->n++] = m;
  }
}

void psplit_i_schedules_list(const psplit_policy_batch *b, psplit_i_schedules *out) {
  assert(b->n_samples > 0);
  outline all[PSPLIT_I_MOST_SCHEDULES];
  uint32_t n = 0;
  double least = 0;
  out->n = 0;
  for (size_t i = 0; i < N_COUNTS && COUNTS[i] <= b->n_samples; i++)
    if (b->n_samples % COUNTS[i] == 0) add(b, COUNTS[i], all, out);
  if (b->n_samples <= COUNTS[N_COUNTS - 1] && out->n_micro_batches[out->n - 1] != b->n_samples)
    add(b, b->n_samples, all, out);
  out->fits = false;
  for (uint32_t k = 0; k < out->n; k++) out->fits |= all[k].memory <= 1;
  for (uint32_t k = 0; k < out->n; k++) {
    if (out->fits && all[k].memory > 1) continue;
    all[n] = all[k];
    out->kind[n] = out->kind[k];
    out->n_micro_batches[n] = out->n_micro_batches[k];
    out->estimate[n] = all[n].step;
    if (n == 0 || all[n].step < least) least = all[n].step;
    n++;
  }
  out->n = n;
  for (uint32_t k = 0; k < n; k++)
    describe(b, out->kind[k], out->n_micro_batches[k], &all[k], least, out->x + (size_t)k * X);
}

void psplit_i_schedules_score(const psplit_i_policy_network *w, psplit_i_schedules *s,
                              psplit_i_real *out_logit) {
  for (uint32_t k = 0; k < s->n; k++) {
    psplit_i_real *h = s->hidden + (size_t)k * H, logit = 0;
    memcpy(h, w->schedule_bias, sizeof w->schedule_bias);
    psplit_i_rows_add(s->x + (size_t)k * X, w->schedule_in, X, H, h);
    for (uint32_t j = 0; j < H; j++) h[j] = h[j] > 0 ? h[j] : 0;
    for (uint32_t j = 0; j < H; j++) logit += h[j] * w->schedule_out[j];
    out_logit[k] = logit;
  }
}

void psplit_i_schedules_score_back(const psplit_i_policy_network *w, const psplit_i_schedules *s,
                                   const psplit_i_real *d_logit, psplit_i_policy_network *d) {
  for (uint32_t k = 0; k < s->n; k++) {
    const psplit_i_real *h = s->hidden + (size_t)k * H;
    psplit_i_real z[H];
    for (uint32_t j = 0; j < H; j++) {
      d->schedule_out[j] += d_logit[k] * h[j];
      z[j] = h[j] > 0 ? d_logit[k] * w->schedule_out[j] : 0;
      d->schedule_bias[j] += z[j];
    }
    psplit_i_rows_grad(s->x + (size_t)k * X, z, X, H, d->schedule_in);
  }
}
