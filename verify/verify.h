/* verify: proves that stages are the model they were split from.
 *
 *   again.c      of training: what is computed again, and what files are fed with
 *   backward.c   of training: backward passes
 *   canonical.c  messages in a form where equal content is equal bytes, wherever tensors are stored
 *   compare.c    fields of the model against fields of a stage
 *   coverage.c   whether all of the model is in the stages
 *   declared.c   what is stated of training besides: types, and what is kept
 *   file.c       one file that is to be the whole model
 *   inlined.c    Ifs that were taken for one branch
 *   lookup.c     tables over the manifest, so that no check searches
 *   mask_expression.c  of training: what a random operator becomes that reads a mask
 *   types.c      types and shapes that the manifest and the ports state
 *   ports.c      boundary nodes, inputs, outputs, transfers
 *   training_ports.c  inputs and outputs that stages have for training alone
 *   proof.c      the proof: nodes, weights, descriptions
 *   training.c   what belongs to training: the model differentiated again, weights, loss
 *   training_masks.c  of training: random operators that read masks
 *   update.c     of training: updates and first weights
 *   verify.c     a directory, by its manifest
 *   whole.c      whether the model is another one on the whole
 *   new_values.c a model with other values of some weights
 *   payloads.c   weights, byte for byte, in parallel
 * Shares the readers (onnx/, manifest/) with the rest of the project; knows nothing of passes/ and
 * emit/, so that a mistake there cannot hide here. */
#ifndef PSPLIT_VERIFY_VERIFY_INTERNAL_H
#define PSPLIT_VERIFY_VERIFY_INTERNAL_H

#include <psplit/verify.h>

#include "canonical.h"
#include "manifest.h"
#include "shape.h"

/* --- tables --- */

/* A table from three numbers to one; room for as many entries as it was made for. */
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
/* False where the key is there already; its value stays. `value` is not PSPLIT_NONE. */
bool psplit_i_table_add(psplit_i_table *table, uint32_t a, uint32_t b, uint32_t c, uint32_t value);
/* PSPLIT_NONE where the key is not there. */
uint32_t psplit_i_table_find(const psplit_i_table *table, uint32_t a, uint32_t b, uint32_t c);

/* --- the proof --- */

/* Bytes of the model and of a stage that must be equal. */
typedef struct psplit_i_pair {
  psplit_i_payload whole, part; /* of equal length */
  const char *name;             /* of the tensor or node that holds them */
} psplit_i_pair;

/* n bytes of a payload from `at` on: where they are in memory, or read into buffer[n]. Errors: IO.
 */
PSPLIT_MUST_USE psplit_code psplit_i_payload_fetch(const psplit_model *model,
                                                   const psplit_i_payload *payload, uint64_t at,
                                                   size_t n, uint8_t *buffer, const uint8_t **out,
                                                   psplit_diag *diag);

typedef PSPLIT_VEC(psplit_i_pair) psplit_i_pairs;

/* Spans of those repeated fields of a graph that the model does not index itself. */
typedef struct psplit_i_field_spans {
  const psplit_i_span **inputs, **outputs, **annotations;
} psplit_i_field_spans;

/* A node without outputs, found by what it holds. */
typedef struct psplit_i_silent {
  uint64_t hash[2];
  uint32_t node;
  uint32_t n_taken; /* on the first of equal ones: how many are seen already */
} psplit_i_silent;

/* How a stage declares a tensor that it sends. */
typedef struct psplit_i_port_type {
  int32_t elem;
  uint64_t hash[2]; /* of the whole type */
} psplit_i_port_type;

/* What the files of stages that train have besides the stages. */
typedef struct psplit_i_training_ports {
  const struct psplit_gradient *gradient;
  const psplit_i_training_table *table;
  const uint8_t *trained;       /* [n_values] 1: weights that are trained, 2: states */
  uint8_t *first_seen;          /* [n_values] whose first values a file of their own holds */
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

/* PSPLIT_NONE where the name is not in the set; without training all are empty. */
uint32_t psplit_i_training_ports_find(const psplit_i_training_ports *training, psplit_i_set set,
                                      const char *name, uint32_t stage);

typedef struct psplit_i_proof {
  const psplit_model *model; /* whose stages they are to be */
  const psplit_i_graph *graph;
  struct psplit_gradient *gradient; /* where it is proved to train: holds `model`; or NULL */
  psplit_model *inlined;   /* where the manifest inlines Ifs: the model with that done; or NULL */
  psplit_i_shapes *shapes; /* what can be known of the model's values; NULL without transfers */
  psplit_i_manifest manifest;
  const uint32_t *called; /* [n_stages] the user's numbers of stages; NULL: these */
  const psplit_i_training_ports *training; /* of stages that train; else NULL */
  bool no_manifest; /* one file is to be the model: what a manifest says is made up */
  /* Where set, a stage that differs is told, and the proof goes on with the next one. */
  const psplit_changed_stage *changed;
  uint8_t *has_changed;   /* [n_stages] told */
  psplit_i_arena arena;   /* as long as the proof */
  psplit_i_arena scratch; /* as long as a stage is looked at */
  const volatile int *cancel;
  psplit_activity *activity; /* or NULL */
  psplit_diag *diag;

  /* The stage at hand. */
  uint32_t at;
  psplit_model *stage;
  const psplit_i_graph *part;
  psplit_i_field_spans part_spans;
  psplit_i_pairs pairs;

  /* What was seen so far. */
  uint32_t *n_seen;          /* [n_nodes] stages that hold the node */
  uint8_t *initializer_seen; /* [n_values] */
  uint8_t *output_seen;      /* [n_outputs of the model] */
  uint8_t *function_tame;    /* [n_functions] looked through: nothing in it draws random numbers */
  uint32_t *sent, *received; /* [n_transfers] 1 + its Send and its Recv, where they were met */
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

  psplit_i_text a, b; /* canonical forms at hand */
  psplit_i_payloads payload_a, payload_b;
} psplit_i_proof;

void psplit_i_proof_init(psplit_i_proof *p, const psplit_model *model, psplit_diag *diag);
void psplit_i_proof_fini(psplit_i_proof *p);
/* That the stages which p->manifest names are p->model. Errors: as psplit_verify. */
PSPLIT_MUST_USE psplit_code psplit_i_prove(psplit_i_proof *p, const char *directory,
                                           const psplit_verify_options *options);

/* Says before the difference in p->diag, where the manifest was read, what is another on the whole:
 * inputs, outputs, the number of nodes, else the name. */
void psplit_i_tell_whole(psplit_i_proof *p);

/* That the one file `path` is p->model. Errors: as psplit_verify. */
PSPLIT_MUST_USE psplit_code psplit_i_prove_file(psplit_i_proof *p, const char *path,
                                                const psplit_verify_options *options);

/* Makes a file of `directory` the stage at hand, which is to be closed after a failure, too.
 * Errors: those of psplit_model_open. */
PSPLIT_MUST_USE psplit_code psplit_i_open_part(psplit_i_proof *p, const char *directory,
                                               const char *file,
                                               const psplit_verify_options *options);
void psplit_i_close_part(psplit_i_proof *p);

/* Whether a node may give something else when it runs again, as its operator draws random numbers
 * or is one that nobody here knows. Independent of the list that the passes use. */
bool psplit_i_may_vary(const psplit_i_node *node);

/* After all stages: every node, output and initializer of the model was seen, nodes as often as the
 * manifest says, and copies agree. Transfers need no look: each row of a port was found to be
 * joined by a node with the tag of its transfer, and each transfer to have a row at both ends.
 * Errors: MISMATCH, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_check_coverage(psplit_i_proof *p);

/* --- stages that train; all are false or empty where the split does not train --- */

bool psplit_i_is_trained(const psplit_i_proof *p, const char *name);
/* A node that gives the shape of a value, for the backward pass. */
bool psplit_i_is_training_port_node(const psplit_i_proof *p, const psplit_i_node *node);
/* A trained weight that the stage holds: an input too, and only where weights have defaults.
 * Errors: MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_first_value(psplit_i_proof *p,
                                                       const psplit_i_value *part);
/* A trained weight as an input that the model does not list. Errors: MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_weight_input(psplit_i_proof *p, uint32_t position);
/* Outputs that are there for the stash, behind the others. Errors: MISMATCH, NOMEM, UNSUPPORTED (a
 * value of unknown type). */
PSPLIT_MUST_USE psplit_code psplit_i_check_stash_output(psplit_i_proof *p, uint32_t position);
/* What the manifest keeps of the stage is there, and is what it is called. Errors: MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_stash(psplit_i_proof *p);

/* What the user calls a stage of the proof. */
static inline uint32_t psplit_i_called(const psplit_i_proof *p, uint32_t stage) {
  return p->called ? p->called[stage] : stage;
}

/* Fails: what is to be equal differs, as the text says. Stages in it are psplit_i_called. */
#define PSPLIT_I_DIFFERS(p, ...) psplit_i_fail((p)->diag, PSPLIT_MISMATCH, __VA_ARGS__)

/* Fills the tables over the manifest. Errors: MISMATCH (something stands twice in it), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_tables_init(psplit_i_proof *p);

/* Compares the whole-th `field` of the model's graph with the part-th of the stage's. Raw tensor
 * data is noted in `pairs` under `name`, to be compared later. Errors: CANCELLED, those of
 * psplit_i_canonical_span. */
PSPLIT_MUST_USE psplit_code psplit_i_compare(psplit_i_proof *p, uint32_t field, uint32_t whole,
                                             uint32_t part, const char *name, bool *out_equal);

/* All that a stage takes over from the model as it is: fields of the model and of its graph, opset
 * imports and functions; boundary functions may come on top. Errors: MISMATCH, those of
 * psplit_i_compare. */
PSPLIT_MUST_USE psplit_code psplit_i_compare_rest(psplit_i_proof *p);

/* Where the graph's inputs, outputs and annotations stand. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_field_spans_init(const psplit_model *model,
                                                      psplit_i_arena *arena, psplit_diag *diag,
                                                      psplit_i_field_spans *out);

/* A 128-bit hash of the canonical form of node `node` of `model`; raw tensor data does not count.
 * Errors: those of psplit_i_canonical_span. */
PSPLIT_MUST_USE psplit_code psplit_i_node_hash(psplit_i_proof *p, const psplit_model *model,
                                               uint32_t node, uint64_t out[2]);

/* A function that does nothing but hand its input on. */
bool psplit_i_function_is_boundary(const psplit_model *stage, size_t index);

/* Whether the stage's node is a Send or Recv of the boundary: its port is no name of the model. One
 * that the model itself has is a node like any other. */
bool psplit_i_is_boundary_node(const psplit_i_proof *p, const psplit_i_node *node);

/* A boundary node of the stage is a transfer of the manifest, and the only node for it. Errors:
 * MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_boundary_node(psplit_i_proof *p, uint32_t node);

/* What the manifest says of the model and of the transfers, before any stage is looked at. Errors:
 * MISMATCH, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_check_manifest(psplit_i_proof *p);

/* An input or output as the manifest gives it, against the model's declaration. Errors: MISMATCH.
 */
PSPLIT_MUST_USE psplit_code psplit_i_check_declared(psplit_i_proof *p,
                                                    const psplit_i_manifest_value *value,
                                                    const Onnx__TypeProto *type);

/* The type of a port that transfer t goes through claims no more than what is known of the model's
 * value. Errors: MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_port_shape(psplit_i_proof *p, uint32_t t,
                                                      const Onnx__TypeProto *type);

/* The manifest's shape and bytes of transfer t, against the port that receives it. Errors:
 * MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_transfer_shape(psplit_i_proof *p, uint32_t t,
                                                          const Onnx__TypeProto *type);

/* `inlined` is the proof's model with those Ifs replaced that the manifest lists, and nothing else.
 * Errors: MISMATCH, IO (the file changed), NOMEM, MALFORMED. */
PSPLIT_MUST_USE psplit_code psplit_i_check_inlined(psplit_i_proof *p, const psplit_model *inlined);

/* Ports of the stage at hand: each is a row of the manifest, and is what it carries. Errors:
 * MISMATCH, those of psplit_i_compare. */
PSPLIT_MUST_USE psplit_code psplit_i_check_inputs(psplit_i_proof *p);
PSPLIT_MUST_USE psplit_code psplit_i_check_outputs(psplit_i_proof *p);

/* Compares the pairs of the proof's stage, in parallel. Of several failures, the first in the order
 * of the list is reported, for any n_threads. `stage` is its number in messages. Errors: MISMATCH
 * (names `stage` and the pair), IO, CANCELLED, NOMEM. O(bytes of the pairs). */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_compare(const psplit_i_proof *proof, uint32_t stage,
                                                   uint32_t n_threads);

#endif
