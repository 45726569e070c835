/* A range of numbers of stages, a line for each. */
#include <inttypes.h>
#include <stdio.h>

#include "split.h"

/* Of stages that train a step, else the micro-batches of a stream. */
static psplit_code simulate(const split_request *r, const psplit_plan *plan, psplit_diag *diag,
                            psplit_schedule **out) {
  if (!r->trained) return psplit_plan_schedule(plan, r->n_micro_batches, diag, out);
  return psplit_training_schedule(r->trained, plan, psplit_training_schedule_of(plan),
                                  r->n_micro_batches, diag, out);
}

psplit_code split_compare(split_request *r, psplit_diag *diag) {
  psplit_logger logger = cli_sink(&r->quiet);
  psplit_model *model = NULL;
  comparison_notes notes = {0};
  bool any = false, began = false; /* a split was found; something was printed */
  r->plan.planner.logger = &logger;
  psplit_code code = plan_open(&r->plan, r->model, diag, &model);
  const psplit_model *subject = model;
  if (code == PSPLIT_OK) code = split_probe(r, model, diag);
  if (code == PSPLIT_OK) code = split_begin_training(r, &logger, &subject, diag);
  if (code == PSPLIT_OK && !r->json)
    print_comparison_head(r->plan.planner.objective, r->n_micro_batches, r->trained != NULL);
  for (uint32_t k = r->n_stages; code == PSPLIT_OK && k <= r->last_k; k++) {
    cli_series(k - r->n_stages + 1, r->last_k - r->n_stages + 1);
    planned made = {0};
    cli_make_room();
    const psplit_plan *plan;
    code = split_make_plan(r, subject, k, diag, &made, &plan);
    psplit_schedule *schedule = NULL;
    if (code == PSPLIT_OK) code = simulate(r, plan, diag, &schedule);
    if (code == PSPLIT_OK && r->json)
      print_comparison_json(plan, schedule, !began);
    else if (code == PSPLIT_OK)
      print_comparison(plan, schedule, &notes);
    psplit_snapshot *snapshot = NULL;
    if (code == PSPLIT_OK) code = psplit_snapshot_take(made.planner, diag, &snapshot);
    if (code == PSPLIT_OK) print_comparison_largest(snapshot, &notes);
    psplit_snapshot_destroy(snapshot);
    psplit_schedule_destroy(schedule);
    any |= code == PSPLIT_OK;
    if (code == PSPLIT_INFEASIBLE && (any || k < r->last_k)) {
      char line[CLI_ADVICE_BYTES];
      cli_advice(diag, line, sizeof line);
      if (r->json)
        print_infeasible_json(k, line, !began);
      else
        printf("%6" PRIu32 " infeasible: %s\n", k, line);
      code = PSPLIT_OK;
      *diag = (psplit_diag){0};
    }
    began = began || code == PSPLIT_OK;
    logger = (psplit_logger){.emit = cli_quiet}; /* the same warnings once */
    planned_fini(&made);
  }
  if (r->json && began)
    print_comparison_json_end();
  else if (code == PSPLIT_OK && !r->json)
    print_comparison_notes(&notes);
  psplit_training_destroy(r->trained);
  psplit_model_close(model);
  return code;
}
