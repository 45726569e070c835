#include "tune.h"

#include <inttypes.h>
#include <unistd.h>

#if PSPLIT_HAS_RUNTIME
#include <psplit/profile.h>
#endif

void tune_init(tune_settings *s) {
  *s = (tune_settings){.optimization = 99};
#if PSPLIT_HAS_RUNTIME
  feed_init(&s->feed);
#endif
}

void tune_fini(tune_settings *s) {
#if PSPLIT_HAS_RUNTIME
  feed_fini(&s->feed);
#endif
  (void)s;
}

#if PSPLIT_HAS_RUNTIME
static void print_round(void *user, const psplit_autotune_round *round) {
  char text[CLI_TEXT];
  FILE *out = user;
  cli_make_room();
  if (round->round == 1) fputs("round  imbalance   predicted  measured stages\n", out);
  fprintf(out, "%5" PRIu32 " %8.1f %% %11s ", round->round, 100 * round->imbalance_frac,
          cli_time(round->predicted_ns, text));
  for (uint32_t s = 0; s < round->n_stages; s++)
    fprintf(out, " %s", cli_time(round->measured_ns[s], text));
  fputs("\n", out);
  fflush(out);
}

/* Ends the process, and so the threads that are left. */
static void give_up(void *user, const psplit_diag *diag) {
  const tune_settings *s = user;
  const int number = *s->interrupted, status = cli_fail(diag);
  _exit(number ? 128 + number : status);
}

psplit_code tune_run(const tune_settings *s, const char *path, const psplit_model *model,
                     uint32_t n_stages, const psplit_emit_options *emit, const char *directory,
                     FILE *out, psplit_diag *diag, plan_options *plan) {
  const psplit_session session = {.optimization = s->optimization};
  psplit_onnxruntime *ort = NULL;
  planned made = {0};
  psplit_planner_options planner;
  psplit_autotune_options tuning;
  psplit_cost_table *costs;
  psplit_autotune_options_init(&tuning);
  tuning.n_rounds = s->n_rounds;
  tuning.planner = &planner;
  tuning.pipeline = plan->pipeline;
  tuning.read = &plan->read;
  tuning.emit = emit;
  tuning.session = &session;
  psplit_feed_options feed = s->feed.options; /* the planner's sizes are those of runs */
  feed.shapes = plan->planner.shapes;
  feed.n_shapes = plan->planner.n_shapes;
  tuning.feed = &feed;
  tuning.max_text_bytes = plan->max_text_bytes;
  tuning.beside = directory;
  tuning.after_round = out ? print_round : NULL;
  tuning.after_round_user = out;
  tuning.cancel = s->interrupted;
  tuning.give_up = give_up;
  tuning.give_up_user = (void *)(uintptr_t)s;
  psplit_code code = planned_prepare(plan, n_stages, diag, &made, &planner);
  if (code == PSPLIT_OK) code = psplit_onnxruntime_open(s->onnxruntime, diag, &ort);
  cli_doing(plan->planner.n_costs ? "planning" : "profiling the whole model");
  if (code == PSPLIT_OK) code = psplit_autotune(ort, path, model, &tuning, diag, &costs);
  if (code == PSPLIT_OK) plan_add_costs(plan, costs);
  psplit_onnxruntime_close(ort);
  planned_fini(&made);
  return code;
}
#else
psplit_code tune_run(const tune_settings *s, const char *path, const psplit_model *model,
                     uint32_t n_stages, const psplit_emit_options *emit, const char *directory,
                     FILE *out, psplit_diag *diag, plan_options *plan) {
  (void)s, (void)path, (void)model, (void)n_stages, (void)emit, (void)directory, (void)out;
  (void)plan;
  return psplit_diag_fail(
    diag, PSPLIT_UNSUPPORTED,
    "--autotune runs stages, and this program was built without the runner; build it with "
    "-Druntime=enabled");
}
#endif
