/* onnx-pipeline-verify: prove that a directory of stages is the model. */
#include <inttypes.h>
#include <psplit/verify.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "shared_options.h"

#include <getopt.h>

#if PSPLIT_HAS_RUNTIME
#include "verify_run.h"
#endif

enum { OPT_THREADS = 256, OPT_WEIGHTS_OF, OPT_MAX_GRAPH_MEMORY, OPT_FOLLOW_SYMLINKS, OPT_MAX_TEXT };

static const cli_option OPTIONS[] = {
  {'m', "model", "MODEL", "the model that DIR was split from, or that FILE should be"},
  {OPT_WEIGHTS_OF, "weights-of", "MODEL",
   "prove that FILE differs from MODEL only in the values of weights, and list these"},
  {OPT_THREADS, "threads", "N", "threads for comparing weights; default: one per core"},
  SHARED_MAX_GRAPH_MEMORY(OPT_MAX_GRAPH_MEMORY, "a file's"),
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  SHARED_FOLLOW_SYMLINKS(OPT_FOLLOW_SYMLINKS),
#if PSPLIT_HAS_RUNTIME
  {OPT_RUN, "run", NULL, "also run MODEL and the stages in ONNX Runtime, and compare outputs"},
  {OPT_GRADIENTS, "gradients", NULL,
   "also check the gradients of training stages against finite differences of the loss"},
  {OPT_DIRECTIONS, "directions", "N", "number of directions for --gradients; default: 2"},
  FEED_OPTIONS,
  {OPT_MICRO_BATCHES, "micro-batches", "M", "number of micro-batches to compare; default: 2"},
  {OPT_OPTIMIZATION, "optimization", "LEVEL",
   "0 (default): outputs must be bitwise equal; 1, 2, 99: differences are reported"},
  ORT_LIBRARY_OPTIONS,
#endif
  {'q', "quiet", NULL, "print nothing on success"},
  CLI_LOGGING_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-verify",
  "DIR|FILE --model MODEL [OPTION]...\n       onnx-pipeline-verify FILE --weights-of MODEL",
  "Proves from the files alone that the stages in DIR are equivalent to MODEL: the same nodes, "
  "edges\n"
  "and bytes once boundary nodes and declared duplicates are removed. Otherwise prints the first\n"
  "difference.\n\n"
  "Example: onnx-pipeline-verify out --model model.onnx\n",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

typedef struct request {
  const char *path, *model, *weights_of;
  psplit_read_options read;
  psplit_verify_options options;
  bool one_file, quiet;
#if PSPLIT_HAS_RUNTIME
  verify_run run; /* what it holds is freed at the end alone */
#endif
} request;

static bool is_file(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* A stream into memory does not remember by itself that there was too little. */
typedef struct name_list {
  FILE *out;
  bool failed;
} name_list;

static void print_name(void *user, const char *name) {
  name_list *list = user;
  list->failed |= fprintf(list->out, "  %s\n", name) < 0;
}

/* --weights-of: the names come only when all else is known to be the same. */
static int verify_weights(const char *path, const char *of, const psplit_read_options *read,
                          bool quiet) {
  char *names = NULL, bytes[CLI_TEXT];
  size_t n_names = 0;
  name_list list = {.out = open_memstream(&names, &n_names)};
  const psplit_changed_value changed = {.tell = print_name, .user = &list};
  psplit_new_values_report report;
  psplit_model *before = NULL, *after = NULL;
  psplit_diag diag = {0};
  cli_doing("reading %s", of);
  psplit_code code = list.out ? psplit_model_open(of, read, &diag, &before)
                              : psplit_diag_fail(&diag, PSPLIT_NOMEM, "out of memory");
  cli_doing("comparing %s with %s", path, of);
  if (code == PSPLIT_OK) code = psplit_model_open(path, read, &diag, &after);
  if (code == PSPLIT_OK)
    code = psplit_verify_new_values(before, after, &changed, read->cancel, &diag, &report);
  psplit_model_close(before);
  psplit_model_close(after);
  if (list.out && !cli_close_text(list.out, &names)) list.failed = true;
  if (code == PSPLIT_OK && list.failed) code = cli_nomem(&diag);
  if (code == PSPLIT_OK) code = cli_cancel_no_more(&diag);
  if (code == PSPLIT_OK && !quiet)
    printf("%s equals %s except for the values of %" PRIu32 " of %" PRIu32
           " initializers, %s of data compared%s\n%s",
           path, of, report.n_changed, report.n_initializers,
           cli_bytes(report.compared_bytes, bytes), report.n_changed ? ":" : "", names);
  free(names);
  return cli_finish(code == PSPLIT_OK ? 0 : cli_fail(&diag));
}

static bool parse_option(request *r, int id, const char *argument) {
  switch (id) {
    case 'm': r->model = argument; return true;
    case OPT_WEIGHTS_OF: r->weights_of = argument; return true;
    case 'q': return r->quiet = true;
    case OPT_FOLLOW_SYMLINKS: return r->read.follow_symlinks = true;
    case OPT_MAX_TEXT: return cli_max_text(&PROGRAM, argument, &r->options.max_text_bytes);
    case OPT_THREADS:
      return cli_count32(&PROGRAM, "threads", argument, 1, 4096, &r->options.n_threads);
    case OPT_MAX_GRAPH_MEMORY:
      return cli_mebibytes(&PROGRAM, "max-graph-memory", argument, &r->read.max_graph_bytes);
#if PSPLIT_HAS_RUNTIME
    default: return verify_run_option(&PROGRAM, &r->run, id, argument);
#else
    default: return false;
#endif
  }
}

/* 0 to go on, else the exit status. */
static int parse(request *r, int argc, char **argv) {
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;)
    if (id == CLI_BAD || !parse_option(r, id, argument)) return cli_exit_status(PSPLIT_USAGE);
  if (optind + 1 != argc || !r->model == !r->weights_of)
    return cli_usage(&PROGRAM,
                     "one directory and --model MODEL are needed, or one file and "
                     "--weights-of MODEL");
#if PSPLIT_HAS_RUNTIME
  if (r->run.directed && !r->run.gradients)
    return cli_usage(&PROGRAM, "--directions needs --gradients");
  if (r->run.given && !r->run.wanted && !r->run.gradients)
    return cli_usage(&PROGRAM, "--%s needs --run or --gradients", r->run.given);
#endif
  r->path = argv[optind];
  return 0;
}

#if PSPLIT_HAS_RUNTIME
/* Stages that train have inputs that the model has not, such as labels. */
static psplit_code check_feed(const request *r, const psplit_model *model, psplit_diag *diag) {
  psplit_code code = psplit_feed_check_model(&r->run.feed.options, model, diag);
  if (code != PSPLIT_USAGE || !r->run.wanted) return code;
  psplit_diag other = {0};
  psplit_pipeline_options reading;
  psplit_pipeline *pipeline = NULL;
  psplit_pipeline_options_init(&reading);
  reading.max_text_bytes = r->options.max_text_bytes;
  if (psplit_pipeline_open(r->path, &reading, &other, &pipeline) == PSPLIT_OK &&
      psplit_feed_check(&r->run.feed.options, pipeline, &other) == PSPLIT_OK) {
    *diag = (psplit_diag){0};
    code = PSPLIT_OK;
  }
  psplit_pipeline_close(pipeline);
  return code;
}
#endif

/* Whether what was asked for goes with the model, before anything is compared. */
static psplit_code check(const request *r, const psplit_model *model, psplit_diag *diag) {
#if PSPLIT_HAS_RUNTIME
  const bool runs = r->run.wanted || r->run.gradients;
  if (runs && r->one_file)
    return psplit_diag_fail(diag, PSPLIT_USAGE,
                            "--run and --gradients are for a directory of stages");
  if (!r->run.gradients) return check_feed(r, model, diag);
#endif
  (void)r, (void)model, (void)diag;
  return PSPLIT_OK;
}

static void print_report(const request *r, const psplit_verify_report *report) {
  char bytes[CLI_TEXT], stages[CLI_COUNT], nodes[CLI_COUNT], transfers[CLI_COUNT];
  cli_bytes(report->weight_bytes, bytes);
  cli_counted(report->n_nodes, "node", nodes);
  if (r->one_file)
    printf("%s is equivalent to %s: %s, %s of weights compared\n", r->path, r->model, nodes, bytes);
  else
    printf("%s is equivalent to %s%s: %s, %s (%" PRIu32
           " duplicated), %s, %s of weights compared\n",
           r->path, r->model,
           report->n_assumed ? " if the conditions have the values that pipeline.json assumes" : "",
           cli_counted(report->n_stages, "stage", stages), nodes, report->n_duplicates,
           cli_counted(report->n_transfers, "transfer", transfers), bytes);
  if (report->trains)
    printf("and trains it: the gradients of %" PRIu32
           " weights and their updates are those of the rules\n",
           report->n_trained);
}

/* The proof of the files, and with --run or --gradients the numbers beside it. */
static psplit_code verify(request *r, const psplit_model *model, psplit_diag *diag) {
  psplit_verify_report report;
  psplit_code code = check(r, model, diag);
  cli_doing("comparing %s with %s", r->path, r->model);
  if (code == PSPLIT_OK)
    code = r->one_file ? psplit_verify_file(r->path, NULL, model, &r->options, diag, &report)
                       : psplit_verify(r->path, model, &r->options, diag, &report);
  if (code == PSPLIT_OK) code = cli_cancel_no_more(diag);
  if (code != PSPLIT_OK) return code;
  cli_make_room();
  if (!r->quiet) print_report(r, &report);
#if PSPLIT_HAS_RUNTIME
  if (r->run.wanted || r->run.gradients) cli_doing("running the model and its stages");
  const verified_model of = {r->model, model, &r->read};
  code = verify_run_finish(&r->run, r->path, &of, r->options.max_text_bytes, r->quiet, diag);
#endif
  return code;
}

int main(int argc, char **argv) {
  static request r = {.path = "",
                      .read = {.struct_size = sizeof r.read},
                      .options = {.struct_size = sizeof r.options, .read = &r.read}};
  psplit_diag diag = {0};
  psplit_model *model = NULL;
#if PSPLIT_HAS_RUNTIME
  verify_run_init(&r.run);
#endif
  const int status = parse(&r, argc, argv);
  if (status) return cli_finish(status);
  r.read.cancel = r.options.cancel = cli_ends(CLI_ENDS_SOON);
  if (r.weights_of) return verify_weights(r.path, r.weights_of, &r.read, r.quiet);
  r.read.activity = r.options.activity = cli_activity();
  r.one_file = is_file(r.path);
  cli_doing("reading %s", r.model);
  psplit_code code = psplit_model_open(r.model, &r.read, &diag, &model);
  if (code == PSPLIT_OK) code = verify(&r, model, &diag);
  psplit_model_close(model);
  return cli_finish(code == PSPLIT_OK ? 0 : cli_fail(&diag));
}
