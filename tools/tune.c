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
typedef struct tuning_run {
  const tune_settings *settings;
  plan_options *plan;
  FILE *out; /* NULL: rounds are not printed */
  uint32_t n_rounds;
  const psplit_cost_table *best; /* of them; lent */
} tuning_run;

static void after_round(void *user, const psplit_autotune_round *round) {
  char text[CLI_TEXT];
  tuning_run *run = user;
  FILE *out = run->out;
  run->n_rounds = round->round;
  run->best = round->best;
  if (!out) return;
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
  tuning_run *run = user;
  const tune_settings *s = run->settings;
  if (diag->code == PSPLIT_CANCELLED && run->best) {
    plan_add_costs(run->plan, (psplit_cost_table *)(uintptr_t)run->best); /* nobody frees it now */
    s->go_on(s->user, run->n_rounds);
  }
  _exit(cli_fail(diag));
}

psplit_code tune_run(const tune_settings *s, const tune_split *split, plan_options *plan,
                     psplit_diag *diag, uint32_t *out_n_rounds) {
  const psplit_session session = {.optimization = s->optimization};
  psplit_onnxruntime *ort = NULL;
  planned made = {0};
  psplit_planner_options planner;
  psplit_autotune_options tuning;
  psplit_cost_table *costs;
  tuning_run run = {.settings = s, .plan = plan, .out = split->out};
  psplit_autotune_options_init(&tuning);
  tuning.n_rounds = s->n_rounds;
  tuning.planner = &planner;
  tuning.pipeline = plan->pipeline;
  tuning.read = &plan->read;
  tuning.emit = split->emit;
  tuning.session = &session;
  psplit_feed_options feed = s->feed.options; /* the planner's sizes are those of runs */
  feed.shapes = plan->planner.shapes;
  feed.n_shapes = plan->planner.n_shapes;
  tuning.feed = &feed;
  tuning.max_text_bytes = plan->max_text_bytes;
  tuning.beside = split->directory;
  tuning.after_round = after_round;
  tuning.after_round_user = &run;
  tuning.cancel = s->cancel;
  tuning.keep_best = true;
  tuning.give_up = give_up;
  tuning.give_up_user = &run;
  psplit_code code = planned_prepare(plan, split->n_stages, diag, &made, &planner);
  if (code == PSPLIT_OK) code = ort_library_open(&s->library, diag, &ort);
  cli_doing(plan->planner.n_costs ? "planning" : "profiling the whole model");
  if (code == PSPLIT_OK)
    code = psplit_autotune(ort, split->path, split->model, &tuning, diag, &costs);
  if (code == PSPLIT_OK) plan_add_costs(plan, costs);
  *out_n_rounds = run.n_rounds;
  psplit_onnxruntime_close(ort);
  planned_fini(&made);
  return code;
}
#else
psplit_code tune_run(const tune_settings *s, const tune_split *split, plan_options *plan,
                     psplit_diag *diag, uint32_t *out_n_rounds) {
  (void)s, (void)split, (void)plan, (void)out_n_rounds;
  return psplit_diag_fail(
    diag, PSPLIT_UNSUPPORTED,
    "--autotune runs stages, and this program was built without the runner; build it with "
    "-Druntime=enabled");
}
#endif
