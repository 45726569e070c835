/* The forward and the backward pass over blocks in a row: labels at separators, and the state of a
 * run. */
#ifndef PSPLIT_PARTITION_LATENCY_LABELS_H
#define PSPLIT_PARTITION_LATENCY_LABELS_H

#include "assignment.h"
#include "latency_blocks_inside.h"

/* Stages inside a block, from the last. */
typedef struct psplit_i_inside_stages {
  uint32_t n, code; /* types as digits */
  uint32_t stage[PSPLIT_I_BLOCK_INSIDE + 1], type[PSPLIT_I_BLOCK_INSIDE + 1];
} psplit_i_inside_stages;

/* A partial split: everything on one side of a separator, and the separator's stage so far. */
typedef struct psplit_i_block_label {
  int64_t cost;
  uint64_t bytes;                      /* 0 where the type has no limit */
  const psplit_i_block_option *option; /* how the block behind was cut; NULL: it was not */
  uint32_t parent, parent_cell;        /* NONE: none */
  uint32_t stage;
  psplit_i_inside_stages inside; /* that block */
} psplit_i_block_label;

/* Ascending by bytes, descending by cost. */
typedef PSPLIT_VEC(psplit_i_block_label) psplit_i_block_front;

/* The best end of all labels at the first separator. */
typedef struct psplit_i_block_ending {
  int64_t cost;
  uint32_t cell, at; /* at NONE: there is none below the limit */
  psplit_i_inside_stages inside;
  const psplit_i_block_option *option;
} psplit_i_block_ending;

/* A run of psplit_i_blocks. */
typedef struct psplit_i_blocks_state {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  uint32_t n_types, n; /* separators */
  uint32_t *separator;
  psplit_i_block *block; /* [n + 1] block k is before separator k */
  psplit_i_block_tables tables;
  uint64_t exact_ops;
  psplit_i_block_front *ahead; /* [n * n_types] of all before, and with, separator k */
  psplit_i_block_front *cell;  /* [n * n_states * n_types] of all from separator k on */
  uint64_t memory[PSPLIT_I_BLOCK_TYPES];
  int64_t limit;
  bool exact; /* what is no more than a bound is left out */
  psplit_i_block_ending best;
  bool failed, spent;
} psplit_i_blocks_state;

/* Adds a label unless another has no more bytes and no more cost; removes those that it dominates
 * in the same way. */
void psplit_i_block_front_insert(psplit_i_blocks_state *x, psplit_i_block_front *front,
                                 const psplit_i_block_label *label);

/* Charges operations to the budget; false if it is spent, or memory has run out. */
bool psplit_i_blocks_charge(psplit_i_blocks_state *x, uint64_t n_ops);

/* Both passes with the options of the blocks as they are. Where what is exact alone gives a split
 * below x->limit, that is *out_split and the limit. Raises *inout_bound. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_blocks_look(psplit_i_blocks_state *x,
                                                 psplit_i_assignment *out_split,
                                                 int64_t *inout_bound);

/* Frees the labels of the second pass. */
void psplit_i_blocks_clear(psplit_i_blocks_state *x);

#endif
