#include "verify_run.h"

#include <inttypes.h>
#include <stdlib.h>

#include "compare.h"

bool verify_run_option(const cli *program, verify_run *run, int id, const char *argument) {
  uint64_t count = 0;
  switch (id) {
    case OPT_RUN: run->wanted = true; return true;
    case OPT_ONNXRUNTIME: run->onnxruntime = argument; return true;
    case OPT_MICRO_BATCHES:
      if (!cli_count(program, "micro-batches", argument, 1, 1000000, &count)) return false;
      run->options.n_micro_batches = (uint32_t)count;
      return true;
    case OPT_OPTIMIZATION: return cli_level(program, argument, &run->options.session.optimization);
    default: return feed_option(program, &run->feed, id, argument);
  }
}

static psplit_code compare(const verify_run *run, const psplit_i_ort *ort,
                           const psplit_i_pipe *pipe, const char *model_path, bool quiet,
                           psplit_diag *diag) {
  psplit_i_difference *found = calloc((size_t)pipe->manifest.n_outputs + 1, sizeof *found);
  if (!found) return psplit_i_nomem(diag);
  psplit_code code;
  PSPLIT_TRY(psplit_i_compare_run(ort, model_path, pipe, &run->options, diag, found));
  for (uint32_t o = 0; o < pipe->manifest.n_outputs; o++) {
    char name[256];
    const psplit_i_difference *d = &found[o];
    cli_printable(pipe->manifest.outputs[o], name, sizeof name);
    if (d->n_different && run->options.session.optimization == 0)
      code =
        psplit_i_fail(diag, PSPLIT_MISMATCH,
                      "output %s: %" PRIu64 " of %" PRIu64 " elements differ, by at most %g%s",
                      pipe->manifest.outputs[o], d->n_different, d->n_elements, d->max_abs,
                      d->random ? "; the whole model differs from itself when it runs again, as "
                                  "one that draws random numbers does"
                                : "");
    if (quiet) continue;
    if (!d->n_different)
      printf("output %s: %" PRIu64 " elements, the same bits\n", name, d->n_elements);
    else
      printf("output %s: %" PRIu64 " of %" PRIu64
             " elements differ, by at most %.3g, relative %.3g\n",
             name, d->n_different, d->n_elements, d->max_abs, d->max_rel);
  }
out:
  free(found);
  return code;
}

psplit_code verify_run_finish(verify_run *run, const char *directory, const char *model_path,
                              uint64_t max_text_bytes, bool quiet, psplit_diag *diag) {
  psplit_i_pipe pipe = {0};
  psplit_i_ort ort = {0};
  psplit_code code = PSPLIT_OK;
  if (run->wanted) {
    run->options.feed = run->feed.options;
    PSPLIT_TRY(psplit_i_pipe_read(directory, max_text_bytes, diag, &pipe));
    PSPLIT_TRY(feed_check(&run->feed, &pipe, diag));
    PSPLIT_TRY(psplit_i_ort_open(run->onnxruntime, diag, &ort));
    PSPLIT_TRY(compare(run, &ort, &pipe, model_path, quiet, diag));
  }
out:
  psplit_i_ort_close(&ort);
  psplit_i_pipe_fini(&pipe);
  feed_fini(&run->feed);
  return code;
}
