/* Removes Send and Recv nodes, which are identities, with their functions and the import of their
 * domain. Those of the original model remain: it may be a stage of another split, or use the domain
 * for something else. */
#include <string.h>

#include "merge.h"

static bool is_send(const char *name) { return strcmp(name, "Send") == 0; }

/* ports[value]: what crosses between stages enters the file as this value, or leaves it. */
static psplit_code find_ports(psplit_i_merger *m, uint32_t s, uint8_t **out) {
  const psplit_i_graph *graph = m->stages[s].graph;
  const psplit_i_manifest_stage *wanted = &m->manifest.stages[s];
  uint8_t *ports = PSPLIT_NEW(&m->arena, uint8_t, graph->n_values);
  if (!ports) return psplit_i_nomem(m->diag);
  for (uint32_t i = 0; i < wanted->n_inputs; i++) {
    const uint32_t v = psplit_i_graph_find_value(graph, wanted->inputs[i].name);
    if (v != PSPLIT_NONE && wanted->inputs[i].from != PSPLIT_I_FROM_MODEL) ports[v] = 1;
  }
  for (uint32_t o = 0; o < wanted->n_outputs; o++) {
    const uint32_t v = psplit_i_graph_find_value(graph, wanted->outputs[o].name);
    if (v != PSPLIT_NONE && wanted->outputs[o].n_to > 0) ports[v] = 1;
  }
  *out = ports;
  return PSPLIT_OK;
}

/* Whether the node stands between a port and the stage. */
static bool hands_on(const psplit_i_merge_stage *stage, const psplit_i_node *node,
                     const uint8_t *ports) {
  if (!psplit_i_node_is_boundary(node) || node->function == PSPLIT_NONE ||
      !psplit_i_function_is_boundary(stage->model, node->function) || node->n_inputs != 1 ||
      node->n_outputs != 1 || node->inputs[0] == PSPLIT_NONE || node->outputs[0] == PSPLIT_NONE)
    return false;
  return ports[is_send(node->op_type) ? node->outputs[0] : node->inputs[0]];
}

void psplit_i_merge_keep_of_model(psplit_i_merger *m) {
  if (!m->whole) return;
  m->keeps_opset = psplit_i_model_opset(m->whole, PSPLIT_I_BOUNDARY_DOMAIN) != 0;
  for (uint32_t f = 0; f < psplit_i_model_n_functions(m->whole); f++)
    if (psplit_i_function_is_boundary(m->whole, f))
      m->keeps_function[is_send(m->whole->proto->functions[f]->name)] = true;
}

psplit_code psplit_i_merge_boundary(psplit_i_merger *m, uint32_t s) {
  psplit_code code = PSPLIT_OK;
  uint8_t *ports = NULL;
  psplit_i_merge_stage *stage = &m->stages[s];
  PSPLIT_TRY(find_ports(m, s, &ports));
  for (uint32_t n = 0; n < stage->graph->n_nodes; n++) {
    const psplit_i_node *node = &stage->graph->nodes[n];
    if (strcmp(node->domain, PSPLIT_I_BOUNDARY_DOMAIN) != 0) continue;
    if (m->manifest.sendrecv && hands_on(stage, node, ports)) {
      stage->gone[n] = 1;
      m->same_as[stage->first + node->outputs[0]] = stage->first + node->inputs[0];
      continue;
    }
    m->keeps_opset = true;
    if (node->function != PSPLIT_NONE)
      m->keeps_function[is_send(node->op_type)] |=
        psplit_i_function_is_boundary(stage->model, node->function);
  }
out:
  return code;
}

bool psplit_i_merge_drops_opset(const psplit_i_merger *m, const char *domain) {
  return m->manifest.sendrecv && !m->keeps_opset && strcmp(domain, PSPLIT_I_BOUNDARY_DOMAIN) == 0;
}

bool psplit_i_merge_drops_function(const psplit_i_merger *m, uint32_t s, size_t k) {
  const psplit_model *model = m->stages[s].model;
  return m->manifest.sendrecv && psplit_i_function_is_boundary(model, k) &&
         !m->keeps_function[is_send(model->proto->functions[k]->name)];
}
