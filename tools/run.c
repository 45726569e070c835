/* onnx-pipeline-run: run the stages of a split, all at work at once. */
#include <inttypes.h>
#include <psplit/file.h>
#include <psplit/profile.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "places.h"
#include "print_run.h"
#include "resume.h"
#include "run_settings.h"
#if PSPLIT_HAS_MPI
#include <psplit/run_mpi.h>
#endif

#if PSPLIT_HAS_MPI
static uint32_t ranks; /* 0: MPI was not started */
#endif

static bool to_stdout(const run_settings *s) {
  return s->run.output && strcmp(s->run.output, "-") == 0;
}

/* Where the report goes: outputs are not to be mixed with words. */
static FILE *report_to(const run_settings *s) { return to_stdout(s) ? stderr : stdout; }

/* What a run that has failed had delivered. Over MPI the rank that gives outputs knows. */
static void tell_delivered(const run_settings *s, const psplit_diag *why) {
  uint64_t n = 0;
  if (!s->run.delivered) return;
  psplit_delivered_get(s->run.delivered, NULL, 0, &n);
  resume_tell(s->run.delivered, s->run.first_micro_batch, stderr);
  if (s->json && (n || !s->mpi))
    resume_tell_json(s->run.delivered, s->run.first_micro_batch, why, report_to(s));
  fflush(report_to(s));
}

/* Ends the process, and so the threads that are left. */
static void give_up(void *user, const psplit_diag *diag) {
  const run_settings *s = user;
  cli_fail(diag);
  cli_make_room();
  tell_delivered(s, diag);
#if PSPLIT_HAS_MPI
  if (ranks) psplit_mpi_abort(cli_end_status(diag->code));
#endif
  _exit(cli_end_status(diag->code));
}

/* --trace: a file that appears whole. */
static psplit_code put_trace(const run_settings *s, const psplit_run *run, psplit_diag *diag) {
  char *text = NULL;
  psplit_code code = psplit_run_trace_json(run, diag, &text);
  if (code == PSPLIT_OK)
    code = psplit_file_write(s->trace, text, strlen(text), s->run.cancel, diag);
  free(text);
  return code;
}

static psplit_code put_json(const psplit_run *run, FILE *out, psplit_diag *diag) {
  char *text = NULL;
  const psplit_code code = psplit_run_report_json(run, diag, &text);
  if (code == PSPLIT_OK) fputs(text, out);
  free(text);
  return code;
}

static psplit_code tell(const run_settings *s, const psplit_pipeline_info *pipeline,
                        const psplit_run *run, psplit_diag *diag) {
  FILE *out = report_to(s);
  psplit_code code = s->trace ? put_trace(s, run, diag) : PSPLIT_OK;
  if (code != PSPLIT_OK) return code;
  if (s->json)
    code = put_json(run, out, diag);
  else if (!s->quiet)
    print_run_table(psplit_run_get_report(run), pipeline, out);
  print_run_failures(psplit_run_get_report(run));
  if (fflush(out) != 0 || ferror(out))
    code = psplit_diag_fail(diag, PSPLIT_IO, "standard output cannot be written");
  return code;
}

/* An output may not be a file that the options name for reading. */
static psplit_code check_unread(const run_settings *s, const char *path, psplit_diag *diag) {
  const psplit_feed_options *feed = &s->feed.options;
  psplit_code code = PSPLIT_OK;
  if (s->ort.devices_file && cli_is_file(s->ort.devices_file))
    code = place_check_unread(path, s->ort.devices_file, diag);
  for (size_t i = 0; i < feed->n_files && code == PSPLIT_OK; i++)
    code = place_check_unread(path, feed->files[i].path, diag);
  return code;
}

/* Named as outputs of micro-batches are; {} stands for a number. */
static bool is_result_name(const char *name) {
  static const char NUMBER[] = "0123456789{}";
  const size_t n = strspn(name, NUMBER);
  if (!n || name[n] != '-') return false;
  const size_t m = strspn(name + n + 1, NUMBER);
  const char *end = name + n + 1 + m;
  return m && (strcmp(end, ".npy") == 0 || strcmp(end, ".pb") == 0);
}

/* -o DIR may not hold inputs that its files would replace. */
static psplit_code check_results(const run_settings *s, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < s->feed.options.n_files; i++) {
    const char *path = s->feed.options.files[i].path, *slash = strrchr(path, '/');
    if (!is_result_name(slash ? slash + 1 : path)) continue;
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!directory) return cli_nomem(diag);
    code = place_check_unread(s->run.output, directory, diag);
    free(directory);
    if (code != PSPLIT_OK) return code;
  }
  return code;
}

/* -o DIR may lie in a split, or be one, which is told. */
static psplit_code check_place(const run_settings *s, psplit_diag *diag) {
  psplit_code code = place_check_split(s->run.output, diag);
  char *inside;
  if (code != PSPLIT_OK) return code;
  if (asprintf(&inside, "%s/outputs.json", s->run.output) < 0) return cli_nomem(diag);
  code = place_check_split(inside, diag);
  free(inside);
  return code;
}

/* A file that is written, before the run: nor one of the split. */
static psplit_code check_written(const run_settings *s, const char *path,
                                 const psplit_pipeline_info *pipeline, psplit_diag *diag) {
  psplit_code code = check_unread(s, path, diag);
  if (code == PSPLIT_OK) code = ort_check_unread(path, s->directory, pipeline, diag);
  return code == PSPLIT_OK ? place_check(path, NULL, diag) : code;
}

/* How much the runs differed, which tells whether the machine was quiet. */
static psplit_code say_spread(const run_settings *s, const char *text, psplit_diag *diag) {
  psplit_cost_table *table;
  const psplit_code code = psplit_cost_table_parse(s->profile, text, strlen(text), diag, &table);
  if (code != PSPLIT_OK) return code;
  const double spread = psplit_cost_table_spread_frac(table);
  psplit_cost_table_destroy(table);
  if (spread > PSPLIT_MOST_SPREAD)
    cli_warn(
      "runs took up to %.0f %% longer than the fastest: this machine is too busy for the "
      "times to be trusted",
      100 * spread);
  else if (spread >= 0 && !s->quiet)
    printf("three quarters of the runs took at most %.1f %% longer than the fastest\n",
           100 * spread);
  return PSPLIT_OK;
}

/* What can be found out before ONNX Runtime is opened. */
static psplit_code check(run_settings *s, const psplit_pipeline *pipeline, uint32_t rank,
                         psplit_diag *diag) {
  const psplit_pipeline_info *info = psplit_pipeline_get_info(pipeline);
  psplit_code code = psplit_feed_check(&s->feed.options, pipeline, diag);
  if (code == PSPLIT_OK && s->trace && rank == 0) code = check_written(s, s->trace, info, diag);
  if (code == PSPLIT_OK && s->profile) code = check_written(s, s->profile, info, diag);
  if (code == PSPLIT_OK) code = ort_settings_apply(&s->ort, info, diag);
  s->run.sessions = s->ort.stages;
  s->run.n_sessions = s->ort.n_sessions;
  s->run.n_replicas = s->ort.n_replicas;
#if PSPLIT_HAS_MPI
  if (code == PSPLIT_OK && s->mpi) code = psplit_mpi_check_ranks(pipeline, diag);
#endif
  return code;
}

static psplit_code profile_model(run_settings *s, psplit_diag *diag, char **out_text) {
  psplit_model *model = NULL;
  psplit_onnxruntime *ort = NULL;
  if (s->run.pin || s->run.depth) return ort_fail_whole(s->run.pin ? "--pin" : "--depth", diag);
  cli_doing("reading %s", s->directory);
  psplit_code code = psplit_model_open(s->directory, NULL, diag, &model);
  if (code == PSPLIT_OK) code = psplit_feed_check_model(&s->feed.options, model, diag);
  if (code == PSPLIT_OK) code = check_unread(s, s->profile, diag);
  if (code == PSPLIT_OK) code = place_check(s->profile, model, diag);
  if (code == PSPLIT_OK) code = ort_settings_apply_whole(&s->ort, diag);
  s->run.sessions = s->ort.stages;
  s->run.n_sessions = s->ort.n_sessions;
  if (code == PSPLIT_OK) code = ort_library_open(&s->library, diag, &ort);
  cli_doing("running %s, %" PRIu32 " times and more", s->directory, s->run.n_micro_batches);
  if (code == PSPLIT_OK)
    code = psplit_profile_model(ort, s->directory, NULL, &s->run, diag, out_text);
  psplit_onnxruntime_close(ort);
  psplit_model_close(model);
  return code;
}

static psplit_code profile_stages(run_settings *s, psplit_diag *diag, char **out_text) {
  psplit_pipeline *pipeline = NULL;
  psplit_onnxruntime *ort = NULL;
  psplit_pipeline_options read;
  psplit_pipeline_options_init(&read);
  read.max_text_bytes = s->ort.max_text_bytes;
  psplit_code code = psplit_pipeline_open(s->directory, &read, diag, &pipeline);
  if (code == PSPLIT_OK) code = check(s, pipeline, 0, diag);
  if (code == PSPLIT_OK) code = ort_library_open(&s->library, diag, &ort);
  if (code == PSPLIT_OK) code = psplit_profile_stages(ort, pipeline, &s->run, diag, out_text);
  psplit_onnxruntime_close(ort);
  psplit_pipeline_close(pipeline);
  return code;
}

/* --profile: what nodes cost, to a file that appears whole. */
static psplit_code profile(run_settings *s, psplit_diag *diag) {
  char *text = NULL;
  struct stat info;
  const bool split = stat(s->directory, &info) == 0 && S_ISDIR(info.st_mode);
  psplit_code code = split ? profile_stages(s, diag, &text) : profile_model(s, diag, &text);
  if (code == PSPLIT_OK)
    code = psplit_file_write(s->profile, text, strlen(text), s->run.cancel, diag);
  if (code == PSPLIT_OK) code = say_spread(s, text, diag);
  free(text);
  return code;
}

/* --resume-from: what is left of the run. *out_over: nothing is. */
static psplit_code resume(run_settings *s, const psplit_pipeline_info *info, uint32_t rank,
                          psplit_diag *diag, bool *out_over) {
  psplit_code code = PSPLIT_OK;
  uint32_t first = s->resume;
  if (first == PSPLIT_NONE)
    code =
      resume_find(s->run.output, info->n_outputs, rank || s->quiet ? NULL : stderr, diag, &first);
  if (code != PSPLIT_OK || !first) return code;
  s->run.first_micro_batch = first;
  if (s->run.n_micro_batches == PSPLIT_RUN_ENDLESS) return code;
  *out_over = s->resume == PSPLIT_NONE && first >= s->run.n_micro_batches;
  if (!*out_over && first >= s->run.n_micro_batches)
    return psplit_diag_fail(diag, PSPLIT_USAGE,
                            "--resume-from %" PRIu32 ": there are %" PRIu32
                            " micro-batches, from 0 (--micro-batches)",
                            first, s->run.n_micro_batches);
  s->run.n_micro_batches -= first;
  return code;
}

/* A cli_counter. */
static uint64_t count_delivered(void *user, uint64_t *out_all) {
  const psplit_run_options *run = user;
  uint64_t n = 0;
  psplit_delivered_get(run->delivered, NULL, 0, &n);
  *out_all = run->n_micro_batches == PSPLIT_RUN_ENDLESS ? 0 : run->n_micro_batches;
  return n;
}

/* Runs this process's part: all stages, or that of this rank. */
static psplit_code take_through(run_settings *s, const psplit_onnxruntime *ort,
                                psplit_pipeline *pipeline, psplit_diag *diag, psplit_run **out) {
  const psplit_code code = psplit_delivered_create(diag, &s->run.delivered);
  if (code != PSPLIT_OK) return code;
  cli_doing("running %s", s->directory);
  cli_count_by(count_delivered, &s->run, "micro-batches");
#if PSPLIT_HAS_MPI
  if (s->mpi) return psplit_mpi_run(ort, pipeline, &s->run, diag, out);
#endif
  return psplit_pipeline_run(ort, pipeline, &s->run, diag, out);
}

/* Runs the stages; rank 0 reports. *out_skipped: some micro-batches failed and were skipped. */
static psplit_code run(run_settings *s, uint32_t rank, psplit_diag *diag, bool *out_skipped) {
  psplit_pipeline *pipeline = NULL;
  psplit_onnxruntime *ort = NULL;
  psplit_run *made = NULL;
  bool over = false;
  psplit_pipeline_options reading;
  psplit_pipeline_options_init(&reading);
  reading.max_text_bytes = s->ort.max_text_bytes;
  cli_doing("reading %s", s->directory);
  psplit_code code = psplit_pipeline_open(s->directory, &reading, diag, &pipeline);
  if (code == PSPLIT_OK) code = check(s, pipeline, rank, diag);
  if (code == PSPLIT_OK) code = ort_library_open(&s->library, diag, &ort);
  if (code == PSPLIT_OK && s->run.output && !psplit_is_tensor_stream(s->run.output))
    code = check_results(s, diag);
  if (code == PSPLIT_OK && s->run.output && rank == 0 && !psplit_is_tensor_stream(s->run.output))
    code = check_place(s, diag);
  if (code == PSPLIT_OK && s->resume)
    code = resume(s, psplit_pipeline_get_info(pipeline), rank, diag, &over);
  if (code == PSPLIT_OK && !over) code = take_through(s, ort, pipeline, diag, &made);
  cli_idle();
  if (code == PSPLIT_OK && made) code = tell(s, psplit_pipeline_get_info(pipeline), made, diag);
  *out_skipped = made && psplit_run_get_report(made)->n_failed;
  psplit_run_destroy(made);
  psplit_onnxruntime_close(ort);
  psplit_pipeline_close(pipeline);
  return code;
}

int main(int argc, char **argv) {
  enum { EXIT_SKIPPED = 1 };
  run_settings s;
  psplit_diag diag = {0};
  psplit_code code = PSPLIT_OK;
  uint32_t rank = 0;
  bool skipped = false;
  run_settings_init(&s);
  s.run.give_up = give_up;
  s.run.give_up_user = &s;
#if PSPLIT_HAS_MPI
  s.mpi = psplit_mpi_launched();
#endif
  int status = run_settings_parse(argc, argv, &s);
  if (s.profile || s.run.one_at_a_time) s.mpi = false;
  if (status < 0) {
#if PSPLIT_HAS_MPI
    if (s.mpi) code = psplit_mpi_begin(&diag, &rank, &ranks);
#endif
    s.run.cancel = cli_ends(CLI_ENDS_SOON);
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error like any other */
    if (code == PSPLIT_OK) code = s.profile ? profile(&s, &diag) : run(&s, rank, &diag, &skipped);
    status = code == PSPLIT_OK && skipped ? EXIT_SKIPPED : cli_end_status(code);
    if (code != PSPLIT_OK) cli_fail(&diag);
    if (code != PSPLIT_OK) tell_delivered(&s, &diag);
  }
  status = cli_logging_end(status);
  psplit_delivered_destroy(s.run.delivered);
  run_settings_fini(&s);
#if PSPLIT_HAS_MPI
  if (ranks && code != PSPLIT_OK) psplit_mpi_abort(status);
  if (ranks) psplit_mpi_end();
#endif
  return status;
}
