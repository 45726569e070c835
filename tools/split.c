/* onnx-pipeline-split: read, run the passes, partition, emit, print the plan. */
#include <inttypes.h>
#include <psplit/emit.h>
#include <psplit/passes.h>
#include <psplit/verify.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum {
  OPT_DEVICES = 256, OPT_DIM, OPT_PASSES, OPT_PRINT_PIPELINE, OPT_HELP_PASSES, OPT_PLUGIN,
  OPT_OBJECTIVE,
  OPT_SOLVER, OPT_TIME_LIMIT, OPT_THREADS, OPT_SEED, OPT_PIN, OPT_TOGETHER, OPT_BOUNDARY,
  OPT_WEIGHTS, OPT_PLAN_ONLY, OPT_JSON, OPT_DEPFILE, OPT_FORCE, OPT_MAX_GRAPH_MEMORY,
  OPT_FOLLOW_SYMLINKS, OPT_VERIFY
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "What to make:"},
  {'k', "stages", "N", "number of stages; default: one for each device of --devices"},
  {'o', "output", "DIR", "directory to write; it appears complete or not at all"},
  {OPT_FORCE, "force", NULL, "replace DIR if it exists"},
  {OPT_BOUNDARY, "boundary", "KIND", "sendrecv (default): Send and Recv nodes; io: plain inputs, outputs"},
  {OPT_WEIGHTS, "weights", "WHERE", "auto (default), inline, external, or reference to the model's files"},
  {OPT_VERIFY, "verify", NULL, "prove that the stages are MODEL before DIR appears"},
  {OPT_PLAN_ONLY, "plan-only", NULL, "write no files"},
  {OPT_JSON, "json", NULL, "print the manifest instead of the table"},
  {OPT_DEPFILE, "depfile", "FILE", "write a make rule of what DIR/pipeline.json depends on"},
  {0, NULL, NULL, "What it costs:"},
  {OPT_DEVICES, "devices", "FILE", "devices and links as JSON, or a preset's name; default: cpu"},
  {OPT_DIM, "dim", "NAME=VALUE", "fix a symbolic dimension for costing (repeatable)"},
  {0, NULL, NULL, "How it is cut:"},
  {OPT_PIN, "pin", "PATTERN=STAGE", "nodes whose name matches go to that stage (repeatable)"},
  {OPT_TOGETHER, "keep-together", "PATTERN", "nodes whose name matches share a stage (repeatable)"},
  {OPT_OBJECTIVE, "objective", "WHAT", "throughput (default): the slowest stage; or latency"},
  {OPT_SOLVER, "solver", "NAME", "auto (default), exact, search, anneal, multilevel or slice"},
  {OPT_TIME_LIMIT, "time-limit", "SECONDS", "of the partitioner; default: 10"},
  {OPT_SEED, "seed", "N", "of the search; default: 1"},
  {OPT_THREADS, "threads", "N", "never changes the result; default: one a core"},
  {OPT_PASSES, "passes", "PIPELINE", "passes to run, in order; see --print-pipeline"},
  {OPT_PRINT_PIPELINE, "print-pipeline", NULL, "print the pipeline with all options, and stop"},
  {OPT_PLUGIN, "load-pass-plugin", "FILE", "passes of your own; repeatable, see docs/plugin-abi.md"},
  {OPT_HELP_PASSES, "help-passes", NULL, "print passes and their options, and stop"},
  {0, NULL, NULL, "Reading:"},
  {OPT_MAX_GRAPH_MEMORY, "max-graph-memory", "MIB", "limit on the model's structure; default: 32 times the file, 256 to 2048"},
  {OPT_FOLLOW_SYMLINKS, "follow-symlinks", NULL, "external data may be symbolic links"},
  {0, NULL, NULL, "General:"},
  {'q', "quiet", NULL, "no table, warnings or progress"},
  {'h', "help", NULL, "print this"},
  {'V', "version", NULL, "print the version"},
};

static const cli PROGRAM = {
  "onnx-pipeline-split", "MODEL -k N -o DIR [OPTION]...",
  "Cuts an ONNX model into N stages for N devices: N valid ONNX files that together compute the\n"
  "same function, with the slowest stage as fast as can be, and a proof of how good the cut is.",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

enum { MAX_REPEATED = 256 };

typedef struct request {
  const char *model, *directory, *devices, *pipeline, *depfile;
  uint64_t n_stages;
  psplit_read_options read;
  psplit_unit_options unit;
  psplit_emit_options emit;
  psplit_dim_value dims[MAX_REPEATED];
  const char *pins[MAX_REPEATED];
  const char *together[MAX_REPEATED];
  const char *plugin_files[MAX_REPEATED];
  size_t n_plugin_files;
  psplit_plugins *plugins;
  bool plan_only, json, print_pipeline, help_passes, verify, done;
  const psplit_model *opened; /* MODEL, for --verify */
  cli_progress progress;
} request;

static volatile int interrupted;

static void on_signal(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

/* NAME=VALUE; the text is argv's, cut in two. The last '=' separates. */
static bool parse_dim(request *r, char *text) {
  char *equals = strrchr(text, '=');
  uint64_t value;
  if (!equals || equals == text || r->unit.n_dims == MAX_REPEATED) {
    cli_usage(&PROGRAM, "--dim takes NAME=VALUE, not \"%s\"", text);
    return false;
  }
  if (!cli_count(&PROGRAM, "dim", equals + 1, 0, INT64_MAX, &value)) return false;
  *equals = '\0';
  r->dims[r->unit.n_dims++] = (psplit_dim_value){text, (int64_t)value};
  return true;
}

static bool repeated(const char **list, size_t *n, const char *name, const char *text) {
  if (*n == MAX_REPEATED) {
    cli_usage(&PROGRAM, "--%s can stand at most %d times", name, MAX_REPEATED);
    return false;
  }
  list[(*n)++] = text;
  return true;
}

/* Index of `text` among the NULL-terminated `words`; false after an error line. */
static bool choice(const char *name, const char *text, const char *const *words, int *out) {
  for (int i = 0; words[i]; i++)
    if (strcmp(words[i], text) == 0) {
      *out = i;
      return true;
    }
  cli_usage(&PROGRAM, "--%s does not know \"%s\"", name, text);
  return false;
}

static bool parse_option(request *r, int id, char *argument) {
  static const char *const boundaries[] = {"sendrecv", "io", NULL};
  static const char *const weights[] = {"auto", "inline", "external", "reference", NULL};
  static const char *const objectives[] = {"throughput", "latency", NULL};
  uint64_t count;
  int which;
  switch (id) {
    case 'k': return cli_count(&PROGRAM, "stages", argument, 1, 1u << 20, &r->n_stages);
    case 'o': r->directory = argument; return true;
    case 'q': r->progress.quiet = true; return true;
    case 'h': cli_print_help(&PROGRAM, stdout); r->done = true; return true;
    case 'V': cli_print_version(&PROGRAM, stdout); r->done = true; return true;
    case OPT_HELP_PASSES: r->help_passes = true; return true;
    case OPT_PLUGIN:
      return repeated(r->plugin_files, &r->n_plugin_files, "load-pass-plugin", argument);
    case OPT_DEVICES: r->devices = argument; return true;
    case OPT_DIM: return parse_dim(r, argument);
    case OPT_PASSES: r->pipeline = argument; return true;
    case OPT_PRINT_PIPELINE: r->print_pipeline = true; return true;
    case OPT_OBJECTIVE:
      if (!choice("objective", argument, objectives, &which)) return false;
      r->unit.objective = which ? PSPLIT_LATENCY : PSPLIT_THROUGHPUT;
      return true;
    case OPT_SOLVER: r->unit.solver = argument; return true;
    case OPT_TIME_LIMIT:
      return cli_real(&PROGRAM, "time-limit", argument, 0, 1e9, &r->unit.time_limit_s);
    case OPT_THREADS:
      if (!cli_count(&PROGRAM, "threads", argument, 1, 4096, &count)) return false;
      r->unit.n_threads = r->emit.n_threads = (uint32_t)count;
      return true;
    case OPT_SEED: return cli_count(&PROGRAM, "seed", argument, 0, UINT64_MAX, &r->unit.seed);
    case OPT_PIN: return repeated(r->pins, &r->unit.n_pins, "pin", argument);
    case OPT_TOGETHER:
      return repeated(r->together, &r->unit.n_keep_together, "keep-together", argument);
    case OPT_BOUNDARY:
      if (!choice("boundary", argument, boundaries, &which)) return false;
      r->emit.boundary = which ? PSPLIT_BOUNDARY_IO : PSPLIT_BOUNDARY_SENDRECV;
      return true;
    case OPT_WEIGHTS:
      if (!choice("weights", argument, weights, &which)) return false;
      r->emit.weights = (psplit_weights)which;
      return true;
    case OPT_VERIFY: r->verify = true; return true;
    case OPT_PLAN_ONLY: r->plan_only = true; return true;
    case OPT_JSON: r->json = true; return true;
    case OPT_DEPFILE: r->depfile = argument; return true;
    case OPT_FORCE: r->emit.replace = true; return true;
    case OPT_MAX_GRAPH_MEMORY:
      if (!cli_count(&PROGRAM, "max-graph-memory", argument, 1, UINT64_MAX >> 20, &count))
        return false;
      r->read.max_graph_bytes = count << 20;
      return true;
    case OPT_FOLLOW_SYMLINKS: r->read.follow_symlinks = true; return true;
    default: return false;
  }
}

/* Fills the request; 0 to go on, else the exit status (plus r->done for a clean stop). */
static int parse(request *r, int argc, char **argv) {
  psplit_unit_options_init(&r->unit);
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;) {
    if (id == CLI_BAD || !parse_option(r, id, (char *)(uintptr_t)argument))
      return psplit_code_exit_status(PSPLIT_USAGE);
    if (r->done) return 0;
  }
  r->unit.dims = r->dims;
  r->unit.pins = r->pins;
  r->unit.keep_together = r->together;
  if (r->print_pipeline || r->help_passes) return 0;
  if (optind == argc) return cli_usage(&PROGRAM, "a model is needed");
  if (optind + 1 < argc)
    return cli_usage(&PROGRAM, "one model at a time: \"%s\" and \"%s\"", argv[optind],
                     argv[optind + 1]);
  r->model = argv[optind];
  if (!r->n_stages && !r->devices) return cli_usage(&PROGRAM, "-k N or --devices FILE is needed");
  if (!r->plan_only && !r->directory) return cli_usage(&PROGRAM, "-o DIR or --plan-only is needed");
  if (r->plan_only && r->verify) return cli_usage(&PROGRAM, "--verify needs -o DIR");
  if (r->plan_only && r->depfile) return cli_usage(&PROGRAM, "--depfile needs -o DIR");
  return 0;
}

static bool is_preset(const char *name) {
  for (uint32_t i = 0; psplit_device_preset_name(i); i++)
    if (strcmp(psplit_device_preset_name(i), name) == 0) return true;
  return false;
}

static psplit_code open_devices(request *r, psplit_diag *diag, psplit_devices **out_devices) {
  if (!r->devices) return PSPLIT_OK;
  psplit_code code;
  if (is_preset(r->devices)) {
    code = psplit_devices_preset(r->devices, r->n_stages ? (uint32_t)r->n_stages : 1, diag,
                                 out_devices);
  } else {
    char *text;
    size_t n;
    code = cli_read_file(r->devices, diag, &text, &n);
    if (code != PSPLIT_OK) return code;
    code = psplit_devices_parse(text, n, diag, out_devices);
    free(text);
  }
  if (code == PSPLIT_OK && !r->n_stages) r->n_stages = psplit_devices_count(*out_devices);
  return code;
}

static void print_share(const char *label, int64_t ns) {
  char text[CLI_TEXT];
  printf("%s %s", label, cli_time(ns, text));
}

static void print_transfers(const psplit_plan *plan) {
  enum { SHOWN = 12 };
  if (!plan->n_transfers) return;
  printf("\ncrossing tensors\n");
  for (uint32_t t = 0; t < plan->n_transfers && t < SHOWN; t++) {
    const psplit_plan_transfer *transfer = &plan->transfers[t];
    char bytes[CLI_TEXT], name[160];
    cli_bytes(transfer->bytes, bytes);
    printf("  %4" PRIu32 " -> %-4" PRIu32 " %s%9s  %s\n", transfer->from, transfer->to,
           transfer->bytes_known ? " " : "~", bytes,
           cli_printable(transfer->tensor, name, sizeof name));
  }
  if (plan->n_transfers > SHOWN) printf("  ... and %" PRIu32 " more\n", plan->n_transfers - SHOWN);
}

static void print_plan(const psplit_plan *plan, double seconds) {
  char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT], d[CLI_TEXT], e[CLI_TEXT], f[CLI_TEXT];
  printf("stage  device      nodes  supernodes    weights  activations   receive   compute      send"
         "      load\n");
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const psplit_plan_stage *stage = &plan->stages[s];
    char device[12];
    printf("%5" PRIu32 "  %-10s %6" PRIu32 " %11" PRIu32 " %10s %12s %9s %9s %9s %9s%s\n", s,
           cli_printable(stage->device, device, sizeof device), stage->n_nodes,
           stage->n_supernodes, cli_bytes(stage->weight_bytes, a),
           cli_bytes(stage->peak_activation_bytes, b), cli_time(stage->recv_ns, c),
           cli_time(stage->compute_ns, d), cli_time(stage->send_ns, e),
           cli_time(stage->load_ns, f), stage->load_ns == plan->bottleneck_ns ? "  <" : "");
  }
  print_transfers(plan);
  printf("\n");
  print_share("bottleneck", plan->bottleneck_ns);
  print_share(", lower bound", plan->lower_bound_ns);
  printf(", gap %.2f %%%s (solver %s, bound %s)\n", 100 * plan->gap_frac,
         plan->proved_optimal ? ", proved optimal" : "", plan->solver, plan->bound);
  if (plan->bottleneck_ns > 0)
    printf("expected speed-up over one device %.2fx of %" PRIu32 ", costs %s%s",
           (double)plan->total_compute_ns / (double)plan->bottleneck_ns, plan->n_stages,
           plan->cost_source, plan->n_assumed ? " with" : "");
  for (uint32_t i = 0; i < plan->n_assumed; i++) {
    char name[80];
    printf(" %s=%" PRId64, cli_printable(plan->assumed_names[i], name, sizeof name),
           plan->assumed_value);
  }
  printf("\ntook %.2f s\n", seconds);
}

/* A make rule: DIR/pipeline.json depends on every file that was read. */
static psplit_code write_depfile(const request *r, const psplit_model *model, psplit_diag *diag) {
  FILE *file = fopen(r->depfile, "w");
  if (file) {
    fprintf(file, "%s/pipeline.json:", r->directory);
    for (uint32_t i = 0; i < psplit_model_n_files(model); i++) {
      const char *path = psplit_model_file_path(model, i);
      fputs(" \\\n  ", file);
      for (; *path; path++) {
        if (*path == '$') fputc('$', file);
        if (*path == ' ' || *path == '#' || *path == '\\') fputc('\\', file);
        fputc(*path, file);
      }
    }
    if (r->devices && !is_preset(r->devices)) fprintf(file, " \\\n  %s", r->devices);
    fputc('\n', file);
  }
  if (file && fclose(file) == 0) return PSPLIT_OK;
  diag->code = PSPLIT_IO;
  snprintf(diag->message, sizeof diag->message, "%s: cannot be written", r->depfile);
  return PSPLIT_IO;
}

/* --verify: the finished files, before they are put in place. */
static psplit_code prove(void *user, const char *directory, psplit_diag *diag) {
  const request *r = user;
  psplit_verify_options options = {.read = r->read, .n_threads = r->emit.n_threads};
  if (r->emit.weights == PSPLIT_WEIGHTS_REFERENCE) options.read.data_directory = r->directory;
  r->emit.sink->emit(r->emit.sink->user, PSPLIT_PROGRESS, "proving that the stages are the model");
  return psplit_verify(directory, r->opened, &options, diag, NULL);
}

static psplit_code read_text(void *user, const char *path, psplit_diag *diag, char **out_text,
                             size_t *out_n) {
  (void)user;
  return cli_read_file(path, diag, out_text, out_n);
}

/* The whole pipeline: open, pass, emit, print. */
static psplit_code split(request *r, psplit_diag *diag) {
  const double start_s = cli_now_s();
  psplit_sink sink = cli_sink(&r->progress);
  psplit_devices *devices = NULL;
  psplit_model *model = NULL;
  psplit_unit *unit = NULL;
  char *manifest = NULL;
  psplit_code code = open_devices(r, diag, &devices);
  if (code == PSPLIT_OK) code = psplit_model_open(r->model, &r->read, diag, &model);
  r->unit.n_stages = (uint32_t)r->n_stages;
  r->unit.devices = devices;
  r->unit.sink = r->emit.sink = &sink;
  r->unit.read_text = read_text;
  r->unit.plugins = r->plugins;
  r->emit.cancel = &interrupted;
  r->opened = model;
  if (r->verify) r->emit.accept = prove;
  r->emit.accept_user = r;
  if (code == PSPLIT_OK) code = psplit_unit_create(model, &r->unit, diag, &unit);
  if (code == PSPLIT_OK) code = psplit_unit_run(unit, r->pipeline, diag);
  const psplit_plan *plan = unit ? psplit_unit_plan(unit) : NULL;
  if (code == PSPLIT_OK && !plan) {
    snprintf(diag->message, sizeof diag->message, "the pipeline has no pass that partitions");
    code = diag->code = PSPLIT_USAGE;
  }
  if (code == PSPLIT_OK && !r->plan_only)
    code = psplit_emit(model, plan, r->directory, &r->emit, diag);
  if (code == PSPLIT_OK && r->depfile) code = write_depfile(r, model, diag);
  if (code == PSPLIT_OK && r->json) code = psplit_manifest(model, plan, &r->emit, diag, &manifest);
  cli_progress_end(&r->progress);
  if (code == PSPLIT_OK && manifest) fputs(manifest, stdout);
  else if (code == PSPLIT_OK && !r->progress.quiet) print_plan(plan, cli_now_s() - start_s);
  if (code == PSPLIT_OK && r->verify && !r->json && !r->progress.quiet)
    puts("\nverified: the stages together are the model");
  free(manifest);
  psplit_unit_destroy(unit);
  psplit_model_close(model);
  psplit_devices_destroy(devices);
  return code;
}

static int print_pipeline(const request *r) {
  psplit_diag diag = {0};
  char *text;
  if (psplit_plugins_canonical(r->plugins, r->pipeline, &diag, &text) != PSPLIT_OK)
    return cli_fail(&diag);
  puts(text);
  free(text);
  return 0;
}

static int print_passes(const request *r) {
  char *text = psplit_plugins_help(r->plugins);
  if (text) fputs(text, stdout);
  free(text);
  return text ? 0 : psplit_code_exit_status(PSPLIT_NOMEM);
}

static psplit_code load_plugins(request *r, psplit_diag *diag) {
  if (!r->n_plugin_files) return PSPLIT_OK;
  r->plugins = psplit_plugins_create();
  psplit_code code = r->plugins ? PSPLIT_OK : PSPLIT_NOMEM;
  for (size_t i = 0; i < r->n_plugin_files && code == PSPLIT_OK; i++)
    code = psplit_plugins_load(r->plugins, r->plugin_files[i], diag);
  return code;
}

static int run(request *r) {
  psplit_diag diag = {0};
  if (load_plugins(r, &diag) != PSPLIT_OK) return cli_fail(&diag);
  if (r->help_passes) return print_passes(r);
  if (r->print_pipeline) return print_pipeline(r);
  if (split(r, &diag) != PSPLIT_OK) return cli_fail(&diag);
  return fflush(stdout) == 0 ? 0 : 3;
}

int main(int argc, char **argv) {
  static request r;
  const int status = parse(&r, argc, argv);
  if (status || r.done) return status;
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  const int done = run(&r);
  psplit_plugins_destroy(r.plugins);
  return done;
}
