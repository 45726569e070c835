/* manifest: a strict reader of pipeline.json, for verify/ and runtime/; independent of emit/, which
 * writes it, and of models. promise.h has parts that other JSON outputs share. */
#ifndef PSPLIT_MANIFEST_MANIFEST_H
#define PSPLIT_MANIFEST_MANIFEST_H

#include <psplit/devices.h>

#include "base.h"

enum { PSPLIT_I_FROM_MODEL = 0xfffffffe };

/* A row of a stage's inputs or outputs. */
typedef struct psplit_i_row {
  const char *name, *tensor;
  uint32_t from;      /* inputs: a stage, or PSPLIT_I_FROM_MODEL */
  bool optional;      /* inputs: the file has a default for it */
  bool to_model;      /* outputs */
  const uint32_t *to; /* outputs: stages */
  uint32_t n_to;
} psplit_i_row;

typedef struct psplit_i_manifest_stage {
  const char *file, *device;
  uint32_t n_replicas;        /* 1: `device` alone */
  const char *const *devices; /* [n_replicas]; NULL where there is one */
  uint32_t n_nodes, n_duplicated;
  uint32_t n_inputs, n_outputs;
  const psplit_i_row *inputs; /* optional ones last */
  const psplit_i_row *outputs;
  int64_t compute_ns, recv_ns, send_ns, load_ns; /* as planned; -1: not known */
} psplit_i_manifest_stage;

/* A dimension is a number, a symbol, or neither (value -1, param NULL). */
typedef struct psplit_i_manifest_dim {
  int64_t value;
  const char *param;
} psplit_i_manifest_dim;

typedef struct psplit_i_shape {
  int32_t rank; /* -1: null */
  const psplit_i_manifest_dim *dims;
} psplit_i_shape;

/* An input or output of the model. */
typedef struct psplit_i_manifest_value {
  const char *name, *dtype; /* dtype NULL: null */
  psplit_i_shape shape;
} psplit_i_manifest_value;

typedef struct psplit_i_manifest_transfer {
  uint64_t tag;
  const char *tensor, *dtype;
  uint32_t from, to;
  psplit_i_shape shape;
  bool bytes_known;
  uint64_t bytes;
} psplit_i_manifest_transfer;

typedef struct psplit_i_duplicate {
  uint32_t node;
  uint32_t stage; /* its own */
  const uint32_t *also;
  uint32_t n_also;
} psplit_i_duplicate;

/* An If that was replaced by one branch. */
typedef struct psplit_i_inlined_row {
  const char *node, *condition;
  bool then_branch, assumed;
} psplit_i_inlined_row;

/* --- the object "training" --- */

typedef enum psplit_i_part_source {
  PSPLIT_I_PART_STAGE, /* another stage's backward file, or the stage's own */
  PSPLIT_I_PART_MODEL,
  PSPLIT_I_PART_WEIGHTS,
  PSPLIT_I_PART_STASH,
  PSPLIT_I_PART_AGAIN,
  PSPLIT_I_PART_LOSS,
  PSPLIT_I_PART_BEFORE
} psplit_i_part_source;

typedef struct psplit_i_part_input {
  const char *name;
  psplit_i_part_source source;
  uint32_t from; /* STAGE */
  bool optional; /* has a default in the file; after the others */
} psplit_i_part_input;

/* Destination of an output, in addition to backward passes of other stages. */
typedef enum psplit_i_part_goal {
  PSPLIT_I_PART_NOWHERE,
  PSPLIT_I_PART_CALLER, /* the caller, as for outputs of the model */
  PSPLIT_I_PART_UPDATE,
  PSPLIT_I_PART_BACKWARD
} psplit_i_part_goal;

typedef struct psplit_i_part_output {
  const char *name;
  const uint32_t *to; /* stages */
  uint32_t n_to;
  psplit_i_part_goal goal;
} psplit_i_part_output;

/* An additional file of a stage; `file` NULL: none. */
typedef struct psplit_i_part {
  const char *file;
  uint32_t n_nodes, n_inputs, n_outputs;
  const psplit_i_part_input *inputs;
  const psplit_i_part_output *outputs;
} psplit_i_part;

typedef struct psplit_i_stash_row {
  const char *name, *tensor, *dtype;
  psplit_i_shape shape;
} psplit_i_stash_row;

/* A tensor that an update keeps from step to step. */
typedef struct psplit_i_kept_row {
  const char *name, *new_name, *weight;
  bool is_state;
} psplit_i_kept_row;

typedef struct psplit_i_update_part {
  const char *file;              /* NULL: there is none */
  const char *lr, *scale, *step; /* step: NULL where it does not count */
  const psplit_i_kept_row *kept;
  uint32_t n_kept;
} psplit_i_update_part;

typedef struct psplit_i_training_parts {
  const char *const *weights; /* additional inputs of the stage's file */
  uint32_t n_weights;
  const psplit_i_stash_row *stash;
  uint32_t n_stash;
  const char *first_weights; /* a file, or NULL */
  psplit_i_part again, backward, weight_gradients;
  psplit_i_update_part update;
} psplit_i_training_parts;

/* A separately summed part of the gradient of a weight. */
typedef struct psplit_i_gradient_row {
  const char *gradient, *before;
} psplit_i_gradient_row;

typedef struct psplit_i_trained_weight {
  const char *name, *dtype;
  psplit_i_shape shape;
  const char *gradient, *before; /* NULL: none */
  uint32_t owner;                /* PSPLIT_NONE: none */
  const uint32_t *stages;        /* that have it as input */
  uint32_t n_stages;
  const char *next;                  /* for states: an output of the owner's file; NULL: a weight */
  const psplit_i_gradient_row *more; /* further parts of the gradient */
  uint32_t n_more;
} psplit_i_trained_weight;

/* Terms of a size, which is a sum of products of symbols. */
typedef struct psplit_i_size_term {
  int64_t factor;
  const char *const *symbols;
  uint32_t n_symbols;
} psplit_i_size_term;

typedef struct psplit_i_mask_size {
  const psplit_i_size_term *terms;
  uint32_t n_terms;
} psplit_i_mask_size;

/* An input for random numbers: psplit/random.h. */
typedef struct psplit_i_mask_row {
  const char *name;   /* of the input of a stage's files; also in inputs[] of the stage */
  const char *tensor; /* its name in the model */
  const char *node;   /* the operator */
  const char *dtype;
  uint32_t stage; /* of the node that reads it; a copy may be in another stage */
  uint32_t number;
  uint32_t kind; /* psplit_draw_kind */
  double ratio;  /* KEEP */
  uint32_t rank;
  const psplit_i_mask_size *shape;
} psplit_i_mask_row;

/* Value of a symbol; false: unknown. */
typedef bool (*psplit_i_symbol_fn)(void *user, const char *symbol, int64_t *out);

/* Sizes of a mask, out_shape[rank], and their product. Errors: INVALID (an unknown symbol, a size
 * below 0 or above 2^63). */
PSPLIT_MUST_USE psplit_code psplit_i_mask_sizes(const psplit_i_mask_row *mask,
                                                psplit_i_symbol_fn find, void *user,
                                                psplit_diag *diag, int64_t *out_shape,
                                                int64_t *out_n);

/* The backward pass of a stage is in one file or two. */
enum { PSPLIT_I_N_HALVES = 2 };
static inline const psplit_i_part *psplit_i_backward_part(const psplit_i_training_parts *parts,
                                                          int half) {
  return half ? &parts->weight_gradients : &parts->backward;
}

typedef struct psplit_i_training_table {
  const char *loss, *loss_output; /* exactly one is not NULL */
  const char *loss_tensor, *loss_gradient;
  uint32_t loss_stage;
  uint32_t batch_norm;   /* psplit_batch_norm */
  uint32_t dropout;      /* psplit_dropout */
  uint32_t recompute;    /* 0 none, 1 heavy, 2 all */
  bool plain_weights;    /* weights are inputs without default */
  const char *optimizer; /* or NULL */
  uint32_t n_weights, n_input_gradients;
  const psplit_i_trained_weight *weights;
  const char *const *input_gradients;    /* inputs, and ... */
  const char *const *gradient_names;     /* ... their gradients; NULL: none */
  const psplit_i_training_parts *stages; /* as many as the manifest's */
  uint32_t n_masks;
  const psplit_i_mask_row *masks; /* by `number` */
  uint32_t n_transfers, n_duplicates;
  const psplit_i_manifest_transfer *transfers; /* of the backward pass; without bytes */
  /* Of the backward pass. Its stages are numbered by files: 2 s is the backward file of stage s, 2
   * s + 1 its weight_gradients. */
  const psplit_i_duplicate *duplicates;
} psplit_i_training_table;

typedef struct psplit_i_manifest {
  const char *model; /* base name of the split file; NULL: unknown */
  bool sendrecv;
  uint32_t n_inputs, n_outputs; /* of the model */
  uint32_t n_needed;            /* inputs that are not optional: the first ones */
  const char *const *inputs;    /* names; declarations are in input_values */
  const char *const *outputs;
  const psplit_i_manifest_value *input_values, *output_values; /* in the same order */
  uint32_t n_stages;
  const psplit_i_manifest_stage *stages;
  uint32_t n_transfers;
  const psplit_i_manifest_transfer *transfers;
  uint32_t n_duplicates;
  const psplit_i_duplicate *duplicates;
  uint32_t n_inlined;
  const psplit_i_inlined_row *inlined;
  int64_t bottleneck_ns, total_compute_ns; /* as planned; -1: not known */
  bool fill_drain;                         /* planned for that training schedule */
  const char *cost_source;
  uint32_t n_assumed; /* sizes that the plan assumed */
  const char *const *assumed_names;
  const int64_t *assumed_sizes;
  const char *const *training_files; /* all files in the object "training" */
  uint32_t n_training_files;
  const psplit_i_training_table *training; /* NULL: none */
  const char *const *files;                /* other files of the directory */
  uint32_t n_files;
} psplit_i_manifest;

/* Reads directory/pipeline.json, a regular file of at most `max_bytes` (0: the default of
 * base/in_file.h), into `arena`. Stages and indices are checked for range; consistency between
 * tables of different stages is not checked. Errors: IO, LIMIT, MALFORMED, INVALID, UNSUPPORTED,
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_manifest_read(const char *directory, uint64_t max_bytes,
                                                   psplit_i_arena *arena, psplit_diag *diag,
                                                   psplit_i_manifest *out_manifest);

/* The rows that a transfer connects: an output of the stage that sends, and an input of the one
 * that receives. */
typedef struct psplit_i_ports {
  uint32_t output, input;
} psplit_i_ports;

/* Checks for those who run or merge the stages that tables of different stages agree: what one
 * sends, another receives, and `transfers` lists it; what comes from the model or goes to it is an
 * input or output of it, and a stage gives each of its outputs; and that types are known. verify/
 * compares them with the files and the model, too. *out_ports [n_transfers] lives in `arena`.
 * O(n log n). Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_manifest_check(const char *directory,
                                                    const psplit_i_manifest *manifest,
                                                    psplit_i_arena *arena, psplit_diag *diag,
                                                    const psplit_i_ports **out_ports);

#endif
