#include "step.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "all_reduce.h"
#include "evaluation.h"
#include "exchange.h"
#include "pieces.h"
#include "rate.h"
#include "resuming.h"

enum { LOSS, CANCEL, GIVEN_UP, N_STEP_HEAD };
enum { APPLY, STOP, COUNTS, RATE, SCALE, N_STEP_ANSWER };

/* Sums of squares in the order of the model's weights, whatever the cut. */
static double gradient_norm(const psplit_i_work *w, const double *reports, size_t n) {
  const psplit_i_training_table *t = w->device->pipe->manifest.training;
  double sum = 0;
  for (uint32_t k = 0; k < w->n_weights; k++)
    if (t->weights[k].owner != PSPLIT_NONE)
      sum += reports[n * (t->weights[k].owner % w->setup->wiring.n_line) + N_STEP_HEAD + k];
  return sqrt(sum);
}

static psplit_code keep_loss(psplit_i_train_result *r, double loss, psplit_diag *diag) {
  if ((r->n_steps & (r->n_steps - 1)) == 0) {
    const size_t room = r->n_steps ? 2 * (size_t)r->n_steps : 16;
    double *grown = realloc(r->losses, (room > 16 ? room : 16) * sizeof *grown);
    if (!grown) return psplit_i_nomem(diag);
    r->losses = grown;
  }
  r->losses[r->n_steps++] = loss;
  return PSPLIT_OK;
}

typedef struct step_end {
  psplit_i_work *w;
  psplit_train_step told;
} step_end;

/* A psplit_i_decide. */
static psplit_code decide_step(void *user, const double *reports, size_t n, double *answer,
                               psplit_diag *diag) {
  step_end *end = user;
  psplit_i_work *w = end->w;
  const psplit_train_options *o = psplit_i_given(w);
  psplit_i_train_result *r = w->device->result;
  bool cancel = false, given_up = false;
  double loss = 0;
  for (uint32_t d = 0; d < w->setup->wiring.n_devices; d++) {
    loss += reports[n * d + LOSS];
    cancel |= reports[n * d + CANCEL] != 0;
    given_up |= reports[n * d + GIVEN_UP] != 0;
  }
  if (given_up) {
    r->interrupted = true;
    memset(answer, 0, N_STEP_ANSWER * sizeof *answer);
    answer[STOP] = 1;
    return PSPLIT_OK;
  }
  loss /= (double)o->n_micro_batches * o->smooth_samples;
  const double norm = gradient_norm(w, reports, n);
  const bool finite = isfinite(loss) && isfinite(norm);
  if (!finite && o->on_nan == PSPLIT_ON_NAN_STOP)
    return psplit_i_fail(diag, PSPLIT_INVALID, "step %" PRIu64 ": the %s is not finite",
                         w->step + 1, isfinite(loss) ? "gradient" : "loss");
  const psplit_code code = keep_loss(r, loss, diag);
  if (code != PSPLIT_OK) return code;
  r->n_skipped += !finite;
  r->interrupted = cancel && w->step + 1 < w->n_steps;
  answer[APPLY] = finite;
  answer[STOP] = cancel;
  answer[COUNTS] = 1;
  answer[RATE] = psplit_i_rate_at(o, w->step, w->n_steps);
  answer[SCALE] = psplit_i_clip_scale(norm, o->clip_norm);
  end->told = (psplit_train_step){.step = w->step + 1,
                                  .n_steps = w->n_steps,
                                  .loss = loss,
                                  .gradient_norm = norm,
                                  .learning_rate = answer[RATE],
                                  .skipped = !finite,
                                  .eval_loss = NAN};
  return PSPLIT_OK;
}

static psplit_code move_weights(psplit_i_work *w, const double *answer, psplit_diag *diag) {
  psplit_i_event e = {.begin_ns = psplit_i_now_ns()};
  psplit_code code = PSPLIT_OK;
  e.ready_ns = e.begin_ns;
  if (answer[APPLY] != 0) w->n_updates++;
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks && code == PSPLIT_OK; c++) {
    if (answer[APPLY] != 0)
      code = psplit_i_learner_update(&w->learners[c], answer[RATE], answer[SCALE],
                                     (int64_t)w->n_updates, diag);
    psplit_i_learner_drop_sums(&w->learners[c]);
  }
  e.done_ns = psplit_i_now_ns();
  w->update_ns += e.done_ns - e.ready_ns;
  if (code == PSPLIT_OK && answer[APPLY] != 0)
    code = psplit_i_share(w, PSPLIT_I_WIRE_WEIGHTS, diag);
  if (code == PSPLIT_OK) psplit_i_add_event(w, &e);
  return code;
}

/* Weights are where they were before the step, and so is all that goes into a checkpoint. */
static psplit_code leave_step(psplit_i_work *w, psplit_diag *diag) {
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++) {
    psplit_i_learner_put_back(&w->learners[c]);
    psplit_i_learner_drop_sums(&w->learners[c]);
  }
  return psplit_i_given(w)->checkpoint && w->step > w->first_step ? psplit_i_save(w, diag)
                                                                  : PSPLIT_OK;
}

/* What all devices say of the step, and are told: answer[N_STEP_ANSWER]. */
static psplit_code settle_step(psplit_i_work *w, psplit_diag *diag, step_end *end, double *answer) {
  const psplit_train_options *o = psplit_i_given(w);
  const size_t n = N_STEP_HEAD + (size_t)w->n_weights;
  psplit_code code = PSPLIT_OK;
  memset(w->report, 0, n * sizeof *w->report);
  w->report[LOSS] = w->loss;
  w->report[CANCEL] = psplit_i_cancelled(o->cancel);
  PSPLIT_TRY(psplit_i_share(w, PSPLIT_I_WIRE_PARTS, diag));
  PSPLIT_TRY(psplit_i_sum_replicas(w, diag));
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks && w->replica == 0 && !w->given_up; c++)
    PSPLIT_TRY(psplit_i_learner_squares(&w->learners[c], diag, w->report + N_STEP_HEAD));
  w->report[GIVEN_UP] = w->given_up;
  code = psplit_i_all_reduce(w->device, w->report, n,
                             (psplit_i_reduction){decide_step, end, N_STEP_ANSWER}, diag, answer);
out:
  return code;
}

/* The loss of other data behind the step. Who interrupts does not wait for it. */
static psplit_code evaluate(psplit_i_work *w, psplit_diag *diag, psplit_train_step *told,
                            bool *out_stop) {
  const psplit_train_options *o = psplit_i_given(w);
  if (!o->eval_every || (w->step % o->eval_every != 0 && w->step != w->n_steps) || *out_stop)
    return PSPLIT_OK;
  const psplit_code code = psplit_i_evaluate(w, diag, &told->eval_loss);
  *out_stop = w->given_up;
  told->evaluated = !w->given_up;
  if (w->given_up && w->device->index == 0) w->device->result->interrupted = true;
  return code;
}

static psplit_code end_step(psplit_i_work *w, psplit_diag *diag, bool *out_stop) {
  const psplit_train_options *o = psplit_i_given(w);
  step_end end = {.w = w};
  double answer[N_STEP_ANSWER];
  psplit_code code;
  PSPLIT_TRY(settle_step(w, diag, &end, answer));
  *out_stop = answer[STOP] != 0;
  if (answer[COUNTS] == 0) return leave_step(w, diag);
  PSPLIT_TRY(move_weights(w, answer, diag));
  w->step++;
  PSPLIT_TRY(evaluate(w, diag, &end.told, out_stop));
  if (o->checkpoint && (w->step == w->n_steps || *out_stop ||
                        (o->checkpoint_every && w->step % o->checkpoint_every == 0)))
    PSPLIT_TRY(psplit_i_save(w, diag));
  if (w->device->index > 0) return code;
  psplit_i_train_result *r = w->device->result;
  if (end.told.evaluated) r->eval_loss = end.told.eval_loss;
  r->ended_ns = psplit_i_now_ns();
  end.told.seconds = 1e-9 * (double)(r->ended_ns - r->began_ns);
  if (o->progress) o->progress(o->progress_user, &end.told);
out:
  return code;
}

/* Kept for as long as a run takes: what a function says where the run was stopped. */
static psplit_code go_on(const psplit_i_work *w) {
  return atomic_load(&w->device->host->stopped) ? PSPLIT_I_STOPPED : PSPLIT_OK;
}

psplit_code psplit_i_run_step(psplit_i_work *w, psplit_diag *diag, bool *out_stop) {
  const psplit_i_train_setup *setup = w->setup;
  const psplit_schedule_slot *slots = setup->schedule->slots + (size_t)w->line * setup->n_slots;
  psplit_code code = PSPLIT_OK;
  w->loss = 0;
  if (psplit_i_given(w)->checkpoint)
    for (uint32_t c = 0; c < setup->wiring.n_chunks; c++)
      PSPLIT_TRY(psplit_i_learner_keep(&w->learners[c], diag));
  psplit_i_watch_pieces(&w->device->watch, true);
  for (uint32_t i = 0; i < setup->n_slots && code == PSPLIT_OK; i++) {
    code = go_on(w);
    if (code == PSPLIT_OK) code = psplit_i_run_slot(w, &slots[i], diag);
    if (code != PSPLIT_OK)
      psplit_i_diag_context(diag, "step %" PRIu64 ", micro-batch %" PRIu32 " of stage %" PRIu32,
                            w->step + 1, slots[i].micro_batch, w->learners[slots[i].chunk].index);
  }
  w->given_up |= psplit_i_watch_pieces(&w->device->watch, false);
  if (code == PSPLIT_OK) code = end_step(w, diag, out_stop);
out:
  return code;
}
