#include "training_options.h"

#include <inttypes.h>
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
  static const char *const forms[] = {"default", "input", NULL};
  int which;
  if (!cli_choice(program, "trained-weights", argument, forms, &which)) return false;
  o->form.weights = which ? PSPLIT_WEIGHTS_INPUT : PSPLIT_WEIGHTS_DEFAULT;
  return true;
}

bool training_option(const cli *program, training_options *o, int id, const char *argument,
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
    case TRAINING_WEIGHTS: return weights_option(program, o, argument);
    default: *out_taken = false; return true;
  }
}

int training_check(const cli *program, const training_options *o) {
  const bool any = o->what.loss || o->what.loss_output || o->what.n_train || o->what.n_freeze ||
                   o->what.n_gradient_of || o->print;
  if (any && !o->enabled)
    return cli_usage(program, "losses, weights to train and gradients are for --training");
  if (o->enabled && !o->what.loss == !o->what.loss_output)
    return cli_usage(program, "--training needs --loss or --loss-output, and one of them alone");
  return 0;
}

void training_print(const psplit_training *training) {
  const psplit_gradient *gradient = psplit_training_gradient(training);
  char name[160];
  for (uint32_t i = 0; i < psplit_gradient_n_trainables(gradient); i++) {
    const psplit_trainable t = psplit_gradient_trainable(gradient, i);
    if (t.is_input) continue;
    printf("%s%s\n", cli_printable(t.name, name, sizeof name),
           t.gradient ? "" : "  (the loss does not depend on it)");
  }
}

void training_report(const psplit_training *training, const training_options *o) {
  enum { SHOWN = 6 };
  const psplit_gradient *gradient = psplit_training_gradient(training);
  char name[160];
  uint32_t n = 0, shown = 0;
  for (uint32_t i = 0; i < psplit_gradient_n_trainables(gradient); i++)
    n += !psplit_gradient_trainable(gradient, i).is_input;
  printf("\ntrains %" PRIu32 " weight%s with %s:", n, n == 1 ? "" : "s",
         o->form.optimizer ? o->form.optimizer : "no optimizer");
  for (uint32_t i = 0; i < psplit_gradient_n_trainables(gradient) && shown < SHOWN; i++) {
    const psplit_trainable t = psplit_gradient_trainable(gradient, i);
    if (t.is_input) continue;
    printf("%s %s", shown++ ? "," : "", cli_printable(t.name, name, sizeof name));
  }
  printf("%s\n", n > SHOWN ? ", ... (--print-trainable lists them)" : "");
}
