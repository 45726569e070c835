/* Pairs of inputs and outputs that are a state, by name. */
#include "state.h"

#include <string.h>

#include "state_names.h"

static bool could_be(const psplit_i_shapes *shapes, uint32_t input, uint32_t output) {
  const psplit_i_vtype *in = psplit_i_shapes_type(shapes, input),
                       *out = psplit_i_shapes_type(shapes, output);
  return in->kind == PSPLIT_TYPE_TENSOR && out->kind == in->kind && in->elem == out->elem &&
         in->rank >= 0 && in->rank == out->rank;
}

static bool same_sizes(const psplit_i_shapes *shapes, uint32_t input, uint32_t output) {
  const psplit_i_vtype *in = psplit_i_shapes_type(shapes, input),
                       *out = psplit_i_shapes_type(shapes, output);
  return memcmp(in->dims, out->dims, (size_t)in->rank * sizeof *in->dims) == 0;
}

/* The output that goes with an input; PSPLIT_NONE: none. */
static uint32_t partner(const psplit_i_graph *graph, const psplit_i_shapes *shapes, uint32_t input,
                        psplit_i_text *name) {
  for (size_t way = 0; way < PSPLIT_I_STATE_WAYS; way++) {
    if (!psplit_i_state_output(graph->values[input].name, way, name)) continue;
    if (name->failed) return PSPLIT_NONE;
    const uint32_t value = psplit_i_graph_find_value(graph, name->bytes);
    if (value != PSPLIT_NONE && graph->values[value].is_output && could_be(shapes, input, value))
      return value;
  }
  return PSPLIT_NONE;
}

psplit_code psplit_i_states_find(const psplit_i_graph *graph, const psplit_i_shapes *shapes,
                                 psplit_i_arena *arena, psplit_diag *diag, psplit_i_states *out) {
  psplit_i_text name = {0};
  *out = (psplit_i_states){.items = PSPLIT_NEW(arena, psplit_i_state, graph->n_inputs),
                           .of = PSPLIT_NEW(arena, uint32_t, graph->n_values)};
  if (!out->items || !out->of) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const uint32_t input = graph->inputs[i], output = partner(graph, shapes, input, &name);
    if (output == PSPLIT_NONE || out->of[output]) continue;
    out->items[out->n] = (psplit_i_state){input, output, same_sizes(shapes, input, output)};
    out->of[input] = out->of[output] = ++out->n;
  }
  const bool failed = name.failed;
  psplit_i_text_fini(&name);
  return failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}
