/* onnx-pipeline-merge: one model out of the stages of a split. */
#include <inttypes.h>
#include <psplit/merge.h>
#include <psplit/verify.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "places.h"
#include "shared_options.h"

#include <getopt.h>

enum { OPT_FORCE = 256, OPT_WEIGHTS, OPT_MAX_GRAPH_MEMORY, OPT_FOLLOW_SYMLINKS, OPT_MAX_TEXT };

static const cli_option OPTIONS[] = {
  {'o', "output", "FILE", "model to write (required); it is created atomically"},
  {'m', "model", "MODEL",
   "the model that was split: report which stages are unchanged, and if all are, prove that FILE "
   "is equivalent to MODEL"},
  {OPT_FORCE, "force", NULL, "replace FILE, and FILE.data if weights go there"},
  {OPT_WEIGHTS, "weights", "auto|inline|external",
   "where weights are stored; default: auto, inline up to 1 GiB; external: in FILE.data"},
  SHARED_MAX_GRAPH_MEMORY(OPT_MAX_GRAPH_MEMORY, "a file's"),
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  SHARED_FOLLOW_SYMLINKS(OPT_FOLLOW_SYMLINKS),
  {'q', "quiet", NULL, "print nothing on success"},
  CLI_LOGGING_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-merge", "DIR -o FILE [OPTION]...",
  "Merges the stages in DIR, which onnx-pipeline-split wrote, into one model, even after other\n"
  "tools have quantised, optimised or rewritten some of them.\n\n"
  "Example: onnx-pipeline-merge out -o again.onnx --model model.onnx\n",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

/* What was found of the stages before the file was written. */
typedef struct verdict {
  const char *directory;
  const psplit_model *model;
  const psplit_verify_options *options;
  uint32_t n_changed;
  FILE *text; /* a line for each that is not the model's own */
} verdict;

static void tell(void *user, uint32_t stage, const char *difference) {
  verdict *v = user;
  v->n_changed++;
  /* Differences begin with "stage N: ". */
  const char *colon = strncmp(difference, "stage ", 6) == 0 ? strstr(difference, ": ") : NULL;
  fprintf(v->text, "  stage %" PRIu32 " has changed: %s\n", stage, colon ? colon + 2 : difference);
}

/* Where no stage has changed, the file is the model before it appears. */
static psplit_code prove(void *user, const char *path, psplit_diag *diag) {
  const verdict *v = user;
  psplit_verify_report report;
  if (!v->n_changed) cli_doing("proving that %s is the model", path);
  return v->n_changed ? PSPLIT_OK
                      : psplit_verify_file(path, v->directory, v->model, v->options, diag, &report);
}

static void print_report(const char *path, const char *model, const psplit_merge_report *report,
                         const verdict *v, const char *changes) {
  char bytes[CLI_TEXT], data[CLI_TEXT], stages[CLI_COUNT], nodes[CLI_COUNT];
  printf("%s: %s, %s", path, cli_counted(report->n_stages, "stage", stages),
         cli_counted(report->n_nodes, "node", nodes));
  if (report->n_copies)
    printf(", %" PRIu32 " cop%s left out", report->n_copies, report->n_copies == 1 ? "y" : "ies");
  if (report->n_renamed)
    printf(", %" PRIu32 " value%s renamed", report->n_renamed, report->n_renamed == 1 ? "" : "s");
  printf(", %s", cli_bytes(report->bytes, bytes));
  if (report->data_bytes) printf(" and %s in its .data", cli_bytes(report->data_bytes, data));
  printf("\n");
  if (!model) return;
  if (!v->n_changed)
    printf("it is equivalent to %s: every stage is unchanged\n", model);
  else if (v->n_changed == report->n_stages)
    printf("no stage is unchanged from %s\n%s", model, changes);
  else
    printf("%" PRIu32 " of %" PRIu32 " stages are unchanged from %s, proved\n%s",
           report->n_stages - v->n_changed, report->n_stages, model, changes);
}

typedef struct request {
  const char *directory, *model, *path;
  bool quiet;
  psplit_read_options read;
  psplit_merge_options merge;
  psplit_verify_options verify;
} request;

/* One option; false after an error line. */
static bool take(request *r, int id, const char *argument) {
  static const psplit_weights WEIGHTS[] = {PSPLIT_WEIGHTS_AUTO, PSPLIT_WEIGHTS_INLINE,
                                           PSPLIT_WEIGHTS_EXTERNAL};
  int choice;
  switch (id) {
    case 'o': r->path = argument; return true;
    case 'm': r->model = argument; return true;
    case 'q': return r->quiet = true;
    case OPT_FORCE: return r->merge.replace = true;
    case OPT_FOLLOW_SYMLINKS: return r->read.follow_symlinks = true;
    case OPT_WEIGHTS:
      if (!cli_choice(&PROGRAM, "weights", argument, &choice)) return false;
      r->merge.weights = WEIGHTS[choice];
      return true;
    case OPT_MAX_TEXT: return cli_max_text(&PROGRAM, argument, &r->merge.max_text_bytes);
    case OPT_MAX_GRAPH_MEMORY:
      return cli_mebibytes(&PROGRAM, "max-graph-memory", argument, &r->read.max_graph_bytes);
    default: return false;
  }
}

/* Fills the request; 0 to go on, else the exit status. */
static int parse(request *r, int argc, char **argv) {
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;)
    if (!take(r, id, argument)) return 2;
  if (optind + 1 != argc || !r->path)
    return cli_usage(&PROGRAM, "one directory and -o FILE are needed");
  r->directory = argv[optind];
  r->read.cancel = r->merge.cancel = r->verify.cancel = cli_ends(CLI_ENDS_SOON);
  r->verify.max_text_bytes = r->merge.max_text_bytes;
  r->merge.activity = r->verify.activity = cli_activity();
  return 0;
}

/* Compares the stages with the model, and has `found` say what has changed since, with the memory
 * of *out_changes behind it. */
static psplit_code compare(request *r, const psplit_model *model, verdict *found,
                           char **out_changes, psplit_diag *diag) {
  const psplit_changed_stage changed = {.tell = tell, .user = found};
  size_t n_changes = 0;
  cli_doing("comparing the stages with %s", r->model);
  found->model = r->merge.model = model;
  r->merge.accept = prove;
  r->merge.accept_user = found;
  found->text = open_memstream(out_changes, &n_changes);
  psplit_code code = found->text
                       ? psplit_verify_stages(r->directory, model, &r->verify, &changed, diag)
                       : cli_nomem(diag);
  if (found->text && !cli_close_text(found->text, out_changes) && code == PSPLIT_OK)
    code = cli_nomem(diag);
  return code;
}

int main(int argc, char **argv) {
  static request r = {.read = {.struct_size = sizeof r.read},
                      .merge = {.struct_size = sizeof r.merge, .read = &r.read},
                      .verify = {.struct_size = sizeof r.verify, .read = &r.read}};
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  psplit_merge_report report;
  char *changes = NULL;
  const int status = parse(&r, argc, argv);
  if (status) return status;
  verdict found = {.directory = r.directory, .options = &r.verify};
  psplit_code code = PSPLIT_OK;
  if (r.model) cli_doing("reading %s", r.model);
  if (r.model) code = psplit_model_open(r.model, &r.read, &diag, &model);
  if (code == PSPLIT_OK) code = place_check_new(r.path, r.merge.replace, model, &diag);
  if (code == PSPLIT_OK && model) code = compare(&r, model, &found, &changes, &diag);
  cli_doing("writing %s", r.path);
  if (code == PSPLIT_OK) code = psplit_merge(r.directory, r.path, &r.merge, &diag, &report);
  if (code == PSPLIT_OK && !r.quiet) print_report(r.path, r.model, &report, &found, changes);
  free(changes);
  psplit_model_close(model);
  return cli_finish(code == PSPLIT_OK ? 0 : cli_fail(&diag));
}
