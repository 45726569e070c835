#include "pieces.h"

#include "exchange.h"

void psplit_i_add_event(psplit_i_work *w, psplit_i_event *e) {
  e->sent_ns = psplit_i_now_ns();
  w->device->events[w->n_piece++ % w->device->n_events] = *e;
  psplit_i_sums_add(w->device->sums, e);
}

static void note_peak(psplit_i_work *w) {
  uint32_t n = 0;
  uint64_t bytes = 0;
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++) {
    n += w->learners[c].n_held;
    bytes += w->learners[c].held_bytes;
  }
  if (n > w->peak_stashes) w->peak_stashes = n;
  if (bytes > w->peak_bytes) w->peak_bytes = bytes;
}

psplit_code psplit_i_heed(psplit_i_work *w, psplit_code code, psplit_diag *diag) {
  if (code == PSPLIT_OK || !psplit_i_watch_gives_up(&w->device->watch)) return code;
  *diag = (psplit_diag){0};
  w->given_up = true;
  return PSPLIT_OK;
}

static psplit_code run_forward(psplit_i_work *w, const psplit_schedule_slot *slot,
                               psplit_diag *diag) {
  psplit_i_learner *l = &w->learners[slot->chunk];
  const int64_t start_ns = psplit_i_now_ns();
  psplit_i_event e = {0};
  double loss = 0;
  psplit_code code;
  /* Its data is read while others may still be at work for it. */
  if (!w->given_up)
    PSPLIT_TRY(psplit_i_learner_feed(l, PSPLIT_I_SET_TRAIN, w->step, slot->micro_batch, diag));
  e.begin_ns = psplit_i_now_ns();
  e.before_ns = e.begin_ns - start_ns;
  PSPLIT_TRY(psplit_i_take_all(w, l, PSPLIT_I_WIRE_FORWARD, &e));
  e.ready_ns = psplit_i_now_ns();
  if (!w->given_up) {
    code = psplit_i_learner_forward(l, PSPLIT_I_SET_TRAIN, slot->micro_batch, diag, &loss);
    PSPLIT_TRY(psplit_i_heed(w, code, diag));
  }
  e.done_ns = psplit_i_now_ns();
  note_peak(w);
  w->loss += loss;
  w->forward_ns[slot->chunk] += e.before_ns + e.done_ns - e.ready_ns;
  PSPLIT_TRY(psplit_i_give_all(w, l, PSPLIT_I_WIRE_FORWARD, diag));
  psplit_i_learner_drop_results(l);
  psplit_i_add_event(w, &e);
out:
  return code;
}

static psplit_code backward(const psplit_i_work *w, psplit_i_learner *l, uint32_t m,
                            psplit_diag *diag) {
  const psplit_code code = psplit_i_learner_backward(l, m, diag);
  return code == PSPLIT_OK && psplit_i_given(w)->schedule != PSPLIT_SCHEDULE_ZERO_BUBBLE
           ? psplit_i_learner_weight_gradients(l, m, diag)
           : code;
}

static psplit_code run_backward(psplit_i_work *w, const psplit_schedule_slot *slot,
                                psplit_diag *diag) {
  psplit_i_learner *l = &w->learners[slot->chunk];
  psplit_i_event e = {.begin_ns = psplit_i_now_ns()};
  psplit_code code;
  PSPLIT_TRY(psplit_i_take_all(w, l, PSPLIT_I_WIRE_BACKWARD, &e));
  e.ready_ns = psplit_i_now_ns();
  if (!w->given_up) PSPLIT_TRY(psplit_i_heed(w, backward(w, l, slot->micro_batch, diag), diag));
  e.done_ns = psplit_i_now_ns();
  note_peak(w); /* of what is kept */
  w->backward_ns[slot->chunk] += e.done_ns - e.ready_ns;
  PSPLIT_TRY(psplit_i_give_all(w, l, PSPLIT_I_WIRE_BACKWARD, diag));
  psplit_i_learner_drop_results(l);
  psplit_i_add_event(w, &e);
out:
  return code;
}

/* Of the zero-bubble schedule. */
static psplit_code run_weights(psplit_i_work *w, const psplit_schedule_slot *slot,
                               psplit_diag *diag) {
  psplit_i_learner *l = &w->learners[slot->chunk];
  psplit_i_event e = {.begin_ns = psplit_i_now_ns()};
  psplit_code code = PSPLIT_OK;
  e.ready_ns = e.begin_ns;
  if (!w->given_up)
    code = psplit_i_heed(w, psplit_i_learner_weight_gradients(l, slot->micro_batch, diag), diag);
  PSPLIT_TRY(code);
  e.done_ns = psplit_i_now_ns();
  w->weights_ns[slot->chunk] += e.done_ns - e.ready_ns;
  psplit_i_add_event(w, &e);
out:
  return code;
}

psplit_code psplit_i_run_slot(psplit_i_work *w, const psplit_schedule_slot *slot,
                              psplit_diag *diag) {
  w->given_up |= psplit_i_watch_gives_up(&w->device->watch);
  return slot->weights    ? run_weights(w, slot, diag)
         : slot->backward ? run_backward(w, slot, diag)
                          : run_forward(w, slot, diag);
}
