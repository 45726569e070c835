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

bool psplit_i_states_contradict(const psplit_i_shapes *shapes, uint32_t input, uint32_t output) {
  const psplit_i_vtype *in = psplit_i_shapes_type(shapes, input),
                       *out = psplit_i_shapes_type(shapes, output);
  const psplit_i_dims *dims = psplit_i_shapes_dims(shapes);
  if (in->kind != PSPLIT_TYPE_UNKNOWN && out->kind != PSPLIT_TYPE_UNKNOWN && in->kind != out->kind)
    return true;
  if (in->elem && out->elem && in->elem != out->elem) return true;
  if (in->rank < 0 || out->rank < 0) return false;
  bool differ = in->rank != out->rank;
  for (int32_t a = 0; a < in->rank && !differ; a++) {
    int64_t x, y;
    differ = psplit_i_dim_is_const(dims, in->dims[a], &x) &&
             psplit_i_dim_is_const(dims, out->dims[a], &y) && x != y;
  }
  return differ;
}

/* The named pair of an input; PSPLIT_NONE: it is in none. */
static uint32_t named_pair(const psplit_i_states_request *request, uint32_t input) {
  for (uint32_t i = 0; i < request->n; i++)
    if (request->input[i] == input) return i;
  return PSPLIT_NONE;
}

static void add(psplit_i_states *states, const psplit_i_shapes *shapes, uint32_t input,
                uint32_t output, bool named) {
  const bool shared = could_be(shapes, input, output) && same_sizes(shapes, input, output);
  states->items[states->n] = (psplit_i_state){input, output, shared, named};
  states->of[input] = states->of[output] = ++states->n;
}

psplit_code psplit_i_states_find(const psplit_i_graph *graph, const psplit_i_shapes *shapes,
                                 const psplit_i_states_request *request, psplit_i_arena *arena,
                                 psplit_diag *diag, psplit_i_states *out) {
  enum { TAKEN = UINT32_MAX };
  psplit_i_text name = {0};
  *out = (psplit_i_states){.items = PSPLIT_NEW(arena, psplit_i_state, graph->n_inputs),
                           .of = PSPLIT_NEW(arena, uint32_t, graph->n_values)};
  if (!out->items || !out->of) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < request->n; i++)
    out->of[request->input[i]] = out->of[request->output[i]] = TAKEN;
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const uint32_t input = graph->inputs[i], pair = named_pair(request, input);
    if (pair != PSPLIT_NONE) {
      add(out, shapes, input, request->output[pair], true);
    } else if (request->by_name && !out->of[input]) {
      const uint32_t output = partner(graph, shapes, input, &name);
      if (output != PSPLIT_NONE && !out->of[output]) add(out, shapes, input, output, false);
    }
  }
  const bool failed = name.failed;
  psplit_i_text_fini(&name);
  return failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}
