#include "split.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

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
  OPT_OPTIMIZATION,
  OPT_COLOR,
  OPT_ALL_TRANSFERS
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "Output:"},
  {'k', "stages", "N[..M]",
   "number of stages; default: one for each device of --devices; with --plan-only, a range is "
   "compared"},
  {'o', "output", "DIR", "directory to write; it is created atomically"},
  {OPT_FORCE, "force", NULL, "replace DIR if it exists and is empty or holds a split"},
  {OPT_BOUNDARY, "boundary", "sendrecv|io",
   "how stages are connected: by Send and Recv nodes (default), or by plain graph inputs and "
   "outputs"},
  {OPT_WEIGHTS, "weights", "auto|inline|external|reference",
   "where weights are stored; default: auto; reference: leave them in the model's files"},
  {OPT_NAME_TEMPLATE, "name-template", "NAME",
   "file names of stages, with {model}, {stage}, {stage:02}, {stages}; default: stage{stage}.onnx"},
  {OPT_VERIFY, "verify", NULL,
   "prove that the stages are equivalent to MODEL before DIR is created"},
  {OPT_PLAN_ONLY, "plan-only", NULL,
   "print the plan and write no files; with -k N..M, one line per number of stages"},
  {OPT_MICRO_BATCHES, "micro-batches", "N",
   "number of micro-batches, for the bubble of a range of stages and of a training step; "
   "default: 8"},
  LIMITS_OPTION(OPT_LIMITS, "N|auto"),
  CHOOSE_OPTION(OPT_SCHEDULE, "seconds"),
  {OPT_TARGET, "target", "genai|triton|k8s|vllm|llama.cpp",
   "write a configuration file for that program to DIR; vllm, llama.cpp: print the layers of each "
   "stage"},
  {OPT_ANNOTATE, "annotate", "FILE",
   "write MODEL with its nodes annotated with their stages, or a text file"},
  {OPT_ANNOTATE_AS, "annotate-as", "onnx|layer_ann|olive|names",
   "format of --annotate; default: onnx"},
  {OPT_CERTIFICATE, "certificate", "FILE",
   "write a proof of the lower bound, and the problem it is about to FILE.problem.json"},
  {OPT_NO_SYNC, "no-sync", NULL, "do not sync DIR to disk: a power failure may lose it"},
  {OPT_CLEAN, "clean", "DIR", "remove temporary files that killed runs left in DIR, and exit"},
  {OPT_JSON, "json", NULL, "print the manifest instead of the table"},
  {OPT_DEPFILE, "depfile", "FILE",
   "write a make rule that lists what DIR/pipeline.json depends on"},
  {0, NULL, NULL, "Costs:"},
  PLAN_COST_OPTIONS,
  {OPT_AUTOTUNE, "autotune", "N",
   "run the stages, correct the costs and split again, at most N times"},
  ORT_LIBRARY_OPTIONS_WHEN("with --autotune and --probe: ", ""),
  {OPT_OPTIMIZATION, "optimization", "LEVEL",
   "with --autotune: optimization level of ONNX Runtime, 0, 1, 2 or 99 (default)"},
#if PSPLIT_HAS_RUNTIME
  {OPT_INPUT, "input", "NAME=FILE|ones|zeros|LO..HI",
   "with --autotune: data for an input; default: random numbers"},
  CLI_MAX_UNPACKED(OPT_MAX_UNPACKED),
#endif
  {0, NULL, NULL, "Partitioning:"},
  PLAN_CUT_OPTIONS,
  {OPT_PRINT_PIPELINE, "print-pipeline", NULL, "print the pipeline with all options, and exit"},
  {OPT_HELP_PASSES, "help-passes", NULL, "print all passes and their options, and exit"},
  {0, NULL, NULL, "Training (docs/training.md):"},
  TRAINING_OPTIONS,
  TRAINING_FILE_OPTIONS,
  {0, NULL, NULL, "Reading the model:"},
  PLAN_READ_OPTIONS,
  {0, NULL, NULL, "General:"},
  {OPT_ALL_TRANSFERS, "all-transfers", NULL,
   "list all crossing tensors, not only the first twelve"},
  {OPT_COLOR, "color", "auto|always|never",
   "draw a chart of the loads: auto (default): on a terminal; never: without colours"},
  {'q', "quiet", NULL, "no table, warnings or progress"},
  CLI_LOGGING_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-split", "MODEL -k N -o DIR [OPTION]...",
  "Splits an ONNX model into N pipeline stages for N devices: N valid ONNX files that together\n"
  "compute the same function. Minimises the time of the slowest stage, and proves a lower "
  "bound.\n\n"
  "Examples:\n"
  "  onnx-pipeline-split model.onnx -k 1..8 --plan-only --dim batch=1    compare 1 to 8 stages\n"
  "  onnx-pipeline-split model.onnx -k 4 -o out --dim batch=1 --verify   split, and prove it",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

static bool parse_color(split_request *r, const char *text) {
  int which;
  if (!cli_choice(&PROGRAM, "color", text, &which)) return false;
  r->report.color = (stage_chart_color)which;
  return true;
}

static bool parse_option(split_request *r, int id, char *argument) {
  int which;
  switch (id) {
    case 'k': return cli_range(&PROGRAM, "stages", argument, &r->n_stages, &r->last_k);
    case 'o': r->directory = argument; return true;
    case 'q': r->quiet = true; return true;
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
      return cli_count32(&PROGRAM, "autotune", argument, 1, 1000, &r->tune.n_rounds);
    case OPT_ONNXRUNTIME:
    case OPT_CUSTOM_OPS:
      r->running = cli_option_name(&PROGRAM, id);
      return ort_library_option(&PROGRAM, &r->tune.library, id, argument);
    case OPT_OPTIMIZATION:
      r->tuning = cli_option_name(&PROGRAM, id);
      return cli_level(&PROGRAM, argument, &r->tune.optimization);
#if PSPLIT_HAS_RUNTIME
    case OPT_INPUT:
    case OPT_MAX_UNPACKED:
      if (id == OPT_MAX_UNPACKED) r->tuning = cli_option_name(&PROGRAM, id);
      return feed_option(&PROGRAM, &r->tune.feed, id, argument);
#endif
    case OPT_PLAN_ONLY: r->plan_only = true; return true;
    case OPT_LIMITS: return limits_parse(&PROGRAM, argument, true, &r->limits);
    case OPT_SCHEDULE: return choose_parse(&PROGRAM, argument, &r->choose);
    case OPT_MICRO_BATCHES:
      return cli_count32(&PROGRAM, "micro-batches", argument, 1, 10000, &r->n_micro_batches);
    case OPT_TARGET:
      if (r->target) {
        cli_usage(&PROGRAM, "--target may be given only once: %s, then \"%s\"",
                  target_name(r->target), argument);
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
      r->formed = true;
      r->by_names = strcmp(argument, "names") == 0;
      return true;
    case OPT_JSON: r->json = true; return true;
    case OPT_ALL_TRANSFERS: r->report.all_transfers = true; return true;
    case OPT_COLOR: return parse_color(r, argument);
    case OPT_DEPFILE: r->depfile = argument; return true;
    case OPT_FORCE: r->emit.replace = true; return true;
    case OPT_NO_SYNC: r->emit.no_sync = true; return true;
    case OPT_CLEAN: r->clean = argument; return true;
    default: return plan_or_training_option(&PROGRAM, &r->training, &r->plan, id, argument);
  }
}

static int check_target(const split_request *r) {
  if (!r->target) return 0;
  if (split_is_range(r)) return cli_usage(&PROGRAM, "--target takes one number of stages");
  if (r->training.enabled)
    return cli_usage(&PROGRAM, "--target cannot be combined with --training");
  if (target_prints(r->target) && r->json)
    return cli_usage(&PROGRAM, "--target prints a line, --json the manifest: not both");
  if (!target_prints(r->target) && (!r->directory || r->plan_only))
    return cli_usage(&PROGRAM, "--target %s needs -o DIR, to which it writes a file",
                     target_name(r->target));
  if (target_needs_context(r->target) && !r->plan.decode.past)
    return cli_usage(&PROGRAM, "--target %s needs --context N, the maximum length of a sequence",
                     target_name(r->target));
  return 0;
}

/* What does not go together, or needs something else. */
typedef struct rule {
  bool broken;
  const char *says;
} rule;

static int check_rules(const rule *rules, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (rules[i].broken) return cli_usage(&PROGRAM, "%s", rules[i].says);
  return 0;
}

/* How many stages, and what is written at all. */
static int check_aims(const split_request *r) {
  const bool some = r->n_stages || r->plan.devices;
  const bool fewest = !some && r->plan.max_stage_bytes;
  const bool takes_one = r->target || r->annotate || r->certificate; /* which says so itself */
  if (!r->n_stages && r->plan.devices && cli_is_preset(r->plan.devices))
    return cli_usage(&PROGRAM,
                     "-k N is needed: --devices %s describes a device, not the number of devices",
                     r->plan.devices);
  const rule rules[] = {
    {!some && !fewest,
     "-k N, --devices FILE or --max-bytes-per-stage BYTES is needed; -k 1..8 --plan-only compares "
     "numbers of stages"},
    {fewest && (r->training.enabled || r->tune.n_rounds),
     "--training and --autotune need -k N or --devices FILE"},
    {split_is_range(r) && !r->plan_only && !takes_one, "a range of stages is for --plan-only"},
    {!r->plan_only && !r->directory && !r->annotate && !target_prints(r->target),
     "-o DIR, --annotate FILE or --plan-only is needed"},
  };
  const int status = check_rules(rules, sizeof rules / sizeof *rules);
  return status ? status : check_target(r);
}

static int check_outputs(split_request *r) {
  const char *const outputs[] = {r->directory, r->annotate, r->depfile, r->certificate};
  bool to_stdout = false;
  for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
    to_stdout |= outputs[i] && strcmp(outputs[i], "-") == 0;
  const bool is_range = split_is_range(r), writes = r->directory && !r->plan_only;
  const int n =
    r->certificate ? snprintf(r->problem, sizeof r->problem, "%s.problem.json", r->certificate) : 0;
  const rule rules[] = {
    {to_stdout,
     "stages and rules cannot be written to standard output; ./- is a file of that name"},
    {r->annotate && r->plan.read.n_inline_ifs,
     "--annotate writes MODEL unchanged; --inline-if only applies to stages"},
    {r->annotate && is_range, "--annotate takes one number of stages"},
    {r->certificate && is_range, "--certificate takes one number of stages"},
    {n >= (int)sizeof r->problem, "--certificate: the name is too long"},
    {r->formed && !r->annotate, "--annotate-as needs --annotate FILE"},
    {r->verify && !writes, "--verify needs -o DIR"},
    {r->depfile && !writes, "--depfile needs -o DIR"},
  };
  return check_rules(rules, sizeof rules / sizeof *rules);
}

/* Ways to cut, run and tell that exclude others. */
static int check_ways(const split_request *r) {
  const bool is_range = split_is_range(r), tunes = r->tune.n_rounds > 0;
  const bool trains = r->training.enabled, in_pieces = r->plan.planner.max_segments > 1;
  const bool replicated = r->plan.planner.max_replicas > 1;
  const bool fills = r->plan.planner.objective == PSPLIT_FILL_DRAIN;
  const bool apart = trains || tunes || r->certificate || r->limits.wanted || is_range;
#if PSPLIT_HAS_RUNTIME
  const bool fed = r->tune.feed.options.n_files || r->tune.feed.options.n_ranges;
#else
  const bool fed = false;
#endif
  const rule rules[] = {
    {trains && (r->annotate || tunes),
     "--training cannot be combined with --annotate or --autotune"},
    {fills && !trains, "--objective fill-drain needs --training"},
    {fills && r->certificate, "--objective fill-drain cannot be combined with --certificate"},
    {in_pieces && apart,
     "--segments and --non-contiguous cannot be combined with --training, --autotune, "
     "--certificate, "
     "--limits or a range of stages"},
    {replicated && (apart || r->annotate),
     "--replicas cannot be combined with --training, --autotune, --annotate, --certificate, "
     "--limits or a "
     "range of stages"},
    {tunes && (r->plan_only || !r->directory), "--autotune needs -o DIR"},
    {fed && !tunes, "--input is for --autotune; --dim and --shape fix sizes for costs"},
    {tunes && r->emit.weights == PSPLIT_WEIGHTS_REFERENCE,
     "--autotune and --weights reference cannot be combined"},
    {r->limits.wanted && (is_range || r->json),
     "--limits is for one number of stages, without --json"},
    {r->choose.n_samples && !r->plan.policy_file,
     "--schedule needs --policy FILE, which makes the choice"},
    {r->choose.n_samples && (is_range || r->json || in_pieces || replicated),
     "--schedule is for one number of stages, without --json, --segments, --non-contiguous and "
     "--replicas"},
    {r->n_micro_batches && !trains && !is_range,
     "--micro-batches needs --training or a range of stages, which have a bubble to print"},
    {r->limits.automatic_dimension && !trains, "--limits: dim=auto counts what --training trains"},
  };
  return check_rules(rules, sizeof rules / sizeof *rules);
}

/* Options of runs, where nothing is run. */
static int check_runs(const split_request *r) {
  if (r->tune.n_rounds) return 0;
  if (r->tuning) return cli_usage(&PROGRAM, "--%s needs --autotune N", r->tuning);
  if (r->running && !r->plan.probe)
    return cli_usage(&PROGRAM, "--%s needs --autotune N or --probe PROVIDER", r->running);
  return 0;
}

static int check(split_request *r, int argc, char **argv) {
  if (r->print_pipeline || r->help_passes) return 0;
  if (r->clean && (optind != argc || r->has_more))
    return cli_usage(&PROGRAM, "--clean DIR excludes all other options");
  if (r->clean) return 0;
  int status = plan_model(&PROGRAM, &r->plan, argc, argv, &r->model);
  if (!status) status = training_check(&PROGRAM, &r->training);
  if (!status && split_is_of_model(r) && r->directory)
    return cli_usage(
      &PROGRAM,
      "--print-trainable, --lower-gradient and --training-info write no stages and exclude -o DIR");
  if (status || split_is_of_model(r)) return status;
  status = check_aims(r);
  if (!status) status = check_outputs(r);
  if (!status) status = check_ways(r);
  return status ? status : check_runs(r);
}

int split_parse(split_request *r, int argc, char **argv) {
  tune_init(&r->tune);
  plan_options_init(&r->plan);
  training_options_init(&r->training);
  psplit_emit_options_init(&r->emit);
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;) {
    if (id == CLI_BAD || !parse_option(r, id, (char *)(uintptr_t)argument))
      return cli_exit_status(PSPLIT_USAGE);
    r->has_more |= id != OPT_CLEAN && id != 'q';
  }
  r->emit.n_threads = r->plan.planner.n_threads;
  r->plan.planner.inline_weights = r->emit.weights == PSPLIT_WEIGHTS_INLINE;
  const int status = check(r, argc, argv);
  if (!r->n_micro_batches) r->n_micro_batches = 8;
  r->plan.planner.n_micro_batches = r->n_micro_batches;
  return status;
}
