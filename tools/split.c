/* onnx-pipeline-split: read, run the passes, partition, emit, print the plan. */
#include <inttypes.h>
#include <psplit/emit.h>
#include <psplit/passes.h>
#include <psplit/verify.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <psplit/file.h>

#include "ask.h"
#include "choose.h"
#include "cli.h"
#include "depfile.h"
#include "limits.h"
#include "places.h"
#include "plan_options.h"
#include "print_plan.h"
#include "targets.h"
#include "training_options.h"
#include "tune.h"
#include "undo.h"

enum {
  OPT_PRINT_PIPELINE = 256,
  OPT_HELP_PASSES,
  OPT_BOUNDARY,
  OPT_WEIGHTS,
  OPT_PLAN_ONLY,
  OPT_JSON,
  OPT_DEPFILE,
  OPT_FORCE,
  OPT_VERIFY,
  OPT_MICRO_BATCHES,
  OPT_LIMITS,
  OPT_SCHEDULE,
  OPT_TARGET,
  OPT_ANNOTATE,
  OPT_ANNOTATE_AS,
  OPT_CERTIFICATE,
  OPT_NO_SYNC,
  OPT_CLEAN,
  OPT_NAME_TEMPLATE,
  OPT_AUTOTUNE,
  OPT_ONNXRUNTIME,
  OPT_OPTIMIZATION,
  OPT_COLOR,
  OPT_ALL_TRANSFERS
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "What to make:"},
  {'k', "stages", "N[..M]", "number of stages; default: one for each device of --devices"},
  {'o', "output", "DIR", "directory to write; it appears complete or not at all"},
  {OPT_FORCE, "force", NULL, "replace DIR if it exists and is empty or a split"},
  {OPT_BOUNDARY, "boundary", "sendrecv|io",
   "how stages meet; default: sendrecv, Send and Recv nodes; io: plain inputs, outputs"},
  {OPT_WEIGHTS, "weights", "auto|inline|external|reference",
   "where weights are; default: auto; reference: to the model's files"},
  {OPT_NAME_TEMPLATE, "name-template", "NAME",
   "of stages' files, with {model}, {stage}, {stage:02}, {stages}; default: stage{stage}.onnx"},
  {OPT_VERIFY, "verify", NULL, "prove that the stages are MODEL before DIR appears"},
  {OPT_PLAN_ONLY, "plan-only", NULL,
   "write no files; with -k N..M a line for each number of stages"},
  {OPT_MICRO_BATCHES, "micro-batches", "N",
   "in flight when a range of stages is compared, and of a step of training; default: 8"},
  LIMITS_OPTION(OPT_LIMITS, "N|auto"),
  CHOOSE_OPTION(OPT_SCHEDULE, "seconds"),
  {OPT_TARGET, "target", "genai|triton|k8s|vllm|llama.cpp",
   "a file of DIR that these read; vllm, llama.cpp: print layers by stage"},
  {OPT_ANNOTATE, "annotate", "FILE", "write MODEL with the stages of its nodes added, or a text"},
  {OPT_ANNOTATE_AS, "annotate-as", "onnx|layer_ann|olive|names",
   "what --annotate writes; default: onnx"},
  {OPT_CERTIFICATE, "certificate", "FILE",
   "write a proof of the bound, and its bare problem to FILE.problem.json"},
  {OPT_NO_SYNC, "no-sync", NULL, "do not wait until the disk has DIR: a power cut may lose it"},
  {OPT_CLEAN, "clean", "DIR", "remove what killed runs left in DIR under hidden names, and stop"},
  {OPT_JSON, "json", NULL, "print the manifest instead of the table"},
  {OPT_DEPFILE, "depfile", "FILE", "write a make rule of what DIR/pipeline.json depends on"},
  {0, NULL, NULL, "What it costs:"},
  PLAN_COST_OPTIONS,
  {OPT_AUTOTUNE, "autotune", "N", "run the stages and correct their costs, at most N times"},
  {OPT_ONNXRUNTIME, "onnxruntime", "FILE", "with --autotune and --probe: libonnxruntime.so"},
  {OPT_OPTIMIZATION, "optimization", "LEVEL",
   "with --autotune: 0, 1, 2 or 99 (default), of ONNX Runtime"},
#if PSPLIT_HAS_RUNTIME
  {OPT_INPUT, "input", "NAME=FILE|ones|zeros|LO..HI",
   "with --autotune: an input; default: random numbers"},
#endif
  {0, NULL, NULL, "How it is cut:"},
  PLAN_CUT_OPTIONS,
  {OPT_PRINT_PIPELINE, "print-pipeline", NULL, "print the pipeline with all options, and stop"},
  {OPT_HELP_PASSES, "help-passes", NULL, "print passes and their options, and stop"},
  {0, NULL, NULL, "Training (docs/training.md):"},
  TRAINING_OPTIONS,
  TRAINING_FILE_OPTIONS,
  {0, NULL, NULL, "Reading:"},
  PLAN_READ_OPTIONS,
  {0, NULL, NULL, "General:"},
  {OPT_ALL_TRANSFERS, "all-transfers", NULL, "list all crossing tensors, not the first twelve"},
  {OPT_COLOR, "color", "auto|always|never",
   "bars and colours; default: auto, on a terminal; never: bars without colours"},
  {'q', "quiet", NULL, "no table, warnings or progress"},
  CLI_TALK_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-split", "MODEL -k N -o DIR [OPTION]...",
  "Cuts an ONNX model into N stages for N devices: N valid ONNX files that together compute the\n"
  "same function, with the slowest stage as fast as can be, and a proof of how good the cut is.",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

typedef struct request {
  limits_options limits;
  choose_options choose;
  const char *model, *directory, *depfile, *annotate, *certificate, *clean;
  char problem[4096];        /* that the certificate is of: its file */
  uint32_t n_stages, last_k; /* a range of stages to plan where they differ */
  uint32_t n_micro_batches;
  psplit_annotation annotation;
  bool by_names; /* --annotate-as names */
  target target;
  psplit_emit_file file; /* of the target */
  plan_options plan;
  tune_settings tune;
  training_options training;
  psplit_emit_options emit;
  plan_report report;
  bool plan_only, json, print_pipeline, help_passes, verify, done, quiet;
  const psplit_model *opened; /* MODEL */
  psplit_training *trained;   /* with --training */
  const planned *made;        /* its plan */
  undo *beside;               /* what was written beside DIR */
  double start_s;
  uint32_t n_rounds; /* of --autotune, once it has ended */
} request;

/* Options that stand in tables of their own. */
static bool parse_shared(request *r, int id, char *argument) {
  bool taken;
  if (!training_option(&PROGRAM, &r->training, id, argument, &taken)) return false;
  return taken || plan_option(&PROGRAM, &r->plan, id, argument);
}

static bool parse_color(request *r, const char *text) {
  int which;
  if (!cli_choice(&PROGRAM, "color", text, &which)) return false;
  r->report.color = (stage_chart_color)which;
  return true;
}

static bool parse_option(request *r, int id, char *argument) {
  uint64_t count;
  int which;
  switch (id) {
    case 'k': return cli_range(&PROGRAM, "stages", argument, &r->n_stages, &r->last_k);
    case 'o': r->directory = argument; return true;
    case 'q': r->quiet = true; return true;
    case 'h':
      cli_print_help(&PROGRAM, stdout);
      r->done = true;
      return true;
    case 'V':
      cli_print_version(&PROGRAM, stdout);
      r->done = true;
      return true;
    case OPT_HELP_PASSES: r->help_passes = true; return true;
    case OPT_PRINT_PIPELINE: r->print_pipeline = true; return true;
    case OPT_BOUNDARY:
      if (!cli_choice(&PROGRAM, "boundary", argument, &which)) return false;
      r->emit.boundary = which ? PSPLIT_BOUNDARY_IO : PSPLIT_BOUNDARY_SENDRECV;
      return true;
    case OPT_WEIGHTS:
      if (!cli_choice(&PROGRAM, "weights", argument, &which)) return false;
      r->emit.weights = (psplit_weights)which;
      return true;
    case OPT_NAME_TEMPLATE: r->emit.name_template = argument; return true;
    case OPT_VERIFY: r->verify = true; return true;
    case OPT_AUTOTUNE:
      if (!cli_count(&PROGRAM, "autotune", argument, 1, 1000, &count)) return false;
      r->tune.n_rounds = (uint32_t)count;
      return true;
    case OPT_ONNXRUNTIME: r->tune.onnxruntime = argument; return true;
    case OPT_OPTIMIZATION: return cli_level(&PROGRAM, argument, &r->tune.optimization);
#if PSPLIT_HAS_RUNTIME
    case OPT_INPUT: return feed_option(&PROGRAM, &r->tune.feed, id, argument);
#endif
    case OPT_PLAN_ONLY: r->plan_only = true; return true;
    case OPT_LIMITS: return limits_parse(&PROGRAM, argument, true, &r->limits);
    case OPT_SCHEDULE: return choose_parse(&PROGRAM, argument, &r->choose);
    case OPT_MICRO_BATCHES:
      if (!cli_count(&PROGRAM, "micro-batches", argument, 1, 10000, &count)) return false;
      r->n_micro_batches = (uint32_t)count;
      return true;
    case OPT_TARGET:
      if (r->target) {
        cli_usage(&PROGRAM, "--target stands once: %s, and then \"%s\"", target_name(r->target),
                  argument);
        return false;
      }
      return target_parse(&PROGRAM, argument, &r->target);
    case OPT_ANNOTATE: r->annotate = argument; return true;
    case OPT_CERTIFICATE:
      r->certificate = argument;
      r->plan.planner.certify = true;
      return true;
    case OPT_ANNOTATE_AS:
      if (!cli_choice(&PROGRAM, "annotate-as", argument, &which)) return false;
      r->annotation = (psplit_annotation)which;
      r->by_names = strcmp(argument, "names") == 0;
      return true;
    case OPT_JSON: r->json = true; return true;
    case OPT_ALL_TRANSFERS: r->report.all_transfers = true; return true;
    case OPT_COLOR: return parse_color(r, argument);
    case OPT_DEPFILE: r->depfile = argument; return true;
    case OPT_FORCE: r->emit.replace = true; return true;
    case OPT_NO_SYNC: r->emit.no_sync = true; return true;
    case OPT_CLEAN: r->clean = argument; return true;
    default: return parse_shared(r, id, argument);
  }
}

static int check_target(const request *r) {
  if (!r->target) return 0;
  if (r->last_k > r->n_stages) return cli_usage(&PROGRAM, "--target takes one number of stages");
  if (r->training.enabled) return cli_usage(&PROGRAM, "--target does not go with --training");
  if (target_prints(r->target) && r->json)
    return cli_usage(&PROGRAM, "--target prints a line, --json the manifest: not both");
  if (!target_prints(r->target) && (!r->directory || r->plan_only))
    return cli_usage(&PROGRAM, "--target %s writes a file of DIR: -o DIR is needed",
                     target_name(r->target));
  if (target_needs_context(r->target) && !r->plan.decode.past)
    return cli_usage(&PROGRAM, "--target %s says how long sequences may get: --context N is needed",
                     target_name(r->target));
  return 0;
}

/* Fills the request; 0 to go on, else the exit status (plus r->done for a clean stop). */
static int parse(request *r, int argc, char **argv) {
  tune_init(&r->tune);
  plan_options_init(&r->plan);
  training_options_init(&r->training);
  psplit_emit_options_init(&r->emit);
  r->n_micro_batches = 8;
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;) {
    if (id == CLI_BAD || !parse_option(r, id, (char *)(uintptr_t)argument))
      return cli_exit_status(PSPLIT_USAGE);
    if (r->done) return 0;
  }
  r->emit.n_threads = r->plan.planner.n_threads;
  r->plan.planner.inline_weights = r->emit.weights == PSPLIT_WEIGHTS_INLINE;
  if (r->print_pipeline || r->help_passes) return 0;
  if (r->clean && (optind != argc || r->directory || r->plan_only))
    return cli_usage(&PROGRAM, "--clean DIR stands alone");
  if (r->clean) return 0;
  const int status = plan_model(&PROGRAM, &r->plan, argc, argv, &r->model);
  if (status) return status;
  const int trains = training_check(&PROGRAM, &r->training);
  if (trains) return trains;
  if (r->training.print || r->training.lower || r->training.info) return 0;
  const bool fewest = !r->n_stages && !r->plan.devices && r->plan.max_stage_bytes;
  if (!r->n_stages && !r->plan.devices && !fewest)
    return cli_usage(&PROGRAM, "-k N, --devices FILE or --max-bytes-per-stage BYTES is needed");
  if (!r->n_stages && r->plan.devices && cli_is_preset(r->plan.devices))
    return cli_usage(&PROGRAM, "-k N is needed: --devices %s says what a device is, not how many",
                     r->plan.devices);
  if (fewest && (r->training.enabled || r->tune.n_rounds))
    return cli_usage(&PROGRAM, "--training and --autotune need -k N or --devices FILE");
  if (!r->plan_only && !r->directory && !r->annotate && !target_prints(r->target))
    return cli_usage(&PROGRAM, "-o DIR, --annotate FILE or --plan-only is needed");
  const int aims = check_target(r);
  if (aims) return aims;
  const char *const outputs[] = {r->directory, r->annotate, r->depfile, r->certificate};
  for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
    if (outputs[i] && strcmp(outputs[i], "-") == 0)
      return cli_usage(&PROGRAM,
                       "stages and rules cannot go to standard output; ./- is a file's name");
  if (r->annotate && r->plan.read.n_inline_ifs)
    return cli_usage(&PROGRAM, "--annotate writes MODEL as it is; --inline-if is for stages alone");
  if (r->annotate && r->last_k > r->n_stages)
    return cli_usage(&PROGRAM, "--annotate takes one number of stages");
  if (r->certificate && r->last_k > r->n_stages)
    return cli_usage(&PROGRAM, "--certificate takes one number of stages");
  if (r->certificate && snprintf(r->problem, sizeof r->problem, "%s.problem.json",
                                 r->certificate) >= (int)sizeof r->problem)
    return cli_usage(&PROGRAM, "--certificate: the name is too long");
  if ((r->plan_only || !r->directory) && r->verify)
    return cli_usage(&PROGRAM, "--verify needs -o DIR");
  if (r->training.enabled && (r->annotate || r->tune.n_rounds))
    return cli_usage(&PROGRAM, "--training does not go with --annotate or --autotune");
  if (r->plan.planner.max_segments > 1 &&
      (r->training.enabled || r->tune.n_rounds || r->certificate || r->limits.wanted ||
       r->last_k > r->n_stages))
    return cli_usage(&PROGRAM,
                     "--segments and --non-contiguous do not go with --training, --autotune, "
                     "--certificate, --limits or a range of stages");
  if (r->plan.planner.max_replicas > 1 &&
      (r->training.enabled || r->tune.n_rounds || r->certificate || r->annotate ||
       r->limits.wanted || r->last_k > r->n_stages))
    return cli_usage(&PROGRAM,
                     "--replicas does not go with --training, --autotune, --annotate, "
                     "--certificate, --limits or a range of stages");
  if (r->tune.n_rounds && (r->plan_only || !r->directory))
    return cli_usage(&PROGRAM, "--autotune needs -o DIR");
#if PSPLIT_HAS_RUNTIME
  if (!r->tune.n_rounds && (r->tune.feed.options.n_files || r->tune.feed.options.n_ranges))
    return cli_usage(&PROGRAM, "--input is for --autotune; --dim and --shape fix sizes for costs");
#endif
  if (r->tune.n_rounds && r->emit.weights == PSPLIT_WEIGHTS_REFERENCE)
    return cli_usage(&PROGRAM, "--autotune and --weights reference do not go together");
  if (r->limits.wanted && (r->last_k > r->n_stages || r->json))
    return cli_usage(&PROGRAM, "--limits is for one number of stages, without --json");
  if (r->choose.n_samples && !r->plan.policy_file)
    return cli_usage(&PROGRAM, "--schedule says what --policy FILE chooses, which is missing");
  if (r->choose.n_samples && (r->last_k > r->n_stages || r->json ||
                              r->plan.planner.max_segments > 1 || r->plan.planner.max_replicas > 1))
    return cli_usage(&PROGRAM,
                     "--schedule is for one number of stages, without --json, --segments, "
                     "--non-contiguous and --replicas");
  if (r->limits.automatic_dimension && !r->training.enabled)
    return cli_usage(&PROGRAM, "--limits: dim=auto counts what --training trains");
  if (r->last_k > r->n_stages && !r->plan_only)
    return cli_usage(&PROGRAM, "a range of stages is for --plan-only");
  if ((r->plan_only || !r->directory) && r->depfile)
    return cli_usage(&PROGRAM, "--depfile needs -o DIR");
  return 0;
}

/* --verify: the finished files, before they are put in place. */
static psplit_code prove(const request *r, const char *directory, psplit_diag *diag) {
  psplit_read_options stage = r->plan.read;
  const psplit_verify_options options = {.struct_size = sizeof options,
                                         .read = &stage,
                                         .n_threads = r->emit.n_threads,
                                         .max_text_bytes = r->plan.max_text_bytes,
                                         .cancel = r->emit.cancel,
                                         .activity = cli_activity()};
  psplit_model *as_is = NULL;
  stage.n_inline_ifs = 0;
  if (r->emit.weights == PSPLIT_WEIGHTS_REFERENCE) stage.data_directory = r->directory;
  cli_doing("proving that the stages are the model");
  if (r->plan.read.n_inline_ifs) {
    psplit_read_options read = stage;
    read.data_directory = NULL;
    const psplit_code code = psplit_model_open(r->model, &read, diag, &as_is);
    if (code != PSPLIT_OK) return code;
  }
  const psplit_code code =
    psplit_verify(directory, as_is ? as_is : r->opened, &options, diag, NULL);
  psplit_model_close(as_is);
  return code;
}

static const char *provider_of(const psplit_devices *devices, const char *device) {
  for (uint32_t d = 0; d < psplit_devices_count(devices); d++)
    if (strcmp(psplit_devices_name(devices, d), device) == 0)
      return psplit_devices_session(devices, d)->provider;
  return NULL;
}

/* A file beside DIR, which goes again where what follows fails. */
static psplit_code put_beside(const request *r, const char *path, const void *bytes, size_t n,
                              psplit_diag *diag) {
  psplit_code code = undo_keep(r->beside, path, diag);
  if (code == PSPLIT_OK) code = psplit_file_write(path, bytes, n, r->emit.cancel, diag);
  if (code == PSPLIT_OK) undo_written(r->beside);
  return code;
}

/* --annotate-as names: a text, the value of an option. */
static psplit_code assign_names(const request *r, psplit_diag *diag) {
  const psplit_plan *plan = psplit_planner_plan(r->made->planner);
  const char **providers = calloc((size_t)plan->n_stages + 1, sizeof *providers);
  char *text = NULL;
  psplit_code code = providers ? PSPLIT_OK : cli_nomem(diag);
  for (uint32_t s = 0; code == PSPLIT_OK && r->made->devices && s < plan->n_stages; s++)
    providers[s] = provider_of(r->made->devices, plan->stages[s].device);
  if (code == PSPLIT_OK) code = psplit_name_assignment(r->opened, plan, providers, diag, &text);
  if (code == PSPLIT_OK) code = put_beside(r, r->annotate, text, strlen(text), diag);
  free(text);
  free(providers);
  return code;
}

static psplit_code annotate(const request *r, psplit_diag *diag) {
  if (r->by_names) return assign_names(r, diag);
  psplit_code code = undo_keep(r->beside, r->annotate, diag);
  if (code == PSPLIT_OK)
    code = psplit_emit_annotated(r->opened, psplit_planner_plan(r->made->planner), r->annotation,
                                 r->annotate, &r->emit, diag);
  if (code == PSPLIT_OK) undo_written(r->beside);
  return code;
}

static psplit_code put_rule(const request *r, psplit_diag *diag) {
  char *text = NULL;
  size_t n = 0;
  psplit_code code = depfile_make(r->directory, r->opened, &r->plan, r->made, diag, &text, &n);
  if (code == PSPLIT_OK) code = put_beside(r, r->depfile, text, n, diag);
  free(text);
  return code;
}

/* Says what the certificate leaves out, so that nobody takes it for a proof of the whole bound. */
static psplit_code certify(const request *r, psplit_diag *diag) {
  const psplit_plan *plan = psplit_planner_plan(r->made->planner);
  psplit_certified made;
  psplit_code code = psplit_planner_certificate(r->made->planner, diag, &made);
  if (code != PSPLIT_OK) return code;
  code = put_beside(r, r->problem, made.problem, made.n_problem, diag);
  if (code == PSPLIT_OK)
    code = put_beside(r, r->certificate, made.certificate, made.n_certificate, diag);
  if (code == PSPLIT_OK && made.bound_ns != plan->lower_bound_ns) {
    char text[CLI_ADVICE_BYTES], most[CLI_TEXT], proved[CLI_TEXT];
    snprintf(text, sizeof text, "not certified: the bound of %s (%s); the certificate proves %s%s",
             cli_time(plan->lower_bound_ns, most), plan->bound, cli_time(made.bound_ns, proved),
             made.bound_ns > plan->lower_bound_ns ? " of splits without copies of nodes"
             : plan->latency_per_pair             ? CLI_SOME_MESSAGES
                                                  : "");
    r->emit.logger->emit(r->emit.logger->user, PSPLIT_WARNING, text);
  }
  psplit_certified_fini(&made);
  return code;
}

/* What is written beside DIR: before DIR appears, so that there is no DIR where it fails. */
static psplit_code write_beside(const request *r, psplit_diag *diag) {
  psplit_code code = r->annotate ? annotate(r, diag) : PSPLIT_OK;
  if (code == PSPLIT_OK && r->certificate) code = certify(r, diag);
  if (code == PSPLIT_OK && r->depfile) code = put_rule(r, diag);
  return code;
}

static psplit_code accept(void *user, const char *directory, psplit_diag *diag) {
  const request *r = user;
  const psplit_code code = r->verify ? prove(r, directory, diag) : PSPLIT_OK;
  return code == PSPLIT_OK ? write_beside(r, diag) : code;
}

/* Dimensions and inputs that MODEL does not have are mistakes. */
static psplit_code check_names(const request *r, psplit_diag *diag) {
  psplit_code code = plan_check_names(&r->plan, r->opened, diag);
#if PSPLIT_HAS_RUNTIME
  if (code == PSPLIT_OK) code = psplit_feed_check_model(&r->tune.feed.options, r->opened, diag);
#endif
  return code;
}

/* The text of --annotate-as names. */
static psplit_code check_text(const request *r, psplit_diag *diag) {
  if (!r->emit.replace && access(r->annotate, F_OK) == 0)
    return psplit_diag_fail(diag, PSPLIT_IO, "%s exists; --force replaces it", r->annotate);
  return place_check(r->annotate, r->opened, diag);
}

/* Whether the outputs can be written, before the work for them begins. */
static psplit_code check_outputs(const request *r, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const bool emits = r->directory && !r->plan_only;
  if (emits) code = psplit_emit_check(r->opened, r->directory, &r->emit, diag);
  char *name = NULL; /* a wrong template is told of even where no stage is written */
  if (code == PSPLIT_OK) code = psplit_stage_file_name(r->opened, 0, 1, &r->emit, diag, &name);
  free(name);
  const char *const files[] = {r->annotate, r->depfile, r->certificate,
                               r->certificate ? r->problem : NULL};
  for (size_t i = 0; i < sizeof files / sizeof *files && code == PSPLIT_OK; i++) {
    if (!files[i]) continue;
    for (size_t k = 0; k < i && code == PSPLIT_OK; k++)
      if (files[k]) code = place_check_apart(files[k], files[i], diag);
    if (code != PSPLIT_OK) break;
    if (emits) code = place_check_apart(files[i], r->directory, diag);
    if (code == PSPLIT_OK) code = plan_check_output(&r->plan, files[i], diag);
    if (code == PSPLIT_OK && i > 1) code = place_check(files[i], r->opened, diag);
    if (code == PSPLIT_OK && emits && r->emit.weights != PSPLIT_WEIGHTS_REFERENCE)
      code = place_check_outside(files[i], r->directory, diag);
  }
  if (code == PSPLIT_OK && r->annotate && r->by_names)
    code = check_text(r, diag);
  else if (code == PSPLIT_OK && r->annotate)
    code = psplit_emit_file_check(r->opened, r->annotate, r->emit.replace, diag);
  if (code == PSPLIT_OK && r->depfile) code = place_check(r->depfile, r->opened, diag);
  return code;
}

/* The same for what only the plan tells: files of a split that stand among others, and those that
 * passes have read. */
static psplit_code check_planned_outputs(const request *r, uint32_t n_stages, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  char stage[4096];
  const char *const files[] = {r->annotate, r->depfile, r->certificate,
                               r->certificate ? r->problem : NULL};
  for (size_t i = 0; i < sizeof files / sizeof *files && code == PSPLIT_OK; i++) {
    if (!files[i]) continue;
    for (size_t f = 0; f < r->made->n_read && code == PSPLIT_OK; f++)
      code = place_check_unread(files[i], r->made->read[f], diag);
    for (uint32_t s = 0; r->directory && s <= n_stages && code == PSPLIT_OK; s++) {
      char *name = NULL;
      if (s < n_stages)
        code = psplit_stage_file_name(r->opened, s, n_stages, &r->emit, diag, &name);
      if (code != PSPLIT_OK) break;
      snprintf(stage, sizeof stage, "%s/%s", r->directory, name ? name : "pipeline.json");
      free(name);
      code = place_check_apart(files[i], stage, diag);
    }
  }
  return code;
}

static psplit_code no_plan(psplit_diag *diag) {
  snprintf(diag->message, sizeof diag->message, "the pipeline has no pass that partitions");
  return diag->code = PSPLIT_USAGE;
}

/* With --training: differentiates the model, which makes *io_subject what is planned. */
static psplit_code begin_training(request *r, const psplit_logger *logger,
                                  const psplit_model **io_subject, psplit_diag *diag) {
  if (!r->training.enabled) return PSPLIT_OK;
  const psplit_code code = psplit_training_create(*io_subject, &r->training.what, &r->training.form,
                                                  logger, diag, &r->trained);
  if (code == PSPLIT_OK) *io_subject = psplit_training_model(r->trained);
  return code;
}

static psplit_code make_plan(const request *r, const psplit_model *subject, uint32_t n_stages,
                             psplit_diag *diag, planned *out) {
  psplit_planner_options planner;
  if (!n_stages && !r->plan.devices) return planned_make_fewest(&r->plan, subject, diag, out);
  if (!r->trained) return planned_make(&r->plan, subject, n_stages, diag, out);
  const psplit_code code = planned_prepare(&r->plan, n_stages, diag, out, &planner);
  return code == PSPLIT_OK
           ? psplit_training_plan(r->trained, &planner, r->plan.pipeline, diag, &out->planner)
           : code;
}

/* Of stages that train a step, else the micro-batches of a stream. */
static psplit_code simulate(const request *r, const psplit_plan *plan, psplit_diag *diag,
                            psplit_schedule **out) {
  if (!r->trained) return psplit_plan_schedule(plan, r->n_micro_batches, diag, out);
  return psplit_training_schedule(r->trained, plan, PSPLIT_SCHEDULE_1F1B, r->n_micro_batches, diag,
                                  out);
}

static psplit_code probe(request *r, const psplit_model *model, psplit_diag *diag) {
  const probe_asker asker = {ask_provider, (void *)(uintptr_t)r->tune.onnxruntime};
  return probe_load(&r->plan, r->model, model, &asker, diag);
}

/* What each number of stages of the range would give; one that has no plan says why and is passed.
 * Where none has one, it is the error of the last. */
static psplit_code compare(request *r, psplit_diag *diag) {
  psplit_logger logger = cli_sink(&r->quiet);
  psplit_model *model = NULL;
  comparison_notes notes = {0};
  bool any = false, began = false; /* a split was found; something was printed */
  r->plan.planner.logger = &logger;
  psplit_code code = plan_open(&r->plan, r->model, diag, &model);
  const psplit_model *subject = model;
  if (code == PSPLIT_OK) code = probe(r, model, diag);
  if (code == PSPLIT_OK) code = begin_training(r, &logger, &subject, diag);
  if (code == PSPLIT_OK && !r->json)
    print_comparison_head(r->plan.planner.objective, r->n_micro_batches, r->trained != NULL);
  for (uint32_t k = r->n_stages; code == PSPLIT_OK && k <= r->last_k; k++) {
    cli_series(k - r->n_stages + 1, r->last_k - r->n_stages + 1);
    planned made = {0};
    cli_make_room();
    code = make_plan(r, subject, k, diag, &made);
    const psplit_plan *plan = made.planner ? psplit_planner_plan(made.planner) : NULL;
    psplit_schedule *schedule = NULL;
    if (code == PSPLIT_OK && !plan) code = no_plan(diag);
    if (code == PSPLIT_OK) code = simulate(r, plan, diag, &schedule);
    if (code == PSPLIT_OK && r->json)
      print_comparison_json(plan, schedule, !began);
    else if (code == PSPLIT_OK)
      print_comparison(plan, schedule, &notes);
    psplit_snapshot *snapshot = NULL;
    if (code == PSPLIT_OK) code = psplit_snapshot_take(made.planner, diag, &snapshot);
    if (code == PSPLIT_OK) print_comparison_largest(snapshot, &notes);
    psplit_snapshot_destroy(snapshot);
    psplit_schedule_destroy(schedule);
    any |= code == PSPLIT_OK;
    if (code == PSPLIT_INFEASIBLE && (any || k < r->last_k)) {
      char line[CLI_ADVICE_BYTES];
      cli_advice(diag, line, sizeof line);
      if (r->json)
        print_infeasible_json(k, line, !began);
      else
        printf("%6" PRIu32 " infeasible: %s\n", k, line);
      code = PSPLIT_OK;
      *diag = (psplit_diag){0};
    }
    began = began || code == PSPLIT_OK;
    logger = (psplit_logger){.emit = cli_quiet}; /* the same warnings once */
    planned_fini(&made);
  }
  if (r->json && began)
    print_comparison_json_end();
  else if (code == PSPLIT_OK && !r->json)
    print_comparison_notes(&notes);
  psplit_training_destroy(r->trained);
  psplit_model_close(model);
  return code;
}

/* From here on the best round is what is written, whatever signal comes. */
static void end_rounds(request *r, uint32_t n_rounds) {
  cli_ends(CLI_ENDS_WHOLE);
  r->n_rounds = n_rounds;
}

static void go_on(void *user, uint32_t n_rounds);

static psplit_code tune(request *r, const psplit_model *model, psplit_diag *diag) {
  uint32_t n_rounds = 0;
  psplit_emit_options emit = r->emit;
  emit.accept = NULL;
  r->tune.cancel = r->emit.cancel;
  r->tune.go_on = go_on;
  r->tune.user = r;
  signal(SIGPIPE, SIG_IGN); /* what is beside DIR has to go in any case */
  FILE *out = r->quiet ? NULL : r->json ? stderr : stdout;
  const psplit_code code = tune_run(&r->tune, r->model, model, r->n_stages, &emit, r->directory,
                                    out, diag, &r->plan, &n_rounds);
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

static psplit_code write_directory(const request *r, const psplit_plan *plan, psplit_diag *diag) {
  if (r->trained) return psplit_training_emit(r->trained, plan, r->directory, &r->emit, diag);
  return psplit_emit(r->opened, plan, r->directory, &r->emit, diag);
}

static psplit_code make_target(request *r, psplit_diag *diag, char **out_text) {
  const char *name;
  if (!r->target || target_prints(r->target)) return PSPLIT_OK;
  const psplit_code code =
    target_make(r->target, r->opened, r->made, &r->plan, &r->emit, diag, &name, out_text);
  if (code != PSPLIT_OK) return code;
  r->file = (psplit_emit_file){name, *out_text, strlen(*out_text)};
  r->emit.files = &r->file;
  r->emit.n_files = 1;
  return PSPLIT_OK;
}

static psplit_code make_manifest(const request *r, const psplit_plan *plan, psplit_diag *diag,
                                 char **out_text) {
  if (r->trained) return psplit_training_manifest(r->trained, plan, &r->emit, diag, out_text);
  return psplit_manifest(r->opened, plan, &r->emit, diag, out_text);
}

/* What is printed behind the plan, malloc'd: before anything is written, so that nothing is where
 * it fails. */
static psplit_code make_report(const request *r, const psplit_plan *plan, psplit_diag *diag,
                               char **out_text) {
  size_t n;
  FILE *out = open_memstream(out_text, &n);
  if (!out) return cli_nomem(diag);
  const bool quiet = r->quiet;
  psplit_code code = PSPLIT_OK;
  if (target_prints(r->target)) code = target_print(r->target, r->made, r->emit.logger, out, diag);
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
static psplit_code finish(request *r, const psplit_logger *logger, psplit_diag *diag) {
  planned made = {0};
  char *manifest = NULL, *file = NULL, *report = NULL;
  undo beside = {0};
  r->beside = &beside;
  r->made = &made;
  const psplit_model *subject = r->opened;
  psplit_code code = begin_training(r, logger, &subject, diag);
  if (code == PSPLIT_OK) code = make_plan(r, subject, r->n_stages, diag, &made);
  const psplit_plan *plan = made.planner ? psplit_planner_plan(made.planner) : NULL;
  if (code == PSPLIT_OK && !plan) code = no_plan(diag);
  /* Until here a signal may cut the program off: nothing was written. Files that are being written
   * when one comes go again; those left at the second, the next run removes. */
  if (!r->n_rounds) cli_ends(CLI_ENDS_BEHIND);
  if (code == PSPLIT_OK) code = check_planned_outputs(r, plan->n_stages, diag);
  if (code == PSPLIT_OK) code = make_target(r, diag, &file);
  if (code == PSPLIT_OK && r->json) code = make_manifest(r, plan, diag, &manifest);
  if (code == PSPLIT_OK) code = make_report(r, plan, diag, &report);
  if (code == PSPLIT_OK)
    code = r->directory && !r->plan_only ? write_directory(r, plan, diag) : write_beside(r, diag);
  if (code == PSPLIT_OK)
    undo_forget(&beside);
  else
    undo_all(&beside);
  r->report.weights_inside =
    r->emit.weights == PSPLIT_WEIGHTS_AUTO || r->emit.weights == PSPLIT_WEIGHTS_INLINE;
  if (code == PSPLIT_OK && manifest)
    fputs(manifest, stdout);
  else if (code == PSPLIT_OK && !r->quiet)
    print_plan(plan, &r->report, cli_now_s() - r->start_s);
  if (code == PSPLIT_OK) fputs(report, stdout);
  if (code == PSPLIT_OK && r->verify && !r->json && !r->quiet)
    puts("\nverified: the stages together are the model");
  free(report);
  free(manifest);
  free(file);
  planned_fini(&made);
  r->made = NULL;
  psplit_training_destroy(r->trained);
  return code;
}

/* The exit status, behind an error line where it is not 0. */
static int conclude(const request *r, psplit_code code, psplit_diag *diag) {
  if (code == PSPLIT_OK && r->n_rounds && cli_ended_by())
    code = psplit_diag_fail(diag, PSPLIT_CANCELLED,
                            "interrupted after %" PRIu32 " %s; %s is split as in the best of them",
                            r->n_rounds, r->n_rounds == 1 ? "round" : "rounds", r->model);
  return code == PSPLIT_OK ? 0 : cli_fail(diag);
}

/* See tune.h. Threads are left in stages that do not end. */
static void go_on(void *user, uint32_t n_rounds) {
  request *r = user;
  psplit_diag diag = {0};
  const psplit_logger none = {.emit = cli_quiet};
  end_rounds(r, n_rounds);
  r->emit.logger = r->plan.planner.logger = &none;
  _exit(cli_finish(conclude(r, finish(r, &none, &diag), &diag)));
}

/* The whole pipeline: open, tune, and all that follows. */
static psplit_code split(request *r, psplit_diag *diag) {
  psplit_logger logger = cli_sink(&r->quiet);
  psplit_model *model = NULL;
  r->start_s = cli_now_s();
  r->plan.planner.logger = r->emit.logger = &logger;
  r->emit.accept = accept;
  r->emit.accept_user = r;
  psplit_code code = plan_open(&r->plan, r->model, diag, &model);
  r->opened = model;
  if (code == PSPLIT_OK) code = check_names(r, diag);
  if (code == PSPLIT_OK) code = check_outputs(r, diag);
  if (code == PSPLIT_OK) say_assumptions(&logger, model);
  if (code == PSPLIT_OK) code = probe(r, model, diag);
  if (code == PSPLIT_OK && r->tune.n_rounds) code = tune(r, model, diag);
  if (code == PSPLIT_OK) code = finish(r, &logger, diag);
  psplit_model_close(model);
  return code;
}

static int print_trainable(request *r) {
  psplit_diag diag = {0};
  psplit_logger logger = cli_sink(&r->quiet);
  psplit_model *model = NULL;
  psplit_code code = plan_open(&r->plan, r->model, &diag, &model);
  const psplit_model *subject = model;
  if (code == PSPLIT_OK) code = begin_training(r, &logger, &subject, &diag);
  if (code == PSPLIT_OK) training_print(r->trained);
  psplit_training_destroy(r->trained);
  psplit_model_close(model);
  return conclude(r, code, &diag);
}

/* What is written of the model instead of stages. */
static int write_model(request *r) {
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

static int clean(const request *r) {
  psplit_diag diag = {0};
  uint32_t n;
  if (psplit_emit_clean(r->clean, &n, &diag) != PSPLIT_OK) return cli_fail(&diag);
  if (!r->quiet) printf("removed %" PRIu32 "\n", n);
  return 0;
}

static int print_pipeline(const request *r) {
  psplit_diag diag = {0};
  char *text;
  if (psplit_plugins_canonical(r->plan.plugins, r->plan.pipeline, &diag, &text) != PSPLIT_OK)
    return cli_fail(&diag);
  puts(text);
  free(text);
  return 0;
}

static int print_passes(const request *r) {
  char *text = psplit_plugins_help(r->plan.plugins);
  if (text) fputs(text, stdout);
  free(text);
  psplit_diag diag = {0};
  return text || cli_nomem(&diag) == PSPLIT_OK ? 0 : cli_fail(&diag);
}

static int run(request *r) {
  psplit_diag diag = {0};
  if (plan_load_plugins(&r->plan, &diag) != PSPLIT_OK) return cli_fail(&diag);
  if (r->clean) return clean(r);
  if (r->help_passes) return print_passes(r);
  if (r->print_pipeline) return print_pipeline(r);
  const bool only_model = r->training.print || r->training.lower || r->training.info;
  if (!only_model && plan_load_files(&r->plan, &diag) != PSPLIT_OK) return cli_fail(&diag);
  r->plan.read.cancel = r->plan.planner.cancel = r->emit.cancel = cli_ends(CLI_ENDS_SOON);
  if (r->training.print) return print_trainable(r);
  if (only_model) return write_model(r);
  r->plan.planner.activity = r->emit.activity = cli_activity();
  const bool several = r->last_k > r->n_stages;
  return conclude(r, several ? compare(r, &diag) : split(r, &diag), &diag);
}

int main(int argc, char **argv) {
  static request r;
  const int status = parse(&r, argc, argv);
  if (status || r.done) return cli_finish(status);
  const int done = run(&r);
  tune_fini(&r.tune);
  plan_options_fini(&r.plan);
  return cli_finish(done);
}
