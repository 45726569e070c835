/* onnx-pipeline-split: read, run the passes, partition, emit, print the plan. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "next_steps.h"
#include "print_plan.h"

/* From here on the best round is what is written, whatever signal comes. */
static void end_rounds(split_request *r, uint32_t n_rounds) {
  cli_ends(CLI_ENDS_WHOLE);
  r->n_rounds = n_rounds;
}

static void go_on(void *user, uint32_t n_rounds);

static psplit_code tune(split_request *r, const psplit_model *model, psplit_diag *diag) {
  uint32_t n_rounds = 0;
  psplit_emit_options emit = r->emit;
  emit.accept = NULL;
  r->tune.cancel = r->emit.cancel;
  r->tune.go_on = go_on;
  r->tune.user = r;
  signal(SIGPIPE, SIG_IGN); /* what is beside DIR has to go in any case */
  const tune_split split = {.path = r->model,
                            .model = model,
                            .n_stages = r->n_stages,
                            .emit = &emit,
                            .directory = r->directory,
                            .out = r->quiet  ? NULL
                                   : r->json ? stderr
                                             : stdout};
  const psplit_code code = tune_run(&r->tune, &split, &r->plan, diag, &n_rounds);
  r->plan.planner.logger = NULL; /* the rounds have said it all */
  if (code == PSPLIT_OK) end_rounds(r, n_rounds);
  return code;
}

static void say_assumptions(const psplit_logger *logger, const psplit_model *model) {
  for (uint32_t i = 0; i < psplit_model_n_inlined(model); i++) {
    const psplit_inlined *one = psplit_model_inlined(model, i);
    char text[512], node[160], condition[160];
    if (!one->assumed) continue;
    snprintf(
      text, sizeof text,
      "the stages are MODEL only for inputs that make \"%s\" %s, where If \"%s\" takes its %s "
      "branch",
      cli_printable(one->condition, condition, sizeof condition),
      one->then_branch ? "true" : "false", cli_printable(one->node, node, sizeof node),
      one->then_branch ? "then" : "else");
    logger->emit(logger->user, PSPLIT_WARNING, text);
  }
}

static psplit_code write_directory(const split_request *r, const psplit_plan *plan,
                                   psplit_diag *diag) {
  if (r->trained) return psplit_training_emit(r->trained, plan, r->directory, &r->emit, diag);
  return psplit_emit(r->opened, plan, r->directory, &r->emit, diag);
}

static psplit_code make_target(split_request *r, psplit_diag *diag, char **out_text) {
  if (!r->target || target_prints(r->target)) return PSPLIT_OK;
  const psplit_code code =
    target_make(r->target, r->opened, r->made, &r->plan, &r->emit, diag, out_text);
  if (code != PSPLIT_OK) return code;
  r->file = (psplit_emit_file){target_file(r->target), *out_text, strlen(*out_text)};
  r->emit.files = &r->file;
  r->emit.n_files = 1;
  return PSPLIT_OK;
}

static psplit_code make_manifest(const split_request *r, const psplit_plan *plan, psplit_diag *diag,
                                 char **out_text) {
  if (r->trained) return psplit_training_manifest(r->trained, plan, &r->emit, diag, out_text);
  return psplit_manifest(r->opened, plan, &r->emit, diag, out_text);
}

/* Where one supernode makes the others wait: of plans for throughput, whose times are counted. */
static psplit_code report_undivided(const split_request *r, const psplit_plan *plan, FILE *out,
                                    psplit_diag *diag) {
  const psplit_planner_options *asked = &r->plan.planner;
  psplit_snapshot *snapshot = NULL;
  if (r->trained || asked->objective != PSPLIT_THROUGHPUT || asked->max_segments > 1 ||
      asked->max_replicas > 1 || plan->speed_up < 0 || !print_plan_waits(plan))
    return PSPLIT_OK;
  const psplit_code code = psplit_snapshot_take(r->made->planner, diag, &snapshot);
  if (code == PSPLIT_OK) print_plan_undivided(snapshot, out);
  psplit_snapshot_destroy(snapshot);
  return code;
}

/* What is printed behind the plan, malloc'd: before anything is written, so that nothing is where
 * it fails. */
static psplit_code make_report(const split_request *r, const psplit_plan *plan, psplit_diag *diag,
                               char **out_text) {
  size_t n;
  FILE *out = open_memstream(out_text, &n);
  if (!out) return cli_nomem(diag);
  const bool quiet = r->quiet;
  psplit_code code = PSPLIT_OK;
  if (!r->json && !quiet) code = report_undivided(r, plan, out, diag);
  if (code == PSPLIT_OK && target_prints(r->target))
    code = target_print(r->target, r->made, r->emit.logger, out, diag);
  if (code == PSPLIT_OK && r->trained && !r->json && !quiet)
    code = training_report(r->trained, &r->training, plan, r->n_micro_batches, out, diag);
  if (code == PSPLIT_OK && r->limits.wanted && !quiet)
    code = limits_print_plan(&r->limits, r->trained, plan, out, diag);
  if (code == PSPLIT_OK && r->choose.n_samples && !quiet)
    code =
      choose_print_plan(&r->choose, r->plan.policy, r->trained, plan, r->made->devices, out, diag);
  return !cli_close_text(out, out_text) && code == PSPLIT_OK ? cli_nomem(diag) : code;
}

/* All that follows the model and its costs: pass, emit, print. */
static psplit_code finish(split_request *r, const psplit_logger *logger, psplit_diag *diag) {
  planned made = {0};
  char *manifest = NULL, *file = NULL, *report = NULL;
  undo beside = {0};
  r->beside = &beside;
  r->made = &made;
  const psplit_model *subject = r->opened;
  psplit_code code = split_begin_training(r, logger, &subject, diag);
  const psplit_plan *plan = NULL;
  if (code == PSPLIT_OK) code = split_make_plan(r, subject, r->n_stages, diag, &made, &plan);
  /* Until here a signal may cut the program off: nothing was written. Files that are being written
   * when one comes go again; those left at the second, the next run removes. */
  if (!r->n_rounds) cli_ends(CLI_ENDS_BEHIND);
  if (code == PSPLIT_OK) code = split_check_planned_outputs(r, plan->n_stages, diag);
  if (code == PSPLIT_OK) code = make_target(r, diag, &file);
  if (code == PSPLIT_OK && r->json) code = make_manifest(r, plan, diag, &manifest);
  if (code == PSPLIT_OK) code = make_report(r, plan, diag, &report);
  if (code == PSPLIT_OK)
    code =
      r->directory && !r->plan_only ? write_directory(r, plan, diag) : split_write_beside(r, diag);
  if (code == PSPLIT_OK)
    undo_forget(&beside);
  else
    undo_all(&beside);
  cli_ends(CLI_ENDS_SOON); /* who reads what is printed may be slow */
  r->report.weights_inside =
    r->emit.weights == PSPLIT_WEIGHTS_AUTO || r->emit.weights == PSPLIT_WEIGHTS_INLINE;
  if (code == PSPLIT_OK && manifest)
    fputs(manifest, stdout);
  else if (code == PSPLIT_OK && !r->quiet)
    print_plan(plan, &r->report, cli_now_s() - r->start_s);
  if (code == PSPLIT_OK) fputs(report, stdout);
  if (code == PSPLIT_OK && r->verify && !r->json && !r->quiet)
    puts("\nverified: the stages together are the model");
  if (code == PSPLIT_OK) print_next_steps(r, plan);
  free(report);
  free(manifest);
  free(file);
  planned_fini(&made);
  r->made = NULL;
  psplit_training_destroy(r->trained);
  return code;
}

/* The exit status, behind an error line where it is not 0. */
static int conclude(const split_request *r, psplit_code code, psplit_diag *diag) {
  if (code == PSPLIT_OK && r->n_rounds && cli_ended_by())
    code = psplit_diag_fail(diag, PSPLIT_CANCELLED,
                            "interrupted after %" PRIu32 " %s; %s is split as in the best of them",
                            r->n_rounds, r->n_rounds == 1 ? "round" : "rounds", r->model);
  return code == PSPLIT_OK ? 0 : cli_fail(diag);
}

/* See tune.h. Threads are left in stages that do not end. */
static void go_on(void *user, uint32_t n_rounds) {
  split_request *r = user;
  psplit_diag diag = {0};
  const psplit_logger none = {.emit = cli_quiet};
  end_rounds(r, n_rounds);
  r->emit.logger = r->plan.planner.logger = &none;
  _exit(cli_finish(conclude(r, finish(r, &none, &diag), &diag)));
}

/* The whole pipeline: open, tune, and all that follows. */
static psplit_code split(split_request *r, psplit_diag *diag) {
  psplit_logger logger = cli_sink(&r->quiet);
  psplit_model *model = NULL;
  r->start_s = cli_now_s();
  r->plan.planner.logger = r->emit.logger = &logger;
  r->emit.accept = split_accept;
  r->emit.accept_user = r;
  psplit_code code = plan_open(&r->plan, r->model, diag, &model);
  r->opened = model;
  if (code == PSPLIT_OK) code = split_check_names(r, diag);
  if (code == PSPLIT_OK) code = split_check_outputs(r, diag);
  if (code == PSPLIT_OK) say_assumptions(&logger, model);
  if (code == PSPLIT_OK) code = split_probe(r, model, diag);
  if (code == PSPLIT_OK && r->tune.n_rounds) code = tune(r, model, diag);
  if (code == PSPLIT_OK) code = finish(r, &logger, diag);
  psplit_model_close(model);
  return code;
}

static int print_trainable(split_request *r) {
  psplit_diag diag = {0};
  psplit_logger logger = cli_sink(&r->quiet);
  psplit_model *model = NULL;
  psplit_code code = plan_open(&r->plan, r->model, &diag, &model);
  const psplit_model *subject = model;
  if (code == PSPLIT_OK) code = split_begin_training(r, &logger, &subject, &diag);
  if (code == PSPLIT_OK) training_print(r->trained);
  psplit_training_destroy(r->trained);
  psplit_model_close(model);
  return conclude(r, code, &diag);
}

/* What is written of the model instead of stages. */
static int write_model(split_request *r) {
  psplit_diag diag = {0};
  psplit_logger logger = cli_sink(&r->quiet);
  const char *file = r->training.lower ? r->training.lower : r->training.info;
  psplit_model *model = NULL;
  psplit_code code = plan_open(&r->plan, r->model, &diag, &model);
  if (code == PSPLIT_OK) code = psplit_emit_file_check(model, file, r->emit.replace, &diag);
  if (code == PSPLIT_OK && r->training.lower)
    code = training_lower(&r->training, model, r->quiet, &diag);
  else if (code == PSPLIT_OK)
    code = training_write_info(&r->training, model, &logger, &diag);
  psplit_model_close(model);
  return conclude(r, code, &diag);
}

static int clean(const split_request *r) {
  psplit_diag diag = {0};
  uint32_t n;
  if (psplit_emit_clean(r->clean, &n, &diag) != PSPLIT_OK) return cli_fail(&diag);
  if (!r->quiet) printf("removed %" PRIu32 "\n", n);
  return 0;
}

static int print_pipeline(const split_request *r) {
  psplit_diag diag = {0};
  char *text;
  if (psplit_plugins_canonical(r->plan.plugins, r->plan.pipeline, &diag, &text) != PSPLIT_OK)
    return cli_fail(&diag);
  puts(text);
  free(text);
  return 0;
}

static int print_passes(const split_request *r) {
  char *text = psplit_plugins_help(r->plan.plugins);
  if (text) fputs(text, stdout);
  free(text);
  psplit_diag diag = {0};
  return text || cli_nomem(&diag) == PSPLIT_OK ? 0 : cli_fail(&diag);
}

static int run(split_request *r) {
  psplit_diag diag = {0};
  if (plan_load_plugins(&r->plan, &diag) != PSPLIT_OK) return cli_fail(&diag);
  if (r->clean) return clean(r);
  if (r->help_passes) return print_passes(r);
  if (r->print_pipeline) return print_pipeline(r);
  const bool only_model = split_is_of_model(r);
  if (!only_model && plan_load_files(&r->plan, &diag) != PSPLIT_OK) return cli_fail(&diag);
  r->plan.read.cancel = r->plan.planner.cancel = r->emit.cancel = cli_ends(CLI_ENDS_SOON);
  if (r->training.print) return print_trainable(r);
  if (only_model) return write_model(r);
  r->plan.planner.activity = r->emit.activity = cli_activity();
  return conclude(r, split_is_range(r) ? split_compare(r, &diag) : split(r, &diag), &diag);
}

int main(int argc, char **argv) {
  static split_request r;
  const int status = split_parse(&r, argc, argv);
  if (status) return cli_finish(status);
  const int done = run(&r);
  tune_fini(&r.tune);
  plan_options_fini(&r.plan);
  return cli_finish(done);
}
