#include "fake_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <psplit/snapshot.h>

fake_runs fake;
const psplit_onnxruntime FAKE_ORT = {.ort = {.version = "1.99"}};

psplit_code __wrap_psplit_i_run_threads(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                        const psplit_i_run_options *options, psplit_diag *diag,
                                        psplit_i_timeline *out);
psplit_code __wrap_psplit_i_profile_run(const psplit_i_ort *ort, const char *path,
                                        const psplit_i_run_options *options, psplit_diag *diag,
                                        psplit_i_profile *out);
psplit_code __wrap_psplit_i_profile_stages(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                           const psplit_i_run_options *options, psplit_diag *diag,
                                           psplit_i_profile *out);
psplit_code __wrap_psplit_i_profile_time_stages(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                                const psplit_i_run_options *options,
                                                psplit_diag *diag, psplit_i_profile *out);
psplit_code __wrap_psplit_i_session_open(const psplit_i_ort *ort, const char *path,
                                         const psplit_i_session_options *options, psplit_diag *diag,
                                         psplit_i_session *out);
psplit_code __wrap_psplit_i_session_placed(const psplit_i_session *session, psplit_diag *diag,
                                           psplit_i_placed **out, size_t *out_n);
void __wrap_psplit_i_session_close(psplit_i_session *session);

static psplit_code called(psplit_diag *diag) {
  if (++fake.n_calls == fake.fails_at) return psplit_i_fail(diag, PSPLIT_IO, "told to fail");
  return PSPLIT_OK;
}

/* A quarter of the micro-batches take less than the stage's time, the others no less. */
psplit_code __wrap_psplit_i_run_threads(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                        const psplit_i_run_options *options, psplit_diag *diag,
                                        psplit_i_timeline *out) {
  (void)ort;
  psplit_code code;
  const uint32_t n_stages = pipe->manifest.n_stages, n = options->n_micro_batches;
  const int run = fake.n_runs;
  PSPLIT_TRY(called(diag));
  if (fake.gives_up) {
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_IO, "stage 1 does not end"));
  }
  PSPLIT_TRY(psplit_i_timeline_init(n_stages, n, diag, out));
  out->n_micro_batches = n;
  fake.n_micro_batches[run] = n;
  for (uint32_t s = 0; s < n_stages; s++)
    for (uint32_t m = 0; m < n; m++) {
      const uint32_t slow = (m + 3) % n; /* in no order */
      const int64_t ns = fake.stage_ns[run][s];
      out->events[s * n + m] = (psplit_i_event){
        .ready_ns = 1000, .done_ns = 1000 + (slow < n / 4 ? ns / 2 : ns + slow - n / 4)};
    }
  fake.n_runs++;
  if (fake.cancel) atomic_store(fake.cancel, 1);
out:
  if (fake.gives_up && options->give_up) options->give_up(options->give_up_user, diag);
  return code;
}

/* A profile of the model file `path`: 10 us for its first node, and so on. */
static psplit_code profile_file(const char *path, psplit_diag *diag, psplit_i_profile *out) {
  psplit_code code;
  psplit_model *model = NULL;
  psplit_planner *planner = NULL;
  psplit_snapshot *file = NULL;
  psplit_i_text events = {0};
  PSPLIT_TRY(psplit_model_open(path, NULL, diag, &model));
  PSPLIT_TRY(psplit_planner_create(model, NULL, diag, &planner));
  PSPLIT_TRY(psplit_snapshot_take(planner, diag, &file));
  for (uint32_t n = 0; n < file->n_nodes; n++)
    psplit_i_text_addf(&events,
                       "%s{\"cat\": \"Node\", \"name\": \"%s_kernel_time\", \"ts\": %u, "
                       "\"dur\": %d, \"args\": {\"op_name\": \"%s\"}}",
                       n ? ", " : "[", file->nodes[n].name, 100 * n, fake.kernel_us + (int)n,
                       file->nodes[n].op_type);
  psplit_i_text_puts(&events, "]");
  if (events.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  out->n_events = events.n;
  out->events = events.bytes;
  events = (psplit_i_text){0};
  out->least_ns = out->median_ns = 60000;
  snprintf(fake.opened, sizeof fake.opened, "%s", path);
  if (!fake.no_optimized) { /* the file itself: in a directory of ours no file is removed */
    psplit_i_text_fini(&out->optimized);
    psplit_i_text_puts(&out->optimized, path);
    if (out->optimized.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  }
out:
  psplit_i_text_fini(&events);
  psplit_snapshot_destroy(file);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
  return code;
}

psplit_code __wrap_psplit_i_profile_run(const psplit_i_ort *ort, const char *path,
                                        const psplit_i_run_options *options, psplit_diag *diag,
                                        psplit_i_profile *out) {
  static const int64_t DIMS[] = {1, 16};
  (void)ort;
  psplit_code code;
  fake.session = options->session;
  PSPLIT_TRY(called(diag));
  PSPLIT_TRY(psplit_i_profile_make_room(out, diag));
  PSPLIT_TRY(profile_file(path, diag, out));
  out->inputs = psplit_i_arena_array(&out->arena, 1, sizeof *out->inputs);
  if (!out->inputs) PSPLIT_FAIL(psplit_i_nomem(diag));
  out->inputs[out->n_inputs++] = (psplit_i_fed){"x", DIMS, 2};
out:
  if (code != PSPLIT_OK) psplit_i_profile_fini(out);
  return code;
}

psplit_code __wrap_psplit_i_profile_stages(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                           const psplit_i_run_options *options, psplit_diag *diag,
                                           psplit_i_profile *out) {
  (void)ort, (void)options;
  psplit_code code;
  char path[512];
  PSPLIT_TRY(called(diag));
  for (uint32_t s = 0; s < pipe->manifest.n_stages; s++) {
    snprintf(path, sizeof path, "%s/%s", pipe->directory, pipe->manifest.stages[s].file);
    PSPLIT_TRY(psplit_i_profile_make_room(&out[s], diag));
    PSPLIT_TRY(profile_file(path, diag, &out[s]));
  }
out:
  return code;
}

psplit_code __wrap_psplit_i_profile_time_stages(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                                const psplit_i_run_options *options,
                                                psplit_diag *diag, psplit_i_profile *out) {
  (void)ort, (void)options;
  const psplit_code code = called(diag);
  for (uint32_t s = 0; code == PSPLIT_OK && s < pipe->manifest.n_stages; s++)
    out[s].least_ns = out[s].median_ns = fake.stage_ns[0][s];
  return code;
}

psplit_code __wrap_psplit_i_session_open(const psplit_i_ort *ort, const char *path,
                                         const psplit_i_session_options *options, psplit_diag *diag,
                                         psplit_i_session *out) {
  (void)ort, (void)out;
  snprintf(fake.opened, sizeof fake.opened, "%s", path);
  fake.session = *options;
  return called(diag);
}

psplit_code __wrap_psplit_i_session_placed(const psplit_i_session *session, psplit_diag *diag,
                                           psplit_i_placed **out, size_t *out_n) {
  (void)session;
  psplit_code code;
  PSPLIT_TRY(called(diag));
  *out = calloc(fake.n_placed + 1, sizeof **out);
  if (!*out) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (fake.n_placed) memcpy(*out, fake.placed, fake.n_placed * sizeof **out);
  *out_n = fake.n_placed;
out:
  return code;
}

void __wrap_psplit_i_session_close(psplit_i_session *session) { (void)session; }
