/* The pass manager: establishes what a pass needs, runs it, drops what it did not keep, and
 * checks. */
#include <string.h>

#include "passes.h"
#include "pipeline.h"
#include "plan_budget.h"
#include "plugin.h"
#include "unknown.h"

#ifdef NDEBUG
static const bool ALWAYS_CHECK = false;
#else
static const bool ALWAYS_CHECK = true;
#endif

static psplit_code run_pass(psplit_planner *planner, const psplit_i_pass *pass,
                            const psplit_i_option_value *values, unsigned depth, psplit_diag *diag);

/* Makes the facts in `needs` hold. Groups start as one node each; every other fact has a pass that
 * makes it, run with its defaults. */
static psplit_code establish(psplit_planner *planner, unsigned needs, unsigned depth,
                             psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t p = 0; p < psplit_i_n_passes; p++) {
    const psplit_i_pass *pass = psplit_i_passes[p];
    if (!(pass->makes & needs & ~planner->facts) || (pass->makes & PSPLIT_I_FACT_GROUPS)) continue;
    psplit_i_option_value values[PSPLIT_I_MAX_OPTIONS];
    psplit_i_pass_defaults(pass, values);
    PSPLIT_TRY(run_pass(planner, pass, values, depth + 1, diag));
  }
  if (needs & ~planner->facts & PSPLIT_I_FACT_GROUPS) {
    PSPLIT_TRY(establish(planner, PSPLIT_I_FACT_LIVE, depth, diag));
    if (!psplit_i_grouping_init(&planner->grouping, planner->graph, planner->node_flags,
                                planner->apart, &planner->arena))
      return psplit_i_nomem(diag);
    planner->facts |= PSPLIT_I_FACT_GROUPS;
  }
out:
  return code;
}

/* An observer sees the plan that the stages make now, not one from before this pass. */
static psplit_code observe(psplit_planner *planner, const char *pass, psplit_diag *diag) {
  psplit_code code;
  const psplit_observer *observer = planner->options.observer;
  if (!observer) return PSPLIT_OK;
  if (planner->facts & PSPLIT_I_FACT_STAGES) PSPLIT_TRY(psplit_i_plan_make(planner, diag));
  code = observer->after_pass(observer->user, planner, pass, diag);
out:
  return code;
}

/* One pass, unless the caller has enough: what a pass that was cut short says is of no use. */
static psplit_code call(psplit_planner *planner, const psplit_i_pass *pass,
                        const psplit_i_option_value *values, psplit_diag *diag) {
  const volatile int *cancel = planner->options.cancel;
  psplit_diag own = {0};
  psplit_code code = psplit_i_go_on(cancel, diag);
  if (code != PSPLIT_OK) return code;
  code = pass->plugin ? psplit_i_plugin_run(planner, pass, values, &own)
                      : pass->run(planner, values, &own);
  if (psplit_i_cancelled(cancel)) return psplit_i_interrupted(diag);
  return code == PSPLIT_OK ? code : psplit_i_fail_as(diag, &own);
}

static psplit_code run_pass(psplit_planner *planner, const psplit_i_pass *pass,
                            const psplit_i_option_value *values, unsigned depth,
                            psplit_diag *diag) {
  psplit_code code;
  if (depth > psplit_i_n_passes)
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "pass %s needs what needs it", pass->name);
  PSPLIT_TRY(establish(planner, pass->needs, depth, diag));
  psplit_i_say(planner->options.logger, PSPLIT_PROGRESS, "pass %s", pass->name);
  planner->plan_holds = false;
  PSPLIT_TRY(call(planner, pass, values, diag));
  psplit_i_arena_reset(&planner->scratch);
  planner->facts = (planner->facts & pass->keeps) | pass->makes;
  if (ALWAYS_CHECK || planner->options.verify_each) {
    if (planner->facts & PSPLIT_I_FACT_GROUPS) PSPLIT_TRY(psplit_i_check_groups(planner, diag));
    if (planner->facts & PSPLIT_I_FACT_STAGES) PSPLIT_TRY(psplit_i_check_stages(planner, diag));
  }
  planner->last_pass = pass->name;
  PSPLIT_TRY(observe(planner, pass->name, diag));
out:
  if (code == PSPLIT_INTERNAL) psplit_i_diag_context(diag, "after pass %s", pass->name);
  return code;
}

static psplit_code no_step(const psplit_i_pass_pipeline *pipeline, psplit_subject subject,
                           const char *name, psplit_diag *diag) {
  const char *names[PSPLIT_I_MAX_STEPS];
  psplit_i_text known = {0};
  for (size_t s = 0; s < pipeline->n_steps; s++) names[s] = pipeline->steps[s].pass->name;
  psplit_i_add_names(&known, "it has", name, names, (uint32_t)pipeline->n_steps);
  const psplit_code code =
    known.failed
      ? psplit_i_nomem(diag)
      : psplit_i_fail_about(diag, PSPLIT_USAGE, (psplit_i_advice){.subject = subject},
                            "the pipeline has no pass \"%s\" to stop at%s", name, known.bytes);
  psplit_i_text_fini(&known);
  return code;
}

/* How many steps of the pipeline to run. */
static psplit_code find_end(const psplit_planner_options *options,
                            const psplit_i_pass_pipeline *pipeline, psplit_diag *diag,
                            size_t *out_n_steps) {
  const char *names[] = {options->stop_before, options->stop_after};
  *out_n_steps = pipeline->n_steps;
  for (size_t after = 0; after < 2; after++) {
    size_t s = 0;
    if (!names[after]) continue;
    while (s < pipeline->n_steps && strcmp(pipeline->steps[s].pass->name, names[after]) != 0) s++;
    if (s == pipeline->n_steps)
      return no_step(pipeline, after ? PSPLIT_SUBJECT_STOP_AFTER : PSPLIT_SUBJECT_NONE,
                     names[after], diag);
    if (s + after < *out_n_steps) *out_n_steps = s + after;
  }
  return PSPLIT_OK;
}

psplit_code psplit_planner_run(psplit_planner *planner, const char *text, psplit_diag *diag) {
  psplit_code code;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_pass_pipeline pipeline;
  PSPLIT_TRY(psplit_i_pipeline_parse(
    planner->options.plugins, text ? text : psplit_default_pipeline(), &arena, diag, &pipeline));
  size_t n_steps;
  PSPLIT_TRY(psplit_i_plan_budget_begin(planner, diag));
  planner->plan_holds = false;
  PSPLIT_TRY(find_end(&planner->options, &pipeline, diag, &n_steps));
  for (size_t s = 0; s < n_steps; s++)
    PSPLIT_TRY(run_pass(planner, pipeline.steps[s].pass, pipeline.steps[s].values, 0, diag));
  /* The stages that leave here are checked whatever the build. */
  if (!planner->plan_holds) planner->plan = NULL;
  if (planner->facts & PSPLIT_I_FACT_STAGES) {
    PSPLIT_TRY(
      establish(planner, PSPLIT_I_FACT_SHAPES | PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE, 0, diag));
    PSPLIT_TRY(psplit_i_check_stages(planner, diag));
    if (!planner->plan) PSPLIT_TRY(psplit_i_plan_make(planner, diag));
  }
out:
  psplit_i_arena_fini(&arena);
  return code;
}
