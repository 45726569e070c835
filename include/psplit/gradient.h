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

/* How batches are normalised (BatchNormalization). */
typedef enum psplit_batch_norm {
  PSPLIT_BATCH_NORM_AS_IS, /* as each node says */
  PSPLIT_BATCH_NORM_TRAIN, /* by the statistics of the batch */
  PSPLIT_BATCH_NORM_FROZEN /* by the statistics that the model has */
} psplit_batch_norm;

/* Whether Dropout drops. */
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
  /* Names of initializers, or else shell patterns over them. Without `train`, the floating-point
   * initializers that stand where operators have parameters, or where there are none the Constant
   * nodes that do; `freeze` takes away from either. Constants go by the names of their outputs, and
   * are initializers of the models that are made. */
  const char *const *train;
  size_t n_train;
  const char *const *freeze;
  size_t n_freeze;
  bool train_names; /* `train` holds names instead, and they alone are trained; no `freeze` then */
  /* Inputs of the model whose gradient is wanted as well. */
  const char *const *gradient_of;
  size_t n_gradient_of;
  /* The backward model adds the gradients of weights to what they were before, an input of each: so
   * micro-batches are summed in their order, and what several nodes give to the gradient of one
   * weight is summed for each by itself: so stages need not send a sum to each other for every
   * micro-batch. */
  bool accumulate;
  psplit_batch_norm batch_norm;
  psplit_dropout dropout;
} psplit_training_options;

/* Differentiates a model. `logger` hears of weights that the loss does not depend on, and of what
 * looks like an export for inference. The model is
 * read again from its file and may be closed before *out_gradient, which the caller owns.
 * Errors: USAGE (an option that cannot be meant: no such value, a pattern that matches nothing),
 * UNSUPPORTED (no rule for a node on the path from the loss to a weight: the message names node,
 * operator and weight; a node that the loss is made of draws at random by itself), IO, NOMEM.
 * O(nodes). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_gradient_create(
  const psplit_model *model, const psplit_training_options *options, const psplit_logger *logger,
  psplit_diag *diag, psplit_gradient **out_gradient);
PSPLIT_API void psplit_gradient_destroy(psplit_gradient *gradient);

/* What some uses of a weight give to its gradient: an output of the backward model, and the
 * input that it is added to. */
typedef struct psplit_gradient_part {
  const char *gradient, *before;
} psplit_gradient_part;

/* A tensor whose gradient is wanted. Strings and lists live as long as the psplit_gradient. */
typedef struct psplit_trainable {
  const char *name;
  const char *gradient; /* output of the backward model; NULL: the loss does not depend on it */
  const char *before;   /* input that it is added to; NULL without `accumulate` and of inputs */
  bool is_input;        /* from gradient_of */
  uint64_t n_elements;  /* 0 of inputs */
  /* With `accumulate`, of a weight that is used in several places: the rest of its gradient, which
   * the update adds. `gradient` is that of the last use, these follow towards the first. At most
   * four sums are kept of a weight; where it is used more often, neighbours share one. */
  const psplit_gradient_part *more;
  uint32_t n_more;
  /* Not NULL: no weight, but a state that the forward model itself moves, the running mean or
   * variance of a BatchNormalization that trains: an input, like a weight, whose place this output
   * takes after each micro-batch. It has no gradient. */
  const char *next;
} psplit_trainable;

/* What is trained, and states with `next`: index 0 .. n_trainables - 1. Texts are valid until
 * `gradient` is destroyed. */
PSPLIT_API uint32_t psplit_gradient_n_trainables(const psplit_gradient *gradient);
PSPLIT_API psplit_trainable psplit_gradient_trainable(const psplit_gradient *gradient,
                                                      uint32_t index);
/* Name of the loss in the forward model, and of what its gradient is multiplied by in the backward
 * model. */
PSPLIT_API const char *psplit_gradient_loss(const psplit_gradient *gradient);
PSPLIT_API const char *psplit_gradient_loss_gradient(const psplit_gradient *gradient);

/* Values that go from the forward to the backward model: outputs of the one, inputs of the other,
 * by the same name. Inputs of the forward model that the backward model reads are not among them.
 */
PSPLIT_API uint32_t psplit_gradient_n_stashed(const psplit_gradient *gradient);
PSPLIT_API const char *psplit_gradient_stashed(const psplit_gradient *gradient, uint32_t index);

/* Inputs of the forward and the backward model in place of what random operators draw: Dropout in
 * training becomes Where(mask, x / (1 - ratio), 0). Who runs the models fills them, by
 * psplit/random.h or otherwise, for both alike. */
typedef struct psplit_mask {
  const char *name; /* of the input */
  const char *node; /* the operator in the model, by name or as #POSITION (OPERATOR) */
  psplit_draw_kind kind;
  double ratio; /* KEEP: what is dropped of all */
} psplit_mask;

/* 0: nothing draws at random. */
PSPLIT_API uint32_t psplit_gradient_n_masks(const psplit_gradient *gradient);
/* Mask `index`, which is its `number` where numbers are drawn. */
PSPLIT_API psplit_mask psplit_gradient_mask(const psplit_gradient *gradient, uint32_t index);

/* Nodes of the main graphs of both models. */
PSPLIT_API uint32_t psplit_gradient_n_forward_nodes(const psplit_gradient *gradient);
PSPLIT_API uint32_t psplit_gradient_n_backward_nodes(const psplit_gradient *gradient);
/* Node of the forward model, by position, that a node of the backward model was made for. */
PSPLIT_API uint32_t psplit_gradient_twin(const psplit_gradient *gradient, uint32_t backward_node);

/* What trained weights are in the forward model. */
typedef enum psplit_weight_form {
  /* Inputs that have a default, the model's own initializer: C and Python feed others, and without
   * any the model computes what it did. ONNX Runtime for Node.js cannot feed these. */
  PSPLIT_WEIGHTS_DEFAULT,
  PSPLIT_WEIGHTS_INPUT /* inputs like any other; nothing of their values is in the file */
} psplit_weight_form;

/* Write one of the models to `path`, replacing a file that is there. External data is referred to
 * by its location, so a model that has some is written into its own directory.
 * Errors: IO, LIMIT (over 2 GiB), NOMEM; nothing is left then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_gradient_write_forward(
  const psplit_gradient *gradient, psplit_weight_form weights, const char *path, psplit_diag *diag);
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_gradient_write_backward(
  const psplit_gradient *gradient, const char *path, psplit_diag *diag);

/* A model without inputs whose outputs are the trained weights, by their names: their first values,
 * for who can run models but not read them. Rules for `path` and errors: as for the others. */
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

/* Writes all of training as one file, as ONNX describes it: the model with a TrainingInfoProto
 * whose `algorithm` holds the loss, the backward pass and the update, in the model's own operator
 * set (13 or later); `initialization` gives the optimizer's state its first values. The learning
 * rate is an input, `lr` (float64). No runtime runs such files. For a gradient without
 * `accumulate`. Errors: USAGE (the optimizer's text), UNSUPPORTED (an operator that the model's set
 * does not have, an IR version before 7, a model that has training_info), IO, LIMIT, NOMEM; nothing
 * is left then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_gradient_write_training_info(
  const psplit_gradient *gradient, const char *optimizer, const char *path, psplit_diag *diag);

/* Writes `model` with each node Gradient of ai.onnx.preview.training in its graph replaced by the
 * nodes that compute it, in the model's own operator set (13 or later): the gradient of the sum of
 * `y` to each of `xs`, 0 where y does not depend on it. An input of the node has to be the tensor
 * that xs or zs binds it to. *out_n: how many there were. External data is referred to as above.
 * Errors: INVALID (a node that names what is not there), UNSUPPORTED (no rule, or none in the
 * model's operator set: the message names the node), IO, LIMIT, NOMEM; nothing is left then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_lower_gradients(const psplit_model *model,
                                                              const char *path, psplit_diag *diag,
                                                              uint32_t *out_n);

#ifdef __cplusplus
}
#endif
#endif
