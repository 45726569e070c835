/* The least makespan over all orders of the pieces, by branch and bound.
 *
 * Micro-batches are alike, so the k-th piece that a stage starts in one direction may be taken to
 * be of micro-batch k: numbering them anew by that keeps every wait satisfied. What is left to
 * choose is when a stage goes forward and when back. Only active schedules are looked at, in which
 * no piece could start earlier without delaying another: one of them is optimal (Giffler, Thompson,
 * "Algorithms for solving production-scheduling problems", Operations Research 1960). */
#include <string.h>

#include "base.h"
#include "input.h"

enum { MOST_STAGES = 16, MOST_MICRO_BATCHES = 255, WAYS = 4, MOST_BUCKETS = 1 << 14 };

typedef struct search {
  const psplit_schedule_input *in;
  const uint32_t *max_in_flight; /* NULL: any number */
  uint32_t k, m;
  uint32_t n[2][MOST_STAGES]; /* pieces done: forward, backward */
  int64_t clock[MOST_STAGES];
  int64_t *end;                /* [2 * k * m] of each piece that is done */
  int64_t tail[MOST_STAGES];   /* from a stage's last backward piece to the end of the step */
  int64_t beyond[MOST_STAGES]; /* from a forward piece's end to its backward piece's start */
  int64_t best;
  uint64_t n_steps, max_steps;
  /* States seen: what was done, and when its results were there. One that is nowhere earlier than
   * another of the same pieces leads nowhere. */
  size_t n_times, n_buckets;
  uint8_t *keys;   /* [n_buckets * WAYS * 2 * k] */
  int64_t *times;  /* [n_buckets * WAYS * n_times]; first < 0: free */
  uint8_t *oldest; /* [n_buckets] */
} search;

static int64_t *end_of(const search *s, bool backward, uint32_t stage, uint32_t micro) {
  return &s->end[((size_t)backward * s->k + stage) * s->m + micro];
}

static int64_t length(const search *s, bool backward, uint32_t stage) {
  return (backward ? s->in->backward_ns : s->in->forward_ns)[stage];
}

/* When what the stage's next piece reads is there; -1: not yet known, or there is no next piece. */
static int64_t arrival(const search *s, bool backward, uint32_t stage) {
  const uint32_t micro = s->n[backward][stage];
  if (micro == s->m) return -1;
  if (backward) {
    if (stage == s->k - 1) return s->n[0][stage] > micro ? *end_of(s, false, stage, micro) : -1;
    if (s->n[1][stage + 1] <= micro) return -1;
    return *end_of(s, true, stage + 1, micro) + psplit_i_schedule_link(s->in, stage);
  }
  if (stage == 0) return 0;
  if (s->n[0][stage - 1] <= micro) return -1;
  return *end_of(s, false, stage - 1, micro) + psplit_i_schedule_link(s->in, stage - 1);
}

/* The same, or -1 where the stage holds as many micro-batches as it may. */
static int64_t ready(const search *s, bool backward, uint32_t stage) {
  if (!backward && s->max_in_flight && s->n[0][stage] - s->n[1][stage] >= s->max_in_flight[stage])
    return -1;
  return arrival(s, backward, stage);
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* No completion of the state ends before this. at[d][j]: when stage j's next piece of direction d
 * can start, from what is done and the least that is still to come. */
static int64_t bound(const search *s) {
  int64_t at[2][MOST_STAGES], most = 0;
  for (uint32_t j = 0; j < s->k; j++) {
    at[0][j] = arrival(s, false, j);
    if (at[0][j] < 0) at[0][j] = j ? at[0][j - 1] + s->in->forward_ns[j - 1] : 0;
    at[0][j] = later(at[0][j], s->clock[j]);
  }
  for (uint32_t j = s->k; j-- > 0;) {
    at[1][j] = arrival(s, true, j);
    if (at[1][j] < 0)
      at[1][j] =
        j == s->k - 1 ? at[0][j] + s->in->forward_ns[j] : at[1][j + 1] + s->in->backward_ns[j + 1];
    at[1][j] = later(at[1][j], s->clock[j]);
  }
  for (uint32_t j = 0; j < s->k; j++) {
    const int64_t forward = (int64_t)(s->m - s->n[0][j]) * s->in->forward_ns[j];
    const int64_t backward = (int64_t)(s->m - s->n[1][j]) * s->in->backward_ns[j];
    if (s->n[1][j] == s->m) continue;
    const bool both = s->n[0][j] < s->m;
    const int64_t first = both && at[0][j] < at[1][j] ? at[0][j] : at[1][j];
    most = later(most, first + forward + backward + s->tail[j]);
    most = later(most, at[1][j] + backward + s->tail[j]);
    if (both)
      most = later(most, at[0][j] + forward + s->beyond[j] + s->in->backward_ns[j] + s->tail[j]);
  }
  return most;
}

/* The times that matter for what is still to come, as late as they matter. */
static void times_of(const search *s, int64_t *times) {
  size_t n = 0;
  memset(times, 0, s->n_times * sizeof *times);
  for (uint32_t j = 0; j < s->k; j++) times[n++] = s->clock[j];
  for (uint32_t j = 0; j + 1 < s->k; j++) {
    for (uint32_t i = s->n[0][j + 1]; i < s->n[0][j]; i++)
      times[n++] =
        later(*end_of(s, false, j, i) + psplit_i_schedule_link(s->in, j), s->clock[j + 1]);
    for (uint32_t i = s->n[1][j]; i < s->n[1][j + 1]; i++)
      times[n++] =
        later(*end_of(s, true, j + 1, i) + psplit_i_schedule_link(s->in, j), s->clock[j]);
  }
}

static bool no_earlier(const int64_t *a, const int64_t *b, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (a[i] < b[i]) return false;
  return true;
}

/* Whether a state with the same pieces done was seen that is nowhere later; else keeps this one. */
static bool seen(search *s, int64_t *scratch) {
  uint8_t key[2 * MOST_STAGES];
  const size_t key_bytes = 2 * (size_t)s->k;
  for (size_t i = 0; i < key_bytes; i++) key[i] = (uint8_t)s->n[i >= s->k][i % s->k];
  times_of(s, scratch);
  const size_t bucket = psplit_i_hash_bytes(key, key_bytes, 0) % s->n_buckets;
  for (size_t w = bucket * WAYS; w < (bucket + 1) * WAYS; w++) {
    const int64_t *times = s->times + w * s->n_times;
    if (times[0] >= 0 && memcmp(s->keys + w * key_bytes, key, key_bytes) == 0 &&
        no_earlier(scratch, times, s->n_times))
      return true;
  }
  const size_t w = bucket * WAYS + s->oldest[bucket]++ % WAYS;
  memcpy(s->keys + w * key_bytes, key, key_bytes);
  memcpy(s->times + w * s->n_times, scratch, s->n_times * sizeof *scratch);
  return false;
}

/* The stage whose next piece can end first, and when it does; false: nothing is left to do. */
static bool first_to_end(const search *s, uint32_t *out_stage, int64_t *out_end) {
  *out_end = INT64_MAX;
  for (uint32_t j = 0; j < s->k; j++)
    for (int backward = 1; backward >= 0; backward--) {
      const int64_t at = ready(s, backward, j);
      if (at < 0) continue;
      const int64_t end = later(at, s->clock[j]) + length(s, backward, j);
      if (end >= *out_end) continue;
      *out_end = end;
      *out_stage = j;
    }
  return *out_end < INT64_MAX;
}

static void explore(search *s, int64_t *scratch) {
  uint32_t stage = 0;
  int64_t end;
  if (s->n_steps >= s->max_steps) return;
  s->n_steps++;
  if (!first_to_end(s, &stage, &end)) {
    int64_t makespan = 0;
    for (uint32_t j = 0; j < s->k; j++) makespan = later(makespan, s->clock[j]);
    if (makespan < s->best) s->best = makespan;
    return;
  }
  if (bound(s) >= s->best || seen(s, scratch)) return;
  /* Of the stage that ends first, whichever piece can start before that end comes next. */
  for (int backward = 1; backward >= 0; backward--) {
    const int64_t at = ready(s, backward, stage), before = s->clock[stage];
    if (at < 0) continue;
    const int64_t start = later(at, before);
    if (start >= end && start + length(s, backward, stage) > end) continue;
    *end_of(s, backward, stage, s->n[backward][stage]) = s->clock[stage] =
      start + length(s, backward, stage);
    s->n[backward][stage]++;
    explore(s, scratch);
    s->n[backward][stage]--;
    s->clock[stage] = before;
  }
}

/* The makespan of a schedule that is known, where it keeps the limits; else none. */
static psplit_code try_known(search *s, psplit_schedule_kind kind, psplit_diag *diag) {
  psplit_schedule_input in = *s->in;
  psplit_schedule *schedule;
  in.kind = kind;
  const psplit_code code = psplit_schedule_simulate(&in, diag, &schedule);
  if (code != PSPLIT_OK) return code;
  bool fits = true;
  for (uint32_t j = 0; s->max_in_flight && j < s->k; j++)
    fits &= schedule->peak_in_flight[j] <= s->max_in_flight[j];
  if (fits && schedule->makespan_ns < s->best) s->best = schedule->makespan_ns;
  psplit_schedule_destroy(schedule);
  return PSPLIT_OK;
}

static psplit_code check(const psplit_schedule_input *in, const uint32_t *max_in_flight,
                         psplit_diag *diag) {
  const psplit_code code = psplit_i_schedule_check(in, diag);
  if (code != PSPLIT_OK) return code;
  if (in->n_chunks > 1 || !in->backward_ns || in->weights_ns)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "the best order is for a backward pass in one piece and one stage a "
                         "device");
  if (in->n_stages > MOST_STAGES || in->n_micro_batches > MOST_MICRO_BATCHES)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "more than %d stages or %d micro-batches", MOST_STAGES,
                         MOST_MICRO_BATCHES);
  for (uint32_t j = 0; max_in_flight && j < in->n_stages; j++)
    if (max_in_flight[j] == 0)
      return psplit_i_fail(diag, PSPLIT_USAGE, "a stage that may hold no micro-batch");
  return PSPLIT_OK;
}

psplit_code psplit_schedule_optimum(const psplit_schedule_input *in, const uint32_t *max_in_flight,
                                    uint64_t max_steps, psplit_diag *diag, int64_t *out_makespan_ns,
                                    int64_t *out_bound_ns) {
  psplit_code code = check(in, max_in_flight, diag);
  if (code != PSPLIT_OK) return code;
  search s = {.in = in,
              .max_in_flight = max_in_flight,
              .k = in->n_stages,
              .m = in->n_micro_batches,
              .best = INT64_MAX,
              .max_steps = max_steps};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  s.n_times = s.k + (size_t)s.m; /* a micro-batch has one result that waits, if any */
  s.n_buckets = MOST_BUCKETS;
  const size_t n_states = s.n_buckets * WAYS;
  s.end = PSPLIT_NEW(&arena, int64_t, (size_t)2 * s.k * s.m);
  s.keys = PSPLIT_NEW(&arena, uint8_t, n_states * 2 * s.k);
  s.times = PSPLIT_NEW(&arena, int64_t, n_states * s.n_times);
  s.oldest = PSPLIT_NEW(&arena, uint8_t, s.n_buckets);
  int64_t *scratch = PSPLIT_NEW(&arena, int64_t, s.n_times);
  PSPLIT_TRY(s.end && s.keys && s.times && s.oldest && scratch ? PSPLIT_OK : psplit_i_nomem(diag));
  memset(s.times, 0xff, n_states * s.n_times * sizeof *s.times);
  for (uint32_t j = 1; j < s.k; j++)
    s.tail[j] = s.tail[j - 1] + in->backward_ns[j - 1] + psplit_i_schedule_link(in, j - 1);
  for (uint32_t j = s.k - 1; j-- > 0;)
    s.beyond[j] = s.beyond[j + 1] + in->forward_ns[j + 1] + in->backward_ns[j + 1] +
                  2 * psplit_i_schedule_link(in, j);
  PSPLIT_TRY(try_known(&s, PSPLIT_SCHEDULE_1F1B, diag));
  PSPLIT_TRY(try_known(&s, PSPLIT_SCHEDULE_FILL_DRAIN, diag));
  const int64_t root = bound(&s);
  explore(&s, scratch);
  if (s.best == INT64_MAX) /* no order was completed: one micro-batch after the other */
    s.best = (int64_t)s.m * (s.beyond[0] + in->forward_ns[0] + in->backward_ns[0]);
  *out_makespan_ns = s.best;
  *out_bound_ns = s.n_steps < max_steps ? s.best : root < s.best ? root : s.best;
out:
  psplit_i_arena_fini(&arena);
  return code;
}
