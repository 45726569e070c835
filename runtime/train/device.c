#include "device.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "rate.h"
#include "saving.h"
#include "talk.h"

typedef struct work {
  psplit_i_device *device;
  const psplit_i_train_setup *setup;
  psplit_i_feeding feeding;
  psplit_i_learner *learners; /* [n_chunks] */
  uint32_t line, replica;     /* where this device stands */
  uint32_t n_weights;
  uint64_t first_step, step, n_steps, n_updates, n_piece;
  double loss;                                    /* of the step so far, where it arises here */
  double *report;                                 /* room for any */
  int64_t *forward_ns, *backward_ns, *weights_ns; /* [n_chunks] */
  int64_t update_ns;
  psplit_i_checkpoint *resumed;
  psplit_i_checkpoint_writer writer; /* of device 0 */
  uint32_t peak_stashes;             /* of all stages here at once */
  uint64_t peak_bytes;
} work;

void psplit_i_device_init(psplit_i_device *device) { psplit_i_watch_init(&device->watch); }

void psplit_i_device_fini(psplit_i_device *device) { psplit_i_watch_fini(&device->watch); }

void psplit_i_device_stop(psplit_i_device *device) { psplit_i_watch_stop(&device->watch); }

void psplit_i_train_result_fini(psplit_i_train_result *result) {
  free(result->losses);
  free(result->devices);
  free(result->forward_ns);
  free(result->backward_ns);
  free(result->weights_ns);
  *result = (psplit_i_train_result){0};
}

static const psplit_train_options *given(const work *w) { return &w->setup->given; }

/* Kept for as long as a run takes: what a function says where the run was stopped. */
static psplit_code go_on(const work *w) {
  return atomic_load(&w->device->host->stopped) ? PSPLIT_I_STOPPED : PSPLIT_OK;
}

/* --- between stages --- */

static psplit_code take_all(work *w, psplit_i_learner *l, psplit_i_wire_kind kind,
                            psplit_i_event *event) {
  const psplit_i_wiring *wiring = &w->setup->wiring;
  for (uint32_t i = 0; i < wiring->n_wires; i++) {
    psplit_i_bundle *bundle;
    if (!psplit_i_wire_enters(&wiring->wires[i], kind, l->index, l->replica)) continue;
    const psplit_code code = psplit_i_hear(w->device, i, &bundle);
    if (code != PSPLIT_OK) return code;
    event->transfer_ns += bundle->transfer_ns;
    event->bytes += bundle->bytes;
    psplit_i_learner_take(l, i, bundle);
    psplit_i_bundle_destroy(bundle);
  }
  return PSPLIT_OK;
}

static psplit_code give_all(work *w, const psplit_i_learner *l, psplit_i_wire_kind kind,
                            psplit_diag *diag) {
  const psplit_i_wiring *wiring = &w->setup->wiring;
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < wiring->n_wires && code == PSPLIT_OK; i++) {
    const psplit_i_wire *wire = &wiring->wires[i];
    if (!psplit_i_wire_leaves(wire, kind, l->index, l->replica)) continue;
    psplit_i_bundle *bundle = psplit_i_bundle_create(wire->n_tensors);
    if (!bundle) return psplit_i_nomem(diag);
    psplit_i_learner_give(l, i, bundle);
    code = psplit_i_tell(w->device, i, bundle);
  }
  return code;
}

/* Once a step: gradients of weights that several stages read, to who updates these; and weights
 * from there to the others. */
static psplit_code share(work *w, psplit_i_wire_kind kind, psplit_diag *diag) {
  psplit_i_event ignored = {0};
  psplit_code code = PSPLIT_OK;
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks && code == PSPLIT_OK; c++)
    code = give_all(w, &w->learners[c], kind, diag);
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks && code == PSPLIT_OK; c++)
    code = take_all(w, &w->learners[c], kind, &ignored);
  return code;
}

/* What this replica has of the gradients to the first one, which adds them in the order of the
 * replicas and gives all of them the sums. */
static psplit_code add_replicas(work *w, psplit_i_learner *l, psplit_diag *diag) {
  const psplit_i_wiring *wiring = &w->setup->wiring;
  psplit_code code = PSPLIT_OK;
  for (uint32_t r = 1; r < wiring->n_replicas; r++)
    for (uint32_t i = 0; i < wiring->n_wires && code == PSPLIT_OK; i++) {
      psplit_i_bundle *bundle;
      if (!psplit_i_wire_enters(&wiring->wires[i], PSPLIT_I_WIRE_GRADIENTS, l->index, 0) ||
          wiring->wires[i].from_replica != r)
        continue;
      PSPLIT_TRY(psplit_i_hear(w->device, i, &bundle));
      code = psplit_i_learner_add(l, i, bundle, diag);
      psplit_i_bundle_destroy(bundle);
    }
  if (code == PSPLIT_OK) code = give_all(w, l, PSPLIT_I_WIRE_SUMS, diag);
out:
  return code;
}

static psplit_code reduce(work *w, psplit_diag *diag) {
  const uint32_t n_chunks = w->setup->wiring.n_chunks;
  psplit_i_event ignored = {0};
  psplit_code code = PSPLIT_OK;
  if (w->setup->wiring.n_replicas == 1) return PSPLIT_OK;
  for (uint32_t c = 0; c < n_chunks && code == PSPLIT_OK; c++) {
    code = psplit_i_learner_fill_sums(&w->learners[c], diag);
    if (code == PSPLIT_OK) code = give_all(w, &w->learners[c], PSPLIT_I_WIRE_GRADIENTS, diag);
  }
  for (uint32_t c = 0; c < n_chunks && code == PSPLIT_OK; c++)
    code = w->replica ? take_all(w, &w->learners[c], PSPLIT_I_WIRE_SUMS, &ignored)
                      : add_replicas(w, &w->learners[c], diag);
  return code;
}

/* --- pieces --- */

static void add_event(work *w, psplit_i_event *e) {
  psplit_i_sums *sums = w->device->sums;
  e->sent_ns = psplit_i_now_ns();
  w->device->events[w->n_piece++ % w->device->n_events] = *e;
  sums->wait_in_ns += e->ready_ns - e->begin_ns;
  sums->busy_ns += e->done_ns - e->ready_ns;
  sums->wait_out_ns += e->sent_ns - e->done_ns;
  sums->transfer_ns += e->transfer_ns;
  sums->bytes += e->bytes;
  if (sums->n_micro_batches++ == 0) {
    sums->first_ready_ns = e->ready_ns;
    sums->first_sent_ns = e->sent_ns;
  }
  sums->last_sent_ns = e->sent_ns;
}

static void note_peak(work *w) {
  uint32_t n = 0;
  uint64_t bytes = 0;
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++) {
    n += w->learners[c].n_held;
    bytes += w->learners[c].held_bytes;
  }
  if (n > w->peak_stashes) w->peak_stashes = n;
  if (bytes > w->peak_bytes) w->peak_bytes = bytes;
}

static psplit_code run_forward(work *w, const psplit_schedule_slot *slot, psplit_diag *diag) {
  psplit_i_learner *l = &w->learners[slot->chunk];
  psplit_i_event e = {.begin_ns = psplit_i_now_ns()};
  double loss;
  psplit_code code;
  PSPLIT_TRY(take_all(w, l, PSPLIT_I_WIRE_FORWARD, &e));
  PSPLIT_TRY(psplit_i_learner_feed(l, PSPLIT_I_SET_TRAIN, w->step, slot->micro_batch, diag));
  e.ready_ns = psplit_i_now_ns();
  PSPLIT_TRY(psplit_i_learner_forward(l, PSPLIT_I_SET_TRAIN, slot->micro_batch, diag, &loss));
  e.done_ns = psplit_i_now_ns();
  note_peak(w);
  w->loss += loss;
  w->forward_ns[slot->chunk] += e.done_ns - e.ready_ns;
  PSPLIT_TRY(give_all(w, l, PSPLIT_I_WIRE_FORWARD, diag));
  psplit_i_learner_drop_results(l);
  add_event(w, &e);
out:
  return code;
}

static psplit_code run_backward(work *w, const psplit_schedule_slot *slot, psplit_diag *diag) {
  psplit_i_learner *l = &w->learners[slot->chunk];
  psplit_i_event e = {.begin_ns = psplit_i_now_ns()};
  psplit_code code;
  PSPLIT_TRY(take_all(w, l, PSPLIT_I_WIRE_BACKWARD, &e));
  e.ready_ns = psplit_i_now_ns();
  PSPLIT_TRY(psplit_i_learner_backward(l, slot->micro_batch, diag));
  if (given(w)->schedule != PSPLIT_SCHEDULE_ZERO_BUBBLE)
    PSPLIT_TRY(psplit_i_learner_weight_gradients(l, slot->micro_batch, diag));
  e.done_ns = psplit_i_now_ns();
  note_peak(w); /* of what is kept */
  w->backward_ns[slot->chunk] += e.done_ns - e.ready_ns;
  PSPLIT_TRY(give_all(w, l, PSPLIT_I_WIRE_BACKWARD, diag));
  psplit_i_learner_drop_results(l);
  add_event(w, &e);
out:
  return code;
}

/* Of the zero-bubble schedule. */
static psplit_code run_weights(work *w, const psplit_schedule_slot *slot, psplit_diag *diag) {
  psplit_i_event e = {.begin_ns = psplit_i_now_ns()};
  psplit_code code;
  e.ready_ns = e.begin_ns;
  PSPLIT_TRY(psplit_i_learner_weight_gradients(&w->learners[slot->chunk], slot->micro_batch, diag));
  e.done_ns = psplit_i_now_ns();
  w->weights_ns[slot->chunk] += e.done_ns - e.ready_ns;
  add_event(w, &e);
out:
  return code;
}

static psplit_code run_slot(work *w, const psplit_schedule_slot *slot, psplit_diag *diag) {
  return slot->weights    ? run_weights(w, slot, diag)
         : slot->backward ? run_backward(w, slot, diag)
                          : run_forward(w, slot, diag);
}

/* --- the end of a step --- */

enum { LOSS, CANCEL, N_STEP_HEAD };
enum { APPLY, STOP, RATE, SCALE, N_STEP_ANSWER };

/* Sums of squares in the order of the model's weights, whatever the cut. */
static double gradient_norm(const work *w, const double *reports, size_t n) {
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
  work *w;
  psplit_train_step told;
} step_end;

/* A psplit_i_decide. */
static psplit_code decide_step(void *user, const double *reports, size_t n, double *answer,
                               psplit_diag *diag) {
  step_end *end = user;
  work *w = end->w;
  const psplit_train_options *o = given(w);
  psplit_i_train_result *r = w->device->result;
  bool cancel = false;
  double loss = 0;
  for (uint32_t d = 0; d < w->setup->wiring.n_devices; d++) {
    loss += reports[n * d + LOSS];
    cancel |= reports[n * d + CANCEL] != 0;
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

static psplit_code move_weights(work *w, const double *answer, psplit_diag *diag) {
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
  if (code == PSPLIT_OK && answer[APPLY] != 0) code = share(w, PSPLIT_I_WIRE_WEIGHTS, diag);
  if (code == PSPLIT_OK) add_event(w, &e);
  return code;
}

/* --- evaluation --- */

/* A psplit_i_decide. */
static psplit_code decide_eval(void *user, const double *reports, size_t n, double *answer,
                               psplit_diag *diag) {
  work *w = user;
  (void)diag;
  answer[0] = 0;
  for (uint32_t d = 0; d < w->setup->wiring.n_devices; d++) answer[0] += reports[n * d];
  answer[0] /= (double)w->feeding.order[PSPLIT_I_SET_EVAL].n_rows;
  return PSPLIT_OK;
}

static psplit_code evaluate_one(work *w, psplit_i_learner *l, uint64_t m, psplit_diag *diag,
                                double *io_sum) {
  psplit_i_event ignored = {0};
  double loss;
  psplit_code code;
  PSPLIT_TRY(take_all(w, l, PSPLIT_I_WIRE_FORWARD, &ignored));
  PSPLIT_TRY(psplit_i_learner_feed(l, PSPLIT_I_SET_EVAL, m, 0, diag));
  PSPLIT_TRY(psplit_i_learner_forward(l, PSPLIT_I_SET_EVAL, 0, diag, &loss));
  *io_sum += loss * (double)psplit_i_feeding_eval_rows(&w->feeding, m);
  PSPLIT_TRY(give_all(w, l, PSPLIT_I_WIRE_FORWARD, diag));
  psplit_i_learner_drop_results(l);
out:
  return code;
}

/* The mean loss over the samples of the evaluation data, each once. */
static psplit_code evaluate(work *w, psplit_diag *diag, double *out) {
  double sum = 0;
  /* One replica is enough for it. */
  const uint64_t n = w->replica ? 0 : psplit_i_feeding_n_eval(&w->feeding);
  for (uint64_t m = 0; m < n; m++)
    for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++) {
      const psplit_code code = evaluate_one(w, &w->learners[c], m, diag, &sum);
      if (code != PSPLIT_OK) return code;
    }
  return psplit_i_talk(w->device, &sum, 1, decide_eval, w, 1, out, diag);
}

/* --- checkpoints --- */

enum { PATH_NUMBERS = 512 }; /* of a path, in place of so many numbers */

/* A psplit_i_decide: where the stages are to be written. */
static psplit_code decide_save(void *user, const double *reports, size_t n, double *answer,
                               psplit_diag *diag) {
  work *w = user;
  (void)reports, (void)n;
  const psplit_code code = psplit_i_checkpoint_begin(given(w)->checkpoint, diag, &w->writer);
  if (code != PSPLIT_OK) return code;
  const size_t n_path = strlen(w->writer.path) + 1;
  if (n_path > PATH_NUMBERS * sizeof *answer)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "%s: too long a path", given(w)->checkpoint);
  memset(answer, 0, PATH_NUMBERS * sizeof *answer);
  memcpy(answer, w->writer.path, n_path);
  return PSPLIT_OK;
}

static psplit_i_checkpoint_state state_of(const work *w) {
  const psplit_i_order *order = &w->feeding.order[PSPLIT_I_SET_TRAIN];
  const psplit_i_place place = psplit_i_order_place(order, w->step);
  return (psplit_i_checkpoint_state){.step = w->n_updates,
                                     .epoch = place.epoch,
                                     .batch = place.batch,
                                     .seed = given(w)->seed,
                                     .optimizer = w->device->pipe->manifest.training->optimizer,
                                     .n_rows = order->n_rows,
                                     .batch_rows = order->batch_rows,
                                     .n_micro_batches = order->n_micro_batches,
                                     .n_stages = w->device->pipe->manifest.n_stages};
}

/* A psplit_i_decide: all have written, and said how much. */
static psplit_code decide_commit(void *user, const double *reports, size_t n, double *answer,
                                 psplit_diag *diag) {
  work *w = user;
  const psplit_i_manifest *m = &w->device->pipe->manifest;
  const uint32_t n_line = w->setup->wiring.n_line;
  const psplit_i_checkpoint_state state = state_of(w);
  uint64_t *bytes = calloc((size_t)m->n_stages + 1, sizeof *bytes);
  if (!bytes) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < m->n_stages; s++)
    bytes[s] = (uint64_t)reports[n * (s % n_line) + s / n_line];
  const psplit_code code = psplit_i_checkpoint_commit(&w->writer, &state, m->training->weights,
                                                      m->training->n_weights, bytes, diag);
  free(bytes);
  answer[0] = 0;
  return code;
}

static psplit_code save(work *w, psplit_diag *diag) {
  double path[PATH_NUMBERS], ignored;
  psplit_code code;
  w->report[0] = 0;
  PSPLIT_TRY(psplit_i_talk(w->device, w->report, 1, decide_save, w, PATH_NUMBERS, path, diag));
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++) {
    uint64_t bytes = 0;
    if (w->replica == 0)
      PSPLIT_TRY(psplit_i_save_stage(&w->learners[c], (const char *)path, diag, &bytes));
    w->report[c] = (double)bytes;
  }
  PSPLIT_TRY(psplit_i_talk(w->device, w->report, w->setup->wiring.n_chunks, decide_commit, w, 1,
                           &ignored, diag));
out:
  return code;
}

/* Weights and states of a checkpoint, in place of the first ones. */
static psplit_code load(work *w, psplit_diag *diag) {
  const psplit_i_training_table *t = w->device->pipe->manifest.training;
  const char *path = given(w)->resume;
  psplit_code code = PSPLIT_OK;
  if (!path) return code;
  PSPLIT_TRY(psplit_i_checkpoint_open(path, diag, &w->resumed));
  PSPLIT_TRY(psplit_i_checkpoint_fits(w->resumed, t->weights, t->n_weights, t->optimizer, diag));
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++)
    PSPLIT_TRY(psplit_i_load_stage(&w->learners[c], w->resumed, diag));
  w->n_updates = psplit_i_checkpoint_state_of(w->resumed)->step;
out:
  return code;
}

/* Where the run goes on: a number of steps means the same only for the same batches. */
static psplit_code find_place(work *w, psplit_diag *diag) {
  const psplit_i_order *order = &w->feeding.order[PSPLIT_I_SET_TRAIN];
  if (!w->resumed) return PSPLIT_OK;
  const psplit_i_checkpoint_state *s = psplit_i_checkpoint_state_of(w->resumed);
  if (s->n_rows != order->n_rows || s->batch_rows != order->batch_rows || s->seed != order->seed)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "%s is of a run with seed %" PRIu64 ", batches of %" PRIu64 " and %" PRIu64
                         " samples, not seed %" PRIu64 ", %" PRIu64 " and %" PRIu64,
                         given(w)->resume, s->seed, s->batch_rows, s->n_rows, order->seed,
                         order->batch_rows, order->n_rows);
  w->step = s->epoch * psplit_i_order_n_batches(order) + s->batch;
  return PSPLIT_OK;
}

static psplit_code end_step(work *w, psplit_diag *diag, bool *out_stop) {
  const psplit_train_options *o = given(w);
  const size_t n = N_STEP_HEAD + (size_t)w->n_weights;
  step_end end = {.w = w};
  double answer[N_STEP_ANSWER];
  psplit_code code = PSPLIT_OK;
  memset(w->report, 0, n * sizeof *w->report);
  w->report[LOSS] = w->loss;
  w->report[CANCEL] = psplit_i_cancelled(o->cancel);
  PSPLIT_TRY(share(w, PSPLIT_I_WIRE_PARTS, diag));
  PSPLIT_TRY(reduce(w, diag));
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks && w->replica == 0; c++)
    PSPLIT_TRY(psplit_i_learner_squares(&w->learners[c], diag, w->report + N_STEP_HEAD));
  PSPLIT_TRY(
    psplit_i_talk(w->device, w->report, n, decide_step, &end, N_STEP_ANSWER, answer, diag));
  PSPLIT_TRY(move_weights(w, answer, diag));
  w->step++;
  *out_stop = answer[STOP] != 0;
  /* Not where the run is interrupted: who does that waits. */
  end.told.evaluated =
    o->eval_every && (w->step % o->eval_every == 0 || w->step == w->n_steps) && !*out_stop;
  if (end.told.evaluated) PSPLIT_TRY(evaluate(w, diag, &end.told.eval_loss));
  if (o->checkpoint && (w->step == w->n_steps || *out_stop ||
                        (o->checkpoint_every && w->step % o->checkpoint_every == 0)))
    PSPLIT_TRY(save(w, diag));
  if (w->device->index > 0) return code;
  psplit_i_train_result *r = w->device->result;
  if (end.told.evaluated) r->eval_loss = end.told.eval_loss;
  r->ended_ns = psplit_i_now_ns();
  end.told.seconds = 1e-9 * (double)(r->ended_ns - r->began_ns);
  if (o->progress) o->progress(o->progress_user, &end.told);
out:
  return code;
}

static psplit_code run_step(work *w, psplit_diag *diag, bool *out_stop) {
  const psplit_i_train_setup *setup = w->setup;
  const psplit_schedule_slot *slots = setup->schedule->slots + (size_t)w->line * setup->n_slots;
  psplit_code code = PSPLIT_OK;
  w->loss = 0;
  for (uint32_t i = 0; i < setup->n_slots && code == PSPLIT_OK; i++) {
    code = go_on(w);
    if (code == PSPLIT_OK) code = run_slot(w, &slots[i], diag);
    if (code != PSPLIT_OK)
      psplit_i_diag_context(diag, "step %" PRIu64 ", micro-batch %" PRIu32 " of stage %" PRIu32,
                            w->step + 1, slots[i].micro_batch, w->learners[slots[i].chunk].index);
  }
  return code == PSPLIT_OK ? end_step(w, diag, out_stop) : code;
}

/* --- the beginning --- */

enum { TRAIN_ROWS, EVAL_ROWS, N_DIGEST = 4, N_HELLO = 2 + N_DIGEST };

/* What decides on messages and on what is computed, in numbers that float64 holds. */
static void digest_options(const psplit_train_options *o, double out[N_DIGEST]) {
  uint64_t gamma; /* its bits */
  memcpy(&gamma, &o->smooth_gamma, sizeof gamma);
  const uint64_t said[] = {
    (uint64_t)o->schedule, o->n_chunks,   o->n_replicas,         o->batch,
    o->n_micro_batches,    o->n_steps,    o->n_epochs,           o->seed,
    (uint64_t)o->in_order, o->eval_every, o->checkpoint != NULL, o->checkpoint_every,
    o->resume != NULL,     gamma,         o->smooth_samples};
  const uint64_t digest = psplit_i_hash_bytes(said, sizeof said, 1);
  for (int i = 0; i < N_DIGEST; i++) out[i] = (double)(digest >> 16 * i & 0xffff);
}

/* A psplit_i_decide. */
static psplit_code decide_hello(void *user, const double *reports, size_t n, double *answer,
                                psplit_diag *diag) {
  const work *w = user;
  const size_t n_sizes = n - N_HELLO; /* of symbols, in both sets */
  answer[TRAIN_ROWS] = answer[EVAL_ROWS] = 0;
  for (size_t i = 0; i < n_sizes; i++) answer[PSPLIT_I_N_SETS + i] = -1;
  for (uint32_t d = 0; d < w->setup->wiring.n_devices; d++) {
    const double *row = reports + n * d;
    if (memcmp(row + 2, reports + 2, N_DIGEST * sizeof *row) != 0)
      return psplit_i_fail(diag, PSPLIT_INVALID,
                           "devices 0 and %" PRIu32 " were started with different options", d);
    for (int set = 0; set < PSPLIT_I_N_SETS; set++) {
      if (row[set] != 0 && answer[set] != 0 && row[set] != answer[set])
        return psplit_i_fail(diag, PSPLIT_INVALID,
                             "device %" PRIu32 " has data of %.0f rows, others of %.0f", d,
                             row[set], answer[set]);
      if (row[set] != 0) answer[set] = row[set];
    }
    for (size_t i = 0; i < n_sizes; i++)
      if (row[N_HELLO + i] >= 0) answer[PSPLIT_I_N_SETS + i] = row[N_HELLO + i];
  }
  return PSPLIT_OK;
}

static psplit_code say_hello(work *w, psplit_diag *diag) {
  const psplit_train_options *o = given(w);
  const size_t n_each = w->feeding.symbols.n, n_sizes = PSPLIT_I_N_SETS * n_each;
  double *report = calloc(N_HELLO + n_sizes, sizeof *report);
  double *answer = calloc(PSPLIT_I_N_SETS + n_sizes, sizeof *answer);
  uint64_t n_rows[PSPLIT_I_N_SETS];
  psplit_code code;
  if (!report || !answer) PSPLIT_TRY(psplit_i_nomem(diag));
  report[TRAIN_ROWS] = (double)w->feeding.order[PSPLIT_I_SET_TRAIN].n_rows;
  report[EVAL_ROWS] = (double)w->feeding.order[PSPLIT_I_SET_EVAL].n_rows;
  digest_options(o, report + 2);
  for (size_t set = 0; set < PSPLIT_I_N_SETS; set++)
    memcpy(report + N_HELLO + set * n_each, w->feeding.sizes[set], n_each * sizeof *report);
  PSPLIT_TRY(psplit_i_talk(w->device, report, N_HELLO + n_sizes, decide_hello, w,
                           PSPLIT_I_N_SETS + n_sizes, answer, diag));
  for (size_t set = 0; set < PSPLIT_I_N_SETS; set++) {
    n_rows[set] = (uint64_t)answer[set];
    memcpy(w->feeding.sizes[set], answer + PSPLIT_I_N_SETS + set * n_each, n_each * sizeof *answer);
  }
  PSPLIT_TRY(psplit_i_feeding_settle(&w->feeding, o, n_rows, diag));
  const uint64_t each = psplit_i_order_n_batches(&w->feeding.order[PSPLIT_I_SET_TRAIN]);
  w->n_steps = o->n_steps ? o->n_steps : psplit_i_sat_mul_u64(o->n_epochs, each);
  code = find_place(w, diag);
out:
  free(report);
  free(answer);
  return code;
}

static psplit_code open_data(work *w, psplit_diag *diag) {
  const psplit_i_device *d = w->device;
  bool *needed = calloc((size_t)d->pipe->manifest.n_inputs + 1, sizeof *needed);
  if (!needed) return psplit_i_nomem(diag);
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++)
    psplit_i_learner_needs(d->pipe, w->line + c * w->setup->wiring.n_line, needed);
  const psplit_code code =
    psplit_i_feeding_open(d->ort, &d->pipe->manifest, given(w), needed, diag, &w->feeding);
  free(needed);
  return code;
}

static psplit_code open_all(work *w, psplit_diag *diag) {
  psplit_i_device *d = w->device;
  const uint32_t n_chunks = w->setup->wiring.n_chunks;
  psplit_code code;
  w->learners = calloc(n_chunks, sizeof *w->learners);
  w->forward_ns = calloc(n_chunks, sizeof *w->forward_ns);
  w->backward_ns = calloc(n_chunks, sizeof *w->backward_ns);
  w->weights_ns = calloc(n_chunks, sizeof *w->weights_ns);
  w->report = calloc(32 + 3 * ((size_t)w->n_weights + n_chunks), sizeof *w->report);
  if (!w->learners || !w->forward_ns || !w->backward_ns || !w->weights_ns || !w->report)
    return psplit_i_nomem(diag);
  PSPLIT_TRY(open_data(w, diag));
  for (uint32_t c = 0; c < n_chunks; c++) {
    const uint32_t stage = w->line + c * w->setup->wiring.n_line;
    w->learners[c] = (psplit_i_learner){.index = stage,
                                        .ort = d->ort,
                                        .pipe = d->pipe,
                                        .wiring = &w->setup->wiring,
                                        .session = &w->setup->sessions[stage],
                                        .feeding = &w->feeding,
                                        .watch = &d->watch,
                                        .n_micro_batches = w->setup->n_micro_batches,
                                        .replica = w->replica,
                                        .n_replicas = w->setup->wiring.n_replicas,
                                        .gamma = given(w)->smooth_gamma,
                                        .n_samples = given(w)->smooth_samples,
                                        .seed = given(w)->seed};
    code = psplit_i_learner_open(&w->learners[c], diag);
    if (code != PSPLIT_OK) psplit_i_diag_context(diag, "stage %" PRIu32, stage);
    PSPLIT_TRY(code);
  }
  if (given(w)->checkpoint && d->index == 0)
    PSPLIT_TRY(psplit_i_checkpoint_probe(given(w)->checkpoint, diag));
  code = load(w, diag);
out:
  return code;
}

static void close_all(work *w) {
  for (uint32_t c = 0; w->learners && c < w->setup->wiring.n_chunks; c++)
    psplit_i_learner_close(&w->learners[c]);
  psplit_i_feeding_close(&w->feeding);
  psplit_i_checkpoint_close(w->resumed);
  psplit_i_checkpoint_abort(&w->writer);
  free(w->learners);
  free(w->forward_ns);
  free(w->backward_ns);
  free(w->weights_ns);
  free(w->report);
}

/* --- the end --- */

enum { UPDATE_NS, STASHES, STASH_BYTES, WEIGHT_BYTES, RESIDENT_BYTES, N_END };
enum { FORWARD_NS, BACKWARD_NS, WEIGHTS_NS, N_TIMES };

/* Behind the head: the times of each chunk, then two halves of the digest of each weight. */
static size_t write_end(const work *w, double *report) {
  const uint32_t n_chunks = w->setup->wiring.n_chunks;
  struct rusage usage;
  double *row = report + N_END;
  memset(report, 0, N_END * sizeof *report);
  getrusage(RUSAGE_SELF, &usage);
  report[UPDATE_NS] = (double)w->update_ns;
  report[STASHES] = w->peak_stashes;
  report[STASH_BYTES] = (double)w->peak_bytes;
  report[RESIDENT_BYTES] = 1024.0 * (double)usage.ru_maxrss;
  for (uint32_t c = 0; c < n_chunks; c++) {
    const psplit_i_learner *l = &w->learners[c];
    report[WEIGHT_BYTES] += (double)psplit_i_learner_bytes(l);
    row[FORWARD_NS] = (double)w->forward_ns[c];
    row[BACKWARD_NS] = (double)w->backward_ns[c];
    row[WEIGHTS_NS] = (double)w->weights_ns[c];
    row += N_TIMES;
  }
  for (uint32_t k = 0; k < w->n_weights; k++, row += 2) {
    row[0] = row[1] = 0;
    for (uint32_t c = 0; c < n_chunks; c++) {
      if (!psplit_i_learner_owns(&w->learners[c], k)) continue;
      const uint64_t digest = psplit_i_learner_digest(&w->learners[c], k);
      row[0] = (double)(digest >> 32);
      row[1] = (double)(digest & UINT32_MAX);
    }
  }
  return (size_t)(row - report);
}

static void take_digests(const work *w, const double *reports, size_t n, uint64_t *io_digest) {
  const psplit_i_training_table *t = w->device->pipe->manifest.training;
  const uint32_t n_line = w->setup->wiring.n_line;
  const size_t skip = N_END + N_TIMES * (size_t)w->setup->wiring.n_chunks;
  for (uint32_t k = 0; k < w->n_weights; k++) {
    if (t->weights[k].owner == PSPLIT_NONE) continue;
    const double *row = reports + n * (t->weights[k].owner % n_line) + skip + 2 * (size_t)k;
    const uint64_t both[] = {*io_digest, (uint64_t)row[0] << 32 | (uint64_t)row[1]};
    *io_digest = psplit_i_hash_bytes(both, sizeof both, k);
  }
}

/* A psplit_i_decide. */
static psplit_code decide_end(void *user, const double *reports, size_t n, double *answer,
                              psplit_diag *diag) {
  const work *w = user;
  const psplit_i_wiring *wiring = &w->setup->wiring;
  const uint32_t n_devices = wiring->n_devices, n_line = wiring->n_line;
  const uint32_t n_stages = n_line * wiring->n_chunks;
  psplit_i_train_result *r = w->device->result;
  const uint64_t steps = r->n_steps ? r->n_steps : 1;
  const double pieces = (double)steps * w->setup->n_micro_batches;
  answer[0] = 0;
  r->devices = calloc(n_devices, sizeof *r->devices);
  r->forward_ns = calloc(n_stages, sizeof *r->forward_ns);
  r->backward_ns = calloc(n_stages, sizeof *r->backward_ns);
  r->weights_ns = calloc(n_stages, sizeof *r->weights_ns);
  if (!r->devices || !r->forward_ns || !r->backward_ns || !r->weights_ns)
    return psplit_i_nomem(diag);
  for (uint32_t d = 0; d < n_devices; d++) {
    const double *row = reports + n * d;
    psplit_train_device *out = &r->devices[d];
    *out =
      (psplit_train_device){.peak_stashes = (uint32_t)row[STASHES],
                            .scheduled_stashes = w->setup->schedule->peak_in_flight[d % n_line],
                            .stash_bytes = (uint64_t)row[STASH_BYTES],
                            .weight_bytes = (uint64_t)row[WEIGHT_BYTES],
                            .peak_resident_bytes = (uint64_t)row[RESIDENT_BYTES],
                            .update_ns = (int64_t)(row[UPDATE_NS] / (double)steps)};
    for (uint32_t c = 0; c < wiring->n_chunks; c++) {
      const uint32_t stage = d % n_line + c * n_line;
      const double *ns = row + N_END + N_TIMES * c;
      int64_t *const means[N_TIMES] = {&r->forward_ns[stage], &r->backward_ns[stage],
                                       &r->weights_ns[stage]};
      int64_t *const own[N_TIMES] = {&out->forward_ns, &out->backward_ns,
                                     &out->weight_gradients_ns};
      for (int k = 0; k < N_TIMES; k++) {
        *means[k] += (int64_t)(ns[k] / pieces / wiring->n_replicas);
        *own[k] += (int64_t)(ns[k] / pieces / wiring->n_chunks);
      }
    }
  }
  take_digests(w, reports, n, &r->digest);
  return PSPLIT_OK;
}

static psplit_code work_through(work *w, psplit_diag *diag) {
  psplit_i_device *d = w->device;
  bool stop = false;
  double ignored;
  psplit_code code;
  PSPLIT_TRY(say_hello(w, diag));
  PSPLIT_TRY(share(w, PSPLIT_I_WIRE_WEIGHTS, diag));
  if (d->index == 0) {
    d->result->first_step = w->step;
    d->result->eval_loss = NAN;
    d->result->began_ns = d->result->ended_ns = psplit_i_now_ns();
  }
  while (w->step < w->n_steps && !stop) PSPLIT_TRY(run_step(w, diag, &stop));
  const size_t n = write_end(w, w->report);
  PSPLIT_TRY(psplit_i_talk(d, w->report, n, decide_end, w, 1, &ignored, diag));
out:
  return code;
}

/* Tells who waits for more that there is none. */
static void say_end(const psplit_i_device *d) {
  const psplit_i_wiring *wiring = &d->setup->wiring;
  for (uint32_t i = 0; i < wiring->n_wires; i++) {
    const psplit_i_wire *wire = &wiring->wires[i];
    if (wire->from_device != d->index || wire->to_device == d->index) continue;
    psplit_i_bundle *bundle = psplit_i_bundle_create(wire->n_tensors);
    if (!bundle) continue;
    bundle->end = true;
    if (psplit_i_tell(d, i, bundle) != PSPLIT_OK) return;
  }
}

void psplit_i_device_main(psplit_i_device *device) {
  psplit_diag diag = {0};
  work w = {.device = device,
            .setup = device->setup,
            .line = device->index % device->setup->wiring.n_line,
            .replica = device->index / device->setup->wiring.n_line,
            .n_weights = device->pipe->manifest.training->n_weights,
            .writer = PSPLIT_I_CHECKPOINT_WRITER_NONE};
  psplit_code code = open_all(&w, &diag);
  if (code == PSPLIT_OK && !device->host->meet(device->host)) code = PSPLIT_I_STOPPED;
  if (code == PSPLIT_OK) code = work_through(&w, &diag);
  if (code == PSPLIT_OK) say_end(device);
  if (code != PSPLIT_OK && diag.code != PSPLIT_OK) device->host->fail(device->host, &diag);
  close_all(&w);
}
