/* onnx-pipeline-verify: prove that a directory of stages is the model. */
#include <inttypes.h>
#include <psplit/verify.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "shared_options.h"

#include <getopt.h>

#ifdef PSPLIT_HAS_RUNTIME
#include "verify_run.h"
#else
#define PSPLIT_HAS_RUNTIME 0
#endif

enum { OPT_THREADS = 256, OPT_WEIGHTS_OF, OPT_MAX_GRAPH_MEMORY, OPT_FOLLOW_SYMLINKS, OPT_MAX_TEXT };

static const cli_option OPTIONS[] = {
  {'m', "model", "MODEL", "the model that DIR was split from, or that the file DIR should be"},
  {OPT_WEIGHTS_OF, "weights-of", "MODEL",
   "DIR is a file: is it MODEL but for values of weights? lists these"},
  {OPT_THREADS, "threads", "N", "for comparing weights; default: one a core"},
  SHARED_MAX_GRAPH_MEMORY(OPT_MAX_GRAPH_MEMORY, "a file's"),
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  SHARED_FOLLOW_SYMLINKS(OPT_FOLLOW_SYMLINKS),
#if PSPLIT_HAS_RUNTIME
  {OPT_RUN, "run", NULL, "also run MODEL and the stages in ONNX Runtime, and compare outputs"},
  {OPT_GRADIENTS, "gradients", NULL,
   "also check gradients of stages that train against differences of the loss"},
  {OPT_DIRECTIONS, "directions", "N", "in which a weight is moved for that; default: 2"},
  FEED_OPTIONS,
  {OPT_MICRO_BATCHES, "micro-batches", "M", "inputs to compare; default: 2"},
  {OPT_OPTIMIZATION, "optimization", "LEVEL",
   "0 (default): bits must be equal; 1, 2, 99: differences are told"},
  SHARED_ONNXRUNTIME(OPT_ONNXRUNTIME),
#endif
  {'q', "quiet", NULL, "say nothing when it holds"},
  CLI_TALK_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-verify",
  "DIR|FILE --model MODEL [OPTION]...\n       onnx-pipeline-verify FILE --weights-of MODEL",
  "Proves from the files alone that the stages in DIR together are MODEL: the same nodes, edges "
  "and\n"
  "bytes once boundary nodes and declared duplicates are taken out. Prints the first difference.",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

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
    printf("%s is %s but for the values of %" PRIu32 " of %" PRIu32
           " initializers, %s of data compared%s\n%s",
           path, of, report.n_changed, report.n_initializers,
           cli_bytes(report.compared_bytes, bytes), report.n_changed ? ":" : "", names);
  free(names);
  return cli_finish(code == PSPLIT_OK ? 0 : cli_fail(&diag));
}

int main(int argc, char **argv) {
  const char *model_path = NULL, *weights_of = NULL, *argument;
  psplit_read_options read = {.struct_size = sizeof read};
  psplit_verify_options options = {.struct_size = sizeof options, .read = &read};
  bool quiet = false;
  uint64_t count;
#if PSPLIT_HAS_RUNTIME
  static verify_run run; /* what it holds is freed at the end alone */
  verify_run_init(&run);
#endif
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;) {
    switch (id) {
      case 'm': model_path = argument; break;
      case OPT_WEIGHTS_OF: weights_of = argument; break;
      case 'q': quiet = true; break;
      case 'h': cli_print_help(&PROGRAM, stdout); return cli_finish(0);
      case 'V': cli_print_version(&PROGRAM, stdout); return cli_finish(0);
      case OPT_FOLLOW_SYMLINKS: read.follow_symlinks = true; break;
      case OPT_MAX_TEXT:
        if (!cli_max_text(&PROGRAM, argument, &options.max_text_bytes)) return 2;
        break;
      case OPT_THREADS:
        if (!cli_count(&PROGRAM, "threads", argument, 1, 4096, &count)) return 2;
        options.n_threads = (uint32_t)count;
        break;
      case OPT_MAX_GRAPH_MEMORY:
        if (!cli_count(&PROGRAM, "max-graph-memory", argument, 1, UINT64_MAX >> 20, &count))
          return 2;
        read.max_graph_bytes = count << 20;
        break;
#if PSPLIT_HAS_RUNTIME
      default:
        if (!verify_run_option(&PROGRAM, &run, id, argument)) return 2;
#else
      default: return 2;
#endif
    }
  }
  if (optind + 1 != argc || !model_path == !weights_of)
    return cli_usage(&PROGRAM,
                     "one directory and --model MODEL are needed, or one file and "
                     "--weights-of MODEL");
#if PSPLIT_HAS_RUNTIME
  if (!run.wanted && !run.gradients &&
      (run.feed.options.n_files || run.feed.options.n_ranges || run.feed.options.n_shapes ||
       run.feed.options.n_dims))
    return cli_usage(&PROGRAM, "--input, --dim and --shape are for --run and --gradients");
#endif
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  psplit_verify_report report;
  read.cancel = options.cancel = cli_ends(CLI_ENDS_SOON);
  if (weights_of) return verify_weights(argv[optind], weights_of, &read, quiet);
  cli_doing("reading %s", model_path);
  read.activity = cli_activity();
  psplit_code code = psplit_model_open(model_path, &read, &diag, &model);
  options.activity = cli_activity();
#if PSPLIT_HAS_RUNTIME
  /* Stages that train have inputs that the model has not, such as labels. */
  if (code == PSPLIT_OK && !run.gradients)
    code = psplit_feed_check_model(&run.feed.options, model, &diag);
#endif
  const bool one_file = is_file(argv[optind]);
#if PSPLIT_HAS_RUNTIME
  if (code == PSPLIT_OK && one_file && (run.wanted || run.gradients))
    code =
      psplit_diag_fail(&diag, PSPLIT_USAGE, "--run and --gradients are for a directory of stages");
#endif
  cli_doing("comparing %s with %s", argv[optind], model_path);
  if (code == PSPLIT_OK)
    code = one_file ? psplit_verify_file(argv[optind], NULL, model, &options, &diag, &report)
                    : psplit_verify(argv[optind], model, &options, &diag, &report);
  if (code == PSPLIT_OK) code = cli_cancel_no_more(&diag);
  if (code != PSPLIT_OK) {
    psplit_model_close(model);
    return cli_finish(cli_fail(&diag));
  }
  char bytes[CLI_TEXT], stages[CLI_COUNT], nodes[CLI_COUNT], transfers[CLI_COUNT];
  cli_make_room();
  if (!quiet && one_file)
    printf("%s is %s: %s, %s of weights compared\n", argv[optind], model_path,
           cli_counted(report.n_nodes, "node", nodes), cli_bytes(report.weight_bytes, bytes));
  else if (!quiet)
    printf(
      "%s is %s%s: %s, %s (%" PRIu32 " duplicated), %s, %s of weights compared\n", argv[optind],
      model_path, report.n_assumed ? " where the conditions hold that pipeline.json assumes" : "",
      cli_counted(report.n_stages, "stage", stages), cli_counted(report.n_nodes, "node", nodes),
      report.n_duplicates, cli_counted(report.n_transfers, "transfer", transfers),
      cli_bytes(report.weight_bytes, bytes));
  if (!quiet && report.trains)
    printf("and trains it: the gradients of %" PRIu32
           " weights, and their updates, are what the rules "
           "give\n",
           report.n_trained);
#if PSPLIT_HAS_RUNTIME
  if (run.wanted || run.gradients) cli_doing("running the model and its stages");
  code =
    verify_run_finish(&run, argv[optind], model_path, model, options.max_text_bytes, quiet, &diag);
#endif
  psplit_model_close(model);
  return cli_finish(code == PSPLIT_OK ? 0 : cli_fail(&diag));
}
