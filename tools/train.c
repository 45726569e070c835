/* onnx-pipeline-train: train the stages of a split, each on a device of its own. */
#include <inttypes.h>
#include <psplit/checkpoint.h>
#include <psplit/emit.h>
#include <psplit/file.h>
#include <psplit/train.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "places.h"
#include "print_training.h"
#include "train_settings.h"
#if PSPLIT_HAS_MPI
#include <psplit/run_mpi.h>
#endif

#if PSPLIT_HAS_MPI
static uint32_t ranks; /* 0: MPI was not started */
#endif

/* Ends the process, and so the threads that are left. */
static void give_up(void *user, const psplit_diag *diag) {
  (void)user;
  cli_fail(diag);
#if PSPLIT_HAS_MPI
  if (ranks) psplit_mpi_abort(cli_end_status(diag->code));
#endif
  _exit(cli_end_status(diag->code));
}

/* Of psplit_train_options: the one that a signal asks for is written, however long that takes. */
static void wait_for_checkpoint(void *user, bool begins) {
  (void)user;
  cli_ends(begins ? CLI_ENDS_BEHIND : CLI_ENDS_SOON);
}

/* Steps done and steps in all, for the thread that shows them. */
static atomic_uint_least64_t steps_done, steps_all;

/* A cli_counter. */
static uint64_t count_steps(void *user, uint64_t *out_all) {
  (void)user;
  *out_all = atomic_load(&steps_all);
  return atomic_load(&steps_done);
}

static void print_step(void *user, const psplit_train_step *t) {
  const train_settings *s = user;
  atomic_store(&steps_all, t->n_steps);
  atomic_store(&steps_done, t->step);
  if (s->json || s->quiet) return;
  enum { LINES = 20 };
  const uint64_t each = s->log_every ? s->log_every : (t->n_steps + LINES - 1) / LINES;
  if (t->step % each != 0 && t->step != 1 && t->step != t->n_steps && !t->evaluated && !t->skipped)
    return;
  cli_make_room();
  print_training_step(t, stdout);
  fflush(stdout);
}

/* Who asks for no more steps than a checkpoint has is told so. */
static void tell_nothing_left(const train_settings *s, const psplit_train_report *r) {
  if (!s->train.resume || r->n_steps || r->first_step < r->all_steps) return;
  cli_warn("%s is at step %" PRIu64 ", and --%s asks for %" PRIu64
           " in all: nothing was left to do",
           s->train.resume, r->first_step, s->train.n_steps ? "steps" : "epochs", r->all_steps);
}

static psplit_code tell(const train_settings *s, const psplit_training_run *run,
                        psplit_diag *diag) {
  char *text = NULL;
  psplit_code code = PSPLIT_OK;
  tell_nothing_left(s, psplit_training_run_report(run));
  if (s->trace) {
    code = psplit_training_run_trace(run, diag, &text);
    if (code == PSPLIT_OK)
      code = psplit_file_write(s->trace, text, strlen(text), s->train.cancel, diag);
    free(text);
    text = NULL;
  }
  if (code == PSPLIT_OK && s->json) {
    code = psplit_training_run_json(run, diag, &text);
    if (code == PSPLIT_OK) fputs(text, stdout);
    free(text);
  } else if (code == PSPLIT_OK && !s->quiet) {
    print_training_table(psplit_training_run_report(run), stdout);
  }
  if (fflush(stdout) != 0 || ferror(stdout))
    code = psplit_diag_fail(diag, PSPLIT_IO, "standard output cannot be written");
  return code;
}

/* The trained model, from a checkpoint. */
static psplit_code put_model(const train_settings *s, const char *checkpoint, psplit_diag *diag) {
  psplit_emit_options how;
  psplit_checkpoint *opened = NULL;
  psplit_model *model = NULL;
  psplit_emit_options_init(&how);
  how.replace = s->force;
  how.cancel = s->train.cancel;
  psplit_code code = psplit_checkpoint_open(checkpoint, diag, &opened);
  if (code == PSPLIT_OK) code = psplit_model_open(s->model, NULL, diag, &model);
  if (code == PSPLIT_OK) code = psplit_checkpoint_export(opened, model, s->export, &how, diag);
  psplit_model_close(model);
  psplit_checkpoint_close(opened);
  return code;
}

/* What is written may not name a file that is read. */
static psplit_code check_unread(const train_settings *s, const char *path, psplit_diag *diag) {
  const train_files *const all[] = {&s->data, &s->eval_data, &s->fixed};
  psplit_code code = PSPLIT_OK;
  if (s->ort.devices_file && cli_is_file(s->ort.devices_file))
    code = place_check_unread(path, s->ort.devices_file, diag);
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    for (size_t i = 0; i < all[k]->n && code == PSPLIT_OK; i++)
      code = place_check_unread(path, all[k]->list[i].path, diag);
  return code;
}

static psplit_code check_outside(const char *path, const char *checkpoint, psplit_diag *diag) {
  psplit_diag inside = {0};
  if (place_check_outside(path, checkpoint, &inside) != PSPLIT_USAGE) return PSPLIT_OK;
  return psplit_diag_fail(diag, PSPLIT_USAGE,
                          "%s lies in the checkpoint %s, which holds its own files alone; give "
                          "another place",
                          path, checkpoint);
}

/* Nor one of the split, nor one that is written as well. */
static psplit_code check_trace(const train_settings *s, const psplit_pipeline_info *pipeline,
                               psplit_diag *diag) {
  psplit_code code = check_unread(s, s->trace, diag);
  if (code == PSPLIT_OK) code = ort_check_unread(s->trace, s->directory, pipeline, diag);
  if (code == PSPLIT_OK && s->model) code = place_check_unread(s->trace, s->model, diag);
  if (code == PSPLIT_OK && s->export) code = place_check_apart(s->trace, s->export, diag);
  const char *const checkpoints[] = {s->train.checkpoint, s->train.resume};
  for (size_t i = 0; i < 2 && code == PSPLIT_OK; i++)
    if (checkpoints[i]) code = check_outside(s->trace, checkpoints[i], diag);
  return code == PSPLIT_OK ? place_check(s->trace, NULL, diag) : code;
}

/* Whether the trained model can be written, before the time is taken to train it. */
static psplit_code check_export(const train_settings *s, const char *checkpoint,
                                psplit_diag *diag) {
  psplit_model *model = NULL;
  psplit_code code = psplit_model_open(s->model, NULL, diag, &model);
  if (code == PSPLIT_OK) code = check_outside(s->export, checkpoint, diag);
  if (code == PSPLIT_OK && s->train.resume) code = check_outside(s->export, s->train.resume, diag);
  if (code == PSPLIT_OK) code = psplit_emit_file_check(model, s->export, s->force, diag);
  if (code == PSPLIT_OK) code = place_check_split(s->export, diag);
  psplit_model_close(model);
  return code == PSPLIT_OK ? check_unread(s, s->export, diag) : code;
}

/* Trains this process's part: all devices, or that of this rank. */
static psplit_code take_through(const train_settings *s, const psplit_onnxruntime *ort,
                                psplit_pipeline *pipeline, psplit_diag *diag,
                                psplit_training_run **out) {
#if PSPLIT_HAS_MPI
  if (s->mpi) return psplit_mpi_train(ort, pipeline, &s->train, diag, out);
#endif
  return psplit_train(ort, pipeline, &s->train, diag, out);
}

/* The model of a checkpoint that there is. */
static psplit_code put_trained(const train_settings *s, psplit_diag *diag) {
  const psplit_code code = check_export(s, s->train.resume, diag);
  return code == PSPLIT_OK ? put_model(s, s->train.resume, diag) : code;
}

static psplit_code train(train_settings *s, psplit_diag *diag) {
  psplit_pipeline *pipeline = NULL;
  psplit_onnxruntime *ort = NULL;
  psplit_training_run *made = NULL;
  psplit_pipeline_options reading;
  psplit_pipeline_options_init(&reading);
  reading.max_text_bytes = s->ort.max_text_bytes;
  reading.for_training = true;
  cli_doing("reading %s", s->directory);
  psplit_code code = psplit_pipeline_open(s->directory, &reading, diag, &pipeline);
  const psplit_pipeline_info *info = pipeline ? psplit_pipeline_get_info(pipeline) : NULL;
  if (code == PSPLIT_OK && s->trace) code = check_trace(s, info, diag);
  if (code == PSPLIT_OK && s->export && s->leads)
    code = ort_check_unread(s->export, s->directory, info, diag);
  if (code == PSPLIT_OK && s->export && s->leads) code = check_export(s, s->train.checkpoint, diag);
  if (code == PSPLIT_OK && s->train.checkpoint && s->leads)
    code = place_check_split(s->train.checkpoint, diag);
  if (code == PSPLIT_OK) code = ort_settings_apply(&s->ort, info, diag);
  s->train.sessions = s->ort.stages;
  s->train.n_sessions = info ? info->n_stages : 0;
  if (code == PSPLIT_OK) code = ort_library_open(&s->library, diag, &ort);
  cli_doing("training %s", s->directory);
  cli_count_by(count_steps, NULL, "steps");
  if (code == PSPLIT_OK) code = take_through(s, ort, pipeline, diag, &made);
  cli_doing("writing what was trained");
  cli_make_room();
  if (code == PSPLIT_OK && made) code = tell(s, made, diag);
  if (code == PSPLIT_OK && made && s->export) code = put_model(s, s->train.checkpoint, diag);
  psplit_training_run_destroy(made);
  psplit_onnxruntime_close(ort);
  psplit_pipeline_close(pipeline);
  return code;
}

int main(int argc, char **argv) {
  train_settings s;
  psplit_diag diag = {0};
  psplit_code code = PSPLIT_OK;
  uint32_t rank = 0;
  train_settings_init(&s);
  s.train.give_up = give_up;
#if PSPLIT_HAS_MPI
  s.mpi = psplit_mpi_launched();
#endif
  int status = train_settings_parse(argc, argv, &s);
  if (status < 0) {
#if PSPLIT_HAS_MPI
    if (s.mpi) code = psplit_mpi_begin(&diag, &rank, &ranks);
#endif
    s.train.progress = print_step;
    s.train.progress_user = &s;
    s.leads = rank == 0;
    s.train.cancel = cli_ends(CLI_ENDS_SOON);
    s.train.saving = wait_for_checkpoint;
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error like any other */
    if (code == PSPLIT_OK && !s.directory)
      code = s.leads ? put_trained(&s, &diag) : PSPLIT_OK;
    else if (code == PSPLIT_OK)
      code = train(&s, &diag);
    status = cli_end_status(code);
    if (code != PSPLIT_OK) cli_fail(&diag);
  }
  status = cli_logging_end(status);
  train_settings_fini(&s);
#if PSPLIT_HAS_MPI
  if (ranks && code != PSPLIT_OK) psplit_mpi_abort(status);
  if (ranks) psplit_mpi_end();
#endif
  return status;
}
