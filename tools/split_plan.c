/* From the model to a plan. */
#include "ask.h"
#include "split.h"

psplit_code split_begin_training(split_request *r, const psplit_logger *logger,
                                 const psplit_model **io_subject, psplit_diag *diag) {
  if (!r->training.enabled) return PSPLIT_OK;
  const psplit_code code = psplit_training_create(*io_subject, &r->training.what, &r->training.form,
                                                  logger, diag, &r->trained);
  if (code == PSPLIT_OK) *io_subject = psplit_training_model(r->trained);
  return code;
}

static psplit_code run_planner(split_request *r, const psplit_model *subject, uint32_t n_stages,
                               psplit_diag *diag, planned *out) {
  psplit_planner_options planner;
  if (!n_stages && !r->plan.devices) return planned_make_fewest(&r->plan, subject, diag, out);
  if (!r->trained) return planned_make(&r->plan, subject, n_stages, diag, out);
  const psplit_code code = planned_prepare(&r->plan, n_stages, diag, out, &planner);
  return code == PSPLIT_OK
           ? psplit_training_plan(r->trained, &planner, r->plan.pipeline, diag, &out->planner)
           : code;
}

psplit_code split_make_plan(split_request *r, const psplit_model *subject, uint32_t n_stages,
                            psplit_diag *diag, planned *out, const psplit_plan **out_plan) {
  const psplit_code code = run_planner(r, subject, n_stages, diag, out);
  *out_plan = out->planner ? psplit_planner_plan(out->planner) : NULL;
  return code == PSPLIT_OK && !*out_plan
           ? psplit_diag_fail(diag, PSPLIT_USAGE, "the pipeline has no pass that partitions")
           : code;
}

psplit_code split_probe(split_request *r, const psplit_model *model, psplit_diag *diag) {
  const probe_asker asker = {ask_provider, (void *)(uintptr_t)&r->tune.library};
  return probe_load(&r->plan, r->model, model, &asker, diag);
}
