/* Training: the backward pass of a model as an ordinary ONNX model.
 *
 * From a model, a loss and a choice of weights three models are made, all of standard operators:
 *   forward   the model with the loss at its end; beside its own outputs it gives the stash, the
 *             values that the backward pass reads. Trained weights are inputs.
 *   backward  opset 18: the stash, the trainable weights and loss.grad in, gradients out
 *   update    opset 18: weights, gradients and the optimizer's state in, new weights and state out
 * docs/training.md says what can be differentiated and what is refused. */
#ifndef PSPLIT_GRADIENT_H
#define PSPLIT_GRADIENT_H

#include <psplit/model.h>
#include <psplit/random.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_gradient psplit_gradient;

/* Mode of BatchNormalization. */
typedef enum psplit_batch_norm {
  PSPLIT_BATCH_NORM_AS_IS, /* as each node says */
  PSPLIT_BATCH_NORM_TRAIN, /* by the statistics of the batch */
  PSPLIT_BATCH_NORM_FROZEN /* by the statistics that the model has */
} psplit_batch_norm;

/* Mode of Dropout. */
typedef enum psplit_dropout {
  PSPLIT_DROPOUT_AS_IS, /* as each node says */
  PSPLIT_DROPOUT_TRAIN, /* always */
  PSPLIT_DROPOUT_FROZEN /* never */
} psplit_dropout;

typedef struct psplit_training_options {
  /* What is minimised, one of:
   *   softmax-cross-entropy:logits=L,labels=Y[,ignore=-100][,axis=1]
   *   mse:prediction=P,target=T
   *   bce-with-logits:logits=L,labels=Y
   * The first name may be left out where the model has one output. The second is a value of the
   * model or a new input. NULL where loss_output is given. */
  const char *loss;
  const char *loss_output; /* a value of the model that is the loss already: one element */
  /* Names of initializers, or else shell patterns for them. Without `train`: the floating-point
   * initializers in the position of operator parameters, or if there are none, the Constant nodes
   * there; `freeze` excludes from either. Constants are named by their outputs, and become
   * initializers of the generated models. */
  const char *const *train;
  size_t n_train;
  const char *const *freeze;
  size_t n_freeze;
  bool train_names; /* `train` is an exact list of names; `freeze` must be empty */
  /* Inputs of the model to compute gradients for as well. */
  const char *const *gradient_of;
  size_t n_gradient_of;
  /* The backward model adds the gradients of weights to previous values, which become inputs. So
   * micro-batches are summed in order. Contributions of several nodes to the gradient of one weight
   * are summed separately, so that stages need not exchange a sum for every micro-batch. */
  bool accumulate;
  psplit_batch_norm batch_norm;
  psplit_dropout dropout;
} psplit_training_options;

/* Differentiates a model. `logger` receives warnings about weights that the loss does not depend
 * on, and about what looks like an export for inference. The model is read again from its file and
 * may be closed before *out_gradient, which the caller owns. Errors: USAGE (an invalid option: no
 * such value, a pattern that matches nothing), UNSUPPORTED (no rule for a node on the path from the
 * loss to a weight: the message names node, operator and weight; a node on that path is random
 * without a mask), IO, NOMEM. O(nodes). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_gradient_create(
  const psplit_model *model, const psplit_training_options *options, const psplit_logger *logger,
  psplit_diag *diag, psplit_gradient **out_gradient);
PSPLIT_API void psplit_gradient_destroy(psplit_gradient *gradient);

/* Contribution of some uses of a weight to its gradient: an output of the backward model, and the
 * input that it is added to. */
typedef struct psplit_gradient_part {
  const char *gradient, *before;
} psplit_gradient_part;

/* A tensor to compute a gradient for. Strings and lists live as long as the psplit_gradient. */
typedef struct psplit_trainable {
  const char *name;
  const char *gradient; /* output of the backward model; NULL: the loss does not depend on it */
  const char *before;   /* input that it is added to; NULL without `accumulate` and of inputs */
  bool is_input;        /* from gradient_of */
  uint64_t n_elements;  /* 0 of inputs */
  /* With `accumulate`, for a weight with several uses: the rest of its gradient, which the update
   * adds. `gradient` is that of the last use; these follow in order towards the first. There are at
   * most four sums per weight; beyond that, adjacent uses share one. */
  const psplit_gradient_part *more;
  uint32_t n_more;
  /* Not NULL: not a weight but a state that the forward model updates, the running mean or variance
   * of a BatchNormalization in training mode. It is an input like a weight, and replaced by this
   * output after each micro-batch. It has no gradient. */
  const char *next;
} psplit_trainable;

/* Trained tensors, and states (with `next`): index 0 .. n_trainables - 1. Strings are valid until
 * `gradient` is destroyed. */
PSPLIT_API uint32_t psplit_gradient_n_trainables(const psplit_gradient *gradient);
PSPLIT_API psplit_trainable psplit_gradient_trainable(const psplit_gradient *gradient,
                                                      uint32_t index);
/* Names of the loss in the forward model, and of the factor of its gradient in the backward
 * model. */
PSPLIT_API const char *psplit_gradient_loss(const psplit_gradient *gradient);
PSPLIT_API const char *psplit_gradient_loss_gradient(const psplit_gradient *gradient);

/* Values passed from the forward to the backward model: outputs of the former and inputs of the
 * latter, with the same name. Inputs of the forward model that the backward model reads are not
 * included. */
PSPLIT_API uint32_t psplit_gradient_n_stashed(const psplit_gradient *gradient);
PSPLIT_API const char *psplit_gradient_stashed(const psplit_gradient *gradient, uint32_t index);

/* Inputs of the forward and the backward model that replace random numbers: Dropout in training
 * becomes Where(mask, x / (1 - ratio), 0). The caller of the models must provide the same values
 * for both, by psplit/random.h or otherwise. */
typedef struct psplit_mask {
  const char *name; /* of the input */
  const char *node; /* the operator in the model, by name or as #POSITION (OPERATOR) */
  psplit_draw_kind kind;
  double ratio; /* KEEP: fraction that is dropped */
} psplit_mask;

/* 0: no random operators. */
PSPLIT_API uint32_t psplit_gradient_n_masks(const psplit_gradient *gradient);
/* Mask `index`, which is its psplit_draw.number. */
PSPLIT_API psplit_mask psplit_gradient_mask(const psplit_gradient *gradient, uint32_t index);

/* Number of nodes in the main graph of each model. */
PSPLIT_API uint32_t psplit_gradient_n_forward_nodes(const psplit_gradient *gradient);
PSPLIT_API uint32_t psplit_gradient_n_backward_nodes(const psplit_gradient *gradient);
/* Index of the node of the forward model that a node of the backward model was created for. */
PSPLIT_API uint32_t psplit_gradient_twin(const psplit_gradient *gradient, uint32_t backward_node);

/* Representation of trained weights in the forward model. */
typedef enum psplit_weight_form {
  /* Inputs with a default, the original initializer: C and Python can feed others, and without any
   * the model computes what it did before. ONNX Runtime for Node.js cannot feed these. */
  PSPLIT_WEIGHTS_DEFAULT,
  PSPLIT_WEIGHTS_INPUT /* ordinary inputs; the file does not contain their values */
} psplit_weight_form;

/* Write one of the models to `path`, replacing an existing file. External data is referenced by its
 * location, so a model with external data must be written to its own directory. Errors: IO, LIMIT
 * (over 2 GiB), NOMEM; no file is left then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_gradient_write_forward(
  const psplit_gradient *gradient, psplit_weight_form weights, const char *path, psplit_diag *diag);
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_gradient_write_backward(
  const psplit_gradient *gradient, const char *path, psplit_diag *diag);

/* Writes a model without inputs whose outputs are the initial values of the trained weights, by
 * name, for programs that can run models but not read them. Rules for `path` and errors: as
 * above. */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_gradient_write_weights(const psplit_gradient *gradient, const char *path, psplit_diag *diag);

/* optimizer, one of:
 *   sgd[:weight_decay=0]
 *   momentum[:momentum=0.9][,nesterov=0][,weight_decay=0]
 *   adam[:beta1=0.9][,beta2=0.999][,epsilon=1e-8][,weight_decay=0]
 *   adamw[:beta1=0.9][,beta2=0.999][,epsilon=1e-8][,weight_decay=0.01]
 * with the meaning that PyTorch gives them. Inputs: each weight W with its gradient and its state
 * (W.momentum, or W.m and W.v, zero at first), and the scalars `lr`, `step` (1, 2, ..; int64) and
 * `scale`, which gradients are multiplied by. Outputs: W.new, W.momentum.new, W.m.new, W.v.new.
 * Errors: USAGE too. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_gradient_write_update(const psplit_gradient *gradient,
                                                                    const char *optimizer,
                                                                    const char *path,
                                                                    psplit_diag *diag);

/* Writes training as one file, as ONNX specifies it: the model with a TrainingInfoProto whose
 * `algorithm` contains the loss, the backward pass and the update, in the model's own operator set
 * (13 or later), and whose `initialization` sets the optimizer's state. The learning rate is an
 * input, `lr` (float64). No runtime runs such files. For a gradient without `accumulate`. Errors:
 * USAGE (the optimizer's text), UNSUPPORTED (an operator that the operator set lacks, an IR version
 * before 7, a model that already has training_info), IO, LIMIT, NOMEM; no file is left then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_gradient_write_training_info(
  const psplit_gradient *gradient, const char *optimizer, const char *path, psplit_diag *diag);

/* Writes `model` with each Gradient node (ai.onnx.preview.training) of its graph replaced by nodes
 * that compute it, in the model's own operator set (13 or later): the gradient of the sum of `y`
 * with respect to each of `xs`, 0 if y does not depend on it. Inputs of the node must be the
 * tensors that xs or zs bind them to. *out_n: number of replaced nodes. External data is referenced
 * as above. Errors: INVALID (a node that names a missing tensor), UNSUPPORTED (no rule, or none in
 * the model's operator set: the message names the node), IO, LIMIT, NOMEM; no file is left then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_lower_gradients(const psplit_model *model,
                                                              const char *path, psplit_diag *diag,
                                                              uint32_t *out_n);

#ifdef __cplusplus
}
#endif
#endif
