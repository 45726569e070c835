/* verify: proves that stages are equivalent to the model they were split from.
 *
 *   verify.c     a directory, by its manifest
 *   proof.c      the proof: nodes, weights, descriptions
 *   compare.c    fields of the model against fields of a stage
 *   canonical.c  messages in a form where equal content is equal bytes, wherever tensors are stored
 *   coverage.c   whether all of the model is in the stages
 *   lookup.c     lookup tables for the manifest
 *   ports.c      boundary nodes, inputs, outputs, transfers
 *   types.c      types and shapes in the manifest and of ports
 *   payloads.c   weights, byte for byte, in parallel
 *   whole.c      global differences between models
 *   inlined.c    Ifs that were replaced by one branch
 *   file.c       a single file against the whole model
 *   new_values.c a model with new values of some weights
 * Training:
 *   training.c   the model differentiated again, weights, loss
 *   training_ports.c  additional inputs and outputs of stages
 *   training_masks.c, mask_expression.c   random operators that read masks
 *   backward.c   backward passes
 *   again.c      recomputation, and inputs of files
 *   update.c     updates and initial weights
 *   declared.c   declared types, and the stash
 * Shares the readers (onnx/, manifest/) with the rest of the project. Independent of passes/ and
 * emit/, so that their mistakes are found here. */
#ifndef PSPLIT_VERIFY_VERIFY_INTERNAL_H
#define PSPLIT_VERIFY_VERIFY_INTERNAL_H

#include <psplit/verify.h>

#include "canonical.h"
#include "manifest.h"
#include "shape.h"

/* --- tables --- */

/* A hash table from three numbers to one, of fixed capacity. */
typedef struct psplit_i_entry {
  uint32_t a, b, c;
  uint32_t value; /* PSPLIT_NONE: empty */
} psplit_i_entry;

typedef struct psplit_i_table {
  psplit_i_entry *entries;
  uint32_t n_slots; /* a power of two */
  uint64_t seed;    /* secret, so that no file can make its entries collide */
} psplit_i_table;

/* False when out of memory. */
bool psplit_i_table_init(psplit_i_table *table, psplit_i_arena *arena, size_t n, uint64_t seed);
/* False if the key exists already; its value is kept. `value` is not PSPLIT_NONE. */
bool psplit_i_table_add(psplit_i_table *table, uint32_t a, uint32_t b, uint32_t c, uint32_t value);
/* PSPLIT_NONE if the key is absent. */
uint32_t psplit_i_table_find(const psplit_i_table *table, uint32_t a, uint32_t b, uint32_t c);

/* --- the proof --- */

/* Bytes of the model and of a stage that must be equal. */
typedef struct psplit_i_pair {
  psplit_i_payload whole, part; /* of equal length */
  const char *name;             /* of the tensor or node that holds them */
} psplit_i_pair;

/* n bytes of a payload from `at` on: a pointer into memory, or read into buffer[n]. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_payload_fetch(const psplit_model *model,
                                                   const psplit_i_payload *payload, uint64_t at,
                                                   size_t n, uint8_t *buffer, const uint8_t **out,
                                                   psplit_diag *diag);

typedef PSPLIT_VEC(psplit_i_pair) psplit_i_pairs;

/* Spans of repeated fields of a graph that the model itself does not index. */
typedef struct psplit_i_field_spans {
  const psplit_i_span **inputs, **outputs, **annotations;
} psplit_i_field_spans;

/* A node without outputs, identified by its content. */
typedef struct psplit_i_silent {
  uint64_t hash[2];
  uint32_t node;
  uint32_t n_taken; /* on the first of equal ones: number already seen */
} psplit_i_silent;

/* Declaration of a sent tensor in the sending stage. */
typedef struct psplit_i_port_type {
  int32_t elem;
  uint64_t hash[2]; /* of the whole type */
} psplit_i_port_type;

/* Names in the files of training stages. */
typedef struct psplit_i_training_ports {
  const struct psplit_gradient *gradient;
  const psplit_i_training_table *table;
  const uint8_t *trained;       /* [n_values] 1: weights that are trained, 2: states */
  uint8_t *first_seen;          /* [n_values] the initial value is in a file of its own */
  const psplit_i_intern *names; /* of what follows */
  const psplit_i_table *sets;   /* (name, stage or 0, psplit_i_set) -> as it says */
} psplit_i_training_ports;

typedef enum psplit_i_set {
  PSPLIT_I_SET_SHAPE,        /* name of a value's shape -> the value */
  PSPLIT_I_SET_GRADIENT,     /* of a gradient -> the trainable */
  PSPLIT_I_SET_BEFORE,       /* of what it is added to -> the trainable */
  PSPLIT_I_SET_STATE,        /* of an output that takes the place of a state -> the trainable */
  PSPLIT_I_SET_STASH_PORT,   /* of a port of a stage that is kept -> row of the stash */
  PSPLIT_I_SET_STASH_TENSOR, /* of what it is kept as -> row of the stash */
  PSPLIT_I_SET_WEIGHT,       /* of a weight that a stage's file takes -> 0 */
  PSPLIT_I_SET_TAKES,        /* of one that it takes, forward or back -> 0 */
  PSPLIT_I_SET_AGAIN_INPUT,  /* of what is computed again: inputs and ... */
  PSPLIT_I_SET_AGAIN_OUTPUT, /* ... outputs -> index */
  PSPLIT_I_SET_BACKWARD      /* of an input of a backward file, 2 stage + half -> where from */
} psplit_i_set;

/* PSPLIT_NONE if the name is not in the set; without training all sets are empty. */
uint32_t psplit_i_training_ports_find(const psplit_i_training_ports *training, psplit_i_set set,
                                      const char *name, uint32_t stage);

typedef struct psplit_i_proof {
  const psplit_model *model; /* that the stages must be equivalent to */
  const psplit_i_graph *graph;
  struct psplit_gradient *gradient; /* for training: owns `model`; or NULL */
  psplit_model *inlined;            /* the model with the manifest's Ifs inlined; or NULL */
  psplit_i_shapes *shapes; /* inferred types of the model's values; NULL without transfers */
  psplit_i_manifest manifest;
  const uint32_t *called; /* [n_stages] the user's numbering of stages; NULL: the same */
  const psplit_i_training_ports *training; /* of stages that train; else NULL */
  bool no_manifest; /* a single file is compared: the manifest is synthetic */
  /* If set, a stage that differs is reported, and the proof continues with the next one. */
  const psplit_changed_stage *changed;
  uint8_t *has_changed;   /* [n_stages] reported */
  psplit_i_arena arena;   /* lifetime of the proof */
  psplit_i_arena scratch; /* lifetime of the current stage */
  const volatile int *cancel;
  psplit_activity *activity; /* or NULL */
  psplit_diag *diag;

  /* The current stage. */
  uint32_t at;
  psplit_model *stage;
  const psplit_i_graph *part;
  psplit_i_field_spans part_spans;
  psplit_i_pairs pairs;

  /* Found so far. */
  uint32_t *n_seen;          /* [n_nodes] stages that hold the node */
  uint8_t *initializer_seen; /* [n_values] */
  uint8_t *output_seen;      /* [n_outputs of the model] */
  uint8_t *function_tame;    /* [n_functions] checked: contains no random operators */
  uint32_t *sent, *received; /* [n_transfers] 1 + its Send and its Recv, or 0 */
  psplit_i_port_type *types; /* [n_transfers] as the sender declares it */
  uint64_t weight_bytes;

  /* Tables. */
  psplit_i_field_spans spans; /* of the model */
  uint32_t *first_output;     /* [n_values] position among the model's outputs, or PSPLIT_NONE */
  uint32_t *next_output;      /* [n_outputs] the next one of the same value */
  psplit_i_intern annotated;  /* tensors with quantization annotations, by id: ... */
  uint32_t *annotation;       /* [annotated.n] ... the first such annotation */
  psplit_i_silent *silent;    /* the model's nodes without outputs, by hash and position */
  uint32_t n_silent;
  psplit_i_intern names;     /* of ports and tensors in the manifest */
  psplit_i_table rows;       /* (port, stage, inputs or outputs) -> row */
  psplit_i_table wants;      /* (tensor, from, to) -> input row of `to` */
  psplit_i_table offers;     /* (tensor, from, to) -> output row of `from` */
  psplit_i_table transfers;  /* (tensor, from, to) -> transfer */
  psplit_i_table tags;       /* (low half, high half, 0) -> transfer */
  psplit_i_table duplicates; /* (node, stage, 0) -> index of the duplicate */
  uint32_t *declared;        /* [n_nodes] 1 + index of its duplicate, or 0 */

  psplit_i_text a, b; /* current canonical forms */
  psplit_i_payloads payload_a, payload_b;
} psplit_i_proof;

void psplit_i_proof_init(psplit_i_proof *p, const psplit_model *model, psplit_diag *diag);
void psplit_i_proof_fini(psplit_i_proof *p);
/* Proves that the stages of p->manifest are equivalent to p->model. Errors: as psplit_verify. */
PSPLIT_MUST_USE psplit_code psplit_i_prove(psplit_i_proof *p, const char *directory,
                                           const psplit_verify_options *options);

/* After a difference, and if the manifest was read, prefixes p->diag with the first global
 * difference: inputs, outputs, the number of nodes, or the name. */
void psplit_i_tell_whole(psplit_i_proof *p);

/* Proves that the file `path` is equivalent to p->model. Errors: as psplit_verify. */
PSPLIT_MUST_USE psplit_code psplit_i_prove_file(psplit_i_proof *p, const char *path,
                                                const psplit_verify_options *options);

/* Makes a file of `directory` the current stage, which must be closed even after a failure. Errors:
 * those of psplit_model_open. */
PSPLIT_MUST_USE psplit_code psplit_i_open_part(psplit_i_proof *p, const char *directory,
                                               const char *file,
                                               const psplit_verify_options *options);
void psplit_i_close_part(psplit_i_proof *p);

/* Whether a node may be non-deterministic: its operator is random or unknown. Independent of the
 * list that the passes use. */
bool psplit_i_may_vary(const psplit_i_node *node);

/* After all stages: checks that every node, output and initializer of the model was found, nodes as
 * often as the manifest says, and that copies agree. Transfers need no further check: each row of a
 * port was found to be connected by a node with the tag of its transfer, and each transfer to have
 * a row at both ends. Errors: MISMATCH, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_check_coverage(psplit_i_proof *p);

/* --- stages that train; all are false or empty where the split does not train --- */

bool psplit_i_is_trained(const psplit_i_proof *p, const char *name);
/* A node that computes the shape of a value, for the backward pass. */
bool psplit_i_is_training_port_node(const psplit_i_proof *p, const psplit_i_node *node);
/* Checks a trained weight in the stage: it must also be an input, and is only allowed if weights
 * have defaults. Errors: MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_first_value(psplit_i_proof *p,
                                                       const psplit_i_value *part);
/* Checks an input for a trained weight, which is not an input of the model. Errors: MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_weight_input(psplit_i_proof *p, uint32_t position);
/* Checks an additional output for the stash. Errors: MISMATCH, NOMEM, UNSUPPORTED (a value of
 * unknown type). */
PSPLIT_MUST_USE psplit_code psplit_i_check_stash_output(psplit_i_proof *p, uint32_t position);
/* Checks that the stash in the manifest exists in the stage and has the right values. Errors:
 * MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_stash(psplit_i_proof *p);

/* The user's number of a stage. */
static inline uint32_t psplit_i_called(const psplit_i_proof *p, uint32_t stage) {
  return p->called ? p->called[stage] : stage;
}

/* Fails with a difference. Stage numbers in the text are psplit_i_called. */
#define PSPLIT_I_DIFFERS(p, ...) psplit_i_fail((p)->diag, PSPLIT_MISMATCH, __VA_ARGS__)

/* Fills the tables for the manifest. Errors: MISMATCH (duplicate entries), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_tables_init(psplit_i_proof *p);

/* Compares the whole-th `field` of the model's graph with the part-th of the stage's. Raw tensor
 * data is added to `pairs` under `name`, for a later comparison. Errors: CANCELLED, those of
 * psplit_i_canonical_span. */
PSPLIT_MUST_USE psplit_code psplit_i_compare(psplit_i_proof *p, uint32_t field, uint32_t whole,
                                             uint32_t part, const char *name, bool *out_equal);

/* Compares everything that a stage copies from the model: fields of the model and of its graph,
 * opset imports and functions; boundary functions may be added. Errors: MISMATCH, those of
 * psplit_i_compare. */
PSPLIT_MUST_USE psplit_code psplit_i_compare_rest(psplit_i_proof *p);

/* Finds the graph's inputs, outputs and annotations. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_field_spans_init(const psplit_model *model,
                                                      psplit_i_arena *arena, psplit_diag *diag,
                                                      psplit_i_field_spans *out);

/* A 128-bit hash of the canonical form of node `node` of `model`, without raw tensor data. Errors:
 * those of psplit_i_canonical_span. */
PSPLIT_MUST_USE psplit_code psplit_i_node_hash(psplit_i_proof *p, const psplit_model *model,
                                               uint32_t node, uint64_t out[2]);

/* Whether the function is an identity for the boundary. */
bool psplit_i_function_is_boundary(const psplit_model *stage, size_t index);

/* Whether the stage's node is a Send or Recv of the boundary: its port is not a name of the model.
 * Such nodes of the model itself are ordinary nodes. */
bool psplit_i_is_boundary_node(const psplit_i_proof *p, const psplit_i_node *node);

/* Checks that a boundary node belongs to a transfer of the manifest, as the only one. Errors:
 * MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_boundary_node(psplit_i_proof *p, uint32_t node);

/* Checks the manifest's description of the model and of the transfers, before any stage. Errors:
 * MISMATCH, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_check_manifest(psplit_i_proof *p);

/* Compares an input or output of the manifest with the model's declaration. Errors: MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_declared(psplit_i_proof *p,
                                                    const psplit_i_manifest_value *value,
                                                    const Onnx__TypeProto *type);

/* Checks that the type of a port of transfer t claims no more than is known about the model's
 * value. Errors: MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_port_shape(psplit_i_proof *p, uint32_t t,
                                                      const Onnx__TypeProto *type);

/* Compares the manifest's shape and bytes of transfer t with the receiving port. Errors:
 * MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_transfer_shape(psplit_i_proof *p, uint32_t t,
                                                          const Onnx__TypeProto *type);

/* Checks that `inlined` is the proof's model with exactly the manifest's Ifs replaced. Errors:
 * MISMATCH, IO (the file changed), NOMEM, MALFORMED. */
PSPLIT_MUST_USE psplit_code psplit_i_check_inlined(psplit_i_proof *p, const psplit_model *inlined);

/* Checks the ports of the current stage: each is a row of the manifest, with the right value.
 * Errors: MISMATCH, those of psplit_i_compare. */
PSPLIT_MUST_USE psplit_code psplit_i_check_inputs(psplit_i_proof *p);
PSPLIT_MUST_USE psplit_code psplit_i_check_outputs(psplit_i_proof *p);

/* Compares the pairs of the proof's stage, in parallel. Of several failures, the first in the order
 * of the list is reported, for any n_threads. `stage` is its number in messages. Errors: MISMATCH
 * (names `stage` and the pair), IO, CANCELLED, NOMEM. O(bytes of the pairs). */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_compare(const psplit_i_proof *proof, uint32_t stage,
                                                   uint32_t n_threads);

#endif
