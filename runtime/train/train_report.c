/* Report of a training run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "json_put.h"
#include "trace_json.h"
#include "train.h"

/* Whole steps that the timeline still has, without the first of a run, which warms up. */
typedef struct kept_steps {
  uint32_t first, n; /* pieces of a device */
} kept_steps;

static kept_steps find_kept(const psplit_training_run *run) {
  const uint32_t n = psplit_i_timeline_n(&run->timeline);
  const uint32_t each = psplit_i_pieces_each(&run->setup);
  kept_steps kept = {.n = n / each};
  kept.first = n - kept.n * each;
  if (kept.n > 1 && run->timeline.n_micro_batches == n) {
    kept.n--;
    kept.first += each;
  }
  return kept;
}

/* Of all steps that are kept, over all devices. */
typedef struct step_sums {
  int64_t busy_ns;
  int64_t measured_ns, simulated_ns; /* from the first piece of a step to the end of its last */
} step_sums;

/* A step whose pieces begin at `first` in the timeline. slot_ns[devices * n_slots]: how long each
 * took, the reading of its data as well. */
static void add_step(const psplit_training_run *run, uint32_t first, int64_t *slot_ns,
                     step_sums *io) {
  const uint32_t n_slots = run->setup.n_slots, n_devices = run->setup.wiring.n_devices;
  int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;
  for (uint32_t d = 0; d < n_devices; d++)
    for (uint32_t i = 0; i < n_slots; i++) {
      const psplit_i_event *e = psplit_i_timeline_event(&run->timeline, d, first + i);
      int64_t *ns = &slot_ns[(size_t)d * n_slots + i];
      *ns = e->before_ns + e->done_ns - e->ready_ns;
      if (e->begin_ns - e->before_ns < begin_ns) begin_ns = e->begin_ns - e->before_ns;
      if (e->done_ns > end_ns) end_ns = e->done_ns;
      io->busy_ns += *ns;
    }
  io->measured_ns += (end_ns - begin_ns) * n_devices;
}

/* How long the simulator takes for the same pieces, which nothing but each other delays. */
static psplit_code simulate(const psplit_training_run *run, const int64_t *slot_ns,
                            psplit_diag *diag, int64_t *out_ns) {
  const psplit_train_options *o = &run->setup.given;
  const psplit_schedule_input input = {
    .kind = o->schedule,
    .n_stages = run->setup.wiring.n_line,
    .n_chunks = o->n_chunks,
    .n_micro_batches = run->setup.n_micro_batches,
    .forward_ns = run->result.forward_ns,
    .backward_ns = run->result.backward_ns,
    .weights_ns = o->schedule == PSPLIT_SCHEDULE_ZERO_BUBBLE ? run->result.weights_ns : NULL,
    .slot_ns = slot_ns};
  psplit_schedule *schedule;
  const psplit_code code = psplit_schedule_simulate(&input, diag, &schedule);
  if (code != PSPLIT_OK) return code;
  *out_ns = schedule->makespan_ns;
  psplit_schedule_destroy(schedule);
  return PSPLIT_OK;
}

/* Replicas meet at the end of a step alone: the slowest one says how long it is. */
static psplit_code simulate_step(const psplit_training_run *run, const int64_t *slot_ns,
                                 psplit_diag *diag, step_sums *io) {
  const psplit_i_wiring *wiring = &run->setup.wiring;
  const size_t each = (size_t)wiring->n_line * run->setup.n_slots;
  psplit_code code = PSPLIT_OK;
  int64_t most = 0, ns = 0;
  for (uint32_t r = 0; r < wiring->n_replicas && code == PSPLIT_OK; r++) {
    code = simulate(run, slot_ns + r * each, diag, &ns);
    if (ns > most) most = ns;
  }
  io->simulated_ns += most * wiring->n_devices;
  return code;
}

static double idle_part(int64_t busy_ns, int64_t all_ns) {
  return all_ns > 0 ? 1 - (double)busy_ns / (double)all_ns : 0;
}

static psplit_code find_bubbles(psplit_training_run *run, psplit_diag *diag) {
  const kept_steps kept = find_kept(run);
  step_sums sums = {0};
  psplit_code code = PSPLIT_OK;
  int64_t *slot_ns =
    calloc((size_t)run->setup.n_slots * run->setup.wiring.n_devices, sizeof *slot_ns);
  if (!slot_ns) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < kept.n && code == PSPLIT_OK; s++) {
    add_step(run, kept.first + s * psplit_i_pieces_each(&run->setup), slot_ns, &sums);
    code = simulate_step(run, slot_ns, diag, &sums);
  }
  run->report.bubble_frac = idle_part(sums.busy_ns, sums.measured_ns);
  run->report.simulated_bubble_frac = idle_part(sums.busy_ns, sums.simulated_ns);
  free(slot_ns);
  return code;
}

psplit_code psplit_i_train_report_make(psplit_training_run *run, psplit_diag *diag) {
  const psplit_i_train_result *r = &run->result;
  psplit_train_report *out = &run->report;
  *out = (psplit_train_report){
    .n_devices = run->setup.wiring.n_devices,
    .n_stages = run->pipeline->pipe.manifest.n_stages,
    .n_micro_batches = run->setup.given.n_micro_batches,
    .first_step = r->first_step,
    .n_steps = r->n_steps,
    .n_skipped = r->n_skipped,
    .seconds = 1e-9 * (double)(r->ended_ns - r->began_ns),
    .losses = r->losses,
    .eval_loss = r->eval_loss,
    .weights_digest = r->digest,
    .all_steps = r->all_steps,
    .schedule = run->setup.given.schedule,
    .planned_schedule = psplit_i_planned_schedule(&run->pipeline->pipe.manifest),
    .devices = r->devices};
  if (out->seconds > 0) out->steps_per_s = (double)r->n_steps / out->seconds;
  return find_bubbles(run, diag);
}

/* --- as JSON --- */

static const char *schedule_name(psplit_schedule_kind kind) {
  return kind == PSPLIT_SCHEDULE_FILL_DRAIN    ? "fill-drain"
         : kind == PSPLIT_SCHEDULE_1F1B        ? "1f1b"
         : kind == PSPLIT_SCHEDULE_ZERO_BUBBLE ? "zb-h1"
                                               : "interleaved";
}

static void put_device(psplit_i_json *json, uint32_t index, const psplit_train_device *d) {
  psplit_i_json_open(json, '{');
  psplit_i_json_put_uint(json, "index", index);
  psplit_i_json_put_uint(json, "forward_ns", (uint64_t)d->forward_ns);
  psplit_i_json_put_uint(json, "backward_ns", (uint64_t)d->backward_ns);
  psplit_i_json_put_uint(json, "weight_gradients_ns", (uint64_t)d->weight_gradients_ns);
  psplit_i_json_put_uint(json, "update_ns", (uint64_t)d->update_ns);
  psplit_i_json_put_uint(json, "peak_stashes", d->peak_stashes);
  psplit_i_json_put_uint(json, "scheduled_stashes", d->scheduled_stashes);
  psplit_i_json_put_uint(json, "stash_bytes", d->stash_bytes);
  psplit_i_json_put_uint(json, "weight_bytes", d->weight_bytes);
  psplit_i_json_put_uint(json, "peak_resident_bytes", d->peak_resident_bytes);
  psplit_i_json_close(json, '}');
}

static void put_report(const psplit_training_run *run, psplit_i_json *json) {
  const psplit_train_report *r = &run->report;
  char digest[32];
  snprintf(digest, sizeof digest, "%016" PRIx64, r->weights_digest);
  psplit_i_json_open(json, '{');
  psplit_i_json_put_string(json, "transport", run->transport);
  psplit_i_json_put_string(json, "onnxruntime", run->ort->ort.version);
  psplit_i_json_put_string(json, "schedule", schedule_name(r->schedule));
  psplit_i_json_put_string(json, "planned_schedule", schedule_name(r->planned_schedule));
  psplit_i_json_put_uint(json, "devices", r->n_devices);
  psplit_i_json_put_uint(json, "stages", r->n_stages);
  psplit_i_json_put_uint(json, "replicas", run->setup.wiring.n_replicas);
  psplit_i_json_put_uint(json, "micro_batches", r->n_micro_batches);
  psplit_i_json_put_uint(json, "samples", run->setup.given.smooth_samples);
  psplit_i_json_put_double(json, "gamma", run->setup.given.smooth_gamma);
  psplit_i_json_put_uint(json, "first_step", r->first_step);
  psplit_i_json_put_uint(json, "steps", r->n_steps);
  psplit_i_json_put_uint(json, "all_steps", r->all_steps);
  psplit_i_json_put_uint(json, "skipped", r->n_skipped);
  psplit_i_json_put_double(json, "seconds", r->seconds);
  psplit_i_json_put_double(json, "steps_per_s", r->steps_per_s);
  psplit_i_json_put_double(json, "bubble_frac", r->bubble_frac);
  psplit_i_json_put_double(json, "simulated_bubble_frac", r->simulated_bubble_frac);
  psplit_i_json_put_double(json, "eval_loss", r->eval_loss);
  psplit_i_json_put_string(json, "weights_digest", digest);
  psplit_i_json_put_open(json, "device", '[');
  for (uint32_t d = 0; d < r->n_devices; d++) put_device(json, d, &r->devices[d]);
  psplit_i_json_close(json, ']');
  psplit_i_json_put_open(json, "losses", '[');
  json->compact = true;
  for (uint64_t s = 0; s < r->n_steps; s++) psplit_i_json_double(json, r->losses[s]);
  psplit_i_json_close(json, ']');
  json->compact = false;
  psplit_i_json_close(json, '}');
  psplit_i_text_puts(json->out, "\n");
}

/* --- as a trace --- */

/* Piece number `at` of a device, counted from the beginning of the run. */
static void put_piece(const psplit_training_run *run, const psplit_i_trace *trace, uint32_t device,
                      uint64_t at, const psplit_i_event *e) {
  const uint32_t each = psplit_i_pieces_each(&run->setup);
  const uint64_t step = run->report.first_step + at / each + 1;
  const uint32_t i = (uint32_t)(at % each);
  char name[64] = "update";
  if (i < run->setup.n_slots) {
    const psplit_schedule_slot *slot =
      &run->setup.schedule
         ->slots[(size_t)(device % run->setup.wiring.n_line) * run->setup.n_slots + i];
    const uint32_t n_line = run->setup.wiring.n_line;
    const uint32_t stage = device % n_line + slot->chunk * n_line;
    const char *what = slot->weights ? "weight gradients" : slot->backward ? "backward" : "forward";
    snprintf(name, sizeof name, "%s %" PRIu32, what, slot->micro_batch);
    if (run->setup.given.n_chunks > 1)
      snprintf(name, sizeof name, "%s %" PRIu32 " of stage %" PRIu32, what, slot->micro_batch,
               stage);
  }
  psplit_i_trace_span(trace, "data", device, PSPLIT_I_TRACE_WAIT, step, e->begin_ns - e->before_ns,
                      e->begin_ns);
  psplit_i_trace_span(trace, "inputs", device, PSPLIT_I_TRACE_WAIT, step, e->begin_ns, e->ready_ns);
  psplit_i_trace_span(trace, name, device, PSPLIT_I_TRACE_COMPUTE, step, e->ready_ns, e->done_ns);
  psplit_i_trace_span(trace, "outputs", device, PSPLIT_I_TRACE_WAIT, step, e->done_ns, e->sent_ns);
}

static void put_trace(const psplit_training_run *run, psplit_i_json *json) {
  const psplit_i_timeline *t = &run->timeline;
  const uint32_t n = psplit_i_timeline_n(t);
  psplit_i_trace trace = {.json = json, .counted = "step", .zero_ns = INT64_MAX};
  for (uint32_t d = 0; d < t->n_stages && n; d++) {
    const psplit_i_event *e = psplit_i_timeline_event(t, d, 0);
    if (e->begin_ns - e->before_ns < trace.zero_ns) trace.zero_ns = e->begin_ns - e->before_ns;
  }
  psplit_i_trace_begin(&trace);
  for (uint32_t d = 0; d < t->n_stages; d++) {
    char name[64];
    snprintf(name, sizeof name, "device %" PRIu32, d);
    psplit_i_trace_process(&trace, d, name);
    for (uint32_t i = 0; i < n; i++)
      put_piece(run, &trace, d, t->n_micro_batches - n + i, psplit_i_timeline_event(t, d, i));
  }
  psplit_i_trace_end(&trace);
}

static psplit_code give(void (*put)(const psplit_training_run *run, psplit_i_json *json),
                        const psplit_training_run *run, psplit_diag *diag, char **out_text) {
  psplit_i_text text = {0};
  psplit_i_json json;
  psplit_i_json_init(&json, &text);
  put(run, &json);
  if (text.failed) {
    psplit_i_text_fini(&text);
    return psplit_i_nomem(diag);
  }
  *out_text = text.bytes;
  return PSPLIT_OK;
}

psplit_code psplit_training_run_json(const psplit_training_run *run, psplit_diag *diag,
                                     char **out_text) {
  return give(put_report, run, diag, out_text);
}

psplit_code psplit_training_run_trace(const psplit_training_run *run, psplit_diag *diag,
                                      char **out_text) {
  return give(put_trace, run, diag, out_text);
}
