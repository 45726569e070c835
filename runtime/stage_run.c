/* All micro-batches of a stage. */
#include <inttypes.h>

#include "stage_inside.h"

/* Whether what others say is the end can be it. */
static bool is_end(const psplit_i_stage *stage, uint64_t micro_batch, uint32_t n,
                   psplit_diag *diag) {
  return stage->streams || psplit_i_fail(diag, PSPLIT_INTERNAL,
                                         "its inputs end after %" PRIu64 " of %u micro-batches",
                                         micro_batch, n) == PSPLIT_OK;
}

/* Runs micro-batches 0..n-1, in a stream all that come. False if the run was stopped, here (diag
 * tells) or elsewhere. */
static bool run_alone(psplit_i_stage *stage, psplit_i_stage_work *w, uint32_t n, bool measured,
                      psplit_diag *diag) {
  bool stopped = false, at_end = false;
  for (uint64_t m = 0; (m < n || stage->streams) && !stopped; m++) {
    psplit_i_event event = {.begin_ns = psplit_i_now_ns()};
    if (!psplit_i_stage_take(stage, w, m, &event, &at_end))
      return at_end && is_end(stage, m, n, diag);
    psplit_i_stage_compute(stage, w, m, &event);
    if (psplit_i_stage_hand_on(stage, w, m, measured, &event, diag, &stopped) != PSPLIT_OK)
      return false;
  }
  return !stopped;
}

/* One of several replicas. They compute side by side; what they take and hand on is in the order of
 * micro-batches, as if there were one. */
static bool run_beside(psplit_i_side *one) {
  psplit_i_stage *stage = one->stage;
  psplit_i_stage_work *w = &one->w;
  bool stopped = false, at_end = false;
  for (uint64_t m = w->replica; m < one->n || stage->streams; m += stage->n_replicas) {
    psplit_i_event event = {.begin_ns = psplit_i_now_ns()};
    if (!psplit_i_sequencer_wait(&stage->taking, m)) return !atomic_load(&stage->host->stopped);
    if (!psplit_i_stage_take(stage, w, m, &event, &at_end)) {
      psplit_i_sequencer_end(&stage->taking);
      return at_end && is_end(stage, m, one->n, &one->diag);
    }
    psplit_i_sequencer_pass(&stage->taking);
    psplit_i_stage_compute(stage, w, m, &event);
    if (!psplit_i_sequencer_wait(&stage->giving, m) ||
        psplit_i_stage_hand_on(stage, w, m, one->measured, &event, &one->diag, &stopped) !=
          PSPLIT_OK ||
        stopped)
      return false;
    psplit_i_sequencer_pass(&stage->giving);
  }
  return true;
}

/* A failure stops the others at once: one may wait for inputs that never come. */
static void *side_main(void *argument) {
  psplit_i_side *one = argument;
  psplit_i_stage *stage = one->stage;
  one->good = run_beside(one);
  if (one->good) return NULL;
  psplit_i_stage_end_turns(stage);
  if (one->diag.code != PSPLIT_OK) {
    psplit_diag told = one->diag;
    psplit_i_diag_context(&told, "stage %u (%s)", stage->index,
                          stage->pipe->manifest.stages[stage->index].file);
    stage->host->fail(stage->host, &told);
  }
  return NULL;
}

/* The same as run_alone. */
bool psplit_i_stage_run_all(psplit_i_stage *stage, psplit_i_side *sides, uint32_t n, bool measured,
                            psplit_diag *diag) {
  if (stage->n_replicas == 1) return run_alone(stage, &sides[0].w, n, measured, diag);
  pthread_t threads[PSPLIT_MOST_REPLICAS];
  uint32_t n_started = 1;
  bool good = true;
  psplit_i_sequencer_begin(&stage->taking);
  psplit_i_sequencer_begin(&stage->giving);
  for (uint32_t r = 0; r < stage->n_replicas; r++) {
    sides[r].n = n;
    sides[r].measured = measured;
  }
  for (; n_started < stage->n_replicas && good; n_started += good)
    good = pthread_create(&threads[n_started], NULL, side_main, &sides[n_started]) == 0;
  if (good) {
    side_main(&sides[0]);
  } else {
    psplit_i_stage_end_turns(stage);
    sides[0].good = psplit_i_fail(diag, PSPLIT_NOMEM, "cannot start a thread") == PSPLIT_OK;
  }
  for (uint32_t r = 1; r < n_started; r++) pthread_join(threads[r], NULL);
  for (uint32_t r = 0; r < n_started; r++) {
    good &= sides[r].good;
    if (!sides[r].good && diag->code == PSPLIT_OK) *diag = sides[r].diag;
  }
  return good;
}
