/* What is written beside DIR, and whether it may be. */
#include <psplit/file.h>
#include <psplit/verify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "depfile.h"
#include "places.h"
#include "split.h"

/* --verify: the finished files, before they are put in place. */
static psplit_code prove(const split_request *r, const char *directory, psplit_diag *diag) {
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
static psplit_code put_beside(const split_request *r, const char *path, const void *bytes, size_t n,
                              psplit_diag *diag) {
  psplit_code code = undo_keep(r->beside, path, diag);
  if (code == PSPLIT_OK) code = psplit_file_write(path, bytes, n, r->emit.cancel, diag);
  if (code == PSPLIT_OK) undo_written(r->beside);
  return code;
}

/* --annotate-as names: a text, the value of an option. */
static psplit_code assign_names(const split_request *r, psplit_diag *diag) {
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

static psplit_code annotate(const split_request *r, psplit_diag *diag) {
  if (r->by_names) return assign_names(r, diag);
  psplit_code code = undo_keep(r->beside, r->annotate, diag);
  if (code == PSPLIT_OK)
    code = psplit_emit_annotated(r->opened, psplit_planner_plan(r->made->planner), r->annotation,
                                 r->annotate, &r->emit, diag);
  if (code == PSPLIT_OK) undo_written(r->beside);
  return code;
}

static psplit_code put_rule(const split_request *r, psplit_diag *diag) {
  char *text = NULL;
  size_t n = 0;
  psplit_code code = depfile_make(r->directory, r->opened, &r->plan, r->made, diag, &text, &n);
  if (code == PSPLIT_OK) code = put_beside(r, r->depfile, text, n, diag);
  free(text);
  return code;
}

/* Says what the certificate leaves out, so that nobody takes it for a proof of the whole bound. */
static psplit_code certify(const split_request *r, psplit_diag *diag) {
  const psplit_plan *plan = psplit_planner_plan(r->made->planner);
  psplit_certified made;
  psplit_code code = psplit_planner_certificate(r->made->planner, diag, &made);
  if (code != PSPLIT_OK) return code;
  code = put_beside(r, r->problem, made.problem, made.n_problem, diag);
  if (code == PSPLIT_OK)
    code = put_beside(r, r->certificate, made.certificate, made.n_certificate, diag);
  if (code == PSPLIT_OK && made.bound_ns != plan->lower_bound_ns) {
    const bool some = plan->latency_per_pair && strstr(made.certificate, "\ncomm p2p\n");
    char text[CLI_ADVICE_BYTES], most[CLI_TEXT], proved[CLI_TEXT];
    snprintf(text, sizeof text, "not certified: the bound of %s (%s); the certificate proves %s%s",
             cli_time(plan->lower_bound_ns, most), plan->bound, cli_time(made.bound_ns, proved),
             made.bound_ns > plan->lower_bound_ns ? " of splits without copies of nodes"
             : some                               ? CLI_SOME_MESSAGES
                                                  : "");
    r->emit.logger->emit(r->emit.logger->user, PSPLIT_WARNING, text);
  }
  psplit_certified_fini(&made);
  return code;
}

psplit_code split_write_beside(const split_request *r, psplit_diag *diag) {
  psplit_code code = r->annotate ? annotate(r, diag) : PSPLIT_OK;
  if (code == PSPLIT_OK && r->certificate) code = certify(r, diag);
  if (code == PSPLIT_OK && r->depfile) code = put_rule(r, diag);
  return code;
}

psplit_code split_accept(void *request, const char *directory, psplit_diag *diag) {
  const split_request *r = request;
  const psplit_code code = r->verify ? prove(r, directory, diag) : PSPLIT_OK;
  return code == PSPLIT_OK ? split_write_beside(r, diag) : code;
}

psplit_code split_check_names(const split_request *r, psplit_diag *diag) {
  psplit_code code = plan_check_names(&r->plan, r->opened, diag);
#if PSPLIT_HAS_RUNTIME
  if (code == PSPLIT_OK) code = psplit_feed_check_model(&r->tune.feed.options, r->opened, diag);
#endif
  return code;
}

/* The text of --annotate-as names. */
static psplit_code check_text(const split_request *r, psplit_diag *diag) {
  if (!r->emit.replace && access(r->annotate, F_OK) == 0)
    return psplit_diag_fail(diag, PSPLIT_IO, "%s exists; --force replaces it", r->annotate);
  return place_check(r->annotate, r->opened, diag);
}

psplit_code split_check_outputs(const split_request *r, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const bool emits = r->directory && !r->plan_only;
  if (emits) code = psplit_emit_check(r->opened, r->directory, &r->emit, diag);
  if (code == PSPLIT_OK && emits) code = place_check_split(r->directory, diag);
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
  else if (code == PSPLIT_OK && r->annotate) {
    code = psplit_emit_file_check(r->opened, r->annotate, r->emit.replace, diag);
    if (code == PSPLIT_OK) code = place_check_split(r->annotate, diag);
  }
  if (code == PSPLIT_OK && r->depfile) code = place_check(r->depfile, r->opened, diag);
  return code;
}

psplit_code split_check_planned_outputs(const split_request *r, uint32_t n_stages,
                                        psplit_diag *diag) {
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
