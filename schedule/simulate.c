/* What a schedule of micro-batches makes of stage times: each device runs its list of forward and
 * backward pieces in a fixed order, each piece waits for the piece that feeds it.
 * Sources: GPipe (Huang et al., NeurIPS 2019), PipeDream-Flush / 1F1B (Narayanan et al., ICML
 * 2021), interleaved 1F1B (Narayanan et al., SC 2021, section 2.2), ZB-H1 (Qi et al., "Zero Bubble
 * Pipeline Parallelism", ICLR 2024, section 2.1). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "input.h"

typedef struct simulation {
  const psplit_schedule_input *in;
  psplit_schedule *out;
  uint32_t n_virtual, n_units; /* units: pieces of one device one way, with those filled up */
  size_t per_device;
  int64_t *done; /* [N_WAYS * n_virtual * n_micro_batches] end of a piece, -1: not run */
} simulation;

enum { FORWARD, BACKWARD, WEIGHTS, N_WAYS };

static int way_of(const psplit_schedule_slot *slot) {
  return slot->weights ? WEIGHTS : slot->backward ? BACKWARD : FORWARD;
}

/* The n-th forward (or backward) piece of a device. Interleaved: groups of n_stages micro-batches
 * go through all chunks in turn, backward in reverse. A last group that is short is filled up with
 * micro-batches that do not exist, which keeps the order free of deadlock. */
static void piece(const simulation *s, uint32_t n, bool backward, uint32_t *chunk,
                  uint32_t *micro) {
  const uint32_t k = s->in->n_stages, c = s->in->n_chunks;
  if (c == 1) {
    *chunk = 0;
    *micro = n;
    return;
  }
  assert(k > 0 && c > 0);
  const uint32_t step = n % (k * c) / k;
  *chunk = backward ? c - 1 - step : step;
  *micro = n / (k * c) * k + n % k;
}

/* Forward pieces a device runs before its first backward one. */
static uint32_t warm_up(const simulation *s, uint32_t stage) {
  const psplit_schedule_input *in = s->in;
  uint32_t n = s->n_units;
  if (in->kind == PSPLIT_SCHEDULE_1F1B || in->kind == PSPLIT_SCHEDULE_ZERO_BUBBLE)
    n = in->n_stages - stage;
  else if (in->kind == PSPLIT_SCHEDULE_INTERLEAVED)
    n = (in->n_stages - stage - 1) * 2 + (in->n_chunks - 1) * in->n_stages + 1;
  return n < s->n_units ? n : s->n_units;
}

/* 1F1B's list with the gradients of weights between: those of a micro-batch behind the backward
 * piece that comes as many places later as the device stands behind the first. So every device
 * holds n_stages micro-batches, as 1F1B's first one does, and none begins a backward piece later
 * than it could for the sake of weights that nobody waits for. */
static void list_zero_bubble(const simulation *s, uint32_t stage, psplit_schedule_slot *slots) {
  const uint32_t m = s->in->n_micro_batches, warm = warm_up(s, stage);
  uint32_t forward = 0, back = 0, weights = 0;
  for (size_t n = 0; n < s->per_device; n++) {
    psplit_schedule_slot *slot = &slots[n];
    *slot = (psplit_schedule_slot){.stage = stage};
    if (forward < warm || (forward < m && back + warm > forward && weights + stage >= back)) {
      slot->micro_batch = forward++;
    } else {
      slot->backward = true;
      slot->weights = weights + stage < back || back == m;
      slot->micro_batch = slot->weights ? weights++ : back++;
    }
  }
}

/* The list of a device's pieces, in order. */
static void list_pieces(const simulation *s, uint32_t stage, psplit_schedule_slot *slots) {
  uint32_t forward = 0, back = 0;
  const uint32_t warm = warm_up(s, stage);
  const bool has_backward = s->in->backward_ns != NULL;
  size_t n = 0;
  while (n < s->per_device) {
    const bool backward =
      has_backward && forward >= warm && (forward == s->n_units || forward > back + warm - 1);
    psplit_schedule_slot *slot = &slots[n];
    *slot = (psplit_schedule_slot){.stage = stage, .backward = backward};
    piece(s, backward ? back++ : forward++, backward, &slot->chunk, &slot->micro_batch);
    n += slot->micro_batch < s->in->n_micro_batches;
  }
}

static int64_t *done_at(const simulation *s, uint32_t v, uint32_t micro, int way) {
  return &s->done[((size_t)way * s->n_virtual + v) * s->in->n_micro_batches + micro];
}

static int64_t length(const simulation *s, uint32_t v, int way) {
  const psplit_schedule_input *in = s->in;
  const int64_t *ns = way == WEIGHTS    ? in->weights_ns
                      : way == BACKWARD ? in->backward_ns
                                        : in->forward_ns;
  assert(ns); /* no piece goes a way without times */
  return ns[v];
}

/* When the piece's input is there; -1: not yet known. */
static int64_t ready_at(const simulation *s, const psplit_schedule_slot *slot) {
  const uint32_t v = slot->chunk * s->in->n_stages + slot->stage;
  const int64_t *link = s->in->link_ns;
  int64_t at;
  if (slot->weights) return *done_at(s, v, slot->micro_batch, BACKWARD);
  if (!slot->backward) {
    if (v == 0) return 0;
    at = *done_at(s, v - 1, slot->micro_batch, FORWARD);
    return at < 0 ? -1 : at + (link ? link[v - 1] : 0);
  }
  if (v == s->n_virtual - 1) return *done_at(s, v, slot->micro_batch, FORWARD);
  at = *done_at(s, v + 1, slot->micro_batch, BACKWARD);
  return at < 0 ? -1 : at + (link ? link[v] : 0);
}

/* Runs every device as far as its next piece's input allows, until nothing is left. */
static bool run(simulation *s, size_t *next, int64_t *clock) {
  psplit_schedule *out = s->out;
  size_t left = out->n_slots;
  while (left > 0) {
    const size_t before = left;
    for (uint32_t d = 0; d < s->in->n_stages; d++)
      for (; next[d] < s->per_device; next[d]++, left--) {
        psplit_schedule_slot *slot = &out->slots[d * s->per_device + next[d]];
        const int64_t ready = ready_at(s, slot);
        if (ready < 0) break;
        const uint32_t v = slot->chunk * s->in->n_stages + d;
        slot->start_ns = ready > clock[d] ? ready : clock[d];
        slot->end_ns = slot->start_ns + (s->in->slot_ns ? s->in->slot_ns[slot - out->slots]
                                                        : length(s, v, way_of(slot)));
        clock[d] = slot->end_ns;
        out->busy_ns[d] += slot->end_ns - slot->start_ns;
        *done_at(s, v, slot->micro_batch, way_of(slot)) = slot->end_ns;
        if (slot->end_ns > out->makespan_ns) out->makespan_ns = slot->end_ns;
      }
    if (left == before) return false;
  }
  return true;
}

/* A forward piece holds its activations until its last backward piece ends; without a backward pass
 * until it ends itself. */
static void count_in_flight(simulation *s) {
  psplit_schedule *out = s->out;
  for (uint32_t d = 0; d < s->in->n_stages; d++) {
    uint32_t held = 0;
    uint64_t bytes = 0;
    for (size_t k = 0; k < s->per_device; k++) {
      const psplit_schedule_slot *slot = &out->slots[d * s->per_device + k];
      const uint64_t one =
        s->in->activation_bytes ? s->in->activation_bytes[slot->chunk * s->in->n_stages + d] : 0;
      if (!slot->backward) {
        held++;
        bytes = psplit_i_sat_add_u64(bytes, one);
        if (held > out->peak_in_flight[d]) out->peak_in_flight[d] = held;
        if (bytes > out->peak_bytes[d]) out->peak_bytes[d] = bytes;
      }
      if (s->in->weights_ns ? slot->weights : slot->backward || !s->in->backward_ns) {
        held--;
        bytes -= one;
      }
    }
  }
}

/* Links count as often as pieces do at most, and psplit_i_schedule_check has bounded them. */
static psplit_code check_slots(const psplit_schedule_input *in, size_t n, psplit_diag *diag) {
  int64_t total = 0;
  for (size_t i = 0; in->slot_ns && i < n; i++) {
    if (in->slot_ns[i] < 0) return psplit_i_fail(diag, PSPLIT_USAGE, "a negative time of a piece");
    total = psplit_i_sat_add_i64(total, in->slot_ns[i]);
  }
  return total > INT64_MAX / 4 ? psplit_i_fail(diag, PSPLIT_LIMIT, "the schedule's times overflow")
                               : PSPLIT_OK;
}

psplit_code psplit_schedule_simulate(const psplit_schedule_input *in, psplit_diag *diag,
                                     psplit_schedule **out_schedule) {
  psplit_code code = psplit_i_schedule_check(in, diag);
  if (code != PSPLIT_OK) return code;
  simulation s = {.in = in, .out = calloc(1, sizeof *s.out)};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  const uint32_t k = in->n_stages;
  s.n_virtual = k * in->n_chunks;
  s.n_units = in->n_micro_batches;
  if (in->n_chunks > 1) s.n_units = in->n_chunks * ((in->n_micro_batches + k - 1) / k * k);
  s.per_device = (size_t)in->n_chunks * in->n_micro_batches *
                 (in->weights_ns    ? 3
                  : in->backward_ns ? 2
                                    : 1);
  const size_t cells = (size_t)s.n_virtual * in->n_micro_batches * N_WAYS;
  s.done = psplit_i_arena_array(&arena, cells, sizeof *s.done);
  size_t *next = PSPLIT_NEW(&arena, size_t, k);
  int64_t *clock = PSPLIT_NEW(&arena, int64_t, k);
  if (!s.out || !s.done || !next || !clock) goto nomem;
  s.out->n_stages = k;
  s.out->n_slots = s.per_device * k;
  code = check_slots(in, s.out->n_slots, diag);
  if (code != PSPLIT_OK) goto out;
  s.out->busy_ns = calloc(k, sizeof *s.out->busy_ns);
  s.out->peak_in_flight = calloc(k, sizeof *s.out->peak_in_flight);
  s.out->peak_bytes = calloc(k, sizeof *s.out->peak_bytes);
  s.out->slots = calloc(s.out->n_slots, sizeof *s.out->slots);
  if (!s.out->busy_ns || !s.out->peak_in_flight || !s.out->peak_bytes || !s.out->slots) goto nomem;
  memset(s.done, 0xff, cells * sizeof *s.done);
  for (uint32_t d = 0; d < k; d++)
    (in->weights_ns ? list_zero_bubble : list_pieces)(&s, d, s.out->slots + d * s.per_device);
  if (!run(&s, next, clock)) {
    code = psplit_i_fail(diag, PSPLIT_INTERNAL, "the schedule's pieces wait for each other");
    goto out;
  }
  count_in_flight(&s);
  double busy = 0;
  for (uint32_t d = 0; d < k; d++) busy += (double)s.out->busy_ns[d];
  if (s.out->makespan_ns > 0) s.out->bubble_frac = 1 - busy / ((double)s.out->makespan_ns * k);
  *out_schedule = s.out;
  s.out = NULL;
out:
  psplit_schedule_destroy(s.out);
  psplit_i_arena_fini(&arena);
  return code;
nomem:
  code = psplit_i_nomem(diag);
  goto out;
}

void psplit_schedule_destroy(psplit_schedule *schedule) {
  if (!schedule) return;
  free(schedule->busy_ns);
  free(schedule->peak_in_flight);
  free(schedule->peak_bytes);
  free(schedule->slots);
  free(schedule);
}
