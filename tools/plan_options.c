#include "plan_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "places.h"
#include "probe.h"

void plan_options_init(plan_options *options) {
  psplit_read_options_init(&options->read);
  psplit_planner_options_init(&options->planner);
  options->planner.dims = options->dims;
  options->planner.shapes = options->shapes;
  options->planner.pins = options->pins;
  options->planner.keep_together = options->together;
  options->planner.states = options->states;
  options->planner.slack_frac = 0.02;
  options->read.inline_ifs = options->inlined;
}

/* TOKENS:PART. */
static bool prefill(const cli *program, plan_options *o, char *argument) {
  char *colon = strchr(argument, ':');
  uint64_t tokens;
  if (!colon) {
    cli_usage(program, "--prefill %s: it takes TOKENS:PART, such as 512:0.2", argument);
    return false;
  }
  *colon = '\0';
  if (!cli_count(program, "prefill", argument, 1, INT32_MAX, &tokens) ||
      !cli_real(program, "prefill", colon + 1, 0, 1, &o->planner.prefill_frac))
    return false;
  if (o->planner.prefill_frac <= 0 || o->planner.prefill_frac >= 1) {
    cli_usage(program, "--prefill: the part of the steps must be above 0 and below 1");
    return false;
  }
  o->prefill.tokens = (int64_t)tokens;
  o->planner.prefill = &o->prefill;
  return true;
}

static bool slack(const cli *program, plan_options *o, const char *argument) {
  if (!cli_real(program, "slack", argument, 0, 100, &o->planner.slack_frac)) return false;
  o->planner.slack_frac /= 100;
  return true;
}

/* Of a working point. */
static bool point_option(const cli *program, plan_options *o, int id, char *argument) {
  uint64_t count;
  if (id == PLAN_PREFILL) return prefill(program, o, argument);
  if (id == PLAN_CONTEXT) {
    if (!cli_count(program, "context", argument, 0, INT32_MAX, &count)) return false;
    o->decode.past = (int64_t)count;
    o->planner.decode = &o->decode;
    return true;
  }
  if (id == PLAN_BATCH) {
    if (!cli_count(program, "batch", argument, 1, INT32_MAX, &count)) return false;
    o->decode.batch = o->prefill.batch = (int64_t)count;
    return true;
  }
  return cli_count32(program, "sequences", argument, 1, 1000000, &o->planner.n_sequences);
}

/* Where a number is the argument; false after an error line. */
static bool numbered(const cli *program, plan_options *o, int id, const char *argument) {
  if (id == PLAN_SEED) return cli_count(program, "seed", argument, 0, UINT64_MAX, &o->planner.seed);
  if (id == PLAN_DEPTH)
    return cli_count32(program, "depth", argument, 0, 1000, &o->planner.queue_depth);
  if (id == PLAN_MAX_BYTES)
    return cli_size(program, "max-bytes-per-stage", argument, INT64_MAX, &o->max_stage_bytes);
  if (id == PLAN_SEGMENTS)
    return cli_count32(program, "segments", argument, 1, 1000, &o->planner.max_segments);
  if (id == PLAN_REPLICAS)
    return cli_count32(program, "replicas", argument, 1, PSPLIT_MOST_REPLICAS,
                       &o->planner.max_replicas);
  if (id == PLAN_PROPOSALS)
    return cli_count32(program, "proposals", argument, 1, 1000000, &o->n_proposals);
  if (id == PLAN_THREADS)
    return cli_count32(program, "threads", argument, 1, 4096, &o->planner.n_threads);
  if (id == PLAN_TIME_LIMIT) {
    o->planner.limit_by_work = false;
    return cli_real(program, "time-limit", argument, 0, 1e9, &o->planner.time_limit_s);
  }
  return cli_mebibytes(program, "max-graph-memory", argument, &o->read.max_graph_bytes);
}

/* NAME=then or NAME=else; the last '=' counts. */
static bool inline_if(const cli *program, plan_options *o, char *argument) {
  char *equals = strrchr(argument, '=');
  const bool then_branch = equals && strcmp(equals + 1, "then") == 0;
  if (!equals || equals == argument || (!then_branch && strcmp(equals + 1, "else") != 0)) {
    cli_usage(program, "--inline-if %s: it takes NAME=then or NAME=else", argument);
    return false;
  }
  if (o->read.n_inline_ifs == PLAN_MAX_REPEATED) {
    cli_usage(program, "--inline-if: at most %d", PLAN_MAX_REPEATED);
    return false;
  }
  *equals = '\0';
  o->inlined[o->read.n_inline_ifs++] = (psplit_inline_if){argument, then_branch};
  return true;
}

/* NAME=N,N,...; the last '=' counts, and of several for one input the last one. */
static bool add_shape(const cli *program, plan_options *o, char *argument) {
  char *equals = strrchr(argument, '=');
  size_t at = 0;
  uint32_t n = 0;
  if (equals) *equals = '\0';
  while (at < o->planner.n_shapes && strcmp(o->shapes[at].input, argument) != 0) at++;
  if (at == PLAN_MAX_REPEATED) {
    cli_usage(program, "--shape can be given at most %d times", PLAN_MAX_REPEATED);
    return false;
  }
  if (!equals || !*argument || !cli_sizes(equals + 1, o->sizes[at], PLAN_MAX_RANK, &n)) {
    if (equals) *equals = '=';
    cli_usage(program, "--shape takes NAME=N,N,..., not \"%s\"", argument);
    return false;
  }
  o->shapes[at] = (psplit_input_size){argument, n, o->sizes[at]};
  o->planner.n_shapes += at == o->planner.n_shapes;
  return true;
}

/* OUTPUT=INPUT; the last '=' counts. */
static bool add_state(const cli *program, plan_options *o, char *argument) {
  char *equals = strrchr(argument, '=');
  if (!equals || equals == argument || !equals[1]) {
    cli_usage(program, "--state %s: it takes OUTPUT=INPUT", argument);
    return false;
  }
  if (o->planner.n_states == PLAN_MAX_REPEATED) {
    cli_usage(program, "--state: at most %d", PLAN_MAX_REPEATED);
    return false;
  }
  *equals = '\0';
  o->states[o->planner.n_states++] = (psplit_planner_state){argument, equals + 1};
  return true;
}

static const psplit_objective OBJECTIVES[] = {PSPLIT_THROUGHPUT, PSPLIT_LATENCY, PSPLIT_FILL_DRAIN};

bool plan_option(const cli *program, plan_options *o, int id, char *argument) {
  int which;
  switch (id) {
    case PLAN_DEVICES: o->devices = argument; return true;
    case PLAN_PROBE: o->probe = argument; return true;
    case PLAN_COSTS:
      return cli_repeated(program, "costs", argument, o->cost_files, PLAN_MAX_COSTS,
                          &o->n_cost_files);
    case PLAN_DIM:
      return cli_dim(program, argument, o->dims, PLAN_MAX_REPEATED, &o->planner.n_dims);
    case PLAN_SHAPE: return add_shape(program, o, argument);
    case PLAN_PIN:
      return cli_repeated(program, "pin", argument, o->pins, PLAN_MAX_REPEATED, &o->planner.n_pins);
    case PLAN_PINS: o->pins_file = argument; return true;
    case PLAN_TOGETHER:
      return cli_repeated(program, "keep-together", argument, o->together, PLAN_MAX_REPEATED,
                          &o->planner.n_keep_together);
    case PLAN_TIED_WEIGHTS:
      if (!cli_choice(program, "tied-weights", argument, &which)) return false;
      o->planner.tied_weights = (psplit_tied_weights)which;
      return true;
    case PLAN_DEVICE_ORDER:
      if (!cli_choice(program, "device-order", argument, &which)) return false;
      o->planner.device_order = (psplit_device_order)which;
      return true;
    case PLAN_STATE: return add_state(program, o, argument);
    case PLAN_NO_STATE: o->planner.no_states = true; return true;
    case PLAN_NON_CONTIGUOUS: o->planner.max_segments = UINT32_MAX; return true;
    case PLAN_OVERLAP: o->planner.overlap = true; return true;
    case PLAN_REPLICAS:
      if (strcmp(argument, "auto") == 0) {
        o->planner.max_replicas = UINT32_MAX;
        return true;
      }
      return numbered(program, o, id, argument);
    case PLAN_IGNORE_ANNOTATIONS: o->planner.ignore_annotations = true; return true;
    case PLAN_CONFIGURATION: o->planner.configuration = argument; return true;
    case PLAN_OBJECTIVE:
      if (!cli_choice(program, "objective", argument, &which)) return false;
      o->planner.objective = OBJECTIVES[which];
      return true;
    case PLAN_SOLVER: o->planner.solver = argument; return true;
    case PLAN_POLICY: o->policy_file = argument; return true;
    case PLAN_PASSES: o->pipeline = argument; return true;
    case PLAN_PLUGIN:
      return cli_repeated(program, "load-pass-plugin", argument, o->plugin_files, PLAN_MAX_REPEATED,
                          &o->n_plugin_files);
    case PLAN_MAX_TEXT: return cli_max_text(program, argument, &o->max_text_bytes);
    case PLAN_INLINE_IF: return inline_if(program, o, argument);
    case PLAN_ALLOW_INVALID: o->planner.allow_invalid = true; return true;
    case PLAN_FOLLOW_SYMLINKS: o->read.follow_symlinks = true; return true;
    case PLAN_SLACK: return slack(program, o, argument);
    case PLAN_MESSAGE_LATENCY:
      if (!cli_choice(program, "message-latency", argument, &which)) return false;
      o->planner.message_latency = (psplit_message_latency)which;
      return true;
    case PLAN_KEEP_BLOCKS: o->keep_blocks = true; return true;
    case PLAN_CONTEXT:
    case PLAN_BATCH:
    case PLAN_PREFILL:
    case PLAN_SEQUENCES: return point_option(program, o, id, argument);
    case PLAN_DEPTH:
    case PLAN_PROPOSALS:
    case PLAN_SEGMENTS:
    case PLAN_MAX_BYTES:
    case PLAN_SEED:
    case PLAN_THREADS:
    case PLAN_TIME_LIMIT:
    case PLAN_MAX_GRAPH_MEMORY: return numbered(program, o, id, argument);
    default: return false;
  }
}

/* The default passes, and before any is merged that a block would keep apart, `blocks`. */
static const char *keeping_blocks(plan_options *o) {
  const char *text = psplit_default_pipeline(), *behind = strstr(text, "coarsen");
  snprintf(o->with_blocks, sizeof o->with_blocks, "%.*sblocks,%s", (int)(behind - text), text,
           behind);
  return o->with_blocks;
}

int plan_model(const cli *program, plan_options *options, int argc, char **argv,
               const char **out_model) {
  if (optind == argc) return cli_usage(program, "a model is needed");
  if ((options->prefill.tokens || options->decode.batch) && !options->planner.decode)
    return cli_usage(program,
                     "--batch and --prefill need --context N, for decoders; --dim NAME=N fixes "
                     "other sizes");
  options->decode.tokens = 1;
  if (!options->decode.batch) options->decode.batch = options->prefill.batch = 1;
  if (!options->policy_file && options->n_proposals)
    return cli_usage(program, "--proposals needs --policy FILE, which makes the proposals");
  if (!options->policy_file && options->planner.solver &&
      strncmp(options->planner.solver, "drlpp", 5) == 0)
    return cli_usage(program, "solver %s needs --policy FILE", options->planner.solver);
  if (options->keep_blocks && options->pipeline)
    return cli_usage(program,
                     "--keep-blocks is for the default passes; --passes can name \"blocks\"");
  if (options->keep_blocks) options->pipeline = keeping_blocks(options);
  if (options->probe && !options->devices)
    return cli_usage(program, "--probe needs --devices FILE");
  if (optind + 1 < argc)
    return cli_usage(program, "one model at a time: \"%s\" and \"%s\"; -o names what is written",
                     argv[optind], argv[optind + 1]);
  *out_model = argv[optind];
  return 0;
}

psplit_code plan_open(plan_options *options, const char *path, psplit_diag *diag,
                      psplit_model **out_model) {
  cli_doing("reading %s", path);
  options->read.activity = cli_activity();
  const psplit_code code = psplit_model_open(path, &options->read, diag, out_model);
  options->read.activity = NULL;
  return code;
}

static psplit_code check_shape(const psplit_model *model, const char *input, psplit_diag *diag) {
  psplit_diag why = {0};
  const psplit_code code = psplit_model_check_inputs(model, &input, 1, &why);
  return code == PSPLIT_OK ? code : psplit_diag_fail(diag, code, "--shape: %s", why.message);
}

psplit_code plan_check_names(const plan_options *options, const psplit_model *model,
                             psplit_diag *diag) {
  const psplit_planner_options *planner = &options->planner;
  psplit_code code = psplit_model_check_dims(model, planner->dims, planner->n_dims, diag);
  for (size_t i = 0; i < planner->n_shapes && code == PSPLIT_OK; i++)
    code = check_shape(model, options->shapes[i].input, diag);
  return code;
}

psplit_code plan_load_plugins(plan_options *options, psplit_diag *diag) {
  if (!options->n_plugin_files) return PSPLIT_OK;
  options->plugins = psplit_plugins_create();
  if (!options->plugins) return cli_nomem(diag);
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < options->n_plugin_files && code == PSPLIT_OK; i++)
    code = psplit_plugins_load(options->plugins, options->plugin_files[i], diag);
  return code;
}

/* Standard input has one text. */
static psplit_code check_stdin(const plan_options *options, psplit_diag *diag) {
  size_t n = options->devices && strcmp(options->devices, "-") == 0;
  for (size_t i = 0; i < options->n_cost_files; i++) n += strcmp(options->cost_files[i], "-") == 0;
  n += options->pins_file && strcmp(options->pins_file, "-") == 0;
  if (n < 2) return PSPLIT_OK;
  return psplit_diag_fail(diag, PSPLIT_USAGE,
                          "one of --devices, --costs and --pins can be standard input");
}

static psplit_code load_policy(plan_options *o, psplit_diag *diag) {
  psplit_code code = psplit_policy_read(o->policy_file, diag, &o->policy);
  if (code == PSPLIT_OK)
    code = psplit_policy_proposer_create(o->policy, o->n_proposals ? o->n_proposals : 8, diag,
                                         &o->proposer);
  o->planner.proposer = o->proposer;
  return code;
}

static psplit_code load_pins(plan_options *o, psplit_diag *diag) {
  o->planner.pins_name = strcmp(o->pins_file, "-") == 0 ? "standard input" : o->pins_file;
  const psplit_code code = cli_read_file(o->pins_file, o->max_text_bytes, true, diag, &o->pins_text,
                                         &o->planner.n_pins_text);
  o->planner.pins_text = o->pins_text;
  return code;
}

psplit_code plan_load_files(plan_options *options, psplit_diag *diag) {
  psplit_code code = check_stdin(options, diag);
  if (code == PSPLIT_OK)
    code = cli_devices_read(options->devices, options->max_text_bytes, true, diag,
                            &options->devices_text, &options->n_devices_text);
  for (size_t i = 0; i < options->n_cost_files && code == PSPLIT_OK; i++) {
    const char *file = options->cost_files[i];
    char *text;
    size_t n;
    code = cli_read_file(file, options->max_text_bytes, true, diag, &text, &n);
    if (code != PSPLIT_OK) break;
    code = psplit_cost_table_parse(file, text, n, diag, &options->costs[i]);
    free(text);
  }
  options->planner.costs = (const psplit_cost_table *const *)options->costs;
  options->planner.n_costs = options->n_cost_files;
  if (code == PSPLIT_OK && options->pins_file) code = load_pins(options, diag);
  if (code == PSPLIT_OK && options->policy_file) code = load_policy(options, diag);
  return code;
}

void plan_add_costs(plan_options *options, psplit_cost_table *table) {
  psplit_cost_table_destroy(options->costs[options->n_cost_files]);
  options->costs[options->n_cost_files] = table;
  options->planner.costs = (const psplit_cost_table *const *)options->costs;
  options->planner.n_costs = options->n_cost_files + 1;
}

psplit_code plan_check_output(const plan_options *o, const char *path, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  if (o->devices_text && strcmp(o->devices, "-") != 0)
    code = place_check_unread(path, o->devices, diag);
  for (size_t i = 0; i < o->n_cost_files && code == PSPLIT_OK; i++)
    if (strcmp(o->cost_files[i], "-") != 0) code = place_check_unread(path, o->cost_files[i], diag);
  for (size_t i = 0; i < o->n_plugin_files && code == PSPLIT_OK; i++)
    code = place_check_unread(path, o->plugin_files[i], diag);
  if (o->pins_file && strcmp(o->pins_file, "-") != 0 && code == PSPLIT_OK)
    code = place_check_unread(path, o->pins_file, diag);
  if (code == PSPLIT_OK && o->probe_file) code = place_check_apart(path, o->probe_file, diag);
  if (o->policy_file && code == PSPLIT_OK) code = place_check_unread(path, o->policy_file, diag);
  return code;
}

void plan_options_fini(plan_options *options) {
  for (size_t i = 0; i <= PLAN_MAX_COSTS; i++) psplit_cost_table_destroy(options->costs[i]);
  free(options->devices_text);
  free(options->pins_text);
  options->devices_text = options->pins_text = NULL;
  free(options->probe_provider);
  free(options->probe_file);
  free(options->probe_text);
  options->probe_provider = options->probe_file = options->probe_text = NULL;
  psplit_plugins_destroy(options->plugins);
  options->plugins = NULL;
  psplit_policy_proposer_destroy(options->proposer);
  psplit_policy_destroy(options->policy);
  options->proposer = NULL;
  options->policy = NULL;
}

static psplit_code read_text(void *user, const char *path, psplit_diag *diag, char **out_text,
                             size_t *out_n) {
  planned *made = user;
  const psplit_code code = cli_read_file(path, made->max_text_bytes, false, diag, out_text, out_n);
  if (code == PSPLIT_OK && made->n_read < PLAN_MAX_READ &&
      (made->read[made->n_read] = strdup(path)))
    made->n_read++;
  return code;
}

psplit_code planned_prepare(const plan_options *options, uint32_t n_stages, psplit_diag *diag,
                            planned *out, psplit_planner_options *out_planner) {
  psplit_planner_options planner = options->planner;
  planner.n_stages = n_stages;
  out->max_text_bytes = options->max_text_bytes;
  psplit_code code = cli_devices(options->devices, options->devices_text, options->n_devices_text,
                                 &planner.n_stages, diag, &out->devices);
  if (code == PSPLIT_OK && options->probe_text) code = probe_restrict(options, out->devices, diag);
  if (code == PSPLIT_OK && options->max_stage_bytes && !out->devices)
    code = psplit_devices_preset(NULL, planner.n_stages, diag, &out->devices);
  if (code == PSPLIT_OK && options->max_stage_bytes)
    psplit_devices_limit_memory(out->devices, options->max_stage_bytes);
  planner.devices = out->devices;
  planner.read_text = read_text;
  planner.read_text_user = out;
  planner.plugins = options->plugins;
  *out_planner = planner;
  return code;
}

psplit_code planned_make(const plan_options *options, const psplit_model *model, uint32_t n_stages,
                         psplit_diag *diag, planned *out) {
  psplit_planner_options planner;
  psplit_code code = planned_prepare(options, n_stages, diag, out, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_create(model, &planner, diag, &out->planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(out->planner, options->pipeline, diag);
  return code;
}

void planned_fini(planned *plan) {
  psplit_planner_destroy(plan->planner);
  log_once_destroy(plan->log);
  psplit_devices_destroy(plan->devices);
  for (size_t i = 0; i < plan->n_read; i++) free(plan->read[i]);
  *plan = (planned){0};
}
