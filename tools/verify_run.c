#include "verify_run.h"

#include <inttypes.h>
#include <math.h>
#include <psplit/run_gradients.h>
#include <stdlib.h>

void verify_run_init(verify_run *run) {
  *run = (verify_run){.n_micro_batches = 2, .n_directions = 2};
  feed_init(&run->feed);
  run->feed.options.random = true;
}

bool verify_run_option(const cli *program, verify_run *run, int id, const char *argument) {
  if (id != OPT_RUN && id != OPT_GRADIENTS) run->given = cli_option_name(program, id);
  switch (id) {
    case OPT_RUN: run->wanted = true; return true;
    case OPT_GRADIENTS: run->gradients = true; return true;
    case OPT_DIRECTIONS:
      run->directed = true;
      return cli_count32(program, "directions", argument, 1, 1000, &run->n_directions);
    case OPT_ONNXRUNTIME:
    case OPT_CUSTOM_OPS: return ort_library_option(program, &run->library, id, argument);
    case OPT_MICRO_BATCHES:
      return cli_count32(program, "micro-batches", argument, 1, 1000000, &run->n_micro_batches);
    case OPT_OPTIMIZATION: return cli_level(program, argument, &run->optimization);
    default: return feed_option(program, &run->feed, id, argument);
  }
}

/* What a cut does to float16, where that can be why. */
static const char ROUNDED[] =
  "float16 tensors crossed before it, which a cut rounds, and ONNX Runtime may keep float32 within "
  "a file (docs/running.md, \"Comparing numbers\")";

static void print_difference(const char *output, const psplit_output_difference *d) {
  char name[256];
  cli_printable(output, name, sizeof name);
  if (d->added)
    printf("output %s: not compared, MODEL has none: it is of the training\n", name);
  else if (!d->n_different)
    printf("output %s: %" PRIu64 " elements, the same bits\n", name, d->n_elements);
  else
    printf("output %s: %" PRIu64 " of %" PRIu64
           " elements differ, by at most %.3g, relative %.3g%s%s\n",
           name, d->n_different, d->n_elements, d->max_abs, d->max_rel, d->rounded ? "; " : "",
           d->rounded ? ROUNDED : "");
}

/* With optimisation off every bit has to be the same. */
static psplit_code check_bits(const char *output, const psplit_output_difference *d,
                              psplit_diag *diag) {
  if (!d->n_different) return PSPLIT_OK;
  const char *why = d->random    ? "the whole model differs from itself when it runs again, as one "
                                   "that draws random numbers does"
                    : d->rounded ? ROUNDED
                                 : NULL;
  return psplit_diag_fail(
    diag, PSPLIT_MISMATCH,
    "output %s: %" PRIu64 " of %" PRIu64 " elements differ, by at most %g%s%s", output,
    d->n_different, d->n_elements, d->max_abs, why ? "; " : "", why ? why : "");
}

static psplit_code compare(const verify_run *run, const psplit_onnxruntime *ort,
                           psplit_pipeline *pipeline, const char *model_path, bool quiet,
                           psplit_diag *diag) {
  const psplit_pipeline_info *info = psplit_pipeline_get_info(pipeline);
  const psplit_session session = {.optimization = run->optimization, .n_threads = 1};
  psplit_run_options options;
  psplit_output_difference *found = calloc((size_t)info->n_outputs + 1, sizeof *found);
  if (!found) return cli_nomem(diag);
  psplit_run_options_init(&options);
  options.sessions = &session;
  options.n_sessions = 1;
  options.feed = &run->feed.options;
  options.n_warmup = 0;
  options.n_micro_batches = run->n_micro_batches;
  options.cancel = cli_ends(CLI_ENDS_SOON);
  psplit_code code = psplit_compare_run(ort, model_path, pipeline, &options, diag, found);
  if (code == PSPLIT_OK) code = cli_cancel_no_more(diag);
  const bool ran = code == PSPLIT_OK;
  for (uint32_t o = 0; ran && o < info->n_outputs; o++) {
    if (run->optimization == 0 && code == PSPLIT_OK)
      code = check_bits(info->outputs[o], &found[o], diag);
    if (!quiet) print_difference(info->outputs[o], &found[o]);
  }
  free(found);
  return code;
}

static void print_finding(const psplit_gradient_finding *f) {
  static const char *const verdicts[] = {[PSPLIT_GRADIENT_HOLDS] = "holds",
                                         [PSPLIT_GRADIENT_DIFFERS] = "DIFFERS",
                                         [PSPLIT_GRADIENT_UNTOLD] = "cannot be told"};
  char name[256];
  cli_printable(f->name, name, sizeof name);
  printf("gradient of %s: %s", name, verdicts[f->verdict]);
  if (f->n_runs)
    printf(", %.3g within %.2g (%" PRIu64 " elements, %" PRIu32 " runs)", f->scale, f->bound,
           f->n_elements, f->n_runs);
  putchar('\n');
}

static psplit_code judge(const psplit_gradient_check *check, bool quiet, psplit_diag *diag) {
  uint32_t counts[3] = {0};
  const uint32_t n = psplit_gradient_check_n_findings(check);
  const psplit_gradient_finding *first = NULL;
  for (uint32_t i = 0; i < n; i++) {
    const psplit_gradient_finding *finding = psplit_gradient_check_finding(check, i);
    if (!quiet) print_finding(finding);
    if (finding->verdict == PSPLIT_GRADIENT_DIFFERS && !first) first = finding;
    counts[finding->verdict]++;
  }
  if (!quiet)
    printf("gradients at loss %.9g: %" PRIu32 " of %" PRIu32 " hold, %" PRIu32 " differ, %" PRIu32
           " cannot be told because of rounding\n",
           psplit_gradient_check_loss(check), counts[PSPLIT_GRADIENT_HOLDS], n,
           counts[PSPLIT_GRADIENT_DIFFERS], counts[PSPLIT_GRADIENT_UNTOLD]);
  if (first)
    return psplit_diag_fail(diag, PSPLIT_MISMATCH,
                            "the gradient of \"%s\" is not that of the loss: along a direction it "
                            "is %.3g, by the backward files, and by differences %.3g more or less "
                            "(%" PRIu32 " of %" PRIu32 " differ)",
                            first->name, first->scale, fabs(first->gap),
                            counts[PSPLIT_GRADIENT_DIFFERS], n);
  if (!counts[PSPLIT_GRADIENT_HOLDS])
    return psplit_diag_fail(diag, PSPLIT_UNSUPPORTED,
                            "differences of the loss cannot confirm these gradients, because of "
                            "rounding; other inputs may help");
  return PSPLIT_OK;
}

static psplit_code check_gradients(const verify_run *run, const psplit_onnxruntime *ort,
                                   const char *directory, const verified_model *of,
                                   uint64_t max_text_bytes, bool quiet, psplit_diag *diag) {
  const psplit_session session = {.optimization = run->optimization, .n_threads = 1};
  psplit_gradient_check_options options;
  psplit_gradient_check *check = NULL;
  psplit_gradient_check_options_init(&options);
  options.session = &session;
  options.feed = &run->feed.options;
  options.n_directions = run->n_directions;
  options.max_text_bytes = max_text_bytes;
  options.cancel = cli_ends(CLI_ENDS_SOON);
  options.model_path = of->path;
  options.read = of->read;
  psplit_code code = psplit_check_gradients(ort, directory, of->model, &options, diag, &check);
  if (code == PSPLIT_OK) code = cli_cancel_no_more(diag);
  if (code == PSPLIT_OK) code = judge(check, quiet, diag);
  psplit_gradient_check_destroy(check);
  return code;
}

static psplit_code compare_stages(const verify_run *run, const psplit_onnxruntime *ort,
                                  const char *directory, const char *model_path,
                                  uint64_t max_text_bytes, bool quiet, psplit_diag *diag) {
  psplit_pipeline_options reading;
  psplit_pipeline *pipeline = NULL;
  psplit_pipeline_options_init(&reading);
  reading.max_text_bytes = max_text_bytes;
  psplit_code code = psplit_pipeline_open(directory, &reading, diag, &pipeline);
  if (code == PSPLIT_OK) code = psplit_feed_check(&run->feed.options, pipeline, diag);
  if (code == PSPLIT_OK) code = compare(run, ort, pipeline, model_path, quiet, diag);
  psplit_pipeline_close(pipeline);
  return code;
}

psplit_code verify_run_finish(verify_run *run, const char *directory, const verified_model *of,
                              uint64_t max_text_bytes, bool quiet, psplit_diag *diag) {
  psplit_onnxruntime *ort = NULL;
  psplit_code code = PSPLIT_OK;
  if (run->wanted || run->gradients) code = ort_library_open(&run->library, diag, &ort);
  if (code == PSPLIT_OK && run->wanted)
    code = compare_stages(run, ort, directory, of->path, max_text_bytes, quiet, diag);
  if (code == PSPLIT_OK && run->gradients)
    code = check_gradients(run, ort, directory, of, max_text_bytes, quiet, diag);
  psplit_onnxruntime_close(ort);
  feed_fini(&run->feed);
  return code;
}
