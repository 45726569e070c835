#include "device.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "all_reduce.h"
#include "exchange.h"
#include "handshake.h"
#include "measured.h"
#include "resuming.h"
#include "step.h"

void psplit_i_device_init(psplit_i_device *device) { psplit_i_watch_init(&device->watch); }

void psplit_i_device_fini(psplit_i_device *device) { psplit_i_watch_fini(&device->watch); }

void psplit_i_device_stop(psplit_i_device *device) { psplit_i_watch_stop(&device->watch); }

static psplit_code open_data(psplit_i_work *w, psplit_diag *diag) {
  const psplit_i_device *d = w->device;
  bool *needed = calloc((size_t)d->pipe->manifest.n_inputs + 1, sizeof *needed);
  if (!needed) return psplit_i_nomem(diag);
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++)
    psplit_i_learner_needs(d->pipe, w->line + c * w->setup->wiring.n_line, needed);
  const psplit_code code =
    psplit_i_feeding_open(d->ort, &d->pipe->manifest, psplit_i_given(w), needed, diag, &w->feeding);
  free(needed);
  return code;
}

static psplit_code open_all(psplit_i_work *w, psplit_diag *diag) {
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
                                        .gamma = psplit_i_given(w)->smooth_gamma,
                                        .n_samples = psplit_i_given(w)->smooth_samples,
                                        .seed = psplit_i_given(w)->seed};
    code = psplit_i_learner_open(&w->learners[c], diag);
    if (code != PSPLIT_OK) psplit_i_diag_context(diag, "stage %" PRIu32, stage);
    PSPLIT_TRY(code);
  }
  if (psplit_i_given(w)->checkpoint && d->index == 0)
    PSPLIT_TRY(psplit_i_checkpoint_probe(psplit_i_given(w)->checkpoint, diag));
  code = psplit_i_load(w, diag);
out:
  return code;
}

static void close_all(psplit_i_work *w) {
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

static psplit_code work_through(psplit_i_work *w, psplit_diag *diag) {
  psplit_i_device *d = w->device;
  bool stop = false;
  psplit_code code;
  PSPLIT_TRY(psplit_i_handshake(w, diag));
  PSPLIT_TRY(psplit_i_share(w, PSPLIT_I_WIRE_WEIGHTS, diag));
  w->first_step = w->step;
  if (d->index == 0) {
    d->result->first_step = w->step;
    d->result->all_steps = w->n_steps;
    d->result->eval_loss = NAN;
    d->result->began_ns = d->result->ended_ns = psplit_i_now_ns();
  }
  while (w->step < w->n_steps && !stop) PSPLIT_TRY(psplit_i_run_step(w, diag, &stop));
  atomic_store(&d->watch.finishes, true);
  code = psplit_i_tell_measured(w, diag);
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
    if (psplit_i_send_to(d, i, bundle) != PSPLIT_OK) return;
  }
}

void psplit_i_device_main(psplit_i_device *device) {
  psplit_diag diag = {0};
  psplit_i_work w = {.device = device,
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
