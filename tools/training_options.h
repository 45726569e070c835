/* The options of onnx-pipeline-split that are about training. */
#ifndef PSPLIT_TOOLS_TRAINING_OPTIONS_H
#define PSPLIT_TOOLS_TRAINING_OPTIONS_H

#include <psplit/training.h>

#include "cli.h"
#include "plan_options.h"

enum {
  TRAINING = 4000,
  TRAINING_LOSS,
  TRAINING_LOSS_OUTPUT,
  TRAINING_TRAIN,
  TRAINING_FREEZE,
  TRAINING_PRINT,
  TRAINING_GRADIENT_OF,
  TRAINING_OPTIMIZER,
  TRAINING_WEIGHTS,
  TRAINING_RECOMPUTE,
  TRAINING_WEIGHT_GRADIENTS,
  TRAINING_BATCH_NORM,
  TRAINING_DROPOUT,
  TRAINING_LOWER,
  TRAINING_INFO
};

/* clang-format off */
#define TRAINING_OPTIONS \
  {TRAINING, "training", NULL, "also write backward passes and weight updates for each stage"}, \
  {TRAINING_LOSS, "loss", "LOSS", \
   "softmax-cross-entropy:logits=L,labels=Y[,ignore=N][,axis=N]; mse:prediction=P,target=T; " \
   "bce-with-logits:logits=L,labels=Y"}, \
  {TRAINING_LOSS_OUTPUT, "loss-output", "NAME", \
   "the value of MODEL that is the loss, if it has one"}, \
  {TRAINING_TRAIN, "train", "PATTERN", \
   "train the weights whose name matches (repeatable); default: all parameters of operators"}, \
  {TRAINING_FREEZE, "freeze", "PATTERN", "do not train those whose name matches (repeatable)"}, \
  {TRAINING_BATCH_NORM, "batch-norm", "train|frozen", \
   "normalise by the batch, or by the model's statistics; default: as each node says"}, \
  {TRAINING_DROPOUT, "dropout", "train|frozen", \
   "enable or disable all Dropout nodes; default: as each node says"}, \
  {TRAINING_GRADIENT_OF, "gradient-of", "INPUT", \
   "also output the gradient of an input (repeatable)"}, \
  {TRAINING_OPTIMIZER, "optimizer", "METHOD", \
   "sgd, momentum, adam or adamw (default), with :KEY=VALUE,...; none: no updates"}, \
  {TRAINING_WEIGHTS, "trained-weights", "default|input", \
   "trained weights are graph inputs with their initial value as default (default), or without"}, \
  {TRAINING_RECOMPUTE, "recompute", "auto|none|heavy|all", \
   "activations to recompute in the backward pass; heavy: all but those of matrix products and " \
   "convolutions; default: auto, by memory"}, \
  {TRAINING_WEIGHT_GRADIENTS, "weight-gradients", "together|apart", \
   "compute weight gradients in the backward files (default), or in files that can run later " \
   "(zb-h1)"}
/* Of the command that writes files. */
#define TRAINING_FILE_OPTIONS \
  {TRAINING_PRINT, "print-trainable", NULL, "list the weights that would be trained, and exit"}, \
  {TRAINING_LOWER, "lower-gradient", "FILE", \
   "write MODEL with its Gradient nodes replaced by the nodes that compute them, and exit"}, \
  {TRAINING_INFO, "training-info", "FILE", \
   "with --training: write MODEL with its training graph as training_info, and exit"}
/* clang-format on */

enum { TRAINING_MAX_PATTERNS = 256 };

typedef struct training_options {
  bool enabled, print;
  const char *given;            /* the first option that is for training alone, or NULL */
  const char *lower, *info;     /* a file to write, or NULL */
  psplit_training_options what; /* points into the lists */
  psplit_training_form form;
  const char *train[TRAINING_MAX_PATTERNS];
  const char *freeze[TRAINING_MAX_PATTERNS];
  const char *gradient_of[TRAINING_MAX_PATTERNS];
} training_options;

void training_options_init(training_options *options);
/* Takes one of these, or of plan_options.h. False after an error line, or where `id` is neither. */
bool plan_or_training_option(const cli *program, training_options *options, plan_options *plan,
                             int id, char *argument);
/* Whether they go together: 0, or an exit status after an error line. */
int training_check(const cli *program, const training_options *options);
/* --lower-gradient: writes the file, and says how many nodes there were. */
PSPLIT_MUST_USE psplit_code training_lower(const training_options *options,
                                           const psplit_model *model, bool quiet,
                                           psplit_diag *diag);
/* --training-info: writes the file. */
PSPLIT_MUST_USE psplit_code training_write_info(const training_options *options,
                                                const psplit_model *model,
                                                const psplit_logger *logger, psplit_diag *diag);
/* A line for each trained weight. */
void training_print(const psplit_training *training);
/* What training adds to the report of a plan: times and stash of stages, schedules of a step, and
 * which weights are trained. */
PSPLIT_MUST_USE psplit_code training_report(const psplit_training *training,
                                            const training_options *options,
                                            const psplit_plan *plan, uint32_t n_micro_batches,
                                            FILE *out, psplit_diag *diag);

#endif
