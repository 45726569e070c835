/* onnx-pipeline-inspect: a model's operators, supernodes or stages, before, between or after
 * passes. */
#include <errno.h>
#include <inttypes.h>
#include <psplit/emit.h>
#include <psplit/file.h>
#include <psplit/model.h>
#include <psplit/model_text.h>
#include <psplit/passes.h>
#include <psplit/snapshot.h>
#include <psplit/view.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli.h"
#include "places.h"
#include "plan_options.h"
#include "probe.h"
#include "training_options.h"

enum {
  OPT_FORMAT = 256,
  OPT_LEVEL,
  OPT_AFTER,
  OPT_BEFORE,
  OPT_DUMP_AFTER,
  OPT_DUMP_DIR,
  OPT_MICRO_BATCHES,
  OPT_TRACE,
  OPT_FOLD,
  OPT_FORCE,
  OPT_MAX_DATA
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "Output:"},
  {OPT_FORMAT, "format", "text|json|dot|html|svg|onnx|onnxtxt|problem",
   "output format; default: by the file name of -o, else text"},
  {OPT_LEVEL, "level", "operators|supernodes|stages|patterns", "granularity; default: supernodes"},
  {OPT_FOLD, "fold", NULL, "text: show only the first of repeated blocks"},
  {OPT_MAX_DATA, "max-data", "BYTES|all",
   "onnxtxt: omit the data of larger tensors; default: 1024"},
  {OPT_AFTER, "after", "PASS", "show the state after PASS; default: after the whole pipeline"},
  {OPT_BEFORE, "before", "PASS", "show the state before PASS"},
  {'o', "output", "FILE", "write to FILE, not to standard output; required for onnx"},
  {OPT_FORCE, "force", NULL, "with onnx, replace FILE if it exists"},
  {OPT_DUMP_AFTER, "dump-after", "PASS|all",
   "dump the state to a file after each run of PASS, or of every pass"},
  {OPT_DUMP_DIR, "dump-dir", "DIR", "directory for --dump-after; created if missing"},
  {OPT_MICRO_BATCHES, "micro-batches", "N", "html: micro-batches in the schedule; default: 8"},
  {OPT_TRACE, "trace", "FILE", "html: also show a trace that onnx-pipeline-run --trace wrote"},
  {0, NULL, NULL, "Plan, as for onnx-pipeline-split:"},
  {'k', "stages", "N[..M]", "number of stages (html: or a range); default: do not partition"},
  PLAN_COST_OPTIONS,
  PLAN_CUT_OPTIONS,
  {0, NULL, NULL, "Training (docs/training.md):"},
  TRAINING_OPTIONS,
  {0, NULL, NULL, "Reading the model:"},
  PLAN_READ_OPTIONS,
  {0, NULL, NULL, "General:"},
  {'q', "quiet", NULL, "no warnings or progress"},
  CLI_LOGGING_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-inspect", "MODEL [OPTION]...",
  "Shows a model as the passes see it: its operators, the supernodes "
  "they were grouped into, or the\n"
  "stages of a plan.\n\n"
  "Examples:\n"
  "  onnx-pipeline-inspect model.onnx -k 1..8 -o plan.html     write an HTML page\n"
  "  onnx-pipeline-inspect model.onnx -k 4 --level stages      print the stages",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

enum { MAX_PLANS = 64, MAX_TRACE_BYTES = 1 << 28 };

typedef struct request {
  const char *model, *output, *dump_after, *dump_dir, *trace;
  uint32_t first_k, last_k; /* 0: not given */
  bool formatted, onnx, onnxtxt, problem, force;
  bool has_max_data;
  uint64_t max_data_bytes;
  psplit_view_options view;
  plan_options plan;
  training_options training;
  bool quiet;
  unsigned n_dumps;
} request;

static psplit_code parse_format(request *r, const char *text) {
  int which;
  if (!cli_choice(&PROGRAM, "format", text, &which)) return PSPLIT_USAGE;
  r->formatted = true;
  r->onnx = which == 5;
  r->onnxtxt = which == 6;
  r->problem = which == 7;
  r->view.format = which > 4 ? PSPLIT_VIEW_TEXT : (psplit_view_format)which;
  return PSPLIT_OK;
}

/* A page that is called page.html, and no text: 0; a picture that is none: the exit status. */
static int format_by_ending(request *r) {
  static const char *const ENDINGS[] = {"json", "dot", "html", "svg", "onnx", "onnxtxt"};
  static const char *const PICTURES[] = {"png", "jpg", "jpeg", "gif", "webp", "pdf"};
  const char *dot = r->output ? strrchr(r->output, '.') : NULL;
  if (!dot || r->formatted) return 0;
  for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++)
    if (strcasecmp(dot + 1, ENDINGS[i]) == 0) (void)!parse_format(r, ENDINGS[i]);
  for (size_t i = 0; i < sizeof PICTURES / sizeof *PICTURES; i++)
    if (strcasecmp(dot + 1, PICTURES[i]) == 0)
      return cli_usage(&PROGRAM,
                       "-o: pictures are only written as SVG, to a FILE that ends in .svg");
  return 0;
}

static bool parse_option(request *r, int id, char *argument) {
  int which;
  switch (id) {
    case 'q': r->quiet = true; return true;
    case 'o': r->output = strcmp(argument, "-") == 0 ? NULL : argument; return true;
    case 'k': return cli_range(&PROGRAM, "stages", argument, &r->first_k, &r->last_k);
    case OPT_FORMAT: return parse_format(r, argument) == PSPLIT_OK;
    case OPT_LEVEL:
      if (!cli_choice(&PROGRAM, "level", argument, &which)) return false;
      r->view.level = (psplit_view_level)which;
      return true;
    case OPT_AFTER: r->plan.planner.stop_after = argument; return true;
    case OPT_BEFORE: r->plan.planner.stop_before = argument; return true;
    case OPT_DUMP_AFTER: r->dump_after = argument; return true;
    case OPT_DUMP_DIR: r->dump_dir = argument; return true;
    case OPT_MICRO_BATCHES:
      return cli_count32(&PROGRAM, "micro-batches", argument, 1, 10000, &r->view.n_micro_batches);
    case OPT_MAX_DATA:
      r->has_max_data = true;
      r->max_data_bytes = UINT64_MAX;
      return strcmp(argument, "all") == 0 ||
             cli_count(&PROGRAM, "max-data", argument, 0, INT64_MAX, &r->max_data_bytes);
    case OPT_TRACE: r->trace = argument; return true;
    case OPT_FOLD: r->view.fold = true; return true;
    case OPT_FORCE: r->force = true; return true;
    default: return plan_or_training_option(&PROGRAM, &r->training, &r->plan, id, argument);
  }
}

static bool wants_stages(const request *r) { return r->first_k || r->plan.devices; }

/* What formats need, and what they do not go with; 0, else the exit status. */
static int check_format(const request *r) {
  const bool supernodes = r->view.level == PSPLIT_VIEW_SUPERNODES;
  const bool any_plan =
    wants_stages(r) || r->plan.planner.stop_after || r->plan.planner.stop_before || r->dump_after;
  if (r->training.enabled && (r->onnx || r->onnxtxt))
    return cli_usage(&PROGRAM, "--training cannot be combined with --format onnx or onnxtxt");
  if (r->view.level == PSPLIT_VIEW_STAGES && !wants_stages(r))
    return cli_usage(&PROGRAM, "--level stages needs -k N or --devices FILE");
  if (r->view.level == PSPLIT_VIEW_PATTERNS && r->view.format > PSPLIT_VIEW_JSON)
    return cli_usage(&PROGRAM, "--level patterns requires --format text or json");
  if (r->onnx && (!r->output || r->dump_after || !supernodes))
    return cli_usage(&PROGRAM, "--format onnx shows supernodes and needs -o FILE");
  if (r->onnxtxt && (any_plan || !supernodes))
    return cli_usage(&PROGRAM,
                     "--format onnxtxt shows the model alone: no stages, passes or levels");
  if (r->problem && (r->dump_after || r->training.enabled || !supernodes || !wants_stages(r)))
    return cli_usage(&PROGRAM,
                     "--format problem needs -k N or --devices FILE and excludes --training, "
                     "--level and --dump-after");
  return 0;
}

/* Which options need a format; 0, else the exit status. */
static int check_options(const request *r) {
  const bool several = r->first_k != r->last_k;
  if (r->plan.planner.objective == PSPLIT_FILL_DRAIN && !r->training.enabled)
    return cli_usage(&PROGRAM, "--objective fill-drain needs --training");
  if (r->has_max_data && !r->onnxtxt)
    return cli_usage(&PROGRAM, "--max-data requires --format onnxtxt");
  if (r->view.fold && (r->onnx || r->onnxtxt || r->problem || r->view.format != PSPLIT_VIEW_TEXT))
    return cli_usage(&PROGRAM, "--fold requires --format text");
  if (r->trace && r->view.format != PSPLIT_VIEW_HTML)
    return cli_usage(&PROGRAM, "--trace requires --format html");
  if (!r->dump_after != !r->dump_dir)
    return cli_usage(&PROGRAM, "--dump-after PASS and --dump-dir DIR must be given together");
  if (several && r->view.format != PSPLIT_VIEW_HTML)
    return cli_usage(&PROGRAM, "only --format html shows several numbers of stages");
  if (r->last_k - r->first_k >= MAX_PLANS)
    return cli_usage(&PROGRAM, "at most %d numbers of stages in one page", MAX_PLANS);
  if (several && r->dump_after)
    return cli_usage(&PROGRAM, "--dump-after takes one number of stages");
  return 0;
}

/* Fills the request; 0 to go on, else the exit status. */
static int parse(request *r, int argc, char **argv) {
  plan_options_init(&r->plan);
  training_options_init(&r->training);
  psplit_view_options_init(&r->view);
  r->view.level = PSPLIT_VIEW_SUPERNODES;
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;)
    if (id == CLI_BAD || !parse_option(r, id, (char *)(uintptr_t)argument))
      return cli_exit_status(PSPLIT_USAGE);
  int status = format_by_ending(r);
  if (!status) status = plan_model(&PROGRAM, &r->plan, argc, argv, &r->model);
  if (!status) status = training_check(&PROGRAM, &r->training);
  if (!status) status = check_format(r);
  return status ? status : check_options(r);
}

static psplit_code cannot_write(const char *path, psplit_diag *diag) {
  diag->code = PSPLIT_IO;
  char safe[1024];
  snprintf(diag->message, sizeof diag->message, "%s: cannot be written: %s",
           cli_printable(path, safe, sizeof safe), strerror(errno));
  return PSPLIT_IO;
}

/* Text to a file, or to standard output where `path` is NULL. */
static psplit_code write_out(const char *path, const char *text, size_t n, psplit_diag *diag) {
  if (path) return psplit_file_write(path, text, n, cli_ends(CLI_ENDS_SOON), diag);
  const bool whole = fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0;
  return whole ? PSPLIT_OK : cannot_write("standard output", diag);
}

static psplit_code show(const request *r, const psplit_snapshot *const *snapshots, size_t n,
                        const char *path, psplit_diag *diag) {
  char *text = NULL;
  size_t n_text;
  psplit_code code = psplit_view(snapshots, n, &r->view, diag, &text, &n_text);
  if (code == PSPLIT_OK) code = write_out(path, text, n_text, diag);
  free(text);
  return code;
}

/* The model with supernodes as functions. */
static psplit_code show_blocks(const request *r, const psplit_model *model,
                               const psplit_snapshot *snapshot, psplit_diag *diag) {
  uint32_t *node_block = malloc(((size_t)snapshot->n_nodes + 1) * sizeof *node_block);
  const char **titles = malloc(((size_t)snapshot->n_groups + 1) * sizeof *titles);
  const char **kinds = malloc(((size_t)snapshot->n_groups + 1) * sizeof *kinds);
  psplit_code code;
  if (node_block && titles && kinds) {
    for (uint32_t n = 0; n < snapshot->n_nodes; n++) node_block[n] = snapshot->nodes[n].group;
    for (uint32_t g = 0; g < snapshot->n_groups; g++) {
      titles[g] = snapshot->groups[g].title;
      kinds[g] = snapshot->groups[g].kind;
    }
    const psplit_blocks blocks = {snapshot->n_nodes, node_block, snapshot->n_groups, titles, kinds};
    psplit_emit_options how;
    psplit_emit_options_init(&how);
    how.replace = r->force;
    how.cancel = cli_ends(CLI_ENDS_SOON);
    code = psplit_emit_blocks(model, &blocks, r->output, &how, diag);
  } else {
    code = cli_nomem(diag);
  }
  free(kinds);
  free(titles);
  free(node_block);
  return code;
}

/* The model in ONNX's textual syntax. */
static psplit_code show_onnxtxt(const request *r, const psplit_model *model, psplit_diag *diag) {
  const psplit_print_text_options options = {.struct_size = sizeof options,
                                             .max_data_bytes = r->max_data_bytes};
  char *text = NULL;
  size_t n_text;
  psplit_code code =
    psplit_model_print_text(model, r->has_max_data ? &options : NULL, diag, &text, &n_text);
  if (code == PSPLIT_OK) code = write_out(r->output, text, n_text, diag);
  free(text);
  return code;
}

/* What the solver is asked. */
static psplit_code show_problem(const request *r, psplit_planner *planner, psplit_diag *diag) {
  char *text = NULL;
  size_t n_text;
  psplit_code code = psplit_planner_problem(planner, diag, &text, &n_text);
  if (code == PSPLIT_OK) code = write_out(r->output, text, n_text, diag);
  free(text);
  return code;
}

/* A file that is written may not be one that is read. */
static psplit_code check_unread(const request *r, const char *path, psplit_diag *diag) {
  const psplit_code code = plan_check_output(&r->plan, path, diag);
  if (code != PSPLIT_OK || !r->trace || strcmp(r->trace, "-") == 0) return code;
  return place_check_unread(path, r->trace, diag);
}

/* DIR/03-fuse.txt, numbered in the order in which the passes ran. */
static psplit_code dump(void *user, psplit_planner *planner, const char *pass, psplit_diag *diag) {
  static const char *const endings[] = {"txt", "json", "dot", "html", "svg"};
  request *r = user;
  psplit_snapshot *snapshot;
  const unsigned number = ++r->n_dumps;
  if (strcmp(r->dump_after, "all") != 0 && strcmp(r->dump_after, pass) != 0) return PSPLIT_OK;
  psplit_code code = psplit_snapshot_take(planner, diag, &snapshot);
  if (code != PSPLIT_OK) return code;
  char path[4096];
  const int n = snprintf(path, sizeof path, "%s/%02u-%s.%s", r->dump_dir, number, pass,
                         endings[r->view.format]);
  const psplit_snapshot *one = snapshot;
  if (n < 0 || (size_t)n >= sizeof path)
    errno = ENAMETOOLONG, code = cannot_write(r->dump_dir, diag);
  /* There are no times before costs are known, no stages before they are made, no matches before a
   * search: nothing to dump yet. */
  else if ((code = check_unread(r, path, diag)) != PSPLIT_OK)
    return psplit_snapshot_destroy(snapshot), code;
  else if ((r->view.format != PSPLIT_VIEW_SVG || snapshot->facts & PSPLIT_SNAPSHOT_COSTS) &&
           (r->view.level != PSPLIT_VIEW_STAGES || snapshot->plan) &&
           (r->view.level != PSPLIT_VIEW_PATTERNS || snapshot->patterns))
    code = show(r, &one, 1, path, diag);
  psplit_snapshot_destroy(snapshot);
  return code;
}

/* Nobody said how many stages: show what there is to cut. */
static void stop_before_stages(plan_options *plan) {
  const char *pipeline = plan->pipeline ? plan->pipeline : psplit_default_pipeline();
  if (!plan->planner.stop_after && !plan->planner.stop_before && strstr(pipeline, "partition"))
    plan->planner.stop_before = "partition";
}

static psplit_code check_output(const request *r, const psplit_model *model, psplit_diag *diag) {
  psplit_code code = check_unread(r, r->output, diag);
  if (code != PSPLIT_OK) return code;
  if (!r->onnx) return place_check(r->output, model, diag);
  code = psplit_emit_file_check(model, r->output, r->force, diag);
  return code == PSPLIT_OK ? place_check_split(r->output, diag) : code;
}

/* A plan for training belongs to its differentiated model, which outlives it. */
static psplit_code make_plan(const request *r, const psplit_model *model, uint32_t n_stages,
                             psplit_diag *diag, planned *out, psplit_training **out_training) {
  psplit_planner_options planner;
  if (!r->training.enabled) return planned_make(&r->plan, model, n_stages, diag, out);
  psplit_code code = psplit_training_create(model, &r->training.what, &r->training.form,
                                            r->plan.planner.logger, diag, out_training);
  if (code == PSPLIT_OK) code = planned_prepare(&r->plan, n_stages, diag, out, &planner);
  if (code == PSPLIT_OK)
    code = psplit_training_plan(*out_training, &planner, r->plan.pipeline, diag, &out->planner);
  return code;
}

/* A plan for each number of stages, with what is shown of it. */
typedef struct all_plans {
  planned plans[MAX_PLANS];
  psplit_training *trainings[MAX_PLANS];
  psplit_snapshot *snapshots[MAX_PLANS];
  size_t n;
} all_plans;

/* All that is read before a plan is made, and whether what is to be written can be. */
static psplit_code load(request *r, psplit_diag *diag, char **out_trace, psplit_model **out_model) {
  psplit_code code = plan_load_plugins(&r->plan, diag);
  if (code == PSPLIT_OK) code = plan_load_files(&r->plan, diag);
  if (code == PSPLIT_OK && r->trace) {
    code = cli_read_file(r->trace, MAX_TRACE_BYTES, true, diag, out_trace, &r->view.n_trace);
    r->view.trace = *out_trace;
    r->view.trace_name = r->trace;
  }
  r->plan.read.cancel = r->plan.planner.cancel = cli_ends(CLI_ENDS_SOON);
  r->plan.planner.activity = cli_activity();
  if (code == PSPLIT_OK) code = plan_open(&r->plan, r->model, diag, out_model);
  if (code == PSPLIT_OK) code = plan_check_names(&r->plan, *out_model, diag);
  if (code == PSPLIT_OK) code = probe_load(&r->plan, r->model, *out_model, NULL, diag);
  if (code == PSPLIT_OK && r->output) code = check_output(r, *out_model, diag);
  if (code == PSPLIT_OK && r->dump_dir) code = place_make_directory(r->dump_dir, diag);
  return code;
}

/* One more plan. On failure what there is of it stays, for leave_out or the end. */
static psplit_code add_plan(request *r, psplit_model *model, uint32_t k, psplit_diag *diag,
                            all_plans *all) {
  planned *plan = &all->plans[all->n];
  psplit_snapshot **snapshot = &all->snapshots[all->n];
  psplit_code code = make_plan(r, model, k, diag, plan, &all->trainings[all->n]);
  if (code == PSPLIT_OK && !r->dump_after && !r->problem)
    code = psplit_snapshot_take(plan->planner, diag, snapshot);
  if (code == PSPLIT_OK && *snapshot && r->view.format == PSPLIT_VIEW_HTML)
    code = psplit_snapshot_count(plan->planner, *snapshot, diag);
  if (code == PSPLIT_OK) all->n++;
  return code;
}

/* Says that the page goes on without a number of stages for which there is no plan. */
static void leave_out(const request *r, uint32_t k, psplit_diag *diag, all_plans *all) {
  char why[CLI_ADVICE_BYTES], line[CLI_ADVICE_BYTES + 64];
  const psplit_logger always = cli_sink(&r->quiet);
  cli_advice(diag, why, sizeof why);
  snprintf(line, sizeof line, "no plan for -k %" PRIu32 ": %s", k, why);
  always.emit(always.user, PSPLIT_WARNING, line);
  *diag = (psplit_diag){0};
  planned_fini(&all->plans[all->n]);
  psplit_training_destroy(all->trainings[all->n]);
  all->trainings[all->n] = NULL;
}

/* A plan for each number of stages that there is one for; none at all is an error. */
static psplit_code make_plans(request *r, psplit_model *model, psplit_logger *logger,
                              psplit_diag *diag, all_plans *all) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = r->first_k; code == PSPLIT_OK && !r->onnxtxt && k <= r->last_k; k++) {
    cli_series(k - r->first_k + 1, r->last_k - r->first_k + 1);
    code = add_plan(r, model, wants_stages(r) ? k : 1, diag, all);
    *logger = (psplit_logger){.emit = cli_quiet}; /* the same warnings once */
    if (code == PSPLIT_INFEASIBLE && (all->n || k < r->last_k)) {
      leave_out(r, k, diag, all);
      code = PSPLIT_OK;
    }
  }
  cli_series(0, 0);
  return code;
}

static psplit_code show_all(request *r, psplit_model *model, psplit_logger *logger,
                            const all_plans *all, psplit_diag *diag) {
  if (r->onnxtxt) return show_onnxtxt(r, model, diag);
  if (r->onnx) return show_blocks(r, model, all->snapshots[0], diag);
  if (r->problem) {
    *logger = cli_sink(&r->quiet); /* it has warnings of its own */
    return show_problem(r, all->plans[0].planner, diag);
  }
  if (r->dump_after) return PSPLIT_OK;
  return show(r, (const psplit_snapshot *const *)all->snapshots, all->n, r->output, diag);
}

static psplit_code inspect(request *r, psplit_diag *diag) {
  static all_plans all;
  const psplit_observer observer = {.after_pass = dump, .user = r};
  psplit_logger logger = cli_sink(&r->quiet);
  psplit_model *model = NULL;
  char *trace = NULL;
  const char *slash = strrchr(r->model, '/');
  r->view.title = slash ? slash + 1 : r->model;
  r->plan.planner.logger = &logger;
  if (r->dump_after) r->plan.planner.observer = &observer;
  if (!wants_stages(r) || r->problem) stop_before_stages(&r->plan);
  psplit_code code = load(r, diag, &trace, &model);
  if (code == PSPLIT_OK) code = make_plans(r, model, &logger, diag, &all);
  cli_doing("writing what is shown");
  if (code == PSPLIT_OK) code = cli_cancel_no_more(diag);
  if (code == PSPLIT_OK) code = show_all(r, model, &logger, &all, diag);
  for (size_t i = 0; i < MAX_PLANS; i++) {
    psplit_snapshot_destroy(all.snapshots[i]);
    planned_fini(&all.plans[i]);
    psplit_training_destroy(all.trainings[i]);
  }
  psplit_model_close(model);
  free(trace);
  plan_options_fini(&r->plan);
  return code;
}

int main(int argc, char **argv) {
  static request r;
  const int status = parse(&r, argc, argv);
  if (status) return cli_finish(status);
  psplit_diag diag = {0};
  if (inspect(&r, &diag) != PSPLIT_OK) return cli_finish(cli_fail(&diag));
  return cli_finish(0);
}
