/* State of a model between runs: caches of keys and values, which are inputs and outputs, and are
 * kept between two runs for the sequence that they belong to.
 *
 * States are found by name, in the forms that exporters write (state_names.h), or named by the
 * caller. Element types and ranks of the input and the output of a pair agree. */
#ifndef PSPLIT_PASSES_STATE_H
#define PSPLIT_PASSES_STATE_H

#include "shape.h"

typedef struct psplit_i_state {
  uint32_t input, output; /* values of the graph */
  /* The sizes are equal on each axis. A runtime may write to the buffer of an input, so that there
   * is one buffer. Otherwise the output is longer, and takes a second buffer while the model
   * runs. */
  bool shared;
  bool named; /* the caller named it */
} psplit_i_state;

typedef struct psplit_i_states {
  uint32_t n;
  psplit_i_state *items; /* in the order of the graph's inputs */
  uint32_t *of;          /* [n_values] 1 + the pair of the value; 0: none */
} psplit_i_states;

typedef struct psplit_i_states_request {
  const uint32_t *output, *input; /* [n] pairs of values, whatever their names */
  uint32_t n;
  bool by_name; /* pairs that are found by name are used, too */
} psplit_i_states_request;

/* Finds the pairs. Memory is the arena's. If a named pair and a found one share a value, the named
 * one is used. Errors: NOMEM. O(values + inputs' names). */
PSPLIT_MUST_USE psplit_code psplit_i_states_find(const psplit_i_graph *graph,
                                                 const psplit_i_shapes *shapes,
                                                 const psplit_i_states_request *request,
                                                 psplit_i_arena *arena, psplit_diag *diag,
                                                 psplit_i_states *out);

/* Whether the output can never be the input of the next run: types or ranks differ, or a size that
 * is fixed in both. Unknown sizes may agree. */
bool psplit_i_states_contradict(const psplit_i_shapes *shapes, uint32_t input, uint32_t output);

#endif
