/* Checks where backward passes and recomputing files take their inputs from, and the recomputing
 * files themselves. */

#include "fields.h"
#include "training_inside.h"

static bool is_input_of_model(const psplit_i_training_proof *c, const char *name) {
  const uint32_t value = psplit_i_graph_find_value(c->p->graph, name);
  return value != PSPLIT_NONE && c->p->graph->values[value].input != PSPLIT_NONE &&
         !c->trained[value];
}

/* Whether what the manifest feeds to an input is what its name stands for. Names of the model, of
 * shapes and of gradients are distinct. */
static bool is_fed(const psplit_i_training_proof *c, uint32_t s, const psplit_i_part_input *in) {
  switch (in->source) {
    case PSPLIT_I_PART_MODEL: return is_input_of_model(c, in->name);
    case PSPLIT_I_PART_WEIGHTS: return psplit_i_is_trained(c->p, in->name);
    case PSPLIT_I_PART_STASH:
      return psplit_i_named(c, PSPLIT_I_SET_STASH_TENSOR, in->name, s) != PSPLIT_NONE;
    case PSPLIT_I_PART_AGAIN:
      return psplit_i_named(c, PSPLIT_I_SET_AGAIN_OUTPUT, in->name, s) != PSPLIT_NONE;
    case PSPLIT_I_PART_LOSS:
      return strcmp(in->name, psplit_gradient_loss_gradient(c->gradient)) == 0;
    case PSPLIT_I_PART_BEFORE:
      return psplit_i_named(c, PSPLIT_I_SET_BEFORE, in->name, 0) != PSPLIT_NONE;
    case PSPLIT_I_PART_STAGE: return true; /* the proof of the backward pass says so */
  }
  return false;
}

psplit_code psplit_i_check_feeds(const psplit_i_training_proof *c, uint32_t s,
                                 const psplit_i_part *part) {
  for (uint32_t i = 0; part->file && i < part->n_inputs; i++)
    if (!is_fed(c, s, &part->inputs[i]))
      return PSPLIT_I_DIFFERS(c->p, "%s: input \"%s\" does not match its source in the manifest",
                              part->file, part->inputs[i].name);
  return PSPLIT_OK;
}

/* Gradients of weights go to the update, those of inputs to the caller, and nothing else does. */
psplit_code psplit_i_check_goals(const psplit_i_training_proof *c, const psplit_i_part *backward) {
  for (uint32_t o = 0; backward->file && o < backward->n_outputs; o++) {
    const psplit_i_part_output *output = &backward->outputs[o];
    psplit_i_part_goal goal = PSPLIT_I_PART_NOWHERE;
    const uint32_t t = psplit_i_named(c, PSPLIT_I_SET_GRADIENT, output->name, 0);
    if (t != PSPLIT_NONE)
      goal = c->gradient->trainables[t].is_input ? PSPLIT_I_PART_CALLER : PSPLIT_I_PART_UPDATE;
    if (output->goal != goal)
      return PSPLIT_I_DIFFERS(c->p, "%s: output \"%s\" does not go where the manifest says",
                              backward->file, output->name);
  }
  return PSPLIT_OK;
}

/* A node of the model, with the model's bytes, that gives the same again. */
static psplit_code check_again_node(psplit_i_proof *p, const char *file, uint32_t part) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_node *node = &p->part->nodes[part];
  char label[128];
  uint32_t value = PSPLIT_NONE;
  bool equal = false;
  for (uint32_t o = 0; o < node->n_outputs && value == PSPLIT_NONE; o++)
    if (node->outputs[o] != PSPLIT_NONE)
      value = psplit_i_graph_find_value(p->graph, p->part->values[node->outputs[o]].name);
  const uint32_t n = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].producer;
  if (n != PSPLIT_NONE)
    PSPLIT_TRY(psplit_i_compare(p, PSPLIT_I_GRAPH_NODE, n, part, p->graph->nodes[n].name, &equal));
  if (!equal || psplit_i_may_vary(node) || node->n_bodies || node->function != PSPLIT_NONE)
    return PSPLIT_I_DIFFERS(
      p, "%s: node %s is %s", file, psplit_i_node_label(p->part, part, label, sizeof label),
      equal ? "not certain to give the same result again" : "not the model's");
out:
  return code;
}

/* An initializer is the model's, and no trained weight: its first value would be read for
 * ever. A state's may be: nothing reads what becomes of it there. */
static psplit_code check_again_initializer(psplit_i_proof *p, const char *file, uint32_t i) {
  psplit_code code = PSPLIT_OK;
  const char *name = p->part->values[p->part->initializers[i]].name;
  const uint32_t value = psplit_i_graph_find_value(p->graph, name);
  const uint32_t whole = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].initializer;
  bool equal = false;
  if (whole != PSPLIT_NONE && (!psplit_i_is_trained(p, name) || p->training->trained[value] == 2))
    PSPLIT_TRY(psplit_i_compare(p, PSPLIT_I_GRAPH_INITIALIZER, whole, i, name, &equal));
  if (!equal) return PSPLIT_I_DIFFERS(p, "%s: initializer \"%s\" is not the model's", file, name);
out:
  return code;
}

psplit_code psplit_i_check_again(psplit_i_training_proof *c, uint32_t s) {
  psplit_code code;
  psplit_i_proof *p = c->p;
  const psplit_i_part *again = &c->table->stages[s].again;
  p->at = s;
  PSPLIT_TRY(psplit_i_check_recompute(p, false));
  if (!again->file) return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_check_feeds(c, s, again));
  PSPLIT_TRY(psplit_i_open_part(p, c->directory, again->file, c->options));
  PSPLIT_TRY(psplit_i_compare_rest(p));
  for (uint32_t n = 0; n < p->part->n_nodes; n++) PSPLIT_TRY(check_again_node(p, again->file, n));
  for (uint32_t i = 0; i < p->part->n_initializers; i++)
    PSPLIT_TRY(check_again_initializer(p, again->file, i));
  bool good = p->part->n_outputs == again->n_outputs && p->part->n_nodes == again->n_nodes &&
              !p->part->n_sparse_initializers;
  uint32_t n_listed = 0;
  for (uint32_t i = 0; good && i < p->part->n_inputs; i++) {
    const psplit_i_value *input = &p->part->values[p->part->inputs[i]];
    const bool has_default = input->initializer != PSPLIT_NONE;
    const uint32_t row = psplit_i_named(c, PSPLIT_I_SET_AGAIN_INPUT, input->name, s);
    /* Before IR version 4 an input with a default cannot be fed and needs no row. */
    good = row != PSPLIT_NONE ? again->inputs[row].optional == has_default
                              : has_default && psplit_i_model_ir_version(p->model) < 4;
    n_listed += row != PSPLIT_NONE;
    if (good) PSPLIT_TRY(psplit_i_is_declared_input(p, i, &good));
  }
  good = good && n_listed == again->n_inputs;
  for (uint32_t o = 0; good && o < p->part->n_outputs; o++) {
    const char *name = p->part->values[p->part->outputs[o]].name;
    const uint32_t value = psplit_i_graph_find_value(p->graph, name);
    good = psplit_i_same(again->outputs[o].name, name) && value != PSPLIT_NONE &&
           again->outputs[o].goal == PSPLIT_I_PART_BACKWARD && !again->outputs[o].n_to;
    if (good) PSPLIT_TRY(psplit_i_is_declared(p, o, value, &good));
  }
  if (!good)
    PSPLIT_FAIL(PSPLIT_I_DIFFERS(p, "%s has other inputs, outputs or nodes than the manifest says",
                                 again->file));
  PSPLIT_TRY(psplit_i_check_recompute(p, true));
  PSPLIT_TRY(psplit_i_pairs_compare(p, p->at, c->options->n_threads));
out:
  psplit_i_close_part(p);
  return code;
}
