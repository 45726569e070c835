/* A training stage: its sessions, its weights, and the state of micro-batches in flight.
 * Independent of schedules and other stages. */
#ifndef PSPLIT_RUNTIME_TRAIN_LEARNER_H
#define PSPLIT_RUNTIME_TRAIN_LEARNER_H

#include "feeding.h"
#include "queue.h"
#include "watch.h"
#include "wiring.h"

/* Where an input of a file comes from. */
typedef enum psplit_i_origin {
  PSPLIT_I_ORIGIN_DATA,     /* index: input of the model */
  PSPLIT_I_ORIGIN_WIRE,     /* index: of all tensors that come in this way */
  PSPLIT_I_ORIGIN_WEIGHT,   /* index: trained weight */
  PSPLIT_I_ORIGIN_STASH,    /* index: row of the stash */
  PSPLIT_I_ORIGIN_AGAIN,    /* index: output of the file that computes again */
  PSPLIT_I_ORIGIN_BACKWARD, /* index: output of the stage's own `backward` */
  PSPLIT_I_ORIGIN_KEPT,     /* index: what the backward piece kept for gradients of weights */
  PSPLIT_I_ORIGIN_LOSS,     /* what the loss counts */
  PSPLIT_I_ORIGIN_GRADIENT, /* index: gradient; what it is so far */
  PSPLIT_I_ORIGIN_STATE,    /* index: row of what the update keeps */
  PSPLIT_I_ORIGIN_RATE,
  PSPLIT_I_ORIGIN_SCALE,
  PSPLIT_I_ORIGIN_STEP
} psplit_i_origin;

typedef struct psplit_i_learner_input {
  psplit_i_origin origin;
  uint32_t index;
} psplit_i_learner_input;

/* A file of the stage, opened; file NULL: there is none. */
typedef struct psplit_i_learner_file {
  const char *file;
  psplit_i_session session;
  uint32_t n_inputs, n_outputs;
  const char **input_names, **output_names;
  psplit_i_learner_input *inputs;
  psplit_i_tensor **given; /* [n_inputs] borrowed */
  psplit_i_tensor **got;   /* [n_outputs] */
} psplit_i_learner_file;

/* Of a micro-batch between its forward and its last backward piece. */
typedef struct psplit_i_held {
  psplit_i_tensor **data;  /* [inputs of the model] */
  psplit_i_tensor **stash; /* [rows of the stash] */
  psplit_i_tensor **kept;  /* [n_kept] between its two backward pieces */
  bool perturbed;          /* weights are moved for its pieces, as drawn for ... */
  uint32_t step, sample;   /* ... these */
} psplit_i_held;

typedef struct psplit_i_learner {
  uint32_t index;
  const psplit_i_ort *ort;
  const psplit_i_pipe *pipe;
  const psplit_i_wiring *wiring;
  const psplit_i_session_options *session;
  const psplit_i_feeding *feeding;
  psplit_i_watch *watch;
  uint32_t n_micro_batches; /* of this replica, each sample of smoothing counted */
  uint32_t replica, n_replicas;
  double gamma;       /* of smoothing, 0: weights stay where they are */
  uint32_t n_samples; /* for which each micro-batch of data is run, one behind the other */
  uint64_t seed;
  const psplit_i_training_parts *parts; /* of the manifest */
  psplit_i_arena arena;
  psplit_i_learner_file forward, again, backward, weight_gradients, update;
  uint32_t n_essential;       /* outputs of `forward` before those for the stash alone */
  uint32_t loss;              /* output of `forward` that is the loss, or PSPLIT_NONE */
  psplit_i_tensor **received; /* [tensors that come in] by wire; of the piece at hand */
  uint32_t n_received;
  bool *reads;         /* [inputs of the model] */
  uint32_t *wire_base; /* [wires] first of a wire's tensors in `received` */
  /* [wires][tensors] of what goes out: outputs of `forward` or `backward`; of weights and of
   * gradients, in and out: these. */
  uint32_t **wire_tensors;
  bool *stash_is_input;      /* [n_stash] kept as it was given, not an output */
  uint32_t *stash_at;        /* [n_stash] position of it in `forward` */
  uint32_t n_gradients;      /* of all weights of the manifest, one after the other */
  uint32_t *first_gradient;  /* [weights + 1] of a weight */
  uint32_t *gradient_weight; /* [gradients] of which weight it is */
  /* [gradients] output of `backward`, of `weight_gradients`; or PSPLIT_NONE */
  uint32_t *gradient_at[PSPLIT_I_N_HALVES];
  /* What `weight_gradients` takes that is there with the backward piece alone: */
  uint32_t n_kept;
  psplit_i_learner_input *kept_from; /* [n_kept] AGAIN, BACKWARD or WIRE */
  bool again_later; /* what is computed again is for `weight_gradients` alone, and run with it */
  bool later_needs_weights;       /* it, or that, reads weights */
  bool *later_stash, *later_data; /* [n_stash], [inputs of the model] it, or that, reads */
  uint32_t *next_at;              /* [weights] of a state: output of `forward`; else PSPLIT_NONE */
  uint32_t *kept_weight;          /* [update.n_kept] trained weight, PSPLIT_NONE: a state */
  psplit_i_tensor **weights;      /* [weights of the manifest] NULL: not of this stage */
  psplit_i_tensor **before;       /* [weights of the manifest] copies of states; else NULL */
  /* [weights of the manifest] perturbed, for the piece at hand; ones without gradient NULL. */
  psplit_i_tensor **perturbed;
  bool has_drawn; /* they are those of ... */
  uint32_t drawn_step, drawn_sample;
  psplit_i_tensor **sums;   /* [gradients] so far; NULL: zeros, or not of this stage */
  psplit_i_tensor **states; /* [n_kept] NULL for weights */
  psplit_i_held *held;      /* [n_micro_batches] */
  uint32_t n_held;          /* micro-batches under way */
  uint64_t held_bytes;      /* of their stashes */
} psplit_i_learner;

/* Sets reads[manifest inputs] where a stage reads this input of the model; the rest stays. */
void psplit_i_learner_needs(const psplit_i_pipe *pipe, uint32_t stage, bool *reads);

/* With all before `parts` set: opens its files, and makes its first weights, with states of
 * zeros. To be closed in any case. Errors: those of sessions; INVALID (a file without what the
 * manifest says); NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_open(psplit_i_learner *learner, psplit_diag *diag);
void psplit_i_learner_close(psplit_i_learner *learner); /* a zeroed one is fine */

/* Takes the tensors of a bundle that came by `wire`, before a piece, or as new weights. */
void psplit_i_learner_take(psplit_i_learner *learner, uint32_t wire, psplit_i_bundle *bundle);
/* Fills a bundle for `wire` after a piece, or with weights. */
void psplit_i_learner_give(const psplit_i_learner *learner, uint32_t wire, psplit_i_bundle *bundle);

/* Reads the data of micro-batch m of `step`; of PSPLIT_I_SET_EVAL m is 0. Errors: those of
 * psplit_i_feeding_get. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_feed(psplit_i_learner *learner, psplit_i_feed_set set,
                                                  uint64_t step, uint32_t m, psplit_diag *diag);
/* Its forward piece; *out_loss, where the loss arises here, else 0. Of PSPLIT_I_SET_EVAL nothing is
 * kept. psplit_i_learner_drop_results is for after what was given. Errors: those of
 * psplit_i_session_run, of perturbed weights those of psplit_i_tensor_make; UNSUPPORTED (the loss
 * is no number), INTERNAL (no tensor came for an input), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_forward(psplit_i_learner *learner,
                                                     psplit_i_feed_set set, uint32_t m,
                                                     psplit_diag *diag, double *out_loss);
/* Its backward piece, and behind it, at once or later, that of the gradients of weights which are
 * apart; where none are, it is empty, and to be called all the same. Errors of both: as of the
 * forward piece, but for the loss. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_backward(psplit_i_learner *learner, uint32_t m,
                                                      psplit_diag *diag);
PSPLIT_MUST_USE psplit_code psplit_i_learner_weight_gradients(psplit_i_learner *learner, uint32_t m,
                                                              psplit_diag *diag);
void psplit_i_learner_drop_results(psplit_i_learner *learner);

/* Zeros for those gradients of owned weights that there are none of yet, so that replicas can add
 * theirs. Errors: those of psplit_i_learner_zeros. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_fill_sums(psplit_i_learner *learner,
                                                       psplit_diag *diag);
/* Adds to them what came by `wire` from another replica. Errors: INVALID (shapes differ),
 * UNSUPPORTED (a type that is not added), those of psplit_i_tensor_look. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_add(psplit_i_learner *learner, uint32_t wire,
                                                 const psplit_i_bundle *bundle, psplit_diag *diag);

/* Sums of squares, in float64, of the gradients of the weights that this stage updates, to
 * out[weights]; others stay. All their parts have been taken. Errors: INVALID (parts differ in
 * size), UNSUPPORTED (no floating point), INTERNAL (a part has not come),
 * NOMEM, those of psplit_i_tensor_look. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_squares(const psplit_i_learner *learner,
                                                     psplit_diag *diag, double *out);
/* Moves the weights; `update` counts from 1. The sums are to be dropped after it. Errors: those of
 * psplit_i_session_run and psplit_i_tensor_make, INVALID (too many scalars). */
PSPLIT_MUST_USE psplit_code psplit_i_learner_update(psplit_i_learner *learner, double rate,
                                                    double scale, int64_t update,
                                                    psplit_diag *diag);
/* Before a step: keeps what micro-batches move, states; and behind it, in their place again.
 * Errors: those of psplit_i_learner_zeros. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_keep(psplit_i_learner *learner, psplit_diag *diag);
void psplit_i_learner_put_back(psplit_i_learner *learner);
/* The next step begins from zero. */
void psplit_i_learner_drop_sums(psplit_i_learner *learner);

/* Zeros of the type and shape of `like`, for the caller to release. Errors: those of
 * psplit_i_tensor_make. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_zeros(const psplit_i_ort *ort,
                                                   const psplit_i_tensor *like, psplit_diag *diag,
                                                   psplit_i_tensor **out);

/* Whether a weight's first values and its updates are made here. */
bool psplit_i_learner_owns(const psplit_i_learner *learner, uint32_t weight);
/* Bytes of weights, perturbed ones too, and states; a digest of the bits of weight `weight`. */
uint64_t psplit_i_learner_bytes(const psplit_i_learner *learner);
uint64_t psplit_i_learner_digest(const psplit_i_learner *learner, uint32_t weight);

#endif
