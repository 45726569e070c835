/* State in a plan: the nodes that read it and those that write it share a stage. */
#include "keep_state.h"

#include <inttypes.h>

#include "unknown.h"

static psplit_code no_such(psplit_planner *planner, const psplit_planner_state *pair, bool output,
                           psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  const uint32_t n = output ? graph->n_outputs : graph->n_inputs;
  const uint32_t *values = output ? graph->outputs : graph->inputs;
  const char *name = output ? pair->output : pair->input;
  const char **names = psplit_i_arena_array(&planner->scratch, n, sizeof *names);
  if (!names) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n; i++) names[i] = graph->values[values[i]].name;
  psplit_i_text known = {0};
  psplit_i_add_names(&known, "it has", name, names, n);
  const psplit_code code =
    known.failed ? psplit_i_nomem(diag)
                 : psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(STATE),
                                       "%s=%s: the model has no %s \"%s\"%s", pair->output,
                                       pair->input, output ? "output" : "input", name, known.bytes);
  psplit_i_text_fini(&known);
  return code;
}

psplit_code psplit_i_planner_take_states(psplit_planner *planner, psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  const size_t n = planner->options.n_states;
  uint32_t *output = psplit_i_arena_array(&planner->arena, n, sizeof *output);
  uint32_t *input = psplit_i_arena_array(&planner->arena, n, sizeof *input);
  uint8_t *taken = PSPLIT_NEW(&planner->scratch, uint8_t, graph->n_values);
  if (!output || !input || !taken) return psplit_i_nomem(diag);
  for (size_t i = 0; i < n; i++) {
    const psplit_planner_state *pair = &planner->options.states[i];
    output[i] = psplit_i_graph_find_value(graph, pair->output);
    input[i] = psplit_i_graph_find_value(graph, pair->input);
    if (output[i] == PSPLIT_NONE || !graph->values[output[i]].is_output)
      return no_such(planner, pair, true, diag);
    if (input[i] == PSPLIT_NONE || graph->values[input[i]].input == PSPLIT_NONE)
      return no_such(planner, pair, false, diag);
    if (taken[output[i]] || taken[input[i]] || output[i] == input[i])
      return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(STATE),
                                 "%s=%s: \"%s\" is in another pair already", pair->output,
                                 pair->input, taken[output[i]] ? pair->output : pair->input);
    taken[output[i]] = taken[input[i]] = 1;
  }
  planner->named_states = (psplit_i_states_request){output, input, (uint32_t)n, false};
  planner->named_states.by_name = !planner->options.no_states;
  psplit_i_arena_reset(&planner->scratch);
  return PSPLIT_OK;
}

/* Sizes that the caller gave for costs may differ where the model's own need not. */
static psplit_code check_named(const psplit_planner *planner, psplit_diag *diag) {
  psplit_i_shapes *open = NULL;
  const psplit_i_states_request *named = &planner->named_states;
  if (!named->n) return PSPLIT_OK;
  psplit_code code = psplit_i_shapes_create(planner->graph, NULL, 0, NULL, diag, &open);
  if (code != PSPLIT_OK) return code;
  psplit_i_text text = {0};
  for (uint32_t i = 0; i < named->n && code == PSPLIT_OK; i++) {
    const psplit_planner_state *pair = &planner->options.states[i];
    if (!psplit_i_states_contradict(open, named->input[i], named->output[i])) continue;
    text.n = 0;
    psplit_i_text_puts(&text, "the output is ");
    psplit_i_shapes_print(open, psplit_i_shapes_type(open, named->output[i]), &text);
    psplit_i_text_puts(&text, ", the input ");
    psplit_i_shapes_print(open, psplit_i_shapes_type(open, named->input[i]), &text);
    code = text.failed
             ? psplit_i_nomem(diag)
             : psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(STATE),
                                   "%s=%s: no run can take the result of the previous one: %s",
                                   pair->output, pair->input, text.bytes);
  }
  psplit_i_text_fini(&text);
  psplit_i_shapes_destroy(open);
  return code;
}

/* Puts a node into the class; one that is in another brings that class along. */
static void join(psplit_planner *planner, uint32_t node, uint32_t class_id) {
  const uint32_t old = planner->state_class[node];
  planner->state_class[node] = class_id;
  if (old == PSPLIT_NONE || old == class_id) return;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (planner->state_class[n] == old) planner->state_class[n] = class_id;
}

static void join_states(psplit_planner *planner, bool named_alone) {
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t n = 0; n < graph->n_nodes; n++) planner->state_class[n] = PSPLIT_NONE;
  planner->n_state_classes = planner->states.n;
  for (uint32_t i = 0; i < planner->states.n; i++) {
    const psplit_i_state *state = &planner->states.items[i];
    const uint32_t writer = graph->values[state->output].producer;
    if (named_alone && !state->named) continue;
    if (writer != PSPLIT_NONE) join(planner, writer, i);
    for (uint32_t c = graph->consumer_off[state->input]; c < graph->consumer_off[state->input + 1];
         c++)
      join(planner, graph->consumers[c], i);
  }
}

psplit_code psplit_i_planner_find_states(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(check_named(planner, diag));
  PSPLIT_TRY(psplit_i_states_find(planner->graph, planner->shapes, &planner->named_states,
                                  &planner->arena, diag, &planner->states));
  if (planner->options.n_sequences && !planner->states.n)
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_USAGE,
                    "a number of sequences counts for nothing: the model has no state from "
                    "step to step"));
  join_states(planner, planner->states_parted);
out:
  return code;
}

bool psplit_i_planner_part_states(psplit_planner *planner) {
  bool any = false;
  for (uint32_t i = 0; i < planner->states.n; i++) any |= !planner->states.items[i].named;
  if (!any || planner->states_parted) return false;
  planner->states_parted = true;
  join_states(planner, true);
  return true;
}

bool psplit_i_states_are_kept(const psplit_planner *planner, const uint32_t *stage,
                              uint32_t *scratch) {
  for (uint32_t c = 0; c < planner->n_state_classes; c++) scratch[c] = PSPLIT_NONE;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++) {
    const uint32_t c = planner->state_class[n];
    if (c == PSPLIT_NONE || (planner->node_flags[n] & PSPLIT_I_NODE_FREE)) continue;
    if (scratch[c] != PSPLIT_NONE && scratch[c] != stage[n]) return false;
    scratch[c] = stage[n];
  }
  return true;
}

bool psplit_i_planner_reads_state(const psplit_planner *planner, uint32_t node) {
  if (!planner->states.n) return false;
  PSPLIT_FOR_EACH_READ(&planner->graph->nodes[node], value) {
    const uint32_t pair = planner->states.of[value];
    if (pair && planner->states.items[pair - 1].input == value) return true;
  }
  return false;
}
