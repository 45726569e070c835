#include <stdlib.h>

#include "clock.h"
#include "runtime.h"

psplit_code psplit_i_timeline_init(uint32_t n_stages, uint32_t n_micro_batches, psplit_diag *diag,
                                   psplit_i_timeline *out) {
  psplit_i_timeline timeline = {.n_stages = n_stages, .capacity = PSPLIT_I_MOST_EVENTS};
  if (n_micro_batches < timeline.capacity) timeline.capacity = n_micro_batches;
  timeline.events = calloc((size_t)n_stages * timeline.capacity, sizeof *timeline.events);
  timeline.sums = calloc(n_stages, sizeof *timeline.sums);
  if (timeline.events && timeline.sums) {
    *out = timeline;
    return PSPLIT_OK;
  }
  psplit_i_timeline_fini(&timeline);
  return psplit_i_nomem(diag);
}

void psplit_i_timeline_fini(psplit_i_timeline *timeline) {
  free(timeline->events);
  free(timeline->sums);
  timeline->events = NULL;
  timeline->sums = NULL;
}

uint32_t psplit_i_timeline_n(const psplit_i_timeline *timeline) {
  return timeline->n_micro_batches < timeline->capacity ? (uint32_t)timeline->n_micro_batches
                                                        : timeline->capacity;
}

const psplit_i_event *psplit_i_timeline_event(const psplit_i_timeline *timeline, uint32_t stage,
                                              uint32_t i) {
  const uint64_t first = timeline->n_micro_batches - psplit_i_timeline_n(timeline);
  return &timeline->events[(size_t)stage * timeline->capacity + (first + i) % timeline->capacity];
}

void psplit_i_sums_add(psplit_i_sums *sums, const psplit_i_event *e) {
  sums->wait_in_ns += e->ready_ns - e->begin_ns;
  sums->busy_ns += e->before_ns + e->done_ns - e->ready_ns;
  sums->wait_out_ns += e->sent_ns - e->done_ns;
  sums->transfer_ns += e->transfer_ns;
  sums->bytes += e->bytes;
  if (sums->n_micro_batches++ == 0) {
    sums->first_ready_ns = e->ready_ns;
    sums->first_sent_ns = e->sent_ns;
  }
  sums->last_sent_ns = e->sent_ns;
}

void psplit_i_timeline_times(const psplit_i_timeline *timeline, uint32_t stage, int64_t *out_ns) {
  const uint32_t n = psplit_i_timeline_n(timeline);
  for (uint32_t i = 0; i < n; i++) {
    const psplit_i_event *event = psplit_i_timeline_event(timeline, stage, i);
    out_ns[i] = event->done_ns - event->ready_ns;
  }
  if (n) qsort(out_ns, n, sizeof *out_ns, psplit_i_compare_ns);
}
