/* Coverage: the stages contain all of the model, as often as the manifest says. */
#include <inttypes.h>
#include <string.h>

#include "verify.h"

bool psplit_i_may_vary(const psplit_i_node *node) {
  const bool known = !*node->domain || strcmp(node->domain, "ai.onnx.ml") == 0 ||
                     strcmp(node->domain, "com.microsoft") == 0;
  return !known || strncmp(node->op_type, "Random", 6) == 0 || strstr(node->op_type, "Dropout") ||
         strcmp(node->op_type, "Multinomial") == 0 || strcmp(node->op_type, "Bernoulli") == 0;
}

typedef PSPLIT_VEC(const psplit_i_graph *) graphs;

/* Looks at one graph; its bodies and the functions it calls join `open`, each function once. */
static psplit_code look_through(psplit_i_proof *p, const psplit_i_node *node, graphs *open,
                                bool *out_varies) {
  if (node->function == PSPLIT_NONE) {
    *out_varies = psplit_i_may_vary(node);
  } else if (!p->function_tame[node->function]) {
    p->function_tame[node->function] = 1;
    const psplit_i_graph *callee = psplit_i_model_function(p->model, node->function);
    if (!psplit_i_vec_push(open, callee)) return psplit_i_nomem(p->diag);
  }
  for (uint32_t b = 0; b < node->n_bodies; b++)
    if (!psplit_i_vec_push(open, node->bodies[b])) return psplit_i_nomem(p->diag);
  return PSPLIT_OK;
}

/* Whether a node may give something else each time; a true answer ends the proof. */
static psplit_code varies(psplit_i_proof *p, const psplit_i_node *node, bool *out) {
  psplit_code code;
  graphs open = {0};
  *out = false;
  PSPLIT_TRY(look_through(p, node, &open, out));
  while (open.n && !*out) {
    const psplit_i_graph *graph = open.items[--open.n];
    for (uint32_t n = 0; n < graph->n_nodes && !*out; n++)
      PSPLIT_TRY(look_through(p, &graph->nodes[n], &open, out));
  }
out:
  psplit_i_vec_fini(&open);
  return code;
}

static psplit_code cover_nodes(psplit_i_proof *p) {
  psplit_code code = PSPLIT_OK;
  char label[128];
  for (uint32_t n = 0; n < p->graph->n_nodes; n++) {
    const psplit_i_duplicate *duplicate =
      p->declared[n] ? &p->manifest.duplicates[p->declared[n] - 1] : NULL;
    const uint32_t wanted = duplicate ? duplicate->n_also + 1 : 1;
    const char *name = psplit_i_node_label(p->graph, n, label, sizeof label);
    if (!p->n_seen[n]) return PSPLIT_I_DIFFERS(p, "node %s is in no stage", name);
    if (p->n_seen[n] != wanted)
      return PSPLIT_I_DIFFERS(p, "node %s is in %" PRIu32 " stages, the manifest says %" PRIu32,
                              name, p->n_seen[n], wanted);
    bool differs = false;
    if (p->n_seen[n] > 1) PSPLIT_TRY(varies(p, &p->graph->nodes[n], &differs));
    if (differs)
      return PSPLIT_I_DIFFERS(p,
                              "node %s is in several stages, and its copies may not agree: it "
                              "draws random numbers or is an unknown operator",
                              name);
  }
  uint32_t *n_copies = PSPLIT_NEW(&p->arena, uint32_t, p->manifest.n_stages);
  if (!n_copies) return psplit_i_nomem(p->diag);
  for (uint32_t d = 0; d < p->manifest.n_duplicates; d++)
    for (uint32_t k = 0; k < p->manifest.duplicates[d].n_also; k++)
      n_copies[p->manifest.duplicates[d].also[k]]++;
  for (uint32_t s = 0; s < p->manifest.n_stages; s++)
    if (n_copies[s] != p->manifest.stages[s].n_duplicated)
      return PSPLIT_I_DIFFERS(
        p, "stage %" PRIu32 ": the manifest counts %" PRIu32 " duplicated nodes and lists %" PRIu32,
        psplit_i_called(p, s), p->manifest.stages[s].n_duplicated, n_copies[s]);
out:
  return code;
}

psplit_code psplit_i_check_coverage(psplit_i_proof *p) {
  psplit_code code;
  PSPLIT_TRY(cover_nodes(p));
  for (uint32_t o = 0; o < p->graph->n_outputs; o++)
    if (!p->output_seen[o])
      return PSPLIT_I_DIFFERS(p, "output \"%s\" of the model comes out of no stage",
                              p->graph->values[p->graph->outputs[o]].name);
  for (uint32_t v = 0; v < p->graph->n_values; v++) {
    const psplit_i_value *value = &p->graph->values[v];
    if ((value->initializer != PSPLIT_NONE || value->sparse_initializer != PSPLIT_NONE) &&
        !p->initializer_seen[v] && !(p->training && p->training->first_seen[v]))
      return PSPLIT_I_DIFFERS(p, "initializer \"%s\" is in no stage", value->name);
  }
out:
  return code;
}
