/* What a model hands from one run to the next: a cache of keys and values, which comes as an input
 * and goes as an output, and between two runs is held for the sequence that it belongs to.
 *
 * Found by name, as exporters write them (state_names.h), or named by the caller; element types and
 * ranks of an input and an output that are a pair agree. */
#ifndef PSPLIT_PASSES_STATE_H
#define PSPLIT_PASSES_STATE_H

#include "shape.h"

typedef struct psplit_i_state {
  uint32_t input, output; /* values of the graph */
  /* Sizes agree axis by axis: what a runtime is given as input it may write into, so that there is
   * one buffer. Otherwise the output is the longer one, and a second one while the model runs. */
  bool shared;
  bool named; /* by the caller */
} psplit_i_state;

typedef struct psplit_i_states {
  uint32_t n;
  psplit_i_state *items; /* in the order of the graph's inputs */
  uint32_t *of;          /* [n_values] 1 + the pair that the value is of; 0: none */
} psplit_i_states;

typedef struct psplit_i_states_request {
  const uint32_t *output, *input; /* [n] values that are pairs, whatever their names */
  uint32_t n;
  bool by_name; /* and those that are found */
} psplit_i_states_request;

/* Finds the pairs; memory is the arena's. A pair that is named and one that is found and shares a
 * value with it: the named one counts. Errors: NOMEM. O(values + inputs' names). */
PSPLIT_MUST_USE psplit_code psplit_i_states_find(const psplit_i_graph *graph,
                                                 const psplit_i_shapes *shapes,
                                                 const psplit_i_states_request *request,
                                                 psplit_i_arena *arena, psplit_diag *diag,
                                                 psplit_i_states *out);

/* Whether no run could take the output as the input of the next one: types or ranks differ, or a
 * size that is fixed in both. What is not known may agree. */
bool psplit_i_states_contradict(const psplit_i_shapes *shapes, uint32_t input, uint32_t output);

#endif
