/* Lower bounds on any schedule: every device has to do its share of a step, after the first
 * micro-batch can have reached it, and its last piece must return to the first device.
 * docs/limits.md has statements and proofs. */
#include <math.h>

#include <psplit/limits.h>

#include "base.h"
#include "input.h"

/* A device's part of a step. */
typedef struct part {
  int64_t work;       /* of one micro-batch, over its chunks, both ways */
  int64_t round;      /* from the start of a micro-batch's first piece to the end of its last */
  int64_t head, tail; /* before its first piece can start, after its last one ends */
  /* Where gradients of weights are pieces of their own, for which nobody waits: */
  int64_t passed; /* work without them, and ... */
  int64_t back;   /* ... what comes after the last piece of that */
} part;

/* One micro-batch through virtual stages first .. last and, with a backward pass, back. */
static int64_t through(const psplit_schedule_input *in, uint32_t first, uint32_t last) {
  int64_t sum = 0;
  for (uint32_t v = first; v <= last; v++) {
    sum += in->forward_ns[v] + psplit_i_schedule_backward(in, v);
    if (v < last) sum += psplit_i_schedule_link(in, v) * (in->backward_ns ? 2 : 1);
  }
  return sum;
}

static part part_of(const psplit_schedule_input *in, uint32_t device) {
  const uint32_t n_virtual = in->n_stages * in->n_chunks;
  const uint32_t last = n_virtual - in->n_stages + device;
  part p = {0};
  for (uint32_t c = 0; c < in->n_chunks; c++) {
    const uint32_t v = c * in->n_stages + device;
    p.work += in->forward_ns[v] + psplit_i_schedule_backward(in, v);
  }
  for (uint32_t v = 0; v < device; v++) {
    p.head += in->forward_ns[v] + psplit_i_schedule_link(in, v);
    if (in->backward_ns) p.tail += in->backward_ns[v] + psplit_i_schedule_link(in, v);
  }
  for (uint32_t v = last + 1; !in->backward_ns && v < n_virtual; v++)
    p.tail += in->forward_ns[v] + psplit_i_schedule_link(in, v - 1);
  p.round = through(in, device, in->backward_ns ? n_virtual - 1 : last);
  if (in->weights_ns) {
    p.passed = p.work;
    p.back = p.tail + in->weights_ns[0];
    p.tail = 0;
    p.work += in->weights_ns[device];
    p.round += in->weights_ns[device];
  }
  return p;
}

/* The least time of a step with n micro-batches; *out_device says whose it is. */
static int64_t step_of(const psplit_schedule_input *in, const uint32_t *max_in_flight, uint64_t n,
                       uint32_t *out_device) {
  int64_t most = through(in, 0, in->n_stages * in->n_chunks - 1) + psplit_i_schedule_weights(in, 0);
  *out_device = PSPLIT_NONE;
  for (uint32_t d = 0; d < in->n_stages; d++) {
    const part p = part_of(in, d);
    int64_t busy = psplit_i_sat_mul_i64(p.work, (int64_t)n);
    /* Of a hundred micro-batches of which ten are held at once, ten follow one another. */
    const uint64_t held = max_in_flight ? max_in_flight[d] : n;
    const int64_t turns = psplit_i_sat_mul_i64(p.round, (int64_t)((n - 1) / held + 1));
    if (max_in_flight && turns > busy) busy = turns;
    const int64_t passed = psplit_i_sat_add_i64(psplit_i_sat_mul_i64(p.passed, (int64_t)n), p.back);
    const int64_t done = psplit_i_sat_add_i64(busy, p.tail);
    const int64_t step = psplit_i_sat_add_i64(passed > done ? passed : done, p.head);
    if (step <= most) continue;
    most = step;
    *out_device = d;
  }
  return most;
}

static psplit_code check(const psplit_schedule_input *in, const uint32_t *max_in_flight,
                         psplit_diag *diag) {
  const psplit_code code = psplit_i_schedule_check(in, diag);
  if (code != PSPLIT_OK) return code;
  for (uint32_t d = 0; max_in_flight && d < in->n_stages; d++)
    if (max_in_flight[d] == 0)
      return psplit_i_fail(diag, PSPLIT_USAGE, "a device that may hold no micro-batch");
  return PSPLIT_OK;
}

static double speed_up_of(int64_t work, uint64_t n, int64_t step) {
  return step > 0 ? (double)work * (double)n / (double)step : 1;
}

/* The pace of the slowest device, or of its round trips: what a step tends to for each of ever more
 * micro-batches. */
static double pace_of(const part *p, const uint32_t *max_in_flight, uint32_t device) {
  const double round = max_in_flight ? (double)p->round / max_in_flight[device] : 0;
  return (double)p->work > round ? (double)p->work : round;
}

static double speed_up_limit(const psplit_schedule_input *in, const uint32_t *max_in_flight,
                             int64_t work) {
  double pace = 0;
  for (uint32_t d = 0; d < in->n_stages; d++) {
    const part p = part_of(in, d);
    pace = fmax(pace, pace_of(&p, max_in_flight, d));
  }
  return pace > 0 ? (double)work / pace : 1;
}

/* The least n for which nothing forbids n * work / step(n) >= wanted; 0: none. A device whose step
 * is at least e + n * pace says n * (work - wanted * pace) >= wanted * e. */
static uint32_t least_micro_batches(const psplit_schedule_input *in, const uint32_t *max_in_flight,
                                    int64_t work, double wanted) {
  if (work == 0) return 1;
  double least = wanted * (double)through(in, 0, in->n_stages * in->n_chunks - 1) / (double)work;
  for (uint32_t d = 0; d < in->n_stages; d++) {
    const part p = part_of(in, d);
    const double gain = (double)work - wanted * pace_of(&p, max_in_flight, d);
    if (gain <= 0) return 0;
    least = fmax(least, wanted * (double)(p.head + p.tail) / gain);
  }
  /* A hair less, for what was rounded: more would claim what may not hold. */
  least = ceil(least * (1 - 1e-12));
  return least < 1 ? 1 : least < UINT32_MAX ? (uint32_t)least : 0;
}

psplit_code psplit_limits_step(const psplit_schedule_input *in, const uint32_t *max_in_flight,
                               psplit_diag *diag, psplit_step_limit *out_limit) {
  const psplit_code code = check(in, max_in_flight, diag);
  if (code != PSPLIT_OK) return code;
  psplit_step_limit limit = {0};
  int64_t work = 0;
  for (uint32_t v = 0; v < in->n_stages * in->n_chunks; v++)
    work +=
      in->forward_ns[v] + psplit_i_schedule_backward(in, v) + psplit_i_schedule_weights(in, v);
  limit.step_ns = step_of(in, max_in_flight, in->n_micro_batches, &limit.device);
  limit.work_ns = work * (int64_t)in->n_micro_batches;
  limit.speed_up = speed_up_of(work, in->n_micro_batches, limit.step_ns);
  limit.speed_up_limit = speed_up_limit(in, max_in_flight, work);
  limit.bubble_frac = 1 - limit.speed_up / in->n_stages;
  if (limit.bubble_frac < 0) limit.bubble_frac = 0;
  limit.micro_batches_90 = least_micro_batches(in, max_in_flight, work, 0.9 * limit.speed_up_limit);
  *out_limit = limit;
  return PSPLIT_OK;
}

psplit_code psplit_limits_micro_batches(const psplit_schedule_input *in, double share,
                                        uint32_t most, psplit_diag *diag, uint32_t *out_n) {
  if (!(share >= 0 && share <= 1) || most == 0 || most > 4096)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "a share is 0 to 1, and there are 1 to 4096 micro-batches");
  psplit_schedule_input one = *in;
  psplit_step_limit limit;
  one.n_micro_batches = 1;
  psplit_code code = psplit_limits_step(&one, NULL, diag, &limit);
  if (code != PSPLIT_OK) return code;
  const double wanted = share * limit.speed_up_limit;
  *out_n = 0;
  for (uint32_t n = 1; n <= most; n++) {
    uint32_t device;
    psplit_schedule *schedule;
    one.n_micro_batches = n;
    /* No need to look where no schedule is that fast. */
    if (speed_up_of(limit.work_ns, n, step_of(&one, NULL, n, &device)) < wanted) continue;
    code = psplit_schedule_simulate(&one, diag, &schedule);
    if (code != PSPLIT_OK) return code;
    const double speed_up = speed_up_of(limit.work_ns, n, schedule->makespan_ns);
    psplit_schedule_destroy(schedule);
    if (speed_up < wanted) continue;
    *out_n = n;
    break;
  }
  return PSPLIT_OK;
}
