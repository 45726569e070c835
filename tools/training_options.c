#include "training_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void training_options_init(training_options *options) {
  *options = (training_options){0};
  psplit_training_form_init(&options->form);
  options->form.optimizer = "adamw";
  options->what.train = options->train;
  options->what.freeze = options->freeze;
  options->what.gradient_of = options->gradient_of;
}

static bool weights_option(const cli *program, training_options *o, const char *argument) {
  int which;
  if (!cli_choice(program, "trained-weights", argument, &which)) return false;
  o->form.weights = which ? PSPLIT_WEIGHTS_INPUT : PSPLIT_WEIGHTS_DEFAULT;
  return true;
}

static bool recompute_option(const cli *program, training_options *o, const char *argument) {
  int which;
  if (!cli_choice(program, "recompute", argument, &which)) return false;
  o->form.recompute = (psplit_recompute)which;
  return true;
}

static bool weight_gradients_option(const cli *program, training_options *o, const char *argument) {
  int which;
  if (!cli_choice(program, "weight-gradients", argument, &which)) return false;
  o->form.weight_gradients = (psplit_weight_gradients)which;
  return true;
}

static bool batch_norm_option(const cli *program, training_options *o, const char *argument) {
  int which;
  if (!cli_choice(program, "batch-norm", argument, &which)) return false;
  o->what.batch_norm = which ? PSPLIT_BATCH_NORM_FROZEN : PSPLIT_BATCH_NORM_TRAIN;
  return true;
}

static bool dropout_option(const cli *program, training_options *o, const char *argument) {
  int which;
  if (!cli_choice(program, "dropout", argument, &which)) return false;
  o->what.dropout = which ? PSPLIT_DROPOUT_FROZEN : PSPLIT_DROPOUT_TRAIN;
  return true;
}

static bool take_option(const cli *program, training_options *o, int id, const char *argument,
                        bool *out_taken) {
  *out_taken = true;
  switch (id) {
    case TRAINING: o->enabled = true; return true;
    case TRAINING_LOSS: o->what.loss = argument; return true;
    case TRAINING_LOSS_OUTPUT: o->what.loss_output = argument; return true;
    case TRAINING_TRAIN:
      return cli_repeated(program, "train", argument, o->train, TRAINING_MAX_PATTERNS,
                          &o->what.n_train);
    case TRAINING_FREEZE:
      return cli_repeated(program, "freeze", argument, o->freeze, TRAINING_MAX_PATTERNS,
                          &o->what.n_freeze);
    case TRAINING_PRINT: o->print = true; return true;
    case TRAINING_GRADIENT_OF:
      return cli_repeated(program, "gradient-of", argument, o->gradient_of, TRAINING_MAX_PATTERNS,
                          &o->what.n_gradient_of);
    case TRAINING_OPTIMIZER:
      o->form.optimizer = strcmp(argument, "none") == 0 ? NULL : argument;
      return true;
    case TRAINING_BATCH_NORM: return batch_norm_option(program, o, argument);
    case TRAINING_LOWER: o->lower = argument; return true;
    case TRAINING_INFO: o->info = argument; return true;
    case TRAINING_DROPOUT: return dropout_option(program, o, argument);
    case TRAINING_RECOMPUTE: return recompute_option(program, o, argument);
    case TRAINING_WEIGHT_GRADIENTS: return weight_gradients_option(program, o, argument);
    case TRAINING_WEIGHTS: return weights_option(program, o, argument);
    default: *out_taken = false; return true;
  }
}

/* Takes one of these options; *out_taken: whether `id` is one. */
static bool training_option(const cli *program, training_options *o, int id, const char *argument,
                            bool *out_taken) {
  const bool good = take_option(program, o, id, argument, out_taken);
  const bool alone = id == TRAINING || id == TRAINING_LOWER || id == TRAINING_INFO;
  if (*out_taken && !alone && !o->given) o->given = cli_option_name(program, id);
  return good;
}

bool plan_or_training_option(const cli *program, training_options *options, plan_options *plan,
                             int id, char *argument) {
  bool taken;
  if (!training_option(program, options, id, argument, &taken)) return false;
  return taken || plan_option(program, plan, id, argument);
}

int training_check(const cli *program, const training_options *o) {
  if (o->given && !o->enabled) return cli_usage(program, "--%s needs --training", o->given);
  if ((o->lower && strcmp(o->lower, "-") == 0) || (o->info && strcmp(o->info, "-") == 0))
    return cli_usage(program,
                     "models cannot be written to standard output; ./- is a file of that name");
  if (o->info && (!o->enabled || !o->form.optimizer))
    return cli_usage(program, "--training-info needs --training with an optimizer");
  if (o->lower && o->enabled)
    return cli_usage(
      program, "--lower-gradient and --training cannot be combined: train the file that it writes");
  if (o->enabled && !o->what.loss == !o->what.loss_output)
    return cli_usage(program, "--training needs either --loss or --loss-output");
  return 0;
}

psplit_code training_lower(const training_options *o, const psplit_model *model, bool quiet,
                           psplit_diag *diag) {
  uint32_t n;
  const psplit_code code = psplit_lower_gradients(model, o->lower, diag, &n);
  if (code == PSPLIT_OK && !quiet)
    printf("%s: %" PRIu32 " Gradient node%s lowered\n", o->lower, n, n == 1 ? "" : "s");
  return code;
}

psplit_code training_write_info(const training_options *o, const psplit_model *model,
                                const psplit_logger *logger, psplit_diag *diag) {
  psplit_gradient *gradient = NULL;
  psplit_code code = psplit_gradient_create(model, &o->what, logger, diag, &gradient);
  if (code == PSPLIT_OK)
    code = psplit_gradient_write_training_info(gradient, o->form.optimizer, o->info, diag);
  psplit_gradient_destroy(gradient);
  return code;
}

void training_print(const psplit_training *training) {
  const psplit_gradient *gradient = psplit_training_gradient(training);
  char name[160];
  for (uint32_t i = 0; i < psplit_gradient_n_trainables(gradient); i++) {
    const psplit_trainable t = psplit_gradient_trainable(gradient, i);
    if (t.is_input || t.next) continue;
    printf("%s%s\n", cli_printable(t.name, name, sizeof name),
           t.gradient ? "" : "  (the loss does not depend on it)");
  }
}

static psplit_code print_stages(const psplit_training *training, const psplit_plan *plan, FILE *out,
                                psplit_diag *diag) {
  static const char *const recomputes[] = {"?", "none", "heavy", "all"};
  char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT], d[CLI_TEXT];
  psplit_training_stage *stages = calloc(plan->n_stages, sizeof *stages);
  if (!stages) return cli_nomem(diag);
  const psplit_code code = psplit_training_stages(training, plan, diag, stages);
  if (code == PSPLIT_OK)
    fprintf(out,
            "\ntraining by %s, recompute %s\nstage   forward     again  backward      stash of a "
            "micro-batch\n",
            psplit_plan_is_fill_drain(plan) ? "fill-drain" : "1F1B",
            recomputes[psplit_training_recompute(training)]);
  for (uint32_t s = 0; s < plan->n_stages && code == PSPLIT_OK; s++)
    fprintf(out, "%5" PRIu32 " %9s %9s %9s %10s\n", s, cli_time(stages[s].forward_ns, a),
            cli_time(stages[s].again_ns, b), cli_time(stages[s].backward_ns, c),
            cli_bytes(stages[s].stash_bytes, d));
  free(stages);
  return code;
}

/* That of the plan first. */
static psplit_code print_schedules(const psplit_training *training, const training_options *o,
                                   const psplit_plan *plan, uint32_t n_micro_batches, FILE *out,
                                   psplit_diag *diag) {
  typedef struct order {
    psplit_schedule_kind kind;
    const char *name;
  } order;
  static const order KNOWN[] = {{PSPLIT_SCHEDULE_1F1B, "1F1B"},
                                {PSPLIT_SCHEDULE_FILL_DRAIN, "fill-drain"},
                                {PSPLIT_SCHEDULE_ZERO_BUBBLE, "ZB-H1"}};
  const size_t n_schedules = o->form.weight_gradients == PSPLIT_WEIGHT_GRADIENTS_APART ? 3 : 2;
  const int first = psplit_plan_is_fill_drain(plan);
  const order schedules[] = {KNOWN[first], KNOWN[!first], KNOWN[2]};
  fprintf(out, "a step of %" PRIu32 " micro-batch%s:", n_micro_batches,
          n_micro_batches == 1 ? "" : "es");
  for (size_t i = 0; i < n_schedules; i++) {
    psplit_schedule *schedule;
    char time[CLI_TEXT], bytes[CLI_TEXT];
    uint64_t most = 0;
    const psplit_code code =
      psplit_training_schedule(training, plan, schedules[i].kind, n_micro_batches, diag, &schedule);
    if (code != PSPLIT_OK) return code;
    for (uint32_t s = 0; s < plan->n_stages; s++)
      if (schedule->peak_bytes[s] > most) most = schedule->peak_bytes[s];
    fprintf(out, "%s %s %s, bubble %.1f %%, stash %s", i ? ";" : "", schedules[i].name,
            cli_time(schedule->makespan_ns, time), 100 * schedule->bubble_frac,
            cli_bytes(most, bytes));
    psplit_schedule_destroy(schedule);
  }
  fputs("\n", out);
  return PSPLIT_OK;
}

/* A weight that updates change. */
static bool is_updated(const psplit_trainable *t) {
  return !t->is_input && !t->next && t->gradient;
}

static void print_weights(const psplit_training *training, const training_options *o, FILE *out) {
  enum { SHOWN = 6 };
  const psplit_gradient *gradient = psplit_training_gradient(training);
  char name[160];
  uint32_t n = 0, shown = 0;
  for (uint32_t i = 0; i < psplit_gradient_n_trainables(gradient); i++) {
    const psplit_trainable t = psplit_gradient_trainable(gradient, i);
    n += is_updated(&t);
  }
  fprintf(out, "trains %" PRIu32 " weight%s with %s:", n, n == 1 ? "" : "s",
          o->form.optimizer ? o->form.optimizer : "no optimizer");
  for (uint32_t i = 0; i < psplit_gradient_n_trainables(gradient) && shown < SHOWN; i++) {
    const psplit_trainable t = psplit_gradient_trainable(gradient, i);
    if (!is_updated(&t)) continue;
    fprintf(out, "%s %s", shown++ ? "," : "", cli_printable(t.name, name, sizeof name));
  }
  fprintf(out, "%s\n", n > SHOWN ? ", ... (--print-trainable lists them)" : "");
}

psplit_code training_report(const psplit_training *training, const training_options *o,
                            const psplit_plan *plan, uint32_t n_micro_batches, FILE *out,
                            psplit_diag *diag) {
  psplit_code code = print_stages(training, plan, out, diag);
  if (code == PSPLIT_OK) code = print_schedules(training, o, plan, n_micro_batches, out, diag);
  if (code == PSPLIT_OK) print_weights(training, o, out);
  return code;
}
