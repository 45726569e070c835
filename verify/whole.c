/* Global differences: a failed proof ends at a detail, but if the stages are of another model, that
 * is reported first. */
#include <inttypes.h>
#include <string.h>

#include "base_name.h"
#include "verify.h"

static bool add_all(psplit_i_intern *set, const char *const *names, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (psplit_i_intern_add(set, names[i]) == PSPLIT_NONE) return false;
  return true;
}

/* An input that has no default, or an output, of the model that the manifest does not list; NULL:
 * none, or no memory to tell. Stages that train have others besides. */
static const char *other_port(const psplit_i_proof *p, const char **out_kind) {
  const psplit_i_manifest *m = &p->manifest;
  const char *other = NULL;
  psplit_i_intern inputs, outputs;
  psplit_i_intern_init(&inputs);
  psplit_i_intern_init(&outputs);
  if (!add_all(&inputs, m->inputs, m->n_inputs) || !add_all(&outputs, m->outputs, m->n_outputs))
    goto out;
  *out_kind = "input";
  for (uint32_t i = 0; i < p->graph->n_inputs && !other; i++) {
    const psplit_i_value *input = &p->graph->values[p->graph->inputs[i]];
    if (input->initializer == PSPLIT_NONE && input->sparse_initializer == PSPLIT_NONE &&
        psplit_i_intern_find(&inputs, input->name) == PSPLIT_NONE)
      other = input->name;
  }
  if (!other) *out_kind = "output";
  for (uint32_t o = 0; o < p->graph->n_outputs && !other; o++) {
    const char *name = p->graph->values[p->graph->outputs[o]].name;
    if (psplit_i_intern_find(&outputs, name) == PSPLIT_NONE) other = name;
  }
out:
  psplit_i_intern_fini(&inputs);
  psplit_i_intern_fini(&outputs);
  return other;
}

/* Nodes of the model that was split, each counted once. */
static uint64_t nodes_of_manifest(const psplit_i_manifest *m) {
  uint64_t n = 0, n_copies = 0;
  for (uint32_t s = 0; s < m->n_stages; s++) n += m->stages[s].n_nodes;
  for (uint32_t d = 0; d < m->n_duplicates; d++) n_copies += m->duplicates[d].n_also;
  return n > n_copies ? n - n_copies : 0;
}

void psplit_i_tell_whole(psplit_i_proof *p) {
  const psplit_i_manifest *m = &p->manifest;
  const char *kind = "", *name = psplit_i_base_name(psplit_i_model_path(p->model));
  const char *split = m->model ? m->model : "another";
  const char *port = other_port(p, &kind);
  const uint64_t n_nodes = nodes_of_manifest(m);
  /* Nodes that training or a branch puts in the place of others are not those of the file. */
  const bool counted = !m->training && !m->n_inlined;
  if (port)
    psplit_i_diag_context(p->diag,
                          "%s is not the model that was split (%s, by pipeline.json): it has %s "
                          "\"%s\", which that model lacks",
                          name, split, kind, port);
  else if (counted && n_nodes != p->graph->n_nodes)
    psplit_i_diag_context(
      p->diag,
      "%s is not the model that was split (%s, by pipeline.json): it has %" PRIu32
      " node%s instead of %" PRIu64,
      name, split, p->graph->n_nodes, p->graph->n_nodes == 1 ? "" : "s", n_nodes);
  else if (m->model && strcmp(m->model, name) != 0)
    psplit_i_diag_context(p->diag, "pipeline.json describes %s, and this is %s", m->model, name);
}
