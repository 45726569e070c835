/* What the commands that make plans share: the options that say which passes run, what things cost
 * and how the model is cut, and the run of the passes itself. */
#ifndef PSPLIT_TOOLS_PLAN_OPTIONS_H
#define PSPLIT_TOOLS_PLAN_OPTIONS_H

#include <psplit/plugins.h>
#include <psplit/policy.h>

#include "cli.h"
#include "log_once.h"
#include "shared_options.h"

enum {
  PLAN_DEVICES = 3000,
  PLAN_COSTS,
  PLAN_DIM,
  PLAN_CONTEXT,
  PLAN_BATCH,
  PLAN_PREFILL,
  PLAN_SEQUENCES,
  PLAN_DEPTH,
  PLAN_PIN,
  PLAN_PINS,
  PLAN_IGNORE_ANNOTATIONS,
  PLAN_CONFIGURATION,
  PLAN_TOGETHER,
  PLAN_TIED_WEIGHTS,
  PLAN_KEEP_BLOCKS,
  PLAN_SLACK,
  PLAN_MESSAGE_LATENCY,
  PLAN_STATE,
  PLAN_NO_STATE,
  PLAN_OBJECTIVE,
  PLAN_SOLVER,
  PLAN_TIME_LIMIT,
  PLAN_SEED,
  PLAN_THREADS,
  PLAN_PASSES,
  PLAN_PLUGIN,
  PLAN_MAX_GRAPH_MEMORY,
  PLAN_FOLLOW_SYMLINKS,
  PLAN_INLINE_IF,
  PLAN_ALLOW_INVALID,
  PLAN_MAX_TEXT,
  PLAN_DEVICE_ORDER,
  PLAN_SEGMENTS,
  PLAN_NON_CONTIGUOUS,
  PLAN_REPLICAS,
  PLAN_OVERLAP,
  PLAN_MAX_BYTES,
  PLAN_PROBE,
  PLAN_POLICY,
  PLAN_PROPOSALS,
  PLAN_SHAPE
};

/* Rows of an option table, under the command's own headings. */
/* clang-format off */
#define PLAN_COST_OPTIONS \
  {PLAN_DEVICES, "devices", "FILE|PRESET", \
   "devices and links as JSON (-: stdin); a preset's name; cpu: this machine, measured"}, \
  {PLAN_PROBE, "probe", "PROVIDER[=FILE]", \
   "place only nodes that this execution provider supports on its devices; cached in FILE, by " \
   "default MODEL.PROVIDER.json"}, \
  {PLAN_COSTS, "costs", "FILE", \
   "measured or given costs (-: stdin; repeatable); default: a roofline model"}, \
  {PLAN_DIM, "dim", "NAME=VALUE", "fix a symbolic dimension for costing (repeatable)"}, \
  {PLAN_SHAPE, "shape", "NAME=N,N,...", "fix all symbolic dimensions of an input (repeatable)"}, \
  {PLAN_CONTEXT, "context", "N", \
   "cost a decoding step after N tokens; sets input sizes that nothing else fixes"}, \
  {PLAN_BATCH, "batch", "N", "with --context: sequences per decoding step; default: 1"}, \
  {PLAN_PREFILL, "prefill", "TOKENS:PART", \
   "a fraction PART (0..1) of all steps are prompts of TOKENS tokens"}, \
  {PLAN_SEQUENCES, "sequences", "N", \
   "sequences whose state is in memory at a time; default: the number of stages"}, \
  {PLAN_DEPTH, "depth", "N", \
   "micro-batches that may be queued between two stages, counted as memory; default: 2"}
#define PLAN_CUT_OPTIONS \
  {PLAN_PIN, "pin", "PATTERN=STAGE", "assign the nodes whose name matches to STAGE (repeatable)"}, \
  {PLAN_PINS, "pins", "FILE", "read pins from FILE, one per line (-: stdin)"}, \
  {PLAN_DEVICE_ORDER, "device-order", "chosen|given", \
   "chosen (default): assign stages to devices for the best plan; given: stage i runs on " \
   "device i of --devices"}, \
  {PLAN_SEGMENTS, "segments", "N", \
   "allow up to N stages per device; -k is then the number of devices"}, \
  {PLAN_NON_CONTIGUOUS, "non-contiguous", NULL, \
   "like --segments, with any number of stages per device"}, \
  {PLAN_REPLICAS, "replicas", "N|auto", \
   "allow up to N devices per stage, which take turns; -k is then the number of devices"}, \
  {PLAN_OVERLAP, "overlap", NULL, \
   "transfers overlap with computation: a load is the largest of receive, compute and send"}, \
  {PLAN_MAX_BYTES, "max-bytes-per-stage", "BYTES", \
   "memory limit of each stage, whatever its device has: bytes, or with a unit, such as 500MB or " \
   "1.5GiB"}, \
  {PLAN_IGNORE_ANNOTATIONS, "ignore-annotations", NULL, \
   "ignore the stages that MODEL is annotated with"}, \
  {PLAN_CONFIGURATION, "configuration", "NAME", \
   "the annotated configuration to use, if MODEL has several"}, \
  {PLAN_TOGETHER, "keep-together", "PATTERN", \
   "keep the nodes whose name matches on one stage (repeatable)"}, \
  {PLAN_TIED_WEIGHTS, "tied-weights", "auto|duplicate|together", \
   "weights that several nodes use: duplicate them in each stage, or keep their users together; " \
   "default: auto"}, \
  {PLAN_KEEP_BLOCKS, "keep-blocks", NULL, \
   "do not cut repeated blocks such as transformer layers"}, \
  {PLAN_SLACK, "slack", "PERCENT", \
   "allow a bottleneck this much above the best one for fewer crossing tensors; default: 2"}, \
  {PLAN_MESSAGE_LATENCY, "message-latency", "per-pair|per-tensor", \
   "how often a link's latency is charged; default: per-pair, once for each pair of stages"}, \
  {PLAN_STATE, "state", "OUTPUT=INPUT", \
   "OUTPUT becomes INPUT of the next run and stays on its device (repeatable)"}, \
  {PLAN_NO_STATE, "no-state", NULL, "do not detect state by name"}, \
  {PLAN_OBJECTIVE, "objective", "throughput|latency|fill-drain", \
   "what to minimise: throughput (default): the slowest stage; latency: the time of one " \
   "input; fill-drain, with --training: the slowest forward stage plus the slowest backward " \
   "stage (GPipe)"}, \
  {PLAN_SOLVER, "solver", "SOLVER", CLI_SOLVERS}, \
  {PLAN_POLICY, "policy", "FILE", "a learned policy; solvers start from its proposals"}, \
  {PLAN_PROPOSALS, "proposals", "N", "number of proposals to ask the policy for; default: 8"}, \
  {PLAN_TIME_LIMIT, "time-limit", "SECONDS", \
   "wall time for the partitioner; default: work of about 10 s a problem, 25 s in all"}, \
  {PLAN_SEED, "seed", "N", "seed of the search; default: 1"}, \
  {PLAN_THREADS, "threads", "N", \
   "number of threads; never changes the result; default: at most one per core"}, \
  {PLAN_PASSES, "passes", "PIPELINE", "passes to run, in order"}, \
  {PLAN_PLUGIN, "load-pass-plugin", "FILE", \
   "load custom passes (repeatable), see docs/plugin-abi.md"}
#define PLAN_READ_OPTIONS \
  SHARED_MAX_GRAPH_MEMORY(PLAN_MAX_GRAPH_MEMORY, "the model's"), \
  CLI_MAX_TEXT(PLAN_MAX_TEXT), \
  SHARED_FOLLOW_SYMLINKS(PLAN_FOLLOW_SYMLINKS), \
  {PLAN_INLINE_IF, "inline-if", "NAME=then|else", \
   "replace the If node by its then or else branch (repeatable, in order)"}, \
  {PLAN_ALLOW_INVALID, "allow-invalid", NULL, "plan a model even if no runtime accepts it"}
/* clang-format on */

enum { PLAN_MAX_REPEATED = 256, PLAN_MAX_COSTS = 16, PLAN_MAX_READ = 16, PLAN_MAX_RANK = 32 };

typedef struct plan_options {
  const char *devices, *pipeline; /* NULL: not given */
  char *devices_text;             /* where it is a file; allocated */
  size_t n_devices_text;
  const char *pins_file;                          /* NULL: not given */
  char *pins_text;                                /* of it; allocated */
  const char *probe;                              /* the argument; NULL: not given */
  char *probe_provider, *probe_file, *probe_text; /* by probe_load; allocated */
  size_t n_probe_text;
  const psplit_model *probed;
  uint64_t max_text_bytes;  /* 0: the default */
  uint64_t max_stage_bytes; /* 0: what devices have */
  psplit_read_options read;
  psplit_planner_options planner; /* points into the lists */
  psplit_dim_value dims[PLAN_MAX_REPEATED];
  psplit_input_size shapes[PLAN_MAX_REPEATED];
  int64_t sizes[PLAN_MAX_REPEATED][PLAN_MAX_RANK]; /* of these */
  psplit_inline_if inlined[PLAN_MAX_REPEATED];
  const char *pins[PLAN_MAX_REPEATED];
  const char *together[PLAN_MAX_REPEATED];
  psplit_planner_state states[PLAN_MAX_REPEATED];
  psplit_working_point decode, prefill;
  bool keep_blocks;
  char with_blocks[256]; /* the pipeline */
  const char *cost_files[PLAN_MAX_COSTS];
  psplit_cost_table *costs[PLAN_MAX_COSTS + 1]; /* those of --autotune behind the files' */
  size_t n_cost_files;
  const char *plugin_files[PLAN_MAX_REPEATED];
  size_t n_plugin_files;
  psplit_plugins *plugins;
  const char *policy_file; /* NULL: none */
  uint32_t n_proposals;    /* 0: the default */
  psplit_policy *policy;
  psplit_proposer *proposer;
} plan_options;

/* Fills what is all zero before, as static memory is: most of its 88 KiB stay untouched. */
void plan_options_init(plan_options *options);
/* Takes one of these options (`argument` is argv's: --dim, --shape, --inline-if, --state and
 * --prefill are cut in two); false after an error line, or where `id` is none of them. */
bool plan_option(const cli *program, plan_options *options, int id, char *argument);
/* The one operand, once cli_next has come to its end, and whether these options go together: 0, or
 * an exit status after an error line. */
int plan_model(const cli *program, plan_options *options, int argc, char **argv,
               const char **out_model);
/* Opens the model, and says that it does. Errors: those of psplit_model_open. */
PSPLIT_MUST_USE psplit_code plan_open(plan_options *options, const char *path, psplit_diag *diag,
                                      psplit_model **out_model);
/* Whether the model has the dimensions and inputs that --dim and --shape name. Errors: USAGE. */
PSPLIT_MUST_USE psplit_code plan_check_names(const plan_options *options, const psplit_model *model,
                                             psplit_diag *diag);
/* Loads the files of --load-pass-plugin: once, before a plan is made or the passes are listed. */
PSPLIT_MUST_USE psplit_code plan_load_plugins(plan_options *options, psplit_diag *diag);
/* Reads the files of --devices, --costs and --pins: once, before a plan is made. Errors: USAGE (two
 * are standard input), those of reading them. */
PSPLIT_MUST_USE psplit_code plan_load_files(plan_options *options, psplit_diag *diag);
/* The plan's costs, which `options` own from here on, behind those of files. */
void plan_add_costs(plan_options *options, psplit_cost_table *table);
/* Whether the output `path` is none of the files that these options have read. Errors: IO. */
PSPLIT_MUST_USE psplit_code plan_check_output(const plan_options *options, const char *path,
                                              psplit_diag *diag);
/* When no plan made with them is left. */
void plan_options_fini(plan_options *options);

/* A run of the passes, with what it borrows from. Zero before; to be finished in any case. */
typedef struct planned {
  psplit_devices *devices;
  psplit_planner *planner;
  uint64_t max_text_bytes;   /* of files that passes ask for */
  char *read[PLAN_MAX_READ]; /* these files, the first ones */
  size_t n_read;
  log_once *log; /* of planned_make_fewest; NULL: none */
} planned;

/* What a planner is made with; n_stages 0: one stage for each device. It borrows from both. Errors:
 * those of the devices file. */
PSPLIT_MUST_USE psplit_code planned_prepare(const plan_options *options, uint32_t n_stages,
                                            psplit_diag *diag, planned *out,
                                            psplit_planner_options *out_planner);
/* Runs the pipeline over the model. n_stages 0: one for each device. Errors: those of the devices
 * file and of psplit_planner_run. */
PSPLIT_MUST_USE psplit_code planned_make(const plan_options *options, const psplit_model *model,
                                         uint32_t n_stages, psplit_diag *diag, planned *out);
/* The same with as few stages as the memory of each allows, max_stage_bytes; what several numbers
 * of stages have to say is logged once. Errors: those of one stage, where no number does. */
PSPLIT_MUST_USE psplit_code planned_make_fewest(plan_options *options, const psplit_model *model,
                                                psplit_diag *diag, planned *out);
void planned_fini(planned *plan);

#endif
